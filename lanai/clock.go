package lanai

import (
	"math/bits"

	"spinesim/sim/des"
)

// cardClock turns the numbers of a card's cycles into times and back: a
// des.Clock with a short cut for periods of whole picoseconds, which the hot
// path takes once a box. Cycle c lasts from edge(c) to edge(c+1).
type cardClock struct {
	exact  des.Clock
	phase  des.Time
	period int64 // picoseconds when whole and below 2^32, else 0
	// 2^64/period, rounded up. Times that are smaller are divided by multiplying
	// with it: what it is too large by comes to less than 1/period.
	inverse uint64
	last    int64 // the last cycle whose beginning des.Time can hold
}

func newCardClock(f des.Frequency, phase des.Time) (cardClock, error) {
	c, err := des.NewClock(f, phase)
	if err != nil {
		return cardClock{}, err
	}
	k := cardClock{exact: c, phase: phase, last: c.LastEdge()}
	ps := uint64(des.Second)
	if g := gcd(f.Den, f.Num); f.Num/g <= ps*(f.Den/g) && ps%(f.Num/g) == 0 {
		if p := ps / (f.Num / g) * (f.Den / g); p < 1<<32 {
			k.period = int64(p)
			k.inverse = ^uint64(0)/p + 1 // 0 for 1
		}
	}
	return k, nil
}

// edge is when cycle c begins, c ≥ 0; des.MaxTime for what lies beyond time.
func (k *cardClock) edge(c int64) des.Time {
	if k.period != 0 && c <= k.last {
		return k.phase + des.Time(c*k.period)
	}
	return k.exact.Edge(c)
}

// ceil is the first cycle that begins at t or later.
func (k *cardClock) ceil(t des.Time) int64 {
	if k.period == 0 {
		return k.exact.EdgeAtOrAfter(t)
	}
	d := int64(t-k.phase) + k.period - 1
	if d < 0 {
		return 0
	}
	if uint64(d) < k.inverse {
		c, _ := bits.Mul64(uint64(d), k.inverse)
		return int64(c)
	}
	return d / k.period
}

// floor is the last cycle that begins at t or before, -1 before the first.
func (k *cardClock) floor(t des.Time) int64 {
	c := k.ceil(t)
	if k.edge(c) == t {
		return c
	}
	return c - 1
}

func gcd(a, b uint64) uint64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
