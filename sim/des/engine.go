package des

import (
	"errors"
	"fmt"
	"math"
)

var (
	// ErrPast reports an event scheduled before the engine's present time.
	ErrPast = errors.New("event lies in the past")
	// ErrNoHandler reports an event that would call nothing.
	ErrNoHandler = errors.New("event has no handler")
	// ErrRunning reports a run or a step asked for from within a handler of
	// the same engine.
	ErrRunning = errors.New("engine is running already")
)

// Options of an Engine.
type Options struct {
	// RandomTies shuffles the order of events equal in time and priority,
	// deterministically from Seed, their time and the timers' identities
	// (Adopt), instead of keeping their sequence. It exposes models whose
	// results depend on how such events fall.
	RandomTies bool
	// Seed selects the shuffle; it is not used without RandomTies.
	Seed uint64
}

// Engine runs events in the total order (time, priority, sequence), as the
// package comment defines it. It is not safe for concurrent use; any number
// may run side by side.
type Engine struct {
	now   Time
	quiet Time // no event is pending up to here, and the run's limit is not below; -1 when unknown
	seq   uint64
	pause uint64 // sequence number at which Advance refuses, so that a run can look at its context
	front *Timer // the least of all events, or nil when that is not known or none is pending
	free  *Timer // idle timers of the pool, linked by next

	near  near
	wheel wheel
	far   []farEvent

	limit   Time
	ties    ties
	shuffle bool
	stop    bool
	running bool
}

// New returns an engine at time 0 with nothing pending.
func New(o Options) *Engine {
	e := &Engine{
		quiet:   -1,
		pause:   math.MaxUint64,
		limit:   MaxTime,
		ties:    newTies(o),
		shuffle: o.RandomTies,
	}
	e.wheel.init()
	return e
}

// Now is the engine's present time.
func (e *Engine) Now() Time { return e.now }

// Pending is the number of events that wait.
func (e *Engine) Pending() int {
	n := e.near.n + e.wheel.n + len(e.far)
	if e.front != nil {
		n++
	}
	return n
}

// Schedule runs h once at the given time, with arg. It fails with ErrPast when
// the time lies before Now, and with ErrNoHandler when h is nil. It allocates
// only when more events are pending than ever before.
func (e *Engine) Schedule(at Time, prio Priority, h Handler, arg uint64) error {
	if at < e.now || h == nil {
		return e.refuse("schedule an event", at, h)
	}
	t := e.free
	if t == nil {
		t = e.extendPool()
	}
	e.free = t.next
	t.h, t.arg, t.prio = h, arg, prio
	e.insert(t, at)
	return nil
}

// After runs h once when delay has passed from now, with arg. Beside
// Schedule's errors it fails with ErrRange when Time cannot hold the time of
// the event.
func (e *Engine) After(delay Time, prio Priority, h Handler, arg uint64) error {
	at := e.now + delay
	if delay > 0 && at < 0 {
		return e.beyond("schedule an event", delay)
	}
	return e.Schedule(at, prio, h, arg)
}

// Arm sets t to expire at the given time, moving it if it is armed already: it
// then takes a new place, behind its equals. It fails with ErrPast when the
// time lies before Now, and with ErrNoHandler when t was not initialised; t
// then stays as it was.
func (e *Engine) Arm(t *Timer, at Time) error {
	if at < e.now || t.h == nil {
		return e.refuse("arm a timer", at, t.h)
	}
	if t.in != idle {
		e.remove(t)
	}
	e.insert(t, at)
	return nil
}

// ArmAfter arms t to expire when delay has passed from now. Beside Arm's
// errors it fails with ErrRange when Time cannot hold the expiry.
func (e *Engine) ArmAfter(t *Timer, delay Time) error {
	at := e.now + delay
	if delay > 0 && at < 0 {
		return e.beyond("arm a timer", delay)
	}
	return e.Arm(t, at)
}

// Cancel disarms t; an idle timer is left alone.
func (e *Engine) Cancel(t *Timer) {
	if t.in != idle {
		e.remove(t)
		t.in = idle
	}
}

// refuse is the error for an event that Schedule or Arm does not take.
func (e *Engine) refuse(what string, at Time, h Handler) error {
	if at < e.now {
		return fmt.Errorf("%s at %v while the time is %v: %w", what, at, e.now, ErrPast)
	}
	return fmt.Errorf("%s at %v: %w", what, at, ErrNoHandler)
}

// beyond is the error for a delay that leads out of Time.
func (e *Engine) beyond(what string, delay Time) error {
	return fmt.Errorf("%s %v after %v: event time beyond %v: %w", what, delay, e.now, MaxTime, ErrRange)
}

// Peek tells time and priority of the next event; ok is false when none is
// pending.
func (e *Engine) Peek() (at Time, prio Priority, ok bool) {
	t := e.front
	if t == nil {
		if t = e.fetch(); t == nil {
			return 0, 0, false
		}
	}
	return t.at, t.prio, true
}

// Advance moves the present time to at, as if an event of that time and
// priority had been scheduled and had just been taken, and reports whether it
// did. It is how a component executes its next event inline, without the
// queue: where Advance refuses, the component arms a timer for at instead, and
// the run's order of events is the same either way, because a successful
// Advance takes the sequence number that the timer would have taken.
//
// It refuses when a pending event of that time and of the same or a smaller
// priority, or of an earlier time, has to run first; when at lies before Now,
// or beyond the end of a RunUntil; under RunWhile, whose condition is due after
// every event; once Stop was called; and every few thousand sequence numbers,
// so that the run can see its context end. With RandomTies it refuses at ties
// all the same: the timer armed in its place then enters the shuffle.
func (e *Engine) Advance(at Time, prio Priority) bool {
	if at <= e.quiet && at >= e.now && e.seq < e.pause {
		e.now = at
		e.seq++
		return true
	}
	return e.advance(at, prio)
}

// advance is Advance where the bound e.quiet does not decide.
func (e *Engine) advance(at Time, prio Priority) bool {
	if at > e.limit || at < e.now || e.stop || e.seq >= e.pause {
		return false
	}
	t := e.front
	if t == nil {
		t = e.fetch()
	}
	e.quiet = e.limit
	if t != nil {
		e.quiet = min(e.limit, t.at-1)
		if t.at < at || t.at == at && t.prio <= prio {
			return false
		}
	}
	e.now = at
	e.seq++
	return true
}

// insert gives t its place in the order and in the structures. t is not linked
// anywhere and at is not in the past.
func (e *Engine) insert(t *Timer, at Time) {
	ord := e.seq
	e.seq++
	if e.shuffle {
		ord = e.ties.order(t, at, ord)
	}
	t.at, t.ord = at, ord
	if at <= e.quiet {
		e.quiet = at - 1
	}
	if f := e.front; f != nil {
		if t.before(f) {
			t.in = inFront
			e.front = t
			t = f
		}
	} else if e.wheel.n == 0 && e.near.n == 0 && len(e.far) == 0 {
		t.in = inFront
		e.front = t
		return
	}
	w := &e.wheel
	if w.n == 0 && e.near.n < fewEvents {
		// The list alone does: the empty ring begins behind it.
		w.cur = max(w.cur, int64(t.at>>(w.shift&63)))
		e.near.insert(t) // a walk through so few finds the place
		return
	}
	if uint64(int64(t.at>>(w.shift&63))-w.cur-1) < w.reach {
		w.push(t)
		if w.n > w.growAt {
			e.rebuild()
		}
		return
	}
	e.insertAside(t)
}

// insertAside places a timer that lies before the wheel's span or beyond it.
func (e *Engine) insertAside(t *Timer) {
	w := &e.wheel
	b := int64(t.at >> (w.shift & 63))
	if b <= w.cur {
		if e.near.insert(t) {
			return
		}
		e.pushFar(t)
		return
	}
	// Time may have moved on without the wheel, through the heap or by
	// Advance. Nothing is pending before now, so the wheel can follow.
	w.cur = max(w.cur, int64(e.now>>(w.shift&63))-1)
	if uint64(b-w.cur-1) < w.reach {
		w.push(t)
		return
	}
	e.pushFar(t)
}

// remove takes an armed timer out of the structures. It does not mark it idle.
func (e *Engine) remove(t *Timer) {
	switch t.in {
	case inFront:
		e.front = nil
	case inNear:
		e.near.remove(t)
	case inWheel:
		e.wheel.remove(t)
	case inFar:
		e.removeFar(int(t.pos))
	}
}

// fetch brings the least of all events to the front and returns it, or nil
// when none is pending. The front is empty.
func (e *Engine) fetch() *Timer {
	t := e.pull()
	if t != nil {
		t.in = inFront
		e.front = t
	}
	return t
}

// pull unlinks and returns the least event behind the front, or nil.
func (e *Engine) pull() *Timer {
	w := &e.wheel
	if w.credit--; w.credit < 0 {
		e.tune()
	}
	t := e.near.head
	if e.near.n == 0 {
		t = nil
		if w.n > 0 {
			if w.batch == 1 && len(e.far) == 0 {
				if t = w.popSingle(); t != nil {
					return t
				}
			}
			w.refill(&e.near)
			t = e.near.head
		}
	}
	if len(e.far) > 0 && (t == nil || e.far[0].before(t)) {
		t = e.far[0].t
		e.removeFar(0)
		return t
	}
	if t != nil {
		e.near.head = t.next
		e.near.n--
	}
	return t
}

// extendPool adds a slab of idle timers to the pool and returns its first.
func (e *Engine) extendPool() *Timer {
	slab := make([]Timer, 64)
	for i := range slab {
		slab[i].once = true
		slab[i].next = e.free
		e.free = &slab[i]
	}
	return e.free
}
