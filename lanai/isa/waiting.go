package isa

// waiting finds loops that only wait: a taken branch back behind which
// everything is as it was behind the same branch before. Registers, flags and
// the addresses in flight are compared, and memory by the log of changes. What
// the bus leaves free has no say in that, only in how long a round takes.
type waiting struct {
	armed  bool // the rest is that of an earlier visit
	gen    int  // changes with each that is not a round later
	misses int
	reg    [NumRegs]uint32
	p0     uint32 // the instruction behind the branch
	p1, p2 uint32
	place  int // in a scan
	nz     uint32
	cf, vf uint32
	cycle  int64
	count  Counters
	calls  int64
	at     int // changes before the visit
	ticked int // ticks before it
}

const (
	maxRestored = 64 // stores in a round of a waiting loop
	maxMisses   = 48 // branches back before another one is looked at
)

// reset forgets what was seen.
func (l *waiting) reset() { l.armed, l.misses = false, 0 }

// visit is called behind a taken branch back. It tells whether the loop waits:
// then park holds the present state and what a round takes.
func (c *CPU) visit() bool {
	l, a := &c.loop, &c.ahead
	c.reg[PC] = 0 // nothing depends on what is there between instructions
	if l.armed {
		same := l.p0 == c.p0 && l.nz == c.nz && l.p1 == c.p1 && l.p2 == c.p2 && l.cf == c.cf && l.vf == c.vf && l.place == c.sc.at &&
			l.reg == [NumRegs]uint32(c.reg[:NumRegs])
		if same && c.restored() {
			a.parked = a.on
			a.park, a.parkAt, a.parkTicked = c.state, len(a.log), len(a.tape)
			a.parkGen = l.gen
			a.each, a.round = c.count.Sub(l.count), len(a.tape)-l.ticked
			a.each.Waits = 0
			a.length = a.each.Cycles() // on a quiet bus
			a.calls = c.sc.calls - l.calls
			l.misses = 0
			return true
		}
		if l.misses++; !same && l.misses < maxMisses {
			return false
		}
	}
	if !a.on {
		// Nobody else needs what was logged.
		a.log = a.log[:0]
	}
	copy(l.reg[:], c.reg[:NumRegs])
	l.p0, l.p1, l.p2 = c.p0, c.p1, c.p2
	l.nz, l.cf, l.vf = c.nz, c.cf, c.vf
	l.place = c.sc.at
	l.armed, l.misses = true, 0
	c.time.valid = c.executed() // the trace is kept from here on
	l.gen++
	c.revisit()
	return false
}

// linger visits, and skips what rounds of a loop that waits there are: where the
// bus is quiet until the boundary far, else, as others are taken off the bus
// again before long, no further than is certain. It tells the boundary behind
// them.
func (c *CPU) linger(far int64) int64 {
	if c.visit() {
		a := &c.ahead
		a.parkUntil = c.cycle
		if c.quiet {
			a.parkUntil = min(far, c.until)
			c.rounds((a.parkUntil - c.cycle) / a.length)
		} else {
			c.contended(c.x.to)
		}
		c.revisit()
	}
	return c.cycle
}

// revisit makes the present the beginning of the round.
func (c *CPU) revisit() {
	l, a := &c.loop, &c.ahead
	l.cycle, l.count, l.calls = c.cycle, c.count, c.sc.calls
	l.at, l.ticked = len(a.log), len(a.tape)
}

// restored tells whether all memory is as it was at the visit.
func (c *CPU) restored() bool {
	log := c.ahead.log[c.loop.at:]
	if len(log) > maxRestored {
		return false
	}
next:
	for i, x := range log {
		for _, y := range log[:i] {
			if y.addr == x.addr {
				continue next
			}
		}
		if loadWord(c.mem, x.addr) != x.was {
			return false
		}
	}
	return true
}
