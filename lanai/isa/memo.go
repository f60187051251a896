package isa

import mathbits "math/bits"

// memo is what a path led to when it was last taken to its end, and all that
// went into that: while that is as it was, the path leads there again. Polls that
// find nothing do the same again and again. Only the time that it takes is looked
// at each time.
type memo struct {
	ready  bool // cells are filled in
	flags  bool // are written
	hits   int32
	misses int32
	low    uint32 // the stack's bounds
	high   uint32
	nz     uint32
	cf, vf uint32
	// Registers that are read before they are written, then those that are
	// written, with their number for an address; then words of memory that are
	// read before they are written, or of a device; then words that are written.
	cells           []word
	in, out, inputs int     // where each ends
	access          []uint8 // the instructions that load or store
	stores          []word  // scratch
}

// word is a word of memory or a register, and what it holds.
type word struct{ addr, v uint32 }

const (
	minRecalled = 6  // instructions of a path that is worth a memo (chosen)
	maxRecalled = 32 // registers, or accesses to memory, of one (chosen)
	memoTrial   = 64 // times that a memo may fail before it has to have succeeded (chosen)
)

// study makes a path's memo, to be filled in; nil where it is to have none.
func (r *recorder) study(t *path) *memo {
	if len(t.ops) < minRecalled || t.at[len(t.ops)].jump > jumpP0 {
		return nil
	}
	var (
		access  [maxRecalled]uint8
		n       int
		in, out uint64 // registers
		flagged bool   // the flags are the path's own
	)
	reads := func(slots ...uint8) {
		for _, s := range slots {
			in |= 1 << s &^ (out | 1<<Zero | 1<<Ones)
		}
	}
	for i := range t.ops {
		u := &t.ops[i]
		usesFlags := u.how&hCond != 0
		reads(u.ra, u.rb)
		switch u.x {
		case xNop:
			continue
		case xGuard:
			if u.how&hBack != 0 {
				return nil
			}
			usesFlags = u.cond > uint8(Never)
		case xAddC, xSubB, xAddCF, xSubBF, xSelect, xSetCond:
			usesFlags = true
		case xLoad, xSteady, xStore:
			if u.size != wordSize {
				return nil
			}
			if u.x == xStore {
				reads(u.rd)
			}
			if u.how&hWrite != 0 {
				out |= 1 << target(u.ra)
			}
			if n == maxRecalled {
				return nil
			}
			access[n] = uint8(i)
			n++
		}
		if usesFlags && !flagged {
			return nil
		}
		if u.how&hCond != 0 {
			reads(u.rd) // which may stay
		} else if u.x >= xAddF && u.x <= xShiftAF {
			flagged = true
		}
		if u.x != xStore && u.x != xGuard {
			out |= 1 << u.rd
		}
	}
	out &^= 1 << sink
	if mathbits.OnesCount64(in) > maxRecalled {
		return nil
	}
	m := &r.memos[0]
	r.memos = r.memos[1:]
	*m = memo{
		flags: flagged, access: takeOff(&r.indexes, n), stores: takeOff(&r.cells, n)[:0],
		cells: takeOff(&r.cells, mathbits.OnesCount64(in)+mathbits.OnesCount64(out)+n)[:0],
	}
	copy(m.access, access[:n])
	for _, set := range [...]uint64{in, out} {
		for slot := range uint32(numSlots) {
			if set>>slot&1 != 0 {
				m.cells = append(m.cells, word{addr: slot})
			}
		}
		m.in, m.out = m.out, len(m.cells)
	}
	return m
}

// recall takes a path to its end at once where it would lead where it last did.
// Otherwise it tells whether it has begun a new memo, for remember.
func (c *CPU) recall(t *path) (done, noted bool) {
	m := t.memo
	r := &c.reg
	if !m.ready || !c.same(m) {
		for i := range m.cells[:m.in] {
			x := &m.cells[i]
			x.v = r[x.addr&(numSlots-1)]
		}
		m.ready = false
		if m.misses++; m.misses > memoTrial && m.misses > 2*m.hits {
			t.memo = nil
		}
		return false, true
	}
	start := c.cycle
	if c.hz&t.uses != 0 {
		start++
	}
	cycle := start + int64(t.last.cycles)
	if cycle > c.x.fast {
		if cycle = c.lasts(t, start); cycle == 0 {
			return false, false
		}
	}
	for i := range m.cells[m.inputs:] {
		x := &m.cells[m.inputs+i]
		if loadWord(c.mem, x.addr) == x.v {
			continue
		}
		if a := &c.ahead; (a.on || c.loop.armed) && (len(a.log) >= maxChanges-1 || !c.note(x.addr)) {
			return false, false
		}
		storeWord(c.mem, x.addr, x.v)
	}
	for _, x := range m.cells[m.in:m.out] {
		r[x.addr&(numSlots-1)] = x.v
	}
	if m.flags {
		c.nz, c.cf, c.vf = m.nz, m.cf, m.vf
	}
	m.hits++
	c.arrive(t, 0, len(t.ops), start, cycle)
	return true, false
}

// same tells that all that went into a memo is as it was.
func (c *CPU) same(m *memo) bool {
	if m.low != c.stackLow || m.high != c.stackHigh {
		return false
	}
	for _, x := range m.cells[:m.in] {
		if c.reg[x.addr&(numSlots-1)] != x.v {
			return false
		}
	}
	for _, x := range m.cells[m.out:m.inputs] {
		if x.addr < DeviceBase {
			if loadWord(c.mem, x.addr) != x.v {
				return false
			}
		} else if v, err := c.Devices.Load(x.addr); err != nil || v != x.v {
			return false
		}
	}
	return true
}

// lasts is when a path ends that begins at the boundary start while others are on
// the memory bus; 0 where what is known of that does not do.
func (c *CPU) lasts(t *path, start int64) int64 {
	cycle := start
	for _, x := range t.traces[:len(t.ops)] {
		end := cycle + 1 + int64(x&stallBit)
		if end > c.x.fast {
			i := end - 1 - c.x.base
			if uint64(i) >= uint64(len(c.x.waits)) {
				return 0
			}
			w := int64(c.x.waits[i] >> (x & waitBits) & longWait)
			if w == longWait || i+w >= int64(len(c.x.waits)) {
				return 0
			}
			end += w
		}
		cycle = end
	}
	return cycle
}

// remember fills in the memo that recall has begun, when the path has been
// followed to its end.
func (c *CPU) remember(t *path) {
	m := t.memo
	m.cells, m.stores = m.cells[:m.out], m.stores[:0]
	for _, k := range m.access {
		x := c.touched[k&(longestPath-1)]
		if t.ops[k].x == xStore {
			if c.rights[x.addr>>granuleShift]&Execute != 0 {
				return
			}
			if i := indexOf(m.stores, x.addr); i >= 0 {
				m.stores[i] = x
			} else {
				m.stores = append(m.stores, x)
			}
		} else if indexOf(m.stores, x.addr) < 0 && indexOf(m.cells[m.out:], x.addr) < 0 {
			m.cells = append(m.cells, x)
		}
	}
	m.inputs = len(m.cells)
	m.cells = append(m.cells, m.stores...)
	for i := m.in; i < m.out; i++ {
		x := &m.cells[i]
		x.v = c.reg[x.addr&(numSlots-1)]
	}
	m.nz, m.cf, m.vf = c.nz, c.cf, c.vf
	m.low, m.high = c.stackLow, c.stackHigh
	m.ready = true
}

func indexOf(list []word, addr uint32) int {
	for i := range list {
		if list[i].addr == addr {
			return i
		}
	}
	return -1
}
