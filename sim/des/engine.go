package des

import (
	"context"
	"errors"
	"fmt"
)

// Priority orders events of equal time: the smaller runs first.
type Priority uint8

// Handler receives events. now is the engine's time, arg the word given when
// the event was scheduled. A non-nil error stops the run and reaches whoever
// called Run, RunUntil, RunWhile or Step.
type Handler interface {
	Handle(now Time, arg uint64) error
}

// ErrPast reports an event scheduled before the engine's present time.
var ErrPast = errors.New("event lies in the past")

// Timer is an event that its owner keeps, arms, moves and cancels. It is
// embedded by value in a component and must not be copied once armed.
type Timer struct {
	h    Handler
	arg  uint64
	at   Time
	seq  uint64
	prio Priority
	pos  int32 // 1-based place in the heap, 0 when idle
}

// Init sets what an expiry calls. It must not be called on an armed timer.
func (t *Timer) Init(h Handler, prio Priority, arg uint64) {
	t.h, t.prio, t.arg = h, prio, arg
}

// Armed tells whether the timer is pending.
func (t *Timer) Armed() bool { return t.pos != 0 }

// At is the time the timer is armed for; meaningless when it is not armed.
func (t *Timer) At() Time { return t.at }

// Options of an Engine.
type Options struct {
	// RandomTies shuffles the order of events equal in time and priority,
	// deterministically from Seed, instead of keeping their sequence.
	RandomTies bool
	Seed       uint64
}

// Engine runs events in the total order (time, priority, sequence).
// It is not safe for concurrent use; any number may run side by side.
type Engine struct {
	now   Time
	limit Time
	seq   uint64
	heap  []*Timer
	stop  bool
	opt   Options
}

// New returns an engine at time 0.
func New(o Options) *Engine { return &Engine{opt: o, limit: MaxTime} }

// Now is the engine's present time.
func (e *Engine) Now() Time { return e.now }

func (e *Engine) less(a, b *Timer) bool {
	if a.at != b.at {
		return a.at < b.at
	}
	if a.prio != b.prio {
		return a.prio < b.prio
	}
	return a.seq < b.seq
}

// Arm sets t to expire at the given time, moving it if it is armed already
// (it then takes a new place behind its equals).
func (e *Engine) Arm(t *Timer, at Time) error {
	if at < e.now {
		return fmt.Errorf("arm at %v while the time is %v: %w", at, e.now, ErrPast)
	}
	if t.pos != 0 {
		e.Cancel(t)
	}
	t.at = at
	t.seq = e.seq
	e.seq++
	e.heap = append(e.heap, t)
	t.pos = int32(len(e.heap))
	e.up(len(e.heap) - 1)
	return nil
}

// Cancel disarms t; an idle timer is left alone.
func (e *Engine) Cancel(t *Timer) {
	if t.pos == 0 {
		return
	}
	i := int(t.pos) - 1
	n := len(e.heap) - 1
	last := e.heap[n]
	e.heap = e.heap[:n]
	t.pos = 0
	if i < n {
		e.heap[i] = last
		last.pos = int32(i + 1)
		e.up(i)
		e.down(int(last.pos) - 1)
	}
}

func (e *Engine) up(i int) {
	for i > 0 {
		p := (i - 1) / 2
		if !e.less(e.heap[i], e.heap[p]) {
			return
		}
		e.swap(i, p)
		i = p
	}
}

func (e *Engine) down(i int) {
	for {
		c := 2*i + 1
		if c >= len(e.heap) {
			return
		}
		if c+1 < len(e.heap) && e.less(e.heap[c+1], e.heap[c]) {
			c++
		}
		if !e.less(e.heap[c], e.heap[i]) {
			return
		}
		e.swap(i, c)
		i = c
	}
}

func (e *Engine) swap(i, j int) {
	h := e.heap
	h[i], h[j] = h[j], h[i]
	h[i].pos, h[j].pos = int32(i+1), int32(j+1)
}

// Schedule runs h once at the given time.
func (e *Engine) Schedule(at Time, prio Priority, h Handler, arg uint64) error {
	t := &Timer{}
	t.Init(h, prio, arg)
	return e.Arm(t, at)
}

// Peek tells time and priority of the next event; ok is false when none is
// pending.
func (e *Engine) Peek() (at Time, prio Priority, ok bool) {
	if len(e.heap) == 0 {
		return 0, 0, false
	}
	return e.heap[0].at, e.heap[0].prio, true
}

// Advance moves the present time to at, as if an event of that time and
// priority had just been taken, provided that no pending event would have run
// before it and that the run's limit allows it. It reports whether it did.
// It is how a component executes its next event inline, without the queue.
func (e *Engine) Advance(at Time, prio Priority) bool {
	if at > e.limit || e.stop {
		return false
	}
	if len(e.heap) > 0 {
		h := e.heap[0]
		if h.at < at || h.at == at && h.prio <= prio {
			return false
		}
	}
	e.now = at
	return true
}

// Stop makes the current Run return after the present event.
func (e *Engine) Stop() { e.stop = true }

// Step runs the next event; it reports false when none is pending.
func (e *Engine) Step() (bool, error) {
	if len(e.heap) == 0 {
		return false, nil
	}
	t := e.heap[0]
	e.Cancel(t)
	e.now = t.at
	return true, t.h.Handle(t.at, t.arg)
}

// RunUntil runs every event up to and including the given time, then sets the
// present time to it.
func (e *Engine) RunUntil(ctx context.Context, end Time) error {
	e.limit, e.stop = end, false
	defer func() { e.limit = MaxTime }()
	for n := 0; len(e.heap) > 0 && e.heap[0].at <= end; n++ {
		if n&1023 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if _, err := e.Step(); err != nil {
			return err
		}
		if e.stop {
			return nil
		}
	}
	if end != MaxTime && e.now < end {
		e.now = end
	}
	return nil
}

// Run runs until no event is pending, Stop is called or ctx ends.
func (e *Engine) Run(ctx context.Context) error { return e.RunUntil(ctx, MaxTime) }
