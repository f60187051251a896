package des

import (
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"
)

// Errors of the readers of quantities; each is wrapped together with the kind
// of quantity and the text that was read.
var (
	// ErrSyntax reports a text that is not a number followed by a unit.
	ErrSyntax = errors.New("want a number and a unit")
	// ErrUnit reports a unit that is missing or does not measure the quantity.
	ErrUnit = errors.New("wrong unit")
	// ErrRange reports a value that the quantity's type cannot hold.
	ErrRange = errors.New("out of range")
)

// maxQuantityLen bounds the text of one quantity, so that exact arithmetic on
// hostile input stays cheap. Chosen.
const maxQuantityLen = 80

// unit is one spelling of a unit and its size in the quantity's base unit.
type unit struct {
	name string
	size *big.Rat
}

// parseQuantity reads "number unit" exactly, in base units. The number is an
// integer or a decimal fraction ("33.333"), a fraction ("100/3") or a mixed
// one ("33 1/3"), with an optional sign in front; exponents are not read.
// Blanks before the unit are optional.
func parseQuantity(kind, s string, units []unit) (*big.Rat, error) {
	if len(s) > maxQuantityLen {
		return nil, fmt.Errorf("%s of %d bytes of text, at most %d are read: %w", kind, len(s), maxQuantityLen, ErrSyntax)
	}
	fail := func(err error, format string, args ...any) (*big.Rat, error) {
		return nil, fmt.Errorf("%s %q: %s: %w", kind, s, fmt.Sprintf(format, args...), err)
	}
	text := strings.TrimSpace(s)
	end := strings.LastIndexFunc(text, func(r rune) bool { return '0' <= r && r <= '9' || r == '.' }) + 1
	number, name := text[:end], strings.TrimSpace(text[end:])
	if number == "" {
		return fail(ErrSyntax, "no number")
	}
	v, ok := parseNumber(number)
	if !ok {
		return fail(ErrSyntax, "%q is not a number", number)
	}
	if name == "" {
		return fail(ErrUnit, "no unit, want %s", unitNames(units))
	}
	for _, u := range units {
		if u.name == name {
			return v.Mul(v, u.size), nil
		}
	}
	return fail(ErrUnit, "%q, want %s", name, unitNames(units))
}

// unitNames lists the units for an error message.
func unitNames(units []unit) string {
	var b strings.Builder
	for i, u := range units {
		switch {
		case i == 0:
		case i == len(units)-1:
			b.WriteString(" or ")
		default:
			b.WriteString(", ")
		}
		b.WriteString(u.name)
	}
	return b.String()
}

// parseNumber reads the number of a quantity.
func parseNumber(s string) (*big.Rat, bool) {
	negative := false
	switch {
	case strings.HasPrefix(s, "-"):
		negative, s = true, s[1:]
	case strings.HasPrefix(s, "+"):
		s = s[1:]
	}
	v := new(big.Rat)
	if whole, frac, mixed := strings.Cut(s, " "); mixed {
		w, ok := parseInteger(whole)
		f, okFrac := parseFraction(strings.TrimSpace(frac))
		if !ok || !okFrac || f.Cmp(big.NewRat(1, 1)) >= 0 {
			return nil, false
		}
		v.Add(v.SetInt(w), f)
	} else if strings.Contains(s, "/") {
		f, ok := parseFraction(s)
		if !ok {
			return nil, false
		}
		v = f
	} else {
		whole, frac, point := strings.Cut(s, ".")
		if whole == "" || point && frac == "" {
			return nil, false
		}
		digits, ok := parseInteger(whole + frac)
		if !ok {
			return nil, false
		}
		scale := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(len(frac))), nil)
		v.SetFrac(digits, scale)
	}
	if negative {
		v.Neg(v)
	}
	return v, true
}

// parseFraction reads "1/3".
func parseFraction(s string) (*big.Rat, bool) {
	num, den, ok := strings.Cut(s, "/")
	if !ok {
		return nil, false
	}
	n, okNum := parseInteger(strings.TrimRight(num, " "))
	d, okDen := parseInteger(strings.TrimLeft(den, " "))
	if !okNum || !okDen || d.Sign() == 0 {
		return nil, false
	}
	return new(big.Rat).SetFrac(n, d), true
}

// parseInteger reads decimal digits, and nothing but them.
func parseInteger(s string) (*big.Int, bool) {
	if s == "" {
		return nil, false
	}
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return nil, false
		}
	}
	return new(big.Int).SetString(s, 10)
}

// wholeInt64 rounds v to a whole number of the base unit, halves away from
// zero. A value that is not zero must not become zero.
func wholeInt64(kind, base, s string, v *big.Rat) (int64, error) {
	twice := new(big.Int).Lsh(v.Num(), 1)
	if v.Sign() < 0 {
		twice.Sub(twice, v.Denom())
	} else {
		twice.Add(twice, v.Denom())
	}
	n := twice.Quo(twice, new(big.Int).Lsh(v.Denom(), 1)) // truncates towards zero
	switch {
	case !n.IsInt64():
		return 0, fmt.Errorf("%s %q: beyond ±2^63 %s: %w", kind, s, base, ErrRange)
	case n.Sign() == 0 && v.Sign() != 0:
		return 0, fmt.Errorf("%s %q: finer than the resolution of 1 %s: %w", kind, s, base, ErrRange)
	}
	return n.Int64(), nil
}

// countInt64 demands that v be a whole, non-negative number of the base unit.
func countInt64(kind, base, s string, v *big.Rat) (int64, error) {
	switch {
	case v.Sign() < 0:
		return 0, fmt.Errorf("%s %q: negative: %w", kind, s, ErrRange)
	case !v.IsInt():
		return 0, fmt.Errorf("%s %q: not a whole number of %s: %w", kind, s, base, ErrRange)
	case !v.Num().IsInt64():
		return 0, fmt.Errorf("%s %q: beyond 2^63 %s: %w", kind, s, base, ErrRange)
	}
	return v.Num().Int64(), nil
}

// positiveRatio demands that v be positive and a ratio of two numbers below
// 2^63.
func positiveRatio(kind, s string, v *big.Rat) (num, den uint64, err error) {
	switch {
	case v.Sign() <= 0:
		return 0, 0, fmt.Errorf("%s %q: not positive: %w", kind, s, ErrRange)
	case !v.Num().IsInt64() || !v.Denom().IsInt64():
		return 0, 0, fmt.Errorf("%s %q: its ratio needs more than 63 bits: %w", kind, s, ErrRange)
	}
	return v.Num().Uint64(), v.Denom().Uint64(), nil
}

// scale is one unit that a ratio may be printed in; sizes fall along a list.
type scale struct {
	name string
	size uint64
}

// ratioString prints num/den exactly: as a decimal in the largest unit that
// leaves a whole part where it is one ("33.333 MHz"), else as a whole part
// and a fraction ("33 1/3 MHz").
func ratioString(num, den uint64, scales []scale) string {
	if num == 0 || den == 0 {
		return "0 " + scales[len(scales)-1].name
	}
	v := new(big.Rat).SetFrac(new(big.Int).SetUint64(num), new(big.Int).SetUint64(den))
	pick := scales[len(scales)-1]
	for _, s := range scales {
		if v.Cmp(new(big.Rat).SetInt(new(big.Int).SetUint64(s.size))) >= 0 {
			pick = s
			break
		}
	}
	v.Quo(v, new(big.Rat).SetInt(new(big.Int).SetUint64(pick.size)))
	if digits, exact := v.FloatPrec(); exact {
		return v.FloatString(digits) + " " + pick.name
	}
	whole, rest := new(big.Int).QuoRem(v.Num(), v.Denom(), new(big.Int))
	out := rest.String() + "/" + v.Denom().String() + " " + pick.name
	if whole.Sign() != 0 {
		out = whole.String() + " " + out
	}
	return out
}

// plural prints a count with its unit, "1 cycle", "132 cycles".
func plural(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.FormatInt(n, 10) + " " + many
}
