package spine

import (
	"fmt"
	"math"

	"spinesim/lanai"
	"spinesim/sim/des"
	"spinesim/traces"
)

// Runtime is the SPINE run-time of one card: its queues, its dispatcher and
// its I/O. It implements lanai.Program and the clients of the card's engines.
type Runtime struct {
	router *Router
	spec   *Spec
	eng    *des.Engine
	rec    *traces.Recorder
	card   *lanai.Card
	index  uint8

	policy     Policy
	vector     VectorPolicy // the policy, when it needs the event vector
	static     *static      // what runs the policy's cycle, when it has one
	view       View
	vec        Vector
	plan       Plan
	fixed      bool // the plan never changes, and the policy does not ask for hits
	pollDemand lanai.Demand

	// Messages. A queue's bit in mask is set while it holds one that can run.
	self, wire, wireOut, host ring
	peers                     [NumQueues - 1 - QPeer]peerQueue
	cont, acks                ring
	starts                    []ring // by egress card; the last one is for the host
	mask                      uint8
	seq                       uint64

	// Polling.
	scanning bool
	planDone int64 // polls of the plan before the processor's present run
	limit    int64 // polls of the processor's present run
	runStart des.Time
	runPolls int64
	runStall int64
	stepping bool // poll by poll, for comparison

	// The handler that runs.
	cur       message
	curQueue  uint8
	curDemand lanai.Demand
	curID     traces.ID
	curStart  des.Time
	curRuns   bool      // executed: it does
	exec      *executed // what runs instead of the cost table, or nil

	// Receiving.
	rxPkt    *packet // the packet being received
	bufWait  *packet // has its header, waits for a buffer
	rxIdle   bool    // whole and ring: no buffer was free to arm
	bufAddr  []uint32
	freeBufs []int32
	sharers  []int32 // by buffer: packets that use it besides one
	staging  uint32
	nextBuf  int32 // whole and ring: the armed buffer

	// Sending over the bus.
	engineBusy   bool
	engineIdleAt des.Time
	credits      []int
	creditAt     []des.Time
	nextSlot     []int32
	peerSlots    []uint32 // by ingress card (and host): base of its slots here
	ackBox       []uint32 // by egress card: where its ACKs are written
	txIdleAt     des.Time
	txPkt        *packet
	txPeer       uint8
	dmaPacket    *packet // whose transfer the engine runs

	// Extensions.
	batch    batch
	exts     []loaded
	ctx      Context
	extPkt   Packet
	verdict  Verdict
	unloaded []Unloaded

	counts Counts
}

type peerQueue struct{ out, ack ring }

// Unloaded tells of an extension that the run-time stopped.
type Unloaded struct {
	Extension string
	Card      uint8
	At        des.Time
	Reason    string
}

// Counts are a card's own counters.
type Counts struct {
	Polls, Hits, Handlers uint64
	ByHandler             [traces.NumEvents]uint64
}

// Index is the card's number in the router.
func (r *Runtime) Index() uint8 { return r.index }

// Card is the card under the run-time.
func (r *Runtime) Card() *lanai.Card { return r.card }

// Policy is the dispatcher's policy.
func (r *Runtime) Policy() Policy { return r.policy }

// Unloaded lists the extensions that were stopped.
func (r *Runtime) Unloaded() []Unloaded { return r.unloaded }

// Counts are the card's counters so far.
func (r *Runtime) Counts() Counts { return r.counts }

// FreeBuffers is the number of packet buffers in the free list.
func (r *Runtime) FreeBuffers() int { return len(r.freeBufs) }

// SetStepping makes the dispatcher poll one queue at a time instead of
// computing whole scans; the results are the same, only slower.
func (r *Runtime) SetStepping(on bool) { r.stepping = on }

func (r *Runtime) start() error {
	if r.exec != nil {
		return r.exec.start()
	}
	if err := r.armFirst(); err != nil {
		return err
	}
	// The first poll begins with the card's first clock edge.
	return r.scan(r.card.TimeOf(r.card.CycleAt(r.eng.Now())))
}

// --- scanning ---------------------------------------------------------------

// scan begins a new scan after a handler (or at the start).
func (r *Runtime) scan(now des.Time) error {
	r.runStart, r.runPolls, r.runStall = now, 0, 0
	r.scanning = true
	if r.static != nil {
		return r.static.resume(now)
	}
	return r.replan()
}

func (r *Runtime) replan() error {
	r.planDone = 0
	if r.vector == nil && !r.fixed {
		r.view.FreeBuffers, r.view.EngineBusy = len(r.freeBufs), r.engineBusy
		r.plan.Fixed = false
		r.policy.Plan(&r.view, &r.plan)
		if err := r.plan.Check(); err != nil {
			return fmt.Errorf("card %d at %v: policy %s %w", r.index, r.eng.Now(), r.policy.Name(), err)
		}
		r.fixed = r.plan.Fixed
	}
	return r.poll()
}

// poll lets the processor poll up to the first queue that is ready now.
func (r *Runtime) poll() error {
	if r.stepping || r.rec.Expanding() {
		r.limit = 1
	} else {
		r.limit = r.firstHit(r.planDone) - r.planDone
	}
	return r.card.CPU.Poll(r.pollDemand, r.limit)
}

// queueAt is the queue that poll n of the plan (from 1) looks at.
func (r *Runtime) queueAt(n int64) uint8 {
	l := int64(len(r.plan.Seq))
	if n <= l {
		return r.plan.Seq[n-1]
	}
	loop := int64(r.plan.Loop)
	return r.plan.Seq[loop+(n-1-l)%(l-loop)]
}

// firstHit is the number of the first poll of the plan after poll `after` that
// would hit with the present queues, or the plan's last one when it does not
// loop, or lanai.Unbounded.
func (r *Runtime) firstHit(after int64) int64 {
	if r.vector != nil {
		if r.mask != 0 {
			return after + 1
		}
		return lanai.Unbounded
	}
	l := int64(len(r.plan.Seq))
	if r.plan.Loop < 0 {
		for n := after + 1; n < l; n++ {
			if r.mask>>r.plan.Seq[n-1]&1 != 0 {
				return n
			}
		}
		return l
	}
	if r.mask == 0 {
		return lanai.Unbounded
	}
	for n := after + 1; n <= max(after, l)+l; n++ {
		if r.mask>>r.queueAt(n)&1 != 0 {
			return n
		}
	}
	return lanai.Unbounded
}

// PollsEnd is called by the processor when the last poll it was asked for has
// ended: a hit, or the end of a plan or of a single step.
func (r *Runtime) PollsEnd(now des.Time) error {
	r.planDone += r.limit
	r.runPolls += r.limit
	r.runStall += r.card.CPU.Stall()
	if r.static != nil {
		return r.static.pollsEnd(now)
	}
	var q uint8
	hit := false
	if r.vector != nil {
		if hit = r.mask != 0; hit {
			var err error
			if q, err = r.choose(now); err != nil {
				return err
			}
		}
	} else {
		q = r.queueAt(r.planDone)
		hit = r.mask>>q&1 != 0
	}
	if r.rec.Expanding() {
		r.recordPollNow(now, q, hit)
	}
	if !hit {
		if r.vector == nil && r.plan.Loop < 0 && r.planDone >= int64(len(r.plan.Seq)) {
			return r.replan()
		}
		return r.poll()
	}
	r.scanning = false
	if !r.fixed {
		r.policy.Hit(r.planDone, q)
	}
	r.endRun(now, q)
	return r.begin(now, q)
}

// endRun ends a run of polls with a hit in queue q, or none.
func (r *Runtime) endRun(now des.Time, q uint8) {
	r.recordRun(now, q, r.runPolls*int64(r.pollDemand.Cycles))
}

// recordRun is endRun for polls that took so many cycles of their own. The
// record, nil for none, may still be added to.
func (r *Runtime) recordRun(now des.Time, q uint8, cycles int64) *traces.Record {
	r.counts.Polls += uint64(r.runPolls)
	if q != traces.NoQueue {
		r.counts.Hits++
	}
	if r.rec == nil || r.runPolls == 0 {
		return nil
	}
	rec := r.rec.Next(now, r.index)
	rec.Kind, rec.Queue = traces.KindPolls, q
	rec.Start, rec.Ready = r.runStart, r.runStart
	rec.Count = uint32(min(r.runPolls, math.MaxUint32))
	rec.Cycles = uint64(cycles)
	rec.Stall = uint32(min(r.runStall, math.MaxUint32))
	return rec
}

// recordPollNow records the poll that has just ended.
func (r *Runtime) recordPollNow(now des.Time, q uint8, hit bool) {
	r.recordPoll(r.card.CPU.Start(), now, q, hit, int64(r.pollDemand.Cycles), r.card.CPU.Stall())
}

func (r *Runtime) recordPoll(from, to des.Time, q uint8, hit bool, cycles, stall int64) {
	rec := traces.Record{
		Kind: traces.KindPoll, Event: traces.PollQ0 + traces.Event(q), Card: r.index, Peer: traces.NoCard, Queue: q,
		Start: from, End: to, Ready: from, Cycles: uint64(cycles), Stall: uint32(stall),
	}
	if hit {
		rec.Count = 1
	}
	r.rec.Add(&rec)
}

// finish closes the present run of polls at the end of a simulation.
func (r *Runtime) finish(now des.Time) {
	if r.exec != nil {
		r.exec.finish(now)
		return
	}
	if !r.scanning {
		return
	}
	r.runPolls += r.card.CPU.PollsEnded()
	r.runStall += r.card.CPU.Stall()
	if r.static != nil {
		r.static.finish(r.card.CPU.PollsEnded())
	}
	r.endRun(now, traces.NoQueue)
	r.runPolls, r.runStall, r.runStart = 0, 0, now
}

// restep makes a long run of polls end with the poll in progress, so that the
// dispatcher goes on poll by poll.
func (r *Runtime) restep() error {
	if !r.scanning || r.limit == 1 {
		return nil
	}
	n := r.card.CPU.PollsEnded() + 1
	if n >= r.limit {
		return nil
	}
	r.limit = n
	return r.card.CPU.LimitPolls(n)
}

// refresh recomputes whether queue q is ready. A queue that becomes ready
// while the dispatcher polls may shorten its scan.
func (r *Runtime) refresh(q uint8) error {
	was := r.mask>>q&1 != 0
	is := r.ready(q)
	if is != was {
		r.mask ^= 1 << q
	}
	if r.static != nil {
		return r.static.refresh(q)
	}
	if is == was || !is || !r.scanning || r.limit == 1 {
		return nil
	}
	done := r.card.CPU.PollsEnded()
	n := done + 1
	if r.vector == nil {
		base := r.planDone
		l := int64(len(r.plan.Seq))
		for ; r.queueAt(base+n) != q; n++ {
			if r.plan.Loop < 0 && base+n >= l || n > done+2*l {
				return nil
			}
		}
	}
	if n >= r.limit {
		return nil
	}
	r.limit = n
	return r.card.CPU.LimitPolls(n)
}

// ready tells whether queue q holds a message that can run now.
func (r *Runtime) ready(q uint8) bool {
	switch q {
	case QSelf:
		return r.self.n > 0
	case QWire:
		return r.wire.n > 0 || r.wireOut.n > 0 && !r.card.Tx.Busy()
	case QHost:
		return r.host.n > 0 && !r.card.Tx.Busy()
	case QDMA:
		return r.cont.n > 0 || !r.engineBusy && (r.acks.n > 0 || r.oldestStart() >= 0)
	default:
		p := &r.peers[q-QPeer]
		return p.ack.n > 0 || p.out.n > 0 && !r.card.Tx.Busy()
	}
}

// oldestStart is the peer whose oldest start can run and is the oldest of
// those, or -1.
func (r *Runtime) oldestStart() int {
	best, seq := -1, uint64(math.MaxUint64)
	for p := range r.starts {
		s := &r.starts[p]
		if s.n == 0 || r.credits[p] == 0 {
			continue
		}
		if f := s.front(); f.seq < seq {
			best, seq = p, f.seq
		}
	}
	return best
}

// take is takeInto for a message of its own.
func (r *Runtime) take(q uint8) (m message) {
	r.takeInto(q, &m)
	return m
}

// takeInto removes the message that queue q offers, as m, and completes its ready
// time.
func (r *Runtime) takeInto(q uint8, m *message) {
	switch q {
	case QSelf:
		r.self.popInto(m)
	case QWire:
		if r.wireOut.n > 0 && !r.card.Tx.Busy() && (r.wire.n == 0 || r.wireOut.front().seq < r.wire.front().seq) {
			r.wireOut.popInto(m)
			m.ready = max(m.ready, r.txIdleAt)
		} else {
			r.wire.popInto(m)
		}
	case QHost:
		r.host.popInto(m)
		m.ready = max(m.ready, r.txIdleAt)
	case QDMA:
		switch {
		case r.cont.n > 0:
			r.cont.popInto(m)
		case r.acks.n > 0:
			r.acks.popInto(m)
			m.ready = max(m.ready, r.engineIdleAt)
		default:
			p := r.oldestStart()
			r.starts[p].popInto(m)
			m.ready = max(m.ready, r.engineIdleAt, r.creditAt[p])
		}
	default:
		p := &r.peers[q-QPeer]
		if p.out.n > 0 && !r.card.Tx.Busy() && (p.ack.n == 0 || p.out.front().seq < p.ack.front().seq) {
			p.out.popInto(m)
			m.ready = max(m.ready, r.txIdleAt)
		} else {
			p.ack.popInto(m)
		}
	}
}

// depth is the number of messages in queue q, whether they can run or not.
func (r *Runtime) depth(q uint8) int {
	switch q {
	case QSelf:
		return r.self.n
	case QWire:
		return r.wire.n + r.wireOut.n
	case QHost:
		return r.host.n
	case QDMA:
		n := r.cont.n + r.acks.n
		for i := range r.starts {
			n += r.starts[i].n
		}
		return n
	default:
		p := &r.peers[q-QPeer]
		return p.out.n + p.ack.n
	}
}

// age orders queue q's oldest message among those of other queues.
func (r *Runtime) age(q uint8) uint64 {
	oldest := uint64(math.MaxUint64)
	look := func(g *ring) {
		if g.n > 0 {
			oldest = min(oldest, g.front().seq)
		}
	}
	switch q {
	case QSelf:
		look(&r.self)
	case QWire:
		look(&r.wire)
		if !r.card.Tx.Busy() {
			look(&r.wireOut)
		}
	case QHost:
		look(&r.host)
	case QDMA:
		look(&r.cont)
		if !r.engineBusy {
			look(&r.acks)
			if p := r.oldestStart(); p >= 0 {
				look(&r.starts[p])
			}
		}
	default:
		p := &r.peers[q-QPeer]
		look(&p.ack)
		if !r.card.Tx.Busy() {
			look(&p.out)
		}
	}
	return oldest
}

func (r *Runtime) choose(now des.Time) (uint8, error) {
	// It lives in the run-time, for what is handed to an interface escapes.
	v := &r.vec
	*v = Vector{Ready: r.mask}
	for q := range uint8(NumQueues) {
		if r.mask>>q&1 != 0 {
			v.Depth[q] = r.depth(q)
			v.Age[q] = r.age(q)
		}
	}
	q := r.vector.Choose(v)
	if r.mask>>q&1 == 0 {
		return 0, fmt.Errorf("card %d at %v: policy %s chose Q%d, which is not ready", r.index, now, r.policy.Name(), q)
	}
	return q, nil
}

// --- sending messages -------------------------------------------------------

func (r *Runtime) message(now des.Time, h traces.Event, p *packet, cause traces.ID, peer uint8) message {
	r.seq++
	return message{ready: now, seq: r.seq, cause: cause, pkt: p, handler: h, peer: peer}
}

// fill is message in place.
func (r *Runtime) fill(m *message, now des.Time, h traces.Event, p *packet, cause traces.ID, peer uint8) {
	r.seq++
	m.ready, m.seq, m.cause, m.pkt, m.handler, m.peer = now, r.seq, cause, p, h, peer
}

// send puts a message at the back of one of the plain queues.
func (r *Runtime) send(g *ring, q uint8, now des.Time, h traces.Event, p *packet, cause traces.ID, peer uint8) error {
	r.fill(g.newBack(), now, h, p, cause, peer)
	r.levelQueue(now, q)
	return r.refresh(q)
}

func (r *Runtime) sendSelf(now des.Time, h traces.Event, p *packet, cause traces.ID) error {
	return r.send(&r.self, QSelf, now, h, p, cause, traces.NoCard)
}

// sendChain sends a continuation of the DMA chain.
func (r *Runtime) sendChain(now des.Time, h traces.Event, p *packet, cause traces.ID) error {
	if r.spec.Chain == ChainSelf {
		return r.sendSelf(now, h, p, cause)
	}
	r.fill(r.cont.newFront(), now, h, p, cause, p.egress)
	r.levelQueue(now, QDMA)
	return r.refresh(QDMA)
}

func (r *Runtime) levelQueue(now des.Time, q uint8) {
	if r.rec.Expanding() {
		r.level(now, traces.LevelQueue0+traces.Event(q), r.depth(q), q, traces.NoCard)
	}
}

func (r *Runtime) level(now des.Time, ev traces.Event, n int, q, peer uint8) {
	if r.rec == nil {
		return
	}
	rec := r.rec.Next(now, r.index)
	rec.Kind, rec.Event, rec.Peer, rec.Queue = traces.KindLevel, ev, peer, q
	rec.Start, rec.Ready, rec.Count = now, now, uint32(n)
}

// --- handlers ---------------------------------------------------------------

// begin takes queue q's message and starts its handler.
func (r *Runtime) begin(now des.Time, q uint8) error {
	r.takeInto(q, &r.cur)
	return r.startCurrent(now, q)
}

// startHandler starts the handler of a message just taken from queue q.
func (r *Runtime) startHandler(now des.Time, q uint8, m message) error {
	if r.static != nil {
		r.static.began(m)
	}
	r.cur = m
	return r.startCurrent(now, q)
}

// startCurrent starts the handler of the current message, from queue q.
func (r *Runtime) startCurrent(now des.Time, q uint8) error {
	m := &r.cur
	r.levelQueue(now, q)
	r.curQueue, r.curStart = q, now
	r.curID = r.rec.NextID(r.index)
	d := r.spec.Costs.Handler[m.handler].demand()
	switch m.handler {
	case traces.PeerToPeerStart:
		r.beginStart(now, *m)
	case traces.ToHost:
		r.engineBusy = true
		r.credits[len(r.credits)-1]--
		r.wait(now, m.pkt, m.ready, traces.ReasonEngineBusy)
	case traces.AckSend:
		r.engineBusy = true
		r.wait(now, m.pkt, m.ready, traces.ReasonEngineBusy)
	case traces.WireOutputStart, traces.FromHost:
		r.wait(now, m.pkt, m.ready, traces.ReasonWireBusy)
	case traces.RouterIn:
		d = r.runExtensions(now, m.pkt, d)
	}
	// Taking a message, an engine or a credit can only make queues unready;
	// none of that shortens a scan, for the processor runs a handler now.
	if err := r.refresh(q); err != nil {
		return err
	}
	r.curDemand = d
	return r.card.CPU.Run(d)
}

// wait records how long the packet of a message with a precondition waited. The
// handler's record tells since when it could have run.
func (r *Runtime) wait(now des.Time, p *packet, ready des.Time, why traces.Reason) {
	if r.rec == nil || p == nil || p.pushed >= now {
		return
	}
	if ready <= p.pushed {
		why = traces.ReasonLowerPriority
	}
	rec := r.rec.Next(now, r.index)
	rec.Kind, rec.Event, rec.Peer, rec.Queue = traces.KindWait, r.cur.handler, r.cur.peer, r.curQueue
	rec.Start, rec.Ready, rec.Reason = p.pushed, p.pushed, why
	rec.Packet, rec.Cause, rec.ID = p.id, r.cur.cause, r.rec.NextID(r.index)
}

// BoxEnd is called by the processor when a handler has run to completion: its
// effects happen now.
func (r *Runtime) BoxEnd(now des.Time) error {
	m := &r.cur
	r.recordBox(now, int64(r.curDemand.Cycles), r.card.CPU.Stall())
	if err := r.effects(now, m); err != nil {
		return err
	}
	m.pkt = nil
	return r.scan(now)
}

// recordBox counts and records the handler that has just ended. The record, nil
// for none, may still be added to.
func (r *Runtime) recordBox(now des.Time, cycles, stall int64) *traces.Record {
	m := &r.cur
	r.counts.Handlers++
	r.counts.ByHandler[m.handler]++
	r.view.HandlersRun++
	r.view.LastQueue = r.curQueue
	if r.rec == nil {
		return nil
	}
	rec := r.rec.Next(now, r.index)
	rec.Kind, rec.Event, rec.Peer, rec.Queue = traces.KindBox, m.handler, m.peer, r.curQueue
	rec.Start, rec.Ready = r.curStart, m.ready
	rec.ID, rec.Cause = r.curID, m.cause
	rec.Cycles, rec.Stall = uint64(cycles), uint32(stall)
	if m.pkt != nil {
		rec.Packet, rec.Bytes = m.pkt.id, uint32(m.pkt.bytes)
	}
	return rec
}

func (r *Runtime) effects(now des.Time, m *message) error {
	p := m.pkt
	switch m.handler {
	case traces.RxCheckHeader:
		return r.headerChecked(now, p)
	case traces.RxCheckBody:
		return r.bodyChecked(now, p)
	case traces.EnqRouterIn:
		return r.batch.add(now, p, r.curID)
	case traces.RouterIn:
		return r.routed(now, p)
	case traces.EnqIPOutput:
		return r.output(now, p)
	case traces.PeerToPeerStart:
		return r.sendChain(now, traces.DMAStartHandler, p, r.curID)
	case traces.DMAStartHandler:
		return r.sendChain(now, traces.DMAGenericStart, p, r.curID)
	case traces.DMAGenericStart:
		return r.sendChain(now, traces.DMAStartBody, p, r.curID)
	case traces.DMAStartBody:
		return r.startBody(now, p)
	case traces.DMAStartHeader:
		return r.startHeader(p)
	case traces.WireOutputStart, traces.FromHost:
		return r.startWire(now, p, *m)
	case traces.WireOutputDone:
		return r.wireDone(now, p, *m)
	case traces.AckSend:
		return r.sendAck(p, m.peer)
	case traces.PeerAck:
		return r.acked(now, p, m.peer)
	case traces.FreeBuffer:
		return r.freeBuffer(now, p)
	case traces.ToHost:
		return r.startToHost(p)
	}
	return fmt.Errorf("card %d: no handler for %v", r.index, m.handler)
}

// Load adds extensions behind those that the card has. It is for the time
// before the router starts.
func (r *Runtime) Load(xs ...Extension) {
	for _, x := range xs {
		r.exts = append(r.exts, loaded{x, r.router.calling.name(x)})
	}
}

// loaded is an extension with its number for Calling.
type loaded struct {
	Extension
	name uint64
}
