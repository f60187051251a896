package stats

import (
	"math"
	"slices"
)

// Replications holds one value from each of several independent runs of the
// same scenario under different seeds. The zero value is ready.
type Replications struct {
	values []float64
	m      Moments
}

// Add takes the value of one more run.
func (r *Replications) Add(x float64) {
	r.values = append(r.values, x)
	r.m.Add(x)
}

// N is the number of runs.
func (r *Replications) N() int { return len(r.values) }

// Moments of the runs' values.
func (r *Replications) Moments() *Moments { return &r.m }

// Summary of several runs.
type Summary struct {
	Estimate             // mean over the runs
	StdDev       float64 // between runs; NaN below two
	Median       float64
	P1, P99      float64 // the percentiles RFC 8219 reports; the extremes below 100 runs
	Least, Most  float64
	EnoughForRFC bool // at least the 20 runs that RFC 8219 asks for
}

// rfc8219Runs is the least number of repetitions (RFC 8219, section 7).
const rfc8219Runs = 20

// Summary gives mean, interval and spread. Below two runs there is no interval
// (TooFew); without any, all figures are NaN.
func (r *Replications) Summary(level float64) Summary {
	s := Summary{Estimate: r.m.Estimate(level), StdDev: r.m.StdDev()}
	v := slices.Clone(r.values)
	slices.Sort(v)
	s.Median, s.P1, s.P99 = quantileOf(v, 0.5), quantileOf(v, 0.01), quantileOf(v, 0.99)
	s.Least, s.Most = quantileOf(v, 0), quantileOf(v, 1)
	s.EnoughForRFC = len(v) >= rfc8219Runs
	return s
}

// quantileOf a sorted slice, between neighbours by linear interpolation.
func quantileOf(v []float64, q float64) float64 {
	if len(v) == 0 {
		return math.NaN()
	}
	x := q * float64(len(v)-1)
	i := int(x)
	if i+1 >= len(v) {
		return v[len(v)-1]
	}
	return v[i] + float64((x-float64(i))*(v[i+1]-v[i]))
}
