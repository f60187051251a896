package sim

import (
	"math"
	"testing"

	"spinesim/traces"
)

// A packet's chain: what has to be computed for it, whoever does it.
type chain struct {
	links []link
	wire  int64 // words a cycle on the wire, in rateOne
	bus   int64 // likewise the bus on the memory of a card
	slots int64 // accesses a cycle that the memory can do, in rateOne
	cost  int64 // clocks a data phase
	head  int64 // clocks before the first
}

type link struct {
	kind  traces.Kind
	card  uint8
	peer  uint8
	n, a  int64 // of a box: its cycles, and the loads and stores among them
	words int64 // of a stream or transfer
}

// rateOne is one word a cycle: rates are fixed-point numbers.
const rateOne = 1 << 12

func (c *chain) boxes() (n int) {
	for _, l := range c.links {
		if l.kind == traces.KindBox {
			n++
		}
	}
	return n
}

// chainOf takes a packet's chain from the record of a lone one.
func chainOf(t testing.TB, name string) *chain {
	t.Helper()
	sc := mustLoad(t, name, "traffic.packets=1")
	card, err := sc.cardSpec(0)
	if err != nil {
		t.Fatal(err)
	}
	fw, err := sc.firmware()
	if err != nil {
		t.Fatal(err)
	}
	bus := sc.busSpec()
	cycle := float64(card.Clock.Den) / float64(card.Clock.Num)
	c := &chain{
		wire:  int64(math.Round(card.Link.BytesPerSecond() / 4 * cycle * rateOne)),
		slots: int64(card.Slots) * rateOne,
		cost:  1 + int64(card.Target.DataWait),
		head:  2 + int64(card.Target.WriteWait),
	}
	c.bus = int64(math.Round(bus.Clock.Hz() * cycle * rateOne * float64(bus.Width/32) / float64(c.cost)))
	mustRun(t, sc, Options{Sinks: []traces.Sink{sinkFunc(func(r *traces.Record) {
		l := link{kind: r.Kind, card: r.Card, peer: r.Peer, words: int64(r.Bytes+3) / 4}
		switch r.Kind {
		case traces.KindBox:
			l.n = int64(r.Cycles)
			l.a = int64(fw.Costs.Handler[r.Event].Accesses)
			l.a = min(l.a, l.n)
		case traces.KindTransfer, traces.KindReceive, traces.KindSend:
		default:
			return
		}
		c.links = append(c.links, l)
	})}})
	return c
}

// limit computes chains, one packet after the other: each card's processor
// takes its boxes in turn at the speed that the streams on its memory leave it.
type limit struct {
	*chain
	cards [4]limitCard
	bus   int64 // clock from which the bus is free
}

type limitCard struct {
	cpu     int64 // cycle from which the processor is free
	streams [3]limitStream
}

type limitStream struct{ from, to, rate int64 }

const (
	limitReceive = iota
	limitSend
	limitBus
)

func newLimit(c *chain) *limit { return &limit{chain: c} }

// packet computes one packet's chain.
func (l *limit) packet() {
	for i := range l.links {
		s := &l.links[i]
		c := &l.cards[s.card]
		switch s.kind {
		case traces.KindBox:
			c.box(s.n, s.a, l.slots)
		case traces.KindReceive:
			c.stream(limitReceive, s.words, l.wire)
		case traces.KindSend:
			c.stream(limitSend, s.words, l.wire)
		case traces.KindTransfer:
			// Bus clocks and cycles are equally long in the default experiment.
			from := max(l.bus, c.cpu) + l.head
			to := from + s.words*l.cost
			c.streams[limitBus] = limitStream{from, to, l.chain.bus}
			p := &l.cards[s.peer]
			p.streams[limitBus] = c.streams[limitBus]
			p.cpu = max(p.cpu, to) // it hears of the packet then
			l.bus = to + 1
		}
	}
}

func (c *limitCard) stream(which int, words, rate int64) {
	c.streams[which] = limitStream{c.cpu, c.cpu + (words*rateOne+rate-1)/rate, rate}
}

// box runs n cycles with a loads and stores from where the processor is free.
func (c *limitCard) box(n, a, slots int64) {
	at, rest := c.cpu, (n+a)*rateOne
	for {
		free, edge := slots, int64(math.MaxInt64)
		for i := range c.streams {
			switch s := &c.streams[i]; {
			case at < s.from:
				edge = min(edge, s.from)
			case at < s.to:
				free -= s.rate
				edge = min(edge, s.to)
			}
		}
		free = max(free, 1)
		need := max(n, (rest+free-1)/free)
		if need <= edge-at {
			c.cpu = at + need
			return
		}
		d := edge - at
		n -= min(d, n)
		rest -= min(d*free, rest)
		at = edge
	}
}

// TestLimit: the bare loop computes the boxes that a lone packet causes, and in
// about the time that they take.
func TestLimit(t *testing.T) {
	c := chainOf(t, "fig6.4")
	var cycles, transfers int64
	for _, l := range c.links {
		switch l.kind {
		case traces.KindBox:
			cycles += l.n
		case traces.KindTransfer:
			transfers++
		}
	}
	if n := c.boxes(); n != 15 || transfers != 3 {
		t.Errorf("%d boxes and %d transfers, want 15 and 3", n, transfers)
	}
	l := newLimit(c)
	l.packet()
	end := int64(0)
	for i := range l.cards {
		end = max(end, l.cards[i].cpu)
	}
	if end < cycles || end > 4*cycles {
		t.Errorf("the chain ends in cycle %d; its boxes alone take %d", end, cycles)
	}
	if n := testing.AllocsPerRun(10, l.packet); n != 0 {
		t.Errorf("%v allocations a packet", n)
	}
}
