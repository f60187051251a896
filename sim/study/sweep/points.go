package sweep

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"spinesim/sim/des"
)

// Point is one combination of values: by factor, as sim.Load takes them.
type Point []string

// combinations is the number of points of a full design; ok is false when it
// is beyond what a sweep may have.
func combinations(factors []Factor) (n int, ok bool) {
	n = 1
	for _, f := range factors {
		if n > maxPoints/len(f.Levels) {
			return n, false
		}
		n *= len(f.Levels)
	}
	return n, true
}

// points lists the design's points, and for a fraction says how good it is.
func (d *Design) points() ([]Point, *FractionInfo, error) {
	switch d.Kind {
	case LatinDesign:
		return d.latin(), nil, nil
	case FractionDesign:
		return d.fraction()
	}
	n, ok := combinations(d.Factors)
	if !ok {
		return nil, nil, d.fail("factors", "more than %d combinations; want a fraction or a Latin hypercube", maxPoints)
	}
	out := make([]Point, 0, n)
	level := make([]int, len(d.Factors))
	for range n {
		out = append(out, d.point(level))
		// The last factor turns fastest.
		for i := len(level) - 1; i >= 0; i-- {
			if level[i]++; level[i] < len(d.Factors[i].Levels) {
				break
			}
			level[i] = 0
		}
	}
	return out, nil, nil
}

func (d *Design) point(level []int) Point {
	p := make(Point, len(level))
	for i, l := range level {
		p[i] = d.Factors[i].Levels[l]
	}
	return p
}

// FractionInfo says what a fraction of a full design can tell apart.
type FractionInfo struct {
	Combinations float64     `json:"combinations"` // of the full design
	Points       int         `json:"points"`
	Generators   []Generator `json:"generators"`
	// Resolution is the length of the shortest defining word: 3 mixes main
	// effects with two-factor interactions, 4 only those with each other, 5
	// neither.
	Resolution int `json:"resolution"`
	// Words of that length: the factors whose effects are mixed up.
	Words [][]string `json:"words"`
}

// String says it for people.
func (f *FractionInfo) String() string {
	what := "main effects and two-factor interactions are clear of each other"
	switch {
	case f.Resolution < 3:
		what = "main effects are mixed up with each other"
	case f.Resolution == 3:
		what = "main effects are mixed up with two-factor interactions"
	case f.Resolution == 4:
		what = "main effects are clear; two-factor interactions are mixed up with each other"
	}
	var words []string
	for _, w := range f.Words {
		words = append(words, strings.Join(w, " × "))
	}
	return fmt.Sprintf("%d of %.0f combinations, resolution %d: %s (mixed up: %s)", f.Points, f.Combinations, f.Resolution, what, strings.Join(words, "; "))
}

// word is a defining word: the coefficients of the factors whose weighted
// levels add up to 0 modulo the number of levels at every point.
type word []int

// factors is how many factors the word has.
func (w word) factors() (n int) {
	for _, c := range w {
		if c != 0 {
			n++
		}
	}
	return n
}

// subgroup is all words that follow from some.
type subgroup struct {
	s     int
	words []word // without the empty one
}

// with adds a word and all that follow from it.
func (g *subgroup) with(w word) *subgroup {
	out := &subgroup{s: g.s, words: slices.Clone(g.words)}
	for a := 1; a < g.s; a++ {
		scaled := make(word, len(w))
		for i := range w {
			scaled[i] = a * w[i] % g.s
		}
		out.words = append(out.words, scaled)
		for _, v := range g.words {
			sum := make(word, len(w))
			for i := range w {
				sum[i] = (scaled[i] + v[i]) % g.s
			}
			out.words = append(out.words, sum)
		}
	}
	return out
}

// shortest is the least number of factors in a word, and how many words have
// as few.
func (g *subgroup) shortest() (length, count int) {
	length = math.MaxInt
	for _, w := range g.words {
		switch n := w.factors(); {
		case n < length:
			length, count = n, 1
		case n == length:
			count++
		}
	}
	return length, count
}

// Bounds of the search for generators (chosen): the words of a fraction, the
// generators looked at for one factor, the words looked at for a resolution,
// and those looked at for a better fraction of the same resolution.
const (
	maxWords      = 1 << 12
	maxCandidates = 1 << 14
	maxLook       = 1 << 22
	moreLook      = 1 << 18
)

// generate finds words that generate p factors from the others, with the
// highest resolution that the search finds and, among those, few shortest
// words.
func generate(k, p, s int) []word {
	base := k - p
	all := candidates(base, s)
	for resolution := k; ; resolution-- {
		var best []word
		least := math.MaxInt
		look := maxLook
		var try func(from int, chosen []word, g *subgroup)
		try = func(from int, chosen []word, g *subgroup) {
			if len(chosen) == p {
				if _, n := g.shortest(); n < least {
					best, least = slices.Clone(chosen), n
				}
				look = min(look, moreLook)
				return
			}
			for i := from; i < len(all) && look > 0; i++ {
				// Those that follow have no more factors.
				if all[i].factors()+1 < resolution {
					return
				}
				w := make(word, k)
				copy(w, all[i])
				w[base+len(chosen)] = s - 1
				next := g.with(w)
				look -= len(next.words) - len(g.words)
				if l, _ := next.shortest(); l >= resolution {
					try(i, append(chosen, w), next)
				}
			}
		}
		try(0, make([]word, 0, p), &subgroup{s: s})
		// At 2 any generators will do, so that this ends.
		if best != nil {
			return best
		}
	}
}

// fraction is a regular fraction s^(k−p) of a design of k factors with s
// levels each, s prime.
func (d *Design) fraction() ([]Point, *FractionInfo, error) {
	k := len(d.Factors)
	s := len(d.Factors[0].Levels)
	for _, f := range d.Factors {
		if len(f.Levels) != s {
			return nil, nil, d.fail("factors."+f.Path, "%d levels where %s has %d; a regular fraction needs as many of each", len(f.Levels), d.Factors[0].Path, s)
		}
	}
	if !slices.Contains([]int{2, 3, 5, 7}, s) {
		return nil, nil, d.fail("factors."+d.Factors[0].Path, "%d levels; a regular fraction needs 2, 3, 5 or 7", s)
	}
	p := 0
	for f := d.Fraction; f > 1; f /= s {
		if f%s != 0 {
			return nil, nil, d.fail("fraction", "%d is not a power of the number of levels, %d", d.Fraction, s)
		}
		p++
	}
	if p >= k {
		return nil, nil, d.fail("fraction", "1/%d of %d factors leaves nothing to vary", d.Fraction, k)
	}
	base := k - p
	points := 1
	for range base {
		if points *= s; points > maxPoints {
			return nil, nil, d.fail("fraction", "still more than %d points", maxPoints)
		}
	}
	if math.Pow(float64(s), float64(p)) > maxWords {
		return nil, nil, d.fail("fraction", "1/%d has too many defining words to look at; want a larger fraction", d.Fraction)
	}
	var coef []word // of the generated factors, which are the last ones, over all factors
	order := make([]int, k)
	for i := range order {
		order[i] = i
	}
	var err error
	if len(d.Generators) > 0 {
		if order, coef, err = d.given(p, s); err != nil {
			return nil, nil, err
		}
	}
	group := &subgroup{s: s}
	if coef != nil {
		for _, w := range coef {
			group = group.with(w)
		}
	} else {
		for _, w := range generate(k, p, s) {
			group = group.with(w)
			coef = append(coef, w)
		}
	}

	info := &FractionInfo{Points: points}
	info.Combinations = math.Pow(float64(s), float64(k))
	info.Resolution, _ = group.shortest()
	for _, w := range group.words {
		var names []string
		for i, c := range w {
			if c != 0 {
				names = append(names, d.Factors[order[i]].Path)
			}
		}
		slices.Sort(names)
		if len(names) == info.Resolution && !slices.ContainsFunc(info.Words, func(x []string) bool { return slices.Equal(x, names) }) {
			info.Words = append(info.Words, names)
		}
	}
	slices.SortFunc(info.Words, func(a, b []string) int { return slices.Compare(a, b) })
	for j, w := range coef {
		g := Generator{Factor: d.Factors[order[base+j]].Path}
		for i, c := range w[:base] {
			for range c {
				g.Of = append(g.Of, d.Factors[order[i]].Path)
			}
		}
		info.Generators = append(info.Generators, g)
	}

	out := make([]Point, 0, points)
	for n := range points {
		level := make([]int, k)
		rest := n
		for i := base - 1; i >= 0; i-- {
			level[order[i]] = rest % s
			rest /= s
		}
		for j, w := range coef {
			sum := 0
			for i, c := range w[:base] {
				sum += c * level[order[i]]
			}
			level[order[base+j]] = sum % s
		}
		out = append(out, d.point(level))
	}
	return out, info, nil
}

// candidates are the combinations of base factors that may generate another,
// those of most factors first.
func candidates(base, s int) []word {
	n := 1
	for range base {
		if n *= s; n > maxCandidates {
			n = maxCandidates
			break
		}
	}
	var out []word
	for i := 1; i < n; i++ {
		// Counted down, so that the words with every factor are among those
		// looked at however many there are.
		w, rest := make(word, base), i
		for j := range w {
			w[j] = s - 1 - rest%s
			rest /= s
		}
		out = append(out, w)
	}
	full := make(word, base)
	for j := range full {
		full[j] = 1
	}
	out = append([]word{full}, out...)
	out = slices.DeleteFunc(out, func(w word) bool { return w.factors() == 0 })
	slices.SortStableFunc(out, func(a, b word) int { return b.factors() - a.factors() })
	return out
}

// given takes the generators that the design file names. It returns the
// factors in an order that has the generated ones last.
func (d *Design) given(p, s int) ([]int, []word, error) {
	if len(d.Generators) != p {
		return nil, nil, d.fail("generators", "%d, but a fraction of 1/%d of factors with %d levels needs %d", len(d.Generators), d.Fraction, s, p)
	}
	index := func(path string) int {
		return slices.IndexFunc(d.Factors, func(f Factor) bool { return f.Path == path })
	}
	generated := map[int]bool{}
	for _, g := range d.Generators {
		i := index(g.Factor)
		if i < 0 {
			return nil, nil, d.fail("generators."+g.Factor, "not one of the factors")
		}
		generated[i] = true
	}
	var order []int
	place := make([]int, len(d.Factors))
	for i := range d.Factors {
		if !generated[i] {
			place[i] = len(order)
			order = append(order, i)
		}
	}
	var coef []word
	for j, g := range d.Generators {
		order = append(order, index(g.Factor))
		w := make(word, len(d.Factors))
		for _, of := range g.Of {
			i := index(of)
			if i < 0 || generated[i] {
				return nil, nil, d.fail("generators."+g.Factor, "%q is not a factor, or is itself generated", of)
			}
			w[place[i]] = (w[place[i]] + 1) % s
		}
		if !slices.ContainsFunc(w, func(c int) bool { return c != 0 }) {
			return nil, nil, d.fail("generators."+g.Factor, "it would not vary")
		}
		w[len(d.Factors)-p+j] = s - 1
		coef = append(coef, w)
	}
	return order, coef, nil
}

// tries is how many Latin hypercubes are drawn, of which the one with the
// largest least distance between points is taken (chosen).
const tries = 50

// distances is the largest number of pairs of points whose distance is looked
// at in all draws together (chosen: about a second).
const distances = 20_000_000

// latin is a Latin hypercube: each factor's range in as many equal parts as
// there are points, every part used once.
func (d *Design) latin() []Point {
	n, k := d.Points, len(d.Factors)
	rounds := tries
	if pairs := n * (n - 1) / 2; pairs > 0 {
		rounds = max(1, min(tries, distances/pairs))
	}
	var best [][]int
	most := -1
	for t := range rounds {
		parts := make([][]int, k)
		for i := range parts {
			parts[i] = permutation(n, des.NewStream(d.Draw, fmt.Sprintf("latin/%d/%s", t, d.Factors[i].Path)))
		}
		if rounds == 1 {
			best = parts
			break
		}
		if l := leastDistance(parts, most); l > most {
			best, most = parts, l
		}
	}
	out := make([]Point, n)
	for j := range out {
		p := make(Point, k)
		for i := range p {
			f := &d.Factors[i]
			if f.span != nil && len(f.Levels) == 0 {
				// The middle of the part.
				p[i] = QuoteValue(f.span.at((float64(best[i][j]) + 0.5) / float64(n)))
			} else {
				p[i] = f.Levels[best[i][j]*len(f.Levels)/n]
			}
		}
		out[j] = p
	}
	return out
}

// permutation of 0 … n-1 (Fisher and Yates).
func permutation(n int, r *des.Stream) []int {
	p := make([]int, n)
	for i := range p {
		p[i] = i
	}
	for i := n - 1; i > 0; i-- {
		j := r.IntN(i + 1)
		p[i], p[j] = p[j], p[i]
	}
	return p
}

// leastDistance is the square of the least distance between two points, or
// anything up to bound once it is known not to be larger.
func leastDistance(parts [][]int, bound int) int {
	least := math.MaxInt
	n := len(parts[0])
	for a := range n {
		for b := a + 1; b < n; b++ {
			sum := 0
			for i := range parts {
				x := parts[i][a] - parts[i][b]
				sum += x * x
			}
			if sum < least {
				if least = sum; least <= bound {
					return least
				}
			}
		}
	}
	return least
}
