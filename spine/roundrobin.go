package spine

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
	if r.order != DefaultOrder {
		return "round-robin " + FormatOrder(r.order)
	}
	return "round-robin"
}

// Plan polls the circle from the present place.
func (r *RoundRobin) Plan(_ *View, p *Plan) {
	p.Seq = append(p.Seq[:0], r.order[r.pos:]...)
	p.Seq = append(p.Seq, r.order[:r.pos]...)
	p.Loop = 0
}

// Hit moves behind the queue that was found ready.
func (r *RoundRobin) Hit(n int64, _ uint8) {
	r.pos = int((int64(r.pos) + n) % NumQueues)
}
