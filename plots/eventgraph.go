package plots

import (
	"errors"
	"fmt"
	"image/color"
	"math"
	"sort"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"spinesim/sim/des"
	"spinesim/traces"
)

// Style of an event graph.
type Style uint8

// The styles.
const (
	// Thesis is black and white, as Figure 6.4 is.
	Thesis Style = iota
	// Coloured gives each high-level step a colour.
	Coloured
)

// EventGraph says what an event graph shows.
type EventGraph struct {
	Title string
	Card  uint8
	// From and To bound the time shown; the axis starts at 0.
	From, To des.Time
	Style    Style
	// Trace is the packet whose causal path is drawn with arrows; 0 is none.
	Trace uint64
	// First is the packet that labels call 1; 0 is the first whose receive
	// begins in the window.
	First uint64
}

// ErrNoEvents says that the window holds nothing to draw.
var ErrNoEvents = errors.New("no events of the card in the window")

// step is a dashed rectangle: one high-level step of one packet.
type step struct {
	name       string
	packet     uint64
	start, end des.Time
	low, high  traces.Event
}

// The rows of the three high-level steps (thesis p.108).
var stepRows = []struct {
	name      string
	low, high traces.Event
}{
	{"Receive", traces.RxCheckHeader, traces.EnqRouterIn},
	{"Route", traces.RouterIn, traces.EnqIPOutput},
	{"DMA", traces.PeerToPeerStart, traces.DMAStartHeader},
}

// Plot draws the event graph of records, which must cover the window with
// every poll expanded if polls are to be seen.
func (g *EventGraph) Plot(records []traces.Record) (*plot.Plot, error) {
	if g.To <= g.From {
		return nil, fmt.Errorf("window from %v to %v is empty", g.From, g.To)
	}
	b := &eventBoxes{g: g}
	first := map[uint64]des.Time{}
	for i := range records {
		r := &records[i]
		if r.Card != g.Card || r.End <= g.From || r.Start >= g.To {
			continue
		}
		switch r.Kind {
		case traces.KindBox, traces.KindPoll:
			if int(r.Event) >= traces.NumFigureEvents {
				continue
			}
			b.boxes = append(b.boxes, *r)
			if r.Event == traces.RxCheckHeader && r.Start >= g.From {
				if _, ok := first[r.Packet]; !ok {
					first[r.Packet] = r.Start
				}
			}
		}
	}
	if len(b.boxes) == 0 {
		return nil, ErrNoEvents
	}
	b.first = g.First
	if b.first == 0 {
		at := des.MaxTime
		for p, t := range first {
			if t < at {
				b.first, at = p, t
			}
		}
	}
	b.steps = g.findSteps(records)
	b.path = g.findPath(records)

	p := plot.New()
	p.Title.Text = g.Title
	p.Title.TextStyle.Font.Size = vg.Points(12)
	p.Title.Padding = vg.Points(6)
	p.X.Label.Text = "Time (µs)"
	p.X.Min, p.X.Max = 0, (g.To - g.From).Microseconds()
	p.X.Tick.Marker = evenTicks{}
	p.Y.Label.Text = "Event type"
	p.Y.Min, p.Y.Max = -0.6, float64(traces.NumFigureEvents)-0.4
	var ticks []plot.Tick
	for e := range traces.NumFigureEvents {
		ticks = append(ticks, plot.Tick{Value: float64(e), Label: traces.Event(e).String()})
	}
	p.Y.Tick.Marker = plot.ConstantTicks(ticks)
	p.Y.Tick.Label.Font.Size = vg.Points(8)
	p.X.Tick.Label.Font.Size = vg.Points(8)
	p.Add(b)
	return p, nil
}

// findSteps finds the high-level steps that touch the window, from all records.
func (g *EventGraph) findSteps(records []traces.Record) []step {
	type key struct {
		packet uint64
		step   int
	}
	at := map[key]int{}
	var out []step
	grow := func(k key, start, end des.Time) {
		i, ok := at[k]
		if !ok {
			i = len(out)
			at[k] = i
			s := stepRows[k.step]
			out = append(out, step{name: s.name, packet: k.packet, start: start, end: end, low: s.low, high: s.high})
		}
		out[i].start, out[i].end = min(out[i].start, start), max(out[i].end, end)
	}
	for i := range records {
		r := &records[i]
		if r.Card != g.Card || r.Packet == 0 {
			continue
		}
		if r.Kind == traces.KindDepart {
			if j, ok := at[key{r.Packet, 2}]; ok {
				out[j].end = max(out[j].end, r.End)
			}
			continue
		}
		if r.Kind != traces.KindBox {
			continue
		}
		for s, rows := range stepRows {
			if r.Event >= rows.low && r.Event <= rows.high {
				grow(key{r.Packet, s}, r.Start, r.End)
			}
		}
	}
	kept := out[:0]
	for _, s := range out {
		if s.end > g.From && s.start < g.To {
			kept = append(kept, s)
		}
	}
	sort.Slice(kept, func(i, j int) bool {
		if kept[i].start != kept[j].start {
			return kept[i].start < kept[j].start
		}
		return kept[i].low < kept[j].low
	})
	return kept
}

// findPath is the causal path of the traced packet: its boxes on the card in
// order.
func (g *EventGraph) findPath(records []traces.Record) []traces.Record {
	var out []traces.Record
	for i := range records {
		r := &records[i]
		if g.Trace != 0 && r.Packet == g.Trace && r.Kind == traces.KindBox && r.Card == g.Card &&
			int(r.Event) < traces.NumFigureEvents && r.Event >= traces.RxCheckHeader {
			out = append(out, *r)
		}
	}
	return out
}

// eventBoxes is the plotter.
type eventBoxes struct {
	g     *EventGraph
	boxes []traces.Record
	steps []step
	path  []traces.Record
	first uint64
}

func (b *eventBoxes) colour(e traces.Event) color.Color {
	if b.g.Style == Thesis {
		return color.NRGBA{40, 40, 40, 255}
	}
	switch {
	case e <= traces.PollQ6:
		return grey
	case e <= traces.PeerAck:
		return purple
	case e <= traces.EnqRouterIn:
		return blue
	case e <= traces.EnqIPOutput:
		return green
	default:
		return vermilion
	}
}

// Plot implements plot.Plotter.
func (b *eventBoxes) Plot(c draw.Canvas, p *plot.Plot) {
	trX, trY := p.Transforms(&c)
	x := func(t des.Time) vg.Length {
		t = min(max(t, b.g.From), b.g.To)
		return trX((t - b.g.From).Microseconds())
	}
	y := func(v float64) vg.Length { return trY(v) }

	for e := range traces.NumFigureEvents {
		c.StrokeLine2(draw.LineStyle{Color: lightGrey, Width: vg.Points(0.25)}, c.Min.X, y(float64(e)), c.Max.X, y(float64(e)))
	}
	const half = 0.28
	for i := range b.boxes {
		r := &b.boxes[i]
		x0, x1 := x(r.Start), x(r.End)
		if x1-x0 < vg.Points(0.4) {
			x1 = x0 + vg.Points(0.4)
		}
		lo, hi := y(float64(r.Event)-half), y(float64(r.Event)+half)
		c.FillPolygon(b.colour(r.Event), []vg.Point{{X: x0, Y: lo}, {X: x1, Y: lo}, {X: x1, Y: hi}, {X: x0, Y: hi}})
	}
	b.plotSteps(c, x, y)
	b.plotPath(c, x, y)
}

func (b *eventBoxes) plotSteps(c draw.Canvas, x func(des.Time) vg.Length, y func(float64) vg.Length) {
	dash := draw.LineStyle{Color: black, Width: vg.Points(0.7), Dashes: []vg.Length{vg.Points(3), vg.Points(2)}}
	label := text.Style{
		Color: black, Font: font.From(plot.DefaultFont, vg.Points(8)),
		XAlign: draw.XCenter, YAlign: draw.YCenter, Handler: plot.DefaultTextHandler,
	}
	const room = 0.44
	for _, s := range b.steps {
		x0, x1 := x(s.start), x(s.end)
		lo, hi := y(float64(s.low)-room), y(float64(s.high)+room)
		if x1-x0 < vg.Points(1) {
			continue
		}
		c.StrokeLines(dash, []vg.Point{{X: x0, Y: lo}, {X: x1, Y: lo}, {X: x1, Y: hi}, {X: x0, Y: hi}, {X: x0, Y: lo}})
		n := int64(s.packet) - int64(b.first) + 1
		lines := []string{fmt.Sprintf("%s Packet %d", s.name, n)}
		st := label
		width := x1 - x0 - vg.Points(3)
		if st.Width(lines[0]) > width {
			lines = []string{s.name, fmt.Sprintf("Packet %d", n)}
		}
		if st.Width(lines[0]) > width || st.Width(lines[len(lines)-1]) > width {
			lines = []string{s.name, fmt.Sprintf("%d", n)}
		}
		for st.Font.Size > vg.Points(5) && widest(st, lines) > width {
			st.Font.Size -= vg.Points(0.5)
		}
		if widest(st, lines) > width {
			continue
		}
		b.label(c, st, lines, x0, x1, s, x, y)
	}
}

// label writes a step's name where it hides the fewest boxes: between two rows,
// at the place in the rectangle that is farthest from any box.
func (b *eventBoxes) label(c draw.Canvas, st text.Style, lines []string, x0, x1 vg.Length, s step, x func(des.Time) vg.Length, y func(float64) vg.Length) {
	w := widest(st, lines)/2 + vg.Points(1)
	h := vg.Length(len(lines)) * st.Font.Size * 0.55
	best, bestHit := vg.Point{X: (x0 + x1) / 2, Y: (y(float64(s.low)) + y(float64(s.high))) / 2}, math.MaxInt
	row := y(1) - y(0)
	for _, fx := range []float64{0.5, 0.35, 0.65, 0.2, 0.8, 0, 1} {
		cx := x0 + w + (x1-x0-2*w)*vg.Length(fx)
		for fy := 0.0; fy <= 2*float64(s.high-s.low)+0.001; fy++ {
			cy := y(float64(s.low)) + vg.Length(fy)*row/2
			hit := 0
			for i := range b.boxes {
				r := &b.boxes[i]
				by := y(float64(r.Event))
				if x(r.End) > cx-w && x(r.Start) < cx+w && by+row*0.28 > cy-h && by-row*0.28 < cy+h {
					hit++
				}
			}
			if cy-h < y(float64(s.low)-0.5) || cy+h > y(float64(s.high)+0.5) {
				hit += 2
			}
			if hit < bestHit {
				best, bestHit = vg.Point{X: cx, Y: cy}, hit
			}
		}
	}
	pad := vg.Points(1)
	c.FillPolygon(color.NRGBA{255, 255, 255, 220}, []vg.Point{
		{X: best.X - w + pad, Y: best.Y - h}, {X: best.X + w - pad, Y: best.Y - h},
		{X: best.X + w - pad, Y: best.Y + h}, {X: best.X - w + pad, Y: best.Y + h},
	})
	for i, l := range lines {
		dy := vg.Length(float64(len(lines)-1)/2-float64(i)) * st.Font.Size
		c.FillText(st, vg.Point{X: best.X, Y: best.Y + dy}, l)
	}
}

func widest(st text.Style, lines []string) vg.Length {
	var w vg.Length
	for _, l := range lines {
		w = max(w, st.Width(l))
	}
	return w
}

// plotPath draws an arrow from each box of the traced packet to the next.
func (b *eventBoxes) plotPath(c draw.Canvas, x func(des.Time) vg.Length, y func(float64) vg.Length) {
	col := color.Color(black)
	if b.g.Style == Coloured {
		col = orange
	}
	line := draw.LineStyle{Color: col, Width: vg.Points(0.9)}
	for i := 1; i < len(b.path); i++ {
		from, to := &b.path[i-1], &b.path[i]
		if to.Start > b.g.To || from.End < b.g.From || from.Event < traces.RxCheckHeader {
			continue
		}
		p := vg.Point{X: x(from.End), Y: y(float64(from.Event))}
		q := vg.Point{X: x(to.Start), Y: y(float64(to.Event))}
		c.StrokeLine2(line, p.X, p.Y, q.X, q.Y)
		arrowHead(c, col, p, q, vg.Points(4))
	}
}

// arrowHead draws a filled head at q on the line from p.
func arrowHead(c draw.Canvas, col color.Color, p, q vg.Point, size vg.Length) {
	dx, dy := float64(q.X-p.X), float64(q.Y-p.Y)
	l := math.Hypot(dx, dy)
	if l == 0 {
		return
	}
	ux, uy := dx/l, dy/l
	s := float64(size)
	left := vg.Point{X: q.X - vg.Length(s*(ux+0.4*uy)), Y: q.Y - vg.Length(s*(uy-0.4*ux))}
	right := vg.Point{X: q.X - vg.Length(s*(ux-0.4*uy)), Y: q.Y - vg.Length(s*(uy+0.4*ux))}
	c.FillPolygon(col, []vg.Point{q, left, right})
}

// evenTicks puts a label every 1, 2 or 5 times a power of ten.
type evenTicks struct{}

// Ticks implements plot.Ticker.
func (evenTicks) Ticks(lo, hi float64) []plot.Tick {
	span := hi - lo
	if !(span > 0) {
		return nil
	}
	stepSize := math.Pow(10, math.Floor(math.Log10(span/8)))
	for _, f := range []float64{1, 2, 5, 10} {
		if span/(stepSize*f) <= 14 {
			stepSize *= f
			break
		}
	}
	var out []plot.Tick
	for i := math.Ceil(lo/stepSize - 1e-9); i*stepSize <= hi+stepSize*1e-9; i++ {
		out = append(out, plot.Tick{Value: i * stepSize, Label: trimFloat(i * stepSize)})
	}
	return out
}

func trimFloat(v float64) string {
	v = math.Round(v*1e9) / 1e9
	if v == 0 {
		v = 0 // no minus sign
	}
	return fmt.Sprintf("%g", v)
}
