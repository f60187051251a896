package spine

import (
	"fmt"

	"spinesim/lanai"
	"spinesim/sim/des"
	"spinesim/traces"
)

// static runs a card's static cycle in place of the scans of a policy.
//
// A step that polls looks only at the queues that may hold its message, and
// takes that message even from behind others. What the software must know to
// pass a step over without a poll, it has in its own variables: which packets
// it has begun and not finished, and the DMA engine's status register. Testing
// a variable is free here (chosen), as it is in the handlers' costs.
//
// What no step takes, for the schedule's maker did not foresee it, is looked for
// at the end of passes, in the spare step (static_spare.go): nothing is left
// lying for ever. No wait lasts for ever either.
//
// When a whole pass has found nothing, the passes that follow are polled as one
// run until something comes: the software's variables cannot change meanwhile.
type static struct {
	rt      *Runtime
	cycle   *StaticCycle
	sources []uint8 // queues in which `Wire output start` may be found
	counts  StaticCounts

	step    int
	started bool // a step has been taken
	dry     int  // steps passed since a handler ran

	// What the processor polls for, over and over.
	looks []look
	polls int64 // ended
	most  int64 // allowed; 0 without bound
	slot  int   // handlers run in the present background slot, or spare step
	// whole says that looks are those of a whole pass, and gone what it
	// passes over without a poll.
	// leave ends them: something has come that a step knows without a poll.
	whole, leave bool
	gone         []pass

	// What the software knows.
	underWay []uint8 // egress cards of packets not acknowledged, oldest first
	sending  int     // packets given to the send engine whose `Wire output done` is to come
	// A chain holds the engine until its header transfer begins; inBody while
	// its body moves.
	chainHeld, inBody bool
	nextSource        int

	spares []spare // what no step takes
}

// look is a poll: of a queue, for a step's message. last says that the step is
// passed over when it misses. In the spare step it is for a message of handler.
type look struct {
	step    int
	queue   uint8
	last    bool
	handler traces.Event
}

// pass is a step that is passed over just before poll number `before` of a
// whole pass (from 0), or, with wrap, the beginning of the cycle.
type pass struct {
	before int
	step   int
	wrap   bool
}

// StaticCounts tells how the card's static cycle fared; the zero value when
// the policy is dynamic.
func (r *Runtime) StaticCounts() StaticCounts {
	if r.static == nil {
		return StaticCounts{}
	}
	c := r.static.counts
	c.Steps = append([]StaticStepCounts(nil), c.Steps...)
	return c
}

func newStatic(r *Runtime, c *StaticCycle, cards int) (*static, error) {
	if c == nil {
		return nil, ErrDeferred
	}
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("cycle %q: %w", c.Name, err)
	}
	s := &static{rt: r, cycle: c, counts: StaticCounts{Steps: make([]StaticStepCounts, len(c.Steps))}}
	s.underWay = make([]uint8, 0, cards*r.spec.Credits)
	add := func(card uint8) { s.sources = append(s.sources, r.queueOf(card)) }
	if len(c.Sources) == 0 {
		for i := range uint8(cards) {
			if i != r.index {
				add(i)
			}
		}
	}
	for _, i := range c.Sources {
		if int(i) >= cards {
			return nil, fmt.Errorf("cycle %q: source card %d, want 0 … %d", c.Name, i, cards-1)
		}
		if i != r.index {
			add(i)
		}
	}
	s.findSpares(cards)
	return s, nil
}

// maxWait is how many polls a wait without bound lasts at most (chosen: beyond
// any transfer or packet on the wire). Only cards that wait for each other come
// to that.
const maxWait = 1 << 14

// spare tells whether the present step is the spare one, behind those of the
// cycle.
func (s *static) spare() bool { return s.step == len(s.cycle.Steps) }

// resume goes on with the cycle after a handler, or begins it.
func (s *static) resume(now des.Time) error {
	if !s.started {
		s.started = true
		return s.next(now)
	}
	s.dry = 0
	if s.spare() {
		if s.slot++; s.slot < spareHandlers && s.lookSpare(s.sweeps(0)) {
			s.polls = 0
			return s.poll()
		}
	} else if st := &s.cycle.Steps[s.step]; st.Background() {
		if s.slot++; s.slot < st.Handlers {
			s.polls = 0
			return s.poll()
		}
	}
	s.advance()
	return s.next(now)
}

// advance goes on to the next step: from the last one to the spare one.
func (s *static) advance() {
	s.dry++
	if s.step++; s.step > len(s.cycle.Steps) {
		s.step = 0
		s.counts.Passes++
	}
}

// next does what the first step from the present one on asks for that has
// anything to do.
func (s *static) next(now des.Time) error {
	if s.dry > len(s.cycle.Steps) && s.wholePass() {
		return s.poll()
	}
	s.whole = false
	for range len(s.cycle.Steps) + 1 {
		if s.spare() {
			if s.polls, s.slot = 0, 0; s.lookSpare(s.sweeps(0)) {
				return s.poll()
			}
			s.advance()
			continue
		}
		st := &s.cycle.Steps[s.step]
		s.polls = 0
		if st.Guard == GuardKnown && !st.Background() {
			for _, q := range s.known(st.Handler) {
				if s.has(q, st.Handler) {
					s.counts.Steps[s.step].Ran++
					return s.run(now, q, traces.NoQueue, s.take(q, st.Handler))
				}
			}
		} else if s.looks = s.looks[:0]; s.look(s.step) {
			return s.poll()
		}
		s.why(st.Handler)
		s.counts.Steps[s.step].Absent++
		s.advance()
	}
	s.idle()
	return s.poll()
}

// look adds the polls of a step to looks and sets how often they may be made.
// It tells whether there are any.
func (s *static) look(i int) bool {
	st := &s.cycle.Steps[i]
	from := len(s.looks)
	switch {
	case st.Background():
		s.slot = 0
		for _, q := range st.Order {
			s.looks = append(s.looks, look{step: i, queue: q})
		}
	case !s.comes(st.Handler):
		return false
	default:
		for _, q := range s.places(st.Handler) {
			s.looks = append(s.looks, look{step: i, queue: q})
		}
	}
	s.most = int64(len(s.looks) - from)
	if st.Guard == GuardWait && !st.Background() {
		// At least one of each queue, or what comes in the last ones starves.
		if s.most = max(s.most, int64(st.Polls)); st.Polls == 0 {
			s.most = maxWait
		}
	}
	return len(s.looks) > from
}

// idle makes one poll of the wire's queue, for lack of anything that the
// cycle would poll: it keeps the processor from running in circles.
func (s *static) idle() {
	s.looks = append(s.looks[:0], look{step: -1, queue: QWire, last: true})
	s.polls, s.most = 0, 1
}

// wholePass lays out the polls of whole passes from the present step on, up to
// the pass at whose end everything is looked for. It fails when a step waits
// without bound, or when hardware could change what is passed over without a
// poll.
func (s *static) wholePass() bool {
	s.looks, s.gone = s.looks[:0], s.gone[:0]
	if s.spare() || s.lookSpare(false) {
		return false
	}
	wrap := -1
	for n := range s.cycle.Steps {
		i := (s.step + n) % len(s.cycle.Steps)
		st := &s.cycle.Steps[i]
		from := len(s.looks)
		if i == 0 && n > 0 {
			wrap = from
			s.gone = append(s.gone, pass{before: from, wrap: true})
		}
		switch {
		case st.Guard == GuardKnown && !st.Background():
			for _, q := range s.known(st.Handler) {
				if s.has(q, st.Handler) {
					return false
				}
			}
			if s.blocked(st.Handler) {
				return false
			}
			s.gone = append(s.gone, pass{before: from, step: i})
		case !s.look(i):
			if s.blocked(st.Handler) {
				return false
			}
			s.gone = append(s.gone, pass{before: from, step: i})
		default:
			if st.Guard == GuardWait && st.Polls == 0 && !st.Background() {
				return false
			}
			for k := from; int64(len(s.looks)-from) < s.most; k++ {
				s.looks = append(s.looks, s.looks[k])
			}
			s.looks = s.looks[:from+int(s.most)]
			s.looks[len(s.looks)-1].last = true
		}
	}
	if s.step == 0 {
		wrap = len(s.looks)
		s.gone = append(s.gone, pass{before: wrap, wrap: true}) // only rounds count
	}
	if len(s.looks) == 0 {
		return false
	}
	s.most = 0
	if n, ok := s.untilSweep(); ok {
		if s.most = n*int64(len(s.looks)) + int64(wrap); s.most == 0 {
			return false
		}
	}
	s.polls, s.whole, s.leave = 0, true, false
	return true
}

// blocked tells whether a message of the handler is there and waits for
// something: then why counts, pass by pass, what for.
func (s *static) blocked(h traces.Event) bool {
	r := s.rt
	switch h {
	case traces.PeerToPeerStart:
		for p := range r.starts[:len(r.starts)-1] {
			if r.starts[p].n > 0 {
				return true
			}
		}
	case traces.ToHost:
		return r.starts[len(r.starts)-1].n > 0
	case traces.AckSend:
		return r.acks.n > 0
	case traces.WireOutputStart:
		return r.wireOut.n > 0
	case traces.RxCheckBody:
		return r.bufWait != nil
	case traces.DMAStartHeader:
		return s.inBody
	}
	return false
}

// run ends the present run of polls, if there is one, with a hit on queue hit
// (or none), and starts the handler of a message taken from queue q.
func (s *static) run(now des.Time, q, hit uint8, m message) error {
	r := s.rt
	r.scanning = false
	r.endRun(now, hit)
	return r.startHandler(now, q, m)
}

// poll lets the processor poll up to the first hit, or as often as the step
// allows.
func (s *static) poll() error {
	r := s.rt
	if r.stepping || r.rec.Expanding() {
		r.limit = 1
	} else {
		r.limit = s.left()
		for n := int64(1); n <= min(int64(len(s.looks)), r.limit); n++ {
			if s.hit(s.at(s.polls + n)) {
				r.limit = n
			}
		}
	}
	return r.card.CPU.Poll(r.pollDemand, r.limit)
}

// left is how many polls are still allowed.
func (s *static) left() int64 {
	if s.most == 0 {
		return lanai.Unbounded
	}
	return s.most - s.polls
}

// at is the n-th poll (from 1).
func (s *static) at(n int64) *look { return &s.looks[(n-1)%int64(len(s.looks))] }

// hit tells whether a poll would now find what it is for.
func (s *static) hit(l *look) bool {
	if l.step < 0 {
		return false
	}
	if l.step == len(s.cycle.Steps) {
		return s.has(l.queue, l.handler)
	}
	st := &s.cycle.Steps[l.step]
	if st.Background() {
		return s.rt.mask>>l.queue&1 != 0
	}
	return s.has(l.queue, st.Handler)
}

// pollsEnd is the end of the last poll that the processor was asked for.
func (s *static) pollsEnd(now des.Time) error {
	r := s.rt
	s.polls += r.limit
	l := *s.at(s.polls)
	hit := s.hit(&l)
	if r.rec.Expanding() {
		r.recordPollNow(now, l.queue, hit)
	}
	if s.whole {
		switch {
		case !hit && !s.leave && s.left() > 0:
			return s.poll()
		case !hit:
			s.settle(s.polls - 1)
			s.step, s.whole, s.dry = l.step, false, 0
			s.counts.Steps[s.step].Polls++
			if l.last {
				s.counts.Steps[s.step].Missed++
				s.advance()
			}
			return s.next(now)
		}
		s.settle(s.polls - 1)
		r.limit = 1 // of the step that the hit belongs to
		s.step, s.whole = l.step, false
		if s.cycle.Steps[s.step].Background() {
			// A slot that goes on scans only its own queues.
			s.looks = s.looks[:0]
			s.look(s.step)
		}
	}
	if l.step < 0 {
		s.counts.IdlePolls++
		return s.next(now)
	}
	if s.spare() {
		return s.spareEnd(now, &l, hit)
	}
	st := &s.cycle.Steps[s.step]
	c := &s.counts.Steps[s.step]
	q := l.queue
	c.Polls += uint64(r.limit)
	if hit {
		c.Ran++
		if st.Background() {
			return s.run(now, q, q, r.take(q))
		}
		return s.run(now, q, q, s.take(q, st.Handler))
	}
	if s.left() > 0 && (st.Background() || s.comes(st.Handler)) {
		return s.poll()
	}
	c.Missed++
	if s.left() == 0 && st.Guard == GuardWait && st.Polls == 0 && !st.Background() {
		s.counts.GaveUp++
	}
	s.advance()
	return s.next(now)
}

// settle counts what whole passes came by in their first polls, all of which
// missed.
func (s *static) settle(missed int64) {
	m := int64(len(s.looks))
	rounds, rest := missed/m, missed%m
	for i := range s.looks {
		l := &s.looks[i]
		n := uint64(rounds)
		if int64(i) < rest {
			n++
		}
		c := &s.counts.Steps[l.step]
		c.Polls += n
		if l.last {
			c.Missed += n
		}
	}
	for _, g := range s.gone {
		n := uint64(rounds)
		if int64(g.before) <= rest {
			n++
		}
		if g.wrap {
			s.counts.Passes += n
		} else {
			s.counts.Steps[g.step].Absent += n
		}
	}
}

// finish counts what the polls of the run in progress have come by at the end
// of a simulation.
func (s *static) finish(polls int64) {
	s.polls += polls
	switch {
	case s.whole:
		s.settle(s.polls)
	case s.at(1).step == len(s.cycle.Steps):
		s.counts.UnforeseenPolls += uint64(polls)
	case s.at(1).step >= 0:
		s.counts.Steps[s.step].Polls += uint64(polls)
	}
}

// refresh is told that queue q has changed. A message that is waited for ends
// the run of polls.
func (s *static) refresh(q uint8) error {
	r := s.rt
	if s.whole && r.scanning && q == QSelf && r.self.n > 0 {
		// Only a timer sends while nothing runs: a batch is complete.
		s.leave = true
	}
	if !r.scanning || r.limit == 1 {
		return nil
	}
	n := r.card.CPU.PollsEnded() + 1
	if s.whole && s.leave {
		if n >= r.limit {
			return nil
		}
		r.limit = n
		return r.card.CPU.LimitPolls(n)
	}
	for last := n + int64(len(s.looks)); ; n++ {
		if n == last {
			return nil
		}
		if l := s.at(s.polls + n); l.queue == q && s.hit(l) {
			break
		}
	}
	if n >= r.limit {
		return nil
	}
	r.limit = n
	return r.card.CPU.LimitPolls(n)
}

// --- what the software knows -------------------------------------------------

// began is told of every handler that starts, in a step or a background slot.
func (s *static) began(m message) {
	switch m.handler {
	case traces.PeerToPeerStart:
		s.underWay = append(s.underWay, m.peer)
		s.chainHeld = true
	case traces.DMAStartBody:
		s.inBody = true
	case traces.DMAStartHeader:
		s.chainHeld, s.inBody = false, false
	case traces.PeerAck:
		for i, p := range s.underWay {
			if p == m.peer {
				s.underWay = append(s.underWay[:i], s.underWay[i+1:]...)
				break
			}
		}
	case traces.WireOutputStart, traces.FromHost:
		s.sending++
	case traces.WireOutputDone:
		s.sending--
	case traces.ToHost:
		s.counts.ToHost++
	}
}

// comes tells whether the software must take it that the handler's message is
// there or on its way. Only then is a poll spent on it.
func (s *static) comes(h traces.Event) bool {
	r := s.rt
	switch h {
	case traces.RxCheckHeader:
		// Between the header's check and the body's, no other can come.
		return r.spec.Receive != ReceiveSplit || r.rxPkt == nil || r.rxPkt.buf < 0 && r.bufWait == nil
	case traces.RxCheckBody:
		if r.spec.Receive != ReceiveSplit {
			return s.has(QSelf, h)
		}
		return r.rxPkt != nil && r.rxPkt.buf >= 0
	case traces.PeerToPeerStart:
		return !s.chainHeld && r.oldestOf(len(r.starts)-1) >= 0
	case traces.ToHost:
		host := len(r.starts) - 1
		return !s.chainHeld && r.starts[host].n > 0 && r.credits[host] > 0
	case traces.AckSend:
		return !s.chainHeld && r.acks.n > 0
	case traces.DMAStartHeader:
		return s.inBody
	case traces.DMAStartHandler, traces.DMAGenericStart, traces.DMAStartBody:
		return s.chainHeld && !s.inBody
	case traces.WireOutputDone:
		return s.sending > 0
	case traces.PeerAck:
		// Not that of a packet whose chain has not come to its end.
		if s.chainHeld {
			return len(s.underWay) > 1
		}
		return len(s.underWay) > 0
	case traces.FreeBuffer, traces.EnqRouterIn, traces.RouterIn, traces.EnqIPOutput:
		return s.has(QSelf, h)
	}
	return true
}

// why counts the reason for which a step is passed over without a poll, when
// it is a deviation.
func (s *static) why(h traces.Event) {
	r := s.rt
	waiting := false
	switch h {
	case traces.RxCheckBody:
		if r.bufWait != nil {
			s.counts.NoBuffer++
		}
		return
	case traces.PeerToPeerStart:
		for p := range r.starts[:len(r.starts)-1] {
			waiting = waiting || r.starts[p].n > 0
		}
		if waiting && r.oldestOf(len(r.starts)-1) < 0 {
			s.counts.NoCredit++
			return
		}
	case traces.AckSend:
		waiting = r.acks.n > 0
	case traces.ToHost:
		waiting = r.starts[len(r.starts)-1].n > 0
	}
	if waiting && r.engineBusy {
		s.counts.EngineHeld++
	}
}

var (
	onlySelf = []uint8{QSelf}
	onlyWire = []uint8{QWire}
	onlyHost = []uint8{QHost}
	onlyDMA  = []uint8{QDMA}
	peers    = [...][]uint8{{QPeer}, {QPeer + 1}, {QPeer + 2}}
)

// places are the queues that may hold the handler's message, in the order in
// which they are to be polled.
func (s *static) places(h traces.Event) []uint8 {
	r := s.rt
	switch h {
	case traces.RxCheckHeader, traces.WireOutputDone:
		return onlyWire
	case traces.RxCheckBody:
		if r.spec.Receive == ReceiveSplit {
			return onlyWire
		}
		return onlySelf
	case traces.FromHost:
		return onlyHost
	case traces.PeerToPeerStart, traces.ToHost, traces.AckSend:
		return onlyDMA
	case traces.DMAStartHandler, traces.DMAGenericStart, traces.DMAStartBody, traces.DMAStartHeader:
		if r.spec.Chain == ChainSelf {
			return onlySelf
		}
		return onlyDMA
	case traces.PeerAck:
		// That of the packet longest under way.
		if len(s.underWay) == 0 {
			return nil
		}
		return peers[r.queueOf(s.underWay[0])-QPeer]
	case traces.WireOutputStart:
		if r.wireOut.n > 0 || len(s.sources) == 0 {
			return onlyWire // out on the wire that the packet came from
		}
		// The card that was served last comes last.
		if s.nextSource > 0 {
			k := s.nextSource
			s.nextSource = 0
			rotate(s.sources, k)
		}
		return s.sources
	}
	return onlySelf
}

// known are the queues in which a message of the handler is the software's own
// doing. A packet to send out may also be a peer's: that one is not known of.
func (s *static) known(h traces.Event) []uint8 {
	if h == traces.WireOutputStart {
		return onlyWire
	}
	return s.places(h)
}

// rotate moves the first k of v behind the others.
func rotate(v []uint8, k int) {
	for range k {
		first := v[0]
		copy(v, v[1:])
		v[len(v)-1] = first
	}
}

// --- messages ---------------------------------------------------------------

// oldestOf is the oldest start that can run to one of the first n
// destinations, or -1.
func (r *Runtime) oldestOf(n int) int {
	best := -1
	for p := range r.starts[:n] {
		if r.starts[p].n > 0 && r.credits[p] > 0 && (best < 0 || r.starts[p].front().seq < r.starts[best].front().seq) {
			best = p
		}
	}
	return best
}

// find is the place of the handler's oldest message, or -1.
func (r *ring) find(h traces.Event) int {
	for i := range r.n {
		if r.buf[(r.head+i)&(len(r.buf)-1)].handler == h {
			return i
		}
	}
	return -1
}

// remove takes the i-th message out.
func (r *ring) remove(i int) message {
	mask := len(r.buf) - 1
	m := r.buf[(r.head+i)&mask]
	for ; i > 0; i-- {
		r.buf[(r.head+i)&mask] = r.buf[(r.head+i-1)&mask]
	}
	r.popFront()
	return m
}

// has tells whether queue q holds a message of handler h that can run now.
func (s *static) has(q uint8, h traces.Event) bool {
	r := s.rt
	switch q {
	case QSelf:
		return r.self.find(h) >= 0
	case QWire:
		if h == traces.WireOutputStart {
			return r.wireOut.n > 0 && !r.card.Tx.Busy()
		}
		return r.wire.find(h) >= 0
	case QHost:
		return h == traces.FromHost && r.host.n > 0 && !r.card.Tx.Busy()
	case QDMA:
		switch h {
		case traces.PeerToPeerStart:
			return !r.engineBusy && r.oldestOf(len(r.starts)-1) >= 0
		case traces.ToHost:
			host := len(r.starts) - 1
			return !r.engineBusy && r.starts[host].n > 0 && r.credits[host] > 0
		case traces.AckSend:
			return !r.engineBusy && r.acks.n > 0
		}
		return r.cont.find(h) >= 0
	}
	p := &r.peers[q-QPeer]
	switch h {
	case traces.PeerAck:
		return p.ack.n > 0
	case traces.WireOutputStart:
		return p.out.n > 0 && !r.card.Tx.Busy()
	}
	return false
}

// take removes the handler's message from queue q, which has it.
func (s *static) take(q uint8, h traces.Event) message {
	r := s.rt
	var m message
	switch q {
	case QSelf:
		return r.self.remove(r.self.find(h))
	case QWire:
		if h != traces.WireOutputStart {
			return r.wire.remove(r.wire.find(h))
		}
		m = r.wireOut.popFront()
		m.ready = max(m.ready, r.txIdleAt)
	case QHost:
		m = r.host.popFront()
		m.ready = max(m.ready, r.txIdleAt)
	case QDMA:
		switch h {
		case traces.PeerToPeerStart, traces.ToHost:
			p := len(r.starts) - 1
			if h == traces.PeerToPeerStart {
				p = r.oldestOf(p)
			}
			m = r.starts[p].popFront()
			m.ready = max(m.ready, r.engineIdleAt, r.creditAt[p])
		case traces.AckSend:
			m = r.acks.popFront()
			m.ready = max(m.ready, r.engineIdleAt)
		default:
			m = r.cont.remove(r.cont.find(h))
		}
	default:
		p := &r.peers[q-QPeer]
		if h == traces.PeerAck {
			return p.ack.popFront()
		}
		m = p.out.popFront()
		m.ready = max(m.ready, r.txIdleAt)
		for i, src := range s.sources {
			if src == q {
				s.nextSource = i + 1
			}
		}
	}
	return m
}
