package study

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"spinesim/sim"
	"spinesim/sim/study/internal/runs"
	"spinesim/traces"
)

// TestPredict: one row for each choice of the first machine and one for each
// other machine, each what the rate search gives by itself; the band is that of
// the rows, and the number of workers changes nothing.
func TestPredict(t *testing.T) {
	sc := scenario(t, "fig6.4")
	machines := []Machine{{1, 12, 2}, {1.1, 10, 1}}
	opt := PredictOptions{Packets: 300, Replications: 2, Workers: 2}
	p, err := Predict(t.Context(), sc, machines, opt)
	if err != nil {
		t.Fatal(err)
	}
	if want := len(Choices()) + 1; len(p.Rows) != want {
		t.Fatalf("%d rows, want %d", len(p.Rows), want)
	}
	low, high := math.Inf(1), math.Inf(-1)
	for i, r := range p.Rows {
		want := machines[0]
		if i == len(p.Rows)-1 {
			want = machines[1]
		}
		if r.Machine != want {
			t.Errorf("row %d is of %v, want %v", i, r.Machine, want)
		}
		for _, x := range []Predicted{r.Default, r.PCIFirst} {
			if !(x.Low <= x.Gap && x.Gap <= x.High) {
				t.Errorf("%s: gap %v outside its interval %v … %v", r.Choice, x.Gap, x.Low, x.High)
			}
			if !(x.Saturated > 20 && x.Saturated < 200) {
				t.Errorf("%s: saturated gap %v", r.Choice, x.Saturated)
			}
		}
		if g := float64(r.Default.Gap); !math.IsNaN(g) {
			low, high = min(low, g), max(high, g)
		}
	}
	if float64(p.Low) != low || float64(p.High) != high {
		t.Errorf("band %v … %v, want %v … %v", p.Low, p.High, low, high)
	}
	last := runs.With(machines[1].Apply(sc), func(s *sim.Scenario) { s.Policy = "pci-first" })
	one, err := predictOne(t.Context(), last, opt)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(&p.Rows[len(p.Rows)-1].PCIFirst, one, sameReal); d != "" {
		t.Errorf("the last machine by itself (-prediction +alone):\n%s", d)
	}
	var b bytes.Buffer
	if err := p.WriteText(&b); err != nil || strings.Count(b.String(), "\n") != len(p.Rows)+3 {
		t.Errorf("%v, text:\n%s", err, b.String())
	}
}

// TestChoices: each choice is another scenario that can be run.
func TestChoices(t *testing.T) {
	sc := scenario(t, "fig6.4")
	seen := map[string]string{}
	for _, c := range Choices() {
		s := runs.With(sc, c.Change)
		if err := s.Validate(); err != nil {
			t.Errorf("%s: %v", c.Name, err)
			continue
		}
		h, err := s.Hash()
		if err != nil {
			t.Fatal(err)
		}
		if other, ok := seen[h]; ok {
			t.Errorf("%s and %s are the same scenario", c.Name, other)
		}
		seen[h] = c.Name
	}
}

// TestBand leaves out rows without a figure.
func TestBand(t *testing.T) {
	row := func(v float64) PredictionRow { return PredictionRow{Default: Predicted{Gap: traces.Real(v)}} }
	gap := func(r *PredictionRow) traces.Real { return r.Default.Gap }
	nan := math.NaN()
	for _, tc := range []struct {
		rows      []PredictionRow
		low, high float64
	}{
		{[]PredictionRow{row(60), row(nan), row(50), row(70)}, 50, 70},
		{[]PredictionRow{row(nan), row(60)}, 60, 60},
		{[]PredictionRow{row(nan)}, nan, nan},
		{nil, nan, nan},
	} {
		low, high := band(tc.rows, gap)
		if d := cmp.Diff([]float64{tc.low, tc.high}, []float64{float64(low), float64(high)}, cmpopts.EquateNaNs()); d != "" {
			t.Errorf("%v:\n%s", tc.rows, d)
		}
	}
}
