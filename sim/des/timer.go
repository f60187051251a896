package des

// Priority orders events of equal time: the smaller runs first.
type Priority uint8

// Handler receives events. now is the engine's time, arg the word given when
// the event was scheduled. A non-nil error stops the run and reaches, as it
// is, whoever called Run, RunUntil, RunWhile or Step.
type Handler interface {
	Handle(now Time, arg uint64) error
}

// Timer is an event that its owner keeps, arms, moves and cancels. It is
// embedded by value in a component, must not be copied once armed, and belongs
// to one engine while it is armed. Its zero value is idle and needs Init.
//
// It fills one cache line, and that line holds all that ordering and running
// the event needs.
type Timer struct {
	h    Handler
	arg  uint64
	at   Time
	ord  uint64 // the sequence number, or its place in the shuffle
	next *Timer // neighbours in the sorted list or in a bucket;
	prev *Timer // prev of a list's first timer means nothing
	pos  int32  // bucket in the wheel, or index in the heap
	prio Priority
	in   place
	once bool // belongs to the engine's pool, and returns there when it runs
}

// place tells which structure of an engine holds a timer.
type place uint8

const (
	idle place = iota
	inFront
	inNear
	inWheel
	inFar
)

// Init sets what an expiry calls: h.Handle with arg, at the given priority
// among events of equal time. It must not be called on an armed timer.
func (t *Timer) Init(h Handler, prio Priority, arg uint64) {
	t.h, t.prio, t.arg = h, prio, arg
}

// Armed tells whether the timer is pending. It is not while its own expiry is
// being handled, unless the handler arms it again.
func (t *Timer) Armed() bool { return t.in != idle }

// At is the time the timer is armed for; meaningless when it is not armed.
func (t *Timer) At() Time { return t.at }

// before is the total order of events.
func (t *Timer) before(u *Timer) bool {
	if t.at != u.at {
		return t.at < u.at
	}
	if t.prio != u.prio {
		return t.prio < u.prio
	}
	return t.ord < u.ord
}
