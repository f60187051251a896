package stats

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"gonum.org/v1/gonum/stat/distuv"
)

// Shortfall says why an Estimate has no confidence interval.
type Shortfall uint8

// The shortfalls.
const (
	Enough        Shortfall = iota // nothing is missing: there is an interval
	TooFew                         // too few observations, batches or runs
	NotSettled                     // the warm-up reaches into the second half of the run
	Correlated                     // even the longest batches are still correlated with each other
	NumShortfalls = int(iota)
)

var shortfallNames = [NumShortfalls]string{
	"enough", "too few observations", "still warming up", "batches still correlated",
}

func (s Shortfall) String() string {
	if int(s) < NumShortfalls {
		return shortfallNames[s]
	}
	return "unknown shortfall"
}

// Estimate is a mean with what is known about its uncertainty.
type Estimate struct {
	// Mean over the N observations used; NaN when there was none. With a
	// Shortfall it is merely the mean of what was seen.
	Mean float64
	// Half is half the width of the confidence interval Mean ± Half; it means
	// nothing with a Shortfall.
	Half float64
	// Level of confidence, for instance 0.95.
	Level float64
	// N observations were used, after Warmup observations had been left out at
	// the start. For TimeBatches both are spans of time in the caller's unit.
	N, Warmup uint64
	// Batches (or runs) that the interval rests on; Batches − 1 degrees of
	// freedom.
	Batches   int
	Shortfall Shortfall
}

// OK tells whether there is an interval.
func (e Estimate) OK() bool { return e.Shortfall == Enough }

// Interval gives the ends of the confidence interval; ok is false, and the
// ends are NaN, when the run was too short to give one.
func (e Estimate) Interval() (low, high float64, ok bool) {
	if !e.OK() {
		return math.NaN(), math.NaN(), false
	}
	return e.Mean - e.Half, e.Mean + e.Half, true
}

// Contains tells whether x lies within the interval; never without one.
func (e Estimate) Contains(x float64) bool {
	return e.OK() && math.Abs(x-e.Mean) <= e.Half
}

// Relative is Half as a share of |Mean|, for stopping a run that is precise
// enough: +Inf without an interval or with a mean of 0 that is not exact.
func (e Estimate) Relative() float64 {
	switch {
	case !e.OK():
		return math.Inf(1)
	case e.Half == 0:
		return 0
	}
	return e.Half / math.Abs(e.Mean)
}

// Scale multiplies mean and interval, to change the unit.
func (e Estimate) Scale(f float64) Estimate {
	e.Mean *= f
	e.Half *= math.Abs(f)
	return e
}

// String prints "77.12 ± 0.43", with the mean to the digit that the interval
// supports and one more, or "too short to say (reason)".
func (e Estimate) String() string {
	if !e.OK() {
		return fmt.Sprintf("too short to say (%v)", e.Shortfall)
	}
	if math.IsNaN(e.Mean) || math.IsInf(e.Mean, 0) || math.IsNaN(e.Half) || math.IsInf(e.Half, 0) {
		return fmt.Sprintf("%g ± %g", e.Mean, e.Half)
	}
	if e.Half == 0 {
		return strconv.FormatFloat(e.Mean, 'g', 6, 64) + " ± 0"
	}
	digits := 1 - int(math.Floor(math.Log10(e.Half)))
	if digits > 12 || digits < -12 {
		return fmt.Sprintf("%.6g ± %.2g", e.Mean, e.Half)
	}
	digits = max(digits, 0)
	return fmt.Sprintf("%.*f ± %.*f", digits, e.Mean, digits, e.Half)
}

// MarshalJSON writes mean, ci (low, high), level, n, warmup, batches. Without
// an interval ci is null and "short" gives the reason; a mean that is not
// finite is null.
func (e Estimate) MarshalJSON() ([]byte, error) {
	v := struct {
		Mean    *float64    `json:"mean"`
		CI      *[2]float64 `json:"ci"`
		Level   float64     `json:"level"`
		N       uint64      `json:"n"`
		Warmup  uint64      `json:"warmup"`
		Batches int         `json:"batches"`
		Short   string      `json:"short,omitempty"`
	}{Level: e.Level, N: e.N, Warmup: e.Warmup, Batches: e.Batches}
	if finite(e.Mean) {
		v.Mean = &e.Mean
	}
	if lo, hi, ok := e.Interval(); ok && finite(lo) && finite(hi) {
		v.CI = &[2]float64{lo, hi}
	} else if !ok {
		v.Short = e.Shortfall.String()
	}
	return json.Marshal(v)
}

func finite(x float64) bool { return x-x == 0 }

// studentT is the two-sided quantile: a Student-t variable of the given
// degrees of freedom lies within ± it with probability level.
func studentT(level, degrees float64) float64 {
	if !(level > 0 && level < 1) {
		return math.NaN()
	}
	return distuv.StudentsT{Mu: 0, Sigma: 1, Nu: degrees}.Quantile((1 + level) / 2)
}
