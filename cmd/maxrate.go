package cmd

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"spinesim/sim"
	"spinesim/sim/study"
)

func newMaxRate() *cobra.Command {
	var f studyFlags
	var pic plotFlag
	opt := study.DefaultMaxRate()
	var loss, frames, procs, policy string
	var rfc2544, ndr bool
	c := &cobra.Command{
		Use:   "maxrate",
		Short: "Search the highest rate with a bounded loss (PDR, NDR)",
		Long: `Search the highest rate that the scenario carries with at most the given loss:
0.5 % unless told otherwise (PDR), or none (--ndr). The rates tried meet the same
random numbers; each is run several times under different seeds; the runs grow
while the bracket narrows. The result states its resolution and its uncertainty
and lists every rate tried.

With --rfc2544, --frames or --processes it prints a table over frame sizes and
arrival processes. A saturating source loses nothing: its saturated gap is
reported instead.`,
		Example: `  spinesim maxrate
  spinesim maxrate --policy pci-first --loss 0.1%
  spinesim maxrate --rfc2544 --processes constant,poisson,saturating
  spinesim maxrate --policy pci-first --plot loss.svg`,
		Args: wrapArgs(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := errors.Join(exclusive(c, "loss", "ndr"), exclusive(c, "rfc2544", "frames")); err != nil {
				return err
			}
			if err := pic.check(); err != nil {
				return err
			}
			var err error
			if opt.Loss, err = share("--loss", loss); err != nil {
				return err
			}
			if ndr {
				opt.Loss = 0
			}
			if policy != "" {
				f.settings = append(f.settings, "policy="+quoted(policy))
			}
			sc, err := f.load()
			if err != nil {
				return err
			}
			opt.Workers = f.workers
			if !rfc2544 && frames == "" && procs == "" {
				return maxRate(c, sc, &opt, &pic, f.asJSON)
			}
			t := study.TableOptions{MaxRateOptions: opt, Bytes: []int{}}
			if rfc2544 {
				t.Bytes = nil
			}
			if frames != "" {
				if t.Bytes, err = packetLengths(frames); err != nil {
					return err
				}
			}
			if procs != "" {
				for p := range strings.SplitSeq(procs, ",") {
					t.Processes = append(t.Processes, strings.TrimSpace(p))
				}
			}
			if procs == "all" {
				t.Processes = study.Processes()
			}
			return maxRateTable(c, sc, &t, &pic, f.asJSON)
		},
	}
	f.add(c, "fig6.4")
	pic.add(c, "the loss over the rate, or the table over the frame size,")
	c.Flags().StringVar(&loss, "loss", "0.5%", "share of packets that may be lost")
	c.Flags().BoolVar(&ndr, "ndr", false, "no loss at all; the same as --loss 0")
	c.Flags().StringVar(&policy, "policy", "", "dispatcher policy or order of the queues")
	c.Flags().Uint64Var(&opt.Packets, "packets", 50_000, "packets a run in the last stage")
	c.Flags().Uint64Var(&opt.FirstPackets, "first-packets", 4_000, "packets a run in the first stage; each further one has four times as many")
	c.Flags().IntVar(&opt.Replications, "replications", 8, "runs at each rate, under different seeds")
	c.Flags().Float64Var(&opt.Resolution, "resolution", 0.0025, "width of the last bracket, as a share of the rate")
	c.Flags().Float64Var(&opt.Start, "start", 0, "first rate tried, in packets/s; 0 for the scenario's")
	c.Flags().BoolVar(&rfc2544, "rfc2544", false, "a table over RFC 2544's frame sizes")
	c.Flags().StringVar(&frames, "frames", "", "a table over these frame sizes, such as 64,512,1518; packets are 18 bytes shorter")
	c.Flags().StringVar(&procs, "processes", "", "a table over these arrival processes, or all: "+strings.Join(study.Processes(), ","))
	return c
}

// packetLengths turns frame sizes into lengths of packets.
func packetLengths(frames string) ([]int, error) {
	var out []int
	for t := range strings.SplitSeq(frames, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(t))
		if err != nil || n < 46 || n > 65535 {
			return nil, usagef("--frames: %q, want frame sizes of 46 to 65535 bytes", t)
		}
		out = append(out, n-18)
	}
	return out, nil
}

func maxRate(c *cobra.Command, sc *sim.Scenario, opt *study.MaxRateOptions, pic *plotFlag, asJSON bool) error {
	b, tell := newBar(c, "highest rate")
	opt.Progress = tell
	r, err := study.MaxRate(c.Context(), sc, *opt)
	b.end()
	if err != nil && !cut(c.Context(), err) {
		return err
	}
	if werr := pic.show(c, err != nil, asJSON, r,
		func(w io.Writer) error { return printMaxRate(w, r) },
		func() (*sheet, error) { return drawMaxRate(r) }); werr != nil {
		return werr
	}
	if err != nil {
		return fmt.Errorf("interrupted; the %d rates tried until then are printed above", len(r.Probes))
	}
	return nil
}

// lossName is the criterion's name in the field.
func lossName(bound float64) string {
	switch bound {
	case 0:
		return "no loss (NDR)"
	case 0.005:
		return "at most 0.5 % loss (PDR)"
	}
	return fmt.Sprintf("at most %.4g %% loss", 100*bound)
}

func printMaxRate(w io.Writer, r *study.MaxRateResult) error {
	fmt.Fprintf(w, "scenario %s, policy %s, %s arrivals, seeds from %d\n", r.Scenario, r.Policy, r.Process, r.Seed)
	if len(r.Probes) > 0 {
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
		fmt.Fprintln(t, "packets/s\tpackets\tlost\tloss %\t\tgap µs\t")
		for _, p := range r.Probes {
			verdict := "fails"
			if p.Pass {
				verdict = "passes"
			}
			if !p.Decided {
				verdict += ", within the noise"
			}
			fmt.Fprintf(t, "%g\t%d × %d\t%d\t%v\t%s\t%v\t\n", float64(p.Rate), p.Replications, p.Packets, p.Lost, p.Loss.Scale(100), verdict, p.Gap)
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	if r.Saturating && r.Found() {
		fmt.Fprintf(w, "saturated gap: %v µs, %.0f packets/s\n", r.MeasuredGap, float64(r.Rate))
	} else if r.Found() {
		fmt.Fprintf(w, "highest rate with %s: %g packets/s (%s)\n", lossName(float64(r.LossBound)), float64(r.Rate), span(float64(r.Low), float64(r.High), "%.0f"))
		fmt.Fprintf(w, "a packet every %.2f µs (%s); resolution %.2f %%\n", float64(r.Gap), span(float64(r.GapLow), float64(r.GapHigh), "%.2f"), 100*float64(r.Resolution))
		fmt.Fprintf(w, "there: gap %v µs, loss %v %%, latency through the ingress card mean %v µs, p99 %v µs\n",
			r.MeasuredGap, r.Loss.Scale(100), r.Latency, r.LatencyP99)
	}
	printNotes(w, r.Notes)
	return nil
}

func maxRateTable(c *cobra.Command, sc *sim.Scenario, opt *study.TableOptions, pic *plotFlag, asJSON bool) error {
	b, tell := newBar(c, "highest rates")
	opt.Progress = tell
	r, err := study.MaxRateTable(c.Context(), sc, *opt)
	b.end()
	if err != nil && !cut(c.Context(), err) {
		return err
	}
	if werr := pic.show(c, err != nil, asJSON, r,
		func(w io.Writer) error { return printMaxRateTable(w, r) },
		func() (*sheet, error) { return drawMaxRateTable(r) }); werr != nil {
		return werr
	}
	if err != nil {
		return fmt.Errorf("interrupted; the rows finished until then are printed above")
	}
	return nil
}

func printMaxRateTable(w io.Writer, r *study.MaxRateTableResult) error {
	if len(r.Rows) == 0 {
		return nil
	}
	fmt.Fprintf(w, "scenario %s, policy %s, %s\n", r.Rows[0].Scenario, r.Rows[0].Policy, lossName(float64(r.Rows[0].LossBound)))
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "arrivals\tframe\tpacket\tpackets/s\t95 %\tgap µs\t95 %\tMbit/s\tloss %\tlatency µs\tp99\t")
	for _, m := range r.Rows {
		if !m.Found() {
			continue
		}
		fmt.Fprintf(t, "%s\t%.0f\t%.0f\t%.0f\t%.0f … %.0f\t%.2f\t%.2f … %.2f\t%.1f\t%.3f\t%.1f\t%.1f\t\n", m.Process, m.Frame(), float64(m.Bytes),
			float64(m.Rate), float64(m.Low), float64(m.High), float64(m.Gap), float64(m.GapLow), float64(m.GapHigh),
			float64(m.Rate)*float64(m.Bytes)*8/1e6, 100*float64(m.Loss.Mean), float64(m.Latency.Mean), float64(m.LatencyP99.Mean))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, m := range r.Rows {
		for _, n := range m.Notes {
			fmt.Fprintf(w, "note: %s, %.0f bytes: %s\n", m.Process, float64(m.Bytes), n)
		}
	}
	return nil
}
