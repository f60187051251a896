package plots

import (
	"fmt"
	"image"
	"image/color"
	"math"
	"testing"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"spinesim/sim/des"
)

// ink is a canvas that remembers what is drawn on it, where on the sheet.
type ink struct {
	w, h   vg.Length
	colour color.Color
	at     []matrix
	texts  []inkText
	fills  []inkFill
	lines  []inkFill // strokes
}

type matrix [6]float64 // x' = a x + c y + e, y' = b x + d y + f

func (m matrix) apply(p vg.Point) vg.Point {
	x, y := float64(p.X), float64(p.Y)
	return vg.Point{X: vg.Length(m[0]*x + m[2]*y + m[4]), Y: vg.Length(m[1]*x + m[3]*y + m[5])}
}

func (m matrix) times(n matrix) matrix {
	return matrix{
		m[0]*n[0] + m[2]*n[1], m[1]*n[0] + m[3]*n[1], m[0]*n[2] + m[2]*n[3], m[1]*n[2] + m[3]*n[3],
		m[0]*n[4] + m[2]*n[5] + m[4], m[1]*n[4] + m[3]*n[5] + m[5],
	}
}

// inkText is a text and the rectangle that it covers.
type inkText struct {
	s   string
	box vg.Rectangle
}

// inkFill is a filled area's colour and the rectangle round each of its parts.
type inkFill struct {
	colour color.Color
	boxes  []vg.Rectangle
}

func newInk(size Size) *ink {
	return &ink{w: size.Width, h: size.Height, colour: color.Black, at: []matrix{{1, 0, 0, 1, 0, 0}}}
}

func (c *ink) Size() (w, h vg.Length)              { return c.w, c.h }
func (c *ink) SetLineWidth(vg.Length)              {}
func (c *ink) SetLineDash([]vg.Length, vg.Length)  {}
func (c *ink) SetColor(col color.Color)            { c.colour = col }
func (c *ink) DrawImage(vg.Rectangle, image.Image) {}
func (c *ink) Push()                               { c.at = append(c.at, c.top()) }
func (c *ink) Pop()                                { c.at = c.at[:len(c.at)-1] }
func (c *ink) top() matrix                         { return c.at[len(c.at)-1] }
func (c *ink) move(m matrix)                       { c.at[len(c.at)-1] = c.top().times(m) }
func (c *ink) Rotate(r float64)                    { s, k := math.Sincos(r); c.move(matrix{k, s, -s, k, 0, 0}) }
func (c *ink) Scale(x, y float64)                  { c.move(matrix{x, 0, 0, y, 0, 0}) }
func (c *ink) Translate(p vg.Point)                { c.move(matrix{1, 0, 0, 1, float64(p.X), float64(p.Y)}) }
func (c *ink) Stroke(p vg.Path)                    { c.lines = append(c.lines, inkFill{c.colour, c.parts(p)}) }
func (c *ink) Fill(p vg.Path)                      { c.fills = append(c.fills, inkFill{c.colour, c.parts(p)}) }

func (c *ink) parts(p vg.Path) (out []vg.Rectangle) {
	for _, k := range p {
		if k.Type == vg.CloseComp {
			continue
		}
		q := c.top().apply(k.Pos)
		if k.Type == vg.MoveComp || len(out) == 0 {
			out = append(out, vg.Rectangle{Min: q, Max: q})
			continue
		}
		b := &out[len(out)-1]
		b.Min.X, b.Min.Y = min(b.Min.X, q.X), min(b.Min.Y, q.Y)
		b.Max.X, b.Max.Y = max(b.Max.X, q.X), max(b.Max.Y, q.Y)
	}
	return out
}

func (c *ink) FillString(f font.Face, p vg.Point, s string) {
	e := f.Extents()
	w := f.Width(s)
	var box vg.Rectangle
	for i, q := range []vg.Point{{X: p.X, Y: p.Y - e.Descent*0.7}, {X: p.X + w, Y: p.Y + e.Ascent*0.75}} {
		q = c.top().apply(q)
		if i == 0 {
			box = vg.Rectangle{Min: q, Max: q}
			continue
		}
		box.Min.X, box.Min.Y = min(box.Min.X, q.X), min(box.Min.Y, q.Y)
		box.Max.X, box.Max.Y = max(box.Max.X, q.X), max(box.Max.Y, q.Y)
	}
	c.texts = append(c.texts, inkText{s, box})
}

// drawn draws rows of plots as WriteGrid does.
func drawnOn(size Size, rows [][]*plot.Plot) *ink {
	c := newInk(size)
	lay(draw.New(c), rows)
	return c
}

// text finds a text that was written once.
func (c *ink) text(t *testing.T, s string) inkText {
	t.Helper()
	var found []inkText
	for _, x := range c.texts {
		if x.s == s {
			found = append(found, x)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%q is written %d times", s, len(found))
	}
	return found[0]
}

func (c *ink) has(s string) bool {
	for _, x := range c.texts {
		if x.s == s {
			return true
		}
	}
	return false
}

// boxesOf are the filled areas of a colour.
func (c *ink) boxesOf(col color.Color) (out []vg.Rectangle) {
	for _, f := range c.fills {
		if f.colour == col {
			out = append(out, f.boxes...)
		}
	}
	return out
}

func meet(a, b vg.Rectangle) bool {
	return a.Max.X > b.Min.X && a.Min.X < b.Max.X && a.Max.Y > b.Min.Y && a.Min.Y < b.Max.Y
}

// checkTexts wants every text on the sheet and none over another.
func (c *ink) checkTexts(t *testing.T) {
	t.Helper()
	for i, a := range c.texts {
		if a.box.Min.X < -0.5 || a.box.Min.Y < -0.5 || a.box.Max.X > c.w+0.5 || a.box.Max.Y > c.h+0.5 {
			t.Errorf("%q stands off the sheet: %v", a.s, at(a.box))
		}
		for _, b := range c.texts[:i] {
			if meet(a.box, b.box) {
				t.Errorf("%q at %v and %q at %v overlap", a.s, at(a.box), b.s, at(b.box))
			}
		}
	}
}

func at(r vg.Rectangle) string {
	return fmt.Sprintf("(%.1f,%.1f)–(%.1f,%.1f)", r.Min.X, r.Min.Y, r.Max.X, r.Max.Y)
}

// axisOf is an axis of 500 points over a span of time.
func axisOf(from, to des.Time) func(des.Time) vg.Length {
	return func(t des.Time) vg.Length { return vg.Length(500 * float64(t-from) / float64(to-from)) }
}
