package study

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"spinesim/sim/stats"
	"spinesim/traces"
)

// ErrNoRate reports that a search found no rate on one side of the bound.
var ErrNoRate = errors.New("no rate found")

// trial is what one run at one rate gives.
type trial struct {
	offered, lost uint64
	gap           float64 // mean, µs
	latency, p99  float64 // through the ingress card, µs
}

// Probe is one rate of a search with what it lost.
type Probe struct {
	Rate         traces.Real   `json:"rate"`    // packets/s into each ingress card
	Packets      uint64        `json:"packets"` // a run, for each ingress card
	Replications int           `json:"replications"`
	Offered      uint64        `json:"offered"` // packets of all runs
	Lost         uint64        `json:"lost"`
	Loss         Interval      `json:"loss"`   // share; the mean is Lost/Offered
	Losses       []traces.Real `json:"losses"` // of the replications, by seed
	Gap          Interval      `json:"gap_us"`
	Latency      Interval      `json:"latency_us"`     // ingress card, mean
	LatencyP99   Interval      `json:"latency_p99_us"` // ingress card
	Pass         bool          `json:"pass"`           // Lost/Offered ≤ the bound
	Decided      bool          `json:"decided"`        // the interval of the loss leaves the bound out
}

// search is a search for the highest rate whose loss is at most a bound. The
// loss is noisy and, apart from noise, does not fall with the rate.
type search struct {
	bound        float64
	start, most  float64 // first rate; rate beyond which there is nothing to find
	first, last  uint64  // packets a run: of the first stage, of the last
	replications int
	resolution   float64 // width of the last bracket relative to its rate
	// measure makes the trials of several rates, replications by replication.
	measure func(ctx context.Context, rates []float64, packets uint64) ([][]trial, error)

	probes []Probe
}

const (
	// growth is the factor between the packets of two stages (chosen).
	growth = 4
	// coarse is the relative width of a bracket that ends a stage before the
	// last (chosen: a run of a few thousand packets cannot tell more).
	coarse = 0.03
	// maxSteps bounds a bracketing (chosen: a factor of 1.3 each, 1:10^6).
	maxSteps = 54
	// minRate in packets/s: below it nothing is searched.
	minRate = 1
)

// found is the result of a search.
type found struct {
	pass, fail Probe // ends of the last bracket
	// root is where the loss meets the bound, by interpolation, and the ends
	// of its interval; NaN where there is none.
	root, low, high float64
	unbounded       bool // the highest rate there is passes
}

// round keeps five significant digits, so that a rate can be written down and
// run again.
func round(rate float64) float64 {
	if rate <= 0 || math.IsInf(rate, 0) || math.IsNaN(rate) {
		return rate
	}
	e := math.Pow(10, math.Floor(math.Log10(rate))-4)
	if e < 1 {
		inverse := math.Round(1 / e)
		return math.Round(rate*inverse) / inverse
	}
	return math.Round(rate/e) * e
}

// clip rounds a rate and keeps it from lying beyond the highest, or so near
// below it that both are written the same.
func (s *search) clip(rate float64) float64 {
	if rate >= s.most*(1-1e-4) {
		return s.most
	}
	return round(rate)
}

// probe measures rates, all with so many packets a run.
func (s *search) probe(ctx context.Context, packets uint64, rates ...float64) ([]Probe, error) {
	trials, err := s.measure(ctx, rates, packets)
	if err != nil {
		return nil, err
	}
	out := make([]Probe, len(rates))
	for i, ts := range trials {
		p := Probe{Rate: traces.Real(rates[i]), Packets: packets, Replications: len(ts)}
		var loss, gap, lat, p99 []float64
		for _, t := range ts {
			p.Offered += t.offered
			p.Lost += t.lost
			l := float64(t.lost) / float64(max(t.offered, 1))
			loss, gap, lat, p99 = append(loss, l), append(gap, t.gap), append(lat, t.latency), append(p99, t.p99)
			p.Losses = append(p.Losses, traces.Real(l))
		}
		p.Loss, p.Gap, p.Latency, p.LatencyP99 = NewInterval(loss), NewInterval(gap), NewInterval(lat), NewInterval(p99)
		p.Pass = float64(p.Lost) <= s.bound*float64(p.Offered)
		if p.Loss.OK() {
			p.Decided = float64(p.Loss.High) < s.bound || float64(p.Loss.Low) > s.bound
		}
		if s.bound == 0 {
			p.Decided = p.Lost > 0
		}
		out[i] = p
	}
	s.probes = append(s.probes, out...)
	return out, nil
}

// run searches. On an error, the probes made until then are kept.
func (s *search) run(ctx context.Context) (found, error) {
	packets := min(s.first, s.last)
	lo, hi, err := s.bracket(ctx, packets, s.clip(s.start))
	if err != nil || hi == nil {
		if err == nil {
			return s.unbounded(ctx, packets, lo)
		}
		return found{}, err
	}
	for {
		width := coarse
		if packets == s.last {
			width = s.resolution
		}
		if lo, hi, err = s.narrow(ctx, packets, *lo, *hi, width); err != nil {
			return found{}, err
		}
		if packets == s.last {
			break
		}
		centre, noise := s.root(packets, *lo, *hi), s.noise(packets, *lo, *hi)
		packets = min(packets*growth, s.last)
		// Longer runs are less noisy, so a bracket somewhat narrower than the
		// present uncertainty is the likeliest to need no widening.
		half := float64(hi.Rate-lo.Rate) / 2
		if noise > half {
			half = min(noise, 2*coarse*centre)
		}
		half *= 0.7
		if packets == s.last {
			half = max(half, s.resolution*centre/2)
		}
		if lo, hi, err = s.around(ctx, packets, centre, half); err != nil {
			return found{}, err
		}
		if hi == nil {
			return s.unbounded(ctx, packets, lo)
		}
	}
	f := found{pass: *lo, fail: *hi, low: math.NaN(), high: math.NaN()}
	f.root = s.root(packets, *lo, *hi)
	if n := s.noise(packets, *lo, *hi); !math.IsNaN(n) {
		least, most := s.decided(packets)
		f.low = min(max(f.root-n, least), float64(lo.Rate))
		f.high = max(min(f.root+n, most), float64(hi.Rate))
	}
	return f, nil
}

// unbounded is the end of a search in which the highest rate there is passes:
// it is confirmed with the longest runs.
func (s *search) unbounded(ctx context.Context, packets uint64, lo *Probe) (found, error) {
	if packets != s.last {
		p, err := s.probe(ctx, s.last, s.most)
		if err != nil {
			return found{}, err
		}
		if !p[0].Pass {
			s.start, s.first = s.most*0.99, s.last
			return s.run(ctx)
		}
		lo = &p[0]
	}
	return found{pass: *lo, root: s.most, low: s.most, high: s.most, unbounded: true}, nil
}

// bracket looks for a rate that passes and one that fails, from a first guess.
// Without a failing one, hi is nil: the highest rate passes.
func (s *search) bracket(ctx context.Context, packets uint64, rate float64) (lo, hi *Probe, err error) {
	for range maxSteps {
		ps, err := s.probe(ctx, packets, rate)
		if err != nil {
			return nil, nil, err
		}
		p := ps[0]
		loss := float64(p.Lost) / float64(max(p.Offered, 1))
		if p.Pass {
			lo = &p
			if rate >= s.most {
				return lo, nil, nil
			}
			if rate *= 1.3; loss > s.bound/8 {
				rate /= 1.2 // it is near
			}
		} else {
			hi = &p
			// What came through is about what it can carry.
			if rate = min(rate*0.96, rate*max(1-loss, 0.3)*0.99); rate < minRate {
				return nil, nil, fmt.Errorf("%w: %.3g %% are lost even at %v packets/s", ErrNoRate, 100*loss, p.Rate)
			}
		}
		if lo != nil && hi != nil {
			return lo, hi, nil
		}
		rate = s.clip(rate)
	}
	return nil, nil, fmt.Errorf("%w: none beyond the bound up to %.4g packets/s", ErrNoRate, rate)
}

// around brackets with two rates on either side of a guess, moving out where
// the guess was wrong.
func (s *search) around(ctx context.Context, packets uint64, centre, half float64) (lo, hi *Probe, err error) {
	a, b := round(max(centre-half, minRate)), s.clip(centre+half)
	if a >= b {
		a = round(b * (1 - s.resolution))
	}
	ps, err := s.probe(ctx, packets, a, b)
	if err != nil {
		return nil, nil, err
	}
	for range maxSteps {
		low, high := ps[0], ps[len(ps)-1]
		switch {
		case !low.Pass:
			// Not even the lower one: it becomes the upper one.
			half *= 2
			rate := round(max(float64(low.Rate)-half, minRate))
			if rate >= float64(low.Rate) {
				return nil, nil, fmt.Errorf("%w: %v of the packets are lost even at %v packets/s", ErrNoRate, low.Loss.Mean, low.Rate)
			}
			next, err := s.probe(ctx, packets, rate)
			if err != nil {
				return nil, nil, err
			}
			ps = []Probe{next[0], low}
		case high.Pass:
			half *= 2
			rate := s.clip(float64(high.Rate) + half)
			if rate <= float64(high.Rate) {
				return &high, nil, nil
			}
			next, err := s.probe(ctx, packets, rate)
			if err != nil {
				return nil, nil, err
			}
			ps = []Probe{high, next[0]}
		default:
			return &low, &high, nil
		}
	}
	return nil, nil, fmt.Errorf("%w: no bracket about %.4g packets/s", ErrNoRate, centre)
}

// narrow shrinks a bracket to a relative width.
func (s *search) narrow(ctx context.Context, packets uint64, lo, hi Probe, width float64) (*Probe, *Probe, error) {
	for range maxSteps {
		a, b := float64(lo.Rate), float64(hi.Rate)
		if b-a <= width*a*(1+1e-9) {
			break
		}
		// The interpolated root, but off it by a third of what is asked for
		// towards the middle: the side that is cut off is then the longer one.
		x := s.root(packets, lo, hi)
		if x < (a+b)/2 {
			x += width * a / 3
		} else {
			x -= width * a / 3
		}
		x = round(min(max(x, a+0.1*(b-a)), b-0.1*(b-a)))
		if x <= a || x >= b {
			break // the bracket is as narrow as rates are written
		}
		ps, err := s.probe(ctx, packets, x)
		if err != nil {
			return nil, nil, err
		}
		if ps[0].Pass {
			lo = ps[0]
		} else {
			hi = ps[0]
		}
	}
	return &lo, &hi, nil
}

// logLoss is the logarithm of a probe's loss; half a packet is added, so that
// no loss at all has one too.
func logLoss(p *Probe) float64 {
	return math.Log((float64(p.Lost) + 0.5) / (float64(p.Offered) + 1))
}

// root is where the loss meets the bound between a passing and a failing
// probe, the logarithm of the loss taken as a straight line. With a bound of 0
// it is the middle.
func (s *search) root(packets uint64, lo, hi Probe) float64 {
	a, b := float64(lo.Rate), float64(hi.Rate)
	if s.bound == 0 {
		return (a + b) / 2
	}
	la, lb, want := logLoss(&lo), logLoss(&hi), math.Log(s.bound)
	if !(lb > la) {
		return (a + b) / 2
	}
	return min(max(a+(b-a)*(want-la)/(lb-la), a), b)
}

// noise is how far the root may be off, at 95 %, since the losses of the
// replications differ: half the interval of the loss, divided by the slope of
// the loss against the rate. NaN when that cannot be told.
func (s *search) noise(packets uint64, lo, hi Probe) float64 {
	if s.bound == 0 || s.replications < 2 {
		return math.NaN()
	}
	root := s.root(packets, lo, hi)
	slope := s.slope(packets, root)
	// The relative half-width of the end whose loss is the nearer.
	near := lo
	if math.Abs(logLoss(&hi)-math.Log(s.bound)) < math.Abs(logLoss(&lo)-math.Log(s.bound)) {
		near = hi
	}
	half := near.Loss.Half()
	if !(slope > 0) || math.IsNaN(half) || near.Loss.Mean <= 0 {
		return math.NaN()
	}
	return half / float64(near.Loss.Mean) / slope
}

// slope of the logarithm of the loss against the rate near a rate, by least
// squares over the probes of a stage that lie nearest: the loss may rise slowly
// at first and then within a percent. Probes that lost nothing only say that
// the slope is no less than with half a packet, and count where nothing else
// does.
func (s *search) slope(packets uint64, near float64) float64 {
	for _, lossless := range []bool{false, true} {
		for window := 0.01; window < 0.3; window *= 2 {
			if v := s.fit(packets, near, window*near, lossless); v > 0 {
				return v
			}
		}
	}
	return math.NaN()
}

// fit is the slope over the probes of a stage within a distance of a rate; NaN
// below two of them.
func (s *search) fit(packets uint64, near, within float64, lossless bool) float64 {
	var x, y []float64
	var mx, my stats.Moments
	for i := range s.probes {
		p := &s.probes[i]
		r := float64(p.Rate)
		if p.Packets != packets || math.Abs(r-near) > within || p.Lost == 0 && !lossless {
			continue
		}
		x, y = append(x, r), append(y, logLoss(p))
		mx.Add(r)
		my.Add(y[len(y)-1])
	}
	var sxy, sxx float64
	for i := range x {
		sxy += (x[i] - mx.Mean()) * (y[i] - my.Mean())
		sxx += (x[i] - mx.Mean()) * (x[i] - mx.Mean())
	}
	if sxx == 0 {
		return math.NaN()
	}
	return sxy / sxx
}

// decided is the span of rates that the probes of a stage leave for the root:
// above all that surely pass, below all that surely fail.
func (s *search) decided(packets uint64) (low, high float64) {
	low, high = 0, s.most
	for i := range s.probes {
		p := &s.probes[i]
		if p.Packets == packets && p.Decided && !p.Pass {
			high = min(high, float64(p.Rate))
		}
	}
	for i := range s.probes {
		p := &s.probes[i]
		if r := float64(p.Rate); p.Packets == packets && p.Decided && p.Pass && r < high {
			low = max(low, r)
		}
	}
	return low, high
}

// falls lists pairs of rates of the last stage at which the loss, beyond the
// noise, falls while the rate rises: the search's assumption does not hold
// there.
func (s *search) falls() [][2]float64 {
	var last []Probe
	for _, p := range s.probes {
		if p.Packets == s.last {
			last = append(last, p)
		}
	}
	slices.SortFunc(last, func(a, b Probe) int {
		switch {
		case a.Rate < b.Rate:
			return -1
		case a.Rate > b.Rate:
			return 1
		}
		return 0
	})
	var out [][2]float64
	for i := 1; i < len(last); i++ {
		a, b := &last[i-1], &last[i]
		if a.Loss.OK() && b.Loss.OK() && a.Loss.Low > b.Loss.High && a.Rate < b.Rate {
			out = append(out, [2]float64{float64(a.Rate), float64(b.Rate)})
		}
	}
	return out
}
