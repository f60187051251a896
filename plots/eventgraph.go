package plots

import (
	"errors"
	"fmt"
	"slices"
	"sort"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"

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

// EventGraph says what an event graph shows: the 19 events of Figure 6.4
// (thesis p.107) as rows in the published order, a box at each occurrence as
// wide as the event is long, a dashed rectangle round each high-level step of a
// packet, and arrows along the causal path of one packet.
//
// Above the boxes of each step the rectangle has a strip for its label, so that
// no label hides a box; labels that find no room there are left out, and where
// rectangles become too narrow for dashes they are drawn as pale bands.
type EventGraph struct {
	Title string
	Card  uint8
	// From and To bound the time shown; the axis starts at 0.
	From, To des.Time
	Style    Style
	// Trace is the packet whose causal path is drawn with arrows; 0 is none.
	Trace uint64
	// First is the packet that labels call 1. 0 is the first whose receive
	// begins in the window, or a later one where packets before it would get
	// numbers below 0.
	First uint64
}

// ErrNoEvents says that the window holds nothing to draw.
var ErrNoEvents = errors.New("no events of the card in the window")

// highLevel are the three high-level steps of a packet, each with its rows
// (thesis p.108).
var highLevel = [...]struct {
	name      string
	low, high traces.Event
	step      traces.Step
	lines     float64 // lines of text in the strip for labels
}{
	{"Receive", traces.RxCheckHeader, traces.EnqRouterIn, traces.StepReceive, 1},
	{"Route", traces.RouterIn, traces.EnqIPOutput, traces.StepRoute, 2},
	{"DMA", traces.PeerToPeerStart, traces.DMAStartHeader, traces.StepDMA, 1},
}

// stripLine is the height of one line of labels, in rows.
const stripLine = 0.5

// rows are the heights of the 19 rows' middles; above each step's rows there
// is room for its labels.
var rows = func() (y [traces.NumFigureEvents]float64) {
	at := 0.0
	for e := range y {
		y[e] = at
		at++
		for _, h := range highLevel {
			if int(h.high) == e {
				at += h.lines*stripLine + 0.15
			}
		}
	}
	return y
}()

const (
	boxHalf  = 0.28 // half the height of a box, in rows
	edgeRoom = 0.42 // from a row's middle to the edge of a rectangle below it
	edgeTop  = 0.34 // from a row's middle to the strip above it
)

func stripBottom(k int) float64 { return rows[highLevel[k].high] + edgeTop }
func stripTop(k int) float64    { return stripBottom(k) + highLevel[k].lines*stripLine }

// packetStep is a dashed rectangle: one high-level step of one packet.
type packetStep struct {
	kind       int // index into highLevel
	packet     uint64
	start, end des.Time
}

// Plot draws the event graph of records, which must cover the window. Runs of
// polls whose polls are not recorded one by one are drawn as pale bands over
// the rows of all queues, and their hit as a box.
func (g *EventGraph) Plot(records []traces.Record) (*plot.Plot, error) {
	b, err := g.gather(records)
	if err != nil {
		return nil, err
	}
	p := newPlot(g.Title)
	p.X.Label.Text = "Time (µs)"
	p.X.Min, p.X.Max = 0, (g.To - g.From).Microseconds()
	p.Y.Label.Text = "Event type"
	p.Y.Min, p.Y.Max = -0.6, stripTop(len(highLevel)-1)+0.3
	var ticks []plot.Tick
	for e, y := range rows {
		ticks = append(ticks, plot.Tick{Value: y, Label: traces.Event(e).String()})
	}
	p.Y.Tick.Marker = plot.ConstantTicks(ticks)
	if g.Style == Coloured {
		addKey(p, []keyEntry{
			{name: "receive", look: look{colour: stepColours[traces.StepReceive]}},
			{name: "route", look: look{colour: stepColours[traces.StepRoute]}},
			{name: "DMA over PCI", look: look{colour: stepColours[traces.StepDMA]}},
			{name: "flow control", look: look{colour: stepColours[traces.StepFlow]}},
			{name: "polls", look: look{colour: stepColours[traces.StepPoll]}},
		})
	}
	p.Add(b, note(b.origin()))
	return p, nil
}

// gather takes from the records what is drawn.
func (g *EventGraph) gather(records []traces.Record) (*eventBoxes, error) {
	if g.To <= g.From {
		return nil, fmt.Errorf("window from %v to %v is empty", g.From, g.To)
	}
	b := &eventBoxes{g: g}
	var runs []traces.Record
	received := map[uint64]des.Time{}
	for i := range records {
		r := &records[i]
		if r.Card != g.Card || r.End <= g.From || r.Start >= g.To {
			continue
		}
		switch r.Kind {
		case traces.KindPolls:
			runs = append(runs, *r)
		case traces.KindBox, traces.KindPoll:
			if int(r.Event) >= traces.NumFigureEvents {
				continue
			}
			b.boxes = append(b.boxes, *r)
			if r.Event == traces.RxCheckHeader && r.Start >= g.From {
				if _, ok := received[r.Packet]; !ok {
					received[r.Packet] = r.Start
				}
			}
		}
	}
	b.runs = g.unexpanded(runs, b.boxes)
	if len(b.boxes) == 0 && len(b.runs) == 0 {
		return nil, ErrNoEvents
	}
	b.steps = g.findSteps(records)
	b.first = g.number(received, b.steps)
	b.path = g.findPath(records)
	return b, nil
}

// unexpanded are the runs of polls that have no poll of their own.
func (g *EventGraph) unexpanded(runs, boxes []traces.Record) []traces.Record {
	var polls []des.Time // starts
	for i := range boxes {
		if boxes[i].Kind == traces.KindPoll {
			polls = append(polls, boxes[i].Start)
		}
	}
	slices.Sort(polls)
	var out []traces.Record
	for _, r := range runs {
		i, _ := slices.BinarySearch(polls, max(r.Start, g.From)-(r.End-r.Start))
		expanded := false
		for ; i < len(polls) && polls[i] < r.End; i++ {
			if polls[i] >= r.Start {
				expanded = true
				break
			}
		}
		if !expanded {
			out = append(out, r)
		}
	}
	return out
}

// number chooses the packet that labels call 1.
func (g *EventGraph) number(received map[uint64]des.Time, steps []packetStep) uint64 {
	if g.First != 0 {
		return g.First
	}
	first, at := uint64(0), des.MaxTime
	for p, t := range received {
		if t < at || t == at && p < first {
			first, at = p, t
		}
	}
	for _, s := range steps {
		if first == 0 || s.packet+1 < first { // the figure begins with packet 0
			first = s.packet + 1
		}
	}
	return first
}

// origin says which part of the run is shown.
func (b *eventBoxes) origin() string {
	s := fmt.Sprintf("card %d, 0 is %s of the run", b.g.Card, moment(b.g.From))
	if b.first > 0 && len(b.steps) > 0 {
		s += fmt.Sprintf(", packet 1 is packet %d", b.first)
	}
	return s
}

// moment writes a time of a run: to the microsecond, in ms.
func moment(t des.Time) string { return fmt.Sprintf("%.3f ms", t.Microseconds()/1000) }

// findSteps finds the high-level steps that touch the window, from all records.
func (g *EventGraph) findSteps(records []traces.Record) []packetStep {
	type key struct {
		packet uint64
		kind   int
	}
	at := map[key]int{}
	var out []packetStep
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
		for k, h := range highLevel {
			if r.Event < h.low || r.Event > h.high {
				continue
			}
			j, ok := at[key{r.Packet, k}]
			if !ok {
				j = len(out)
				at[key{r.Packet, k}] = j
				out = append(out, packetStep{kind: k, packet: r.Packet, start: r.Start, end: r.End})
			}
			out[j].start, out[j].end = min(out[j].start, r.Start), max(out[j].end, r.End)
		}
	}
	out = slices.DeleteFunc(out, func(s packetStep) bool { return s.end <= g.From || s.start >= g.To })
	sort.SliceStable(out, func(i, j int) bool { return out[i].start < out[j].start })
	return out
}

// arrow leads from the end of a box to the start of the one it caused.
type arrow struct{ from, to *traces.Record }

// findPath is the causal path of the traced packet on the card: an arrow for
// each of its boxes, from the box that lies before it in the chain of causes
// (transfers and engines in between are passed over), or where the record does
// not hold the chain, from the packet's box before it.
func (g *EventGraph) findPath(records []traces.Record) []arrow {
	if g.Trace == 0 {
		return nil
	}
	byID := map[traces.ID]*traces.Record{}
	var boxes []*traces.Record
	for i := range records {
		r := &records[i]
		if r.Packet != g.Trace || r.Card != g.Card {
			continue
		}
		if r.ID != 0 {
			byID[r.ID] = r
		}
		if isPathBox(r) {
			boxes = append(boxes, r)
		}
	}
	var out []arrow
	for i, r := range boxes {
		from := byID[r.Cause]
		for hops := 0; from != nil && !isPathBox(from) && hops < len(byID); hops++ {
			from = byID[from.Cause]
		}
		if (from == nil || !isPathBox(from)) && i > 0 {
			from = boxes[i-1]
		}
		if from != nil && from != r && isPathBox(from) && r.Start < g.To && from.End > g.From {
			out = append(out, arrow{from, r})
		}
	}
	return out
}

// isPathBox tells the boxes that arrows join: those of the three steps.
func isPathBox(r *traces.Record) bool {
	return r.Kind == traces.KindBox && r.Event >= traces.RxCheckHeader && int(r.Event) < traces.NumFigureEvents
}

// width and height on paper of one event graph.
type place struct {
	x func(des.Time) vg.Length
	y func(float64) vg.Length
}
