package study

import (
	"context"
	"fmt"
	"slices"

	"spinesim/sim"
	"spinesim/sim/des"
	"spinesim/sim/study/internal/runs"
	"spinesim/sim/traffic"
)

// processes are the arrival processes in the order of tables.
var processes = [...]string{"constant", "jittered", "poisson", "bursts", "saturating"}

// Processes lists the arrival processes in the order in which tables have
// them.
func Processes() []string { return slices.Clone(processes[:]) }

// ethernetFraming is header and check sequence of an Ethernet frame, by which
// RFC 2544's frame sizes are longer than packets.
const ethernetFraming = 18

// TableOptions are those of a table of highest rates.
type TableOptions struct {
	MaxRateOptions
	// Bytes are the lengths of packets from the IP header on; nil for those
	// of RFC 2544's frames (section 9.1), an empty list for the scenario's own
	// sizes.
	Bytes []int
	// Processes are the arrival processes; nil for the scenario's own.
	// Jittered and bursts take what the scenario says of them, else a jitter
	// of half the mean gap, and bursts and pauses of 1 ms (chosen).
	Processes []string
	// Each is told every row when it is there.
	Each func(*MaxRateResult)
}

// MaxRateTableResult is a table of highest rates, process by process and, in
// each, size by size.
type MaxRateTableResult struct {
	Rows        []*MaxRateResult `json:"rows"`
	Interrupted bool             `json:"interrupted,omitempty"`
}

// MaxRateTable searches the highest rate for every frame size and arrival
// process, as RFC 2544 asks for (section 26.1, with replications and an
// interval beyond it). When the context ends, the rows so far come with its
// error.
func MaxRateTable(ctx context.Context, sc *sim.Scenario, opt TableOptions) (*MaxRateTableResult, error) {
	if sc.Traffic.Capture != nil {
		return nil, runs.InputErrorf("traffic.capture: a capture has its own sizes and times; a table needs synthetic traffic")
	}
	sizes := opt.Bytes
	if sizes == nil {
		sizes = traffic.RFC2544Packets()
	}
	procs := opt.Processes
	if procs == nil {
		procs = []string{sc.Traffic.Arrivals.Process}
	}
	var cells []*sim.Scenario
	for _, p := range procs {
		if !slices.Contains(processes[:], p) {
			return nil, runs.InputErrorf("arrival process %q, want one of %v", p, processes)
		}
		base := runs.With(sc, func(c *sim.Scenario) {
			a := &c.Traffic.Arrivals
			a.Process = p
			if p == "jittered" && a.Jitter == 0 {
				a.Jitter = 0.5
			}
			if p == "bursts" && a.On == 0 && a.Off == 0 {
				a.On, a.Off = des.Millisecond, des.Millisecond
			}
		})
		if len(sizes) == 0 {
			cells = append(cells, base)
		}
		for _, b := range sizes {
			cells = append(cells, runs.With(base, func(c *sim.Scenario) {
				c.Traffic.Sizes = sim.SizeSpec{Kind: "fixed", Bytes: des.Bytes(b)}
			}))
		}
	}
	// A mistake anywhere should show before hours of runs, not after them.
	for _, c := range cells {
		if _, err := opt.filled(c); err != nil {
			return nil, err
		}
		if saturates(c) {
			continue
		}
		if !c.Traffic.Arrivals.Rate.Set() {
			var err error
			if c.Traffic.Arrivals.Rate, err = traffic.PacketsPerSecond(10_000); err != nil {
				return nil, err
			}
		}
		if err := c.Validate(); err != nil {
			return nil, err
		}
	}
	t := &MaxRateTableResult{Rows: []*MaxRateResult{}}
	start := opt.Start
	for i, c := range cells {
		o := opt.MaxRateOptions
		// Neighbours in the table have similar rates.
		o.Start = start
		if tell := opt.Progress; tell != nil {
			o.Progress = func(done, total int64, what string) {
				// Cells cost about the same: show them as equal shares.
				const whole = 1000
				tell(int64(i)*whole+done*whole/max(total, 1), int64(len(cells))*whole, fmt.Sprintf("row %d of %d, %s", i+1, len(cells), what))
			}
		}
		r, err := MaxRate(ctx, c, o)
		if r != nil {
			t.Rows = append(t.Rows, r)
			if r.Found() && !r.Saturating {
				start = float64(r.Rate)
			}
			if opt.Each != nil {
				opt.Each(r)
			}
		}
		if err != nil {
			t.Interrupted = ctx.Err() != nil
			return t, err
		}
	}
	return t, nil
}

// Frame is the Ethernet frame size that RFC 2544 tables name for a row's
// packets.
func (r *MaxRateResult) Frame() float64 { return float64(r.Bytes) + ethernetFraming }
