package study

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"spinesim/sim"
	"spinesim/sim/stats"
	"spinesim/sim/study/internal/runs"
	"spinesim/traces"
)

// Better says in which direction a metric is better.
type Better string

// The directions.
const (
	Less    Better = "less"
	More    Better = "more"
	Neither Better = "" // it describes, and is neither good nor bad
)

// Metric is a figure of a run that studies compare, rank by and store.
type Metric struct {
	Name   string `json:"name"`
	Unit   string `json:"unit,omitempty"`
	Better Better `json:"better,omitempty"`
	Doc    string `json:"doc"`
	of     func(*sim.Result) float64
}

// Of is the metric of a run; NaN where the run does not have it.
func (m *Metric) Of(r *sim.Result) float64 { return m.of(r) }

// compare orders two values of the metric: below 0 when a is the better, a value
// that is no figure being worse than any.
func (m *Metric) compare(a, b float64) int {
	switch na, nb := math.IsNaN(a), math.IsNaN(b); {
	case na && nb:
		return 0
	case na:
		return 1
	case nb:
		return -1
	case a == b:
		return 0
	case (a < b) == (m.Better != More):
		return -1
	}
	return 1
}

func (m *Metric) direction() stats.Direction {
	if m.Better == More {
		return stats.MoreIsBetter
	}
	return stats.LessIsBetter
}

func real(v traces.Real) float64 { return float64(v) }

// ingressMean averages a figure of the cards that packets come in at.
func ingressMean(r *sim.Result, of func(*traces.CardUse) traces.Real) float64 {
	sum, n := 0.0, 0
	for i := range r.Cards {
		for j := range r.Utilisation.Cards {
			if u := &r.Utilisation.Cards[j]; u.Card == r.Cards[i].Card {
				sum += real(of(u))
				n++
			}
		}
	}
	if n == 0 {
		return math.NaN()
	}
	return sum / float64(n)
}

// metrics in the order in which tables have them.
var metrics = [...]Metric{
	{"gap_us", "µs", Less, "mean gap between departures", func(r *sim.Result) float64 { return real(r.Gap.Mean) }},
	{"gap_p50_us", "µs", Less, "median gap", func(r *sim.Result) float64 { return real(r.Gap.P50) }},
	{"gap_p99_us", "µs", Less, "99th percentile of the gap", func(r *sim.Result) float64 { return real(r.Gap.P99) }},
	{"best_case_us", "µs", Less, "median period in fast windows", func(r *sim.Result) float64 { return real(r.Gap.BestCase) }},
	{"rate_out", "packets/s", More, "packets forwarded in the observed time", func(r *sim.Result) float64 { return float64(r.Forwarded) / real(r.Observed) }},
	{"latency_us", "µs", Less, "mean latency through the ingress card", func(r *sim.Result) float64 { return real(r.Latency.Ingress.Mean) }},
	{"latency_p50_us", "µs", Less, "median latency through the ingress card", func(r *sim.Result) float64 { return real(r.Latency.Ingress.P50) }},
	{"latency_p99_us", "µs", Less, "99th percentile of the latency through the ingress card", func(r *sim.Result) float64 { return real(r.Latency.Ingress.P99) }},
	{"total_us", "µs", Less, "mean latency from arrival upstream to the end of the send", func(r *sim.Result) float64 { return real(r.Latency.Total.Mean) }},
	{"total_p99_us", "µs", Less, "99th percentile of that latency", func(r *sim.Result) float64 { return real(r.Latency.Total.P99) }},
	{"upstream_us", "µs", Less, "mean wait upstream of the card", func(r *sim.Result) float64 { return real(r.Latency.Upstream.Mean) }},
	{"loss", "", Less, "share of packets that the router had no room for", func(r *sim.Result) float64 { return float64(lostPackets(r)) / float64(r.Received) }},
	{"receive_run", "packets", Less, "mean length of receive runs that are not empty", func(r *sim.Result) float64 { return real(r.ReceiveRun.MeanNonEmpty) }},
	{"receive_run_over_1", "", Less, "share of receive runs longer than one packet", func(r *sim.Result) float64 { return real(r.ReceiveRun.ShareOver1) }},
	{"backlog", "packets", Less, "mean number of packets routed and waiting for their DMA", func(r *sim.Result) float64 { return real(r.Backlog.Mean) }},
	{"slow_share", "", Less, "share of time in the slow state", func(r *sim.Result) float64 { return real(r.SlowShare) }},
	{"fast_share", "", More, "share of time in fast windows", func(r *sim.Result) float64 { return real(r.FastShare) }},
	{"bubble_share", "", Less, "share of time with the DMA engine idle and a packet waiting for it", func(r *sim.Result) float64 { return real(r.BubbleShare) }},
	{"dma_step_us", "µs", Less, "mean time from Peer to peer start to departure", func(r *sim.Result) float64 { return real(r.DMAStep.Mean) }},
	{"cpu", "", Neither, "share of the ingress cards' processor time in handlers", func(r *sim.Result) float64 {
		return ingressMean(r, func(u *traces.CardUse) traces.Real { return u.Handlers })
	}},
	{"polls", "", Neither, "share of the ingress cards' processor time in polls for messages that were there", func(r *sim.Result) float64 {
		return ingressMean(r, func(u *traces.CardUse) traces.Real { return u.Polls })
	}},
	{"dma", "", Neither, "share of time in which the ingress cards' DMA engines have the bus", func(r *sim.Result) float64 {
		return ingressMean(r, func(u *traces.CardUse) traces.Real { return u.DMA })
	}},
	{"bus", "", Neither, "share of time in which the bus is held", func(r *sim.Result) float64 { return real(r.Utilisation.Bus.Busy) }},
	{"hit_rate", "", Neither, "share of polls that find a message", func(r *sim.Result) float64 { return real(r.Polls.HitRate) }},
}

// Metrics lists the metrics in the order in which tables have them.
func Metrics() []Metric { return slices.Clone(metrics[:]) }

// MetricByName finds a metric; a wrong name is an *sim.InputError.
func MetricByName(name string) (*Metric, error) {
	var names []string
	for i := range metrics {
		if metrics[i].Name == name {
			m := metrics[i]
			return &m, nil
		}
		names = append(names, metrics[i].Name)
	}
	return nil, runs.InputErrorf("metric %q, want one of %s", name, strings.Join(names, ", "))
}

// values are all metrics of a run, in the table's order.
func values(r *sim.Result) []float64 {
	out := make([]float64, len(metrics))
	for i := range metrics {
		out[i] = metrics[i].of(r)
	}
	return out
}

// metricIndex is a metric's place in the table.
func metricIndex(name string) int {
	i := slices.IndexFunc(metrics[:], func(m Metric) bool { return m.Name == name })
	if i < 0 {
		panic(fmt.Sprintf("metric %q is not in the table", name)) // a name in this package's own code
	}
	return i
}
