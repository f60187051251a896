package study

import (
	"context"
	"fmt"
	"io"
	"math"
	"sync/atomic"
	"text/tabwriter"

	"spinesim/sim"
	"spinesim/sim/study/internal/runs"
	"spinesim/traces"
)

// PublishedAverage is the published average time a packet in µs (thesis p.108):
// what a prediction is compared with, never what anything is fitted to.
const PublishedAverage = 95.0

// Choice is one way of setting what the sources leave open.
type Choice struct {
	Name   string
	Change func(*sim.Scenario)
}

// Choices are the ways over which a prediction is a band: each differs from the
// default experiment in one thing.
func Choices() []Choice {
	set := func(name string, f func(*sim.Scenario)) Choice { return Choice{name, f} }
	out := []Choice{set("default experiment", func(*sim.Scenario) {})}
	for _, m := range []string{"whole", "ring"} {
		out = append(out, set("receive: "+m, func(s *sim.Scenario) { s.Firmware.Receive = m }))
	}
	for _, n := range []int{4, 8, 32, 64} {
		out = append(out, set(fmt.Sprintf("%d buffers", n), func(s *sim.Scenario) { s.Firmware.Buffers = n }))
	}
	for _, n := range []int{4, 8, 32, 64} {
		out = append(out, set(fmt.Sprintf("FIFO of %d", n), func(s *sim.Scenario) { s.Traffic.FIFO = n }))
	}
	out = append(out,
		set("constant rate", func(s *sim.Scenario) { s.Traffic.Arrivals.Process, s.Traffic.Arrivals.Senders = "constant", 1 }),
		set("three constant senders", func(s *sim.Scenario) { s.Traffic.Arrivals.Process = "constant" }),
		set("jittered", func(s *sim.Scenario) {
			s.Traffic.Arrivals.Process, s.Traffic.Arrivals.Senders, s.Traffic.Arrivals.Jitter = "jittered", 1, 1
		}),
		set("one Poisson sender", func(s *sim.Scenario) { s.Traffic.Arrivals.Senders = 1 }),
	)
	return out
}

// Prediction is the mean gap at the highest rate within the loss bound, for
// every machine that fits and every choice.
type Prediction struct {
	Published traces.Real `json:"published_us"`
	// Low and High are the ends of the band over the choices, for the default
	// order; FirstLow and FirstHigh the same for pci-first.
	Low       traces.Real     `json:"low_us"`
	High      traces.Real     `json:"high_us"`
	FirstLow  traces.Real     `json:"pci_first_low_us"`
	FirstHigh traces.Real     `json:"pci_first_high_us"`
	Rows      []PredictionRow `json:"rows"`
	Seed      uint64          `json:"seed"`
	Version   string          `json:"version"`
}

// PredictionRow is one machine under one choice.
type PredictionRow struct {
	Machine  Machine   `json:"machine"`
	Choice   string    `json:"choice"`
	Default  Predicted `json:"default"`
	PCIFirst Predicted `json:"pci_first"`
}

// Predicted is the mean gap at the highest rate, with the ends of its 95 %
// interval, which is that of the rate search, and the saturated gap.
type Predicted struct {
	Gap       traces.Real `json:"gap_us"`
	Low       traces.Real `json:"gap_low_us"`
	High      traces.Real `json:"gap_high_us"`
	Saturated traces.Real `json:"saturated_us"`
}

// PredictOptions are those of Predict; zero values stand for defaults.
type PredictOptions struct {
	Packets      uint64 // of a run in the last stage [20,000]
	Replications int    // [4]
	Workers      int
	Progress     Progress
}

// Predict computes the prediction: every machine under the default experiment,
// and the first machine under every other choice.
func Predict(ctx context.Context, sc *sim.Scenario, machines []Machine, opt PredictOptions) (*Prediction, error) {
	if opt.Packets == 0 {
		opt.Packets = 20_000
	}
	if opt.Replications == 0 {
		opt.Replications = 4
	}
	p := &Prediction{Published: PublishedAverage, Seed: sc.Seed, Version: sim.Version}
	type job struct {
		row    int
		policy string
	}
	var jobs []job
	var scs []*sim.Scenario
	for i, m := range machines {
		for j, c := range Choices() {
			if i > 0 && j > 0 {
				continue
			}
			p.Rows = append(p.Rows, PredictionRow{Machine: m, Choice: c.Name})
			for _, policy := range []string{"default", "pci-first"} {
				jobs = append(jobs, job{len(p.Rows) - 1, policy})
				s := runs.With(m.Apply(sc), c.Change)
				s.Policy = policy
				scs = append(scs, s)
			}
		}
	}
	var done atomic.Int64
	rep := runs.NewReporter(opt.Progress, int64(len(jobs)), &done)
	err := runs.Each(ctx, opt.Workers, len(jobs), func(ctx context.Context, i int) error {
		got, err := predictOne(ctx, scs[i], opt)
		if err != nil {
			return err
		}
		row := &p.Rows[jobs[i].row]
		if jobs[i].policy == "default" {
			row.Default = *got
		} else {
			row.PCIFirst = *got
		}
		rep.Add(1, row.Choice)
		return nil
	})
	if err != nil {
		return nil, err
	}
	p.Low, p.High = band(p.Rows, func(r *PredictionRow) traces.Real { return r.Default.Gap })
	p.FirstLow, p.FirstHigh = band(p.Rows, func(r *PredictionRow) traces.Real { return r.PCIFirst.Gap })
	return p, nil
}

// band is the least and the most of a figure, of the rows that have it: under
// some choices no rate may stay within the loss bound.
func band(rows []PredictionRow, of func(*PredictionRow) traces.Real) (low, high traces.Real) {
	low, high = traces.Real(math.NaN()), traces.Real(math.NaN())
	for i := range rows {
		v := of(&rows[i])
		if math.IsNaN(float64(v)) {
			continue
		}
		if !(v >= low) {
			low = v
		}
		if !(v <= high) {
			high = v
		}
	}
	return low, high
}

func predictOne(ctx context.Context, sc *sim.Scenario, opt PredictOptions) (*Predicted, error) {
	r, err := MaxRate(ctx, sc, MaxRateOptions{
		Loss: sc.Measure.LossLimit, Packets: opt.Packets, FirstPackets: max(1, opt.Packets/4), Replications: opt.Replications, Resolution: 0.005, Workers: 1,
	})
	if err != nil {
		return nil, err
	}
	sat := runs.With(sc, func(s *sim.Scenario) {
		s.Traffic.Arrivals.Process, s.Traffic.Packets = "saturating", opt.Packets
		s.Traffic.FIFO = max(2, s.Traffic.FIFO)
	})
	res, err := sim.Run(ctx, sat, sim.Options{})
	if err != nil {
		return nil, err
	}
	return &Predicted{Gap: r.Gap, Low: r.GapLow, High: r.GapHigh, Saturated: res.Gap.Mean}, nil
}

// WriteText prints the prediction for people.
func (p *Prediction) WriteText(w io.Writer) error {
	fmt.Fprintf(w, "mean gap at the highest rate within the loss bound, in µs (published: %.0f; predicted, never fitted)\n", float64(p.Published))
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "scale\tpoll\twait\tchoice\tdefault order\tsaturated\tpci-first\tsaturated\t")
	for _, r := range p.Rows {
		fmt.Fprintf(t, "%.3f\t%d\t%d\t%s\t%.1f (%.1f … %.1f)\t%.1f\t%.1f (%.1f … %.1f)\t%.1f\t\n", r.Machine.Scale, r.Machine.Poll, r.Machine.PeerWait, r.Choice,
			float64(r.Default.Gap), float64(r.Default.Low), float64(r.Default.High), float64(r.Default.Saturated),
			float64(r.PCIFirst.Gap), float64(r.PCIFirst.Low), float64(r.PCIFirst.High), float64(r.PCIFirst.Saturated))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "band: default order %.1f … %.1f µs, pci-first %.1f … %.1f µs\n", float64(p.Low), float64(p.High), float64(p.FirstLow), float64(p.FirstHigh))
	return err
}
