package sim

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"spinesim/lanai/ilp"
	"spinesim/sim/des"
	"spinesim/traces"
)

const functions = "functions: [bswap, pes, cksum]"

func manipulating(mode string) string {
	return fmt.Sprintf("extensions=[{kind: ilp, ilp: {%s, mode: %s}}, {kind: ipv4}]", functions, mode)
}

// packetsOf reads what left the cards.
func packetsOf(t *testing.T, b []byte) (packets [][]byte, cards []int) {
	t.Helper()
	o := pcapgo.DefaultNgReaderOptions
	o.WantMixedLinkType = true
	r, err := pcapgo.NewNgReader(bytes.NewReader(b), o)
	if err != nil {
		t.Fatal(err)
	}
	for {
		data, ci, err := r.ReadPacketData()
		if errors.Is(err, io.EOF) {
			return packets, cards
		}
		if err != nil {
			t.Fatal(err)
		}
		packets = append(packets, data)
		cards = append(cards, ci.InterfaceIndex)
	}
}

// TestManipulatedBytes: the three ways leave the same bytes, each in a packet
// that routers would take, and what they wait for differs as the model says.
func TestManipulatedBytes(t *testing.T) {
	type way struct {
		mode   string
		bytes  [][]byte
		handle des.Time
	}
	ways := []way{{mode: "none"}, {mode: "sequential"}, {mode: "integrated"}, {mode: "dma-checksum"}}
	for i := range ways {
		settings := []string{"traffic.packets=40", "traffic.arrivals.process=constant", "traffic.arrivals.rate=1000 packets/s", "traffic.arrivals.senders=1"}
		if ways[i].mode == "none" {
			settings = append(settings, "extensions=[{kind: ipv4}]")
		} else {
			settings = append(settings, manipulating(ways[i].mode))
		}
		sc := mustLoad(t, "ilp", settings...)
		var wires bytes.Buffer
		mustRun(t, sc, Options{Wires: &wires, Check: true, Sinks: []traces.Sink{sinkFunc(func(r *traces.Record) {
			if r.Kind == traces.KindBox && r.Event == traces.RouterIn {
				ways[i].handle += des.Time(r.Cycles)
			}
		})}})
		ways[i].bytes, _ = packetsOf(t, wires.Bytes())
		if len(ways[i].bytes) != 40 {
			t.Fatalf("%s: %d packets left", ways[i].mode, len(ways[i].bytes))
		}
		for _, p := range ways[i].bytes {
			if len(p) != 1500 {
				t.Fatalf("%s: %d bytes of a packet", ways[i].mode, len(p))
			}
			ip, ok := gopacket.NewPacket(p, layers.LayerTypeIPv4, gopacket.Default).Layer(layers.LayerTypeIPv4).(*layers.IPv4)
			if !ok || ip.TTL != 63 || ip.Length != 1500 {
				t.Fatalf("%s: not a routed packet: %+v", ways[i].mode, ip)
			}
		}
	}
	byTime := func(a, b []byte) int { return bytes.Compare(a[4:6], b[4:6]) } // identification
	for i := range ways {
		slices.SortFunc(ways[i].bytes, byTime)
	}
	for _, w := range ways[2:] {
		if d := cmp.Diff(ways[1].bytes, w.bytes); d != "" {
			t.Errorf("%s leaves other bytes than %s", w.mode, ways[1].mode)
		}
	}
	for i, p := range ways[0].bytes {
		got := ways[1].bytes[i]
		if !bytes.Equal(p[:20], got[:20]) || bytes.Equal(p[20:], got[20:]) {
			t.Fatal("the header must stay and the data change")
		}
		// By hand: each word turned around, then encrypted.
		want := bytes.Clone(p[20:])
		chain := []ilp.Manipulator{ilp.ByteSwap{}, ilp.PseudoEncryption{}}
		for _, m := range chain {
			whole := len(want) - len(want)%m.Function().In
			m.Blocks(want[:whole])
			m.Tail(want[whole:])
		}
		if !bytes.Equal(want, got[20:]) {
			t.Fatal("the data is not what the functions make of it")
		}
	}
	// The router handler's cycles differ by what the stages cost.
	for _, w := range ways[1:] {
		spec := ILPSpec{Functions: []string{"bswap", "pes", "cksum"}, Mode: w.mode}
		stage, err := ilp.NewStage(spec.stage(ilp.Lanai4()))
		if err != nil {
			t.Fatal(err)
		}
		cycles, _ := stage.Cost(1480)
		if got := w.handle - ways[0].handle; got != des.Time(40*cycles) {
			t.Errorf("%s: %d cycles of manipulation, want %d", w.mode, got, 40*cycles)
		}
	}
}

// TestBridge: frames reach the card where their station is, and at first all
// others.
func TestBridge(t *testing.T) {
	sc := mustLoad(t, "l2", "traffic.packets=400", "traffic.stations=16")
	var wires bytes.Buffer
	s, err := New(sc, Options{Wires: &wires, Check: true})
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Run(t.Context())
	if err != nil || len(r.Violations) > 0 {
		t.Fatal(err, r.Violations)
	}
	frames, cards := packetsOf(t, wires.Bytes())
	if uint64(len(frames)) != r.Forwarded {
		t.Errorf("%d frames left, %d forwarded", len(frames), r.Forwarded)
	}
	right, wrong := 0, 0
	for i, f := range frames {
		p := gopacket.NewPacket(f, layers.LayerTypeEthernet, gopacket.Default)
		eth, _ := p.Layer(layers.LayerTypeEthernet).(*layers.Ethernet)
		ip, _ := p.Layer(layers.LayerTypeIPv4).(*layers.IPv4)
		if eth == nil || ip == nil {
			t.Fatalf("frame %d is no Ethernet frame", i)
		}
		if ip.TTL != 64 {
			t.Fatalf("a bridge must not route: TTL %d", ip.TTL)
		}
		if home := int(ip.DstIP[1]); home == cards[i] {
			right++
		} else {
			wrong++
		}
		if int(ip.SrcIP[1]) == cards[i] {
			t.Fatal("a frame came back to where it was sent")
		}
	}
	// Every packet arrives once where its station is; the other copies go
	// astray.
	if uint64(right) != r.Received || uint64(wrong) != r.Copies || wrong == 0 || wrong > right/4 {
		t.Errorf("%d frames at their stations' cards, %d elsewhere; %d received, %d copies", right, wrong, r.Received, r.Copies)
	}
	for i := range sc.Cards {
		if n := s.bridge.Table(i).Len(); n != 64 {
			t.Errorf("card %d knows %d stations, want 64", i, n)
		}
	}
}

// TestBatches: packets are handled in batches of the size asked for, and wait
// for each other.
func TestBatches(t *testing.T) {
	var cycles [2]uint64
	var latency [2]float64
	for i, batch := range []int{1, 8} {
		sc := mustLoad(t, "l2", "traffic.packets=600", "traffic.arrivals.rate=6000 packets/s", fmt.Sprintf("firmware.batch=%d", batch), "firmware.batch_wait=2 ms")
		waits := 0
		r := mustRun(t, sc, Options{Check: true, Sinks: []traces.Sink{sinkFunc(func(r *traces.Record) {
			switch {
			case r.Kind == traces.KindBox && r.Event == traces.RouterIn:
				cycles[i] += r.Cycles
			case r.Kind == traces.KindWait && r.Reason == traces.ReasonBatch:
				waits++
				if r.End-r.Start > 2*des.Millisecond {
					t.Errorf("a wait of %v for the batch", r.End-r.Start)
				}
			}
		})}})
		if (waits > 0) != (batch > 1) {
			t.Errorf("batch %d: %d waits", batch, waits)
		}
		latency[i] = float64(r.Latency.Ingress.Mean)
	}
	if cycles[1] >= cycles[0] || latency[1] <= latency[0] {
		t.Errorf("batches of 1 and 8: %v cycles in the router handler, %v µs", cycles, latency)
	}
}

// TestKernelPath: what the host does shows in how long a packet is with it.
func TestKernelPath(t *testing.T) {
	away := func(settings ...string) (mean des.Time) {
		sc := mustLoad(t, "host-path", append([]string{"traffic.packets=800", "traffic.arrivals.rate=2000 packets/s"}, settings...)...)
		up := map[uint64]des.Time{}
		n := des.Time(0)
		mustRun(t, sc, Options{Check: true, Sinks: []traces.Sink{sinkFunc(func(r *traces.Record) {
			switch {
			case r.Kind == traces.KindTransfer && r.Event == traces.TransferToHost:
				up[r.Packet] = r.End
			case r.Kind == traces.KindTransfer && r.Event == traces.TransferFromHost:
				mean += r.Start - up[r.Packet]
				n++
			}
		})}})
		if n == 0 {
			t.Fatal("no packet came back from the host")
		}
		return mean / n
	}
	base := away()
	for _, c := range []struct {
		name     string
		settings []string
		more     bool
	}{
		{"two copies", []string{"host.kernel.copies=2"}, true},
		{"no copy", []string{"host.kernel.copies=0"}, false},
		{"aligned", []string{"host.kernel.copy_offset=0 B"}, false},
		{"polled every 200 µs", []string{"host.kernel.notify=poll", "host.kernel.poll_interval=200 µs"}, true},
		{"flushed eagerly", []string{"host.kernel.processor=powerbook-g3", "host.kernel.flush=eager", "host.kernel.mapped_every=1"}, true},
	} {
		against := base
		if strings.HasPrefix(c.name, "flushed") {
			against = away("host.kernel.processor=powerbook-g3")
		}
		got := away(c.settings...)
		if got == against || (got > against) != c.more {
			t.Errorf("%s: %v at the host, without %v", c.name, got, against)
		}
	}
	if fixed := away("host={return: card, return_card: 2, model: fixed, credits: 4, service: 300 µs}"); fixed < 300*des.Microsecond {
		t.Errorf("fixed: %v at the host, want 300 µs and more", fixed)
	}
}

func TestExtensionMistakes(t *testing.T) {
	for _, c := range []struct{ yaml, want string }{
		{"extends: l2\nextensions:\n  - kind: l3\n", `x.yaml:3: extensions[0].kind: "l3", want one of ipv4, l2, ilp`},
		{"extends: l2\nextensions:\n  - l2: {}\n", "x.yaml:3: extensions[0]: want a kind"},
		{"extends: l2\nextensions:\n  - kind: l2\n    ilp: {functions: [pes], mode: integrated}\n", "x.yaml:4: extensions[0].ilp: belongs to kind: ilp"},
		{"extends: l2\nextensions:\n  - kind: l2\n  - kind: l2\n", "x.yaml:4: extensions[1]: l2 is there twice"},
		{"extends: l2\nextensions:\n  - kind: ipv4\n", "ipv4 needs l2 before it"},
		{"extends: fig6.4\ntraffic:\n  link: ethernet\n", "want an l2 extension"},
		{"extends: l2\nextensions:\n  - kind: l2\n    l2:\n      buckets: 1000\n", "extensions[0].l2"},
		{"extends: l2\nextensions:\n  - kind: l2\n    l2:\n      age: 5\n", "x.yaml:5: extensions[0].l2.age"},
		{"extends: l2\nextensions:\n  - kind: l2\n    l2:\n      bucket: 5\n", "did you mean buckets"},
		{"extends: ilp\nextensions:\n  - kind: ilp\n", "kind: ilp needs ilp"},
		{"extends: ilp\nextensions:\n  - kind: ilp\n    ilp: {functions: [rot13], mode: integrated}\n", `x.yaml:4: extensions[0].ilp: stage: `},
		{"extends: ilp\nextensions:\n  - kind: ilp\n    ilp: {functions: [pes], mode: dma-checksum}\n", "no cksum among the functions"},
		{"extends: ilp\nextensions:\n  - kind: ilp\n    ilp: {functions: [pes], mode: both}\n", "want one of sequential, integrated, dma-checksum"},
		{"extends: l2\ntraffic:\n  stations: 100\n", "traffic.stations: 100, want 0, or a power of two"},
		{"extends: one-card\ntraffic:\n  stations: 16\n", "at least 2 cards"},
		{"extends: host-path\nhost:\n  model: fixed\n", "belongs to model: kernel"},
		{"extends: host-path\nhost:\n  kernel:\n    processor: z80\n", "want one of pentium-pro-200"},
		{"extends: host-path\nhost:\n  kernel:\n    copy_offset: 100 B\n", "host.kernel: host path: copy offset"},
		{"extends: fig6.4\nfirmware:\n  batch: 0\n", "firmware.batch: 0, want 1 … 256"},
		{"extends: fig6.4\nfirmware:\n  batch: 2\n  batch_wait: 0 s\n", "firmware.batch_wait"},
	} {
		_, err := Parse([]byte(c.yaml), "x.yaml", "")
		var in *InputError
		if !errors.As(err, &in) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q:\n got %v\nwant %s", c.yaml, err, c.want)
		}
	}
	// What does not fit on a card is found when it is put there.
	sc := mustLoad(t, "l2", "extensions=[{kind: l2, l2: {memory: 2 MiB}}]")
	if _, err := New(sc, Options{}); err == nil || !strings.Contains(err.Error(), "card 0") {
		t.Errorf("a table of 2 MiB on a card of 1 MiB: %v", err)
	}
}

// TestExtensionsRoundTrip: what a scenario says survives being written out.
func TestExtensionsRoundTrip(t *testing.T) {
	for _, name := range []string{"l2", "ilp", "host-path"} {
		sc := mustLoad(t, name)
		text, err := sc.YAML()
		if err != nil {
			t.Fatal(err)
		}
		again, err := Parse([]byte(text), "again.yaml", "")
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, text)
		}
		second, err := again.YAML()
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(text, second); d != "" {
			t.Errorf("%s (-first +again):\n%s", name, d)
		}
		a, _ := sc.Hash()
		b, _ := again.Hash()
		if a != b {
			t.Errorf("%s: hash %s, read again %s", name, a, b)
		}
	}
}
