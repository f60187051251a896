package router

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"spinesim/lanai"
	"spinesim/router/lctrie"
	"spinesim/spine"
	"spinesim/traces"

	"github.com/google/go-cmp/cmp"
)

func table(tb testing.TB, routes []Route, cards ...uint8) *Table {
	tb.Helper()
	t, err := NewTable(routes, Assignment{Cards: cards}, lctrie.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	return t
}

func forwarder(tb testing.TB, spec IPv4Spec, t *Table) (*IPv4, *lanai.SRAM) {
	tb.Helper()
	sram := lanai.NewSRAM(1 << 20)
	if _, err := sram.Alloc("other things", 1000, 4); err != nil {
		tb.Fatal(err)
	}
	x, err := NewIPv4(spec, t, sram)
	if err != nil {
		tb.Fatal(err)
	}
	return x, sram
}

func packet(tb testing.TB, h Header) *spine.Packet {
	tb.Helper()
	b, err := h.Append(nil)
	if err != nil {
		tb.Fatal(err)
	}
	return &spine.Packet{ID: 1, Bytes: max(h.TotalLength, len(b)), Header: b}
}

// The table of these tests: .1 is on card 1, .2 on card 2, .3 on card 1.
func smallRoutes() []Route {
	p, a := netip.MustParsePrefix, netip.MustParseAddr
	return []Route{
		{p("10.0.0.0/8"), a("192.0.2.1")}, {p("10.1.0.0/16"), a("192.0.2.2")}, {p("10.1.2.3/32"), a("192.0.2.3")},
		{p("20.0.0.0/8"), a("192.0.2.2")},
	}
}

func good(dst string) Header {
	return Header{
		TotalLength: 1500, ID: 7, TTL: 64, Protocol: 17,
		Src: netip.MustParseAddr("30.0.0.1"), Dst: netip.MustParseAddr(dst),
	}
}

func TestForward(t *testing.T) {
	x, sram := forwarder(t, DefaultIPv4(), table(t, smallRoutes(), 1, 2))
	for dst, want := range map[string]NextHop{
		"10.200.0.1": {netip.MustParseAddr("192.0.2.1"), 1},
		"10.1.2.4":   {netip.MustParseAddr("192.0.2.2"), 2},
		"10.1.2.3":   {netip.MustParseAddr("192.0.2.3"), 1},
		"20.0.0.0":   {netip.MustParseAddr("192.0.2.2"), 2},
	} {
		h := good(dst)
		p := packet(t, h)
		h.TTL--
		after := packet(t, h)
		v := x.Handle(spine.NewContext(sram), p)
		if diff := cmp.Diff(spine.Verdict{Action: spine.Forward, Card: want.Card, NextHop: number(want.Addr)}, v); diff != "" {
			t.Errorf("%s: %s", dst, diff)
		}
		if diff := cmp.Diff(after, p); diff != "" { // TTL and checksum, and nothing else
			t.Errorf("%s: %s", dst, diff)
		}
		if hop, ok := x.Table().Lookup(h.Dst); !ok || hop != want {
			t.Errorf("%s: on the host %v %v", dst, hop, ok)
		}
	}
	if c := x.Counts(); c.Forwarded != 4 || c.Lookups != 4 || c.Refused != [traces.NumReasons]uint64{} {
		t.Errorf("%+v", c)
	}
}

// TestRefusals has a packet for each reason, and one that just passes.
func TestRefusals(t *testing.T) {
	spec := DefaultIPv4()
	spec.OwnWire = false
	spec.MTU = 1500
	spec.Local = append(spec.Local, netip.MustParsePrefix("10.9.9.9/32"), netip.MustParsePrefix("10.8.255.255/32"))
	x, sram := forwarder(t, spec, table(t, smallRoutes(), 1, 2))
	spoilt := func(why traces.Reason) func(*spine.Packet) {
		return func(p *spine.Packet) {
			if err := Spoil(p.Header, why); err != nil {
				t.Fatal(err)
			}
		}
	}
	from := func(src string, dst string) Header {
		h := good(dst)
		h.Src = netip.MustParseAddr(src)
		return h
	}
	with := func(change func(*Header)) Header {
		h := good("10.2.0.1")
		change(&h)
		return h
	}
	none := func(*spine.Packet) {}
	want := [traces.NumReasons]uint64{}
	for _, c := range []struct {
		name   string
		h      Header
		change func(*spine.Packet)
		action spine.Action
		why    traces.Reason
	}{
		{"passes", good("10.2.0.1"), none, spine.Forward, 0},
		{"padded on the wire", with(func(h *Header) { h.TotalLength = 30 }), func(p *spine.Packet) { p.Bytes = 46 }, spine.Forward, 0},
		{"header alone", with(func(h *Header) { h.TotalLength = 20 }), none, spine.Forward, 0},
		{"link error", good("10.2.0.1"), func(p *spine.Packet) { p.BadCRC = true }, spine.Drop, traces.ReasonBadCRC},
		{"no header", good("10.2.0.1"), func(p *spine.Packet) { p.Bytes, p.Header = 0, nil }, spine.Drop, traces.ReasonTruncated},
		{"19 bytes", good("10.2.0.1"), func(p *spine.Packet) { p.Bytes, p.Header = 19, p.Header[:19] }, spine.Drop, traces.ReasonTruncated},
		{"shorter than its length", good("10.2.0.1"), func(p *spine.Packet) { p.Bytes = 1499 }, spine.Drop, traces.ReasonTruncated},
		{"longer length than the packet", good("10.2.0.1"), spoilt(traces.ReasonTruncated), spine.Drop, traces.ReasonTruncated},
		{"options cut off", with(func(h *Header) { h.Options = make([]byte, 40) }), func(p *spine.Packet) { p.Header = p.Header[:32] }, spine.Drop, traces.ReasonTruncated},
		{"version", good("10.2.0.1"), spoilt(traces.ReasonBadVersion), spine.Drop, traces.ReasonBadVersion},
		{"version 6", good("10.2.0.1"), func(p *spine.Packet) { p.Header[0] = 0x60 }, spine.Drop, traces.ReasonBadVersion},
		{"header length", good("10.2.0.1"), spoilt(traces.ReasonBadHeaderLength), spine.Drop, traces.ReasonBadHeaderLength},
		{"total length", good("10.2.0.1"), spoilt(traces.ReasonBadTotalLength), spine.Drop, traces.ReasonBadTotalLength},
		{"checksum", good("10.2.0.1"), spoilt(traces.ReasonBadChecksum), spine.Drop, traces.ReasonBadChecksum},
		{"checksum of options", with(func(h *Header) { h.Options = make([]byte, 8) }), func(p *spine.Packet) { p.Header[27] ^= 1 }, spine.Drop, traces.ReasonBadChecksum},
		{"martian", good("10.2.0.1"), spoilt(traces.ReasonMartian), spine.Drop, traces.ReasonMartian},
		{"from this network", from("0.1.2.3", "10.2.0.1"), none, spine.Drop, traces.ReasonMartian},
		{"from a group", from("224.0.0.1", "10.2.0.1"), none, spine.Drop, traces.ReasonMartian},
		{"from a broadcast", from("255.255.255.255", "10.2.0.1"), none, spine.Drop, traces.ReasonMartian},
		{"to loopback", good("127.0.0.1"), none, spine.Drop, traces.ReasonMartian},
		{"to a group", good("239.1.1.1"), none, spine.Drop, traces.ReasonMartian},
		{"to class E", good("250.0.0.1"), none, spine.Drop, traces.ReasonMartian},
		{"limited broadcast", good("255.255.255.255"), none, spine.ToHost, traces.ReasonLocal},
		{"a routing protocol's group", good("224.0.0.5"), none, spine.ToHost, traces.ReasonLocal},
		{"own address", good("10.9.9.9"), none, spine.ToHost, traces.ReasonLocal},
		{"directed broadcast", good("10.8.255.255"), none, spine.ToHost, traces.ReasonLocal},
		{"own address, last hop", with(func(h *Header) { h.Dst = netip.MustParseAddr("10.9.9.9"); h.TTL = 1 }), none, spine.ToHost, traces.ReasonLocal},
		{"martian to the own address", from("127.0.0.1", "10.9.9.9"), none, spine.Drop, traces.ReasonMartian},
		{"options", with(func(h *Header) { h.Options = []byte{7, 3, 4, 0} }), none, spine.ToHost, traces.ReasonOptions},
		{"TTL", good("10.2.0.1"), spoilt(traces.ReasonTTLExpired), spine.ToHost, traces.ReasonTTLExpired},
		{"TTL 0", with(func(h *Header) { h.TTL = 0 }), none, spine.ToHost, traces.ReasonTTLExpired},
		{"TTL 2", with(func(h *Header) { h.TTL = 2 }), none, spine.Forward, 0},
		{"no route", good("11.0.0.1"), none, spine.ToHost, traces.ReasonNoRoute},
		{"no route, TTL 1", with(func(h *Header) { h.Dst = netip.MustParseAddr("11.0.0.1"); h.TTL = 1 }), none, spine.ToHost, traces.ReasonTTLExpired},
		{"back out", good("10.2.0.1"), func(p *spine.Packet) { p.Ingress = 1 }, spine.ToHost, traces.ReasonOwnWire},
		{"too long", with(func(h *Header) { h.TotalLength = 1501 }), none, spine.ToHost, traces.ReasonTooLong},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := packet(t, c.h)
			c.change(p)
			before := slices.Clone(p.Header)
			ctx := spine.NewContext(sram)
			v := x.Handle(ctx, p)
			if v.Action != c.action || v.Reason != c.why {
				t.Errorf("action %d for %v, want %d for %v", v.Action, v.Reason, c.action, c.why)
			}
			if cycles, accesses := ctx.Charged(); accesses > cycles || cycles == 0 {
				t.Errorf("%d cycles with %d accesses", cycles, accesses)
			}
			if c.action != spine.Forward {
				want[c.why]++
				if !slices.Equal(before, p.Header) {
					t.Error("a packet that is not forwarded was changed")
				}
			}
		})
	}
	if diff := cmp.Diff(want, x.Counts().Refused); diff != "" {
		t.Error(diff)
	}
	for why, n := range want {
		if (n > 0) != slices.Contains(Reasons(), traces.Reason(why)) {
			t.Errorf("%v: %d packets, in Reasons %v", traces.Reason(why), n, slices.Contains(Reasons(), traces.Reason(why)))
		}
	}
}

func TestOwnWireAllowed(t *testing.T) {
	x, sram := forwarder(t, DefaultIPv4(), table(t, smallRoutes(), 1, 2))
	p := packet(t, good("10.2.0.1"))
	p.Ingress = 1
	if v := x.Handle(spine.NewContext(sram), p); v.Action != spine.Forward || v.Card != 1 {
		t.Errorf("%+v", v)
	}
}

// TestCharges holds the costs to what Costs says, packet by packet.
func TestCharges(t *testing.T) {
	spec := DefaultIPv4()
	spec.Costs = Costs{
		ChecksumFixed: 1e2, ChecksumWord: 1e3, LookupFixed: 1e4, LookupStep: 1e5, LookupPrefix: 5e5,
		Checks: 50, Update: 3, Refuse: 20,
	}
	x, sram := forwarder(t, spec, table(t, smallRoutes(), 1, 2))
	for _, c := range []struct {
		name             string
		h                Header
		cycles, accesses int
	}{
		// The root has one bit after a skip of 3 (10 and 20 differ there), and
		// below it lies one base record each. Five header words, the TTL's
		// word stored, two words of next hop; trie words: two nodes, base
		// record, prefixes.
		{"base", good("20.0.0.1"), 50 + 5100 + 10000 + 100000 + 3, 5 + 1 + 2 + 2 + 2},
		{"one up", good("10.1.9.9"), 50 + 5100 + 10000 + 100000 + 500000 + 3, 5 + 1 + 2 + 2 + 2 + 1},
		{"two up", good("10.99.9.9"), 50 + 5100 + 10000 + 100000 + 2*500000 + 3, 5 + 1 + 2 + 2 + 2 + 2},
		{"no route", good("21.0.0.1"), 50 + 5100 + 10000 + 100000 + 20, 5 + 2 + 2 + 2},
		{"TTL", Header{TTL: 1, Src: netip.MustParseAddr("30.0.0.1"), Dst: netip.MustParseAddr("10.0.0.1")}, 50 + 5100 + 20, 5 + 2},
		{"options", Header{TTL: 9, Src: netip.MustParseAddr("30.0.0.1"), Dst: netip.MustParseAddr("10.0.0.1"), Options: make([]byte, 12)}, 50 + 8100 + 20, 8 + 2},
	} {
		ctx := spine.NewContext(sram)
		x.Handle(ctx, packet(t, c.h))
		if cycles, accesses := ctx.Charged(); cycles != c.cycles || accesses != c.accesses {
			t.Errorf("%s: %d cycles, %d accesses; want %d, %d", c.name, cycles, accesses, c.cycles, c.accesses)
		}
	}
}

// TestDefaultCosts: measured parts, and the mean over the real routes.
func TestDefaultCosts(t *testing.T) {
	c := DefaultCosts()
	if n := c.ChecksumFixed + 5*c.ChecksumWord; n != 57 {
		t.Errorf("checksum of 20 bytes: %d cycles, want 57", n)
	}
	if n := c.ChecksumFixed + 375*c.ChecksumWord; n != 3017 {
		t.Errorf("checksum of 1,500 bytes: %d cycles, want 3017", n)
	}
	if n := c.LookupFixed + 3*c.LookupStep; n < 69 || n > 72 {
		t.Errorf("look-up of three reads: %d cycles, want 69 to 72", n)
	}
	routes, err := RIB2008()
	if err != nil {
		t.Fatal(err)
	}
	for _, rs := range [][]Route{routes, WithoutDefault(routes)} {
		x, sram := forwarder(t, DefaultIPv4(), table(t, rs, 1, 2, 3))
		rng := rand.New(rand.NewPCG(8, 9))
		sum, words, least, most, n := 0, 0, 1<<30, 0, 0
		for range 50 {
			for _, r := range WithoutDefault(rs) {
				ctx := spine.NewContext(sram)
				h := good("10.0.0.1")
				h.Dst = address(number(r.Prefix.Addr()) | rng.Uint32()&^(^uint32(0)<<(32-r.Prefix.Bits())))
				if v := x.Handle(ctx, packet(t, h)); v.Action != spine.Forward {
					t.Fatalf("%v: %+v", h.Dst, v)
				}
				cycles, accesses := ctx.Charged()
				sum, words, n = sum+cycles, words+accesses, n+1
				least, most = min(least, cycles), max(most, cycles)
			}
		}
		mean := float64(sum) / float64(n)
		t.Logf("%d routes, %d bytes: mean %.2f cycles (%d to %d), %.2f accesses", len(rs), x.Table().Bytes(), mean, least, most, float64(words)/float64(n))
		if mean < 131 || mean > 134 {
			t.Errorf("mean %.2f cycles, want about 132 (thesis p.108)", mean)
		}
		if x.Table().Bytes() >= 20_000 {
			t.Errorf("%d bytes, want below 20,000 (thesis p.107)", x.Table().Bytes())
		}
	}
}

// TestHandleAgreesWithTable sends random packets and compares with the host's
// own look-up, and TTL and checksum with a header made anew.
func TestHandleAgreesWithTable(t *testing.T) {
	routes, err := RIB2008()
	if err != nil {
		t.Fatal(err)
	}
	routes = WithoutDefault(routes)
	tab := table(t, routes, 0, 1, 2)
	x, sram := forwarder(t, DefaultIPv4(), tab)
	rng := rand.New(rand.NewPCG(2, 3))
	missed := 0
	for range 50_000 {
		r := routes[rng.IntN(len(routes))]
		h := Header{
			TOS: uint8(rng.Uint32()), ID: uint16(rng.Uint32()), TTL: uint8(2 + rng.IntN(254)), Protocol: uint8(rng.Uint32()),
			DontFrag: rng.IntN(2) == 0, Src: netip.MustParseAddr("30.0.0.1"),
			Dst: address(number(r.Prefix.Addr()) ^ 1<<rng.IntN(32)),
		}
		p := packet(t, h)
		v := x.Handle(spine.NewContext(sram), p)
		hop, ok := tab.Lookup(h.Dst)
		if _, again, same := tab.Match(h.Dst); again != hop || same != ok {
			t.Fatalf("%v: Match %v, Lookup %v", h.Dst, again, hop)
		}
		switch {
		case v.Reason == traces.ReasonMartian || v.Reason == traces.ReasonLocal:
			continue
		case !ok:
			missed++
			if v != toHost(traces.ReasonNoRoute) {
				t.Fatalf("%v: %+v, want no route", h.Dst, v)
			}
			continue
		}
		if want := (spine.Verdict{Action: spine.Forward, Card: hop.Card, NextHop: number(hop.Addr)}); v != want {
			t.Fatalf("%v: %+v, want %+v", h.Dst, v, want)
		}
		h.TTL--
		if after := packet(t, h); !slices.Equal(after.Header, p.Header) {
			t.Fatalf("% x, want % x", p.Header, after.Header)
		}
	}
	if missed < 1000 {
		t.Errorf("only %d without a route", missed)
	}
}

func TestHandleDoesNotAllocate(t *testing.T) {
	routes, err := RIB2008()
	if err != nil {
		t.Fatal(err)
	}
	x, sram := forwarder(t, DefaultIPv4(), table(t, routes, 1, 2, 3))
	var ps []*spine.Packet
	for _, r := range routes {
		h := good("10.0.0.1")
		h.Dst, h.TTL = r.Prefix.Addr(), 255
		ps = append(ps, packet(t, h))
	}
	ps = append(ps, packet(t, Header{Src: ps0, Dst: ps0}))
	ctx := spine.NewContext(sram)
	i := 0
	if n := testing.AllocsPerRun(20_000, func() {
		x.Handle(ctx, ps[i%len(ps)])
		i++
	}); n != 0 {
		t.Errorf("%v allocations a packet", n)
	}
	if c := x.Counts(); c.Forwarded == 0 || c.Refused[traces.ReasonTTLExpired] == 0 {
		t.Errorf("%+v: want both ways", c)
	}
}

var ps0 = netip.MustParseAddr("30.0.0.1")

func TestTableDoesNotFit(t *testing.T) {
	routes, err := RIB2008()
	if err != nil {
		t.Fatal(err)
	}
	tab := table(t, routes, 1)
	if _, err := NewIPv4(DefaultIPv4(), tab, lanai.NewSRAM(8192)); !errors.Is(err, lanai.ErrNoRoom) ||
		!strings.Contains(err.Error(), "1000 routes (16") || !strings.Contains(err.Error(), "8192") {
		t.Errorf("%v", err)
	}
	sram := lanai.NewSRAM(1 << 20)
	if _, err := NewIPv4(DefaultIPv4(), tab, sram); err != nil {
		t.Fatal(err)
	}
	if n := sram.Held(Owner); int(n) != tab.Bytes() {
		t.Errorf("the table holds %d bytes of SRAM, want %d", n, tab.Bytes())
	}
	if image := tab.AppendImage(nil); len(image) != tab.Bytes() {
		t.Errorf("image of %d bytes, want %d", len(image), tab.Bytes())
	}
}

func TestSpecErrors(t *testing.T) {
	tab := table(t, smallRoutes(), 1)
	for _, c := range []struct {
		text   string
		change func(*IPv4Spec)
	}{
		{"martian sources: entry 1", func(s *IPv4Spec) { s.MartianSources = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), {}} }},
		{"martian destinations: entry 0 is ::/0", func(s *IPv4Spec) { s.MartianDestinations = []netip.Prefix{netip.MustParsePrefix("::/0")} }},
		{"local: entry 0", func(s *IPv4Spec) { s.Local = make([]netip.Prefix, 1) }},
		{"MTU 67", func(s *IPv4Spec) { s.MTU = 67 }},
		{"MTU -1", func(s *IPv4Spec) { s.MTU = -1 }},
		{`"lookup step" is -1`, func(s *IPv4Spec) { s.Costs.LookupStep = -1 }},
		{`"refuse" is 1000001`, func(s *IPv4Spec) { s.Costs.Refuse = 1_000_001 }},
	} {
		s := DefaultIPv4()
		c.change(&s)
		if _, err := NewIPv4(s, tab, lanai.NewSRAM(1<<16)); !errors.Is(err, ErrSpec) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("got %v, want %v with %q", err, ErrSpec, c.text)
		}
	}
}

func TestNewTableErrors(t *testing.T) {
	for _, c := range []struct {
		routes []Route
		a      Assignment
		err    error
	}{
		{smallRoutes(), Assignment{}, ErrAssignment},
		{append(smallRoutes(), Route{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParseAddr("192.0.2.9")}), Assignment{Cards: []uint8{1}}, lctrie.ErrDuplicate},
		{[]Route{{netip.MustParsePrefix("10.1.0.0/8"), netip.MustParseAddr("192.0.2.9")}}, Assignment{Cards: []uint8{1}}, lctrie.ErrPrefix},
	} {
		if _, err := NewTable(c.routes, c.a, lctrie.Options{}); !errors.Is(err, c.err) {
			t.Errorf("got %v, want %v", err, c.err)
		}
	}
}

func TestHeaderErrors(t *testing.T) {
	for _, h := range []Header{
		{Src: ps0},
		{Src: ps0, Dst: netip.MustParseAddr("::1")},
		{Src: ps0, Dst: ps0, Options: make([]byte, 3)},
		{Src: ps0, Dst: ps0, Options: make([]byte, 44)},
		{Src: ps0, Dst: ps0, TotalLength: 19},
		{Src: ps0, Dst: ps0, TotalLength: 65536},
	} {
		if b, err := h.Append(nil); err == nil {
			t.Errorf("%+v: % x", h, b)
		}
	}
	for _, why := range []traces.Reason{traces.ReasonNoRoute, traces.ReasonNone} {
		if err := Spoil(make([]byte, 20), why); err == nil {
			t.Errorf("%v: no error", why)
		}
	}
	if err := Spoil(make([]byte, 19), traces.ReasonTTLExpired); err == nil {
		t.Error("19 bytes: no error")
	}
}

// FuzzHandle: whatever the header, no panic, and a packet that is forwarded has
// a right checksum and a TTL of one less.
func FuzzHandle(f *testing.F) {
	for _, h := range []Header{good("10.1.2.3"), good("11.0.0.1"), {TTL: 3, Src: ps0, Dst: ps0, Options: make([]byte, 40)}} {
		b, err := h.Append(nil)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, 1500)
	}
	x, sram := forwarder(f, DefaultIPv4(), table(f, smallRoutes(), 1, 2))
	f.Fuzz(func(t *testing.T, b []byte, n int) {
		before := slices.Clone(b)
		v := x.Handle(spine.NewContext(sram), &spine.Packet{ID: 1, Bytes: n, Header: b})
		if v.Action != spine.Forward {
			if !slices.Equal(before, b) {
				t.Error("changed, but not forwarded")
			}
			return
		}
		if Checksum(b[:20]) != 0 || b[8] != before[8]-1 || int(binary.BigEndian.Uint16(b[2:])) > n {
			t.Errorf("% x forwarded as % x", before, b)
		}
	})
}

func BenchmarkHandle(b *testing.B) {
	routes, err := RIB2008()
	if err != nil {
		b.Fatal(err)
	}
	x, sram := forwarder(b, DefaultIPv4(), table(b, routes, 1, 2, 3))
	var ps []*spine.Packet
	for _, r := range WithoutDefault(routes) {
		h := good("10.0.0.1")
		h.Dst = r.Prefix.Addr()
		ps = append(ps, packet(b, h))
	}
	ctx := spine.NewContext(sram)
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		p := ps[i%len(ps)]
		i++
		x.Handle(ctx, p)
		p.Header[ttlByte]++ // so that it can be sent again
		binary.BigEndian.PutUint16(p.Header[checksumAt:], UpdateChecksum(binary.BigEndian.Uint16(p.Header[checksumAt:]),
			binary.BigEndian.Uint16(p.Header[ttlByte:])-1<<8, binary.BigEndian.Uint16(p.Header[ttlByte:])))
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "packets/s")
}
