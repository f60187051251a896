package lanai

import (
	"context"
	"errors"
	"testing"

	"spinesim/pci"
	"spinesim/sim/des"
	"spinesim/traces"
)

// load keeps all of a card busy: the wire brings packets without end into
// two-part buffers, packets leave without end, the host-DMA engine moves block
// after block, and the processor alternates runs of polls with handlers, which
// start the engines anew.
type load struct {
	card   *Card
	in     Frame
	out    Frame
	op     DMAOp
	boxes  int
	polls  int64
	count  struct{ received, sent, moved int }
	header bool // the next buffer is for a header
}

func newLoad(tb testing.TB, spec Spec, e *des.Engine, bus *pci.Bus, index uint8, to uint32, rec *traces.Recorder) *load {
	tb.Helper()
	c, err := New(spec, index, des.Time(index)*7001, e, bus, rec)
	if err != nil {
		tb.Fatal(err)
	}
	l := &load{card: c, header: true, polls: 3}
	l.in = Frame{ID: 1, Bytes: 1500, Data: make([]byte, 64)}
	l.out = Frame{ID: 2, Bytes: 1500, Data: make([]byte, 64)}
	l.op = DMAOp{EAR: to, LAR: 0x4000, Bytes: 1500, Carry: 32, Event: traces.TransferBody, Peer: traces.HostCard}
	c.Rx.Bind(l, l)
	c.Tx.Bind(l)
	c.DMA.Bind(l)
	c.CPU.Bind(l)
	return l
}

func (l *load) Head() *Frame       { return &l.in }
func (l *load) Pop(des.Time) error { return nil }

func (l *load) Received(_ des.Time, _ *Frame, _ uint32, _ int, ev ReceiveEvent) error {
	if ev == PacketEnd {
		l.count.received++
		l.header = true
	}
	return nil
}

func (l *load) Sent(des.Time, *Frame) error {
	l.count.sent++
	return nil
}

func (l *load) DMADone(_ des.Time, st pci.Status, _ *pci.Transfer) error {
	if st != pci.StatusOK {
		return errors.New(StatusName(st))
	}
	l.count.moved++
	return nil
}

func (l *load) BoxEnd(des.Time) error {
	l.boxes++
	c := l.card
	if !c.Rx.Armed() {
		addr, n := uint32(0x1020), 1600
		if l.header {
			addr, n = 0x1000, 32
		}
		l.header = false
		if err := c.Rx.Arm(addr, n); err != nil {
			return err
		}
	}
	if !c.Tx.Busy() {
		if err := c.Tx.Send(&l.out, 0x2000, 1500); err != nil {
			return err
		}
	}
	if !c.DMA.Busy() {
		if err := c.DMA.Start(l.op); err != nil {
			return err
		}
	}
	return c.CPU.Poll(Demand{Cycles: 12, Accesses: 2}, l.polls)
}

func (l *load) PollsEnd(des.Time) error {
	return l.card.CPU.Run(Demand{Cycles: int32(60 + l.boxes%3*33), Accesses: 20})
}

func loaded(tb testing.TB, spec Spec) (*des.Engine, *load) {
	tb.Helper()
	e := des.New(des.Options{})
	bus, err := pci.New(spec.Bus, e, nil)
	if err != nil {
		tb.Fatal(err)
	}
	l := newLoad(tb, spec, e, bus, 0, 0x1000, nil)
	if _, err := pci.NewHostBridge(bus, 0, 1<<20); err != nil {
		tb.Fatal(err)
	}
	if err := l.PollsEnd(0); err != nil {
		tb.Fatal(err)
	}
	return e, l
}

func run(tb testing.TB, e *des.Engine, until des.Time) {
	tb.Helper()
	if err := e.RunUntil(context.Background(), until); err != nil {
		tb.Fatal(err)
	}
}

func benchmarkLoad(b *testing.B, spec Spec) {
	e, l := loaded(b, spec)
	run(b, e, des.Millisecond)
	b.ReportAllocs()
	start := e.Now()
	for b.Loop() {
		run(b, e, e.Now()+des.Millisecond)
	}
	clocks := l.card.CycleAt(e.Now()) - l.card.CycleAt(start)
	b.ReportMetric(float64(clocks)/b.Elapsed().Seconds()/1e6, "Mclocks/s")
	b.ReportMetric(float64(l.count.received)*float64(1e9)/float64(e.Now()/des.Nanosecond), "packets/simulated-s")
}

// One card with all its engines busy, the processor included.
func BenchmarkCardAllEngines(b *testing.B)       { benchmarkLoad(b, Lanai4()) }
func BenchmarkCardAllEnginesLanai9(b *testing.B) { benchmarkLoad(b, Lanai9()) }

func TestSteadyStateAllocatesNothing(t *testing.T) {
	for _, spec := range []Spec{Lanai4(), Lanai9()} {
		t.Run(spec.Name, func(t *testing.T) {
			e, l := loaded(t, spec)
			run(t, e, 10*des.Millisecond)
			if n := testing.AllocsPerRun(5, func() { run(t, e, e.Now()+des.Millisecond) }); n != 0 {
				t.Errorf("%v allocations a millisecond", n)
			}
			if l.count.received < 10 || l.count.sent < 10 || l.count.moved < 10 || l.boxes < 10 {
				t.Errorf("little was done: %+v, %d boxes", l.count, l.boxes)
			}
		})
	}
}

// mover is a card that moves packets: its host-DMA engine writes one after the
// other into the next card's window, while its processor polls.
type mover struct {
	card *Card
	op   DMAOp
	n    int
}

func (m *mover) BoxEnd(des.Time) error   { return nil }
func (m *mover) PollsEnd(des.Time) error { return nil }

func (m *mover) DMADone(_ des.Time, st pci.Status, _ *pci.Transfer) error {
	if st != pci.StatusOK {
		return errors.New(StatusName(st))
	}
	m.n++
	return m.card.DMA.Start(m.op)
}

// contended is four cards that want the bus all the time: each moves packets of
// 1,500 bytes, in bursts as long as the latency timer allows.
func contended(tb testing.TB) (*des.Engine, *pci.Bus, []*mover) {
	tb.Helper()
	e := des.New(des.Options{})
	spec := Lanai4()
	bus, err := pci.New(spec.Bus, e, nil)
	if err != nil {
		tb.Fatal(err)
	}
	var cards []*mover
	for i := range uint8(4) {
		next, _ := spec.Window((i + 1) % 4)
		c, err := New(spec, i, des.Time(i)*7001, e, bus, nil)
		if err != nil {
			tb.Fatal(err)
		}
		m := &mover{card: c, op: DMAOp{EAR: next + spec.SRAMAt + 0x8000, LAR: 0x4000, Bytes: 1500, Carry: 32, Event: traces.TransferBody, Peer: (i + 1) % 4}}
		c.DMA.Bind(m)
		c.CPU.Bind(m)
		if err := c.CPU.Poll(Demand{Cycles: 12, Accesses: 2}, Unbounded); err != nil {
			tb.Fatal(err)
		}
		cards = append(cards, m)
	}
	for _, m := range cards {
		if err := m.card.DMA.Start(m.op); err != nil {
			tb.Fatal(err)
		}
	}
	run(tb, e, 10*des.Millisecond)
	return e, bus, cards
}

func TestContendedBusAllocatesNothing(t *testing.T) {
	e, _, cards := contended(t)
	if n := testing.AllocsPerRun(5, func() { run(t, e, e.Now()+des.Millisecond) }); n != 0 {
		t.Errorf("%v allocations a millisecond", n)
	}
	least, most := cards[0].n, cards[0].n
	for _, m := range cards {
		least, most = min(least, m.n), max(most, m.n)
	}
	if least < 50 || most-least > 2 {
		t.Errorf("packets moved: %d to %d a card", least, most)
	}
}

// Four cards on a contended bus.
func BenchmarkFourCardsContended(b *testing.B) {
	e, bus, _ := contended(b)
	measure(b, e, bus)
}

// measure reports a bus's clocks simulated in a second of real time, in millions.
func measure(b *testing.B, e *des.Engine, bus *pci.Bus) (perSecond float64) {
	b.ReportAllocs()
	start := e.Now()
	for b.Loop() {
		run(b, e, e.Now()+des.Millisecond)
	}
	clocks := bus.ClockAt(e.Now()) - bus.ClockAt(start)
	perSecond = float64(clocks) / b.Elapsed().Seconds() / 1e6
	b.ReportMetric(perSecond, "Mclocks/s")
	return perSecond
}

// Four cards with all their engines busy on one bus, each moving packets into
// the next one's window. Engines of three cards that wait and one that has the
// bus meet in thousands of patterns, so that the tables grow for long.
func BenchmarkFourCards(b *testing.B) {
	e := des.New(des.Options{})
	spec := Lanai4()
	bus, err := pci.New(spec.Bus, e, nil)
	if err != nil {
		b.Fatal(err)
	}
	for i := range uint8(4) {
		next, _ := spec.Window((i + 1) % 4)
		l := newLoad(b, spec, e, bus, i, next+spec.SRAMAt+0x8000, nil)
		if err := l.PollsEnd(0); err != nil {
			b.Fatal(err)
		}
	}
	run(b, e, des.Millisecond)
	b.ReportMetric(4*measure(b, e, bus), "Mcardclocks/s")
}
