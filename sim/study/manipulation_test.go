package study

import (
	"bytes"
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"spinesim/sim"
)

// TestManipulation: the handler's time is what the model says beside routing,
// the gap follows it, and one pass is faster than three.
func TestManipulation(t *testing.T) {
	sc, err := sim.Load("ilp")
	if err != nil {
		t.Fatal(err)
	}
	r, err := Manipulation(context.Background(), sc, ManipulationOptions{Packets: 120, Replications: 2})
	if err != nil {
		t.Fatal(err)
	}
	by := map[string]ManipulationRow{}
	for _, x := range r.Rows {
		by[x.Mode] = x
	}
	none, seq, integrated, dma := by["none"], by["sequential"], by["integrated"], by["dma-checksum"]
	if !(none.Gap.Mean < dma.Gap.Mean && dma.Gap.Mean < integrated.Gap.Mean && integrated.Gap.Mean < seq.Gap.Mean) {
		t.Errorf("gaps %v none, %v DMA checksum, %v integrated, %v sequential", none.Gap.Mean, dma.Gap.Mean, integrated.Gap.Mean, seq.Gap.Mean)
	}
	if seq.Speedup != 1 || integrated.Speedup < 1.2 {
		t.Errorf("speed-ups %v sequential, %v integrated", seq.Speedup, integrated.Speedup)
	}
	const cycle = 0.03 // µs
	for _, x := range []ManipulationRow{seq, integrated, dma} {
		extra := float64(x.Box.Mean)*(1-float64(x.Stall)) - float64(none.Box.Mean)*(1-float64(none.Stall))
		if want := float64(x.Model) * cycle; math.Abs(extra-want) > 0.02*want {
			t.Errorf("%s: the handler runs %.2f µs longer without stalls, the model says %.2f", x.Mode, extra, want)
		}
	}
	var b bytes.Buffer
	if err := r.WriteText(&b); err != nil || !strings.Contains(b.String(), "dma-checksum") {
		t.Errorf("%v\n%s", err, b.String())
	}
	var in *sim.InputError
	if _, err := Manipulation(context.Background(), sc, ManipulationOptions{Functions: []string{"rot13"}, Packets: 10, Replications: 1}); !errors.As(err, &in) {
		t.Errorf("an unknown function: %v", err)
	}
	if _, err := Manipulation(context.Background(), sc, ManipulationOptions{Functions: []string{"bswap"}, Packets: 10, Replications: 1}); !errors.As(err, &in) {
		t.Errorf("a checksum by DMA without a checksum: %v", err)
	}
	imix, err := sim.Load("ilp", "traffic.sizes.kind=imix")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Manipulation(context.Background(), imix, ManipulationOptions{}); !errors.As(err, &in) {
		t.Errorf("sizes that differ: %v", err)
	}
}

// TestBatches: with larger batches the handler runs shorter and packets wait
// longer, up to the longest wait that the scenario allows.
func TestBatches(t *testing.T) {
	sc, err := sim.Load("l2")
	if err != nil {
		t.Fatal(err)
	}
	r, err := Batches(context.Background(), sc, BatchOptions{Sizes: []int{1, 4, 64}, Packets: 250, Replications: 2})
	if err != nil {
		t.Fatal(err)
	}
	for i, x := range r.Rows {
		switch {
		case x.Batch == 1 && x.Waiting.Mean != 0:
			t.Errorf("batches of one wait %v µs", x.Waiting.Mean)
		case i > 0 && (x.Handler.Mean >= r.Rows[i-1].Handler.Mean || x.Waiting.Mean <= 0 || x.Latency.Mean <= r.Rows[0].Latency.Mean):
			t.Errorf("batches of %d: %+v, after %+v", x.Batch, x, r.Rows[i-1])
		case x.Waiting.Mean > 500:
			t.Errorf("batches of %d wait %v µs, at most 500 are allowed", x.Batch, x.Waiting.Mean)
		}
	}
	var b bytes.Buffer
	if err := r.WriteText(&b); err != nil || !strings.Contains(b.String(), "latency") {
		t.Errorf("%v\n%s", err, b.String())
	}
}
