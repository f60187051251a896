package des

import (
	"fmt"
	"math"
	"math/big"
	"math/bits"
)

// Clock is a periodic signal of rational frequency whose edge 0 falls at its
// phase. Edge n falls at phase + n/frequency, rounded once to the nearest
// picosecond (halves up), whatever n is: nothing adds up a rounded period, so
// that the 10^12th edge is as exact as the first. There is no edge before
// edge 0.
//
// A Clock is an immutable value. The zero Clock is not usable; NewClock makes
// one.
type Clock struct {
	freq  Frequency
	phase Time
	num   uint64 // the period is num/den ps, in lowest terms
	den   uint64
	last  int64 // the last edge whose time Time can hold
}

// NewClock returns a clock of frequency f whose edge 0 falls at phase. f must
// be positive, at most 1 THz (one edge a picosecond, the resolution of Time),
// and such that the period's ratio in picoseconds fits 63 bits; phase must not
// be negative.
func NewClock(f Frequency, phase Time) (Clock, error) {
	if f.Num == 0 || f.Den == 0 {
		return Clock{}, fmt.Errorf("clock frequency %d/%d Hz: not positive: %w", f.Num, f.Den, ErrRange)
	}
	if phase < 0 {
		return Clock{}, fmt.Errorf("clock phase %v: negative: %w", phase, ErrRange)
	}
	n := new(big.Int).Mul(new(big.Int).SetUint64(f.Den), new(big.Int).SetUint64(psPerSecond))
	period := new(big.Rat).SetFrac(n, new(big.Int).SetUint64(f.Num))
	if period.Cmp(big.NewRat(1, 1)) < 0 {
		return Clock{}, fmt.Errorf("clock frequency %v: above 1 THz, the resolution of time: %w", f, ErrRange)
	}
	if !period.Num().IsInt64() || !period.Denom().IsInt64() {
		return Clock{}, fmt.Errorf("clock frequency %v: its period needs more than 63 bits: %w", f, ErrRange)
	}
	c := Clock{freq: f, phase: phase, num: period.Num().Uint64(), den: period.Denom().Uint64()}
	// The largest n with n·num/den + 1/2 < MaxTime-phase+1, that is
	// n·num < (MaxTime-phase)·den + den/2 in halves of den.
	room := new(big.Int).SetUint64(uint64(MaxTime - phase))
	room.Lsh(room.Mul(room, period.Denom()), 1)
	room.Add(room, period.Denom())
	room.Sub(room, big.NewInt(1))
	room.Quo(room, new(big.Int).Lsh(period.Num(), 1))
	c.last = math.MaxInt64
	if room.IsInt64() {
		c.last = room.Int64()
	}
	return c, nil
}

// Frequency is the clock's frequency.
func (c Clock) Frequency() Frequency { return c.freq }

// Phase is the time of edge 0.
func (c Clock) Phase() Time { return c.phase }

// LastEdge is the largest edge number whose time fits Time.
func (c Clock) LastEdge() int64 { return c.last }

// times is n periods rounded once, halves up. n must lie in 0 … 2^63-1 and the
// result below 2^64, which LastEdge grants.
func (c Clock) times(n uint64) uint64 {
	hi, lo := bits.Mul64(n, c.num)
	if c.den == 1 {
		return lo
	}
	lo, carry := bits.Add64(lo, c.den/2, 0)
	// Halves up: for an odd den, den/2 rounds down, and n·num+den/2 reaches
	// the next multiple exactly where the fraction is above one half.
	q, _ := bits.Div64(hi+carry, lo, c.den)
	return q
}

// Edge is the time of edge n. It is made for hot paths and never fails: an n
// below 0 counts as edge 0, and an n past LastEdge gives MaxTime. Use EdgeTime
// where n comes from outside.
func (c Clock) Edge(n int64) Time {
	if uint64(n) > uint64(c.last) {
		if n < 0 {
			return c.phase
		}
		return MaxTime
	}
	return c.phase + Time(c.times(uint64(n)))
}

// EdgeTime is the time of edge n, or an error that names the edge and the
// clock when there is no such edge or Time cannot hold it.
func (c Clock) EdgeTime(n int64) (Time, error) {
	if n < 0 {
		return 0, fmt.Errorf("edge %d of a clock of %v: edges count from 0: %w", n, c.freq, ErrRange)
	}
	if n > c.last {
		return 0, fmt.Errorf("time of edge %d of a clock of %v: beyond %v: %w", n, c.freq, MaxTime, ErrRange)
	}
	return c.phase + Time(c.times(uint64(n))), nil
}

// EdgeAtOrAfter is the number of the first edge whose time is not before t.
// After the last edge that Time can hold it is LastEdge()+1, whose Edge is
// MaxTime.
func (c Clock) EdgeAtOrAfter(t Time) int64 {
	if t <= c.phase {
		return 0
	}
	d := uint64(t - c.phase)
	// The quotient below is within one of the answer, since each edge lies
	// within half a picosecond of its exact place and a period is not shorter
	// than a picosecond.
	n := c.floor(d)
	if n > 0 {
		n--
	}
	for n <= uint64(c.last) && c.times(n) < d {
		n++
	}
	return int64(n)
}

// floor is the number of exact periods in d ps.
func (c Clock) floor(d uint64) uint64 {
	if c.den == 1 {
		return d / c.num
	}
	hi, lo := bits.Mul64(d, c.den)
	q, _ := bits.Div64(hi, lo, c.num) // den <= num, so hi < num
	return q
}

// Duration is the length of n cycles, rounded once to the nearest picosecond.
// It never fails: a negative n counts as 0, and what Time cannot hold is
// MaxTime. The distance of two edges n cycles apart may differ from it by a
// picosecond; place events with Edge.
func (c Clock) Duration(n Cycles) Time {
	if n <= 0 {
		return 0
	}
	if int64(n) <= c.last {
		return Time(c.times(uint64(n)))
	}
	d, err := c.CyclesTime(n)
	if err != nil {
		return MaxTime
	}
	return d
}

// CyclesTime is Duration with an error that names the cycles and the clock
// where n is negative or Time cannot hold the result.
func (c Clock) CyclesTime(n Cycles) (Time, error) {
	if n < 0 {
		return 0, fmt.Errorf("length of %v of a clock of %v: negative: %w", n, c.freq, ErrRange)
	}
	hi, lo := bits.Mul64(uint64(n), c.num)
	lo, carry := bits.Add64(lo, c.den/2, 0)
	hi += carry
	if hi < c.den {
		if q, _ := bits.Div64(hi, lo, c.den); q <= uint64(MaxTime) {
			return Time(q), nil
		}
	}
	return 0, fmt.Errorf("length of %v of a clock of %v: beyond %v: %w", n, c.freq, MaxTime, ErrRange)
}

// Cycles is the largest number of cycles whose Duration does not exceed d; it
// is 0 for a negative d.
func (c Clock) Cycles(d Time) Cycles {
	if d <= 0 {
		return 0
	}
	n := c.floor(uint64(d)) // at most d, since a period is at least 1 ps
	// What fits exactly fits rounded, d being whole; one more may still round
	// down to d.
	if up, err := c.CyclesTime(Cycles(n + 1)); err == nil && up <= d {
		n++
	}
	return Cycles(n)
}

// CyclesUp is the smallest number of cycles whose Duration reaches d.
func (c Clock) CyclesUp(d Time) Cycles {
	if d <= 0 {
		return 0
	}
	n := c.floor(uint64(d))
	if n > 0 {
		n--
	}
	for n < math.MaxInt64 && c.Duration(Cycles(n)) < d {
		n++
	}
	return Cycles(n)
}

// String prints frequency and phase.
func (c Clock) String() string {
	if c.phase == 0 {
		return c.freq.String()
	}
	return fmt.Sprintf("%v from %v", c.freq, c.phase)
}
