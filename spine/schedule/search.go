package schedule

import "math"

// decision is the exhaustive search for a schedule at one interval λ.
//
// Every start is written as σ + λ·stage, with 0 ≤ σ < λ and σ of op 0 at 0.
// Then two kinds of difference constraints remain: of the σ, in picoseconds, and
// of the stages, in whole cycles. An edge from i to j over h cycles says
//
//	σ(j) ≥ σ(i) + lag − λ·x   and   stage(j) ≥ stage(i) − h + x
//
// for some whole x: the more stages it is given, the less it asks of the σ. Two
// claims on a resource say that one of them comes first in the interval, or
// that one lies in the gap that the other, wrapped around it, leaves. The search
// keeps the longest paths of both kinds of constraints closed, lets each
// narrow the other, and branches on a claim pair or an edge that the earliest
// starts violate. All numbers are whole, so it is exact.
type decision struct {
	n      int
	lambda int64
	edges  []stageEdge
	pairs  []pair

	sigma []int64 // n×n: the least of σ(j) − σ(i)
	stage []int32 // n×n: the least of stage(j) − stage(i)
	trail []undo

	nodes, limit int64
	found        bool
	out          []int64 // starts of the schedule found
}

// stageEdge is an edge with what is known of its x: from lo to hi, at which it
// asks nothing of the σ when it is void or more.
type stageEdge struct {
	from, to int
	lag      int64
	height   int32
	lo, hi   int32
	void     int32
}

// pair is two claims on one resource. Alternative 0: the first comes first; 1:
// the second does; 2 and 3: the first, or the second, wraps around the
// interval with the other in its gap, open to claims over several ops only.
type pair struct {
	a, b        place
	afterA      int64 // b may begin so long after a's last op begins
	afterB      int64
	open        uint8 // alternatives left, by bit
	chosen      bool
	overSeveral bool
	natural     int // the alternative that follows the packets' way, or -1
}

type undoKind uint8

const (
	undoSigma undoKind = iota
	undoStage
	undoLow
	undoHigh
	undoPair
)

type undo struct {
	kind undoKind
	at   int
	old  int64
}

const noStage = math.MinInt32 / 4

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b != 0 && a < 0 {
		q--
	}
	return q
}

func ceilDiv(a, b int64) int64 { return -floorDiv(-a, b) }

// newDecision lays out the search for p at interval λ. extra are links beside
// the problem's own.
func newDecision(p *Problem, extra []link, lambda, limit int64) *decision {
	n := len(p.Ops)
	d := &decision{n: n, lambda: lambda, limit: limit, sigma: make([]int64, n*n), stage: make([]int32, n*n)}
	for i := range d.sigma {
		d.sigma[i] = -(lambda - 1)
		d.stage[i] = noStage
	}
	for i := range n {
		d.sigma[i] = 0 // op 0 is at 0, the others behind it
		d.sigma[i*n+i] = 0
		d.stage[i*n+i] = 0
	}
	for _, a := range arcs(append(p.links(), extra...), p.times()) {
		q := floorDiv(a.lag, lambda)
		d.edges = append(d.edges, stageEdge{
			from: a.from, to: a.to, lag: a.lag, height: int32(a.height),
			lo: int32(q), hi: int32(q) + 2, void: int32(q) + 2,
		})
	}
	d.addPairs(p)
	return d
}

func (d *decision) addPairs(p *Problem) {
	all := p.held()
	leads := p.leads()
	for i, a := range all {
		for _, b := range all[i+1:] {
			if !a.excludes(b) {
				continue
			}
			natural := -1
			switch {
			case leads[a.last*d.n+b.first]:
				natural = 0
			case leads[b.last*d.n+a.first]:
				natural = 1
			}
			q := pair{natural: natural, a: a.place, b: b.place, afterA: a.time - b.lead, afterB: b.time - a.lead, open: 0b0011}
			if a.first != a.last {
				q.open |= 0b0100
				q.overSeveral = true
			}
			if b.first != b.last {
				q.open |= 0b1000
				q.overSeveral = true
			}
			d.pairs = append(d.pairs, q)
		}
	}
}

// run searches. known is false when the limit of nodes ended it.
func (d *decision) run() (found, known bool) {
	known = d.branch()
	return d.found, known || d.found
}

// --- constraints -------------------------------------------------------------

// after demands σ(j) ≥ σ(i) + w. It fails when that cannot be.
func (d *decision) after(i, j int, w int64) bool {
	n, s := d.n, d.sigma
	if s[i*n+j] >= w {
		return true
	}
	if s[j*n+i]+w > 0 {
		return false
	}
	for a := range n {
		ai := s[a*n+i] + w
		if ai <= s[a*n+j] {
			continue
		}
		for b := range n {
			if v := ai + s[j*n+b]; v > s[a*n+b] {
				d.trail = append(d.trail, undo{undoSigma, a*n + b, s[a*n+b]})
				s[a*n+b] = v
			}
		}
	}
	return true
}

// later demands stage(j) ≥ stage(i) + w.
func (d *decision) later(i, j int, w int32) bool {
	n, s := d.n, d.stage
	if s[i*n+j] >= w {
		return true
	}
	if s[j*n+i] > noStage && s[j*n+i]+w > 0 {
		return false
	}
	for a := range n {
		if s[a*n+i] <= noStage {
			continue
		}
		ai := s[a*n+i] + w
		if ai <= s[a*n+j] {
			continue
		}
		for b := range n {
			if s[j*n+b] <= noStage {
				continue
			}
			if v := ai + s[j*n+b]; v > s[a*n+b] {
				d.trail = append(d.trail, undo{undoStage, a*n + b, int64(s[a*n+b])})
				s[a*n+b] = v
			}
		}
	}
	return true
}

func (d *decision) raiseLow(e int, x int32) bool {
	g := &d.edges[e]
	if x <= g.lo {
		return true
	}
	if x > g.hi && g.hi < g.void {
		return false
	}
	d.trail = append(d.trail, undo{undoLow, e, int64(g.lo)})
	g.lo = x
	return d.later(g.from, g.to, x-g.height)
}

func (d *decision) lowerHigh(e int, x int32) bool {
	g := &d.edges[e]
	if x >= g.hi {
		return true
	}
	if x < g.lo {
		return false
	}
	d.trail = append(d.trail, undo{undoHigh, e, int64(g.hi)})
	g.hi = x
	return d.after(g.from, g.to, g.lag-d.lambda*int64(x))
}

// undoTo takes back everything since the trail had length k.
func (d *decision) undoTo(k int) {
	for i := len(d.trail) - 1; i >= k; i-- {
		switch u := &d.trail[i]; u.kind {
		case undoSigma:
			d.sigma[u.at] = u.old
		case undoStage:
			d.stage[u.at] = int32(u.old)
		case undoLow:
			d.edges[u.at].lo = int32(u.old)
		case undoHigh:
			d.edges[u.at].hi = int32(u.old)
		case undoPair:
			q := &d.pairs[u.at]
			q.open, q.chosen = uint8(u.old>>1), u.old&1 != 0
		}
	}
	d.trail = d.trail[:k]
}

func (d *decision) setPair(i int, open uint8, chosen bool) {
	q := &d.pairs[i]
	old := int64(q.open) << 1
	if q.chosen {
		old |= 1
	}
	d.trail = append(d.trail, undo{undoPair, i, old})
	q.open, q.chosen = open, chosen
}

// asks tells what alternative k of a pair asks of the σ: b so long after a's
// last op, and a after b's.
func (d *decision) asks(q *pair, k int) (ab, ba int64) {
	ab, ba = q.afterA, q.afterB
	switch k {
	case 0:
		ba -= d.lambda
	case 1:
		ab -= d.lambda
	}
	return ab, ba
}

// room is how much the σ may still move under alternative k, negative when it
// is out of the question.
func (d *decision) room(q *pair, k int) int64 {
	n := d.n
	ab, ba := d.asks(q, k)
	r := min(-(d.sigma[q.b.first*n+q.a.last] + ab), -(d.sigma[q.a.first*n+q.b.last] + ba))
	if r < 0 || !q.overSeveral {
		return r
	}
	wrapA, wrapB := wraps(k)
	if !d.mayWrap(q.a, wrapA) || !d.mayWrap(q.b, wrapB) {
		return -1
	}
	return r
}

// wraps tells over how many stages the claims of a pair stretch.
func wraps(k int) (a, b int32) {
	switch k {
	case 2:
		return 1, 0
	case 3:
		return 0, 1
	}
	return 0, 0
}

// mayWrap tells whether a claim can stretch over so many stages.
func (d *decision) mayWrap(c place, w int32) bool {
	n := d.n
	if c.first == c.last {
		return w == 0
	}
	most := int32(math.MaxInt32)
	if back := d.stage[c.last*n+c.first]; back > noStage {
		most = -back
	}
	least := d.stage[c.first*n+c.last]
	return least <= w && w <= most
}

func (d *decision) setWrap(c place, w int32) bool {
	return c.first == c.last || d.later(c.first, c.last, w) && d.later(c.last, c.first, -w)
}

// choose demands alternative k of pair i.
func (d *decision) choose(i, k int) bool {
	d.setPair(i, 1<<k, true)
	q := &d.pairs[i]
	ab, ba := d.asks(q, k)
	if !d.after(q.a.last, q.b.first, ab) || !d.after(q.b.last, q.a.first, ba) {
		return false
	}
	wa, wb := wraps(k)
	return d.setWrap(q.a, wa) && d.setWrap(q.b, wb)
}

// propagate narrows everything until nothing changes.
func (d *decision) propagate() bool {
	n := d.n
	for {
		mark := len(d.trail)
		for e := range d.edges {
			g := &d.edges[e]
			// σ(to) − σ(from) is at most −σ[to][from].
			if !d.raiseLow(e, int32(ceilDiv(g.lag+d.sigma[g.to*n+g.from], d.lambda))) {
				return false
			}
			if back := d.stage[g.to*n+g.from]; back > noStage && !d.lowerHigh(e, g.height-back) {
				return false
			}
			if !d.later(g.from, g.to, g.lo-g.height) {
				return false
			}
		}
		for i := range d.pairs {
			q := &d.pairs[i]
			if q.chosen {
				continue
			}
			open, left, last := uint8(0), 0, 0
			for k := range 4 {
				if q.open>>k&1 != 0 && d.room(q, k) >= 0 {
					open |= 1 << k
					left++
					last = k
				}
			}
			switch {
			case left == 0:
				return false
			case left == 1:
				if !d.choose(i, last) {
					return false
				}
			case open != q.open:
				d.setPair(i, open, false)
			}
		}
		if len(d.trail) == mark {
			return true
		}
	}
}

// --- branching ----------------------------------------------------------------

// branch searches below the present node. It returns false when the limit was
// reached first.
func (d *decision) branch() bool {
	if d.nodes++; d.nodes > d.limit {
		return false
	}
	mark := len(d.trail)
	defer d.undoTo(mark)
	if !d.propagate() {
		return true
	}
	if i := d.violated(); i >= 0 {
		for _, k := range d.order(i) {
			at := len(d.trail)
			if d.choose(i, k) && !d.branch() {
				return false
			}
			if d.found {
				return true
			}
			d.undoTo(at)
		}
		return true
	}
	e, x := d.stages()
	if e < 0 {
		return true // found, or out of the question
	}
	// More stages first: that leaves the σ as they are.
	at := len(d.trail)
	if d.raiseLow(e, x) && !d.branch() {
		return false
	}
	if d.found {
		return true
	}
	d.undoTo(at)
	return !d.lowerHigh(e, x-1) || d.branch()
}

// violated is the pair to branch on: of those that the earliest σ violate, the
// one with the least room. -1: none.
func (d *decision) violated() int {
	best, least := -1, int64(math.MaxInt64)
	for i := range d.pairs {
		q := &d.pairs[i]
		if q.chosen {
			continue
		}
		ok := false
		for k := 0; k < 2 && !q.overSeveral; k++ {
			ab, ba := d.asks(q, k)
			ok = ok || d.sigma[q.b.first] >= d.sigma[q.a.last]+ab && d.sigma[q.a.first] >= d.sigma[q.b.last]+ba
		}
		if ok {
			continue
		}
		most := int64(-1)
		for k := range 4 {
			if q.open>>k&1 != 0 {
				most = max(most, d.room(q, k))
			}
		}
		if most < least {
			best, least = i, most
		}
	}
	return best
}

// order is the open alternatives of pair i: a packet's ops in the order of its
// way first, which takes no stages, then that which leaves most room.
func (d *decision) order(i int) []int {
	q := &d.pairs[i]
	var out []int
	better := func(a, b int) bool {
		if x, y := a == q.natural, b == q.natural; x != y {
			return x
		}
		return d.room(q, a) > d.room(q, b)
	}
	for k := range 4 {
		if q.open>>k&1 == 0 {
			continue
		}
		at := len(out)
		for at > 0 && better(k, out[at-1]) {
			at--
		}
		out = append(out, 0)
		copy(out[at+1:], out[at:])
		out[at] = k
	}
	return out
}

// stages completes the earliest σ, which violate no pair, by stages. When that
// fails, it names an edge to branch on and the x that the σ need of it, or -1
// when none is left.
func (d *decision) stages() (edge int, need int32) {
	n := d.n
	arcs := make([]arc, 0, len(d.edges)+n)
	x := make([]int32, len(d.edges))
	for e := range d.edges {
		g := &d.edges[e]
		x[e] = int32(ceilDiv(g.lag+d.sigma[g.from]-d.sigma[g.to], d.lambda))
		arcs = append(arcs, arc{g.from, g.to, int64(x[e] - g.height), 0})
	}
	for i := range n {
		for j := range n {
			// Of the stages' own constraints those of wrapped claims matter.
			if v := d.stage[i*n+j]; i != j && v > noStage {
				arcs = append(arcs, arc{i, j, int64(v), 0})
			}
		}
	}
	if st, ok := starts(n, arcs, 0, -1); ok {
		d.found = true
		d.out = make([]int64, n)
		for i := range n {
			d.out[i] = d.sigma[i] + d.lambda*st[i]
		}
		return -1, 0
	}
	edge = -1
	var slack int32
	for e := range d.edges {
		g := &d.edges[e]
		back := d.stage[g.to*n+g.from]
		if x[e] <= g.lo || back <= noStage {
			continue
		}
		if s := g.height - back - x[e]; edge < 0 || s < slack {
			edge, need, slack = e, x[e], s
		}
	}
	return edge, need
}
