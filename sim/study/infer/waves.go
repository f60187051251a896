package infer

import (
	"math"
	"slices"
)

// leastCentres is how many machines a kernel lies round at least: where fewer
// are not ruled out, the next best stand in for them, so that waves work their
// way towards a region that none has met yet (chosen).
const leastCentres = 20

// history is what the waves so far say, worked out once for each of them.
type history struct {
	in       *Inference
	judge    *judge
	rows     []*Row      // of waves 1 and later, in order
	is       [][]float64 // their implausibilities, by group
	mixtures []*mixture  // what each wave was drawn from, by wave; 0 is none
	counts   []int       // machines of each wave
	density  [][]float64 // of each mixture, by wave and row
}

// newHistory begins with the noise sample.
func (in *Inference) newHistory(sample []*Row) *history {
	return &history{
		in: in, judge: newJudge(in.Ask, noiseOf(in.Ask, sample)),
		mixtures: []*mixture{nil}, counts: []int{0}, density: [][]float64{nil},
	}
}

// next is what the next wave is drawn from: the prior alone, or the prior and
// for every group a kernel round the machines that all the other groups leave.
func (h *history) next() *mixture {
	m := newMixture(h.in.Choices.List)
	if len(h.rows) == 0 {
		return m
	}
	weights := h.weights()
	for g := range h.judge.groups {
		m.add(centres(h.rows, weights, h.is, g))
	}
	return m
}

// add takes the rows of the next wave, which were drawn from a mixture.
func (h *history) add(m *mixture, wave []*Row) {
	h.mixtures, h.counts, h.density = append(h.mixtures, m), append(h.counts, len(wave)), append(h.density, nil)
	for _, r := range wave {
		h.rows, h.is = append(h.rows, r), append(h.is, h.judge.implausibilities(r))
	}
	for w := 1; w < len(h.mixtures); w++ {
		for _, r := range h.rows[len(h.density[w]):] {
			h.density[w] = append(h.density[w], h.mixtures[w].density(r.U))
		}
	}
}

// weights are prior density over the density of the mixture of all waves, row
// by row: they undo where the waves went (J.-M. Cornuet and others, "Adaptive
// multiple importance sampling", 2012).
func (h *history) weights() []float64 {
	out := make([]float64, len(h.rows))
	for i := range out {
		sum := 0.0
		for w := 1; w < len(h.mixtures); w++ {
			sum += float64(h.counts[w]) * h.density[w][i]
		}
		out[i] = float64(len(h.rows)) / sum
	}
	return out
}

// plan lists the rows of a wave, unanswered.
func (in *Inference) plan(wave int, m *mixture) []*Row {
	d := len(in.Choices.List)
	var out []*Row
	switch wave {
	case 0:
		for i := range in.Budget.Noise {
			r := stream(in.Seed, 0, uint64(i))
			u := make([]float64, d)
			for k := range u {
				u[k] = unit(normal(r.Float64()))
			}
			for rep := range seeds {
				out = append(out, &Row{Number: i, Replication: rep, U: u})
			}
		}
	case 1:
		for i, u := range scrambled(in.Budget.First, d, mix(in.Seed, 1)) {
			for k := range u {
				u[k] = unit(normal(u[k]))
			}
			out = append(out, &Row{Wave: 1, Number: i, U: u})
		}
	default:
		for i := range in.Budget.Machines {
			out = append(out, &Row{Wave: wave, Number: i, U: m.draw(stream(in.Seed, uint64(wave), uint64(i)))})
		}
	}
	return out
}

// centres are the machines that all groups but one do not rule out; where they
// are few, those that come nearest to it.
func centres(rows []*Row, weights []float64, is [][]float64, group int) []centre {
	type near struct {
		row, i int
		far    float64
	}
	var all []near
	for i := range rows {
		if far := without(is[i], group); !math.IsInf(far, 1) {
			all = append(all, near{row: i, far: far})
		}
	}
	if len(all) == 0 {
		return nil
	}
	far := make([]float64, len(all))
	for i := range all {
		far[i] = all[i].far
	}
	slices.Sort(far)
	bound := max(limit, far[min(leastCentres, len(far))-1])
	var out []centre
	for _, n := range all {
		if n.far <= bound {
			out = append(out, centre{rows[n.row].U, weights[n.row]})
		}
	}
	return out
}

// noiseOf is the standard deviation of one run's answer to each fact, pooled
// over the machines of the noise sample that answered it with every seed. Only
// machines near the fact count, within two widths of its interval, where there
// are at least three: the noise far off is another.
func noiseOf(e Evaluator, rows []*Row) map[string]float64 {
	out := map[string]float64{}
	for _, f := range e.Facts() {
		near, all := pool{}, pool{}
		for number := 0; ; number++ {
			xs, any := replications(rows, number, f.ID)
			if !any {
				break
			}
			if len(xs) != seeds {
				continue
			}
			all.add(xs)
			if m := mean(xs); math.Abs(m-(f.Low+f.High)/2) <= 2.5*(f.High-f.Low) {
				near.add(xs)
			}
		}
		if near.n >= 3 {
			all = near
		}
		out[f.ID] = all.deviation()
	}
	return out
}

// replications are a machine's finite answers to a fact, by seed.
func replications(rows []*Row, number int, fact string) (xs []float64, any bool) {
	for _, r := range rows {
		if r.Wave != 0 || r.Number != number {
			continue
		}
		any = true
		if x, ok := r.Facts[fact]; ok && x.OK() {
			xs = append(xs, float64(x))
		}
	}
	return xs, any
}

// pool is a variance within groups of values.
type pool struct {
	n, freedom int
	squares    float64
}

func (p *pool) add(xs []float64) {
	m := mean(xs)
	for _, x := range xs {
		p.squares += (x - m) * (x - m)
	}
	p.n++
	p.freedom += len(xs) - 1
}

func (p *pool) deviation() float64 {
	if p.freedom == 0 {
		return 0
	}
	return math.Sqrt(p.squares / float64(p.freedom))
}

func mean(xs []float64) float64 {
	s := 0.0
	for _, x := range xs {
		s += x
	}
	return s / float64(len(xs))
}
