package des

import (
	"crypto/sha256"
	"encoding/binary"
	"math/bits"
	"math/rand/v2"
)

// Stream is a named source of random numbers. Its sequence depends only on
// the run's seed and on its own name, so that adding a component, or drawing
// more often in one, leaves the numbers of all others as they were.
//
// All draws are computed in integers, or in single floating-point operations
// that no compiler may fuse, so a sequence is the same on every machine. No
// draw allocates. A Stream is not safe for concurrent use.
type Stream struct {
	pcg rand.PCG
}

// NewStream returns the stream of a name ("traffic/0/sizes") under a seed. The
// generator is math/rand/v2's PCG-DXSM, seeded by SHA-256 over seed and name.
func NewStream(seed uint64, name string) *Stream {
	text := binary.LittleEndian.AppendUint64(make([]byte, 0, 8+len(name)), seed)
	sum := sha256.Sum256(append(text, name...))
	s := new(Stream)
	s.pcg.Seed(binary.LittleEndian.Uint64(sum[0:]), binary.LittleEndian.Uint64(sum[8:]))
	return s
}

// Uint64 is 64 uniform bits. With it a Stream is a rand.Source, for use with
// the other distributions of math/rand/v2 and of gonum.
func (s *Stream) Uint64() uint64 { return s.pcg.Uint64() }

// Float64 is uniform in [0, 1), a multiple of 2^-53.
func (s *Stream) Float64() float64 { return float64(s.Uint64()>>11) * (1.0 / (1 << 53)) }

// Uint64N is uniform in 0 … n-1, without bias. n must not be 0; a stream asked
// for a number out of none answers 0.
func (s *Stream) Uint64N(n uint64) uint64 {
	// Lemire, "Fast random integer generation in an interval", 2019: the high
	// word of x·n is the answer, except for the few x that would favour some
	// answers, which are drawn again.
	hi, lo := bits.Mul64(s.Uint64(), n)
	if lo < n {
		for favoured := -n % n; lo < favoured; {
			hi, lo = bits.Mul64(s.Uint64(), n)
		}
	}
	return hi
}

// IntN is uniform in 0 … n-1. n below 1 gives 0.
func (s *Stream) IntN(n int) int {
	if n < 1 {
		return 0
	}
	return int(s.Uint64N(uint64(n)))
}

// Between is uniform in lo … hi, both included. hi below lo gives lo.
func (s *Stream) Between(lo, hi int64) int64 {
	if hi <= lo {
		return lo
	}
	n := uint64(hi) - uint64(lo) + 1
	if n == 0 { // all of int64
		return int64(s.Uint64())
	}
	return lo + int64(s.Uint64N(n))
}

// Uniform is a time uniform in lo … hi, both included. hi below lo gives lo.
func (s *Stream) Uniform(lo, hi Time) Time { return Time(s.Between(int64(lo), int64(hi))) }

// Bernoulli is true with probability num/den; den 0 gives false, num not below
// den gives true.
func (s *Stream) Bernoulli(num, den uint64) bool {
	return den != 0 && s.Uint64N(den) < num
}

// Exponential is a time of exponential distribution with the given mean,
// rounded to the nearest picosecond; a mean not above 0 gives 0, and what Time
// cannot hold MaxTime.
func (s *Stream) Exponential(mean Time) Time {
	if mean <= 0 {
		return 0
	}
	whole, frac := s.exponential()
	hi, lo := bits.Mul64(frac, uint64(mean))
	hi += lo >> 63
	over, sum := bits.Mul64(whole, uint64(mean))
	sum, carry := bits.Add64(sum, hi, 0)
	if over+carry != 0 || sum > uint64(MaxTime) {
		return MaxTime
	}
	return Time(sum)
}

// exponential draws from the exponential distribution of mean 1, as a whole
// part and a fraction in units of 2^-64, by von Neumann's comparisons of
// uniform numbers ("Various techniques used in connection with random digits",
// 1951). It needs no logarithm, whose last bits differ between machines.
//
// A run is a uniform number followed by ever smaller ones; the chance that
// exactly n numbers fall in a row below u is what makes the first number of a
// run of odd length distributed as e^-u on [0, 1). Each run of even length
// adds one.
func (s *Stream) exponential() (whole, frac uint64) {
	for {
		first := s.Uint64()
		odd := true
		for last := first; ; odd = !odd {
			u := s.Uint64()
			if u >= last {
				break
			}
			last = u
		}
		if odd {
			return whole, first
		}
		whole++
	}
}

// Shuffle puts n things into random order through swap, every order equally
// likely.
func (s *Stream) Shuffle(n int, swap func(i, j int)) {
	for i := n - 1; i > 0; i-- {
		swap(i, s.IntN(i+1))
	}
}
