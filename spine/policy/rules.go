package policy

import (
	"errors"
	"strings"
)

var rulesKind = PolicyKind{
	Name: "rules", Doc: "an order, and rules under which others hold", Language: true,
	Params: []Param{
		{"order=ORDER", "default", "order while no rule holds"},
		{"when CONDITION [and …] [until CONDITION [and …]] use ORDER", "", "a rule with an order of its own"},
		{"when … first QUEUE…", "", "a rule that lifts queues to the front of the order"},
		{"when … last QUEUE…", "", "a rule that sinks queues to its end"},
		{"CONDITION", "", "buffers, credits (a number or a share, 25%), backlog or unpolled Qn, compared by < <= = != >= >"},
		{"CONDITION", "", "chain, engine or last Qn, each also behind not"},
	},
	WorkConserving: true,
	Example:        "rules:order=default, when buffers < 25% until buffers > 50% use pci-first, when unpolled Q6 >= 6 first Q6",
	New:            func(a Args) (Policy, error) { return NewRules(a.Text()) },
}

// Rules is strict priority in an order that rules choose after each handler.
//
// Purpose: a dispatcher of one's own in a scenario file, without writing Go.
// Parameters: an order, and rules in a small language; commas separate them.
//
//	rules:order=ORDER, when CONDITIONS [until CONDITIONS] ACTION, when …
//
// The first rule that holds decides; where none does, the order holds. A rule
// holds while all its conditions do, which are joined by "and". With "until" it
// goes on holding, whatever its own conditions say, until all of those behind
// "until" do: hysteresis. A rule's action is one of
//
//	use ORDER     poll in this order: default, pci-first, 6345012, Q6 Q3 …
//	first Q6 Q3   poll these first, then the rest in the policy's order
//	last Q1       poll these after all others
//
// A condition compares (< <= = != >= >) a number with a whole number, or asks a
// question, which "not" turns round:
//
//	buffers       free packet buffers; also as a share: buffers < 25%
//	credits       credits left, those of all peers together; also as a share
//	backlog       packets routed whose DMA has not begun
//	unpolled Q6   handlers that have run since Q6 was last polled
//	chain         has a DMA chain begun whose packet has not departed?
//	engine        is the host-DMA engine reserved or busy?
//	last Q1       did the handler that ran last come from Q1?
//
// Needs from hardware: nothing but the DMA engine's status register (chain,
// engine).
// Example: "rules:order=default, when buffers<25% until buffers>50% use
// pci-first, when unpolled Q6>=6 first Q6".
//
// It is work-conserving, for every rule polls all queues. It is not free of
// starvation in general; it is with a rule "when unpolled Qn >= k first Qn" for
// every queue, where no rule before those can hold for ever.
type Rules struct {
	order    [NumQueues]uint8
	rules    []rule
	current  [NumQueues]uint8 // the present plan
	unpolled [NumQueues]int   // by queue: handlers since its last poll
}

// rule is one rule and whether it holds.
type rule struct {
	when, until []condition
	action      ruleAction
	queues      []uint8          // of first and last
	order       [NumQueues]uint8 // to poll while the rule holds
	on          bool
}

type ruleAction uint8

const (
	actionUse ruleAction = iota
	actionFirst
	actionLast
)

var actionNames = [...]string{actionUse: "use", actionFirst: "first", actionLast: "last"}

// fact is what a condition is about.
type fact uint8

const (
	factBuffers fact = iota
	factCredits
	factBacklog
	factUnpolled
	factChain
	factEngine
	factLast
)

var facts = [...]struct {
	name    string
	numeric bool // compared with a number; otherwise a question
	share   bool // the number may be a share of all
	queue   bool // names a queue
}{
	factBuffers:  {name: "buffers", numeric: true, share: true},
	factCredits:  {name: "credits", numeric: true, share: true},
	factBacklog:  {name: "backlog", numeric: true},
	factUnpolled: {name: "unpolled", numeric: true, queue: true},
	factChain:    {name: "chain"},
	factEngine:   {name: "engine"},
	factLast:     {name: "last", queue: true},
}

// relation is how a condition compares.
type relation uint8

const (
	less relation = iota
	atMost
	equal
	notEqual
	atLeast
	greater
)

var relations = [...]string{less: "<", atMost: "<=", equal: "=", notEqual: "!=", atLeast: ">=", greater: ">"}

// condition is one comparison or question.
type condition struct {
	fact  fact
	queue uint8
	not   bool // of a question
	rel   relation
	level Level
}

// NewRules reads an order and rules, as they stand behind "rules:". At least one
// rule is needed.
func NewRules(text string) (*Rules, error) {
	r := &Rules{order: DefaultOrder}
	ordered := false
	for _, item := range strings.Split(text, ",") {
		item = strings.TrimSpace(item)
		if val, ok := orderItem(item); ok {
			if ordered || len(r.rules) > 0 {
				return nil, errors.New("order= is given twice or behind a rule, want it once and first")
			}
			o, err := namedOrder(val)
			if err != nil {
				return nil, err
			}
			r.order, ordered = o, true
			continue
		}
		u, err := parseRule(item)
		if err != nil {
			return nil, err
		}
		u.finish(r.order)
		r.rules = append(r.rules, u)
	}
	if len(r.rules) == 0 {
		return nil, errors.New("no rule, want at least one: when CONDITIONS use ORDER")
	}
	return r, nil
}

// finish works out the order of a rule that moves queues.
func (u *rule) finish(base [NumQueues]uint8) {
	if u.action == actionUse {
		return
	}
	moved := uint8(0)
	for _, q := range u.queues {
		moved |= 1 << q
	}
	at, rest := 0, len(u.queues)
	if u.action == actionLast {
		at, rest = NumQueues-len(u.queues), 0
	}
	copy(u.order[at:], u.queues)
	for _, q := range base {
		if moved>>q&1 == 0 {
			u.order[rest] = q
			rest++
		}
	}
}

// Name is "rules:" with the order and the rules.
func (r *Rules) Name() string {
	var b strings.Builder
	b.WriteString("rules:")
	if r.order != DefaultOrder {
		b.WriteString("order=" + digits(r.order) + ",")
	}
	for i := range r.rules {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(r.rules[i].String())
	}
	return b.String()
}

// Plan polls in the order of the first rule that holds.
func (r *Rules) Plan(v *View, p *Plan) {
	r.current = r.order
	chosen := false
	for i := range r.rules {
		u := &r.rules[i]
		// Every rule looks, so that its hysteresis does not depend on those
		// before it.
		switch {
		case u.until == nil:
			u.on = r.all(u.when, v)
		case u.on:
			u.on = !r.all(u.until, v)
		default:
			u.on = r.all(u.when, v) && !r.all(u.until, v)
		}
		if u.on && !chosen {
			r.current, chosen = u.order, true
		}
	}
	p.Seq = append(p.Seq[:0], r.current[:]...)
	p.Loop = 0
}

// Hit counts the handlers that queues have waited for their poll.
func (r *Rules) Hit(n int64, _ uint8) {
	for i, q := range r.current {
		if int64(i) < n {
			r.unpolled[q] = 0
		} else if r.unpolled[q] < maxLevel {
			r.unpolled[q]++
		}
	}
}

func (r *Rules) all(cs []condition, v *View) bool {
	for i := range cs {
		if !r.holds(&cs[i], v) {
			return false
		}
	}
	return true
}

func (r *Rules) holds(c *condition, v *View) bool {
	d := 0
	switch c.fact {
	case factBuffers:
		d = c.level.compare(v.FreeBuffers, v.Buffers)
	case factCredits:
		d = c.level.compare(v.Credits, v.AllCredits)
	case factBacklog:
		d = c.level.compare(v.Backlog, 0)
	case factUnpolled:
		d = c.level.compare(r.unpolled[c.queue], 0)
	case factChain:
		return v.ChainActive != c.not
	case factEngine:
		return v.EngineBusy != c.not
	case factLast:
		return (v.LastQueue == c.queue) != c.not
	}
	switch c.rel {
	case less:
		return d < 0
	case atMost:
		return d <= 0
	case equal:
		return d == 0
	case notEqual:
		return d != 0
	case atLeast:
		return d >= 0
	default:
		return d > 0
	}
}
