package study

import (
	"fmt"
	"io"

	"spinesim/sim"
	"spinesim/spine"
)

// CostRow is one line of a cost table.
type CostRow struct {
	Handler  string `json:"handler"` // or "poll"
	Cycles   int32  `json:"cycles"`
	Accesses int32  `json:"accesses"` // loads and stores
	Source   string `json:"source"`
}

// CostRows lists a cost table, the poll first.
func CostRows(t *spine.CostTable) []CostRow {
	rows := []CostRow{{"poll", t.Poll.Cycles, t.Poll.Accesses, t.Poll.Source}}
	for _, h := range spine.Handlers {
		c := t.Handler[h]
		rows = append(rows, CostRow{h.String(), c.Cycles, c.Accesses, c.Source})
	}
	return rows
}

// WriteExecuted writes a table of executed costs as a scenario. The router
// handler's entry is the whole handler.
func WriteExecuted(w io.Writer, extends string, t *spine.CostTable) error {
	fmt.Fprintf(w, `# Costs of the SPINE handlers in C (spine/firmware), compiled with clang -O2 and
# executed by spinesim %s on the simulated processor, alone on the memory bus;
# means over 1,000 packets of 1,500 bytes. Nothing here is fitted or chosen but
# what its source says was not executed.
name: executed
description: "The default experiment with costs of executed firmware instead of chosen ones"
extends: %s
firmware:
  router_cost: table
  poll: %d cycles            # %s
  costs:
`, sim.Version, extends, t.Poll.Cycles, t.Poll.Source)
	for _, r := range CostRows(t)[1:] {
		if _, err := fmt.Fprintf(w, "    %s: {cycles: %d cycles, accesses: %d, source: %q}\n", r.Handler, r.Cycles, r.Accesses, r.Source); err != nil {
			return err
		}
	}
	return nil
}
