package plots

import (
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"spinesim/sim/des"
	"spinesim/traces"
)

// Timeline draws how a card's pipeline runs over time: the gap before each
// departure, how many packets were received between two DMA starts, and the
// backlog of packets that wait for their DMA. Spans of the slow state, in which
// two or more packets wait, are shaded.
type Timeline struct {
	Title    string
	Card     uint8
	From, To des.Time
}

// timelineData is what the three panels show.
type timelineData struct {
	gaps, runs plotter.XYs
	backlog    plotter.XYs
	slow       [][2]float64
}

func (t *Timeline) data(records []traces.Record) timelineData {
	var d timelineData
	x := func(at des.Time) float64 { return (at - t.From).Microseconds() / 1000 }
	var last des.Time
	run, level := 0, uint32(0)
	slowFrom := des.Time(-1)
	for i := range records {
		r := &records[i]
		if r.Card != t.Card {
			continue
		}
		in := r.End >= t.From && r.End <= t.To
		switch {
		case r.Kind == traces.KindDepart:
			if in && last > 0 {
				d.gaps = append(d.gaps, plotter.XY{X: x(r.End), Y: (r.End - last).Microseconds()})
			}
			last = r.End
		case r.Kind == traces.KindBox && r.Event == traces.RxCheckHeader:
			run++
		case r.Kind == traces.KindBox && r.Event == traces.PeerToPeerStart:
			if in {
				d.runs = append(d.runs, plotter.XY{X: x(r.Start), Y: float64(run)})
			}
			run = 0
		case r.Kind == traces.KindLevel && r.Event == traces.LevelBacklog:
			if in {
				if len(d.backlog) == 0 {
					d.backlog = append(d.backlog, plotter.XY{X: 0, Y: float64(level)})
				}
				d.backlog = append(d.backlog, plotter.XY{X: x(r.End), Y: float64(level)}, plotter.XY{X: x(r.End), Y: float64(r.Count)})
			}
			level = r.Count
			switch {
			case level >= 2 && slowFrom < 0:
				slowFrom = r.End
			case level < 2 && slowFrom >= 0:
				d.shade(x, max(slowFrom, t.From), min(r.End, t.To))
				slowFrom = -1
			}
		}
	}
	if slowFrom >= 0 {
		d.shade(x, max(slowFrom, t.From), t.To)
	}
	if len(d.backlog) > 0 {
		d.backlog = append(d.backlog, plotter.XY{X: x(t.To), Y: d.backlog[len(d.backlog)-1].Y})
	}
	return d
}

func (d *timelineData) shade(x func(des.Time) float64, from, to des.Time) {
	if to > from {
		d.slow = append(d.slow, [2]float64{x(from), x(to)})
	}
}

// Plots draws the three panels, to be saved one below the other.
func (t *Timeline) Plots(records []traces.Record) ([]*plot.Plot, error) {
	d := t.data(records)
	if len(d.gaps) == 0 {
		return nil, ErrNoEvents
	}
	panel := func(title, y string) *plot.Plot {
		p := plot.New()
		p.Title.Text = title
		p.Title.TextStyle.Font.Size = vg.Points(11)
		p.X.Min, p.X.Max = 0, (t.To-t.From).Microseconds()/1000
		p.X.Tick.Marker = evenTicks{}
		p.Y.Tick.Marker = evenTicks{}
		p.Y.Label.Text = y
		p.Y.Min = 0
		p.Add(shading(d.slow))
		return p
	}
	gap := panel(t.Title, "gap (µs)")
	if err := stems(gap, d.gaps, vermilion); err != nil {
		return nil, err
	}
	runs := panel("", "received per\nDMA start")
	if err := stems(runs, d.runs, blue); err != nil {
		return nil, err
	}
	back := panel("", "DMA backlog\n(packets)")
	line, err := plotter.NewLine(d.backlog)
	if err != nil {
		return nil, err
	}
	line.Color, line.Width = green, vg.Points(1.2)
	back.Add(line)
	back.X.Label.Text = "Time (ms); shaded: slow state, two or more packets wait for their DMA"
	for _, p := range []*plot.Plot{gap, runs, back} {
		p.X.Min, p.X.Max = 0, (t.To-t.From).Microseconds()/1000
		p.Y.Min = 0
		p.Y.Max *= 1.08
	}
	return []*plot.Plot{gap, runs, back}, nil
}

// stems draws a thin stem and a dot for each value.
func stems(p *plot.Plot, xy plotter.XYs, c color.NRGBA) error {
	pale := c
	pale.A = 110
	p.Add(stemLines{xy, draw.LineStyle{Color: pale, Width: vg.Points(0.6)}})
	s, err := plotter.NewScatter(xy)
	if err != nil {
		return err
	}
	s.GlyphStyle = draw.GlyphStyle{Color: c, Radius: vg.Points(1.5), Shape: draw.CircleGlyph{}}
	p.Add(s)
	return nil
}

type stemLines struct {
	xy plotter.XYs
	st draw.LineStyle
}

// Plot implements plot.Plotter.
func (s stemLines) Plot(c draw.Canvas, p *plot.Plot) {
	trX, trY := p.Transforms(&c)
	for _, v := range s.xy {
		c.StrokeLine2(s.st, trX(v.X), trY(0), trX(v.X), trY(v.Y))
	}
}

// shading fills spans of the x axis over the whole height.
type shading [][2]float64

// Plot implements plot.Plotter.
func (s shading) Plot(c draw.Canvas, p *plot.Plot) {
	trX, _ := p.Transforms(&c)
	for _, v := range s {
		a, b := trX(v[0]), trX(v[1])
		c.FillPolygon(color.NRGBA{240, 228, 66, 90}, []vg.Point{{X: a, Y: c.Min.Y}, {X: b, Y: c.Min.Y}, {X: b, Y: c.Max.Y}, {X: a, Y: c.Max.Y}})
	}
}
