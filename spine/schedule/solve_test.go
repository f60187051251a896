package schedule

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"spinesim/sim/des"
)

// bruteForce tries every whole start of every op at λ = 1, 2, … .
func bruteForce(p *Problem, most int64) int64 {
	n := len(p.Ops)
	for lambda := int64(1); lambda <= most; lambda++ {
		sigma := make([]int64, n)
		for {
			if fits(p, sigma, lambda) {
				return lambda
			}
			i := 1
			for ; i < n; i++ {
				if sigma[i]++; sigma[i] < lambda {
					break
				}
				sigma[i] = 0
			}
			if i >= n {
				break
			}
		}
	}
	return -1
}

// fits tells whether starts within the interval can be completed by stages:
// relaxation from 0 finds the lowest, and none of these problems needs 30.
func fits(p *Problem, sigma []int64, lambda int64) bool {
	// Holdings, unit of time by unit of time; the cheap ones first.
	var taken [4]uint64
	hold := func(resource int, from, to int64) bool {
		if to-from > lambda {
			return false
		}
		for t := from; t < to; t++ {
			bit := uint64(1) << (((t % lambda) + lambda) % lambda)
			if taken[resource]&bit != 0 {
				return false
			}
			taken[resource] |= bit
		}
		return true
	}
	for i, o := range p.Ops {
		if o.Resource >= 0 && !hold(o.Resource, sigma[i]+int64(o.Lead), sigma[i]+int64(o.Time)) {
			return false
		}
	}
	var stage [8]int64
	for changed := true; changed; {
		changed = false
		for _, e := range p.Edges {
			from := sigma[e.From] + lambda*stage[e.From] + int64(p.Ops[e.From].Time+e.After)
			for sigma[e.To]+lambda*(stage[e.To]+int64(e.Height)) < from {
				stage[e.To]++
				changed = true
				if stage[e.To] > 30 {
					return false
				}
			}
		}
	}
	for _, c := range p.Claims {
		from := sigma[c.First] + lambda*stage[c.First] + int64(c.Lead)
		to := sigma[c.Last] + lambda*stage[c.Last] + int64(p.Ops[c.Last].Time)
		if !hold(c.Resource, from, to) {
			return false
		}
	}
	return true
}

// randomProblem is a chain of a few ops over two or three resources, with
// recurrences. Claims over several ops keep within edges, so that relaxation
// from 0 finds their shortest.
func randomProblem(r *rand.Rand) *Problem {
	n := 2 + r.IntN(4)
	p := &Problem{Resources: []string{"r0", "r1"}, Packets: 1}
	for i := range n {
		t := des.Time(r.IntN(4))
		o := Op{Name: fmt.Sprint("op", i), Resource: r.IntN(3) - 1, Time: t}
		if t > 1 && r.IntN(4) == 0 {
			o.Lead = 1
		}
		p.Ops = append(p.Ops, o)
		if i > 0 && r.IntN(5) > 0 {
			p.Edges = append(p.Edges, Edge{From: r.IntN(i), To: i, After: des.Time(r.IntN(4) - 1)})
		}
	}
	for range r.IntN(3) {
		a, b := r.IntN(n), r.IntN(n)
		p.Edges = append(p.Edges, Edge{From: a, To: b, After: des.Time(r.IntN(3) - 1), Height: 1 + r.IntN(2)})
	}
	return p
}

// randomChain is a router in small: a chain on the processor with transfers
// between, which holds an engine from end to end, and others' work that must
// fit into its gaps; sometimes a second holding of the engine, and few buffers.
func randomChain(r *rand.Rand) *Problem {
	p := &Problem{Resources: []string{"processor", "engine", "bus"}, Packets: 1}
	add := func(resource, most int) int {
		p.Ops = append(p.Ops, Op{Name: fmt.Sprint("op", len(p.Ops)), Resource: resource, Time: des.Time(1 + r.IntN(most))})
		return len(p.Ops) - 1
	}
	edge := func(a, b, height int) {
		p.Edges = append(p.Edges, Edge{From: a, To: b, After: des.Time(r.IntN(2)), Height: height})
	}
	a := add(0, 2)
	b := add(2, 3)
	c := add(0, 2)
	edge(a, b, 0)
	edge(b, c, 0)
	last := c
	if r.IntN(2) == 0 {
		last = add(2, 2)
		edge(c, last, 0)
	}
	p.Claims = append(p.Claims, Claim{Resource: 1, First: a, Last: last, Group: 0})
	switch r.IntN(3) {
	case 0:
		f := add(0, 3)
		edge(f, a, 0)
		edge(last, f, 1+r.IntN(2))
	case 1:
		f := add(0, 2)
		g := add(2, 2)
		edge(last, f, 0)
		edge(f, g, 0)
		p.Claims = append(p.Claims, Claim{Resource: 1, First: f, Last: g, Group: 1})
	default:
		add(0, 2)
		add(0, 3)
	}
	return p
}

// TestAgainstBruteForce compares the branch and bound with trying everything.
func TestAgainstBruteForce(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 1))
	above := 0
	for i := range 500 {
		p := randomProblem(r)
		if i%2 == 0 {
			p = randomChain(r)
		}
		s, err := Solve(p, SolveOptions{})
		want := bruteForce(p, 24)
		if errors.Is(err, ErrImpossible) {
			if want >= 0 {
				t.Fatalf("problem %d: called impossible, but %d works: %+v", i, want, p)
			}
			continue
		}
		if err != nil {
			t.Fatalf("problem %d: %v: %+v", i, err, p)
		}
		if int64(s.Interval) != want || !s.Proved {
			t.Fatalf("problem %d: interval %d (proved %v), want %d: %+v", i, int64(s.Interval), s.Proved, want, p)
		}
		// The exhaustive search alone, without the greedy start.
		least, _, err := p.Least()
		if err != nil {
			t.Fatal(err)
		}
		for lambda := max(int64(least), want-1); lambda <= want; lambda++ {
			d := newDecision(p, nil, lambda, 100_000)
			if found, known := d.run(); !known || found != (lambda == want) {
				t.Fatalf("problem %d: search at %d: found %v, known %v, want %d: %+v", i, lambda, found, known, want, p)
			}
		}
		if why := unsound(p, s); why != "" {
			t.Fatalf("problem %d: %s: %+v", i, why, p)
		}
		if int64(least) < want {
			above++
		}
	}
	if above < 5 {
		t.Errorf("only %d problems had no schedule at the bound: the search was hardly tried", above)
	}
}

// unsound tells what is wrong with a schedule as it stands.
func unsound(p *Problem, s *Schedule) string {
	lambda := int64(s.Interval)
	for i, e := range p.Edges {
		if s.Start[e.To]+des.Time(e.Height)*s.Interval < s.Start[e.From]+p.Ops[e.From].Time+e.After {
			return fmt.Sprintf("edge %d is broken by starts %v at %d", i, s.Start, lambda)
		}
	}
	all := p.held()
	for i, a := range all {
		for _, b := range all[i+1:] {
			if !a.excludes(b) {
				continue
			}
			af, at := int64(s.Start[a.first])+a.lead, int64(s.Start[a.last])+a.time
			bf, bt := int64(s.Start[b.first])+b.lead, int64(s.Start[b.last])+b.time
			k := ceilDiv(at-bf, lambda)
			if bf+k*lambda < at || af+lambda < bt+k*lambda {
				return fmt.Sprintf("holdings %+v and %+v overlap at %d", a, b, lambda)
			}
		}
	}
	return ""
}

// TestBudget: a search that gives up says so, and its bounds still hold.
func TestBudget(t *testing.T) {
	gaveUp := 0
	for _, bytes := range []int{200, 300, 400, 576, 700} {
		m := machine()
		m.Firmware.Buffers, m.Firmware.Credits = 3, 2
		p, err := Build(m, []Flow{{0, 1, bytes, 1}}, 1, true)
		if err != nil {
			t.Fatal(err)
		}
		full, err := Solve(p, SolveOptions{Nodes: 20_000})
		if err != nil {
			t.Fatal(err)
		}
		short, err := Solve(p, SolveOptions{Nodes: 3})
		if err != nil {
			t.Fatal(err)
		}
		if short.Lower > full.Interval || full.Lower > short.Interval || short.Proved && short.Interval > full.Interval {
			t.Errorf("%d bytes: with three nodes %v … %v, proved %v; with many %v … %v", bytes, short.Lower, short.Interval, short.Proved, full.Lower, full.Interval)
		}
		if why := unsound(p, short); why != "" {
			t.Error(why)
		}
		if !short.Proved {
			gaveUp++
			if short.Distance() <= 0 || short.Distance() >= 1 {
				t.Errorf("not proved, and the distance is %v", short.Distance())
			}
		}
	}
	if gaveUp == 0 {
		t.Error("three nodes were always enough: the budget was not tried")
	}
}

// TestProblemErrors: problems that are none.
func TestProblemErrors(t *testing.T) {
	ok := func() *Problem {
		return &Problem{
			Resources: []string{"r"},
			Ops:       []Op{{Name: "a", Time: 5}, {Name: "b", Time: 3}},
			Edges:     []Edge{{From: 0, To: 1}},
		}
	}
	for name, change := range map[string]func(*Problem){
		"no ops":        func(p *Problem) { p.Ops = nil },
		"resource":      func(p *Problem) { p.Ops[0].Resource = 1 },
		"negative time": func(p *Problem) { p.Ops[0].Time = -1 },
		"long time":     func(p *Problem) { p.Ops[0].Time = maxTime + 1 },
		"lead":          func(p *Problem) { p.Ops[0].Lead = 6 },
		"edge":          func(p *Problem) { p.Edges[0].To = 2 },
		"height":        func(p *Problem) { p.Edges[0].Height = -1 },
		"claim":         func(p *Problem) { p.Claims = []Claim{{Resource: 0, First: 0, Last: 7}} },
		"span":          func(p *Problem) { p.Spans = []Span{{0, -1}} },
		"impossible":    func(p *Problem) { p.Edges = append(p.Edges, Edge{From: 1, To: 0}) },
	} {
		p := ok()
		change(p)
		if s, err := Solve(p, SolveOptions{}); err == nil {
			t.Errorf("%s: solved with interval %v", name, s.Interval)
		}
	}
	s, err := Solve(ok(), SolveOptions{})
	if err != nil || s.Interval != 8 {
		t.Errorf("the problem itself: %+v, %v", s, err)
	}
}

// TestSlowed: an order with other times is what solving with those times and
// that order would give.
func TestSlowed(t *testing.T) {
	p := &Problem{
		Resources: []string{"processor"},
		Ops:       []Op{{Name: "a", Time: 4}, {Name: "b", Time: 6}, {Name: "c", Resource: -1, Time: 20}},
		Edges:     []Edge{{From: 0, To: 2}, {From: 2, To: 0, Height: 1}},
	}
	s, err := Solve(p, SolveOptions{})
	if err != nil || s.Interval != 24 {
		t.Fatalf("%+v, %v; want 4 + 20", s, err)
	}
	for _, c := range []struct {
		times []des.Time
		want  des.Time
	}{{[]des.Time{4, 6, 20}, 24}, {[]des.Time{5, 6, 20}, 25}, {[]des.Time{5, 30, 20}, 35}} {
		if got, err := s.Slowed(c.times); err != nil || got != c.want {
			t.Errorf("times %v: %v, %v; want %v", c.times, got, err, c.want)
		}
	}
	if _, err := s.Slowed(nil); err == nil {
		t.Error("times of no ops are accepted")
	}
}
