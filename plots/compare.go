package plots

import (
	"fmt"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Value is a figure with its confidence interval. Low and High are NaN where
// there is none.
type Value struct {
	Mean float64
	Low  float64
	High float64
}

// PlusMinus is a mean with half the width of its interval; a half that is not
// finite means no interval.
func PlusMinus(mean, half float64) Value {
	if !finite(half) {
		return Value{mean, math.NaN(), math.NaN()}
	}
	return Value{mean, mean - half, mean + half}
}

func (v Value) interval() bool { return finite(v.Low, v.High) }

// BarGroup is what is compared, such as one policy: a value of each series.
type BarGroup struct {
	Name   string
	Values []Value // as many as the series; a Mean of NaN leaves a bar out
}

// Comparison draws figures of several runs as horizontal bars with confidence
// intervals, the first group at the top.
type Comparison struct {
	Title  string
	XLabel string
	Series []string // names; one may be empty
	Groups []BarGroup
	Marks  []Mark // values to compare with, such as a published one
	// FromZero starts the axis at 0, which lengths of bars need; without it
	// the values are drawn as dots on an axis that shows their differences.
	FromZero bool
}

// Size is room enough for the comparison.
func (d *Comparison) Size() Size { return barsSize(len(d.Groups) * max(1, (len(d.Series)+1)*2/3)) }

// Plot draws the comparison.
func (d *Comparison) Plot() (*plot.Plot, error) {
	if len(d.Groups) == 0 || len(d.Series) == 0 {
		return nil, ErrNoEvents
	}
	p := newPlot(d.Title)
	p.X.Label.Text = d.XLabel
	lo, hi := math.Inf(1), math.Inf(-1)
	widen := func(v float64) {
		if finite(v) {
			lo, hi = min(lo, v), max(hi, v)
		}
	}
	for _, g := range d.Groups {
		if len(g.Values) != len(d.Series) {
			return nil, fmt.Errorf("group %q has %d values for %d series", g.Name, len(g.Values), len(d.Series))
		}
		for _, v := range g.Values {
			widen(v.Mean)
			widen(d.low(v))
			widen(v.High)
		}
	}
	for _, m := range d.Marks {
		widen(m.Value)
	}
	if lo > hi {
		return nil, ErrNoEvents
	}
	if d.FromZero {
		lo, hi = min(0, lo), max(0, hi)
	}
	room := (hi - lo) * 0.14
	if room == 0 {
		room = 1
	}
	p.X.Max = hi + room
	p.X.Min = lo
	if !d.FromZero || lo < 0 {
		p.X.Min -= room / 3
	}
	p.Y.Min, p.Y.Max = -float64(len(d.Groups))+0.5, 0.5
	var ticks []plot.Tick
	for i, g := range d.Groups {
		ticks = append(ticks, plot.Tick{Value: -float64(i), Label: g.Name})
	}
	p.Y.Tick.Marker = plot.ConstantTicks(ticks)
	p.Y.Tick.Length = 0
	var entries []keyEntry
	for i, s := range d.Series {
		if s != "" {
			entries = append(entries, keyEntry{name: s, look: look{colour: seriesColour(i)}})
		}
	}
	addKey(p, entries)
	p.Add(grid{x: true}, compareBars{d})
	if len(d.Marks) > 0 {
		p.Add(xMarks(d.Marks))
	}
	return p, nil
}

// low is where a value's interval is drawn from: what it reaches below 0 has no
// meaning where the figures are lengths.
func (d *Comparison) low(v Value) float64 {
	if d.FromZero && v.Mean >= 0 && v.Low < 0 {
		return 0
	}
	return v.Low
}

type compareBars struct{ d *Comparison }

// Plot implements plot.Plotter.
func (b compareBars) Plot(c draw.Canvas, p *plot.Plot) {
	trX, trY := p.Transforms(&c)
	n := float64(len(b.d.Series))
	thick := 0.8 / n
	st := writing(min(tickSize, float64(trY(thick)-trY(0))*0.9), black, draw.XLeft, draw.YCenter)
	for i, g := range b.d.Groups {
		for j, v := range g.Values {
			if !finite(v.Mean) {
				continue
			}
			y := -float64(i) + 0.4 - (float64(j)+0.5)*thick
			lo, hi := trY(y-thick*0.42), trY(y+thick*0.42)
			col := seriesColour(j)
			end := trX(v.Mean)
			if b.d.FromZero {
				x0, x1 := min(trX(0), end), max(trX(0), end)
				fillRect(c, col, vg.Rectangle{Min: vg.Point{X: x0, Y: lo}, Max: vg.Point{X: x1, Y: hi}})
			}
			label := figure(v.Mean)
			mean := end
			if v.interval() {
				whisker(c, trX(b.d.low(v)), trX(v.High), trY(y), min((hi-lo)*0.3, vg.Points(4)))
				end = max(end, trX(v.High))
				label += " ± " + figure((v.High-v.Low)/2)
			}
			if b.d.FromZero {
				end = max(end, trX(0))
			} else {
				c.DrawGlyph(draw.GlyphStyle{Color: col, Radius: vg.Points(3), Shape: draw.CircleGlyph{}}, vg.Point{X: mean, Y: trY(y)})
			}
			c.FillText(st, vg.Point{X: end + vg.Points(5), Y: trY(y)}, label)
		}
	}
}

// whisker draws an interval, in black edged with white so that it shows on any
// bar.
func whisker(c draw.Canvas, x0, x1, y, cap vg.Length) {
	for _, st := range []draw.LineStyle{{Color: white, Width: vg.Points(2.4)}, {Color: black, Width: vg.Points(1)}} {
		c.StrokeLine2(st, x0, y, x1, y)
		c.StrokeLine2(st, x0, y-cap, x0, y+cap)
		c.StrokeLine2(st, x1, y-cap, x1, y+cap)
	}
}
