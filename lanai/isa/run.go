package isa

import (
	"encoding/binary"
	mathbits "math/bits"
)

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
	c.x = running{now: now, to: min(to, c.watchdog), far: min(far, c.watchdog), page: ^uint32(0), loops: c.OnJump == nil && !c.StepLoops}
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

	fast  int64   // boundary up to which the bus leaves everything; 0 while an instruction is half-way
	waits []uint8 // else those from cycle base on, up to to; nil while one is
	base  int64
	loops bool // those that wait are skipped
	visit bool // the instruction is a taken branch back

	decoded *page
	page    uint32 // its number
}

// stop makes the run end at the boundary cycle.
func (x *running) stop(cycle int64) { x.to, x.far, x.fast, x.waits = cycle, cycle, 0, nil }

// execute is the interpreter's loop. What changes with every instruction lives
// in local variables, written back by stand; there are few enough of them for
// registers.
func (c *CPU) execute() (Stop, error) {
	var (
		p0, p1, p2 = c.p0, c.p1, c.p2
		nz, cf, vf = c.nz, c.cf, c.vf
		hz         = c.hz
		cycle      = c.cycle
	)
	for {
		// The instruction, and what it was decoded to.
		at := mathbits.RotateLeft32(p0, -2) // its number, other than any where it is misaligned
		if at/pageWords != c.x.page || c.x.decoded.epochs[at%pageWords/granuleWords] != c.epoch {
			if c.x.decoded = c.fetch(p0); c.x.decoded == nil {
				c.x.page = ^uint32(0)
				c.stand(p0, p1, p2, nz, cf, vf, hz, cycle)
				if again, stop, err := c.unfetched(); !again {
					return stop, err
				}
				p0, p1, p2, hz, cycle = c.p0, c.p1, c.p2, 0, c.cycle
				continue
			}
			c.x.page = at / pageWords
		}
		u := &c.x.decoded.ops[at%pageWords]

		// Its cycles.
		end, stalled := cycle+1, int64(0)
		if hz&u.uses != 0 {
			end, stalled = cycle+2, 1
		}
		if end <= c.x.fast {
			c.count.Interlocks += stalled
			c.stalled, c.waited = stalled, 0
		} else {
			i := end - 1 - c.x.base
			w := int64(longWait)
			if uint64(i) < uint64(len(c.x.waits)) {
				w = int64(c.x.waits[i] >> u.second & longWait)
			}
			if w < longWait && i+w < int64(len(c.x.waits)) {
				end += w
				c.count.Interlocks += stalled
				c.count.Waits += w
				c.stalled, c.waited = stalled, w
			} else {
				c.stand(p0, p1, p2, nz, cf, vf, hz, cycle)
				var ended bool
				if end, ended = c.meet(u); !ended {
					return Boundary, nil
				}
			}
		}
		cycle = end
		c.time.trace[uint64(c.executed())%traceBytes] = u.second | uint8(c.stalled)

		// Its effects, at that boundary.
		c.reg[PC] = p0
		if u.how&hCond != 0 && !holds(u.cond, nz, cf, vf) {
			p0, p1, p2 = p1, p2, p2+4
			goto done
		}
		switch u.x {
		case xNop:
		case xLog:
			if c.OnMark != nil {
				c.stand(p0, p1, p2, nz, cf, vf, hz, cycle)
				if c.ahead.on {
					if cycle != c.x.now {
						c.ready = true
						return Device, nil
					}
					c.x.stop(cycle)
				}
				c.OnMark(Mark{Number: int(u.imm), PC: p0, Cycle: cycle})
				c.Forget()
			}
		case xAdd:
			c.reg[u.rd&63] = c.reg[u.ra&63] + (c.reg[u.rb&63] | u.imm)
		case xAddC:
			c.reg[u.rd&63] = c.reg[u.ra&63] + (c.reg[u.rb&63] | u.imm) + cf
		case xSub:
			c.reg[u.rd&63] = c.reg[u.ra&63] - (c.reg[u.rb&63] | u.imm)
		case xSubB:
			c.reg[u.rd&63] = c.reg[u.ra&63] + ^(c.reg[u.rb&63] | u.imm) + cf
		case xAnd:
			c.reg[u.rd&63] = c.reg[u.ra&63] & (c.reg[u.rb&63] | u.imm)
		case xOr:
			c.reg[u.rd&63] = c.reg[u.ra&63] | (c.reg[u.rb&63] | u.imm)
		case xXor:
			c.reg[u.rd&63] = c.reg[u.ra&63] ^ (c.reg[u.rb&63] | u.imm)
		case xShift:
			c.reg[u.rd&63] = shift(c.reg[u.ra&63], (c.reg[u.rb&63] | u.imm))
		case xShiftA:
			c.reg[u.rd&63] = shiftArithmetic(c.reg[u.ra&63], (c.reg[u.rb&63] | u.imm))
		case xAddF, xAddCF, xSubF, xSubBF:
			a, b, in := c.reg[u.ra&63], c.reg[u.rb&63]|u.imm, cf
			switch u.x {
			case xAddF:
				in = 0
			case xSubF:
				b, in = ^b, 1
			case xSubBF:
				b = ^b
			}
			nz, cf, vf = adder(a, b, in)
			c.reg[u.rd&63] = nz
		case xAndF:
			nz, cf, vf = c.reg[u.ra&63]&(c.reg[u.rb&63]|u.imm), 0, 0
			c.reg[u.rd&63] = nz
		case xOrF:
			nz, cf, vf = c.reg[u.ra&63]|c.reg[u.rb&63]|u.imm, 0, 0
			c.reg[u.rd&63] = nz
		case xXorF:
			nz, cf, vf = c.reg[u.ra&63]^(c.reg[u.rb&63]|u.imm), 0, 0
			c.reg[u.rd&63] = nz
		case xShiftF, xShiftAF:
			a, b := c.reg[u.ra&63], c.reg[u.rb&63]|u.imm
			if u.x == xShiftF {
				nz = shift(a, b)
			} else {
				nz = shiftArithmetic(a, b)
			}
			cf, vf = shiftCarry(a, b), 0
			c.reg[u.rd&63] = nz
		case xSelect:
			if holds(u.cond, nz, cf, vf) {
				c.reg[u.rd&63] = c.reg[u.ra&63]
			} else {
				c.reg[u.rd&63] = c.reg[u.rb&63]
			}
		case xCount:
			c.reg[u.rd&63] = countBits(Kind(u.sub), c.reg[u.ra&63])
		case xSetCond:
			v := uint32(0)
			if holds(u.cond, nz, cf, vf) {
				v = 1
			}
			c.reg[u.rd&63] = v
		case xBranch:
			target := u.imm
			if u.how&hRelative != 0 {
				target += p0
			}
			c.x.visit = target <= p0 && c.x.loops
			p0, p1, p2 = p1, target, target+4
			goto done
		case xLoad:
			addr := c.reg[u.ra&63] + (c.reg[u.rb&63] | u.imm)
			if u.how&hIndexALU != 0 {
				addr = combine(Op(u.sub), c.reg[u.ra&63], c.reg[u.rb&63], cf)
			}
			back := addr
			if u.how&hPost != 0 {
				addr = c.reg[u.ra&63]
			}
			var v uint32
			if g := addr >> granuleShift; int(g) < len(c.rights) && c.rights[g]&Read != 0 && addr&uint32(u.size&sizeMask-1) == 0 {
				switch u.size & sizeMask {
				case 4:
					v = binary.BigEndian.Uint32(c.mem[addr:])
				case 2:
					v = uint32(binary.BigEndian.Uint16(c.mem[addr:]))
					if u.size&signed != 0 {
						v = uint32(int16(v))
					}
				default:
					v = uint32(c.mem[addr])
					if u.size&signed != 0 {
						v = uint32(int8(v))
					}
				}
			} else {
				// A device, perhaps. It may change what is left to this
				// processor, so everything is told where it stands first, and
				// the caller has to vouch anew afterwards.
				c.stand(p0, p1, p2, nz, cf, vf, hz, cycle)
				var wait bool
				var err error
				if v, wait, err = c.deviceLoad(addr, u, cycle, c.x.now); err != nil {
					return Faulted, err
				} else if wait {
					c.ready = true
					return Device, nil
				} else if cycle == c.x.now {
					c.x.stop(cycle)
					c.base, c.until = 0, 0
					c.Forget()
				}
			}
			if u.how&hWrite != 0 {
				c.reg[target(u.ra)&63] = back
			}
			c.reg[u.rd&63] = v
			c.count.Accesses++
		case xStore:
			addr := c.reg[u.ra&63] + (c.reg[u.rb&63] | u.imm)
			if u.how&hIndexALU != 0 {
				addr = combine(Op(u.sub), c.reg[u.ra&63], c.reg[u.rb&63], cf)
			}
			back := addr
			if u.how&hPost != 0 {
				addr = c.reg[u.ra&63]
			}
			v := c.reg[u.rd&63]
			if g := addr >> granuleShift; int(g) < len(c.rights) && c.rights[g]&Write != 0 && addr&uint32(u.size&sizeMask-1) == 0 {
				if (c.ahead.on || c.loop.armed) && !c.note(addr) {
					c.x.stop(cycle)
				}
				if c.rights[g]&Execute != 0 {
					c.rewritten(addr)
				}
				switch u.size & sizeMask {
				case 4:
					binary.BigEndian.PutUint32(c.mem[addr:], v)
				case 2:
					binary.BigEndian.PutUint16(c.mem[addr:], uint16(v))
				default:
					c.mem[addr] = uint8(v)
				}
			} else {
				c.stand(p0, p1, p2, nz, cf, vf, hz, cycle)
				if wait, err := c.deviceStore(addr, v, u, cycle, c.x.now); err != nil {
					return Faulted, err
				} else if wait {
					c.ready = true
					return Device, nil
				}
				c.x.stop(cycle)
				c.base, c.until = 0, 0
				c.Forget()
			}
			if u.how&hWrite != 0 {
				c.reg[target(u.ra)&63] = back
			}
			c.count.Accesses++
		default:
			c.stand(p0, p1, p2, nz, cf, vf, hz, cycle)
			return Faulted, c.raise(ErrUndefined, u.word, "", 0, 0, cycle)
		}
		if u.how&hSP != 0 && c.stackHigh != 0 && (c.reg[SP] < c.stackLow || c.reg[SP] > c.stackHigh) {
			c.stand(p0, p1, p2, nz, cf, vf, hz, cycle)
			return Faulted, c.raise(ErrStack, u.word, "", c.reg[SP], 0, cycle)
		}
		p0, p1, p2 = p1, p2, p2+4
		if u.how&hPC != 0 {
			if u.x == xLoad {
				p2 = c.reg[pcResult]
			} else {
				p1 = c.reg[pcResult]
				p2 = p1 + 4
				c.count.Jumps++
				if c.OnJump != nil {
					c.OnJump(p1, cycle)
				}
			}
		}
	done:
		hz = u.leaves
		c.count.Instructions++
		if c.Profile != nil && !c.tick(c.reg[PC], c.stalled, c.waited) {
			c.x.stop(cycle)
		}
		if c.x.visit {
			c.x.visit = false
			if l := &c.loop; l.armed && (l.p0 != p0 || l.nz != nz) && l.misses < maxMisses {
				l.misses++
				continue
			}
			c.stand(p0, p1, p2, nz, cf, vf, hz, cycle)
			cycle = c.linger(c.x.far)
		}
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

// stand writes back what execute has in variables.
func (c *CPU) stand(p0, p1, p2, nz, cf, vf uint32, hz uint32, cycle int64) {
	c.p0, c.p1, c.p2 = p0, p1, p2
	c.nz, c.cf, c.vf = nz, cf, vf
	c.hz, c.cycle = hz, cycle
}
