package policy

var oldestFirstKind = PolicyKind{
	Name: "oldest-first", Doc: "the runnable message that was sent first, whatever its queue",
	Needs: eventVector, WorkConserving: true, StarvationFree: true, Example: "oldest-first", New: newOldestFirst,
}

// OldestFirst serves messages in the order in which they were sent, as one
// common queue would; a message that cannot run yet lets others pass, and goes
// first once it can.
//
// Purpose: the fairest order there is, and so a measure for the others.
// Parameters: none.
// Needs from hardware: the event vector, with the age of each queue's oldest
// runnable message.
// Example: "oldest-first".
//
// It is work-conserving and free of starvation: only messages that were sent
// before can go first.
type OldestFirst struct{}

// NewOldestFirst returns an oldest-first policy.
func NewOldestFirst() *OldestFirst { return &OldestFirst{} }

func newOldestFirst(Args) (Policy, error) { return NewOldestFirst(), nil }

// Name is "oldest-first".
func (*OldestFirst) Name() string { return "oldest-first" }

// Plan polls Q0 … Q6, for a card without the event vector.
func (*OldestFirst) Plan(_ *View, p *Plan) { circle(p, &DefaultOrder, 0) }

// Hit changes nothing.
func (*OldestFirst) Hit(int64, uint8) {}

// Choose picks the queue whose message is oldest.
func (*OldestFirst) Choose(v *Vector) uint8 {
	best := uint8(NumQueues)
	for q := range uint8(NumQueues) {
		if v.Ready>>q&1 != 0 && (best == NumQueues || v.Age[q] < v.Age[best]) {
			best = q
		}
	}
	return best
}
