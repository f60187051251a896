package plots

import (
	"fmt"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// SweepSeries is a figure over a swept parameter, in rising order of X.
type SweepSeries struct {
	Name string
	X    []float64
	Y    []Value // as many; a Mean of NaN breaks the line
}

// Sweep draws figures over a swept parameter as lines, each with a band for its
// confidence interval.
type Sweep struct {
	Title          string
	XLabel, YLabel string
	LogX, LogY     bool
	// FromZero starts the y axis at 0.
	FromZero bool
	// Ticks are the values on the x axis that are labelled, empty for even ones.
	Ticks  []float64
	Marks  []Mark // on the y axis, such as a published value
	Series []SweepSeries
}

// Plot draws the lines.
func (d *Sweep) Plot() (*plot.Plot, error) {
	var xs, ys extent
	var entries []keyEntry
	for i := range d.Series {
		s := &d.Series[i]
		if len(s.X) != len(s.Y) {
			return nil, fmt.Errorf("series %q has %d values at %d places", s.Name, len(s.Y), len(s.X))
		}
		for j, x := range s.X {
			if !finite(x, s.Y[j].Mean) || d.LogX && x <= 0 || d.LogY && s.Y[j].Mean <= 0 {
				continue
			}
			xs.take(x)
			ys.take(s.Y[j].Mean)
			if s.Y[j].interval() && !(d.LogY && s.Y[j].Low <= 0) {
				ys.take(s.Y[j].Low, s.Y[j].High)
			}
		}
		st := lineStyle(i)
		if s.Name != "" {
			entries = append(entries, keyEntry{name: s.Name, line: &st, dot: draw.CircleGlyph{}})
		}
	}
	if !xs.any {
		return nil, ErrNoEvents
	}
	for _, m := range d.Marks {
		ys.take(m.Value)
	}
	p := newPlot(d.Title)
	p.X.Label.Text, p.Y.Label.Text = d.XLabel, d.YLabel
	p.X.Min, p.X.Max = xs.roomy(0.03)
	if d.LogX {
		p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, logTicks{}
		p.X.Min, p.X.Max = xs.lo/1.08, xs.hi*1.08
	}
	if len(d.Ticks) > 0 {
		var ticks []plot.Tick
		for _, v := range d.Ticks {
			ticks = append(ticks, plot.Tick{Value: v, Label: trimFloat(v)})
		}
		p.X.Tick.Marker = plot.ConstantTicks(ticks)
	}
	if d.FromZero {
		ys.take(0)
	}
	p.Y.Min, p.Y.Max = ys.roomy(0.08)
	if d.FromZero && ys.lo == 0 {
		p.Y.Min = 0
	}
	if d.LogY {
		p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, logTicks{}
		p.Y.Min, p.Y.Max = ys.lo/1.15, ys.hi*1.15
	}
	addKey(p, entries)
	p.Add(grid{true, true})
	for i := range d.Series {
		p.Add(&sweepBand{d, &d.Series[i], i})
	}
	for i := range d.Series {
		p.Add(&sweepLine{d, &d.Series[i], i})
	}
	if len(d.Marks) > 0 {
		p.Add(yMarks(d.Marks))
	}
	return p, nil
}

type sweepBand struct {
	d *Sweep
	s *SweepSeries
	i int
}

// Plot implements plot.Plotter.
func (b *sweepBand) Plot(c draw.Canvas, p *plot.Plot) {
	trX, trY := p.Transforms(&c)
	col := seriesColour(b.i)
	col.A = 50 // bands of several series lie over each other
	var up, down []vg.Point
	flush := func() {
		if len(up) > 1 {
			pts := append([]vg.Point{}, up...)
			for i := len(down) - 1; i >= 0; i-- {
				pts = append(pts, down[i])
			}
			c.FillPolygon(col, pts)
		}
		up, down = nil, nil
	}
	for i, x := range b.s.X {
		v := b.s.Y[i]
		if !finite(x, v.Mean, v.Low, v.High) || b.d.LogX && x <= 0 || b.d.LogY && v.Low <= 0 {
			flush()
			continue
		}
		up = append(up, vg.Point{X: trX(x), Y: trY(v.High)})
		down = append(down, vg.Point{X: trX(x), Y: trY(v.Low)})
	}
	flush()
}

type sweepLine struct {
	d *Sweep
	s *SweepSeries
	i int
}

// Plot implements plot.Plotter.
func (l *sweepLine) Plot(c draw.Canvas, p *plot.Plot) {
	trX, trY := p.Transforms(&c)
	st := lineStyle(l.i)
	dots := len(l.s.X) <= 60
	var line []vg.Point
	flush := func() {
		if len(line) > 1 {
			c.StrokeLines(st, line)
		}
		if dots || len(line) == 1 {
			for _, q := range line {
				c.DrawGlyph(draw.GlyphStyle{Color: st.Color, Radius: vg.Points(2.2), Shape: draw.CircleGlyph{}}, q)
			}
		}
		line = nil
	}
	for i, x := range l.s.X {
		if !finite(x, l.s.Y[i].Mean) || l.d.LogX && x <= 0 || l.d.LogY && l.s.Y[i].Mean <= 0 {
			flush()
			continue
		}
		line = append(line, vg.Point{X: trX(x), Y: trY(l.s.Y[i].Mean)})
	}
	flush()
}

// yMarks are dotted horizontal lines with their names at the right.
type yMarks []Mark

// Plot implements plot.Plotter.
func (m yMarks) Plot(c draw.Canvas, p *plot.Plot) {
	_, trY := p.Transforms(&c)
	st := writing(noteSize, black, draw.XRight, draw.YBottom)
	for _, mark := range m {
		y := trY(mark.Value)
		if y < c.Min.Y-1 || y > c.Max.Y+1 {
			continue
		}
		c.StrokeLine2(draw.LineStyle{Color: black, Width: vg.Points(0.8), Dashes: []vg.Length{1, 2}}, c.Min.X, y, c.Max.X, y)
		c.FillText(st, vg.Point{X: c.Max.X, Y: y + vg.Points(1.5)}, mark.Name)
	}
}
