package plots

import (
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Bound draws a lower bound on the gap, as a roofline does for a rate: each
// resource with the time that a packet needs of it, the busiest of which no
// schedule can beat, and the gaps that were reached.
type Bound struct {
	Title string
	// Resources with the time a packet needs of each, in µs, split by what for.
	Resources []StackedBar
	// Reached are gaps in µs to compare with: of the best schedule, of the
	// dispatcher, published ones.
	Reached []Mark
}

// Lowest is the bound and the resource that sets it.
func (b *Bound) Lowest() (gap float64, resource string) {
	for _, r := range b.Resources {
		sum := 0.0
		for _, p := range r.Parts {
			if p.Value > 0 && finite(p.Value) {
				sum += p.Value
			}
		}
		if sum > gap {
			gap, resource = sum, r.Name
		}
	}
	return gap, resource
}

// Plot draws the bars, the bound, and the gaps that were reached.
func (b *Bound) Plot() (*plot.Plot, error) {
	low, who := b.Lowest()
	if low == 0 {
		return nil, ErrNoEvents
	}
	most := low
	for _, m := range b.Reached {
		if finite(m.Value) {
			most = max(most, m.Value)
		}
	}
	s := StackedBars{
		Title: b.Title, XLabel: "time a packet needs (µs)", Bars: b.Resources, Most: most * 1.35, // room for the names of the marks at the right
		under: &reached{low, "lower bound (" + who + ")", b.Reached},
	}
	p, err := s.Plot()
	if err != nil {
		return nil, err
	}
	p.Y.Max += 1 // and above the bars
	return p, nil
}

// Size is room enough for the figure.
func (b *Bound) Size() Size { return barsSize(len(b.Resources) + 2) }

type reached struct {
	low   float64
	name  string
	marks []Mark
}

// Plot implements plot.Plotter.
func (b *reached) Plot(c draw.Canvas, p *plot.Plot) {
	trX, _ := p.Transforms(&c)
	x := trX(b.low)
	fillRect(c, pale(black, 0.05), vg.Rectangle{Min: c.Min, Max: vg.Point{X: x, Y: c.Max.Y}})
	c.StrokeLine2(draw.LineStyle{Color: black, Width: vg.Points(1.6)}, x, c.Min.Y, x, c.Max.Y)
	st := writing(noteSize, black, draw.XLeft, draw.YCenter)
	line := vg.Points(noteSize * 1.25)
	top := c.Max.Y - line/2
	var rows []vg.Length // how far each row of names is taken
	put := func(x vg.Length, name string) (turned bool) {
		w := st.Width(name)
		left := x + vg.Points(3)
		if left+w > c.Max.X {
			left, turned = x-w-vg.Points(3), true
		}
		row := 0
		for row < len(rows) && rows[row] > left {
			row++
		}
		if row == len(rows) {
			rows = append(rows, math.MinInt32)
		}
		rows[row] = left + w + vg.Points(4)
		y := top - vg.Length(row)*line
		fillRect(c, white, vg.Rectangle{Min: vg.Point{X: left - 1, Y: y - line/2}, Max: vg.Point{X: left + w + 1, Y: y + line/2}})
		c.FillText(st, vg.Point{X: left, Y: y}, name)
		return turned
	}
	for i, m := range b.marks {
		if !finite(m.Value) {
			continue
		}
		col := seriesColour(i)
		c.StrokeLine2(draw.LineStyle{Color: col, Width: vg.Points(1.4), Dashes: []vg.Length{4, 2}}, trX(m.Value), c.Min.Y, trX(m.Value), c.Max.Y)
	}
	turned := put(x, b.name+" "+figure(b.low))
	const faster = "no schedule is faster"
	if w := st.Width(faster); !turned && w+vg.Points(8) < x-c.Min.X {
		c.FillText(st, vg.Point{X: x - w - vg.Points(4), Y: top}, faster)
	}
	for _, m := range b.marks {
		if finite(m.Value) {
			put(trX(m.Value), m.Name+" "+figure(m.Value))
		}
	}
}
