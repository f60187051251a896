package stats

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if math.IsNaN(want) != math.IsNaN(got) || math.Abs(got-want) > tolerance {
		t.Errorf("%s: got %v, want %v ± %g", what, got, want, tolerance)
	}
}

// exactMoments is the slow oracle: two passes in 200-bit arithmetic.
func exactMoments(v []float64) (mean, variance float64) {
	num := func(x float64) *big.Float { return new(big.Float).SetPrec(200).SetFloat64(x) }
	sum := num(0)
	for _, x := range v {
		sum.Add(sum, num(x))
	}
	n := num(float64(len(v)))
	m := new(big.Float).SetPrec(200).Quo(sum, n)
	sq := num(0)
	for _, x := range v {
		d := num(x)
		d.Sub(d, m)
		sq.Add(sq, d.Mul(d, d))
	}
	mean, _ = m.Float64()
	variance, _ = sq.Quo(sq, num(float64(len(v)-1))).Float64()
	return mean, variance
}

func TestMomentsAgainstExactArithmetic(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for round := range 200 {
		n := 2 + rng.IntN(300)
		offset := math.Pow(10, float64(rng.IntN(13)))
		v := make([]float64, n)
		var one, left, right Moments
		for i := range v {
			v[i] = offset + rng.NormFloat64()
			one.Add(v[i])
			if rng.IntN(2) == 0 {
				left.Add(v[i])
			} else {
				right.Add(v[i])
			}
		}
		left.Merge(&right)
		mean, variance := exactMoments(v)
		for _, m := range []*Moments{&one, &left} {
			if m.N() != uint64(n) {
				t.Fatalf("round %d: N %d, want %d", round, m.N(), n)
			}
			near(t, "mean", m.Mean(), mean, 1e-14*math.Abs(mean)*4)
			// The naive Σx² − n·x̄² would be off by about offset²·1e-16.
			near(t, "variance", m.Variance(), variance, 1e-7*variance+1e-15*offset)
		}
		if one.Min() != left.Min() || one.Max() != left.Max() {
			t.Fatalf("round %d: extremes %v %v and %v %v", round, one.Min(), one.Max(), left.Min(), left.Max())
		}
	}
}

func TestMomentsEdges(t *testing.T) {
	var m, empty Moments
	m.Merge(&empty)
	for what, v := range map[string]float64{"mean": m.Mean(), "variance": m.Variance(), "min": m.Min(), "max": m.Max()} {
		if !math.IsNaN(v) {
			t.Errorf("%s of nothing is %v, want NaN", what, v)
		}
	}
	if e := m.Estimate(0.95); e.OK() || e.Shortfall != TooFew {
		t.Errorf("estimate of nothing: %v", e)
	}
	m.Add(-3)
	if m.Mean() != -3 || m.Min() != -3 || m.Max() != -3 || !math.IsNaN(m.Variance()) || m.Sum() != -3 {
		t.Errorf("one value: %+v", m)
	}
	before := m
	m.Merge(&empty)
	if m != before {
		t.Errorf("merging nothing changed %+v to %+v", before, m)
	}
	m.Add(math.NaN())
	if !math.IsNaN(m.Mean()) {
		t.Errorf("a NaN was lost: mean %v", m.Mean())
	}
}

// Student's own table: the two-sided 95 % points.
func TestStudentT(t *testing.T) {
	for degrees, want := range map[float64]float64{1: 12.706, 2: 4.303, 7: 2.365, 15: 2.131, 31: 2.040, 1e6: 1.960} {
		near(t, "t", studentT(0.95, degrees), want, 0.0006)
	}
	near(t, "t at 99 %", studentT(0.99, 10), 3.169, 0.0006)
	for _, level := range []float64{0, 1, -1, math.NaN()} {
		if !math.IsNaN(studentT(level, 5)) {
			t.Errorf("level %v gave a figure", level)
		}
	}
}

func TestNoAllocation(t *testing.T) {
	h, err := NewHistogram(0.004)
	if err != nil {
		t.Fatal(err)
	}
	var m Moments
	var a TimeAverage
	var b Batches
	tb, err := NewTimeBatches(7)
	if err != nil {
		t.Fatal(err)
	}
	b.Add(1)
	h.Add(-1)
	now := int64(0)
	if n := testing.AllocsPerRun(20000, func() {
		now += 3
		x := float64(now % 11)
		m.Add(x)
		h.Add(now)
		h.Add(-now)
		b.Add(x)
		if a.Set(now, x) != nil || tb.Set(now, x) != nil {
			t.Fatal("time ran backwards")
		}
	}); n != 0 {
		t.Errorf("%v allocations a value, want 0", n)
	}
}

func BenchmarkMoments(b *testing.B) {
	var m Moments
	for i := range b.N {
		m.Add(float64(i & 1023))
	}
}

func BenchmarkBatches(b *testing.B) {
	var m Batches
	for i := range b.N {
		m.Add(float64(i & 1023))
	}
}

func BenchmarkHistogram(b *testing.B) {
	h, err := NewHistogram(0.004)
	if err != nil {
		b.Fatal(err)
	}
	for i := range b.N {
		h.Add(int64(i) * 1001)
	}
}
