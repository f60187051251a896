package traces

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
)

// percent prints a share.
func percent(r Real) string {
	if !r.OK() {
		return "–"
	}
	return fmt.Sprintf("%.1f %%", 100*float64(r))
}

// withCI prints a mean with its interval, or says that there is none.
func withCI(mean, ci Real, short string) string {
	switch {
	case !mean.OK():
		return "–"
	case ci.OK():
		return fmt.Sprintf("%v ± %v", mean, ci)
	case short != "":
		return fmt.Sprintf("%v (no interval: %s)", mean, short)
	}
	return mean.String()
}

func (d *Distribution) text() string {
	if d.N == 0 {
		return "–"
	}
	return fmt.Sprintf("mean %s, p50 %v, p99 %v, max %v µs", withCI(d.Mean, d.CI95, d.Short), d.P50, d.P99, d.Max)
}

// WriteText prints the result for people.
func (r *Result) WriteText(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	row := func(name, format string, args ...any) { fmt.Fprintf(t, "%s\t%s\n", name, fmt.Sprintf(format, args...)) }
	row("packets", "%d received, %d forwarded, %d to the host, %s dropped in %v s",
		r.Received, r.Forwarded, r.ToHost, percent(r.Loss), r.Observed)
	for _, reason := range sortedKeys(r.ToHostBy) {
		row("  to the host", "%d: %s", r.ToHostBy[reason], reason)
	}
	for _, reason := range sortedKeys(r.ViaHostBy) {
		row("  by way of the host", "%d: %s", r.ViaHostBy[reason], reason)
	}
	for _, reason := range sortedKeys(r.Dropped) {
		row("  dropped", "%d: %s", r.Dropped[reason], reason)
	}
	for _, reason := range sortedKeys(r.Stranded) {
		row("  stranded", "%d: %s", r.Stranded[reason], reason)
	}
	r.Figures.text(row)
	row("polls", "%d, %s found a message", r.Polls.N, percent(r.Polls.HitRate))
	row("bus", "busy %s", percent(r.Utilisation.Bus.Busy))
	for _, h := range r.Utilisation.Bus.By {
		name := fmt.Sprintf("card %d", h.Card)
		if h.Card == HostCard {
			name = "host bridge"
		}
		row("  held by "+name, "%s", percent(h.Busy))
	}
	for _, c := range r.Utilisation.Cards {
		row(fmt.Sprintf("card %d", c.Card), "processor: handlers %s, polls %s, idle %s; DMA %s, waiting for the bus %s; receive %s; send %s",
			percent(c.Handlers), percent(c.Polls), percent(c.Idle), percent(c.DMA), percent(c.DMAWait), percent(c.Receive), percent(c.Send))
		for _, x := range c.Waits {
			row("  waits", "%s: %d packets, %v µs each", x.Reason, x.N, x.Mean)
		}
	}
	if len(r.Cards) > 1 {
		for i := range r.Cards {
			c := &r.Cards[i]
			row("", "")
			row(fmt.Sprintf("through card %d", c.Card), "%d received, %d departed", c.Received, c.Departed)
			c.Figures.text(row)
		}
	}
	return t.Flush()
}

func (f *Figures) text(row func(name, format string, args ...any)) {
	row("departure gap", "%s", f.Gap.text())
	if f.Gap.BestCaseN > 0 {
		row("  best case", "%v µs (median of %d periods in fast windows)", f.Gap.BestCase, f.Gap.BestCaseN)
		row("    packet waiting", "%v µs (median of %d of them)", f.Gap.Waiting, f.Gap.WaitingN)
	}
	row("latency, ingress card", "%s", f.Latency.Ingress.text())
	if f.Latency.Ingress.FastN > 0 {
		row("  in fast windows", "mean %v, p50 %v µs of %d packets", f.Latency.Ingress.Fast, f.Latency.Ingress.FastP50, f.Latency.Ingress.FastN)
	}
	row("latency, total", "%s", f.Latency.Total.text())
	row("wait upstream", "%s", f.Latency.Upstream.text())
	row("receive run", "mean %v, of those not empty %v, max %d, %s above 1",
		f.ReceiveRun.Mean, f.ReceiveRun.MeanNonEmpty, f.ReceiveRun.Max, percent(f.ReceiveRun.ShareOver1))
	row("backlog for the DMA", "mean %s, max %d", withCI(f.Backlog.Mean, f.Backlog.CI95, f.Backlog.Short), f.Backlog.Max)
	if f.Backlog.Period.OK() {
		row("  dominant period", "%v µs, with %s of the variance", f.Backlog.Period, percent(f.Backlog.PeriodShare))
	}
	row("slow state", "%s of the time in %d spells, mean %v, p99 %v µs", percent(f.SlowShare), f.Slow.N, f.Slow.Mean, f.Slow.P99)
	row("fast windows", "%s of the time, %s of the packets", percent(f.FastShare), percent(f.FastPackets))
	b := &f.Bubbles
	row("bubbles", "%s of the time: receive and route %s, polls %s, flow control %s, the chain %s, output %s, host %s",
		percent(f.BubbleShare), percent(b.ReceiveRoute), percent(b.Polls), percent(b.FlowControl), percent(b.Chain), percent(b.Output), percent(b.Host))
	d := &f.DMAStep
	row("DMA step", "%s", d.Distribution.text())
	if d.N > 0 {
		row("  made of", "handlers %v, polls %v, interruptions %v, transfer %v, bus wait %v µs", d.Handlers, d.Polls, d.Interruptions, d.Transfer, d.BusWait)
	}
	o := &f.Occupancy
	row("occupancy of a packet", "%s", o.Distribution.text())
	if o.N > 0 {
		row("  made of", "receive %v, route %v, DMA %v, flow control %v, output %v, host %v µs", o.Receive, o.Route, o.DMA, o.FlowControl, o.Output, o.Host)
	}
	x := &f.Transfer
	row("transfer of a packet", "%s", x.Distribution.text())
	if x.N > 0 {
		row("  made of", "receive %v, body %v, header %v, ACK %v, host %v, send %v µs; waiting for the bus %v", x.Receive, x.Body, x.Header, x.Ack, x.Host, x.Send, x.BusWait)
	}
}

func sortedKeys(m map[string]uint64) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
