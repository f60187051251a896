package stats

import (
	"fmt"
	"math"
)

const (
	// mserSize observations make a first batch: the 5 of MSER-5.
	mserSize = 5
	// maxBatches is how many batches are kept before they are collapsed in
	// pairs (chosen: 16 kB, and at least 1,024 batches for finding the end of
	// the warm-up to a thousandth of the run).
	maxBatches = 2048
	// minBatches is how many are needed to look for a warm-up at all (chosen:
	// 200 observations).
	minBatches = 40
)

// Batches estimates the mean of a stream of correlated observations, such as
// the successive gaps or latencies of one run. It keeps at most 2,048 batch
// means of 5·2^k observations each. The zero value is ready; Add allocates
// once.
type Batches struct {
	means []float64
	size  uint64 // observations in a batch
	sum   float64
	n     uint64 // observations in the batch begun
	all   Moments
}

// Add takes the next observation.
func (b *Batches) Add(x float64) {
	if b.means == nil {
		b.means = make([]float64, 0, maxBatches)
		b.size = mserSize
	}
	b.all.Add(x)
	b.sum += x
	b.n++
	if b.n < b.size {
		return
	}
	b.means = append(b.means, b.sum/float64(b.size))
	b.sum, b.n = 0, 0
	if len(b.means) == maxBatches {
		b.means = collapse(b.means)
		b.size *= 2
	}
}

// collapse halves the number of batches by joining neighbours.
func collapse(m []float64) []float64 {
	for i := 0; i < len(m)/2; i++ {
		m[i] = (m[2*i] + m[2*i+1]) / 2
	}
	return m[:len(m)/2]
}

// N is how many observations were added.
func (b *Batches) N() uint64 { return b.all.N() }

// All gives the moments of every observation, warm-up included.
func (b *Batches) All() *Moments { return &b.all }

// Warmup tells how many leading observations belong to the warm-up as far as
// can be seen; settled is false when the run is too short to say.
func (b *Batches) Warmup() (n uint64, settled bool) {
	if len(b.means) < minBatches {
		return 0, false
	}
	d, ok := warmup(b.means)
	return uint64(d) * b.size, ok
}

// Estimate gives the mean after the warm-up with its confidence interval at
// the level, or says that the run was too short: below 200 observations, when
// the warm-up fills half the run, or when eight batches of what follows are
// still correlated. It may be called at any time, and does not change b.
func (b *Batches) Estimate(level float64) Estimate {
	e := batchMeans(b.means, b.size, level)
	if !e.OK() {
		e.Mean, e.N, e.Warmup = b.all.Mean(), b.all.N(), 0
	}
	return e
}

// TimeBatches estimates the mean over time of a level that changes in steps
// (utilisation, backlog), from one run: batches are equal spans of time, of
// which it keeps at most 2,048, doubling the span when they are full.
type TimeBatches struct {
	means []float64
	width int64
	end   int64 // of the batch begun
	area  float64
	level TimeAverage
}

// NewTimeBatches makes one whose first batches span width units of time each,
// which must be positive: a few times the usual spell between two changes.
func NewTimeBatches(width int64) (*TimeBatches, error) {
	if width <= 0 {
		return nil, fmt.Errorf("time batches: width %d, want a positive span", width)
	}
	return &TimeBatches{width: width, means: make([]float64, 0, maxBatches)}, nil
}

// Set says that the level is v from now on; errors as for TimeAverage.Set.
func (b *TimeBatches) Set(now int64, v float64) error {
	if !b.level.begun {
		if now > math.MaxInt64-b.width {
			return fmt.Errorf("time batches: a batch of %d from %d on overflows", b.width, now)
		}
		b.end = now + b.width
		return b.level.Set(now, v)
	}
	if err := b.Advance(now); err != nil {
		return err
	}
	return b.level.Set(now, v)
}

// Advance lets time pass with the level unchanged.
func (b *TimeBatches) Advance(now int64) error {
	from, v := b.level.now, b.level.level
	if err := b.level.Advance(now); err != nil || !b.level.begun {
		return err
	}
	for now >= b.end {
		b.area += v * float64(b.end-from)
		from = b.end
		b.means = append(b.means, b.area/float64(b.width))
		b.area = 0
		if len(b.means) == maxBatches {
			if b.width > math.MaxInt64/2 {
				return fmt.Errorf("time batches: a batch of twice %d overflows", b.width)
			}
			b.means = collapse(b.means)
			b.width *= 2
		}
		if b.end > math.MaxInt64-b.width {
			return fmt.Errorf("time batches: a batch of %d from %d on overflows", b.width, b.end)
		}
		b.end += b.width
	}
	b.area += v * float64(now-from)
	return nil
}

// All gives the average over all time, warm-up included.
func (b *TimeBatches) All() *TimeAverage { return &b.level }

// Estimate is that of Batches, with N and Warmup in units of time.
func (b *TimeBatches) Estimate(level float64) Estimate {
	e := batchMeans(b.means, uint64(b.width), level)
	if !e.OK() {
		e.Mean, e.N, e.Warmup = b.level.Mean(), uint64(b.level.Span()), 0
	}
	return e
}

// batchCounts are tried in turn until the batches look independent. Between
// 8 and 32 more batches buy little precision (Schmeiser 1982: 10 to 30).
var batchCounts = [...]int{32, 16, 8}

const (
	// correlationLimit is the one-sided 5 % point of the normal distribution.
	correlationLimit = 1.6448536269514722
	// hopeless is the lag-1 correlation above which joining batches further
	// would not help (chosen). A batch is then no longer than about one
	// correlation time; the run holds a few dozen of them at most, and with 8
	// batches the estimate of the correlation itself is biased so far down
	// that it would pass the test.
	hopeless = 0.5
)

// batchMeans leaves out the warm-up of a series of batch means and joins the
// rest into 32, 16 or 8 long batches, the most that pass von Neumann's test of
// independence; a lag-1 correlation above one half ends the attempt. What lag-1 correlation r > 0 they still show widens the
// interval by √((1 + r)/(1 − r)), the correction of a first-order
// autoregressive process (as in Skart: Tafazzoli and Wilson 2011).
func batchMeans(means []float64, size uint64, level float64) Estimate {
	e := Estimate{Level: level, Shortfall: TooFew}
	if len(means) < minBatches {
		return e
	}
	d, settled := warmup(means)
	if !settled {
		e.Shortfall = NotSettled
		return e
	}
	rest := means[d:]
	for _, k := range batchCounts {
		if len(rest) < k {
			continue
		}
		g := len(rest) / k
		use := rest[len(rest)-g*k:] // an incomplete long batch goes to the warm-up
		var m Moments
		var before, steps float64
		for i := range k {
			s := 0.0
			for _, v := range use[i*g : (i+1)*g] {
				s += v
			}
			s /= float64(g)
			m.Add(s)
			if i > 0 {
				steps += float64((s - before) * (s - before))
			}
			before = s
		}
		r := 0.0
		if m.m2 > 0 {
			r = 1 - steps/(2*m.m2)
		}
		n := float64(k)
		if r > hopeless {
			e.Shortfall = Correlated
			return e
		}
		if r > correlationLimit*math.Sqrt((n-2)/float64(n*n-1)) {
			e.Shortfall = Correlated
			continue
		}
		half := studentT(level, n-1) * math.Sqrt(m.Variance()/n)
		if r > 0 {
			half *= math.Sqrt((1 + r) / (1 - r))
		}
		return Estimate{
			Mean: m.Mean(), Half: half, Level: level, Batches: k,
			N: uint64(g*k) * size, Warmup: uint64(len(means)-g*k) * size,
		}
	}
	return e
}
