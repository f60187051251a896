package spine

import (
	"errors"
	"fmt"

	"spinesim/lanai"
	"spinesim/lanai/isa"
	"spinesim/pci"
	"spinesim/sim/des"
	"spinesim/spine/firmware"
	"spinesim/traces"
)

// Execution says what of the run-time the card's processor executes.
type Execution string

// The ways.
const (
	// ExecuteTable runs no instructions: what polls and handlers cost is data.
	ExecuteTable Execution = "table"
	// ExecuteHandlers executes each poll and handler, compiled from C. The
	// dispatcher that calls them, and its policy, are Go and take no time.
	ExecuteHandlers Execution = "handlers"
	// ExecuteFull executes the whole firmware, dispatcher included.
	ExecuteFull Execution = "full"
)

// executed runs a card's polls and handlers as compiled code. What the queues,
// lists and counters in the card's memory hold decides what happens; the
// Runtime beside it follows, so that every packet, message and level appears in
// the record as it does without execution. Where the two do not agree about a
// message (ErrOutOfStep), and after a fault of the run-time's own code, the card
// stops: its processor executes nothing more, see Stop.
//
// It implements lanai.Program and the clients of the card's engines.
type executed struct {
	rt     *Runtime
	fw     *firmware.Card
	full   bool
	pollAt [NumQueues]uint32 // the polls' addresses

	polling bool // handlers: a poll is being executed
	q       uint8
	scanned bool // handlers: polls are executed in a scan of the plan's
	list    isa.Scan
	cut     bool         // the scan was told to end with the poll in progress,
	cutFrom int64        // which began then
	cutAt   isa.Counters // with that
	rx      *packet      // being received
	free    des.Time     // since when a buffer has been free
	early   *lanai.Frame // sent before its handler's end

	moved    *pci.Transfer // to the host, before its handler's end
	movedHow pci.Status

	// Where the present box or run of polls began.
	from   int64
	before isa.Counters

	runCycles int64 // of the present run of polls

	stopped traces.Reason // why the extension was stopped in this handler
	faults  []ExtensionFault
	missed  uint64 // faults that are not listed
	stop    *Stop  // why the card has stopped, nil while it works
	fatal   error  // of Enter or Exit, and no fault of the firmware
	marks   [traces.NumMarks]uint64

	// Full: the poll in progress, where every one is recorded.
	open      bool
	openQ     uint8
	openFrom  int64 // cycle in which it began
	openWaits int64 // for memory, before it
}

// ExtensionFault is what an extension in C was stopped for.
type ExtensionFault struct {
	Card  uint8
	First des.Time
	Count uint64
	// PC is where, Symbol what encloses it, Text the whole.
	PC     uint32
	Symbol string
	Text   string

	err error
}

// maxFaults bounds the list of a card (chosen).
const maxFaults = 64

// Faults lists what extensions in C were stopped for, by place and kind, and how
// many more there were than are listed.
func (r *Runtime) Faults() (list []ExtensionFault, more uint64) {
	if r.exec == nil {
		return nil, 0
	}
	return r.exec.faults, r.exec.missed
}

// Marks counts the marks log_0 to log_4 that the firmware has passed.
func (r *Runtime) Marks() [traces.NumMarks]uint64 {
	if r.exec == nil {
		return [traces.NumMarks]uint64{}
	}
	return r.exec.marks
}

// Firmware is the executed firmware, nil where costs are data.
func (r *Runtime) Firmware() *firmware.Card {
	if r.exec == nil {
		return nil
	}
	return r.exec.fw
}

// newExecuted loads the firmware into a card that is otherwise ready.
func newExecuted(r *Runtime, how Execution, in firmware.Inputs, cards int) (*executed, error) {
	if err := Executable(r.spec, r.policy, how); err != nil {
		return nil, err
	}
	x := &executed{rt: r, full: how == ExecuteFull}
	in.Buffers, in.Credits, in.MaxPacket = r.spec.Buffers, r.spec.Credits, r.spec.MaxPacket
	in.Watchdog = int64(r.spec.Watchdog)
	in.HostAt = hostExecuted + uint32(r.index)*hostSlotStride
	var w firmware.Watcher
	if x.full {
		w = x
		order := r.policy.(*Strict).Order()
		in.Order = order[:]
	}
	var err error
	if x.fw, err = firmware.NewWatched(r.card, in, w); err != nil {
		return nil, err
	}
	x.pollAt = x.fw.Polls()
	x.fw.CPU.OnMark = x.mark
	for i := range r.spec.Buffers {
		r.freeBufs = append(r.freeBufs, int32(i)) // as a count; which is which the firmware knows
	}
	r.sharers = make([]int32, r.spec.Buffers)
	r.view.Buffers = r.spec.Buffers
	r.account(cards)
	return x, nil
}

// hostExecuted is where in the host's memory executed firmware puts packets: one
// slot a card, behind those of the Runtime.
const hostExecuted = 1 << 20

// Executable tells what of a run-time the firmware in C cannot do: a *SpecError,
// or what ExecutablePolicy says. nil is that it can.
func Executable(s *Spec, p Policy, how Execution) error {
	switch {
	case how != ExecuteHandlers && how != ExecuteFull:
		return bad("execution", "%q, want %s, %s or %s", how, ExecuteTable, ExecuteHandlers, ExecuteFull)
	case s.Receive != ReceiveSplit:
		return bad("receive", "%s, and the executed firmware receives %s only", s.Receive, ReceiveSplit)
	case s.Chain != ChainDMA:
		return bad("dma_chain", "%s, and the executed firmware's continuations go to the front of Q6: want %s", s.Chain, ChainDMA)
	case s.HeaderBytes != 32:
		return bad("header_bytes", "%d, and the executed firmware receives headers of 32 bytes", s.HeaderBytes)
	case s.Batch != 1:
		return bad("batch", "%d, and the executed firmware routes packets one by one: want 1", s.Batch)
	case s.AckBytes != 4:
		return bad("ack_bytes", "%d, and the executed firmware's ACKs are words", s.AckBytes)
	case s.Buffers > firmware.MostBuffers:
		return bad("buffers", "%d, and the executed firmware's queues have room for the messages of %d", s.Buffers, firmware.MostBuffers)
	case s.Credits > firmware.MostCredits:
		return bad("credits", "%d, and the executed firmware keeps at most %d slots", s.Credits, firmware.MostCredits)
	case s.MaxPacket > 16384:
		return bad("max_packet", "%d bytes, and a card with executed firmware has room for 16384", s.MaxPacket)
	case s.HostReturn:
		return bad("host_return", "the executed firmware takes no packets from the host")
	}
	return ExecutablePolicy(p, how)
}

// ExecutablePolicy tells why a policy cannot be used with executed firmware; nil
// when it can.
func ExecutablePolicy(p Policy, how Execution) error {
	switch x := p.(type) {
	case VectorPolicy:
		return fmt.Errorf("%s reads the hardware event vector, which the executed firmware does not have", p.Name())
	case StaticPolicy, *Deferred:
		return fmt.Errorf("%s runs a fixed cycle, and the executed firmware looks for messages by polling", p.Name())
	case *Strict:
		return nil
	default:
		if how == ExecuteFull {
			return fmt.Errorf("%s is not an order of the seven queues, and that is all that the dispatcher in C knows", x.Name())
		}
		return nil
	}
}

func (x *executed) start() error {
	r := x.rt
	if err := x.fw.Arm(); err != nil {
		return err
	}
	now := r.card.TimeOf(r.card.CycleAt(r.eng.Now()))
	if x.full {
		x.beginRun(now)
		return x.fw.Dispatch()
	}
	return x.scan(now)
}

// beginRun begins a run of polls.
func (x *executed) beginRun(now des.Time) {
	r := x.rt
	r.runStart, r.runPolls, r.runStall, x.runCycles = now, 0, 0, 0
	x.begin()
}

// begin notes where the processor stands.
func (x *executed) begin() {
	x.from, x.before = x.rt.card.CPU.Begin(), x.fw.CPU.Counters()
}

// since is what the processor has done since begin: its own cycles, those of an
// instruction that a fault cut off among them, and those it waited for memory.
func (x *executed) since() (cycles, waits int64, n isa.Counters) {
	n = x.fw.CPU.Counters().Sub(x.before)
	return x.fw.CPU.Cycle() - x.from - n.Waits, n.Waits, n
}

// scan begins a new scan after a handler, or at the start.
func (x *executed) scan(now des.Time) error {
	x.beginRun(now)
	return x.replan()
}

func (x *executed) replan() error {
	r := x.rt
	r.planDone = 0
	r.view.FreeBuffers, r.view.EngineBusy = len(r.freeBufs), r.engineBusy
	r.policy.Plan(&r.view, &r.plan)
	if err := r.plan.Check(); err != nil {
		return fmt.Errorf("card %d at %v: policy %s %w", r.index, r.eng.Now(), r.policy.Name(), err)
	}
	return x.poll()
}

// poll begins the next poll of the plan. Where not every one is recorded, all
// that follow it are executed in one go, until one hits.
func (x *executed) poll() error {
	r := x.rt
	x.polling = true
	x.begin()
	if x.scanned = !r.rec.Expanding() && r.planDone == 0; x.scanned {
		x.list.Entries, x.list.Loop = x.list.Entries[:0], r.plan.Loop
		for _, q := range r.plan.Seq {
			x.list.Entries = append(x.list.Entries, x.pollAt[q])
		}
		return x.fw.BeginScan(&x.list)
	}
	x.q = r.queueAt(r.planDone + 1)
	return x.fw.BeginPoll(x.q)
}

// PollsEnd implements lanai.Program: a scan has ended, with a hit or because the
// plan has.
func (x *executed) PollsEnd(now des.Time) error { return x.own(now, x.pollsEnd(now)) }

func (x *executed) pollsEnd(now des.Time) error {
	n := x.tally()
	x.rt.planDone += n - 1
	x.q = x.rt.queueAt(x.rt.planDone + 1)
	if x.cut && x.rt.rec.Expanding() {
		waits := x.fw.CPU.Counters().Sub(x.cutAt).Waits
		x.rt.recordPoll(x.rt.card.TimeOf(x.cutFrom), now, x.q, x.fw.Hit(), x.fw.CPU.Cycle()-x.cutFrom-waits, waits)
	}
	x.cut = false
	return x.polled(now)
}

// tally takes in the polls of a scan that have ended, and tells how many.
func (x *executed) tally() int64 {
	n, at, done := x.fw.CPU.Scanned()
	waits := done.Sub(x.before).Waits
	x.rt.runPolls += n
	x.runCycles += at - x.from - waits
	x.rt.runStall += waits
	return n
}

// BoxEnd implements lanai.Program: a poll or a handler has returned.
func (x *executed) BoxEnd(now des.Time) error { return x.own(now, x.boxEnd(now)) }

func (x *executed) boxEnd(now des.Time) error {
	switch {
	case x.full:
		return astray("the dispatcher has returned")
	case x.polling:
		return x.polled(now)
	}
	if err := x.exit(now); err != nil {
		return err
	}
	return x.scan(now)
}

func (x *executed) polled(now des.Time) error {
	r := x.rt
	x.polling = false
	hit := x.fw.Hit()
	r.planDone++
	if !x.scanned {
		cycles, waits, _ := x.since()
		r.runPolls++
		x.runCycles += cycles
		r.runStall += waits
		if r.rec.Expanding() {
			r.recordPoll(r.card.TimeOf(x.from), now, x.q, hit, cycles, waits)
		}
	}
	if !hit {
		if r.plan.Loop < 0 && r.planDone >= int64(len(r.plan.Seq)) {
			return x.replan()
		}
		return x.poll()
	}
	r.policy.Hit(r.planDone, x.q)
	r.recordRun(now, x.q, x.runCycles)
	ev, arg, err := x.fw.Found()
	if err != nil {
		return astray("%w", err)
	}
	if err := x.enter(now, ev, arg, x.q); err != nil {
		return err
	}
	return x.fw.BeginFound()
}

// finish closes the present run of polls at the end of a simulation.
func (x *executed) finish(now des.Time) {
	x.rt.card.CPU.Settle()
	if x.stop != nil || x.rt.cur.pkt != nil || x.rt.curRuns {
		return // nothing runs, or a handler
	}
	x.closeRun(now)
	x.beginRun(now)
}

// closeRun records the run of polls in progress, if there is one.
func (x *executed) closeRun(now des.Time) *traces.Record {
	switch {
	case x.full:
		x.runOfDispatcher(0)
	case !x.polling:
		return nil
	default: // polls are of unequal lengths, so the one in progress counts for what it took
		if x.scanned {
			n, _, _ := x.fw.CPU.Scanned()
			x.rt.runPolls += n
		}
		cycles, waits, _ := x.since()
		x.runCycles += cycles
		x.rt.runStall += waits
	}
	return x.rt.recordRun(now, traces.NoQueue, x.runCycles)
}

// runOfDispatcher takes what the dispatcher has done since the last handler for
// a run of polls. Every poll is a computed jump; called is how many others there
// were.
func (x *executed) runOfDispatcher(called int64) {
	cycles, waits, n := x.since()
	x.rt.runPolls, x.runCycles, x.rt.runStall = n.Jumps-called, cycles, waits
}

// Enter implements firmware.Watcher.
func (x *executed) Enter(ev traces.Event, arg uint32) error {
	r := x.rt
	now := r.eng.Now()
	x.runOfDispatcher(1)
	q := x.queueOf(ev, arg)
	x.closePoll(x.fw.CPU.Cycle(), true)
	x.open = false
	r.recordRun(now, q, x.runCycles)
	if err := x.enter(now, ev, arg, q); err != nil {
		x.beginRun(now) // of no polls
		return x.inFirmware(err)
	}
	return nil
}

// Exit implements firmware.Watcher.
func (x *executed) Exit() error {
	now := x.rt.eng.Now()
	err := x.exit(now)
	x.beginRun(now)
	x.from = x.fw.CPU.Cycle()
	return x.inFirmware(err)
}

// jump is told of the dispatcher's calls where every poll is recorded.
func (x *executed) jump(target uint32, cycle int64) {
	for q, at := range x.pollAt {
		if at != target {
			continue
		}
		x.closePoll(cycle, false)
		x.open, x.openQ, x.openFrom, x.openWaits = true, uint8(q), cycle, x.fw.CPU.Counters().Waits
		return
	}
}

// closePoll records the dispatcher's poll in progress, if that is followed,
// which ends with the given cycle.
func (x *executed) closePoll(cycle int64, hit bool) {
	if !x.open {
		return
	}
	waits := x.fw.CPU.Counters().Waits - x.openWaits
	c := x.rt.card
	x.rt.recordPoll(c.TimeOf(x.openFrom), c.TimeOf(cycle), x.openQ, hit, cycle-x.openFrom-waits, waits)
}

// expand asks for every poll, or no longer.
func (x *executed) expand(on bool) {
	x.rt.card.CPU.Settle()
	if x.stop != nil {
		return
	}
	if !x.full {
		if on && x.polling && x.scanned && !x.cut {
			_, x.cutFrom, x.cutAt = x.fw.CPU.Scanned()
			x.cut = true
			x.fw.CPU.EndScan()
		}
		return
	}
	x.open = false
	x.fw.CPU.OnJump = nil
	if on {
		x.fw.CPU.OnJump = x.jump
	}
}

// queueOf is the queue whose poll found a message.
func (x *executed) queueOf(ev traces.Event, arg uint32) uint8 {
	switch ev {
	case traces.RxCheckHeader, traces.RxCheckBody, traces.WireOutputDone:
		return QWire
	case traces.EnqRouterIn, traces.RouterIn, traces.EnqIPOutput:
		return QSelf
	case traces.FreeBuffer:
		if m := x.rt.self.lookFor(ev, arg); m != nil && m.pkt.handedUp {
			return QDMA // the end of its transfer to the host
		}
		return QSelf
	case traces.WireOutputStart:
		if arg == 0 {
			return QWire
		}
		fallthrough
	case traces.PeerAck:
		if peer, ok := x.fw.PeerOf(arg, x.rt.index); ok {
			return x.rt.queueOf(peer)
		}
	}
	return QDMA
}

// take removes the message that the firmware has found from where the Runtime
// has it.
func (x *executed) take(ev traces.Event, arg uint32, q uint8) (message, error) {
	r := x.rt
	var from *ring
	var m message
	peer, isPeer := x.fw.PeerOf(arg, r.index)
	switch ev {
	case traces.RxCheckHeader, traces.RxCheckBody, traces.WireOutputDone:
		from = &r.wire
		arg = 0
	case traces.EnqRouterIn, traces.RouterIn, traces.EnqIPOutput, traces.FreeBuffer:
		from = &r.self
	case traces.DMAStartHandler, traces.DMAGenericStart, traces.DMAStartBody, traces.DMAStartHeader:
		from = &r.cont
	case traces.PeerAck:
		if isPeer {
			from = &r.peers[r.queueOf(peer)-QPeer].ack
		}
		arg = 0
	case traces.WireOutputStart:
		switch {
		case arg == 0:
			from = &r.wireOut
		case isPeer:
			from = &r.peers[r.queueOf(peer)-QPeer].out
		}
		arg = 0
	case traces.PeerToPeerStart:
		if isPeer && int(peer) < len(r.starts) {
			from = &r.starts[peer]
		}
		arg = 0
	case traces.ToHost:
		from = &r.starts[len(r.starts)-1]
		arg = 0
	case traces.AckSend:
		m, ok := r.acks.takeLowestPeer()
		if ok {
			m.ready = max(m.ready, r.engineIdleAt)
			return m, nil
		}
	}
	if ev == traces.PeerToPeerStart && isPeer && int(peer) < len(r.starts) && r.credits[peer] == 0 {
		return m, astray("it starts a packet for card %d, which has no room for one", peer)
	}
	ok := false
	if from != nil {
		m, ok = from.takeFirst(ev, arg)
	}
	if !ok {
		return m, astray("it found %v for %#x in Q%d, where no such message is", ev, arg, q)
	}
	switch ev {
	case traces.RxCheckHeader:
		m.ready = max(m.ready, x.free)
	case traces.WireOutputStart:
		m.ready = max(m.ready, r.txIdleAt)
	case traces.ToHost:
		m.ready = max(m.ready, r.engineIdleAt)
	case traces.PeerToPeerStart:
		m.ready = max(m.ready, r.engineIdleAt, r.creditAt[peer])
	}
	return m, nil
}

// enter begins a handler.
func (x *executed) enter(now des.Time, ev traces.Event, arg uint32, q uint8) error {
	r := x.rt
	m, err := x.take(ev, arg, q)
	if err != nil {
		return err
	}
	r.levelQueue(now, q)
	r.cur, r.curQueue, r.curStart, r.curRuns = m, q, now, true
	r.curID = r.rec.NextID(r.index)
	x.stopped = traces.ReasonNone
	switch ev {
	case traces.PeerToPeerStart:
		r.beginStart(now, m)
	case traces.ToHost:
		r.engineBusy = true
		r.credits[len(r.credits)-1]--
		m.pkt.handedUp = true
		r.wait(now, m.pkt, m.ready, traces.ReasonEngineBusy)
	case traces.AckSend:
		r.engineBusy = true
		r.wait(now, m.pkt, m.ready, traces.ReasonEngineBusy)
	case traces.WireOutputStart:
		r.wait(now, m.pkt, m.ready, traces.ReasonWireBusy)
		r.txPkt, r.txPeer = m.pkt, m.peer
	}
	x.begin()
	if x.full {
		x.from = x.fw.CPU.Cycle()
	}
	return nil
}

// exit is the end of a handler.
func (x *executed) exit(now des.Time) error {
	r := x.rt
	m := r.cur
	cycles, waits, _ := x.since()
	r.recordBox(now, cycles, waits)
	r.cur.pkt, r.curRuns = nil, false
	err := x.effects(now, m)
	if errors.Is(err, ErrOutOfStep) {
		r.cur.pkt = m.pkt // the packet is in no queue, but still here
	}
	return err
}

// effects follow what the handler has done in the card's memory. What it did to
// the engines they have told already.
func (x *executed) effects(now des.Time, m message) error {
	r, p := x.rt, m.pkt
	switch m.handler {
	case traces.RxCheckHeader:
		if len(r.freeBufs) == 0 {
			return astray("it takes packet %d in, and no buffer is free", p.id)
		}
		p.at = x.fw.Receiving()
		p.buf = r.takeBuffer(now)
		if p.short {
			return r.send(&r.wire, QWire, now, traces.RxCheckBody, p, r.curID, traces.NoCard)
		}
		return nil
	case traces.RxCheckBody:
		return r.sendSelf(now, traces.EnqRouterIn, p, r.curID)
	case traces.EnqRouterIn:
		return r.sendSelf(now, traces.RouterIn, p, r.curID)
	case traces.RouterIn:
		return x.routed(now, p)
	case traces.EnqIPOutput:
		return r.output(now, p)
	case traces.PeerToPeerStart:
		return r.sendChain(now, traces.DMAStartHandler, p, r.curID)
	case traces.DMAStartHandler:
		return r.sendChain(now, traces.DMAGenericStart, p, r.curID)
	case traces.DMAGenericStart:
		return r.sendChain(now, traces.DMAStartBody, p, r.curID)
	case traces.DMAStartBody:
		if p.bytes <= r.spec.HeaderBytes-4 {
			return r.sendChain(now, traces.DMAStartHeader, p, r.curID)
		}
		return nil
	case traces.WireOutputStart:
		f := x.early
		if x.early = nil; f != nil {
			return x.sent(now, f)
		}
		return nil
	case traces.ToHost:
		t := x.moved
		if x.moved = nil; t != nil {
			return x.transferred(now, x.movedHow, t)
		}
		return nil
	case traces.DMAStartHeader, traces.AckSend:
		return nil
	case traces.WireOutputDone:
		return r.wireDone(now, p, m)
	case traces.PeerAck:
		return r.acked(now, p, m.peer)
	case traces.FreeBuffer:
		return x.freed(now, p)
	}
	return astray("it ran %v, which is no handler of its", m.handler)
}

// routed is the end of `Router In handler`: what it sent tells its verdict.
func (x *executed) routed(now des.Time, p *packet) error {
	r := x.rt
	fate := x.fw.Fate(p.at)
	sent, arg := x.fw.Newest()
	if arg == p.at {
		switch sent {
		case traces.EnqIPOutput:
			if int(fate.Card) >= len(r.router.cards) {
				return astray("it sends packet %d to card %d", p.id, fate.Card)
			}
			p.egress, p.nextHop = fate.Card, fate.Hop
			return r.sendSelf(now, traces.EnqIPOutput, p, r.curID)
		case traces.FreeBuffer:
			why := fate.Reason
			if x.stopped != traces.ReasonNone {
				why = x.stopped
			}
			if why == traces.ReasonNone {
				why = traces.ReasonExtension
			}
			p.left = true
			return r.drop(now, p, why)
		}
	}
	p.reason = fate.Reason
	p.pushed = now
	r.starts[len(r.starts)-1].pushBack(r.message(now, traces.ToHost, p, r.curID, traces.HostCard))
	r.levelQueue(now, QDMA)
	return nil
}

// freed is the end of `Free buffer`. A header that waits for a buffer has one
// now.
func (x *executed) freed(now des.Time, p *packet) error {
	r := x.rt
	if p.buf < 0 {
		return astray("it frees the buffer of packet %d, which has none", p.id)
	}
	if len(r.freeBufs) == 0 {
		x.free = now
		if m := r.wire.lookFor(traces.RxCheckHeader, 0); m != nil && r.rec != nil && m.ready < now {
			r.rec.Add(&traces.Record{
				Kind: traces.KindWait, Event: traces.RxCheckHeader, Card: r.index, Peer: traces.NoCard, Queue: traces.NoQueue,
				Start: m.ready, End: now, Ready: m.ready, Packet: m.pkt.id, Reason: traces.ReasonNoBuffer,
				ID: r.rec.NextID(r.index), Cause: r.curID,
			})
		}
	}
	return r.freeBuffer(now, p)
}

// Received implements lanai.ReceiveClient.
func (x *executed) Received(now des.Time, f *lanai.Frame, _ uint32, _ int, ev lanai.ReceiveEvent) error {
	return x.own(now, x.received(now, f, ev))
}

func (x *executed) received(now des.Time, f *lanai.Frame, ev lanai.ReceiveEvent) error {
	r := x.rt
	ended := ev == lanai.PacketEnd
	p := x.rx
	if p != nil {
		if !ended {
			return astray("packet %d of %d bytes ran over the room that was given for it", f.ID, f.Bytes)
		}
		x.rx, p.whole = nil, true
		return r.send(&r.wire, QWire, now, traces.RxCheckBody, p, f.Cause, traces.NoCard)
	}
	p = r.router.packet()
	p.id, p.frame, p.bytes, p.carried = f.ID, f, f.Bytes, int32(len(f.Data))
	p.ingress, p.egress = r.index, traces.NoCard
	if p.whole, p.short = ended, ended; !ended {
		x.rx = p
	}
	return r.send(&r.wire, QWire, now, traces.RxCheckHeader, p, f.Cause, traces.NoCard)
}

// Discarded implements lanai.DiscardClient.
func (x *executed) Discarded(now des.Time, f *lanai.Frame) error { return x.rt.Discarded(now, f) }

// FrameFor implements lanai.FrameSource: the send engine begins what the
// present handler has taken.
func (x *executed) FrameFor(uint32) *lanai.Frame {
	r := x.rt
	if r.txPkt == nil {
		return nil
	}
	f := r.txPkt.frame
	f.Egress, f.Cause = r.index, r.curID
	return f
}

// Sent implements lanai.SendClient. The engine sends words; the packet's own
// length, and what of it was carried, is restored.
func (x *executed) Sent(now des.Time, f *lanai.Frame) error {
	p := x.rt.txPkt
	if p == nil {
		return x.own(now, astray("it has sent %d bytes that are no packet", f.Bytes))
	}
	f.Bytes = p.bytes
	f.Data = f.Data[:min(len(f.Data), int(p.carried), p.bytes)]
	if r := x.rt; r.curRuns && r.cur.handler == traces.WireOutputStart && r.cur.pkt == p {
		// A packet of a few words is out before the handler that sent it has
		// returned. The run-time takes notice then.
		x.early = f
		return nil
	}
	return x.sent(now, f)
}

// sent is what the run-time makes of it.
func (x *executed) sent(now des.Time, f *lanai.Frame) error {
	x.rt.txPkt.left = true
	return x.rt.Sent(now, f)
}

// DMAFor implements lanai.DMASource: the engine is started by the present
// handler, for its packet.
func (x *executed) DMAFor(op *lanai.DMAOp) {
	r := x.rt
	m := r.cur
	p := m.pkt
	if p == nil {
		return
	}
	r.dmaPacket = p
	op.Packet, op.Cause, op.Peer = p.id, r.curID, p.egress
	carried := int(p.carried)
	switch m.handler {
	case traces.DMAStartBody:
		op.Event = traces.TransferBody
		carried += 4 - r.spec.HeaderBytes
	case traces.DMAStartHeader:
		op.Event = traces.TransferHeader
		carried += 4
	case traces.AckSend:
		op.Event, op.Peer = traces.TransferAck, m.peer
		carried = op.Bytes
	case traces.ToHost:
		op.Event, op.Peer = traces.TransferToHost, traces.HostCard
	}
	op.Carry = max(0, min(carried, op.Bytes))
}

// DMADone implements lanai.DMAClient.
func (x *executed) DMADone(now des.Time, st pci.Status, t *pci.Transfer) error {
	if x.rt.dmaPacket == nil {
		return x.own(now, astray("a DMA to bus address %#x that is no packet's has ended", t.Addr))
	}
	if r := x.rt; r.curRuns && r.cur.handler == traces.ToHost && t.Event == traces.TransferToHost {
		// A short packet is in the host's memory before the handler that sent it
		// has returned. The run-time takes notice then.
		x.moved, x.movedHow = t, st
		return nil
	}
	return x.own(now, x.transferred(now, st, t))
}

// transferred is what the run-time makes of it.
func (x *executed) transferred(now des.Time, st pci.Status, t *pci.Transfer) error {
	switch {
	case st != pci.StatusOK:
		return astray("%v of packet %d to bus address %#x: %v", t.Event, t.Packet, t.Addr, lanai.StatusName(st))
	case t.Event == traces.NoEvent:
		return astray("a DMA to bus address %#x is none of its handlers'", t.Addr)
	case t.Event == traces.TransferToHost:
		x.rt.dmaPacket.left = true
	}
	return x.rt.DMADone(now, st, t)
}

// mark records a mark that the firmware has passed.
func (x *executed) mark(m isa.Mark) {
	r := x.rt
	if m.Number < 0 || m.Number >= len(x.marks) {
		return
	}
	x.marks[m.Number]++
	if r.rec == nil {
		return
	}
	rec := r.rec.Next(r.card.TimeOf(m.Cycle), r.index)
	rec.Kind, rec.Count = traces.KindMark, uint32(m.Number)
	rec.Start, rec.Ready = rec.End, rec.End
	if r.curRuns {
		rec.Event, rec.Cause = r.cur.handler, r.curID
		if r.cur.pkt != nil {
			rec.Packet = r.cur.pkt.id
		}
	}
	rec.ID = r.rec.NextID(r.index)
}

// Fault implements lanai.FaultHandler: an extension that was stopped loses its
// packet, and the run-time goes on. A fault of the run-time itself stops the
// card.
func (x *executed) Fault(now des.Time, fault error) error {
	var f *isa.Fault
	switch {
	case x.fatal != nil:
		return x.fatal
	case !errors.As(fault, &f):
		return fault
	case !x.fw.InExtension():
		return x.halt(now, f)
	}
	x.stopped = traces.ReasonExtension
	if errors.Is(f, isa.ErrWatchdog) {
		x.stopped = traces.ReasonWatchdog
	}
	x.count(now, f)
	return x.fw.Recover()
}

// count adds a fault to the list.
func (x *executed) count(now des.Time, f *isa.Fault) {
	for i := range x.faults {
		// Where the watchdog finds a loop is chance.
		e := &x.faults[i]
		if e.err.Error() == f.Err.Error() && (e.PC == f.PC || errors.Is(f, isa.ErrWatchdog)) {
			e.Count++
			return
		}
	}
	if len(x.faults) == maxFaults {
		x.missed++
		return
	}
	x.faults = append(x.faults, ExtensionFault{
		Card: x.rt.index, First: now, Count: 1, PC: f.PC, Symbol: f.Symbol, Text: f.Error(), err: f.Err,
	})
}

// --- finding messages by what they are ---------------------------------------

// lookFor is the first message in a ring for a handler, and where at is not 0 for
// the packet whose structure lies there; nil when there is none.
func (r *ring) lookFor(ev traces.Event, at uint32) *message {
	if i := r.indexOf(ev, at); i >= 0 {
		return r.at(i)
	}
	return nil
}

func (r *ring) at(i int) *message { return &r.buf[(r.head+i)&(len(r.buf)-1)] }

func (r *ring) indexOf(ev traces.Event, at uint32) int {
	for i := range r.n {
		if m := r.at(i); m.handler == ev && (at == 0 || m.pkt != nil && m.pkt.at == at) {
			return i
		}
	}
	return -1
}

// takeFirst removes what lookFor finds.
func (r *ring) takeFirst(ev traces.Event, at uint32) (message, bool) {
	i := r.indexOf(ev, at)
	if i < 0 {
		return message{}, false
	}
	return r.remove(i), true
}

// takeLowestPeer removes the oldest message of the peer of lowest number.
func (r *ring) takeLowestPeer() (message, bool) {
	best := -1
	for i := range r.n {
		if best < 0 || r.at(i).peer < r.at(best).peer {
			best = i
		}
	}
	if best < 0 {
		return message{}, false
	}
	return r.remove(best), true
}
