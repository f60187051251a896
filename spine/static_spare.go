package spine

import (
	"slices"

	"spinesim/sim/des"
	"spinesim/traces"
)

// spare is a kind of message that no step of a cycle takes: in queue, for
// handler.
type spare struct {
	queue   uint8
	handler traces.Event
}

// What the card's own software knows of is served at the end of the pass; what
// only a poll could tell is looked for once in sweepPasses passes. A visit runs
// at most spareHandlers handlers. Chosen: under load that is some ten
// milliseconds, so that looking costs next to nothing.
const (
	sweepPasses   = 256
	spareHandlers = 8
)

// findSpares lists what no step takes.
func (s *static) findSpares(cards int) {
	r := s.rt
	slot := func(q uint8) bool {
		return slices.ContainsFunc(s.cycle.Steps, func(st StaticStep) bool { return st.Background() && slices.Contains(st.Order, q) })
	}
	step := func(h traces.Event, known bool) bool {
		return slices.ContainsFunc(s.cycle.Steps, func(st StaticStep) bool {
			return st.Handler == h && (known || st.Guard != GuardKnown)
		})
	}
	add := func(q uint8, h traces.Event) {
		if !slot(q) {
			s.spares = append(s.spares, spare{q, h})
		}
	}
	for _, h := range Handlers {
		switch h {
		case traces.WireOutputStart:
			if !step(h, true) {
				add(QWire, h) // the card's own, out on the wire that it came from
			}
			for c := range uint8(cards) {
				if q := r.queueOf(c); c != r.index && !(step(h, false) && slices.Contains(s.sources, q)) {
					add(q, h)
				}
			}
		case traces.PeerAck:
			for c := range uint8(cards) {
				if c != r.index && !step(h, true) {
					add(r.queueOf(c), h)
				}
			}
		case traces.FromHost:
			if r.spec.HostReturn && !step(h, true) {
				add(QHost, h)
			}
		default:
			if !step(h, true) {
				add(s.places(h)[0], h)
			}
		}
	}
}

// blind tells whether only a poll can tell that a handler's message has come.
func blind(h traces.Event) bool {
	return h == traces.RxCheckHeader || h == traces.WireOutputStart || h == traces.FromHost
}

// sweeps tells whether the pass that is so many ahead ends with a look at
// everything.
func (s *static) sweeps(ahead uint64) bool { return (s.counts.Passes+ahead+1)%sweepPasses == 0 }

// untilSweep is how many passes end before the one that ends with a look at
// everything; ok is false when there is nothing to look for.
func (s *static) untilSweep() (passes int64, ok bool) {
	for i := range s.spares {
		if blind(s.spares[i].handler) {
			return int64(sweepPasses - 1 - s.counts.Passes%sweepPasses), true
		}
	}
	return 0, false
}

// lookSpare lays out the polls for what no step takes and the software knows to
// be there or to come; a sweep looks for what it cannot know of as well. It
// tells whether there are any.
func (s *static) lookSpare(sweep bool) bool {
	s.looks = s.looks[:0]
	for _, x := range s.spares {
		if blind(x.handler) && !sweep && !s.ownOutput(x) || !s.comes(x.handler) {
			continue
		}
		if x.handler == traces.PeerAck && x.queue != s.places(x.handler)[0] {
			continue
		}
		s.looks = append(s.looks, look{step: len(s.cycle.Steps), queue: x.queue, handler: x.handler})
	}
	s.most = int64(len(s.looks))
	return s.most > 0
}

// ownOutput tells whether a packet that the card has routed itself waits to
// leave by the wire that it came from.
func (s *static) ownOutput(x spare) bool {
	return x.handler == traces.WireOutputStart && x.queue == QWire && s.rt.wireOut.n > 0
}

// spareEnd is the end of a poll in the spare step.
func (s *static) spareEnd(now des.Time, l *look, hit bool) error {
	s.counts.UnforeseenPolls += uint64(s.rt.limit)
	if hit {
		s.counts.Unforeseen++
		return s.run(now, l.queue, l.queue, s.take(l.queue, l.handler))
	}
	if s.left() > 0 {
		return s.poll()
	}
	s.advance()
	return s.next(now)
}
