package schedule

import (
	"errors"
	"fmt"

	"spinesim/sim/des"
)

// SolveOptions bound the search. The zero value takes the defaults.
type SolveOptions struct {
	// Nodes is the most nodes of the search tree that are looked at in all
	// [50,000, chosen: about a second]. More may prove more. Time is no bound,
	// so that the result is the same on every machine.
	Nodes int64
	// KeepLatency leaves the latency as the first schedule has it.
	KeepLatency bool
	// Seed is starts of a schedule of a similar problem at interval SeedAt:
	// where their order solves this one, the search begins with it.
	Seed   []des.Time
	SeedAt des.Time
}

// ErrNotFound reports that the search ended before it found any cycle; with more
// nodes it may.
var ErrNotFound = errors.New("no cycle found")

const (
	defaultNodes = 50_000
	// nodeShare is the part of the nodes that one interval may take.
	nodeShare = 8
)

// Schedule is a cycle that solves a problem.
type Schedule struct {
	// Interval is the initiation interval: how long a cycle takes.
	Interval des.Time
	// Lower is the greatest bound proved: no schedule is faster. Proved says
	// that Interval is that fast.
	Lower  des.Time
	Proved bool
	// Binding is what sets the bound before any search.
	Binding string
	// Start is when each op begins, of the packet that is the first to begin
	// in cycle 0: the earliest that the order allows, with op 0 at 0.
	Start []des.Time
	// Latency is the longest of the problem's spans. LatencyProved says that
	// no schedule of this interval has a shorter one.
	Latency       des.Time
	LatencyProved bool
	// Nodes of the search tree that were looked at.
	Nodes int64

	// first is the schedule before its latency was shortened, or nil.
	first *Schedule

	p     *Problem
	links []link // the problem's own, and the order of the holdings
	spans []link // that keep the latency short
}

// Distance is how far the interval may be from the best, as a share of it: 0
// when it is proved to be the best.
func (s *Schedule) Distance() float64 {
	return float64(s.Interval-s.Lower) / float64(s.Interval)
}

// solver keeps the account of nodes over the intervals tried.
type solver struct {
	p           *Problem
	left, nodes int64
	each        int64
}

// try looks for a schedule at interval λ with extra links: first by placing
// ops, then by the exhaustive search. known is false when that gave up.
func (s *solver) try(lambda int64, extra ...link) (start []int64, known bool) {
	if start := newPlacer(s.p, extra, lambda).run(); start != nil {
		return start, true
	}
	d := newDecision(s.p, extra, lambda, min(s.each, s.left))
	found, known := d.run()
	s.left -= d.nodes
	s.nodes += d.nodes
	if !found {
		return nil, known
	}
	return d.out, true
}

// Solve finds the shortest cycle that it can prove to be one, or the best that
// it comes by within its bounds. The error wraps ErrImpossible when there is
// none, or names what is wrong with the problem.
func Solve(p *Problem, opt SolveOptions) (*Schedule, error) {
	least, what, err := p.Least()
	if err != nil {
		return nil, err
	}
	if opt.Nodes <= 0 {
		opt.Nodes = defaultNodes
	}
	sv := &solver{p: p, left: opt.Nodes, each: max(1, opt.Nodes/nodeShare)}
	s := &Schedule{Lower: least, Binding: what, p: p}
	if err := s.shortest(sv, s.seed(opt)); err != nil {
		return nil, err
	}
	s.Proved = s.Lower == s.Interval
	s.Nodes = sv.nodes
	if !opt.KeepLatency && len(p.Spans) > 0 {
		first := *s
		s.first = &first
		s.shorten(sv)
		s.Nodes = sv.nodes
	}
	return s, nil
}

// take makes start, found at interval λ, the schedule, at the shortest interval
// not below s.Lower that its order allows.
func (s *Schedule) take(start []int64, lambda int64) error {
	links, least, err := s.ordered(start, lambda)
	if err != nil {
		return err
	}
	if short := s.compact(start, lambda); short != nil {
		if l, v, err := s.ordered(short, lambda); err == nil && v <= least {
			links, least = l, v
		}
	}
	s.links, s.spans = links, nil
	s.Interval = des.Time(least)
	s.place(least)
	return nil
}

// ordered is the order of starts at interval λ, and the shortest interval not
// below s.Lower that it allows.
func (s *Schedule) ordered(start []int64, lambda int64) ([]link, int64, error) {
	links := s.p.order(start, lambda)
	least, err := leastInterval(len(s.p.Ops), arcs(links, s.p.times()), int64(s.Lower))
	if err != nil {
		return nil, 0, fmt.Errorf("order of a schedule: %w", err)
	}
	return links, least, nil
}

// compact leaves every op where it is in the cycle, but as few cycles behind op
// 0 as its packet's way asks for. It is nil where that tells nothing.
func (s *Schedule) compact(start []int64, lambda int64) []int64 {
	n := len(start)
	sigma := make([]int64, n)
	for i, t := range start {
		sigma[i] = modulo(t, lambda)
	}
	var stages []arc
	for _, a := range arcs(s.p.links(), s.p.times()) {
		x := ceilDiv(a.lag+sigma[a.from]-sigma[a.to], lambda)
		stages = append(stages, arc{a.from, a.to, x - int64(a.height), 0})
	}
	stage, ok := starts(n, stages, 0, 0)
	if !ok {
		return nil
	}
	out := make([]int64, n)
	for i := range out {
		if stage[i] == noStart {
			return nil
		}
		out[i] = sigma[i] + lambda*stage[i]
	}
	return out
}

// place puts every op as early as the order allows.
func (s *Schedule) place(lambda int64) {
	n := len(s.p.Ops)
	a := arcs(append(s.links[:len(s.links):len(s.links)], s.spans...), s.p.times())
	at, _ := starts(n, a, lambda, 0)
	for _, v := range at {
		if v == noStart {
			// Not everything is tied to op 0: then any starts will do.
			at, _ = starts(n, a, lambda, -1)
			break
		}
	}
	s.Start = make([]des.Time, n)
	for i := range s.Start {
		s.Start[i] = des.Time(at[i] - at[0])
	}
	s.Latency = 0
	for _, sp := range s.p.Spans {
		s.Latency = max(s.Latency, s.Start[sp.Last]+s.p.Ops[sp.Last].Time-s.Start[sp.First])
	}
}

// seed takes over the order of a schedule of a similar problem. It tells
// whether that could be done.
func (s *Schedule) seed(opt SolveOptions) bool {
	if len(opt.Seed) != len(s.p.Ops) || opt.SeedAt < 1 {
		return false
	}
	start := make([]int64, len(opt.Seed))
	for i, t := range opt.Seed {
		start[i] = int64(t)
	}
	return s.take(start, int64(opt.SeedAt)) == nil
}

// shortest finds the interval by bisection: at each one tried the search finds
// a schedule, proves that there is none, or gives up. seeded says that there
// is a schedule to begin with.
func (s *Schedule) shortest(sv *solver, seeded bool) error {
	lo := int64(s.Lower) // none is shorter: proved
	if seeded && int64(s.Interval) == lo {
		return nil
	}
	start, known := sv.try(lo)
	if start != nil {
		return s.take(start, lo)
	}
	if known {
		lo++
	}
	if seeded {
		s.Lower = des.Time(lo)
		return s.bisect(sv)
	}
	serial := lo
	for _, o := range s.p.Ops {
		serial += int64(o.Time)
	}
	for _, e := range s.p.Edges {
		serial += max(0, int64(e.After))
	}
	hi := lo
	for step := max(1, lo/256); start == nil && hi < serial; step *= 2 {
		hi = min(hi+step, serial)
		if start, known = sv.try(hi); start == nil && known {
			lo = hi + 1
		}
	}
	if start == nil {
		return fmt.Errorf("%w within %d nodes of the search, and none up to %v is proved impossible", ErrNotFound, sv.nodes, des.Time(lo-1))
	}
	s.Lower = des.Time(lo)
	if err := s.take(start, hi); err != nil {
		return err
	}
	return s.bisect(sv)
}

// bisect looks between what is proved and what is found.
func (s *Schedule) bisect(sv *solver) error {
	lo := int64(s.Lower)
	for at := lo; at < int64(s.Interval); {
		m := at + (int64(s.Interval)-at)/2
		start, known := sv.try(m)
		switch {
		case start != nil:
			if err := s.take(start, m); err != nil {
				return err
			}
		case known && at == lo:
			lo = m + 1
			at, s.Lower = lo, des.Time(lo)
		default:
			at = m + 1
		}
	}
	return nil
}

// shorten makes the latency as short as the interval allows.
func (s *Schedule) shorten(sv *solver) {
	lambda := int64(s.Interval)
	var lo int64 // no shorter: proved
	for _, sp := range s.p.Spans {
		// From the span's first op on, as if nothing else were in the way.
		free, ok := starts(len(s.p.Ops), arcs(s.p.links(), s.p.times()), lambda, sp.First)
		if ok && free[sp.Last] != noStart {
			lo = max(lo, free[sp.Last]+int64(s.p.Ops[sp.Last].Time))
		}
	}
	proved := true
	for m := lo; lo < int64(s.Latency); m = lo + (int64(s.Latency)-lo)/2 {
		var spans []link
		for _, sp := range s.p.Spans {
			spans = append(spans, link{sp.Last, sp.First, -m, 0})
		}
		start, known := sv.try(lambda, spans...)
		if start == nil {
			proved = proved && known
			lo = m + 1
			continue
		}
		s.spans = spans
		s.links = s.p.order(start, lambda)
		if short := s.compact(start, lambda); short != nil {
			if links, least, err := s.ordered(short, lambda); err == nil && least <= lambda {
				s.links = links
			}
		}
		s.place(lambda)
	}
	s.LatencyProved = proved
}

// Slowed is the interval that the schedule's order takes when its ops take the
// given times instead.
func (s *Schedule) Slowed(times []des.Time) (des.Time, error) {
	if len(times) != len(s.p.Ops) {
		return 0, fmt.Errorf("times of %d ops, want %d", len(times), len(s.p.Ops))
	}
	least, err := leastInterval(len(s.p.Ops), arcs(s.links, times), 1)
	if err != nil {
		return 0, fmt.Errorf("the cycle's order with other times: %w", err)
	}
	return des.Time(least), nil
}
