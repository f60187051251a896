package sim

import (
	"math"

	"spinesim/sim/des"
	"spinesim/traces"
)

// GraphSpan is how much time an event graph shows: that of Figure 6.4 (thesis
// p.107).
const GraphSpan = 130 * des.Microsecond

// graphLead is how long before the first receive an event graph begins.
const graphLead = 6 * des.Microsecond

// Windows finds, in a record stream, spans worth drawing: the fastest stretch
// of one-for-one receive and send, and the longest receive run. It is a sink
// of bounded memory.
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
	fast  [4]des.Time
	n     int
	state uint8 // what the stretch expects next

	run      int
	runStart des.Time

	best, slow Window
	followed   des.Time // receive of the best window's packet
}

// Window is a span worth drawing.
type Window struct {
	Span
	Found bool
	// Period is the mean time between the receives of a fast window.
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
	case r.Kind == traces.KindDepart && w.best.Found && r.Packet == w.best.Packet:
		w.best.Latency = r.End - w.followed
	}
	return nil
}

func (w *Windows) receive(r *traces.Record) {
	w.seen++
	if w.run++; w.run == 1 {
		w.runStart = r.Start
	}
	looked := w.seen > w.Skip && (w.Limit == 0 || w.seen <= w.Limit)
	if looked && w.run >= 2 && w.run > w.slow.Run {
		if sp, ok := w.place(w.runStart); ok {
			w.slow = Window{Span: sp, Found: true, Run: w.run, Packet: r.Packet - uint64(w.run) + 2}
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
	w.fast[w.n] = r.Start
	w.n++
	if w.n == len(w.fast) && looked {
		p := (w.fast[3] - w.fast[0]) / 3
		if !w.best.Found || p < w.best.Period {
			if sp, ok := w.place(w.fast[0]); ok {
				// The thesis follows packet 2. Here that is the packet received
				// third, which has not departed yet.
				w.best = Window{Span: sp, Found: true, Period: p, Packet: r.Packet - 1}
				w.followed = w.fast[2]
			}
		}
	}
}

// place is the window whose first receive begins at the given time.
func (w *Windows) place(first des.Time) (Span, bool) {
	from := max(0, first-graphLead)
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
