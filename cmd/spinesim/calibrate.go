package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"spinesim/sim/study"
)

func newCalibrate() *cobra.Command {
	var f studyFlags
	var opt study.CalibrateOptions
	var out, reading string
	c := &cobra.Command{
		Use:   "calibrate",
		Short: "Fit the free parameters to the published figures",
		Long: `Fit the three free parameters (one scale on the handlers' costs, the cost of a
poll, the wait states of a card as target) to the three published figures that
may be used: the router handler's run, the best-case gap and the best-case
latency. Prints the residuals and every other machine that fits as well. The
published average is not used.`,
		Example: "  spinesim calibrate --out fitted.yaml\n  spinesim calibrate --polls 8,12,16 --waits 1,2 --json",
		Args:    wrapArgs(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			sc, err := f.load()
			if err != nil {
				return err
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
				return err
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
	c.Flags().StringVar(&reading, "reading", string(study.FastWindows), "how the best case is measured: fast-windows (median over the run) or best-window (read off the fastest stretch, as the thesis does)")
	c.Flags().IntSliceVar(&opt.Polls, "polls", nil, "costs of a poll to try, in cycles")
	c.Flags().IntSliceVar(&opt.Waits, "waits", nil, "wait states to try")
	c.Flags().Uint64Var(&opt.Packets, "packets", 60_000, "packets of the run that measures a machine")
	c.Flags().StringVarP(&out, "out", "o", "", "write the fitted scenario with its cost table to this file")
	return c
}
