package cmd

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"spinesim/plots"
	"spinesim/sim/des"
	"spinesim/sim/study"
	"spinesim/spine/schedule"
	"spinesim/traces"
)

// worthDrawing is the share of the lower bound that a resource needs at least
// to have a bar (chosen: the others are far from mattering).
const worthDrawing = 0.1

// drawSchedule draws what a packet asks of every resource, with the bound that
// follows, above the cycle that was found.
func drawSchedule(rep *scheduleReport) (*sheet, error) {
	b := &plots.Bound{Title: fmt.Sprintf("Scenario %s: lower bound on the gap, resource by resource", rep.Scenario)}
	rows := slices.Clone(rep.Rows)
	slices.SortStableFunc(rows, func(x, y schedule.Demand) int { return cmp.Compare(y.WorkUS, x.WorkUS) })
	for _, d := range rows {
		if d.WorkUS < worthDrawing*rep.LowerUS {
			continue
		}
		bar := plots.StackedBar{Name: d.Resource, Parts: []plots.Part{{Name: "work", Value: d.WorkUS}}}
		if d.PollsUS > 0 {
			bar.Note = fmt.Sprintf("%.2f with a static cycle's polls", d.Total())
		}
		b.Resources = append(b.Resources, bar)
	}
	proof := "shortest cycle"
	if !rep.Optimal {
		proof = fmt.Sprintf("cycle within %.2g %% of the shortest", 100*rep.Distance)
	}
	b.Reached = []plots.Mark{{Name: proof, Value: rep.IntervalUS}}
	if rep.Run != nil {
		b.Reached = append(b.Reached, plots.Mark{Name: "simulated", Value: rep.Run.GapUS})
	} else {
		b.Reached = append(b.Reached, plots.Mark{Name: "predicted with contention", Value: rep.PredictedUS})
	}
	bound, err := b.Plot()
	if err != nil {
		return nil, err
	}
	g := &plots.Gantt{
		Title:  fmt.Sprintf("Scenario %s: the synthesised cycle, %.2f µs a packet", rep.Scenario, rep.IntervalUS),
		Period: micros(rep.CycleUS), Packets: rep.Packets * rep.Ingress,
	}
	bars := slices.Clone(rep.Gantt)
	if g.Packets > 1 { // the way of many packets would not be seen, but who works when
		g.Cycles = 2
		for i := range bars {
			bars[i].Stage = 0
		}
	}
	start := func(x *schedule.Bar) float64 { return float64(x.Stage)*rep.CycleUS + x.StartUS }
	first, last := math.Inf(1), 0.0
	for i := range bars {
		first = min(first, start(&bars[i]))
	}
	for i := range bars {
		last = max(last, start(&bars[i])+bars[i].LengthUS-first)
	}
	slices.SortStableFunc(bars, func(x, y schedule.Bar) int { return cmp.Compare(start(&x), start(&y)) })
	for i := range bars {
		x := &bars[i]
		lane := slices.Index(g.Lanes, x.Lane)
		if lane < 0 { // in the order in which a packet meets them
			lane = len(g.Lanes)
			g.Lanes = append(g.Lanes, x.Lane)
		}
		g.Spans = append(g.Spans, plots.GanttSpan{Lane: lane, Start: micros(start(x) - first), Length: micros(x.LengthUS), Label: x.Name, Step: stepOf(x.Name)})
	}
	gantt, err := g.Plot()
	if err != nil {
		return nil, err
	}
	height := max(4.5, 1.5+0.3*float64(len(b.Resources)), 1.2+1.2*float64(len(g.Lanes)))
	// A handler of 2 µs has room for its name at 11 µs to the inch.
	width := float64(g.Cycles) * rep.CycleUS / 11
	if g.Cycles == 0 {
		width = (math.Ceil(last/rep.CycleUS) + 1) * rep.CycleUS / 11
	}
	return panels(1, min(max(width, 12), 36), height, bound, gantt), nil
}

// stepOf is the step of an op of the cycle, whose name is an event's and may
// tell further which packet it works on.
func stepOf(name string) traces.Step {
	for {
		if e, ok := traces.EventByName(name); ok {
			return e.Step()
		}
		i := strings.LastIndexByte(name, ' ')
		if i < 0 {
			return traces.StepNone
		}
		name = name[:i]
	}
}

func micros(v float64) des.Time { return des.Time(math.Round(v * float64(des.Microsecond))) }

// drawAgainst draws the comparison of static with dynamic schedules: bars by
// kind of traffic, and lines over each property with its break-even.
func drawAgainst(r *study.SchedulesResult) (*sheet, error) {
	if len(r.Rows) == 0 {
		return nil, plots.ErrNoEvents
	}
	nan := math.NaN()
	gap := &plots.Comparison{Title: fmt.Sprintf("Scenario %s: saturated gap by kind of traffic", r.Scenario), XLabel: "gap (µs)", FromZero: true}
	late := &plots.Comparison{Title: fmt.Sprintf("Median latency through the ingress card at a load of %.3g %%", 100*float64(r.Load)), XLabel: "latency (µs)", FromZero: true}
	for _, c := range r.Rows[0].Cells {
		gap.Series, late.Series = append(gap.Series, c.Policy), append(late.Series, c.Policy)
	}
	gap.Series = append(gap.Series, "lower bound") // last, for policies to have their colours in every panel
	for _, row := range r.Rows {
		g := plots.BarGroup{Name: row.Traffic}
		l := plots.BarGroup{Name: row.Traffic}
		for _, c := range row.Cells {
			g.Values, l.Values = append(g.Values, drawable(c.Gap, 1)), append(l.Values, drawable(c.LatencyP50, 1))
		}
		g.Values = append(g.Values, plots.PlusMinus(float64(row.LowerBound), nan))
		gap.Groups, late.Groups = append(gap.Groups, g), append(late.Groups, l)
	}
	all := []drawing{gap, late}
	for i := range r.Curves {
		all = append(all, drawCurve(&r.Curves[i]))
	}
	return drawAll(2, 9, max(5, 1.4+0.17*float64(len(gap.Groups)*(len(gap.Series)+1))), all...)
}

// drawCurve is the gap over one property of the traffic, with the lower bound
// there.
func drawCurve(c *study.ScheduleCurve) *plots.Sweep {
	d := &plots.Sweep{XLabel: c.Axis, YLabel: "saturated gap (µs)", FromZero: true}
	ahead := map[bool]string{true: "static", false: "dynamic"}
	d.Title = fmt.Sprintf("Saturated gap over %s: %s ahead throughout", c.Axis, ahead[c.Static])
	nan := math.NaN()
	bound := plots.SweepSeries{Name: "lower bound"}
	most := 0.0
	for i, x := range c.Points {
		if n := len(d.Ticks); n == 0 || float64(x)-d.Ticks[n-1] > 0.04*float64(c.Points[len(c.Points)-1]-c.Points[0]) {
			d.Ticks = append(d.Ticks, float64(x)) // labels have room
		}
		bound.X, bound.Y = append(bound.X, float64(x)), append(bound.Y, plots.PlusMinus(float64(c.Bounds[i]), nan))
	}
	for j, p := range c.Policies {
		s := plots.SweepSeries{Name: p, X: bound.X}
		for i := range c.Points {
			v := upward(drawable(c.Gaps[j][i], 1))
			if !math.IsNaN(v.Mean) {
				most = max(most, v.Mean)
			}
			s.Y = append(s.Y, v)
		}
		d.Series = append(d.Series, s)
	}
	d.Series = append(d.Series, bound)
	if c.BreakEven.OK() {
		d.Title = fmt.Sprintf("Saturated gap over %s: %s ahead before the break-even, %s behind it", c.Axis, ahead[c.Static], ahead[!c.Static])
		d.Series = append(d.Series, upright(fmt.Sprintf("break-even %.3g", float64(c.BreakEven)), float64(c.BreakEven), 0, most))
	}
	return d
}
