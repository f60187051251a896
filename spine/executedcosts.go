package spine

import (
	"fmt"

	"spinesim/spine/firmware"
	"spinesim/traces"
)

// ExecutedCosts is the table of what the firmware in C takes when it is executed
// (see firmware.HandlerCosts): means over the packets that were run, rounded. A
// poll's cost is the seventh part of the dispatcher's idle scan, rounded up.
// What was not executed keeps its start cost, and says so.
//
// The entry of the router handler is the whole handler, look-up and checksum
// included, so that the extension must charge no cycles of its own beside it
// (router.Costs{}); its loads are still counted as it makes them.
func ExecutedCosts(c *firmware.Costs) (CostTable, error) {
	t := StartCosts()
	if c.Scan.Runs == 0 {
		return t, fmt.Errorf("executed costs: no scan was run")
	}
	const queues = int32(len(c.Miss))
	cycles, accesses := c.Scan.Mean()
	t.Poll = Cost{
		Cycles: (cycles + queues - 1) / queues, Accesses: accesses / queues,
		Source: fmt.Sprintf("executed: a seventh of an idle scan of %d cycles", cycles),
	}
	for _, h := range Handlers {
		x := c.Handler[h]
		if x.Runs == 0 {
			if h == traces.RouterIn {
				return t, fmt.Errorf("executed costs: %v was not run", h)
			}
			e := t.Handler[h]
			e.Source = "not executed; " + e.Source
			t.Handler[h] = e
			continue
		}
		cycles, accesses := x.Mean()
		t.Handler[h] = Cost{
			Cycles: cycles, Accesses: accesses,
			Source: fmt.Sprintf("executed: %s, %d to %d cycles in %d runs", firmware.Symbol(h), x.Min, x.Max, x.Runs),
		}
	}
	return t, t.Validate()
}
