package plots

import (
	"fmt"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"spinesim/sim/des"
	"spinesim/sim/stats"
)

// CDF is the distribution of a quantity in one run: a share P[i] of the values
// lies at or below X[i]. Both rise; the last P is 1.
type CDF struct {
	Name string    `json:"name"`
	X    []float64 `json:"x"`
	P    []float64 `json:"p"`
	N    uint64    `json:"n"`
}

// TimeCDF is the distribution of a histogram of picoseconds, in µs. It has a
// point a bucket, at the bucket's upper end.
func TimeCDF(name string, h *stats.Histogram) CDF {
	c := CDF{Name: name, N: h.N(), X: []float64{}, P: []float64{}}
	var sum uint64
	h.Buckets(func(b stats.Bucket) bool {
		sum += b.Count
		c.X = append(c.X, des.Time(min(b.High, h.Max())).Microseconds())
		c.P = append(c.P, float64(sum)/float64(c.N))
		return true
	})
	return c
}

// Quantile is the value at or below which a share q lies; NaN of no values.
func (c *CDF) Quantile(q float64) float64 {
	for i, p := range c.P {
		if p >= q {
			return c.X[i]
		}
	}
	return math.NaN()
}

// CDFPlot lays the distributions of several runs over each other.
type CDFPlot struct {
	Title  string
	XLabel string
	// Until is the quantile at which the axis ends, 0 for 0.999: a single far
	// value would squeeze all others.
	Until float64
	// Log makes the axis logarithmic.
	Log bool
	// Marks are values on the axis to compare with, such as published ones.
	Marks  []Mark
	Series []CDF
	// Narrow makes the key fit a figure of half the width.
	Narrow bool
}

// Mark is a line at a value of an axis.
type Mark struct {
	Name  string
	Value float64
}

// Plot draws the distributions.
func (d *CDFPlot) Plot() (*plot.Plot, error) {
	p := newPlot(d.Title)
	until := d.Until
	if until == 0 {
		until = 0.999
	}
	lo, hi, far := math.Inf(1), 0.0, ""
	var entries []keyEntry
	var lines []cdfLine
	for i := range d.Series {
		s := &d.Series[i]
		if len(s.X) == 0 || len(s.X) != len(s.P) {
			continue
		}
		lo, hi = min(lo, s.X[0]), max(hi, s.Quantile(until))
		st := lineStyle(len(lines))
		lines = append(lines, cdfLine{s, st})
		entries = append(entries, keyEntry{
			name: fmt.Sprintf("%s: median %s, p99 %s", s.Name, figure(s.Quantile(0.5)), figure(s.Quantile(0.99))), line: &lines[len(lines)-1].st,
		})
		if m := s.X[len(s.X)-1]; m > hi {
			far = fmt.Sprintf("the axis ends at the %s %% quantile; the greatest value is %s", trimFloat(until*100), figure(m))
		}
	}
	if len(lines) == 0 {
		return nil, ErrNoEvents
	}
	for _, m := range d.Marks {
		lo, hi = min(lo, m.Value), max(hi, m.Value)
	}
	if lo >= hi {
		hi = lo + 1
	}
	p.X.Label.Text = d.XLabel
	if d.Log && lo > 0 {
		p.X.Min, p.X.Max = lo/1.1, hi*1.1
		p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, logTicks{}
	} else {
		room := 0.04 * (hi - lo)
		p.X.Min, p.X.Max = max(0, lo-room), hi+room
	}
	p.Y.Label.Text = "share at or below (%)"
	p.Y.Min, p.Y.Max = 0, 1.02
	p.Y.Tick.Marker = upTo{percentTicks{most: 10}, 1}
	if d.Narrow {
		addKeyWithin(p, entries, keyWidth/2)
	} else {
		addKey(p, entries)
	}
	p.Add(grid{true, true})
	for _, l := range lines {
		p.Add(l)
	}
	if len(d.Marks) > 0 {
		p.Add(xMarks(d.Marks))
	}
	switch {
	case far != "" && d.Narrow: // no room for the note beside the label
		p.X.Label.Text += ", up to the " + trimFloat(until*100) + " % quantile"
	case far != "":
		p.Add(note(far))
	}
	return p, nil
}

// dashes tell lines apart where colours cannot.
var dashes = [...][]vg.Length{nil, {6, 2}, {2, 2}, {8, 2, 2, 2}, {4, 4}, {10, 3}, {1, 2}, {6, 2, 2, 2, 2, 2}}

func lineStyle(i int) draw.LineStyle {
	return draw.LineStyle{Color: seriesColour(i), Width: vg.Points(1.4), Dashes: dashes[i%len(dashes)]}
}

type cdfLine struct {
	s  *CDF
	st draw.LineStyle
}

// Plot implements plot.Plotter.
func (l cdfLine) Plot(c draw.Canvas, p *plot.Plot) {
	trX, trY := p.Transforms(&c)
	var pts []vg.Point
	last := 0.0
	add := func(q vg.Point) { // points that lie on each other on paper make large files
		if n := len(pts); n > 1 {
			a, b := pts[n-2], pts[n-1]
			if a.X == b.X && b.X == q.X || a.Y == b.Y && b.Y == q.Y {
				pts[n-1] = q
				return
			}
		}
		pts = append(pts, q)
	}
	for i, x := range l.s.X {
		if x > p.X.Max {
			break
		}
		at := vg.Length(math.Round(float64(trX(max(x, p.X.Min)))*20) / 20)
		if i == 0 {
			add(vg.Point{X: at, Y: trY(0)})
		}
		add(vg.Point{X: at, Y: trY(last)})
		last = l.s.P[i]
		add(vg.Point{X: at, Y: trY(last)})
	}
	if len(pts) > 0 {
		add(vg.Point{X: c.Max.X, Y: trY(last)})
		c.StrokeLines(l.st, pts)
	}
}

// xMarks are dotted vertical lines with their names at the foot.
type xMarks []Mark

// Plot implements plot.Plotter.
func (m xMarks) Plot(c draw.Canvas, p *plot.Plot) {
	trX, _ := p.Transforms(&c)
	st := writing(noteSize, black, draw.XLeft, draw.YBottom)
	st.Rotation = math.Pi / 2
	st.YAlign = draw.YBottom
	for _, mark := range m {
		x := trX(mark.Value)
		if x < c.Min.X-1 || x > c.Max.X+1 {
			continue
		}
		c.StrokeLine2(draw.LineStyle{Color: black, Width: vg.Points(0.8), Dashes: []vg.Length{1, 2}}, x, c.Min.Y, x, c.Max.Y)
		c.FillText(st, vg.Point{X: x - vg.Points(2), Y: c.Min.Y + vg.Points(4)}, mark.Name)
	}
}
