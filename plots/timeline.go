package plots

import (
	"fmt"
	"image/color"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"spinesim/sim/des"
	"spinesim/traces"
)

// Timeline draws how a card's pipeline runs over time: the gap before each
// departure, how many packets were received between two DMA starts, and the
// backlog of packets that wait for their DMA. Fast windows and slow spells are
// shaded (see States).
type Timeline struct {
	Title    string
	Card     uint8
	From, To des.Time
	// ChainHandlers is how long the handlers of one DMA chain take, which tells
	// an idle engine from a slow one; 0 for traces.DefaultChainHandlers.
	ChainHandlers des.Time
}

// point is a value at a time.
type point struct {
	at des.Time
	y  float64
}

// timelineSeries is what the three panels show.
type timelineSeries struct {
	gaps, runs []point
	backlog    []point // the level from each time on
	states     States
}

func (t *Timeline) series(records []traces.Record) timelineSeries {
	var d timelineSeries
	var last des.Time
	departed := false
	run := 0
	d.backlog = append(d.backlog, point{t.From, 0})
	for i := range records {
		r := &records[i]
		if r.Card != t.Card {
			continue
		}
		switch {
		case r.Kind == traces.KindDepart:
			if departed && r.End >= t.From && r.End <= t.To {
				d.gaps = append(d.gaps, point{r.End, (r.End - last).Microseconds()})
			}
			last, departed = r.End, true
		case r.Kind == traces.KindBox && r.Event == traces.RxCheckHeader:
			run++
		case r.Kind == traces.KindBox && r.Event == traces.PeerToPeerStart:
			if r.Start >= t.From && r.Start <= t.To {
				d.runs = append(d.runs, point{r.Start, float64(run)})
			}
			run = 0
		case r.Kind == traces.KindLevel && r.Event == traces.LevelBacklog:
			switch {
			case r.End <= t.From:
				d.backlog[0].y = float64(r.Count)
			case r.End <= t.To:
				d.backlog = append(d.backlog, point{r.End, float64(r.Count)})
			}
		}
	}
	d.states = FindStates(records, t.Card, t.From, t.To, t.ChainHandlers)
	return d
}

// Plots draws the three panels, to be saved one below the other. Records must
// be in order of time and cover the span.
func (t *Timeline) Plots(records []traces.Record) ([]*plot.Plot, error) {
	if t.To <= t.From {
		return nil, fmt.Errorf("span from %v to %v is empty", t.From, t.To)
	}
	d := t.series(records)
	if len(d.gaps) == 0 {
		return nil, ErrNoEvents
	}
	unit := axisUnit(t.To - t.From)
	panel := func(title, y string, whole bool, top float64) *plot.Plot {
		p := newPlot(title)
		p.X.Min, p.X.Max = 0, unit.of(t.To-t.From)
		p.Y.Min, p.Y.Max = 0, max(top, 1)*1.08
		p.Y.Tick.Marker = evenTicks{whole: whole, most: 7}
		p.Y.Label.Text = y
		p.Add(shading{d.states.Fast, t.From, unit, pale(skyBlue, 0.28)}, shading{d.states.Slow, t.From, unit, pale(yellow, 0.38)})
		return p
	}
	title := t.Title
	if title == "" {
		title = "Gap, receive runs and DMA backlog over time"
	}
	gap := panel(title, "gap (µs)", false, highest(d.gaps))
	addKey(gap, []keyEntry{
		{name: "fast: one received, one sent, none waiting", look: look{colour: pale(skyBlue, 0.28)}},
		{name: "slow: packets wait for their DMA", look: look{colour: pale(yellow, 0.38)}},
	})
	gap.Add(stems{d.gaps, t.From, t.To, unit, vermilion})
	runs := panel("", "received per\nDMA start", true, highest(d.runs))
	runs.Add(stems{d.runs, t.From, t.To, unit, blue})
	back := panel("", "DMA backlog\n(packets)", true, highest(d.backlog))
	back.Add(steps{d.backlog, t.From, t.To, unit, green})
	back.X.Label.Text = "Time (" + unit.name + ")"
	back.Add(note(fmt.Sprintf("card %d, 0 is %s of the run", t.Card, moment(t.From))))
	return []*plot.Plot{gap, runs, back}, nil
}

func highest(ps []point) float64 {
	top := 0.0
	for _, p := range ps {
		top = max(top, p.y)
	}
	return top
}

// timeUnit is what an axis of time counts in.
type timeUnit struct {
	name string
	size des.Time
}

func (u timeUnit) of(t des.Time) float64 { return float64(t) / float64(u.size) }

func axisUnit(span des.Time) timeUnit {
	switch {
	case span >= 2*des.Second:
		return timeUnit{"s", des.Second}
	case span >= 2*des.Millisecond:
		return timeUnit{"ms", des.Millisecond}
	}
	return timeUnit{"µs", des.Microsecond}
}

// Above so many values on an inch, single ones cannot be told apart, and the
// range of the values in each stretch is drawn instead.
const perInch = 90

func crowded(n int, c draw.Canvas) bool {
	return float64(n) > perInch*float64((c.Max.X-c.Min.X)/vg.Inch)
}

// stems are values with a thin stem and a dot each, and where they are too many,
// for each half point of width a line from the least to the greatest.
type stems struct {
	ps       []point
	from, to des.Time
	unit     timeUnit
	col      color.NRGBA
}

// Plot implements plot.Plotter.
func (s stems) Plot(c draw.Canvas, p *plot.Plot) {
	trX, trY := p.Transforms(&c)
	x := func(at des.Time) vg.Length { return trX(s.unit.of(at - s.from)) }
	if crowded(len(s.ps), c) {
		rs := rects{c: c, col: s.col}
		for _, b := range ranges(s.ps, x) {
			rs.add(vg.Rectangle{Min: vg.Point{X: b.x, Y: trY(b.lo)}, Max: vg.Point{X: b.x + binWidth, Y: max(trY(b.hi), trY(b.lo)+vg.Points(1.4))}})
		}
		rs.flush()
		return
	}
	for ps := range slices.Chunk(s.ps, chunk) {
		var stem, dots vg.Path
		for _, v := range ps {
			at := vg.Point{X: x(v.at), Y: trY(v.y)}
			stem.Move(vg.Point{X: at.X, Y: trY(0)})
			stem.Line(at)
			dots.Move(vg.Point{X: at.X + vg.Points(1.5), Y: at.Y})
			dots.Arc(at, vg.Points(1.5), 0, 2*math.Pi)
			dots.Close()
		}
		c.SetLineStyle(draw.LineStyle{Color: pale(s.col, 0.5), Width: vg.Points(0.6)})
		c.Stroke(stem)
		c.SetColor(s.col)
		c.Fill(dots)
	}
}

// binWidth is the width on paper of the stretches that too many values are
// gathered in.
const binWidth = vg.Length(0.6)

type valueRange struct {
	x            vg.Length
	lo, hi, last float64
}

// ranges gathers points, which are in order of time, by their place on paper.
func ranges(ps []point, x func(des.Time) vg.Length) []valueRange {
	var out []valueRange
	for _, p := range ps {
		at := vg.Length(math.Floor(float64(x(p.at)/binWidth))) * binWidth
		if n := len(out); n > 0 && out[n-1].x == at {
			b := &out[n-1]
			b.lo, b.hi, b.last = min(b.lo, p.y), max(b.hi, p.y), p.y
			continue
		}
		out = append(out, valueRange{at, p.y, p.y, p.y})
	}
	return out
}

// steps are a level that changes at times.
type steps struct {
	ps       []point
	from, to des.Time
	unit     timeUnit
	col      color.NRGBA
}

// Plot implements plot.Plotter.
func (s steps) Plot(c draw.Canvas, p *plot.Plot) {
	trX, trY := p.Transforms(&c)
	x := func(at des.Time) vg.Length { return trX(s.unit.of(at - s.from)) }
	if crowded(len(s.ps)/2, c) {
		rs := rects{c: c, col: s.col}
		level := 0.0
		for _, b := range ranges(s.ps, x) {
			lo, hi := min(b.lo, level), max(b.hi, level)
			rs.add(vg.Rectangle{Min: vg.Point{X: b.x, Y: trY(lo)}, Max: vg.Point{X: b.x + binWidth, Y: max(trY(hi), trY(lo)+vg.Points(1.4))}})
			level = b.last
		}
		rs.flush()
		return
	}
	c.SetLineStyle(draw.LineStyle{Color: s.col, Width: vg.Points(1.1)})
	var path vg.Path
	for i, v := range s.ps {
		if i > 0 {
			path.Line(vg.Point{X: x(v.at), Y: trY(s.ps[i-1].y)})
		}
		if at := (vg.Point{X: x(v.at), Y: trY(v.y)}); i == 0 {
			path.Move(at)
		} else if path.Line(at); i%chunk == 0 {
			c.Stroke(path)
			path = path[:0]
			path.Move(at)
		}
	}
	if n := len(s.ps); n > 0 {
		path.Line(vg.Point{X: x(s.to), Y: trY(s.ps[n-1].y)})
		c.Stroke(path)
	}
}

// shading fills spans of the x axis over the whole height, and where they are
// too many to be told apart, each stretch as deep as the share that they cover.
type shading struct {
	spans []Span
	from  des.Time
	unit  timeUnit
	col   color.NRGBA
}

// Plot implements plot.Plotter.
func (s shading) Plot(c draw.Canvas, p *plot.Plot) {
	trX, _ := p.Transforms(&c)
	x := func(at des.Time) vg.Length { return min(max(trX(s.unit.of(at-s.from)), c.Min.X), c.Max.X) }
	full := func(a, b vg.Length) vg.Rectangle {
		return vg.Rectangle{Min: vg.Point{X: a, Y: c.Min.Y}, Max: vg.Point{X: b, Y: c.Max.Y}}
	}
	if !crowded(len(s.spans), c) {
		rs := rects{c: c, col: s.col}
		for _, v := range s.spans {
			if a, b := x(v.From), x(v.To); b > a {
				rs.add(full(a, b))
			}
		}
		rs.flush()
		return
	}
	shares := covered(s.spans, x, c.Min.X, c.Max.X)
	for i := 0; i < len(shares); {
		j := i
		for j < len(shares) && shares[j] == shares[i] {
			j++
		}
		if shares[i] > 0 {
			fillRect(c, pale(s.col, float64(shares[i])/shadeLevels), full(c.Min.X+vg.Length(i)*binWidth, min(c.Min.X+vg.Length(j)*binWidth, c.Max.X)))
		}
		i = j
	}
}

// shadeLevels is how many depths of shading there are.
const shadeLevels = 8

// covered is, for each stretch of binWidth from lo to hi, how much of it spans
// cover, in shadeLevels.
func covered(spans []Span, x func(des.Time) vg.Length, lo, hi vg.Length) []int {
	n := int(math.Ceil(float64((hi - lo) / binWidth)))
	sum := make([]float64, n)
	for _, v := range spans {
		a, b := float64((x(v.From)-lo)/binWidth), float64((x(v.To)-lo)/binWidth)
		for i := max(int(a), 0); i < n && float64(i) < b; i++ {
			sum[i] += min(b, float64(i+1)) - max(a, float64(i))
		}
	}
	out := make([]int, n)
	for i, f := range sum {
		out[i] = int(math.Round(min(f, 1) * shadeLevels))
	}
	return out
}
