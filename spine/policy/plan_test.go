package policy

import (
	"strings"
	"testing"
)

// TestPlanCheck: plans that a dispatcher could not follow, and why.
func TestPlanCheck(t *testing.T) {
	for _, c := range []struct {
		name string
		plan Plan
		want string
	}{
		{"once", Plan{Seq: []uint8{0, 6}, Loop: -1}, ""},
		{"for ever", Plan{Seq: []uint8{0, 6}, Loop: 1}, ""},
		{"fixed", Plan{Seq: []uint8{0, 6}, Fixed: true}, ""},
		{"fixed, and used up", Plan{Seq: []uint8{0, 6}, Loop: -1, Fixed: true}, "no loop"},
		{"empty", Plan{}, "plans no poll"},
		{"loop of nothing", Plan{Seq: []uint8{0}, Loop: 1}, "a loop from poll 2 on"},
		{"eighth queue", Plan{Seq: []uint8{7}}, "want Q0 … Q6"},
	} {
		err := c.plan.Check()
		if got := err != nil; got != (c.want != "") || got && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", c.name, err, c.want)
		}
	}
}

// TestOnlyStrictIsFixed: a plan that is never asked for again is strict
// priority's alone; every other kind looks at the view or at what was hit.
func TestOnlyStrictIsFixed(t *testing.T) {
	for _, k := range PolicyKinds() {
		p, err := NewPolicy(k.Example, 1, 0)
		if err != nil {
			t.Fatal(err)
		}
		var plan Plan
		p.Plan(&View{FreeBuffers: 4, Buffers: 4}, &plan)
		if _, strict := p.(*Strict); plan.Fixed != strict {
			t.Errorf("%s: fixed %v, want %v", k.Example, plan.Fixed, strict)
		}
	}
}
