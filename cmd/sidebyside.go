package cmd

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"spinesim/sim"
	"spinesim/traces"
)

// sideBySide prints a recorded run beside the same arrivals on a changed
// machine.
func sideBySide(w io.Writer, a *sim.Again) error {
	x, y := a.Recorded, a.Changed
	changes := strings.Join(a.Settings, ", ")
	if a.Machine == "" {
		fmt.Fprintf(w, "recorded scenario %s, seed %d; changed: %s\n", x.Scenario, x.Seed, changes)
	} else {
		fmt.Fprintf(w, "the record does not hold its scenario; its arrivals on %s, changed: %s\n", a.Machine, changes)
	}
	if !a.Generated && a.Machine == "" {
		fmt.Fprintln(w, "the recorded scenario does not make the traffic of the record: what arrives is taken from the record")
	}
	switch {
	case a.Machine != "":
	case a.Reproduced:
		fmt.Fprintln(w, "run again, the recorded scenario gave the very records of the file")
	default:
		fmt.Fprintf(w, "run again, the recorded scenario did not give the records of the file (written by %s, this is spinesim %s)\n", a.Meta.Program, sim.Version)
	}
	if a.SameArrivals {
		fmt.Fprintln(w, "every packet arrived at the same time in both runs")
	} else {
		fmt.Fprintln(w, "packets did not arrive at the same times in both runs")
	}
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "\t%s\t%s\t\n", "recorded", "changed")
	row := func(name, xs, ys string) { fmt.Fprintf(t, "%s\t%s\t%s\t\n", name, xs, ys) }
	real := func(name, format string, f func(*sim.Result) traces.Real) {
		row(name, num(f(x), format), num(f(y), format))
	}
	share := func(name string, f func(*sim.Result) traces.Real) { row(name, percent(f(x)), percent(f(y))) }
	row("policy", x.Policy, y.Policy)
	row("forwarded", fmt.Sprint(x.Forwarded), fmt.Sprint(y.Forwarded))
	row("to host", fmt.Sprint(x.ToHost), fmt.Sprint(y.ToHost))
	row("dropped", counted(x.Dropped), counted(y.Dropped))
	real("gap mean (µs)", "%.2f", func(r *sim.Result) traces.Real { return r.Gap.Mean })
	real("gap median (µs)", "%.2f", func(r *sim.Result) traces.Real { return r.Gap.P50 })
	real("gap p99 (µs)", "%.2f", func(r *sim.Result) traces.Real { return r.Gap.P99 })
	real("gap best case (µs)", "%.2f", func(r *sim.Result) traces.Real { return r.Gap.BestCase })
	real("ingress latency mean (µs)", "%.2f", func(r *sim.Result) traces.Real { return r.Latency.Ingress.Mean })
	real("ingress latency p99 (µs)", "%.2f", func(r *sim.Result) traces.Real { return r.Latency.Ingress.P99 })
	real("receive run mean", "%.3f", func(r *sim.Result) traces.Real { return r.ReceiveRun.MeanNonEmpty })
	share("receive runs over one", func(r *sim.Result) traces.Real { return r.ReceiveRun.ShareOver1 })
	real("DMA backlog mean", "%.3f", func(r *sim.Result) traces.Real { return r.Backlog.Mean })
	share("slow state", func(r *sim.Result) traces.Real { return r.SlowShare })
	share("bubbles", func(r *sim.Result) traces.Real { return r.BubbleShare })
	row("fingerprint", x.Fingerprint, y.Fingerprint)
	if err := t.Flush(); err != nil {
		return err
	}
	if a.Parted == nil {
		fmt.Fprintln(w, "the runs do the same from beginning to end")
		return nil
	}
	p := a.Parted
	fmt.Fprintf(w, "the runs part at record %d, at %v:\n", p.Number, p.At)
	list := func(mark string, rs []traces.Record) {
		for i := range rs {
			fmt.Fprintln(w, mark, describe(a.Meta, &rs[i]))
		}
	}
	list("   both    ", p.Common)
	list(" - recorded", p.Recorded)
	list(" + changed ", p.Changed)
	return nil
}

// describe is one record in a line.
func describe(m *traces.Meta, r *traces.Record) string {
	s := fmt.Sprintf("%v … %v  %s  %v", r.Start, r.End, m.CardName(r.Card), r.Kind)
	if r.Event != traces.NoEvent {
		s += fmt.Sprintf("  %v", r.Event)
	}
	if r.Packet != 0 {
		s += fmt.Sprintf("  packet %d", r.Packet)
	}
	if r.Queue != traces.NoQueue {
		s += fmt.Sprintf("  Q%d", r.Queue)
	}
	if r.Kind == traces.KindPolls || r.Kind == traces.KindLevel {
		s += fmt.Sprintf("  %d", r.Count)
	}
	if r.Reason != traces.ReasonNone {
		s += fmt.Sprintf("  (%v)", r.Reason)
	}
	return s
}
