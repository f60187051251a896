package spine

import (
	"strings"
	"testing"

	"spinesim/spine/firmware"
	"spinesim/traces"
)

func TestExecutedCosts(t *testing.T) {
	var c firmware.Costs
	if _, err := ExecutedCosts(&c); err == nil {
		t.Error("no error for costs that nothing was run for")
	}
	c.Scan = firmware.Cost{Runs: 2, Cycles: 2 * 339, Accesses: 2 * 90}
	c.Handler[traces.RouterIn] = firmware.Cost{Runs: 10, Cycles: 3535, Accesses: 800, Min: 313, Max: 393}
	c.Handler[traces.AckSend] = firmware.Cost{Runs: 3, Cycles: 84, Accesses: 42, Min: 28, Max: 28}
	got, err := ExecutedCosts(&c)
	if err != nil {
		t.Fatal(err)
	}
	if got.Poll.Cycles != 49 || got.Poll.Accesses != 12 {
		t.Errorf("poll %+v, want 49 cycles with 12 accesses", got.Poll)
	}
	if x := got.Handler[traces.RouterIn]; x.Cycles != 354 || x.Accesses != 80 || !strings.Contains(x.Source, "spine_router_in, 313 to 393 cycles in 10 runs") {
		t.Errorf("router handler %+v", x)
	}
	if x := got.Handler[traces.AckSend]; x.Cycles != 28 || x.Accesses != 14 {
		t.Errorf("ACK send %+v", x)
	}
	if x := got.Handler[traces.PeerAck]; !strings.HasPrefix(x.Source, "not executed") || x.Cycles != StartCosts().Handler[traces.PeerAck].Cycles {
		t.Errorf("peer ACK %+v", x)
	}
}
