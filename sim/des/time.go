package des

import (
	"math"
	"math/big"
	"strconv"
)

// Time is a point in simulated time, or a span of it, in whole picoseconds.
// It covers ±106 days (2^63 ps).
type Time int64

// Units of Time.
const (
	Picosecond  Time = 1
	Nanosecond       = 1000 * Picosecond
	Microsecond      = 1000 * Nanosecond
	Millisecond      = 1000 * Microsecond
	Second           = 1000 * Millisecond

	// MaxTime is the last representable time. As the end of a run it stands
	// for "no end".
	MaxTime Time = math.MaxInt64
)

// psPerSecond is the number of Time's ticks in a second.
const psPerSecond = uint64(Second)

// Microseconds converts to a floating-point number for results.
func (t Time) Microseconds() float64 { return float64(t) / float64(Microsecond) }

// Seconds converts to a floating-point number for results.
func (t Time) Seconds() float64 { return float64(t) / float64(Second) }

// timeUnits lists what ParseTime understands; String prints with the first
// spelling of each size.
var timeUnits = []unit{
	{"s", big.NewRat(int64(Second), 1)},
	{"ms", big.NewRat(int64(Millisecond), 1)},
	{"µs", big.NewRat(int64(Microsecond), 1)}, // U+00B5, the micro sign
	{"μs", big.NewRat(int64(Microsecond), 1)}, // U+03BC, the Greek letter
	{"us", big.NewRat(int64(Microsecond), 1)},
	{"ns", big.NewRat(int64(Nanosecond), 1)},
	{"ps", big.NewRat(1, 1)},
}

// String prints the exact value in the largest unit that leaves a whole part:
// "55 µs", "33.333 ns", "-1.5 ms", "0 ps". ParseTime reads it back unchanged.
func (t Time) String() string {
	var buf [32]byte
	return string(t.AppendText(buf[:0]))
}

// AppendText appends what String returns to b.
func (t Time) AppendText(b []byte) []byte {
	mag := uint64(t)
	if t < 0 {
		b = append(b, '-')
		mag = -mag
	}
	div, name := uint64(1), " ps"
	switch {
	case mag >= uint64(Second):
		div, name = uint64(Second), " s"
	case mag >= uint64(Millisecond):
		div, name = uint64(Millisecond), " ms"
	case mag >= uint64(Microsecond):
		div, name = uint64(Microsecond), " µs"
	case mag >= uint64(Nanosecond):
		div, name = uint64(Nanosecond), " ns"
	}
	b = strconv.AppendUint(b, mag/div, 10)
	if rest := mag % div; rest != 0 {
		// div+rest starts with the digit 1, which keeps rest's leading zeros.
		point := len(b)
		b = strconv.AppendUint(b, div+rest, 10)
		b[point] = '.'
		for b[len(b)-1] == '0' {
			b = b[:len(b)-1]
		}
	}
	return append(b, name...)
}

// ParseTime reads a time with its unit, "55 µs", "33.333 us", "1/3 ms",
// "-20 ns". Units are s, ms, µs (either spelling, or us), ns and ps. A value
// finer than a picosecond is rounded to the nearest one, halves away from
// zero; a value that would vanish by it is refused, as are a bare number and
// a value beyond Time.
func ParseTime(s string) (Time, error) {
	v, err := parseQuantity("time", s, timeUnits)
	if err != nil {
		return 0, err
	}
	n, err := wholeInt64("time", "ps", s, v)
	return Time(n), err
}
