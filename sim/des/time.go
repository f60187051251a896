package des

import (
	"fmt"
	"math"
)

// Time is a point in simulated time, or a span of it, in picoseconds. It
// covers ±106 days.
type Time int64

// Units of Time.
const (
	Picosecond  Time = 1
	Nanosecond       = 1000 * Picosecond
	Microsecond      = 1000 * Nanosecond
	Millisecond      = 1000 * Microsecond
	Second           = 1000 * Millisecond

	MaxTime Time = math.MaxInt64
)

// Microseconds converts to a floating-point number for results.
func (t Time) Microseconds() float64 { return float64(t) / float64(Microsecond) }

// Seconds converts to a floating-point number for results.
func (t Time) Seconds() float64 { return float64(t) / float64(Second) }

func (t Time) String() string { return fmt.Sprintf("%g µs", t.Microseconds()) }
