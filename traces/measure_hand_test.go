package traces

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"spinesim/sim/des"
)

// hand writes records with times in µs, in any order.
type hand struct{ recs []Record }

func us(t float64) des.Time { return des.Time(math.Round(t * 1e6)) }

func (h *hand) add(r Record, start, end float64) *Record {
	r.Start, r.End = us(start), us(end)
	if r.Kind != KindBox && r.Kind != KindTransfer && r.Kind != KindWait {
		r.Ready = r.Start
	}
	h.recs = append(h.recs, r)
	return &h.recs[len(h.recs)-1]
}

func (h *hand) box(card uint8, e Event, packet uint64, start, end float64) *Record {
	r := h.add(Record{Kind: KindBox, Event: e, Card: card, Packet: packet, Queue: 6}, start, end)
	r.Ready = r.Start
	return r
}

func (h *hand) polls(card uint8, n uint32, q uint8, start, end float64) {
	h.add(Record{Kind: KindPolls, Event: NoEvent, Card: card, Count: n, Queue: q}, start, end)
}

func (h *hand) transfer(card uint8, e Event, packet uint64, ready, grant, end float64) {
	h.add(Record{Kind: KindTransfer, Event: e, Card: card, Packet: packet, Queue: NoQueue, Ready: us(ready)}, grant, end)
}

func (h *hand) engine(card uint8, k Kind, e Event, packet uint64, start, end float64) {
	h.add(Record{Kind: k, Event: e, Card: card, Packet: packet, Queue: NoQueue}, start, end)
}

func (h *hand) at(card uint8, k Kind, packet uint64, t float64) *Record {
	return h.add(Record{Kind: k, Event: NoEvent, Card: card, Packet: packet, Queue: NoQueue}, t, t)
}

func (h *hand) backlog(card uint8, n uint32, t float64) {
	h.add(Record{Kind: KindLevel, Event: LevelBacklog, Card: card, Count: n}, t, t)
}

func (h *hand) wait(card uint8, why Reason, packet uint64, start, ready, end float64) {
	h.add(Record{Kind: KindWait, Event: NoEvent, Card: card, Packet: packet, Reason: why, Ready: us(ready)}, start, end)
}

func (h *hand) sorted() []Record {
	slices.SortStableFunc(h.recs, func(a, b Record) int {
		if a.End != b.End {
			return int(min(1, max(-1, a.End-b.End)))
		}
		return int(a.Card) - int(b.Card)
	})
	return h.recs
}

// handFast is four packets in step, one every 50 µs, in at card 0 and out at
// card 1. For packet k, all times + 50k:
//
//	enters 8, Rx check header 10–13, Rx check body 15–18, EnQ router in 18–20,
//	Router In handler 20–24, EnQ IP output 24–26, waits (backlog 1) 26–28,
//	Peer to peer start 28–31, DMA start handler 31–33, DMA generic start 33–35,
//	DMA start body 35–37, body: asked 37, granted 38, done 48,
//	DMA start header 50–52, header: asked 52, granted 52.5, done 54 = departure,
//	card 1: Wire output start 56–59, send 59–70, Wire output done 70–72,
//	ACK send 72–74, ACK 74–75, card 0: Peer ACK 76–78, Free buffer 89–91.
//
// The receive engine takes 1 µs for a header and 2 for a body. Card 0 polls
// where it runs no handler.
func handFast() []Record {
	h := &hand{}
	h.polls(0, 10, 1, 0, 10)
	for k := range 4 {
		o, p := 50*float64(k), uint64(k+1)
		h.at(0, KindEnter, p, 8+o)
		h.engine(0, KindReceive, ReceiveHeader, p, 8+o, 9+o)
		h.box(0, RxCheckHeader, p, 10+o, 13+o).Ready = us(9 + o)
		h.engine(0, KindReceive, ReceiveBody, p, 13+o, 15+o)
		h.polls(0, 2, 1, 13+o, 15+o)
		h.box(0, RxCheckBody, p, 15+o, 18+o)
		h.box(0, EnqRouterIn, p, 18+o, 20+o)
		h.box(0, RouterIn, p, 20+o, 24+o)
		h.box(0, EnqIPOutput, p, 24+o, 26+o)
		h.backlog(0, 1, 26+o)
		h.backlog(0, 0, 28+o)
		h.box(0, PeerToPeerStart, p, 28+o, 31+o)
		h.box(0, DMAStartHandler, p, 31+o, 33+o)
		h.box(0, DMAGenericStart, p, 33+o, 35+o)
		h.box(0, DMAStartBody, p, 35+o, 37+o)
		h.transfer(0, TransferBody, p, 37+o, 38+o, 48+o)
		h.box(0, DMAStartHeader, p, 50+o, 52+o).Ready = us(48 + o)
		h.transfer(0, TransferHeader, p, 52+o, 52.5+o, 54+o)
		h.at(0, KindDepart, p, 54+o).Peer = 1
		h.box(1, WireOutputStart, p, 56+o, 59+o)
		h.engine(1, KindSend, SendPacket, p, 59+o, 70+o)
		h.at(1, KindLeave, p, 70+o).Verdict = VerdictForwarded
		h.box(1, WireOutputDone, p, 70+o, 72+o)
		h.box(1, AckSend, p, 72+o, 74+o)
		h.transfer(1, TransferAck, p, 74+o, 74+o, 75+o)
		h.box(0, PeerAck, p, 76+o, 78+o)
		h.box(0, FreeBuffer, p, 89+o, 91+o)
		if k == 0 {
			h.polls(0, 2, 6, 26, 28)
			h.polls(0, 13, 6, 37, 50)
		} else { // the packet before it comes back
			h.polls(0, 2, 0, 37+o, 39+o)
			h.polls(0, 9, 6, 41+o, 50+o)
		}
		if k < 3 {
			h.polls(0, 8, 1, 52+o, 60+o)
		}
	}
	return h.sorted()
}

func near(t *testing.T, what string, got Real, want float64) {
	t.Helper()
	if !(math.Abs(float64(got)-want) <= 1e-9) {
		t.Errorf("%s: %v, want %v", what, float64(got), want)
	}
}

// within allows for a histogram's buckets.
func within(t *testing.T, what string, got Real, want float64) {
	t.Helper()
	if !(math.Abs(float64(got)-want) <= coarseError*want) {
		t.Errorf("%s: %v, want %v", what, float64(got), want)
	}
}

func TestMeasuresByHand(t *testing.T) {
	m, err := NewMeasures(MeasureSpec{})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range handFast() {
		if err := m.Record(&r); err != nil {
			t.Fatal(err)
		}
	}
	r, err := m.Finish(us(250))
	if err != nil {
		t.Fatal(err)
	}
	if r.Received != 4 || r.Forwarded != 4 || r.ToHost != 0 || len(r.Dropped) != 0 {
		t.Errorf("%d received, %d forwarded, %d to the host, dropped %v", r.Received, r.Forwarded, r.ToHost, r.Dropped)
	}

	// Departures at 54, 104, 154, 204: three gaps of 50.
	near(t, "gap", r.Gap.Mean, 50)
	near(t, "gap p50", r.Gap.P50, 50)
	if r.Gap.N != 3 || r.Gap.CI95.OK() || r.Gap.Short == "" {
		t.Errorf("gap %+v: three gaps have no interval", r.Gap.Distribution)
	}
	// Receives start at 10, 60, 110, 160, with one DMA start between each two
	// and never more than one packet waiting: one window with three periods.
	near(t, "best case", r.Gap.BestCase, 50)
	if r.Gap.BestCaseN != 3 {
		t.Errorf("%d fast periods, want 3", r.Gap.BestCaseN)
	}
	near(t, "fast share", r.FastShare, 150.0/250)
	near(t, "fast packets", r.FastPackets, 1)

	// 10 to 54; the fourth departs at 204, behind the window's end at 160.
	near(t, "ingress latency", r.Latency.Ingress.Mean, 44)
	near(t, "fast latency", r.Latency.Ingress.Fast, 44)
	if r.Latency.Ingress.N != 4 || r.Latency.Ingress.FastN != 3 {
		t.Errorf("%d latencies, %d fast, want 4 and 3", r.Latency.Ingress.N, r.Latency.Ingress.FastN)
	}
	near(t, "upstream", r.Latency.Upstream.Mean, 2) // 8 to 10
	near(t, "total", r.Latency.Total.Mean, 62)      // 8 to 70

	// One receive between any two of the four starts.
	near(t, "receive run", r.ReceiveRun.Mean, 1)
	if diff := cmp.Diff([]uint64{0, 3}, r.ReceiveRun.Counts); diff != "" || r.ReceiveRun.Max != 1 || r.ReceiveRun.ShareOver1 != 0 {
		t.Errorf("receive runs %+v: %s", r.ReceiveRun, diff)
	}

	// 2 µs of backlog 1 a packet, in 250 µs; the engine idle meanwhile. That is
	// far below the 10.92 µs of a slow spell. The processor polled for the
	// first packet and ran Peer ACK for the others.
	near(t, "backlog", r.Backlog.Mean, 8.0/250)
	near(t, "slow", r.SlowShare, 0)
	near(t, "bubbles", r.BubbleShare, 8.0/250)
	near(t, "bubbles: polls", r.Bubbles.Polls, 2.0/250)
	near(t, "bubbles: flow control", r.Bubbles.FlowControl, 6.0/250)

	// 28 to 54: handlers 3+2+2+2+2, bus wait 1+0.5, transfer 10+1.5, and from
	// 48 to 50 the processor polls its way to DMA start header.
	d := r.DMAStep
	near(t, "DMA step", d.Mean, 26)
	near(t, "DMA step: handlers", d.Handlers, 11)
	near(t, "DMA step: transfer", d.Transfer, 11.5)
	near(t, "DMA step: bus wait", d.BusWait, 1.5)
	near(t, "DMA step: polls", d.Polls, 2)
	near(t, "DMA step: interruptions", d.Interruptions, 0)

	// Receive 3+3+2, route 4+2, DMA 11, output 3+2, flow control 2+2+2.
	o := r.Occupancy
	near(t, "occupancy", o.Mean, 36)
	near(t, "occupancy: receive", o.Receive, 8)
	near(t, "occupancy: route", o.Route, 6)
	near(t, "occupancy: DMA", o.DMA, 11)
	near(t, "occupancy: output", o.Output, 5)
	near(t, "occupancy: flow control", o.FlowControl, 6)
	// Receive 1+2, body 10, header 1.5, ACK 1, send 11.
	x := r.Transfer
	near(t, "transfer", x.Mean, 26.5)
	near(t, "transfer: receive", x.Receive, 3)
	near(t, "transfer: body", x.Body, 10)
	near(t, "transfer: header", x.Header, 1.5)
	near(t, "transfer: ack", x.Ack, 1)
	near(t, "transfer: send", x.Send, 11)
	near(t, "transfer: bus wait", x.BusWait, 1.5)

	// Card 0: 25 of the packet's own and 4 of its return, four times.
	c := r.Utilisation.Cards[0]
	near(t, "handlers", c.Handlers, 4*29.0/250)
	// Runs search from when their message was ready: the first 9–10 (1), the
	// later header ones 59–60 (1 each), bodies 15 (0), DMA start header 48–50
	// (2 each); all others find something ready at their very end.
	near(t, "polls", c.Polls, (4*1+4*2)/250.0)
	near(t, "idle", c.Idle, (250-4*29-12)/250.0)
	near(t, "dma", c.DMA, 4*11.5/250)
	near(t, "dma wait", c.DMAWait, 4*1.5/250)
	near(t, "receive", c.Receive, 4*3.0/250)
	near(t, "send", r.Utilisation.Cards[1].Send, 4*11.0/250)
	near(t, "bus", r.Utilisation.Bus.Busy, 4*12.5/250)
	// 10+2+2+13+8, then 2+2+9+8 twice, then 2+2+9.
	if r.Polls.N != 35+42+13 || r.Polls.Hits != 5+8+3 || r.Polls.Misses != 90-16 {
		t.Errorf("polls %+v", r.Polls)
	}
}

// Backlog, engine and the slow state:
//
//	backlog 1 from 20, 2 from 40, 1 from 44 (a start), 0 from 72 (a start),
//	transfers 55–70 and 95–110, backlog 2 from 100 to 103,
//	backlog 1 from 120, 2 from 125, 0 from 127.
//
// With the limit at 10.92 µs the engine's idling from 20 to 55 is slow as a
// whole (35 µs), from 70 to 72 not; 100–103 is slow by its backlog (3 µs), and
// of the short idling 120–127 only 125–127 (2 µs).
func TestSlowByHand(t *testing.T) {
	h := &hand{}
	for _, l := range []struct {
		n uint32
		t float64
	}{{1, 20}, {2, 40}, {1, 44}, {0, 72}, {2, 100}, {0, 103}, {1, 120}, {2, 125}, {0, 127}} {
		h.backlog(0, l.n, l.t)
	}
	h.transfer(0, TransferBody, 1, 55, 56, 70)
	h.transfer(0, TransferBody, 2, 95, 95, 110)
	h.box(0, RxCheckHeader, 9, 0, 25)
	h.polls(0, 1, 1, 25, 30)
	h.box(0, RouterIn, 9, 30, 44)
	h.box(0, PeerToPeerStart, 1, 44, 55)
	h.box(0, FreeBuffer, 8, 55, 71)
	h.polls(0, 1, 6, 71, 72)
	h.box(0, PeerToPeerStart, 2, 72, 95)
	h.box(0, WireOutputDone, 7, 95, 126)
	h.polls(0, 99, NoQueue, 126, 200)
	r := measure(t, h.sorted(), MeasureSpec{})
	near(t, "slow share", r.SlowShare, 40.0/200)
	if r.Slow.N != 3 {
		t.Errorf("%d spells, want 3", r.Slow.N)
	}
	near(t, "spell mean", r.Slow.Mean, 40.0/3)
	near(t, "spell max", r.Slow.Max, 35)
	within(t, "spell p50", r.Slow.P50, 3)
	// Idle with a backlog: 20–55, 70–72, 120–127.
	near(t, "bubbles", r.BubbleShare, 44.0/200)
	b := r.Bubbles
	near(t, "bubbles: receive and route", b.ReceiveRoute, (5+14)/200.0) // 20–25, 30–44
	near(t, "bubbles: polls", b.Polls, (5+1+1)/200.0)                   // 25–30, 71–72, 126–127
	near(t, "bubbles: chain", b.Chain, 11.0/200)                        // 44–55
	near(t, "bubbles: flow control", b.FlowControl, 1.0/200)            // 70–71
	near(t, "bubbles: output", b.Output, 6.0/200)                       // 120–126
	// 1·20 + 2·4 + 1·28 + 2·3 + 1·5 + 2·2 = 71
	near(t, "backlog", r.Backlog.Mean, 71.0/200)
	if r.Backlog.Max != 2 {
		t.Errorf("backlog up to %d", r.Backlog.Max)
	}

	// With the limit at 40 µs only the backlog counts: 4 + 3 + 2.
	r = measure(t, h.recs, MeasureSpec{ChainHandlers: us(40)})
	near(t, "slow share with a longer limit", r.SlowShare, 9.0/200)
	// At exactly the idling's length it is not longer.
	r = measure(t, h.recs, MeasureSpec{ChainHandlers: us(35)})
	near(t, "slow share at the limit", r.SlowShare, 9.0/200)
}

// Receives (R) and DMA starts (D) in the order R R D R D D R D R R R D: the
// runs between starts are 1, 0, 1, 3 (what comes before the first start is no
// run), so the mean is 5/4, without the empty one 5/3, and one in four is
// above 1.
//
// Fast windows need one D between neighbouring Rs. The Rs are at 0, 10, 30,
// 60, 80, 90, 100; between them 0, 1, 2, 1, 0, 0 starts: no two fast periods
// in a row, so no window.
func TestReceiveRunsByHand(t *testing.T) {
	h := &hand{}
	for i, c := range "RRDRDDRDRRRD" {
		e := RxCheckHeader
		if c == 'D' {
			e = PeerToPeerStart
		}
		h.box(0, e, uint64(100+i), 10*float64(i), 10*float64(i)+5)
	}
	r := measure(t, h.sorted(), MeasureSpec{})
	near(t, "mean", r.ReceiveRun.Mean, 5.0/4)
	near(t, "mean of those not empty", r.ReceiveRun.MeanNonEmpty, 5.0/3)
	near(t, "above 1", r.ReceiveRun.ShareOver1, 0.25)
	if diff := cmp.Diff([]uint64{1, 2, 0, 1}, r.ReceiveRun.Counts); diff != "" || r.ReceiveRun.Max != 3 {
		t.Errorf("%+v: %s", r.ReceiveRun, diff)
	}
	if r.Gap.BestCaseN != 0 || r.Gap.BestCase.OK() || r.FastShare != 0 {
		t.Errorf("best case %v of %d periods", r.Gap.BestCase, r.Gap.BestCaseN)
	}

	// R D R D R with a packet too many waiting in the second period: of the two
	// periods one is fast, which is no window. Without it the window has the
	// periods 20 and 30, whose (lower) median is 20.
	for _, crowded := range []bool{true, false} {
		h := &hand{}
		h.box(0, RxCheckHeader, 1, 0, 5)
		h.box(0, PeerToPeerStart, 1, 10, 15)
		h.box(0, RxCheckHeader, 2, 20, 25)
		h.box(0, PeerToPeerStart, 2, 40, 45)
		h.box(0, RxCheckHeader, 3, 50, 55)
		if crowded {
			h.backlog(0, 2, 30)
			h.backlog(0, 1, 31)
		}
		r := measure(t, h.sorted(), MeasureSpec{})
		if crowded {
			if r.Gap.BestCaseN != 0 {
				t.Errorf("%d fast periods in a crowded window", r.Gap.BestCaseN)
			}
			continue
		}
		near(t, "best case", r.Gap.BestCase, 20)
		if r.Gap.BestCaseN != 2 {
			t.Errorf("%d fast periods, want 2", r.Gap.BestCaseN)
		}
	}
}

// The DMA step of packet 1 from 0: handlers 0–2, 10–11, 12–13; a handler of
// another packet 2–7 (interruption), polls 7–10, polls 11–12. The body is asked
// for at 13, granted at 15, done at 25, while the processor runs something
// else until 28 (of which 25–28 interrupts); nothing is recorded from 28 to 29;
// DMA start header 29–30; header asked for at 30, done at 33. Another card's
// ACK crosses it from 26 to 27 and must not matter.
func TestStepByHand(t *testing.T) {
	h := &hand{}
	h.box(0, PeerToPeerStart, 1, 0, 2)
	h.box(0, RxCheckHeader, 2, 2, 7)
	h.polls(0, 3, 6, 7, 10)
	h.box(0, DMAGenericStart, 1, 10, 11)
	h.polls(0, 1, 6, 11, 12)
	h.box(0, DMAStartBody, 1, 12, 13)
	h.transfer(0, TransferBody, 1, 13, 15, 25)
	h.box(0, RouterIn, 2, 13, 28)
	h.transfer(1, TransferAck, 9, 25, 26, 27)
	h.box(0, DMAStartHeader, 1, 29, 30)
	h.transfer(0, TransferHeader, 1, 30, 30, 33)
	h.at(0, KindDepart, 1, 33).Peer = 1
	h.polls(0, 1, NoQueue, 30, 40)
	h.at(0, KindEnter, 1, 0)
	r := measure(t, h.sorted(), MeasureSpec{})
	d := r.DMAStep
	near(t, "length", d.Mean, 33)
	near(t, "handlers", d.Handlers, 2+1+1+1)
	near(t, "interruptions", d.Interruptions, 5+3)
	near(t, "polls", d.Polls, 3+1)
	near(t, "bus wait", d.BusWait, 2)
	near(t, "transfer", d.Transfer, 10+3)
	near(t, "unrecorded", d.Unrecorded, 1)
}

// Packets that are lost, go up to the host, or wait.
func TestLossAndWaitsByHand(t *testing.T) {
	h := &hand{}
	for p := range 6 {
		h.at(0, KindEnter, uint64(p+1), float64(p))
	}
	drop := func(p uint64, why Reason, t float64) {
		r := h.at(0, KindLeave, p, t)
		r.Verdict, r.Reason = VerdictDropped, why
	}
	drop(1, ReasonFIFOFull, 10)
	drop(2, ReasonFIFOFull, 11)
	drop(3, ReasonTTLExpired, 12)
	up := h.at(0, KindLeave, 4, 13)
	up.Verdict, up.Reason = VerdictToHost, ReasonNoRoute
	h.at(1, KindLeave, 5, 14).Verdict = VerdictForwarded
	stays := h.at(1, KindLeave, 6, 22)
	stays.Verdict, stays.Reason = VerdictStranded, ReasonStopped
	h.wait(0, ReasonNoCredit, 5, 5, 8, 9)    // 3 for the credit, then 1 for the dispatcher
	h.wait(0, ReasonNoCredit, 6, 15, 20, 20) // 5
	h.wait(0, ReasonLowerPriority, 6, 20, 20, 22)
	r := measure(t, h.sorted(), MeasureSpec{})
	if diff := cmp.Diff(map[string]uint64{"FIFO full": 2, "TTL expired": 1}, r.Dropped); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]uint64{"no route": 1}, r.ToHostBy); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]uint64{"card stopped": 1}, r.Stranded); diff != "" || r.Cards[0].Stranded != 1 {
		t.Error(diff, r.Cards[0].Stranded)
	}
	near(t, "loss", r.Loss, 0.5)
	if r.Received != 6 || r.Forwarded != 1 || r.ToHost != 1 || r.Cards[0].Forwarded != 1 {
		t.Errorf("%d received, %d forwarded, %d to the host", r.Received, r.Forwarded, r.ToHost)
	}
	want := []WaitUse{
		{Reason: "no credit", N: 2, Mean: 4, Share: 8.0 / 22},
		{Reason: "lower priority", N: 2, Mean: 1.5, Share: 3.0 / 22},
	}
	if diff := cmp.Diff(want, r.Utilisation.Cards[0].Waits); diff != "" {
		t.Error(diff)
	}
}

// From cuts shares of time to the window.
func TestMeasuresFrom(t *testing.T) {
	h := &hand{}
	h.backlog(0, 1, 5)
	h.box(0, RouterIn, 1, 0, 20) // 10 of them within
	h.polls(0, 1, NoQueue, 20, 30)
	h.backlog(0, 0, 30)
	r := measure(t, h.sorted(), MeasureSpec{From: us(10)})
	near(t, "observed", r.Observed, 20e-6)
	near(t, "handlers", r.Utilisation.Cards[0].Handlers, 0.5)
	near(t, "backlog", r.Backlog.Mean, 1)
	near(t, "bubbles", r.BubbleShare, 1)
}

// The spectrum finds the period of a square wave that is above a ripple, over
// stretches shorter and longer than what is kept.
func TestDominantPeriod(t *testing.T) {
	for _, c := range []struct {
		period, ripple, length float64 // ms
	}{{1, 0.13, 30}, {2.5, 0.4, 100}, {0.3, 1.7, 500}, {5, 0.7, 9000}} {
		h := &hand{}
		big, small := uint32(0), uint32(0)
		nextBig, nextSmall := c.period/2, c.ripple/2
		for t := 0.0; t < c.length; t = min(nextBig, nextSmall) {
			if t == nextBig && t > 0 {
				big, nextBig = 4-big, nextBig+c.period/2
			}
			if t == nextSmall && t > 0 {
				small, nextSmall = 1-small, nextSmall+c.ripple/2
			}
			h.backlog(0, big+small, 1000*t)
		}
		r := measure(t, h.sorted(), MeasureSpec{})
		if got := float64(r.Backlog.Period) / 1000; math.Abs(got-c.period) > 0.02*c.period {
			t.Errorf("period %v ms over %v ms: found %v ms", c.period, c.length, got)
		}
		if s := float64(r.Backlog.PeriodShare); !(s > 0.5 && s <= 1) {
			t.Errorf("share %v of the variance", s)
		}
	}
	// Nothing moves: no period.
	h := &hand{}
	h.backlog(0, 1, 0)
	h.backlog(0, 1, 5000)
	if r := measure(t, h.sorted(), MeasureSpec{}); r.Backlog.Period.OK() {
		t.Errorf("period %v of a constant", r.Backlog.Period)
	}
}

// A day without events costs neither time nor memory.
func TestLongSilence(t *testing.T) {
	h := &hand{}
	h.backlog(0, 1, 10)
	h.backlog(0, 0, 1000)
	h.backlog(0, 1, 86400e6)
	h.backlog(0, 0, 86400e6+1000)
	r := measure(t, h.sorted(), MeasureSpec{})
	near(t, "bubbles", r.BubbleShare, (990+1000)/(86400e6+1000)) // 10 to 1000, and 1000 at the end
}

func TestMeasuresOrder(t *testing.T) {
	m, err := NewMeasures(MeasureSpec{})
	if err != nil {
		t.Fatal(err)
	}
	a := Record{Kind: KindEnter, Packet: 1, Start: 5, End: 5}
	b := Record{Kind: KindEnter, Packet: 2, Start: 4, End: 4}
	c := Record{Kind: KindBox, Packet: 2, Start: 9, End: 8}
	if err := m.Record(&a); err != nil {
		t.Error(err)
	}
	for _, r := range []*Record{&b, &c} {
		if err := m.Record(r); !errors.Is(err, ErrOrder) {
			t.Errorf("error %v, want ErrOrder", err)
		}
	}
	for _, s := range []MeasureSpec{{From: -1}, {ChainHandlers: -1}, {BusPeriod: -1}, {SampleEvery: -1}, {Level: 1}, {Level: math.NaN()}} {
		if _, err := NewMeasures(s); err == nil {
			t.Errorf("%+v is taken", s)
		}
	}
}

// A run without any packet has a result whose figures are absent.
func TestMeasuresOfNothing(t *testing.T) {
	r := measure(t, nil, MeasureSpec{})
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(b, []byte(`"gap_us":{"mean":null`)) {
		t.Errorf("%s", b)
	}
	var text strings.Builder
	if err := r.WriteText(&text); err != nil || !strings.Contains(text.String(), "departure gap") {
		t.Errorf("%v: %s", err, text.String())
	}
}

// The keys that `--json` promises are there, at their places.
func TestResultKeys(t *testing.T) {
	r := measure(t, handFast(), MeasureSpec{})
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var v map[string]any
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{
		"received", "forwarded", "to_host", "dropped",
		"gap_us.mean", "gap_us.ci95", "gap_us.p50", "gap_us.p99", "gap_us.best_case",
		"latency_us.ingress.mean", "latency_us.ingress.p50", "latency_us.ingress.p99", "latency_us.ingress.fast",
		"latency_us.total.mean", "latency_us.total.p50", "latency_us.total.p99",
		"latency_us.upstream.mean", "latency_us.upstream.p50", "latency_us.upstream.p99",
		"receive_run.mean", "receive_run.max", "receive_run.share_over_1", "backlog.mean", "backlog.max",
		"slow_share", "bubble_share", "utilisation.bus.busy", "utilisation.cards",
	} {
		at := any(v)
		for _, key := range strings.Split(path, ".") {
			m, ok := at.(map[string]any)
			if !ok {
				t.Fatalf("%s: no object", path)
			}
			if at, ok = m[key]; !ok {
				t.Errorf("no key %s", path)
			}
		}
	}
	var back Result
	if err := json.Unmarshal(b, &back); err != nil {
		t.Fatal(err)
	}
	again, err := json.Marshal(&back)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(b), string(again)); diff != "" {
		t.Errorf("a result read back differs: %s", diff)
	}
}

func TestReal(t *testing.T) {
	for _, c := range []struct {
		x          float64
		json, text string
	}{
		{0, "0", "0"}, {54.99999999, "55", "55"}, {95.1234567, "95.1235", "95.12"}, {1234567.8, "1234570", "1234568"},
		{0.00012345678, "0.000123457", "0.0001235"}, {math.NaN(), "null", "–"}, {math.Inf(1), "null", "–"}, {-3.5, "-3.5", "-3.5"},
		{1e-9, "1e-09", "1e-09"}, {1e300, "1e+300", "1e+300"},
	} {
		b, err := json.Marshal(Real(c.x))
		if err != nil || string(b) != c.json || Real(c.x).String() != c.text {
			t.Errorf("%v: %s, %s, %v; want %s, %s", c.x, b, Real(c.x), err, c.json, c.text)
		}
	}
}

// What runs live allocates nothing once it has seen its cards.
func TestMeasuresAllocate(t *testing.T) {
	recs := runModel(modelStreams(400)[3])
	m, err := NewMeasures(MeasureSpec{})
	if err != nil {
		t.Fatal(err)
	}
	c, err := NewCriticalPath(PathSpec{})
	if err != nil {
		t.Fatal(err)
	}
	half := len(recs) / 2
	for i := range half {
		_ = m.Record(&recs[i])
		_ = c.Record(&recs[i])
	}
	i := half
	if n := testing.AllocsPerRun(len(recs)-half-1, func() {
		_ = m.Record(&recs[i])
		_ = c.Record(&recs[i])
		i++
	}); n != 0 {
		t.Errorf("%g allocations a record", n)
	}
}

// A stream whose packets never leave, or whose processor never reports, does
// not make the memory grow without bound.
func TestMeasuresBounded(t *testing.T) {
	m, err := NewMeasures(MeasureSpec{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 500_000 {
		at := des.Time(i) * des.Microsecond
		for _, r := range []Record{
			{Kind: KindEnter, Packet: uint64(i + 1), Start: at, End: at},
			{Kind: KindLevel, Event: LevelBacklog, Count: uint32(i % 3), Start: at, End: at},
			{Kind: KindPolls, Queue: NoQueue, Count: 1, Card: 1, Start: at, End: at},
			{Kind: KindLevel, Event: LevelBacklog, Card: 1, Count: uint32(i % 3), Start: at, End: at},
		} {
			if err := m.Record(&r); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n := len(m.packets.slots); n > maxSlots {
		t.Errorf("%d packets remembered", n)
	}
	for _, c := range m.cards[:2] {
		if n := c.lane.marks.len() + c.lane.procs.len() + c.lane.engines.len(); n > 3*maxLag {
			t.Errorf("%d spans wait", n)
		}
	}
	if _, err := m.Finish(0); err != nil {
		t.Error(err)
	}
}

// BenchmarkMeasures reports how many packets a second the measures keep up
// with.
func BenchmarkMeasures(b *testing.B) {
	spec := modelStreams(2000)[1]
	recs := runModel(spec)
	end := recs[len(recs)-1].End
	m, err := NewMeasures(MeasureSpec{})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.ResetTimer()
	packets, shift, base := 0, des.Time(0), uint64(0)
	for i := 0; i < b.N; i++ {
		r := recs[i%len(recs)]
		if i > 0 && i%len(recs) == 0 {
			shift += end
			base += uint64(spec.packets)
		}
		r.Start, r.End, r.Ready = r.Start+shift, r.End+shift, r.Ready+shift
		if r.Packet > 0 {
			r.Packet += base
		}
		if err := m.Record(&r); err != nil {
			b.Fatal(err)
		}
		if r.Kind == KindDepart {
			packets++
		}
	}
	b.ReportMetric(float64(packets)/b.Elapsed().Seconds(), "packets/s")
	b.ReportMetric(float64(len(recs))/float64(spec.packets), "records/packet")
}
