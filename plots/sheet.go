package plots

import (
	"image/color"
	"math"
	"strconv"
	"strings"

	stdfont "golang.org/x/image/font"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Sizes of type, in points (chosen: legible at half size).
const (
	titleSize = 10.5
	labelSize = 9
	tickSize  = 8
	noteSize  = 7.5
)

// sans is the typeface of every figure.
func sans(size float64) font.Font {
	return font.Font{Typeface: "Liberation", Variant: "Sans", Size: vg.Points(size)}
}

func bold(size float64) font.Font {
	f := sans(size)
	f.Weight = stdfont.WeightBold
	return f
}

// writing is a style of text, aligned about the point where it is put.
func writing(size float64, c color.Color, x text.XAlignment, y text.YAlignment) text.Style {
	return text.Style{Color: c, Font: sans(size), XAlign: x, YAlign: y, Handler: plot.DefaultTextHandler}
}

// newPlot is an empty plot in the style of all figures.
func newPlot(title string) *plot.Plot {
	p := plot.New()
	p.Title.Text = title
	p.Title.TextStyle.Font = bold(titleSize)
	p.Title.Padding = vg.Points(6)
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		a.Label.TextStyle.Font = sans(labelSize)
		a.Label.Padding = vg.Points(3)
		a.Tick.Label.Font = sans(tickSize)
		a.LineStyle.Width = vg.Points(0.5)
		a.Tick.LineStyle.Width = vg.Points(0.5)
		a.Tick.Length = vg.Points(4)
		a.Tick.Marker = evenTicks{}
		a.Padding = 0
	}
	return p
}

// breakTitle breaks a plot's title into lines of at most so many points.
func breakTitle(p *plot.Plot, most float64) {
	var lines []string
	for _, word := range strings.Fields(p.Title.Text) {
		if n := len(lines); n > 0 && p.Title.TextStyle.Width(lines[n-1]+" "+word) <= vg.Points(most) {
			lines[n-1] += " " + word
			continue
		}
		lines = append(lines, word)
	}
	p.Title.Text = strings.Join(lines, "\n")
}

// keyEntry explains one look of a figure.
type keyEntry struct {
	name string
	look look
	line *draw.LineStyle // instead of an area
	dot  draw.GlyphDrawer
}

// keyWidth is the width that keys are broken to.
const keyWidth = 610

// addKey puts a key between title and plot, in as many lines as it needs. A
// plot with a key needs a title.
func addKey(p *plot.Plot, entries []keyEntry) { addKeyWithin(p, entries, keyWidth) }

// addKeyWithin breaks the key to another width, in points.
func addKeyWithin(p *plot.Plot, entries []keyEntry, most float64) {
	if len(entries) == 0 {
		return
	}
	k := &key{st: writing(tickSize, black, draw.XLeft, draw.YCenter)}
	var row []keyEntry
	var width vg.Length
	for _, e := range entries {
		w := k.width(e)
		if len(row) > 0 && width+w > vg.Points(most) {
			k.rows = append(k.rows, row)
			row, width = nil, 0
		}
		row = append(row, e)
		width += w
	}
	k.rows = append(k.rows, row)
	p.Title.Padding += vg.Length(len(k.rows)) * k.lineHeight()
	p.Add(k)
}

// key is drawn above the plot's area, in room that the title's padding keeps.
type key struct {
	rows [][]keyEntry
	st   text.Style
}

const (
	keySwatch = 12
	keySpace  = 14
)

func (k *key) lineHeight() vg.Length { return vg.Points(12) }

func (k *key) width(e keyEntry) vg.Length {
	return vg.Points(keySwatch+4+keySpace) + k.st.Width(e.name)
}

// Plot implements plot.Plotter.
func (k *key) Plot(c draw.Canvas, _ *plot.Plot) {
	y := c.Max.Y + vg.Points(6) + vg.Length(len(k.rows)-1)*k.lineHeight() + k.lineHeight()/2 - vg.Points(2)
	for _, row := range k.rows {
		var width vg.Length
		for _, e := range row {
			width += k.width(e)
		}
		width -= vg.Points(keySpace)
		x := max(c.Min.X, c.Center().X-width/2)
		for _, e := range row {
			r := vg.Rectangle{Min: vg.Point{X: x, Y: y - vg.Points(4)}, Max: vg.Point{X: x + vg.Points(keySwatch), Y: y + vg.Points(4)}}
			switch {
			case e.line != nil:
				c.StrokeLine2(*e.line, r.Min.X, y, r.Max.X, y)
				if e.dot != nil { // Canvas.DrawGlyph would leave it out, for it lies outside the plot's area
					e.dot.DrawGlyph(&c, draw.GlyphStyle{Color: e.line.Color, Radius: vg.Points(2.5)}, vg.Point{X: (r.Min.X + r.Max.X) / 2, Y: y})
				}
			case e.dot != nil:
				c.SetColor(e.look.colour)
				e.dot.DrawGlyph(&c, draw.GlyphStyle{Color: e.look.colour, Radius: vg.Points(3.5)}, vg.Point{X: (r.Min.X + r.Max.X) / 2, Y: y})
			default:
				fillArea(c, e.look, r)
			}
			c.FillText(k.st, vg.Point{X: r.Max.X + vg.Points(4), Y: y}, e.name)
			x += k.width(e)
		}
		y -= k.lineHeight()
	}
}

// note is small text at the right below the plot, on the line of the x axis's
// label.
type note string

// Plot implements plot.Plotter.
func (n note) Plot(c draw.Canvas, p *plot.Plot) {
	st := writing(noteSize, grey, draw.XRight, draw.YTop)
	drop := p.X.Tick.Length + p.X.Tick.Label.Height("0") + p.X.Label.Padding + vg.Points(4)
	c.FillText(st, vg.Point{X: c.Max.X, Y: c.Min.Y - drop}, string(n))
}

// gridX and gridY are pale lines at the major ticks, behind what is plotted.
type grid struct{ x, y bool }

// Plot implements plot.Plotter.
func (g grid) Plot(c draw.Canvas, p *plot.Plot) {
	st := draw.LineStyle{Color: lightGrey, Width: vg.Points(0.4)}
	trX, trY := p.Transforms(&c)
	if g.x {
		for _, t := range p.X.Tick.Marker.Ticks(p.X.Min, p.X.Max) {
			if !t.IsMinor() {
				c.StrokeLine2(st, trX(t.Value), c.Min.Y, trX(t.Value), c.Max.Y)
			}
		}
	}
	if g.y {
		for _, t := range p.Y.Tick.Marker.Ticks(p.Y.Min, p.Y.Max) {
			if !t.IsMinor() {
				c.StrokeLine2(st, c.Min.X, trY(t.Value), c.Max.X, trY(t.Value))
			}
		}
	}
}

// addRect adds a rectangle to a path, so that many are filled in one go.
func addRect(p *vg.Path, r vg.Rectangle) {
	p.Move(r.Min)
	p.Line(vg.Point{X: r.Max.X, Y: r.Min.Y})
	p.Line(r.Max)
	p.Line(vg.Point{X: r.Min.X, Y: r.Max.Y})
	p.Close()
}

// chunk is how many figures are filled or stroked as one path: more save room
// in a file, but the rasteriser's time rises with the square of their number on
// a line.
const chunk = 64

// rects gathers rectangles of one colour.
type rects struct {
	c    draw.Canvas
	col  color.Color
	path vg.Path
	n    int
}

func (r *rects) add(x vg.Rectangle) {
	addRect(&r.path, x)
	if r.n++; r.n%chunk == 0 {
		r.flush()
	}
}

func (r *rects) flush() {
	if len(r.path) > 0 {
		r.c.SetColor(r.col)
		r.c.Fill(r.path)
		r.path = r.path[:0]
	}
}

func fillRect(c draw.Canvas, col color.Color, r vg.Rectangle) {
	var p vg.Path
	addRect(&p, r)
	c.SetColor(col)
	c.Fill(p)
}

func strokeRect(c draw.Canvas, st draw.LineStyle, r vg.Rectangle) {
	c.StrokeLines(st, []vg.Point{r.Min, {X: r.Max.X, Y: r.Min.Y}, r.Max, {X: r.Min.X, Y: r.Max.Y}, r.Min})
}

// fillArea fills a rectangle with a look.
func fillArea(c draw.Canvas, l look, r vg.Rectangle) {
	if l.lines == plain {
		fillRect(c, l.colour, r)
		return
	}
	fillRect(c, pale(l.colour, 0.3), r)
	hatch(c, draw.LineStyle{Color: l.colour, Width: vg.Points(0.9)}, r, vg.Points(3.5), l.lines == falling)
	strokeRect(c, draw.LineStyle{Color: l.colour, Width: vg.Points(0.5)}, r)
}

// hatch draws slanting lines over a rectangle.
func hatch(c draw.Canvas, st draw.LineStyle, r vg.Rectangle, apart vg.Length, falls bool) {
	h := r.Max.Y - r.Min.Y
	first := vg.Length(math.Floor(float64((r.Min.X-h)/apart))) * apart
	var lines vg.Path
	for x := first; x < r.Max.X; x += apart {
		x0, y0, x1, y1 := x, r.Min.Y, x+h, r.Max.Y
		if x0 < r.Min.X {
			y0 += r.Min.X - x0
			x0 = r.Min.X
		}
		if x1 > r.Max.X {
			y1 -= x1 - r.Max.X
			x1 = r.Max.X
		}
		if x1 <= x0 {
			continue
		}
		if falls {
			y0, y1 = r.Min.Y+r.Max.Y-y0, r.Min.Y+r.Max.Y-y1
		}
		lines.Move(vg.Point{X: x0, Y: y0})
		lines.Line(vg.Point{X: x1, Y: y1})
	}
	if len(lines) > 0 {
		c.SetLineStyle(st)
		c.Stroke(lines)
	}
}

// evenTicks puts a label every 1, 2 or 5 times a power of ten.
type evenTicks struct {
	whole bool // whole numbers only
	most  int  // number of labels, 0 for 14
}

// Ticks implements plot.Ticker.
func (e evenTicks) Ticks(lo, hi float64) []plot.Tick {
	span := hi - lo
	if !(span > 0) || math.IsInf(span, 0) {
		return nil
	}
	most := float64(e.most)
	if most == 0 {
		most = 14
	}
	step := math.Pow(10, math.Floor(math.Log10(span/most)))
	for _, f := range []float64{1, 2, 5, 10} {
		if span/(step*f) <= most {
			step *= f
			break
		}
	}
	if e.whole {
		step = max(step, 1)
	}
	var out []plot.Tick
	for i := math.Ceil(lo/step - 1e-9); i*step <= hi+step*1e-9; i++ {
		out = append(out, plot.Tick{Value: i * step, Label: trimFloat(i * step)})
	}
	return out
}

// logTicks labels 1, 2 and 5 times the powers of ten of a logarithmic axis.
type logTicks struct{}

// Ticks implements plot.Ticker.
func (logTicks) Ticks(lo, hi float64) []plot.Tick {
	if !(lo > 0) || !(hi > lo) || math.IsInf(hi, 0) {
		return nil
	}
	few := math.Log10(hi/lo) > 3
	var out []plot.Tick
	for e := math.Floor(math.Log10(lo)); math.Pow(10, e) <= hi*(1+1e-9); e++ {
		for f := 1; f < 10; f++ {
			v := float64(f) * math.Pow(10, e)
			if v < lo*(1-1e-9) || v > hi*(1+1e-9) {
				continue
			}
			t := plot.Tick{Value: v}
			if f == 1 || !few && (f == 2 || f == 5) {
				t.Label = trimFloat(v)
			}
			out = append(out, t)
		}
	}
	return out
}

// trimFloat writes a number in as few digits as it needs, of at most ten.
func trimFloat(v float64) string {
	if v == 0 {
		return "0" // no minus sign
	}
	if a := math.Abs(v); a >= 1e-4 && a < 1e12 {
		return strconv.FormatFloat(sig(v, 10), 'f', -1, 64)
	}
	return strconv.FormatFloat(v, 'g', 10, 64)
}

// sig rounds to so many digits.
func sig(v float64, digits int) float64 {
	r, err := strconv.ParseFloat(strconv.FormatFloat(v, 'e', digits-1, 64), 64)
	if err != nil {
		return v
	}
	return r
}

// figure writes a number in three or four digits, as labels in figures have.
func figure(v float64) string {
	a := math.Abs(v)
	switch {
	case math.IsNaN(v):
		return "–"
	case v == 0:
		return "0"
	case a >= 100:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case a >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case a >= 0.1:
		return strconv.FormatFloat(v, 'f', 2, 64)
	}
	return strconv.FormatFloat(v, 'g', 2, 64)
}
