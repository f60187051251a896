package isa

import (
	"encoding/binary"
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
	stop, err := c.execute(now, min(to, c.watchdog), min(far, c.watchdog))
	if err == nil && stop == Boundary && c.cycle >= c.watchdog && to > c.watchdog {
		// The instruction in progress would end behind the bound.
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

// execute is the interpreter's loop. What changes with every instruction lives
// in local variables, written back on the way out.
func (c *CPU) execute(now, to, far int64) (stop Stop, err error) {
	var (
		mem        = c.mem
		rights     = c.rights
		reg        = &c.reg
		p0, p1, p2 = c.p0, c.p1, c.p2
		nz, cf, vf = c.nz, c.cf, c.vf
		hz         = c.hz
		cycle      = c.cycle
		held       = c.begun || c.ready // the instruction is half-way
		fast       = int64(0)           // boundary up to which the bus leaves everything; 0 while held
		free       []uint8              // else what it leaves from cycle base on, up to to; nil while held
		base       int64
		decoded    *page
		decodedAt  = ^uint32(0) // the page's number
		count      = &c.count
		profile    = c.Profile
		loops      = c.OnJump == nil && !c.StepLoops
		visit      = false
	)
	for {
		// The instruction's word, and what it was decoded to.
		g := p0 >> granuleShift
		if int(g) >= len(rights) || rights[g]&Execute == 0 || p0&3 != 0 {
			c.stand(p0, p1, p2, nz, cf, vf, hz, cycle)
			if p0 == ReturnAddress {
				if c.scan == nil {
					return Returned, nil
				}
				more, anew := c.another()
				if !more {
					return Returned, nil
				}
				p0, p1, p2, hz = c.p0, c.p1, c.p2, 0
				if anew && loops {
					cycle = c.waits(far)
				}
				continue
			}
			if c.Gates != nil && p0&3 == 0 && int(g) < len(rights) && !c.begun && !c.ready {
				if cycle > now {
					return Device, nil
				}
				if err := c.Gates.Cross(p0); err != nil {
					return Faulted, c.raise(err, 0, "fetch", p0, wordSize, cycle)
				}
				rights, p0, p1, p2 = c.rights, c.p0, c.p1, c.p2
				if g = p0 >> granuleShift; int(g) >= len(rights) || rights[g]&Execute == 0 {
					return Faulted, c.badFetch(cycle)
				}
				// What Cross did may have changed what the caller vouches for.
				c.Forget()
				return Boundary, nil
			}
			if cycle >= to && !c.ready {
				return Boundary, nil
			}
			return Faulted, c.badFetch(cycle)
		}
		if p0>>pageShift != decodedAt {
			decodedAt, decoded = p0>>pageShift, c.page(p0)
		}
		u := &decoded[p0>>2&(pageWords-1)]
		if w := binary.BigEndian.Uint32(mem[p0:]); u.word != w {
			u.fill(w)
		}

		// Its cycles.
		var stalled, waited int64
		end := cycle + 1
		if hz&u.uses != 0 {
			stalled = 1
			end++
		}
	again:
		if end > fast {
			if i := end - 1 - base; uint64(i) < uint64(len(free)) {
				got := free[i]
				for got < u.need {
					if i++; uint64(i) >= uint64(len(free)) {
						goto slow
					}
					got += free[i]
				}
				waited = base + i + 1 - end
				end += waited
				count.Interlocks += stalled
				count.Waits += waited
				goto timed
			}
		slow:
			if !held {
				if cycle >= to {
					c.stand(p0, p1, p2, nz, cf, vf, hz, cycle)
					return Boundary, nil
				}
				if at := end - 1; at < to && (at >= c.until || at < c.base) {
					c.window(at)
					fast, free, base = c.leaves(at, to)
					goto again
				}
				c.got, c.waited, c.wait, c.stalled = 0, 0, stalled, stalled
				c.begun = true
			}
			if !c.ready {
				var ended bool
				c.stand(p0, p1, p2, nz, cf, vf, hz, cycle)
				if cycle, ended = c.pass(cycle, to, u.need); !ended {
					c.cycle = cycle
					return Boundary, nil
				}
			}
			c.cycle, end = cycle, cycle
			stalled, waited = c.stalled, c.waited
			held = false
			c.begun, c.ready, c.got, c.waited = false, false, 0, 0
			fast, free, base = c.leaves(cycle, to)
		} else {
			count.Interlocks += stalled
		}
	timed:
		// Its effects, at boundary end.
		reg[PC] = p0
		next := p2 + 4
		switch u.x {
		case xNop:
		case xLog:
			if c.OnMark != nil {
				cycle = end
				c.stand(p0, p1, p2, nz, cf, vf, hz, cycle)
				if c.ahead.on {
					if end != now {
						c.await(stalled, waited)
						return Device, nil
					}
					to, fast, free = end, 0, nil
				}
				c.OnMark(Mark{Number: int(u.imm), PC: p0, Cycle: end})
				c.Forget()
			}
		case xAdd:
			if u.how&hCond == 0 || holds(u.cond, nz, cf, vf) {
				reg[u.rd&63] = reg[u.ra&63] + (reg[u.rb&63] | u.imm)
			} else {
				goto done
			}
		case xAddC:
			if u.how&hCond != 0 && !holds(u.cond, nz, cf, vf) {
				goto done
			}
			reg[u.rd&63] = reg[u.ra&63] + (reg[u.rb&63] | u.imm) + cf
		case xSub:
			if u.how&hCond != 0 && !holds(u.cond, nz, cf, vf) {
				goto done
			}
			reg[u.rd&63] = reg[u.ra&63] - (reg[u.rb&63] | u.imm)
		case xSubB:
			if u.how&hCond != 0 && !holds(u.cond, nz, cf, vf) {
				goto done
			}
			reg[u.rd&63] = reg[u.ra&63] + ^(reg[u.rb&63] | u.imm) + cf
		case xAnd:
			if u.how&hCond != 0 && !holds(u.cond, nz, cf, vf) {
				goto done
			}
			reg[u.rd&63] = reg[u.ra&63] & (reg[u.rb&63] | u.imm)
		case xOr:
			if u.how&hCond != 0 && !holds(u.cond, nz, cf, vf) {
				goto done
			}
			reg[u.rd&63] = reg[u.ra&63] | reg[u.rb&63] | u.imm
		case xXor:
			if u.how&hCond != 0 && !holds(u.cond, nz, cf, vf) {
				goto done
			}
			reg[u.rd&63] = reg[u.ra&63] ^ (reg[u.rb&63] | u.imm)
		case xShift:
			if u.how&hCond != 0 && !holds(u.cond, nz, cf, vf) {
				goto done
			}
			reg[u.rd&63] = shift(reg[u.ra&63], reg[u.rb&63]|u.imm)
		case xShiftA:
			if u.how&hCond != 0 && !holds(u.cond, nz, cf, vf) {
				goto done
			}
			reg[u.rd&63] = shiftArithmetic(reg[u.ra&63], reg[u.rb&63]|u.imm)
		case xAddF, xAddCF, xSubF, xSubBF:
			if u.how&hCond != 0 && !holds(u.cond, nz, cf, vf) {
				goto done
			}
			a, b, in := reg[u.ra&63], reg[u.rb&63]|u.imm, cf
			switch u.x {
			case xAddF:
				in = 0
			case xSubF:
				b, in = ^b, 1
			case xSubBF:
				b = ^b
			}
			nz, cf, vf = adder(a, b, in)
			reg[u.rd&63] = nz
		case xAndF:
			if u.how&hCond != 0 && !holds(u.cond, nz, cf, vf) {
				goto done
			}
			nz, cf, vf = reg[u.ra&63]&(reg[u.rb&63]|u.imm), 0, 0
			reg[u.rd&63] = nz
		case xOrF:
			if u.how&hCond != 0 && !holds(u.cond, nz, cf, vf) {
				goto done
			}
			nz, cf, vf = reg[u.ra&63]|reg[u.rb&63]|u.imm, 0, 0
			reg[u.rd&63] = nz
		case xXorF:
			if u.how&hCond != 0 && !holds(u.cond, nz, cf, vf) {
				goto done
			}
			nz, cf, vf = reg[u.ra&63]^(reg[u.rb&63]|u.imm), 0, 0
			reg[u.rd&63] = nz
		case xShiftF, xShiftAF:
			if u.how&hCond != 0 && !holds(u.cond, nz, cf, vf) {
				goto done
			}
			a, b := reg[u.ra&63], reg[u.rb&63]|u.imm
			if u.x == xShiftF {
				nz = shift(a, b)
			} else {
				nz = shiftArithmetic(a, b)
			}
			cf, vf = shiftCarry(a, b), 0
			reg[u.rd&63] = nz
		case xSelect:
			if holds(u.cond, nz, cf, vf) {
				reg[u.rd&63] = reg[u.ra&63]
			} else {
				reg[u.rd&63] = reg[u.rb&63]
			}
		case xCount:
			reg[u.rd&63] = countBits(Kind(u.sub), reg[u.ra&63])
		case xSetCond:
			v := uint32(0)
			if holds(u.cond, nz, cf, vf) {
				v = 1
			}
			reg[u.rd&63] = v
		case xBranch, xBranchIf, xBranchRel:
			if u.x != xBranch && !holds(u.cond, nz, cf, vf) {
				goto done
			}
			to2 := u.imm
			if u.x == xBranchRel {
				to2 += p0
			}
			visit = to2 <= p0 && loops
			p2, next = to2, to2+4
		case xLoad:
			off := reg[u.rb&63] | u.imm
			base := reg[u.ra&63]
			if u.how&hIndexALU != 0 {
				off = combine(Op(u.sub), base, reg[u.rb&63], cf) - base
			}
			addr := base + off
			back := addr
			if u.how&hPost != 0 {
				addr = base
			}
			var v uint32
			if g := addr >> granuleShift; int(g) < len(rights) && rights[g]&Read != 0 && addr&uint32(u.size&sizeMask-1) == 0 {
				switch u.size & sizeMask {
				case 4:
					v = binary.BigEndian.Uint32(mem[addr:])
				case 2:
					v = uint32(binary.BigEndian.Uint16(mem[addr:]))
					if u.size&signed != 0 {
						v = uint32(int16(v))
					}
				default:
					v = uint32(mem[addr])
					if u.size&signed != 0 {
						v = uint32(int8(v))
					}
				}
			} else {
				// A device, perhaps. It may change what is left to this
				// processor, so everything is told where it stands first, and
				// the caller has to vouch anew afterwards.
				cycle = end
				c.stand(p0, p1, p2, nz, cf, vf, hz, cycle)
				var wait bool
				if v, wait, err = c.deviceLoad(addr, u, end, now); err != nil {
					return Faulted, err
				} else if wait {
					c.await(stalled, waited)
					return Device, nil
				} else if end == now {
					to, fast, free = end, 0, nil
					c.base, c.until = 0, 0
					c.Forget()
				}
			}
			if u.how&hWrite != 0 {
				reg[target(u.ra)&63] = back
			}
			reg[u.rd&63] = v
			count.Accesses++
		case xStore:
			off := reg[u.rb&63] | u.imm
			base := reg[u.ra&63]
			if u.how&hIndexALU != 0 {
				off = combine(Op(u.sub), base, reg[u.rb&63], cf) - base
			}
			addr := base + off
			back := addr
			if u.how&hPost != 0 {
				addr = base
			}
			v := reg[u.rd&63]
			if g := addr >> granuleShift; int(g) < len(rights) && rights[g]&Write != 0 && addr&uint32(u.size&sizeMask-1) == 0 {
				if (c.ahead.on || c.loop.armed) && !c.note(addr) {
					to, far, fast, free = end, end, 0, nil
				}
				switch u.size & sizeMask {
				case 4:
					binary.BigEndian.PutUint32(mem[addr:], v)
				case 2:
					binary.BigEndian.PutUint16(mem[addr:], uint16(v))
				default:
					mem[addr] = uint8(v)
				}
			} else {
				cycle = end
				c.stand(p0, p1, p2, nz, cf, vf, hz, cycle)
				if wait, err := c.deviceStore(addr, v, u, end, now); err != nil {
					return Faulted, err
				} else if wait {
					c.await(stalled, waited)
					return Device, nil
				}
				to, fast, free = end, 0, nil
				c.base, c.until = 0, 0
				c.Forget()
			}
			if u.how&hWrite != 0 {
				reg[target(u.ra)&63] = back
			}
			count.Accesses++
		default:
			cycle = end
			c.stand(p0, p1, p2, nz, cf, vf, hz, cycle)
			return Faulted, c.raise(ErrUndefined, u.word, "", 0, 0, end)
		}
		if u.how&(hPC|hSP) != 0 {
			switch {
			case u.how&hPC != 0 && u.x == xLoad:
				next = reg[pcResult]
			case u.how&hPC != 0:
				p2 = reg[pcResult]
				next = p2 + 4
				count.Jumps++
				if c.OnJump != nil {
					c.OnJump(p2, end)
				}
			}
			if u.how&hSP != 0 && c.stackHigh != 0 && (reg[SP] < c.stackLow || reg[SP] > c.stackHigh) {
				cycle = end
				c.stand(p0, p1, p2, nz, cf, vf, hz, cycle)
				return Faulted, c.raise(ErrStack, u.word, "", reg[SP], 0, end)
			}
		}
	done:
		if profile != nil && !c.tick(p0, stalled, waited) {
			to, far, fast, free = end, end, 0, nil
		}
		hz = u.leaves
		count.Instructions++
		cycle = end
		p0, p1, p2 = p1, p2, next
		if visit {
			visit = false
			if l := &c.loop; l.armed && (l.p0 != p0 || l.nz != nz) && l.misses < maxMisses {
				l.misses++
				continue
			}
			c.stand(p0, p1, p2, nz, cf, vf, hz, cycle)
			cycle = c.waits(far)
		}
	}
}

// leaves is what the window leaves to the processor from a cycle on, not beyond
// the boundary to: everything up to a boundary, or what is listed.
func (c *CPU) leaves(cycle, to int64) (fast int64, free []uint8, base int64) {
	to = min(to, c.until)
	switch {
	case cycle < c.base || cycle >= to:
		return 0, nil, 0
	case c.quiet:
		return to, nil, 0
	}
	return 0, c.free[cycle-c.base : to-c.base], cycle
}

// stand writes back what execute has in variables.
func (c *CPU) stand(p0, p1, p2, nz, cf, vf uint32, hz uint32, cycle int64) {
	c.p0, c.p1, c.p2 = p0, p1, p2
	c.nz, c.cf, c.vf = nz, cf, vf
	c.hz, c.cycle = hz, cycle
}
