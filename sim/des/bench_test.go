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
