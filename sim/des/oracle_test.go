package des

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// oracleEvent is an event of the oracle.
type oracleEvent struct {
	at    Time
	prio  Priority
	ord   uint64
	timer int // index of the timer, or -1 for a one-shot event
	arg   uint64
}

// oracle is the engine as it would be written without a thought of speed: a
// slice that is sorted anew after each change.
type oracle struct {
	now     Time
	limit   Time // of the RunUntil in progress
	seq     uint64
	shuffle bool
	key     uint64
	list    []oracleEvent
}

func (o *oracle) sort() {
	slices.SortFunc(o.list, func(a, b oracleEvent) int {
		switch {
		case a.at != b.at:
			return int(min(max(a.at-b.at, -1), 1))
		case a.prio != b.prio:
			return int(a.prio) - int(b.prio)
		case a.ord < b.ord:
			return -1
		default:
			return 1
		}
	})
}

func (o *oracle) add(at Time, prio Priority, timer int, arg uint64) {
	ord := o.seq
	o.seq++
	if o.shuffle {
		id := ord | 1<<63
		if timer >= 0 {
			id = uint64(timer)
		}
		ord = scramble(id ^ scramble(o.key^uint64(at)))
	}
	o.list = append(o.list, oracleEvent{at, prio, ord, timer, arg})
	o.sort()
}

func (o *oracle) drop(timer int) {
	o.list = slices.DeleteFunc(o.list, func(v oracleEvent) bool { return v.timer == timer })
}

func (o *oracle) find(timer int) *oracleEvent {
	for i := range o.list {
		if o.list[i].timer == timer {
			return &o.list[i]
		}
	}
	return nil
}

func (o *oracle) advance(at Time, prio Priority) bool {
	if at < o.now || at > o.limit {
		return false
	}
	for _, v := range o.list {
		if v.at < at || v.at == at && v.prio <= prio {
			return false
		}
	}
	o.now = at
	o.seq++
	return true
}

// event is what a run shows of one event.
type event struct {
	At    Time
	Timer int
	Arg   uint64
}

// twin drives an engine and the oracle with the same random operations, half
// of them from within handlers, and compares after each.
type twin struct {
	t      *testing.T
	rng    *rand.Rand
	e      *Engine
	o      *oracle
	timers []Timer
	span   func() Time // how far ahead events are put
	grow   int         // operations in excess of one an event
	got    event
	next   uint64
}

// twinTimer is the handler of one timer, or of the one-shot events (-1).
type twinTimer struct {
	w  *twin
	id int
}

func (h twinTimer) Handle(now Time, arg uint64) error {
	w := h.w
	w.got = event{now, h.id, arg}
	first := w.o.list[0]
	w.o.list = w.o.list[1:]
	w.o.now = first.at
	if diff := cmp.Diff(event{first.at, first.timer, first.arg}, w.got); diff != "" {
		return fmt.Errorf("event out of order (-oracle +engine):\n%s", diff)
	}
	if len(w.o.list) < 400 {
		for range w.rng.IntN(2 + w.grow) {
			w.operate()
		}
	}
	return nil
}

func (w *twin) operate() {
	at := w.o.now + w.span()
	i := w.rng.IntN(len(w.timers))
	fail := func(err error) {
		if err != nil {
			w.t.Helper()
			w.t.Fatal(err)
		}
	}
	switch w.rng.IntN(10) {
	case 0, 1, 2:
		w.next++
		prio := Priority(w.rng.IntN(3))
		fail(w.e.Schedule(at, prio, twinTimer{w, -1}, w.next))
		w.o.add(at, prio, -1, w.next)
	case 3, 4, 5:
		w.o.drop(i)
		fail(w.e.Arm(&w.timers[i], at))
		w.o.add(at, w.timers[i].prio, i, w.timers[i].arg)
	case 6:
		w.o.drop(i)
		w.e.Cancel(&w.timers[i])
	case 7:
		prio := Priority(w.rng.IntN(3))
		at = w.o.now + min(w.span(), w.span(), w.span())
		// A long run refuses now and then to look at its context.
		want := w.e.seq < w.e.pause && w.o.advance(at, prio)
		if got := w.e.Advance(at, prio); got != want {
			w.t.Fatalf("at %v: Advance(%v, %d) = %v, want %v", w.o.now, at, prio, got, want)
		}
	case 8:
		at, prio, ok := w.e.Peek()
		var want oracleEvent
		if len(w.o.list) > 0 {
			want = w.o.list[0]
		}
		if ok != (len(w.o.list) > 0) || at != want.at || prio != want.prio {
			w.t.Fatalf("at %v: Peek = %v, %d, %v, want %+v", w.o.now, at, prio, ok, want)
		}
	case 9:
		v := w.o.find(i)
		if w.timers[i].Armed() != (v != nil) {
			w.t.Fatalf("timer %d: Armed %v, want %v", i, w.timers[i].Armed(), v != nil)
		}
		if v != nil && w.timers[i].At() != v.at {
			w.t.Fatalf("timer %d: At %v, want %v", i, w.timers[i].At(), v.at)
		}
	}
	if w.e.Now() != w.o.now || w.e.Pending() != len(w.o.list) {
		w.t.Fatalf("engine at %v with %d pending, want %v with %d", w.e.Now(), w.e.Pending(), w.o.now, len(w.o.list))
	}
}

// TestOracle compares the engine with the oracle under random operations, for
// loads that exercise each structure: ties, crowds within a bucket, rings that
// are outgrown, and events far beyond the ring.
func TestOracle(t *testing.T) {
	spans := []struct {
		name string
		span func(r *rand.Rand) Time
	}{
		{"ties", func(r *rand.Rand) Time { return Time(r.IntN(3)) }},
		{"clocked", func(r *rand.Rand) Time { return 30000 * Time(r.IntN(4)) }},
		{"uniform", func(r *rand.Rand) Time { return Time(r.IntN(1 << 20)) }},
		{"narrow", func(r *rand.Rand) Time { return Time(r.IntN(500)) }},
		{"all scales", func(r *rand.Rand) Time { return Time(r.Uint64N(1<<r.UintN(45)) + 1) }},
		{"far and near", func(r *rand.Rand) Time {
			return Time(r.IntN(100)) + Time(r.IntN(8)/7)*Second
		}},
		{"bursts", func(r *rand.Rand) Time {
			return Time(r.IntN(2))*Microsecond + Time(r.IntN(2)*r.IntN(2)*r.IntN(1<<24))
		}},
	}
	for _, s := range spans {
		for _, shuffle := range []bool{false, true} {
			for grow := range 3 {
				t.Run(fmt.Sprintf("%s/shuffle=%v/grow=%d", s.name, shuffle, grow), func(t *testing.T) {
					rng := rand.New(rand.NewPCG(uint64(grow), 7))
					e := New(Options{RandomTies: shuffle, Seed: 99})
					w := &twin{t: t, rng: rng, e: e, o: &oracle{limit: MaxTime, shuffle: shuffle, key: scramble(99)},
						timers: make([]Timer, 1+rng.IntN(200)), grow: 2 * grow}
					w.span = func() Time { return s.span(rng) }
					for i := range w.timers {
						w.timers[i].Init(twinTimer{w, i}, Priority(i%3), uint64(i)*1000)
						e.Adopt(&w.timers[i])
					}
					for n := 0; n < 1500/raceFactor; n++ {
						if n < 50 || rng.IntN(4) == 0 || len(w.o.list) == 0 {
							w.operate()
							continue
						}
						if rng.IntN(20) == 0 && s.name != "ties" { // there, few events move time on
							end := w.o.now + w.span()
							w.o.limit = end
							if err := e.RunUntil(context.Background(), end); err != nil {
								t.Fatal(err)
							}
							w.o.now, w.o.limit = end, MaxTime
							continue
						}
						if ok, err := e.Step(); err != nil || !ok {
							t.Fatal(ok, err)
						}
					}
					for len(w.o.list) > 0 {
						w.grow = -1 // handlers do at most nothing
						if _, err := e.Step(); err != nil {
							t.Fatal(err)
						}
					}
					if ok, err := e.Step(); ok || err != nil {
						t.Fatal("engine holds more events than the oracle", err)
					}
				})
			}
		}
	}
}
