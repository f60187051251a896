package stats_test

import (
	"context"
	"math"
	"testing"

	"spinesim/sim/testenv"

	"spinesim/sim/des"
	"spinesim/sim/stats"
)

// queue is a single server with an unbounded FIFO, on the kernel. Its unit of
// time is the mean service.
type queue struct {
	e                 *des.Engine
	arrival, end      des.Timer
	arrivals, service func() des.Time
	waiting           []des.Time // when each arrived, from head on
	head              int
	left              int // customers still to come

	waits  stats.Batches
	length stats.TimeAverage // in the queue, not in service
	busy   *stats.TimeBatches
}

const unit = des.Microsecond

func (q *queue) Handle(now des.Time, what uint64) error {
	if what == 0 {
		q.waiting = append(q.waiting, now)
		if q.left--; q.left > 0 {
			if err := q.e.Arm(&q.arrival, now+q.arrivals()); err != nil {
				return err
			}
		}
	}
	if q.end.Armed() {
		return q.length.Set(int64(now), float64(len(q.waiting)-q.head))
	}
	if q.head == len(q.waiting) {
		q.waiting, q.head = q.waiting[:0], 0
		return q.busy.Set(int64(now), 0)
	}
	q.waits.Add(float64(now-q.waiting[q.head]) / float64(unit))
	q.head++
	if err := q.length.Set(int64(now), float64(len(q.waiting)-q.head)); err != nil {
		return err
	}
	if err := q.busy.Set(int64(now), 1); err != nil {
		return err
	}
	return q.e.Arm(&q.end, now+q.service())
}

// run serves so many customers at the load ρ (arrivals per mean service).
func run(t *testing.T, seed uint64, customers int, rho float64, service func(*des.Stream) des.Time) *queue {
	t.Helper()
	a, s := des.NewStream(seed, "arrivals"), des.NewStream(seed, "services")
	busy, err := stats.NewTimeBatches(10 * int64(unit))
	if err != nil {
		t.Fatal(err)
	}
	q := &queue{
		e: des.New(des.Options{}), left: customers, busy: busy,
		arrivals: func() des.Time { return a.Exponential(des.Time(float64(unit) / rho)) },
		service:  func() des.Time { return service(s) },
	}
	q.arrival.Init(q, 1, 0)
	q.end.Init(q, 0, 1)
	if err := q.length.Set(0, 0); err != nil {
		t.Fatal(err)
	}
	if err := q.busy.Set(0, 0); err != nil {
		t.Fatal(err)
	}
	if err := q.e.Arm(&q.arrival, q.arrivals()); err != nil {
		t.Fatal(err)
	}
	if err := q.e.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	return q
}

func exponential(r *des.Stream) des.Time { return r.Exponential(unit) }
func constant(*des.Stream) des.Time      { return unit }

// twoPoint is 0.5 with probability 0.9, else 5.5: mean 1, second moment 3.25.
func twoPoint(r *des.Stream) des.Time {
	if r.Bernoulli(1, 10) {
		return 11 * unit / 2
	}
	return unit / 2
}

// Pollaczek and Khinchine: the mean wait in M/G/1 is ρ·E[S²] / 2(1 − ρ) mean
// services, for a mean service of 1.
func TestMeanWaitsAgainstTheory(t *testing.T) {
	for i, c := range []struct {
		name    string
		service func(*des.Stream) des.Time
		second  float64 // E[S²]
		rho     float64
	}{
		{"M/M/1 at 0.5", exponential, 2, 0.5},
		{"M/M/1 at 0.8", exponential, 2, 0.8},
		{"M/D/1 at 0.7", constant, 1, 0.7},
		{"M/G/1 at 0.6", twoPoint, 0.9*0.25 + 0.1*30.25, 0.6},
	} {
		q := run(t, uint64(i), 400000, c.rho, c.service)
		want := c.rho * c.second / 2 / (1 - c.rho)
		e := q.waits.Estimate(0.99)
		t.Logf("%s: wait %v, theory %.4f (%d of %d observations, %d batches)", c.name, e, want, e.N, q.waits.N(), e.Batches)
		if !e.Contains(want) {
			t.Errorf("%s: wait %v, theory %g", c.name, e, want)
		}
		if e.Relative() > 0.1 {
			t.Errorf("%s: interval of ± %.1f %% is too wide to mean anything", c.name, 100*e.Relative())
		}
		u := q.busy.Estimate(0.99)
		if !u.Contains(c.rho) || u.Half > 0.02 {
			t.Errorf("%s: utilisation %v, want %g", c.name, u, c.rho)
		}

		// Little: customers waiting = rate × wait. It holds to rounding on
		// any run that begins and ends empty.
		rate := float64(q.waits.N()) / (float64(q.length.Span()) / float64(unit))
		if l, lw := q.length.Mean(), rate*q.waits.All().Mean(); math.Abs(l/lw-1) > 1e-9 {
			t.Errorf("%s: Little's law: L = %.12g, λW = %.12g", c.name, l, lw)
		}
	}
}

// A 95 % interval is right 95 times in a hundred: over 200 runs each, between
// 91 and 98 %.
func TestCoverage(t *testing.T) {
	const runs = 200
	customers := testenv.Size(8000, 15000)
	for _, c := range []struct {
		name    string
		service func(*des.Stream) des.Time
		second  float64
		rho     float64
	}{
		{"M/M/1", exponential, 2, 0.5},
		{"M/D/1", constant, 1, 0.6},
	} {
		want := c.rho * c.second / 2 / (1 - c.rho)
		covered, short := 0, 0
		for seed := range uint64(runs) {
			e := run(t, seed, customers, c.rho, c.service).waits.Estimate(0.95)
			switch {
			case !e.OK():
				short++
			case e.Contains(want):
				covered++
			}
		}
		share := float64(covered) / float64(runs-short)
		t.Logf("%s: %d of %d intervals hold the true mean (%.1f %%), %d runs too short to say", c.name, covered, runs-short, 100*share, short)
		if share < 0.91 || share > 0.98 {
			t.Errorf("%s: coverage %.1f %%, want 91 to 98", c.name, 100*share)
		}
		if short > runs/20 {
			t.Errorf("%s: %d of %d runs were called too short", c.name, short, runs)
		}
	}
}

// Too short a run says so: an M/M/1 queue at 0.98 needs far more customers.
func TestTooShortToSay(t *testing.T) {
	short, wrong := 0, 0
	const runs, want = 40, 0.98 / (1 - 0.98)
	for seed := range uint64(runs) {
		e := run(t, seed, 1500, 0.98, exponential).waits.Estimate(0.95)
		switch {
		case !e.OK():
			short++
		case !e.Contains(want):
			wrong++
		}
	}
	t.Logf("%d of %d too short, %d wrong", short, runs, wrong)
	if short < runs*9/10 {
		t.Errorf("only %d of %d hopeless runs were called too short; %d gave a wrong answer", short, runs, wrong)
	}
}

// Common random numbers tell two nearly equal servers apart where independent
// runs cannot.
func TestCommonRandomNumbers(t *testing.T) {
	faster := func(r *des.Stream) des.Time { return r.Exponential(995 * unit / 1000) }
	var base, paired, apart []float64
	for seed := range uint64(20) {
		mean := func(seed uint64, s func(*des.Stream) des.Time) float64 {
			return run(t, seed, 3000, 0.7, s).waits.All().Mean()
		}
		base = append(base, mean(seed, exponential))
		paired = append(paired, mean(seed, faster))
		apart = append(apart, mean(seed+1000, faster))
	}
	c, err := stats.Compare(base, paired, 0.95, stats.LessIsBetter)
	if err != nil {
		t.Fatal(err)
	}
	d, err := stats.Compare(base, apart, 0.95, stats.LessIsBetter)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("common: %v %v (correlation %.3f); independent: %v %v", c.Difference, c.Verdict, c.Correlation, d.Difference, d.Verdict)
	if c.Verdict != stats.Better || d.Verdict != stats.CannotTell || c.Difference.Half > d.Difference.Half/3 {
		t.Errorf("common numbers: %v %v; independent: %v %v", c.Verdict, c.Difference, d.Verdict, d.Difference)
	}
}
