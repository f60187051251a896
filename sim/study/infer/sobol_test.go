package infer

import (
	"math"
	"testing"
)

// TestSobolPolynomials: every polynomial of the table is primitive, no two are
// the same, and every first direction number is odd and below 2^k.
func TestSobolPolynomials(t *testing.T) {
	seen := map[uint32]bool{}
	for i, p := range sobolTable {
		poly := uint32(1)<<p.degree | p.inner<<1 | 1
		if seen[poly] {
			t.Errorf("dimension %d: polynomial %b again", i+2, poly)
		}
		seen[poly] = true
		// x generates all 2^degree − 1 elements that are not 0.
		x, order := uint32(2), 1
		if p.degree == 1 {
			x = 1
		}
		for ; x != 1 && order < 1<<p.degree; order++ {
			if x <<= 1; x>>p.degree == 1 {
				x ^= poly
			}
		}
		if order != 1<<p.degree-1 {
			t.Errorf("dimension %d: %b has order %d, want %d", i+2, poly, order, 1<<p.degree-1)
		}
		if len(p.m) != p.degree {
			t.Errorf("dimension %d: %d direction numbers, want %d", i+2, len(p.m), p.degree)
		}
		for k, m := range p.m {
			if m%2 == 0 || m >= 1<<(k+1) {
				t.Errorf("dimension %d: m_%d = %d, want an odd number below %d", i+2, k+1, m, 1<<(k+1))
			}
		}
	}
}

// TestSobolPoints: the first points of the first dimensions, by hand.
func TestSobolPoints(t *testing.T) {
	want := [][3]float64{{0, 0, 0}, {0.5, 0.5, 0.5}, {0.75, 0.25, 0.25}, {0.25, 0.75, 0.75}, {0.375, 0.375, 0.625}, {0.875, 0.875, 0.125}}
	for d := range 3 {
		v := directions(d)
		for i := range want {
			if got := float64(sobol(&v, uint32(i))) / (1 << 32); got != want[i][d] {
				t.Errorf("point %d, dimension %d: %v, want %v", i, d+1, got, want[i][d])
			}
		}
	}
}

// TestScrambledIsANet: scrambling keeps each dimension by itself a perfect
// stratification, and the first two together a (0, m, 2)-net.
func TestScrambledIsANet(t *testing.T) {
	const m = 8
	for _, seed := range []uint64{1, 2} {
		points := scrambled(1<<m, maxDimensions, seed)
		for d := range maxDimensions {
			var seen [1 << m]bool
			for _, p := range points {
				c := int(p[d] * (1 << m))
				if seen[c] {
					t.Fatalf("seed %d, dimension %d: two points in interval %d of %d", seed, d+1, c, 1<<m)
				}
				seen[c] = true
			}
		}
		for a := range m + 1 {
			seen := map[[2]int]bool{}
			for _, p := range points {
				c := [2]int{int(p[0] * float64(int(1)<<a)), int(p[1] * float64(int(1)<<(m-a)))}
				if seen[c] {
					t.Fatalf("seed %d: two points in a box of 2^-%d × 2^-%d", seed, a, m-a)
				}
				seen[c] = true
			}
		}
	}
}

// TestScrambledIntegrates: the error of a smooth integral is far below that of
// random points, whose standard error is 0.029 here, and its mean over scrambles
// is right.
func TestScrambledIntegrates(t *testing.T) {
	const n, dims, seeds = 256, 6, 40
	worst, sum := 0.0, 0.0
	for seed := range uint64(seeds) {
		mean := 0.0
		for _, p := range scrambled(n, dims, seed) {
			f := 1.0
			for _, u := range p {
				f *= 1 + 0.5*(2*u-1)
			}
			mean += f / n
		}
		worst = max(worst, math.Abs(mean-1))
		sum += mean / seeds
	}
	if worst > 0.012 || math.Abs(sum-1) > 0.002 {
		t.Errorf("largest error %v, mean %v", worst, sum)
	}
}
