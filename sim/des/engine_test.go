package des

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
)

// handlerFunc makes a handler of a function.
type handlerFunc func(now Time, arg uint64) error

func (f handlerFunc) Handle(now Time, arg uint64) error { return f(now, arg) }

func must(tb testing.TB, err error) {
	if err != nil {
		tb.Helper()
		tb.Fatal(err)
	}
}

func TestPast(t *testing.T) {
	e := New(Options{})
	must(t, e.RunUntil(context.Background(), 55*Microsecond))
	nop := handlerFunc(func(Time, uint64) error { return nil })
	var timer, blank Timer
	timer.Init(nop, 0, 0)
	must(t, e.Arm(&timer, Second))
	for name, err := range map[string]error{
		"schedule an event at 54 µs while the time is 55 µs": e.Schedule(54*Microsecond, 0, nop, 0),
		"schedule an event at 54 µs while the time is 55":    e.After(-Microsecond, 0, nop, 0),
		"arm a timer at 30 ns while the time is 55 µs":       e.Arm(&timer, 30*Nanosecond),
		"arm a timer at 54.999999 µs while the time":         e.ArmAfter(&timer, -1),
		"run until 1 ps while the time is 55 µs":             e.RunUntil(context.Background(), 1),
	} {
		if !errors.Is(err, ErrPast) || !strings.Contains(err.Error(), name) {
			t.Errorf("%v, want %s", err, name)
		}
	}
	for _, err := range []error{e.After(MaxTime, 0, nop, 0), e.ArmAfter(&timer, MaxTime)} {
		if !errors.Is(err, ErrRange) || !strings.Contains(err.Error(), "after 55 µs: event time beyond") {
			t.Errorf("delay out of time: %v", err)
		}
	}
	for _, err := range []error{e.Schedule(Second, 0, nil, 0), e.Arm(&blank, Second)} {
		if !errors.Is(err, ErrNoHandler) {
			t.Errorf("no handler: %v", err)
		}
	}
	if !timer.Armed() || timer.At() != Second || e.Pending() != 1 {
		t.Errorf("refusals changed the timer: %v, %v, %d pending", timer.Armed(), timer.At(), e.Pending())
	}
	if e.Advance(Microsecond, 0) {
		t.Error("advanced into the past")
	}
}

func TestHandlerError(t *testing.T) {
	boom := errors.New("boom")
	run := map[string]func(*Engine) error{
		"Run":      func(e *Engine) error { return e.Run(context.Background()) },
		"RunUntil": func(e *Engine) error { return e.RunUntil(context.Background(), Second) },
		"RunWhile": func(e *Engine) error { return e.RunWhile(context.Background(), func() bool { return true }) },
		"Step": func(e *Engine) error {
			if _, err := e.Step(); err != nil {
				return err
			}
			_, err := e.Step()
			return err
		},
	}
	for name, run := range run {
		e := New(Options{})
		ran := 0
		h := handlerFunc(func(now Time, arg uint64) error {
			ran++
			if arg == 2 {
				return boom
			}
			return nil
		})
		for i := range uint64(3) {
			must(t, e.Schedule(Time(i+1)*Nanosecond, 0, h, i+1))
		}
		if err := run(e); err != boom {
			t.Errorf("%s: %v, want the handler's error as it is", name, err)
		}
		if e.Now() != 2*Nanosecond || ran != 2 || e.Pending() != 1 {
			t.Errorf("%s: at %v after %d events with %d pending", name, e.Now(), ran, e.Pending())
		}
		must(t, e.Run(context.Background()))
		if ran != 3 {
			t.Errorf("%s: the run cannot go on", name)
		}
	}
}

func TestRuns(t *testing.T) {
	bg := context.Background()
	newEngine := func(each func(e *Engine, now Time)) *Engine {
		e := New(Options{})
		var h handlerFunc
		h = func(now Time, arg uint64) error {
			if each != nil {
				each(e, now)
			}
			return e.After(10, 0, h, arg)
		}
		must(t, e.Schedule(10, 0, h, 0))
		return e
	}
	t.Run("until", func(t *testing.T) {
		var times []Time
		e := newEngine(func(_ *Engine, now Time) { times = append(times, now) })
		must(t, e.RunUntil(bg, 30)) // the end is included
		if diff := cmp.Diff([]Time{10, 20, 30}, times); diff != "" || e.Now() != 30 {
			t.Errorf("at %v: %s", e.Now(), diff)
		}
		must(t, e.RunUntil(bg, 35))
		if len(times) != 3 || e.Now() != 35 {
			t.Errorf("at %v after %v", e.Now(), times)
		}
		if at, _, ok := e.Peek(); at != 40 || !ok {
			t.Errorf("next at %v, %v", at, ok)
		}
	})
	t.Run("nothing pending", func(t *testing.T) {
		e := New(Options{})
		must(t, e.Run(bg))
		if e.Now() != 0 {
			t.Errorf("a run without end ended at %v", e.Now())
		}
		must(t, e.RunUntil(bg, 7))
		if ok, err := e.Step(); ok || err != nil || e.Now() != 7 {
			t.Errorf("Step = %v, %v at %v", ok, err, e.Now())
		}
		if _, _, ok := e.Peek(); ok {
			t.Error("Peek sees an event where there is none")
		}
	})
	t.Run("while", func(t *testing.T) {
		n := 0
		e := newEngine(func(e *Engine, now Time) {
			n++
			if e.Advance(now+1, 0) {
				t.Error("an event was hidden from the condition")
			}
		})
		must(t, e.RunWhile(bg, func() bool { return n < 5 }))
		if e.Now() != 50 || n != 5 {
			t.Errorf("at %v after %d events", e.Now(), n)
		}
		must(t, e.RunWhile(bg, func() bool { return false }))
		if n != 5 {
			t.Error("a false condition let an event run")
		}
		must(t, New(Options{}).RunWhile(bg, func() bool { return true }))
	})
	t.Run("stop", func(t *testing.T) {
		e := newEngine(func(e *Engine, now Time) {
			if now == 50 {
				e.Stop()
				if e.Advance(now+1, 0) {
					t.Error("advanced after Stop")
				}
			}
		})
		e.Stop() // outside a run: no effect
		must(t, e.Run(bg))
		if e.Now() != 50 {
			t.Errorf("stopped at %v", e.Now())
		}
		must(t, e.RunWhile(bg, func() bool { return e.Now() < 70 }))
		if e.Now() != 70 {
			t.Errorf("went on to %v", e.Now())
		}
	})
	t.Run("context", func(t *testing.T) {
		for name, run := range map[string]func(*Engine, context.Context) error{
			"Run":      (*Engine).Run,
			"RunWhile": func(e *Engine, ctx context.Context) error { return e.RunWhile(ctx, func() bool { return true }) },
		} {
			ctx, cancel := context.WithCancel(bg)
			n := 0
			e := newEngine(func(e *Engine, now Time) {
				if n++; n == 10_000 {
					cancel()
				}
			})
			if err := run(e, ctx); !errors.Is(err, context.Canceled) || n < 10_000 || n > 10_000+2*pauseEvery {
				t.Errorf("%s: %v after %d events", name, err, n)
			}
			if err := run(e, ctx); !errors.Is(err, context.Canceled) {
				t.Errorf("%s: a cancelled context does not keep a run from starting: %v", name, err)
			}
			must(t, e.RunUntil(bg, e.Now()+10))
		}
	})
	t.Run("context of an inline run", func(t *testing.T) {
		// One component alone, which Advance would serve for ever.
		ctx, cancel := context.WithCancel(bg)
		e := New(Options{})
		n := 0
		var h handlerFunc
		h = func(now Time, arg uint64) error {
			for {
				if n++; n == 10_000 {
					cancel()
				}
				now += 10
				if !e.Advance(now, 0) {
					return e.Schedule(now, 0, h, 0)
				}
			}
		}
		must(t, e.Schedule(0, 0, h, 0))
		if err := e.Run(ctx); !errors.Is(err, context.Canceled) || n > 10_000+2*pauseEvery {
			t.Errorf("%v after %d steps", err, n)
		}
	})
	t.Run("nested", func(t *testing.T) {
		e := New(Options{})
		must(t, e.Schedule(5, 0, handlerFunc(func(Time, uint64) error {
			_, errStep := e.Step()
			for _, err := range []error{errStep, e.Run(bg), e.RunWhile(bg, func() bool { return true })} {
				if !errors.Is(err, ErrRunning) {
					t.Errorf("nested run: %v", err)
				}
			}
			return nil
		}), 0))
		must(t, e.Run(bg))
	})
	t.Run("panic", func(t *testing.T) {
		e := New(Options{})
		must(t, e.Schedule(5, 0, handlerFunc(func(Time, uint64) error { panic("model") }), 0))
		func() {
			defer func() { _ = recover() }()
			_ = e.Run(bg)
		}()
		must(t, e.RunUntil(bg, 10))
	})
}

// TestAdvance is the bound up to which a component may run inline.
func TestAdvance(t *testing.T) {
	for _, shuffle := range []bool{false, true} {
		e := New(Options{RandomTies: shuffle, Seed: 1})
		nop := handlerFunc(func(Time, uint64) error { return nil })
		var timer Timer
		timer.Init(nop, 3, 0)
		must(t, e.Arm(&timer, 100))
		steps := []struct {
			at   Time
			prio Priority
			want bool
		}{
			{50, 9, true}, {50, 0, true}, {49, 0, false}, {99, 9, true},
			{101, 0, false}, {100, 3, false}, {100, 4, false}, {100, 2, true}, {100, 2, true},
		}
		for _, s := range steps {
			before := e.Now()
			got := e.Advance(s.at, s.prio)
			if got != s.want || got && e.Now() != s.at || !got && e.Now() != before {
				t.Errorf("shuffle %v: Advance(%v, %d) = %v at %v", shuffle, s.at, s.prio, got, e.Now())
			}
		}
		e.Cancel(&timer)
		if !e.Advance(200, 0) {
			t.Error("a cancelled timer still bounds Advance")
		}
		must(t, e.Schedule(300, 0, handlerFunc(func(now Time, _ uint64) error {
			for at, want := range map[Time]bool{400: true, 401: false} {
				if got := e.Advance(at, 0); got != want {
					t.Errorf("limit 400: Advance(%v) = %v", at, got)
				}
			}
			return nil
		}), 0))
		must(t, e.RunUntil(context.Background(), 400))
	}
}

// TestAdvanceIsStepping runs components that step inline where they can and
// components that always arm a timer, and wants the same order of events,
// ties and their shuffle included.
func TestAdvanceIsStepping(t *testing.T) {
	type shot struct {
		Now Time
		ID  uint64
	}
	record := func(inline, shuffle bool) (out []shot) {
		e := New(Options{RandomTies: shuffle, Seed: 5})
		timers := make([]Timer, 5)
		for i := range timers {
			s := NewStream(uint64(i), "steps")
			prio := Priority(i % 2)
			t := &timers[i]
			t.Init(handlerFunc(func(now Time, id uint64) error {
				for {
					out = append(out, shot{now, id})
					if now > 20_000 {
						return nil
					}
					next := now + Time(s.IntN(20)*s.IntN(2)*s.IntN(10))
					if s.IntN(3) == 0 { // somebody else's event
						if err := e.Schedule(next+3, 0, handlerFunc(func(now Time, id uint64) error {
							out = append(out, shot{now, id})
							return nil
						}), id+100); err != nil {
							return err
						}
					}
					if !inline || !e.Advance(next, prio) {
						return e.Arm(t, next)
					}
					now = next
				}
			}), prio, uint64(i))
			must(nil, e.Arm(t, Time(i)))
		}
		must(nil, e.Run(context.Background()))
		return out
	}
	for _, shuffle := range []bool{false, true} {
		stepped, inline := record(false, shuffle), record(true, shuffle)
		if len(stepped) < 1000 {
			t.Fatalf("only %d events", len(stepped))
		}
		if !slices.Equal(stepped, inline) {
			t.Errorf("shuffle %v: inline and stepped runs differ", shuffle)
		}
	}
}

// TestMillionsOfTies has two million events at one time, of two priorities,
// half of them scheduled while the others already run.
func TestMillionsOfTies(t *testing.T) {
	const n = 1_000_000 / raceFactor
	for _, shuffle := range []bool{false, true} {
		e := New(Options{RandomTies: shuffle, Seed: 11})
		got := make([]uint32, 0, 2*n)
		var h handlerFunc
		h = func(now Time, arg uint64) error {
			got = append(got, uint32(arg))
			if arg < n {
				return e.Schedule(now, Priority(1+arg&1), h, n+arg)
			}
			return nil
		}
		for i := range uint64(n) {
			must(t, e.Schedule(Second, Priority(1+i&1), h, i))
		}
		must(t, e.Run(context.Background()))
		if e.Now() != Second || len(got) != 2*n {
			t.Fatalf("%d events, at %v", len(got), e.Now())
		}
		if shuffle {
			// Priorities hold; within one, the order is not the sequence.
			if i := slices.IndexFunc(got, func(v uint32) bool { return v&1 == 1 }); i != n {
				t.Errorf("first event of the second priority is number %d", i)
			}
			if slices.IsSorted(got[:n]) {
				t.Error("ties fell in sequence")
			}
			slices.Sort(got)
			for i, v := range got {
				if v != uint32(i) {
					t.Fatalf("event %d ran not once", i)
				}
			}
			continue
		}
		// Even events first, those scheduled meanwhile behind them, then odd.
		for i, v := range got {
			if want := uint32(2*(i%n) + i/n); v != want {
				t.Fatalf("event number %d is %d, want %d", i, v, want)
			}
		}
	}
}

// TestRandomTies checks that the shuffle depends on the seed alone and keeps
// apart what differs in time or priority.
func TestRandomTies(t *testing.T) {
	run := func(o Options) (out []uint64) {
		e := New(o)
		h := handlerFunc(func(_ Time, arg uint64) error { out = append(out, arg); return nil })
		for i := range uint64(600) {
			must(t, e.Schedule(Time(i%3), Priority(i%2), h, i))
		}
		must(t, e.Run(context.Background()))
		return out
	}
	class := func(v uint64) uint64 { return v%3*2 + v%2 }
	plain, a, again, b := run(Options{}), run(Options{RandomTies: true, Seed: 1}), run(Options{RandomTies: true, Seed: 1}), run(Options{RandomTies: true, Seed: 2})
	if !slices.Equal(a, again) {
		t.Error("one seed gives two orders")
	}
	if slices.Equal(a, b) || slices.Equal(a, plain) {
		t.Error("nothing is shuffled")
	}
	if !slices.Equal(plain, run(Options{Seed: 9})) {
		t.Error("a seed shuffles without RandomTies")
	}
	for _, order := range [][]uint64{plain, a, b} {
		if !slices.IsSortedFunc(order, func(x, y uint64) int { return int(class(x)) - int(class(y)) }) {
			t.Error("events of different time or priority changed places")
		}
	}
}

// trace runs a hold model of n events and returns a digest of their order.
func trace(n, events int, o Options) uint64 {
	e := New(o)
	s := NewStream(4, "trace")
	digest := uint64(14695981039346656037)
	left := events
	var h handlerFunc
	h = func(now Time, arg uint64) error {
		digest = (digest ^ uint64(now) ^ arg<<40) * 1099511628211
		if left--; left < 0 {
			return nil
		}
		return e.After(s.Uniform(0, 1000), Priority(arg%3), h, arg)
	}
	for i := range n {
		must(nil, e.Schedule(0, 0, h, uint64(i)))
	}
	must(nil, e.Run(context.Background()))
	return digest
}

func TestSameOrderOnAnyProcessors(t *testing.T) {
	for _, o := range []Options{{}, {RandomTies: true, Seed: 3}} {
		old := runtime.GOMAXPROCS(1)
		one := trace(3000, 100_000, o)
		runtime.GOMAXPROCS(2)
		two := trace(3000, 100_000, o)
		runtime.GOMAXPROCS(old)
		if one != two {
			t.Errorf("%+v: order differs between one and two processors", o)
		}
		// Side by side, which the race detector watches.
		var digest [2]uint64
		var wg sync.WaitGroup
		for i := range digest {
			wg.Go(func() { digest[i] = trace(3000, 100_000, o) })
		}
		wg.Wait()
		if digest != [2]uint64{one, one} {
			t.Errorf("%+v: order differs between engines side by side", o)
		}
	}
}

func TestEndOfTime(t *testing.T) {
	e := New(Options{})
	var got []Time
	h := handlerFunc(func(now Time, _ uint64) error { got = append(got, now); return nil })
	want := []Time{0, 1, Second, MaxTime / 2, MaxTime - 1, MaxTime}
	for _, at := range []Time{MaxTime, Second, 0, MaxTime - 1, 1, MaxTime / 2} {
		must(t, e.Schedule(at, 0, h, 0))
	}
	must(t, e.Run(context.Background()))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if err := e.After(1, 0, h, 0); !errors.Is(err, ErrRange) {
		t.Errorf("beyond the end of time: %v", err)
	}
}

// TestAllocs asserts that an engine that has settled allocates nothing: not
// for one-shot events, nor for timers that expire, move and are cancelled.
func TestAllocs(t *testing.T) {
	for _, n := range []int{1, 16, 1000, 100_000 / raceFactor} {
		h := newHolder(t, n)
		if got := testing.AllocsPerRun(3, func() { h.run(t, 20_000) }); got != 0 {
			t.Errorf("hold N=%d: %v allocations in 20,000 events", n, got)
		}
	}
	c := &chain{e: New(Options{})}
	c.run(t, 1000)
	if got := testing.AllocsPerRun(3, func() { c.run(t, 20_000) }); got != 0 {
		t.Errorf("chain: %v allocations in 20,000 events", got)
	}
	m := newMover(t, 1000)
	m.churn(t, 50_000)
	if got := testing.AllocsPerRun(3, func() { m.churn(t, 20_000) }); got != 0 {
		t.Errorf("timers: %v allocations in 20,000 operations", got)
	}
}

// TestTimerFillsOneCacheLine keeps the record of an event from growing past
// what one cache miss fetches.
func TestTimerFillsOneCacheLine(t *testing.T) {
	if size := unsafe.Sizeof(Timer{}); size > 64 {
		t.Errorf("a timer takes %d bytes", size)
	}
}

// TestCancelLeavesNothing arms and cancels far more often than there are
// timers, at distances that reach every structure, without time moving on.
func TestCancelLeavesNothing(t *testing.T) {
	m := newMover(t, 100)
	s := NewStream(1, "distances")
	for range 200_000 {
		i := s.IntN(len(m.timers))
		must(t, m.e.Arm(&m.timers[i], m.e.Now()+Time(s.Uint64()>>(1+s.Uint64N(63)))/2))
		m.e.Cancel(&m.timers[s.IntN(len(m.timers))])
	}
	if got := cap(m.e.far); got > 4*len(m.timers) {
		t.Errorf("heap grew to %d entries for %d timers", got, len(m.timers))
	}
	if got := len(m.e.wheel.slots); got > 8*len(m.timers) {
		t.Errorf("wheel grew to %d buckets for %d timers", got, len(m.timers))
	}
	for i := range m.timers {
		m.e.Cancel(&m.timers[i])
	}
	if m.e.Pending() != 0 {
		t.Errorf("%d pending after all were cancelled", m.e.Pending())
	}
	if at, _, ok := m.e.Peek(); ok {
		t.Errorf("an event at %v after all were cancelled", at)
	}
}

// TestTuning checks that the wheel adapts: whatever the number of events and
// however their rate changes, once settled few of them wait in the heap, and
// buckets hold about one.
func TestTuning(t *testing.T) {
	for _, n := range []int{16, 300, 5000, 100_000 / raceFactor} {
		e := New(Options{})
		s := NewStream(2, "tuning")
		var span Time
		var left int
		var h handlerFunc
		h = func(now Time, arg uint64) error {
			if left--; left < 0 {
				e.Stop()
			}
			return e.After(s.Uniform(1, span), 0, h, arg)
		}
		for _, scale := range []Time{1, 1000, 1000 * Microsecond} {
			span = Time(n) * 10 * scale
			for e.Pending() < n {
				must(t, e.After(s.Uniform(1, span), 0, h, 0))
			}
			left = 12*n + 8*minCredit
			must(t, e.Run(context.Background()))
			if len(e.far) > n/8+1 {
				t.Errorf("N=%d, scale %v: %d events in the heap", n, scale, len(e.far))
			}
			width := float64(int64(1) << e.wheel.shift)
			if perBucket := width * float64(n) / (float64(span) / 2); perBucket > 2 {
				t.Errorf("N=%d, scale %v: %.3g events a bucket", n, scale, perBucket)
			}
		}
	}
}

// TestTuningWhileGrowing lets the number of events grow a hundredfold during a
// run, after a long stretch of ties that tell nothing about the rate.
func TestTuningWhileGrowing(t *testing.T) {
	e := New(Options{})
	s := NewStream(2, "growing")
	ties, target, left := 20_000, 10_000, 200_000
	var last Time
	var h handlerFunc
	h = func(now Time, arg uint64) error {
		if now < last {
			t.Fatalf("time went back from %v to %v", last, now)
		}
		last = now
		if ties > 0 {
			ties--
			return e.Schedule(now, 0, h, arg)
		}
		if left--; left < 0 {
			return nil
		}
		if e.Pending() < target {
			if err := e.After(s.Uniform(1, Millisecond), 0, h, arg); err != nil {
				return err
			}
		}
		return e.After(s.Uniform(1, Millisecond), 0, h, arg)
	}
	for range 100 {
		must(t, e.Schedule(5, 0, h, 0))
	}
	must(t, e.RunWhile(context.Background(), func() bool { return left > 0 }))
	if e.Pending() != target+1 || len(e.far) > target/8 || len(e.wheel.slots) < target {
		t.Errorf("%d pending, %d of them in the heap, %d buckets", e.Pending(), len(e.far), len(e.wheel.slots))
	}
	must(t, e.Run(context.Background()))
}
