package traffic

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"spinesim/sim/des"
)

// one packet for the writers below
type packet struct {
	ns   int64 // since 1970
	data []byte
	wire int // 0: len(data)
}

// pcapFile writes a classic capture, of either byte order and resolution.
func pcapFile(order binary.AppendByteOrder, nanos bool, link uint32, ps []packet) []byte {
	magic, unit := uint32(0xA1B2C3D4), int64(1000)
	if nanos {
		magic, unit = 0xA1B23C4D, 1
	}
	b := order.AppendUint32(nil, magic)
	b = order.AppendUint16(b, 2)
	b = order.AppendUint16(b, 4)
	for _, v := range []uint32{0, 0, 65535, link} {
		b = order.AppendUint32(b, v)
	}
	for _, p := range ps {
		b = order.AppendUint32(b, uint32(p.ns/1e9))
		b = order.AppendUint32(b, uint32(p.ns%1e9/unit))
		b = order.AppendUint32(b, uint32(len(p.data)))
		b = order.AppendUint32(b, uint32(max(p.wire, len(p.data))))
		b = append(b, p.data...)
	}
	return b
}

// pcapngFile writes pcapng with an interface for each link type; packet i goes
// to interface i modulo their number.
func pcapngFile(t testing.TB, links []layers.LinkType, ps []packet) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := pcapgo.NewNgWriterInterface(&b, pcapgo.NgInterface{LinkType: links[0]}, pcapgo.NgWriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range links[1:] {
		if _, err := w.AddInterface(pcapgo.NgInterface{LinkType: l}); err != nil {
			t.Fatal(err)
		}
	}
	for i, p := range ps {
		if err := w.WritePacket(gopacket.CaptureInfo{
			Timestamp: time.Unix(0, p.ns), CaptureLength: len(p.data), Length: max(p.wire, len(p.data)), InterfaceIndex: i % len(links),
		}, p.data); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func zipped(b []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = w.Write(b) // a bytes.Buffer takes everything
	_ = w.Close()
	return out.Bytes()
}

func inMemory(b []byte) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b)), nil }
}

type got struct {
	At    des.Time
	Bytes int
	Data  string
	Skip  string
}

// replay reads everything, or the first so many.
func replay(spec CaptureSpec, limit int) (out []got, r CaptureReport, err error) {
	c, err := NewCapture(spec, 1, "traffic/0")
	if err != nil {
		return nil, CaptureReport{}, err
	}
	for len(out) < limit {
		var a Arrival
		more, err := c.Next(&a)
		if err != nil || !more {
			return out, c.Report(), errors.Join(err, c.Close())
		}
		out = append(out, got{a.At, a.Bytes, string(a.Data), a.Skip})
	}
	return out, c.Report(), c.Close()
}

const many = 1 << 30

// Every format tells the same story.
func TestCaptureFormats(t *testing.T) {
	ps := []packet{
		{1_200_000_000_000_001_000, ether(etherIPv4, datagram(100)), 0},
		{1_200_000_000_000_051_000, ether(etherARP, make([]byte, 46)), 0},
		{1_200_000_000_000_101_000, ether(etherVLAN, vlan(1, etherIPv4), datagram(1500)[:80]), 1518},
		{1_200_000_000_000_081_000, ether(etherIPv4, datagram(40), make([]byte, 6)), 0},
		{4_000_000_000_000_000_000, ether(etherIPv4, datagram(200)), 0},
	}
	us := des.Microsecond
	want := []got{
		{0, 100, string(datagram(100)), ""},
		{Skip: SkipARP},
		{100 * us, 1500, string(datagram(1500)[:80]), ""},
		{100 * us, 40, string(datagram(40)), ""},                // a step back
		{100*us + 7*des.Second, 200, string(datagram(200)), ""}, // a jump of decades
	}
	files := map[string][]byte{
		"pcap µs":            pcapFile(binary.LittleEndian, false, 1, ps),
		"pcap µs big-endian": pcapFile(binary.BigEndian, false, 1, ps),
		"pcap ns":            pcapFile(binary.LittleEndian, true, 1, ps),
		"pcap ns big-endian": pcapFile(binary.BigEndian, true, 1, ps),
		"pcapng":             pcapngFile(t, []layers.LinkType{layers.LinkTypeEthernet}, ps),
		"pcapng twice":       pcapngFile(t, []layers.LinkType{layers.LinkTypeEthernet, layers.LinkTypeEthernet}, ps),
	}
	for name, b := range files {
		for _, kind := range []string{"", ".gz"} {
			if kind == ".gz" {
				b = zipped(b)
			}
			path := filepath.Join(t.TempDir(), "capture.pcap"+kind)
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
			s := DefaultCaptureSpec(path)
			s.MaxGap = 7 * des.Second
			out, r, err := replay(s, many)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want, out); d != "" {
				t.Errorf("%s%s: %s", name, kind, d)
			}
			if d := cmp.Diff(CaptureReport{Passes: 1, Packets: 5, Replayed: 4, StepsBack: 1, GapsCut: 1}, r); d != "" {
				t.Errorf("%s%s: %s", name, kind, d)
			}
		}
	}
}

func TestCaptureTimings(t *testing.T) {
	var ps []packet
	for i := range int64(4) {
		ps = append(ps, packet{1e18 + 30_000*i*i, datagram(1500), 0}) // at 0, 30, 120, 270 µs
	}
	b := pcapFile(binary.LittleEndian, true, 101, ps)
	us := des.Microsecond
	const wire = 9375 * des.Nanosecond // 1,500 bytes at 160 MB/s
	for _, c := range []struct {
		name   string
		change func(*CaptureSpec)
		want   []des.Time
	}{
		{"by time stamp", func(*CaptureSpec) {}, []des.Time{0, 30 * us, 120 * us, 270 * us}},
		{"on a wire", func(s *CaptureSpec) { s.Wire = link160(t); s.Start = 5 * us },
			[]des.Time{5*us + wire, 35*us + wire, 125*us + wire, 275*us + wire}},
		{"three times as fast", func(s *CaptureSpec) { s.Speed = 3 }, []des.Time{0, 10 * us, 40 * us, 90 * us}},
		{"gaps cut", func(s *CaptureSpec) { s.MaxGap = 50 * us }, []des.Time{0, 30 * us, 80 * us, 130 * us}},
		{"twice over", func(s *CaptureSpec) { s.Repeat = 2 },
			[]des.Time{0, 30 * us, 120 * us, 270 * us, 360 * us, 390 * us, 480 * us, 630 * us}},
		{"paced", func(s *CaptureSpec) {
			s.Timing, s.Arrivals = Paced, ArrivalSpec{Kind: Constant, Rate: rate(t, "7 µs")}
		}, []des.Time{0, 7 * us, 14 * us, 21 * us}},
		{"paced beyond the link", func(s *CaptureSpec) {
			s.Timing, s.Arrivals, s.Wire = Paced, ArrivalSpec{Kind: Constant, Rate: rate(t, "7 µs")}, link160(t)
		}, []des.Time{wire, 2 * wire, 3 * wire, 4 * wire}},
		{"as fast as the link", func(s *CaptureSpec) { s.Timing, s.Wire, s.Start = LinkRate, link160(t), us },
			[]des.Time{us + wire, us + 2*wire, us + 3*wire, us + 4*wire}},
	} {
		s := CaptureSpec{Name: c.name, Open: inMemory(b)}
		c.change(&s)
		out, _, err := replay(s, many)
		if err != nil {
			t.Fatal(err)
		}
		var at []des.Time
		for _, g := range out {
			at = append(at, g.At)
		}
		if d := cmp.Diff(c.want, at); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
	}
	s := CaptureSpec{Name: "endless", Open: inMemory(b), Repeat: Endless}
	if out, r, err := replay(s, 10001); err != nil || len(out) != 10001 || r.Passes != 2500 {
		t.Errorf("endless: %d packets, %+v, %v", len(out), r, err)
	}
	double, err := s.Scale(2)
	if err != nil || double.Speed != 2 {
		t.Errorf("scaled: %+v %v", double, err)
	}
	s.Timing, s.Arrivals = Paced, ArrivalSpec{Kind: Constant, Rate: rate(t, "7 µs")}
	if double, err = s.Scale(2); err != nil || double.Arrivals.Rate.Gap() != 3500*des.Nanosecond {
		t.Errorf("scaled pace: %+v %v", double, err)
	}
	if _, err := s.Scale(-1); !errors.Is(err, ErrRate) {
		t.Errorf("scaled by -1: %v", err)
	}
}

// Damage gives an error that says where, or the part before it.
func TestDamagedCaptures(t *testing.T) {
	var ps []packet
	for i := range 5 {
		ps = append(ps, packet{1e18 + int64(i)*1e6, ether(etherIPv4, datagram(100)), 0})
	}
	plain := pcapFile(binary.LittleEndian, false, 1, ps)
	ng := pcapngFile(t, []layers.LinkType{layers.LinkTypeEthernet}, ps)
	const record = 16 + 114
	huge := set(plain, 24+2*record+8, 0xFF, 0xFF, 0xFF, 0xFF) // captured length of packet 3
	zip := zipped(plain)
	for _, c := range []struct {
		name string
		b    []byte
		read int
		says string
	}{
		{"cut in a packet", plain[:24+3*record+40], 3, "packet 4, at byte 414"},
		{"cut behind a packet's header", plain[:24+3*record+16], 3, "packet 4, at byte 414"},
		{"cut in a packet's header", plain[:24+3*record+3], 3, "packet 4, at byte 414"},
		{"a length of 4 GB", huge, 2, "packet 3, at byte 284"},
		{"cut pcapng", ng[:len(ng)-30], 4, "packet 5, at byte"},
		{"cut in compression", zip[:len(zip)-20], -1, "of the uncompressed stream"},
	} {
		s := CaptureSpec{Name: "some.pcap", Open: inMemory(c.b)}
		_, _, err := replay(s, many)
		if !errors.Is(err, ErrCapture) || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "some.pcap") {
			t.Errorf("%s: %v; want it to say %q", c.name, err, c.says)
		}
		s.Readable = true
		out, r, err := replay(s, many)
		if c.read >= 0 && (err != nil || len(out) != c.read || !errors.Is(r.Damage, ErrCapture)) {
			t.Errorf("%s: read %d packets of what is readable, %v, damage %v; want %d", c.name, len(out), err, r.Damage, c.read)
		}
		s.Repeat = 3
		if out, _, err = replay(s, many); c.read >= 0 && (err != nil || len(out) != 3*c.read) {
			t.Errorf("%s: three times over: %d packets, %v", c.name, len(out), err)
		}
	}
	for name, b := range map[string][]byte{
		"empty": {}, "three bytes": {0xD4, 0xC3, 0xB2}, "text": []byte("this is no capture, whatever its name"),
		"half a header": plain[:20], "compressed twice": zipped(zipped(plain)), "compressed nothing": zipped(nil),
		"broken gzip": {0x1F, 0x8B, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9}, "half a pcapng header": ng[:13],
	} {
		s := CaptureSpec{Name: "some.pcap", Open: inMemory(b), Readable: true}
		if _, _, err := replay(s, many); !errors.Is(err, ErrCapture) || !strings.Contains(err.Error(), "some.pcap") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestForeignLinks(t *testing.T) {
	ps := []packet{{1e18, datagram(100), 0}, {1e18 + 1000, datagram(100), 0}, {1e18 + 2000, datagram(100), 0}}
	mixed := pcapngFile(t, []layers.LinkType{layers.LinkTypeRaw, layers.LinkTypeIEEE80211Radio}, ps)
	s := CaptureSpec{Name: "mixed.pcapng", Open: inMemory(mixed)}
	if out, _, err := replay(s, many); !errors.Is(err, ErrForeignLink) || !strings.Contains(err.Error(), "mixed.pcapng: packet 2") || len(out) != 1 {
		t.Errorf("%d packets, %v", len(out), err)
	}
	s.Readable = true
	out, r, err := replay(s, many)
	if err != nil || len(out) != 3 || out[1].Skip != SkipForeignLink || r.Replayed != 2 {
		t.Errorf("readable: %+v %+v %v", out, r, err)
	}
	for _, link := range []uint32{105, 9999} {
		s = CaptureSpec{Name: "wlan.pcap", Open: inMemory(pcapFile(binary.LittleEndian, false, link, ps))}
		if _, _, err := replay(s, many); !errors.Is(err, ErrForeignLink) || !strings.Contains(err.Error(), fmt.Sprint(link)) {
			t.Errorf("link type %d: %v", link, err)
		}
		s.Readable, s.Repeat = true, Endless // nothing to replay: it must not go on for ever
		if _, _, err := replay(s, many); err == nil || !strings.Contains(err.Error(), "none of its 3 packets") {
			t.Errorf("link type %d: %v", link, err)
		}
	}
}

// A Simple Packet Block has no time stamp: its packet follows the one before.
func TestSimplePacketBlocks(t *testing.T) {
	b := pcapngFile(t, []layers.LinkType{layers.LinkTypeRaw}, []packet{{1e18, datagram(100), 0}})
	simple := binary.LittleEndian.AppendUint32(nil, 3)
	simple = binary.LittleEndian.AppendUint32(simple, 16+100)
	simple = binary.LittleEndian.AppendUint32(simple, 100)
	simple = append(simple, datagram(100)...)
	simple = binary.LittleEndian.AppendUint32(simple, 16+100)
	out, _, err := replay(CaptureSpec{Name: "simple", Open: inMemory(append(b, simple...))}, many)
	if err != nil || len(out) != 2 || out[1].At != 0 || out[1].Bytes != 100 {
		t.Errorf("%+v %v", out, err)
	}
}

func TestCaptureErrors(t *testing.T) {
	if _, err := NewCapture(DefaultCaptureSpec(filepath.Join(t.TempDir(), "none.pcap")), 1, "x"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no such file: %v", err)
	}
	good := CaptureSpec{Name: "c", Open: inMemory(pcapFile(binary.LittleEndian, false, 101, []packet{{1e18, datagram(60), 0}}))}
	for name, change := range map[string]func(*CaptureSpec){
		"nothing to open": func(s *CaptureSpec) { s.Open = nil },
		"timing":          func(s *CaptureSpec) { s.Timing = 9 },
		"speed":           func(s *CaptureSpec) { s.Speed = -1 },
		"gap":             func(s *CaptureSpec) { s.MaxGap = -1 },
		"start":           func(s *CaptureSpec) { s.Start = -1 },
		"MTU":             func(s *CaptureSpec) { s.MTU = 5 },
		"repeat":          func(s *CaptureSpec) { s.Repeat = -2 },
		"link rate":       func(s *CaptureSpec) { s.Timing = LinkRate },
		"pace":            func(s *CaptureSpec) { s.Timing = Paced; s.Arrivals.Kind = Poisson },
		"wire":            func(s *CaptureSpec) { s.Wire.Overhead = -1 },
	} {
		s := good
		change(&s)
		if _, err := NewCapture(s, 1, "x"); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	gone := good
	opened := 0
	gone.Repeat = 2
	gone.Open = func() (io.ReadCloser, error) {
		if opened++; opened > 1 {
			return nil, fs.ErrNotExist
		}
		return good.Open()
	}
	if _, _, err := replay(gone, many); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a capture that goes away: %v", err)
	}
	late := good
	late.Start = des.MaxTime
	late.Wire = link160(t)
	if _, _, err := replay(late, many); !errors.Is(err, ErrEndOfTime) {
		t.Errorf("a start at the end of time: %v", err)
	}
}

// A real capture that comes with the gopacket module: whatever its own decoder
// finds to be IPv4 is replayed or skipped for a reason, and nothing else.
func TestRealCapture(t *testing.T) {
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/gopacket/gopacket").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	path := filepath.Join(strings.TrimSpace(string(dir)), "layers", "testdata", "cip.pcap")
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := pcapgo.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	c, err := NewCapture(DefaultCaptureSpec(path), 1, "x")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	n := 0
	for {
		data, ci, err := r.ReadPacketData()
		var a Arrival
		more, aerr := c.Next(&a)
		if err == io.EOF && !more && aerr == nil {
			break
		}
		if err != nil || aerr != nil || !more {
			t.Fatal(err, aerr, more)
		}
		p := gopacket.NewPacket(data, r.LinkType(), gopacket.DecodeOptions{Lazy: true, NoCopy: true})
		ip, _ := p.Layer(layers.LayerTypeIPv4).(*layers.IPv4)
		switch {
		case a.Skip == "" && ip == nil, a.Skip != "" && ip != nil && ci.Length <= 1514:
			t.Fatalf("packet %d: skip %q, gopacket found %v", n, a.Skip, p)
		case a.Skip == "" && ip.Length != 0 && int(ip.Length) <= ci.Length-14 && a.Bytes != int(ip.Length):
			t.Fatalf("packet %d: %d bytes, want %d", n, a.Bytes, ip.Length)
		case a.Skip == "" && !bytes.HasPrefix(a.Data, ip.Contents):
			t.Fatalf("packet %d: header %x, want %x", n, a.Data, ip.Contents)
		}
		n++
	}
	if got := c.Report(); got.Packets != uint64(n) || got.Replayed < 26000 {
		t.Errorf("%d packets, %+v", n, got)
	}
}

func TestCaptureDoesNotAllocate(t *testing.T) {
	var ps []packet
	for i := range 12000 {
		ps = append(ps, packet{1e18 + int64(i)*1e5, ether(etherIPv4, datagram(100)), 0})
	}
	for name, b := range map[string][]byte{
		"pcap":   pcapFile(binary.LittleEndian, false, 1, ps),
		"pcapng": pcapngFile(t, []layers.LinkType{layers.LinkTypeEthernet}, ps),
	} {
		c, err := NewCapture(CaptureSpec{Name: name, Open: inMemory(b), Wire: link160(t)}, 1, "x")
		if err != nil {
			t.Fatal(err)
		}
		var a Arrival
		if n := testing.AllocsPerRun(10000, func() {
			if more, err := c.Next(&a); err != nil || !more || a.Skip != "" {
				t.Fatal(more, err, a.Skip)
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations a packet", name, n)
		}
	}
}

// No file makes the reader panic, hang, or take memory that the file's length
// does not account for.
func FuzzCapture(f *testing.F) {
	ps := []packet{
		{1e18, ether(etherIPv4, datagram(60)), 0},
		{1e18 + 1, ether(etherVLAN, vlan(1, etherIPv4), datagram(1500)[:60]), 1518},
		{3e18, ether(etherARP, make([]byte, 46)), 0},
	}
	plain := pcapFile(binary.LittleEndian, false, 1, ps)
	ng := pcapngFile(f, []layers.LinkType{layers.LinkTypeEthernet, layers.LinkTypeLinuxSLL}, ps)
	f.Add(plain)
	f.Add(pcapFile(binary.BigEndian, true, 113, ps))
	f.Add(ng)
	f.Add(zipped(plain))
	f.Add(zipped(ng)[:40])
	f.Add(plain[:50])
	f.Add(set(plain, 32, 0xFF, 0xFF, 0xFF, 0x7F))
	f.Add(set(ng, 4, 0xFF, 0xFF, 0xFF, 0xFF))
	f.Fuzz(func(t *testing.T, b []byte) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for _, readable := range []bool{false, true} {
			s := CaptureSpec{Name: "fuzz", Open: inMemory(b), Readable: readable, Repeat: 2, Wire: link160(t)}
			c, err := NewCapture(s, 1, "x")
			if err != nil {
				if c != nil {
					t.Fatal("a capture beside an error")
				}
				continue
			}
			var last des.Time
			for {
				var a Arrival
				more, err := c.Next(&a)
				if err != nil || !more {
					break
				}
				if a.Skip != "" {
					continue
				}
				if a.At < last || len(a.Data) > a.Bytes || a.Bytes > 1500 || len(a.Data) < ipv4Header {
					t.Fatalf("%+v after %v", a, last)
				}
				last = a.At
			}
			if r := c.Report(); r.Replayed > r.Packets {
				t.Fatalf("%+v", r)
			}
			if err := c.Close(); err != nil {
				t.Fatal(err)
			}
		}
		runtime.ReadMemStats(&after)
		// gzip can pack a thousandfold; nothing else may grow.
		if got := after.TotalAlloc - before.TotalAlloc; got > 8<<20+uint64(len(b))*4096 {
			t.Fatalf("%d bytes of file took %d bytes of memory", len(b), got)
		}
	})
}
