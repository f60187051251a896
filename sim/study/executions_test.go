package study

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"spinesim/sim"
	"spinesim/spine"
)

// TestCompareExecutions: the same packets go the same way whatever is executed,
// costs are those of the records, and nothing depends on how many runs go on at
// once.
func TestCompareExecutions(t *testing.T) {
	sc := scenario(t, "fig6.4", "traffic.packets=300", "traffic.arrivals.process=saturating")
	one, err := CompareExecutions(t.Context(), sc, ExecutionOptions{Replications: 2, Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	two, err := CompareExecutions(t.Context(), sc, ExecutionOptions{Replications: 2, Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(asJSON(t, one), asJSON(t, two)); d != "" {
		t.Errorf("the result depends on the number of workers:\n%s", d)
	}
	if one.Otherwise != 0 || one.Compared != 2*2*300 {
		t.Errorf("%d packets of %d went otherwise, want 0 of 1200", one.Otherwise, one.Compared)
	}
	if math.Abs(float64(one.CycleUS)-0.03) > 1e-9 {
		t.Errorf("a cycle of %v µs", one.CycleUS)
	}
	table, handlers, full := one.Executions[0], one.Executions[1], one.Executions[2]
	if a, b, c := table.Figures["gap_us"].Mean, handlers.Figures["gap_us"].Mean, full.Figures["gap_us"].Mean; !(a < b && b < c) {
		t.Errorf("gaps %v, %v and %v: the dispatcher's own instructions should cost", a, b, c)
	}
	if table.Differences != nil || full.Differences["gap_us"].Verdict != VerdictWorse {
		t.Errorf("difference of the gap: %+v", full.Differences["gap_us"])
	}
	for _, c := range []struct {
		e      ExecutionResult
		name   string
		lo, hi float64 // cycles
	}{
		{table, "poll", 12, 12}, {table, "Peer ACK", 50, 50}, {handlers, "poll", 18, 40}, {full, "poll", 40, 60},
		{handlers, "EnQ router in", 29, 29}, {full, "EnQ router in", 29, 29}, {full, "Router In handler", 328, 400},
	} {
		x, ok := c.e.Cost(c.name)
		if !ok || float64(x.Cycles) < c.lo || float64(x.Cycles) > c.hi || c.name != "poll" && math.Abs(float64(x.Runs)-1) > 0.02 {
			t.Errorf("%s: %s takes %+v, want %g to %g cycles, once a packet", c.e.Execution, c.name, x, c.lo, c.hi)
		}
		if math.IsNaN(float64(x.Off)) != (c.e.Execution == spine.ExecuteTable) {
			t.Errorf("%s: %s is off by %v", c.e.Execution, c.name, x.Off)
		}
	}
	wrong := full.Wrong()
	if len(wrong) < 15 || wrong[0].Name != "poll" || wrong[1].Name != "Router In handler" {
		t.Errorf("the table's worst mistakes: %+v", wrong[:min(3, len(wrong))])
	}
	for i := range wrong[1:] {
		if math.Abs(float64(wrong[i].Off)) < math.Abs(float64(wrong[i+1].Off)) {
			t.Errorf("%s stands before %s", wrong[i].Name, wrong[i+1].Name)
		}
	}
	if slices.Equal(full.Fingerprints, handlers.Fingerprints) || len(full.Fingerprints) != 2 {
		t.Errorf("fingerprints %v and %v", full.Fingerprints, handlers.Fingerprints)
	}
	// By hand: replication 1 is a run with seed 2.
	r, err := sim.Run(t.Context(), scenario(t, "fig6.4", "traffic.packets=300", "traffic.arrivals.process=saturating", "firmware.execution=full", "seed=2"), sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if r.Fingerprint != full.Fingerprints[1] {
		t.Errorf("fingerprint %s by hand, %s in the study", r.Fingerprint, full.Fingerprints[1])
	}
}

// TestCompareExecutionsEven: evenly spaced packets that all of them carry have a
// best window.
func TestCompareExecutionsEven(t *testing.T) {
	sc := scenario(t, "fig6.4", "traffic.packets=300", "traffic.arrivals.process=constant", "traffic.arrivals.senders=1", "traffic.arrivals.rate=150 µs")
	r, err := CompareExecutions(t.Context(), sc, ExecutionOptions{Replications: 1, Executions: []spine.Execution{spine.ExecuteFull, spine.ExecuteTable}})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range r.Executions {
		if p, l := float64(e.BestPeriod), float64(e.BestLatency); math.Abs(p-150) > 10 || !(l > 70 && l < 140) {
			t.Errorf("%s: best window %v and %v µs", e.Execution, p, l)
		}
	}
	if r.Otherwise != 0 || r.Compared != 300 {
		t.Errorf("%d of %d packets went otherwise", r.Otherwise, r.Compared)
	}
}

func TestCompareExecutionsRefuses(t *testing.T) {
	for _, c := range []struct {
		settings []string
		opt      ExecutionOptions
		want     string
	}{
		{nil, ExecutionOptions{Executions: []spine.Execution{"some"}}, "firmware.execution"},
		{nil, ExecutionOptions{Executions: []spine.Execution{"full", "full"}}, "there twice"},
		{nil, ExecutionOptions{Executions: []spine.Execution{}}, "nothing to compare"},
		{nil, ExecutionOptions{Replications: -1}, "replications"},
		{[]string{"policy=round-robin"}, ExecutionOptions{}, "round-robin"},
	} {
		_, err := CompareExecutions(t.Context(), scenario(t, "fig6.4", c.settings...), c.opt)
		var ie *sim.InputError
		if !errors.As(err, &ie) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v %+v: %v, want %q", c.settings, c.opt, err, c.want)
		}
	}
}

// TestCompareExecutionsFourWay: packets of several saturating sources are told
// apart by where they came in.
func TestCompareExecutionsFourWay(t *testing.T) {
	sc := scenario(t, "four-way", "traffic.packets=60", "traffic.arrivals.process=saturating", "traffic.sizes.kind=imix", "routes.cards=[0, 1, 2, 3]")
	r, err := CompareExecutions(t.Context(), sc, ExecutionOptions{Replications: 1})
	if err != nil {
		t.Fatal(err)
	}
	if r.Otherwise != 0 || r.Compared != 2*4*60 {
		t.Errorf("%d of %d packets went otherwise, want 0 of 480", r.Otherwise, r.Compared)
	}
}
