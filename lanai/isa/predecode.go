package isa

import "encoding/binary"

// code is what the interpreter's switch is over.
type code uint8

const (
	xUndefined code = iota
	xNop
	xLog
	xAdd
	xAddC
	xSub
	xSubB
	xAnd
	xOr
	xXor
	xShift
	xShiftA
	xAddF
	xAddCF
	xSubF
	xSubBF
	xAndF
	xOrF
	xXorF
	xShiftF
	xShiftAF
	xSelect
	xCount // population, leading and trailing zeros
	xSetCond
	xBranch
	xGuard  // in a path: a branch that goes the way it went, or leaves the path
	xSteady // in a path: a load of a word from a device that need not wait
	xLoad
	xStore
)

// Bits of op.how.
const (
	hCond     uint8 = 1 << iota // execute if cond holds
	hPC                         // the result goes into pc
	hSP                         // sp is written
	hRelative                   // the target is an offset
	hPost                       // the base is the address
	hWrite                      // base register written back
	hIndexALU                   // RRM with another operation than add
	hPart                       // keeps the load/store unit
)

// unitHazard is the bit of op.uses and op.leaves that stands for the load/store
// unit; the others stand for registers, of which the first is never waited for.
const unitHazard = 1 << 0

// op is a decoded instruction, as the interpreter wants it, in 32 bytes. The
// second operand or offset is reg[rb] | imm, of which one is zero.
type op struct {
	uses       uint32
	leaves     uint32 // what it leaves to wait for
	word       uint32
	imm        uint32
	x          code
	how        uint8
	rd, ra, rb uint8
	cond       uint8
	size       uint8 // of an access: 1, 2, 4; 0x40: sign-extend
	sub        uint8 // which count, or index operation
	second     uint8 // waitBits when there are two memory-bus accesses, with a load or store, else 0
	_          [4]uint8
}

// need is the memory-bus accesses.
func (u *op) need() uint8 { return 1 + u.second/waitBits }

// page is what has been decoded of a page of memory, by Granule.
type page struct {
	ops    [pageWords]op
	paths  [pageWords]*path                       // that begin with an instruction
	raw    [pageWords * wordSize]byte             // what they were decoded from
	epochs [pageWords * wordSize / Granule]uint32 // in which that is valid; 0: nothing was decoded yet
}

// span is a range of memory.
type span struct{ from, to uint32 }

// add makes the page at an address belong to it.
func (s *span) add(at uint32) {
	if s.from == s.to {
		s.from, s.to = at, at
	}
	s.from, s.to = min(s.from, at), max(s.to, at+1<<pageShift)
}

const granuleWords = Granule / wordSize

// fetchGranules is how many in a row are compared with memory at a time. Chosen.
const fetchGranules = 4

// fetch makes the decoded instruction at pc valid for the present epoch, and as
// a rule those that follow it, and returns its page; nil when pc is not to be
// executed.
func (c *CPU) fetch(pc uint32) *page {
	g := pc >> granuleShift
	if i := pc >> pageShift; pc&3 == 0 && int(i) < len(c.pages) {
		if p := c.pages[i]; p != nil && p.epochs[g%uint32(len(p.epochs))] == c.epoch {
			return p
		}
	}
	if int(g) >= len(c.rights) || c.rights[g]&Execute == 0 || pc&3 != 0 {
		return nil
	}
	p := c.pages[pc>>pageShift]
	if p == nil {
		p = new(page)
		c.pages[pc>>pageShift] = p
		c.decoded.add(pc &^ (1<<pageShift - 1))
	}
	for range fetchGranules {
		i := g % uint32(len(p.epochs))
		now, then := c.mem[g*Granule:][:Granule], p.raw[i*Granule:][:Granule]
		if p.epochs[i] == 0 || binary.NativeEndian.Uint64(now) != binary.NativeEndian.Uint64(then) || binary.NativeEndian.Uint64(now[8:]) != binary.NativeEndian.Uint64(then[8:]) {
			copy(then, now)
			for k := range uint32(granuleWords) {
				p.ops[i*granuleWords+k].fill(loadWord(now, k*wordSize))
			}
		}
		p.epochs[i] = c.epoch
		if g++; g%uint32(len(p.epochs)) == 0 || int(g) >= len(c.rights) || c.rights[g]&Execute == 0 || p.epochs[i+1] == 0 {
			break
		}
	}
	return p
}

// renew begins an epoch: what has been decoded has to be compared with memory,
// and with what may be executed, as it is fetched next.
func (c *CPU) renew() {
	c.kept = c.kept[:0]
	if c.epochs++; c.epochs == 0 {
		for _, p := range c.pages {
			if p == nil {
				continue
			}
			clear(p.epochs[:])
			for _, t := range p.paths {
				if t != nil {
					t.epoch = 0
				}
			}
		}
		c.epochs = 1
	}
	c.epoch = c.epochs
}

// rewritten tells that the word around addr changes. What was ever decoded there
// may be part of a path that holds now, whether or not it was looked at since the
// epoch began.
func (c *CPU) rewritten(addr uint32) {
	if p := c.pages[addr>>pageShift]; p != nil && p.epochs[addr>>granuleShift%uint32(len(p.epochs))] != 0 {
		c.renew()
	}
}

// Written tells that something other than the processor writes, or has written,
// n bytes of memory from addr on. What lies outside the memory is ignored.
func (c *CPU) Written(addr uint32, n int) {
	end := min(uint64(addr)+uint64(max(n, 0)), uint64(c.decoded.to))
	for a := uint64(max(addr, c.decoded.from)); a < end; a = a&^(Granule-1) + Granule {
		c.rewritten(uint32(a))
	}
}

const (
	sizeMask  = 7
	signed    = 0x40
	sink      = 32 // register that swallows what is written to r0 and r1
	pcResult  = 33 // register that takes results for pc
	numSlots  = 64 // a power of two, so that an index needs no check
	pageWords = 1 << 10
	pageShift = 12
)

func target(r uint8) uint8 {
	switch r {
	case Zero, Ones:
		return sink
	case PC:
		return pcResult
	}
	return r
}

// fill decodes a word.
func (u *op) fill(word uint32) {
	i := Decode(word)
	*u = op{word: word, imm: i.Imm, cond: uint8(i.Cond)}
	reads := func(rs ...uint8) {
		for _, r := range rs {
			u.uses |= 1 << r
		}
		u.uses &^= 1<<Zero | 1<<Ones | 1<<PC
	}
	result := func(r uint8) {
		u.rd = target(r)
		if r == PC {
			u.how |= hPC
		}
		if r == SP {
			u.how |= hSP
		}
	}
	switch i.Kind {
	case Nop:
		u.x = xNop
	case Log:
		u.x = xLog
	case ALUImm, ALUReg:
		u.x = xAdd + code(i.Op)
		if i.SetFlags {
			u.x += xAddF - xAdd
		}
		u.ra = i.Rs1
		reads(i.Rs1)
		if i.Kind == ALUReg {
			u.rb, u.imm = i.Rs2, 0
			reads(i.Rs2)
			if i.Cond != Always {
				u.how |= hCond
			}
		}
		result(i.Rd)
	case Select:
		u.x, u.ra, u.rb = xSelect, i.Rs1, i.Rs2
		reads(i.Rs1, i.Rs2)
		result(i.Rd)
	case PopCount, LeadingZeros, TrailingZeros:
		u.x, u.ra, u.sub = xCount, i.Rs1, uint8(i.Kind)
		reads(i.Rs1)
		result(i.Rd)
	case SetCond:
		u.x = xSetCond
		result(i.Rs1)
	case MoveImm:
		u.x = xAdd
		result(i.Rd)
	case Branch, BranchRelative:
		u.x = xBranch
		if i.Cond != Always {
			u.how |= hCond
		}
		if i.Kind == BranchRelative {
			u.how |= hRelative
		}
	case Load, LoadIndex, Store, StoreIndex:
		u.access(&i, reads, result)
	}
}

func (u *op) access(i *Instr, reads func(...uint8), result func(uint8)) {
	u.x = xLoad
	u.second = waitBits
	u.size |= i.Bytes
	if i.Mode != Absolute {
		u.ra = i.Rs1
		reads(i.Rs1)
	}
	switch i.Mode {
	case Direct:
		u.imm = 0
	case Post:
		u.how |= hPost | hWrite
	case Pre:
		u.how |= hWrite
	}
	if i.Kind == LoadIndex || i.Kind == StoreIndex {
		u.imm = 0
		if i.Mode != Direct {
			u.rb = i.Rs2
			reads(i.Rs2)
			if i.Op != Add {
				u.how |= hIndexALU
				u.sub = uint8(i.Op)
			}
		}
		if i.Op >= ShiftLogical {
			// The shift's bits are those of the width: it is a word.
			u.size = 4
		}
	}
	if i.PartWord {
		u.how |= hPart
	}
	if i.IsStore() {
		u.x = xStore
		u.rd = i.Rd
		reads(i.Rd)
	} else {
		result(i.Rd)
		if !i.ZeroExtend && u.size&sizeMask != 4 {
			u.size |= signed
		}
	}
	if u.how&hWrite != 0 && i.Rs1 == SP {
		u.how |= hSP
	}
	u.uses |= unitHazard
	if u.how&hPart != 0 {
		u.leaves = unitHazard
	}
	if u.x == xLoad && u.rd < NumRegs {
		u.leaves |= 1 << u.rd
	}
}
