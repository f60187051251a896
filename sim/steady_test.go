package sim

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"spinesim/sim/des"
)

// TestPacketsCostNoMemory: a measured run allocates as much for many packets
// as for few, so neither its memory nor the collector's work grows with them.
// With all cards busy, the memory buses are still meeting new states after some
// thousand packets; the tables of these are bounded, at some MB a card.
func TestPacketsCostNoMemory(t *testing.T) {
	for name, tables := range map[string]float64{"fig6.4": 0, "four-way": 4 << 20} {
		cost := func(packets int) (count, bytes float64) {
			s, err := New(mustLoad(t, name, fmt.Sprintf("traffic.packets=%d", packets)), Options{})
			if err != nil {
				t.Fatal(err)
			}
			var a, b runtime.MemStats
			runtime.ReadMemStats(&a)
			if _, err := s.Run(context.Background()); err != nil {
				t.Fatal(err)
			}
			runtime.ReadMemStats(&b)
			return float64(b.Mallocs - a.Mallocs), float64(b.TotalAlloc - a.TotalAlloc)
		}
		few, fewBytes := cost(10000)
		many, manyBytes := cost(30000)
		if per := (many - few) / 20000; per > 0.01 && tables == 0 {
			t.Errorf("%s: %.3f allocations a packet", name, per)
		}
		if more := manyBytes - fewBytes; more > 16*20000+tables {
			t.Errorf("%s: %.0f bytes more for 20,000 packets more", name, more)
		}
	}
}

// TestIdleHour: an hour in which nothing arrives costs next to nothing,
// whatever the number of polls in it.
func TestIdleHour(t *testing.T) {
	var took []time.Duration
	for range 5 {
		sc := mustLoad(t, "fig6.4", "traffic.arrivals.process=constant", "traffic.arrivals.rate=10000 s", "traffic.arrivals.senders=1")
		s, err := New(sc, Options{Until: 3600 * des.Second})
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		r, err := s.Run(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		took = append(took, time.Since(start))
		if r.SimulatedS != 3600 || r.Offered > 1 {
			t.Fatalf("%d packets in %v simulated seconds, want at most one in 3,600", r.Offered, r.SimulatedS)
		}
		var polls uint64
		for i := range s.router.Cards() {
			polls += s.router.Card(i).Counts().Polls
		}
		if polls < 4*9e9 {
			t.Errorf("%d polls, want an hour's at 12 cycles of 30 ns on four cards", polls)
		}
	}
	// The goal is a tenth of a second; the bound leaves room for a machine
	// that does ten other things.
	if best := slices.Min(took); best > time.Second {
		t.Errorf("an idle hour takes %v", best)
	} else {
		t.Logf("an idle hour takes %v", best)
	}
}
