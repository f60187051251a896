package cmd

import (
	"fmt"
	"io"
	"math"
	"sort"
	"strings"
	"text/tabwriter"

	"spinesim/sim"
	"spinesim/traces"
)

// num prints a figure, or a dash where the run could not give one.
func num(v traces.Real, format string) string {
	if math.IsNaN(float64(v)) {
		return "–"
	}
	return fmt.Sprintf(format, float64(v))
}

func percent(v traces.Real) string {
	if math.IsNaN(float64(v)) {
		return "–"
	}
	return fmt.Sprintf("%.2f %%", 100*float64(v))
}

func counted(m map[string]uint64) string {
	if len(m) == 0 {
		return "none"
	}
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	var out []string
	for _, k := range keys {
		out = append(out, fmt.Sprintf("%s %d", k, m[k]))
	}
	return strings.Join(out, ", ")
}

// summarise prints a run's results for people.
func summarise(w io.Writer, r *sim.Result) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(name, format string, args ...any) {
		fmt.Fprintf(t, "%s\t"+format+"\n", append([]any{name}, args...)...)
	}
	row("scenario", "%s, policy %s, seed %d", r.Scenario, r.Policy, r.Seed)
	why := ""
	if len(r.ToHostBy) > 0 {
		why = " (" + counted(r.ToHostBy) + ")"
	}
	via := ""
	if len(r.ViaHostBy) > 0 {
		via = " (by way of the host: " + counted(r.ViaHostBy) + ")"
	}
	stranded := ""
	if len(r.Stranded) > 0 {
		stranded = ", stranded: " + counted(r.Stranded)
	}
	row("packets", "%d in, %d forwarded%s, %d to host%s, dropped: %s%s", r.Received, r.Forwarded, via, r.ToHost, why, counted(r.Dropped), stranded)
	if len(r.Skipped) > 0 {
		row("skipped", "%s", counted(r.Skipped))
	}
	name := "gap"
	if r.Saturating {
		name = "saturated gap"
	}
	ci := "± " + num(r.Gap.CI95, "%.2f")
	if r.Gap.Short != "" {
		ci = "(no interval: " + r.Gap.Short + ")"
	}
	row(name, "mean %s %s µs, median %s, p99 %s; best case %s (%d packets in fast windows)",
		num(r.Gap.Mean, "%.2f"), ci, num(r.Gap.P50, "%.1f"), num(r.Gap.P99, "%.1f"), num(r.Gap.BestCase, "%.1f"), r.Gap.BestCaseN)
	if f := r.Windows; f != nil {
		row("windows drawn", "best: a packet every %s µs, latency %s µs; slow: %d packets received in a row",
			num(f.BestPeriod, "%.1f"), num(f.BestLatency, "%.1f"), f.LongestRun)
	}
	row("latency", "ingress card mean %s µs, p99 %s, in fast windows %s; total %s; upstream %s",
		num(r.Latency.Ingress.Mean, "%.1f"), num(r.Latency.Ingress.P99, "%.1f"), num(r.Latency.Ingress.Fast, "%.1f"),
		num(r.Latency.Total.Mean, "%.1f"), num(r.Latency.Upstream.Mean, "%.1f"))
	row("receive runs", "mean %s (of those not empty %s), longest %d, %s longer than one",
		num(r.ReceiveRun.Mean, "%.2f"), num(r.ReceiveRun.MeanNonEmpty, "%.2f"), r.ReceiveRun.Max, percent(r.ReceiveRun.ShareOver1))
	row("DMA backlog", "mean %s, most %d; slow state %s of the time", num(r.Backlog.Mean, "%.2f"), r.Backlog.Max, percent(r.SlowShare))
	row("bubbles", "engine idle with a packet waiting %s of the time: receive and route %s, polls %s, chain's handlers %s, flow control %s",
		percent(r.BubbleShare), percent(r.Bubbles.ReceiveRoute), percent(r.Bubbles.Polls), percent(r.Bubbles.Chain), percent(r.Bubbles.FlowControl))
	for _, c := range r.Utilisation.Cards {
		row(fmt.Sprintf("card %d", c.Card), "handlers %s, polls %s, idle %s; DMA %s, receive %s, send %s",
			percent(c.Handlers), percent(c.Polls), percent(c.Idle), percent(c.DMA), percent(c.Receive), percent(c.Send))
	}
	row("bus", "%s busy", percent(r.Utilisation.Bus.Busy))
	row("route table", "%d routes in %d bytes", r.Routes, r.RouteTableBytes)
	row("time", "simulated %.3f s, wall %.2f s", r.SimulatedS, r.WallS)
	row("fingerprint", "%s (scenario %s, %d records)", r.Fingerprint, r.ScenarioHash, r.Records)
	if err := t.Flush(); err != nil {
		return err
	}
	for _, u := range r.Unloaded {
		fmt.Fprintln(w, "unloaded:", u)
	}
	if len(r.Marks) > 0 {
		var out []string
		for i, n := range r.Marks {
			if n > 0 {
				out = append(out, fmt.Sprintf("log_%d %d", i, n))
			}
		}
		fmt.Fprintln(w, "marks:", strings.Join(out, ", "))
	}
	for _, x := range r.Faults {
		fmt.Fprintf(w, "fault: extension on card %d, %d times, first at %v: %s\n", x.Card, x.Count, x.First, x.Text)
	}
	for _, x := range r.Stopped {
		fmt.Fprintf(w, "stopped: card %d at %v%s, %d packets stay on it: %s\n", x.Card, x.At, x.During(), x.Stranded, x.Text)
	}
	for _, n := range r.Notes {
		fmt.Fprintln(w, "note:", n)
	}
	if r.Checked {
		if len(r.Violations) == 0 {
			fmt.Fprintln(w, "check: every invariant held")
		}
		for _, v := range r.Violations {
			fmt.Fprintln(w, "violation:", v)
		}
	}
	return nil
}
