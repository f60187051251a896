package cmd

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"spinesim/lanai/ilp"
	"spinesim/sim/study"
)

// ilpCosts is what `cost ilp` tells.
type ilpCosts struct {
	Table2    ilp.Table2Report          `json:"table2"`
	BlockSize ilp.BlockSizeReport       `json:"block_size"`
	Region    ilp.RegionReport          `json:"region"`
	Figures   *ilp.FiguresReport        `json:"figures,omitempty"`
	Chain     *ilp.Comparison           `json:"chain,omitempty"`
	Measured  *ilp.MeasureReport        `json:"measured,omitempty"`
	Simulated *study.ManipulationResult `json:"simulated,omitempty"`
}

func newCostILP() *cobra.Command {
	var asJSON, measure, figures bool
	var files, functions []string
	var machine string
	var hit float64
	var s simulateFlags
	c := &cobra.Command{
		Use:   "ilp",
		Short: "Integrated layer processing: Table 2, block sizes, where it loses; measured and simulated",
		Long: `The model of integrated layer processing (Ahlgren) with the published machines and
functions: its Table 2 with the deviations from what was measured, the effect of
the block size, and the region where integration loses.

--machine and --function put a chain of your own together, of presets and of what
--file adds (YAML). --measure times loops of both kinds on this machine, fits the
model to one part of them and predicts the other. --simulate puts the functions
into the cards' path, layer by layer, integrated, and with the checksum left to the
DMA engine, and measures the gap. Figures as pictures: spinesim plot ilp.`,
		Example: `  spinesim cost ilp --json
  spinesim cost ilp --machine lanai4 --function bswap --function cksum
  spinesim cost ilp --measure
  spinesim cost ilp --simulate`,
		Args: wrapArgs(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := s.check(c); err != nil {
				return err
			}
			r := ilpCosts{Table2: ilp.Table2(), BlockSize: ilp.BlockSize(), Region: ilp.Region()}
			if figures || asJSON {
				f := ilp.Figures()
				r.Figures = &f
			}
			var err error
			if r.Chain, err = chain(files, machine, functions, hit, c.Flags().Changed("hit-rate")); err != nil {
				return err
			}
			if measure {
				bar := &bar{p: &progress{}}
				defer bar.p.end()
				r.Measured, err = ilp.Measure(c.Context(), ilp.MeasureOptions{Progress: func(round, rounds int) {
					if bar.p.bar == nil {
						bar.p = newProgress(c, "measuring", int64(rounds))
					}
					bar.p.set(int64(round))
				}})
				if err != nil {
					return err
				}
				bar.p.end()
			}
			if s.on {
				sc, err := s.load()
				if err != nil {
					return err
				}
				opt := study.ManipulationOptions{Workers: s.workers, Functions: functions}
				b, tell := newBar(c, "simulating")
				opt.Progress = tell
				r.Simulated, err = study.Manipulation(c.Context(), sc, opt)
				b.p.end()
				if err != nil {
					return err
				}
			}
			if asJSON {
				return writeJSON(c.OutOrStdout(), &r)
			}
			return r.write(c.OutOrStdout())
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	c.Flags().BoolVar(&figures, "figures", false, "print the values of figures 3, 5, 6 and 7 too")
	c.Flags().BoolVar(&measure, "measure", false, "time loops on this machine, which takes half a minute")
	c.Flags().StringArrayVar(&files, "file", nil, "machines and functions of your own, YAML; may be repeated")
	c.Flags().StringVar(&machine, "machine", "", "machine of a chain of your own")
	c.Flags().StringArrayVar(&functions, "function", nil, "function of the chain, in order; may be repeated")
	c.Flags().Float64Var(&hit, "hit-rate", 0, "share of accesses to the chain's data that hit the cache, 0 to 1")
	s.add(c, "ilp", "run the scenario with the functions in the cards' path")
	return c
}

// chain compares both modes of a chain of the user's, if there is one.
func chain(files []string, machine string, functions []string, hit float64, hitGiven bool) (*ilp.Comparison, error) {
	cat := ilp.DefaultCatalogue()
	for _, f := range files {
		if err := cat.ReadFile(f); err != nil {
			return nil, usagef("--file: %w", err)
		}
	}
	if machine == "" {
		if len(files) > 0 || hitGiven {
			return nil, usagef("--file and --hit-rate belong to a chain: want --machine and --function")
		}
		return nil, nil
	}
	if len(functions) == 0 {
		return nil, usagef("--machine %s: want at least one --function", machine)
	}
	m, err := cat.Model(machine, functions...)
	if err != nil {
		return nil, usagef("%w", err)
	}
	at := ilp.Placement{HitRate: hit}
	cmp, err := ilp.Compare(m, at, at)
	if err != nil {
		return nil, usagef("%w", err)
	}
	return &cmp, nil
}

func (r *ilpCosts) write(w io.Writer) error {
	for i, p := range []interface{ WriteText(io.Writer) error }{r.Table2, r.BlockSize, r.Region} {
		if i > 0 {
			fmt.Fprintln(w)
		}
		if err := p.WriteText(w); err != nil {
			return err
		}
	}
	if r.Figures != nil {
		fmt.Fprintln(w)
		if err := r.Figures.WriteText(w); err != nil {
			return err
		}
	}
	if r.Chain != nil {
		fmt.Fprintln(w)
		if err := r.Chain.WriteText(w); err != nil {
			return err
		}
	}
	if r.Measured != nil {
		fmt.Fprintln(w)
		if err := r.Measured.WriteText(w); err != nil {
			return err
		}
	}
	if r.Simulated != nil {
		fmt.Fprintln(w)
		return r.Simulated.WriteText(w)
	}
	return nil
}
