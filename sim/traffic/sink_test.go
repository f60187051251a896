package traffic

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"spinesim/sim/testenv"

	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"spinesim/sim/des"
)

func TestSinkReadsBack(t *testing.T) {
	var b bytes.Buffer
	s, err := NewPcapSink(&b, []string{"card 0", "card 1", "card 2"}, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	type sent struct {
		at    des.Time
		card  uint8
		data  []byte
		bytes int
	}
	var all []sent
	for i := range 200 {
		n := 40 + 7*i
		d := datagram(n)
		all = append(all, sent{des.Time(i) * 123456789, uint8(i % 3), d[:min(n, 64)], n})
	}
	all = append(all, sent{1 << 50, 1, nil, 1500}) // nothing of it is carried
	for _, p := range all {
		if err := s.Write(p.at, p.card, p.data, p.bytes); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Write(0, 3, nil, 40); !errors.Is(err, ErrSinkCard) {
		t.Errorf("a fourth card: %v", err)
	}
	if err := s.Close(); err != nil || s.Packets() != 201 {
		t.Fatal(err, s.Packets())
	}
	r, err := pcapgo.NewNgReader(bytes.NewReader(b.Bytes()), pcapgo.DefaultNgReaderOptions)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range all {
		data, ci, err := r.ReadPacketData()
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(data, want.data) || ci.Length != want.bytes || ci.InterfaceIndex != int(want.card) ||
			ci.Timestamp.UnixNano() != int64(want.at/des.Nanosecond) {
			t.Fatalf("packet %d: %+v, want %+v", i, ci, want)
		}
	}
	if _, _, err := r.ReadPacketData(); err != io.EOF {
		t.Errorf("more packets than were sent: %v", err)
	}
	for i, name := range []string{"card 0", "card 1", "card 2"} {
		if f, err := r.Interface(i); err != nil || f.Name != name || f.LinkType != layers.LinkTypeRaw || f.TimestampResolution != 9 {
			t.Errorf("interface %d: %+v %v", i, f, err)
		}
	}
	// What left can enter again.
	out, _, err := replay(CaptureSpec{Name: "sink", Open: inMemory(b.Bytes())}, 200)
	if err != nil || len(out) != 200 || out[199].Bytes != 40+7*199 || out[199].At != 199*123456789/1000*1000 {
		t.Errorf("replayed %d, %v", len(out), err)
	}
}

func TestSinkErrors(t *testing.T) {
	if _, err := NewPcapSink(io.Discard, nil, time.Time{}); err == nil {
		t.Error("a sink of no card")
	}
	s, err := NewPcapSink(full{}, []string{"a"}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); !errors.Is(err, errFailing) {
		t.Errorf("a full disk: %v", err)
	}
	for range 1000 {
		if err = s.Write(0, 0, datagram(60), 60); err != nil {
			break
		}
	}
	if !errors.Is(err, errFailing) {
		t.Errorf("a full disk: %v", err)
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFailing }

func TestSinkDoesNotAllocate(t *testing.T) {
	s, err := NewPcapSink(io.Discard, []string{"a"}, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	d := datagram(64)
	if n := testing.AllocsPerRun(5000, func() {
		if err := s.Write(1e9, 0, d, 1500); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations a packet", n)
	}
}

// An outside program finds no fault with what Synthetic makes and PcapSink
// writes: no bad checksum, and the stamps to the nanosecond.
func TestSinkByTshark(t *testing.T) {
	tshark := testenv.Client(t, "tshark")
	path := filepath.Join(t.TempDir(), "out.pcapng")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s, err := NewPcapSink(f, []string{"card 0", "card 1"}, time.Unix(1_000_000_000, 0))
	if err != nil {
		t.Fatal(err)
	}
	sp := spec(t)
	sp.Carry = 1500
	src, err := NewSynthetic(sp, 1, "traffic/0")
	if err != nil {
		t.Fatal(err)
	}
	var first des.Time
	for i := range 300 {
		var a Arrival
		if _, err := src.Next(&a); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = a.At
		}
		if err := s.Write(a.At, uint8(i%2), a.Data, a.Bytes); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(s.Close(), f.Sync()); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(tshark, "-r", path, "-o", "ip.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE",
		"-T", "fields", "-e", "ip.checksum.status", "-e", "udp.checksum.status", "-e", "frame.interface_id", "-e", "frame.time_epoch").Output()
	if err != nil {
		t.Fatalf("tshark: %v", err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(lines) != 300 {
		t.Fatalf("tshark sees %d packets", len(lines))
	}
	good := 0
	for i, l := range lines {
		v := strings.Split(l, "\t")
		if len(v) != 4 {
			t.Fatalf("packet %d: %q", i+1, l)
		}
		if v[0] != "1" && v[0] != "Good" || v[1] != "1" && v[1] != "Good" {
			t.Fatalf("packet %d has checksum status %q", i+1, l)
		}
		good++
	}
	stamp := time.Unix(1_000_000_000, int64(first/des.Nanosecond)).UTC()
	at := strings.Split(lines[0], "\t")[3]
	want := fmt.Sprintf("1000000000.%09d", stamp.Nanosecond())
	if at != want && at != stamp.Format("2006-01-02T15:04:05.000000000Z") {
		t.Errorf("first packet at %s, want %s", at, want)
	}
	if good != 300 {
		t.Errorf("%d of 300 packets are good", good)
	}
}
