package study

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync/atomic"

	"spinesim/sim"
	"spinesim/sim/study/internal/runs"
	"spinesim/sim/traffic"
	"spinesim/spine"
	"spinesim/spine/policy"
	"spinesim/traces"
)

// TuneOptions are those of a search over policies.
type TuneOptions struct {
	// Objective is the metric to rank by [gap_us].
	Objective string
	// Saturated replaces the scenario's arrivals by a source that is never
	// empty while policies are ranked. At a rate that all of them carry they
	// would have the same gap.
	Saturated bool
	// Packets a run offers to each ingress card, while everything is tried
	// [1,500], and Replications of each under different seeds [1].
	Packets      uint64
	Replications int
	// Orders to try; nil for all 5,040.
	Orders []string
	// Policies whose parameters are searched; nil for every kind that the
	// registry knows with a parameter whose meaning shows in its value.
	Policies []string
	// Evaluations bounds the local search of one policy [120].
	Evaluations int
	// Finalists is how many of the best orders [6], and how many of the best
	// tuned policies [3], are compared again, with members of the Pareto
	// front [4], the default and pci-first, in FinalReplications [8] runs of
	// FinalPackets [8,000] under seeds that had no part in choosing them.
	Finalists, FinalPolicies, FinalFront int
	FinalPackets                         uint64
	FinalReplications                    int
	// MaxRate, where given, searches the highest rate of the default and of
	// the RateFinalists best [2] under the scenario's own arrivals.
	MaxRate       *MaxRateOptions
	RateFinalists int
	// Workers is how many runs go on at once [GOMAXPROCS].
	Workers int
	// Progress is told the packets simulated and an estimate of all.
	Progress Progress
}

// TunedPolicy is the best setting that a local search found for a policy.
type TunedPolicy struct {
	Kind        string      `json:"kind"`
	Policy      string      `json:"policy"`    // as spine.NewPolicy reads it
	Objective   traces.Real `json:"objective"` // mean over the replications
	Start       string      `json:"start"`
	StartValue  traces.Real `json:"start_objective"`
	Evaluations int         `json:"evaluations"`
	Steps       int         `json:"steps"`     // improvements made
	Exhausted   bool        `json:"exhausted"` // the bound on evaluations ended it
	Gap         traces.Real `json:"gap_us"`
	LatencyP99  traces.Real `json:"latency_p99_us"`
	Fingerprint string      `json:"fingerprint"` // of the first replication
}

// TuneResult is what a search over policies found.
type TuneResult struct {
	Scenario     string `json:"scenario"`
	Objective    Metric `json:"objective"`
	Saturated    bool   `json:"saturated"`
	Packets      uint64 `json:"packets"`
	Replications int    `json:"replications"`
	Seed         uint64 `json:"seed"`
	Tried        int    `json:"tried"`    // orders
	Runs         int    `json:"runs"`     // made for them; the others are identical to one made
	Distinct     int    `json:"distinct"` // fingerprints among them
	// Unused are the queues in which no order ever found a message on any card.
	Unused       []string    `json:"unused_queues"`
	DefaultRank  int         `json:"default_rank"`
	DefaultValue traces.Real `json:"default_objective"`
	// Orders from the best on.
	Orders   []Order       `json:"orders"`
	Effects  []PairEffect  `json:"effects"`
	Policies []TunedPolicy `json:"policies"` // from the best on
	// Pareto is the front of gap against latency, over all orders and all
	// settings tried.
	Pareto []ParetoPoint `json:"pareto"`
	// Final compares the finalists, the default first and then from the best
	// on, in longer runs under fresh seeds.
	Final       *CompareResult `json:"final,omitempty"`
	Version     string         `json:"version"`
	Interrupted bool           `json:"interrupted,omitempty"`
	Notes       []string       `json:"notes,omitempty"`
}

// Best is the best policy found: the best finalist where there are any.
func (r *TuneResult) Best() string {
	switch {
	case r.Final != nil && len(r.Final.Policies) > 0:
		best := 0
		for i, p := range r.Final.Policies {
			if r.Objective.compare(float64(p.Figures[r.Objective.Name].Mean), float64(r.Final.Policies[best].Figures[r.Objective.Name].Mean)) < 0 {
				best = i
			}
		}
		return r.Final.Policies[best].Policy
	case len(r.Orders) > 0:
		return r.Orders[0].Order
	}
	return ""
}

func (o TuneOptions) filled() (TuneOptions, error) {
	if o.Objective == "" {
		o.Objective = "gap_us"
	}
	for _, d := range []struct {
		value *int
		or    int
		name  string
	}{
		{&o.Replications, 1, "replications"}, {&o.Evaluations, 120, "evaluations"}, {&o.Finalists, 6, "finalists"},
		{&o.FinalPolicies, 3, "finalists among the tuned policies"}, {&o.FinalFront, 4, "finalists of the Pareto front"},
		{&o.FinalReplications, 8, "replications of finalists"}, {&o.RateFinalists, 2, "finalists whose highest rate is searched"},
	} {
		if *d.value == 0 {
			*d.value = d.or
		}
		if *d.value < 1 || *d.value > 100_000 {
			return o, runs.InputErrorf("%d %s, want 1 to 100000", *d.value, d.name)
		}
	}
	if o.Packets == 0 {
		o.Packets = 1500
	}
	if o.FinalPackets == 0 {
		o.FinalPackets = 8000
	}
	return o, nil
}

// tuning is a search under way.
type tuning struct {
	opt       TuneOptions
	sc        *sim.Scenario // as the runs have it
	objective *Metric
	index     int // of the objective
	done      atomic.Int64
	report    *runs.Reporter
	per       int64 // packets of a run
	r         *TuneResult
	tried     []ParetoPoint
	prints    map[string]string // fingerprints of settings, by their text
}

// Tune ranks all strict orders of the queues by an objective at one load, and
// then searches the parameters of the other policies from their defaults, step
// by step, for as long as a step helps. Everything tried meets the same
// traffic under the same seeds. It says which priority matters ([PairEffect]),
// which policies no other beats in both gap and latency, and compares the best
// again in longer runs under seeds that did not choose them, so that luck in
// the ranking does not show as merit.
//
// Orders whose runs must be identical, since they differ only in the places of
// queues that never hold a message, share one.
//
// When the context ends, what is finished comes with its error.
func Tune(ctx context.Context, sc *sim.Scenario, opt TuneOptions) (*TuneResult, error) {
	opt, err := opt.filled()
	if err != nil {
		return nil, err
	}
	objective, err := MetricByName(opt.Objective)
	if err != nil {
		return nil, err
	}
	if objective.Better == Neither {
		return nil, runs.InputErrorf("objective %s: it is neither good nor bad, want another", objective.Name)
	}
	if err := sc.Validate(); err != nil {
		return nil, err
	}
	orders := allOrders()
	if opt.Orders != nil {
		orders = nil
		for _, t := range opt.Orders {
			o, err := policy.ParseOrder(t)
			if err != nil {
				return nil, &sim.InputError{Err: err}
			}
			if slices.Contains(orders, o) {
				return nil, runs.InputErrorf("order %s is there twice", t)
			}
			orders = append(orders, o)
		}
	}
	kinds, err := tunable(opt.Policies)
	if err != nil {
		return nil, err
	}
	if opt.MaxRate != nil {
		if saturates(sc) {
			return nil, runs.InputErrorf("traffic.arrivals.process: a source that is never empty has no highest rate; want another, or no search for it")
		}
		if _, err := opt.MaxRate.filled(sc); err != nil {
			return nil, err
		}
	}
	t := &tuning{opt: opt, objective: objective, index: metricIndex(objective.Name), prints: map[string]string{}}
	t.sc = runs.With(sc, func(c *sim.Scenario) {
		c.Traffic.Packets = opt.Packets
		if opt.Saturated {
			c.Traffic.Arrivals.Process = "saturating"
			if c.Traffic.Capture != nil {
				k := *c.Traffic.Capture
				k.Pace = "link"
				c.Traffic.Capture = &k
			}
		}
	})
	if err := t.sc.Validate(); err != nil {
		return nil, err
	}
	t.per = int64(opt.Packets) * int64(len(sc.Traffic.Ingress))
	t.r = &TuneResult{
		Scenario: sc.Name, Objective: *objective, Saturated: saturates(t.sc), Packets: opt.Packets, Replications: opt.Replications,
		Seed: sc.Seed, DefaultValue: traces.Real(math.NaN()), Version: sim.Version,
		Orders: []Order{}, Effects: []PairEffect{}, Policies: []TunedPolicy{}, Pareto: []ParetoPoint{}, Unused: []string{},
	}
	t.report = runs.NewReporter(opt.Progress, t.estimate(len(orders), len(kinds)), &t.done)
	for _, step := range []func(context.Context) error{
		func(ctx context.Context) error { return t.orders(ctx, orders) },
		func(ctx context.Context) error { return t.policies(ctx, kinds) },
		func(ctx context.Context) error { return t.final(ctx, sc) },
	} {
		if err = step(ctx); err != nil {
			break
		}
	}
	t.r.Pareto = paretoFront(t.tried)
	if err != nil && ctx.Err() != nil {
		t.r.Interrupted = true
		t.r.Notes = append(t.r.Notes, fmt.Sprintf("interrupted: %d of %d orders and %d of %d policies are done", t.r.Tried, len(orders), len(t.r.Policies), len(kinds)))
		return t.r, ctx.Err()
	}
	return t.r, err
}

// estimate is the packets that the whole search will simulate.
func (t *tuning) estimate(orders, kinds int) int64 {
	o := &t.opt
	in := int64(len(t.sc.Traffic.Ingress))
	n := t.per * int64(o.Replications) * int64(orders+kinds*min(o.Evaluations, 60))
	n += int64(o.Finalists+o.FinalPolicies+2) * int64(o.FinalReplications) * int64(o.FinalPackets) * in
	if o.MaxRate != nil {
		m, _ := o.MaxRate.filled(t.sc) // checked before
		n += int64(o.RateFinalists+1) * 7 * int64(m.Packets) * int64(m.Replications) * in
	}
	return n
}

// orders ranks the strict orders.
func (t *tuning) orders(ctx context.Context, orders []order) error {
	done, runs, err := exhaust(ctx, t.sc, orders, t.opt.Replications, t.opt.Workers, t.index, t.report)
	r := t.r
	r.Tried, r.Runs = len(done), runs
	distinct := map[string]bool{}
	for i := range done {
		distinct[done[i].Fingerprint] = true
		t.tried = append(t.tried, ParetoPoint{done[i].Order, done[i].Gap, done[i].LatencyP99})
	}
	r.Distinct = len(distinct)
	unused := ^uint8(0)
	for i := range done {
		unused &= done[i].unused
	}
	for q, name := range queueNames {
		if len(done) > 0 && unused&(1<<q) != 0 {
			r.Unused = append(r.Unused, name)
		}
	}
	r.Effects = append(r.Effects, pairEffects(done, t.objective)...)
	slices.SortStableFunc(done, func(a, b Order) int { return t.objective.compare(float64(a.Objective), float64(b.Objective)) })
	r.Orders = append(r.Orders, done...)
	for i := range r.Orders {
		if r.Orders[i].order == spine.DefaultOrder {
			r.DefaultRank, r.DefaultValue = i+1, r.Orders[i].Objective
		}
	}
	return err
}

// tunable are the kinds of policies that have a parameter to turn.
func tunable(names []string) ([]spine.PolicyKind, error) {
	all := spine.PolicyKinds()
	if names == nil {
		var out []spine.PolicyKind
		for _, k := range all {
			// A strict order is what the exhaustive search has tried.
			if _, err := spine.NewPolicy(k.Name, 0, 0); err != nil || k.Name == "strict" || len(defaults(&k).neighbours(nil)) == 0 {
				continue
			}
			out = append(out, k)
		}
		return out, nil
	}
	var out []spine.PolicyKind
	for _, n := range names {
		i := slices.IndexFunc(all, func(k spine.PolicyKind) bool { return k.Name == n })
		if i < 0 {
			_, err := policyName(n, 0)
			if err == nil {
				err = runs.InputErrorf("policy %q: want the name of a kind, without parameters", n)
			}
			return nil, err
		}
		if _, err := spine.NewPolicy(n, 0, 0); err != nil || len(defaults(&all[i]).neighbours(nil)) == 0 {
			return nil, runs.InputErrorf("policy %s has no parameter to search", n)
		}
		out = append(out, all[i])
	}
	return out, nil
}

// policies searches the parameters of each kind.
func (t *tuning) policies(ctx context.Context, kinds []spine.PolicyKind) error {
	var best []string
	for i := range min(2, len(t.r.Orders)) {
		best = append(best, t.r.Orders[i].Order)
	}
	var err error
	for i := range kinds {
		var p *TunedPolicy
		if p, err = t.climb(ctx, &kinds[i], best); p != nil {
			t.r.Policies = append(t.r.Policies, *p)
		}
		if err != nil {
			break
		}
	}
	slices.SortStableFunc(t.r.Policies, func(a, b TunedPolicy) int {
		return t.objective.compare(float64(a.Objective), float64(b.Objective))
	})
	return err
}

// least is the relative improvement for which a local search takes a step
// (chosen: below it runs of this length differ by accident).
const least = 1e-4

// climb turns the parameters of one kind, always by the step that helps most.
func (t *tuning) climb(ctx context.Context, kind *spine.PolicyKind, orders []string) (*TunedPolicy, error) {
	known := map[string]bool{}
	evaluate := func(list []setting) ([]setting, []float64, error) {
		var fresh []setting
		for _, s := range list {
			// Two texts may name the same policy, and some are refused.
			name, err := policyName(s.text(), t.sc.Seed)
			if err != nil || known[name] {
				continue
			}
			known[name] = true
			fresh = append(fresh, s)
		}
		variants := make([]*sim.Scenario, len(fresh))
		for i, s := range fresh {
			variants[i] = runs.With(t.sc, func(c *sim.Scenario) { c.Policy = s.text() })
		}
		grid, err := t.grid(ctx, variants)
		if err != nil {
			return nil, nil, err
		}
		v := make([]float64, len(fresh))
		for i := range grid {
			mean := meanValues(grid[i])
			v[i] = mean[t.index]
			t.prints[fresh[i].text()] = grid[i][0].fingerprint
			t.tried = append(t.tried, ParetoPoint{fresh[i].text(), traces.Real(mean[metricIndex("gap_us")]), traces.Real(mean[metricIndex("latency_p99_us")])})
		}
		return fresh, v, nil
	}
	at := defaults(kind)
	_, v, err := evaluate([]setting{at})
	if err != nil {
		return nil, err
	}
	value := v[0]
	p := &TunedPolicy{Kind: kind.Name, Start: at.text(), StartValue: traces.Real(value)}
	finish := func(err error) (*TunedPolicy, error) {
		p.Policy, p.Objective, p.Evaluations = at.text(), traces.Real(value), len(known)
		p.Fingerprint = t.prints[p.Policy]
		for _, q := range t.tried {
			if q.Policy == p.Policy {
				p.Gap, p.LatencyP99 = q.Gap, q.LatencyP99
			}
		}
		return p, err
	}
	for {
		next := at.neighbours(orders)
		if room := t.opt.Evaluations - len(known); len(next) > room {
			p.Exhausted = true
			next = next[:max(room, 0)]
		}
		list, v, err := evaluate(next)
		if err != nil {
			return finish(err)
		}
		best := -1
		for i := range list {
			if t.objective.compare(v[i], value) < 0 && !(math.Abs(v[i]-value) < least*math.Abs(value)) &&
				(best < 0 || t.objective.compare(v[i], v[best]) < 0) {
				best = i
			}
		}
		if best < 0 {
			return finish(nil)
		}
		at, value = list[best], v[best]
		p.Steps++
		if p.Exhausted {
			return finish(nil)
		}
	}
}

// grid runs variants as often as the search does.
func (t *tuning) grid(ctx context.Context, variants []*sim.Scenario) ([][]outcome, error) {
	if len(variants) == 0 {
		return nil, nil
	}
	grid := make([][]outcome, len(variants))
	reps := t.opt.Replications
	for i := range grid {
		grid[i] = make([]outcome, reps)
	}
	err := runs.Each(ctx, t.opt.Workers, len(variants)*reps, func(ctx context.Context, k int) error {
		i, j := k/reps, k%reps
		v := replicate(variants[i], j)
		r, err := sim.Run(ctx, v, sim.Options{})
		if err != nil {
			return fmt.Errorf("policy %s, seed %d: %w", v.Policy, v.Seed, err)
		}
		grid[i][j] = outcomeOf(r)
		t.report.Add(t.per, v.Policy)
		return nil
	})
	return grid, err
}

// finalists are the policies worth longer runs, the default first, none twice.
func (t *tuning) finalists() []string {
	var out []string
	seen := map[string]bool{}
	add := func(text string) bool {
		name, err := policyName(text, t.sc.Seed)
		// A strict order is known under its order whatever it is called.
		if p, perr := spine.NewPolicy(text, t.sc.Seed, 0); perr == nil {
			if s, ok := p.(*spine.Strict); ok {
				name = policy.FormatOrder(s.Order())
			}
		}
		if err != nil || seen[name] {
			return false
		}
		seen[name] = true
		out = append(out, text)
		return true
	}
	add("default")
	add("pci-first")
	// Of policies that did the same, one is enough.
	prints := map[string]bool{}
	addNew := func(text, fingerprint string) bool {
		if prints[fingerprint] {
			return false
		}
		prints[fingerprint] = true
		return add(text)
	}
	for i, n := 0, 0; i < len(t.r.Orders) && n < t.opt.Finalists; i++ {
		if addNew(t.r.Orders[i].Order, t.r.Orders[i].Fingerprint) {
			n++
		}
	}
	for i, n := 0, 0; i < len(t.r.Policies) && n < t.opt.FinalPolicies; i++ {
		if addNew(t.r.Policies[i].Policy, t.r.Policies[i].Fingerprint) {
			n++
		}
	}
	front := paretoFront(t.tried)
	for i, n := 0, 0; i < len(front) && n < t.opt.FinalFront; i++ {
		print, ok := t.prints[front[i].Policy]
		if ok && addNew(front[i].Policy, print) || !ok && add(front[i].Policy) {
			n++
		}
	}
	return out
}

// final compares the finalists and searches the highest rates of the best.
func (t *tuning) final(ctx context.Context, sc *sim.Scenario) error {
	names := t.finalists()
	f := runs.With(t.sc, func(c *sim.Scenario) {
		c.Traffic.Packets = t.opt.FinalPackets
		c.Seed += uint64(t.opt.Replications) // none that chose them
	})
	before := t.done.Load()
	per := int64(t.opt.FinalPackets) * int64(len(sc.Traffic.Ingress))
	c, err := Compare(ctx, f, CompareOptions{
		Policies: names, Replications: t.opt.FinalReplications, Workers: t.opt.Workers,
		Progress: func(done, _ int64, what string) {
			t.report.Add(before+done*per-t.done.Load(), "finalist "+what)
		},
	})
	t.r.Final = c
	if c != nil && len(c.Policies) > 1 {
		rest := c.Policies[1:]
		slices.SortStableFunc(rest, func(a, b PolicyResult) int {
			return t.objective.compare(float64(a.Figures[t.objective.Name].Mean), float64(b.Figures[t.objective.Name].Mean))
		})
	}
	if err != nil || t.opt.MaxRate == nil {
		return err
	}
	for i := range min(len(c.Policies), t.opt.RateFinalists+1) {
		p := &c.Policies[i]
		before := t.done.Load()
		o := *t.opt.MaxRate
		o.Workers = t.opt.Workers
		o.Progress = func(done, _ int64, what string) {
			t.report.Add(before+done-t.done.Load(), "highest rate of "+p.Policy+", "+what)
		}
		if i > 0 {
			// They are better than the default: about as much as in gap.
			o.Start = float64(c.Policies[0].MaxRate.Rate)
		}
		v := runs.With(sc, func(s *sim.Scenario) { s.Policy = p.Policy })
		if !v.Traffic.Arrivals.Rate.Set() {
			if v.Traffic.Arrivals.Rate, err = traffic.PacketsPerSecond(10_000); err != nil {
				return err
			}
		}
		if p.MaxRate, err = MaxRate(ctx, v, o); err != nil {
			return fmt.Errorf("highest rate of policy %s: %w", p.Policy, err)
		}
	}
	return nil
}
