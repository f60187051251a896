package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"spinesim/sim"
	"spinesim/sim/study"
	"spinesim/spine"
	"spinesim/spine/schedule"
)

// scheduleReport is what the command prints as JSON.
type scheduleReport struct {
	Scenario string `json:"scenario"`
	Policy   string `json:"policy"`
	*schedule.Result
	Run *scheduleRun `json:"run,omitempty"`
}

// scheduleRun is the cycle, run by the simulator.
type scheduleRun struct {
	Saturated bool `json:"saturated"`
	// Difference of the simulated gap from the initiation interval, as a
	// share of it.
	GapUS      float64          `json:"simulated_gap_us"`
	Difference float64          `json:"difference"`
	Result     *sim.Result      `json:"result"`
	Cards      []scheduleCounts `json:"cards"`
}

type scheduleCounts struct {
	Card int `json:"card"`
	spine.StaticCounts
}

func newSchedule() *cobra.Command {
	var f scenarioFlags
	var pic plotFlag
	var opt schedule.Options
	var file, out string
	var asJSON, run, asIs, check, against bool
	var workers int
	var packets uint64
	c := &cobra.Command{
		Use:   "schedule",
		Short: "Bound the gap from below, make a static schedule, run it",
		Long: `Add up what a packet asks of every resource, which bounds the gap from below,
and make the shortest cycle of handlers and transfers that the machine allows:
by branch and bound, so that it is proved to be the shortest or the distance
left is told.

--out writes the cycle as a file that you can edit; --file reads one, checks it,
and takes it instead. --run runs the cycle: with a source that never pauses, so
that the gap is the cycle's own, or with --as-is under the scenario's traffic.
--against compares static and hybrid cycles with dynamic policies under regular,
jittered, bursty and mixed traffic, and looks for the break-even.
Policies "static", "hybrid" and "static:file=FILE" run cycles anywhere else.`,
		Example: `  spinesim schedule
  spinesim schedule --json --set traffic.sizes.kind=imix --cycle 2
  spinesim schedule --out mine.yaml && spinesim schedule --file mine.yaml --run --check
  spinesim schedule --plot cycle.svg`,
		Args: wrapArgs(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := pic.check(); err != nil {
				return err
			}
			if opt.Packets < 1 || opt.Packets > schedule.MaxPackets {
				return usagef("--cycle: %d, want 1 to %d", opt.Packets, schedule.MaxPackets)
			}
			if opt.Nodes < 1 {
				return usagef("--nodes: %d, want at least 1", opt.Nodes)
			}
			if against && (run || file != "" || out != "") {
				return usagef("--against makes cycles of its own: it goes with none of --run, --file and --out")
			}
			if against {
				return scheduleAgainst(c, &f, packets, workers, &pic, asJSON)
			}
			if packets > 0 {
				f.settings = append(f.settings, fmt.Sprintf("traffic.packets=%d", packets))
			}
			if run && !asIs {
				f.settings = append(f.settings, "traffic.arrivals.process=saturating")
			}
			sc, err := f.load()
			if err != nil {
				return err
			}
			m, flows, err := sim.ScheduleModel(sc)
			if err != nil {
				return err
			}
			r, err := schedule.Synthesise(m, flows, opt)
			if err != nil {
				return err
			}
			rep := &scheduleReport{Scenario: sc.Name, Policy: r.Plan.Name, Result: r}
			if file != "" {
				p, err := schedule.ReadFile(file)
				if err == nil {
					err = schedule.Check(p, m, flows)
				}
				if err != nil {
					return usagef("--file: %w", err)
				}
				r.Plan = p
				rep.Policy = "static:file=" + file
			}
			if out != "" {
				r.Plan.Description = fmt.Sprintf("made for scenario %s: initiation interval %.2f µs a packet", sc.Name, r.IntervalUS)
				if err := writeFile(out, r.Plan.WriteYAML); err != nil {
					return usagef("--out: %w", err)
				}
			}
			if run {
				if rep.Run, err = runPlan(c, sc, rep, check); err != nil && rep.Run == nil {
					return err
				}
			}
			if werr := pic.show(c, err != nil, asJSON, rep,
				func(w io.Writer) error { return printSchedule(w, rep, file != "", out) },
				func() (*sheet, error) { return drawSchedule(rep) }); werr != nil {
				return werr
			}
			if err != nil {
				return err
			}
			if rep.Run != nil && len(rep.Run.Result.Violations) > 0 {
				return fmt.Errorf("%d invariants were broken", len(rep.Run.Result.Violations))
			}
			return nil
		},
	}
	f.add(c, "fig6.4")
	pic.add(c, "the lower bound and the cycle, or with --against the comparison,")
	c.Flags().IntVar(&opt.Packets, "cycle", 1, "packets of each ingress card in a cycle")
	c.Flags().BoolVar(&opt.Hybrid, "hybrid", false, "keep the DMA chain in the cycle, and leave the rest to background slots")
	c.Flags().Int64Var(&opt.Nodes, "nodes", 20_000, "bound of the search: nodes of its tree")
	c.Flags().StringVar(&file, "file", "", "take the schedule in this file instead, if it passes the check")
	c.Flags().StringVar(&out, "out", "", "write the schedule to this file, as YAML")
	c.Flags().BoolVar(&run, "run", false, "run the schedule")
	c.Flags().BoolVar(&asIs, "as-is", false, "with --run: under the scenario's traffic instead of a source that never pauses")
	c.Flags().BoolVar(&check, "check", false, "with --run: check every invariant")
	c.Flags().BoolVar(&against, "against", false, "compare static with dynamic schedules under several kinds of traffic")
	c.Flags().IntVar(&workers, "workers", 0, "with --against: runs that go on at once; 0 for one a processor")
	c.Flags().Uint64Var(&packets, "packets", 0, "with --run: packets offered to each ingress card, 0 for the scenario's; with --against: those of a run, 0 for 10,000")
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return c
}

// scheduleAgainst compares static with dynamic schedules.
func scheduleAgainst(c *cobra.Command, f *scenarioFlags, packets uint64, workers int, pic *plotFlag, asJSON bool) error {
	sc, err := f.load()
	if err != nil {
		return err
	}
	bar, tell := newBar(c, "static against dynamic")
	defer bar.end()
	r, err := study.Schedules(c.Context(), sc, study.SchedulesOptions{Packets: packets, Workers: workers, Progress: tell})
	bar.end()
	if err != nil {
		return err
	}
	return pic.show(c, false, asJSON, r, r.WriteText, func() (*sheet, error) { return drawAgainst(r) })
}

// runPlan runs a plan. The result so far comes with the error when the run was
// interrupted.
func runPlan(c *cobra.Command, sc *sim.Scenario, rep *scheduleReport, check bool) (*scheduleRun, error) {
	bar := newProgress(c, sc.Name, int64(sc.Traffic.Packets)*int64(len(sc.Traffic.Ingress)))
	defer bar.end()
	s, err := sim.New(sc, sim.Options{
		Check:    check,
		Policy:   func(card int) (spine.Policy, error) { return rep.Plan.Policy(rep.Policy, uint8(card)) },
		Progress: func(done, _ uint64) { bar.set(int64(done)) },
	})
	if err != nil {
		return nil, err
	}
	r, err := s.Run(c.Context())
	bar.end()
	if r == nil {
		return nil, err
	}
	if err != nil && errors.Is(err, context.Canceled) {
		err = fmt.Errorf("interrupted after %.3f simulated seconds", r.SimulatedS)
	}
	out := &scheduleRun{
		Saturated: r.Saturating, GapUS: float64(r.Gap.Mean), Difference: float64(r.Gap.Mean)/rep.IntervalUS - 1, Result: r,
	}
	for i := range s.Router().Cards() {
		out.Cards = append(out.Cards, scheduleCounts{i, s.Router().Card(i).StaticCounts()})
	}
	return out, err
}

func printSchedule(w io.Writer, rep *scheduleReport, fromFile bool, out string) error {
	fmt.Fprintf(w, "scenario %s\n", rep.Scenario)
	if err := rep.WriteText(w); err != nil {
		return err
	}
	if fromFile {
		fmt.Fprintf(w, "\nthe steps are those of %s, which passed the check; the figures above are those of the synthesised cycle\n", rep.Policy)
	}
	if out != "" {
		fmt.Fprintf(w, "\nwrote %s; run it with: spinesim run --scenario %s --policy static:file=%s\n", out, rep.Scenario, out)
	}
	if rep.Run == nil {
		return nil
	}
	r := rep.Run
	fmt.Fprintf(w, "\nrun, policy %s\n", rep.Policy)
	if r.Saturated && !fromFile {
		fmt.Fprintf(w, "saturated gap %.2f µs: %+.2f %% from the initiation interval, of which memory and bus contention explain %+.2f %%\n",
			r.GapUS, 100*r.Difference, 100*(rep.PredictedUS/rep.IntervalUS-1))
	}
	if err := summarise(w, r.Result); err != nil {
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "deviations\tpasses\tsteps missed\tno credit\tno buffer\tengine held\tto host\tidle polls\tunforeseen\tgave up")
	for _, c := range r.Cards {
		var missed uint64
		for _, s := range c.Steps {
			missed += s.Missed
		}
		fmt.Fprintf(t, "card %d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\n",
			c.Card, c.Passes, missed, c.NoCredit, c.NoBuffer, c.EngineHeld, c.ToHost, c.IdlePolls, c.Unforeseen, c.GaveUp)
	}
	return t.Flush()
}
