package plots

import (
	"image/color"
	"math"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// labeller writes names beside points where they cover neither each other nor
// a point, and leaves out those for which there is no room.
type labeller struct {
	c     draw.Canvas
	taken []vg.Rectangle
}

func newLabeller(c draw.Canvas) *labeller { return &labeller{c: c} }

// keepClear keeps labels off a point.
func (l *labeller) keepClear(at vg.Point, r vg.Length) {
	l.taken = append(l.taken, vg.Rectangle{Min: vg.Point{X: at.X - r, Y: at.Y - r}, Max: vg.Point{X: at.X + r, Y: at.Y + r}})
}

// label writes a name beside a point, if there is room.
func (l *labeller) label(at vg.Point, name string, col color.Color) bool {
	if name == "" {
		return false
	}
	st := writing(noteSize, col, draw.XCenter, draw.YCenter)
	w, h := st.Width(name)/2, vg.Points(noteSize)*0.55
	const away = 6.0
	for _, d := range [][2]float64{{1, 0}, {1, 1}, {0, 1}, {-1, 1}, {-1, 0}, {-1, -1}, {0, -1}, {1, -1}, {0, 2}, {0, -2}, {1, 2}, {1, -2}, {-1, 2}, {-1, -2}} {
		mid := vg.Point{X: at.X, Y: at.Y + vg.Points(d[1]*away)}
		if d[0] != 0 {
			mid.X += vg.Length(math.Copysign(float64(w+vg.Points(away)), d[0]))
		} else {
			mid.Y += vg.Length(math.Copysign(float64(h), d[1]))
		}
		box := vg.Rectangle{Min: vg.Point{X: mid.X - w, Y: mid.Y - h}, Max: vg.Point{X: mid.X + w, Y: mid.Y + h}}
		if box.Min.X < l.c.Min.X || box.Max.X > l.c.Max.X || box.Min.Y < l.c.Min.Y || box.Max.Y > l.c.Max.Y || l.hits(box) {
			continue
		}
		l.taken = append(l.taken, box)
		l.c.FillText(st, mid, name)
		return true
	}
	return false
}

func (l *labeller) hits(b vg.Rectangle) bool {
	for _, t := range l.taken {
		if t.Max.X > b.Min.X && t.Min.X < b.Max.X && t.Max.Y > b.Min.Y && t.Min.Y < b.Max.Y {
			return true
		}
	}
	return false
}

// star is a glyph of five points.
type star struct{}

// DrawGlyph implements draw.GlyphDrawer.
func (star) DrawGlyph(c *draw.Canvas, st draw.GlyphStyle, at vg.Point) {
	var p vg.Path
	for i := range 10 {
		r := st.Radius
		if i%2 == 1 {
			r *= 0.4
		}
		a := math.Pi/2 + float64(i)*math.Pi/5
		q := vg.Point{X: at.X + r*vg.Length(math.Cos(a)), Y: at.Y + r*vg.Length(math.Sin(a))}
		if i == 0 {
			p.Move(q)
		} else {
			p.Line(q)
		}
	}
	p.Close()
	c.SetColor(st.Color)
	c.Fill(p)
}
