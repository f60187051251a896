package policy

import (
	"fmt"
	"strconv"
)

var quotaKind = PolicyKind{
	Name: "quota", Doc: "strict priority, each queue served up to its quota a round",
	Params: []Param{
		{"limit", slashed(DefaultShares), "handlers a round, one number a queue or one for all"},
		{"round", "0", "handlers of a whole round at most, 0 for no bound"},
		{"order", "default", "priority within a round, highest first"},
	},
	WorkConserving: true, StarvationFree: true,
	Example: "quota:limit=4/2/1/1/1/1/8", New: newQuota,
}

// Quota is strict priority with limited service: within a round a queue runs at
// most its quota of handlers, then it is not polled until the round is over.
//
// A round is over when every queue that has quota left was polled and found
// empty, or when the round's own bound is reached; then all quotas are whole
// again and the scan goes on at the top of the order.
//
// Purpose: polling with quotas, the cure for receive livelock of Mogul and
// Ramakrishnan ("Eliminating Receive Livelock in an Interrupt-Driven Kernel",
// 1997): receiving, which comes high in the default order, cannot keep the
// DMA of what was received from beginning.
// Parameters: limit, 1 … MaxShare handlers a queue and round (less: finer
// alternation, more polls); round, a bound on all handlers of a round, 0 for
// none; the order of priority.
// Needs from hardware: nothing.
// Example: "quota:limit=4/2/1/1/1/1/8".
//
// It is work-conserving. Without a bound on the round, or with one above the sum
// of all limits but the last queue's, it is free of starvation: between two
// services of a queue at most twice the other limits run. A smaller bound may
// end every round before the last queues' turn.
type Quota struct {
	order  [NumQueues]uint8
	limits [NumQueues]int
	round  int
	left   [NumQueues]int // by queue: handlers left in this round
	used   int            // handlers of this round
	open   int            // length of the plan's part that is still this round
}

// NewQuota returns a quota policy with limits by queue number. round bounds the
// handlers of a round, 0 for no bound. Limits outside 1 … MaxShare or a negative
// bound are errors.
func NewQuota(order [NumQueues]uint8, limits [NumQueues]int, round int) (*Quota, error) {
	if err := checkShares("limit", limits); err != nil {
		return nil, err
	}
	if round < 0 {
		return nil, fmt.Errorf("handlers of a round: %d, want 0 (no bound) or more", round)
	}
	return &Quota{order: order, limits: limits, round: round, left: limits}, nil
}

func newQuota(a Args) (Policy, error) {
	o, err := a.Order("order")
	if err != nil {
		return nil, err
	}
	l, err := a.Ints("limit", 1, MaxShare)
	if err != nil {
		return nil, err
	}
	r, err := a.Int("round", 0)
	if err != nil {
		return nil, err
	}
	return NewQuota(o, l, r)
}

// Name is "quota" with its limits and order.
func (k *Quota) Name() string {
	return policyName("quota",
		setting{"limit", slashed(k.limits), slashed(DefaultShares)},
		setting{"round", strconv.Itoa(k.round), "0"}, orderSetting("order", k.order, DefaultOrder))
}

// Plan polls those with quota left, then all of the next round.
func (k *Quota) Plan(_ *View, p *Plan) {
	p.Seq = p.Seq[:0]
	for _, q := range k.order {
		if k.left[q] > 0 {
			p.Seq = append(p.Seq, q)
		}
	}
	k.open = len(p.Seq)
	p.Loop = 0
	if k.open < NumQueues {
		p.Seq = append(p.Seq, k.order[:]...)
		p.Loop = k.open
	}
}

// Hit takes one from the queue's quota. A hit behind the plan's open part, or in
// its second turn, belongs to a new round.
func (k *Quota) Hit(n int64, q uint8) {
	if n > int64(k.open) {
		k.left, k.used = k.limits, 0
	}
	k.left[q]--
	if k.used++; k.used == k.round {
		k.left, k.used = k.limits, 0
	}
}
