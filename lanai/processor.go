package lanai

import (
	"errors"
	"fmt"
	"math"
	"math/bits"

	"spinesim/pci"
	"spinesim/sim/des"
)

// Priorities of the card's events: at one instant the processors' boxes end
// before anything arrives, those of card 0 first (PrioProcessor + 0), so that
// which of two cards goes first does not hang on when their events were armed.
const (
	PrioProcessor des.Priority = 0
	PrioHardware               = pci.PrioHardware
)

// Demand is what a box or poll asks of the processor and the memory bus.
type Demand struct {
	Cycles   int32 // instruction cycles, at least 1
	Accesses int32 // loads and stores, 0 to Cycles
}

// Program is what the processor runs. Its methods are called at the very end
// of a box or run of polls, when the processor is idle, and usually begin the
// next. An error stops the simulation.
type Program interface {
	BoxEnd(now des.Time) error   // the box begun with Run has ended
	PollsEnd(now des.Time) error // the last poll of the run begun with Poll has ended
}

// Unbounded polls go on until LimitPolls ends them.
const Unbounded = int64(math.MaxInt64)

// Errors that the processor's methods wrap.
var (
	ErrBusy    = errors.New("busy")
	ErrDemand  = errors.New("impossible demand")
	ErrNoPolls = errors.New("no run of polls is in progress")
)

type processorMode uint8

const (
	modeIdle processorMode = iota
	modeBox
	modePolls
	modeExecute
)

// Processor runs boxes and polls, one at a time, in the time that the memory
// bus leaves it. As long as no event is due before the present box ends, the
// next one is run in the same call, without an event of its own.
type Processor struct {
	mem    *MemoryBus
	engine *des.Engine
	name   string
	prio   des.Priority
	prog   Program
	timer  des.Timer

	mode  processorMode
	w     work
	start int64 // cycle in which the box or run begins
	begun des.Time
	limit int64 // polls of the run

	// What is behind the box, or the run's present poll, at cycle base. base
	// is start or a later segment's first cycle.
	base, elapsed, got int64
	done               int64 // polls ended by base

	// Engines' grants up to start. They are worked out when the segment that
	// holds start ends, or never when it is still there at the end.
	before      [numEngines]int64
	beforeKnown bool

	end     int64 // cycle of the end; unknown, or not worked out yet
	looping bool

	lastEnd  int64 // cycle of the last end, for the next begin at the same time
	lastTime des.Time
	stall    int64 // of the box or run that ended last
	usage    Usage

	exec     execution
	together *together
}

const (
	endUnknown int64 = -1 // not in this segment, or no end
	endStale   int64 = -2 // to be worked out
)

// Usage is where the processor's cycles went, in finished boxes and runs.
type Usage struct {
	Boxes, Polls int64             // how many
	BoxCycles    int64             // cycles in boxes, stalls left out
	PollCycles   int64             // cycles in polls, stalls left out
	BoxStall     int64             // cycles that boxes lost to the memory bus
	PollStall    int64             // cycles that polls lost to it
	Stall        [NumClients]int64 // both, by the client that took the memory
}

// Busy is all cycles in boxes and polls.
func (u Usage) Busy() int64 { return u.BoxCycles + u.PollCycles + u.BoxStall + u.PollStall }

func (p *Processor) init(m *MemoryBus, e *des.Engine, name string, index uint8) {
	p.mem, p.engine, p.name = m, e, name
	p.prio = PrioProcessor + des.Priority(min(index, uint8(PrioHardware)-1))
	p.end = endStale
	p.lastEnd, p.lastTime = -1, -1
	p.timer.Init(p, p.prio, 0)
	e.Adopt(&p.timer)
}

// Bind sets the program. It must be called before the first Run or Poll.
func (p *Processor) Bind(pr Program) { p.prog = pr }

// Idle tells whether nothing runs.
func (p *Processor) Idle() bool { return p.mode == modeIdle }

// Polling tells whether a run of polls is in progress.
func (p *Processor) Polling() bool { return p.mode == modePolls }

// Run begins a box now, or with the next cycle when now is not the start of
// one. The processor must be idle. The error wraps ErrBusy or ErrDemand.
func (p *Processor) Run(d Demand) error { return p.begin(modeBox, d, 1) }

// Poll begins n polls of demand d, back to back, n ≥ 1. It is otherwise as
// Run.
func (p *Processor) Poll(d Demand, n int64) error { return p.begin(modePolls, d, n) }

func (p *Processor) begin(mode processorMode, d Demand, n int64) error {
	if p.mode != modeIdle {
		return fmt.Errorf("lanai: %s: processor at %v: %w", p.name, p.engine.Now(), ErrBusy)
	}
	if d.Cycles < 1 || d.Accesses < 0 || d.Accesses > d.Cycles || n < 1 {
		return fmt.Errorf("lanai: %s: %d times %d cycles with %d loads and stores at %v: %w", p.name, n, d.Cycles, d.Accesses, p.engine.Now(), ErrDemand)
	}
	now := p.engine.Now()
	c := p.lastEnd
	if now != p.lastTime {
		c = p.mem.clk.ceil(now)
		now = p.mem.clk.edge(c)
	}
	p.mode = mode
	p.w = work{n: int64(d.Cycles), a: int64(d.Cycles) + int64(d.Accesses)}
	p.start, p.base, p.begun = c, c, now
	p.elapsed, p.got, p.done, p.limit = 0, 0, 0, n
	p.beforeKnown = false
	p.end = endStale
	return p.rearm()
}

// Start is when the present or last box or run began.
func (p *Processor) Start() des.Time { return p.begun }

// PollsEnded is the number of polls of the present run whose end is not after
// now. When none is in progress it is that of the last run, or 1 after a box.
func (p *Processor) PollsEnded() int64 {
	if p.mode != modePolls {
		return p.done
	}
	p.mem.catchUp()
	y := p.mem.clk.floor(p.engine.Now())
	switch {
	case y <= p.start:
		return 0
	case y > p.base:
		return p.done + p.follow(y).polls
	case y < p.base && p.elapsed == 0 && p.done > 0:
		// The segment begins with the cycle after the present one, and a poll
		// ends at that very boundary: not yet.
		return p.done - 1
	}
	return p.done
}

// Stall is the cycles that the box or run which ended last lost to the memory
// bus; while a run of polls is in progress, those lost by its polls that end
// by the end of the cycle in progress.
func (p *Processor) Stall() int64 {
	if p.mode != modePolls {
		return p.stall
	}
	p.mem.catchUp()
	y := max(p.mem.clk.ceil(p.engine.Now()), p.start)
	done, e := p.done, p.elapsed
	if y > p.base {
		r := p.follow(y)
		done, e = done+r.polls, r.elapsed
	}
	return y - e - p.start - done*p.w.n
}

// LimitPolls changes the number of polls of the present run, to at least
// PollsEnded() + 1.
func (p *Processor) LimitPolls(n int64) error {
	if p.mode != modePolls {
		return fmt.Errorf("lanai: %s: limit of polls at %v: %w", p.name, p.engine.Now(), ErrNoPolls)
	}
	if least := p.PollsEnded() + 1; n < least { // which has caught up with the bus
		return fmt.Errorf("lanai: %s: limit of %d polls at %v, %d have begun: %w", p.name, n, p.engine.Now(), least, ErrDemand)
	}
	p.limit = n
	p.end = endStale
	return p.rearm()
}

// progress is what is behind a box or run of polls at some cycle.
type progress struct {
	polls        int64 // polls ended on the way (1 for a box that ended)
	end          int64 // cycle in which the last of them ended
	elapsed, got int64 // of the box or poll in progress
}

// follow works out the progress from base to cycle y, which lies in the
// segment, or to the run's end.
func (p *Processor) follow(y int64) progress {
	m := p.mem
	x, to := p.base-m.at, y-m.at
	if m.orb.idle && to <= m.body {
		return p.followIdle(x, to)
	}
	if to <= m.body || x >= m.body {
		return p.followCourse(x, to)
	}
	// Behind the orbit comes the tail.
	r := p.followCourse(x, m.body)
	if r.polls < p.limit-p.done {
		from := m.body
		m.follow(p.w, &from, to, &r)
	}
	return r
}

// followCourse is follow from offset x to offset to, by a course where one is
// known.
func (p *Processor) followCourse(x, to int64) progress {
	m := p.mem
	left := p.limit - p.done
	if to > m.body || to > maxCourse || p.w.a > maxCourse || p.elapsed > maxCourse || left <= 0 {
		return p.followOn(x, to)
	}
	c, known := m.course(m.orb, p.w, x, to, p.elapsed, p.got)
	if !known {
		r := p.followOn(x, to)
		if r.polls >= left {
			c.orb = nil // another run may go on
			return r
		}
		c.polls, c.end = int32(r.polls), int32(r.end-m.at)
		c.elapsed2, c.got2 = int32(r.elapsed), int32(r.got)
		return r
	}
	if int64(c.polls) >= left {
		return p.followOn(x, to)
	}
	r := progress{end: endUnknown, polls: int64(c.polls), elapsed: int64(c.elapsed2), got: int64(c.got2)}
	if c.polls > 0 {
		r.end = m.at + int64(c.end)
	}
	return r
}

// followOn is follow from offset x to offset to, without remembering.
func (p *Processor) followOn(x, to int64) progress {
	m := p.mem
	r := progress{end: endUnknown, elapsed: p.elapsed, got: p.got}
	left := p.limit - p.done
	if left <= 0 {
		return r
	}
	if p.elapsed != 0 || p.mode == modeBox {
		if !m.follow(p.w, &x, to, &r) {
			return r
		}
		left--
	}
	if body := min(to, m.body); left > 0 && x < body {
		n, end := m.orb.walk(p.w, x, body, left)
		if n > 0 {
			r.polls += n
			r.end = m.at + end
			x = end
			left -= n
		}
	}
	if left > 0 {
		r.elapsed, r.got = 0, 0
		m.follow(p.w, &x, to, &r)
	}
	return r
}

// followIdle is follow from offset x to offset to where no engine asks for
// anything: every cycle grants two accesses, as much as any demand grows.
func (p *Processor) followIdle(x, to int64) progress {
	r := progress{end: endUnknown, elapsed: p.elapsed, got: p.got}
	left := p.limit - p.done
	if left <= 0 || x >= to {
		return r
	}
	w := p.w
	if e := p.elapsed; e != 0 {
		end := x + max(w.n-e, (w.a-p.got+1)/2)
		if end > to {
			r.elapsed = e + to - x
			r.got = min(p.got+2*(to-x), w.demand(r.elapsed))
			return r
		}
		r.polls = 1
		x = end
		left--
	}
	span := to - x
	if left < 1<<31 && span >= left*w.n {
		x += left * w.n
		r.polls += left
	} else {
		count := int64(0)
		if uint64(span) < 1<<32 {
			count = min(left, int64(uint32(span)/uint32(w.n)))
		} else {
			count = min(left, span/w.n)
		}
		x += count * w.n
		r.polls += count
		r.elapsed, r.got = 0, 0
		if left > count {
			r.elapsed = to - x
			r.got = w.demand(r.elapsed)
		}
	}
	if r.polls > 0 {
		r.end = p.mem.at + x
	}
	if x == to || r.polls == p.limit-p.done {
		r.elapsed, r.got = 0, 0
	}
	return r
}

// follow takes one box or poll, in progress r at offset x, on to offset to of
// the segment. It tells whether it ended, at *x then.
func (m *MemoryBus) follow(w work, x *int64, to int64, r *progress) bool {
	body := min(to, m.body)
	end := int64(-1)
	if *x <= body {
		end, r.elapsed, r.got = m.orb.run(w, *x, body, r.elapsed, r.got)
		if end < 0 {
			*x = body
		}
	}
	if end < 0 && *x < to {
		m.needTail()
		r.elapsed++
		r.got = min(r.got+int64(m.tail.free), w.demand(r.elapsed))
		*x = to
		if r.elapsed >= w.n && r.got == w.a {
			end = to
		}
	}
	if end < 0 {
		return false
	}
	*x = end
	r.polls++
	r.end = m.at + end
	r.elapsed, r.got = 0, 0
	return true
}

// advance brings what is behind the box or poll up to cycle c, where the next
// segment begins. It is called while the old one still stands.
func (p *Processor) advance(c int64) {
	if p.mode == modeIdle || p.base >= c && p.mode != modeExecute {
		return
	}
	if !p.beforeKnown {
		p.needBefore()
	}
	if p.mode == modeExecute {
		p.exec.core.Hold(c)
		return
	}
	r := p.follow(c)
	p.done += r.polls
	p.base, p.elapsed, p.got = c, r.elapsed, r.got
	p.end = endStale
	if p.done >= p.limit {
		p.end = r.end
	}
}

// needBefore works out the engines' grants up to start, which lies in the
// present segment, or just before it when a box has ended at the same instant
// as a cycle has begun.
func (p *Processor) needBefore() {
	p.before = p.mem.granted
	p.mem.addGranted(p.start-p.mem.at, &p.before)
	p.beforeKnown = true
}

// findEnd works out the end, if it comes in the present segment.
func (p *Processor) findEnd() {
	if p.end != endStale {
		return
	}
	if p.mode == modeExecute {
		p.end = p.exec.wake
		return
	}
	p.end = endUnknown
	if p.done >= p.limit {
		// The run was limited to what had ended by the segment's start.
		p.end = p.base
		return
	}
	if p.limit == Unbounded {
		return
	}
	m := p.mem
	if p.limit-p.done == 1 && !m.orb.idle {
		if x := p.base - m.at; x <= m.body {
			if end := m.ending(m.orb, p.w, x, p.elapsed, p.got); end >= 0 && end <= m.body {
				p.end = m.at + end
				return
			}
		}
	}
	if r := p.follow(m.at + m.end); p.done+r.polls >= p.limit {
		p.end = r.end
	}
}

// rearm makes the timer fit a new segment, box or limit. Inside the loop that
// is the loop's own work, before a flush the flush's.
func (p *Processor) rearm() error {
	if p.looping || p.mem.dirty {
		return nil
	}
	if p.mode == modeExecute {
		return p.together.rearm()
	}
	if p.mode != modeIdle {
		p.findEnd()
	}
	if p.mode == modeIdle || p.end < 0 {
		p.engine.Cancel(&p.timer)
		return nil
	}
	at := p.mem.clk.edge(p.end)
	if p.timer.Armed() && p.timer.At() == at {
		return nil
	}
	return p.engine.Arm(&p.timer, at)
}

// Handle ends the present box or run and goes on inline as far as nothing else
// is due. It is for the engine to call.
func (p *Processor) Handle(now des.Time, _ uint64) error {
	if p.mode == modeExecute {
		return p.together.run(p, now)
	}
	m := p.mem
	p.looping = true
	m.batch++
	err := p.loop(now)
	m.batch--
	p.looping = false
	if err != nil {
		return err
	}
	return p.rearm()
}

func (p *Processor) loop(now des.Time) error {
	for {
		if err := p.finish(now); err != nil {
			return err
		}
		if err := p.mem.flush(); err != nil {
			return err
		}
		if p.mode == modeIdle || p.mode == modeExecute {
			return nil
		}
		if p.findEnd(); p.end < 0 {
			return nil
		}
		at := p.mem.clk.edge(p.end)
		if !p.engine.Advance(at, p.prio) {
			return nil
		}
		now = at
	}
}

// finish accounts for the box or run that ends now and calls the program.
func (p *Processor) finish(now des.Time) error {
	if p.mode == modeExecute && p.exec.fault != nil {
		return p.stopped(now)
	}
	end := p.end
	polls := p.limit
	stall := end - p.start - polls*p.w.n
	u := &p.usage
	box := p.mode != modePolls
	if p.mode == modeExecute && p.exec.scan {
		polls, _, _ = p.exec.core.Scanned()
		box = false
		u.Polls += polls
		u.PollCycles += p.w.n
		u.PollStall += stall
	} else if box {
		u.Boxes++
		u.BoxCycles += p.w.n
		u.BoxStall += stall
	} else {
		u.Polls += polls
		u.PollCycles += polls * p.w.n
		u.PollStall += stall
	}
	if stall > 0 {
		p.blame(stall, end)
	}
	p.stall = stall
	p.done = polls
	p.lastEnd, p.lastTime = end, now
	p.mode = modeIdle
	if box {
		return p.prog.BoxEnd(now)
	}
	return p.prog.PollsEnd(now)
}

// blame shares lost cycles out among the engines, in proportion to the
// accesses that they were granted from the box's or run's start to its end
// (chosen: any one of them alone might have cost nothing). Shares are rounded
// down as they add up in the order E-bus, receive, send.
func (p *Processor) blame(stall, end int64) {
	if !p.beforeKnown {
		p.needBefore()
	}
	took := p.mem.granted
	p.mem.addGranted(end-p.mem.at, &took)
	var all, sum, given int64
	for e := range took {
		took[e] -= p.before[e]
		all += took[e]
	}
	if all == 0 {
		// With one slot a cycle the processor is in its own way.
		p.usage.Stall[CPU] += stall
		return
	}
	for e, n := range took {
		sum += n
		// A run may be so long that the product needs 128 bits.
		hi, lo := bits.Mul64(uint64(stall), uint64(sum))
		q, _ := bits.Div64(hi, lo, uint64(all))
		upTo := int64(q)
		p.usage.Stall[e] += upTo - given
		given = upTo
	}
}

// Usage tells where the cycles of all boxes and runs that have ended went.
func (p *Processor) Usage() Usage { return p.usage }
