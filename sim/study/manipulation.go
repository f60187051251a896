package study

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"

	"spinesim/sim"
	"spinesim/sim/study/internal/runs"
	"spinesim/traces"
)

// ManipulationModes are the ways of working on packets' data that Manipulation
// compares; none does nothing.
func ManipulationModes() []string {
	return []string{"none", "sequential", "integrated", "dma-checksum"}
}

// ManipulationOptions are those of Manipulation.
type ManipulationOptions struct {
	// Functions are worked with [bswap, pes, cksum: Ahlgren's Table 2].
	Functions []string
	// Packets a run [500], Replications a mode [5]; the seeds are the scenario's
	// and those that follow it (chosen).
	Packets      uint64
	Replications int
	Workers      int
	Progress     Progress
}

// ManipulationRow is one way of working on the data.
type ManipulationRow struct {
	Mode string `json:"mode"`
	// Model is what the model says a packet of the mean length costs the
	// processor, in cycles; Box how long the router handler runs, the extension
	// and routing together.
	Model int      `json:"model_cycles"`
	Box   Interval `json:"router_handler_us"`
	// Gap is the mean departure gap with a source that never lets the card
	// wait, MBps the data that goes through.
	Gap  Interval    `json:"gap_us"`
	MBps traces.Real `json:"megabytes_per_second"`
	// Speedup is the sequential gap over this one.
	Speedup traces.Real `json:"speedup"`
	// Stall is the share of the router handler's time that it lost to the
	// memory bus.
	Stall traces.Real `json:"stall_share"`
}

// ManipulationResult compares them.
type ManipulationResult struct {
	Scenario  string            `json:"scenario"`
	Functions []string          `json:"functions"`
	Bytes     int               `json:"bytes"` // of a packet's data
	Rows      []ManipulationRow `json:"rows"`
}

// Manipulation runs a scenario whose cards work on every packet's data, layer by
// layer, integrated, and with the checksum left to the DMA engine, under a
// saturating source. The scenario's own ilp extensions are replaced; where it
// names no extensions, the work comes before IPv4.
func Manipulation(ctx context.Context, sc *sim.Scenario, opt ManipulationOptions) (*ManipulationResult, error) {
	if len(opt.Functions) == 0 {
		opt.Functions = []string{"bswap", "pes", "cksum"}
	}
	if opt.Packets == 0 {
		opt.Packets = 500
	}
	if opt.Replications < 1 {
		opt.Replications = 5
	}
	if sc.Traffic.Sizes.Kind != "fixed" {
		return nil, &sim.InputError{Err: fmt.Errorf("traffic.sizes.kind: %s, want fixed: what a packet costs depends on its length", sc.Traffic.Sizes.Kind)}
	}
	modes := ManipulationModes()
	res := &ManipulationResult{Scenario: sc.Name, Functions: opt.Functions, Bytes: int(sc.Traffic.Sizes.Bytes) - 20}
	type run struct{ gap, box, stall float64 }
	measured := make([]run, len(modes)*opt.Replications)
	var done doneCount
	err := runs.Each(ctx, opt.Workers, len(measured), func(ctx context.Context, i int) error {
		m := *sc
		m.Seed += uint64(i % opt.Replications)
		m.Traffic.Packets, m.Traffic.Arrivals.Process = opt.Packets, "saturating"
		m.Extensions = manipulating(sc.Extensions, modes[i/opt.Replications], opt.Functions)
		b := &boxes{event: traces.RouterIn}
		r, err := sim.Run(ctx, &m, sim.Options{Sinks: []traces.Sink{b}})
		if err != nil {
			return fmt.Errorf("%s: %w", modes[i/opt.Replications], err)
		}
		if len(r.Unloaded) > 0 {
			return &sim.InputError{Err: fmt.Errorf("%s: %s (see firmware.watchdog)", modes[i/opt.Replications], r.Unloaded[0])}
		}
		measured[i] = run{float64(r.Gap.Mean), b.mean(), b.stallShare()}
		done.tell(opt.Progress, len(measured), modes[i/opt.Replications])
		return nil
	})
	if err != nil {
		return nil, err
	}
	var sequential float64
	for k, mode := range modes {
		row := ManipulationRow{Mode: mode}
		var gap, box []float64
		stall := 0.0
		for _, r := range measured[k*opt.Replications : (k+1)*opt.Replications] {
			gap, box = append(gap, r.gap), append(box, r.box)
			stall += r.stall / float64(opt.Replications)
		}
		row.Gap, row.Box, row.Stall = NewInterval(gap), NewInterval(box), traces.Real(stall)
		row.MBps = traces.Real(float64(sc.Traffic.Sizes.Bytes)) / row.Gap.Mean
		if mode == "sequential" {
			sequential = float64(row.Gap.Mean)
		}
		if mode != "none" {
			x := sim.ILPSpec{Functions: opt.Functions, Mode: mode}
			if row.Model, err = x.Cycles(res.Bytes); err != nil {
				return nil, &sim.InputError{Err: err}
			}
		}
		res.Rows = append(res.Rows, row)
	}
	for i := range res.Rows {
		res.Rows[i].Speedup = traces.Real(sequential) / res.Rows[i].Gap.Mean
	}
	return res, nil
}

// manipulating puts the work into a scenario's extensions.
func manipulating(list []sim.ExtensionSpec, mode string, functions []string) []sim.ExtensionSpec {
	var out []sim.ExtensionSpec
	if mode != "none" {
		out = append(out, sim.ExtensionSpec{Kind: "ilp", ILP: &sim.ILPSpec{Functions: functions, Mode: mode}})
	}
	if list == nil {
		list = []sim.ExtensionSpec{{Kind: "ipv4"}}
	}
	for _, x := range list {
		if x.Kind != "ilp" {
			out = append(out, x)
		}
	}
	return out
}

// boxes sums up the runs of one handler.
type boxes struct {
	event         traces.Event
	n             int
	time          float64 // µs
	cycles, stall uint64
}

// Record implements traces.Sink.
func (b *boxes) Record(r *traces.Record) error {
	if r.Kind == traces.KindBox && r.Event == b.event {
		b.n++
		b.time += (r.End - r.Start).Microseconds()
		b.cycles += r.Cycles
		b.stall += uint64(r.Stall)
	}
	return nil
}

func (b *boxes) mean() float64 { return b.time / float64(max(b.n, 1)) }

func (b *boxes) stallShare() float64 {
	return float64(b.stall) / float64(max(b.cycles+b.stall, 1))
}

// WriteText writes the comparison for people.
func (r *ManipulationResult) WriteText(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "%v over %d bytes on the card, scenario %s, saturating source\n", r.Functions, r.Bytes, r.Scenario)
	fmt.Fprintln(w, "mode\tmodel, cycles\trouter handler, µs\tlost to memory\tgap, µs\t\tMB/s\tspeed-up\t")
	for _, x := range r.Rows {
		fmt.Fprintf(w, "%s\t%d\t%.1f\t%.2f %%\t%.1f\t± %.1f\t%.2f\t%.2f\t\n", x.Mode, x.Model, float64(x.Box.Mean), 100*float64(x.Stall), float64(x.Gap.Mean), x.Gap.Half(), float64(x.MBps), float64(x.Speedup))
	}
	return w.Flush()
}
