package pci

import (
	"math/bits"

	"spinesim/sim/des"
)

// clock turns the edges of a clock of num/den Hz into times.
type clock struct {
	period   des.Time // when a whole number of picoseconds, else 0
	num, den uint64   // edge n is at n·num/den picoseconds, rounded down
}

func newClock(num, den int64) clock {
	c := clock{num: uint64(den) * uint64(des.Second), den: uint64(num)}
	if c.num%c.den == 0 {
		c.period = des.Time(c.num / c.den)
	}
	return c
}

// Edge returns the time of edge n, n ≥ 0.
func (c *clock) Edge(n int64) des.Time {
	if c.period != 0 {
		return c.period * des.Time(n)
	}
	hi, lo := bits.Mul64(uint64(n), c.num)
	q, _ := bits.Div64(hi, lo, c.den)
	return des.Time(q)
}

// EdgeAtOrAfter returns the number of the first edge at or after t ≥ 0.
func (c *clock) EdgeAtOrAfter(t des.Time) int64 {
	if c.period != 0 {
		return int64((t + c.period - 1) / c.period)
	}
	hi, lo := bits.Mul64(uint64(t), c.den)
	q, _ := bits.Div64(hi, lo, c.num)
	for n := int64(q); ; n++ {
		if c.Edge(n) >= t {
			return n
		}
	}
}
