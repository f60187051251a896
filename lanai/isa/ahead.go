package isa

// ahead is what is needed to take back what was executed too early.
type ahead struct {
	on     bool // since saved
	saved  state
	at     int // changes before saved
	ticked int // ticks before saved
	gen    int // of the loop then

	// The head of a waiting loop of which rounds were skipped, behind saved:
	// any number of rounds from there leads back to it.
	parked     bool
	parkUntil  int64 // boundary up to which that holds
	park       state
	parkAt     int
	parkTicked int
	parkGen    int
	length     int64 // of a round, in cycles
	each       Counters
	calls      int64 // of a scan, in a round
	round      int   // ticks of a round, those before parkTicked

	log  []change // words that were changed, oldest first
	tape []tick   // instructions that the profile has not been told of, or that a loop needs
	told int      // of tape
}

// change is a word of memory and what it was before.
type change struct{ addr, was uint32 }

// tick is an instruction for the profile.
type tick struct {
	pc                uint32
	interlocks, waits int32 // cycles, each time
	times             int64
}

const (
	// maxChanges bounds the stores of a run ahead, maxTicks its instructions
	// where there is a profile: it stops there. Chosen: some dozen times what
	// happens between two events.
	maxChanges = 1 << 12
	maxTicks   = 1 << 14
)

// Ahead is Run for a caller who may have vouched for too much: Back takes the
// run back to an earlier boundary, as long as no other Run or Ahead was called.
// Also, neither memory nor devices have changed but by this processor since the
// run before, unless Forget was called. The run goes up to the boundary to, a
// loop that waits up to far, in whole rounds, far ≥ to: where it will not be
// disturbed it costs no more to skip a long time than a short one. The run may
// end earlier when it cannot remember more. Marks are waited for like device accesses; OnJump is
// told of jumps as they are executed, and never again of those taken back.
func (c *CPU) Ahead(now, to, far int64) (Stop, error) {
	if c.fault == nil {
		c.save()
	}
	return c.run(now, to, far)
}

// Forget tells that something else has acted: memory or devices are not what they
// were. What Ahead has done so far is done. See also Told.
func (c *CPU) Forget() {
	if !c.Told {
		c.renew()
	}
	c.loop.reset()
	a := &c.ahead
	a.on, a.parked = false, false
	a.commit(c.Profile)
	a.log, a.tape, a.told = a.log[:0], a.tape[:0], 0
}

// save makes the present state that to which Back can return.
func (c *CPU) save() {
	a := &c.ahead
	a.commit(c.Profile)
	if c.loop.armed && (len(a.log) > maxChanges/2 || len(a.tape) > maxTicks/2) {
		c.loop.reset()
	}
	if !c.loop.armed {
		a.log, a.tape, a.told = a.log[:0], a.tape[:0], 0
	}
	a.on, a.parked = true, false
	a.saved, a.at, a.ticked, a.gen = c.state, len(a.log), len(a.tape), c.loop.gen
}

// Back takes the last Ahead back to the boundary to, which lies in it, and
// tells how it has ended there: with what is due at to, but no device access
// or mark that is not done with.
func (c *CPU) Back(to int64) (Stop, error) {
	a, l := &c.ahead, &c.loop
	from, at, ticked, gen := &a.saved, a.at, a.ticked, a.gen
	if a.parked && a.park.cycle <= to {
		from, at, ticked, gen = &a.park, a.parkAt, a.parkTicked, a.parkGen
	} else {
		a.parked = false
	}
	for i := len(a.log) - 1; i >= at; i-- {
		if x := a.log[i]; loadWord(c.mem, x.addr) != x.was {
			c.rewritten(x.addr)
			storeWord(c.mem, x.addr, x.was)
		}
	}
	a.log, a.tape = a.log[:at], a.tape[:ticked]
	c.time.valid = max(c.time.valid, c.executed()+1+traceChunk-traceBytes)
	c.state = *from
	switch {
	case l.gen != gen:
		l.reset()
	case a.parked:
		c.rounds(max(0, min(to, a.parkUntil)-c.cycle) / a.length)
		if l.armed {
			c.revisit()
		}
	case l.at > at || l.ticked > ticked || l.cycle > c.cycle:
		l.reset()
	}
	return c.run(-1, to, to)
}

// rounds accounts for so many rounds of the parked loop.
func (c *CPU) rounds(n int64) {
	a := &c.ahead
	c.cycle += n * a.length
	c.count.add(n, &a.each)
	c.sc.skip(n, a.calls, a.length, &a.each)
	if n > 0 {
		for _, x := range a.tape[a.parkTicked-a.round : a.parkTicked] {
			x.times *= n
			x.waits = 0
			a.tape = append(a.tape, x)
		}
	}
}

// add adds what n rounds were.
func (c *Counters) add(n int64, each *Counters) {
	c.Instructions += n * each.Instructions
	c.Accesses += n * each.Accesses
	c.Interlocks += n * each.Interlocks
	c.Waits += n * each.Waits
	c.Jumps += n * each.Jumps
	c.Skipped += n * each.Instructions
}

// commit tells the profile.
func (a *ahead) commit(p *Profile) {
	if p != nil {
		for _, x := range a.tape[a.told:] {
			p.add(x.pc, int64(x.interlocks), int64(x.waits), x.times)
		}
	}
	a.told = len(a.tape)
}

// note remembers the word around addr, which is about to change. It tells
// whether there is room for another.
func (c *CPU) note(addr uint32) bool {
	a := &c.ahead
	addr &^= 3
	a.log = append(a.log, change{addr, loadWord(c.mem, addr)})
	if len(a.log) < maxChanges {
		return true
	}
	c.loop.reset()
	if !a.on {
		a.log = a.log[:0]
		return true
	}
	return false
}

// tick remembers an instruction for the profile, likewise.
func (c *CPU) tick(pc uint32, interlocks, waits int64) bool {
	a := &c.ahead
	a.tape = append(a.tape, tick{pc, int32(interlocks), int32(waits), 1})
	if len(a.tape) < maxTicks {
		return true
	}
	c.loop.reset()
	if !a.on {
		a.commit(c.Profile)
		a.tape, a.told = a.tape[:0], 0
		return true
	}
	return false
}
