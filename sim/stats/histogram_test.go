package stats

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// draw gives magnitudes spread over the whole range of int64, both signs.
func draw(rng *rand.Rand) int64 {
	v := int64(rng.Uint64() >> 1 >> rng.UintN(63))
	switch rng.UintN(20) {
	case 0:
		return math.MaxInt64
	case 1:
		return math.MinInt64
	case 2, 3, 4:
		return -v
	}
	return v
}

func withinError(got, want int64, bound float64) bool {
	diff := new64(got) - new64(want)
	return math.Abs(diff) <= bound*math.Abs(new64(want))*(1+1e-12)
}

func new64(v int64) float64 { return float64(v) }

func TestHistogramAgainstSortedValues(t *testing.T) {
	for _, bound := range []float64{0.5, 0.1, 0.01, 0.004, 1.0 / (1 << 12)} {
		rng := rand.New(rand.NewPCG(3, uint64(1/bound)))
		for round := range 40 {
			h, err := NewHistogram(bound)
			if err != nil {
				t.Fatal(err)
			}
			other, err := NewHistogram(bound)
			if err != nil {
				t.Fatal(err)
			}
			n := 1 + rng.IntN(400)
			v := make([]int64, n)
			for i := range v {
				v[i] = draw(rng)
				if round%2 == 0 {
					v[i] &= math.MaxInt64
				}
				if i%3 == 0 {
					other.Add(v[i])
				} else {
					h.Add(v[i])
				}
			}
			if err := h.Merge(other); err != nil {
				t.Fatal(err)
			}
			slices.Sort(v)
			if h.N() != uint64(n) || h.Min() != v[0] || h.Max() != v[n-1] {
				t.Fatalf("n, min, max: %d %d %d, want %d %d %d", h.N(), h.Min(), h.Max(), n, v[0], v[n-1])
			}
			for _, q := range []float64{-1, 0, 0.01, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999, 1, 2} {
				want := v[min(max(int(math.Ceil(q*float64(n))), 1), n)-1]
				got, ok := h.Quantile(q)
				if !ok || !withinError(got, want, bound) {
					t.Fatalf("bound %g, %d values, quantile %g: got %d, want %d", bound, n, q, got, want)
				}
			}
			checkBuckets(t, h, v)
		}
	}
}

// checkBuckets holds the buckets against the sorted values themselves.
func checkBuckets(t *testing.T, h *Histogram, v []int64) {
	t.Helper()
	last, first := int64(0), true
	rest := v
	for b := range h.Buckets {
		if b.Low > b.High || !first && b.Low <= last {
			t.Fatalf("bucket %+v after one that ends at %d", b, last)
		}
		last, first = b.High, false
		n := 0
		for n < len(rest) && rest[n] <= b.High {
			if rest[n] < b.Low {
				t.Fatalf("value %d lies before bucket %+v", rest[n], b)
			}
			n++
		}
		if uint64(n) != b.Count {
			t.Fatalf("bucket %+v holds %d values", b, n)
		}
		rest = rest[n:]
	}
	if len(rest) != 0 {
		t.Fatalf("%d values in no bucket, from %d", len(rest), rest[0])
	}
}

func TestHistogramIndexIsContiguous(t *testing.T) {
	for _, bound := range []float64{0.5, 0.25, 0.05} {
		h, err := NewHistogram(bound)
		if err != nil {
			t.Fatal(err)
		}
		next := uint64(0)
		for i := range h.buckets() {
			low, high := h.bounds(i)
			if low != next || h.index(low) != i || h.index(high) != i {
				t.Fatalf("bucket %d: %d … %d, want from %d; ends index to %d, %d", i, low, high, next, h.index(low), h.index(high))
			}
			next = high + 1
		}
		if next != 0 {
			t.Errorf("bound %g: buckets end at %d, want the end of the range", bound, next)
		}
	}
}

func TestHistogramSmallThings(t *testing.T) {
	for _, bad := range []float64{0, -1, 0.6, 1e-9, math.NaN()} {
		if _, err := NewHistogram(bad); err == nil {
			t.Errorf("relative error %g was accepted", bad)
		}
	}
	h, _ := NewHistogram(0.01)
	if _, ok := h.Quantile(0.5); ok {
		t.Error("an empty histogram has a median")
	}
	coarse, _ := NewHistogram(0.1)
	if err := h.Merge(coarse); !errors.Is(err, ErrPrecision) {
		t.Errorf("merge of another precision: %v", err)
	}
	h.AddN(5, 0)
	h.AddN(10, 3)
	h.Add(20)
	h.Add(40)
	if got, _ := h.Quantile(0.5); got != 10 || h.Mean() != 18 {
		t.Errorf("median %d, mean %v; want 10 and 18", got, h.Mean())
	}
	if _, ok := h.Quantile(math.NaN()); ok {
		t.Error("a quantile at NaN")
	}
	got := slices.Collect(h.Buckets)
	want := []Bucket{{10, 10, 3}, {20, 20, 1}, {40, 40, 1}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	for b := range h.Buckets { // stopping early is honoured
		if b.Low != 10 {
			t.Errorf("first bucket %+v", b)
		}
		break
	}
	h.Reset()
	h.Add(-7)
	if got := slices.Collect(h.Buckets); len(got) != 1 || got[0] != (Bucket{-7, -7, 1}) || h.Max() != -7 {
		t.Errorf("after Reset: %v, max %d", got, h.Max())
	}
}
