package plots

import (
	"context"
	"errors"
	"fmt"
	"image/color"
	"strings"
	"testing"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"

	"spinesim/sim"
	"spinesim/sim/des"
	"spinesim/traces"
)

const us = des.Microsecond

// hand is a short record made by hand: packet 7 is received, routed and sent,
// packet 6 was being sent before, and packet 8 is received.
func hand() []traces.Record {
	var out []traces.Record
	n := uint64(0)
	box := func(ev traces.Event, packet uint64, from, to des.Time, cause traces.ID) traces.ID {
		n++
		id := traces.MakeID(0, n)
		out = append(out, traces.Record{Kind: traces.KindBox, Event: ev, Packet: packet, Start: from, End: to, ID: id, Cause: cause, Peer: traces.NoCard, Queue: traces.NoQueue})
		return id
	}
	box(traces.PeerToPeerStart, 6, 1*us, 4*us, 0)
	a := box(traces.RxCheckHeader, 7, 6*us, 9*us, 0)
	box(traces.DMAStartHeader, 6, 10*us, 12*us, 0)
	n++
	body := traces.MakeID(0, n)
	out = append(out, traces.Record{Kind: traces.KindReceive, Event: traces.ReceiveBody, Packet: 7, Start: 9 * us, End: 18 * us, ID: body, Cause: a, Queue: traces.NoQueue, Peer: traces.NoCard})
	out = append(out, traces.Record{Kind: traces.KindDepart, Packet: 6, Start: 20 * us, End: 20 * us, Event: traces.NoEvent, Peer: 1, Queue: traces.NoQueue})
	b := box(traces.RxCheckBody, 7, 20*us, 23*us, body)
	c := box(traces.EnqRouterIn, 7, 23*us, 25*us, b)
	d := box(traces.RouterIn, 7, 25*us, 29*us, c)
	e := box(traces.EnqIPOutput, 7, 29*us, 31*us, d)
	out = append(out, traces.Record{Kind: traces.KindPolls, Start: 31 * us, End: 40 * us, Count: 25, Queue: 6, Event: traces.NoEvent, Peer: traces.NoCard})
	box(traces.PeerToPeerStart, 7, 40*us, 43*us, e)
	box(traces.RxCheckHeader, 8, 50*us, 53*us, 0)
	return out
}

func TestEventGraphByHand(t *testing.T) {
	g := EventGraph{Title: "By hand", From: 5 * us, To: 60 * us, Trace: 7}
	p, err := g.Plot(hand())
	if err != nil {
		t.Fatal(err)
	}
	c := drawnOn(Wide, [][]*plot.Plot{{p}})
	// The published rows, from the bottom up.
	last := inkText{}
	for e := range traces.NumFigureEvents {
		x := c.text(t, traces.Event(e).String())
		if e > 0 && x.box.Min.Y <= last.box.Max.Y-1 {
			t.Errorf("row %v does not stand above row %v", traces.Event(e), traces.Event(e-1))
		}
		last = x
	}
	for _, label := range []string{"Receive Packet 1", "DMA Packet 0", "Route 1", "By hand", "Time (µs)", "Event type", "card 0, 0 is 0.005 ms of the run, packet 1 is packet 7"} {
		if strings.HasPrefix(label, "Route") {
			if !c.has("Route Packet 1") && !c.has(label) && !(c.has("Route") && c.has("Packet 1")) {
				t.Errorf("the route of packet 1 has no label in %v", c.texts)
			}
			continue
		}
		if !c.has(label) {
			t.Errorf("no %q among %v", label, c.texts)
		}
	}
	c.checkTexts(t)

	// Boxes are as wide as events are long: the router handler's is 4 of 55 µs.
	b, err := g.gather(hand())
	if err != nil {
		t.Fatal(err)
	}
	if len(b.boxes) != 8 {
		t.Errorf("%d boxes, want the 8 that touch the window", len(b.boxes))
	}
	dark := color.NRGBA{40, 40, 40, 255}
	x := c.boxesOf(dark)
	if len(x) < 9 {
		t.Fatalf("%d dark boxes, want 8 and the poll that hit", len(x))
	}
	width := 0.0
	for _, r := range x {
		width = max(width, float64(r.Max.X-r.Min.X))
	}
	var rx, route float64
	for _, r := range x {
		switch y := (r.Min.Y + r.Max.Y) / 2; {
		case near(y, c.text(t, "Router In handler").box):
			route = float64(r.Max.X - r.Min.X)
		case near(y, c.text(t, "Rx check header").box):
			rx = float64(r.Max.X - r.Min.X)
		}
	}
	if route/rx < 1.30 || route/rx > 1.37 {
		t.Errorf("boxes of 4 and 3 µs are %.2f and %.2f wide", route, rx)
	}

	// Arrows: the chain of causes passes over the receive engine.
	var got []string
	for _, a := range b.path {
		got = append(got, fmt.Sprintf("%v → %v", a.from.Event, a.to.Event))
	}
	want := []string{
		"Rx check header → Rx check body", "Rx check body → EnQ router in", "EnQ router in → Router In handler",
		"Router In handler → EnQ IP output", "EnQ IP output → Peer to peer start",
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("arrows %q, want %q", got, want)
	}
}

func TestEventGraphNumbers(t *testing.T) {
	for _, tc := range []struct {
		name  string
		g     EventGraph
		first uint64
	}{
		{"the first receive is packet 1", EventGraph{From: 5 * us, To: 60 * us}, 7},
		{"as asked", EventGraph{From: 5 * us, To: 60 * us, First: 3}, 3},
		{"never below 0", EventGraph{From: 13 * us, To: 60 * us}, 7},     // packet 6 is still being sent
		{"without a receive", EventGraph{From: 24 * us, To: 45 * us}, 8}, // packet 7 is packet 0
	} {
		b, err := tc.g.gather(hand())
		if err != nil {
			t.Fatal(tc.name, err)
		}
		if b.first != tc.first {
			t.Errorf("%s: packet 1 is packet %d, want %d", tc.name, b.first, tc.first)
		}
	}
}

func TestEventGraphMistakes(t *testing.T) {
	if _, err := (&EventGraph{From: 5, To: 5}).Plot(hand()); err == nil {
		t.Error("an empty window is drawn")
	}
	for _, g := range []EventGraph{{From: 0, To: us / 2}, {From: 0, To: 60 * us, Card: 3}} {
		if _, err := g.Plot(hand()); !errors.Is(err, ErrNoEvents) {
			t.Errorf("%+v: %v, want ErrNoEvents", g, err)
		}
	}
}

// replay is a run at a rate that makes the pipeline oscillate, for all tests.
func replay(t *testing.T, settings ...string) *sim.Replay {
	t.Helper()
	sc, err := sim.Load("fig6.4", append([]string{"traffic.packets=2000", "traffic.arrivals.rate=15000 packets/s"}, settings...)...)
	if err != nil {
		t.Fatal(err)
	}
	r, err := sim.RunReplay(context.Background(), sc, sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestEventGraphLegible: at every length from 60 µs to 13 ms, no text lies over
// another, none over a box, and packets have numbers. With a ring of buffers,
// and a single packet in each hand, steps of different packets overlap too.
func TestEventGraphLegible(t *testing.T) {
	for name, settings := range map[string][]string{
		"split": nil, "ring": {"firmware.receive=ring", "traffic.sizes.kind=imix", "traffic.arrivals.process=saturating", "policy=pci-first"},
	} {
		r := replay(t, settings...)
		for _, style := range []Style{Thesis, Coloured} {
			for _, span := range []des.Time{60 * us, 130 * us, 400 * us, des.Millisecond, 4 * des.Millisecond, 13 * des.Millisecond} {
				for _, from := range []des.Time{r.Best.From, r.Slow.From, r.Span.From} {
					from = min(from, r.Span.To-span)
					g := EventGraph{Title: "SPINE IP router event graph", Card: r.Ingress, From: from, To: from + span, Style: style, Trace: r.Slow.Packet}
					ok := t.Run(fmt.Sprintf("%s/%d/%v/%v", name, style, span, from), func(t *testing.T) { checkLegible(t, &g, r.Records) })
					if !ok {
						return
					}
				}
			}
		}
	}
}

func checkLegible(t *testing.T, g *EventGraph, records []traces.Record) {
	p, err := g.Plot(records)
	if err != nil {
		t.Fatal(err)
	}
	c := drawnOn(Wide, [][]*plot.Plot{{p}})
	c.checkTexts(t)
	numbered := 0
	bottom := c.text(t, "Poll Q0").box
	for _, x := range c.texts {
		if x.box.Min.X < bottom.Max.X || x.box.Min.Y < bottom.Max.Y || !isLabel(x.s) {
			continue
		}
		numbered++
		for e := range traces.NumFigureEvents {
			for _, box := range c.boxesOf((&eventBoxes{g: g}).colour(traces.Event(e))) {
				if meet(x.box, box) && box.Max.X-box.Min.X < 300 {
					t.Fatalf("label %q at %v hides a box at %v", x.s, at(x.box), at(box))
				}
			}
		}
	}
	if numbered < 3 {
		t.Errorf("only %d labels of packets", numbered)
	}
}

// TestLabelsOfOverlappingSteps: where the steps of packets overlap in time, each
// label finds a place of its own or is left out.
func TestLabelsOfOverlappingSteps(t *testing.T) {
	var recs []traces.Record
	for k := range des.Time(4) {
		for i, ev := range []traces.Event{traces.RxCheckHeader, traces.RxCheckBody, traces.EnqRouterIn} {
			from := k*8*us + des.Time(i)*20*us
			recs = append(recs, traces.Record{Kind: traces.KindBox, Event: ev, Packet: uint64(k + 1), Start: from, End: from + 3*us})
		}
	}
	g := EventGraph{From: 0, To: 100 * us}
	checkLegible(t, &g, recs)
}

// isLabel tells the labels of steps from the names of the key.
func isLabel(s string) bool {
	return strings.ContainsAny(s, "0123456789") && !strings.Contains(s, "of the run")
}

// near tells whether a place is within a row.
func near(y vg.Length, row vg.Rectangle) bool { return y > row.Min.Y-2 && y < row.Max.Y+2 }
