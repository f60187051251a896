package traces

import (
	"fmt"
	"io"
	"math"
	"text/tabwriter"

	"spinesim/sim/des"
)

// PathResult is what a CriticalPath found.
type PathResult struct {
	All   PathFigures `json:"all"`
	Fast  PathFigures `json:"fast"` // gaps that lie in the slow state for at most half their length
	Slow  PathFigures `json:"slow"` // the others
	Worst []WorstGap  `json:"worst"`
	Cards []CardPaths `json:"cards"`
}

// CardPaths is what was found on one ingress card.
type CardPaths struct {
	Card uint8       `json:"card"`
	All  PathFigures `json:"all"`
	Fast PathFigures `json:"fast"`
	Slow PathFigures `json:"slow"`
}

// PathFigures are means over gaps, in µs.
type PathFigures struct {
	N     uint64     `json:"gaps"`
	Mean  Real       `json:"mean_us"`
	Parts []PathPart `json:"parts"` // every kind, in the order of the kinds; they sum to Mean
}

// PathPart is the part that one kind has in the mean gap.
type PathPart struct {
	Kind  string `json:"kind"`
	Mean  Real   `json:"mean_us"`
	Share Real   `json:"share"`
}

// WorstGap is one of the longest gaps.
type WorstGap struct {
	Card   uint8      `json:"card"`
	From   Real       `json:"from_us"`
	Length Real       `json:"length_us"`
	First  uint64     `json:"first_packet"`
	Second uint64     `json:"second_packet"`
	Slow   bool       `json:"slow"`
	Parts  []PathPart `json:"parts"`
}

func pathParts(by *[NumPathKinds]des.Time, n uint64, gap des.Time) []PathPart {
	parts := make([]PathPart, 0, NumPathKinds)
	for i, d := range by {
		parts = append(parts, PathPart{Kind: PathKind(i).String(), Mean: each(d, n), Share: share(d, gap)})
	}
	return parts
}

func (s *pathSums) figures() PathFigures {
	return PathFigures{N: s.n, Mean: each(s.gap, s.n), Parts: pathParts(&s.by, s.n, s.gap)}
}

func (s *pathSums) merge(o *pathSums) {
	s.n += o.n
	s.gap += o.gap
	for i, d := range o.by {
		s.by[i] += d
	}
}

// Worst gives the longest gaps, longest first.
func (c *CriticalPath) Worst() []PathGap { return c.worst }

// Result gives what was found so far.
func (c *CriticalPath) Result() *PathResult {
	r := &PathResult{Worst: []WorstGap{}, Cards: []CardPaths{}}
	var all, fast, slow pathSums
	for _, k := range c.cards {
		if k == nil || k.all.n == 0 {
			continue
		}
		r.Cards = append(r.Cards, CardPaths{Card: k.card, All: k.all.figures(), Fast: k.fast.figures(), Slow: k.slow.figures()})
		all.merge(&k.all)
		fast.merge(&k.fast)
		slow.merge(&k.slow)
	}
	r.All, r.Fast, r.Slow = all.figures(), fast.figures(), slow.figures()
	for i := range c.worst {
		g := &c.worst[i]
		r.Worst = append(r.Worst, WorstGap{
			Card: g.Card, From: Real(g.From.Microseconds()), Length: Real(g.Length().Microseconds()),
			First: g.First, Second: g.Second, Slow: g.Slow, Parts: pathParts(&g.By, 1, g.Length()),
		})
	}
	return r
}

// WriteText prints, for people, where the time between departures goes.
func (r *PathResult) WriteText(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "µs of a gap\tall\tfast\tslow\t\n")
	fmt.Fprintf(t, "gaps\t%d\t%d\t%d\t\n", r.All.N, r.Fast.N, r.Slow.N)
	fmt.Fprintf(t, "mean\t%s\t%s\t%s\t\n", micro(r.All.Mean), micro(r.Fast.Mean), micro(r.Slow.Mean))
	for i, p := range r.All.Parts {
		if p.Mean == 0 || !p.Mean.OK() {
			continue
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t\n", p.Kind, micro(p.Mean), micro(r.Fast.Parts[i].Mean), micro(r.Slow.Parts[i].Mean))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, g := range r.Worst {
		if _, err := fmt.Fprintf(w, "worst: %s µs from %.3f µs on card %d, packet %d to %d:", micro(g.Length), float64(g.From), g.Card, g.First, g.Second); err != nil {
			return err
		}
		sep := " "
		for _, p := range g.Parts {
			if p.Mean > 0 {
				if _, err := fmt.Fprintf(w, "%s%s %s", sep, p.Kind, micro(p.Mean)); err != nil {
					return err
				}
				sep = ", "
			}
		}
		if _, err := fmt.Fprintln(w); err != nil {
			return err
		}
	}
	return nil
}

func micro(r Real) string {
	if math.IsNaN(float64(r)) {
		return "–"
	}
	return fmt.Sprintf("%.2f", float64(r))
}
