package des

import (
	"context"
	"fmt"
	"math"
)

// pauseEvery is how many sequence numbers pass between two looks at a run's
// context. Chosen: tens of microseconds apart.
const pauseEvery = 4096

// Stop makes the current run return after the present event. It does nothing
// outside a run.
func (e *Engine) Stop() {
	e.stop = e.running
	e.quiet = -1
}

// Step runs the next event; it reports false when none is pending. A handler's
// error is returned as it is.
func (e *Engine) Step() (bool, error) {
	if e.running {
		return false, fmt.Errorf("step at %v: %w", e.now, ErrRunning)
	}
	t := e.front
	if t == nil {
		if t = e.pull(); t == nil {
			return false, nil
		}
	}
	e.running = true
	defer e.ended()
	return true, e.run(t)
}

// run takes t, the least event, out of the front if it is there, and calls it.
func (e *Engine) run(t *Timer) error {
	e.front = nil
	e.now = t.at
	t.in = idle
	h, arg := t.h, t.arg
	if t.once {
		t.h = nil
		t.next = e.free
		e.free = t
	}
	return h.Handle(e.now, arg)
}

// RunUntil runs every event up to and including the time end, then sets the
// present time to end (unless end is MaxTime, which stands for no end). It
// returns early after Stop, with a handler's error as it is, or with ctx's
// error when ctx ends; the present time is then that of the last event. An end
// before Now is refused with ErrPast.
func (e *Engine) RunUntil(ctx context.Context, end Time) error {
	if err := e.begin(ctx, "run until", end); err != nil {
		return err
	}
	defer e.ended()
	e.limit, e.pause = end, e.seq+pauseEvery
	for {
		if e.seq >= e.pause {
			if err := ctx.Err(); err != nil {
				return err
			}
			e.pause = e.seq + pauseEvery
		}
		t := e.front
		if t == nil {
			if t = e.pull(); t == nil {
				break
			}
		}
		if t.at > end {
			t.in = inFront
			e.front = t
			break
		}
		if err := e.run(t); err != nil {
			return err
		}
		if e.stop {
			return nil
		}
	}
	if end != MaxTime {
		e.now = max(e.now, end)
	}
	return nil
}

// Run runs until no event is pending, Stop is called, a handler fails or ctx
// ends.
func (e *Engine) Run(ctx context.Context) error { return e.RunUntil(ctx, MaxTime) }

// RunWhile runs events as long as cond holds, which it asks before every one
// of them: so that it sees each event, Advance refuses during the run. It
// returns nil when cond no longer holds, no event is pending or Stop is called;
// with a handler's error as it is; or with ctx's error when ctx ends.
func (e *Engine) RunWhile(ctx context.Context, cond func() bool) error {
	if err := e.begin(ctx, "run while", e.now); err != nil {
		return err
	}
	defer e.ended()
	e.pause = 0
	for n := 1; cond() && !e.stop; n++ {
		if n%pauseEvery == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		t := e.front
		if t == nil {
			if t = e.pull(); t == nil {
				break
			}
		}
		if err := e.run(t); err != nil {
			return err
		}
	}
	return nil
}

// begin starts a run that lasts to end at most.
func (e *Engine) begin(ctx context.Context, what string, end Time) error {
	if e.running {
		return fmt.Errorf("%s %v, asked at %v: %w", what, end, e.now, ErrRunning)
	}
	if end < e.now {
		return fmt.Errorf("%s %v while the time is %v: %w", what, end, e.now, ErrPast)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	e.running, e.stop, e.quiet = true, false, -1
	return nil
}

// ended restores what holds between runs, also after a handler's panic.
func (e *Engine) ended() {
	e.running, e.stop = false, false
	e.limit, e.pause, e.quiet = MaxTime, math.MaxUint64, -1
}
