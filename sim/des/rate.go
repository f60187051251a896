package des

import (
	"fmt"
	"math/big"
	"math/bits"
)

// Rate is an exact positive ratio Num/Den in bytes per second, in lowest terms
// when it comes from this package. A 32-bit bus at 33⅓ MHz moves
// {400_000_000, 3}, 133⅓ MB/s. The zero value means "not set".
type Rate struct {
	Num, Den uint64
}

var rateUnits = []unit{
	{"GB/s", big.NewRat(1e9, 1)},
	{"MB/s", big.NewRat(1e6, 1)},
	{"kB/s", big.NewRat(1e3, 1)},
	{"B/s", big.NewRat(1, 1)},
	{"GiB/s", big.NewRat(1<<30, 1)},
	{"MiB/s", big.NewRat(1<<20, 1)},
	{"KiB/s", big.NewRat(1<<10, 1)},
	{"Gbit/s", big.NewRat(1e9, 8)},
	{"Mbit/s", big.NewRat(1e6, 8)},
	{"kbit/s", big.NewRat(1e3, 8)},
	{"bit/s", big.NewRat(1, 8)},
}

var rateScales = []scale{{"GB/s", 1e9}, {"MB/s", 1e6}, {"kB/s", 1e3}, {"B/s", 1}}

// ParseRate reads a positive rate exactly: "160 MB/s", "133 1/3 MB/s",
// "1.28 Gbit/s", "8 MiB/s". k, M and G are powers of ten; Ki, Mi and Gi powers
// of two; a bit is an eighth of a byte.
func ParseRate(s string) (Rate, error) {
	v, err := parseQuantity("rate", s, rateUnits)
	if err != nil {
		return Rate{}, err
	}
	num, den, err := positiveRatio("rate", s, v)
	return Rate{num, den}, err
}

// String prints the exact value in bytes per second: "160 MB/s",
// "133 1/3 MB/s". ParseRate reads it back unchanged.
func (r Rate) String() string { return ratioString(r.Num, r.Den, rateScales) }

// BytesPerSecond converts to a floating-point number for results.
func (r Rate) BytesPerSecond() float64 {
	if r.Den == 0 {
		return 0
	}
	return float64(r.Num) / float64(r.Den)
}

// Duration is the time that n bytes take, rounded once, up to a whole
// picosecond: the last byte has wholly passed by then. A negative n, a rate
// that is not set and a time beyond Time are errors. To place the k-th byte of
// a stream, take Duration(k) from the stream's start; durations added up would
// also add up their roundings.
func (r Rate) Duration(n Bytes) (Time, error) {
	if r.Num == 0 || r.Den == 0 {
		return 0, fmt.Errorf("duration of %v at a rate of %v: %w", n, r, ErrRange)
	}
	if n < 0 {
		return 0, fmt.Errorf("duration of %v: negative: %w", n, ErrRange)
	}
	// n·den·10^12/num, in 192 bits: both factors of the first product are
	// below 2^63, and the divisor brings the second back.
	hi, lo := bits.Mul64(uint64(n), r.Den)
	hi1, lo1 := bits.Mul64(lo, psPerSecond)
	hi2, mid := bits.Mul64(hi, psPerSecond)
	mid, carry := bits.Add64(mid, hi1, 0)
	top := hi2 + carry
	if top != 0 || mid >= r.Num {
		return 0, fmt.Errorf("duration of %v at %v: beyond %v: %w", n, r, MaxTime, ErrRange)
	}
	q, rest := bits.Div64(mid, lo1, r.Num)
	if rest != 0 {
		q++
	}
	if q > uint64(MaxTime) {
		return 0, fmt.Errorf("duration of %v at %v: beyond %v: %w", n, r, MaxTime, ErrRange)
	}
	return Time(q), nil
}
