package des

import (
	"fmt"
	"math/big"
	"math/bits"
	"slices"
)

// Empirical is a discrete distribution given by its values and their weights,
// such as the packet sizes of a capture. It is immutable once built, and any
// number of streams may draw from it.
type Empirical struct {
	values []int64
	// Walker's alias table: column i is value i with chance share[i]/total,
	// and value alias[i] otherwise.
	share []uint64
	alias []int32
	total uint64
	mean  float64
}

// maxEmpirical bounds the number of values, which alias must index.
const maxEmpirical = 1 << 30

// NewEmpirical returns the distribution that gives values[i] with probability
// weights[i] over the sum of all weights, exactly. Nil weights mean equal
// ones. It fails for no values, for lengths that differ, and where the number
// of values times the sum of weights is 0 or needs more than 64 bits.
func NewEmpirical(values []int64, weights []uint64) (*Empirical, error) {
	n := len(values)
	switch {
	case n == 0:
		return nil, fmt.Errorf("empirical distribution: no values: %w", ErrRange)
	case n > maxEmpirical:
		return nil, fmt.Errorf("empirical distribution: %d values, more than %d: %w", n, maxEmpirical, ErrRange)
	case weights != nil && len(weights) != n:
		return nil, fmt.Errorf("empirical distribution: %d values but %d weights: %w", n, len(weights), ErrRange)
	}
	total := uint64(n)
	if weights != nil {
		total = 0
		for i, w := range weights {
			var carry uint64
			if total, carry = bits.Add64(total, w, 0); carry != 0 {
				return nil, fmt.Errorf("empirical distribution: sum of weights up to the %d-th: beyond 64 bits: %w", i+1, ErrRange)
			}
		}
		if total == 0 {
			return nil, fmt.Errorf("empirical distribution: all weights are 0: %w", ErrRange)
		}
	}
	if hi, _ := bits.Mul64(total, uint64(n)); hi != 0 {
		return nil, fmt.Errorf("empirical distribution: %d values times the sum %d of weights: beyond 64 bits: %w", n, total, ErrRange)
	}
	d := &Empirical{
		values: slices.Clone(values),
		share:  make([]uint64, n),
		alias:  make([]int32, n),
		total:  total,
	}
	d.build(weights)
	return d, nil
}

// build fills the alias table after Vose ("A linear algorithm for generating
// random numbers with a given distribution", 1991), in whole numbers: every
// column holds total, and value i owns n·weights[i] in all.
func (d *Empirical) build(weights []uint64) {
	n := uint64(len(d.values))
	sum := new(big.Int)
	var low, high []int32
	for i := range d.values {
		w := uint64(1)
		if weights != nil {
			w = weights[i]
		}
		term := new(big.Int).SetUint64(w)
		sum.Add(sum, term.Mul(term, big.NewInt(d.values[i])))
		d.share[i], d.alias[i] = w*n, int32(i)
		if d.share[i] < d.total {
			low = append(low, int32(i))
		} else {
			high = append(high, int32(i))
		}
	}
	d.mean, _ = new(big.Rat).SetFrac(sum, new(big.Int).SetUint64(d.total)).Float64()
	for len(low) > 0 {
		// Shares add up to n·total, so a column below total has one above.
		l, h := low[len(low)-1], high[len(high)-1]
		low = low[:len(low)-1]
		d.alias[l] = h
		d.share[h] -= d.total - d.share[l]
		if d.share[h] < d.total {
			high = high[:len(high)-1]
			low = append(low, h)
		}
	}
}

// Mean is the distribution's mean, for results.
func (d *Empirical) Mean() float64 { return d.mean }

// Len is the number of values.
func (d *Empirical) Len() int { return len(d.values) }

// Empirical draws from d in constant time.
func (s *Stream) Empirical(d *Empirical) int64 {
	i := s.Uint64N(uint64(len(d.values)))
	if s.Uint64N(d.total) < d.share[i] {
		return d.values[i]
	}
	return d.values[d.alias[i]]
}
