package study

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"spinesim/sim"
	"spinesim/sim/des"
	"spinesim/sim/study/internal/runs"
	"spinesim/spine"
	"spinesim/spine/policy"
	"spinesim/traces"
)

func TestAllOrders(t *testing.T) {
	all := allOrders()
	if len(all) != 5040 || all[0] != spine.DefaultOrder {
		t.Fatalf("%d orders, the first %v", len(all), all[0])
	}
	for i, o := range all {
		p, err := spine.NewPolicy(policy.FormatOrder(o), 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		if s, ok := p.(*spine.Strict); !ok || s.Order() != o {
			t.Fatalf("%v is not reached by its name", o)
		}
		if i > 0 && slices.Compare(all[i-1][:], o[:]) >= 0 {
			t.Fatalf("%v comes after %v", o, all[i-1])
		}
	}
}

func TestCanonical(t *testing.T) {
	for _, c := range []struct {
		o, want order
		unused  uint8
	}{
		{order{6, 5, 4, 3, 2, 1, 0}, order{6, 5, 4, 3, 2, 1, 0}, 0},
		{order{6, 5, 4, 3, 2, 1, 0}, order{6, 2, 4, 3, 5, 1, 0}, 1<<2 | 1<<5},
		{order{6, 5, 4, 3, 2, 1, 0}, order{0, 1, 2, 3, 4, 5, 6}, 127},
		{order{2, 0, 1, 3, 4, 5, 6}, order{2, 0, 1, 3, 4, 5, 6}, 1 << 2},
	} {
		if got := canonical(c.o, c.unused); got != c.want {
			t.Errorf("%v with %07b unused: %v, want %v", c.o, c.unused, got, c.want)
		}
	}
}

// TestSharedRuns runs every order that shared a run on its own: the figures
// must be the same to the last bit.
func TestSharedRuns(t *testing.T) {
	// One card has no peers and no bus: four of its queues are never used.
	sc := scenario(t, "one-card", "traffic.packets=60", "traffic.arrivals.rate=30000 packets/s")
	r := des.NewStream(4, "orders")
	all := allOrders()
	var some []order
	for range 40 {
		some = append(some, all[r.IntN(len(all))])
	}
	gap := metricIndex("gap_us")
	got, made, err := exhaust(t.Context(), sc, some, 2, 2, gap, runs.NewReporter(nil, 0, new(atomic.Int64)))
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != len(some) || made >= 2*len(some) {
		t.Fatalf("%d orders in %d runs, want all %d in fewer than one each", len(got), made, len(some))
	}
	shared := 0
	for i, o := range got {
		v := runs.With(sc, func(c *sim.Scenario) { c.Policy = policy.FormatOrder(some[i]) })
		grid, err := runGrid(t.Context(), 2, []*sim.Scenario{v}, 2, nil, runs.NewReporter(nil, 0, new(atomic.Int64)))
		if err != nil {
			t.Fatal(err)
		}
		want := newOrder(some[i], grid[0], gap)
		if o.RunOf != "" {
			shared++
			want.RunOf, want.Fingerprint = o.RunOf, o.Fingerprint
		}
		if d := cmp.Diff(asJSON(t, want), asJSON(t, o)); d != "" {
			t.Errorf("%s: %s", o.Order, d)
		}
	}
	if shared == 0 {
		t.Error("no order shared a run")
	}
}

// TestUnprovenRuns has queues that go unused under the first order and are
// used under some others, which must then not share.
func TestUnprovenRuns(t *testing.T) {
	ran := map[order]int{}
	run := func(list []order) ([][]outcome, error) {
		var out [][]outcome
		for _, o := range list {
			ran[o]++
			// Q2 and Q3 see messages only where Q6 stands first.
			r := outcome{values: make([]float64, len(metrics)), fingerprint: policy.FormatOrder(o), unused: 1<<2 | 1<<3, done: true}
			if o[0] == 6 {
				r.unused = 0
				r.values[0] = float64(o[1])
			}
			out = append(out, []outcome{r})
		}
		return out, nil
	}
	all := allOrders()
	got, runs, err := shareRuns(all, 1, 0, run)
	if err != nil || len(got) != len(all) {
		t.Fatalf("%d orders, %v", len(got), err)
	}
	// 720 orders with Q6 first run on their own, the others in pairs.
	if want := 720 + (5040-720)/2; runs != want || len(ran) != want {
		t.Errorf("%d runs of %d orders, want %d", runs, len(ran), want)
	}
	for i, o := range got {
		if o.order != all[i] || ran[o.order] > 1 || (o.RunOf == "") != (ran[o.order] == 1) {
			t.Fatalf("%s: ran %d times, shares the run of %q", o.Order, ran[o.order], o.RunOf)
		}
		if o.order[0] == 6 && float64(o.Objective) != float64(o.order[1]) {
			t.Fatalf("%s has another's figures", o.Order)
		}
	}
}

// fakeOrders gives every order the value of a function.
func fakeOrders(value func(o order) float64) []Order {
	var out []Order
	for _, o := range allOrders() {
		out = append(out, Order{order: o, Objective: traces.Real(value(o))})
	}
	return out
}

func above(o order, a, b uint8) bool { return slices.Index(o[:], a) < slices.Index(o[:], b) }

func TestPairEffects(t *testing.T) {
	gap := &metrics[metricIndex("gap_us")]
	// Only one priority matters: 7 µs, whatever else.
	got := pairEffects(fakeOrders(func(o order) float64 {
		if above(o, 6, 1) {
			return 50
		}
		return 57
	}), gap)
	if len(got) != 21 {
		t.Fatalf("%d priorities, want 21", len(got))
	}
	e := got[0]
	if e.First != "Q1 wire" || e.Second != "Q6 dma" || e.Effect.Mean != 7 || e.Adjacent.Mean != 7 || e.Effect.Half() != 0 ||
		e.Favours != 0 || e.Ties != 0 || math.Abs(float64(e.Explains)-1) > 1e-12 || math.Abs(float64(e.Size)-2) > 1e-12 || e.Pairs != 2520 || e.Adjacent.N != 720 {
		t.Errorf("the priority that matters: %+v", e)
	}
	for _, e := range got[1:] {
		// Exchanging Q1 with another can only matter by what it does to Q6,
		// next to each other never.
		if e.Adjacent.Mean != 0 {
			t.Errorf("%s above %s next to each other: %v, want 0", e.First, e.Second, e.Adjacent)
		}
	}
	// Against a slow oracle: the effect is the difference of two means.
	r := des.NewStream(9, "values")
	noisy := fakeOrders(func(order) float64 { return r.Float64() })
	for _, e := range pairEffects(noisy, gap) {
		var a, b uint8
		for q, n := range queueNames {
			if n == e.First {
				a = uint8(q)
			}
			if n == e.Second {
				b = uint8(q)
			}
		}
		var with, without float64
		for _, o := range noisy {
			if above(o.order, a, b) {
				with += float64(o.Objective) / 2520
			} else {
				without += float64(o.Objective) / 2520
			}
		}
		if math.Abs(with-without-float64(e.Effect.Mean)) > 1e-9 {
			t.Errorf("%s above %s: %v, want %v", e.First, e.Second, e.Effect.Mean, with-without)
		}
		if !e.Effect.OK() || math.Abs(float64(e.Effect.Mean)) > 4*e.Effect.Half() {
			t.Errorf("%s above %s: %v out of pure noise", e.First, e.Second, e.Effect)
		}
	}
	if got := pairEffects(nil, gap); got != nil {
		t.Errorf("effects without orders: %v", got)
	}
}

func TestParetoFront(t *testing.T) {
	r := des.NewStream(1, "points")
	for range 200 {
		var points []ParetoPoint
		for range 1 + r.IntN(30) {
			points = append(points, ParetoPoint{string(rune('a' + len(points))), traces.Real(r.IntN(12)), traces.Real(r.IntN(12))})
		}
		points = append(points, ParetoPoint{"nan", traces.Real(math.NaN()), 0})
		front := paretoFront(points)
		inFront := func(p ParetoPoint) bool {
			return slices.ContainsFunc(front, func(q ParetoPoint) bool { return q.Gap == p.Gap && q.LatencyP99 == p.LatencyP99 })
		}
		for _, p := range points[:len(points)-1] {
			beaten := slices.ContainsFunc(points, func(q ParetoPoint) bool {
				return q.Gap <= p.Gap && q.LatencyP99 <= p.LatencyP99 && (q.Gap < p.Gap || q.LatencyP99 < p.LatencyP99)
			})
			if beaten == inFront(p) {
				t.Fatalf("%+v of %+v: beaten %v, on the front %v", p, points, beaten, inFront(p))
			}
		}
	}
}

func TestSteps(t *testing.T) {
	for v, want := range map[string][]string{
		"yes": {"no"}, "no": {"yes"}, "0": {"1", "8"}, "4": {"2", "8", "3", "5"}, "1": {"0", "2"},
		"10%": {"0%", "5%", "15%", "20%", "35%"}, "words": nil, "": nil, "1/2/x/4/5/6/7": nil,
	} {
		got := steps(v, nil)
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("steps of %q:\n%s", v, d)
		}
	}
	if got := steps("default", []string{"6012345"}); len(got) != 8 || got[0] != "pci-first" || got[1] != "6012345" {
		t.Errorf("steps of an order: %v", got)
	}
	if got := steps("4/2/1/1/1/2/5", nil); len(got) != 14 || got[0] != "2/2/1/1/1/2/5" || got[13] != "4/2/1/1/1/2/10" {
		t.Errorf("steps of shares: %v", got)
	}
	// Every kind's default parameters make the policy's own default, and the
	// steps make policies.
	kinds, err := tunable(nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(kinds) < 5 {
		t.Fatalf("only %d policies can be tuned", len(kinds))
	}
	for i := range kinds {
		s := defaults(&kinds[i])
		if s.text() != kinds[i].Name {
			t.Errorf("default of %s is written %q", kinds[i].Name, s.text())
		}
		good := 0
		for _, n := range s.neighbours(nil) {
			if _, err := policyName(n.text(), 1); err == nil {
				good++
			}
		}
		if good == 0 {
			t.Errorf("%s: no step makes a policy", kinds[i].Name)
		}
	}
}

func TestTune(t *testing.T) {
	opt := TuneOptions{
		Saturated: true, Packets: 150, Orders: []string{"0123456", "6345012", "0126345", "5143206", "0263451"},
		Policies: []string{"quota", "adaptive"}, Evaluations: 12, Finalists: 2, FinalPolicies: 1, FinalFront: 1, FinalPackets: 400, FinalReplications: 3, Workers: 1,
	}
	m := quick(0)
	m.Packets, m.FirstPackets, m.Replications, m.Resolution = 300, 300, 1, 0.05
	opt.MaxRate, opt.RateFinalists = &m, 1
	sc := scenario(t, "fig6.4")
	one, err := Tune(t.Context(), sc, opt)
	if err != nil {
		t.Fatal(err)
	}
	opt.Workers = 3
	var last int64
	opt.Progress = func(done, total int64, _ string) {
		if done < last || done > total {
			t.Errorf("progress went from %d to %d of %d", last, done, total)
		}
		last = done
	}
	three, err := Tune(t.Context(), sc, opt)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(asJSON(t, one), asJSON(t, three)); d != "" {
		t.Errorf("the result depends on the number of workers:\n%s", d)
	}
	if one.Tried != 5 || len(one.Orders) != 5 || one.Distinct < 2 || one.DefaultRank == 0 || !one.Saturated {
		t.Errorf("orders: %s", asJSON(t, one))
	}
	for i := 1; i < len(one.Orders); i++ {
		if one.Orders[i-1].Objective > one.Orders[i].Objective {
			t.Errorf("rank %d: %v after %v", i+1, one.Orders[i].Objective, one.Orders[i-1].Objective)
		}
	}
	for _, p := range one.Policies {
		if p.Objective > p.StartValue || p.Evaluations > 12 || p.Steps == 0 && p.Policy != p.Start {
			t.Errorf("tuned policy %+v", p)
		}
	}
	f := one.Final
	if f == nil || f.Policies[0].Policy != "default" || f.Seed != 2 || f.Policies[0].MaxRate == nil || f.Policies[1].MaxRate == nil || len(f.Policies) < 4 {
		t.Fatalf("finalists: %s", asJSON(t, f))
	}
	best := one.Best()
	for _, p := range f.Policies {
		for _, q := range f.Policies {
			if p.Policy == best && q.Figures["gap_us"].Mean < p.Figures["gap_us"].Mean {
				t.Errorf("best is %s, but %s has the smaller gap", best, q.Policy)
			}
		}
	}
}

func TestTuneInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, err := Tune(ctx, scenario(t, "fig6.4"), TuneOptions{
		Packets: 30, Workers: 2, Policies: []string{}, Progress: func(done, _ int64, _ string) {
			if done == 30*20 {
				cancel()
			}
		},
	})
	if !errors.Is(err, context.Canceled) || r == nil || !r.Interrupted || r.Tried < 18 || r.Tried > 30 || len(r.Orders) != r.Tried {
		t.Errorf("got %+v, %v; want about twenty orders", r, err)
	}
}

func TestTuneMistakes(t *testing.T) {
	for name, c := range map[string]struct {
		opt  TuneOptions
		want string
	}{
		"objective":   {TuneOptions{Objective: "speed"}, `metric "speed"`},
		"description": {TuneOptions{Objective: "bus"}, "neither good nor bad"},
		"order":       {TuneOptions{Orders: []string{"0123"}}, "leaves out Q4"},
		"twice":       {TuneOptions{Orders: []string{"0123456", "Q0 Q1 Q2 Q3 Q4 Q5 Q6"}}, "twice"},
		"policy":      {TuneOptions{Policies: []string{"lotterie"}}, "lotterie"},
		"parameters":  {TuneOptions{Policies: []string{"default"}}, "no parameter to search"},
		"count":       {TuneOptions{Finalists: -1}, "-1 finalists"},
	} {
		t.Run(name, func(t *testing.T) {
			var in *sim.InputError
			if _, err := Tune(t.Context(), scenario(t, "fig6.4"), c.opt); !errors.As(err, &in) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an input error with %q", err, c.want)
			}
		})
	}
	m := DefaultMaxRate()
	var in *sim.InputError
	if _, err := Tune(t.Context(), scenario(t, "fig6.4", "traffic.arrivals.process=saturating"), TuneOptions{MaxRate: &m}); !errors.As(err, &in) {
		t.Errorf("highest rate of a source that never runs empty: %v", err)
	}
}
