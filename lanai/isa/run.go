package isa

import "encoding/binary"

// Run executes up to the boundary to, which the caller vouches for: until then
// nothing but this processor acts. now is the boundary at which everything else
// stands; device accesses that take effect there are made, and before any later
// one the run stops, to be continued with a call for that boundary. The error
// is a *Fault, or wraps ErrStopped when there was one before.
//
// It allocates only when code is executed for the first time.
func (c *CPU) Run(now, to int64) (Stop, error) {
	c.Forget()
	stop, err := c.run(now, to, to)
	c.ahead.commit(c.Profile)
	return stop, err
}

func (c *CPU) run(now, to, far int64) (Stop, error) {
	if c.fault != nil {
		return Faulted, &Fault{Err: ErrStopped, PC: c.fault.PC, Word: c.fault.Word, Symbol: c.fault.Symbol, Cycle: c.fault.Cycle}
	}
	c.steady, _ = c.Devices.(Steady)
	c.base, c.until, c.quiet, c.free = 0, 0, false, nil
	c.x = running{now: now, to: min(to, c.watchdog), far: min(far, c.watchdog), loops: c.OnJump == nil && !c.StepLoops}
	c.x.paths = c.OnJump == nil && c.Profile == nil && !c.Singly
	if !c.begun && !c.ready && c.cycle < c.x.to {
		c.window(c.cycle)
		c.x.fast, c.x.waits, c.x.base = c.leaves(c.cycle, c.x.to)
	}
	stop, err := c.execute()
	if err == nil && stop == Boundary && c.cycle >= c.watchdog && to >= c.watchdog {
		// The instruction in progress, or that to be begun, would end behind the
		// bound. It is told now, also where nobody wanted to go further: that the
		// run was to end here must not make the fault a later one.
		var word uint32
		if pc := c.p0; pc%wordSize == 0 && int64(pc)+wordSize <= int64(len(c.mem)) {
			word = loadWord(c.mem, pc)
		}
		err = c.raise(ErrWatchdog, word, "", 0, 0, c.cycle)
	}
	if err != nil {
		stop = Faulted
	}
	return stop, err
}

// running is what Run and Ahead were told, and how it stands with what they were.
type running struct {
	now, to, far int64

	fast   int64   // boundary up to which the bus leaves everything; 0 while an instruction is half-way
	waits  []uint8 // else those from cycle base on, up to to; nil while one is
	base   int64
	loops  bool // those that wait are skipped
	paths  bool // what needs nothing else is executed by follow
	plain  bool // the instruction was such
	steady bool // and a load from a device
	visit  bool // the instruction behind was a taken branch back

	returned bool // the scan has
	arrived  bool // the path followed last has been taken to its end
}

// stop makes the run end at the boundary cycle.
func (x *running) stop(cycle int64) { x.to, x.far, x.fast, x.waits = cycle, cycle, 0, nil }

// execute is the interpreter's loop.
func (c *CPU) execute() (Stop, error) {
	c.rec.on = false
	for {
		if c.x.paths && c.follows() {
			w := &c.way
			word := w.path.at[w.at].word
			w.path = nil
			return Faulted, c.raise(ErrStack, word, "", c.reg[SP], 0, c.cycle)
		}
		if c.x.returned {
			return Returned, nil
		}
		if !c.x.visit {
			again, stop, err := c.step()
			if !again {
				return stop, err
			}
		}
		if c.x.visit {
			c.x.visit = false
			c.linger(c.x.far)
		}
	}
}

// step executes one instruction, or what is left of it, and tells whether the
// run goes on.
func (c *CPU) step() (again bool, stop Stop, err error) {
	p := c.fetch(c.p0)
	if p == nil {
		c.rec.cut(c)
		return c.unfetched()
	}
	u := &p.ops[c.p0/wordSize%pageWords]

	// Its cycles.
	end, ended := c.meet(u)
	if !ended {
		return false, Boundary, nil
	}
	c.cycle = end
	c.x.plain, c.x.steady = true, false
	c.time.trace[uint64(c.executed())%traceBytes] = u.second | uint8(c.stalled)

	// Its effects, at that boundary.
	r := &c.reg
	r[PC] = c.p0
	p0, p1, p2 := c.p1, c.p2, c.p2+4
	if u.how&hCond == 0 || holds(u.cond, c.nz, c.cf, c.vf) {
		switch u.x {
		case xNop:
		case xLog:
			if c.OnMark == nil {
				break
			}
			if c.ahead.on {
				if c.cycle != c.x.now {
					c.ready = true
					c.rec.cut(c)
					return false, Device, nil
				}
				c.x.stop(c.cycle)
			}
			c.OnMark(Mark{Number: int(u.imm), PC: c.p0, Cycle: c.cycle})
			c.Forget()
			c.x.plain = false
		case xBranch:
			target := u.imm
			if u.how&hRelative != 0 {
				target += c.p0
			}
			c.x.visit = target <= c.p0 && c.x.loops
			p1, p2 = target, target+4
		case xLoad, xStore:
			if wait, err := c.access(u); err != nil {
				return false, Faulted, err
			} else if wait {
				c.ready = true
				c.rec.cut(c)
				return false, Device, nil
			}
		case xUndefined:
			return false, Faulted, c.raise(ErrUndefined, u.word, "", 0, 0, c.cycle)
		default:
			r[u.rd&63] = c.result(u)
		}
		if u.how&hSP != 0 && c.strayed() {
			return false, Faulted, c.raise(ErrStack, u.word, "", r[SP], 0, c.cycle)
		}
		switch {
		case u.how&hPC == 0:
		case u.x == xLoad:
			p2 = r[pcResult]
		default:
			p1 = r[pcResult]
			p2 = p1 + 4
			c.count.Jumps++
			if c.OnJump != nil {
				c.OnJump(p1, c.cycle)
			}
		}
	}
	c.p0, c.p1, c.p2 = p0, p1, p2
	c.hz = u.leaves
	c.count.Instructions++
	c.way.at++
	if c.rec.on {
		if c.x.plain {
			c.rec.took(c, u)
		} else {
			c.rec.cut(c)
		}
	}
	if c.Profile != nil && !c.tick(r[PC], c.stalled, c.waited) {
		c.x.stop(c.cycle)
	}
	return true, 0, nil
}

// strayed tells that the stack pointer is out of its bounds.
func (c *CPU) strayed() bool {
	return c.stackHigh != 0 && (c.reg[SP] < c.stackLow || c.reg[SP] > c.stackHigh)
}

// access executes a load or store. It tells whether that has to wait until the
// devices stand at its time.
func (c *CPU) access(u *op) (wait bool, err error) {
	r := &c.reg
	a, b := r[u.ra&63], r[u.rb&63]|u.imm
	addr := a + b
	if u.how&hIndexALU != 0 {
		addr = combine(Op(u.sub), a, b, c.cf)
	}
	back := addr
	if u.how&hPost != 0 {
		addr = a
	}
	if u.x == xStore {
		wait, err = c.store(addr, r[u.rd&63], u)
		if wait || err != nil {
			return wait, err
		}
		if u.how&hWrite != 0 {
			r[target(u.ra)&63] = back
		}
	} else {
		var v uint32
		v, wait, err = c.load(addr, u)
		if wait || err != nil {
			return wait, err
		}
		if u.how&hWrite != 0 {
			r[target(u.ra)&63] = back
		}
		r[u.rd&63] = v
	}
	c.count.Accesses++
	return false, nil
}

// may tells whether memory is at an address and may be used in a way.
func (c *CPU) may(addr uint32, u *op, a Access) bool {
	g := addr >> granuleShift
	return int(g) < len(c.rights) && c.rights[g]&a != 0 && addr&uint32(u.size&sizeMask-1) == 0
}

func (c *CPU) load(addr uint32, u *op) (v uint32, wait bool, err error) {
	if c.may(addr, u, Read) {
		return u.loaded(c.mem, addr), false, nil
	}
	// A device, perhaps. It may change what is left to this processor, so the
	// caller has to vouch anew afterwards.
	v, wait, err = c.deviceLoad(addr, u, c.cycle, c.x.now)
	switch {
	case err != nil || wait:
	case c.cycle == c.x.now:
		c.acted()
	default:
		c.x.steady, c.x.plain = true, u.size == wordSize && u.how&(hPost|hWrite|hPC|hSP) == 0
	}
	return v, wait, err
}

func (c *CPU) store(addr, v uint32, u *op) (wait bool, err error) {
	if !c.may(addr, u, Write) {
		if wait, err = c.deviceStore(addr, v, u, c.cycle, c.x.now); err == nil && !wait {
			c.acted()
		}
		return wait, err
	}
	if (c.ahead.on || c.loop.armed) && !c.note(addr) {
		c.x.stop(c.cycle)
	}
	if c.rights[addr>>granuleShift]&Execute != 0 {
		c.rewritten(addr)
		c.x.plain = false
	}
	u.stored(c.mem, addr, v)
	return false, nil
}

// acted ends the run behind an access to a device.
func (c *CPU) acted() {
	c.x.stop(c.cycle)
	c.base, c.until = 0, 0
	c.Forget()
	c.x.plain = false
}

// loaded is what a load finds in memory.
func (u *op) loaded(mem []byte, addr uint32) uint32 {
	switch u.size {
	case 4:
		return binary.BigEndian.Uint32(mem[addr:])
	case 2:
		return uint32(binary.BigEndian.Uint16(mem[addr:]))
	case 2 | signed:
		return uint32(int16(binary.BigEndian.Uint16(mem[addr:])))
	case 1:
		return uint32(mem[addr])
	}
	return uint32(int8(mem[addr]))
}

// stored puts what a store has there.
func (u *op) stored(mem []byte, addr, v uint32) {
	switch u.size & sizeMask {
	case 4:
		binary.BigEndian.PutUint32(mem[addr:], v)
	case 2:
		binary.BigEndian.PutUint16(mem[addr:], uint16(v))
	default:
		mem[addr] = uint8(v)
	}
}

// unfetched is called where the next instruction cannot be fetched: behind a
// return, at a gate, or at a fault. It tells whether to go on, at c.p0.
func (c *CPU) unfetched() (again bool, stop Stop, err error) {
	g := c.p0 >> granuleShift
	switch {
	case c.p0 == ReturnAddress:
		if c.scan == nil {
			return false, Returned, nil
		}
		more, anew := c.another()
		if !more {
			return false, Returned, nil
		}
		if anew && c.x.loops {
			c.linger(c.x.far)
		}
		return true, 0, nil
	case c.Gates != nil && c.p0%wordSize == 0 && int(g) < len(c.rights) && !c.begun && !c.ready:
		if c.cycle > c.x.now {
			return false, Device, nil
		}
		if err := c.Gates.Cross(c.p0); err != nil {
			return false, Faulted, c.raise(err, 0, "fetch", c.p0, wordSize, c.cycle)
		}
		// What Cross did may have changed what the caller vouches for.
		c.Forget()
		if c.Allowed(c.p0)&Execute == 0 {
			return false, Faulted, c.badFetch(c.cycle)
		}
		return false, Boundary, nil
	}
	// Also where the run was to end here: the fault is of this boundary.
	return false, Faulted, c.badFetch(c.cycle)
}

// meet takes the instruction at c.cycle, which is half-way or for which what is
// known of the bus does not do, to its end, or to where the run ends.
func (c *CPU) meet(u *op) (end int64, ended bool) {
	x := &c.x
	cycle := c.cycle
	if !c.begun && !c.ready {
		if cycle >= x.to {
			return cycle, false
		}
		c.stalled, c.waited = 0, 0
		if c.hz&u.uses != 0 {
			c.stalled = 1
		}
		c.got, c.wait, c.begun = 0, c.stalled, true
	}
	if !c.ready {
		if cycle, ended = c.pass(cycle, x.to, u.need()); !ended {
			c.cycle = cycle
			return cycle, false
		}
	}
	c.begun, c.ready, c.got = false, false, 0
	x.fast, x.waits, x.base = c.leaves(cycle, x.to)
	return cycle, true
}

// leaves is what the window leaves to the processor from a cycle on, not beyond
// the boundary to: everything up to a boundary, or waits as listed.
func (c *CPU) leaves(cycle, to int64) (fast int64, waits []uint8, base int64) {
	to = min(to, c.until)
	switch {
	case cycle < c.base || cycle >= to:
		return 0, nil, 0
	case c.quiet:
		return to, nil, 0
	}
	return 0, c.waits[cycle-c.base : to-c.base], cycle
}
