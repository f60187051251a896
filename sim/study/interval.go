package study

import (
	"fmt"
	"math"

	"spinesim/sim/stats"
	"spinesim/traces"
)

// level of all confidence intervals.
const level = 0.95

// Interval is a mean over replications with its 95 % confidence interval, in
// the unit of what it measures. Low and High are NaN, in JSON null, where there
// is none; Short then says why.
type Interval struct {
	Mean  traces.Real `json:"mean"`
	Low   traces.Real `json:"low"`
	High  traces.Real `json:"high"`
	N     int         `json:"n"`
	Short string      `json:"short,omitempty"`
}

// NewInterval is the estimate of the mean of independent values; values that are
// no figure are left out.
func NewInterval(values []float64) Interval {
	var m stats.Moments
	for _, v := range values {
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			m.Add(v)
		}
	}
	return intervalOf(m.Estimate(level))
}

func intervalOf(e stats.Estimate) Interval {
	lo, hi, _ := e.Interval()
	v := Interval{Mean: traces.Real(e.Mean), Low: traces.Real(lo), High: traces.Real(hi), N: e.Batches}
	if !e.OK() {
		v.Short = e.Shortfall.String()
	}
	return v
}

// OK tells whether there is an interval.
func (v Interval) OK() bool { return v.Short == "" && v.Low.OK() && v.High.OK() }

// Half is half the interval's width, NaN without one.
func (v Interval) Half() float64 {
	if !v.OK() {
		return math.NaN()
	}
	return float64(v.High-v.Low) / 2
}

// Scale multiplies everything by f, to change the unit.
func (v Interval) Scale(f float64) Interval {
	v.Mean *= traces.Real(f)
	v.Low *= traces.Real(f)
	v.High *= traces.Real(f)
	if f < 0 {
		v.Low, v.High = v.High, v.Low
	}
	return v
}

// String prints "77.12 ± 0.43"; without an interval the mean alone.
func (v Interval) String() string {
	if !v.OK() {
		return v.Mean.String()
	}
	half := v.Half()
	if half == 0 {
		return fmt.Sprintf("%.6g ± 0", float64(v.Mean))
	}
	digits := min(max(1-int(math.Floor(math.Log10(half))), 0), 12)
	return fmt.Sprintf("%.*f ± %.*f", digits, float64(v.Mean), digits, half)
}
