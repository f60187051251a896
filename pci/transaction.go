package pci

import (
	"fmt"
	"math"

	"spinesim/sim/des"
	"spinesim/traces"
)

const never = math.MaxInt64

// stage says how far the current burst has come.
type stage uint8

const (
	stageNone    stage = iota // nobody asks
	stageGranted              // the owner and the address clock are as things stand now
	stageData                 // its data phases have begun
)

// burst is the transaction that the bus runs, or runs next if nothing earlier
// turns up. All its fields are clock numbers unless they say otherwise.
type burst struct {
	stage  stage
	end    BurstEnd
	m      *Master
	w      *window // nil when nobody claims the address
	addr   int64   // clock of the address phase
	on     int64   // first clock of the first data phase (of the stop clock when no data move)
	last   int64   // last clock of the last data phase (of the stop or abort)
	idle   int64   // the idle clock
	phases int64   // data phases, a count
	cost   int64   // clocks a data phase
	turn   bool    // a read's turnaround clock follows the address phase
}

// check tells what is wrong with t.
func (m *Master) check(t *Transfer) error {
	var what string
	switch {
	case t == nil:
		what = "no transfer"
	case t.Cmd >= numCommands:
		what = fmt.Sprintf("unknown command %d", t.Cmd)
	case t.Bytes < 1:
		what = fmt.Sprintf("transfer of %d bytes; at least 1", t.Bytes)
	case len(t.Data) > t.Bytes:
		what = fmt.Sprintf("%d bytes carried in a transfer of %d", len(t.Data), t.Bytes)
	case int64(t.Bytes) > 1<<32-int64(t.Addr):
		what = fmt.Sprintf("%d bytes from %#x pass 4 GB", t.Bytes, t.Addr)
	default:
		return nil
	}
	return fmt.Errorf("pci: master %q at %v: %s", m.name, m.bus.engine.Now(), what)
}

// Start asks for the bus for t. Errors name what is wrong with t, ErrBusy
// among them; they leave everything as it was. What happens on the bus, aborts
// included, is told by t.Status when TransferDone is called.
func (m *Master) Start(t *Transfer) error {
	b := m.bus
	if err := m.check(t); err != nil {
		return err
	}
	if m.t != nil {
		return fmt.Errorf("pci: master %q at %v: %w", m.name, b.engine.Now(), ErrBusy)
	}
	if !b.started && b.spec.Park == ParkMaster && b.spec.ParkAt >= len(b.masters) {
		return bad("ParkAt", "master %d of %d", b.spec.ParkAt, len(b.masters))
	}
	now := b.engine.Now()
	b.started = true
	t.Status, t.Moved, t.ID = StatusOK, 0, 0
	t.Requested, t.Granted, t.End = now, 0, 0
	t.Held, t.Lost, t.Bursts, t.Retries = 0, 0, 0, 0
	m.t = t
	m.pos, m.applied = int64(t.Addr), int64(t.Addr)
	m.first, m.delayed, m.tries = true, false, 0
	r := b.clk.EdgeAtOrAfter(now)
	m.req, m.ask, m.seen = r, r, r+b.grant
	// The last burst has been accounted for, but its idle clock may lie behind
	// this request: then somebody else has the bus, or this master itself.
	m.blocked = 0
	if m.idx == b.last {
		m.req = max(r, b.free)
	} else {
		m.blocked = max(0, b.free-r)
	}
	if b.busy {
		return nil // the handler plans when all have spoken
	}
	return b.asked(m)
}

// asked takes a new request into account while the engine is elsewhere.
func (b *Bus) asked(m *Master) error {
	c := &b.cur
	switch {
	case c.stage == stageNone || c.stage == stageGranted && min(m.seen, b.parkedAt(m)) <= c.addr:
		b.plan()
	case c.m != m && c.phases > 0:
		last := c.last
		b.cutAt(max(c.addr+b.ltimer, m.seen))
		if c.last == last || c.stage != stageData {
			return nil
		}
	default:
		return nil
	}
	return b.arm()
}

// parkedAt is the clock in which a parked m can begin without the arbiter.
func (b *Bus) parkedAt(m *Master) int64 {
	if m.idx != b.parked() {
		return never
	}
	return max(b.free, m.ask)
}

// parked is the index of the master that an idle bus is parked at, or -1.
func (b *Bus) parked() int {
	switch b.spec.Park {
	case ParkLast:
		return b.last
	case ParkMaster:
		return b.spec.ParkAt
	}
	return -1
}

// plan finds who has the bus next and when, as far as the requests made until
// now tell, and lays out that burst. It depends on nothing but the clocks in
// which requests were seen, so the order of calls within one instant is of no
// account. A later request can only change an address clock that has not come.
func (b *Bus) plan() {
	b.cur.stage = stageNone
	n := int64(never)
	for _, m := range b.masters {
		if m.t != nil {
			n = min(n, m.seen)
		}
	}
	if n == never {
		return
	}
	n = max(n, b.free)
	if p := b.parked(); p >= 0 && p < len(b.masters) {
		if m := b.masters[p]; m.t != nil && b.parkedAt(m) < n {
			b.layout(m, b.parkedAt(m))
			return
		}
	}
	k := b.last
	for range b.masters {
		if k++; k >= len(b.masters) {
			k = 0
		}
		if m := b.masters[k]; m.t != nil && m.seen <= n {
			b.layout(m, n)
			return
		}
	}
}

// layout computes the clocks of m's burst with its address phase in clock a.
func (b *Bus) layout(m *Master, a int64) {
	c := &b.cur
	t := m.t
	*c = burst{stage: stageGranted, m: m, addr: a, cost: 1, turn: t.Cmd != MemWrite}
	w := b.claims(m.pos)
	if w == nil {
		c.turn = false
		c.end = EndMasterAbort
		c.on, c.last = a+1, a+int64(b.spec.AbortClocks)
		c.idle = c.last + 1
		return
	}
	c.w = w
	s := &w.spec
	if m.pos >= w.popEnd {
		b.stop(EndTargetAbort)
		return
	}
	c.cost = 1 + int64(s.DataWait)
	head := int64(1) // the address phase
	wait := int64(s.WriteWait)
	if c.turn {
		head, wait = 2, int64(s.ReadLatency)
	}
	if m.delayed {
		// The prepared data are there at m.ready or have been for long.
		wait = max(0, int64(s.Devsel-s.DataWait), m.ready-a-head-int64(s.DataWait))
	}
	if head+wait+int64(s.DataWait) > MaxFirstData {
		b.stop(EndRetry)
		return
	}
	c.on = a + head + wait

	end := int64(t.Addr) + int64(t.Bytes)
	c.phases, c.end = b.phasesTo(m.pos, end), EndDone
	if b.phases < c.phases {
		c.phases, c.end = b.phases, EndBurstLength
	}
	n := b.phasesTo(m.pos, w.popEnd)
	if s.Boundary > 0 {
		n = min(n, b.phasesTo(m.pos, (m.pos|int64(s.Boundary-1))+1))
	}
	if s.ReadLine > 0 && t.Cmd == MemRead {
		n = min(n, b.phasesTo(m.pos, (m.pos|int64(s.ReadLine-1))+1))
	}
	if c.cost > MaxNextData {
		n = 1
	}
	if n < c.phases {
		c.phases, c.end = n, EndDisconnect
	}
	c.last = c.on + c.phases*c.cost - 1
	c.idle = c.last + 1
	if c.end == EndDisconnect {
		c.idle++
	}

	other := int64(never)
	for _, o := range b.masters {
		if o != m && o.t != nil {
			other = min(other, o.seen)
		}
	}
	if other != never {
		b.cutAt(max(a+b.ltimer, other))
	}
}

// stop lays out a transaction that the target ends without data.
func (b *Bus) stop(end BurstEnd) {
	c := &b.cur
	c.turn = false // the lines are turned while the target decodes
	c.end = end
	c.on = c.addr + 1 + int64(c.w.spec.Devsel)
	c.last = c.on
	c.idle = c.last + 1
}

// cutAt ends the current burst with the data phase in progress in clock p, at
// the earliest the first, when it would go on behind it.
func (b *Bus) cutAt(p int64) {
	c := &b.cur
	if c.phases == 0 {
		return
	}
	k := int64(1)
	if p > c.on {
		k = (p-c.on)/c.cost + 1
	}
	if k < c.phases || k == c.phases && c.end == EndDisconnect {
		c.phases, c.end = k, EndTimer
		c.last = c.on + k*c.cost - 1
		c.idle = c.last + 1
	}
}

// phasesTo is the number of data phases that the bytes from up to to take.
func (b *Bus) phasesTo(from, to int64) int64 {
	if b.width == 4 {
		return (to+3)>>2 - from>>2
	}
	return (to+7)>>3 - from>>3
}

// claims finds the window that holds addr, nil when there is none.
func (b *Bus) claims(addr int64) *window {
	for i := range b.windows {
		if w := &b.windows[i]; addr < w.end {
			if addr >= w.base {
				return w
			}
			return nil
		}
	}
	return nil
}

// next is the clock edge of the current burst's next event.
func (b *Bus) next() int64 {
	c := &b.cur
	if c.stage == stageGranted && c.phases > 0 {
		return c.on
	}
	return c.last + 1
}

func (b *Bus) arm() error {
	if b.cur.stage == stageNone {
		b.engine.Cancel(&b.timer)
		return nil
	}
	return b.engine.Arm(&b.timer, b.clk.Edge(b.next()))
}

// Handle takes the bus's own event. It is called by the engine only.
func (b *Bus) Handle(now des.Time, _ uint64) error {
	c := &b.cur
	if c.stage == stageGranted && c.phases > 0 {
		c.stage = stageData
		c.w.t.BusStream(now, true, b.words, int32(c.cost))
		c.m.i.BusStream(now, true, b.words, int32(c.cost))
		return b.arm()
	}
	b.busy = true
	err := b.finish(now)
	b.busy = false
	if err != nil {
		return err
	}
	b.plan()
	return b.arm()
}

// finish ends the current burst and, if it was the last one, its transfer.
func (b *Bus) finish(now des.Time) error {
	c := b.cur
	b.cur.stage = stageNone
	m, t := c.m, c.m.t

	u := c.clocksBefore(c.idle + 1)
	b.total.add(u)
	m.use.Clocks.add(u)
	t.Held += uint32(c.idle + 1 - c.addr)
	if m.first {
		m.first = false
		m.firstClk = c.addr
		t.Granted = b.clk.Edge(c.addr)
	}
	m.endWait(c.addr)
	for _, o := range b.masters {
		if o.t != nil && o != m {
			o.blocked += max(0, c.idle+1-max(c.addr, o.ask))
		}
	}
	if b.watcher != nil {
		b.told = Burst{
			Master: m.idx, Cmd: t.Cmd, Addr: uint32(m.pos), Phases: c.phases,
			Wanted: m.req, Address: c.addr, Data: c.on, Last: c.last, Idle: c.idle, End: c.end,
		}
		b.watcher.Burst(&b.told)
	}
	b.free = c.idle + 1
	b.last = m.idx

	if c.phases > 0 {
		t.Bursts++
		m.delayed, m.tries = false, 0
		end := int64(t.Addr) + int64(t.Bytes)
		m.pos = min((m.pos/b.width+c.phases)*b.width, end)
		c.w.t.BusStream(now, false, b.words, int32(c.cost))
		m.i.BusStream(now, false, b.words, int32(c.cost))
		if m.pos == end || m.pos >= c.w.end {
			m.apply(c.w)
		}
	}
	switch c.end {
	case EndDone:
		return b.done(m, c.last, now, StatusOK)
	case EndMasterAbort:
		return b.done(m, c.last, now, MasterAbort)
	case EndTargetAbort:
		m.apply(c.w) // what earlier bursts brought
		return b.done(m, c.last, now, TargetAbort)
	case EndRetry:
		t.Retries++
		if !m.delayed {
			m.delayed = true
			head, wait := int64(1), int64(c.w.spec.WriteWait)
			if t.Cmd != MemWrite {
				head, wait = 2, int64(c.w.spec.ReadLatency)
			}
			m.ready = c.addr + head + wait + int64(c.w.spec.DataWait)
		}
		m.tries++
		if b.spec.RetryLimit > 0 && m.tries >= b.spec.RetryLimit {
			m.apply(c.w)
			return b.done(m, c.last, now, RetriesExceeded)
		}
		m.req, m.ask = c.idle+1, c.idle+b.backoff(m.tries)
		m.seen = m.ask + b.grant
	case EndDisconnect:
		m.req, m.ask, m.seen = c.idle+1, c.idle+1, c.idle+1+b.grant
	default: // REQ# has been asserted all along
		m.req, m.ask, m.seen = c.idle+1, c.idle+1, max(m.seen, c.idle+1)
	}
	m.blocked = 0
	return nil
}

// backoff is the clocks from the idle clock to the next REQ# after n retries.
func (b *Bus) backoff(n int) int64 {
	d := b.spec.RetryBackoff
	for ; n > 1 && d < b.spec.RetryBackoffMax; n-- {
		d *= 2
	}
	return int64(min(d, b.spec.RetryBackoffMax))
}

// apply hands over the bytes that have moved to or from w's device and have
// not been handed over yet.
func (m *Master) apply(w *window) {
	t := m.t
	from, to := m.applied-int64(t.Addr), m.pos-int64(t.Addr)
	m.applied = m.pos
	to = min(to, int64(len(t.Data)))
	if from >= to {
		return
	}
	p := t.Data[from:to:to]
	if m.watcher != nil {
		m.watcher.DataMoves(m.bus.engine.Now())
	}
	if t.Cmd == MemWrite {
		w.t.BusWrite(t.Addr+uint32(from), p)
	} else {
		w.t.BusRead(t.Addr+uint32(from), p)
	}
}

// done ends m's transfer, the last clock of which is last.
func (b *Bus) done(m *Master, last int64, now des.Time, s Status) error {
	t := m.t
	m.t = nil
	t.Status = s
	t.Moved = int(m.pos - int64(t.Addr))
	t.End = now
	// The idle clock is held, but lies behind End.
	t.Lost = uint32(last + 2 - m.firstClk - int64(t.Held))
	if b.rec != nil {
		t.ID = b.rec.NextID(m.card)
		rec := b.rec.Next(now, m.card)
		rec.Kind, rec.Event, rec.Peer = traces.KindTransfer, t.Event, t.Peer
		rec.Ready, rec.Start = t.Requested, t.Granted
		rec.Packet, rec.ID, rec.Cause = t.Packet, t.ID, t.Cause
		rec.Bytes, rec.Cycles, rec.Stall = uint32(t.Moved), uint64(t.Held), t.Lost
	}
	if err := m.i.TransferDone(now, t); err != nil {
		return fmt.Errorf("pci: master %q at %v: %w", m.name, now, err)
	}
	return nil
}
