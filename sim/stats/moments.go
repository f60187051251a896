package stats

import "math"

// Moments are the running count, mean, variance and extremes of a stream of
// values. The zero value is empty and ready. Adding neither allocates nor
// loses accuracy by cancellation.
type Moments struct {
	n        uint64
	mean, m2 float64
	min, max float64
}

// Add takes one more value. It must be finite; a NaN or an infinity makes the
// mean and all that follows from it NaN or infinite.
func (m *Moments) Add(x float64) {
	m.n++
	if m.n == 1 {
		m.mean, m.min, m.max = x, x, x
		return
	}
	d := x - m.mean
	m.mean += d / float64(m.n)
	// The conversion keeps the product from being fused with the sum, which
	// would make the last bit depend on the processor.
	m.m2 += float64(d * (x - m.mean))
	m.min = min(m.min, x)
	m.max = max(m.max, x)
}

// Merge adds everything that o has seen.
func (m *Moments) Merge(o *Moments) {
	if o.n == 0 {
		return
	}
	if m.n == 0 {
		*m = *o
		return
	}
	na, nb := float64(m.n), float64(o.n)
	n := na + nb
	d := o.mean - m.mean
	m.mean += float64(d*nb) / n
	m.m2 += o.m2 + float64(float64(d*d)*float64(na*nb))/n
	m.n += o.n
	m.min = math.Min(m.min, o.min)
	m.max = math.Max(m.max, o.max)
}

// N is how many values were added.
func (m *Moments) N() uint64 { return m.n }

// Mean is NaN when nothing was added.
func (m *Moments) Mean() float64 {
	if m.n == 0 {
		return math.NaN()
	}
	return m.mean
}

// Sum of the values, as count times mean; 0 when nothing was added.
func (m *Moments) Sum() float64 { return m.mean * float64(m.n) }

// Variance is the unbiased sample variance (divisor n − 1); NaN below two
// values.
func (m *Moments) Variance() float64 {
	if m.n < 2 {
		return math.NaN()
	}
	return m.m2 / float64(m.n-1)
}

// StdDev is the square root of Variance.
func (m *Moments) StdDev() float64 { return math.Sqrt(m.Variance()) }

// Min is the smallest value; NaN when nothing was added.
func (m *Moments) Min() float64 {
	if m.n == 0 {
		return math.NaN()
	}
	return m.min
}

// Max is the largest value; NaN when nothing was added.
func (m *Moments) Max() float64 {
	if m.n == 0 {
		return math.NaN()
	}
	return m.max
}

// Estimate is the mean with a Student-t interval that holds when the values
// were independent of each other, as those of separate runs are. For the
// successive values of one run use Batches. level lies between 0 and 1.
func (m *Moments) Estimate(level float64) Estimate {
	e := Estimate{Mean: m.Mean(), Level: level, N: m.n, Batches: int(min(m.n, math.MaxInt32))}
	if m.n < 2 {
		e.Shortfall = TooFew
		return e
	}
	e.Half = studentT(level, float64(m.n-1)) * math.Sqrt(m.Variance()/float64(m.n))
	return e
}
