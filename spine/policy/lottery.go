package policy

import (
	"fmt"

	"spinesim/sim/des"
)

var lotteryKind = PolicyKind{
	Name: "lottery", Doc: "proportional shares of handlers, by lot",
	Params:         []Param{{"tickets", slashed(DefaultShares), "shares, one number a queue or one for all"}},
	WorkConserving: true, Example: "lottery:tickets=4/2/1/1/1/1/10", New: newLottery,
}

// Lottery draws, after every handler, the order in which it polls: each place
// goes to one of the queues left, with a chance in proportion to its tickets. So
// the handler that runs is drawn from the ready queues in proportion to theirs
// (Waldspurger and Weihl, "Lottery Scheduling", 1994).
//
// Purpose: shares without memory, and a policy that no arrival pattern can fall
// into step with.
// Parameters: tickets, 1 … MaxShare a queue.
// Needs from hardware: nothing; its draws come from a stream of its own, given
// by the run's seed and the card.
// Example: "lottery:tickets=4/2/1/1/1/1/10".
//
// It is work-conserving. Its waits have no bound, so it does not claim freedom
// from starvation; but a ready queue of t tickets is drawn with a chance of at
// least t / (sum of all) each time, and so is served in the end with
// probability 1.
type Lottery struct {
	tickets [NumQueues]int
	total   int
	stream  *des.Stream
}

// NewLottery returns a lottery with tickets by queue number, whose draws depend
// on seed and card only. Tickets outside 1 … MaxShare are an error.
func NewLottery(tickets [NumQueues]int, seed uint64, card uint8) (*Lottery, error) {
	if err := checkShares("tickets", tickets); err != nil {
		return nil, err
	}
	l := &Lottery{tickets: tickets, stream: des.NewStream(seed, fmt.Sprintf("policy/%d", card))}
	for _, t := range tickets {
		l.total += t
	}
	return l, nil
}

func newLottery(a Args) (Policy, error) {
	t, err := a.Ints("tickets", 1, MaxShare)
	if err != nil {
		return nil, err
	}
	return NewLottery(t, a.Seed, a.Card)
}

// Name is "lottery" with its tickets.
func (l *Lottery) Name() string {
	return policyName("lottery", setting{"tickets", slashed(l.tickets), slashed(DefaultShares)})
}

// Plan draws an order.
func (l *Lottery) Plan(_ *View, p *Plan) {
	p.Seq = append(p.Seq[:0], DefaultOrder[:]...)
	p.Loop = 0
	total := l.total
	for i := range NumQueues - 1 {
		lot := l.stream.IntN(total)
		j := i
		for ; lot >= l.tickets[p.Seq[j]]; j++ {
			lot -= l.tickets[p.Seq[j]]
		}
		p.Seq[i], p.Seq[j] = p.Seq[j], p.Seq[i]
		total -= l.tickets[p.Seq[i]]
	}
}

// Hit changes nothing.
func (l *Lottery) Hit(int64, uint8) {}
