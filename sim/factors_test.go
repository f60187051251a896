package sim

import (
	"math"
	"slices"
	"testing"

	"spinesim/spine"
	"spinesim/traces"
)

// boxCycles is the cycles of every handler that ran, in order.
func boxCycles(t *testing.T, settings ...string) map[traces.Event][]uint64 {
	t.Helper()
	out := map[traces.Event][]uint64{}
	sc := mustLoad(t, "fig6.4", append([]string{"traffic.packets=40", "traffic.arrivals.rate=1000 packets/s"}, settings...)...)
	mustRun(t, sc, Options{Check: true, Sinks: []traces.Sink{sinkFunc(func(r *traces.Record) {
		if r.Kind == traces.KindBox {
			out[r.Event] = append(out[r.Event], r.Cycles)
		}
	})}})
	return out
}

// TestFactors: each factor multiplies the runs of its group and no others, that
// of the router handler included, and a cost by name wins.
func TestFactors(t *testing.T) {
	t.Parallel()
	plain := boxCycles(t)
	groups := map[string]spine.Factors{
		"receive": {Receive: 2.5}, "route": {Route: 2.5}, "dma": {DMA: 2.5}, "flow": {Flow: 2.5}, "send": {Send: 2.5},
	}
	for name, f := range groups {
		got := boxCycles(t, "firmware.factors."+name+"=2.5")
		for h, was := range plain {
			want := slices.Clone(was)
			if f.Of(h) != 0 {
				for i := range want {
					want[i] = uint64(math.Round(2.5 * float64(want[i])))
				}
			}
			if !slices.Equal(got[h], want) {
				t.Errorf("factor on %s: %v runs for %v cycles, want %v", name, h, got[h], want)
			}
		}
	}
	named := boxCycles(t, "firmware.factors.flow=7", "firmware.costs.Free buffer={cycles: 31 cycles, accesses: 3}")
	if c := named[traces.FreeBuffer][0]; c != 31 {
		t.Errorf("a cost of 31 cycles by name, with a factor of 7: %d cycles", c)
	}
	if c := named[traces.PeerAck][0]; c != 350 {
		t.Errorf("the same factor on a handler without a cost of its own: %d cycles, want 350", c)
	}
}

// TestWatchdogOfFactor: the watchdog bounds what the run takes, not what the
// extension charged.
func TestWatchdogOfFactor(t *testing.T) {
	t.Parallel()
	for factor, stopped := range map[string]bool{"1": false, "3": true} {
		sc := mustLoad(t, "fig6.4", "traffic.packets=5", "firmware.watchdog=300 cycles", "firmware.factors.route="+factor)
		r := mustRun(t, sc, Options{Check: true})
		if (len(r.Unloaded) > 0) != stopped {
			t.Errorf("factor %s: unloaded %v", factor, r.Unloaded)
		}
	}
}
