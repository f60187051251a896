package lanai

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sort"
	"testing"

	"spinesim/sim/testenv"

	"github.com/google/go-cmp/cmp"

	"spinesim/pci"
	"spinesim/sim/des"
)

// The oracle steps every cycle of a card's memory bus, from the rules of the
// package comment and nothing else. A scenario is a script for both.

type scriptKind uint8

const (
	scriptHost  scriptKind = iota // a source of E-bus accesses changes
	scriptStart                   // a receive or send stream begins, unless one is on
	scriptLimit                   // the present run of polls is limited
)

type scriptEvent struct {
	At       des.Time
	Kind     scriptKind
	Source   hostSource
	On       bool
	Num, Den int32
	Client   Client
	Words    int64
	More     int64 // polls beyond those ended
}

type scriptItem struct { // what the processor does
	Polls bool
	D     Demand
	N     int64
}

type scenario struct {
	Spec   Spec
	Phase  des.Time
	End    int64
	Events []scriptEvent
	Items  []scriptItem
	Chain  [numEngines][]int64 // words of streams begun when one ends; 0: none
}

// fact is something that happened, the same in both.
type fact struct {
	What  string
	Cycle int64
	A, B  int64
}

type oracleStream struct {
	on, paced bool
	w         int64 // words in all; 0: no end
	p         pace
	k         int64 // cycles in which the pace went on
	asked     int64
	backlog   int64
	left      int64
}

func ceilDiv(a, b int64) int64 { return (a + b - 1) / b }

func oracle(sc *scenario) (facts []fact, usage Usage, granted [numEngines]int64) {
	clk, err := des.NewClock(sc.Spec.Clock, sc.Phase)
	if err != nil {
		panic(err)
	}
	var (
		streams [numEngines]oracleStream
		host    [numHostSources][2]int32
		chained [numEngines]int

		item        = -1
		kind        scriptItem
		busy        bool
		start       int64
		elapsed     int64
		got         int64
		done, limit int64
		took        [numEngines]int64
	)
	wire := sc.Spec.linkPace()
	begin := func(c Client, w int64) {
		s := &streams[c]
		s.on, s.paced, s.w, s.left, s.asked, s.k, s.p = true, true, w, w, 0, 0, wire
	}
	next := func(c int64) {
		item++
		if busy = item < len(sc.Items); busy {
			kind = sc.Items[item]
			start, elapsed, got, done, limit = c, 0, 0, 0, kind.N
			took = [numEngines]int64{}
		}
	}
	apply := func(c int64, ev scriptEvent) {
		switch ev.Kind {
		case scriptHost:
			host[ev.Source] = [2]int32{0, 1}
			if ev.On {
				host[ev.Source] = [2]int32{ev.Num, ev.Den}
			}
			s := &streams[EBus]
			s.k, s.asked, s.paced = 0, 0, false
			r := ratio(0, 1)
			for _, h := range host {
				if h[0] > 0 {
					s.paced = true
					r.Add(r, ratio(uint64(h[0]), uint64(h[1])))
				}
			}
			if s.paced {
				s.p = makePace(r.Mul(r, sc.Spec.busClocks(sc.Spec.Bus)))
			}
		case scriptStart:
			if !streams[ev.Client].on {
				begin(ev.Client, ev.Words)
			}
		case scriptLimit:
			if busy && kind.Polls {
				facts = append(facts, fact{"polls ended", c, done, 0})
				limit = done + ev.More
			}
		}
	}
	at := 0
	next(0)
	pollEnded := false
	for c := int64(0); c <= sc.End; c++ {
		// What ends at this boundary.
		if pollEnded {
			pollEnded = false
			done++
			if !kind.Polls || done == limit {
				a := int64(kind.D.Cycles)
				stall := c - start - done*a
				what := "box"
				if kind.Polls {
					what = "polls"
					usage.Polls += done
					usage.PollCycles += done * a
					usage.PollStall += stall
				} else {
					usage.Boxes++
					usage.BoxCycles += a
					usage.BoxStall += stall
				}
				var all, sum, given int64
				for _, n := range took {
					all += n
				}
				if all == 0 {
					usage.Stall[CPU] += stall
				}
				for e, n := range took {
					if all > 0 {
						sum += n
						usage.Stall[e] += stall*sum/all - given
						given = stall * sum / all
					}
				}
				facts = append(facts, fact{what, c, done, stall})
				next(c)
			} else {
				elapsed, got = 0, 0
			}
		}
		for e := Receive; e < CPU; e++ {
			if s := &streams[e]; s.on && s.left == 0 {
				s.on = false
				facts = append(facts, fact{e.String(), c, s.w, 0})
				if n := chained[e]; n < len(sc.Chain[e]) {
					chained[e]++
					if w := sc.Chain[e][n]; w > 0 {
						begin(e, w)
					}
				}
			}
		}
		for at < len(sc.Events) && sc.Events[at].At == clk.Edge(c) {
			apply(c, sc.Events[at])
			at++
		}
		// The cycle.
		left := int64(sc.Spec.Slots)
		for _, e := range sc.Spec.Order[:numEngines] {
			s := &streams[e]
			if s.paced && s.backlog+ceilDiv(int64(s.p.p), int64(s.p.q)) <= int64(sc.Spec.FIFO[e]) {
				s.k++
				d := ceilDiv(s.k*int64(s.p.p), int64(s.p.q))
				if e != EBus {
					d = min(d, s.w)
				}
				s.backlog += d - s.asked
				s.asked = d
				if e != EBus && d == s.w {
					s.paced = false
				}
			}
			g := min(s.backlog, left)
			left -= g
			s.backlog -= g
			s.left -= g
			took[e] += g
			granted[e] += g
		}
		if busy {
			n := int64(kind.D.Cycles)
			a := n + int64(kind.D.Accesses)
			elapsed++
			want := min(a, ceilDiv(elapsed*a, n)) - got
			got += min(want, left, 2)
			pollEnded = elapsed >= n && got == a
		}
		for at < len(sc.Events) && sc.Events[at].At < clk.Edge(c+1) {
			apply(c, sc.Events[at])
			at++
		}
	}
	return facts, usage, granted
}

// device runs the scenario on a card.
type device struct {
	sc      *scenario
	card    *Card
	e       *des.Engine
	item    int
	chained [numEngines]int
	facts   []fact
	timers  []des.Timer
}

type deviceStream struct {
	d *device
	c Client
}

func (s deviceStream) streamDone(now des.Time) error {
	d := s.d
	// The words are not known here; the oracle's are put in when comparing.
	d.facts = append(d.facts, fact{What: s.c.String(), Cycle: d.card.CycleAt(now)})
	if n := d.chained[s.c]; n < len(d.sc.Chain[s.c]) {
		d.chained[s.c]++
		if w := d.sc.Chain[s.c][n]; w > 0 {
			return d.card.Mem.start(now, s.c, w)
		}
	}
	return nil
}

func (d *device) next() error {
	d.item++
	if d.item >= len(d.sc.Items) {
		return nil
	}
	it := d.sc.Items[d.item]
	if it.Polls {
		return d.card.CPU.Poll(it.D, it.N)
	}
	return d.card.CPU.Run(it.D)
}

func (d *device) BoxEnd(now des.Time) error {
	d.facts = append(d.facts, fact{"box", d.card.CycleAt(now), 1, d.card.CPU.Stall()})
	return d.next()
}

func (d *device) PollsEnd(now des.Time) error {
	d.facts = append(d.facts, fact{"polls", d.card.CycleAt(now), d.card.CPU.PollsEnded(), d.card.CPU.Stall()})
	return d.next()
}

func (d *device) Handle(now des.Time, arg uint64) error {
	ev := d.sc.Events[arg]
	m := d.card.Mem
	switch ev.Kind {
	case scriptHost:
		return m.setHost(now, ev.Source, ev.On, ev.Num, ev.Den)
	case scriptStart:
		if !m.wire[ev.Client].active {
			return m.start(now, ev.Client, ev.Words)
		}
	case scriptLimit:
		if d.card.CPU.Polling() {
			n := d.card.CPU.PollsEnded()
			d.facts = append(d.facts, fact{"polls ended", m.clk.floor(now), n, 0})
			return d.card.CPU.LimitPolls(n + ev.More)
		}
	}
	return nil
}

func simulate(sc *scenario, o des.Options) (*device, error) {
	d := &device{sc: sc, item: -1}
	d.e = des.New(o)
	bus, err := pci.New(sc.Spec.Bus, d.e, nil)
	if err != nil {
		return nil, err
	}
	if d.card, err = New(sc.Spec, 0, sc.Phase, d.e, bus, nil); err != nil {
		return nil, err
	}
	d.card.CPU.Bind(d)
	for c := Receive; c < CPU; c++ {
		d.card.Mem.owner[c] = deviceStream{d, c}
	}
	d.timers = make([]des.Timer, len(sc.Events))
	for i := range sc.Events {
		d.timers[i].Init(d, PrioHardware, uint64(i))
		if err := d.e.Arm(&d.timers[i], sc.Events[i].At); err != nil {
			return nil, err
		}
	}
	if err := d.next(); err != nil {
		return nil, err
	}
	return d, d.e.RunUntil(context.Background(), d.card.TimeOf(sc.End))
}

func randomScenario(r *rand.Rand) *scenario {
	sc := &scenario{Spec: Lanai4()}
	s := &sc.Spec
	s.SRAMBytes = 4096
	clocks := []des.Frequency{
		{Num: 100_000_000, Den: 3}, {Num: 100_000_000, Den: 3}, {Num: 100_000_000, Den: 3},
		des.Hertz(132_000_000), des.Hertz(40_000_000), des.Hertz(9_000_000),
		{Num: 100_010_000, Den: 3}, des.Hertz(33_333_000), des.Hertz(61_357_000),
	}
	s.Clock = clocks[r.IntN(len(clocks))]
	if r.IntN(3) == 0 {
		s.Link = des.Rate{Num: uint64(1+r.IntN(300)) * 1_000_000, Den: 1}
	}
	if r.IntN(4) == 0 {
		s.Slots = 1 + r.IntN(4)
	}
	if r.IntN(3) == 0 {
		r.Shuffle(numEngines, func(i, j int) { s.Order[i], s.Order[j] = s.Order[j], s.Order[i] })
	}
	most := max(s.linkPace().most, s.busPace(s.Bus).most*4)
	for c := range numEngines {
		s.FIFO[c] = min(maxFIFO, int(most)+r.IntN(20))
		if r.IntN(4) == 0 {
			s.FIFO[c] = int(most)
		}
	}
	sc.Phase = des.Time(r.Int64N(40_000))
	sc.End = 200 + r.Int64N(1200)
	clk, err := des.NewClock(s.Clock, sc.Phase)
	if err != nil {
		panic(err)
	}
	starving := r.IntN(4) == 0
	for range r.IntN(24) {
		c := r.Int64N(sc.End)
		ev := scriptEvent{At: clk.Edge(c)}
		ev.Kind = scriptKind(r.IntN(3))
		exact := ev.Kind != scriptStart && r.IntN(3) == 0
		if !exact {
			ev.At += 1 + des.Time(r.Int64N(int64(clk.Edge(c+1)-ev.At-1)))
		}
		switch ev.Kind {
		case scriptHost:
			ev.Source = hostSource(r.IntN(2))
			ev.On = starving || r.IntN(2) == 0
			ev.Num, ev.Den = 1+r.Int32N(2), 1+r.Int32N(9)
			if starving {
				ev.Num, ev.Den = 1, 1
			}
		case scriptStart:
			ev.Client = Receive + Client(r.IntN(2))
			ev.Words = 1 + r.Int64N(400)
			if r.IntN(3) == 0 {
				ev.Words = 1 + r.Int64N(10)
			}
		case scriptLimit:
			ev.More = 1 + r.Int64N(6)
		}
		sc.Events = append(sc.Events, ev)
	}
	sort.SliceStable(sc.Events, func(i, j int) bool { return sc.Events[i].At < sc.Events[j].At })
	for c := Receive; c < CPU; c++ {
		for range r.IntN(8) {
			w := 1 + r.Int64N(100)
			if r.IntN(4) == 0 {
				w = 0
			}
			sc.Chain[c] = append(sc.Chain[c], w)
		}
	}
	for range 3 + r.IntN(60) {
		n := 1 + r.Int32N(140)
		if r.IntN(3) == 0 {
			n = 1 + r.Int32N(20)
		}
		it := scriptItem{Polls: r.IntN(2) == 0, D: Demand{Cycles: n, Accesses: r.Int32N(n + 1)}, N: 1}
		if r.IntN(3) == 0 {
			it.D.Accesses = n * r.Int32N(2)
		}
		if it.Polls {
			it.D.Cycles = 1 + r.Int32N(16)
			it.D.Accesses = r.Int32N(it.D.Cycles + 1)
			it.N = 1 + r.Int64N(60)
			if r.IntN(3) == 0 {
				it.N = Unbounded
			}
		}
		sc.Items = append(sc.Items, it)
	}
	return sc
}

func checkScenario(sc *scenario, o des.Options) error {
	want, usage, granted := oracle(sc)
	d, err := simulate(sc, o)
	if err != nil {
		return err
	}
	// At one boundary the order of a card's ends among themselves is free.
	byCycle := func(f []fact) {
		sort.SliceStable(f, func(i, j int) bool {
			if f[i].Cycle != f[j].Cycle {
				return f[i].Cycle < f[j].Cycle
			}
			return f[i].What < f[j].What
		})
	}
	for i := range want {
		if w := want[i].What; w == Receive.String() || w == Send.String() {
			want[i].A = 0
		}
	}
	byCycle(want)
	byCycle(d.facts)
	if diff := cmp.Diff(want, d.facts); diff != "" {
		return fmt.Errorf("facts (-oracle +card):\n%s", diff)
	}
	if diff := cmp.Diff(usage, d.card.CPU.Usage()); diff != "" {
		return fmt.Errorf("usage (-oracle +card):\n%s", diff)
	}
	// The oracle has stepped the cycle that begins at the end, too.
	for c := EBus; c < CPU; c++ {
		if n := d.card.Mem.Granted()[c]; n > granted[c] || n < granted[c]-int64(sc.Spec.Slots) {
			return fmt.Errorf("%v was granted %d accesses, the oracle says %d", c, n, granted[c])
		}
	}
	return nil
}

func TestMemoryBusAgainstCycleByCycle(t *testing.T) {
	n := testenv.Size(2_000, 12_000)
	for seed := range n {
		sc := randomScenario(rand.New(rand.NewPCG(uint64(seed), 7)))
		// Every third one with the events of one instant in random order,
		// unless the script itself has two at once.
		o := des.Options{RandomTies: seed%3 == 0, Seed: uint64(seed)}
		for i := 1; i < len(sc.Events); i++ {
			o.RandomTies = o.RandomTies && sc.Events[i].At != sc.Events[i-1].At
		}
		if err := checkScenario(sc, o); err != nil {
			t.Fatalf("seed %d: %v\nclock %v link %v slots %d order %v fifo %v\nevents %+v", seed, err, sc.Spec.Clock, sc.Spec.Link, sc.Spec.Slots, sc.Spec.Order, sc.Spec.FIFO, sc.Events)
		}
	}
}

// TestManyPacesAgainstCycleByCycle has more paces of the E-bus than there are
// names for, while the processor only polls, is looked at now and then, and runs
// boxes in between.
func TestManyPacesAgainstCycleByCycle(t *testing.T) {
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 3))
		sc := &scenario{Spec: Lanai4(), End: 12_000}
		sc.Spec.SRAMBytes = 4096
		clk, err := des.NewClock(sc.Spec.Clock, 0)
		if err != nil {
			t.Fatal(err)
		}
		paces := map[[2]int32]bool{}
		for c := int64(0); c < sc.End-10; c += 1 + r.Int64N(15) {
			ev := scriptEvent{At: clk.Edge(c) + 1 + des.Time(r.Int64N(20_000)), Kind: scriptHost, Source: hostSource(r.IntN(2))}
			ev.On, ev.Num, ev.Den = r.IntN(3) > 0, 1, 1+r.Int32N(500)
			paces[[2]int32{ev.Num, ev.Den}] = true
			switch r.IntN(8) {
			case 0:
				ev.Kind, ev.More = scriptLimit, 1+r.Int64N(4)
			case 1:
				ev.Kind, ev.Client, ev.Words = scriptStart, Receive+Client(r.IntN(2)), 1+r.Int64N(60)
			}
			sc.Events = append(sc.Events, ev)
		}
		for i := range 2000 {
			it := scriptItem{Polls: i%2 == 0, D: Demand{Cycles: 12, Accesses: 7}, N: Unbounded}
			if !it.Polls {
				it.D, it.N = Demand{Cycles: 1 + r.Int32N(60), Accesses: 1}, 1
			}
			sc.Items = append(sc.Items, it)
		}
		if len(paces) < 300 {
			t.Fatalf("%d paces: no test", len(paces))
		}
		if err := checkScenario(sc, des.Options{}); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}
