package plots

import (
	"fmt"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"spinesim/sim/des"
	"spinesim/traces"
)

// GanttSpan is one piece of work of a repeating cycle, for one packet.
type GanttSpan struct {
	Lane int // index into Gantt.Lanes
	// Start is counted from the packet's own cycle; it may lie beyond the
	// period, where the packet is worked on while the next ones come in.
	Start, Length des.Time
	Label         string
	Step          traces.Step // for the colour
}

// Gantt draws a repeating cycle: what every unit does at which time, with the
// work of one packet in full colour and that of its neighbours pale.
type Gantt struct {
	Title  string
	Period des.Time
	Cycles int // shown; 0 for as many as one packet takes, and one more
	// Packets of a cycle; 0 and 1 are one.
	Packets int
	Lanes   []string
	Spans   []GanttSpan
}

// Plot draws the cycle.
func (g *Gantt) Plot() (*plot.Plot, error) {
	if g.Period <= 0 || len(g.Lanes) == 0 || len(g.Spans) == 0 {
		return nil, ErrNoEvents
	}
	var depth des.Time
	for i, s := range g.Spans {
		if s.Lane < 0 || s.Lane >= len(g.Lanes) {
			return nil, fmt.Errorf("span %d (%s) is on lane %d of %d", i, s.Label, s.Lane, len(g.Lanes))
		}
		if s.Start < 0 || s.Length < 0 {
			return nil, fmt.Errorf("span %d (%s) starts at %v and lasts %v", i, s.Label, s.Start, s.Length)
		}
		depth = max(depth, s.Start+s.Length)
	}
	stages := int((depth + g.Period - 1) / g.Period)
	cycles := g.Cycles
	if cycles == 0 {
		cycles = stages + 1
	}
	p := newPlot(g.Title)
	p.X.Label.Text = "Time (µs)"
	p.X.Min, p.X.Max = 0, (g.Period * des.Time(cycles)).Microseconds()
	p.Y.Min, p.Y.Max = -float64(len(g.Lanes))+0.4, 0.6
	var ticks []plot.Tick
	for i, l := range g.Lanes {
		ticks = append(ticks, plot.Tick{Value: -float64(i), Label: l})
	}
	p.Y.Tick.Marker = plot.ConstantTicks(ticks)
	p.Y.Tick.Length = 0
	var entries []keyEntry
	seen := [traces.NumSteps]bool{}
	for _, s := range g.Spans {
		if int(s.Step) < len(seen) && !seen[s.Step] && s.Step != traces.StepNone {
			seen[s.Step] = true
		}
	}
	for s, ok := range seen {
		if ok {
			entries = append(entries, keyEntry{name: stepName(traces.Step(s)), look: look{colour: stepColours[s]}})
		}
	}
	addKey(p, entries)
	every := fmt.Sprintf("a packet every %s µs; in full colour the packet that enters at 0", figure(g.Period.Microseconds()))
	if g.Packets > 1 {
		every = fmt.Sprintf("%d packets every %s µs; in full colour one cycle's work", g.Packets, figure(g.Period.Microseconds()))
	}
	p.Add(&ganttSpans{g, cycles, stages}, note(every))
	return p, nil
}

func stepName(s traces.Step) string {
	if s == traces.StepDMA {
		return "DMA"
	}
	return s.String()
}

type ganttSpans struct {
	g              *Gantt
	cycles, stages int
}

// Plot implements plot.Plotter.
func (s *ganttSpans) Plot(c draw.Canvas, p *plot.Plot) {
	trX, trY := p.Transforms(&c)
	for i := range s.cycles {
		x := trX((s.g.Period * des.Time(i)).Microseconds())
		if i%2 == 1 {
			end := trX((s.g.Period * des.Time(i+1)).Microseconds())
			fillRect(c, pale(black, 0.035), vg.Rectangle{Min: vg.Point{X: x, Y: c.Min.Y}, Max: vg.Point{X: end, Y: c.Max.Y}})
		}
		c.StrokeLine2(draw.LineStyle{Color: midGrey, Width: vg.Points(0.6), Dashes: []vg.Length{3, 2}}, x, c.Min.Y, x, c.Max.Y)
	}
	for i := range s.g.Lanes {
		y := trY(-float64(i) - 0.5)
		c.StrokeLine2(draw.LineStyle{Color: lightGrey, Width: vg.Points(0.3)}, c.Min.X, y, c.Max.X, y)
	}
	const half = 0.38
	for n := -s.stages; n < s.cycles; n++ {
		shift := s.g.Period * des.Time(n)
		for _, sp := range s.g.Spans {
			from, to := (sp.Start + shift).Microseconds(), (sp.Start + sp.Length + shift).Microseconds()
			if to <= p.X.Min || from >= p.X.Max {
				continue
			}
			col := stepColours[traces.StepNone]
			if int(sp.Step) < len(stepColours) {
				col = stepColours[sp.Step]
			}
			fill, edge := col, draw.LineStyle{Color: white, Width: vg.Points(0.5)}
			if n != 0 {
				fill, edge.Color = pale(col, 0.28), pale(col, 0.6)
			}
			r := vg.Rectangle{
				Min: vg.Point{X: trX(max(from, p.X.Min)), Y: trY(-float64(sp.Lane) - half)},
				Max: vg.Point{X: trX(min(to, p.X.Max)), Y: trY(-float64(sp.Lane) + half)},
			}
			fillRect(c, fill, r)
			strokeRect(c, edge, r)
			label := sp.Label
			st := writing(noteSize-0.5, contrast(fill), draw.XCenter, draw.YCenter)
			if st.Width(label)+vg.Points(3) > r.Max.X-r.Min.X {
				// Upright, if it fits that way.
				if st.Width(label)+vg.Points(3) > r.Max.Y-r.Min.Y || st.Height(label)+vg.Points(2) > r.Max.X-r.Min.X {
					continue
				}
				st.Rotation = quarter
			}
			c.FillText(st, vg.Point{X: (r.Min.X + r.Max.X) / 2, Y: (r.Min.Y + r.Max.Y) / 2}, label)
		}
	}
}

const quarter = 1.5707963267948966 // turn, in radians
