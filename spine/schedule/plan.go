package schedule

import (
	"fmt"
	"slices"

	"spinesim/spine"
	"spinesim/traces"
)

// Plan is a static schedule as people read and write it: a cycle of steps for
// each card.
type Plan struct {
	Name        string
	Description string
	Cards       []CardPlan
	// File is where it was read from, for messages.
	File string
}

// CardPlan is the cycle of some cards.
type CardPlan struct {
	Cards []uint8
	// Sources are the cards whose packets these cards send out; empty: as the
	// flows have it.
	Sources []uint8
	Steps   []Step
	line    int
}

// Step is a step of a cycle, or a part of it that is repeated.
type Step struct {
	spine.StaticStep
	// Repeat runs Steps so many times in a row, at least 1; 0 makes the step
	// one of the dispatcher's own.
	Repeat int
	Steps  []Step
	line   int
}

// flat is the steps with all repeats written out, with the lines they are
// from.
func flat(steps []Step) (out []spine.StaticStep, lines []int) {
	for i := range steps {
		s := &steps[i]
		if s.Repeat == 0 {
			out = append(out, s.StaticStep)
			lines = append(lines, s.line)
			continue
		}
		inner, at := flat(s.Steps)
		for range s.Repeat {
			out = append(out, inner...)
			lines = append(lines, at...)
		}
	}
	return out, lines
}

// of is the plan of a card, or nil.
func (p *Plan) of(card uint8) *CardPlan {
	for i := range p.Cards {
		if slices.Contains(p.Cards[i].Cards, card) {
			return &p.Cards[i]
		}
	}
	return nil
}

// at is where a line of the plan stands.
func (p *Plan) at(line int) string {
	switch {
	case p.File == "":
		return p.Name
	case line == 0:
		return p.File
	}
	return fmt.Sprintf("%s:%d", p.File, line)
}

// Policy is the policy that runs the plan's cycle on a card. name is what the
// policy calls itself.
func (p *Plan) Policy(name string, card uint8) (spine.StaticPolicy, error) {
	c := p.of(card)
	if c == nil {
		return nil, fmt.Errorf("%s: no cycle for card %d", p.at(0), card)
	}
	steps, _ := flat(c.Steps)
	return &policy{
		Deferred: &spine.Deferred{},
		name:     name,
		cycle:    &spine.StaticCycle{Name: p.Name, Steps: steps, Sources: c.Sources},
	}, nil
}

// policy is a static policy whose cycle is there.
type policy struct {
	*spine.Deferred // plans like a dispatcher that knows no cycles
	name            string
	cycle           *spine.StaticCycle
}

// Name is the policy's text.
func (p *policy) Name() string { return p.name }

// Cycle is what the dispatcher runs.
func (p *policy) Cycle() *spine.StaticCycle { return p.cycle }

// role is what a card has to do.
type role struct {
	receives bool
	sources  []uint8 // cards whose packets it sends out
	ownWire  bool    // sends packets out on the wire they came from
}

// roles are those of all cards.
func roles(m *Machine, flows []Flow) []role {
	out := make([]role, m.Cards)
	for _, f := range flows {
		out[f.Ingress].receives = true
		switch {
		case !f.crosses():
			out[f.Ingress].ownWire = true
		case !slices.Contains(out[f.Egress].sources, f.Ingress):
			out[f.Egress].sources = append(out[f.Egress].sources, f.Ingress)
		}
	}
	for i := range out {
		slices.Sort(out[i].sources)
	}
	return out
}

// same tells whether two cards can run one cycle.
func (r role) same(o role) bool {
	return r.receives == o.receives && r.ownWire == o.ownWire && (len(r.sources) > 0) == (len(o.sources) > 0)
}

// must lists the handlers whose messages may come up on a card.
func (r role) must(fw *spine.Spec) []traces.Event {
	var out []traces.Event
	if r.receives {
		out = append(out,
			traces.RxCheckHeader, traces.RxCheckBody, traces.EnqRouterIn, traces.RouterIn, traces.EnqIPOutput,
			traces.PeerToPeerStart, traces.DMAStartHandler, traces.DMAGenericStart, traces.DMAStartBody, traces.DMAStartHeader,
			traces.PeerAck, traces.FreeBuffer, traces.ToHost)
	}
	if r.ownWire || len(r.sources) > 0 {
		out = append(out, traces.WireOutputStart, traces.WireOutputDone)
	}
	if len(r.sources) > 0 {
		out = append(out, traces.AckSend)
	}
	if fw.HostReturn {
		out = append(out, traces.FromHost)
		for _, h := range []traces.Event{traces.WireOutputDone, traces.AckSend} {
			if !slices.Contains(out, h) {
				out = append(out, h)
			}
		}
	}
	return out
}
