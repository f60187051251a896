package plots

import (
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Part is one piece of a stacked bar.
type Part struct {
	Name  string
	Value float64 // at least 0; in the unit of the axis
}

// StackedBar is one bar of several parts, laid end to end.
type StackedBar struct {
	Name  string
	Parts []Part
	// Note is written at the bar's end; empty is the sum of the parts.
	Note string
	// Apart puts some room before this bar, to begin a group.
	Apart bool
}

// StackedBars are horizontal bars, the first at the top. A part has the same
// look in all of them, and is labelled in the bar where there is room.
type StackedBars struct {
	Title  string
	XLabel string
	Bars   []StackedBar
	// Most is the end of the axis; 0 is where the longest bar needs it.
	Most float64
	// Percent writes values as percentages of 1.
	Percent bool

	// looks gives parts looks of their own; others get the next ones free.
	looks map[string]look
	// under is drawn below the bars.
	under plot.Plotter
}

// Size is room enough for the bars.
func (s *StackedBars) Size() Size { return barsSize(len(s.Bars)) }

// barsSize is room enough for n horizontal bars with a title and a key.
func barsSize(n int) Size {
	return Size{Wide.Width, min(max(1.5*vg.Inch+vg.Length(n)*0.42*vg.Inch, 2.6*vg.Inch), 30*vg.Inch)}
}

// Plot draws the bars.
func (s *StackedBars) Plot() (*plot.Plot, error) {
	if len(s.Bars) == 0 {
		return nil, ErrNoEvents
	}
	b := &stackedBars{s: s, looks: map[string]look{}}
	taken := map[look]bool{}
	var entries []keyEntry
	longest := 0.0
	pick := func(name string) look {
		if l, ok := s.looks[name]; ok {
			return l
		}
		for _, l := range looks {
			if !taken[l] {
				return l
			}
		}
		return looks[len(taken)%len(looks)]
	}
	for _, l := range s.looks {
		taken[l] = true
	}
	for _, bar := range s.Bars {
		sum := 0.0
		for _, p := range bar.Parts {
			if !(p.Value > 0) || !finite(p.Value) {
				continue
			}
			sum += p.Value
			if _, ok := b.looks[p.Name]; !ok {
				l := pick(p.Name)
				b.looks[p.Name], taken[l] = l, true
				entries = append(entries, keyEntry{name: p.Name, look: l})
			}
		}
		longest = max(longest, sum)
	}
	if longest == 0 {
		return nil, ErrNoEvents
	}
	p := newPlot(s.Title)
	p.X.Label.Text = s.XLabel
	most := s.Most
	if most == 0 {
		most = longest * 1.14
	}
	p.X.Min, p.X.Max = 0, most
	if s.Percent {
		p.X.Tick.Marker = upTo{percentTicks{}, 1}
	}
	p.Y.Min, p.Y.Max = -b.place(len(s.Bars)-1)-0.6, 0.6
	var ticks []plot.Tick
	for i, bar := range s.Bars {
		ticks = append(ticks, plot.Tick{Value: -b.place(i), Label: bar.Name})
	}
	p.Y.Tick.Marker = plot.ConstantTicks(ticks)
	p.Y.Tick.Length = 0
	addKey(p, entries)
	p.Add(grid{x: true})
	if s.under != nil {
		p.Add(s.under)
	}
	p.Add(b)
	return p, nil
}

type stackedBars struct {
	s     *StackedBars
	looks map[string]look
}

// place is how far below the first bar the i-th one is.
func (b *stackedBars) place(i int) float64 {
	y := float64(i)
	for j := 1; j <= i; j++ {
		if b.s.Bars[j].Apart {
			y += 0.6
		}
	}
	return y
}

func (b *stackedBars) text(v float64) string {
	if b.s.Percent {
		return percentText(v)
	}
	return figure(v)
}

// Plot implements plot.Plotter.
func (b *stackedBars) Plot(c draw.Canvas, p *plot.Plot) {
	trX, trY := p.Transforms(&c)
	const half = 0.36
	for i := range b.s.Bars {
		bar := &b.s.Bars[i]
		y := -b.place(i)
		at := 0.0
		for _, part := range bar.Parts {
			if !(part.Value > 0) || !finite(part.Value) {
				continue
			}
			r := vg.Rectangle{
				Min: vg.Point{X: trX(at), Y: trY(y - half)},
				Max: vg.Point{X: trX(at + part.Value), Y: trY(y + half)},
			}
			at += part.Value
			l := b.looks[part.Name]
			fillArea(c, l, r)
			ink := contrast(l.colour)
			if l.lines != plain {
				ink = black
			}
			st := writing(noteSize, ink, draw.XCenter, draw.YCenter)
			for _, label := range []string{part.Name + " " + b.text(part.Value), b.text(part.Value)} {
				if w := st.Width(label); w+vg.Points(4) <= r.Max.X-r.Min.X && st.Height(label) < r.Max.Y-r.Min.Y {
					mid := vg.Point{X: (r.Min.X + r.Max.X) / 2, Y: (r.Min.Y + r.Max.Y) / 2}
					if l.lines != plain {
						fillRect(c, pale(l.colour, 0.3), vg.Rectangle{Min: vg.Point{X: mid.X - w/2 - vg.Points(1), Y: mid.Y - vg.Points(5)}, Max: vg.Point{X: mid.X + w/2 + vg.Points(1), Y: mid.Y + vg.Points(5)}})
					}
					c.FillText(st, mid, label)
					break
				}
			}
		}
		end := bar.Note
		if end == "" {
			end = b.text(at)
		}
		st := writing(tickSize, black, draw.XLeft, draw.YCenter)
		from := vg.Point{X: trX(at) + vg.Points(4), Y: trY(y)}
		if b.s.under != nil {
			fillRect(c, white, vg.Rectangle{Min: vg.Point{X: from.X - 1, Y: from.Y - vg.Points(5)}, Max: vg.Point{X: from.X + st.Width(end) + 1, Y: from.Y + vg.Points(5)}})
		}
		c.FillText(st, from, end)
	}
}

// percentTicks labels shares as percentages.
type percentTicks struct {
	most int // as of evenTicks
}

// Ticks implements plot.Ticker.
func (p percentTicks) Ticks(lo, hi float64) []plot.Tick {
	ts := evenTicks{most: p.most}.Ticks(lo*100, hi*100)
	for i := range ts {
		ts[i].Value /= 100
	}
	return ts
}

func percentText(v float64) string {
	v *= 100
	if math.Abs(v) >= 10 {
		return trimFloat(math.Round(v)) + " %"
	}
	return trimFloat(math.Round(v*10)/10) + " %"
}

// upTo leaves out the ticks beyond a value.
type upTo struct {
	plot.Ticker
	most float64
}

// Ticks implements plot.Ticker.
func (u upTo) Ticks(lo, hi float64) []plot.Tick {
	return u.Ticker.Ticks(lo, min(hi, u.most))
}
