package study

import (
	"context"
	"errors"
	"math"
	"testing"

	"spinesim/sim/des"
)

// fakeRouter loses packets as a function of the rate, with noise between
// replications that shrinks with the length of a run and is common to all
// rates.
type fakeRouter struct {
	loss         func(rate float64) float64
	spread       float64 // of the rate at which a replication of one packet loses
	seed         uint64
	replications int
	calls        int
	packets      uint64
}

func (f *fakeRouter) measure(_ context.Context, rates []float64, packets uint64) ([][]trial, error) {
	out := make([][]trial, len(rates))
	for i, rate := range rates {
		f.calls++
		for j := range f.replications {
			r := des.NewStream(f.seed, string(rune('a'+j)))
			var z float64 // about normal
			for range 12 {
				z += r.Float64()
			}
			z -= 6
			at := rate * (1 + z*f.spread/math.Sqrt(float64(packets)))
			lost := math.Round(f.loss(at) * float64(packets))
			out[i] = append(out[i], trial{offered: packets, lost: uint64(lost), gap: 1e6 / rate, latency: 100, p99: 200})
			f.packets += packets
		}
	}
	return out, nil
}

// exponential loss that meets 0.5 % at a rate.
func lossAt(root, steep float64) func(float64) float64 {
	return func(rate float64) float64 { return min(1, 0.005*math.Exp(steep*(rate/root-1))) }
}

// knee loses nothing up to a rate and all beyond it.
func knee(root float64) func(float64) float64 {
	return func(rate float64) float64 { return max(0, 1-root/rate) }
}

func newSearch(f *fakeRouter, bound, start float64) *search {
	return &search{
		bound: bound, start: start, most: 1e9, first: 4000, last: 100_000, replications: f.replications,
		resolution: 0.0025, measure: f.measure,
	}
}

func TestSearchFindsTheRoot(t *testing.T) {
	for name, c := range map[string]struct {
		loss              func(float64) float64
		bound, root, from float64
	}{
		"gentle from below":     {lossAt(12345, 20), 0.005, 12345, 100},
		"gentle from above":     {lossAt(12345, 20), 0.005, 12345, 9e6},
		"steep":                 {lossAt(777, 400), 0.005, 777, 10_000},
		"knee at 0.5 %":         {knee(20_000), 0.005, 20_000 / 0.995, 10_000},
		"knee without loss":     {knee(20_000), 0, 20_000, 10_000},
		"starts right there":    {lossAt(10_000, 50), 0.005, 10_000, 10_000},
		"gentle, larger bound":  {lossAt(12345, 20), 0.02, 12345 * (1 + math.Log(4)/20), 10_000},
		"a low rate, far below": {lossAt(3, 30), 0.005, 3, 1000},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSearch(&fakeRouter{loss: c.loss, replications: 2}, c.bound, c.from)
			f, err := s.run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			lo, hi := float64(f.pass.Rate), float64(f.fail.Rate)
			if !f.pass.Pass || f.fail.Pass || f.pass.Packets != s.last || f.fail.Packets != s.last {
				t.Fatalf("ends of the bracket: %+v, %+v", f.pass, f.fail)
			}
			// Losses are whole packets.
			slack := 3e-4 * c.root
			if lo > c.root+slack || hi < c.root-slack || hi-lo > 0.0025*lo*1.001 {
				t.Errorf("bracket %.6g … %.6g about %.6g", lo, hi, c.root)
			}
			if len(s.probes) > 45 {
				t.Errorf("%d rates tried", len(s.probes))
			}
		})
	}
}

// TestSearchCoverage holds the interval against many searches with noise.
func TestSearchCoverage(t *testing.T) {
	const n, root = 300, 10_000
	covered, width := 0, 0.0
	for i := range n {
		f := &fakeRouter{loss: lossAt(root, 40), spread: 2, seed: uint64(i), replications: 8}
		s := newSearch(f, 0.005, 9000)
		r, err := s.run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if r.low <= root && root <= r.high {
			covered++
		}
		width += (r.high - r.low) / root / n
	}
	if covered < 0.9*n || covered == n {
		t.Errorf("the root lies in %d of %d intervals of 95 %%", covered, n)
	}
	// The replications' roots have a standard deviation of 2/√10^5.
	if want := 2 * 2.365 * 2 / math.Sqrt(1e5) / math.Sqrt(8); width < 0.7*want || width > 2*want {
		t.Errorf("mean relative width %.4g, want about %.4g", width, want)
	}
}

func TestSearchWithoutEnd(t *testing.T) {
	f := &fakeRouter{loss: func(float64) float64 { return 0 }, replications: 2}
	s := newSearch(f, 0.005, 1000)
	s.most = 1e6
	r, err := s.run(t.Context())
	if err != nil || !r.unbounded || float64(r.pass.Rate) != s.most || r.pass.Packets != s.last {
		t.Errorf("got %+v, %v; want the highest rate, confirmed with the longest runs", r, err)
	}
	// Short runs lose nothing at the highest rate, long ones do.
	f = &fakeRouter{loss: knee(1e6), replications: 2}
	s = newSearch(f, 1e-5, 1e6)
	s.most, s.first = 1e6*(1+2e-5), 4000
	if r, err = s.run(t.Context()); err != nil || r.unbounded || math.Abs(float64(r.pass.Rate)/1e6-1) > 0.003 {
		t.Errorf("got %+v, %v", r, err)
	}
	f = &fakeRouter{loss: func(float64) float64 { return 0.5 }, replications: 2}
	if _, err := newSearch(f, 0.005, 1000).run(t.Context()); !errors.Is(err, ErrNoRate) {
		t.Errorf("a router that always loses: %v", err)
	}
}

func TestSearchTellsFallingLoss(t *testing.T) {
	// Hysteresis: heavy loss in a band of rates, none right above it.
	f := &fakeRouter{replications: 4, spread: 0.01, loss: func(r float64) float64 {
		switch {
		case r > 9_900 && r < 10_050:
			return 0.1
		case r > 10_300:
			return 0.2
		}
		return 0
	}}
	s := newSearch(f, 0.005, 10_000)
	s.last = s.first
	if _, err := s.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.probe(t.Context(), s.last, 10_000, 10_200); err != nil {
		t.Fatal(err)
	}
	if got := s.falls(); len(got) == 0 {
		t.Error("a loss that falls while the rate rises was not noticed")
	}
}

func TestRound(t *testing.T) {
	for in, want := range map[float64]float64{12345.678: 12346, 123456.78: 123460, 1.23456789: 1.2346, 9.99999: 10, 0: 0} {
		if got := round(in); got != want {
			t.Errorf("round(%v) = %v, want %v", in, got, want)
		}
	}
}
