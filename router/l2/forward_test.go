package l2

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"testing"

	"spinesim/lanai"
	"spinesim/router/bihash"
	"spinesim/sim/des"
	"spinesim/spine"
	"spinesim/traces"
)

// frame is an Ethernet frame's header.
func frame(dst, src [6]byte) []byte {
	h := make([]byte, 60)
	copy(h, dst[:])
	copy(h[6:], src[:])
	h[12], h[13] = 8, 0
	return h
}

func addr(n int) [6]byte { return StationOf(uint32(n)) }

type bench struct {
	tb    testing.TB
	b     *Bridge
	cards []*Forwarding
	srams []*lanai.SRAM
}

func newBench(tb testing.TB, spec Spec, cards int) *bench {
	tb.Helper()
	b, err := NewBridge(spec, cards)
	if err != nil {
		tb.Fatal(err)
	}
	x := &bench{tb: tb, b: b}
	for c := range cards {
		sram := lanai.NewSRAM(1 << 20)
		f, err := b.On(uint8(c), sram)
		if err != nil {
			tb.Fatal(err)
		}
		x.cards = append(x.cards, f)
		x.srams = append(x.srams, sram)
	}
	return x
}

func (x *bench) send(now des.Time, card int, header []byte) (spine.Verdict, int) {
	ctx := spine.NewContext(x.srams[card])
	ctx.Now, ctx.Card = now, uint8(card)
	v := x.cards[card].Handle(ctx, &spine.Packet{ID: 1, Bytes: len(header), Header: header, Ingress: uint8(card)})
	cycles, accesses := ctx.Charged()
	if accesses > cycles {
		x.tb.Fatalf("%d accesses in %d cycles", accesses, cycles)
	}
	return v, cycles
}

func ethernet() Spec {
	s := DefaultSpec()
	s.Addressing = Ethernet
	return s
}

func TestLearnsAndForwards(t *testing.T) {
	x := newBench(t, ethernet(), 4)
	us := des.Microsecond
	a, b := addr(1), addr(2)
	for _, step := range []struct {
		name string
		at   des.Time
		card int
		h    []byte
		want spine.Verdict
	}{
		{"nobody is known", 0, 0, frame(b, a), spine.Verdict{Action: spine.Flood}},
		{"the answer's card has heard of the first", 200 * us, 2, frame(a, b), spine.Verdict{Action: spine.Forward, Card: 0}},
		{"and the other way round", 400 * us, 0, frame(b, a), spine.Verdict{Action: spine.Forward, Card: 2}},
		{"a third card knows both", 400 * us, 3, frame(b, addr(3)), spine.Verdict{Action: spine.Forward, Card: 2}},
		{"to a station on its own wire", 500 * us, 2, frame(b, addr(9)), spine.Verdict{Action: spine.Drop, Reason: traces.ReasonOwnWire}},
		{"to a group", 500 * us, 2, frame([6]byte{1, 0, 0x5e, 0, 0, 1}, b), spine.Verdict{Action: spine.Flood}},
		{"broadcast", 500 * us, 2, frame([6]byte{255, 255, 255, 255, 255, 255}, b), spine.Verdict{Action: spine.Flood}},
		{"the first moves", 600 * us, 1, frame(b, a), spine.Verdict{Action: spine.Forward, Card: 2}},
		{"not heard of yet", 650 * us, 2, frame(a, b), spine.Verdict{Action: spine.Forward, Card: 0}},
		{"heard of", 700 * us, 2, frame(a, b), spine.Verdict{Action: spine.Forward, Card: 1}},
		{"too short", 700 * us, 2, frame(a, b)[:13], spine.Verdict{Action: spine.Drop, Reason: traces.ReasonTruncated}},
		{"forgotten after 300 s and the step it was in", 340 * des.Second, 2, frame(a, b), spine.Verdict{Action: spine.Flood}},
	} {
		if got, _ := x.send(step.at, step.card, step.h); got != step.want {
			t.Errorf("%s: %+v, want %+v", step.name, got, step.want)
		}
	}
	if c := x.cards[1].Counts(); c.Moved != 1 {
		t.Errorf("card 1 counts %+v, want one station moved", c)
	}
}

// TestOneEntryCache: the second packet to a station costs no look-up.
func TestOneEntryCache(t *testing.T) {
	costs := map[bool][2]int{}
	for _, off := range []bool{false, true} {
		spec := ethernet()
		spec.NoCache = off
		spec.Static = []Station{{addr(7), 3}}
		x := newBench(t, spec, 4)
		x.send(0, 0, frame(addr(7), addr(1)))
		_, first := x.send(des.Millisecond, 0, frame(addr(7), addr(2)))
		_, second := x.send(des.Millisecond, 0, frame(addr(7), addr(2)))
		costs[off] = [2]int{first, second}
		if hits := x.cards[0].Counts().CacheHits; (hits > 0) == off {
			t.Errorf("without cache %v: %d hits", off, hits)
		}
	}
	if c := costs[false]; c[1] > c[0]/2 {
		t.Errorf("a packet like the one before costs %d cycles, the one before %d", c[1], c[0])
	}
	if c := costs[true]; c[1] < 100 {
		t.Errorf("without the caches a packet costs %d cycles, want two look-ups", c[1])
	}
}

func TestUnknown(t *testing.T) {
	for _, c := range []struct {
		unknown Unknown
		want    spine.Verdict
	}{
		{Flood, spine.Verdict{Action: spine.Flood}},
		{Next, spine.Verdict{}},
		{ToHost, spine.Verdict{Action: spine.ToHost, Reason: traces.ReasonNoRoute}},
		{Drop, spine.Verdict{Action: spine.Drop, Reason: traces.ReasonNoRoute}},
	} {
		spec := ethernet()
		spec.Unknown = c.unknown
		x := newBench(t, spec, 2)
		if got, _ := x.send(0, 0, frame(addr(1), addr(2))); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.unknown, got, c.want)
		}
	}
	// The next extension sees what is behind the link header.
	spec := ethernet()
	spec.Unknown = Next
	x := newBench(t, spec, 2)
	p := spine.Packet{Bytes: 100, Header: frame(addr(1), addr(2))}
	p.Header[14] = 0x45
	x.cards[0].Handle(spine.NewContext(x.srams[0]), &p)
	if p.Bytes != 86 || p.Header[0] != 0x45 {
		t.Errorf("the next extension sees %d bytes from %#x on", p.Bytes, p.Header[0])
	}
}

// TestBatch: what is shared is charged once.
func TestBatch(t *testing.T) {
	x := newBench(t, ethernet(), 2)
	var cycles [2]int
	for place := range cycles {
		ctx := spine.NewContext(x.srams[0])
		ctx.Batch, ctx.Place = 2, place
		x.cards[0].Handle(ctx, &spine.Packet{Bytes: 60, Header: frame([6]byte{1}, [6]byte{1})})
		cycles[place], _ = ctx.Charged()
	}
	if got, want := cycles[0]-cycles[1], DefaultCosts().Frame; got != want {
		t.Errorf("the first of a batch costs %d cycles more, want %d", got, want)
	}
}

// oracle is a bridge as plain maps.
type oracle struct {
	spec    Spec
	tables  []map[[6]byte]seen
	notices []heard
}

type seen struct {
	card uint8
	step uint32
}

type heard struct {
	due  des.Time
	to   int
	addr [6]byte
	seen seen
}

func (o *oracle) send(now des.Time, card int, dst, src [6]byte) spine.Verdict {
	step := o.spec.step(now)
	old := func(s seen) bool { return step > s.step+ages }
	t := o.tables[card]
	rest := o.notices[:0]
	for _, n := range o.notices {
		switch {
		case n.to != card || n.due > now:
			rest = append(rest, n)
		default:
			if s, ok := t[n.addr]; !ok || s.step <= n.seen.step {
				t[n.addr] = n.seen
			}
		}
	}
	o.notices = rest
	if src[0]&1 == 0 {
		if s, ok := t[src]; !ok || old(s) || s.card != uint8(card) || s.step != step {
			s = seen{uint8(card), step}
			t[src] = s
			for c := range o.tables {
				if c != card {
					o.notices = append(o.notices, heard{now + o.spec.Notice, c, src, s})
				}
			}
		}
	}
	if dst[0]&1 != 0 {
		return spine.Verdict{Action: spine.Flood}
	}
	s, ok := t[dst]
	switch {
	case !ok || old(s):
		return spine.Verdict{Action: spine.Flood}
	case s.card == uint8(card):
		return spine.Verdict{Action: spine.Drop, Reason: traces.ReasonOwnWire}
	}
	return spine.Verdict{Action: spine.Forward, Card: s.card}
}

func TestAgainstMaps(t *testing.T) {
	for _, hash := range bihash.Hashes() {
		for _, noCache := range []bool{false, true} {
			spec := ethernet()
			spec.Age, spec.NoCache = 8*des.Millisecond, noCache
			spec.Table.Hash, spec.Table.Buckets = hash, 16
			x := newBench(t, spec, 4)
			o := &oracle{spec: spec}
			for range 4 {
				o.tables = append(o.tables, map[[6]byte]seen{})
			}
			r := rand.New(rand.NewPCG(7, 7))
			now := des.Time(0)
			var actions [6]int
			for i := range 20000 {
				now += des.Time(r.Uint64N(uint64(40 * des.Microsecond)))
				if i%4000 == 3999 {
					now += 20 * des.Millisecond // all are forgotten
				}
				card := r.IntN(4)
				src := addr(1 + card*50 + r.IntN(50)) // at home
				if r.IntN(20) == 0 {
					src = addr(1 + r.IntN(200)) // moved
				}
				dst := addr(1 + r.IntN(200))
				if r.IntN(3) == 0 {
					dst = addr(1 + r.IntN(4))
				}
				if r.IntN(50) == 0 {
					dst[0] = 0xFF
				}
				want := o.send(now, card, dst, src)
				got, _ := x.send(now, card, frame(dst, src))
				if got != want {
					t.Fatalf("%s, no cache %v: packet %d at %v on card %d from %x to %x: %+v, want %+v", hash, noCache, i, now, card, src, dst, got, want)
				}
				actions[got.Action]++
			}
			if actions[spine.Forward] < 2000 || actions[spine.Flood] < 1000 || actions[spine.Drop] < 1000 {
				t.Errorf("actions %v: the test does not reach all", actions)
			}
			// What is too old goes away by itself, so that tables do not fill up.
			if c := x.cards[0].Counts(); c.Aged == 0 || c.Full > 0 {
				t.Errorf("counts %+v", c)
			}
		}
	}
}

func TestFromIPv4(t *testing.T) {
	x := newBench(t, DefaultSpec(), 2)
	h := make([]byte, 60)
	h[0] = 0x45
	packet := func(src, dst uint32) []byte {
		binary.BigEndian.PutUint32(h[12:], src)
		binary.BigEndian.PutUint32(h[16:], dst)
		return h
	}
	x.send(0, 1, packet(0x0A010001, 0x0A000001))
	if got, _ := x.send(des.Millisecond, 0, packet(0x0A000001, 0x0A010001)); got != (spine.Verdict{Action: spine.Forward, Card: 1}) {
		t.Errorf("to a known station: %+v", got)
	}
	if got, _ := x.send(des.Millisecond, 0, packet(0x0A000001, 0xE0000001)); got.Action != spine.Flood {
		t.Errorf("to a group: %+v", got)
	}
	h[0] = 0x65
	if got, _ := x.send(des.Millisecond, 0, h); got.Reason != traces.ReasonBadVersion {
		t.Errorf("version 6: %+v", got)
	}
	if got, _ := x.send(des.Millisecond, 0, h[:12]); got.Reason != traces.ReasonTruncated {
		t.Errorf("short: %+v", got)
	}
}

func TestFullTable(t *testing.T) {
	spec := ethernet()
	spec.Stations = 10
	x := newBench(t, spec, 1)
	for i := range 30 {
		x.send(0, 0, frame(addr(1000), addr(i+1)))
	}
	c := x.cards[0].Counts()
	if x.cards[0].Table().Len() != 10 || c.Learned != 10 || c.Full != 20 {
		t.Errorf("%d stations, counts %+v", x.cards[0].Table().Len(), c)
	}
}

func TestNoAllocation(t *testing.T) {
	spec := ethernet()
	spec.Age = 8 * des.Millisecond
	x := newBench(t, spec, 4)
	now := des.Time(0)
	var h [64][]byte
	for i := range h {
		h[i] = frame(addr(i*7%64), addr(i))
	}
	ctxs := make([]*spine.Context, 4)
	for c := range ctxs {
		ctxs[c] = spine.NewContext(x.srams[c])
	}
	p := spine.Packet{Bytes: 60}
	round := func() {
		for i := range h {
			now += 30 * des.Microsecond
			c := i % 4
			ctxs[c].Now = now
			p.Header, p.Ingress = h[i], uint8(c)
			x.cards[c].Handle(ctxs[c], &p)
		}
	}
	for range 200 {
		round()
	}
	if n := testing.AllocsPerRun(50, round); n != 0 {
		t.Errorf("%g allocations in 64 packets", n)
	}
}

func TestBadSpecs(t *testing.T) {
	for name, change := range map[string]func(*Spec){
		"addressing": func(s *Spec) { s.Addressing = "token ring" },
		"unknown":    func(s *Spec) { s.Unknown = "guess" },
		"keys":       func(s *Spec) { s.Table.KeyBytes = 16 },
		"stations":   func(s *Spec) { s.Stations = 0 },
		"age":        func(s *Spec) { s.Age = 1 },
		"notice":     func(s *Spec) { s.Notice = 0 },
		"costs":      func(s *Spec) { s.Costs.Word = -1 },
		"static":     func(s *Spec) { s.Static = []Station{{addr(1), 4}} },
		"group":      func(s *Spec) { s.Static = []Station{{[6]byte{1}, 0}} },
	} {
		s := DefaultSpec()
		change(&s)
		b, err := NewBridge(s, 4)
		if err == nil {
			_, err = b.On(0, lanai.NewSRAM(1<<20))
		}
		if !errors.Is(err, ErrSpec) {
			t.Errorf("%s: %v, want %v", name, err, ErrSpec)
		}
	}
	s := DefaultSpec()
	s.Table.Buckets = 3
	if _, err := NewBridge(s, 4); !errors.Is(err, bihash.ErrSpec) {
		t.Errorf("three buckets: %v", err)
	}
	b, err := NewBridge(DefaultSpec(), 2)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.On(2, lanai.NewSRAM(1<<20)); !errors.Is(err, ErrSpec) {
		t.Errorf("a card beyond the bridge: %v", err)
	}
	if _, err := b.On(0, lanai.NewSRAM(1<<10)); !errors.Is(err, lanai.ErrNoRoom) {
		t.Errorf("1 KiB of memory: %v", err)
	}
}
