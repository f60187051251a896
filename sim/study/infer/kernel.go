package infer

import (
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat/distuv"
)

const (
	// priorShare is how much of a later wave comes from the prior: it bounds
	// every weight, and keeps a place that no earlier wave has seen open
	// (chosen; a defensive mixture, T. Hesterberg 1995).
	priorShare = 0.2
	// keepOption is how often a kernel keeps its centre's option; else the
	// prior draws it (chosen).
	keepOption = 0.8
	// mostCentres bounds the centres of a set; more are thinned out evenly
	// (chosen: what a density costs).
	mostCentres = 150
)

// normal turns a place in the unit interval, in which a prior is uniform, into
// one in which it is a standard normal distribution. Kernels live there: they
// need no bounds, and their density is known everywhere.
func normal(u float64) float64 {
	return distuv.UnitNormal.Quantile(min(max(u, 1e-9), 1-1e-9))
}

// unit is the inverse of normal, to nine digits: what the last ones are can
// depend on the machine that computes them.
func unit(z float64) float64 {
	u := math.Round(distuv.UnitNormal.CDF(z)*1e9) / 1e9
	return min(max(u, 1e-9), 1-1e-9)
}

// centre is a machine that a kernel lies round.
type centre struct {
	u      []float64
	weight float64
}

// kernel is a distribution round the machines of one set. Ordered choices are
// shrunk towards the set's mean before they are spread, so that the whole has
// the set's mean and covariance (J. Liu and M. West, "Combined parameter and
// state estimation", 2001); options stay as they are, or are drawn anew.
type kernel struct {
	cumulated []float64   // weights of the centres, summed up; the last is 1
	z         [][]float64 // shrunk centres of ordered choices
	white     [][]float64 // the same after the inverse of chol
	options   [][]int
	spread    *mat.TriDense // Cholesky factor of the kernel's covariance
	inverse   *mat.TriDense
	logNorm   float64 // −log of the determinant of spread
}

// mixture is what a wave is drawn from: the prior, and kernels round the
// machines that earlier waves have found, each set of them alike.
type mixture struct {
	ordered, options []int // the choices of either sort
	list             []Choice
	kernels          []*kernel
}

func newMixture(list []Choice) *mixture {
	m := &mixture{list: list}
	for i := range list {
		if list[i].Kind == Options {
			m.options = append(m.options, i)
		} else {
			m.ordered = append(m.ordered, i)
		}
	}
	return m
}

// add puts a kernel round a set of machines; an empty set adds none.
func (m *mixture) add(set []centre) {
	if len(set) == 0 {
		return
	}
	if n := len(set); n > mostCentres {
		thin := make([]centre, mostCentres)
		for i := range thin {
			thin[i] = set[i*n/mostCentres]
		}
		set = thin
	}
	k := &kernel{}
	sum, squares := 0.0, 0.0
	for _, c := range set {
		sum += c.weight
		squares += c.weight * c.weight
	}
	d, n := len(m.ordered), sum*sum/squares
	zs := make([][]float64, len(set))
	total := 0.0
	for i, c := range set {
		zs[i] = make([]float64, d)
		for j, o := range m.ordered {
			zs[i][j] = normal(c.u[o])
		}
		var opts []int
		for _, o := range m.options {
			opts = append(opts, m.list[o].level(c.u[o]))
		}
		k.options = append(k.options, opts)
		total += c.weight / sum
		k.cumulated = append(k.cumulated, total)
	}
	k.cumulated[len(set)-1] = 1
	if d > 0 {
		k.shape(set, zs, sum, n)
	}
	m.kernels = append(m.kernels, k)
}

// shape works out the mean, covariance and width of a kernel's ordered choices
// for a set worth n independent machines.
func (k *kernel) shape(set []centre, zs [][]float64, sum, n float64) {
	d := len(zs[0])
	mean := make([]float64, d)
	for i, z := range zs {
		for j := range z {
			mean[j] += z[j] * set[i].weight / sum
		}
	}
	cov := mat.NewSymDense(d, nil)
	for i, z := range zs {
		w := set[i].weight / sum
		for a := range d {
			for b := a; b < d; b++ {
				cov.SetSym(a, b, cov.At(a, b)+w*(z[a]-mean[a])*(z[b]-mean[b]))
			}
		}
	}
	// Few machines say little of how choices vary together, or of how far: the
	// covariance is shrunk towards the prior's, which is 1.
	lambda := float64(d) / (float64(d) + n)
	for a := range d {
		for b := a; b < d; b++ {
			v := (1 - lambda) * cov.At(a, b)
			if a == b {
				v += lambda * min(1, cov.At(a, a)+0.25)
			}
			cov.SetSym(a, b, v)
		}
	}
	// Silverman's width for n machines in d dimensions.
	h := math.Pow(4/((float64(d)+2)*max(n, 1)), 1/(float64(d)+4))
	h = min(h, 0.95)
	a := math.Sqrt(1 - h*h)
	cov.ScaleSym(h*h, cov)
	var chol mat.Cholesky
	chol.Factorize(cov) // positive definite: its diagonal was raised
	k.spread = mat.NewTriDense(d, mat.Lower, nil)
	chol.LTo(k.spread)
	k.inverse = mat.NewTriDense(d, mat.Lower, nil)
	_ = k.inverse.InverseTri(k.spread) // fails only where the factor has a 0 on its diagonal
	for j := range d {
		k.logNorm -= math.Log(k.spread.At(j, j))
	}
	for _, z := range zs {
		for j := range z {
			z[j] = a*z[j] + (1-a)*mean[j]
		}
		k.z = append(k.z, z)
		k.white = append(k.white, k.whiten(z))
	}
}

// whiten multiplies by the inverse of the Cholesky factor.
func (k *kernel) whiten(z []float64) []float64 {
	out := make([]float64, len(z))
	for i := range out {
		row := k.inverse.RawTriangular().Data[i*len(z) : i*len(z)+i+1]
		s := 0.0
		for j, l := range row {
			s += l * z[j]
		}
		out[i] = s
	}
	return out
}

// draw is a place in the unit cube.
func (m *mixture) draw(r *rand.Rand) []float64 {
	u := make([]float64, len(m.list))
	for i := range u {
		u[i] = unit(normal(r.Float64()))
	}
	// The numbers that follow are drawn whether they are needed or not, so that
	// a stream's length does not depend on what was drawn.
	prior, which, c := r.Float64() < priorShare, r.Float64(), r.Float64()
	steps := make([]float64, len(m.ordered))
	for i := range steps {
		steps[i] = r.NormFloat64()
	}
	if len(m.kernels) == 0 || prior {
		return u
	}
	k := m.kernels[min(int(which*float64(len(m.kernels))), len(m.kernels)-1)]
	i, _ := slices.BinarySearch(k.cumulated, c)
	i = min(i, len(k.cumulated)-1)
	for j, o := range m.ordered {
		z := k.z[i][j]
		for l := 0; l <= j; l++ {
			z += k.spread.At(j, l) * steps[l]
		}
		u[o] = unit(z)
	}
	for j, o := range m.options {
		// The place that the prior drew says both whether to keep the option
		// and, if not, which one it is.
		if u[o] < keepOption {
			u[o] = m.list[o].place(k.options[i][j])
		} else {
			u[o] = unit(normal((u[o] - keepOption) / (1 - keepOption)))
		}
	}
	return u
}

// density is that of the mixture at a place, over the prior's.
func (m *mixture) density(u []float64) float64 {
	if len(m.kernels) == 0 {
		return 1
	}
	z := make([]float64, len(m.ordered))
	square := 0.0
	for j, o := range m.ordered {
		z[j] = normal(u[o])
		square += z[j] * z[j]
	}
	opts := make([]int, len(m.options))
	for j, o := range m.options {
		opts[j] = m.list[o].level(u[o])
	}
	sum := 0.0
	for _, k := range m.kernels {
		sum += k.density(m, z, square, opts)
	}
	return priorShare + (1-priorShare)*sum/float64(len(m.kernels))
}

func (k *kernel) density(m *mixture, z []float64, square float64, opts []int) float64 {
	var white []float64
	if len(z) > 0 {
		white = k.whiten(z)
	}
	sum, before := 0.0, 0.0
	for i, c := range k.cumulated {
		weight := c - before
		before = c
		far := 0.0
		for j := range white {
			d := white[j] - k.white[i][j]
			far += d * d
		}
		f := math.Exp(k.logNorm - far/2 + square/2)
		for j, o := range m.options {
			share := 1 - keepOption
			if opts[j] == k.options[i][j] {
				share += keepOption / m.list[o].Weights[opts[j]]
			}
			f *= share
		}
		sum += weight * f
	}
	return sum
}
