package plots

import (
	"fmt"
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"spinesim/sim/des"
	"spinesim/traces"
)

// eventBoxes is the plotter of an event graph.
type eventBoxes struct {
	g     *EventGraph
	boxes []traces.Record
	runs  []traces.Record // of polls, not expanded
	steps []packetStep
	path  []arrow
	first uint64 // the packet that labels call 1
}

const (
	leastWidth = 0.5 // points: of a box, however short the event
	dashWidth  = 7   // points: narrower rectangles are drawn as bands
)

func (b *eventBoxes) colour(e traces.Event) color.NRGBA {
	if b.g.Style == Thesis {
		return color.NRGBA{40, 40, 40, 255}
	}
	return stepColours[e.Step()]
}

// Plot implements plot.Plotter.
func (b *eventBoxes) Plot(c draw.Canvas, p *plot.Plot) {
	trX, trY := p.Transforms(&c)
	at := place{
		x: func(t des.Time) vg.Length {
			t = min(max(t, b.g.From), b.g.To)
			return trX((t - b.g.From).Microseconds())
		},
		y: trY,
	}
	for _, y := range rows {
		c.StrokeLine2(draw.LineStyle{Color: lightGrey, Width: vg.Points(0.25)}, c.Min.X, at.y(y), c.Max.X, at.y(y))
	}
	b.plotBands(c, at)
	b.plotRuns(c, at)
	b.plotBoxes(c, at)
	b.plotRectangles(c, at)
	b.plotArrows(c, at)
	b.plotLabels(c, at)
}

// joined fills boxes of one row, those that touch on paper as one: a graph of
// 13 ms has tens of thousands.
type joined struct {
	rects
	lo, hi vg.Length
	x0, x1 vg.Length
	open   bool
}

func (j *joined) add(x0, x1 vg.Length) {
	x1 = max(x1, x0+vg.Points(leastWidth))
	if j.open && x0 >= j.x0 && x0 <= j.x1+vg.Points(0.1) {
		j.x1 = max(j.x1, x1)
		return
	}
	j.end()
	j.x0, j.x1, j.open = x0, x1, true
}

func (j *joined) end() {
	if j.open {
		j.rects.add(vg.Rectangle{Min: vg.Point{X: j.x0, Y: j.lo}, Max: vg.Point{X: j.x1, Y: j.hi}})
		j.open = false
	}
}

func (b *eventBoxes) row(c draw.Canvas, at place, e traces.Event) joined {
	return joined{rects: rects{c: c, col: b.colour(e)}, lo: at.y(rows[e] - boxHalf), hi: at.y(rows[e] + boxHalf)}
}

func (b *eventBoxes) plotBoxes(c draw.Canvas, at place) {
	var js [traces.NumFigureEvents]joined
	for e := range js {
		js[e] = b.row(c, at, traces.Event(e))
	}
	for i := range b.boxes {
		r := &b.boxes[i]
		js[r.Event].add(at.x(r.Start), at.x(r.End))
	}
	for e := range js {
		js[e].end()
		js[e].flush()
	}
}

// plotRuns draws polls that are known only as runs: a band over all queues, and
// in the row of the queue where it ended, the poll that hit.
func (b *eventBoxes) plotRuns(c draw.Canvas, at place) {
	if len(b.runs) == 0 {
		return
	}
	band := joined{
		rects: rects{c: c, col: pale(b.colour(traces.PollQ0), 0.16)},
		lo:    at.y(rows[traces.PollQ0] - boxHalf), hi: at.y(rows[traces.PollQ6] + boxHalf),
	}
	for i := range b.runs {
		band.add(at.x(b.runs[i].Start), at.x(b.runs[i].End))
	}
	band.end()
	band.flush()
	var hits [traces.PollQ6 + 1]joined
	for q := range hits {
		hits[q] = b.row(c, at, traces.Event(q))
	}
	for i := range b.runs {
		r := &b.runs[i]
		if int(r.Queue) >= len(hits) || r.Count == 0 || r.End > b.g.To {
			continue
		}
		one := (r.End - r.Start) / des.Time(r.Count)
		hits[r.Queue].add(at.x(r.End-one), at.x(r.End))
	}
	for q := range hits {
		hits[q].end()
		hits[q].flush()
	}
}

func (b *eventBoxes) rectangle(s packetStep, at place) vg.Rectangle {
	h := highLevel[s.kind]
	return vg.Rectangle{
		Min: vg.Point{X: at.x(s.start), Y: at.y(rows[h.low] - edgeRoom)},
		Max: vg.Point{X: at.x(s.end), Y: at.y(stripTop(s.kind))},
	}
}

// plotBands draws rectangles that are too narrow for dashes.
func (b *eventBoxes) plotBands(c draw.Canvas, at place) {
	for k, h := range highLevel {
		col := pale(black, 0.10)
		if b.g.Style == Coloured {
			col = pale(stepColours[h.step], 0.18)
		}
		band := rects{c: c, col: col}
		for _, s := range b.steps {
			if r := b.rectangle(s, at); s.kind == k && r.Max.X-r.Min.X < vg.Points(dashWidth) {
				r.Max.X = max(r.Max.X, r.Min.X+vg.Points(leastWidth))
				band.add(r)
			}
		}
		band.flush()
	}
}

func (b *eventBoxes) plotRectangles(c draw.Canvas, at place) {
	for _, s := range b.steps {
		r := b.rectangle(s, at)
		if r.Max.X-r.Min.X < vg.Points(dashWidth) {
			continue
		}
		st := draw.LineStyle{Color: black, Width: vg.Points(0.7), Dashes: []vg.Length{vg.Points(3), vg.Points(2)}}
		if b.g.Style == Coloured {
			st.Color = stepColours[highLevel[s.kind].step]
		}
		// A step that goes on beyond the window is open at that side.
		tl, bl := vg.Point{X: r.Min.X, Y: r.Max.Y}, r.Min
		tr, br := r.Max, vg.Point{X: r.Max.X, Y: r.Min.Y}
		switch left, right := s.start < b.g.From, s.end > b.g.To; {
		case left && right:
			c.StrokeLines(st, []vg.Point{tl, tr}, []vg.Point{bl, br})
		case left:
			c.StrokeLines(st, []vg.Point{tl, tr, br, bl})
		case right:
			c.StrokeLines(st, []vg.Point{tr, tl, bl, br})
		default:
			c.StrokeLines(st, []vg.Point{bl, br, tr, tl, bl})
		}
	}
}

// plotLabels writes each step's name into the strip above its boxes.
func (b *eventBoxes) plotLabels(c draw.Canvas, at place) {
	st := writing(tickSize-0.5, black, draw.XCenter, draw.YCenter)
	var taken []vg.Rectangle
	arrows := b.arrowLines(at)
	every := b.thinning(st, at)
	for _, s := range b.steps {
		r := b.rectangle(s, at)
		if r.Max.X-r.Min.X < vg.Points(dashWidth) { // a band: every so many get a number, as wide as it may be
			if n := int64(s.packet) - int64(b.first) + 1; n%every[s.kind] != 0 {
				continue
			}
			w := st.Width(fmt.Sprint(int64(s.packet)-int64(b.first)+1)) + vg.Points(4)
			mid := (r.Min.X + r.Max.X) / 2
			r.Min.X, r.Max.X = mid-w/2, mid+w/2
		}
		lo, hi := at.y(stripBottom(s.kind)), at.y(stripTop(s.kind))
		name, n := highLevel[s.kind].name, int64(s.packet)-int64(b.first)+1
		number := fmt.Sprint(n)
		options := [][]string{{name + " Packet " + number}, {name, "Packet " + number}, {name, "Packet " + number}, {name + " " + number}, {name, number}, {number}}
		for i, lines := range options {
			if float64(len(lines)) > highLevel[s.kind].lines {
				continue
			}
			st := st
			if i >= 2 {
				st.Font.Size -= vg.Points(1)
			}
			if box, ok := labelPlace(st, lines, r, lo, hi, taken, arrows); ok {
				taken = append(taken, box)
				step := (hi - lo) / vg.Length(highLevel[s.kind].lines)
				if len(lines) == 1 {
					step = 0
				}
				mid := vg.Point{X: (box.Min.X + box.Max.X) / 2, Y: (box.Min.Y + box.Max.Y) / 2}
				for i, l := range lines {
					dy := (vg.Length(len(lines)-1)/2 - vg.Length(i)) * step
					c.FillText(st, vg.Point{X: mid.X, Y: mid.Y + dy}, l)
				}
				break
			}
		}
	}
}

// thinning is, for each step, of how many bands one gets a label, for labels to
// have room: 1, 2 or 5 times a power of ten.
func (b *eventBoxes) thinning(st text.Style, at place) (every [len(highLevel)]int64) {
	for k := range every {
		var first, last packetStep
		n, most := 0, int64(1)
		for _, s := range b.steps {
			if s.kind != k {
				continue
			}
			if n == 0 {
				first = s
			}
			last = s
			most = max(most, int64(s.packet)-int64(b.first)+1)
			n++
		}
		every[k] = 1
		if n < 2 {
			continue
		}
		apart := (at.x(last.start) - at.x(first.start)) / vg.Length(n-1)
		room := st.Width(fmt.Sprint(most)) + vg.Points(14)
		for f := 0; apart*vg.Length(every[k]) < room && every[k] < 1e15; f++ {
			every[k] = [...]int64{2, 5, 10}[f%3] * int64(math.Pow10(f/3))
		}
	}
	return every
}

// labelPlace finds room for lines of text in a strip of the rectangle r, clear
// of other labels and, if it can be, of arrows.
func labelPlace(st text.Style, lines []string, r vg.Rectangle, lo, hi vg.Length, taken []vg.Rectangle, arrows [][2]vg.Point) (vg.Rectangle, bool) {
	w := vg.Length(0)
	for _, l := range lines {
		w = max(w, st.Width(l))
	}
	const margin = 1.5
	free := r.Max.X - r.Min.X - w - 2*vg.Points(margin)
	if free < 0 {
		return vg.Rectangle{}, false
	}
	best, bestHits := vg.Rectangle{}, math.MaxInt
	for _, f := range []float64{0.5, 0.3, 0.7, 0.15, 0.85, 0, 1} {
		x := r.Min.X + vg.Points(margin) + free*vg.Length(f)
		box := vg.Rectangle{Min: vg.Point{X: x, Y: lo}, Max: vg.Point{X: x + w, Y: hi}}
		clear := true
		for i := len(taken) - 1; i >= 0 && clear; i-- {
			t := taken[i]
			clear = t.Max.X+vg.Points(2) <= box.Min.X || t.Min.X >= box.Max.X+vg.Points(2) || t.Max.Y <= box.Min.Y || t.Min.Y >= box.Max.Y
		}
		if !clear {
			continue
		}
		hits := 0
		for _, a := range arrows {
			if crosses(a, box) {
				hits++
			}
		}
		if hits < bestHits {
			best, bestHits = box, hits
		}
		if hits == 0 {
			break
		}
	}
	return best, bestHits < math.MaxInt
}

// crosses tells whether a line runs through a rectangle (Liang and Barsky 1984).
func crosses(l [2]vg.Point, r vg.Rectangle) bool {
	t0, t1 := 0.0, 1.0
	d := vg.Point{X: l[1].X - l[0].X, Y: l[1].Y - l[0].Y}
	for _, e := range [4][2]vg.Length{
		{-d.X, l[0].X - r.Min.X}, {d.X, r.Max.X - l[0].X}, {-d.Y, l[0].Y - r.Min.Y}, {d.Y, r.Max.Y - l[0].Y},
	} {
		p, q := float64(e[0]), float64(e[1])
		switch {
		case p == 0 && q < 0:
			return false
		case p < 0:
			t0 = max(t0, q/p)
		case p > 0:
			t1 = min(t1, q/p)
		}
	}
	return t0 <= t1
}

// arrowLines are the arrows of the path on paper, cut off at the window.
func (b *eventBoxes) arrowLines(at place) [][2]vg.Point {
	var out [][2]vg.Point
	for _, a := range b.path {
		p := vg.Point{X: at.x(a.from.End), Y: at.y(rows[a.from.Event])}
		q := vg.Point{X: at.x(a.to.Start), Y: at.y(rows[a.to.Event])}
		out = append(out, [2]vg.Point{p, q})
	}
	return out
}

// plotArrows draws the causal path of the traced packet.
func (b *eventBoxes) plotArrows(c draw.Canvas, at place) {
	line := draw.LineStyle{Color: black, Width: vg.Points(0.9)}
	for i, a := range b.arrowLines(at) {
		c.StrokeLine2(line, a[0].X, a[0].Y, a[1].X, a[1].Y)
		if b.path[i].to.Start >= b.g.From {
			arrowHead(c, black, a[0], a[1], vg.Points(4.5))
		}
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
	s := math.Min(float64(size), l)
	left := vg.Point{X: q.X - vg.Length(s*(ux+0.4*uy)), Y: q.Y - vg.Length(s*(uy-0.4*ux))}
	right := vg.Point{X: q.X - vg.Length(s*(ux-0.4*uy)), Y: q.Y - vg.Length(s*(uy+0.4*ux))}
	c.FillPolygon(col, []vg.Point{q, left, right})
}
