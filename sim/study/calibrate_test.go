package study

import (
	"bytes"
	"context"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"spinesim/sim"
	"spinesim/traces"
)

// sameReal holds figures that could not be given for the same.
var sameReal = cmp.Comparer(func(a, b traces.Real) bool {
	return a == b || math.IsNaN(float64(a)) && math.IsNaN(float64(b))
})

// twoPairs is a calibration of two pairs that ends in seconds.
var twoPairs = CalibrateOptions{Polls: []int{8, 12}, Waits: []int{2}, ScaleLow: 0.7, ScaleHigh: 1.5, Packets: 1200, Reading: BestWindow}

// TestCalibrate: the best machine is the one of all tried with the least
// residual, those as good are within the margin, every figure is that of
// measuring the machine, and the number of workers changes nothing.
func TestCalibrate(t *testing.T) {
	sc := scenario(t, "fig6.4")
	opt := twoPairs
	opt.Workers = 2
	c, err := Calibrate(t.Context(), sc, opt)
	if err != nil {
		t.Fatal(err)
	}
	opt.Workers = 1
	again, err := Calibrate(t.Context(), sc, opt)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(c, again, sameReal); d != "" {
		t.Errorf("one worker and two (-two +one):\n%s", d)
	}
	least := traces.Real(math.Inf(1))
	pairs := map[int]traces.Real{}
	for _, f := range c.Tried {
		if f.Poll != 8 && f.Poll != 12 || f.PeerWait != 2 || f.Scale < 0.7 || f.Scale > 1.5 {
			t.Errorf("%v is outside the grid", f.Machine)
		}
		gap, latency := float64(f.BestGap)/55-1, float64(f.FastLatency)/100-1
		if want := math.Sqrt((gap*gap + latency*latency) / 2); math.Abs(float64(f.Residual)-want) > 1e-9 {
			t.Errorf("%v: residual %v, want %v of gap %v and latency %v", f.Machine, f.Residual, want, f.BestGap, f.FastLatency)
		}
		least = min(least, f.Residual)
		if b, ok := pairs[f.Poll]; !ok || f.Residual < b {
			pairs[f.Poll] = f.Residual
		}
	}
	if c.Best.Residual != least {
		t.Errorf("best residual %v, the least tried is %v", c.Best.Residual, least)
	}
	equal := 0
	for _, r := range pairs {
		if r <= least+traces.Real(c.Margin) {
			equal++
		}
	}
	if len(c.Equal) != equal || c.Equal[0].Machine != c.Best.Machine {
		t.Errorf("%d machines as good, want %d, the best one first", len(c.Equal), equal)
	}
	one, err := MeasureMachine(t.Context(), sc, c.Best.Machine, c.Reading, twoPairs.Packets)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(&c.Best, one, sameReal); d != "" {
		t.Errorf("the best machine measured by itself (-calibration +alone):\n%s", d)
	}

	// What is written is that machine.
	var b bytes.Buffer
	if err := c.WriteScenario(&b, "fig6.4"); err != nil {
		t.Fatal(err)
	}
	fitted, err := sim.Parse(b.Bytes(), "fitted.yaml", "")
	if err != nil {
		t.Fatalf("%v\n%s", err, b.String())
	}
	want, err := c.Best.Apply(sc).Hash()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := fitted.Hash(); got != want {
		t.Errorf("the scenario written is another: %s, %v, want %s\n%s", got, err, want, b.String())
	}
	for _, h := range []string{"Rx check header", "Free buffer", "Router In handler"} {
		if !strings.Contains(b.String(), "#   "+h) {
			t.Errorf("no cost of %s in the scenario", h)
		}
	}
	b.Reset()
	if err := c.WriteText(&b); err != nil || !strings.Contains(b.String(), c.Best.Machine.String()) {
		t.Errorf("text does not name the best machine (%v):\n%s", err, b.String())
	}
}

// TestCalibrateIsBlind: the published average is no part of a calibration.
func TestCalibrateIsBlind(t *testing.T) {
	f := Fit{BestGap: PublishedBestGap, FastLatency: PublishedFastLatency, Rate: 1}
	if r := f.residual(); r != 0 {
		t.Errorf("a machine that gives the published figures at another average has a residual of %v", r)
	}
}

// TestCalibrateWithoutRate: a machine that loses too much at any rate, for it
// cannot take the burst that the traffic begins with, is listed, and the others
// are fitted.
func TestCalibrateWithoutRate(t *testing.T) {
	sc := scenario(t, "fig6.4", "traffic.arrivals.first=31", "traffic.fifo=24", "firmware.buffers=3", "policy=pci-first")
	opt := twoPairs
	opt.Polls, opt.ScaleLow, opt.ScaleHigh = []int{8, 900}, 0.3, 0.3
	c, err := Calibrate(t.Context(), sc, opt)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.WithoutRate) == 0 || len(c.WithoutRate) == len(c.Tried) {
		t.Fatalf("%d of %d machines without a rate, want some", len(c.WithoutRate), len(c.Tried))
	}
	for _, f := range c.WithoutRate {
		if f.Poll != 900 || f.Rate.OK() || f.Residual.OK() || !strings.Contains(f.NoRate, "no rate found") {
			t.Errorf("%+v", f)
		}
	}
	if c.Best.Poll != 8 || !c.Best.Rate.OK() {
		t.Errorf("best %+v", c.Best)
	}
	var b bytes.Buffer
	if err := c.WriteText(&b); err != nil || !strings.Contains(b.String(), "at no rate") || !strings.Contains(b.String(), c.WithoutRate[0].Machine.String()) {
		t.Errorf("text does not list them (%v):\n%s", err, b.String())
	}
	opt.Polls = []int{900}
	if _, err := Calibrate(t.Context(), sc, opt); err == nil || !strings.Contains(err.Error(), "no rate found") {
		t.Errorf("%v, want an error that says why no machine has a rate", err)
	}
}

func TestCalibrateNowhere(t *testing.T) {
	opt := twoPairs
	opt.Polls, opt.Packets = []int{8}, 60 // all of them before the windows' warm-up
	_, err := Calibrate(t.Context(), scenario(t, "fig6.4"), opt)
	if err == nil || !strings.Contains(err.Error(), "fast window") {
		t.Errorf("%v, want an error that no machine had a fast window", err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, err := Calibrate(ctx, scenario(t, "fig6.4"), opt); err == nil {
		t.Error("an ended context is no error")
	}
}
