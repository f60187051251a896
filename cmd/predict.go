package cmd

import (
	"encoding/json"
	"os"

	"github.com/spf13/cobra"

	"spinesim/sim/study"
	"spinesim/spine"
)

func newPredict() *cobra.Command {
	var f studyFlags
	var opt study.PredictOptions
	var fits string
	c := &cobra.Command{
		Use:   "predict",
		Short: "Predict the published average, as a band over what the sources leave open",
		Long: `Search the highest rate within the loss bound and report its mean gap: for the
scenario's machine (or for every machine that "calibrate --json" found equally
good), and as a band over receive mode, buffers, FIFO and arrival process; the
same with pci-first. Nothing is fitted here.`,
		Example: "  spinesim predict\n  spinesim calibrate --json > fits.json && spinesim predict --fits fits.json",
		Args:    wrapArgs(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			sc, err := f.load()
			if err != nil {
				return err
			}
			if f := sc.Firmware.Factors; fits == "" && f != spine.SameFactors(f.Receive) {
				return usagef("firmware.factors: %+v, and predict knows machines of one factor for receive, dma, flow and send; want the same for these, and 1 for route", f)
			}
			machines := []study.Machine{{Scale: sc.Firmware.Factors.Receive, Poll: int(sc.Firmware.Poll), PeerWait: sc.Bus.PeerWait}}
			if fits != "" {
				if machines, err = readFits(fits); err != nil {
					return err
				}
			}
			opt.Workers = f.workers
			bar, tell := newBar(c, "predict")
			defer bar.end()
			opt.Progress = tell
			r, err := study.Predict(c.Context(), sc, machines, opt)
			bar.end()
			if err != nil {
				return stopped(err)
			}
			if f.asJSON {
				return writeJSON(c.OutOrStdout(), r)
			}
			return r.WriteText(c.OutOrStdout())
		},
	}
	f.add(c, "fig6.4")
	c.Flags().StringVar(&fits, "fits", "", "use the equally good machines of this output of calibrate --json")
	c.Flags().Uint64Var(&opt.Packets, "packets", 20_000, "packets of a run in the last stage of a search")
	c.Flags().IntVar(&opt.Replications, "replications", 4, "runs at each rate")
	return c
}

// readFits reads the machines of "calibrate --json".
func readFits(path string) ([]study.Machine, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, usagef("--fits: %w", err)
	}
	var cal study.Calibration
	if err := json.Unmarshal(b, &cal); err != nil {
		return nil, usagef("--fits %s: %w", path, err)
	}
	var out []study.Machine
	for _, f := range cal.Equal {
		out = append(out, f.Machine)
	}
	if len(out) == 0 {
		return nil, usagef("--fits %s: no machine in it, want the output of calibrate --json", path)
	}
	return out, nil
}
