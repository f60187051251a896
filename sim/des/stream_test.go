package des

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestStreamGolden pins the sequences: results quote a seed, and must be found
// again by later versions and on other machines.
func TestStreamGolden(t *testing.T) {
	s := NewStream(1, "traffic/0/sizes")
	got := []uint64{s.Uint64(), s.Uint64N(1000), uint64(s.Exponential(Microsecond)), uint64(s.Uniform(10, 20))}
	want := []uint64{2600647745700642200, 892, 1191699, 19}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("stream changed (-want +got):\n%s", diff)
	}
}

func TestStreamsAreIndependent(t *testing.T) {
	draw := func(s *Stream) (out []uint64) {
		for range 100 {
			out = append(out, s.Uint64())
		}
		return out
	}
	alone := draw(NewStream(7, "a"))
	other := NewStream(7, "b")
	s := NewStream(7, "a")
	var mixed []uint64
	for range 100 {
		other.Exponential(Second)
		mixed = append(mixed, s.Uint64())
	}
	if !slices.Equal(alone, mixed) {
		t.Error("drawing from one stream disturbs another")
	}
	for _, s := range []*Stream{NewStream(7, "b"), NewStream(8, "a"), NewStream(7, ""), NewStream(7, "a\x00")} {
		if slices.Equal(alone, draw(s)) {
			t.Error("two streams are the same")
		}
	}
}

// moments returns mean and variance of n draws.
func moments(n int, draw func() float64) (mean, variance float64) {
	var m2 float64
	for i := range n {
		x := draw()
		d := x - mean
		mean += d / float64(i+1)
		m2 += d * (x - mean)
	}
	return mean, m2 / float64(n-1)
}

func TestExponential(t *testing.T) {
	const n, mean = 400_000, 1_000_000
	s := NewStream(3, "exponential")
	draws := make([]float64, 0, n)
	m, v := moments(n, func() float64 {
		x := float64(s.Exponential(mean))
		draws = append(draws, x)
		return x
	})
	// Five standard errors: mean/√n of the mean, mean²·√(8/n) of the variance.
	if math.Abs(m/mean-1) > 5/math.Sqrt(n) {
		t.Errorf("mean %g", m)
	}
	if math.Abs(v/(mean*mean)-1) > 5*math.Sqrt(8.0/n) {
		t.Errorf("variance %g", v)
	}
	// Kolmogorov-Smirnov at 1.95/√n, the 0.1 % level.
	slices.Sort(draws)
	var d float64
	for i, x := range draws {
		d = max(d, math.Abs(1-math.Exp(-x/mean)-float64(i)/n))
	}
	if d > 1.95/math.Sqrt(n) {
		t.Errorf("Kolmogorov-Smirnov distance %g", d)
	}
	if got := [...]Time{s.Exponential(0), s.Exponential(-5)}; got != [2]Time{} {
		t.Errorf("mean not above 0 gives %v", got)
	}
	var saturated bool
	for range 100 {
		x := s.Exponential(MaxTime)
		saturated = saturated || x == MaxTime
		if x < 0 {
			t.Fatalf("overflow: %d", x)
		}
	}
	if !saturated {
		t.Error("a mean of MaxTime never saturates")
	}
}

func TestBounded(t *testing.T) {
	s := NewStream(5, "bounded")
	const n, k = 100_000, 7
	var hist [k]int
	for range n {
		hist[s.IntN(k)]++
	}
	var chi2 float64
	for _, c := range hist {
		d := float64(c) - n/float64(k)
		chi2 += d * d / (n / float64(k))
	}
	if chi2 > 22.46 { // 6 degrees of freedom, 0.1 %
		t.Errorf("chi² %g of %v", chi2, hist)
	}
	// A range above 2^63 rejects nearly half of the draws when biased draws
	// are dropped as they must be; each half must come out equally often.
	const big = 3 << 62
	third := 0
	for range n {
		if x := s.Uint64N(big); x >= big {
			t.Fatalf("%d out of range", x)
		} else if x < big/3 {
			third++
		}
	}
	if math.Abs(float64(third)/n-1.0/3) > 5*math.Sqrt(2.0/9/n) {
		t.Errorf("a third of the range drawn %d times of %d", third, n)
	}
	for range 1000 {
		if x := s.Between(-3, 3); x < -3 || x > 3 {
			t.Fatalf("Between(-3, 3) = %d", x)
		}
		if x := s.Uniform(5, 6); x != 5 && x != 6 {
			t.Fatalf("Uniform(5, 6) = %d", x)
		}
		if f := s.Float64(); f < 0 || f >= 1 {
			t.Fatalf("Float64 = %g", f)
		}
	}
	s.Between(math.MinInt64, math.MaxInt64)
	got := []int64{s.Between(9, 9), s.Between(9, 1), int64(s.IntN(0)), int64(s.IntN(-3)), int64(s.Uint64N(0)), int64(s.Uint64N(1))}
	if want := []int64{9, 9, 0, 0, 0, 0}; !slices.Equal(got, want) {
		t.Errorf("degenerate ranges give %v, want %v", got, want)
	}
	yes, _ := moments(n, func() float64 {
		if s.Bernoulli(1, 4) {
			return 1
		}
		return 0
	})
	if math.Abs(yes-0.25) > 5*math.Sqrt(3.0/16/n) || s.Bernoulli(1, 0) || s.Bernoulli(0, 1) || !s.Bernoulli(1, 1) {
		t.Errorf("Bernoulli(1, 4) holds in %g", yes)
	}
	order := []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}
	s.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	if slices.IsSorted(order) {
		t.Errorf("shuffled to %v", order)
	}
	slices.Sort(order)
	if want := []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}; !slices.Equal(order, want) {
		t.Errorf("shuffling lost elements: %v", order)
	}
}

func TestEmpirical(t *testing.T) {
	// Exactly: each value's shares over all columns add up to n·weight.
	rng := rand.New(rand.NewPCG(5, 6))
	for range 300 {
		n := 1 + rng.IntN(40)
		values, weights := make([]int64, n), make([]uint64, n)
		var total uint64
		for i := range values {
			values[i], weights[i] = int64(i), rng.Uint64N(100)*rng.Uint64N(2)
			total += weights[i]
		}
		d, err := NewEmpirical(values, weights)
		if total == 0 {
			if !errors.Is(err, ErrRange) {
				t.Fatalf("no weight at all: %v", err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		got := make([]uint64, n)
		for i := range d.share {
			got[i] += d.share[i]
			got[d.alias[i]] += d.total - d.share[i]
		}
		for i := range got {
			if got[i] != uint64(n)*weights[i] {
				t.Fatalf("weights %v: value %d has %d shares, want %d", weights, i, got[i], uint64(n)*weights[i])
			}
		}
	}
	d, err := NewEmpirical([]int64{64, 576, 1500}, []uint64{7, 4, 1})
	if err != nil {
		t.Fatal(err)
	}
	if want := (7*64 + 4*576 + 1500) / 12.0; d.Mean() != want || d.Len() != 3 {
		t.Errorf("mean %g of %d values, want %g", d.Mean(), d.Len(), want)
	}
	s := NewStream(1, "sizes")
	count := map[int64]int{}
	const n = 120_000
	for range n {
		count[s.Empirical(d)]++
	}
	for v, w := range map[int64]float64{64: 7.0 / 12, 576: 4.0 / 12, 1500: 1.0 / 12} {
		if math.Abs(float64(count[v])/n-w) > 5*math.Sqrt(w*(1-w)/n) {
			t.Errorf("value %d drawn %d times of %d", v, count[v], n)
		}
	}
	even, err := NewEmpirical([]int64{1, 2}, nil)
	if err != nil || even.Mean() != 1.5 {
		t.Errorf("equal weights: mean %v, %v", even.Mean(), err)
	}
	for name, bad := range map[string]struct {
		v []int64
		w []uint64
	}{
		"no values":   {nil, nil},
		"lengths":     {[]int64{1}, []uint64{1, 2}},
		"zero":        {[]int64{1}, []uint64{0}},
		"sum":         {[]int64{1, 2}, []uint64{math.MaxUint64, 1}},
		"sum times n": {[]int64{1, 2}, []uint64{math.MaxUint64 / 2, 1}},
	} {
		if _, err := NewEmpirical(bad.v, bad.w); !errors.Is(err, ErrRange) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestStreamAllocs(t *testing.T) {
	s := NewStream(1, "allocs")
	d, err := NewEmpirical([]int64{1, 2, 3}, []uint64{1, 2, 3})
	if err != nil {
		t.Fatal(err)
	}
	n := testing.AllocsPerRun(1000, func() {
		s.Exponential(Microsecond)
		s.Uniform(1, 100)
		s.Empirical(d)
		s.Float64()
		s.IntN(10)
		s.Bernoulli(1, 3)
	})
	if n != 0 {
		t.Errorf("drawing allocates %v times", n)
	}
}

func BenchmarkStream(b *testing.B) {
	s := NewStream(1, "bench")
	d, err := NewEmpirical([]int64{64, 576, 1500}, []uint64{7, 4, 1})
	if err != nil {
		b.Fatal(err)
	}
	b.Run("Exponential", func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			s.Exponential(Microsecond)
		}
	})
	b.Run("Empirical", func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			s.Empirical(d)
		}
	})
	b.Run("Uniform", func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			s.Uniform(1, 1<<20)
		}
	})
}
