package plots

import (
	"fmt"
	"math"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"spinesim/lanai/ilp"
)

// ILPFigures are the numbers of the figures of Ahlgren's paper that ILPFigure
// draws.
var ILPFigures = []int{3, 5, 6, 7}

// ILPFigure draws a figure of Ahlgren's paper on integrated layer processing,
// to be saved as a grid of the size given. Figure 3 is two plots of lines. The
// others are surfaces in the paper; each is drawn as lines over the state, one
// for each value of its second axis, and beside them what integration gains or
// loses over the sequential loops, with the edge of the part where it loses.
func ILPFigure(r *ilp.FiguresReport, number int) ([][]*plot.Plot, Size, error) {
	prefix := fmt.Sprint(number)
	var rows [][]*plot.Plot
	var lines []ilp.Figure
	for _, f := range r.Lines {
		if strings.TrimRight(f.ID, "ab") == prefix {
			lines = append(lines, f)
		}
	}
	if len(lines) > 0 {
		row, err := ilpLines(lines)
		if err != nil {
			return nil, Size{}, err
		}
		rows = append(rows, row)
	}
	for i := range r.Surfaces {
		f := &r.Surfaces[i]
		if strings.TrimRight(f.ID, "ab") != prefix {
			continue
		}
		row, err := ilpSurface(f)
		if err != nil {
			return nil, Size{}, fmt.Errorf("figure %s: %w", f.ID, err)
		}
		rows = append(rows, row)
	}
	if len(rows) == 0 {
		return nil, Size{}, fmt.Errorf("figure %d of the paper is not one of the model's: want one of %v", number, ILPFigures)
	}
	return rows, Size{Wide.Width, vg.Length(len(rows)) * 4.6 * vg.Inch}, nil
}

// ilpLines draws figures of lines side by side on the same scale.
func ilpLines(figs []ilp.Figure) ([]*plot.Plot, error) {
	top := 0.0
	for _, f := range figs {
		for _, s := range f.Series {
			for _, y := range s.Y {
				top = max(top, y)
			}
		}
	}
	var row []*plot.Plot
	for _, f := range figs {
		s := Sweep{Title: fmt.Sprintf("(%s) %s", strings.TrimLeft(f.ID, "0123456789"), f.Title), XLabel: f.XLabel, YLabel: f.YLabel, FromZero: true}
		for _, l := range f.Series {
			if len(l.X) != len(l.Y) {
				return nil, fmt.Errorf("figure %s: series %q has %d values at %d places", f.ID, l.Name, len(l.Y), len(l.X))
			}
			sw := SweepSeries{Name: l.Name, X: l.X}
			for _, y := range l.Y {
				sw.Y = append(sw.Y, PlusMinus(y, math.NaN()))
			}
			s.Series = append(s.Series, sw)
		}
		p, err := s.Plot()
		if err != nil {
			return nil, fmt.Errorf("figure %s: %w", f.ID, err)
		}
		p.Y.Max = top * 1.08
		breakTitle(p, halfTitle)
		row = append(row, p)
	}
	return row, nil
}

// halfTitle is the longest line of a title over half a page, in points.
const halfTitle = 320

// mostLines is how many lines a surface is drawn as.
const mostLines = 6

func ilpSurface(f *ilp.SurfaceFigure) ([]*plot.Plot, error) {
	if len(f.Surfaces) != 2 {
		return nil, fmt.Errorf("%d surfaces, want sequential and integrated", len(f.Surfaces))
	}
	for _, s := range f.Surfaces {
		if len(s.Z) != len(s.Y) || len(s.Y) == 0 || len(s.X) == 0 {
			return nil, fmt.Errorf("surface %q has %d rows for %d values", s.Name, len(s.Z), len(s.Y))
		}
		for _, row := range s.Z {
			if len(row) != len(s.X) {
				return nil, fmt.Errorf("surface %q has rows of %d for %d values", s.Name, len(row), len(s.X))
			}
		}
	}
	seq, integrated := &f.Surfaces[0], &f.Surfaces[1]
	name := strings.TrimLeft(f.ID, "0123456789")
	if name != "" {
		name = "(" + name + ") "
	}
	p := newPlot(name + f.Title)
	p.X.Label.Text, p.Y.Label.Text = f.XLabel, f.ZLabel
	top := 0.0
	var pick []int
	for i := range min(len(seq.Y), mostLines) {
		n := min(len(seq.Y), mostLines)
		j := i
		if n > 1 {
			j = i * (len(seq.Y) - 1) / (n - 1)
		}
		pick = append(pick, j)
	}
	solid := draw.LineStyle{Color: black, Width: vg.Points(1.4)}
	dashed := solid
	dashed.Dashes = []vg.Length{5, 2.5}
	entries := []keyEntry{{name: integrated.Name, line: &solid}, {name: seq.Name, line: &dashed}}
	p.Add(grid{true, true})
	for k, i := range pick {
		shade := 0.0
		if len(pick) > 1 {
			shade = 0.92 * float64(k) / float64(len(pick)-1)
		}
		st := draw.LineStyle{Color: scaleColour(shade), Width: vg.Points(1.4)}
		label := trimFloat(seq.Y[i])
		if k == 0 {
			label = f.YLabel + " " + label
		}
		entries = append(entries, keyEntry{name: label, look: look{colour: scaleColour(shade)}})
		p.Add(plainLine{integrated.X, integrated.Z[i], st})
		st.Dashes = dashed.Dashes
		p.Add(plainLine{seq.X, seq.Z[i], st})
		for j := range seq.X {
			top = max(top, seq.Z[i][j], integrated.Z[i][j])
		}
	}
	var xs extent
	xs.take(seq.X...)
	p.X.Min, p.X.Max = xs.roomy(0.02)
	p.Y.Min, p.Y.Max = 0, top*1.06
	addKeyWithin(p, entries, keyWidth*0.5)
	breakTitle(p, halfTitle)

	zero := 0.0
	reg := Region{
		Title: "integrated against sequential", XLabel: f.XLabel, YLabel: f.YLabel, ZLabel: "change of time (%)",
		Centre: &zero, InsideName: "integration is slower", Percent: true,
	}
	for _, x := range seq.X {
		reg.X = append(reg.X, trimFloat(x))
	}
	for i, y := range seq.Y {
		reg.Y = append(reg.Y, trimFloat(y))
		var z []float64
		var in []bool
		for j := range seq.X {
			change := (integrated.Z[i][j] - seq.Z[i][j]) / seq.Z[i][j]
			z = append(z, change)
			in = append(in, change > 1e-12)
		}
		reg.Z, reg.Inside = append(reg.Z, z), append(reg.Inside, in)
	}
	q, err := reg.Plot()
	if err != nil {
		return nil, err
	}
	return []*plot.Plot{p, q}, nil
}

// plainLine joins points.
type plainLine struct {
	x, y []float64
	st   draw.LineStyle
}

// Plot implements plot.Plotter.
func (l plainLine) Plot(c draw.Canvas, p *plot.Plot) {
	trX, trY := p.Transforms(&c)
	var pts []vg.Point
	for i := range l.x {
		pts = append(pts, vg.Point{X: trX(l.x[i]), Y: trY(l.y[i])})
	}
	c.StrokeLines(l.st, pts)
}
