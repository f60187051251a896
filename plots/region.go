package plots

import (
	"fmt"
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Region draws a figure over two parameters as a grid of coloured cells, and
// the edge of the part in which something holds.
type Region struct {
	Title                  string
	XLabel, YLabel, ZLabel string
	// X and Y name the columns, from the left, and the rows, from the bottom.
	X, Y []string
	// Z[i][j] belongs to Y[i] and X[j]; NaN leaves a cell empty.
	Z [][]float64
	// Centre, when not nil, is the value that is drawn white: less is blue,
	// more vermilion. Otherwise colours run from the least to the greatest.
	Centre *float64
	// Inside marks cells; the edge between them and the others is drawn. nil
	// marks none.
	Inside [][]bool
	// InsideName says in the key what the edge encloses.
	InsideName string
	// Percent writes values as percentages of 1.
	Percent bool
}

// Plot draws the grid.
func (r *Region) Plot() (*plot.Plot, error) {
	if len(r.Z) == 0 || len(r.Z) != len(r.Y) || len(r.X) == 0 {
		return nil, fmt.Errorf("region of %d rows, %d named, and %d columns", len(r.Z), len(r.Y), len(r.X))
	}
	var zs extent
	for i, row := range r.Z {
		if len(row) != len(r.X) {
			return nil, fmt.Errorf("row %d has %d values for %d columns", i, len(row), len(r.X))
		}
		zs.take(row...)
	}
	if r.Inside != nil {
		if len(r.Inside) != len(r.Z) {
			return nil, fmt.Errorf("%d rows of marks for %d of values", len(r.Inside), len(r.Z))
		}
		for i, row := range r.Inside {
			if len(row) != len(r.X) {
				return nil, fmt.Errorf("row %d has %d marks for %d columns", i, len(row), len(r.X))
			}
		}
	}
	if !zs.any {
		return nil, ErrNoEvents
	}
	g := &regionCells{r: r, lo: zs.lo, hi: zs.hi}
	if r.Centre != nil {
		d := max(zs.hi-*r.Centre, *r.Centre-zs.lo)
		g.lo, g.hi = *r.Centre-d, *r.Centre+d
	}
	p := newPlot(r.Title)
	p.X.Label.Text, p.Y.Label.Text = r.XLabel, r.YLabel
	p.X.Min, p.X.Max = -0.5, float64(len(r.X))-0.5
	p.Y.Min, p.Y.Max = -0.5, float64(len(r.Y))-0.5
	p.X.Tick.Marker, p.Y.Tick.Marker = named(r.X, 24), named(r.Y, 30)
	for _, a := range []*plot.Axis{&p.X, &p.Y} { // room for the edge, and no line
		a.Tick.Length, a.Tick.LineStyle.Color, a.LineStyle.Width = vg.Points(3), white, 0
	}
	if r.Inside != nil && r.InsideName != "" {
		st := draw.LineStyle{Color: black, Width: vg.Points(1.8)}
		addKey(p, []keyEntry{{name: r.InsideName, line: &st}})
	}
	p.Add(g)
	return p, nil
}

// named are ticks of named columns, thinned out when there are many.
func named(names []string, most int) plot.ConstantTicks {
	every := (len(names) + most - 1) / most
	var out []plot.Tick
	for i := 0; i < len(names); i += every {
		out = append(out, plot.Tick{Value: float64(i), Label: names[i]})
	}
	return out
}

type regionCells struct {
	r      *Region
	lo, hi float64
}

const (
	barWidth = 9  // points, of the scale of colours
	barRoom  = 58 // points, of the scale and its numbers
)

// GlyphBoxes implements plot.GlyphBoxer: it keeps room for the scale at the
// right.
func (g *regionCells) GlyphBoxes(*plot.Plot) []plot.GlyphBox {
	return []plot.GlyphBox{{X: 1, Y: 0.5, Rectangle: vg.Rectangle{Max: vg.Point{X: vg.Points(barRoom), Y: 0}}}}
}

func (g *regionCells) colour(v float64) color.NRGBA {
	f := 0.5
	if g.hi > g.lo {
		f = (v - g.lo) / (g.hi - g.lo)
	}
	if g.r.Centre != nil {
		return divergingColour(2*f - 1)
	}
	return scaleColour(f)
}

func (g *regionCells) text(v float64) string {
	if g.r.Percent {
		return percentText(v)
	}
	return figure(v)
}

// Plot implements plot.Plotter.
func (g *regionCells) Plot(c draw.Canvas, p *plot.Plot) {
	trX, trY := p.Transforms(&c)
	cell := func(i, j int) vg.Rectangle {
		return vg.Rectangle{
			Min: vg.Point{X: trX(float64(j) - 0.5), Y: trY(float64(i) - 0.5)},
			Max: vg.Point{X: trX(float64(j) + 0.5), Y: trY(float64(i) + 0.5)},
		}
	}
	width, height := cell(0, 0).Max.X-cell(0, 0).Min.X, cell(0, 0).Max.Y-cell(0, 0).Min.Y
	st := writing(noteSize-0.5, black, draw.XCenter, draw.YCenter)
	fits := height > vg.Points(noteSize)*1.3
	for _, row := range g.r.Z {
		for _, v := range row {
			if finite(v) && st.Width(g.text(v))+vg.Points(3) > width {
				fits = false
			}
		}
	}
	for i, row := range g.r.Z {
		for j, v := range row {
			r := cell(i, j)
			if !finite(v) {
				hatch(c, draw.LineStyle{Color: lightGrey, Width: vg.Points(0.5)}, r, vg.Points(4), false)
				continue
			}
			over := r // by a hair, for viewers that leave seams
			if j+1 < len(row) {
				over.Max.X += 0.3
			}
			if i+1 < len(g.r.Z) {
				over.Max.Y += 0.3
			}
			fillRect(c, g.colour(v), over)
			if fits {
				st.Color = contrast(g.colour(v))
				c.FillText(st, vg.Point{X: (r.Min.X + r.Max.X) / 2, Y: (r.Min.Y + r.Max.Y) / 2}, g.text(v))
			}
		}
	}
	g.plotEdge(c, cell)
	g.plotScale(c)
}

// plotEdge draws the edge of what is marked, white under black to show on any
// colour.
func (g *regionCells) plotEdge(c draw.Canvas, cell func(i, j int) vg.Rectangle) {
	in := func(i, j int) bool {
		return i >= 0 && j >= 0 && i < len(g.r.Inside) && j < len(g.r.X) && g.r.Inside[i][j]
	}
	if g.r.Inside == nil {
		return
	}
	var edge vg.Path
	for i := range g.r.Inside {
		for j := range g.r.X {
			r := cell(i, j)
			if in(i, j) != in(i, j-1) {
				edge.Move(r.Min)
				edge.Line(vg.Point{X: r.Min.X, Y: r.Max.Y})
			}
			if in(i, j) != in(i-1, j) {
				edge.Move(r.Min)
				edge.Line(vg.Point{X: r.Max.X, Y: r.Min.Y})
			}
			if in(i, j) && j == len(g.r.X)-1 {
				edge.Move(vg.Point{X: r.Max.X, Y: r.Min.Y})
				edge.Line(r.Max)
			}
			if in(i, j) && i == len(g.r.Inside)-1 {
				edge.Move(vg.Point{X: r.Min.X, Y: r.Max.Y})
				edge.Line(r.Max)
			}
		}
	}
	if len(edge) == 0 {
		return
	}
	for _, st := range []draw.LineStyle{{Color: white, Width: vg.Points(3.4)}, {Color: black, Width: vg.Points(1.8)}} {
		c.SetLineStyle(st)
		c.Stroke(edge)
	}
}

// plotScale draws the scale of colours at the right.
func (g *regionCells) plotScale(c draw.Canvas) {
	x := c.Max.X + vg.Points(10)
	h := c.Max.Y - c.Min.Y
	const parts = 64
	for i := range parts {
		overlap := vg.Length(0.3)
		if i == parts-1 {
			overlap = 0
		}
		v := g.lo + (g.hi-g.lo)*(float64(i)+0.5)/parts
		fillRect(c, g.colour(v), vg.Rectangle{
			Min: vg.Point{X: x, Y: c.Min.Y + h*vg.Length(i)/parts},
			Max: vg.Point{X: x + vg.Points(barWidth), Y: c.Min.Y + h*vg.Length(i+1)/parts + overlap},
		})
	}
	strokeRect(c, draw.LineStyle{Color: midGrey, Width: vg.Points(0.4)}, vg.Rectangle{Min: vg.Point{X: x, Y: c.Min.Y}, Max: vg.Point{X: x + vg.Points(barWidth), Y: c.Max.Y}})
	st := writing(noteSize, black, draw.XLeft, draw.YCenter)
	var marker plot.Ticker = evenTicks{most: 7}
	if g.r.Percent {
		marker = percentTicks{most: 7}
	}
	for _, t := range marker.Ticks(g.lo, g.hi) {
		y := c.Min.Y + h*vg.Length((t.Value-g.lo)/(g.hi-g.lo))
		c.StrokeLine2(draw.LineStyle{Color: black, Width: vg.Points(0.4)}, x+vg.Points(barWidth), y, x+vg.Points(barWidth+2), y)
		label := t.Label
		if g.r.Percent {
			label += " %"
		}
		c.FillText(st, vg.Point{X: x + vg.Points(barWidth+3), Y: y}, label)
	}
	if g.r.ZLabel != "" {
		st := writing(noteSize, black, draw.XCenter, draw.YTop)
		st.Rotation = math.Pi / 2
		c.FillText(st, vg.Point{X: x + vg.Points(barWidth+30), Y: (c.Min.Y + c.Max.Y) / 2}, g.r.ZLabel)
	}
}
