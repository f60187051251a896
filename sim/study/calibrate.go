package study

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"sync/atomic"
	"text/tabwriter"

	"spinesim/sim"
	"spinesim/sim/des"
	"spinesim/sim/study/internal/runs"
	"spinesim/sim/traffic"
	"spinesim/spine"
	"spinesim/traces"
)

// The published figures that the fit may use (thesis p.108–109). The published
// average is not among them, and nothing in this file knows it.
const (
	PublishedRouterHandler = 4.0   // µs, "Router In handler", from 16 to 20 µs in the figure
	PublishedBestGap       = 55.0  // µs a packet, best-case ordering
	PublishedFastLatency   = 100.0 // µs through the ingress card, best case
)

// Machine is a value for each of the free parameters.
type Machine struct {
	Scale    float64 `json:"scale"`       // common factor on every handler but the router handler
	Poll     int     `json:"poll_cycles"` // cost of a poll
	PeerWait int     `json:"peer_wait"`   // wait states a data phase of the peer target
}

func (m Machine) String() string {
	return fmt.Sprintf("scale %.3f, poll %d cycles, %d wait states", m.Scale, m.Poll, m.PeerWait)
}

// Apply lays the machine over a scenario.
func (m Machine) Apply(sc *sim.Scenario) *sim.Scenario {
	return runs.With(sc, func(c *sim.Scenario) {
		c.Firmware.Factors = spine.SameFactors(m.Scale)
		c.Firmware.Poll, c.Bus.PeerWait = des.Cycles(m.Poll), m.PeerWait
	})
}

// Reading is a way to measure the best case.
type Reading string

// The readings.
const (
	// FastWindows is how the model's rules define it: the median period, and
	// the mean latency, within fast windows of the whole run. It includes the
	// time that the source leaves the router idle in them.
	FastWindows Reading = "fast-windows"
	// BestWindow is how the thesis reads it off its figure: the mean of three
	// periods in a row, and the latency of a packet, in the fastest one-for-one
	// stretch of the run. It was added after the fit by FastWindows had been
	// seen to leave large residuals.
	BestWindow Reading = "best-window"
)

// Fit is a machine with what it gives, measured in the default experiment: at
// the highest rate whose loss is below the bound.
type Fit struct {
	Machine
	Rate          traces.Real `json:"rate"`            // packets/s at which it was measured
	RouterHandler traces.Real `json:"router_us"`       // mean run of the router handler
	BestGap       traces.Real `json:"best_gap_us"`     // median period in fast windows
	BestGapN      uint64      `json:"best_gap_n"`      // periods that the median is of
	FastLatency   traces.Real `json:"fast_latency_us"` // mean in fast windows
	Residual      traces.Real `json:"residual"`        // root mean square of the relative residuals
	// NoRate is why the machine has no rate, and so nothing was measured.
	NoRate string `json:"no_rate,omitempty"`
}

// residual is the root mean square of the relative residuals of the figures
// that the free parameters can move; the router handler's is reported beside.
func (f *Fit) residual() traces.Real {
	a := float64(f.BestGap)/PublishedBestGap - 1
	b := float64(f.FastLatency)/PublishedFastLatency - 1
	if math.IsNaN(a) || math.IsNaN(b) {
		return traces.Real(math.Inf(1))
	}
	return traces.Real(math.Sqrt((a*a + b*b) / 2))
}

// CalibrateOptions are those of Calibrate; zero values stand for defaults.
type CalibrateOptions struct {
	// Reading is how the best case is measured [FastWindows].
	Reading Reading
	// Polls and Waits are the grid of the two whole-numbered parameters.
	Polls, Waits []int
	// ScaleLow and ScaleHigh bound the scale.
	ScaleLow, ScaleHigh float64
	// Packets of the run that measures a machine [60,000].
	Packets uint64
	// Margin is how much worse than the best a fit may be to count as equally
	// good [0.01: the published figures are round numbers of two digits].
	Margin  float64
	Workers int
	Progress
}

func (o CalibrateOptions) filled() CalibrateOptions {
	if o.Polls == nil {
		o.Polls = []int{4, 6, 8, 10, 12, 14, 16, 20, 24}
	}
	if o.Waits == nil {
		o.Waits = []int{0, 1, 2, 3, 4}
	}
	if o.ScaleLow == 0 {
		o.ScaleLow, o.ScaleHigh = 0.3, 3
	}
	if o.Reading == "" {
		o.Reading = FastWindows
	}
	if o.Packets == 0 {
		o.Packets = 60_000
	}
	if o.Margin == 0 {
		o.Margin = 0.01
	}
	return o
}

// Calibration is what a fit gives.
type Calibration struct {
	Best  Fit   `json:"best"`
	Equal []Fit `json:"equally_good"` // Best among them, in order of residual
	Tried []Fit `json:"tried"`
	// WithoutRate are the machines tried that carry the traffic at no rate, by
	// the search for it; they are no candidates.
	WithoutRate []Fit   `json:"without_rate,omitempty"`
	Margin      float64 `json:"margin"`
	Reading     Reading `json:"reading"`
	// Published are the figures fitted to.
	Published map[string]float64 `json:"published"`
	Seed      uint64             `json:"seed"`
	Version   string             `json:"version"`
}

// Calibrate fits the free parameters to the published figures in the given
// experiment. For every pair of poll cost and wait states it searches the scale
// that leaves the smallest residual; three figures cannot pin down three
// parameters, so all machines that do equally well are part of the result.
func Calibrate(ctx context.Context, sc *sim.Scenario, opt CalibrateOptions) (*Calibration, error) {
	opt = opt.filled()
	type pair struct{ poll, wait int }
	var pairs []pair
	for _, w := range opt.Waits {
		for _, p := range opt.Polls {
			pairs = append(pairs, pair{p, w})
		}
	}
	tried := make([][]Fit, len(pairs))
	var done atomic.Int64
	rep := runs.NewReporter(opt.Progress, int64(len(pairs)), &done)
	err := runs.Each(ctx, opt.Workers, len(pairs), func(ctx context.Context, i int) error {
		fits, err := fitScale(ctx, sc, pairs[i].poll, pairs[i].wait, opt)
		tried[i] = fits
		if err == nil {
			rep.Add(1, fmt.Sprintf("poll %d, wait %d", pairs[i].poll, pairs[i].wait))
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	c := &Calibration{
		Margin: opt.Margin, Reading: opt.Reading, Seed: sc.Seed, Version: sim.Version,
		Published: map[string]float64{"router_us": PublishedRouterHandler, "best_gap_us": PublishedBestGap, "fast_latency_us": PublishedFastLatency},
	}
	var best []Fit
	for _, fits := range tried {
		c.Tried = append(c.Tried, fits...)
		best = append(best, slices.MinFunc(fits, byResidual))
	}
	slices.SortStableFunc(best, byResidual)
	c.Best = best[0]
	for _, f := range c.Tried {
		if f.NoRate != "" {
			c.WithoutRate = append(c.WithoutRate, f)
		}
	}
	if math.IsInf(float64(c.Best.Residual), 0) {
		if n := len(c.WithoutRate); n == len(c.Tried) {
			return nil, fmt.Errorf("none of the grid's %d machines has a rate; %v: %s", n, c.Best.Machine, c.Best.NoRate)
		}
		return nil, errors.New("no machine in the grid had a fast window")
	}
	for _, f := range best {
		if f.Residual <= c.Best.Residual+traces.Real(opt.Margin) {
			c.Equal = append(c.Equal, f)
		}
	}
	return c, nil
}

func byResidual(a, b Fit) int {
	switch {
	case a.Residual < b.Residual:
		return -1
	case a.Residual > b.Residual:
		return 1
	}
	return 0
}

// fitScale looks for the scale with the smallest residual: over a coarse
// geometric grid, then by halving the steps round the best.
func fitScale(ctx context.Context, sc *sim.Scenario, poll, wait int, opt CalibrateOptions) ([]Fit, error) {
	const coarse, halvings = 6, 3
	step := math.Pow(opt.ScaleHigh/opt.ScaleLow, 1.0/(coarse-1))
	var fits []Fit
	measure := func(scale float64) error {
		scale = math.Round(scale*1000) / 1000
		for _, f := range fits {
			if f.Scale == scale {
				return nil
			}
		}
		f, err := MeasureMachine(ctx, sc, Machine{scale, poll, wait}, opt.Reading, opt.Packets)
		if err == nil {
			fits = append(fits, *f)
		}
		return err
	}
	s := opt.ScaleLow
	for range coarse {
		if err := measure(s); err != nil {
			return nil, err
		}
		s *= step
	}
	for range halvings {
		step = math.Sqrt(step)
		best := slices.MinFunc(fits, byResidual).Scale
		for _, near := range []float64{best / step, best * step} {
			if near < opt.ScaleLow || near > opt.ScaleHigh {
				continue
			}
			if err := measure(near); err != nil {
				return nil, err
			}
		}
	}
	return fits, nil
}

// MeasureMachine measures the fitted figures of one machine in an experiment:
// it finds the highest rate within the loss bound, and runs there. A machine
// that has none is no error: its Fit says why, and has an infinite residual.
func MeasureMachine(ctx context.Context, sc *sim.Scenario, m Machine, reading Reading, packets uint64) (*Fit, error) {
	c := m.Apply(sc)
	rate, err := MaxRate(ctx, c, MaxRateOptions{
		Loss: sc.Measure.LossLimit, Packets: packets / 3, FirstPackets: packets / 12, Replications: 2, Resolution: 0.02, Workers: 1,
	})
	if errors.Is(err, ErrNoRate) {
		return withoutRate(m, err.Error()), nil
	}
	if err != nil {
		return nil, fmt.Errorf("%v: %w", m, err)
	}
	if !rate.Found() {
		return withoutRate(m, ErrNoRate.Error()), nil
	}
	r, err := traffic.PacketsPerSecond(float64(rate.Rate))
	if err != nil {
		return nil, err
	}
	c = runs.With(c, func(c *sim.Scenario) { c.Traffic.Arrivals.Rate, c.Traffic.Packets = r, packets })
	w := &sim.Windows{Card: uint8(c.Traffic.Ingress[0]), Skip: 64}
	res, err := sim.Run(ctx, c, sim.Options{Sinks: []traces.Sink{w}})
	if err != nil {
		return nil, fmt.Errorf("%v: %w", m, err)
	}
	f := &Fit{
		Machine: m, Rate: rate.Rate, RouterHandler: handlerMean(res, traces.RouterIn),
		BestGap: res.Gap.BestCase, BestGapN: res.Gap.BestCaseN, FastLatency: res.Latency.Ingress.Fast,
	}
	if reading == BestWindow {
		best := w.Best()
		f.BestGap, f.BestGapN = traces.Real(math.NaN()), 0
		if best.Found && best.Latency > 0 {
			f.BestGap, f.BestGapN = traces.Real(best.Period.Microseconds()), 3
			f.FastLatency = traces.Real(best.Latency.Microseconds())
		}
	}
	f.Residual = f.residual()
	return f, nil
}

func withoutRate(m Machine, why string) *Fit {
	nan := traces.Real(math.NaN())
	return &Fit{Machine: m, Rate: nan, RouterHandler: nan, BestGap: nan, FastLatency: nan, Residual: traces.Real(math.Inf(1)), NoRate: why}
}

// handlerMean is the mean run of a handler on the first ingress card, in µs.
func handlerMean(r *sim.Result, e traces.Event) traces.Real {
	for _, c := range r.Utilisation.Cards {
		for _, u := range c.Events {
			if u.Event == e.String() {
				return u.Mean
			}
		}
	}
	return traces.Real(math.NaN())
}

// WriteText prints the fit for people.
func (c *Calibration) WriteText(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "figure (thesis p.108–109)\tpublished\tfitted\tresidual\t")
	row := func(name string, published float64, got traces.Real) {
		fmt.Fprintf(t, "%s\t%.1f µs\t%.2f µs\t%+.1f %%\t\n", name, published, float64(got), 100*(float64(got)/published-1))
	}
	row("router handler", PublishedRouterHandler, c.Best.RouterHandler)
	row("best-case gap", PublishedBestGap, c.Best.BestGap)
	row("latency, best case", PublishedFastLatency, c.Best.FastLatency)
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(w, "\nbest case read from %s\nbest: %v; %d of %d machines are as good within %.1f %%:\n", c.Reading, c.Best.Machine, len(c.Equal), len(c.Tried), 100*c.Margin)
	t = tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "scale\tpoll\twait states\tbest gap\tlatency\tresidual\tat packets/s\t")
	for _, f := range c.Equal {
		fmt.Fprintf(t, "%.3f\t%d\t%d\t%.2f\t%.2f\t%.2f %%\t%.0f\t\n", f.Scale, f.Poll, f.PeerWait, float64(f.BestGap), float64(f.FastLatency), 100*float64(f.Residual), float64(f.Rate))
	}
	if err := t.Flush(); err != nil || len(c.WithoutRate) == 0 {
		return err
	}
	fmt.Fprintf(w, "\n%d of the machines tried carry the traffic at no rate, and are no candidates:\n", len(c.WithoutRate))
	for _, f := range c.WithoutRate {
		if _, err := fmt.Fprintf(w, "  %v: %s\n", f.Machine, f.NoRate); err != nil {
			return err
		}
	}
	return nil
}

// WriteScenario writes the fitted machine as a scenario, with the cost of every
// handler and where it comes from.
func (c *Calibration) WriteScenario(w io.Writer, extends string) error {
	f := c.Best
	table := spine.FactoredCosts(spine.SameFactors(f.Scale), int32(f.Poll))
	fmt.Fprintf(w, "# Fitted by spinesim %s to the router handler's run, the best-case gap and the\n", c.Version)
	fmt.Fprintf(w, "# best-case latency (thesis p.108–109); seed %d. Residuals: gap %+.1f %%, latency\n", c.Seed, 100*(float64(f.BestGap)/PublishedBestGap-1))
	fmt.Fprintf(w, "# %+.1f %%. %d other machines of the grid fit as well within %.1f %%.\n", 100*(float64(f.FastLatency)/PublishedFastLatency-1), len(c.Equal)-1, 100*c.Margin)
	fmt.Fprintf(w, "name: fitted\nextends: %s\nbus:\n  peer_wait: %d\nfirmware:\n  poll: %d cycles\n  factors:\n", extends, f.PeerWait, f.Poll)
	for _, g := range []string{"receive", "dma", "flow", "send"} {
		fmt.Fprintf(w, "    %s: %g\n", g, f.Scale)
	}
	fmt.Fprintln(w, "# The costs that follow from it:")
	for _, h := range spine.Handlers {
		cost := table.Handler[h]
		if _, err := fmt.Fprintf(w, "#   %-20s %4d cycles, %3d loads and stores; %s\n", h.String()+":", cost.Cycles, cost.Accesses, cost.Source); err != nil {
			return err
		}
	}
	return nil
}
