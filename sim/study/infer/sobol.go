package infer

import (
	"math/bits"
	"math/rand/v2"
)

// maxDimensions is how many choices an inference can have open: the dimensions
// that sobolTable has directions for.
const maxDimensions = 32

// sobolPolynomial is a primitive polynomial over GF(2) of the given degree, its
// inner coefficients as the bits of inner, with the first direction numbers.
type sobolPolynomial struct {
	degree int
	inner  uint32
	m      []uint32
}

// sobolTable has dimensions 2, 3, … of S. Joe and F. Y. Kuo, "Constructing Sobol
// sequences with better two-dimensional projections", SIAM J. Sci. Comput. 30
// (2008), their file new-joe-kuo-6.21201.
var sobolTable = [maxDimensions - 1]sobolPolynomial{
	{1, 0, []uint32{1}},
	{2, 1, []uint32{1, 3}},
	{3, 1, []uint32{1, 3, 1}},
	{3, 2, []uint32{1, 1, 1}},
	{4, 1, []uint32{1, 1, 3, 3}},
	{4, 4, []uint32{1, 3, 5, 13}},
	{5, 2, []uint32{1, 1, 5, 5, 17}},
	{5, 4, []uint32{1, 1, 5, 5, 5}},
	{5, 7, []uint32{1, 1, 7, 11, 19}},
	{5, 11, []uint32{1, 1, 5, 1, 1}},
	{5, 13, []uint32{1, 1, 1, 3, 11}},
	{5, 14, []uint32{1, 3, 5, 5, 31}},
	{6, 1, []uint32{1, 3, 3, 9, 7, 49}},
	{6, 13, []uint32{1, 1, 1, 15, 21, 21}},
	{6, 16, []uint32{1, 3, 1, 13, 27, 49}},
	{6, 19, []uint32{1, 1, 1, 15, 7, 5}},
	{6, 22, []uint32{1, 3, 1, 15, 13, 25}},
	{6, 25, []uint32{1, 1, 5, 5, 19, 61}},
	{7, 1, []uint32{1, 3, 7, 11, 23, 15, 103}},
	{7, 4, []uint32{1, 3, 7, 13, 13, 15, 69}},
	{7, 7, []uint32{1, 1, 3, 13, 7, 35, 63}},
	{7, 8, []uint32{1, 3, 5, 9, 1, 25, 53}},
	{7, 14, []uint32{1, 3, 1, 13, 9, 35, 107}},
	{7, 19, []uint32{1, 3, 1, 5, 27, 61, 31}},
	{7, 21, []uint32{1, 1, 5, 11, 19, 41, 61}},
	{7, 28, []uint32{1, 3, 5, 3, 3, 13, 69}},
	{7, 31, []uint32{1, 1, 7, 13, 1, 19, 1}},
	{7, 32, []uint32{1, 3, 7, 5, 13, 19, 59}},
	{7, 37, []uint32{1, 1, 3, 9, 25, 29, 41}},
	{7, 41, []uint32{1, 3, 5, 13, 23, 1, 55}},
	{7, 42, []uint32{1, 3, 7, 3, 13, 59, 17}},
}

// directions are the direction numbers of a dimension, as binary fractions of
// 32 places.
func directions(dimension int) (v [32]uint32) {
	if dimension == 0 {
		for i := range v {
			v[i] = 1 << (31 - i)
		}
		return v
	}
	p := &sobolTable[dimension-1]
	for i := range v {
		if i < p.degree {
			v[i] = p.m[i] << (31 - i)
			continue
		}
		x := v[i-p.degree]
		x ^= x >> p.degree
		for k := 1; k < p.degree; k++ {
			if p.inner>>(p.degree-1-k)&1 == 1 {
				x ^= v[i-k]
			}
		}
		v[i] = x
	}
	return v
}

// sobol is point number i of the Sobol sequence in a dimension, as a binary
// fraction of 32 places.
func sobol(v *[32]uint32, i uint32) uint32 {
	var x uint32
	for g := i ^ i>>1; g != 0; g &= g - 1 {
		x ^= v[bits.TrailingZeros32(g)]
	}
	return x
}

// scrambled are the first n points of an Owen-scrambled Sobol sequence in the
// open unit cube: every point by itself is uniform, and together they keep the
// even spread of the sequence (A. B. Owen, "Randomly permuted (t,m,s)-nets",
// 1995). The scramble is nested: whether a digit is turned over depends on the
// seed and on the digits before it.
func scrambled(n, dimensions int, seed uint64) [][]float64 {
	out := make([][]float64, n)
	for i := range out {
		out[i] = make([]float64, dimensions)
	}
	for d := range dimensions {
		v := directions(d)
		for i := range out {
			out[i][d] = (float64(owen(sobol(&v, uint32(i)), d, seed)) + 0.5) / (1 << 32)
		}
	}
	return out
}

// owen turns over digits of x, from the first to the last.
func owen(x uint32, dimension int, seed uint64) uint32 {
	var y uint32
	for k := range 32 {
		var before uint64
		if k > 0 {
			before = uint64(x >> (32 - k))
		}
		// One random digit for each node of the tree of digits.
		node := before | 1<<k
		flip := uint32(mix(seed, uint64(dimension), node) & 1)
		y = y<<1 | (x>>(31-k)&1 ^ flip)
	}
	return y
}

// mix is a hash of numbers; its bits are as good as random (the finalizer of
// SplitMix64, applied in turn).
func mix(xs ...uint64) uint64 {
	h := uint64(0x9e3779b97f4a7c15)
	for _, x := range xs {
		h += x + 0x9e3779b97f4a7c15
		h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
		h = (h ^ h>>27) * 0x94d049bb133111eb
		h ^= h >> 31
	}
	return h
}

// stream is a random stream named by numbers.
func stream(xs ...uint64) *rand.Rand {
	h := mix(xs...)
	return rand.New(rand.NewPCG(h, mix(h, 1)))
}
