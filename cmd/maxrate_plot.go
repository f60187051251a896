package cmd

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"spinesim/plots"
	"spinesim/sim/study"
	"spinesim/traces"
)

// drawMaxRate draws the loss at every rate tried, and again near the rate that
// was found.
func drawMaxRate(r *study.MaxRateResult) (*sheet, error) {
	if len(r.Probes) == 0 {
		return nil, plots.ErrNoEvents
	}
	bound := plots.Mark{Name: fmt.Sprintf("bound %.4g %%", 100*float64(r.LossBound)), Value: 100 * float64(r.LossBound)}
	draw := func(title string, from, to float64) *plots.Sweep {
		d := &plots.Sweep{Title: title, XLabel: "rate (packets/s)", YLabel: "loss (%)", FromZero: true, Marks: []plots.Mark{bound}}
		most := bound.Value
		for _, n := range probeLengths(r) {
			s := plots.SweepSeries{Name: fmt.Sprintf("runs of %d packets", n)}
			for _, p := range sortedProbes(r, n) {
				if x := float64(p.Rate); x >= from && x <= to {
					s.X, s.Y = append(s.X, x), append(s.Y, upward(drawable(p.Loss, 100)))
					most = max(most, 100*float64(p.Loss.Mean))
				}
			}
			d.Series = append(d.Series, s) // even an empty one, for the same colours in both panels
		}
		if r.Found() {
			name := fmt.Sprintf("found: %.0f packets/s", float64(r.Rate))
			d.Series = append(d.Series, upright(name, float64(r.Rate), 0, most))
		}
		return d
	}
	far, err := draw(fmt.Sprintf("Loss by rate: scenario %s, policy %s, %s arrivals", r.Scenario, r.Policy, r.Process), 0, math.Inf(1)).Plot()
	if err != nil {
		return nil, err
	}
	if !r.Found() {
		return panels(1, 11, 5, far), nil
	}
	// Near: the closest rates on both sides that were tried, and some room.
	room := max(0.03, 2*float64(r.Resolution))
	near, err := draw(fmt.Sprintf("The same within %.2g %% of the rate found (%s)", 100*room, span(float64(r.Low), float64(r.High), "%.0f")),
		float64(r.Rate)*(1-room), float64(r.Rate)*(1+room)).Plot()
	if err != nil {
		return nil, err
	}
	return panels(1, 11, 4.5, far, near), nil
}

// probeLengths are the lengths of the runs, rising.
func probeLengths(r *study.MaxRateResult) []uint64 {
	var out []uint64
	for _, p := range r.Probes {
		out = append(out, p.Packets)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// sortedProbes are the rates tried with runs of a length, rising.
func sortedProbes(r *study.MaxRateResult, packets uint64) []study.Probe {
	var out []study.Probe
	for _, p := range r.Probes {
		if p.Packets == packets {
			out = append(out, p)
		}
	}
	slices.SortStableFunc(out, func(a, b study.Probe) int { return cmp.Compare(a.Rate, b.Rate) })
	return out
}

// drawMaxRateTable draws a table of highest rates as lines over the frame size,
// one line an arrival process.
func drawMaxRateTable(r *study.MaxRateTableResult) (*sheet, error) {
	if len(r.Rows) == 0 {
		return nil, plots.ErrNoEvents
	}
	type row = *study.MaxRateResult
	lines := func(title, label string, of func(m row) plots.Value) *plots.Sweep {
		d := &plots.Sweep{Title: title, XLabel: "frame (bytes)", YLabel: label, FromZero: true}
		at := map[string]int{}
		for _, m := range r.Rows {
			if !m.Found() {
				continue
			}
			i, ok := at[m.Process]
			if !ok {
				i = len(d.Series)
				at[m.Process] = i
				d.Series = append(d.Series, plots.SweepSeries{Name: m.Process})
			}
			s := &d.Series[i]
			s.X, s.Y = append(s.X, m.Frame()), append(s.Y, upward(of(m)))
			if !slices.Contains(d.Ticks, m.Frame()) {
				d.Ticks = append(d.Ticks, m.Frame())
			}
		}
		return d
	}
	mbit := func(v traces.Real, m row) traces.Real { return v * m.Bytes * 8 / 1e6 }
	return drawAll(2, 7, 4,
		lines(fmt.Sprintf("Policy %s: highest rate with %s", r.Rows[0].Policy, lossName(float64(r.Rows[0].LossBound))), "rate (packets/s)",
			func(m row) plots.Value { return between(m.Rate, m.Low, m.High) }),
		lines("Throughput of IP packets at that rate", "throughput (Mbit/s)",
			func(m row) plots.Value { return between(mbit(m.Rate, m), mbit(m.Low, m), mbit(m.High, m)) }),
		lines("Gap at that rate", "gap (µs)", func(m row) plots.Value { return drawable(m.MeasuredGap, 1) }),
		lines("Latency through the ingress card, 99th percentile", "latency (µs)", func(m row) plots.Value { return drawable(m.LatencyP99, 1) }))
}
