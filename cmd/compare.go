package cmd

import (
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"spinesim/sim"
	"spinesim/sim/study"
	"spinesim/spine"
	"spinesim/traces"
)

func newCompare() *cobra.Command {
	var f studyFlags
	var pic plotFlag
	var opt study.CompareOptions
	var load loadFlags
	var maxRate bool
	c := &cobra.Command{
		Use:   "compare [POLICY...]",
		Short: "Compare dispatcher policies on the same traffic",
		Long: `Run every policy on the same traffic under the same seeds, several times, and
say of every figure whether it is better or worse than the first policy's, or
whether the runs cannot tell. A policy is a name with parameters, or an order of
the seven queues; without any, all known policies are compared, each with its
default parameters.

At a rate that all policies carry, their gaps are those of the arrivals: use
--saturated or a higher --rate to compare what they can carry.`,
		Example: `  spinesim compare default pci-first round-robin
  spinesim compare --saturated default "Q6 Q3 Q4 Q5 Q0 Q1 Q2"
  spinesim compare --json --maxrate default pci-first
  spinesim compare --saturated --plot policies.svg default pci-first`,
		RunE: func(c *cobra.Command, args []string) error {
			more, err := load.settings(c)
			if err = errors.Join(err, exclusive(c, "maxrate", "saturated")); err != nil {
				return err
			}
			if err := pic.check(); err != nil {
				return err
			}
			if len(args) > 0 {
				opt.Policies = args
			}
			f.settings = append(f.settings, more...)
			sc, err := f.load()
			if err != nil {
				return err
			}
			opt.Workers = f.workers
			if sc.Firmware.Execution == string(spine.ExecuteTable) {
				opt.LowerBound = sim.LowerBound
			}
			if maxRate {
				o := study.DefaultMaxRate()
				opt.MaxRate = &o
			}
			b, tell := newBar(c, "compare")
			opt.Progress = tell
			var pooled pooledLatency
			if len(pic.files) > 0 {
				opt.Observe = pooled.observe
			}
			r, err := study.Compare(c.Context(), sc, opt)
			b.end()
			if err != nil && !cut(c.Context(), err) {
				return err
			}
			if werr := pic.show(c, err != nil, f.asJSON, r,
				func(w io.Writer) error { return printCompare(w, r) },
				func() (*sheet, error) { return drawCompare(r, &pooled) }); werr != nil {
				return werr
			}
			if err != nil {
				return fmt.Errorf("interrupted; kept the %d replications that every policy has", r.Replications)
			}
			return nil
		},
	}
	f.add(c, "fig6.4")
	pic.add(c, "gap, latency and its distribution, loss, bubbles and utilisation of every policy")
	c.Flags().IntVarP(&opt.Replications, "replications", "n", 10, "runs of each policy, under different seeds")
	load.add(c, 20_000, `"15000 packets/s" or "65 µs"`)
	c.Flags().BoolVar(&maxRate, "maxrate", false, "also search each policy's highest rate with at most 0.5 % loss")
	return c
}

// compared are the figures that a comparison's table shows, with the factor
// and the title they are shown with.
var compared = []struct {
	metric string
	scale  float64
	title  string
}{
	{"gap_us", 1, "gap µs"},
	{"latency_p50_us", 1, "latency p50 µs"},
	{"latency_p99_us", 1, "p99 µs"},
	{"loss", 100, "loss %"},
	{"receive_run", 1, "receive run"},
	{"bubble_share", 100, "bubbles %"},
	{"slow_share", 100, "slow %"},
	{"cpu", 100, "processor %"},
	{"dma", 100, "DMA %"},
	{"bus", 100, "bus %"},
}

// printLoad is the first line of a comparison: what was run.
func printLoad(w io.Writer, scenario, process string, rate traces.Real, saturating bool, replications int, packets, seed uint64) {
	load := fmt.Sprintf("%s arrivals, %.6g packets/s", process, float64(rate))
	if saturating {
		load = "saturated"
	}
	fmt.Fprintf(w, "scenario %s, %s, %d replications of %d packets, seeds from %d\n\n", scenario, load, replications, packets, seed)
}

func printCompare(w io.Writer, r *study.CompareResult) error {
	printLoad(w, r.Scenario, r.Process, r.Rate, r.Saturating, r.Replications, r.Packets, r.Seed)
	if len(r.Policies) == 0 || r.Replications == 0 {
		return nil
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprint(t, "policy")
	for _, m := range compared {
		fmt.Fprint(t, "\t", m.title)
	}
	bounded := r.Policies[0].Bound != nil
	if bounded {
		fmt.Fprint(t, "\tabove the lower bound")
	}
	searched := r.Policies[0].MaxRate != nil
	if searched {
		fmt.Fprint(t, "\thighest rate, packets/s\tgap there µs")
	}
	fmt.Fprintln(t)
	for _, p := range r.Policies {
		fmt.Fprint(t, p.Policy)
		for _, m := range compared {
			fmt.Fprintf(t, "\t%v", p.Figures[m.metric].Scale(m.scale))
		}
		if bounded && p.Bound != nil {
			fmt.Fprintf(t, "\t%.1f %% (%.2f µs, %s)", 100*float64(p.Bound.Above), float64(p.Bound.Gap), p.Bound.Resource)
		}
		if searched && p.MaxRate != nil {
			fmt.Fprintf(t, "\t%.0f (%.0f … %.0f)\t%.2f", float64(p.MaxRate.Rate), float64(p.MaxRate.Low), float64(p.MaxRate.High), float64(p.MaxRate.Gap))
		}
		fmt.Fprintln(t)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if len(r.Policies) > 1 {
		fmt.Fprintf(w, "\nagainst %s, paired by seed, 95 %% intervals\n", r.Policies[0].Policy)
		t = tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		fmt.Fprint(t, "policy")
		for _, m := range compared {
			fmt.Fprint(t, "\t", m.title)
		}
		fmt.Fprintln(t)
		for _, p := range r.Policies[1:] {
			fmt.Fprint(t, p.Policy)
			for _, m := range compared {
				d := p.Differences[m.metric]
				if d.Verdict == study.VerdictSame {
					fmt.Fprint(t, "\tsame")
					continue
				}
				fmt.Fprintf(t, "\t%v, %s", d.Scale(m.scale), d.Verdict)
			}
			fmt.Fprintln(t)
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	printNotes(w, r.Notes)
	return nil
}
