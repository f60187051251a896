package traces

import (
	"container/heap"
	"math/rand/v2"

	"spinesim/sim/des"
)

// The generator below makes a record stream such as a router makes: four cards
// of which card 0 receives and three send, packets that arrive at random, each
// going through receive, route, DMA, output and its acknowledgement, handlers
// found by polling, waits, levels, a few drops. It is a toy of its own, so
// that these tests do not depend on the model, but all of a stream's patterns
// and their entropy are there.

const (
	synthCards   = 4
	synthPeriod  = 30000 // ps
	synthBuffers = 16
	synthFIFO    = 16
	synthCredits = 4
	synthPoll    = 12
)

var synthCost = map[Event]uint64{
	RxCheckHeader: 99, RxCheckBody: 99, EnqRouterIn: 73, RouterIn: 132, EnqIPOutput: 73,
	PeerToPeerStart: 110, DMAStartHandler: 73, DMAGenericStart: 73, DMAStartBody: 73, DMAStartHeader: 73,
	FreeBuffer: 73, PeerAck: 55, WireOutputStart: 110, WireOutputDone: 73, AckSend: 73,
}

type synthEvent struct {
	at  des.Time
	seq uint64
	do  func()
}

type synthHeap []synthEvent

func (h synthHeap) Len() int { return len(h) }
func (h synthHeap) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].seq < h[j].seq
}
func (h synthHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *synthHeap) Push(x any)   { *h = append(*h, x.(synthEvent)) }
func (h *synthHeap) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
}

type synthMessage struct {
	event  Event
	packet uint64
	cause  ID
	ready  des.Time
}

type synthPacket struct {
	number uint64
	bytes  uint32
	since  des.Time
	cause  ID
}

type synthCard struct {
	queues     [7][]synthMessage
	free       des.Time // processor
	running    bool
	engine     bool // DMA engine busy
	send       bool // send engine busy
	continuing []synthMessage
	acks       []synthPacket
	out        []synthPacket
}

type synth struct {
	rng     *rand.Rand
	rec     *Recorder
	h       synthHeap
	seq     uint64
	now     des.Time
	cards   [synthCards]synthCard
	phase   [synthCards]des.Time
	packets map[uint64]*synthPacket
	peer    map[uint64]uint8
	fifo    []synthPacket
	armed   bool // the receive engine waits for a header
	stalled *synthPacket
	buffers int
	credits [synthCards]int
	starts  []synthPacket
	chain   synthPacket
	busFree des.Time
	next    uint64
	made    uint64
	limit   uint64
	gap     float64
}

// generate makes at least n records (few more) from a seed.
func generate(seed, n uint64, sinks ...Sink) error { return generateFrom(seed, n, false, sinks) }

// generateFrom writes polls and queue depths too where it is to expand; the
// other records are the same, and only they count for n.
func generateFrom(seed, n uint64, expand bool, sinks []Sink) error {
	s := &synth{
		rng: rand.New(rand.NewPCG(seed, 1)), limit: n, buffers: synthBuffers, armed: true,
		packets: map[uint64]*synthPacket{}, peer: map[uint64]uint8{}, gap: 84,
	}
	s.rec = NewRecorder(sinks...)
	s.rec.SetExpanding(expand)
	for i := range s.credits {
		s.credits[i] = synthCredits
		s.phase[i] = des.Time(s.rng.IntN(synthPeriod))
		s.cards[i].free = s.phase[i]
	}
	s.arrive()
	for len(s.h) > 0 && s.made < s.limit {
		e := heap.Pop(&s.h).(synthEvent)
		s.now = e.at
		e.do()
	}
	return s.rec.Close()
}

func (s *synth) at(t des.Time, do func()) {
	s.seq++
	heap.Push(&s.h, synthEvent{max(t, s.now), s.seq, do})
}

func (s *synth) add(r Record) ID {
	if r.Expansion() {
		if s.rec.Expanding() {
			s.rec.Add(&r)
		}
		return 0
	}
	if r.Kind != KindLevel {
		r.ID = s.rec.NextID(r.Card)
	}
	s.rec.Add(&r)
	s.made++
	return r.ID
}

func (s *synth) level(card uint8, e Event, n int, peer uint8) {
	s.add(Record{Kind: KindLevel, Event: e, Card: card, Peer: peer, Queue: NoQueue, Start: s.now, End: s.now, Count: uint32(n)})
}

func (s *synth) arrive() {
	wait := des.Time(s.rng.ExpFloat64() * s.gap * 1e6)
	s.at(s.now+max(wait, 9_400_000), func() {
		s.next++
		size := uint32(1500)
		if s.rng.IntN(8) == 0 {
			size = uint32(40 + s.rng.IntN(1460))
		}
		p := synthPacket{number: s.next, bytes: size, since: s.now}
		p.cause = s.add(Record{Kind: KindEnter, Event: NoEvent, Card: 0, Peer: NoCard, Queue: NoQueue, Start: s.now, End: s.now, Packet: p.number, Bytes: size})
		if len(s.fifo) == synthFIFO {
			s.add(Record{Kind: KindLeave, Event: NoEvent, Card: 0, Peer: 0, Queue: NoQueue, Start: s.now, End: s.now, Packet: p.number, Bytes: size, Verdict: VerdictDropped, Reason: ReasonFIFOFull, Cause: p.cause})
		} else {
			s.fifo = append(s.fifo, p)
			s.level(0, LevelFIFO, len(s.fifo), NoCard)
			s.header()
		}
		s.arrive()
	})
}

func (s *synth) header() {
	if !s.armed || len(s.fifo) == 0 {
		return
	}
	s.armed = false
	p := s.fifo[0]
	s.fifo = s.fifo[1:]
	s.packets[p.number] = &p
	s.peer[p.number] = uint8(1 + s.rng.IntN(synthCards-1))
	if p.since != s.now {
		p.cause = s.add(Record{Kind: KindWait, Event: NoEvent, Card: 0, Peer: NoCard, Queue: NoQueue, Start: p.since, End: s.now, Packet: p.number, Reason: ReasonEngineBusy, Cause: p.cause})
	}
	s.level(0, LevelFIFO, len(s.fifo), NoCard)
	start := s.now
	s.at(s.now+32*6250, func() {
		id := s.add(Record{Kind: KindReceive, Event: ReceiveHeader, Card: 0, Peer: NoCard, Queue: NoQueue, Start: start, End: s.now, Ready: start, Packet: p.number, Bytes: 32, Cause: p.cause})
		s.send(0, 1, synthMessage{RxCheckHeader, p.number, id, s.now})
	})
}

func (s *synth) body(p *synthPacket, cause ID) {
	s.buffers--
	s.level(0, LevelBuffers, s.buffers, NoCard)
	start := s.now
	s.at(s.now+des.Time(max(p.bytes, 33)-32)*6250, func() {
		id := s.add(Record{Kind: KindReceive, Event: ReceiveBody, Card: 0, Peer: NoCard, Queue: NoQueue, Start: start, End: s.now, Ready: start, Packet: p.number, Bytes: max(p.bytes, 33) - 32, Cause: cause})
		s.send(0, 1, synthMessage{RxCheckBody, p.number, id, s.now})
	})
}

func (s *synth) send(card, queue uint8, m synthMessage) {
	c := &s.cards[card]
	c.queues[queue] = append(c.queues[queue], m)
	s.level(card, LevelQueue0+Event(queue), len(c.queues[queue]), NoCard)
	s.wake(card)
}

// wake starts the card's next poll run and handler, if it does nothing.
func (s *synth) wake(card uint8) {
	c := &s.cards[card]
	if c.running {
		return
	}
	c.running = true
	idle := c.free
	scan := (s.now - idle) / (synthPoll * synthPeriod)
	found := idle + scan*synthPoll*synthPeriod
	for found < s.now {
		found += synthPoll * synthPeriod
		scan++
	}
	s.at(found, func() { s.dispatch(card, idle, int(scan)) })
}

func (s *synth) dispatch(card uint8, idle des.Time, polls int) {
	c := &s.cards[card]
	for q := range c.queues {
		if len(c.queues[q]) == 0 {
			continue
		}
		m := c.queues[q][0]
		polls += q + 1
		for i := range q + 1 {
			start := s.now + des.Time(i*synthPoll*synthPeriod)
			end := start + synthPoll*synthPeriod
			if s.rec.Expanding() {
				s.at(end, func() {
					s.add(Record{Kind: KindPoll, Event: PollQ0 + Event(i), Card: card, Peer: NoCard, Queue: uint8(i), Start: start, End: end, Count: uint32(i / max(q, 1)), Cycles: synthPoll})
				})
			}
		}
		hit := s.now + des.Time((q+1)*synthPoll*synthPeriod)
		s.at(hit, func() {
			c.queues[q] = c.queues[q][1:]
			s.add(Record{Kind: KindPolls, Event: NoEvent, Card: card, Peer: NoCard, Queue: uint8(q), Start: idle, End: hit, Count: uint32(polls), Cycles: uint64((hit - idle) / synthPeriod)})
			s.level(card, LevelQueue0+Event(q), len(c.queues[q]), NoCard)
			cycles := synthCost[m.event]
			if m.event == RouterIn {
				cycles += uint64(s.rng.IntN(6)) * 9
			}
			stall := uint32(0)
			if s.busFree > s.now || s.rng.IntN(3) == 0 {
				stall = uint32(s.rng.IntN(int(cycles / 8)))
			}
			end := hit + des.Time(cycles+uint64(stall))*synthPeriod
			s.at(end, func() {
				id := s.add(Record{Kind: KindBox, Event: m.event, Card: card, Peer: NoCard, Queue: uint8(q), Start: hit, End: end, Ready: m.ready, Packet: m.packet, Cycles: cycles, Stall: stall, Cause: m.cause})
				c.free, c.running = end, false
				s.effect(card, m, id)
				for q := range c.queues {
					if len(c.queues[q]) > 0 && !c.running {
						c.running = true
						s.at(end, func() { s.dispatch(card, end, 0) })
					}
				}
			})
		})
		return
	}
	c.running = false
}

func (s *synth) effect(card uint8, m synthMessage, id ID) {
	p := s.packets[m.packet]
	next := synthMessage{packet: m.packet, cause: id, ready: s.now}
	self := func(e Event, q uint8) { next.event = e; s.send(card, q, next) }
	switch m.event {
	case RxCheckHeader:
		if s.buffers == 0 {
			s.stalled = p
			p.since, p.cause = s.now, id
			return
		}
		s.body(p, id)
	case RxCheckBody:
		s.armed = true
		s.header()
		self(EnqRouterIn, 0)
	case EnqRouterIn:
		self(RouterIn, 0)
	case RouterIn:
		if s.rng.IntN(100) == 0 {
			s.add(Record{Kind: KindLeave, Event: NoEvent, Card: card, Peer: 0, Queue: NoQueue, Start: s.now, End: s.now, Packet: p.number, Bytes: p.bytes, Verdict: VerdictDropped, Reason: ReasonTTLExpired, Cause: id})
			self(FreeBuffer, 0)
			return
		}
		self(EnqIPOutput, 0)
	case EnqIPOutput:
		p.since, p.cause = s.now, id
		s.starts = append(s.starts, *p)
		s.level(0, LevelBacklog, len(s.starts), NoCard)
		s.startDMA()
	case PeerToPeerStart:
		self(DMAStartHandler, 6)
	case DMAStartHandler:
		self(DMAGenericStart, 6)
	case DMAGenericStart:
		self(DMAStartBody, 6)
	case DMAStartBody:
		s.transfer(0, s.peer[m.packet], TransferBody, m.packet, max(p.bytes, 33)-32, id, func(id ID) {
			s.send(0, 6, synthMessage{DMAStartHeader, m.packet, id, s.now})
		})
	case DMAStartHeader:
		peer := s.peer[m.packet]
		s.transfer(0, peer, TransferHeader, m.packet, 32, id, func(id ID) {
			s.add(Record{Kind: KindDepart, Event: NoEvent, Card: 0, Peer: peer, Queue: NoQueue, Start: s.now, End: s.now, Packet: m.packet, Bytes: p.bytes, Cause: id})
			s.cards[0].engine = false
			p.since, p.cause = s.now, id
			s.cards[peer].out = append(s.cards[peer].out, *p)
			s.output(peer)
			s.startDMA()
		})
	case WireOutputStart:
		start := s.now
		s.at(s.now+des.Time(p.bytes)*6250, func() {
			id := s.add(Record{Kind: KindSend, Event: SendPacket, Card: card, Peer: NoCard, Queue: NoQueue, Start: start, End: s.now, Ready: start, Packet: p.number, Bytes: p.bytes, Cause: id})
			s.add(Record{Kind: KindLeave, Event: NoEvent, Card: card, Peer: 0, Queue: NoQueue, Start: s.now, End: s.now, Packet: p.number, Bytes: p.bytes, Verdict: VerdictForwarded, Cause: id})
			s.send(card, 1, synthMessage{WireOutputDone, p.number, id, s.now})
		})
	case WireOutputDone:
		s.cards[card].send = false
		s.output(card)
		self(AckSend, 6)
	case AckSend:
		s.transfer(card, 0, TransferAck, m.packet, 4, id, func(id ID) {
			s.send(0, 2+card, synthMessage{PeerAck, m.packet, id, s.now})
		})
	case PeerAck:
		peer := s.peer[m.packet]
		s.credits[peer]++
		s.level(0, LevelCredits, s.credits[peer], peer)
		self(FreeBuffer, 0)
		s.startDMA()
	case FreeBuffer:
		s.buffers++
		s.level(0, LevelBuffers, s.buffers, NoCard)
		delete(s.packets, m.packet)
		delete(s.peer, m.packet)
		if w := s.stalled; w != nil {
			s.stalled = nil
			s.add(Record{Kind: KindWait, Event: NoEvent, Card: 0, Peer: NoCard, Queue: NoQueue, Start: w.since, End: s.now, Packet: w.number, Reason: ReasonNoBuffer, Cause: id})
			s.body(w, id)
		}
	}
}

func (s *synth) output(card uint8) {
	c := &s.cards[card]
	if c.send || len(c.out) == 0 {
		return
	}
	c.send = true
	p := c.out[0]
	c.out = c.out[1:]
	if p.since != s.now {
		s.add(Record{Kind: KindWait, Event: NoEvent, Card: card, Peer: 0, Queue: NoQueue, Start: p.since, End: s.now, Packet: p.number, Reason: ReasonWireBusy, Cause: p.cause})
	}
	s.send(card, 2, synthMessage{WireOutputStart, p.number, p.cause, p.since})
}

func (s *synth) startDMA() {
	if s.cards[0].engine {
		return
	}
	for i, p := range s.starts {
		peer := s.peer[p.number]
		if s.credits[peer] == 0 {
			continue
		}
		s.cards[0].engine = true
		s.credits[peer]--
		s.level(0, LevelCredits, s.credits[peer], peer)
		s.starts = append(append([]synthPacket(nil), s.starts[:i]...), s.starts[i+1:]...)
		s.level(0, LevelBacklog, len(s.starts), NoCard)
		if p.since != s.now {
			reason := ReasonEngineBusy
			if i > 0 {
				reason = ReasonNoCredit
			}
			s.add(Record{Kind: KindWait, Event: NoEvent, Card: 0, Peer: peer, Queue: NoQueue, Start: p.since, End: s.now, Packet: p.number, Reason: reason, Cause: p.cause})
		}
		s.send(0, 6, synthMessage{PeerToPeerStart, p.number, p.cause, s.now})
		return
	}
}

// transfer uses the bus when it is free. Its clock is the cards' with phase 0.
func (s *synth) transfer(card, peer uint8, e Event, packet uint64, bytes uint32, cause ID, done func(ID)) {
	asked := s.now
	grant := max(asked, s.busFree)
	grant = (grant + synthPeriod - 1) / synthPeriod * synthPeriod
	words := uint64(bytes+3) / 4
	cycles := 4 + 3*words
	stall := uint32(s.rng.IntN(3)) * 2
	end := grant + des.Time(cycles+uint64(stall))*synthPeriod
	s.busFree = end
	if grant-asked > synthPeriod {
		s.at(grant, func() {
			cause = s.add(Record{Kind: KindWait, Event: e, Card: card, Peer: peer, Queue: NoQueue, Start: asked, End: grant, Packet: packet, Reason: ReasonBusBusy, Cause: cause})
		})
	}
	s.at(end, func() {
		done(s.add(Record{Kind: KindTransfer, Event: e, Card: card, Peer: peer, Queue: NoQueue, Start: grant, End: end, Ready: asked, Packet: packet, Bytes: bytes, Cycles: cycles, Stall: stall, Cause: cause}))
	})
}

// synthMeta is the metadata to go with a generated stream.
func synthMeta(seed uint64) *Meta {
	m := &Meta{
		Version: RecordVersion, Program: "spinesim test", Scenario: "synthetic", ScenarioYAML: "name: synthetic\ncards: 4\n",
		ScenarioHash: "00c0ffee", Seed: seed, RunID: "run-1", RouteTableBytes: 15872,
		Labels: []Label{{"purpose", "tests, \"quoted\""}, {"unit", "µs"}},
	}
	for i := range synthCards {
		m.Cards = append(m.Cards, CardMeta{Name: []string{"in", "out a", "out b", "out c"}[i], ClockNum: 100_000_000, ClockDen: 3, Phase: des.Time(1000 * i), QueueOrder: Order{0, 1, 2, 3, 4, 5, 6}})
	}
	return m
}

// collect is a sink that keeps everything.
type collect []Record

func (c *collect) Record(r *Record) error { *c = append(*c, *r); return nil }

// sample is a generated stream in memory.
func sample(tb interface{ Fatal(...any) }, seed, n uint64) []Record {
	var c collect
	if err := generate(seed, n, &c); err != nil {
		tb.Fatal(err)
	}
	return c
}

// sampleExpanded is sample with polls and queue depths too.
func sampleExpanded(tb interface{ Fatal(...any) }, seed, n uint64) []Record {
	var c collect
	if err := generateFrom(seed, n, true, []Sink{&c}); err != nil {
		tb.Fatal(err)
	}
	return c
}

// wild makes records with any value in any field; times are not negative and
// ends do not decrease, so that every format can hold them.
func wild(seed, n uint64) []Record {
	rng := rand.New(rand.NewPCG(seed, 2))
	any64 := func() uint64 { return rng.Uint64() >> rng.IntN(64) * uint64(rng.IntN(2)) }
	out := make([]Record, n)
	end := des.Time(0)
	card := uint8(0)
	for i := range out {
		if c := uint8(rng.UintN(256)); rng.IntN(2) == 0 && c >= card {
			card = c
		} else {
			end += des.Time(1 + rng.Uint64()>>(24+rng.IntN(40)))
			card = uint8(rng.UintN(256))
		}
		out[i] = Record{
			Start: end - min(end, des.Time(any64()>>1)), End: end, Ready: des.Time(any64() >> 1), ID: ID(any64()), Cause: ID(any64()),
			Packet: any64(), Bytes: uint32(any64()), Count: uint32(any64()), Cycles: any64(), Stall: uint32(any64()),
			Kind: Kind(rng.UintN(256)), Event: Event(rng.UintN(256)), Card: card, Peer: uint8(rng.UintN(256)),
			Queue: uint8(rng.UintN(256)), Reason: Reason(rng.UintN(256)), Verdict: Verdict(rng.UintN(256)),
		}
	}
	return out
}
