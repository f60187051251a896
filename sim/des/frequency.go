package des

import (
	"fmt"
	"math/big"
)

// Frequency is an exact positive ratio Num/Den in hertz, in lowest terms when
// it comes from this package. 33⅓ MHz is {100_000_000, 3}. The zero value
// means "not set"; NewClock refuses it.
type Frequency struct {
	Num, Den uint64
}

// Hertz is the whole frequency of n Hz.
func Hertz(n uint64) Frequency { return Frequency{Num: n, Den: 1} }

var frequencyUnits = []unit{
	{"GHz", big.NewRat(1e9, 1)},
	{"MHz", big.NewRat(1e6, 1)},
	{"kHz", big.NewRat(1e3, 1)},
	{"Hz", big.NewRat(1, 1)},
}

var frequencyScales = []scale{{"GHz", 1e9}, {"MHz", 1e6}, {"kHz", 1e3}, {"Hz", 1}}

// ParseFrequency reads a positive frequency in GHz, MHz, kHz or Hz, exactly:
// "33 MHz", "33.333 MHz", and the ratios "33 1/3 MHz" or "100/3 MHz".
func ParseFrequency(s string) (Frequency, error) {
	v, err := parseQuantity("frequency", s, frequencyUnits)
	if err != nil {
		return Frequency{}, err
	}
	num, den, err := positiveRatio("frequency", s, v)
	return Frequency{num, den}, err
}

// String prints the exact value: "33.333 MHz", or "33 1/3 MHz" where decimals
// do not end. ParseFrequency reads it back unchanged.
func (f Frequency) String() string { return ratioString(f.Num, f.Den, frequencyScales) }

// Hz converts to a floating-point number for results.
func (f Frequency) Hz() float64 {
	if f.Den == 0 {
		return 0
	}
	return float64(f.Num) / float64(f.Den)
}

// Offset is f made faster (or, below zero, slower) by a deviation, as an
// oscillator's tolerance is quoted: 33 MHz offset by +100 ppm is 33.0033 MHz
// exactly. It fails when the result is not positive or its ratio needs more
// than 63 bits.
func (f Frequency) Offset(by Deviation) (Frequency, error) {
	if f.Num == 0 || f.Den == 0 {
		return Frequency{}, fmt.Errorf("frequency %v: not positive: %w", f, ErrRange)
	}
	v := new(big.Rat).SetFrac(new(big.Int).SetUint64(f.Num), new(big.Int).SetUint64(f.Den))
	factor := big.NewRat(int64(by), int64(PartPerBillion)*1e9)
	factor.Add(factor, big.NewRat(1, 1))
	num, den, err := positiveRatio("frequency", fmt.Sprintf("%v %+d ppb", f, int64(by)), v.Mul(v, factor))
	return Frequency{num, den}, err
}

// Deviation is a relative difference of frequencies in parts per billion.
type Deviation int64

// Units of Deviation.
const (
	PartPerBillion Deviation = 1
	PartPerMillion           = 1000 * PartPerBillion
)

var deviationUnits = []unit{
	{"ppm", big.NewRat(int64(PartPerMillion), 1)},
	{"ppb", big.NewRat(int64(PartPerBillion), 1)},
}

// ParseDeviation reads a relative difference, "100 ppm", "-0.5 ppm", "20 ppb",
// rounded to a part per billion as ParseTime rounds.
func ParseDeviation(s string) (Deviation, error) {
	v, err := parseQuantity("deviation", s, deviationUnits)
	if err != nil {
		return 0, err
	}
	n, err := wholeInt64("deviation", "ppb", s, v)
	return Deviation(n), err
}

// String prints in ppm, or in ppb where ppm would need decimals.
func (d Deviation) String() string {
	if d%PartPerMillion == 0 {
		return fmt.Sprintf("%d ppm", d/PartPerMillion)
	}
	return fmt.Sprintf("%d ppb", d)
}
