package traffic

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
)

// script is a source of given packets.
type script struct {
	of  []Arrival
	err error
}

func (l *script) Next(a *Arrival) (bool, error) {
	if len(l.of) == 0 {
		return false, l.err
	}
	*a = l.of[0]
	l.of = l.of[1:]
	return true, nil
}

func ipv4To(dst ...byte) []byte {
	h := DefaultHeader()
	p := make([]byte, 64)
	h.Write(p, 100, 1, 0x0A000102, uint32(dst[0])<<24|uint32(dst[1])<<16|uint32(dst[2])<<8|uint32(dst[3]))
	return p
}

func TestEthernet(t *testing.T) {
	bad := errors.New("the source broke")
	src := &script{err: bad, of: []Arrival{
		{At: 1, Bytes: 100, Data: ipv4To(10, 1, 2, 3)},
		{At: 2, Skip: "no"},
		{At: 3, Bytes: 100, Data: ipv4To(224, 129, 2, 3)},
		{At: 4, Bytes: 100, Data: ipv4To(255, 255, 255, 255)},
	}}
	e, err := NewEthernet(src, func(a uint32) [6]byte { return [6]byte{2, 0, byte(a >> 24), byte(a >> 16), byte(a >> 8), byte(a)} }, 64)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"02:00:0a:01:02:03", "", "01:00:5e:01:02:03", "ff:ff:ff:ff:ff:ff"} {
		var a Arrival
		if ok, err := e.Next(&a); !ok || err != nil {
			t.Fatal(ok, err)
		}
		if want == "" {
			if a.Skip != "no" {
				t.Errorf("a skipped packet came as %+v", a)
			}
			continue
		}
		if a.Bytes != 114 || len(a.Data) != 64 {
			t.Errorf("%d bytes, %d carried", a.Bytes, len(a.Data))
		}
		// A decoder of another's agrees.
		p := gopacket.NewPacket(bytes.Clone(a.Data), layers.LayerTypeEthernet, gopacket.Default)
		eth, _ := p.Layer(layers.LayerTypeEthernet).(*layers.Ethernet)
		ip, _ := p.Layer(layers.LayerTypeIPv4).(*layers.IPv4)
		if eth == nil || ip == nil {
			t.Fatalf("not decoded: %v", p)
		}
		got := []string{eth.DstMAC.String(), eth.SrcMAC.String(), ip.SrcIP.String()}
		if d := cmp.Diff([]string{want, "02:00:0a:00:01:02", "10.0.1.2"}, got); d != "" {
			t.Error(d)
		}
	}
	var a Arrival
	if ok, err := e.Next(&a); ok || !errors.Is(err, bad) {
		t.Errorf("at the end: %v, %v", ok, err)
	}
	if _, err := NewEthernet(src, nil, 10); err == nil {
		t.Error("10 bytes carried: no error")
	}
	data := ipv4To(10, 1, 2, 3)
	if n := testing.AllocsPerRun(100, func() {
		src.of = append(src.of[:0], Arrival{Bytes: 100, Data: data})
		if _, err := e.Next(&a); err != nil {
			t.Error(err)
		}
	}); n > 1 { // the list's own
		t.Errorf("%g allocations", n)
	}
}

func TestEthernetSink(t *testing.T) {
	var b bytes.Buffer
	s, err := NewEthernetSink(&b, []string{"a"}, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	frame := append([]byte{2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0}, ipv4To(1, 2, 3, 4)...)
	if err := s.Write(5, 0, frame, 114); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := pcapgo.NewNgReader(&b, pcapgo.DefaultNgReaderOptions)
	if err != nil {
		t.Fatal(err)
	}
	data, ci, err := r.ReadPacketData()
	if err != nil || r.LinkType() != layers.LinkTypeEthernet || !bytes.Equal(data, frame) || ci.Length != 114 {
		t.Errorf("link type %v, %x, %+v, %v", r.LinkType(), data, ci, err)
	}
}
