package traces

import (
	"math/rand/v2"
	"slices"

	"spinesim/sim/des"
)

// A small, obvious model of the machine, good enough to write records that
// keep every invariant: cards with one processor, one DMA engine, one receive
// and one send engine, a bus of fixed speed with random waits, and memory fast
// enough for all of them. It exists
// to feed the measures with streams of every shape.

const modelCycle = 30 * des.Nanosecond

type modelMessage struct {
	at     des.Time // sent
	ready  des.Time // precondition met
	event  Event
	packet *modelPacket
	cause  ID
	peer   int
}

type modelPacket struct {
	id              uint64
	ingress, egress int
	bytes           int
	routed          des.Time
	host, drop      bool
}

type modelCard struct {
	n          int
	queues     [6][]modelMessage // Q0 … Q5
	cont       []modelMessage    // Q6: continuations, acks, starts
	acks       []modelMessage
	starts     []modelMessage
	busy       bool // a box runs, or a hit is on its way
	idleFrom   des.Time
	engine     bool
	engineFree des.Time
	sending    bool
	credits    []int
	creditAt   []des.Time
	buffers    int
	fifo       []*modelPacket
	armed      bool
	bufWait    *modelPacket
	waitFrom   des.Time
	waitCause  ID
	backlog    int
}

type modelEvent struct {
	at  des.Time
	seq int
	f   func()
}

type model struct {
	rng     *rand.Rand
	now     des.Time
	events  []modelEvent
	seq     int
	cards   []*modelCard
	ids     []uint64
	recs    []Record
	busFree des.Time
	next    uint64
	jitter  int // cycles by which handlers vary
	pci     bool
}

type modelSpec struct {
	seed     uint64
	cards    int
	ingress  int // cards that packets enter by
	packets  int
	gap      des.Time // mean time between arrivals on a card
	poisson  bool
	buffers  int
	credits  int
	bad      float64 // share dropped, and as many to the host
	pciFirst bool
}

func (m *model) after(d des.Time, f func()) {
	m.seq++
	m.events = append(m.events, modelEvent{m.now + d, m.seq, f})
}

func (m *model) id(card int) ID {
	m.ids[card]++
	return MakeID(uint8(card), m.ids[card])
}

func (m *model) add(r Record) { m.recs = append(m.recs, r) }

func (m *model) level(c *modelCard, e Event, n int, peer int) {
	m.add(Record{Kind: KindLevel, Event: e, Card: uint8(c.n), Peer: uint8(peer), Queue: NoQueue, Start: m.now, End: m.now, Ready: m.now, Count: uint32(n)})
}

func runModel(s modelSpec) []Record {
	m := &model{rng: rand.New(rand.NewPCG(s.seed, 1)), ids: make([]uint64, s.cards), jitter: 20, pci: s.pciFirst}
	for i := range s.cards {
		c := &modelCard{n: i, buffers: s.buffers, armed: true, credits: make([]int, s.cards), creditAt: make([]des.Time, s.cards)}
		for j := range c.credits {
			c.credits[j] = s.credits
		}
		m.cards = append(m.cards, c)
	}
	for i := range s.ingress {
		c := m.cards[i]
		at := des.Time(0)
		for range s.packets {
			gap := s.gap
			if s.poisson {
				gap = des.Time(float64(gap) * m.rng.ExpFloat64())
			}
			at += gap
			p := &modelPacket{ingress: i, bytes: 60 + m.rng.IntN(1440)}
			p.egress = (i + 1 + m.rng.IntN(s.cards-1)) % s.cards
			switch x := m.rng.Float64(); {
			case x < s.bad:
				p.drop = true
			case x < 2*s.bad:
				p.host = true
			}
			m.after(at, func() { m.arrive(c, p) })
		}
	}
	for len(m.events) > 0 {
		best := 0
		for i, e := range m.events {
			if b := m.events[best]; e.at < b.at || e.at == b.at && e.seq < b.seq {
				best = i
			}
		}
		e := m.events[best]
		m.events[best] = m.events[len(m.events)-1]
		m.events = m.events[:len(m.events)-1]
		m.now = e.at
		e.f()
	}
	// The last polls of each card.
	end := m.now + 100*modelCycle
	for _, c := range m.cards {
		if n := (end - c.idleFrom) / (12 * modelCycle); !c.busy && n > 0 {
			m.polls(c, c.idleFrom, n, NoQueue)
		}
	}
	slices.SortStableFunc(m.recs, func(a, b Record) int {
		if a.End != b.End {
			return int(min(1, max(-1, a.End-b.End)))
		}
		return int(a.Card) - int(b.Card)
	})
	return m.recs
}

func (m *model) polls(c *modelCard, from des.Time, n des.Time, q uint8) {
	end := from + n*12*modelCycle
	m.add(Record{Kind: KindPolls, Event: NoEvent, Card: uint8(c.n), Peer: NoCard, Queue: q, Start: from, End: end, Ready: from, Count: uint32(n), Cycles: uint64(12 * n)})
}

func (m *model) arrive(c *modelCard, p *modelPacket) {
	m.next++
	p.id = m.next
	m.add(Record{Kind: KindEnter, Event: NoEvent, Card: uint8(c.n), Peer: NoCard, Queue: NoQueue, Start: m.now, End: m.now, Ready: m.now, Packet: p.id, Bytes: uint32(p.bytes), ID: m.id(c.n)})
	if len(c.fifo) == 16 {
		m.leave(c, p, VerdictDropped, ReasonFIFOFull, 0)
		return
	}
	c.fifo = append(c.fifo, p)
	m.level(c, LevelFIFO, len(c.fifo), NoCard)
	m.receive(c)
}

func (m *model) leave(c *modelCard, p *modelPacket, v Verdict, why Reason, cause ID) {
	m.add(Record{Kind: KindLeave, Event: NoEvent, Card: uint8(c.n), Peer: uint8(p.ingress), Queue: NoQueue, Start: m.now, End: m.now, Ready: m.now, Packet: p.id, Verdict: v, Reason: why, ID: m.id(c.n), Cause: cause})
}

func (m *model) engineRun(c *modelCard, k Kind, e Event, p *modelPacket, bytes int, cause ID, done func(ID)) {
	start := m.now
	d := des.Time(bytes) * 12500 // 80 MB/s
	m.after(d, func() {
		id := m.id(c.n)
		m.add(Record{Kind: k, Event: e, Card: uint8(c.n), Peer: NoCard, Queue: NoQueue, Start: start, End: m.now, Ready: start, Packet: p.id, Bytes: uint32(bytes), ID: id, Cause: cause})
		done(id)
	})
}

func (m *model) receive(c *modelCard) {
	if !c.armed || len(c.fifo) == 0 {
		return
	}
	c.armed = false
	p := c.fifo[0]
	m.engineRun(c, KindReceive, ReceiveHeader, p, 32, 0, func(id ID) {
		m.send(c, 1, modelMessage{event: RxCheckHeader, packet: p, cause: id})
	})
}

func (m *model) body(c *modelCard, p *modelPacket, cause ID) {
	c.buffers--
	m.level(c, LevelBuffers, c.buffers, NoCard)
	m.engineRun(c, KindReceive, ReceiveBody, p, p.bytes-32, cause, func(id ID) {
		c.fifo = c.fifo[1:]
		m.level(c, LevelFIFO, len(c.fifo), NoCard)
		m.send(c, 1, modelMessage{event: RxCheckBody, packet: p, cause: id})
	})
}

func (m *model) send(c *modelCard, q int, msg modelMessage) {
	msg.at, msg.ready = m.now, m.now
	c.queues[q] = append(c.queues[q], msg)
	m.wake(c)
}

func (m *model) chain(c *modelCard, e Event, p *modelPacket, cause ID) {
	c.cont = append([]modelMessage{{at: m.now, ready: m.now, event: e, packet: p, cause: cause}}, c.cont...)
	m.wake(c)
}

// pick finds the message that runs next; take removes it.
func (m *model) pick(c *modelCard, take bool) (modelMessage, uint8, bool) {
	order := []uint8{0, 1, 2, 3, 4, 5, 6}
	if m.pci {
		order = []uint8{6, 3, 4, 5, 0, 1, 2}
	}
	for _, q := range order {
		if q < 6 {
			for i, x := range c.queues[q] {
				if x.event == WireOutputStart && c.sending {
					continue
				}
				if take {
					c.queues[q] = slices.Delete(c.queues[q], i, i+1)
				}
				return x, q, true
			}
			continue
		}
		if len(c.cont) > 0 {
			x := c.cont[0]
			if take {
				c.cont = c.cont[1:]
			}
			return x, 6, true
		}
		if c.engine {
			continue
		}
		if len(c.acks) > 0 {
			x := c.acks[0]
			x.ready = max(x.at, c.engineFree)
			if take {
				c.acks = c.acks[1:]
			}
			return x, 6, true
		}
		for i, x := range c.starts {
			if x.event == PeerToPeerStart && c.credits[x.peer] == 0 {
				continue
			}
			x.ready = max(x.at, c.engineFree)
			if x.event == PeerToPeerStart {
				x.ready = max(x.ready, c.creditAt[x.peer])
			}
			if take {
				c.starts = slices.Delete(c.starts, i, i+1)
			}
			return x, 6, true
		}
	}
	return modelMessage{}, 0, false
}

// wake lets an idle processor find what has become ready.
func (m *model) wake(c *modelCard) {
	if c.busy {
		return
	}
	if _, _, ok := m.pick(c, false); !ok {
		return
	}
	c.busy = true
	n := (m.now-c.idleFrom)/(12*modelCycle) + 1 + des.Time(m.rng.IntN(7))
	m.after(c.idleFrom+n*12*modelCycle-m.now, func() {
		x, q, _ := m.pick(c, true)
		m.polls(c, c.idleFrom, n, q)
		m.run(c, x, q)
	})
}

func (m *model) wait(c *modelCard, x modelMessage, why Reason) {
	if x.ready <= x.at {
		why = ReasonLowerPriority
	}
	if x.at < m.now {
		ready := x.at // the handler's record tells
		if m.rng.IntN(2) == 0 {
			ready = x.ready
		}
		m.add(Record{Kind: KindWait, Event: x.event, Card: uint8(c.n), Peer: NoCard, Queue: 6, Start: x.at, End: m.now, Ready: ready, Packet: x.packet.id, Cause: x.cause, Reason: why, ID: m.id(c.n)})
	}
}

func (m *model) run(c *modelCard, x modelMessage, q uint8) {
	start, id := m.now, m.id(c.n)
	switch x.event {
	case PeerToPeerStart:
		c.engine = true
		c.backlog--
		c.credits[x.peer]--
		m.level(c, LevelBacklog, c.backlog, NoCard)
		m.level(c, LevelCredits, c.credits[x.peer], x.peer)
		why := ReasonEngineBusy
		if c.creditAt[x.peer] > x.at && c.creditAt[x.peer] >= c.engineFree {
			why = ReasonNoCredit
		}
		m.wait(c, x, why)
	case AckSend, ToHost:
		c.engine = true
		m.wait(c, x, ReasonEngineBusy)
	}
	cycles := 60 + m.rng.IntN(60)
	stall := m.rng.IntN(m.jitter)
	m.after(des.Time(cycles+stall)*modelCycle, func() {
		m.add(Record{
			Kind: KindBox, Event: x.event, Card: uint8(c.n), Peer: NoCard, Queue: q, Start: start, End: m.now, Ready: x.ready,
			Packet: x.packet.id, ID: id, Cause: x.cause, Cycles: uint64(cycles), Stall: uint32(stall),
		})
		m.effects(c, x, id)
		c.busy, c.idleFrom = false, m.now
		m.wake(c)
	})
}

func (m *model) transfer(c *modelCard, e Event, p *modelPacket, bytes int, peer int, cause ID, done func(ID)) {
	ready := m.now
	grant := max(ready+60*des.Nanosecond, m.busFree) + des.Time(m.rng.IntN(10))*modelCycle
	clocks := 5 + des.Time(bytes+3)/4*3
	end := grant + clocks*modelCycle
	m.busFree = end + modelCycle
	m.after(end-m.now, func() {
		id := m.id(c.n)
		m.add(Record{
			Kind: KindTransfer, Event: e, Card: uint8(c.n), Peer: uint8(peer), Queue: NoQueue, Ready: ready, Start: grant, End: end,
			Packet: p.id, Bytes: uint32(bytes), ID: id, Cause: cause, Cycles: uint64(clocks + 1),
		})
		done(id)
	})
}

func (m *model) engineIdle(c *modelCard) {
	c.engine, c.engineFree = false, m.now
	m.wake(c)
}

func (m *model) effects(c *modelCard, x modelMessage, id ID) {
	p := x.packet
	switch x.event {
	case RxCheckHeader:
		if c.buffers == 0 {
			c.bufWait, c.waitFrom, c.waitCause = p, m.now, id
			return
		}
		m.body(c, p, id)
	case RxCheckBody:
		c.armed = true
		m.receive(c)
		m.send(c, 0, modelMessage{event: EnqRouterIn, packet: p, cause: id})
	case EnqRouterIn:
		m.send(c, 0, modelMessage{event: RouterIn, packet: p, cause: id})
	case RouterIn:
		switch {
		case p.drop:
			m.leave(c, p, VerdictDropped, ReasonNoRoute, id)
			m.send(c, 0, modelMessage{event: FreeBuffer, packet: p, cause: id})
		case p.host:
			c.starts = append(c.starts, modelMessage{at: m.now, event: ToHost, packet: p, cause: id})
		default:
			m.send(c, 0, modelMessage{event: EnqIPOutput, packet: p, cause: id})
		}
	case EnqIPOutput:
		c.backlog++
		m.level(c, LevelBacklog, c.backlog, NoCard)
		c.starts = append(c.starts, modelMessage{at: m.now, event: PeerToPeerStart, packet: p, cause: id, peer: p.egress})
	case PeerToPeerStart:
		m.chain(c, DMAStartHandler, p, id)
	case DMAStartHandler:
		m.chain(c, DMAGenericStart, p, id)
	case DMAGenericStart:
		m.chain(c, DMAStartBody, p, id)
	case DMAStartBody:
		m.transfer(c, TransferBody, p, p.bytes-32, p.egress, id, func(id ID) { m.chain(c, DMAStartHeader, p, id) })
	case DMAStartHeader:
		m.transfer(c, TransferHeader, p, 32, p.egress, id, func(id ID) {
			m.add(Record{Kind: KindDepart, Event: NoEvent, Card: uint8(c.n), Peer: uint8(p.egress), Queue: NoQueue, Start: m.now, End: m.now, Ready: m.now, Packet: p.id, ID: m.id(c.n), Cause: id})
			m.engineIdle(c)
			to := m.cards[p.egress]
			m.send(to, 3+(c.n+len(m.cards)-to.n-1)%len(m.cards), modelMessage{event: WireOutputStart, packet: p, cause: id})
		})
	case WireOutputStart:
		c.sending = true
		m.engineRun(c, KindSend, SendPacket, p, p.bytes, id, func(sent ID) {
			c.sending = false
			m.leave(c, p, VerdictForwarded, ReasonNone, sent)
			m.send(c, 1, modelMessage{event: WireOutputDone, packet: p, cause: sent})
		})
	case WireOutputDone:
		c.acks = append(c.acks, modelMessage{at: m.now, event: AckSend, packet: p, cause: id})
	case AckSend:
		m.transfer(c, TransferAck, p, 4, p.ingress, id, func(id ID) {
			m.engineIdle(c)
			in := m.cards[p.ingress]
			m.send(in, 3+(c.n+len(m.cards)-in.n-1)%len(m.cards), modelMessage{event: PeerAck, packet: p, cause: id})
		})
	case PeerAck:
		if c.credits[p.egress] == 0 {
			c.creditAt[p.egress] = m.now
		}
		c.credits[p.egress]++
		m.level(c, LevelCredits, c.credits[p.egress], p.egress)
		m.send(c, 0, modelMessage{event: FreeBuffer, packet: p, cause: id})
	case ToHost:
		m.transfer(c, TransferToHost, p, p.bytes, HostCard, id, func(id ID) {
			m.engineIdle(c)
			m.leave(c, p, VerdictToHost, ReasonNoRoute, id)
			m.send(c, 0, modelMessage{event: FreeBuffer, packet: p, cause: id})
		})
	case FreeBuffer:
		c.buffers++
		m.level(c, LevelBuffers, c.buffers, NoCard)
		if w := c.bufWait; w != nil {
			c.bufWait = nil
			m.add(Record{Kind: KindWait, Event: RxCheckHeader, Card: uint8(c.n), Peer: NoCard, Queue: NoQueue, Start: c.waitFrom, End: m.now, Ready: m.now, Packet: w.id, Reason: ReasonNoBuffer, ID: m.id(c.n), Cause: id})
			m.body(c, w, id)
		}
	}
}

// modelStreams are streams of every shape: too slow, saturated, short of
// buffers, short of credits, several ingress cards, another order.
func modelStreams(packets int) []modelSpec {
	us := des.Microsecond
	return []modelSpec{
		{seed: 1, cards: 4, ingress: 1, packets: packets, gap: 200 * us, buffers: 16, credits: 4},
		{seed: 2, cards: 4, ingress: 1, packets: packets, gap: 90 * us, poisson: true, buffers: 16, credits: 4},
		{seed: 3, cards: 4, ingress: 1, packets: packets, gap: 40 * us, poisson: true, buffers: 16, credits: 4, bad: 0.05},
		{seed: 4, cards: 4, ingress: 4, packets: packets, gap: 250 * us, poisson: true, buffers: 16, credits: 4, bad: 0.02},
		{seed: 5, cards: 2, ingress: 1, packets: packets, gap: 60 * us, buffers: 2, credits: 1},
		{seed: 6, cards: 3, ingress: 2, packets: packets, gap: 120 * us, poisson: true, buffers: 4, credits: 1, pciFirst: true},
	}
}
