package stats

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"
)

func TestTimeAverageAgainstEveryTick(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 200 {
		var a TimeAverage
		start := int64(rng.IntN(1000)) - 500
		now, level := start, 0.0
		var ticks Moments // one value a unit of time
		restart := rng.IntN(30)
		for i := range 40 {
			step := rng.IntN(20)
			for range step {
				ticks.Add(level)
			}
			now += int64(step)
			if i == 0 {
				now, ticks = start, Moments{}
			}
			if i == restart {
				if err := a.Restart(now); err != nil {
					t.Fatal(err)
				}
				if a.begun {
					ticks = Moments{}
				}
			}
			level = float64(rng.IntN(10))
			if err := a.Set(now, level); err != nil {
				t.Fatal(err)
			}
		}
		near(t, "mean", a.Mean(), ticks.Mean(), 1e-9)
		near(t, "variance", a.Variance(), ticks.m2/float64(ticks.n), 1e-9)
		if a.Span() != int64(ticks.N()) {
			t.Fatalf("span %d, want %d", a.Span(), ticks.N())
		}
		if a.Max() < ticks.Max() || a.Min() > ticks.Min() || a.Level() != level {
			t.Fatalf("extremes %v %v, level %v; ticks %v %v, %v", a.Min(), a.Max(), a.Level(), ticks.Min(), ticks.Max(), level)
		}
	}
}

func TestTimeAverageEdges(t *testing.T) {
	var a TimeAverage
	if err := a.Advance(5); err != nil || !math.IsNaN(a.Mean()) || !math.IsNaN(a.Min()) || !math.IsNaN(a.Max()) {
		t.Errorf("before the first level: %v %v", err, a.Mean())
	}
	if err := a.Set(10, 2); err != nil || !math.IsNaN(a.Mean()) {
		t.Errorf("after no time: %v %v", err, a.Mean())
	}
	if err := a.Set(9, 3); !errors.Is(err, ErrBackwards) || a.Level() != 2 {
		t.Errorf("backwards: %v, level %v", err, a.Level())
	}
	// A long run must not swallow a short spell: 1e16 + 1 in floating point.
	if err := errors.Join(a.Set(10, 1), a.Set(1e16, 0), a.Set(1e16+3, 1), a.Set(1e16+4, 0)); err != nil {
		t.Fatal(err)
	}
	if got := a.area.sum(); got != 1e16-10+1 && got != 1e16-8 { // 1e16 − 9 is not a float64
		t.Errorf("area %v", got)
	}
	if a.area.s == a.area.sum() && a.area.c == 0 {
		t.Error("nothing was compensated")
	}
}
