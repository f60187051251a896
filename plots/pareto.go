package plots

import (
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// ParetoPoint is one machine or policy, judged by two figures.
type ParetoPoint struct {
	Name   string
	X, Y   Value
	Marked bool // drawn as a star, such as the starting point of a search
}

// Pareto is a scatter of points judged by two figures, with those that no
// other beats in both joined by a line.
type Pareto struct {
	Title          string
	XLabel, YLabel string
	// MoreX and MoreY say that more is better; otherwise less is.
	MoreX, MoreY bool
	Points       []ParetoPoint
}

// Front are the indices of the points that no other point beats: none is at
// least as good in both figures and better in one. They are in order of X.
func (d *Pareto) Front() []int {
	goodX := func(v float64) float64 { return orient(v, d.MoreX) }
	goodY := func(v float64) float64 { return orient(v, d.MoreY) }
	var out []int
	for i, a := range d.Points {
		if !finite(a.X.Mean, a.Y.Mean) {
			continue
		}
		beaten := slices.ContainsFunc(d.Points, func(b ParetoPoint) bool {
			if !finite(b.X.Mean, b.Y.Mean) {
				return false
			}
			dx, dy := goodX(b.X.Mean)-goodX(a.X.Mean), goodY(b.Y.Mean)-goodY(a.Y.Mean)
			return dx <= 0 && dy <= 0 && (dx < 0 || dy < 0)
		})
		if !beaten {
			out = append(out, i)
		}
	}
	slices.SortStableFunc(out, func(i, j int) int {
		switch a, b := d.Points[i].X.Mean, d.Points[j].X.Mean; {
		case a < b:
			return -1
		case a > b:
			return 1
		}
		return 0
	})
	return out
}

// orient makes less the better.
func orient(v float64, more bool) float64 {
	if more {
		return -v
	}
	return v
}

// Plot draws the scatter.
func (d *Pareto) Plot() (*plot.Plot, error) {
	p := newPlot(d.Title)
	p.X.Label.Text, p.Y.Label.Text = d.XLabel, d.YLabel
	var xs, ys extent
	for _, q := range d.Points {
		if finite(q.X.Mean, q.Y.Mean) {
			xs.take(q.X.Mean, q.X.Low, q.X.High)
			ys.take(q.Y.Mean, q.Y.Low, q.Y.High)
		}
	}
	if !xs.any {
		return nil, ErrNoEvents
	}
	p.X.Min, p.X.Max = xs.roomy(0.08)
	p.Y.Min, p.Y.Max = ys.roomy(0.10)
	front := d.Front()
	entries := []keyEntry{
		{name: "not beaten in both", look: look{colour: blue}, dot: draw.CircleGlyph{}},
		{name: "beaten by another", look: look{colour: midGrey}, dot: draw.CircleGlyph{}},
	}
	if slices.ContainsFunc(d.Points, func(q ParetoPoint) bool { return q.Marked }) {
		entries = append(entries, keyEntry{name: "start", look: look{colour: vermilion}, dot: star{}})
	}
	addKey(p, entries)
	p.Add(grid{true, true}, paretoPoints{d, front})
	return p, nil
}

// extent is the range of some values.
type extent struct {
	lo, hi float64
	any    bool
}

func (e *extent) take(vs ...float64) {
	for _, v := range vs {
		if !finite(v) {
			continue
		}
		if !e.any {
			e.lo, e.hi, e.any = v, v, true
		}
		e.lo, e.hi = min(e.lo, v), max(e.hi, v)
	}
}

// roomy is the range with a margin on both sides, which does not cross 0 where
// the values do not.
func (e *extent) roomy(margin float64) (lo, hi float64) {
	m := (e.hi - e.lo) * margin
	switch {
	case m == 0 && e.hi == 0: // zeros alone tell nothing of a scale
		m = 1
	case m == 0:
		m = math.Max(math.Abs(e.hi)*margin, 1e-9)
	}
	lo, hi = e.lo-m, e.hi+m
	if e.lo >= 0 && lo < 0 {
		lo = 0
	}
	return lo, hi
}

type paretoPoints struct {
	d     *Pareto
	front []int
}

// Plot implements plot.Plotter.
func (s paretoPoints) Plot(c draw.Canvas, p *plot.Plot) {
	trX, trY := p.Transforms(&c)
	at := func(i int) vg.Point { q := s.d.Points[i]; return vg.Point{X: trX(q.X.Mean), Y: trY(q.Y.Mean)} }
	// The front as steps: what lies beyond them is beaten.
	var line []vg.Point
	for k, i := range s.front {
		q := at(i)
		if k > 0 {
			last := line[len(line)-1]
			corner := vg.Point{X: q.X, Y: last.Y}
			if s.d.MoreX {
				corner = vg.Point{X: last.X, Y: q.Y}
			}
			line = append(line, corner)
		}
		line = append(line, q)
	}
	if len(line) > 1 {
		c.StrokeLines(draw.LineStyle{Color: pale(blue, 0.6), Width: vg.Points(1)}, line)
	}
	onFront := make([]bool, len(s.d.Points))
	for _, i := range s.front {
		onFront[i] = true
	}
	for i, q := range s.d.Points {
		if !finite(q.X.Mean, q.Y.Mean) {
			continue
		}
		st := draw.LineStyle{Color: midGrey, Width: vg.Points(0.6)}
		if q.X.interval() {
			c.StrokeLine2(st, trX(q.X.Low), at(i).Y, trX(q.X.High), at(i).Y)
		}
		if q.Y.interval() {
			c.StrokeLine2(st, at(i).X, trY(q.Y.Low), at(i).X, trY(q.Y.High))
		}
	}
	lab := newLabeller(c)
	draws := func(front bool) {
		for i, q := range s.d.Points {
			if !finite(q.X.Mean, q.Y.Mean) || onFront[i] != front {
				continue
			}
			g := draw.GlyphStyle{Color: midGrey, Radius: vg.Points(2.5), Shape: draw.CircleGlyph{}}
			if front {
				g.Color, g.Radius = blue, vg.Points(3.5)
			}
			if q.Marked {
				g.Color, g.Radius, g.Shape = vermilion, vg.Points(5), star{}
			}
			c.DrawGlyph(g, at(i))
			lab.keepClear(at(i), g.Radius)
		}
	}
	draws(false)
	draws(true)
	for _, i := range s.front {
		lab.label(at(i), s.d.Points[i].Name, black)
	}
	for i, q := range s.d.Points {
		if finite(q.X.Mean, q.Y.Mean) && !onFront[i] {
			col := grey
			if q.Marked {
				col = black
			}
			lab.label(at(i), q.Name, col)
		}
	}
}
