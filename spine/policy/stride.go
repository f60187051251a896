package policy

var strideKind = PolicyKind{
	Name: "stride", Doc: "proportional shares of handlers, deterministic",
	Params: []Param{
		{"tickets", slashed(DefaultShares), "shares, one number a queue or one for all"},
		{"order", "default", "who goes first among equals"},
	},
	WorkConserving: true, StarvationFree: true,
	Example: "stride:tickets=4/2/1/1/1/1/10", New: newStride,
}

// strideOne is the stride of a queue with one ticket: large beside MaxShare, so
// that rounding distorts no share by more than 1/256.
const strideOne = 1 << 24

// Stride gives queues that stay ready handlers in proportion to their tickets,
// as evenly spread as they can be.
//
// Each queue has a pass, which its stride (the inverse of its tickets) is added
// to whenever a handler of it runs; the queue with the smallest pass is polled
// first. A queue that was polled and found empty does not save up: its pass
// moves on with that of the queue that ran (Waldspurger and Weihl, "Stride
// Scheduling", 1995, for the passes; a start-time rule for queues that leave and
// come back).
//
// Purpose: shares without the bursts of weighted round-robin.
// Parameters: tickets, 1 … MaxShare a queue; the order among equal passes.
// Needs from hardware: nothing; software that keeps seven numbers sorted, whose
// time is taken as part of a poll's.
// Example: "stride:tickets=4/2/1/1/1/1/10".
//
// It is work-conserving and free of starvation: a queue that stays ready waits
// for at most t/t₀ + 2 handlers of another queue, t tickets to its own t₀.
type Stride struct {
	order   [NumQueues]uint8
	tickets [NumQueues]int
	stride  [NumQueues]int64
	pass    [NumQueues]int64 // by queue, from the pass of the last handler's queue on
	sorted  [NumQueues]uint8 // the present plan
}

// NewStride returns a stride policy with tickets by queue number; order breaks
// ties. Tickets outside 1 … MaxShare are an error.
func NewStride(order [NumQueues]uint8, tickets [NumQueues]int) (*Stride, error) {
	if err := checkShares("tickets", tickets); err != nil {
		return nil, err
	}
	s := &Stride{order: order, tickets: tickets, sorted: order}
	for q, t := range tickets {
		s.stride[q] = strideOne / int64(t)
	}
	return s, nil
}

func newStride(a Args) (Policy, error) {
	o, err := a.Order("order")
	if err != nil {
		return nil, err
	}
	t, err := a.Ints("tickets", 1, MaxShare)
	if err != nil {
		return nil, err
	}
	return NewStride(o, t)
}

// Name is "stride" with its tickets and order.
func (s *Stride) Name() string {
	return policyName("stride",
		setting{"tickets", slashed(s.tickets), slashed(DefaultShares)}, orderSetting("order", s.order, DefaultOrder))
}

// Plan polls by pass, the smallest first.
func (s *Stride) Plan(_ *View, p *Plan) {
	s.sorted = s.order
	for i := 1; i < NumQueues; i++ {
		q := s.sorted[i]
		j := i
		for ; j > 0 && s.pass[s.sorted[j-1]] > s.pass[q]; j-- {
			s.sorted[j] = s.sorted[j-1]
		}
		s.sorted[j] = q
	}
	p.Seq = append(p.Seq[:0], s.sorted[:]...)
	p.Loop = 0
}

// Hit moves the queue that runs on by its stride. Those before it in the plan
// were empty: they begin again where it was. Passes are kept relative to it, so
// they stay small for ever.
func (s *Stride) Hit(n int64, q uint8) {
	now := s.pass[q]
	for i := range s.pass {
		s.pass[i] = max(s.pass[i]-now, 0)
	}
	s.pass[q] = s.stride[q]
}
