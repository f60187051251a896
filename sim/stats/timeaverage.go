package stats

import (
	"errors"
	"fmt"
	"math"
)

// ErrBackwards reports a level set at a time before the one known last.
var ErrBackwards = errors.New("time runs backwards")

// TimeAverage is the mean over time of a level that changes in steps: a queue's
// depth, an engine's being busy (0 or 1). The zero value starts at the first
// call of Set.
type TimeAverage struct {
	begun      bool
	first, now int64
	level      float64
	area, sq   compensated
	min, max   float64
}

// Set says that the level is v from now on. now must not lie before the time
// of an earlier call, else the error is ErrBackwards and nothing changes.
func (a *TimeAverage) Set(now int64, v float64) error {
	if !a.begun {
		*a = TimeAverage{begun: true, first: now, now: now, level: v, min: v, max: v}
		return nil
	}
	if err := a.Advance(now); err != nil {
		return err
	}
	a.level = v
	a.min, a.max = min(a.min, v), max(a.max, v)
	return nil
}

// Advance lets time pass with the level unchanged.
func (a *TimeAverage) Advance(now int64) error {
	if !a.begun {
		return nil
	}
	if now < a.now {
		return fmt.Errorf("time average: level set at %d after %d: %w", now, a.now, ErrBackwards)
	}
	dt := float64(now - a.now)
	a.area.add(a.level * dt)
	a.sq.add(a.level * a.level * dt)
	a.now = now
	return nil
}

// Restart forgets the past, as after a warm-up, and keeps the level.
func (a *TimeAverage) Restart(now int64) error {
	if err := a.Advance(now); err != nil || !a.begun {
		return err
	}
	*a = TimeAverage{begun: true, first: now, now: now, level: a.level, min: a.level, max: a.level}
	return nil
}

// Level is the level last set.
func (a *TimeAverage) Level() float64 { return a.level }

// Span is the time observed so far.
func (a *TimeAverage) Span() int64 { return a.now - a.first }

// Mean over the time up to the last call of Set or Advance; NaN when no time
// has passed.
func (a *TimeAverage) Mean() float64 {
	if a.now == a.first {
		return math.NaN()
	}
	return a.area.sum() / float64(a.now-a.first)
}

// Variance over time of the level about its mean; NaN when no time has passed.
func (a *TimeAverage) Variance() float64 {
	m := a.Mean()
	return math.Max(0, a.sq.sum()/float64(a.now-a.first)-float64(m*m))
}

// Min is the least level; NaN before the first Set.
func (a *TimeAverage) Min() float64 {
	if !a.begun {
		return math.NaN()
	}
	return a.min
}

// Max is the greatest level; NaN before the first Set.
func (a *TimeAverage) Max() float64 {
	if !a.begun {
		return math.NaN()
	}
	return a.max
}

// compensated is Neumaier's sum: small spans keep their weight beside a long
// run's area.
type compensated struct{ s, c float64 }

func (k *compensated) add(x float64) {
	t := k.s + x
	if math.Abs(k.s) >= math.Abs(x) {
		k.c += (k.s - t) + x
	} else {
		k.c += (x - t) + k.s
	}
	k.s = t
}

func (k *compensated) sum() float64 { return k.s + k.c }
