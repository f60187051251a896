package spine

import (
	"fmt"
	"sort"
	"strconv"
	"strings"
)

// PolicyKind is a policy that scenarios can name.
type PolicyKind struct {
	Name string
	// Doc is one line on what it does.
	Doc string
	// Params are the parameters it knows, with their defaults.
	Params []Param
	// New makes a policy for one card.
	New func(a Args) (Policy, error)
}

// Param is a parameter of a policy.
type Param struct{ Name, Default, Doc string }

// Args are the parameters that a policy is made with.
type Args struct {
	values map[string]string
	// Seed is the run's seed, Card the card: together they give a policy
	// that draws lots a stream of its own.
	Seed uint64
	Card uint8
}

// String is a parameter's text.
func (a Args) String(name string) string { return a.values[name] }

// Int is a parameter that is a whole number of at least low.
func (a Args) Int(name string, low int) (int, error) {
	v, err := strconv.Atoi(a.values[name])
	if err != nil || v < low {
		return 0, fmt.Errorf("parameter %s: %q, want a whole number of at least %d", name, a.values[name], low)
	}
	return v, nil
}

// Ints is a parameter that is one whole number of at least low for each queue,
// separated by blanks or slashes; a single number stands for all seven.
func (a Args) Ints(name string, low int) ([NumQueues]int, error) {
	var out [NumQueues]int
	f := strings.FieldsFunc(a.values[name], func(r rune) bool { return r == ' ' || r == '/' })
	if len(f) != 1 && len(f) != NumQueues {
		return out, fmt.Errorf("parameter %s: %q, want 1 or %d numbers", name, a.values[name], NumQueues)
	}
	for i := range out {
		v, err := strconv.Atoi(f[i%len(f)])
		if err != nil || v < low {
			return out, fmt.Errorf("parameter %s: %q, want whole numbers of at least %d", name, a.values[name], low)
		}
		out[i] = v
	}
	return out, nil
}

// Order is a parameter that is an order of the queues, or the name of one.
func (a Args) Order(name string) ([NumQueues]uint8, error) {
	switch v := a.values[name]; v {
	case "default":
		return DefaultOrder, nil
	case "pci-first":
		return PCIFirstOrder, nil
	default:
		o, err := ParseOrder(v)
		if err != nil {
			return o, fmt.Errorf("parameter %s: %w", name, err)
		}
		return o, nil
	}
}

// policyKinds is what NewPolicy knows: one line a policy.
var policyKinds = []PolicyKind{
	{Name: "default", Doc: "strict priority Q0 … Q6, the bus last", New: strictNamed("default", DefaultOrder)},
	{Name: "pci-first", Doc: "strict priority Q6 Q3 Q4 Q5 Q0 Q1 Q2, the bus first", New: strictNamed("pci-first", PCIFirstOrder)},
	{Name: "strict", Doc: "strict priority in any order", Params: []Param{{"order", "default", "all seven queues, highest first"}}, New: newStrict},
	{Name: "round-robin", Doc: "the queues in turn", Params: []Param{{"order", "default", "the circle"}}, New: newRoundRobin},
}

func strictNamed(name string, o [NumQueues]uint8) func(Args) (Policy, error) {
	return func(Args) (Policy, error) { return NewStrict(name, o), nil }
}

func newStrict(a Args) (Policy, error) {
	o, err := a.Order("order")
	if err != nil {
		return nil, err
	}
	return NewStrict("", o), nil
}

func newRoundRobin(a Args) (Policy, error) {
	o, err := a.Order("order")
	if err != nil {
		return nil, err
	}
	return NewRoundRobin(o), nil
}

// PolicyKinds lists the policies by name.
func PolicyKinds() []PolicyKind {
	k := append([]PolicyKind(nil), policyKinds...)
	sort.Slice(k, func(i, j int) bool { return k[i].Name < k[j].Name })
	return k
}

// NewPolicy makes the policy that text names, for one card. The text is the
// name of a policy, with parameters behind a colon ("quota:limit=2 2 2 2 2 2 8"),
// separated by commas; or an order of all seven queues ("Q6 Q3 Q4 Q5 Q0 Q1 Q2"
// or "6345012"), which stands for strict priority.
func NewPolicy(text string, seed uint64, card uint8) (Policy, error) {
	name, rest, hasParams := strings.Cut(strings.TrimSpace(text), ":")
	name = strings.TrimSpace(name)
	for _, k := range policyKinds {
		if k.Name != name {
			continue
		}
		a := Args{values: map[string]string{}, Seed: seed, Card: card}
		for _, p := range k.Params {
			a.values[p.Name] = p.Default
		}
		if hasParams {
			for _, f := range strings.Split(rest, ",") {
				key, val, ok := strings.Cut(f, "=")
				key = strings.TrimSpace(key)
				if _, known := a.values[key]; !ok || !known {
					return nil, fmt.Errorf("policy %s: %q is not a parameter, want %s", name, strings.TrimSpace(f), k.paramNames())
				}
				a.values[key] = strings.TrimSpace(val)
			}
		}
		p, err := k.New(a)
		if err != nil {
			return nil, fmt.Errorf("policy %s: %w", name, err)
		}
		return p, nil
	}
	if o, err := ParseOrder(text); err == nil {
		return NewStrict("", o), nil
	}
	names := make([]string, 0, len(policyKinds))
	for _, k := range PolicyKinds() {
		names = append(names, k.Name)
	}
	return nil, fmt.Errorf("policy %q is not known, want an order of Q0 … Q6 or one of %s", text, strings.Join(names, ", "))
}

func (k *PolicyKind) paramNames() string {
	if len(k.Params) == 0 {
		return "none"
	}
	var n []string
	for _, p := range k.Params {
		n = append(n, p.Name+"="+p.Default)
	}
	return strings.Join(n, ", ")
}
