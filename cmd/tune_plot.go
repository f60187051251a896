package cmd

import (
	"fmt"
	"math"

	"spinesim/plots"
	"spinesim/sim/study"
	"spinesim/traces"
)

// drawTune draws every order and policy tried by gap and latency, and what each
// priority means for the objective.
func drawTune(r *study.TuneResult) (*sheet, error) {
	if len(r.Orders) == 0 {
		return nil, plots.ErrNoEvents
	}
	nan := math.NaN()
	load := "at the scenario's rate"
	if r.Saturated {
		load = "saturated"
	}
	d := &plots.Pareto{
		Title:  fmt.Sprintf("Scenario %s, %s: gap and latency of %d orders and %d tuned policies", r.Scenario, load, len(r.Orders), len(r.Policies)),
		XLabel: "gap (µs)", YLabel: "latency through the ingress card, 99th percentile (µs)",
	}
	named := map[string]bool{}
	for _, p := range r.Pareto {
		named[p.Policy] = true
	}
	// Orders that do the same lie on each other: the first, which ranks best,
	// stands for them, unless another is one to name.
	at := map[[2]traces.Real]int{}
	add := func(name string, gap, latency traces.Real, show bool) {
		i, ok := at[[2]traces.Real{gap, latency}]
		if !ok {
			i = len(d.Points)
			at[[2]traces.Real{gap, latency}] = i
			d.Points = append(d.Points, plots.ParetoPoint{X: plots.PlusMinus(float64(gap), nan), Y: plots.PlusMinus(float64(latency), nan)})
		}
		if show && d.Points[i].Name == "" {
			d.Points[i].Name = name
		}
	}
	for i, o := range r.Orders {
		if i != r.DefaultRank-1 {
			add(o.Order, o.Gap, o.LatencyP99, named[o.Order])
		}
	}
	for _, p := range r.Policies {
		add(p.Policy, p.Gap, p.LatencyP99, true)
	}
	for _, p := range r.Pareto { // settings tried on the way, which are in no list
		add(p.Policy, p.Gap, p.LatencyP99, true)
	}
	if i := r.DefaultRank - 1; i >= 0 && i < len(r.Orders) { // last, to lie above the others
		o := &r.Orders[i]
		d.Points = append(d.Points, plots.ParetoPoint{
			Name: o.Order + " (default)", X: plots.PlusMinus(float64(o.Gap), nan), Y: plots.PlusMinus(float64(o.LatencyP99), nan), Marked: true,
		})
	}
	scatter, err := d.Plot()
	if err != nil {
		return nil, err
	}
	unit, scale := r.Objective.Unit, 1.0
	if unit == "" {
		unit, scale = "%", 100
	}
	e := &plots.Comparison{
		Title:    fmt.Sprintf("What polling one queue before another adds to %s, over all arrangements of the others", r.Objective.Name),
		XLabel:   fmt.Sprintf("effect on %s (%s)", r.Objective.Name, unit),
		Series:   []string{"anywhere", "next to each other"},
		FromZero: true,
	}
	for _, p := range r.Effects {
		e.Groups = append(e.Groups, plots.BarGroup{
			Name:   fmt.Sprintf("%s above %s", p.First, p.Second),
			Values: []plots.Value{drawable(p.Effect, scale), drawable(p.Adjacent, scale)},
		})
	}
	effects, err := e.Plot()
	if err != nil { // too few orders for any effect
		return panels(1, 11, 6, scatter), nil
	}
	return panels(1, 11, max(6, 1.2+0.3*float64(len(e.Groups))), scatter, effects), nil
}
