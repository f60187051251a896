package traces

import "spinesim/sim/des"

// Utilisation is the share of the observed time for which each unit was busy.
type Utilisation struct {
	Bus   BusUse    `json:"bus"`
	Cards []CardUse `json:"cards"`
}

// BusUse is the bus's time by who held it, in clocks held; the rest was idle.
type BusUse struct {
	Busy Real        `json:"busy"`
	By   []HolderUse `json:"by"`
}

// HolderUse is one initiator's share. Card is HostCard for the host bridge.
type HolderUse struct {
	Card uint8 `json:"card"`
	Busy Real  `json:"busy"`
}

// CardUse is the use of one card's units. Handlers, Polls and Idle are the
// processor's and sum to 1: Polls looked for a message that was there, Idle is
// polling with nothing to find, and time without a record.
type CardUse struct {
	Card     uint8         `json:"card"`
	Handlers Real          `json:"handlers"`
	Polls    Real          `json:"polls"`
	Idle     Real          `json:"idle"`
	DMA      Real          `json:"dma"`      // the engine has the bus
	DMAWait  Real          `json:"dma_wait"` // it has asked for the bus
	Receive  Real          `json:"receive"`
	Send     Real          `json:"send"`
	Events   []EventUse    `json:"events"`    // handlers that ran, in the figure's order
	Transfer []EventUse    `json:"transfers"` // likewise of the bus transfers
	Waits    []WaitUse     `json:"waits"`     // of packets, by reason
	Found    QueueCounters `json:"found"`     // messages found by polling, by queue
}

// EventUse is one kind of handler or transfer.
type EventUse struct {
	Event string `json:"event"`
	N     uint64 `json:"n"`
	Mean  Real   `json:"mean_us"`
	Share Real   `json:"share"`
}

// WaitUse is one reason for waiting. Share is the mean number of packets that
// wait for it, since several can at once.
type WaitUse struct {
	Reason string `json:"reason"`
	N      uint64 `json:"n"`
	Mean   Real   `json:"mean_us"`
	Share  Real   `json:"share"`
}

// QueueCounters has a count for each of the seven input queues.
type QueueCounters [7]uint64

// Polls counts polls on all cards.
type Polls struct {
	N       uint64 `json:"n"`
	Hits    uint64 `json:"hits"`
	Misses  uint64 `json:"misses"`
	HitRate Real   `json:"hit_rate"`
}

func eventUses(totals *[NumEvents + 1]eventTotal, span des.Time) []EventUse {
	uses := []EventUse{}
	for i, t := range totals {
		if t.n > 0 {
			uses = append(uses, EventUse{Event: Event(i).String(), N: t.n, Mean: each(t.time, t.n), Share: share(t.time, span)})
		}
	}
	return uses
}

func (m *Measures) utilisation(r *Result, span des.Time) {
	u := &r.Utilisation
	u.Bus.By, u.Cards = []HolderUse{}, []CardUse{}
	var held des.Time
	for i, c := range m.cards {
		if c == nil {
			continue
		}
		r.Polls.N += c.polls
		r.Polls.Hits += c.hits
		if c.busHeld > 0 {
			held += c.busHeld
			u.Bus.By = append(u.Bus.By, HolderUse{Card: c.card, Busy: share(c.busHeld, span)})
		}
		if i >= HostCard {
			continue
		}
		use := CardUse{
			Card: c.card, Handlers: share(c.handlers, span), Polls: share(c.search, span),
			Idle: share(span-c.handlers-c.search, span),
			DMA:  share(c.dmaBusy, span), DMAWait: share(c.dmaWait, span),
			Receive: share(c.receive, span), Send: share(c.send, span),
			Events: eventUses(&c.events, span), Transfer: eventUses(&c.transfers, span), Waits: []WaitUse{},
		}
		copy(use.Found[:], c.queueHits[:])
		for i, w := range c.waits {
			if w.n > 0 {
				use.Waits = append(use.Waits, WaitUse{
					Reason: Reason(i).String(), N: w.n, Mean: each(w.time, w.n), Share: share(w.time, span),
				})
			}
		}
		u.Cards = append(u.Cards, use)
	}
	u.Bus.Busy = share(held, span)
	r.Polls.Misses = r.Polls.N - min(r.Polls.Hits, r.Polls.N)
	r.Polls.HitRate = ratio(r.Polls.Hits, r.Polls.N)
}
