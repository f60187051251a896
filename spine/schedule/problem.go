package schedule

import (
	"errors"
	"fmt"
	"math"

	"spinesim/sim/des"
	"spinesim/traces"
)

// Op is something that takes time, once a cycle.
type Op struct {
	Name string
	// Resource is what the op has to itself, an index of Problem.Resources,
	// or -1. It has it from Lead after its start to its end.
	Resource   int
	Time, Lead des.Time
	// Handler is what a processor runs, traces.NoEvent for hardware, on Card,
	// for the cycle's Packet (from 0).
	Handler traces.Event
	Card    uint8
	Packet  int
}

// Edge says that To of the cycle Height cycles later begins no earlier than
// After behind the end of From; After may be negative.
type Edge struct {
	From, To int
	After    des.Time
	Height   int
}

// Claim is a resource that is held over several ops: from Lead after the start
// of First to the end of Last. Claims of one group keep their order by edges;
// those of different groups must not overlap.
type Claim struct {
	Resource    int
	First, Last int
	Lead        des.Time
	Group       int
}

// Problem is a cyclic scheduling problem: every op begins once in each initiation
// interval, resources are held by one op at a time, and edges hold between the
// cycles. The interval is to be as short as possible.
type Problem struct {
	Resources []string
	Ops       []Op
	Edges     []Edge
	Claims    []Claim
	// Packets of each ingress card in a cycle.
	Packets int
	// Spans are the stretches whose length is the latency of a packet: from
	// the start of First to the end of Last.
	Spans []Span
}

// Span is a stretch of a packet's way.
type Span struct{ First, Last int }

// Bounds of what is accepted: far beyond any cycle that fits a card, and small
// enough that sums of times cannot overflow.
const (
	maxOps  = 1024
	maxTime = 100 * des.Second
)

// ErrImpossible reports a problem that no interval solves, however long.
var ErrImpossible = errors.New("no cycle, however long, can do this")

// Validate tells what is wrong with the problem itself.
func (p *Problem) Validate() error {
	n := len(p.Ops)
	if n == 0 || n > maxOps {
		return fmt.Errorf("%d ops, want 1 … %d", n, maxOps)
	}
	for i, o := range p.Ops {
		if o.Resource < -1 || o.Resource >= len(p.Resources) {
			return fmt.Errorf("op %q: resource %d, want -1 … %d", o.Name, o.Resource, len(p.Resources)-1)
		}
		if o.Time < 0 || o.Time > maxTime || o.Lead < 0 || o.Lead > o.Time {
			return fmt.Errorf("op %q (%d): takes %v from %v on, want at most %v", o.Name, i, o.Time, o.Lead, des.Time(maxTime))
		}
	}
	for i, e := range p.Edges {
		if e.From < 0 || e.From >= n || e.To < 0 || e.To >= n || e.Height < 0 || e.Height > 1<<20 || e.After > maxTime || e.After < -maxTime {
			return fmt.Errorf("edge %d: from op %d to op %d, %v later, over %d cycles", i, e.From, e.To, e.After, e.Height)
		}
	}
	for i, c := range p.Claims {
		if c.First < 0 || c.First >= n || c.Last < 0 || c.Last >= n || c.Lead < 0 || c.Resource < 0 || c.Resource >= len(p.Resources) {
			return fmt.Errorf("claim %d: from op %d to op %d on resource %d", i, c.First, c.Last, c.Resource)
		}
	}
	for i, s := range p.Spans {
		if s.First < 0 || s.First >= n || s.Last < 0 || s.Last >= n {
			return fmt.Errorf("span %d: from op %d to op %d", i, s.First, s.Last)
		}
	}
	return nil
}

// arc is a difference constraint: start(to) ≥ start(from) + lag − λ·height.
type arc struct {
	from, to int
	lag      int64
	height   int
}

// link is a constraint that moves with the time that its op takes: to begins
// no earlier than after behind the end of from, height cycles later.
type link struct {
	from, to int
	after    int64
	height   int
}

// links are the edges, and that a claim is over before it begins again.
func (p *Problem) links() []link {
	out := make([]link, 0, len(p.Edges)+len(p.Claims))
	for _, e := range p.Edges {
		out = append(out, link{e.From, e.To, int64(e.After), e.Height})
	}
	for _, c := range p.Claims {
		out = append(out, link{c.Last, c.First, -int64(c.Lead), 1})
	}
	return out
}

// arcs are links with the given times of the ops.
func arcs(links []link, times []des.Time) []arc {
	out := make([]arc, len(links))
	for i, l := range links {
		out[i] = arc{l.from, l.to, int64(times[l.from]) + l.after, l.height}
	}
	return out
}

func (p *Problem) times() []des.Time {
	t := make([]des.Time, len(p.Ops))
	for i := range p.Ops {
		t[i] = p.Ops[i].Time
	}
	return t
}

// noStart marks an op that nothing ties to the first.
const noStart = math.MinInt64 / 4

// starts finds the least starts that satisfy the arcs at interval λ, from start
// 0 of op from on, and of all others where from is -1. ok is false when there
// are none: a cycle of arcs takes longer than its intervals.
func starts(n int, arcs []arc, lambda int64, from int) (s []int64, ok bool) {
	s = make([]int64, n)
	if from >= 0 {
		for i := range s {
			s[i] = noStart
		}
		s[from] = 0
	}
	for range n + 1 {
		changed := false
		for _, a := range arcs {
			if s[a.from] == noStart {
				continue
			}
			if v := s[a.from] + a.lag - lambda*int64(a.height); v > s[a.to] {
				s[a.to] = v
				changed = true
			}
		}
		if !changed {
			return s, true
		}
	}
	return s, false
}

// leastInterval is the least λ ≥ lo at which the arcs can be satisfied.
func leastInterval(n int, arcs []arc, lo int64) (int64, error) {
	hi := max(lo, 1)
	for _, a := range arcs {
		hi += max(a.lag, 0)
	}
	if _, ok := starts(n, arcs, hi, -1); !ok {
		return 0, ErrImpossible
	}
	for lo < hi {
		if m := lo + (hi-lo)/2; feasible(n, arcs, m) {
			hi = m
		} else {
			lo = m + 1
		}
	}
	return lo, nil
}

func feasible(n int, arcs []arc, lambda int64) bool {
	_, ok := starts(n, arcs, lambda, -1)
	return ok
}

// Least is the bound that resources and recurrences set to the interval, and
// what sets it: the name of a resource, or "precedence" for a chain of ops that
// must end before it begins again.
func (p *Problem) Least() (des.Time, string, error) {
	if err := p.Validate(); err != nil {
		return 0, "", err
	}
	use := make([]int64, len(p.Resources))
	for _, o := range p.Ops {
		if o.Resource >= 0 {
			use[o.Resource] += int64(o.Time - o.Lead)
		}
	}
	for _, c := range p.Claims {
		use[c.Resource] += p.claimTime(c)
	}
	most, what := int64(1), "nothing"
	for r, u := range use {
		if u > most {
			most, what = u, p.Resources[r]
		}
	}
	rec, err := leastInterval(len(p.Ops), arcs(p.links(), p.times()), most)
	if err != nil {
		return 0, "", err
	}
	if rec > most {
		most, what = rec, "precedence"
	}
	return des.Time(most), what, nil
}

// claimTime is the least that a claim takes: its longest path within a cycle.
func (p *Problem) claimTime(c Claim) int64 {
	within := make([]arc, 0, len(p.Edges))
	for _, e := range p.Edges {
		if e.Height == 0 {
			within = append(within, arc{e.From, e.To, int64(p.Ops[e.From].Time + e.After), 0})
		}
	}
	s, ok := starts(len(p.Ops), within, 0, c.First)
	if !ok || s[c.Last] < 0 {
		return int64(p.Ops[c.Last].Time)
	}
	return max(0, s[c.Last]+int64(p.Ops[c.Last].Time-c.Lead))
}

// place is where a resource is held: over one op, or over several.
type place struct{ first, last int }

// held is one holding of a resource, by an op or a claim.
type held struct {
	place
	resource, group int
	lead, time      int64 // time is that of the last op
}

// held lists who holds a resource.
func (p *Problem) held() []held {
	var all []held
	for i, o := range p.Ops {
		if o.Resource >= 0 && o.Time > o.Lead {
			all = append(all, held{place{i, i}, o.Resource, -1, int64(o.Lead), int64(o.Time)})
		}
	}
	for _, c := range p.Claims {
		all = append(all, held{place{c.First, c.Last}, c.Resource, c.Group, int64(c.Lead), int64(p.Ops[c.Last].Time)})
	}
	return all
}

// excludes tells whether two holdings must not overlap.
func (a held) excludes(b held) bool {
	return a.resource == b.resource && (a.group < 0 || a.group != b.group)
}

// order adds to the problem's links those by which a schedule at interval λ
// keeps holdings of a resource apart. What satisfies them all is a schedule,
// at any interval and with any times of the ops.
func (p *Problem) order(start []int64, lambda int64) []link {
	out := p.links()
	all := p.held()
	for i, a := range all {
		for _, b := range all[i+1:] {
			if !a.excludes(b) {
				continue
			}
			// b begins for the k-th time after a has ended, k the least.
			end := start[a.last] + a.time
			k := ceilDiv(end-start[b.first]-b.lead, lambda)
			out = append(out,
				link{a.last, b.first, -b.lead, int(k)},
				link{b.last, a.first, -a.lead, int(1 - k)})
		}
	}
	return out
}

// leads tells, for each two ops (n×n), whether the first comes before the second
// on its packet's way.
func (p *Problem) leads() []bool {
	n := len(p.Ops)
	out := make([]bool, n*n)
	for _, e := range p.Edges {
		if e.Height == 0 && p.Ops[e.From].Time+e.After >= 0 {
			out[e.From*n+e.To] = true
		}
	}
	for k := range n {
		for i := range n {
			if !out[i*n+k] {
				continue
			}
			for j := range n {
				out[i*n+j] = out[i*n+j] || out[k*n+j]
			}
		}
	}
	return out
}
