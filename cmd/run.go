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

	"spinesim/sim"
	"spinesim/traces"
)

func newRun() *cobra.Command {
	var f scenarioFlags
	var exec executionFlags
	var sample sampleFlags
	var record []string
	var window recordWindow
	var pcap, routes, wires, policy string
	var asJSON, check, stepping, verbose bool
	var packets uint64
	var seed uint64
	c := &cobra.Command{
		Use:   "run",
		Short: "Run a scenario with the outputs you choose",
		Long: `Run a scenario and print what was measured. --pcap and --routes route a capture
of your own with a table of your own; --record writes what happened (format by
extension), --wires the packets that left the cards. --sample is the profile that a
timer's interrupt would see, with what it gets wrong; the exact one is
--record run.pb.gz.

With --firmware handlers or full, a fault of the run-time's own code stops that card
only. The run goes on to its end without it, all outputs are whole, and the exit
status is 1. A fault of an extension costs its packet, is listed, and is no failure.`,
		Example: `  spinesim run --scenario four-way
  spinesim run --scenario fig6.4 --set firmware.buffers=64 --json
  spinesim run --record worst.perfetto-trace --record-around-gap 1
  spinesim run --pcap capture.pcap --routes rib.bz2 --wires out.pcapng
  spinesim run --extension my.o --packets 2000
  spinesim run --firmware full --check`,
		Args: wrapArgs(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			settings := append(f.settings, exec.settings(f.settings)...)
			add := func(format string, args ...any) { settings = append(settings, fmt.Sprintf(format, args...)) }
			if pcap != "" {
				add("traffic.capture.file=%s", quoted(pcap))
				if !set(settings, "traffic.capture.pace") {
					add("traffic.capture.pace=link")
				}
				if !set(settings, "traffic.packets") && packets == 0 {
					add("traffic.packets=0")
				}
			}
			if routes != "" {
				add("routes.file=%s", quoted(routes))
			}
			if policy != "" {
				add("policy=%s", quoted(policy))
			}
			if c.Flags().Changed("seed") {
				add("seed=%d", seed)
			}
			if packets > 0 {
				add("traffic.packets=%d", packets)
			}
			sc, err := sim.Load(f.name, settings...)
			if err != nil {
				return err
			}
			opt := sim.Options{Check: check, Stepping: stepping, Overlap: runtime.GOMAXPROCS(0) > 1}
			var out *os.File
			if wires != "" {
				if err := checkOutput("--wires", wires); err != nil {
					return err
				}
				if out, err = os.CreateTemp(filepath.Dir(wires), ".spinesim-*"); err != nil {
					return usagef("--wires: %w", err)
				}
				defer os.Remove(out.Name())
				defer out.Close()
				opt.Wires = out
			}
			late := &lateSinks{}
			flush := func() error { return nil }
			if len(record) > 0 {
				var sink traces.Sink
				if sink, flush, err = window.before(late, &opt); err != nil {
					return err
				}
				opt.Sinks = append(opt.Sinks, sink)
			}
			samplers, err := sample.sinks(c, sc.Seed)
			if err != nil {
				return err
			}
			opt.Sinks = append(opt.Sinks, samplers...)
			bar := newProgress(c, sc.Name, int64(sc.Traffic.Packets)*int64(len(sc.Traffic.Ingress)))
			defer bar.end()
			opt.Progress = func(done, _ uint64) { bar.set(int64(done)) }
			s, err := sim.New(sc, opt)
			if err != nil {
				return err
			}
			for _, path := range record {
				w, err := traces.CreateWriter(path, s.Meta())
				if err != nil {
					late.abort()
					return usagef("--record: %w", err)
				}
				late.writers = append(late.writers, w)
			}
			r, err := s.Run(c.Context())
			bar.end()
			var cards *sim.StoppedError
			if err != nil && !errors.As(err, &cards) && (r == nil || !r.Interrupted) {
				late.abort()
				return err
			}
			if cerr := errors.Join(flush(), late.close(), sample.write(s.Meta())); cerr != nil {
				return cerr
			}
			if out != nil {
				if err := errors.Join(out.Chmod(0o644), out.Close(), os.Rename(out.Name(), wires)); err != nil {
					return err
				}
			}
			if perr := printRun(c.OutOrStdout(), r, &sample, asJSON, verbose); perr != nil {
				return perr
			}
			if r.Interrupted {
				return fmt.Errorf("interrupted after %.3f simulated seconds; kept the results so far%s", r.SimulatedS, kept(record, wires))
			}
			if len(r.Violations) > 0 {
				return fmt.Errorf("%d invariants were broken", len(r.Violations))
			}
			if cards != nil {
				return cards
			}
			return nil
		},
	}
	f.add(c, "fig6.4")
	exec.add(c)
	c.Flags().StringVar(&pcap, "pcap", "", "route this capture (pcap or pcapng, also .gz) instead of synthetic packets")
	c.Flags().StringVar(&routes, "routes", "", "route table: text, or an MRT RIB dump, plain, .gz or .bz2")
	c.Flags().StringVar(&policy, "policy", "", "dispatcher policy or order of the queues")
	c.Flags().Uint64Var(&packets, "packets", 0, "packets offered to each ingress card")
	c.Flags().Uint64Var(&seed, "seed", 0, "seed of every random stream")
	c.Flags().StringArrayVar(&record, "record", nil, "write the record to this file (format by extension); may be repeated")
	window.add(c)
	sample.add(c)
	c.Flags().StringVar(&wires, "wires", "", "write the packets that leave, as pcapng")
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	c.Flags().BoolVar(&verbose, "verbose", false, "print every measure")
	c.Flags().BoolVar(&check, "check", false, "check every invariant while running")
	c.Flags().BoolVar(&stepping, "step", false, "poll one queue at a time instead of whole scans (slower, same results)")
	return c
}

func kept(record []string, wires string) string {
	if wires != "" {
		record = append(record, wires)
	}
	if len(record) == 0 {
		return ""
	}
	return " and " + strings.Join(record, ", ")
}

// quoted makes a value one YAML text.
func quoted(s string) string { return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"` }

// set tells whether a path is among settings.
func set(settings []string, path string) bool {
	for _, s := range settings {
		if strings.HasPrefix(s, path+"=") {
			return true
		}
	}
	return false
}

// printRun prints a run's result and what sampling it has given.
func printRun(w io.Writer, r *sim.Result, sample *sampleFlags, asJSON, verbose bool) error {
	if asJSON && len(sample.samplers) > 0 {
		return writeJSON(w, struct {
			*sim.Result
			Sampled []*traces.SampleReport `json:"sampled"`
		}{r, sample.reports()})
	}
	if err := printResult(w, r, asJSON, verbose); err != nil || asJSON {
		return err
	}
	return sample.report(w)
}

func printResult(w io.Writer, r *sim.Result, asJSON, verbose bool) error {
	if asJSON {
		return writeJSON(w, r)
	}
	if err := summarise(w, r); err != nil {
		return err
	}
	if verbose {
		fmt.Fprintln(w)
		return r.WriteText(w)
	}
	return nil
}

// lateSinks passes records on to writers that are made once the simulation's
// description is known.
type lateSinks struct{ writers []traces.Writer }

// Record implements traces.Sink.
func (l *lateSinks) Record(r *traces.Record) error {
	for _, w := range l.writers {
		if err := w.Record(r); err != nil {
			return err
		}
	}
	return nil
}

func (l *lateSinks) close() error {
	var err error
	for _, w := range l.writers {
		err = errors.Join(err, w.Close())
	}
	return err
}

// abort gives up all files.
func (l *lateSinks) abort() {
	for _, w := range l.writers {
		if a, ok := w.(interface{ Abort() }); ok {
			a.Abort()
		}
	}
}
