package des

import (
	"context"
	"fmt"
	"testing"
)

// holder is the hold model: each event schedules one event 1 … 2^20 ps later,
// uniformly, so that the number of pending events stays what it was.
type holder struct {
	e     *Engine
	state uint64
	left  int
}

func (h *holder) next() uint64 {
	x := h.state
	x ^= x << 13
	x ^= x >> 7
	x ^= x << 17
	h.state = x
	return x
}

func (h *holder) Handle(now Time, arg uint64) error {
	if h.left--; h.left == 0 {
		h.e.Stop()
	}
	return h.e.Schedule(now+1+Time(h.next()&(1<<20-1)), 0, h, arg)
}

// newHolder starts a hold model with n pending events and runs it until the
// engine has settled.
func newHolder(tb testing.TB, n int) *holder {
	h := &holder{e: New(Options{}), state: 88172645463325252}
	for i := range n {
		if err := h.e.Schedule(1+Time(h.next()&(1<<20-1)), 0, h, uint64(i)); err != nil {
			tb.Fatal(err)
		}
	}
	h.run(tb, 10*n+100_000)
	return h
}

func (h *holder) run(tb testing.TB, events int) {
	h.left = events
	if err := h.e.Run(context.Background()); err != nil {
		tb.Fatal(err)
	}
}

// chain is one event that schedules itself again.
type chain struct {
	e    *Engine
	left int
}

func (c *chain) Handle(now Time, arg uint64) error {
	if c.left--; c.left <= 0 {
		return nil
	}
	return c.e.Schedule(now+30*Nanosecond, 0, c, arg)
}

func (c *chain) run(tb testing.TB, events int) {
	c.left = events
	if err := c.e.Schedule(c.e.Now()+1, 0, c, 0); err != nil {
		tb.Fatal(err)
	}
	if err := c.e.Run(context.Background()); err != nil {
		tb.Fatal(err)
	}
}

func reportEvents(b *testing.B) {
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
}

func BenchmarkHold(b *testing.B) {
	b.Run("chain", func(b *testing.B) {
		c := &chain{e: New(Options{})}
		b.ReportAllocs()
		c.run(b, b.N)
		reportEvents(b)
	})
	for _, n := range []int{16, 1000, 100_000} {
		b.Run(fmt.Sprintf("N=%d", n), func(b *testing.B) {
			h := newHolder(b, n)
			b.ReportAllocs()
			b.ResetTimer()
			h.run(b, b.N)
			reportEvents(b)
		})
	}
}

// mover owns timers that are armed, moved and cancelled at random.
type mover struct {
	e      *Engine
	timers []Timer
	state  holder // its generator only
}

func (m *mover) Handle(now Time, arg uint64) error {
	return m.e.Arm(&m.timers[arg], now+1+Time(m.state.next()&(1<<20-1)))
}

func newMover(tb testing.TB, n int) *mover {
	m := &mover{e: New(Options{}), timers: make([]Timer, n), state: holder{state: 88172645463325252}}
	for i := range m.timers {
		m.timers[i].Init(m, 0, uint64(i))
		if err := m.Handle(0, uint64(i)); err != nil {
			tb.Fatal(err)
		}
	}
	return m
}

// churn moves timers, cancels every fourth and arms it again, and lets one in
// four expire.
func (m *mover) churn(tb testing.TB, operations int) {
	for i := range operations {
		x := m.state.next()
		t := &m.timers[x%uint64(len(m.timers))]
		switch i % 4 {
		case 0:
			m.e.Cancel(t)
			fallthrough
		case 1, 2:
			if err := m.e.Arm(t, m.e.Now()+1+Time(x>>44)); err != nil {
				tb.Fatal(err)
			}
		case 3:
			if _, err := m.e.Step(); err != nil {
				tb.Fatal(err)
			}
		}
	}
}

// BenchmarkTimer measures timers that their owners keep: expire is the hold
// model with Arm in place of Schedule; move re-arms a pending timer; cancel
// cancels one and arms it again.
func BenchmarkTimer(b *testing.B) {
	for _, n := range []int{16, 1000, 100_000} {
		b.Run(fmt.Sprintf("expire/N=%d", n), func(b *testing.B) {
			m := newMover(b, n)
			expire := func(events int) {
				if err := m.e.RunWhile(context.Background(), func() bool { events--; return events >= 0 }); err != nil {
					b.Fatal(err)
				}
			}
			expire(10*n + 100_000)
			b.ReportAllocs()
			b.ResetTimer()
			expire(b.N)
			reportEvents(b)
		})
		b.Run(fmt.Sprintf("move/N=%d", n), func(b *testing.B) {
			m := newMover(b, n)
			m.churn(b, 10*n)
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				x := m.state.next()
				if err := m.e.Arm(&m.timers[x%uint64(n)], m.e.Now()+1+Time(x>>44)); err != nil {
					b.Fatal(err)
				}
			}
			reportEvents(b)
		})
		b.Run(fmt.Sprintf("cancel/N=%d", n), func(b *testing.B) {
			m := newMover(b, n)
			m.churn(b, 10*n)
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				x := m.state.next()
				t := &m.timers[x%uint64(n)]
				m.e.Cancel(t)
				if err := m.e.Arm(t, m.e.Now()+1+Time(x>>44)); err != nil {
					b.Fatal(err)
				}
			}
			reportEvents(b)
		})
	}
}

// BenchmarkAdvance is a component that runs inline, with another's timer far
// ahead.
func BenchmarkAdvance(b *testing.B) {
	e := New(Options{})
	var far Timer
	far.Init(&holder{e: e}, 0, 0)
	if err := e.Arm(&far, MaxTime); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		if !e.Advance(e.Now()+30*Nanosecond, 0) {
			b.Fatal("refused")
		}
	}
	reportEvents(b)
}

// BenchmarkTies is bursts of simultaneous events.
func BenchmarkTies(b *testing.B) {
	for _, n := range []int{16, 1000, 100_000} {
		b.Run(fmt.Sprintf("N=%d", n), func(b *testing.B) {
			e := New(Options{})
			left := 0
			var h handlerFunc
			h = func(now Time, arg uint64) error {
				if left--; left <= 0 {
					e.Stop()
				}
				return e.Schedule(now+30*Nanosecond, Priority(arg&3), h, arg)
			}
			for i := range n {
				must(b, e.Schedule(0, 0, h, uint64(i)))
			}
			left = 3*n + 10_000
			must(b, e.Run(context.Background()))
			b.ReportAllocs()
			b.ResetTimer()
			left = b.N
			must(b, e.Run(context.Background()))
			reportEvents(b)
		})
	}
}
