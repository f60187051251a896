package spine

import (
	"strings"
	"testing"

	"spinesim/traces"
)

func TestFactoredCosts(t *testing.T) {
	start := StartCosts()
	if err := start.Validate(); err != nil {
		t.Fatal(err)
	}
	for _, scale := range []float64{0.01, 0.5, 1, 1.1, 3} {
		c := FactoredCosts(SameFactors(scale), 7)
		if err := c.Validate(); err != nil {
			t.Errorf("scale %g: %v", scale, err)
		}
		if c.Poll.Cycles != 7 || c.Vector.Cycles != 7 {
			t.Errorf("scale %g: a poll of %d cycles, a vector read of %d, want 7", scale, c.Poll.Cycles, c.Vector.Cycles)
		}
		for _, h := range Handlers {
			got, want := float64(c.Handler[h].Cycles), float64(start.Handler[h].Cycles)*scale
			if h == traces.RouterIn {
				want = 0 // the extension charges for itself
			} else {
				want = max(want, 1)
			}
			if got < want-0.5 || got > want+0.5 {
				t.Errorf("scale %g: %v costs %g cycles, want %g", scale, h, got, want)
			}
			if c.Handler[h].Source == "" {
				t.Errorf("%v: where does its cost come from?", h)
			}
		}
	}
	// Only handlers have costs.
	is := map[traces.Event]bool{}
	for _, h := range Handlers {
		is[h] = true
	}
	for e, c := range start.Handler {
		if !is[traces.Event(e)] && c != (Cost{}) {
			t.Errorf("%v is no handler, but costs %+v", traces.Event(e), c)
		}
	}
}

func TestCostErrors(t *testing.T) {
	for _, tc := range []struct {
		change func(*CostTable)
		want   string
	}{
		{func(c *CostTable) { c.Poll.Cycles = 0 }, "cost of a poll: 0 cycles, want at least 1"},
		{func(c *CostTable) { c.Vector.Cycles = -3 }, "cost of an event vector read: -3 cycles"},
		{func(c *CostTable) { c.Poll.Accesses = 13 }, "cost of a poll: 13 loads and stores, want 0 … 12"},
		{func(c *CostTable) { c.Handler[traces.FreeBuffer].Cycles = 0 }, traces.FreeBuffer.String()},
		{func(c *CostTable) { c.Handler[traces.AckSend].Accesses = -1 }, traces.AckSend.String()},
		{func(c *CostTable) { c.Handler[traces.RouterIn].Cycles = -1 }, traces.RouterIn.String()},
	} {
		c := StartCosts()
		tc.change(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%v, want an error with %q", err, tc.want)
		}
	}
}
