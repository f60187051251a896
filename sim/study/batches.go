package study

import (
	"context"
	"fmt"
	"io"
	"sync"
	"text/tabwriter"

	"spinesim/sim"
	"spinesim/sim/des"
	"spinesim/sim/study/internal/runs"
	"spinesim/traces"
)

// doneCount counts the work done by several goroutines.
type doneCount struct {
	mu sync.Mutex
	n  int64
}

func (d *doneCount) tell(p Progress, total int, what string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.n++
	if p != nil {
		p(d.n, int64(total), what)
	}
}

// BatchOptions are those of Batches.
type BatchOptions struct {
	// Sizes of the batches [1, 2, 4, … 256].
	Sizes []int
	// Packets offered to each ingress card a run [2,000], Replications [3]
	// (chosen).
	Packets      uint64
	Replications int
	Workers      int
	Progress     Progress
}

// BatchRow is one size of batches.
type BatchRow struct {
	Batch int `json:"batch"`
	// Saturated is the mean departure gap of an ingress card whose source is
	// never empty.
	Saturated Interval `json:"saturated_gap_us"`
	// Latency is the mean from a packet's header check to its departure at the
	// scenario's rate, of which Waiting is for the batch to fill.
	Latency Interval `json:"latency_us"`
	Waiting Interval `json:"waiting_us"`
	// Handler is the router handler's mean run.
	Handler Interval `json:"router_handler_us"`
}

// BatchResult is gap and latency against the size of batches.
type BatchResult struct {
	Scenario string     `json:"scenario"`
	Rows     []BatchRow `json:"rows"`
}

// Batches runs a scenario with batches of several sizes: under a saturating
// source for the gap, and as it is for the latency. Each card gets as many
// buffers more as a batch has packets, so that a batch can fill.
func Batches(ctx context.Context, sc *sim.Scenario, opt BatchOptions) (*BatchResult, error) {
	if len(opt.Sizes) == 0 {
		opt.Sizes = []int{1, 2, 4, 8, 16, 32, 64, 128, 256}
	}
	if opt.Packets == 0 {
		opt.Packets = 2000
	}
	if opt.Replications < 1 {
		opt.Replications = 3
	}
	type run struct{ gap, latency, waiting, handler float64 }
	measured := make([]run, len(opt.Sizes)*opt.Replications)
	var done doneCount
	err := runs.Each(ctx, opt.Workers, len(measured), func(ctx context.Context, i int) error {
		size := opt.Sizes[i/opt.Replications]
		m := *sc
		m.Seed += uint64(i % opt.Replications)
		m.Traffic.Packets = opt.Packets
		m.Firmware.Batch = size
		m.Firmware.Buffers += size
		w := &batchWaits{}
		b := &boxes{event: traces.RouterIn}
		r, err := sim.Run(ctx, &m, sim.Options{Sinks: []traces.Sink{w, b}})
		if err != nil {
			return fmt.Errorf("batches of %d: %w", size, err)
		}
		measured[i].latency, measured[i].handler = float64(r.Latency.Ingress.Mean), b.mean()
		if r.Received > 0 {
			measured[i].waiting = w.total.Microseconds() / float64(r.Received)
		}
		m.Traffic.Arrivals.Process = "saturating"
		if r, err = sim.Run(ctx, &m, sim.Options{}); err != nil {
			return fmt.Errorf("batches of %d, saturated: %w", size, err)
		}
		measured[i].gap = float64(r.Gap.Mean)
		done.tell(opt.Progress, len(measured), fmt.Sprintf("batches of %d", size))
		return nil
	})
	if err != nil {
		return nil, err
	}
	res := &BatchResult{Scenario: sc.Name}
	for k, size := range opt.Sizes {
		of := func(f func(*run) float64) Interval {
			var v []float64
			for i := range opt.Replications {
				v = append(v, f(&measured[k*opt.Replications+i]))
			}
			return NewInterval(v)
		}
		res.Rows = append(res.Rows, BatchRow{
			Batch: size, Saturated: of(func(r *run) float64 { return r.gap }), Latency: of(func(r *run) float64 { return r.latency }),
			Waiting: of(func(r *run) float64 { return r.waiting }), Handler: of(func(r *run) float64 { return r.handler }),
		})
	}
	return res, nil
}

// batchWaits sums up how long packets waited for their batch.
type batchWaits struct{ total des.Time }

// Record implements traces.Sink.
func (w *batchWaits) Record(r *traces.Record) error {
	if r.Kind == traces.KindWait && r.Reason == traces.ReasonBatch {
		w.total += r.End - r.Start
	}
	return nil
}

// WriteText writes the study for people.
func (r *BatchResult) WriteText(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "Batches on the cards, scenario %s: saturated gap, and latency at the scenario's rate\n", r.Scenario)
	fmt.Fprintln(w, "batch\trouter handler, µs\tgap, µs\t\tlatency, µs\t\twaiting for the batch, µs\t")
	for _, x := range r.Rows {
		fmt.Fprintf(w, "%d\t%.2f\t%.1f\t± %.1f\t%.1f\t± %.1f\t%.1f\t\n", x.Batch, float64(x.Handler.Mean), float64(x.Saturated.Mean), x.Saturated.Half(), float64(x.Latency.Mean), x.Latency.Half(), float64(x.Waiting.Mean))
	}
	return w.Flush()
}
