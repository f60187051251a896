package traces

import (
	"math"
	"strconv"
)

// Real is a figure of a result. In JSON it has six significant digits, and is
// null where there is none (NaN or infinite).
type Real float64

// MarshalJSON writes the rounded figure.
func (r Real) MarshalJSON() ([]byte, error) {
	x := float64(r)
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return []byte("null"), nil
	}
	x, err := strconv.ParseFloat(strconv.FormatFloat(x, 'g', 6, 64), 64)
	if err != nil {
		return nil, err
	}
	if a := math.Abs(x); a == 0 || a >= 1e-6 && a < 1e15 {
		return strconv.AppendFloat(nil, x, 'f', -1, 64), nil
	}
	return strconv.AppendFloat(nil, x, 'g', -1, 64), nil
}

// UnmarshalJSON reads what MarshalJSON writes.
func (r *Real) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*r = Real(math.NaN())
		return nil
	}
	x, err := strconv.ParseFloat(string(b), 64)
	if err != nil {
		return err
	}
	*r = Real(x)
	return nil
}

// OK tells whether there is a figure.
func (r Real) OK() bool { return !math.IsNaN(float64(r)) && !math.IsInf(float64(r), 0) }

// String prints four significant digits or "–".
func (r Real) String() string {
	if !r.OK() {
		return "–"
	}
	x := float64(r)
	if a := math.Abs(x); a >= 1000 && a < 1e15 {
		return strconv.FormatFloat(x, 'f', 0, 64)
	}
	return strconv.FormatFloat(x, 'g', 4, 64)
}
