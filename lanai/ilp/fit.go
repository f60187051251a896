package ilp

import (
	"errors"
	"math"

	"gonum.org/v1/gonum/mat"
)

// observation is one measured loop: what the model counts in it, and its time.
type observation struct {
	functions []Function
	mode      Mode
	memory    bool    // the working set exceeds the cache
	measured  float64 // ns/byte
}

// times holds the model's machine parameters as times, in which the model is
// linear: nanoseconds an instruction, a loop iteration, a cache access and a
// memory access.
type parameterTimes [4]float64

// terms are the factors of parameterTimes for an observation, given R: Ahlgren
// eq. 7, 10 and 11 read as a linear form.
func (o observation) terms(registers, wordBytes int) [4]float64 {
	// Unit costs everywhere make Cost count.
	m := Model{
		Machine: Machine{
			Registers: registers, CacheClocks: 1, MemoryClocks: 1, CPI: 1,
			LoopInstructions: 1, ClockMHz: 1, WordBytes: wordBytes,
		},
		Functions: o.functions,
	}
	c := m.Cost(o.mode, InCache())
	if o.memory {
		return [4]float64{c.Instructions, c.LoopInstructions, c.StateAccesses, c.DataAccesses}
	}
	return [4]float64{c.Instructions, c.LoopInstructions, c.StateAccesses + c.DataAccesses, 0}
}

func (p parameterTimes) predict(terms [4]float64) float64 {
	var t float64
	for i, x := range terms {
		t += p[i] * x
	}
	return t
}

// maxFitRegisters bounds the search for R.
const maxFitRegisters = 32

var errNoFit = errors.New("no fit: the measurements do not determine a parameter")

// fitMachine finds R and the non-negative times with the least sum of squared
// relative deviations. Among numbers of registers that fit equally well the
// smallest is taken.
func fitMachine(obs []observation, wordBytes int) (registers int, times parameterTimes, err error) {
	best := math.Inf(1)
	for r := 0; r <= maxFitRegisters; r++ {
		rows := make([][4]float64, len(obs))
		for i, o := range obs {
			rows[i] = o.terms(r, wordBytes)
			for j := range rows[i] {
				rows[i][j] /= o.measured
			}
		}
		p, sum, ok := nonNegative(rows)
		if ok && sum < best*(1-1e-9) {
			best, registers, times = sum, r, p
		}
	}
	if math.IsInf(best, 1) {
		return 0, times, errNoFit
	}
	return registers, times, nil
}

// nonNegative minimises Σ (row·p − 1)² over p >= 0. The minimum is a plain
// least-squares solution on some subset of the parameters with the others at 0,
// and four parameters have 15 subsets: all are tried. Subsets that the rows do
// not determine are passed over.
func nonNegative(rows [][4]float64) (best parameterTimes, sum float64, ok bool) {
	sum = math.Inf(1)
	for set := 1; set < 16; set++ {
		var cols []int
		for j := range 4 {
			if set>>j&1 == 1 {
				cols = append(cols, j)
			}
		}
		if len(rows) < len(cols) {
			continue
		}
		a := mat.NewDense(len(rows), len(cols), nil)
		one := mat.NewVecDense(len(rows), nil)
		for i, row := range rows {
			for k, j := range cols {
				a.Set(i, k, row[j])
			}
			one.SetVec(i, 1)
		}
		var qr mat.QR
		qr.Factorize(a)
		var x mat.VecDense
		if qr.Cond() > 1e9 || qr.SolveVecTo(&x, false, one) != nil {
			continue
		}
		var p parameterTimes
		feasible := true
		for k, j := range cols {
			p[j] = x.AtVec(k)
			feasible = feasible && p[j] >= 0
		}
		if !feasible {
			continue
		}
		var s float64
		for _, row := range rows {
			d := p.predict(row) - 1
			s += d * d
		}
		if s < sum {
			best, sum, ok = p, s, true
		}
	}
	return best, sum, ok
}
