package plots

import (
	"fmt"

	"gonum.org/v1/plot"

	"spinesim/traces"
)

// pathLooks are the looks of the kinds of a critical path, in every figure.
var pathLooks = func() map[string]look {
	m := map[string]look{}
	for kind, l := range map[traces.PathKind]look{
		traces.PathChain: {vermilion, plain}, traces.PathTransfer: {vermilion, rising}, traces.PathBusWait: {yellow, plain},
		traces.PathEngineWait: {yellow, rising}, traces.PathCreditWait: {purple, rising}, traces.PathBufferWait: {skyBlue, rising},
		traces.PathOwn: {blue, plain}, traces.PathWire: {blue, rising}, traces.PathOthers: {green, plain},
		traces.PathFlow: {purple, plain}, traces.PathPolls: {grey, plain}, traces.PathOutput: {orange, plain},
		traces.PathOtherWork: {orange, rising}, traces.PathUpstream: {lightGrey, plain}, traces.PathUnrecorded: {grey, rising},
	} {
		m[kind.String()] = l
	}
	return m
}()

// WhereTimeGoes draws what the mean gap between departures is made of: of all
// gaps, and of those in the fast and in the slow state apart. The difference of
// the bars is what the slow state costs, kind by kind.
func WhereTimeGoes(title string, r *traces.PathResult) (*plot.Plot, error) {
	return WhereTimeGoesBars(title, r).Plot()
}

// WhereTimeGoesBars are the bars that WhereTimeGoes draws.
func WhereTimeGoesBars(title string, r *traces.PathResult) *StackedBars {
	s := &StackedBars{Title: title, XLabel: "mean gap between departures, by what its critical path was spent on (µs)", looks: pathLooks}
	for _, f := range []struct {
		name string
		p    *traces.PathFigures
	}{{"all gaps", &r.All}, {"fast", &r.Fast}, {"slow", &r.Slow}} {
		if f.p.N == 0 {
			continue
		}
		s.Bars = append(s.Bars, StackedBar{
			Name: f.name, Parts: pathParts(f.p.Parts), Note: fmt.Sprintf("%s µs (%d)", figure(float64(f.p.Mean)), f.p.N),
		})
	}
	return s
}

// WorstGaps draws what each of the longest gaps is made of.
func WorstGaps(title string, r *traces.PathResult) (*plot.Plot, error) {
	return WorstGapsBars(title, r).Plot()
}

// WorstGapsBars are the bars that WorstGaps draws.
func WorstGapsBars(title string, r *traces.PathResult) *StackedBars {
	s := &StackedBars{Title: title, XLabel: "gap, by what its critical path was spent on (µs)", looks: pathLooks}
	for _, g := range r.Worst {
		s.Bars = append(s.Bars, StackedBar{
			Name: fmt.Sprintf("at %.3f ms, packet %d", float64(g.From)/1000, g.Second), Parts: pathParts(g.Parts),
			Note: figure(float64(g.Length)) + " µs",
		})
	}
	return s
}

func pathParts(parts []traces.PathPart) []Part {
	var out []Part
	for _, p := range parts {
		if p.Mean.OK() && p.Mean > 0 {
			out = append(out, Part{p.Kind, float64(p.Mean)})
		}
	}
	return out
}
