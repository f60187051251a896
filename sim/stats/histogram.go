package stats

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
)

// ErrPrecision reports a merge of histograms whose buckets differ.
var ErrPrecision = errors.New("histograms differ in precision")

// Histogram counts int64 values in buckets that are at most 2·RelativeError
// of a value wide, over the whole range of int64. Small values are counted
// exactly. The memory is fixed when it is made (about 60 kB for an error of
// 0.4 %); the first negative value doubles it, once.
//
// Layout: with b bits of precision, values below 2^(b+1) have a bucket each;
// above that every power of two is cut into 2^b buckets of equal width.
type Histogram struct {
	bits     uint
	pos, neg []uint64 // by magnitude
	n        uint64
	min, max int64
	sum      Moments
}

// NewHistogram makes a histogram whose quantiles are off by at most
// relativeError of the true value, between 2^-17 and 0.5.
func NewHistogram(relativeError float64) (*Histogram, error) {
	if !(relativeError >= 1.0/(1<<17) && relativeError <= 0.5) {
		return nil, fmt.Errorf("histogram: relative error %g, want between 2^-17 and 0.5", relativeError)
	}
	// A bucket of width 2^k starts at 2^(b+k) or above, and answers with its
	// middle, so that the error is at most 2^-(b+1).
	b := uint(0)
	for math.Ldexp(1, -int(b+1)) > relativeError {
		b++
	}
	h := &Histogram{bits: b}
	h.pos = make([]uint64, h.buckets())
	return h, nil
}

// buckets for magnitudes 0 … 2^63: one power of two more than int64 needs, for
// the magnitude of the least int64.
func (h *Histogram) buckets() int { return int(64-h.bits+1) << h.bits }

// RelativeError is the bound that the buckets give, at most the one asked for.
func (h *Histogram) RelativeError() float64 { return math.Ldexp(1, -int(h.bits+1)) }

func (h *Histogram) index(m uint64) int {
	n := uint(bits.Len64(m))
	if n <= h.bits+1 {
		return int(m)
	}
	shift := n - h.bits - 1
	return int(uint64(shift)<<h.bits + m>>shift)
}

// bounds gives the least and greatest magnitude of a bucket.
func (h *Histogram) bounds(i int) (low, high uint64) {
	if i < 2<<h.bits {
		return uint64(i), uint64(i)
	}
	shift := uint(i)>>h.bits - 1
	low = (uint64(i) - uint64(shift)<<h.bits) << shift
	return low, low + 1<<shift - 1
}

func magnitude(v int64) uint64 {
	if v < 0 {
		return uint64(-(v + 1)) + 1
	}
	return uint64(v)
}

// Add counts one value.
func (h *Histogram) Add(v int64) { h.AddN(v, 1) }

// AddN counts a value n times. The mean sees it n times too.
func (h *Histogram) AddN(v int64, n uint64) {
	if n == 0 {
		return
	}
	if h.n == 0 || v < h.min {
		h.min = v
	}
	if h.n == 0 || v > h.max {
		h.max = v
	}
	h.n += n
	if n == 1 {
		h.sum.Add(float64(v))
	} else {
		x := float64(v)
		h.sum.Merge(&Moments{n: n, mean: x, min: x, max: x})
	}
	i := h.index(magnitude(v))
	if v >= 0 {
		h.pos[i] += n
		return
	}
	if h.neg == nil {
		h.neg = make([]uint64, h.buckets())
	}
	h.neg[i] += n
}

// Merge adds all that o counted. Both must have been made with the same
// precision, else the error is ErrPrecision and h is unchanged.
func (h *Histogram) Merge(o *Histogram) error {
	if h.bits != o.bits {
		return fmt.Errorf("%w: %g and %g", ErrPrecision, h.RelativeError(), o.RelativeError())
	}
	if o.n == 0 {
		return nil
	}
	if h.n == 0 || o.min < h.min {
		h.min = o.min
	}
	if h.n == 0 || o.max > h.max {
		h.max = o.max
	}
	h.n += o.n
	h.sum.Merge(&o.sum)
	for i, c := range o.pos {
		h.pos[i] += c
	}
	if o.neg != nil && h.neg == nil {
		h.neg = make([]uint64, h.buckets())
	}
	for i, c := range o.neg {
		h.neg[i] += c
	}
	return nil
}

// Reset forgets every value and keeps the memory.
func (h *Histogram) Reset() {
	clear(h.pos)
	clear(h.neg)
	h.n, h.min, h.max, h.sum = 0, 0, 0, Moments{}
}

// N is how many values were counted.
func (h *Histogram) N() uint64 { return h.n }

// Min and Max are exact; 0 when nothing was counted.
func (h *Histogram) Min() int64 { return h.min }

// Max is the greatest value, exactly; 0 when nothing was counted.
func (h *Histogram) Max() int64 { return h.max }

// Mean is exact but for floating-point rounding; NaN when nothing was counted.
func (h *Histogram) Mean() float64 { return h.sum.Mean() }

// StdDev is that of Moments.
func (h *Histogram) StdDev() float64 { return h.sum.StdDev() }

// Quantile is the value at or below which a share q of all values lies: the
// ⌈q·n⌉-th smallest, to within RelativeError of it. q is clamped to 0 … 1; 0
// and 1 give the exact extremes. ok is false when nothing was counted.
func (h *Histogram) Quantile(q float64) (v int64, ok bool) {
	if h.n == 0 || q != q {
		return 0, false
	}
	rank := uint64(1)
	switch {
	case q >= 1:
		rank = h.n
	case q > 0:
		rank = min(max(uint64(math.Ceil(q*float64(h.n))), 1), h.n)
	}
	switch rank {
	case 1:
		return h.min, true
	case h.n:
		return h.max, true
	}
	var seen uint64
	for i := len(h.neg) - 1; i >= 0; i-- {
		if seen += h.neg[i]; seen >= rank {
			low, high := h.bounds(i)
			middle := min(low+(high-low)/2, 1<<63) // the last bucket reaches past the least int64
			return h.clamp(-int64(middle)), true
		}
	}
	for i, c := range h.pos {
		if seen += c; seen >= rank {
			low, high := h.bounds(i)
			return h.clamp(int64(low + (high-low)/2)), true
		}
	}
	return h.max, true
}

// The middle of a bucket at the end of the range may lie beyond any value seen.
func (h *Histogram) clamp(v int64) int64 { return min(max(v, h.min), h.max) }

// Bucket is a range of values, both ends included, and how many fell in it.
type Bucket struct {
	Low, High int64
	Count     uint64
}

// Buckets calls yield for every bucket that is not empty, in rising order of
// value, until it returns false. It is an iter.Seq.
func (h *Histogram) Buckets(yield func(Bucket) bool) {
	for i := len(h.neg) - 1; i >= 0; i-- {
		if c := h.neg[i]; c > 0 {
			low, high := h.bounds(i)
			b := Bucket{Low: math.MinInt64, High: -int64(low), Count: c}
			if high < 1<<63 {
				b.Low = -int64(high)
			}
			if !yield(b) {
				return
			}
		}
	}
	for i, c := range h.pos {
		if c > 0 {
			low, high := h.bounds(i)
			if !yield(Bucket{Low: int64(low), High: int64(high), Count: c}) {
				return
			}
		}
	}
}
