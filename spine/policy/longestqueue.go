package policy

const eventVector = "event vector: one read tells all seven queues"

var longestQueueFirstKind = PolicyKind{
	Name: "longest-queue-first", Doc: "the ready queue that holds most messages",
	Params: []Param{{"order", "default", "who goes first among equally long ones"}},
	Needs:  eventVector, WorkConserving: true, Example: "longest-queue-first", New: newLongestQueueFirst,
}

// LongestQueueFirst serves the ready queue that holds most messages, those that
// cannot run yet included.
//
// Purpose: to keep queues short without a parameter to set.
// Parameters: the order among equally long queues.
// Needs from hardware: the event vector, with a count a queue.
// Example: "longest-queue-first:order=pci-first".
//
// It is work-conserving. It is not free of starvation: a queue of one message
// waits as long as another holds two.
type LongestQueueFirst struct {
	order [NumQueues]uint8
}

// NewLongestQueueFirst returns a longest-queue-first policy; order breaks ties.
func NewLongestQueueFirst(order [NumQueues]uint8) *LongestQueueFirst {
	return &LongestQueueFirst{order: order}
}

func newLongestQueueFirst(a Args) (Policy, error) {
	o, err := a.Order("order")
	if err != nil {
		return nil, err
	}
	return NewLongestQueueFirst(o), nil
}

// Name is "longest-queue-first" with its order.
func (l *LongestQueueFirst) Name() string {
	return policyName("longest-queue-first", orderSetting("order", l.order, DefaultOrder))
}

// Plan polls in order, for a card without the event vector.
func (l *LongestQueueFirst) Plan(_ *View, p *Plan) { circle(p, &l.order, 0) }

// Hit changes nothing.
func (l *LongestQueueFirst) Hit(int64, uint8) {}

// Choose picks the longest.
func (l *LongestQueueFirst) Choose(v *Vector) uint8 {
	best, depth := uint8(NumQueues), -1
	for _, q := range l.order {
		if v.Ready>>q&1 != 0 && v.Depth[q] > depth {
			best, depth = q, v.Depth[q]
		}
	}
	return best
}
