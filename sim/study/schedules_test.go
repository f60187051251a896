package study

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"spinesim/sim"
	"spinesim/traces"
)

// TestSchedules: the comparison has every kind of traffic and policy, and finds
// the static cycle ahead where it is made for.
func TestSchedules(t *testing.T) {
	sc, err := sim.Load("fig6.4", "cards=2")
	if err != nil {
		t.Fatal(err)
	}
	r, err := Schedules(context.Background(), sc, SchedulesOptions{Packets: 200, Replications: 2, Policies: []string{"static", "default"}})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, row := range r.Rows {
		names = append(names, row.Traffic)
		if len(row.Cells) != 2 || row.LowerBound <= 0 || row.Binding == "" {
			t.Errorf("%s: %d policies, bound %v by %q", row.Traffic, len(row.Cells), row.LowerBound, row.Binding)
		}
		for _, c := range row.Cells {
			// Few packets: what departs first and last counts.
			if !(c.Gap.Mean > 0.9*row.LowerBound) || !(c.Loss.Mean >= 0) || !(c.LatencyP50.Mean > 0) || c.LatencyP99.Mean < c.LatencyP50.Mean {
				t.Errorf("%s, %s: %+v below the bound of %v", row.Traffic, c.Policy, c, row.LowerBound)
			}
		}
	}
	want := []string{"regular", "jittered", "poisson", "bursts", "mixed sizes", "1 % unroutable", "10 % unroutable", "2-way"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Error(diff)
	}
	if r.Rows[0].Gap != "static" {
		t.Errorf("least gap under regular traffic: %q", r.Rows[0].Gap)
	}
	if len(r.Curves) != 2 || len(r.Curves[0].Gaps) != 2 || len(r.Curves[1].Points) != 2 || !r.Curves[0].Static {
		t.Errorf("curves %+v", r.Curves)
	}
	var b strings.Builder
	if err := r.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{"10 % unroutable", "least gap: static", "cards that receive", "break-even"} {
		if !strings.Contains(b.String(), s) {
			t.Errorf("the text lacks %q:\n%s", s, b.String())
		}
	}
}

// TestSchedulesErrors: what cannot be compared.
func TestSchedulesErrors(t *testing.T) {
	sc, err := sim.Load("fig6.4")
	if err != nil {
		t.Fatal(err)
	}
	var input *sim.InputError
	for name, o := range map[string]SchedulesOptions{
		"one policy":   {Policies: []string{"static"}},
		"unknown":      {Policies: []string{"static", "nonsense"}},
		"load":         {Load: -1},
		"replications": {Replications: -1},
	} {
		if _, err := Schedules(context.Background(), sc, o); !errors.As(err, &input) {
			t.Errorf("%s: %v", name, err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Schedules(ctx, sc, SchedulesOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that has ended: %v", err)
	}
}

func TestCrossing(t *testing.T) {
	for _, c := range []struct {
		x, v []float64
		want float64
	}{
		{[]float64{1, 2, 4}, []float64{3, 1, -1}, 3},
		{[]float64{0, 10}, []float64{-1, 3}, 2.5},
		{[]float64{0, 1}, []float64{1, 2}, math.NaN()},
		{nil, nil, math.NaN()},
	} {
		if got := crossing(c.x, c.v); got != c.want && !(math.IsNaN(got) && math.IsNaN(c.want)) {
			t.Errorf("%v at %v: %v, want %v", c.v, c.x, got, c.want)
		}
	}
}

func TestBestKind(t *testing.T) {
	kinds := []string{"static", "dynamic", "dynamic"}
	iv := func(mean, half float64) Interval {
		return Interval{Mean: traces.Real(mean), Low: traces.Real(mean - half), High: traces.Real(mean + half), N: 3}
	}
	for _, c := range []struct {
		values []Interval
		want   string
	}{
		{[]Interval{iv(1, 0.1), iv(2, 0.1), iv(3, 1)}, "static"},
		{[]Interval{iv(2, 0.1), iv(1, 0.1), iv(1, 1)}, "dynamic"},
		{[]Interval{iv(2, 0.6), iv(1, 0.6), iv(3, 0.1)}, ""},
		{[]Interval{iv(math.NaN(), 0), iv(math.NaN(), 0), iv(math.NaN(), 0)}, ""},
	} {
		if got := bestKind(kinds, c.values); got != c.want {
			t.Errorf("%v: %q, want %q", c.values, got, c.want)
		}
	}
}
