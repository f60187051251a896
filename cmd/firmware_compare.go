package cmd

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"spinesim/sim/study"
	"spinesim/spine"
)

func newFirmwareCompare() *cobra.Command {
	var f studyFlags
	var opt study.ExecutionOptions
	var executions, extension []string
	var load loadFlags
	c := &cobra.Command{
		Use:   "compare",
		Short: "Compare costs from a table with executed handlers and the whole firmware",
		Long: `compare runs a scenario under the same seeds with different things executed:
table (nothing: costs are data), handlers (each poll and handler, compiled from C)
and full (the whole firmware, its dispatcher too). It checks that the same packets
go the same way, compares gaps, latencies, receive runs and the best window, and
lists what each poll and handler took and where the first one's costs were off.`,
		Example: `  spinesim firmware compare --saturated
  spinesim firmware compare --scenario executed --firmware table,full --json
  spinesim firmware compare --extension my.o --firmware handlers,full`,
		Args: wrapArgs(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			more, err := load.settings(c)
			if err != nil {
				return err
			}
			for _, e := range executions {
				opt.Executions = append(opt.Executions, spine.Execution(e))
			}
			exec := executionFlags{firmware: "handlers", extension: extension}
			if len(extension) > 0 {
				f.settings = append(f.settings, exec.settings(f.settings)...)
			}
			f.settings = append(f.settings, more...)
			sc, err := f.load()
			if err != nil {
				return err
			}
			opt.Workers = f.workers
			b, tell := newBar(c, "firmware compare")
			opt.Progress = tell
			r, err := study.CompareExecutions(c.Context(), sc, opt)
			b.end()
			if err != nil {
				return stopped(err)
			}
			if f.asJSON {
				err = writeJSON(c.OutOrStdout(), r)
			} else {
				err = printExecutions(c.OutOrStdout(), r)
			}
			if err == nil && r.Otherwise > 0 {
				return errors.New("executed firmware does other than the table")
			}
			return err
		},
	}
	f.add(c, "fig6.4")
	c.Flags().StringSliceVar(&executions, "firmware", []string{"table", "handlers", "full"}, "what to compare; the first is what the others are compared with")
	c.Flags().StringSliceVar(&extension, "extension", nil, "object `files` of an extension in C")
	c.Flags().IntVarP(&opt.Replications, "replications", "n", 3, "runs of each, under different seeds")
	load.add(c, 5000, `"8000 packets/s" or "120 µs"`)
	return c
}

// executed are the figures that the table shows, with the factor and the title
// they are shown with.
var executedFigures = []struct {
	metric string
	scale  float64
	title  string
}{
	{"gap_us", 1, "gap µs"},
	{"gap_p99_us", 1, "p99 µs"},
	{"latency_us", 1, "latency through the ingress card µs"},
	{"loss", 100, "loss %"},
	{"receive_run", 1, "receive run, packets"},
	{"receive_run_over_1", 100, "receive runs over one %"},
	{"slow_share", 100, "slow state %"},
	{"bubble_share", 100, "engine idle with a packet waiting %"},
	{"dma_step_us", 1, "DMA step µs"},
	{"cpu", 100, "ingress processor in handlers %"},
}

func printExecutions(w io.Writer, r *study.ExecutionsResult) error {
	printLoad(w, r.Scenario, r.Process, r.Rate, r.Saturating, r.Replications, r.Packets, r.Seed)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, e := range r.Executions {
		fmt.Fprint(t, "\t", e.Execution)
	}
	fmt.Fprintln(t)
	for _, m := range executedFigures {
		fmt.Fprint(t, m.title)
		for _, e := range r.Executions {
			fmt.Fprintf(t, "\t%v", e.Figures[m.metric].Scale(m.scale))
		}
		fmt.Fprintln(t)
	}
	real := func(v float64, format string) string {
		if math.IsNaN(v) {
			return "–"
		}
		return fmt.Sprintf(format, v)
	}
	fmt.Fprint(t, "best window: period, latency µs")
	for _, e := range r.Executions {
		fmt.Fprintf(t, "\t%s, %s", real(float64(e.BestPeriod), "%.1f"), real(float64(e.BestLatency), "%.1f"))
	}
	fmt.Fprintln(t)
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprint(w, "\ncycles a run, and runs a packet\n")
	t = tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, e := range r.Executions {
		fmt.Fprintf(t, "\t%s\truns", e.Execution)
	}
	fmt.Fprintln(t, "\t")
	for _, c := range costNames(r) {
		fmt.Fprint(t, c)
		for i := range r.Executions {
			x, ok := r.Executions[i].Cost(c)
			if !ok {
				fmt.Fprint(t, "\t–\t–")
				continue
			}
			fmt.Fprintf(t, "\t%.1f\t%.2f", float64(x.Cycles), float64(x.Runs))
		}
		fmt.Fprintln(t, "\t")
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for i := range r.Executions[1:] {
		e := &r.Executions[i+1]
		var worst []string
		for _, c := range e.Wrong() {
			if us := float64(c.Off * r.CycleUS); len(worst) < 4 && math.Abs(us) >= 0.005 {
				worst = append(worst, fmt.Sprintf("%s %+.2f µs", c.Name, us))
			}
		}
		fmt.Fprintf(w, "%s was off %s, for a packet, by most in: %s\n", r.Executions[0].Execution, e.Execution, strings.Join(worst, ", "))
	}
	if len(r.Executions) > 1 {
		fmt.Fprintf(w, "%d packets that both took in: %d went otherwise\n", r.Compared, r.Otherwise)
	}
	printNotes(w, r.Notes)
	return nil
}

// costNames are the polls and handlers that any of the executions ran, in order.
func costNames(r *study.ExecutionsResult) []string {
	names := []string{"poll"}
	for _, h := range spine.Handlers {
		names = append(names, h.String())
	}
	var out []string
	for _, n := range names {
		for i := range r.Executions {
			if _, ok := r.Executions[i].Cost(n); ok {
				out = append(out, n)
				break
			}
		}
	}
	return out
}
