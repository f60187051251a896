package cmd

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"spinesim/plots"
	"spinesim/sim"
	"spinesim/traces"
)

func newReplay() *cobra.Command {
	var f scenarioFlags
	var exec executionFlags
	var dir, policy, style string
	var asJSON, check bool
	c := &cobra.Command{
		Use:   "replay [FILE]",
		Short: "Replay the SPINE event graph (Figure 6.4)",
		Long: `Without a file, replay runs the embedded scenario fig6.4 on real routes and
writes to out/: the event graph of a best-case window and of a slow one, the
oscillation over time, the record behind them, and the summary.

With a recorded trace it draws the same from the file. With --policy, --firmware,
--extension or --set it runs the recorded scenario again on the changed machine, with the same arrivals,
and shows both runs side by side and the first event in which they part. Where
the scenario in the record does not make the arrivals of the record, those of the
record are taken; where there is none, --scenario names the machine. So a list of
arrivals may be written by hand: CSV with the columns kind (enter), card, end_ps,
bytes, and peer for the card by which the packet is to leave.`,
		Example: `  spinesim replay
  spinesim replay out/record.parquet
  spinesim replay out/record.parquet --policy pci-first
  spinesim replay arrivals.csv --scenario four-way --policy pci-first`,
		Args: wrapArgs(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			st := plots.Thesis
			switch style {
			case "thesis":
			case "colour", "color":
				st = plots.Coloured
			default:
				return usagef("--style %q, want thesis or colour", style)
			}
			out := &replayOutput{c: c, dir: dir, style: st, asJSON: asJSON}
			if policy != "" {
				f.settings = append(f.settings, "policy="+quoted(policy))
			}
			f.settings = append(f.settings, exec.settings(f.settings)...)
			if len(args) == 0 {
				return replayScenario(c, &f, out, check)
			}
			if len(f.settings) == 0 {
				return replayFile(args[0], out)
			}
			return replayAgain(c, args[0], f.name, f.settings, out)
		},
	}
	f.add(c, "fig6.4")
	exec.add(c)
	c.Flags().StringVarP(&dir, "out", "o", "out", "directory for figures and record")
	c.Flags().StringVar(&policy, "policy", "", "dispatcher policy or order of the queues")
	c.Flags().StringVar(&style, "style", "thesis", "event graph: thesis (black and white) or colour")
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	c.Flags().BoolVar(&check, "check", false, "check every invariant while running")
	return c
}

// replayOutput writes what a replay gives.
type replayOutput struct {
	c      *cobra.Command
	dir    string
	style  plots.Style
	asJSON bool
	files  []string
	missed []string // figures for which nothing was found to draw
}

func (o *replayOutput) path(name string) string {
	p := filepath.Join(o.dir, name)
	o.files = append(o.files, p)
	return p
}

func replayScenario(c *cobra.Command, f *scenarioFlags, out *replayOutput, check bool) error {
	sc, err := f.load()
	if err != nil {
		return err
	}
	if err := makeDir(out.dir); err != nil {
		return err
	}
	bar := newProgress(c, "replay "+sc.Name, int64(sc.Traffic.Packets)*int64(len(sc.Traffic.Ingress)))
	r, err := sim.RunReplay(c.Context(), sc, sim.Options{Check: check, Overlap: runtime.GOMAXPROCS(0) > 1, Progress: func(done, _ uint64) { bar.set(int64(done)) }})
	bar.end()
	var cards *sim.StoppedError
	if err != nil && !errors.As(err, &cards) {
		if r != nil && r.Result != nil && r.Result.Interrupted {
			if perr := printResult(c.OutOrStdout(), r.Result, out.asJSON, false); perr != nil {
				return perr
			}
			return fmt.Errorf("interrupted after %.3f simulated seconds; kept the summary so far, drew nothing", r.Result.SimulatedS)
		}
		return err
	}
	if err := out.figures(r); err != nil {
		return err
	}
	if err := out.record(r); err != nil {
		return err
	}
	if err := writeFile(out.path("summary.json"), func(w io.Writer) error { return writeJSON(w, r.Result) }); err != nil {
		return err
	}
	if err := printResult(c.OutOrStdout(), r.Result, out.asJSON, false); err != nil {
		return err
	}
	out.list()
	if len(r.Result.Violations) > 0 {
		return fmt.Errorf("%d invariants were broken", len(r.Result.Violations))
	}
	if cards != nil {
		return cards
	}
	return nil
}

// list names the files that were written.
func (o *replayOutput) list() {
	if o.asJSON {
		return
	}
	w := o.c.OutOrStdout()
	if len(o.files) > 0 {
		fmt.Fprintln(w, "wrote", strings.Join(o.files, ", "))
	}
	if len(o.missed) > 0 {
		fmt.Fprintln(w, "found nothing to draw for", strings.Join(o.missed, ", "))
	}
}

// figures draws the two event graphs and the oscillation.
func (o *replayOutput) figures(r *sim.Replay) error {
	for _, g := range []struct {
		name, title string
		win         sim.Window
	}{
		{"event-graph-best", fmt.Sprintf("SPINE IP router event graph: best case, a packet every %.1f µs", r.Best.Period.Microseconds()), r.Best},
		{"event-graph-slow", fmt.Sprintf("SPINE IP router event graph: slow state, %d packets received in a row", r.Slow.Run), r.Slow},
	} {
		if !g.win.Found {
			o.missed = append(o.missed, g.name)
			continue
		}
		graph := plots.EventGraph{Title: g.title, Card: r.Ingress, From: g.win.From, To: g.win.To, Style: o.style, Trace: g.win.Packet}
		p, err := graph.Plot(r.Records)
		if err != nil {
			return fmt.Errorf("%s: %w", g.name, err)
		}
		for _, ext := range []string{".svg", ".png"} {
			if err := plots.Save(o.path(g.name+ext), plots.Wide, p); err != nil {
				return err
			}
		}
	}
	t := plots.Timeline{Title: "Gap, receive runs and DMA backlog over time", Card: r.Ingress, From: r.Span.From, To: r.Span.To}
	ps, err := t.Plots(r.Records)
	if errors.Is(err, plots.ErrNoEvents) {
		o.missed = append(o.missed, "oscillation")
		return nil
	}
	if err != nil {
		return err
	}
	for _, ext := range []string{".svg", ".png"} {
		if err := plots.Save(o.path("oscillation"+ext), plots.Tall, ps...); err != nil {
			return err
		}
	}
	return nil
}

// record writes what was kept of the run.
func (o *replayOutput) record(r *sim.Replay) error {
	for _, name := range []string{"record.parquet", "record.csv.gz"} {
		w, err := traces.CreateWriter(o.path(name), r.Meta)
		if err != nil {
			return err
		}
		for i := range r.Records {
			if err := w.Record(&r.Records[i]); err != nil {
				w.Abort()
				return err
			}
		}
		if err := w.Close(); err != nil {
			return err
		}
	}
	return nil
}

// readError tells a bad file from a fault of the system.
func readError(err error) error {
	var fe *traces.FormatError
	if errors.As(err, &fe) || errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission) {
		return &sim.InputError{Err: err}
	}
	return err
}

// replayFile draws a recorded trace.
func replayFile(path string, out *replayOutput) error {
	r, err := sim.ReadReplay(path)
	if err != nil {
		return readError(err)
	}
	if err := makeDir(out.dir); err != nil {
		return err
	}
	if err := out.figures(r); err != nil {
		return err
	}
	w := out.c.OutOrStdout()
	if out.asJSON {
		return writeJSON(w, r.Result)
	}
	fmt.Fprintf(w, "%s: %s, scenario %s, seed %d, %d records\n", path, r.Meta.Program, r.Meta.Scenario, r.Meta.Seed, len(r.Records))
	if err := r.Result.WriteText(w); err != nil {
		return err
	}
	out.list()
	return nil
}

// replayAgain executes the recorded arrivals on a changed machine.
func replayAgain(c *cobra.Command, path, machine string, settings []string, out *replayOutput) error {
	bar := newProgress(c, "replay again", 2)
	a, err := sim.RunAgain(c.Context(), path, machine, settings, func(n int) { bar.set(int64(n)) })
	bar.end()
	if err != nil {
		return stopped(readError(err))
	}
	if out.asJSON {
		return writeJSON(c.OutOrStdout(), a)
	}
	w := c.OutOrStdout()
	if err := sideBySide(w, a); err != nil {
		return err
	}
	return nil
}
