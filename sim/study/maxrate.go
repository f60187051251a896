package study

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"

	"spinesim/lanai"
	"spinesim/sim"
	"spinesim/sim/study/internal/runs"
	"spinesim/sim/traffic"
	"spinesim/traces"
)

// MaxRateOptions are those of a search for the highest rate. The zero value of
// a field stands for its default; start from DefaultMaxRate for the bound.
type MaxRateOptions struct {
	// Loss is the share of packets that may be lost: 0.005 is PDR (thesis
	// p.108: less than 0.5 %), 0 is NDR.
	Loss float64
	// Packets a run offers to each ingress card in the last stage [50,000,
	// chosen]. More: less noise, in proportion to the root.
	Packets uint64
	// FirstPackets is the same of the first stage, which only brackets; each
	// stage has four times the packets of the one before [4,000 or Packets].
	FirstPackets uint64
	// Replications at each rate, under the scenario's seed and those that
	// follow it [8].
	Replications int
	// Resolution is the width of the last bracket relative to its rate
	// [0.0025].
	Resolution float64
	// Start is the first rate tried, in packets/s [the scenario's].
	Start float64
	// Workers is how many runs go on at once [GOMAXPROCS].
	Workers int
	// Progress is told the packets simulated and an estimate of all.
	Progress Progress
}

// DefaultMaxRate searches the PDR.
func DefaultMaxRate() MaxRateOptions { return MaxRateOptions{Loss: 0.005} }

func (o MaxRateOptions) filled(sc *sim.Scenario) (MaxRateOptions, error) {
	if !(o.Loss >= 0 && o.Loss < 1) {
		return o, runs.InputErrorf("loss bound %g, want 0 to less than 1", o.Loss)
	}
	if o.Packets == 0 {
		o.Packets = 50_000
	}
	if o.FirstPackets == 0 {
		o.FirstPackets = 4_000
	}
	o.FirstPackets = min(o.FirstPackets, o.Packets)
	if o.Replications == 0 {
		o.Replications = 8
	}
	if o.Replications < 1 || o.Replications > 10_000 {
		return o, runs.InputErrorf("%d replications, want 1 to 10000", o.Replications)
	}
	if o.Resolution == 0 {
		o.Resolution = 0.0025
	}
	if !(o.Resolution >= 1e-4 && o.Resolution <= 0.5) {
		return o, runs.InputErrorf("resolution %g, want 0.0001 to 0.5", o.Resolution)
	}
	if o.Start == 0 {
		if o.Start = sc.Traffic.Arrivals.Rate.PerSecond(); o.Start == 0 {
			o.Start = 10_000
		}
	}
	if !(o.Start >= minRate && o.Start <= 1e9) {
		return o, runs.InputErrorf("first rate %g packets/s, want %d to 1e9", o.Start, minRate)
	}
	return o, nil
}

// MaxRateResult is the highest rate found, with everything it rests on. Rates
// are in packets/s into each ingress card, times in µs.
type MaxRateResult struct {
	Scenario     string      `json:"scenario"`
	ScenarioHash string      `json:"scenario_hash"`
	Policy       string      `json:"policy"`
	Process      string      `json:"process"`    // arrival process
	Bytes        traces.Real `json:"bytes"`      // mean length of a packet from its IP header on
	Seed         uint64      `json:"seed"`       // of the first replication; the others follow it
	LossBound    traces.Real `json:"loss_bound"` // share
	// Saturating: the source is never empty and loses nothing, so that there
	// is no rate to search; Gap is the saturated gap and Rate its inverse.
	Saturating bool `json:"saturating"`
	// Rate is the highest rate at which runs kept to the bound while the next
	// higher one tried did not. It can be run again as it is.
	Rate traces.Real `json:"rate"`
	// Low and High are the ends of the 95 % interval of the rate at which the
	// loss meets the bound, the last bracket included; Root lies between.
	Root traces.Real `json:"root"`
	Low  traces.Real `json:"low"`
	High traces.Real `json:"high"`
	// Gap is 1/Rate in µs, GapLow and GapHigh 1/High and 1/Low.
	Gap     traces.Real `json:"gap_us"`
	GapLow  traces.Real `json:"gap_low_us"`
	GapHigh traces.Real `json:"gap_high_us"`
	// Resolution is the width of the last bracket, relative to Rate.
	Resolution traces.Real `json:"resolution"`
	// AtWire: the rate at which packets fill the wire is carried; the wire is
	// the limit.
	AtWire bool `json:"at_wire,omitempty"`
	// MeasuredGap is the mean gap between departures of the runs at Rate. Its
	// interval covers the replications and the search: the gap at Low and at
	// High differs by GapLow and GapHigh.
	MeasuredGap Interval    `json:"measured_gap_us"`
	Latency     Interval    `json:"latency_us"`     // ingress card, mean, at Rate
	LatencyP99  Interval    `json:"latency_p99_us"` // ingress card, at Rate
	Loss        Interval    `json:"loss"`           // at Rate
	Probes      []Probe     `json:"probes"`         // every rate tried, in order
	Packets     uint64      `json:"packets"`        // simulated, over all runs
	Version     string      `json:"version"`
	Interrupted bool        `json:"interrupted,omitempty"`
	Notes       []string    `json:"notes,omitempty"`
	Wire        traces.Real `json:"wire_rate"` // rate at which packets fill the wire; null if unknown
}

// Found tells whether there is a rate.
func (r *MaxRateResult) Found() bool { return r.Rate > 0 }

// replicate is replication i of a scenario.
func replicate(sc *sim.Scenario, i int) *sim.Scenario {
	return runs.With(sc, func(c *sim.Scenario) { c.Seed += uint64(i) })
}

// congestion are the reasons for which an overloaded router loses packets, by
// name; refused packets are not losses.
var congestion = [...]string{traces.ReasonFIFOFull.String(), traces.ReasonNoBufferDiscard.String()}

// lostPackets counts those that the router had no room for.
func lostPackets(r *sim.Result) uint64 {
	var n uint64
	for _, name := range congestion {
		n += r.Dropped[name]
	}
	return n
}

// saturates tells whether a scenario's source is never empty.
func saturates(sc *sim.Scenario) bool {
	if c := sc.Traffic.Capture; c != nil {
		return c.Pace == "link"
	}
	return sc.Traffic.Arrivals.Process == "saturating"
}

// meanBytes is the mean length of a scenario's packets; 0 for a capture.
func meanBytes(sc *sim.Scenario) float64 {
	if sc.Traffic.Capture != nil {
		return 0
	}
	z := &sc.Traffic.Sizes
	var s traffic.Sizes
	switch z.Kind {
	case "fixed":
		return float64(z.Bytes)
	case "imix":
		s = traffic.IMIX()
	case "rfc2544":
		s = traffic.RFC2544()
	default:
		var lengths []int
		for _, l := range z.Lengths {
			lengths = append(lengths, int(l))
		}
		s, _ = traffic.Empirical(lengths, z.Weights) // a bad mix has mean 0; the run refuses it
	}
	return s.Mean()
}

// wireRate is the rate at which a scenario's packets fill the wire; infinite
// for a capture.
func wireRate(sc *sim.Scenario) float64 {
	link := lanai.Lanai4().Link
	if sc.Card.Preset == "lanai9" {
		link = lanai.Lanai9().Link
	}
	if sc.Card.Wire != nil {
		link = *sc.Card.Wire
	}
	b := meanBytes(sc)
	if b == 0 {
		return math.Inf(1)
	}
	return link.BytesPerSecond() / b
}

// MaxRate searches the highest rate that a scenario carries with at most the
// given loss, for its own arrival process. All rates meet the same random
// numbers. A search goes through stages of growing runs: the first brackets
// the rate, each further one starts around what the one before found, and the
// last narrows the bracket to the resolution. The result keeps every rate
// tried.
//
// A source that never runs empty has no such rate; its saturated gap is
// reported instead. A mistake in the scenario or the options is an
// *sim.InputError. When the context ends, the result so far comes with its
// error.
func MaxRate(ctx context.Context, sc *sim.Scenario, opt MaxRateOptions) (*MaxRateResult, error) {
	if err := sc.Validate(); err != nil {
		return nil, err
	}
	opt, err := opt.filled(sc)
	if err != nil {
		return nil, err
	}
	if c := sc.Traffic.Capture; c != nil && c.Pace == "stamps" {
		return nil, runs.InputErrorf("traffic.capture.pace: a capture by its time stamps has one rate; want rate or link")
	}
	hash, err := sc.Hash()
	if err != nil {
		return nil, err
	}
	nan := traces.Real(math.NaN())
	r := &MaxRateResult{
		Scenario: sc.Name, ScenarioHash: hash, Policy: sc.Policy, Process: sc.Traffic.Arrivals.Process,
		Bytes: traces.Real(meanBytes(sc)), Seed: sc.Seed, LossBound: traces.Real(opt.Loss), Version: sim.Version,
		Saturating: saturates(sc), Wire: traces.Real(wireRate(sc)),
		Root: nan, Low: nan, High: nan, Gap: nan, GapLow: nan, GapHigh: nan,
		Probes: []Probe{}, Resolution: traces.Real(opt.Resolution),
	}
	m := &rateMeter{sc: sc, opt: &opt}
	if r.Saturating {
		err = r.saturated(ctx, m)
	} else {
		s := &search{
			bound: opt.Loss, start: opt.Start, most: wireRate(sc), first: opt.FirstPackets, last: opt.Packets,
			replications: opt.Replications, resolution: opt.Resolution, measure: m.measure,
		}
		var f found
		f, err = s.run(ctx)
		r.Probes = append(r.Probes, s.probes...)
		if err == nil {
			r.fill(&f, s)
		}
	}
	r.Packets = m.offered.Load()
	if err != nil && ctx.Err() != nil {
		r.Interrupted = true
		err = ctx.Err()
	}
	if errors.Is(err, ErrNoRate) {
		return r, &sim.InputError{Err: fmt.Errorf("scenario %s: %w", sc.Name, err)}
	}
	return r, err
}

// fill takes over what a search found.
func (r *MaxRateResult) fill(f *found, s *search) {
	p := &f.pass
	r.Rate, r.Root, r.Low, r.High = p.Rate, traces.Real(f.root), traces.Real(f.low), traces.Real(f.high)
	r.Gap, r.GapLow, r.GapHigh = 1e6/r.Rate, 1e6/r.High, 1e6/r.Low
	r.AtWire = f.unbounded
	if !f.unbounded {
		r.Resolution = (f.fail.Rate - p.Rate) / p.Rate
	}
	r.Latency, r.LatencyP99, r.Loss = p.Latency, p.LatencyP99, p.Loss
	r.MeasuredGap = p.Gap
	if p.Gap.OK() && r.Low.OK() {
		// The replications' own half-width and the search's, as independent.
		half := math.Hypot(p.Gap.Half(), float64(r.GapHigh-r.GapLow)/2)
		r.MeasuredGap.Low, r.MeasuredGap.High = p.Gap.Mean-traces.Real(half), p.Gap.Mean+traces.Real(half)
	}
	switch {
	case f.unbounded:
		r.Notes = append(r.Notes, fmt.Sprintf("the wire is the limit: at %v packets/s it is full", p.Rate))
	case s.bound == 0:
		r.Notes = append(r.Notes, fmt.Sprintf("none of %d packets was lost at this rate; longer runs may lose some", p.Offered))
	case !r.Low.OK():
		r.Notes = append(r.Notes, "no interval: it takes at least two replications that lose packets on both sides of the bound")
	}
	for _, d := range s.falls() {
		r.Notes = append(r.Notes, fmt.Sprintf("the loss falls between %.5g and %.5g packets/s: the rate is not the only one with this loss", d[0], d[1]))
	}
}

// saturated measures the saturated gap.
func (r *MaxRateResult) saturated(ctx context.Context, m *rateMeter) error {
	ts, err := m.measure(ctx, []float64{0}, m.opt.Packets)
	if err != nil {
		return err
	}
	var gap, lat, p99, loss []float64
	for _, t := range ts[0] {
		gap, lat, p99 = append(gap, t.gap), append(lat, t.latency), append(p99, t.p99)
		loss = append(loss, float64(t.lost)/float64(max(t.offered, 1)))
	}
	r.MeasuredGap, r.Latency, r.LatencyP99, r.Loss = NewInterval(gap), NewInterval(lat), NewInterval(p99), NewInterval(loss)
	g := r.MeasuredGap
	r.Gap, r.GapLow, r.GapHigh = g.Mean, g.Low, g.High
	r.Rate, r.Root, r.Low, r.High = 1e6/g.Mean, 1e6/g.Mean, 1e6/g.High, 1e6/g.Low
	r.Notes = append(r.Notes, "saturating source: it loses nothing, this is the saturated gap and not the highest rate with a loss")
	return nil
}

// rateMeter runs a scenario at given rates.
type rateMeter struct {
	sc      *sim.Scenario
	opt     *MaxRateOptions
	offered atomic.Uint64
	done    atomic.Int64
	total   int64
}

// measure runs all replications of all rates at once.
func (m *rateMeter) measure(ctx context.Context, rates []float64, packets uint64) ([][]trial, error) {
	reps := m.opt.Replications
	out := make([][]trial, len(rates))
	for i := range out {
		out[i] = make([]trial, reps)
	}
	per := int64(packets) * int64(len(m.sc.Traffic.Ingress))
	// What is to come: this call, and about five rates of the last stage.
	m.total = max(m.total, m.done.Load()+per*int64(reps*len(rates)))
	if packets < m.opt.Packets {
		m.total = max(m.total, m.done.Load()+5*int64(m.opt.Packets)*int64(reps*len(m.sc.Traffic.Ingress)))
	}
	report := runs.NewReporter(m.opt.Progress, m.total, &m.done)
	err := runs.Each(ctx, m.opt.Workers, len(rates)*reps, func(ctx context.Context, k int) error {
		i, j := k/reps, k%reps
		sc := replicate(m.sc, j)
		sc.Traffic.Packets = packets
		if rates[i] > 0 {
			var err error
			if sc.Traffic.Arrivals.Rate, err = traffic.PacketsPerSecond(rates[i]); err != nil {
				return runs.InputErrorf("traffic.arrivals.rate: %w", err)
			}
		}
		r, err := sim.Run(ctx, sc, sim.Options{})
		if err != nil {
			return fmt.Errorf("%s at %.5g packets/s, seed %d: %w", sc.Name, rates[i], sc.Seed, err)
		}
		m.offered.Add(r.Received)
		out[i][j] = trial{
			offered: r.Received, lost: lostPackets(r), gap: float64(r.Gap.Mean),
			latency: float64(r.Latency.Ingress.Mean), p99: float64(r.Latency.Ingress.P99),
		}
		report.Add(per, fmt.Sprintf("%.5g packets/s", rates[i]))
		return nil
	})
	return out, err
}
