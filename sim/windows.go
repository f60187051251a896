package sim

import (
	"math"

	"spinesim/sim/des"
	"spinesim/traces"
)

// GraphSpan is how much time an event graph shows: that of Figure 6.4 (thesis
// p.107).
const GraphSpan = 130 * des.Microsecond

// How long before its first receive an event graph begins: a slow one so that
// the DMA before it is seen to end, a fast one so that three receives have room.
const (
	graphLead = 6 * des.Microsecond
	fastLead  = des.Microsecond
)

// Windows finds, in a record stream, spans worth drawing: the fastest stretch
// of one-for-one receive and send, and the longest receive run. The fastest is
// the one whose longest period is the shortest, for a stretch that is fast in
// the mean only may have a pause in it, and Figure 6.4 has none (thesis p.107).
// It is a sink of bounded memory.
type Windows struct {
	// Card is the ingress card to look at.
	Card uint8
	// Skip leaves out so many packets at the start, while the pipeline fills.
	Skip uint64
	// Limit looks at so many packets only, 0 at all.
	Limit uint64
	// Within, when not empty, has room for the whole of every window.
	Within Span

	seen    uint64
	backlog uint32
	// The latest receives of an unbroken one-for-one stretch.
	fast  [4]received
	n     int
	state uint8 // what the stretch expects next

	run       int
	runStart  des.Time
	runSecond uint64 // packet received second in the run

	best, slow Window
	longest    des.Time // longest period of the best window
	followed   des.Time // receive of the best window's packet
}

// received is a packet whose receive has begun.
type received struct {
	at       des.Time
	packet   uint64
	departed des.Time // 0 as long as it has not
}

// Window is a span worth drawing.
type Window struct {
	Span
	Found bool
	// Period is the mean time between the four receives of a fast window.
	Period des.Time
	// Run is the number of packets received in a row in a slow window.
	Run int
	// Packet is a packet whose path is worth following.
	Packet uint64
	// Latency is that packet's, from its Rx check header start to its
	// departure; 0 when the stream ends before.
	Latency des.Time
}

const (
	wantAny uint8 = iota
	wantReceive
	wantSend
)

// Record implements traces.Sink.
func (w *Windows) Record(r *traces.Record) error {
	if r.Card != w.Card {
		return nil
	}
	switch {
	case r.Kind == traces.KindLevel && r.Event == traces.LevelBacklog:
		w.backlog = r.Count
		if r.Count > 1 {
			w.n, w.state = 0, wantAny
		}
	case r.Kind == traces.KindBox && r.Event == traces.RxCheckHeader:
		w.receive(r)
	case r.Kind == traces.KindBox && r.Event == traces.PeerToPeerStart:
		w.send()
	case r.Kind == traces.KindDepart:
		w.depart(r)
	}
	return nil
}

func (w *Windows) depart(r *traces.Record) {
	if w.best.Found && r.Packet == w.best.Packet {
		w.best.Latency = r.End - w.followed
	}
	for i := range w.fast[:w.n] {
		if w.fast[i].packet == r.Packet {
			w.fast[i].departed = r.End
		}
	}
}

func (w *Windows) receive(r *traces.Record) {
	w.seen++
	switch w.run++; w.run {
	case 1:
		w.runStart = r.Start
	case 2:
		w.runSecond = r.Packet
	}
	looked := w.seen > w.Skip && (w.Limit == 0 || w.seen <= w.Limit)
	if looked && w.run >= 2 && w.run > w.slow.Run {
		if sp, ok := w.place(w.runStart, graphLead); ok {
			w.slow = Window{Span: sp, Found: true, Run: w.run, Packet: w.runSecond}
		}
	}
	if w.state == wantSend {
		w.n = 0
	}
	w.state = wantSend
	if w.n == len(w.fast) {
		copy(w.fast[:], w.fast[1:])
		w.n--
	}
	w.fast[w.n] = received{at: r.Start, packet: r.Packet}
	w.n++
	if w.n == len(w.fast) && looked {
		w.compare()
	}
}

// compare takes the latest stretch for the best one if it is.
func (w *Windows) compare() {
	f := &w.fast
	longest := max(f[1].at-f[0].at, f[2].at-f[1].at, f[3].at-f[2].at)
	if w.best.Found && longest >= w.longest {
		return
	}
	sp, ok := w.place(f[0].at, fastLead)
	if !ok {
		return
	}
	// The thesis follows packet 2: the one received second, whose three steps
	// the graph shows.
	w.longest, w.followed = longest, f[1].at
	w.best = Window{Span: sp, Found: true, Period: (f[3].at - f[0].at) / 3, Packet: f[1].packet}
	if f[1].departed > 0 {
		w.best.Latency = f[1].departed - f[1].at
	}
}

// place is the window that begins by lead before its first receive.
func (w *Windows) place(first, lead des.Time) (Span, bool) {
	from := max(0, first-lead)
	sp := Span{from, from + GraphSpan}
	if w.Within.To > w.Within.From && (sp.From < w.Within.From || sp.To > w.Within.To) {
		return sp, false
	}
	return sp, true
}

func (w *Windows) send() {
	w.run = 0
	if w.state == wantReceive {
		w.n = 0
	}
	if w.state == wantSend {
		w.state = wantReceive
	}
}

// Best is the fastest one-for-one stretch of four receives.
func (w *Windows) Best() Window { return w.best }

// Slow is the longest receive run.
func (w *Windows) Slow() Window { return w.slow }

// result is what was found, in µs.
func (w *Windows) result() *FoundWindows {
	f := &FoundWindows{BestPeriod: traces.Real(math.NaN()), BestLatency: traces.Real(math.NaN()), LongestRun: w.slow.Run}
	if w.best.Found {
		f.BestPeriod = traces.Real(w.best.Period.Microseconds())
		if w.best.Latency > 0 {
			f.BestLatency = traces.Real(w.best.Latency.Microseconds())
		}
	}
	return f
}

// centre is the window that a record is kept round: the fastest stretch, which
// is rarer than a receive run, or the longest run where there is none.
func (w *Windows) centre() Window {
	if w.best.Found {
		return w.best
	}
	return w.slow
}
