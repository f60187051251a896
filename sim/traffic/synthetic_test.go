package traffic

import (
	"encoding/binary"
	"errors"
	"math"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"spinesim/sim/des"
)

func prefixes(text ...string) []netip.Prefix {
	var out []netip.Prefix
	for _, s := range text {
		out = append(out, netip.MustParsePrefix(s))
	}
	return out
}

func covers(ps []netip.Prefix) func(netip.Addr) bool {
	return func(a netip.Addr) bool {
		for _, p := range ps {
			if p.Contains(a) {
				return true
			}
		}
		return false
	}
}

func link160(t testing.TB) Wire {
	t.Helper()
	r, err := des.ParseRate("160 MB/s")
	if err != nil {
		t.Fatal(err)
	}
	return Wire{Rate: r}
}

func spec(t testing.TB) SyntheticSpec {
	return SyntheticSpec{
		Arrivals:     ArrivalSpec{Kind: Poisson, Rate: rate(t, "80 µs"), Senders: 3},
		Wire:         link160(t),
		Sizes:        IMIX(),
		Destinations: DestinationSpec{Prefixes: prefixes("10.0.0.0/8", "192.0.2.0/24", "203.0.113.7/32")},
		Header:       DefaultHeader(),
		Carry:        64,
	}
}

// rfc1071 is the checksum by the book, over any length.
func rfc1071(p []byte) uint16 {
	var s uint64
	for i, b := range p {
		if i%2 == 0 {
			s += uint64(b) << 8
		} else {
			s += uint64(b)
		}
	}
	for s>>16 != 0 {
		s = s>>16 + s&0xFFFF
	}
	return ^uint16(s)
}

// Every packet is a real one: gopacket decodes it, both checksums hold.
func TestSyntheticPacketsAreReal(t *testing.T) {
	s := spec(t)
	s.Header.DSCP, s.Header.TTL = 46, 3
	src, err := NewSynthetic(s, 1, "traffic/0")
	if err != nil {
		t.Fatal(err)
	}
	var last des.Time
	ok := covers(s.Destinations.Prefixes)
	for i := range 5000 {
		var a Arrival
		if more, err := src.Next(&a); err != nil || !more {
			t.Fatal(more, err)
		}
		if a.At < last || a.Skip != "" || len(a.Data) != min(a.Bytes, 64) {
			t.Fatalf("packet %d: %+v after %v", i, a, last)
		}
		last = a.At
		whole := make([]byte, a.Bytes) // the rest is zero
		copy(whole, a.Data)
		p := gopacket.NewPacket(whole, layers.LayerTypeIPv4, gopacket.Default)
		ip, _ := p.Layer(layers.LayerTypeIPv4).(*layers.IPv4)
		udp, _ := p.Layer(layers.LayerTypeUDP).(*layers.UDP)
		if ip == nil || udp == nil || p.ErrorLayer() != nil {
			t.Fatalf("packet %d does not decode: %v", i, p)
		}
		if int(ip.Length) != a.Bytes || ip.TTL != 3 || ip.TOS != 46<<2 || int(ip.Id) != i+1 || rfc1071(whole[:20]) != 0 {
			t.Fatalf("packet %d of %d bytes: %+v", i, a.Bytes, ip)
		}
		pseudo := append(append([]byte{}, whole[12:20]...), 0, 17, byte(len(whole[20:])>>8), byte(len(whole[20:])))
		if sum := rfc1071(append(pseudo, whole[20:]...)); sum != 0 || udp.Checksum == 0 {
			t.Fatalf("packet %d: UDP checksum off by %#x", i, sum)
		}
		dst, _ := netip.AddrFromSlice(ip.DstIP)
		from, _ := netip.AddrFromSlice(ip.SrcIP)
		if !ok(dst) || !s.Header.Source.Contains(from) || udp.SrcPort != 49152 || udp.DstPort != 7 {
			t.Fatalf("packet %d: %v to %v, %v", i, from, dst, udp)
		}
	}
}

// A UDP checksum that comes out as zero is sent as all ones.
func TestUDPChecksumZero(t *testing.T) {
	h := DefaultHeader()
	var p [28]byte
	for port := range 1 << 16 {
		h.SourcePort = uint16(port)
		h.Write(p[:], 28, 0, 0xC6120001, 0x0A000001)
		if c := binary.BigEndian.Uint16(p[26:]); c == 0 {
			t.Fatalf("port %d: checksum 0", port)
		} else if c == 0xFFFF {
			return
		}
	}
	t.Error("no port makes the checksum zero: the case was not met")
}

func TestSizes(t *testing.T) {
	if m := IMIX().Mean(); math.Abs(m-340.333333) > 1e-6 {
		t.Errorf("IMIX has mean %g", m)
	}
	if d := cmp.Diff([]int{46, 110, 238, 494, 1006, 1262, 1500}, RFC2544Packets()); d != "" {
		t.Error(d)
	}
	if s := RFC2544(); s.Largest() != 1500 || s.d.Len() != 7 {
		t.Errorf("RFC 2544: %+v", s)
	}
	if (Sizes{}).Mean() != 0 {
		t.Error("no sizes have a mean")
	}
	s, err := Empirical([]int{100, 200, 300}, []uint64{1, 0, 3})
	if err != nil {
		t.Fatal(err)
	}
	n, r := map[int64]int{}, des.NewStream(1, "s")
	for range 40000 {
		n[r.Empirical(s.d)]++
	}
	if n[200] != 0 || len(n) != 2 || math.Abs(float64(n[300])/40000-0.75) > 0.01 {
		t.Errorf("drawn: %v", n)
	}
	if _, err := Fixed(27); err == nil {
		t.Error("27 bytes hold no UDP packet")
	}
	for _, bad := range [][]int{{}, {65536}, {100, -1}} {
		if _, err := Empirical(bad, nil); err == nil {
			t.Errorf("sizes %v were accepted", bad)
		}
	}
}

func TestDestinationShares(t *testing.T) {
	ps := prefixes("10.1.0.0/16", "10.2.0.0/16", "10.3.3.3/32", "172.16.0.0/12", "198.51.100.0/25")
	count := func(spec DestinationSpec, n int) (in []float64, out float64) {
		d, err := NewDestinations(spec, 7, "traffic/0/destinations")
		if err != nil {
			t.Fatal(err)
		}
		in = make([]float64, len(ps))
	next:
		for range n {
			a, err := d.Next()
			if err != nil {
				t.Fatal(err)
			}
			for i, p := range ps {
				if p.Contains(a) {
					in[i] += 1 / float64(n)
					continue next
				}
			}
			out += 1 / float64(n)
		}
		return in, out
	}
	in, out := count(DestinationSpec{Prefixes: ps}, 50000)
	for i, share := range in {
		if math.Abs(share-0.2) > 0.01 {
			t.Errorf("uniform: %v has %.3f", ps[i], share)
		}
	}
	if out != 0 {
		t.Errorf("uniform: %.3f went nowhere", out)
	}
	in, out = count(DestinationSpec{Prefixes: ps, Unroutable: 0.3, Covered: covers(ps)}, 50000)
	if math.Abs(out-0.3) > 0.01 || math.Abs(in[2]-0.14) > 0.01 {
		t.Errorf("unroutable: %.3f, and %.3f to one of five", out, in[2])
	}
	if _, out = count(DestinationSpec{Unroutable: 1, Covered: covers(ps)}, 1000); math.Abs(out-1) > 1e-9 {
		t.Errorf("all unroutable: %.3f", out)
	}
	in, _ = count(DestinationSpec{Prefixes: ps, Accept: covers(ps[1:3])}, 50000)
	if math.Abs(in[1]-0.5) > 0.012 || math.Abs(in[1]+in[2]-1) > 1e-9 {
		t.Errorf("accepted two of five: %v", in)
	}
	in, _ = count(DestinationSpec{Prefixes: ps, Zipf: 1}, 100000)
	harmonic := 1 + 1.0/2 + 1.0/3 + 1.0/4 + 1.0/5
	seen := map[int]bool{}
	for _, share := range in {
		for rank := 1; rank <= 5; rank++ {
			if math.Abs(share-1/float64(rank)/harmonic) < 0.008 {
				seen[rank] = true
			}
		}
	}
	if len(seen) != 5 {
		t.Errorf("Zipf: %v", in)
	}
}

// No draw is an address that a router must refuse, not even from 0/0.
func TestDestinationsAreUnicast(t *testing.T) {
	d, err := NewDestinations(DestinationSpec{
		Prefixes: prefixes("0.0.0.0/0", "224.0.0.0/3", "126.0.0.0/7", "0.0.0.0/1"), Unroutable: 0.5, Covered: covers(prefixes("64.0.0.0/2")),
	}, 1, "d")
	if err != nil {
		t.Fatal(err)
	}
	for range 20000 {
		a, err := d.Next()
		if err != nil {
			t.Fatal(err)
		}
		if b := a.As4()[0]; b == 0 || b == 127 || b >= 224 {
			t.Fatalf("drew %v", a)
		}
	}
}

func TestDestinationErrors(t *testing.T) {
	ps := prefixes("10.0.0.0/8")
	for i, s := range []DestinationSpec{
		{},
		{Prefixes: ps, Unroutable: 0.5},
		{Prefixes: ps, Unroutable: -1, Covered: covers(ps)},
		{Prefixes: ps, Unroutable: math.NaN(), Covered: covers(ps)},
		{Prefixes: ps, Zipf: -1},
		{Prefixes: ps, Zipf: 9},
		{Prefixes: prefixes("2001:db8::/32")},
		{Prefixes: make([]netip.Prefix, 1)},
	} {
		if _, err := NewDestinations(s, 1, "d"); err == nil {
			t.Errorf("case %d: %+v was accepted", i, s)
		}
	}
	for i, s := range []DestinationSpec{
		{Prefixes: ps, Unroutable: 1, Covered: func(netip.Addr) bool { return true }},
		{Prefixes: ps, Accept: func(netip.Addr) bool { return false }},
		{Prefixes: prefixes("240.0.0.0/4")},
	} {
		d, err := NewDestinations(s, 1, "d")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := d.Next(); !errors.Is(err, ErrNoAddress) {
			t.Errorf("case %d: %v", i, err)
		}
	}
}

// Zipf weights follow i^-s to 20 bits, for short and for full tables.
func TestZipfWeights(t *testing.T) {
	for _, n := range []int{2, 5, 1000, 300000} {
		for _, s := range []float64{0.2, 1, 1.5, 8} {
			d, err := zipf(n, s)
			if err != nil {
				t.Fatalf("%d prefixes, exponent %g: %v", n, s, err)
			}
			sum, mean := 0.0, 0.0
			for i := range n {
				w := math.Pow(float64(i+1), -s)
				sum += w
				mean += w * float64(i)
			}
			if want := mean / sum; math.Abs(d.Mean()/want-1) > 1e-4 {
				t.Errorf("%d prefixes, exponent %g: mean rank %g, want %g", n, s, d.Mean(), want)
			}
		}
	}
}

func TestSyntheticErrors(t *testing.T) {
	for name, change := range map[string]func(*SyntheticSpec){
		"no sizes":        func(s *SyntheticSpec) { s.Sizes = Sizes{} },
		"carry":           func(s *SyntheticSpec) { s.Carry = 5 },
		"wire":            func(s *SyntheticSpec) { s.Wire.Overhead = -1 },
		"DSCP":            func(s *SyntheticSpec) { s.Header.DSCP = 64 },
		"source":          func(s *SyntheticSpec) { s.Header.Source = netip.Prefix{} },
		"no rate":         func(s *SyntheticSpec) { s.Arrivals.Rate = Rate{} },
		"no prefix":       func(s *SyntheticSpec) { s.Destinations.Prefixes = nil },
		"all at one time": func(s *SyntheticSpec) { s.Arrivals = ArrivalSpec{}; s.Wire = Wire{} },
	} {
		s := spec(t)
		change(&s)
		if _, err := NewSynthetic(s, 1, "traffic/0"); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	s := spec(t)
	s.Process = failing{}
	src, err := NewSynthetic(s, 1, "traffic/0")
	if err != nil {
		t.Fatal(err)
	}
	var a Arrival
	if _, err := src.Next(&a); !errors.Is(err, errFailing) {
		t.Errorf("the process's error was lost: %v", err)
	}
}

var errFailing = errors.New("no more")

type failing struct{}

func (failing) Next() (des.Time, error) { return 0, errFailing }

// The same seed gives the same packets; another rate, the same packets at
// other times; another name, other packets.
func TestSyntheticStreams(t *testing.T) {
	type packet struct {
		bytes int
		data  string
	}
	draw := func(s SyntheticSpec, name string) (ps []packet, at []des.Time) {
		src, err := NewSynthetic(s, 11, name)
		if err != nil {
			t.Fatal(err)
		}
		for range 300 {
			var a Arrival
			if _, err := src.Next(&a); err != nil {
				t.Fatal(err)
			}
			ps = append(ps, packet{a.Bytes, string(a.Data)})
			at = append(at, a.At)
		}
		return ps, at
	}
	same := cmp.AllowUnexported(packet{})
	p, at := draw(spec(t), "traffic/0")
	q, atq := draw(spec(t), "traffic/0")
	if cmp.Diff(p, q, same) != "" || cmp.Diff(at, atq) != "" {
		t.Error("the same seed and name give other packets")
	}
	s := spec(t)
	faster, err := s.Arrivals.Scale(1.7)
	if err != nil {
		t.Fatal(err)
	}
	s.Arrivals = faster
	q, atq = draw(s, "traffic/0")
	if cmp.Diff(p, q, same) != "" || cmp.Equal(at, atq) {
		t.Error("another rate gives other packets, or the same times")
	}
	if q, _ = draw(spec(t), "traffic/1"); cmp.Equal(p, q, same) {
		t.Error("another name gives the same packets")
	}
}

func TestSyntheticDoesNotAllocate(t *testing.T) {
	s := spec(t)
	s.Destinations.Zipf, s.Destinations.Unroutable = 1, 0.1
	s.Destinations.Covered = covers(s.Destinations.Prefixes)
	for _, k := range []ArrivalSpec{s.Arrivals, {Kind: OnOff, Rate: s.Arrivals.Rate, On: 1e9, Off: 1e9}, {Kind: Jittered, Rate: s.Arrivals.Rate, Jitter: 1}} {
		s.Arrivals = k
		src, err := NewSynthetic(s, 1, "traffic/0")
		if err != nil {
			t.Fatal(err)
		}
		var a Arrival
		if n := testing.AllocsPerRun(5000, func() {
			if _, err := src.Next(&a); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("%v: %v allocations a packet", k.Kind, n)
		}
	}
}

func BenchmarkSynthetic(b *testing.B) {
	src, err := NewSynthetic(spec(b), 1, "traffic/0")
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	var a Arrival
	for b.Loop() {
		if _, err := src.Next(&a); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "packets/s")
}
