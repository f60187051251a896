package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"spinesim/sim/study"
	"spinesim/sim/study/sweep"
)

func newSweep() *cobra.Command {
	var f studyFlags
	var opt sweep.Options
	var path, shard string
	var plan bool
	c := &cobra.Command{
		Use:   "sweep FILE",
		Short: "Run a designed experiment over any fields of a scenario into an SQLite database",
		Long: `Run every point of a design: all combinations of some fields' values, a regular
fraction of them, or a Latin hypercube. Each run is one row of an SQLite
database, committed when it is finished. Stopped in any way, even killed, and
started again the sweep goes on and repeats nothing; more replications later
keep the ones that are there.

A design file:

  scenario: fig6.4                 # a preset, or a scenario file beside this one
  settings:                        # what holds at every point
    traffic.packets: 20000
  design: full                     # or fraction, or latin
  replications: 5
  factors:
    policy: [default, pci-first]
    firmware.buffers: [4, 16, 64]
    traffic.arrivals.rate: {from: 10000 packets/s, to: 16000 packets/s, levels: 7}

design: fraction takes "fraction: 4" for a quarter, and may take "generators";
design: latin takes "points: 200". A range may run in equal ratios (scale: log).

Under a job array each job runs a shard into a database of its own (--shard
$JOB_COMPLETION_INDEX/8, --shard $SLURM_ARRAY_TASK_ID/8); merge joins them.`,
		Example: `  spinesim sweep buffers.yaml
  spinesim sweep buffers.yaml --replications 20
  spinesim sweep buffers.yaml --shard 0/4 --db part0.db
  spinesim sweep merge buffers.db part0.db part1.db part2.db part3.db
  spinesim sweep show buffers.db --metrics gap_us,loss
  spinesim sweep export buffers.db buffers.parquet`,
		Args: wrapArgs(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			d, err := sweep.LoadDesign(args[0])
			if err != nil {
				return err
			}
			if plan {
				p, err := d.Plan(c.Context(), opt.Replications)
				if err != nil {
					return err
				}
				if f.asJSON {
					return writeJSON(c.OutOrStdout(), p)
				}
				return printPlan(c.OutOrStdout(), p)
			}
			if shard != "" {
				if opt.Shard, err = sweep.ParseShard(shard); err != nil {
					return err
				}
			}
			if path == "" {
				path = strings.TrimSuffix(filepath.Base(args[0]), filepath.Ext(args[0]))
				if opt.Shard.Of > 1 {
					path += fmt.Sprintf("-%d-of-%d", opt.Shard.Index, opt.Shard.Of)
				}
				path += ".db"
			}
			// A bad design should not leave an empty database behind.
			if _, err := d.Plan(c.Context(), opt.Replications); err != nil {
				return err
			}
			db, err := sweep.OpenStore(path)
			if err != nil {
				return err
			}
			defer db.Close()
			opt.Workers = f.workers
			return runSweep(c, d, db, opt, f.asJSON)
		},
	}
	f.addRuns(c)
	c.Flags().StringVar(&path, "db", "", "database; named after the design file unless given")
	c.Flags().StringVar(&shard, "shard", "", "run only part i of n, as i/n with i from 0")
	c.Flags().IntVar(&opt.Replications, "replications", 0, "replications of each point, instead of the design file's")
	c.Flags().BoolVar(&plan, "plan", false, "only check the design and say what it would run")
	c.AddCommand(newSweepMerge(), newSweepExport(), newSweepShow())
	return c
}

func printPlan(w io.Writer, p *sweep.Plan) error {
	fmt.Fprintf(w, "%s: %s design over scenario %s, %d points, %d replications, %d runs\n", p.Name, p.Design, p.Scenario, p.Points, p.Replications, p.Runs)
	for _, f := range p.Parameters {
		if f.Unit != "" {
			fmt.Fprintf(w, "  %s, stored in %s\n", f.Path, f.Unit)
		} else {
			fmt.Fprintf(w, "  %s\n", f.Path)
		}
	}
	if p.Fraction != nil {
		fmt.Fprintln(w, p.Fraction)
	}
	printNotes(w, p.Notes)
	return nil
}

func runSweep(c *cobra.Command, d *sweep.Design, db *sweep.Store, opt sweep.Options, asJSON bool) error {
	b, tell := newBar(c, "sweep "+d.Name)
	opt.Progress = tell
	r, err := sweep.Run(c.Context(), d, db, opt)
	b.end()
	if r == nil || err != nil && !cut(c.Context(), err) && len(r.Failed) == 0 {
		return err
	}
	w := c.OutOrStdout()
	if asJSON {
		if werr := writeJSON(w, r); werr != nil {
			return werr
		}
	} else {
		part := ""
		if r.Shard != "" {
			part = " of shard " + r.Shard
		}
		fmt.Fprintf(w, "%s: %d runs%s, %d were there, %d made, %d failed; in %s\n", r.Name, r.Planned, part, r.Found, r.Made, len(r.Failed), r.Database)
		if r.Fraction != nil {
			fmt.Fprintln(w, r.Fraction)
		}
		printNotes(w, r.Notes)
	}
	if cut(c.Context(), err) {
		return fmt.Errorf("interrupted; kept %d of %d runs in %s, start again to go on", r.Found+r.Made, r.Planned, r.Database)
	}
	return err
}

func newSweepMerge() *cobra.Command {
	return &cobra.Command{
		Use:   "merge OUT DB...",
		Short: "Join databases of a sweep's shards",
		Long: `Take the runs of databases over into another one, each database whole or not at
all. A run that two of them have must have given the same in both.`,
		Example: "  spinesim sweep merge all.db part0.db part1.db",
		Args:    wrapArgs(cobra.MinimumNArgs(2)),
		RunE: func(c *cobra.Command, args []string) error {
			// All must be there before anything is written.
			var from []*sweep.Store
			for _, a := range args[1:] {
				if same(a, args[0]) {
					return usagef("%s is what is merged into", a)
				}
				s, err := sweep.OpenStoreForReading(a)
				if err != nil {
					return err
				}
				defer s.Close()
				from = append(from, s)
			}
			out, err := sweep.OpenStore(args[0])
			if err != nil {
				return err
			}
			defer out.Close()
			for i, s := range from {
				n, err := out.Merge(c.Context(), s)
				if err != nil {
					if errors.Is(err, context.Canceled) {
						return fmt.Errorf("interrupted; kept what %d of %d databases had", i, len(from))
					}
					return err
				}
				fmt.Fprintf(c.OutOrStdout(), "%s: %d new runs\n", s.Path(), n)
			}
			return nil
		},
	}
}

// same tells whether two paths are one file.
func same(a, b string) bool {
	x, err1 := os.Stat(a)
	y, err2 := os.Stat(b)
	return err1 == nil && err2 == nil && os.SameFile(x, y)
}

func newSweepExport() *cobra.Command {
	return &cobra.Command{
		Use:     "export DB FILE.csv|FILE.parquet",
		Short:   "Write a sweep's runs as CSV or Parquet",
		Example: "  spinesim sweep export buffers.db buffers.csv",
		Args:    wrapArgs(cobra.ExactArgs(2)),
		RunE: func(c *cobra.Command, args []string) error {
			s, err := sweep.OpenStoreForReading(args[0])
			if err != nil {
				return err
			}
			defer s.Close()
			write := s.WriteCSV
			switch ext := strings.ToLower(filepath.Ext(args[1])); ext {
			case ".csv":
			case ".parquet":
				write = s.WriteParquet
			default:
				return usagef("%s: want a name that ends in .csv or .parquet", args[1])
			}
			return writeFile(args[1], write)
		},
	}
}

func newSweepShow() *cobra.Command {
	var asJSON bool
	var metrics, over, by string
	var pic plotFlag
	c := &cobra.Command{
		Use:   "show DB",
		Short: "Summarise a sweep by point and by factor",
		Long: `Print the mean of some metrics over the replications of each point, with its
95 % interval, and over all points at each value of a factor.

--plot draws a panel for each metric over the factor --over, with a line for each
value of the factor --by; unless told otherwise the number with most values, and
the first other factor of at most eight values.`,
		Example: `  spinesim sweep show buffers.db --metrics gap_us,loss,bubble_share
  spinesim sweep show buffers.db --plot buffers.svg --over firmware.buffers --by policy`,
		Args: wrapArgs(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			if err := pic.check(); err != nil {
				return err
			}
			if len(pic.files) == 0 && (over != "" || by != "") {
				return usagef("--over and --by say what --plot draws, which is not given")
			}
			var names []string
			for n := range strings.SplitSeq(metrics, ",") {
				names = append(names, strings.TrimSpace(n))
			}
			if metrics == "all" {
				names = nil
			}
			for _, n := range names {
				if _, err := study.MetricByName(n); err != nil {
					return err
				}
			}
			s, err := sweep.OpenStoreForReading(args[0])
			if err != nil {
				return err
			}
			defer s.Close()
			r, err := s.Summary(names)
			if err != nil {
				return err
			}
			var x, lines *factor
			if len(pic.files) > 0 {
				if x, lines, err = axes(r, over, by); err != nil {
					return err
				}
			}
			return pic.show(c, false, asJSON, r,
				func(w io.Writer) error { return printSweep(w, r) },
				func() (*sheet, error) { return drawSweep(r, x, lines) })
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	c.Flags().StringVar(&metrics, "metrics", "gap_us,latency_p99_us,loss,bubble_share,slow_share", "metrics, separated by commas, or all")
	pic.add(c, "the metrics over a factor")
	c.Flags().StringVar(&over, "over", "", "with --plot: factor along the axis")
	c.Flags().StringVar(&by, "by", "", "with --plot: factor with a line for each of its values")
	return c
}

func printSweep(w io.Writer, r *sweep.Summary) error {
	fmt.Fprintf(w, "%s: %d runs of %d points\n\n", r.Database, r.Runs, len(r.Points))
	text := func(v any) string {
		switch v := v.(type) {
		case nil:
			return "–"
		case float64:
			return strconv.FormatFloat(v, 'g', 6, 64)
		}
		return fmt.Sprint(v)
	}
	title := func(p sweep.Parameter) string {
		if p.Unit == "" {
			return p.Path
		}
		return p.Path + " " + p.Unit
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, p := range r.Parameters {
		fmt.Fprint(t, title(p), "\t")
	}
	fmt.Fprint(t, "runs")
	for _, m := range r.Metrics {
		fmt.Fprint(t, "\t", m.Name)
	}
	fmt.Fprintln(t)
	for _, p := range r.Points {
		for _, v := range p.Values {
			fmt.Fprint(t, text(v), "\t")
		}
		fmt.Fprint(t, p.Replications)
		for _, m := range r.Metrics {
			fmt.Fprintf(t, "\t%v", p.Figures[m.Name])
		}
		fmt.Fprintln(t)
	}
	if err := t.Flush(); err != nil || len(r.Effects) == 0 {
		return err
	}
	fmt.Fprintln(w, "\nat each value of a factor, over its points")
	t = tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprint(t, "factor\tvalue\tpoints")
	for _, m := range r.Metrics {
		fmt.Fprint(t, "\t", m.Name)
	}
	fmt.Fprintln(t)
	for _, e := range r.Effects {
		fmt.Fprintf(t, "%s\t%s\t%d", e.Parameter, text(e.Value), e.Points)
		for _, m := range r.Metrics {
			fmt.Fprintf(t, "\t%v", e.Figures[m.Name])
		}
		fmt.Fprintln(t)
	}
	return t.Flush()
}
