package schedule

import "math"

// placer is iterative modulo scheduling: it puts one op after the other into
// the cycle; an op that finds no room takes it from others, which are placed
// anew. It finds good schedules fast and proves nothing.
//
// After Rau, and Huff's and Llosa's ways of choosing: ops on the tightest
// recurrence go first, such as a DMA chain that must be over before the next
// one begins; what leads to ops that are placed goes as late as it can before
// them, all else as early as it can. So packets stay in the cycle no longer than
// they must, and buffers and credits last.
type placer struct {
	p      *Problem
	lambda int64
	n      int
	arcs   []arc
	way    []int64 // n×n: the longest path between ops, noStart for none
	leads  []bool  // n×n: whether one op comes before the other of its packet
	held   []held
	of     [][]int // holdings by op
	slack  []int64 // that of the tightest recurrence through an op
	start  []int64
	placed []bool
	tries  []int64
}

// budget is how many placements are tried for each op (chosen; a schedule that
// is found at all is found with a few).
const budget = 24

// newPlacer lays the ops out; it is nil when the arcs alone take longer than λ.
func newPlacer(p *Problem, extra []link, lambda int64) *placer {
	n := len(p.Ops)
	g := &placer{
		p: p, lambda: lambda, n: n, arcs: arcs(append(p.links(), extra...), p.times()),
		way: make([]int64, n*n), leads: p.leads(), of: make([][]int, n), held: p.held(),
		slack: make([]int64, n), start: make([]int64, n), placed: make([]bool, n), tries: make([]int64, n),
	}
	for i := range g.way {
		g.way[i] = noStart
	}
	for _, a := range g.arcs {
		at := a.from*n + a.to
		g.way[at] = max(g.way[at], a.lag-lambda*int64(a.height))
	}
	for k := range n {
		for i := range n {
			ik := g.way[i*n+k]
			if ik == noStart {
				continue
			}
			for j := range n {
				if kj := g.way[k*n+j]; kj != noStart {
					g.way[i*n+j] = max(g.way[i*n+j], ik+kj)
				}
			}
		}
	}
	for i := range n {
		if g.way[i*n+i] > 0 {
			return nil
		}
		g.way[i*n+i] = 0
		g.slack[i] = math.MaxInt64
		for j := range n {
			if a, b := g.way[i*n+j], g.way[j*n+i]; i != j && a != noStart && b != noStart {
				g.slack[i] = min(g.slack[i], -(a + b))
			}
		}
	}
	for i, h := range g.held {
		g.of[h.first] = append(g.of[h.first], i)
		if h.last != h.first {
			g.of[h.last] = append(g.of[h.last], i)
		}
	}
	return g
}

// run returns starts that keep every link and holding, or nil.
func (g *placer) run() []int64 {
	if g == nil {
		return nil
	}
	for range budget * g.n {
		i := g.next()
		if i < 0 {
			if !g.sound() {
				return nil
			}
			return g.start
		}
		g.put(i)
	}
	return nil
}

// next is the op to place next: on the tightest recurrence, then next to what
// is placed, then the first.
func (g *placer) next() int {
	best, near := -1, false
	for i := range g.n {
		if g.placed[i] {
			continue
		}
		v := g.neighbour(i)
		if best < 0 || g.slack[i] < g.slack[best] || g.slack[i] == g.slack[best] && v && !near {
			best, near = i, v
		}
	}
	return best
}

// neighbour tells whether all that leads directly to an op is placed, or all
// that it leads to.
func (g *placer) neighbour(i int) bool {
	before, after, any := true, true, false
	for _, a := range g.arcs {
		if a.height != 0 || a.from == a.to {
			continue
		}
		switch i {
		case a.to:
			before = before && g.placed[a.from]
			any = any || g.placed[a.from]
		case a.from:
			after = after && g.placed[a.to]
			any = any || g.placed[a.to]
		}
	}
	return any && (before || after)
}

// window is where an op may begin, by what is placed, and whether it leads to
// any of that without following from any.
func (g *placer) window(i int) (lo, hi int64, late bool) {
	lo, hi = noStart, math.MaxInt64
	follows := false
	for j := range g.n {
		if !g.placed[j] || j == i {
			continue
		}
		if w := g.way[j*g.n+i]; w != noStart {
			lo = max(lo, g.start[j]+w)
		}
		if w := g.way[i*g.n+j]; w != noStart {
			hi = min(hi, g.start[j]-w)
		}
		late = late || g.leads[i*g.n+j]
		follows = follows || g.leads[j*g.n+i]
	}
	return lo, hi, late && !follows
}

func (g *placer) put(i int) {
	lo, hi, late := g.window(i)
	if lo == noStart {
		lo = 0
		if hi != math.MaxInt64 {
			lo = hi - g.lambda + 1
		}
	}
	var at int64
	ok := false
	if late && hi != math.MaxInt64 {
		at, ok = g.roomBefore(i, hi, max(lo, hi-g.lambda+1))
	} else {
		at, ok = g.room(i, lo, min(hi, lo+g.lambda-1))
	}
	g.tries[i]++
	if !ok {
		// Where it would like to be; with every further try a little later, so
		// that two ops do not chase each other for ever.
		at = lo
		if late && hi != math.MaxInt64 {
			at = hi
		}
		for range g.tries[i] / 3 {
			at = g.later(i, at)
		}
	}
	g.start[i], g.placed[i] = at, true
	for _, h := range g.of[i] {
		for j := range g.held {
			if g.clash(h, j) {
				g.remove(g.held[j].first, i)
				g.remove(g.held[j].last, i)
			}
		}
	}
	for j := range g.n {
		if !g.placed[j] || j == i {
			continue
		}
		there, back := g.way[i*g.n+j], g.way[j*g.n+i]
		if there != noStart && g.start[j] < at+there || back != noStart && at < g.start[j]+back {
			g.remove(j, i)
		}
	}
}

func (g *placer) remove(i, but int) {
	if i != but {
		g.placed[i] = false
	}
}

// free tells whether an op can begin at a time with nothing in the way.
func (g *placer) free(i int, at int64) bool {
	g.start[i], g.placed[i] = at, true
	defer func() { g.placed[i] = false }()
	for _, h := range g.of[i] {
		for j := range g.held {
			if g.clash(h, j) {
				return false
			}
		}
	}
	return true
}

// room finds the earliest start from lo to hi with nothing in the way.
func (g *placer) room(i int, lo, hi int64) (int64, bool) {
	if lo > hi {
		return 0, false
	}
	if g.free(i, lo) {
		return lo, true
	}
	best, ok := hi, false
	g.ends(i, func(end, _ int64) {
		if at := lo + modulo(end-lo, g.lambda); at <= best && g.free(i, at) {
			best, ok = at, true
		}
	})
	return best, ok
}

// roomBefore finds the latest start from hi down to lo with nothing in the way.
func (g *placer) roomBefore(i int, hi, lo int64) (int64, bool) {
	if lo > hi {
		return 0, false
	}
	if g.free(i, hi) {
		return hi, true
	}
	best, ok := lo, false
	g.ends(i, func(_, begin int64) {
		if at := hi - modulo(hi-begin, g.lambda); at >= best && g.free(i, at) {
			best, ok = at, true
		}
	})
	return best, ok
}

// ends lists, for each other holding of op i's resources, when op i would begin
// to come right behind it, and right before it.
func (g *placer) ends(i int, f func(end, begin int64)) {
	for _, h := range g.of[i] {
		a := &g.held[h]
		for j := range g.held {
			b := &g.held[j]
			if j == h || !a.excludes(*b) {
				continue
			}
			from, to, ok := g.extent(b)
			if !ok {
				continue
			}
			behind, before := to-a.lead, from-a.time
			if a.first != a.last {
				length := max(0, g.way[a.first*g.n+a.last])
				if i == a.last {
					behind += length
				} else {
					before -= length
				}
			}
			f(behind, before)
		}
	}
}

// later is the next time after at at which something that holds a resource of
// op i ends, or a little later.
func (g *placer) later(i int, at int64) int64 {
	next := at + g.lambda
	g.ends(i, func(end, _ int64) {
		if d := modulo(end-at, g.lambda); d > 0 {
			next = min(next, at+d)
		}
	})
	if next == at+g.lambda {
		return at + 1
	}
	return next
}

// extent is from when to when a resource is held, as far as its ops are
// placed: a claim of which one end is placed is as short as it can be.
func (g *placer) extent(h *held) (from, to int64, ok bool) {
	first, last := g.placed[h.first], g.placed[h.last]
	if !first && !last {
		return 0, 0, false
	}
	a, b := g.start[h.first], g.start[h.last]
	length := max(0, g.way[h.first*g.n+h.last])
	if !first {
		a = b - length
	}
	if !last {
		b = a + length
	}
	return a + h.lead, b + h.time, true
}

// clash tells whether two holdings that are placed overlap.
func (g *placer) clash(x, y int) bool {
	a, b := &g.held[x], &g.held[y]
	if x == y || !a.excludes(*b) {
		return false
	}
	af, at, ok := g.extent(a)
	bf, bt, there := g.extent(b)
	if !ok || !there {
		return false
	}
	k := ceilDiv(at-bf, g.lambda)
	return af+g.lambda < bt+k*g.lambda
}

// sound makes sure that everything holds.
func (g *placer) sound() bool {
	for _, a := range g.arcs {
		if g.start[a.to] < g.start[a.from]+a.lag-g.lambda*int64(a.height) {
			return false
		}
	}
	for x := range g.held {
		for y := range g.held[:x] {
			if g.clash(x, y) {
				return false
			}
		}
	}
	return true
}

func modulo(a, m int64) int64 { return ((a % m) + m) % m }
