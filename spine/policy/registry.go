package policy

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
	// Language tells that the text behind the colon is not a list of
	// parameters but the policy's own: Args.Text hands it over whole.
	Language bool
	// Needs is what it needs from the hardware beyond polling; empty: nothing.
	Needs string
	// WorkConserving claims, for the default parameters, that while any queue
	// holds a message that can run, at most 2·NumQueues polls go by until a
	// handler runs.
	WorkConserving bool
	// StarvationFree claims, for the default parameters, that a queue that
	// stays ready is served after a bounded number of handlers of others,
	// whatever the others do.
	StarvationFree bool
	// Example is a text for NewPolicy.
	Example string
	// New makes a policy for one card.
	New func(a Args) (Policy, error)
}

// Param is a parameter of a policy.
type Param struct{ Name, Default, Doc string }

// policyKinds is what NewPolicy knows: one line a policy.
var policyKinds = []PolicyKind{
	defaultKind,
	pciFirstKind,
	strictKind,
	roundRobinKind,
	weightedKind,
	strideKind,
	quotaKind,
	adaptiveKind,
	continuationFirstKind,
	longestQueueFirstKind,
	oldestFirstKind,
	lotteryKind,
	rulesKind,
	staticKind,
	hybridKind,
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
// or "6345012"), which stands for strict priority. A policy's Name is such a
// text again.
func NewPolicy(text string, seed uint64, card uint8) (Policy, error) {
	name, rest, hasParams := strings.Cut(strings.TrimSpace(text), ":")
	name = strings.TrimSpace(name)
	for i := range policyKinds {
		k := &policyKinds[i]
		if k.Name != name {
			continue
		}
		a := Args{text: strings.TrimSpace(rest), Seed: seed, Card: card}
		if !k.Language {
			var err error
			if a.values, err = k.parse(rest, hasParams); err != nil {
				return nil, fmt.Errorf("policy %s: %w", name, err)
			}
		}
		p, err := k.New(a)
		if err != nil {
			return nil, fmt.Errorf("policy %s: %w", name, err)
		}
		return p, nil
	}
	o, err := ParseOrder(text)
	if err == nil {
		return NewStrict("", o), nil
	}
	if name != "" && strings.Trim(text, "Qq0123456789,-> \t") == "" {
		return nil, fmt.Errorf("policy: %w", err) // it was meant as an order
	}
	names := make([]string, 0, len(policyKinds))
	for _, k := range PolicyKinds() {
		names = append(names, k.Name)
	}
	return nil, fmt.Errorf("policy %q is not known, want an order of Q0 … Q6 or one of %s", text, strings.Join(names, ", "))
}

// parse reads the parameters behind the colon.
func (k *PolicyKind) parse(text string, given bool) (map[string]string, error) {
	values := map[string]string{}
	for _, p := range k.Params {
		values[p.Name] = p.Default
	}
	if !given {
		return values, nil
	}
	seen := map[string]bool{}
	for _, f := range strings.Split(text, ",") {
		key, val, ok := strings.Cut(f, "=")
		key = strings.TrimSpace(key)
		if _, known := values[key]; !ok || !known {
			return nil, fmt.Errorf("%q is not a parameter, want %s", strings.TrimSpace(f), k.paramNames())
		}
		if seen[key] {
			return nil, fmt.Errorf("parameter %s is given twice", key)
		}
		seen[key] = true
		values[key] = strings.TrimSpace(val)
	}
	return values, nil
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

// setting is a parameter's value as a policy's name shows it: left out where it
// is the standard one.
type setting struct{ name, value, standard string }

// policyName is the text by which NewPolicy makes the same policy again.
func policyName(kind string, settings ...setting) string {
	sep := ":"
	for _, s := range settings {
		if s.value != s.standard {
			kind += sep + s.name + "=" + s.value
			sep = ","
		}
	}
	return kind
}

// orderSetting is the parameter "order" where it is not Q0 … Q6.
func orderSetting(name string, o, standard [NumQueues]uint8) setting {
	return setting{name, digits(o), digits(standard)}
}

// digits writes an order as seven digits.
func digits(o [NumQueues]uint8) string {
	var b [NumQueues]byte
	for i, q := range o {
		b[i] = '0' + q
	}
	return string(b[:])
}

// slashed writes one number a queue as Args.Ints reads them.
func slashed(n [NumQueues]int) string {
	var f []string
	for _, v := range n {
		f = append(f, strconv.Itoa(v))
	}
	return strings.Join(f, "/")
}
