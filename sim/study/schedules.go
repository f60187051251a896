package study

import (
	"context"
	"fmt"
	"io"
	"math"
	"sync/atomic"
	"text/tabwriter"

	"spinesim/sim"
	"spinesim/sim/des"
	"spinesim/sim/study/internal/runs"
	"spinesim/sim/traffic"
	"spinesim/spine"
	"spinesim/traces"
)

// SchedulesOptions are those of a comparison of static with dynamic schedules.
// The zero value of a field stands for its default.
type SchedulesOptions struct {
	// Policies to compare [static, hybrid, default, pci-first]; static and
	// hybrid ones are recognised by what they are.
	Policies []string
	// Packets that a run offers to each ingress card [10,000], in so many
	// Replications [5].
	Packets      uint64
	Replications int
	// Load of the runs that are not saturated, as a share of the rate at the
	// lower bound of the gap, above 0 and at most 1.5 [0.7].
	Load float64
	// Workers is how many runs go on at once [GOMAXPROCS].
	Workers  int
	Progress Progress
}

func (o SchedulesOptions) filled() (SchedulesOptions, error) {
	if o.Policies == nil {
		o.Policies = []string{"static", "hybrid", "default", "pci-first"}
	}
	if o.Packets == 0 {
		o.Packets = 10_000
	}
	if o.Replications == 0 {
		o.Replications = 5
	}
	if o.Load == 0 {
		o.Load = 0.7
	}
	if !(o.Load > 0 && o.Load <= 1.5) {
		return o, runs.InputErrorf("load %g, want above 0 and at most 1.5", o.Load)
	}
	if o.Replications < 1 || o.Replications > 10_000 {
		return o, runs.InputErrorf("%d replications, want 1 to 10000", o.Replications)
	}
	if len(o.Policies) < 2 {
		return o, runs.InputErrorf("%d policies, want at least 2 to compare", len(o.Policies))
	}
	return o, nil
}

// ScheduleCell is how a policy does with a kind of traffic.
type ScheduleCell struct {
	Policy string `json:"policy"`
	// Gap under a source that never pauses.
	Gap Interval `json:"gap_us"`
	// Loss, and latency through the ingress card, at the load.
	Loss       Interval `json:"loss"`
	LatencyP50 Interval `json:"latency_p50_us"`
	LatencyP99 Interval `json:"latency_p99_us"`
}

// ScheduleRow is a kind of traffic.
type ScheduleRow struct {
	Traffic string `json:"traffic"`
	// LowerBound of the gap, and the resource that sets it; Rate is the load's.
	LowerBound traces.Real    `json:"lower_bound_us"`
	Binding    string         `json:"binding_resource"`
	Rate       traces.Real    `json:"rate"`
	Cells      []ScheduleCell `json:"policies"`
	// Gap and Latency name the kind of policy, static, hybrid or dynamic, that
	// has the least mean saturated gap, or median latency at the load; empty
	// when the intervals of the two best kinds overlap.
	Gap     string `json:"least_gap"`
	Latency string `json:"least_latency"`
}

// ScheduleCurve is how the saturated gap goes with one property of the traffic.
type ScheduleCurve struct {
	Axis   string        `json:"axis"`
	Points []traces.Real `json:"points"`
	Bounds []traces.Real `json:"lower_bound_us"`
	// Gaps by policy, in the order of Policies, then by point.
	Policies []string     `json:"policies"`
	Gaps     [][]Interval `json:"gap_us"`
	// BreakEven is where the best dynamic policy overtakes the best static
	// one, between two points by straight lines; null when it does not. Static
	// says whether static is ahead at the first point.
	BreakEven traces.Real `json:"break_even"`
	Static    bool        `json:"static_ahead_at_first"`
}

// SchedulesResult compares static with dynamic schedules.
type SchedulesResult struct {
	Scenario     string          `json:"scenario"`
	Packets      uint64          `json:"packets"`
	Replications int             `json:"replications"`
	Seed         uint64          `json:"seed"`
	Load         traces.Real     `json:"load"`
	Rows         []ScheduleRow   `json:"rows"`
	Curves       []ScheduleCurve `json:"curves"`
	Version      string          `json:"version"`
}

// scheduleKind is the kind of a policy.
func scheduleKind(policy string) (string, error) {
	p, err := spine.NewPolicy(policy, 0, 0)
	if err != nil {
		return "", &sim.InputError{Err: err}
	}
	d, ok := p.(*spine.Deferred)
	switch {
	case !ok:
		return "dynamic", nil
	case d.Hybrid:
		return "hybrid", nil
	}
	return "static", nil
}

// scheduleCase is a kind of traffic, and how a scenario gets it.
type scheduleCase struct {
	name  string
	apply func(*sim.Scenario)
}

// scheduleCases are the kinds of traffic: from what a static schedule is made
// for to what it is not.
func scheduleCases(sc *sim.Scenario) []scheduleCase {
	process := func(p string) func(*sim.Scenario) {
		return func(v *sim.Scenario) {
			v.Traffic.Arrivals.Process = p
			v.Traffic.Arrivals.Jitter = 0.5
			// Some fifty packets a burst, and as long a pause.
			v.Traffic.Arrivals.On, v.Traffic.Arrivals.Off = 1500*des.Microsecond, 1500*des.Microsecond
		}
	}
	unroutable := func(share float64) func(*sim.Scenario) {
		return func(v *sim.Scenario) {
			process("poisson")(v)
			v.Routes.DefaultRoute = false
			v.Traffic.Destinations.Unroutable = share
		}
	}
	cases := []scheduleCase{
		{"regular", process("constant")},
		{"jittered", process("jittered")},
		{"poisson", process("poisson")},
		{"bursts", process("bursts")},
		{"mixed sizes", func(v *sim.Scenario) {
			process("poisson")(v)
			v.Traffic.Sizes = sim.SizeSpec{Kind: "imix"}
		}},
		{"1 % unroutable", unroutable(0.01)},
		{"10 % unroutable", unroutable(0.1)},
	}
	if sc.Cards > 1 {
		cases = append(cases, scheduleCase{fmt.Sprintf("%d-way", sc.Cards), func(v *sim.Scenario) {
			process("poisson")(v)
			ingress(v, v.Cards)
		}})
	}
	return cases
}

// ingress makes the first n cards receive. Packets go to all cards, and may
// leave by the wire they came from where there is more than one that receives.
func ingress(v *sim.Scenario, n int) {
	v.Traffic.Ingress, v.Routes.Cards = nil, nil
	for c := range n {
		v.Traffic.Ingress = append(v.Traffic.Ingress, c)
	}
	if n > 1 {
		for c := range v.Cards {
			v.Routes.Cards = append(v.Routes.Cards, c)
		}
	}
}

// Schedules compares static cycles, made anew for each kind of traffic, with
// dynamic policies: saturated gaps, and loss and latency at a common load; and
// looks for the break-even along the share of packets for the host and the
// number of cards that receive.
func Schedules(ctx context.Context, sc *sim.Scenario, opt SchedulesOptions) (*SchedulesResult, error) {
	opt, err := opt.filled()
	if err != nil {
		return nil, err
	}
	kinds := make([]string, len(opt.Policies))
	for i, p := range opt.Policies {
		if kinds[i], err = scheduleKind(p); err != nil {
			return nil, err
		}
	}
	base := runs.With(sc, func(v *sim.Scenario) {
		v.Traffic.Packets, v.Traffic.Capture = opt.Packets, nil
	})
	if err := base.Validate(); err != nil {
		return nil, err
	}
	out := &SchedulesResult{
		Scenario: sc.Name, Packets: opt.Packets, Replications: opt.Replications, Seed: sc.Seed,
		Load: traces.Real(opt.Load), Version: sim.Version,
	}
	cases := scheduleCases(base)
	curves := scheduleAxes(base)
	points := 0
	for _, c := range curves {
		points += len(c.points)
	}
	var done atomic.Int64
	report := runs.NewReporter(opt.Progress, int64((2*len(cases)+points)*len(opt.Policies)*opt.Replications), &done)
	for _, c := range cases {
		row, err := scheduleRow(ctx, base, c, kinds, &opt, report)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
		out.Rows = append(out.Rows, *row)
	}
	for _, a := range curves {
		curve, err := scheduleCurve(ctx, base, a, kinds, &opt, report)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", a.name, err)
		}
		out.Curves = append(out.Curves, *curve)
	}
	return out, nil
}

// under is the policies' scenarios of a traffic.
func under(sc *sim.Scenario, policies []string) []*sim.Scenario {
	var out []*sim.Scenario
	for _, p := range policies {
		out = append(out, runs.With(sc, func(v *sim.Scenario) { v.Policy = p }))
	}
	return out
}

func saturated(sc *sim.Scenario) *sim.Scenario {
	return runs.With(sc, func(v *sim.Scenario) { v.Traffic.Arrivals.Process = "saturating" })
}

// acrossRuns is a metric of a variant's replications.
func acrossRuns(grid []outcome, metric string) Interval {
	i := metricIndex(metric)
	var v []float64
	for _, o := range grid {
		v = append(v, o.values[i])
	}
	return NewInterval(v)
}

func scheduleRow(ctx context.Context, base *sim.Scenario, c scheduleCase, kinds []string, opt *SchedulesOptions, report *runs.Reporter) (*ScheduleRow, error) {
	sc := runs.With(base, c.apply)
	bound, binding, err := sim.LowerBound(saturated(sc))
	if err != nil {
		return nil, err
	}
	perSecond := opt.Load / bound.Seconds()
	rate, err := traffic.PacketsPerSecond(math.Round(perSecond))
	if err != nil {
		return nil, err
	}
	sc.Traffic.Arrivals.Rate = rate
	row := &ScheduleRow{
		Traffic: c.name, LowerBound: traces.Real(bound.Microseconds()), Binding: binding, Rate: traces.Real(rate.PerSecond()),
	}
	full, err := runGrid(ctx, opt.Workers, under(saturated(sc), opt.Policies), opt.Replications, nil, report)
	if err != nil {
		return nil, err
	}
	part, err := runGrid(ctx, opt.Workers, under(sc, opt.Policies), opt.Replications, nil, report)
	if err != nil {
		return nil, err
	}
	var gaps, latencies []Interval
	for i, p := range opt.Policies {
		cell := ScheduleCell{
			Policy: p, Gap: acrossRuns(full[i], "gap_us"), Loss: acrossRuns(part[i], "loss"),
			LatencyP50: acrossRuns(part[i], "latency_p50_us"), LatencyP99: acrossRuns(part[i], "latency_p99_us"),
		}
		row.Cells = append(row.Cells, cell)
		gaps, latencies = append(gaps, cell.Gap), append(latencies, cell.LatencyP50)
	}
	row.Gap, row.Latency = bestKind(kinds, gaps), bestKind(kinds, latencies)
	return row, nil
}

// bestOf is the least mean among the policies of a kind ("" for those that are
// not dynamic), -1 where there is none.
func bestOf(kinds []string, values []Interval, is func(kind string) bool) int {
	best := -1
	for i, v := range values {
		if is(kinds[i]) && !math.IsNaN(float64(v.Mean)) && (best < 0 || v.Mean < values[best].Mean) {
			best = i
		}
	}
	return best
}

// bestKind is the kind of the policy with the least value, empty when that of
// the best of another kind is not clearly more.
func bestKind(kinds []string, values []Interval) string {
	best := bestOf(kinds, values, func(string) bool { return true })
	if best < 0 {
		return ""
	}
	second := bestOf(kinds, values, func(k string) bool { return k != kinds[best] })
	if second >= 0 && (!values[best].OK() || !values[second].OK() || values[best].High >= values[second].Low) {
		return ""
	}
	return kinds[best]
}

// scheduleAxis is a property of the traffic along which a break-even is looked
// for.
type scheduleAxis struct {
	name   string
	points []float64
	apply  func(*sim.Scenario, float64)
}

func scheduleAxes(sc *sim.Scenario) []scheduleAxis {
	axes := []scheduleAxis{{
		"share of packets for the host", []float64{0, 0.01, 0.1, 0.3, 0.6, 0.9},
		func(v *sim.Scenario, x float64) {
			v.Routes.DefaultRoute = false
			v.Traffic.Destinations.Unroutable = x
		},
	}}
	if sc.Cards > 1 {
		a := scheduleAxis{"cards that receive", nil, func(v *sim.Scenario, x float64) { ingress(v, int(x)) }}
		for n := range sc.Cards {
			a.points = append(a.points, float64(n+1))
		}
		axes = append(axes, a)
	}
	return axes
}

func scheduleCurve(ctx context.Context, base *sim.Scenario, a scheduleAxis, kinds []string, opt *SchedulesOptions, report *runs.Reporter) (*ScheduleCurve, error) {
	c := &ScheduleCurve{Axis: a.name, Policies: opt.Policies, Gaps: make([][]Interval, len(opt.Policies)), BreakEven: traces.Real(math.NaN())}
	var lead []float64 // of the best static policy before the best dynamic one
	for _, x := range a.points {
		sc := saturated(runs.With(base, func(v *sim.Scenario) { a.apply(v, x) }))
		bound, _, err := sim.LowerBound(sc)
		if err != nil {
			return nil, err
		}
		grid, err := runGrid(ctx, opt.Workers, under(sc, opt.Policies), opt.Replications, nil, report)
		if err != nil {
			return nil, err
		}
		var gaps []Interval
		for i := range opt.Policies {
			g := acrossRuns(grid[i], "gap_us")
			gaps = append(gaps, g)
			c.Gaps[i] = append(c.Gaps[i], g)
		}
		c.Points = append(c.Points, traces.Real(x))
		c.Bounds = append(c.Bounds, traces.Real(bound.Microseconds()))
		s := bestOf(kinds, gaps, func(k string) bool { return k == "static" })
		d := bestOf(kinds, gaps, func(k string) bool { return k == "dynamic" })
		if s >= 0 && d >= 0 {
			lead = append(lead, float64(gaps[d].Mean-gaps[s].Mean))
		}
	}
	if len(lead) == len(a.points) {
		c.Static = lead[0] > 0
		c.BreakEven = traces.Real(crossing(a.points, lead))
	}
	return c, nil
}

// crossing is where values change their sign for the first time, by a straight
// line between points; NaN when they do not.
func crossing(x, values []float64) float64 {
	for i := 1; i < len(values); i++ {
		if a, b := values[i-1], values[i]; a > 0 != (b > 0) {
			return x[i-1] + (x[i]-x[i-1])*a/(a-b)
		}
	}
	return math.NaN()
}

// WriteText prints the comparison for people.
func (r *SchedulesResult) WriteText(w io.Writer) error {
	fmt.Fprintf(w, "scenario %s, %d replications of %d packets, seeds from %d\n\n", r.Scenario, r.Replications, r.Packets, r.Seed)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "traffic\tpolicy\tsaturated gap µs\tabove bound\tat load %.2g: loss %%\tlatency p50 µs\tp99 µs\t\n", float64(r.Load))
	for _, row := range r.Rows {
		for i, c := range row.Cells {
			name, note := "", ""
			if i == 0 {
				name = row.Traffic
			}
			if i == len(row.Cells)-1 {
				note = fmt.Sprintf("least gap: %s; least latency: %s", orTie(row.Gap), orTie(row.Latency))
			}
			fmt.Fprintf(t, "%s\t%s\t%v\t%.1f %%\t%v\t%v\t%v\t%s\n", name, c.Policy, c.Gap, 100*(float64(c.Gap.Mean/row.LowerBound)-1),
				c.Loss.Scale(100), c.LatencyP50, c.LatencyP99, note)
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, c := range r.Curves {
		fmt.Fprintf(w, "\nsaturated gap in µs by %s\n", c.Axis)
		fmt.Fprint(t, "\tbound")
		for _, p := range c.Policies {
			fmt.Fprintf(t, "\t%s", p)
		}
		fmt.Fprintln(t)
		for i, x := range c.Points {
			fmt.Fprintf(t, "%g\t%.2f", float64(x), float64(c.Bounds[i]))
			for j := range c.Policies {
				fmt.Fprintf(t, "\t%v", c.Gaps[j][i])
			}
			fmt.Fprintln(t)
		}
		if err := t.Flush(); err != nil {
			return err
		}
		ahead := map[bool]string{true: "static", false: "dynamic"}
		if math.IsNaN(float64(c.BreakEven)) {
			fmt.Fprintf(w, "no break-even: %s is ahead throughout\n", ahead[c.Static])
		} else {
			fmt.Fprintf(w, "break-even at %.3g: %s is ahead before, %s behind it\n", float64(c.BreakEven), ahead[c.Static], ahead[!c.Static])
		}
	}
	return nil
}

func orTie(kind string) string {
	if kind == "" {
		return "cannot tell"
	}
	return kind
}
