package schedule

import (
	"errors"
	"fmt"
	"slices"

	"spinesim/spine"
	"spinesim/traces"
)

// Errors by which Check refuses a plan, and what they mean.
var (
	// ErrNoInput: a step whose message can never be there.
	ErrNoInput = errors.New("the step's input can never be there")
	// ErrUnserved: messages that no step takes.
	ErrUnserved = errors.New("messages that no step takes")
	// ErrAckStarvation: a step or a missing one that can keep ACKs waiting for
	// ever, or lets them fall behind.
	ErrAckStarvation = errors.New("ACKs starve")
	// ErrDeadlock: a wait for what only comes after it.
	ErrDeadlock = errors.New("deadlock")
	// ErrBlindGuard: a guard that knows what the card's software cannot know.
	ErrBlindGuard = errors.New("the software cannot know that without a poll")
)

// Check refuses a plan that cannot work on the machine with the flows, before
// it runs. Every error names the place and wraps one of the errors above. A
// plan that passes may still be slow.
//
// Beside rules for single steps it walks packets through the cycles, with
// hardware that takes no time: one alone, from every step on (of a very long
// cycle, from some), one for the host,
// and several at once.
func Check(p *Plan, m *Machine, flows []Flow) error {
	if err := m.Validate(); err != nil {
		return err
	}
	if err := checkFlows(m, flows); err != nil {
		return err
	}
	all := roles(m, flows)
	for _, c := range p.Cards {
		for _, card := range c.Cards {
			if int(card) >= m.Cards {
				return fmt.Errorf("%s: card %d, and the router has %d: %w", p.at(c.line), card, m.Cards, ErrNoInput)
			}
		}
	}
	for card := range uint8(m.Cards) {
		if err := p.checkCard(m, card, all[card]); err != nil {
			return err
		}
	}
	for card := range uint8(m.Cards) {
		for _, s := range p.of(card).Sources {
			if int(s) >= m.Cards || !slices.Contains(all[card].sources, s) {
				return fmt.Errorf("%s: card %d sends nothing that card %d receives: %w", p.at(p.of(card).line), card, s, ErrNoInput)
			}
		}
		for _, s := range all[card].sources {
			if l := p.of(card).Sources; len(l) > 0 && !slices.Contains(l, s) {
				return fmt.Errorf("%s: card %d does not look for what card %d receives for it: %w", p.at(p.of(card).line), card, s, ErrUnserved)
			}
		}
	}
	var seen [spine.MaxCards][spine.MaxCards]bool
	for _, f := range flows {
		if seen[f.Ingress][f.Egress] {
			continue
		}
		seen[f.Ingress][f.Egress] = true
		if err := p.walk(m, f); err != nil {
			return err
		}
	}
	return nil
}

// queueOf is the queue that holds a handler's messages, the first of the
// peers' for theirs.
func queueOf(fw *spine.Spec, h traces.Event) uint8 {
	switch h {
	case traces.RxCheckHeader, traces.WireOutputDone:
		return spine.QWire
	case traces.RxCheckBody:
		if fw.Receive == spine.ReceiveSplit {
			return spine.QWire
		}
		return spine.QSelf
	case traces.FromHost:
		return spine.QHost
	case traces.PeerToPeerStart, traces.ToHost, traces.AckSend:
		return spine.QDMA
	case traces.DMAStartHandler, traces.DMAGenericStart, traces.DMAStartBody, traces.DMAStartHeader:
		if fw.Chain == spine.ChainSelf {
			return spine.QSelf
		}
		return spine.QDMA
	case traces.PeerAck, traces.WireOutputStart:
		return spine.QPeer
	}
	return spine.QSelf
}

// scans tells whether a background slot comes by the handler's queues: of the
// peers', by all that there are.
func scans(m *Machine, s *spine.StaticStep, r role, h traces.Event) bool {
	q := queueOf(&m.Firmware, h)
	if h == traces.WireOutputStart && r.ownWire {
		if !slices.Contains(s.Order, spine.QWire) {
			return false
		}
		if len(r.sources) == 0 {
			return true
		}
	}
	if q != spine.QPeer {
		return slices.Contains(s.Order, q)
	}
	for i := range m.Cards - 1 {
		if !slices.Contains(s.Order, q+uint8(i)) {
			return false
		}
	}
	return true
}

// outside tells which messages hardware or other cards make, not the card's
// own software.
func outside(fw *spine.Spec, h traces.Event) bool {
	switch h {
	case traces.RxCheckBody:
		return fw.Receive == spine.ReceiveSplit
	case traces.RxCheckHeader, traces.PeerAck, traces.WireOutputDone, traces.FromHost, traces.DMAStartHeader:
		return true
	}
	return false
}

func (p *Plan) checkCard(m *Machine, card uint8, r role) error {
	c := p.of(card)
	if c == nil {
		return fmt.Errorf("%s: no cycle for card %d: %w", p.at(0), card, ErrUnserved)
	}
	fw := &m.Firmware
	must := r.must(fw)
	steps, lines := flat(c.Steps)
	var count [traces.NumEvents]int
	slots := map[traces.Event]bool{}
	idle := len(must) == 0
	for i := range steps {
		s := &steps[i]
		at := func(format string, args ...any) error {
			return fmt.Errorf("%s: card %d, step %d (%s): %w", p.at(lines[i]), card, i+1, stepText(s), fmt.Errorf(format, args...))
		}
		if s.Background() {
			for _, h := range must {
				slots[h] = slots[h] || scans(m, s, r, h)
			}
			continue
		}
		h := s.Handler
		if !slices.Contains(must, h) && !idle {
			return at("%w: %s", ErrNoInput, whyNot(r, h))
		}
		if s.Guard == spine.GuardKnown {
			if outside(fw, h) {
				return at("%w: %s, and only a poll tells when", ErrBlindGuard, maker(h))
			}
			if h == traces.WireOutputStart && !r.ownWire {
				return at("%w: other cards make its messages, and only a poll tells when", ErrBlindGuard)
			}
			if h == traces.WireOutputStart && len(r.sources) > 0 {
				continue // it finds this card's own, not those of others
			}
		}
		if s.Guard == spine.GuardWait && s.Polls == 0 {
			switch h {
			case traces.RxCheckHeader, traces.FromHost, traces.WireOutputStart:
				err := ErrDeadlock
				if r.receives || len(r.sources) > 0 {
					err = ErrAckStarvation
				}
				return at("%w: it waits without bound for a packet from outside; while none comes, nothing else on the card runs, want look or wait N polls", err)
			case traces.PeerAck:
				if len(r.sources) > 0 || fw.HostReturn {
					return at("%w: while it waits without bound, the card sends no ACKs itself, so that two cards may wait for each other, want look or wait N polls", ErrDeadlock)
				}
			}
		}
		count[h]++
	}
	for _, h := range must {
		if count[h] > 0 || slots[h] {
			continue
		}
		err := ErrUnserved
		if h == traces.PeerAck || h == traces.AckSend || h == traces.WireOutputDone {
			err = ErrAckStarvation
		}
		return fmt.Errorf("%s: card %d: no step or background slot runs %s: %w", p.at(c.line), card, h, err)
	}
	for _, h := range []struct{ before, ack traces.Event }{
		{traces.PeerToPeerStart, traces.PeerAck}, {traces.WireOutputStart, traces.AckSend},
	} {
		if slices.Contains(must, h.ack) && !slots[h.ack] && count[h.ack] < count[h.before] {
			return fmt.Errorf("%s: card %d: a pass runs %s up to %d times and %s only %d: %w: they fall behind until the credits are used up",
				p.at(c.line), card, h.before, count[h.before], h.ack, count[h.ack], ErrAckStarvation)
		}
	}
	return nil
}

// whyNot tells why a card never has a message of the handler.
func whyNot(r role, h traces.Event) string {
	switch h {
	case traces.FromHost:
		return "the host sends nothing back"
	case traces.WireOutputStart, traces.WireOutputDone, traces.AckSend:
		return "no flow leaves by this card"
	}
	return "no flow comes in by this card"
}

// maker tells what makes a handler's messages.
func maker(h traces.Event) string {
	switch h {
	case traces.RxCheckHeader, traces.RxCheckBody:
		return "the receive engine makes its messages"
	case traces.WireOutputDone:
		return "the send engine makes its messages"
	case traces.DMAStartHeader:
		return "the DMA engine makes its messages, with the end of the body's transfer"
	case traces.FromHost:
		return "the host makes its messages"
	}
	return "other cards make its messages"
}

// --- walking packets through --------------------------------------------------

// walker is a card whose hardware takes no time.
type walker struct {
	m     *Machine
	card  uint8
	steps []spine.StaticStep
	lines []int
	at    int
	slot  int

	messages  [traces.NumEvents]int
	underWay  int // packets not acknowledged
	sending   int
	chainHeld bool
	inBody    bool
	checked   bool // a header is checked, its body not
	buffers   int
	credits   int
	arrivals  int // packets that wait upstream
	toHost    int // of the packets that are routed next, how many go to the host
	done      int
	stood     int // times in a row that it waited at the same step
	peer      *walker
}

func newWalker(p *Plan, m *Machine, card uint8, at int) *walker {
	w := &walker{m: m, card: card, at: at, buffers: m.Firmware.Buffers, credits: m.Firmware.Credits}
	w.steps, w.lines = flat(p.of(card).Steps)
	w.at %= len(w.steps)
	return w
}

// maxOffsets is from how many steps on a packet alone is walked through; of
// longer cycles, from so many spread evenly (chosen: enough for every step of
// cycles that people write).
const maxOffsets = 128

// walk takes packets of a flow through the cycles of its cards.
func (p *Plan) walk(m *Machine, f Flow) error {
	steps, _ := flat(p.of(f.Ingress).Steps)
	type load struct{ packets, toHost, at int }
	var loads []load
	for at := 0; at < len(steps); at += (len(steps) + maxOffsets - 1) / maxOffsets {
		loads = append(loads, load{1, 0, at})
	}
	loads = append(loads, load{1, 1, 0}, load{2*m.Firmware.Credits + 3, 0, 0}, load{2*min(m.Firmware.Buffers, 64) + 3, 1, 0})
	for _, l := range loads {
		in := newWalker(p, m, f.Ingress, l.at)
		out := in
		if f.crosses() {
			out = newWalker(p, m, f.Egress, 0)
		}
		in.peer, out.peer = out, in
		in.arrivals, in.toHost = l.packets, l.toHost
		in.arrive()
		// Each turn either runs a handler, of which a packet has 16, or takes a
		// card a step on.
		turns := 4 * (l.packets*20 + 8) * (len(in.steps) + len(out.steps))
		for range turns {
			if in.turn(); out != in {
				out.turn()
			}
			if in.done == l.packets {
				break
			}
		}
		if in.done == l.packets {
			continue
		}
		return p.stuck(in, out, l.packets)
	}
	return nil
}

// stuck says why packets did not get through.
func (p *Plan) stuck(in, out *walker, packets int) error {
	for _, w := range []*walker{in, out} {
		if w.stood > 2 {
			s := &w.steps[w.at]
			return fmt.Errorf("%s: card %d, step %d (%s): %w: with %d packets under way it waits for what only a later step brings about",
				p.at(w.lines[w.at]), w.card, w.at+1, stepText(s), ErrDeadlock, packets-in.done)
		}
	}
	for _, w := range []*walker{in, out} {
		for h, n := range w.messages {
			if n > 0 {
				err := ErrDeadlock
				if h := traces.Event(h); h == traces.PeerAck || h == traces.AckSend {
					err = ErrAckStarvation
				}
				return fmt.Errorf("%s: card %d: a message for %s is never taken: %w", p.at(0), w.card, traces.Event(h), err)
			}
		}
	}
	return fmt.Errorf("%s: packets from card %d to card %d do not get through: %w", p.at(0), in.card, out.card, ErrDeadlock)
}

// arrive lets the receive engine take the next packet, when it can.
func (w *walker) arrive() {
	if w.arrivals == 0 || w.messages[traces.RxCheckHeader] > 0 || w.checked || w.messages[traces.RxCheckBody] > 0 {
		return
	}
	if w.m.Firmware.Receive != spine.ReceiveSplit {
		if w.buffers == 0 {
			return
		}
		w.buffers--
	}
	w.arrivals--
	w.messages[traces.RxCheckHeader]++
}

// turn does what the card's present step asks for.
func (w *walker) turn() {
	s := &w.steps[w.at]
	if s.Background() {
		for _, q := range s.Order {
			for h := range traces.Event(traces.NumEvents) {
				if w.messages[h] > 0 && w.runnable(h) && w.in(h, q) {
					w.run(h)
					if w.slot++; w.slot >= s.Handlers {
						w.advance()
					}
					return
				}
			}
		}
		w.advance()
		return
	}
	h := s.Handler
	if w.messages[h] > 0 && w.runnable(h) {
		w.run(h)
		w.advance()
		return
	}
	if s.Guard == spine.GuardWait && s.Polls == 0 && w.comes(h) {
		w.stood++
		return
	}
	w.advance()
}

// in tells whether a handler's messages may be in a queue.
func (w *walker) in(h traces.Event, q uint8) bool {
	of := queueOf(&w.m.Firmware, h)
	if h == traces.WireOutputStart && w.peer == w {
		of = spine.QWire
	}
	return of == q || of == spine.QPeer && q > spine.QPeer && q < spine.QDMA
}

func (w *walker) advance() {
	w.slot, w.stood = 0, 0
	if w.at++; w.at == len(w.steps) {
		w.at = 0
	}
}

// runnable tells whether a message's precondition holds: engines other than
// the DMA engine within a chain are always done.
func (w *walker) runnable(h traces.Event) bool {
	switch h {
	case traces.PeerToPeerStart:
		return !w.chainHeld && w.credits > 0
	case traces.ToHost, traces.AckSend:
		return !w.chainHeld
	}
	return true
}

// comes is what the dispatcher's software takes to be on its way.
func (w *walker) comes(h traces.Event) bool {
	switch h {
	case traces.RxCheckHeader:
		return !w.checked
	case traces.RxCheckBody:
		return w.messages[h] > 0
	case traces.PeerToPeerStart:
		return w.messages[h] > 0 && !w.chainHeld && w.credits > 0
	case traces.ToHost, traces.AckSend:
		return w.messages[h] > 0 && !w.chainHeld
	case traces.DMAStartHeader:
		return w.inBody
	case traces.WireOutputDone:
		return w.sending > 0
	case traces.PeerAck:
		return w.underWay > 0
	case traces.DMAStartHandler, traces.DMAGenericStart, traces.DMAStartBody:
		return w.chainHeld && !w.inBody
	}
	return w.messages[h] > 0
}

// run lets a handler run, and the hardware that it starts.
func (w *walker) run(h traces.Event) {
	w.messages[h]--
	send := func(h traces.Event) { w.messages[h]++ }
	switch h {
	case traces.RxCheckHeader:
		if w.m.Firmware.Receive == spine.ReceiveSplit {
			w.checked = true
			if w.buffers == 0 {
				break
			}
			w.buffers--
		}
		send(traces.RxCheckBody)
		w.arrive()
	case traces.RxCheckBody:
		w.checked = false
		send(traces.EnqRouterIn)
		w.arrive()
	case traces.EnqRouterIn:
		send(traces.RouterIn)
	case traces.RouterIn:
		if w.toHost > 0 {
			w.toHost--
			send(traces.ToHost)
			break
		}
		send(traces.EnqIPOutput)
	case traces.EnqIPOutput:
		if w.peer == w {
			send(traces.WireOutputStart)
			break
		}
		send(traces.PeerToPeerStart)
	case traces.PeerToPeerStart:
		w.chainHeld = true
		w.underWay++
		w.credits--
		send(traces.DMAStartHandler)
	case traces.DMAStartHandler:
		send(traces.DMAGenericStart)
	case traces.DMAGenericStart:
		send(traces.DMAStartBody)
	case traces.DMAStartBody:
		w.inBody = true
		send(traces.DMAStartHeader)
	case traces.DMAStartHeader:
		w.chainHeld, w.inBody = false, false
		w.peer.messages[traces.WireOutputStart]++
	case traces.WireOutputStart:
		w.sending++
		send(traces.WireOutputDone)
	case traces.WireOutputDone:
		w.sending--
		if w.peer == w {
			send(traces.FreeBuffer)
			break
		}
		send(traces.AckSend)
	case traces.AckSend:
		w.peer.messages[traces.PeerAck]++
	case traces.PeerAck:
		w.underWay--
		w.credits++
		send(traces.FreeBuffer)
	case traces.ToHost:
		send(traces.FreeBuffer)
	case traces.FreeBuffer:
		w.done++
		w.buffers++
		if w.checked && w.messages[traces.RxCheckBody] == 0 {
			w.buffers--
			send(traces.RxCheckBody)
		}
		w.arrive()
	}
}
