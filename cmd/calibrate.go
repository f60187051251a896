package cmd

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"spinesim/sim/study"
	"spinesim/spine"
	"spinesim/traces"
)

func newCalibrate() *cobra.Command {
	var f studyFlags
	var opt study.CalibrateOptions
	var out, reading, from string
	c := &cobra.Command{
		Use:   "calibrate",
		Short: "Fit the free parameters to the published figures",
		Long: `Fit the three free parameters (one scale on the handlers' costs, the cost of a
poll, the wait states of a card as target) to the three published figures that
may be used: the router handler's run, the best-case gap and the best-case
latency. Prints the residuals and every other machine that fits as well. The
published average is not used.

With --from firmware nothing is fitted: the SPINE handlers in C are executed on
the simulated processor, and their cycles become the cost table.`,
		Example: "  spinesim calibrate --out fitted.yaml\n  spinesim calibrate --from firmware --out executed.yaml\n  spinesim calibrate --polls 8,12,16 --waits 1,2 --json",
		Args:    wrapArgs(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			sc, err := f.load()
			if err != nil {
				return err
			}
			if err := checkOutput("--out", out); err != nil {
				return err
			}
			switch from {
			case "figures":
			case "firmware":
				return costsFromFirmware(c, f.name, out, f.asJSON)
			default:
				return usagef("--from %q, want figures or firmware", from)
			}
			switch opt.Reading = study.Reading(reading); opt.Reading {
			case study.FastWindows, study.BestWindow:
			default:
				return usagef("--reading %q, want %s or %s", reading, study.FastWindows, study.BestWindow)
			}
			opt.Workers = f.workers
			bar, tell := newBar(c, "calibrate")
			defer bar.end()
			opt.Progress = tell
			r, err := study.Calibrate(c.Context(), sc, opt)
			bar.end()
			if err != nil {
				return stopped(err)
			}
			if out != "" {
				if err := writeFile(out, func(w io.Writer) error { return r.WriteScenario(w, f.name) }); err != nil {
					return err
				}
			}
			if f.asJSON {
				return writeJSON(c.OutOrStdout(), r)
			}
			if err := r.WriteText(c.OutOrStdout()); err != nil {
				return err
			}
			if out != "" {
				fmt.Fprintln(c.OutOrStdout(), "wrote", out)
			}
			return nil
		},
	}
	f.add(c, "fig6.4")
	c.Flags().StringVar(&from, "from", "figures", "what to take costs from: figures (the published ones) or firmware (the SPINE handlers in C, executed)")
	c.Flags().StringVar(&reading, "reading", string(study.FastWindows), "how the best case is measured: fast-windows (median over the run) or best-window (read off the fastest stretch, as the thesis does)")
	c.Flags().IntSliceVar(&opt.Polls, "polls", nil, "costs of a poll to try, in cycles")
	c.Flags().IntSliceVar(&opt.Waits, "waits", nil, "wait states to try")
	c.Flags().Uint64Var(&opt.Packets, "packets", 60_000, "packets of the run that measures a machine")
	c.Flags().StringVarP(&out, "out", "o", "", "write the fitted scenario with its cost table to this file")
	return c
}

// costsFromFirmware writes the cost table that executed firmware gives.
func costsFromFirmware(c *cobra.Command, extends, out string, asJSON bool) error {
	f := firmwareFlags{packets: 1000, bytes: 1500, seed: 1}
	_, costs, _, _, err := f.run(false)
	if err != nil {
		return err
	}
	table, err := spine.ExecutedCosts(costs)
	if err != nil {
		return err
	}
	if out != "" {
		if err := writeFile(out, func(w io.Writer) error { return study.WriteExecuted(w, extends, &table) }); err != nil {
			return err
		}
	}
	if asJSON {
		return writeJSON(c.OutOrStdout(), study.CostRows(&table))
	}
	t := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "handler\tcycles\tloads and stores\tstart table\tsource")
	start := spine.StartCosts()
	for _, r := range study.CostRows(&table) {
		before := start.Poll.Cycles
		if e, ok := traces.EventByName(r.Handler); ok {
			before = start.Handler[e].Cycles
		}
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%s\n", r.Handler, r.Cycles, r.Accesses, before, r.Source)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if out != "" {
		fmt.Fprintln(c.OutOrStdout(), "wrote", out)
	}
	return nil
}
