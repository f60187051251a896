package cmd

import (
	"fmt"
	"math"

	"github.com/spf13/cobra"
	"gonum.org/v1/plot"

	"spinesim/plots"
	"spinesim/router/bihash"
	"spinesim/sim/study"
)

// bihashCosts is what `cost bihash` tells.
type bihashCosts struct {
	*bihash.Report
	Simulated *study.BatchResult `json:"simulated,omitempty"`
}

func newCostBihash() *cobra.Command {
	var asJSON, measure bool
	var figures []string
	var s simulateFlags
	c := &cobra.Command{
		Use:   "bihash",
		Short: "Exact match with prefetch: what it saves against flows; measured and simulated",
		Long: `What prefetching saves in VPP's l2_fwd node by a model of caches and of the window
of instructions under way: one of the three published figures calibrates one
parameter, the other two are predicted; how far chosen values move them; the saving
against the number of flows with the crossover; gap and latency against the length
of frames; and the published table of unrolled hashing.

--measure times look-ups on this machine: plain, in stages and software-pipelined.
--simulate runs the bridge with batches of 1 to 256 packets on the cards. --plot
draws the saving against flows, and the frames.`,
		Example: `  spinesim cost bihash
  spinesim cost bihash --plot crossover.svg --json
  spinesim cost bihash --measure --simulate`,
		Args: wrapArgs(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := s.check(c); err != nil {
				return err
			}
			for _, f := range figures {
				if err := plots.CheckPath(f); err != nil {
					return usagef("--plot: %w", err)
				}
			}
			parts := int64(2 + 2*len(bihash.Processors()))
			p := newProgress(c, "model", parts)
			defer func() { p.end() }()
			done := int64(-1)
			r, err := bihash.NewReport(c.Context(), func(string) { done++; p.set(done) })
			if err != nil {
				return err
			}
			p.end()
			costs := bihashCosts{Report: r}
			if measure {
				p = &progress{}
				r.Measured, err = bihash.Measure(c.Context(), bihash.MeasureOptions{Progress: func(i, n int) {
					if p.bar == nil {
						p = newProgress(c, "measuring", int64(n))
					}
					p.set(int64(i))
				}})
				if err != nil {
					return err
				}
				p.end()
			}
			if s.on {
				sc, err := s.load()
				if err != nil {
					return err
				}
				b, tell := newBar(c, "simulating")
				costs.Simulated, err = study.Batches(c.Context(), sc, study.BatchOptions{Workers: s.workers, Progress: tell})
				b.p.end()
				if err != nil {
					return err
				}
			}
			for _, f := range figures {
				if err := saveCrossover(f, r); err != nil {
					return fileError(err)
				}
			}
			if asJSON {
				return writeJSON(c.OutOrStdout(), &costs)
			}
			if err := r.WriteText(c.OutOrStdout()); err != nil {
				return err
			}
			if costs.Simulated != nil {
				return costs.Simulated.WriteText(c.OutOrStdout())
			}
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	c.Flags().BoolVar(&measure, "measure", false, "time look-ups on this machine, which takes some 15 seconds")
	c.Flags().StringArrayVar(&figures, "plot", nil, "draw the saving against flows: .svg, .png or .pdf; may be repeated")
	s.add(c, "l2", "run the scenario with batches of 1 to 256 packets")
	return c
}

// saveCrossover draws the saving against flows, and gap and latency against
// frames, below each other.
func saveCrossover(path string, r *bihash.Report) error {
	saved := plots.Sweep{
		Title: "What prefetching the bucket saves", XLabel: "Flows", YLabel: "Clocks saved (%)", LogX: true,
		Marks: []plots.Mark{{Value: 0}},
	}
	published := map[string]float64{}
	for _, f := range r.Published.Figures {
		published[f.Processor] = 100 * f.Published.Saving
	}
	for _, s := range r.Crossover {
		line := plots.SweepSeries{Name: fmt.Sprintf("%s (published with 10,000: %g %%)", s.Processor, published[s.Processor])}
		for _, p := range s.Points {
			line.X = append(line.X, float64(p.Flows))
			line.Y = append(line.Y, plots.PlusMinus(100*p.Saving, math.NaN()))
		}
		saved.Series = append(saved.Series, line)
	}
	var lengths []float64
	for _, n := range bihash.FrameLengths() {
		lengths = append(lengths, float64(n))
	}
	gap := plots.Sweep{Title: "Gap against the length of a frame", XLabel: "Packets a frame", YLabel: "Gap (ns)", LogX: true, FromZero: true, Ticks: lengths}
	latency := plots.Sweep{Title: "Latency at half the longest frames' rate", XLabel: "Packets a frame", YLabel: "Latency (ns)", LogX: true, FromZero: true, Ticks: lengths}
	for _, f := range r.Frames {
		g, l := plots.SweepSeries{Name: f.Processor}, plots.SweepSeries{Name: f.Processor}
		for _, q := range f.Rows {
			g.X = append(g.X, float64(q.Frame))
			g.Y = append(g.Y, plots.PlusMinus(q.GapNS, math.NaN()))
			if q.LatencyNS > 0 {
				l.X = append(l.X, float64(q.Frame))
				l.Y = append(l.Y, plots.PlusMinus(q.LatencyNS, math.NaN()))
			}
		}
		gap.Series, latency.Series = append(gap.Series, g), append(latency.Series, l)
	}
	var ps []*plot.Plot
	for _, s := range []*plots.Sweep{&saved, &gap, &latency} {
		p, err := s.Plot()
		if err != nil {
			return err
		}
		ps = append(ps, p)
	}
	size := plots.Tall
	size.Height *= 1.5
	return plots.Save(path, size, ps...)
}
