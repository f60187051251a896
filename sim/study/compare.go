package study

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync/atomic"

	"spinesim/sim"
	"spinesim/sim/des"
	"spinesim/sim/stats"
	"spinesim/sim/study/internal/runs"
	"spinesim/spine"
	"spinesim/traces"
)

// CompareOptions are those of a comparison.
type CompareOptions struct {
	// Policies as spine.NewPolicy reads them. The first is what the others are
	// compared with. Nil: all that the registry knows, default first.
	Policies []string
	// Replications of each, under the scenario's seed and those that follow
	// it [10, chosen]. More: narrower intervals, with their root.
	Replications int
	// Workers is how many runs go on at once [GOMAXPROCS].
	Workers int
	// LowerBound gives the least mean gap that any schedule of the scenario's
	// work could have, and the resource that sets it. Nil leaves the distance
	// to it out.
	LowerBound func(*sim.Scenario) (des.Time, string, error)
	// MaxRate, where given, also searches each policy's highest rate.
	MaxRate *MaxRateOptions
	// Observe, if not nil, gives a sink for the record of a policy's replication,
	// both counted from 0, and what to call once that run is whole. It is called
	// by several workers at once.
	Observe func(policy, replication int) (sink traces.Sink, whole func())
	// Progress is told the runs that are done.
	Progress Progress
}

// Verdict says how a policy's figure stands to the first policy's.
type Verdict string

// The verdicts. More and Fewer are for figures that are neither good nor bad.
const (
	VerdictBetter     Verdict = "better"
	VerdictWorse      Verdict = "worse"
	VerdictCannotTell Verdict = "cannot tell"
	VerdictSame       Verdict = "same" // not the least difference in any replication
	VerdictHigher     Verdict = "higher"
	VerdictLower      Verdict = "lower"
)

// Difference is the paired difference of a figure from the first policy's, in
// the figure's unit: the policy's minus the first's, replication by
// replication.
type Difference struct {
	Interval
	// Relative is the mean difference over the first policy's mean.
	Relative traces.Real `json:"relative"`
	// Correlation of the pairs, −1 … 1: near 1 the common random numbers
	// narrowed the interval.
	Correlation traces.Real `json:"correlation"`
	Verdict     Verdict     `json:"verdict"`
}

// Bound is the distance of a policy's gap to the least possible one.
type Bound struct {
	Gap      traces.Real `json:"gap_us"`
	Resource string      `json:"resource"` // which sets the bound
	Above    traces.Real `json:"above"`    // mean gap over the bound, minus 1
}

// PolicyResult is one policy of a comparison.
type PolicyResult struct {
	Policy string `json:"policy"` // as it was given
	Name   string `json:"name"`   // as it calls itself
	// Figures by metric, and their differences from the first policy's (none
	// for the first).
	Figures      map[string]Interval   `json:"figures"`
	Differences  map[string]Difference `json:"differences,omitempty"`
	Bound        *Bound                `json:"lower_bound,omitempty"`
	MaxRate      *MaxRateResult        `json:"max_rate,omitempty"`
	Fingerprints []string              `json:"fingerprints"` // by replication
	// Values by metric and replication, that the intervals rest on.
	Values map[string][]traces.Real `json:"values"`
}

// CompareResult is a comparison of policies on the same traffic.
type CompareResult struct {
	Scenario     string         `json:"scenario"`
	Process      string         `json:"process"`
	Rate         traces.Real    `json:"rate"` // packets/s into each ingress card; null when saturating
	Saturating   bool           `json:"saturating"`
	Packets      uint64         `json:"packets"` // a run, into each ingress card
	Seed         uint64         `json:"seed"`    // of the first replication; the others follow it
	Replications int            `json:"replications"`
	Metrics      []Metric       `json:"metrics"`
	Policies     []PolicyResult `json:"policies"`
	Version      string         `json:"version"`
	Interrupted  bool           `json:"interrupted,omitempty"`
	Notes        []string       `json:"notes,omitempty"`
}

// PolicyNames lists a policy of each kind that the registry knows, default
// first: with its default parameters, or, where it has no such, as its own
// example writes it.
func PolicyNames() []string {
	out := []string{"default"}
	for _, k := range spine.PolicyKinds() {
		text := k.Name
		if _, err := spine.NewPolicy(text, 0, 0); err != nil {
			text = k.Example
		}
		// "strict" with its default order is "default" again.
		if k.Name != "default" && k.Name != "strict" {
			out = append(out, text)
		}
	}
	return out
}

// policyName checks a policy and gives the name that it calls itself by.
func policyName(text string, seed uint64) (string, error) {
	p, err := spine.NewPolicy(text, seed, 0)
	if err != nil {
		return "", &sim.InputError{Err: err}
	}
	return p.Name(), nil
}

// Compare runs policies on the same traffic under the same seeds and says of
// every figure whether it is better or worse than the first policy's, or
// whether the runs cannot tell. When the context ends, the replications that
// every policy has finished are compared, and its error returned beside.
//
// The verdicts rest on 95 % intervals one by one: of many that compare equal
// policies, one in twenty is wrong.
func Compare(ctx context.Context, sc *sim.Scenario, opt CompareOptions) (*CompareResult, error) {
	if opt.Policies == nil {
		opt.Policies = PolicyNames()
	}
	if opt.Replications == 0 {
		opt.Replications = 10
	}
	if len(opt.Policies) == 0 {
		return nil, runs.InputErrorf("no policies to compare")
	}
	if opt.Replications < 1 || opt.Replications > 100_000 {
		return nil, runs.InputErrorf("%d replications, want 1 to 100000", opt.Replications)
	}
	if err := sc.Validate(); err != nil {
		return nil, err
	}
	if opt.MaxRate != nil {
		if _, err := opt.MaxRate.filled(sc); err != nil {
			return nil, err
		}
	}
	c := &CompareResult{
		Scenario: sc.Name, Process: sc.Traffic.Arrivals.Process, Saturating: saturates(sc),
		Packets: sc.Traffic.Packets, Seed: sc.Seed, Metrics: Metrics(), Version: sim.Version,
		Rate: traces.Real(math.NaN()), Policies: []PolicyResult{},
	}
	if !c.Saturating && sc.Traffic.Arrivals.Rate.Set() {
		c.Rate = traces.Real(sc.Traffic.Arrivals.Rate.PerSecond())
	}
	var variants []*sim.Scenario
	for _, p := range opt.Policies {
		name, err := policyName(p, sc.Seed)
		if err != nil {
			return nil, err
		}
		variants = append(variants, runs.With(sc, func(v *sim.Scenario) { v.Policy = p }))
		c.Policies = append(c.Policies, PolicyResult{Policy: p, Name: name})
	}
	extra := int64(0)
	if opt.MaxRate != nil {
		extra = int64(len(variants))
	}
	var done atomic.Int64
	report := runs.NewReporter(opt.Progress, int64(len(variants)*opt.Replications)+extra, &done)
	grid, err := runGrid(ctx, opt.Workers, variants, opt.Replications, opt.Observe, report)
	if err != nil && ctx.Err() == nil {
		return nil, err
	}
	c.fill(grid)
	if err == nil {
		err = c.beyond(ctx, variants, &opt, report)
	}
	if err != nil && ctx.Err() != nil {
		c.Interrupted = true
		c.Notes = append(c.Notes, fmt.Sprintf("interrupted: %d of %d replications are whole", c.Replications, opt.Replications))
		return c, ctx.Err()
	}
	return c, err
}

// outcome is what is kept of one run.
type outcome struct {
	values      []float64 // by metric
	fingerprint string
	unused      uint8 // bit q: no card ever found a message in queue q
	done        bool
}

func outcomeOf(r *sim.Result) outcome {
	o := outcome{values: values(r), fingerprint: r.Fingerprint, done: true}
	for q := range spine.NumQueues {
		used := false
		for i := range r.Utilisation.Cards {
			used = used || r.Utilisation.Cards[i].Found[q] > 0
		}
		if !used {
			o.unused |= 1 << q
		}
	}
	return o
}

// runGrid runs every replication of every variant, replications outermost, so
// that what an interrupted study has is whole replications of all.
func runGrid(ctx context.Context, atOnce int, variants []*sim.Scenario, replications int, observe func(variant, replication int) (traces.Sink, func()), report *runs.Reporter) ([][]outcome, error) {
	grid := make([][]outcome, len(variants))
	for i := range grid {
		grid[i] = make([]outcome, replications)
	}
	err := runs.Each(ctx, atOnce, len(variants)*replications, func(ctx context.Context, k int) error {
		i, j := k%len(variants), k/len(variants)
		sc := replicate(variants[i], j)
		var o sim.Options
		whole := func() {}
		if observe != nil {
			var sink traces.Sink
			sink, whole = observe(i, j)
			o.Sinks = append(o.Sinks, sink)
		}
		r, err := sim.Run(ctx, sc, o)
		if err != nil {
			return fmt.Errorf("policy %s, seed %d: %w", sc.Policy, sc.Seed, err)
		}
		whole()
		grid[i][j] = outcomeOf(r)
		report.Add(1, sc.Policy)
		return nil
	})
	return grid, err
}

// fill makes figures and differences of the replications that all policies
// have.
func (c *CompareResult) fill(grid [][]outcome) {
	var whole []int
	for j := range grid[0] {
		all := true
		for i := range grid {
			all = all && grid[i][j].done
		}
		if all {
			whole = append(whole, j)
		}
	}
	c.Replications = len(whole)
	column := func(i, metric int) []float64 {
		var v []float64
		for _, j := range whole {
			v = append(v, grid[i][j].values[metric])
		}
		return v
	}
	for i := range c.Policies {
		p := &c.Policies[i]
		p.Figures, p.Values, p.Fingerprints = map[string]Interval{}, map[string][]traces.Real{}, []string{}
		for _, j := range whole {
			p.Fingerprints = append(p.Fingerprints, grid[i][j].fingerprint)
		}
		if i > 0 {
			p.Differences = map[string]Difference{}
		}
		for m := range metrics {
			v := column(i, m)
			p.Figures[metrics[m].Name] = NewInterval(v)
			p.Values[metrics[m].Name] = reals(v)
			if i > 0 {
				p.Differences[metrics[m].Name] = difference(&metrics[m], column(0, m), v)
			}
		}
	}
}

func reals(v []float64) []traces.Real {
	out := make([]traces.Real, len(v))
	for i := range v {
		out[i] = traces.Real(v[i])
	}
	return out
}

// difference is the paired difference of a metric.
func difference(m *Metric, first, second []float64) Difference {
	nan := traces.Real(math.NaN())
	c, err := stats.Compare(first, second, level, m.direction())
	if errors.Is(err, stats.ErrPairs) {
		return Difference{
			Interval: Interval{Mean: nan, Low: nan, High: nan, Short: "not every run has the figure"},
			Relative: nan, Correlation: nan, Verdict: VerdictCannotTell,
		}
	}
	d := Difference{
		Interval: intervalOf(c.Difference), Relative: traces.Real(c.Difference.Mean / c.First.Mean),
		Correlation: traces.Real(c.Correlation),
	}
	d.Verdict = verdict(m, c.Verdict, len(first) > 0 && slices.Equal(first, second))
	return d
}

func verdict(m *Metric, v stats.Verdict, same bool) Verdict {
	switch {
	case same:
		return VerdictSame
	case v == stats.CannotTell:
		return VerdictCannotTell
	case m.Better == Neither && v == stats.Better: // less
		return VerdictLower
	case m.Better == Neither:
		return VerdictHigher
	case v == stats.Better:
		return VerdictBetter
	}
	return VerdictWorse
}

// beyond adds the lower bounds and the highest rates.
func (c *CompareResult) beyond(ctx context.Context, variants []*sim.Scenario, opt *CompareOptions, report *runs.Reporter) error {
	for i, sc := range variants {
		p := &c.Policies[i]
		if opt.LowerBound != nil {
			t, resource, err := opt.LowerBound(sc)
			if err != nil {
				return fmt.Errorf("lower bound of policy %s: %w", p.Policy, err)
			}
			us := t.Microseconds()
			p.Bound = &Bound{Gap: traces.Real(us), Resource: resource, Above: p.Figures["gap_us"].Mean/traces.Real(us) - 1}
		}
		if opt.MaxRate != nil {
			o := *opt.MaxRate
			o.Workers, o.Progress = opt.Workers, nil
			r, err := MaxRate(ctx, sc, o)
			p.MaxRate = r
			if err != nil {
				return fmt.Errorf("highest rate of policy %s: %w", p.Policy, err)
			}
			report.Add(1, "highest rate of "+p.Policy)
		}
	}
	return nil
}
