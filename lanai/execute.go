package lanai

import (
	"fmt"

	"spinesim/lanai/isa"
	"spinesim/sim/des"
)

// FaultHandler is implemented by a Program that goes on when executed firmware
// is stopped. Otherwise the fault stops the simulation.
type FaultHandler interface {
	// Fault tells why. The processor is idle. An error stops the simulation.
	Fault(now des.Time, fault error) error
}

// execution is a box whose length nobody knows before its instructions have
// been executed.
type execution struct {
	core   *isa.CPU
	before isa.Counters
	wake   int64    // boundary at which to go on
	at     des.Time // of that
	stop   isa.Stop // what there is to do then
	fault  error
	scan   bool // of polls
	ran    bool // the core may be ahead of time
}

// Begin is the cycle with which a box begun now would begin.
func (p *Processor) Begin() int64 {
	if p.engine.Now() == p.lastTime {
		return p.lastEnd
	}
	return p.mem.clk.ceil(p.engine.Now())
}

// Execute begins a box that executes the core's instructions, from the one at
// which it stands, which begins at Begin (see isa.CPU.Call), until the function
// returns; then the Program's BoxEnd is called. Fetches, loads and stores meet
// the engines on the memory bus cycle by cycle, and each device access takes
// place at its time. The core must use the card as its Devices and the card's
// Mem as its Slots. The error wraps ErrBusy or ErrDemand.
//
// The core runs ahead of time, up to the last boundary that is not after the
// next event other than of processors that execute; with a loop that waits, up
// to the end of the present RunUntil. When something happens on the card before
// then after all, it is taken back to that time first. Device accesses and
// returns are made at their time. An instruction that straddles a change in
// what the engines take is kept half-way. So all writes to memory by others,
// and all changes in what the engines take, are where they belong.
//
// From when a core has begun until its function has returned, memory that is
// looked at from outside events of this card's own, and the core's counters, may
// therefore be ahead (see Settle). After RunUntil they are not, unless it was
// stopped.
func (p *Processor) Execute(core *isa.CPU) error { return p.beginExecution(core, false) }

// ExecuteScan is Execute for a core that begins a scan (isa.CPU.CallScan): a run
// of polls. When the scan has ended the Program's PollsEnd is called.
func (p *Processor) ExecuteScan(core *isa.CPU) error { return p.beginExecution(core, true) }

func (p *Processor) beginExecution(core *isa.CPU, scan bool) error {
	if p.mode != modeIdle {
		return fmt.Errorf("lanai: %s: processor at %v: %w", p.name, p.engine.Now(), ErrBusy)
	}
	c := p.Begin()
	if core.Cycle() != c {
		return fmt.Errorf("lanai: %s: execution at %v from cycle %d, the core stands at %d: %w", p.name, p.engine.Now(), c, core.Cycle(), ErrDemand)
	}
	if p.timer.Armed() {
		p.engine.Cancel(&p.timer)
	}
	p.mode = modeExecute
	p.w = work{}
	p.start, p.base, p.begun = c, c, p.mem.clk.edge(c)
	p.elapsed, p.got, p.done, p.limit = 0, 0, 0, 1
	p.beforeKnown = false
	p.exec = execution{core: core, before: core.Counters(), wake: c, at: p.begun, stop: isa.Boundary, scan: scan}
	p.end = c
	p.mem.card.Rx.look()
	p.mem.card.SRAM.executes(core)
	core.Forget()
	return p.rearm()
}

// maxAhead bounds how far instructions are executed, or rounds skipped, in one
// go, so that a run that is to be stopped stops.
const (
	maxAhead = 1 << 20 // cycles
	maxFar   = des.Second
)

// execute goes on with an execution at the present time, the boundary wake. It
// tells whether the box ends here.
func (p *Processor) execute() (ended bool, err error) {
	x := &p.exec
	switch x.stop {
	case isa.Returned:
		n := x.core.Counters().Sub(x.before)
		p.w.n = n.Instructions + n.Interlocks
		return true, nil
	case isa.Faulted:
		return true, nil
	}
	now := x.wake
	clk, e := &p.mem.clk, p.engine
	bound := min(e.Now(), des.MaxTime-maxFar) + maxFar
	to := min(clk.floor(min(e.Horizon(), bound)), now+maxAhead)
	far := max(to, clk.floor(min(e.Limit(), bound)))
	if x.core.OnJump != nil || p.together.careful {
		// Not a step that would have to be taken back.
		to = min(to, p.together.others(p))
		far = to
	}
	x.ran = false
	stop, err := x.core.Ahead(now, to, far)
	x.ran = true
	p.stands(stop, err, now, to)
	return false, nil
}

// stands takes in how a run to the boundary to has ended; device accesses were
// made at now.
func (p *Processor) stands(stop isa.Stop, fault error, now, to int64) {
	x := &p.exec
	at := x.core.Cycle()
	x.stop, x.fault, x.wake = stop, fault, at
	if stop == isa.Boundary && (at != now || at >= to) {
		// Else it stands behind a device access, which may have changed how
		// far to go.
		x.wake = at + 1
	}
	x.at = p.mem.clk.edge(x.wake)
	p.end = x.wake
}

// Settle makes a core that executes, its counters and the card's memory be what
// they are at the present time. It is for looking at them from elsewhere than
// the card's own events, and comes before any change in what is left of the
// memory bus.
func (p *Processor) Settle() {
	if p.mode == modeExecute && p.exec.ran {
		p.catch()
	}
}

// disturb is Settle before anything else of the card but its processor changes.
func (p *Processor) disturb() {
	if p.mode != modeExecute {
		return
	}
	if p.exec.ran {
		p.catch()
	}
	p.exec.core.Forget()
}

// catch takes the core back to the present time if it is ahead of that.
func (p *Processor) catch() {
	x := &p.exec
	x.ran = false
	to := p.mem.clk.floor(p.engine.Now())
	if x.core.Cycle() <= to {
		return
	}
	stop, err := x.core.Back(to)
	p.stands(stop, err, -1, to)
	if err := p.together.rearm(); err != nil {
		p.mem.card.fail(err)
	}
}

// stopped ends an execution with a fault.
func (p *Processor) stopped(now des.Time) error {
	fault := fmt.Errorf("lanai: %s at %v: %w", p.name, now, p.exec.fault)
	p.mode = modeIdle
	p.done, p.stall = 1, 0
	p.lastEnd, p.lastTime = -1, -1
	if h, ok := p.prog.(FaultHandler); ok {
		return h.Fault(now, fault)
	}
	return fault
}

// Halt ends an execution at the present time, for good where nothing is begun
// anew. The Program is not told. It is not for use while the processor's own
// instructions are at work, other than from Fault, when there is nothing to end.
func (p *Processor) Halt() error {
	if p.mode != modeExecute {
		return nil
	}
	p.Settle()
	p.mode = modeIdle
	p.done, p.stall = 1, 0
	p.lastEnd, p.lastTime = -1, -1
	p.engine.Cancel(&p.timer)
	return p.together.leave(p)
}

// Steady tells which registers change with events and stores only, and are not
// changed by being read, so that executed firmware that polls them need not
// stop for it. It is for isa.CPU to call.
func (c *Card) Steady(addr uint32) bool {
	switch addr - RegisterBase {
	case RegISR, RegEIMR, RegCKS, RegEAR, RegLAR, RegDMACTR, RegDMADIR, RegDMASTS, RegRML, RegSMP, RegSML, RegSMLT, RegSA, RegTIMEOUT:
		return true
	}
	return false
}

// Window implements isa.Slots for the present segment.
func (m *MemoryBus) Window(cycle int64) isa.Window {
	d := cycle - m.at
	switch {
	case d < m.body && m.orb.idle:
		return isa.Window{Until: m.at + m.body}
	case d < m.body:
		return m.orb.window(d, m.body)
	case d == m.body && m.end > m.body:
		m.needTail()
		m.tailFree[0] = uint8(m.tail.free)
	default:
		// Nobody looks beyond the segment; nothing is known of it.
		m.tailFree[0] = 0
	}
	m.tailWaits = isa.AppendWaits(m.tailWaits[:0], m.tailFree[:], 1)
	return isa.Window{Free: m.tailFree[:], Waits: m.tailWaits}
}

// Phase implements isa.Periodic for the present segment.
func (m *MemoryBus) Phase(cycle int64) (phase uint64, until int64) {
	o, d := m.orb, cycle-m.at
	if d < 0 || d >= m.body {
		return 0, cycle
	}
	i, _ := o.place(d)
	if o.period == 0 {
		return 0, cycle
	}
	if i == o.pre+o.period {
		i = o.pre
	}
	return o.serial<<16 | uint64(i), m.at + m.body
}

// ample is how far at least a window goes where the orbit does. Chosen.
const ample = 256

// window is what each cycle from offset d on leaves to the processor, as far as
// one stretch of the table tells, and not beyond offset body.
func (o *orbit) window(d, body int64) isa.Window {
	o.place(d + 1) // so that the cell behind d is worked out
	i, _ := o.place(d)
	if o.period != 0 && i == o.pre+o.period {
		i = o.pre
	}
	o.widen(i)
	n := i + int(min(int64(len(o.waits)-i), body-d))
	return isa.Window{Free: o.steps[i:n], Waits: o.waits[i:n]}
}

// widen makes the steps go on from cell i for some time.
func (o *orbit) widen(i int) {
	have := len(o.waits)
	if have > i && (o.period != 0 && have >= o.pre+o.period+ample || o.period == 0 && have == len(o.frees)-1) {
		return
	}
	n := len(o.frees) - 1
	for k := len(o.steps); k < n; k++ {
		o.steps = append(o.steps, uint8(o.frees[k+1]-o.frees[k]))
	}
	if o.period != 0 {
		for k := len(o.steps); k < n+ample; k++ {
			o.steps = append(o.steps, o.steps[k-o.period])
		}
	}
	// The last waits may not have been known.
	have = max(0, have-64)
	o.waits = isa.AppendWaits(o.waits[:have], o.steps[have:], len(o.steps)-have)
}
