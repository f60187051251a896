package stats

import (
	"errors"
	"fmt"
	"math"
)

// ErrPairs reports two sets of runs that cannot be paired.
var ErrPairs = errors.New("runs do not pair up")

// Direction says which of two figures is the better.
type Direction uint8

// The directions.
const (
	LessIsBetter Direction = iota // gaps, latencies, losses
	MoreIsBetter                  // rates
)

// Verdict is what a comparison says of the second machine.
type Verdict uint8

// The verdicts.
const (
	CannotTell Verdict = iota // the interval of the difference holds 0, or there is none
	Better
	Worse
)

func (v Verdict) String() string {
	switch v {
	case CannotTell:
		return "cannot tell"
	case Better:
		return "better"
	case Worse:
		return "worse"
	}
	return "unknown verdict"
}

// Comparison of two machines over runs that were paired by their seeds.
type Comparison struct {
	First, Second Estimate // each on its own
	// Difference is Second − First, pair by pair. Common random numbers make
	// its interval narrower than those of First and Second suggest.
	Difference Estimate
	// Correlation between the pairs, −1 … 1; NaN below two pairs or when one
	// machine always gave the same. Near 0 the common numbers did not help.
	Correlation float64
	Verdict     Verdict
}

// Compare takes the figure of a first and of a second machine in the same
// runs, element by element: first[i] and second[i] come from one seed. The
// error is ErrPairs when their numbers differ or a figure is not finite. Below
// two pairs the verdict is CannotTell.
func Compare(first, second []float64, level float64, d Direction) (Comparison, error) {
	if len(first) != len(second) {
		return Comparison{}, fmt.Errorf("%w: %d and %d", ErrPairs, len(first), len(second))
	}
	var a, b, diff Moments
	for i := range first {
		if !finite(first[i]) || !finite(second[i]) {
			return Comparison{}, fmt.Errorf("%w: pair %d is %g and %g, want finite figures", ErrPairs, i, first[i], second[i])
		}
		a.Add(first[i])
		b.Add(second[i])
		diff.Add(second[i] - first[i])
	}
	c := Comparison{
		First: a.Estimate(level), Second: b.Estimate(level), Difference: diff.Estimate(level),
		// var(b − a) = var a + var b − 2 cov
		Correlation: (a.Variance() + b.Variance() - diff.Variance()) / (2 * a.StdDev() * b.StdDev()),
	}
	if math.IsInf(c.Correlation, 0) {
		c.Correlation = math.NaN()
	}
	c.Correlation = math.Max(-1, math.Min(1, c.Correlation))
	c.Verdict = verdict(c.Difference, d)
	return c, nil
}

func verdict(diff Estimate, d Direction) Verdict {
	low, high, ok := diff.Interval()
	switch {
	case !ok || low <= 0 && high >= 0:
		return CannotTell
	case (high < 0) == (d == LessIsBetter):
		return Better
	}
	return Worse
}
