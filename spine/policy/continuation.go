package policy

var continuationFirstKind = PolicyKind{
	Name: "continuation-first", Doc: "a begun DMA chain is finished before anything else",
	Params: []Param{
		{"order", "default", "order of everything else"},
		{"hold", "no", "yes: poll nothing else until the packet has departed"},
	},
	WorkConserving: true, Example: "continuation-first", New: newContinuationFirst,
}

// ContinuationFirst finishes a DMA chain that has begun before it looks at
// anything else: while a chain is active its queue is polled first, otherwise
// all queues in a strict order.
//
// Purpose: to tell two remedies apart. Of pci-first's three effects (chains are
// finished, new chains are begun early, ACKs are served early) it keeps the
// first only.
// Parameters: the order of everything else; hold=yes polls nothing but the
// chain's queue until the packet has departed, so that the processor waits for
// the body transfer instead of working beside it.
// Needs from hardware: nothing but the DMA engine's status register, which tells
// when the header transfer is over; the run-time reads it after a handler
// (hold=yes: after each poll).
// Example: "continuation-first", or "continuation-first:order=0123456,hold=yes".
//
// Without hold it is work-conserving, with hold it is not. It is not free of
// starvation: the order is strict. With firmware.dma_chain self the chain's queue
// is Q0, where its continuations stand behind other messages.
type ContinuationFirst struct {
	order [NumQueues]uint8
	hold  bool
}

// NewContinuationFirst returns a policy that finishes chains first and
// otherwise polls in the given order.
func NewContinuationFirst(order [NumQueues]uint8, hold bool) *ContinuationFirst {
	return &ContinuationFirst{order: order, hold: hold}
}

func newContinuationFirst(a Args) (Policy, error) {
	o, err := a.Order("order")
	if err != nil {
		return nil, err
	}
	h, err := a.Bool("hold")
	if err != nil {
		return nil, err
	}
	return NewContinuationFirst(o, h), nil
}

// Name is "continuation-first" with its order.
func (c *ContinuationFirst) Name() string {
	hold := "no"
	if c.hold {
		hold = "yes"
	}
	return policyName("continuation-first", orderSetting("order", c.order, DefaultOrder), setting{"hold", hold, "no"})
}

// Plan lifts the chain's queue to the top while a chain is active.
func (c *ContinuationFirst) Plan(v *View, p *Plan) {
	switch {
	case !v.ChainActive:
		p.Seq = append(p.Seq[:0], c.order[:]...)
		p.Loop = 0
	case c.hold:
		// Asked again after each poll: the chain ends without a message.
		p.Seq = append(p.Seq[:0], v.ChainQueue)
		p.Loop = -1
	default:
		p.Seq = append(p.Seq[:0], v.ChainQueue)
		for _, q := range c.order {
			if q != v.ChainQueue {
				p.Seq = append(p.Seq, q)
			}
		}
		p.Loop = 0
	}
}

// Hit changes nothing.
func (c *ContinuationFirst) Hit(int64, uint8) {}
