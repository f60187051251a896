package policy

import (
	"errors"
	"fmt"
	"strings"
)

// NumQueues is the number of input queues (thesis p.108).
const NumQueues = 7

// The queues. Which is which is not published; this reading is chosen.
const (
	QSelf = 0 // active messages that the run-time sends to itself
	QWire = 1 // the packet interface's receive and send engines
	QHost = 2 // messages from the host
	QPeer = 3 // 3, 4, 5: the other three cards, in card order
	QDMA  = 6 // the DMA chain, its completions, and ACK sends
)

// View is what the dispatcher's software knows without polling a queue: its own
// counters, and the host-DMA engine's status register.
type View struct {
	FreeBuffers int   // packet buffers in the free list
	Buffers     int   // packet buffers in all
	Credits     int   // credits left, those of all peers together
	AllCredits  int   // credits in all
	Backlog     int   // packets routed whose DMA has not begun
	ChainActive bool  // a DMA chain has begun and its packet has not departed
	EngineBusy  bool  // the host-DMA engine is reserved or moves something
	ChainQueue  uint8 // queue that the chain's continuations go through
	LastQueue   uint8 // queue of the handler that ran last, traces.NoQueue before the first
	HandlersRun uint64
}

// Plan is the sequence of queues that a policy polls as long as every poll
// misses: Seq once, then Seq[Loop:] for ever. With Loop < 0 the policy is
// asked again when Seq is used up. A looping plan must come by every queue, or
// a message may wait in vain.
type Plan struct {
	Seq  []uint8
	Loop int
	// Fixed says that this plan, which loops, is the policy's only one, whatever
	// the View and whatever was hit: the dispatcher neither asks again nor tells
	// the policy of hits.
	Fixed bool
}

// Check refuses a plan that the dispatcher cannot follow.
func (p *Plan) Check() error {
	if len(p.Seq) == 0 {
		return errors.New("plans no poll")
	}
	if p.Loop >= len(p.Seq) {
		return fmt.Errorf("plans %d polls and a loop from poll %d on", len(p.Seq), p.Loop+1)
	}
	if p.Fixed && p.Loop < 0 {
		return fmt.Errorf("plans %d polls for ever, and no loop", len(p.Seq))
	}
	for _, q := range p.Seq {
		if q >= NumQueues {
			return fmt.Errorf("plans to poll Q%d, want Q0 … Q%d", q, NumQueues-1)
		}
	}
	return nil
}

// Policy decides which queue is polled next. It sees only what the dispatcher
// could know: what it has polled and its own counters.
//
// The dispatcher asks for a plan at the start, after every handler, and when a
// plan that does not loop is used up. It polls the plan's queues in turn; at the
// first hit it calls Hit and runs the handler. A policy may be used by one card
// only.
type Policy interface {
	// Name is the policy's name with its parameters.
	Name() string
	// Plan fills p; p.Seq[:0] may be reused. It must not allocate in steady
	// state.
	Plan(v *View, p *Plan)
	// Hit tells that the n-th poll of the plan (from 1) found queue q ready.
	Hit(n int64, q uint8)
}

// VectorPolicy is a policy that needs the optional hardware event vector: one
// read tells which queues hold a ready message, how many, and since when.
type VectorPolicy interface {
	Policy
	// Choose picks one of the queues whose bit is set in v.Ready; another
	// choice ends the simulation with an error. It must not allocate.
	Choose(v *Vector) uint8
}

// Vector is what one read of the event vector tells.
type Vector struct {
	Ready uint8 // bit q: queue q holds a message that can run now
	Depth [NumQueues]int
	// Age orders the oldest runnable messages: smaller became ready earlier.
	Age [NumQueues]uint64
}

// ParseOrder reads an order of all seven queues, such as
// "Q6 Q3 Q4 Q5 Q0 Q1 Q2", "6,3,4,5,0,1,2" or "6345012".
func ParseOrder(s string) ([NumQueues]uint8, error) {
	var order [NumQueues]uint8
	seen := 0
	n := 0
	for _, r := range strings.ToUpper(s) {
		switch {
		case r == 'Q' || r == ' ' || r == ',' || r == '-' || r == '>' || r == '\t':
			continue
		case r >= '0' && r < '0'+NumQueues:
			q := uint8(r - '0')
			if seen&(1<<q) != 0 {
				return order, fmt.Errorf("order %q names Q%d twice", s, q)
			}
			seen |= 1 << q
			order[n] = q
			n++
		default:
			return order, fmt.Errorf("order %q: %q is not one of Q0 … Q6", s, r)
		}
	}
	if n != NumQueues {
		for q := range NumQueues {
			if seen&(1<<q) == 0 {
				return order, fmt.Errorf("order %q leaves out Q%d", s, q)
			}
		}
	}
	return order, nil
}

// FormatOrder writes an order the way ParseOrder reads it.
func FormatOrder(o [NumQueues]uint8) string {
	var b strings.Builder
	for i, q := range o {
		if i > 0 {
			b.WriteByte(' ')
		}
		fmt.Fprintf(&b, "Q%d", q)
	}
	return b.String()
}

// DefaultOrder is Q0 … Q6: events of the bus come last (thesis p.109: "slightly
// lower priority of PCI events"; the order itself is chosen).
var DefaultOrder = [NumQueues]uint8{0, 1, 2, 3, 4, 5, 6}

// PCIFirstOrder puts the DMA queue and the peers before everything else.
var PCIFirstOrder = [NumQueues]uint8{6, 3, 4, 5, 0, 1, 2}
