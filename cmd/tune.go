package cmd

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"spinesim/sim/study"
)

func newTune() *cobra.Command {
	var f studyFlags
	var pic plotFlag
	var opt study.TuneOptions
	var rate, policies, orders string
	var noRates bool
	var top int
	var ratePackets uint64
	c := &cobra.Command{
		Use:   "tune",
		Short: "Search for the best policy: all 5,040 orders, and the parameters of the others",
		Long: `Rank all 5,040 strict orders of the seven queues by an objective, at saturation
or at one rate, and say which priority matters and by how much. Then search the
parameters of the other policies, step by step from their defaults. The best of
all, and those that no other beats in both gap and latency, are compared again
in longer runs under fresh seeds; the highest rates of the very best are
searched.`,
		Example: `  spinesim tune
  spinesim tune --objective latency_p99_us --rate "15000 packets/s"
  spinesim tune --policies quota,stride --no-maxrate --json
  spinesim tune --no-maxrate --plot orders.svg`,
		Args: wrapArgs(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := pic.check(); err != nil {
				return err
			}
			opt.Saturated = rate == ""
			if rate != "" {
				f.settings = append(f.settings, "traffic.arrivals.rate="+quoted(rate))
			}
			sc, err := f.load()
			if err != nil {
				return err
			}
			opt.Workers = f.workers
			if orders != "" {
				for o := range strings.SplitSeq(orders, ",") {
					opt.Orders = append(opt.Orders, strings.TrimSpace(o))
				}
			}
			if policies != "" {
				opt.Policies = []string{}
				for p := range strings.SplitSeq(policies, ",") {
					if p = strings.TrimSpace(p); p != "none" {
						opt.Policies = append(opt.Policies, p)
					}
				}
			}
			if !noRates {
				m := study.DefaultMaxRate()
				m.Packets = ratePackets
				opt.MaxRate = &m
			}
			b, tell := newBar(c, "tune")
			opt.Progress = tell
			r, err := study.Tune(c.Context(), sc, opt)
			b.end()
			if err != nil && !cut(c.Context(), err) {
				return err
			}
			if werr := pic.show(c, err != nil, f.asJSON, r,
				func(w io.Writer) error { return printTune(w, r, top) },
				func() (*sheet, error) { return drawTune(r) }); werr != nil {
				return werr
			}
			if err != nil {
				return fmt.Errorf("interrupted; kept the %d orders and %d policies that were finished", r.Tried, len(r.Policies))
			}
			return nil
		},
	}
	f.add(c, "fig6.4")
	pic.add(c, "everything tried by gap and latency, and the effect of every priority,")
	var names []string
	for _, m := range study.Metrics() {
		if m.Better != study.Neither {
			names = append(names, m.Name)
		}
	}
	c.Flags().StringVar(&opt.Objective, "objective", "gap_us", "what to rank by: "+strings.Join(names, ", "))
	c.Flags().StringVar(&rate, "rate", "", `rank at this rate instead of at saturation, such as "15000 packets/s"`)
	c.Flags().Uint64Var(&opt.Packets, "packets", 1500, "packets a run, while everything is tried")
	c.Flags().IntVar(&opt.Replications, "replications", 1, "runs of each, while everything is tried")
	c.Flags().StringVar(&orders, "orders", "", "try only these orders, such as 0123456,6345012; all 5,040 unless given")
	c.Flags().StringVar(&policies, "policies", "", "policies whose parameters are searched, separated by commas; none for only the orders, empty for all")
	c.Flags().IntVar(&opt.Evaluations, "evaluations", 120, "settings tried for one policy at most")
	c.Flags().IntVar(&opt.Finalists, "finalists", 6, "best orders that are compared again")
	c.Flags().Uint64Var(&opt.FinalPackets, "final-packets", 8000, "packets a run of a finalist")
	c.Flags().IntVar(&opt.FinalReplications, "final-replications", 8, "runs of each finalist")
	c.Flags().BoolVar(&noRates, "no-maxrate", false, "do not search the finalists' highest rates")
	c.Flags().IntVar(&opt.RateFinalists, "rate-finalists", 2, "finalists whose highest rate is searched, beside the default's")
	c.Flags().Uint64Var(&ratePackets, "rate-packets", 20_000, "packets a run of those searches")
	c.Flags().IntVar(&top, "top", 10, "orders to print; --json has all of them")
	return c
}

func printTune(w io.Writer, r *study.TuneResult, top int) error {
	load := "at the scenario's rate"
	if r.Saturated {
		load = "saturated"
	}
	fmt.Fprintf(w, "scenario %s, %s, objective %s: %s\n", r.Scenario, load, r.Objective.Name, r.Objective.Doc)
	fmt.Fprintf(w, "%d orders tried in %d runs of %d packets; %d of them did something different\n", r.Tried, r.Runs, r.Packets, r.Distinct)
	if len(r.Orders) == 0 {
		return nil
	}
	if len(r.Unused) > 0 {
		fmt.Fprintf(w, "never used: %s; its place only costs a poll\n\n", strings.Join(r.Unused, ", "))
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "rank\torder\t%s\tgap µs\tlatency µs\tp99 µs\tloss %%\tbubbles %%\tslow %%\n", r.Objective.Name)
	row := func(i int) {
		o := &r.Orders[i]
		fmt.Fprintf(t, "%d\t%s\t%v\t%.2f\t%.1f\t%.1f\t%.3f\t%.1f\t%.1f\n", i+1, o.Order, o.Objective, float64(o.Gap), float64(o.Latency),
			float64(o.LatencyP99), 100*float64(o.Loss), 100*float64(o.BubbleShare), 100*float64(o.SlowShare))
	}
	for i := range min(top, len(r.Orders)) {
		row(i)
	}
	if r.DefaultRank > top {
		row(r.DefaultRank - 1)
	}
	if last := len(r.Orders); last > top && last != r.DefaultRank {
		row(last - 1)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if len(r.Effects) > 0 {
		fmt.Fprintf(w, "\nwhat a priority means for %s (%s), over all arrangements of the other queues\n", r.Objective.Name, r.Objective.Unit)
		t = tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		fmt.Fprintln(t, "priority\teffect\tnext to each other\tbetter in\texplains")
		for _, e := range r.Effects {
			fmt.Fprintf(t, "%s above %s\t%v\t%v\t%.0f %%, the same in %.0f %%\t%.1f %%\n", e.First, e.Second, e.Effect, e.Adjacent,
				100*float64(e.Favours), 100*float64(e.Ties), 100*float64(e.Explains))
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	if len(r.Policies) > 0 {
		fmt.Fprintf(w, "\nother policies, their parameters searched from the defaults\n")
		t = tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		fmt.Fprintf(t, "policy\t%s\tbefore\tgap µs\tp99 µs\tsettings\n", r.Objective.Name)
		for _, p := range r.Policies {
			more := ""
			if p.Exhausted {
				more = ", not all of the neighbours"
			}
			fmt.Fprintf(t, "%s\t%v\t%v\t%.2f\t%.1f\t%d%s\n", p.Policy, p.Objective, p.StartValue, float64(p.Gap), float64(p.LatencyP99), p.Evaluations, more)
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	if len(r.Pareto) > 0 {
		fmt.Fprintf(w, "\nno other has both a smaller gap and a smaller latency than\n")
		t = tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		fmt.Fprintln(t, "policy\tgap µs\tp99 latency µs")
		for _, p := range r.Pareto {
			fmt.Fprintf(t, "%s\t%.2f\t%.1f\n", p.Policy, float64(p.Gap), float64(p.LatencyP99))
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	if r.Final != nil {
		fmt.Fprintf(w, "\nfinalists in longer runs\n")
		if err := printCompare(w, r.Final); err != nil {
			return err
		}
		fmt.Fprintf(w, "\nbest: %s\n", r.Best())
	}
	printNotes(w, r.Notes)
	return nil
}
