package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"spinesim/sim/testenv"

	"spinesim/spine"
)

// TestPathsChangeNothing: a machine whose processors follow paths, recall polls
// and skip loops leaves the same record as one whose processors execute every
// instruction by itself.
func TestPathsChangeNothing(t *testing.T) {
	rounds := testenv.Size(6, 24)
	for seed := range uint64(rounds) {
		r := rand.New(rand.NewPCG(seed, 5))
		pick := func(s ...string) string { return s[r.IntN(len(s))] }
		how := executions[1+r.IntN(2)]
		settings := []string{
			fmt.Sprintf("traffic.packets=%d", 20+r.IntN(100)),
			fmt.Sprintf("seed=%d", seed),
			"traffic.arrivals.rate=" + pick("30 µs", "60 µs", "110 µs", "300 µs"),
			"traffic.arrivals.process=" + pick("poisson", "constant"),
			"traffic.sizes.kind=" + pick("fixed", "imix", "rfc2544"),
			fmt.Sprintf("firmware.buffers=%d", 2+r.IntN(20)),
			fmt.Sprintf("firmware.credits=%d", 1+r.IntN(4)),
		}
		if how == spine.ExecuteHandlers {
			settings = append(settings, "policy="+pick("default", "pci-first", "round-robin", "lottery", "stride", "adaptive"))
		} else {
			settings = append(settings, "policy="+pick("default", "pci-first"))
		}
		if r.IntN(3) == 0 {
			settings = append(settings, "firmware.extension=[testdata/extensions/misdeeds.o]")
		}
		preset := pick("fig6.4", "four-way")
		print := func(singly bool, opt Options) string {
			s, err := New(withExecution(t, how, preset, settings...), opt)
			if err != nil {
				t.Fatalf("seed %d: %v: %v", seed, settings, err)
			}
			for i := range s.router.Cards() {
				c := s.router.Card(i).Firmware().CPU
				c.Singly, c.StepLoops = singly, singly
			}
			res, err := s.Run(context.Background())
			if err != nil {
				t.Fatalf("seed %d: %s %s %v: %v", seed, how, preset, settings, err)
			}
			return fmt.Sprintf("%v, %d forwarded, marks %v, faults %+v", res.Fingerprint, res.Forwarded, res.Marks, res.Faults)
		}
		opt := Options{Stepping: r.IntN(3) == 0}
		if one, all := print(true, opt), print(false, opt); one != all {
			t.Errorf("seed %d: %s %s %v:\none by one %s\nby paths   %s", seed, how, preset, settings, one, all)
		}
	}
}
