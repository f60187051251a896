package study

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"spinesim/spine"
	"spinesim/spine/policy"
)

// setting is a policy of the registry with the values of its parameters.
type setting struct {
	kind   *spine.PolicyKind
	values []string // by the kind's parameters
}

// defaults is a kind with its default parameters.
func defaults(k *spine.PolicyKind) setting {
	s := setting{kind: k}
	for _, p := range k.Params {
		s.values = append(s.values, p.Default)
	}
	return s
}

// text is the setting as spine.NewPolicy reads it.
func (s setting) text() string {
	var b strings.Builder
	b.WriteString(s.kind.Name)
	sep := ":"
	for i, p := range s.kind.Params {
		if s.values[i] != p.Default {
			fmt.Fprintf(&b, "%s%s=%s", sep, p.Name, s.values[i])
			sep = ","
		}
	}
	return b.String()
}

// neighbours are the settings that differ from s in a step of one parameter.
// The kind of a parameter is read off its value; a policy that does not take a
// step's value refuses it later. Orders are other orders worth trying.
func (s setting) neighbours(orders []string) []setting {
	var out []setting
	for i, v := range s.values {
		for _, w := range steps(v, orders) {
			n := setting{kind: s.kind, values: slices.Clone(s.values)}
			n.values[i] = w
			out = append(out, n)
		}
	}
	return out
}

// steps are the values next to a parameter's value.
func steps(v string, orders []string) []string {
	if o, ok := asOrder(v); ok {
		var out []string
		for _, w := range append([]string{"default", "pci-first"}, orders...) {
			if x, ok := asOrder(w); ok && x != o {
				out = append(out, w)
			}
		}
		for i := range len(o) - 1 {
			x := o
			x[i], x[i+1] = x[i+1], x[i]
			out = append(out, policy.FormatOrder(x))
		}
		return out
	}
	switch v {
	case "yes":
		return []string{"no"}
	case "no":
		return []string{"yes"}
	}
	if f := strings.Split(v, "/"); len(f) == spine.NumQueues {
		var out []string
		for i := range f {
			n, err := strconv.Atoi(f[i])
			if err != nil {
				return nil
			}
			for _, m := range scaled(n) {
				g := slices.Clone(f)
				g[i] = strconv.Itoa(m)
				out = append(out, strings.Join(g, "/"))
			}
		}
		return out
	}
	if t, ok := strings.CutSuffix(v, "%"); ok {
		n, err := strconv.Atoi(strings.TrimSpace(t))
		if err != nil {
			return nil
		}
		var out []string
		for _, m := range []int{n - 25, n - 10, n - 5, n + 5, n + 10, n + 25} {
			if m >= 0 && m <= 100 {
				out = append(out, strconv.Itoa(m)+"%")
			}
		}
		return out
	}
	n, err := strconv.Atoi(v)
	if err != nil {
		return nil // text whose meaning only the policy knows
	}
	var out []string
	for _, m := range append(scaled(n), n-1, n+1) {
		if w := strconv.Itoa(m); m >= 0 && m != n && !slices.Contains(out, w) {
			out = append(out, w)
		}
	}
	return out
}

// scaled are half and double of a number.
func scaled(n int) []int {
	if n == 0 {
		return []int{1, 8}
	}
	if n/2 == n*2 {
		return nil
	}
	return []int{n / 2, n * 2}
}

// asOrder reads an order of the queues or the name of one.
func asOrder(v string) (order, bool) {
	switch v {
	case "default":
		return spine.DefaultOrder, true
	case "pci-first":
		return spine.PCIFirstOrder, true
	}
	o, err := policy.ParseOrder(v)
	return o, err == nil
}
