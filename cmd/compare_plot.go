package cmd

import (
	"fmt"
	"math"
	"slices"
	"sync"

	"spinesim/plots"
	"spinesim/sim/stats"
	"spinesim/sim/study"
	"spinesim/traces"
)

// pooledLatency gathers the latencies of the packets of all replications, by
// policy.
type pooledLatency struct {
	sync.Mutex
	by map[int]*stats.Histogram
}

// observe gives a sink for a replication, whose latencies are pooled once it is
// whole.
func (l *pooledLatency) observe(policy, _ int) (traces.Sink, func()) {
	d := plots.NewDistributions()
	return d, func() {
		l.Lock()
		defer l.Unlock()
		if h := l.by[policy]; h != nil {
			_ = h.Merge(d.Ingress) // all are of one precision
			return
		}
		if l.by == nil {
			l.by = map[int]*stats.Histogram{}
		}
		l.by[policy] = d.Ingress
	}
}

// plot lays the policies' distributions over each other.
func (l *pooledLatency) plot(r *study.CompareResult) *plots.CDFPlot {
	p := &plots.CDFPlot{
		Title: "Distribution of the latency, all replications together", XLabel: "ingress latency (µs)", Until: 0.995, Narrow: true,
	}
	for i := range r.Policies {
		if h := l.by[i]; h != nil {
			p.Series = append(p.Series, plots.TimeCDF(brief(r.Policies[i].Policy), h))
		}
	}
	return p
}

// mostName is how much of a policy's text a figure has room for (chosen: the
// names of all policies with few parameters).
const mostName = 30

// brief shortens the text of a policy with many rules or parameters.
func brief(policy string) string {
	if r := []rune(policy); len(r) > mostName {
		return string(r[:mostName-1]) + "…"
	}
	return policy
}

// drawCompare draws what a comparison found: a panel a figure or group of
// figures, a group of bars a policy.
func drawCompare(r *study.CompareResult, pooled *pooledLatency) (*sheet, error) {
	if r.Replications == 0 {
		return nil, plots.ErrNoEvents
	}
	type shown struct {
		title, label string
		metrics      []string
		names        []string
		scale        float64
	}
	all := []shown{
		{"Gap between departures", "gap (µs)", []string{"gap_us"}, []string{""}, 1},
		{"Latency through the ingress card", "latency (µs)", []string{"latency_p50_us", "latency_p99_us"}, []string{"median", "p99"}, 1},
		{"Loss", "share of the packets offered (%)", []string{"loss"}, []string{""}, 100},
		{"Bubbles and slow state", "share (%)", []string{"bubble_share", "slow_share"}, []string{"bubbles", "slow state"}, 100},
		{"Utilisation", "share of the time (%)", []string{"cpu", "dma", "bus"}, []string{"processor", "DMA engine", "bus"}, 100},
		{"Packets received in a row", "mean receive run", []string{"receive_run"}, []string{""}, 1},
	}
	most, latency := 0, 0
	var ds []drawing
	for _, s := range all {
		d := plots.Comparison{Title: s.title, XLabel: s.label, Series: s.names, FromZero: true}
		for _, p := range r.Policies {
			g := plots.BarGroup{Name: brief(p.Policy)}
			for _, m := range s.metrics {
				v := plots.PlusMinus(math.NaN(), math.NaN())
				if f, ok := p.Figures[m]; ok {
					v = drawable(f, s.scale)
				}
				g.Values = append(g.Values, v)
			}
			d.Groups = append(d.Groups, g)
		}
		if b := r.Policies[0].Bound; b != nil && s.metrics[0] == "gap_us" {
			d.Title += fmt.Sprintf(" (dotted: lower bound %.2f µs)", float64(b.Gap))
			d.Marks = []plots.Mark{{Value: float64(b.Gap)}}
		}
		most = max(most, len(d.Groups)*len(d.Series))
		ds = append(ds, &d)
		if s.metrics[0] == "latency_p50_us" {
			latency = len(ds)
		}
	}
	ds = slices.Insert(ds, latency, drawing(pooled.plot(r)))
	if r.Policies[0].MaxRate != nil {
		d := plots.Comparison{Title: "Highest rate with " + lossName(float64(r.Policies[0].MaxRate.LossBound)), XLabel: "packets/s into each ingress card", Series: []string{""}, FromZero: true}
		for _, p := range r.Policies {
			v := plots.PlusMinus(math.NaN(), math.NaN())
			if m := p.MaxRate; m != nil && m.Found() {
				v = between(m.Rate, m.Low, m.High)
			}
			d.Groups = append(d.Groups, plots.BarGroup{Name: brief(p.Policy), Values: []plots.Value{v}})
		}
		ds = append(ds, &d)
	}
	return drawAll(2, 8, 1.4+0.16*float64(max(most, 6)), ds...)
}
