package infer

import (
	"math"
	"math/rand/v2"
	"testing"
)

// cube are choices without a scenario, for what needs none.
func cube(ranges int, options ...int) []Choice {
	var out []Choice
	for range ranges {
		out = append(out, Choice{Kind: Uniform, High: 1})
	}
	for _, n := range options {
		c := Choice{Kind: Options}
		for i := range n {
			c.Values = append(c.Values, string(rune('a'+i)))
			c.Weights = append(c.Weights, 1/float64(n))
		}
		out = append(out, c)
	}
	return out
}

// TestMixtureDensity: weights that undo the mixture give the prior back. The
// mean over draws of 1/density is 1, and so are the prior's moments.
func TestMixtureDensity(t *testing.T) {
	t.Parallel()
	list := cube(3, 3)
	m := newMixture(list)
	r := rand.New(rand.NewPCG(1, 2))
	for range 2 { // two sets, away from each other
		var set []centre
		at := r.Float64()
		for range 12 {
			u := []float64{unit(normal(at) + 0.3*r.NormFloat64()), unit(normal(at) + 0.2*r.NormFloat64()), r.Float64(), 0.1 + 0.1*r.Float64()}
			set = append(set, centre{u, 0.1 + r.Float64()})
		}
		m.add(set)
	}
	const n = 60_000
	var one, first, square, option float64
	for i := range n {
		u := m.draw(stream(3, uint64(i)))
		w := 1 / m.density(u)
		if w > 1/priorShare+1e-9 {
			t.Fatalf("weight %v, and the prior's share bounds it to %v", w, 1/priorShare)
		}
		one += w / n
		first += w * u[0] / n
		square += w * u[1] * u[1] / n
		if list[3].level(u[3]) == 0 {
			option += w / n
		}
	}
	for name, c := range map[string][2]float64{"weight": {one, 1}, "mean": {first, 0.5}, "square": {square, 1.0 / 3}, "option": {option, 1.0 / 3}} {
		if math.Abs(c[0]/c[1]-1) > 0.03 { // three standard errors
			t.Errorf("%s: %v, want %v", name, c[0], c[1])
		}
	}
}

// TestKernelKeepsItsSet: draws round a set of machines have the set's mean, and
// its correlations.
func TestKernelKeepsItsSet(t *testing.T) {
	t.Parallel()
	list := cube(2)
	m := newMixture(list)
	r := rand.New(rand.NewPCG(4, 5))
	var set []centre
	for range 250 {
		z := r.NormFloat64()
		set = append(set, centre{[]float64{unit(1 + 0.3*z), unit(-1 - 0.3*z + 0.05*r.NormFloat64())}, 1})
	}
	m.add(set)
	var n, x, y, xx, yy, xy float64
	for i := range 20_000 {
		rr := stream(6, uint64(i))
		u := m.draw(rr)
		if a, b := normal(u[0]), normal(u[1]); math.Abs(a+b) < 1 && a > -0.5 { // leaves most of the prior out
			n, x, y, xx, yy, xy = n+1, x+a, y+b, xx+a*a, yy+b*b, xy+a*b
		}
	}
	mx, my := x/n, y/n
	corr := (xy/n - mx*my) / math.Sqrt((xx/n-mx*mx)*(yy/n-my*my))
	if math.Abs(mx-1) > 0.1 || math.Abs(my+1) > 0.1 || corr > -0.85 {
		t.Errorf("mean %.2f, %.2f, correlation %.2f; want 1, -1 and near -1", mx, my, corr)
	}
}

// TestDrawsAreNamed: a draw depends on its stream only.
func TestDrawsAreNamed(t *testing.T) {
	m := newMixture(cube(4, 2))
	a, b := m.draw(stream(1, 2)), m.draw(stream(1, 2))
	for i := range a {
		if a[i] != b[i] {
			t.Errorf("coordinate %d: %v and %v from the same stream", i, a[i], b[i])
		}
	}
}
