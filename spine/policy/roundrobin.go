package policy

var roundRobinKind = PolicyKind{
	Name: "round-robin", Doc: "the queues in turn",
	Params:         []Param{{"order", "default", "the circle"}},
	WorkConserving: true, StarvationFree: true, Example: "round-robin", New: newRoundRobin,
}

func newRoundRobin(a Args) (Policy, error) {
	o, err := a.Order("order")
	if err != nil {
		return nil, err
	}
	return NewRoundRobin(o), nil
}

// RoundRobin polls the queues in turn and goes on with the next queue after a
// handler.
//
// Purpose: the simplest fair dispatcher.
// Parameters: the order of the circle (Q0 … Q6 unless given).
// Needs from hardware: nothing.
// Example: "round-robin".
//
// It is work-conserving and free of starvation: between two polls of a queue
// at most six other handlers run.
type RoundRobin struct {
	order [NumQueues]uint8
	pos   int // place in order of the next poll
}

// NewRoundRobin returns a round-robin policy over the circle order.
func NewRoundRobin(order [NumQueues]uint8) *RoundRobin { return &RoundRobin{order: order} }

// Name is "round-robin", with the circle where it is not Q0 … Q6.
func (r *RoundRobin) Name() string {
	return policyName("round-robin", orderSetting("order", r.order, DefaultOrder))
}

// Plan polls the circle from the present place.
func (r *RoundRobin) Plan(_ *View, p *Plan) { circle(p, &r.order, r.pos) }

// circle plans to poll a circle of queues again and again, from place pos on.
func circle(p *Plan, order *[NumQueues]uint8, pos int) {
	p.Seq = append(p.Seq[:0], order[pos:]...)
	p.Seq = append(p.Seq, order[:pos]...)
	p.Loop = 0
}

// Hit moves behind the queue that was found ready.
func (r *RoundRobin) Hit(n int64, _ uint8) {
	r.pos = int((int64(r.pos) + n) % NumQueues)
}
