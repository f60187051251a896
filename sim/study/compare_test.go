package study

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"spinesim/sim"
	"spinesim/sim/des"
	"spinesim/traces"
)

func TestCompare(t *testing.T) {
	sc := scenario(t, "fig6.4", "traffic.packets=800", "traffic.arrivals.process=saturating")
	opt := CompareOptions{
		Policies: []string{"default", "pci-first", "strict:order=default", "6345012"}, Replications: 3, Workers: 1,
		LowerBound: func(sc *sim.Scenario) (des.Time, string, error) { return 30 * des.Microsecond, "DMA engine", nil },
	}
	one, err := Compare(t.Context(), sc, opt)
	if err != nil {
		t.Fatal(err)
	}
	opt.Workers = 4
	four, err := Compare(t.Context(), sc, opt)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(asJSON(t, one), asJSON(t, four)); d != "" {
		t.Errorf("the result depends on the number of workers:\n%s", d)
	}
	p := one.Policies
	if p[0].Differences != nil || p[2].Differences["gap_us"].Verdict != VerdictSame || p[2].Differences["gap_us"].Mean != 0 {
		t.Errorf("the default order under another name: %+v", p[2].Differences["gap_us"])
	}
	if d := cmp.Diff(p[1].Fingerprints, p[3].Fingerprints); d != "" {
		t.Errorf("pci-first and its order part:\n%s", d)
	}
	if v := p[1].Differences["gap_us"]; v.Verdict != VerdictBetter || v.Mean >= 0 || v.Relative >= 0 {
		t.Errorf("gap of pci-first: %+v", v)
	}
	if v := p[1].Differences["bubble_share"]; v.Verdict != VerdictBetter {
		t.Errorf("bubbles of pci-first: %+v", v)
	}
	if v := p[1].Differences["dma"]; v.Verdict != VerdictHigher {
		t.Errorf("use of the DMA engine by pci-first: %+v", v)
	}
	if v := p[1].Differences["loss"]; v.Verdict != VerdictSame {
		t.Errorf("loss of pci-first: %+v", v)
	}
	if b := p[0].Bound; b == nil || b.Resource != "DMA engine" || math.Abs(float64(b.Above-(p[0].Figures["gap_us"].Mean/30-1))) > 1e-12 {
		t.Errorf("lower bound %+v", p[0].Bound)
	}
	// By hand: replication 1 of pci-first is a run with seed 2.
	again := scenario(t, "fig6.4", "traffic.packets=800", "traffic.arrivals.process=saturating", "policy=pci-first", "seed=2")
	r, err := sim.Run(t.Context(), again, sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if r.Fingerprint != p[1].Fingerprints[1] || p[1].Values["gap_us"][1] != r.Gap.Mean {
		t.Errorf("replication 1: %s and %v, run again %s and %v", p[1].Fingerprints[1], p[1].Values["gap_us"][1], r.Fingerprint, r.Gap.Mean)
	}
}

func TestDifference(t *testing.T) {
	gap, bus, out := &metrics[metricIndex("gap_us")], &metrics[metricIndex("bus")], &metrics[metricIndex("rate_out")]
	nan := math.NaN()
	for name, c := range map[string]struct {
		m             *Metric
		first, second []float64
		want          Verdict
	}{
		"less is better":      {gap, []float64{10, 11, 12}, []float64{8, 9.1, 10}, VerdictBetter},
		"less was better":     {gap, []float64{8, 9.1, 10}, []float64{10, 11, 12}, VerdictWorse},
		"more is better":      {out, []float64{8, 9.1, 10}, []float64{10, 11, 12}, VerdictBetter},
		"neither, higher":     {bus, []float64{8, 9.1, 10}, []float64{10, 11, 12}, VerdictHigher},
		"neither, lower":      {bus, []float64{10, 11, 12}, []float64{8, 9.1, 10}, VerdictLower},
		"noise":               {gap, []float64{10, 11, 12}, []float64{11, 10, 12}, VerdictCannotTell},
		"the same":            {gap, []float64{10, 11, 12}, []float64{10, 11, 12}, VerdictSame},
		"one replication":     {gap, []float64{10}, []float64{5}, VerdictCannotTell},
		"no figure in one":    {gap, []float64{10, nan}, []float64{5, 6}, VerdictCannotTell},
		"no replication":      {gap, nil, nil, VerdictCannotTell},
		"pairs beat the span": {gap, []float64{10, 20, 30, 40}, []float64{9, 19.1, 29, 39.1}, VerdictBetter},
	} {
		t.Run(name, func(t *testing.T) {
			if got := difference(c.m, c.first, c.second); got.Verdict != c.want {
				t.Errorf("got %+v, want %s", got, c.want)
			}
		})
	}
}

func TestCompareInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	sc := scenario(t, "fig6.4", "traffic.packets=200")
	r, err := Compare(ctx, sc, CompareOptions{
		Policies: []string{"default", "pci-first"}, Replications: 50, Workers: 2,
		Progress: func(done, _ int64, _ string) {
			if done == 9 {
				cancel()
			}
		},
	})
	if !errors.Is(err, context.Canceled) || r == nil || !r.Interrupted || r.Replications < 3 || r.Replications > 6 {
		t.Fatalf("got %+v, %v; want the whole replications of nine runs", r, err)
	}
	for _, p := range r.Policies {
		if len(p.Fingerprints) != r.Replications || p.Figures["gap_us"].N != r.Replications {
			t.Errorf("%s: %d fingerprints, %d gaps, want %d", p.Policy, len(p.Fingerprints), p.Figures["gap_us"].N, r.Replications)
		}
	}
}

func TestCompareMaxRate(t *testing.T) {
	o := quick(0)
	o.Packets, o.FirstPackets, o.Replications, o.Resolution = 300, 300, 1, 0.05
	r, err := Compare(t.Context(), scenario(t, "fig6.4", "traffic.packets=200"), CompareOptions{
		Policies: []string{"default", "pci-first"}, Replications: 1, MaxRate: &o,
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range r.Policies {
		if p.MaxRate == nil || !p.MaxRate.Found() || p.MaxRate.Policy != p.Policy {
			t.Errorf("%s: %+v", p.Policy, p.MaxRate)
		}
	}
}

func TestCompareMistakes(t *testing.T) {
	sc := scenario(t, "fig6.4")
	for name, c := range map[string]struct {
		opt  CompareOptions
		want string
	}{
		"policy":       {CompareOptions{Policies: []string{"default", "pci-last"}}, `policy "pci-last"`},
		"none":         {CompareOptions{Policies: []string{}}, "no policies"},
		"replications": {CompareOptions{Replications: -2}, "-2 replications"},
		"loss":         {CompareOptions{MaxRate: &MaxRateOptions{Loss: -1}}, "loss bound -1"},
	} {
		t.Run(name, func(t *testing.T) {
			var in *sim.InputError
			if _, err := Compare(t.Context(), sc, c.opt); !errors.As(err, &in) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an input error with %q", err, c.want)
			}
		})
	}
}

func TestMetrics(t *testing.T) {
	sc := scenario(t, "fig6.4", "traffic.packets=500", "traffic.arrivals.rate=17000 packets/s")
	r, err := sim.Run(t.Context(), sc, sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]traces.Real{
		"gap_us": r.Gap.Mean, "latency_p99_us": r.Latency.Ingress.P99, "bubble_share": r.BubbleShare, "bus": r.Utilisation.Bus.Busy,
		"cpu": r.Utilisation.Cards[0].Handlers, "loss": r.Loss, "receive_run": r.ReceiveRun.MeanNonEmpty,
	}
	got := map[string]traces.Real{}
	for name := range want {
		m, err := MetricByName(name)
		if err != nil {
			t.Fatal(err)
		}
		got[name] = traces.Real(m.Of(r))
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	seen := map[string]bool{}
	for _, m := range Metrics() {
		if seen[m.Name] || m.Doc == "" {
			t.Errorf("metric %q: there twice, or without a description", m.Name)
		}
		seen[m.Name] = true
	}
	if _, err := MetricByName("speed"); err == nil {
		t.Error("a metric that is not there was found")
	}
	for _, c := range []struct {
		name string
		a, b float64
		want int
	}{{"gap_us", 1, 2, -1}, {"rate_out", 1, 2, 1}, {"gap_us", math.NaN(), 2, 1}, {"gap_us", 3, math.NaN(), -1}, {"gap_us", 3, 3, 0}} {
		m, _ := MetricByName(c.name)
		if got := m.compare(c.a, c.b); got != c.want {
			t.Errorf("%s: %v against %v is %d, want %d", c.name, c.a, c.b, got, c.want)
		}
	}
}

func TestPolicyNames(t *testing.T) {
	names := PolicyNames()
	if names[0] != "default" || len(names) < 3 {
		t.Fatalf("got %v", names)
	}
	for _, n := range names {
		if _, err := policyName(n, 1); err != nil {
			t.Errorf("%s: %v", n, err)
		}
	}
}
