package schedule

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"spinesim/sim/des"
	"spinesim/spine"
	"spinesim/traces"
)

// How many polls a step waits for what the schedule expects at about that time
// (chosen): the next packet's header, which takes less than two polls, and an
// ACK, which another card's polls and the bus may make late. If it is not there
// by then the packet has to wait for the next cycle.
const (
	headerPatience = 4
	ackPatience    = 8
)

// plan turns a schedule into steps. A card that the problem does not have, but
// that has the same to do as one that it has, gets the same steps; one that
// has nothing to do in the cycle looks for whatever comes.
func (s *Schedule) plan(m *Machine, flows []Flow, hybrid bool) *Plan {
	kind := "static"
	if hybrid {
		kind = "hybrid"
	}
	p := &Plan{Name: kind}
	all := roles(m, flows)
	for c := range uint8(m.Cards) {
		r := all[c]
		steps := s.steps(m, c, r)
		if steps == nil {
			for d := range uint8(m.Cards) {
				if all[d].same(r) {
					if steps = s.steps(m, d, r); steps != nil {
						break
					}
				}
			}
		}
		if steps == nil {
			steps = sweep(m, r)
		}
		if hybrid {
			steps = withSlots(m, r, steps)
		}
		p.add(c, r.sources, steps)
	}
	return p
}

// add puts a card to those that run the same.
func (p *Plan) add(card uint8, sources []uint8, steps []Step) {
	for i := range p.Cards {
		o := &p.Cards[i]
		if slices.Equal(o.Sources, sources) && slices.EqualFunc(o.Steps, steps, func(a, b Step) bool {
			return a.Handler == b.Handler && a.Guard == b.Guard && a.Polls == b.Polls && a.Handlers == b.Handlers && slices.Equal(a.Order, b.Order)
		}) {
			o.Cards = append(o.Cards, card)
			return
		}
	}
	p.Cards = append(p.Cards, CardPlan{Cards: []uint8{card}, Sources: sources, Steps: steps})
}

// run is a step.
func run(h traces.Event, g spine.Guard, polls int) Step {
	return Step{StaticStep: spine.StaticStep{Handler: h, Guard: g, Polls: polls}}
}

// guard is how a handler's message is found on a card.
func guard(m *Machine, r role, h traces.Event) Step {
	switch h {
	case traces.RxCheckHeader, traces.PeerAck, traces.FromHost:
		return run(h, spine.GuardLook, 0)
	case traces.RxCheckBody:
		if m.Firmware.Receive == spine.ReceiveSplit {
			return run(h, spine.GuardWait, 0)
		}
		return run(h, spine.GuardKnown, 0)
	case traces.PeerToPeerStart, traces.DMAStartHeader, traces.ToHost:
		return run(h, spine.GuardWait, 0)
	case traces.WireOutputDone:
		if r.receives {
			// Packets to send out come when they come: waiting for the wire
			// would hold up those that are received.
			return run(h, spine.GuardLook, 0)
		}
		return run(h, spine.GuardWait, 0)
	case traces.WireOutputStart:
		if len(r.sources) == 0 {
			return run(h, spine.GuardKnown, 0) // its own software routed it
		}
		return run(h, spine.GuardLook, 0)
	case traces.AckSend:
		if r.receives {
			return run(h, spine.GuardWait, 0) // the engine may be at a packet
		}
		return run(h, spine.GuardKnown, 0)
	}
	return run(h, spine.GuardKnown, 0)
}

// steps are the schedule's for one of its cards, nil when it has none.
func (s *Schedule) steps(m *Machine, card uint8, r role) []Step {
	type placed struct {
		op int
		at des.Time
	}
	var ops []placed
	for i, o := range s.p.Ops {
		if o.Card == card && o.Handler != traces.NoEvent {
			ops = append(ops, placed{i, mod(s.Start[i], s.Interval)})
		}
	}
	if len(ops) == 0 {
		return nil
	}
	// The cycle begins with the first packet's start, or its output.
	first := des.Time(0)
	for _, h := range []traces.Event{traces.WireOutputStart, traces.PeerToPeerStart} {
		for _, o := range ops {
			if op := s.p.Ops[o.op]; op.Handler == h && op.Packet == 0 {
				first = o.at
				break
			}
		}
	}
	slices.SortStableFunc(ops, func(a, b placed) int {
		return cmp.Compare(mod(a.at-first, s.Interval), mod(b.at-first, s.Interval))
	})
	steps := make([]Step, 0, len(ops)+4)
	for _, o := range ops {
		op := s.p.Ops[o.op]
		st := guard(m, r, op.Handler)
		switch op.Handler {
		case traces.RxCheckHeader:
			if s.soon(m, o.op) {
				st = run(op.Handler, spine.GuardWait, headerPatience)
			}
		case traces.PeerAck:
			// A card that sends others' packets out as well is not that regular.
			if len(r.sources) == 0 && s.soon(m, o.op) {
				st = run(op.Handler, spine.GuardWait, ackPatience)
			}
		case traces.WireOutputStart:
			if s.routedHere(o.op) {
				st = run(op.Handler, spine.GuardKnown, 0)
			}
		case traces.PeerToPeerStart:
			// What the host gets waits for the engine as well.
			steps = append(steps, guard(m, r, traces.ToHost))
		}
		steps = append(steps, st)
	}
	return complete(m, r, steps)
}

func mod(t, m des.Time) des.Time { return ((t % m) + m) % m }

// soon tells whether the schedule runs a handler about when what it is for comes
// in: then a single poll might just miss it.
func (s *Schedule) soon(m *Machine, op int) bool {
	poll := m.cycles(float64(m.Firmware.Costs.Poll.Cycles))
	for _, e := range s.p.Edges {
		if e.To != op || s.p.Ops[e.From].Handler != traces.NoEvent {
			continue
		}
		in := s.Start[e.From] + s.p.Ops[e.From].Time
		return s.Start[op]-in < 2*poll
	}
	return false
}

// routedHere tells whether an output's packet leaves by the wire that it came
// from: then the card's own software makes the message, and it needs no ACK.
func (s *Schedule) routedHere(op int) bool {
	for _, e := range s.p.Edges {
		if e.To == op && s.p.Ops[e.From].Handler == traces.EnqIPOutput {
			return true
		}
	}
	return false
}

// complete adds steps for what the cycle does not come by in regular traffic.
func complete(m *Machine, r role, steps []Step) []Step {
	for _, h := range r.must(&m.Firmware) {
		if !slices.ContainsFunc(steps, func(s Step) bool {
			// A step for the card's own packets does not find those of others.
			own := h == traces.WireOutputStart && len(r.sources) > 0 && s.Guard == spine.GuardKnown
			return s.Handler == h && !own
		}) {
			steps = append(steps, guard(m, r, h))
		}
	}
	return steps
}

// sweep is the cycle of a card that has no part in the schedule: its handlers
// in the order of a packet's way.
func sweep(m *Machine, r role) []Step {
	steps := complete(m, r, nil)
	if len(steps) == 0 {
		// Nothing is ever to come; a look at the wire passes the time.
		steps = []Step{run(traces.RxCheckHeader, spine.GuardLook, 0)}
	}
	return steps
}

// chainHandlers are the steps that a hybrid keeps static.
var chainHandlers = []traces.Event{
	traces.ToHost, traces.PeerToPeerStart, traces.DMAStartHandler, traces.DMAGenericStart, traces.DMAStartBody, traces.DMAStartHeader,
	traces.AckSend,
}

// withSlots keeps a cycle's DMA chain and leaves the rest to background slots:
// while a packet's body moves, as many handlers as the cycle had there.
func withSlots(m *Machine, r role, steps []Step) []Step {
	if !r.receives {
		return append(steps, Step{StaticStep: spine.StaticStep{
			Handler: traces.NoEvent, Order: []uint8{spine.QSelf, spine.QWire, spine.QHost}, Handlers: 1,
		}})
	}
	var out []Step
	rest := 0
	slot := func(n int) Step {
		order := []uint8{spine.QSelf, spine.QPeer, spine.QPeer + 1, spine.QPeer + 2, spine.QWire, spine.QHost}
		// Queues of cards that are not there hold nothing.
		order = slices.DeleteFunc(order, func(q uint8) bool { return q >= spine.QPeer && int(q-spine.QPeer) >= m.Cards-1 })
		return Step{StaticStep: spine.StaticStep{Handler: traces.NoEvent, Order: order, Handlers: n}}
	}
	for _, s := range steps {
		if !slices.Contains(chainHandlers, s.Handler) {
			rest++
		}
	}
	chains := 0
	for _, s := range steps {
		if s.Handler == traces.DMAStartHeader {
			chains++
		}
	}
	for _, s := range steps {
		if !slices.Contains(chainHandlers, s.Handler) {
			continue
		}
		if s.Handler == traces.DMAStartHeader {
			out = append(out, slot(max(1, rest/max(1, chains))))
		}
		out = append(out, s)
	}
	if chains == 0 {
		out = append(out, slot(max(1, rest)))
	}
	return out
}

// String lists the steps, a line each.
func (c *CardPlan) String() string {
	var b strings.Builder
	steps, _ := flat(c.Steps)
	for i := range steps {
		fmt.Fprintln(&b, stepText(&steps[i]))
	}
	return b.String()
}

func stepText(s *spine.StaticStep) string {
	if s.Background() {
		var q []string
		for _, n := range s.Order {
			q = append(q, fmt.Sprintf("Q%d", n))
		}
		return fmt.Sprintf("background %s, at most %d handlers", strings.Join(q, " "), s.Handlers)
	}
	return fmt.Sprintf("%s: %s", s.Handler, guardText(s))
}

func guardText(s *spine.StaticStep) string {
	if s.Guard == spine.GuardWait && s.Polls > 0 {
		return fmt.Sprintf("wait %d polls", s.Polls)
	}
	return s.Guard.String()
}
