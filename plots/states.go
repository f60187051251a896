package plots

import (
	"cmp"
	"slices"

	"spinesim/sim/des"
	"spinesim/traces"
)

// Span is a span of time of a run.
type Span struct{ From, To des.Time }

// States are the spans in which a card's pipeline was fast or slow; what is
// neither lies between them. Spans are in order of time.
//
// Fast is a window of at least three packets in a row with exactly one receive
// and one DMA start each between neighbours and at most one packet routed and
// waiting for its DMA. Slow is a backlog of two or more, or the DMA engine idle
// with a packet waiting for it for longer than one chain's handlers take. Both
// are as traces.Measures has them, which sums up what is listed here.
type States struct{ Fast, Slow []Span }

// turn is a moment at which what decides the state changes.
type turn struct {
	at   des.Time
	kind uint8 // in the order in which turns of one moment count
	n    uint32
}

const (
	turnBacklog uint8 = iota
	turnFree          // the engine becomes free
	turnBusy          // the engine asks for the bus
	turnReceive
	turnStart
)

// FindStates finds the states of a card between from and to. chain is how long
// the handlers of one DMA chain take, 0 for traces.DefaultChainHandlers.
func FindStates(records []traces.Record, card uint8, from, to, chain des.Time) States {
	if chain == 0 {
		chain = traces.DefaultChainHandlers
	}
	var turns []turn
	for i := range records {
		r := &records[i]
		if r.Card != card {
			continue
		}
		switch {
		case r.Kind == traces.KindLevel && r.Event == traces.LevelBacklog:
			turns = append(turns, turn{r.End, turnBacklog, r.Count})
		case r.Kind == traces.KindTransfer:
			turns = append(turns, turn{r.Ready, turnBusy, 0}, turn{r.End, turnFree, 0})
		case r.Kind == traces.KindBox && r.Event == traces.RxCheckHeader:
			turns = append(turns, turn{r.Start, turnReceive, 0})
		case r.Kind == traces.KindBox && r.Event == traces.PeerToPeerStart:
			turns = append(turns, turn{r.Start, turnStart, 0})
		}
	}
	slices.SortStableFunc(turns, func(a, b turn) int {
		if c := cmp.Compare(a.at, b.at); c != 0 {
			return c
		}
		return cmp.Compare(a.kind, b.kind)
	})
	f := stateFinder{chain: chain, at: from, idleFrom: -1}
	for _, t := range turns {
		if t.at > to {
			break
		}
		f.pass(max(t.at, from))
		f.take(t)
	}
	f.pass(to)
	f.idle(to, false)
	f.endWindow()
	return f.out
}

type stateFinder struct {
	chain    des.Time
	at       des.Time // everything before is taken
	backlog  uint32
	busy     int      // transfers under way
	idleFrom des.Time // since when the engine idles with a packet waiting; -1: it does not
	out      States

	received bool
	lastRx   des.Time
	starts   int
	crowded  bool
	window   Span
	periods  int
}

// pass lets time pass with nothing changed.
func (f *stateFinder) pass(t des.Time) {
	if t <= f.at {
		return
	}
	if f.backlog > 1 {
		f.crowded = true
		f.slow(Span{f.at, t})
	}
	f.idle(f.at, f.backlog > 0 && f.busy == 0)
	f.at = t
}

// idle notes from when on the engine idles with a packet waiting, or that it
// does not.
func (f *stateFinder) idle(t des.Time, idle bool) {
	switch {
	case idle && f.idleFrom < 0:
		f.idleFrom = t
	case !idle && f.idleFrom >= 0:
		if t-f.idleFrom > f.chain {
			f.slow(Span{f.idleFrom, t})
		}
		f.idleFrom = -1
	}
}

// slow adds a slow span; one that began earlier may come late.
func (f *stateFinder) slow(s Span) {
	for n := len(f.out.Slow); n > 0 && f.out.Slow[n-1].To >= s.From; n-- {
		last := f.out.Slow[n-1]
		s = Span{min(s.From, last.From), max(s.To, last.To)}
		f.out.Slow = f.out.Slow[:n-1]
	}
	f.out.Slow = append(f.out.Slow, s)
}

func (f *stateFinder) take(t turn) {
	switch t.kind {
	case turnBacklog:
		f.backlog = t.n
	case turnBusy:
		f.busy++
	case turnFree:
		f.busy = max(f.busy-1, 0)
	case turnStart:
		f.starts++
	case turnReceive:
		if f.received && f.starts == 1 && !f.crowded {
			if f.periods == 0 {
				f.window.From = f.lastRx
			}
			f.periods++
			f.window.To = t.at
		} else {
			f.endWindow()
		}
		f.received, f.lastRx, f.starts, f.crowded = true, t.at, 0, f.backlog > 1
	}
}

func (f *stateFinder) endWindow() {
	if f.periods >= 2 {
		f.out.Fast = append(f.out.Fast, f.window)
	}
	f.periods = 0
}
