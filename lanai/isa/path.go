package isa

import "encoding/binary"

// path is a way through the code as it was once taken, from an instruction on
// that nothing delayed has yet to follow: the instructions one behind the other,
// with what they need where nothing comes between them. Where another way is
// taken the path is left.
type path struct {
	epoch  uint32 // in which it is valid
	uses   uint32 // by the first instruction
	ops    []pathOp
	at     []place // before each instruction, and behind the last
	last   place
	memo   *memo   // or nil
	ends   int32   // times it was followed to its end
	exits  int32   // times another way was taken
	try    int32   // how many paths from here there were before it
	traces []uint8 // what rounds need of each, and traceChunk bytes more
}

// pathOp is an instruction of a path. Branches are xNop or xGuard.
type pathOp struct {
	imm        uint32
	x          code
	how        uint8
	rd, ra, rb uint8
	cond       uint8
	size       uint8
	sub        uint8
	second     uint8 // with stallBit
	_          [3]uint8
}

// place is how things stand before an instruction of a path.
type place struct {
	p0, p1, p2 uint32
	word       uint32
	hz         uint32
	target     uint32 // of a branch
	// Since the beginning, without what the first instruction has to wait for.
	cycles, stalls, accesses, jumps int32
	jump                            jumping
	taken                           bool // the branch was
}

// jumping is which of the addresses in flight is the target of a computed jump,
// and so another each time.
type jumping uint8

const (
	jumpNone jumping = iota
	jumpP0
	jumpP1
	jumpP2
)

const (
	// maxPath bounds a path: it ends with the first instruction from then on
	// behind which nothing delayed has yet to follow. Chosen.
	maxPath     = 72
	longestPath = 128 // at any rate, a power of two
	// maxExits is how often a path is left before another one is tried, which is
	// done maxTries times. Chosen.
	maxExits = 32
	maxTries = 4
	// hBack is hRelative in a pathOp: a branch back that was taken.
	hBack = hRelative
)

// recorder makes a path of what step executes.
type recorder struct {
	on    bool
	head  uint32
	epoch uint32 // at the beginning
	try   int32
	uses  uint32
	ops   []pathOp
	at    []place

	// What is recorded lies together.
	paths   []path
	memos   []memo
	opSlab  []pathOp
	atSlab  []place
	traces  []uint8
	cells   []word
	indexes []uint8
}

// slabOf is how many elements a slab has (chosen).
const slabOf = 1 << 11

// takeOff takes n elements off a slab, or off a new one.
func takeOff[T any](slab *[]T, n int) []T {
	if len(*slab) < n {
		*slab = make([]T, max(slabOf, n))
	}
	x := (*slab)[:n:n]
	*slab = (*slab)[n:]
	return x
}

// way is the path that the processor is on, or nil, and the instruction of it
// that is next if nothing has come between.
type way struct {
	path *path
	at   int
}

// sequential tells whether the addresses in flight follow one another.
func (c *CPU) sequential() bool { return c.p1 == c.p0+4 && c.p2 == c.p0+8 }

// follows goes along the path that the processor is on, or one that begins here,
// if there is one. Otherwise one is recorded.
func (c *CPU) follows() (strayed bool) {
	if c.begun || c.ready || c.rec.on {
		return false
	}
	for !c.x.visit && !strayed {
		t, from := c.way.path, c.way.at
		if t == nil || !c.on(t, from) {
			if !c.sequential() {
				break
			}
			if c.p0 == ReturnAddress && c.scan != nil {
				c.way.path = nil
				more, anew := c.another()
				if !more {
					c.x.returned = true
					break
				}
				if anew && c.x.loops {
					c.x.visit = true
				}
				continue
			}
			if t, from = c.pathFrom(), 0; t == nil {
				c.way.path = nil
				if c.fetch(c.p0) != nil {
					c.rec.begin(c)
				}
				break
			}
		}
		c.way.path = nil
		var done, noted bool
		if t.memo != nil && from == 0 {
			if done, noted = c.recall(t); done {
				continue
			}
		}
		if strayed = c.follow(t, from); c.way.path != nil {
			break // it is step's turn
		}
		if noted && t.memo != nil && c.x.arrived {
			c.remember(t)
		}
	}
	return strayed
}

// on tells whether the next instruction is the given one of a path.
func (c *CPU) on(t *path, at int) bool {
	if t.epoch != c.epoch || at >= len(t.ops) {
		return false
	}
	w := &t.at[at]
	return w.jump == jumpNone && w.p0 == c.p0 && w.p1 == c.p1 && w.p2 == c.p2 && (at == 0 || w.hz == c.hz)
}

// pathFrom is the path from the present instruction on, nil where there is none.
func (c *CPU) pathFrom() *path {
	pc := c.p0
	c.rec.try = 0
	if i := pc >> pageShift; pc%wordSize == 0 && int(i) < len(c.pages) && c.pages[i] != nil {
		t := c.pages[i].paths[pc/wordSize%pageWords]
		switch {
		case t == nil:
		case t.exits > maxExits && t.exits > t.ends && t.try < maxTries:
			// It was not the usual way.
			c.rec.try = t.try + 1
			return nil
		case t.epoch == c.epoch || c.confirm(t):
			return t
		}
	}
	return nil
}

// confirm tells whether a path leads over the instructions that are in memory
// now.
func (c *CPU) confirm(t *path) bool {
	for i := range t.ops {
		w := &t.at[i]
		g := w.p0 >> granuleShift
		if c.rights[g]&Execute == 0 || loadWord(c.mem, w.p0) != w.word {
			return false
		}
	}
	t.epoch = c.epoch
	if t.memo != nil {
		t.memo.ready = false // other accesses may be allowed
	}
	return true
}

// begin makes the recorder follow from here.
func (r *recorder) begin(c *CPU) {
	r.on, r.head, r.epoch = true, c.p0, c.epoch
	r.ops, r.at = r.ops[:0], append(r.at[:0], c.place(&place{}))
}

// place is how things stand, behind the place before.
func (c *CPU) place(before *place) place {
	w := *before
	w.p0, w.p1, w.p2, w.hz = c.p0, c.p1, c.p2, c.hz
	w.word, w.target, w.taken = 0, 0, false
	return w
}

// took adds the instruction that step has just executed, which was plain. It
// begins at the last place. Where it does not go on a path the recorder ends.
func (r *recorder) took(c *CPU, u *op) {
	k := len(r.ops)
	w := &r.at[k]
	o := pathOp{
		imm: u.imm, x: u.x, how: u.how &^ (hRelative | hPart | hPC), rd: u.rd, ra: u.ra, rb: u.rb,
		cond: u.cond, size: u.size, sub: u.sub, second: u.second,
	}
	if (u.ra == PC || u.rb == PC) && u.x != xBranch && u.x != xNop && u.x != xSetCond {
		// The address is known.
		if u.x != xAdd || u.ra != PC || u.rb == PC || u.how&hCond != 0 {
			r.cut(c)
			return
		}
		o.ra, o.imm = Zero, o.imm+w.p0
	}
	jumps := u.how&hPC != 0
	if k == longestPath || u.how&hIndexALU != 0 || jumps && (w.jump != jumpNone || u.how&hCond != 0) || u.x == xBranch && w.jump != jumpNone {
		r.cut(c)
		return
	}
	w.word = u.word
	if k > 0 && w.hz&u.uses != 0 {
		o.second |= stallBit
	}
	if k == 0 {
		r.uses = u.uses
	}
	next := c.place(w)
	next.cycles += 1 + int32(o.second&stallBit)
	next.stalls += int32(o.second & stallBit)
	switch u.x {
	case xLoad, xStore:
		next.accesses++
		if c.x.steady {
			o.x = xSteady
		}
	case xBranch:
		w.target = u.imm
		if u.how&hRelative != 0 {
			w.target += w.p0
		}
		w.taken = u.how&hCond == 0 || holds(u.cond, c.nz, c.cf, c.vf)
		o.how = 0
		if w.taken && w.target <= w.p0 {
			o.how = hBack
		}
		switch {
		case u.how&hCond == 0:
			o.cond = uint8(Always)
		case !w.taken:
			o.cond ^= 1 // conditions come in pairs
		}
		o.x = xGuard
		if u.how&hCond == 0 && o.how == 0 {
			o.x = xNop
		}
	}
	switch {
	case jumps && u.x == xLoad:
		next.jump = jumpP2
	case jumps:
		next.jump = jumpP1
		next.jumps++
	case w.jump != jumpNone:
		next.jump = w.jump - 1
	}
	r.ops, r.at = append(r.ops, o), append(r.at, next)
	if next.jump == jumpP0 || next.jump == jumpNone && c.sequential() && (len(r.ops) >= maxPath || c.p0 == r.head) {
		r.end(c)
	}
}

// cut ends the path before the present instruction, and before a computed jump
// that would only then be complete.
func (r *recorder) cut(c *CPU) {
	if !r.on {
		return
	}
	n := len(r.ops)
	for r.at[n].jump != jumpNone {
		n--
	}
	r.ops, r.at = r.ops[:n], r.at[:n+1]
	r.end(c)
}

// end makes the path known.
func (r *recorder) end(c *CPU) {
	r.on = false
	n := len(r.ops)
	if len(r.paths) == 0 {
		r.paths, r.memos = make([]path, 64), make([]memo, 64)
	}
	t := &r.paths[0]
	r.paths = r.paths[1:]
	*t = path{
		epoch: r.epoch, try: r.try, uses: r.uses, last: r.at[n],
		ops: takeOff(&r.opSlab, n), at: takeOff(&r.atSlab, n+1), traces: takeOff(&r.traces, n+traceChunk),
	}
	copy(t.ops, r.ops)
	copy(t.at, r.at)
	for i := range t.ops {
		t.traces[i] = t.ops[i].second
	}
	if c.epoch != r.epoch {
		t.epoch = 0 // code was written on the way, perhaps that of the path itself
	}
	t.memo = r.study(t)
	c.pages[r.head>>pageShift].paths[r.head/wordSize%pageWords] = t
}

// follow executes a path from its instruction number from on, as far as that is
// the way and needs no more than registers, memory and what is known of the bus;
// the rest is left to step, which is also what follow is tested against. Nothing
// is called in the loop, as all variables would have to be saved for that; they
// are few enough for registers. It tells whether an instruction has let the stack
// pointer stray, which is then the last.
func (c *CPU) follow(t *path, from int) (strayed bool) {
	var (
		r     = &c.reg
		start = c.cycle
		k     = from
		left  = false // the path's way
		at    uint32  // of a device's register that is to be read
	)
	if from == 0 && c.hz&t.uses != 0 {
		start++
	}
	cycle := start
	was := &origin
	if from > 0 {
		was = &t.at[from]
	}
	timed := start+int64(t.last.cycles-was.cycles) > c.x.fast
again:
	end := cycle
way:
	for k < len(t.ops) {
		u := &t.ops[k]
		end = cycle
		if timed {
			end += 1 + int64(u.second&stallBit)
			if end > c.x.fast {
				i := end - 1 - c.x.base
				if uint64(i) >= uint64(len(c.x.waits)) {
					break
				}
				w := int64(c.x.waits[i] >> (u.second & waitBits) & longWait)
				if w == longWait || i+w >= int64(len(c.x.waits)) {
					break
				}
				end += w
			}
		}
		if u.how&hCond != 0 && !holds(u.cond, c.nz, c.cf, c.vf) {
			k++
			cycle = end
			continue
		}
		switch u.x {
		case xNop:
		case xAdd:
			r[u.rd&63] = r[u.ra&63] + (r[u.rb&63] | u.imm)
		case xAddC:
			r[u.rd&63] = r[u.ra&63] + (r[u.rb&63] | u.imm) + c.cf
		case xSub:
			r[u.rd&63] = r[u.ra&63] - (r[u.rb&63] | u.imm)
		case xSubB:
			r[u.rd&63] = r[u.ra&63] + ^(r[u.rb&63] | u.imm) + c.cf
		case xAnd:
			r[u.rd&63] = r[u.ra&63] & (r[u.rb&63] | u.imm)
		case xOr:
			r[u.rd&63] = r[u.ra&63] | (r[u.rb&63] | u.imm)
		case xXor:
			r[u.rd&63] = r[u.ra&63] ^ (r[u.rb&63] | u.imm)
		case xShift:
			r[u.rd&63] = shift(r[u.ra&63], (r[u.rb&63] | u.imm))
		case xShiftA:
			r[u.rd&63] = shiftArithmetic(r[u.ra&63], (r[u.rb&63] | u.imm))
		case xAddF:
			c.nz, c.cf, c.vf = adder(r[u.ra&63], r[u.rb&63]|u.imm, 0)
			r[u.rd&63] = c.nz
		case xAddCF:
			c.nz, c.cf, c.vf = adder(r[u.ra&63], r[u.rb&63]|u.imm, c.cf)
			r[u.rd&63] = c.nz
		case xSubF:
			c.nz, c.cf, c.vf = adder(r[u.ra&63], ^(r[u.rb&63] | u.imm), 1)
			r[u.rd&63] = c.nz
		case xSubBF:
			c.nz, c.cf, c.vf = adder(r[u.ra&63], ^(r[u.rb&63] | u.imm), c.cf)
			r[u.rd&63] = c.nz
		case xAndF:
			c.nz, c.cf, c.vf = r[u.ra&63]&(r[u.rb&63]|u.imm), 0, 0
			r[u.rd&63] = c.nz
		case xOrF:
			c.nz, c.cf, c.vf = r[u.ra&63]|r[u.rb&63]|u.imm, 0, 0
			r[u.rd&63] = c.nz
		case xXorF:
			c.nz, c.cf, c.vf = r[u.ra&63]^(r[u.rb&63]|u.imm), 0, 0
			r[u.rd&63] = c.nz
		case xShiftF:
			a, b := r[u.ra&63], r[u.rb&63]|u.imm
			c.nz, c.cf, c.vf = shift(a, b), shiftCarry(a, b), 0
			r[u.rd&63] = c.nz
		case xShiftAF:
			a, b := r[u.ra&63], r[u.rb&63]|u.imm
			c.nz, c.cf, c.vf = shiftArithmetic(a, b), shiftCarry(a, b), 0
			r[u.rd&63] = c.nz
		case xSelect:
			if holds(u.cond, c.nz, c.cf, c.vf) {
				r[u.rd&63] = r[u.ra&63]
			} else {
				r[u.rd&63] = r[u.rb&63]
			}
		case xCount:
			r[u.rd&63] = countBits(Kind(u.sub), r[u.ra&63])
		case xSetCond:
			v := uint32(0)
			if holds(u.cond, c.nz, c.cf, c.vf) {
				v = 1
			}
			r[u.rd&63] = v
		case xGuard:
			if !holds(u.cond, c.nz, c.cf, c.vf) {
				left = true
			} else if u.how&hBack != 0 && c.x.loops {
				if l := &c.loop; !l.armed || l.p0 == t.at[k].p1 && l.nz == c.nz || l.misses >= maxMisses {
					c.x.visit = true
				} else {
					l.misses++
				}
			}
			if left || c.x.visit {
				k++
				cycle = end
				break way
			}
		case xLoad:
			addr := r[u.ra&63] + (r[u.rb&63] | u.imm)
			back := addr
			if u.how&hPost != 0 {
				addr = r[u.ra&63]
			}
			g := addr >> granuleShift
			if int(g) >= len(c.rights) || c.rights[g]&Read == 0 || addr&uint32(u.size&sizeMask-1) != 0 {
				break way
			}
			var v uint32
			switch u.size {
			case 4:
				v = binary.BigEndian.Uint32(c.mem[addr:])
				c.touched[k&(longestPath-1)] = word{addr, v}
			case 2:
				v = uint32(binary.BigEndian.Uint16(c.mem[addr:]))
			case 2 | signed:
				v = uint32(int16(binary.BigEndian.Uint16(c.mem[addr:])))
			case 1:
				v = uint32(c.mem[addr])
			default:
				v = uint32(int8(c.mem[addr]))
			}
			if u.how&hWrite != 0 {
				r[target(u.ra)&63] = back
			}
			r[u.rd&63] = v
		case xSteady:
			at = r[u.ra&63] + (r[u.rb&63] | u.imm)
			break way
		case xStore:
			addr := r[u.ra&63] + (r[u.rb&63] | u.imm)
			back := addr
			if u.how&hPost != 0 {
				addr = r[u.ra&63]
			}
			g := addr >> granuleShift
			if int(g) >= len(c.rights) || c.rights[g]&Write == 0 || addr&uint32(u.size&sizeMask-1) != 0 {
				break way
			}
			if c.rights[g]&Execute != 0 {
				if p := c.pages[addr>>pageShift]; p != nil && p.epochs[g%uint32(len(p.epochs))] != 0 {
					break way
				}
			}
			if a := &c.ahead; a.on || c.loop.armed {
				i := len(a.log)
				if i >= cap(a.log) || i >= maxChanges-1 {
					break way
				}
				a.log = a.log[:i+1]
				at := addr &^ 3
				a.log[i] = change{at, binary.BigEndian.Uint32(c.mem[at:])}
			}
			v := r[u.rd&63]
			switch u.size & sizeMask {
			case 4:
				binary.BigEndian.PutUint32(c.mem[addr:], v)
				c.touched[k&(longestPath-1)] = word{addr, v}
			case 2:
				binary.BigEndian.PutUint16(c.mem[addr:], uint16(v))
			default:
				c.mem[addr] = uint8(v)
			}
			if u.how&hWrite != 0 {
				r[target(u.ra)&63] = back
			}
		default:
			break way
		}
		k++
		cycle = end
		if u.how&hSP != 0 && c.stackHigh != 0 && (r[SP] < c.stackLow || r[SP] > c.stackHigh) {
			strayed = true
			break
		}
	}
	if at >= DeviceBase && at%wordSize == 0 && c.steady != nil && c.steady.Steady(at) {
		if v, err := c.Devices.Load(at); err == nil {
			r[t.ops[k].rd&63] = v
			c.touched[k&(longestPath-1)] = word{at, v}
			k++
			cycle, at = end, 0
			goto again
		}
	}
	if k == from {
		c.way.path, c.way.at = t, k
		return false
	}
	if !timed {
		cycle = 0
	}
	c.arrive(t, from, k, start, cycle)
	if c.x.arrived = k == len(t.ops) && !left && !strayed; c.x.arrived {
		t.ends++
	}
	if left {
		t.exits++
	}
	switch b := &t.at[k-1]; {
	case strayed:
		// The instruction is not complete, its time is over.
		c.count.Instructions--
		c.count.Jumps -= int64(t.at[k].jumps - b.jumps)
		c.p0, c.p1, c.p2 = b.p0, b.p1, b.p2
		if k > 1 {
			c.hz = b.hz
		}
		c.way.path, c.way.at = t, k-1
	case left && b.taken:
		c.p0, c.p1, c.p2 = b.p1, b.p2, b.p2+4
	case left:
		c.p0, c.p1, c.p2 = b.p1, b.target, b.target+4
		c.x.visit = b.target <= b.p0 && c.x.loops
	case k < len(t.ops):
		c.way.path, c.way.at = t, k
	}
	return strayed
}

// arrive accounts for a path's instructions from number from up to number to,
// which began at the boundary start, behind what the first one had to wait for,
// and ended at the boundary end; 0 is where they end on a quiet bus.
func (c *CPU) arrive(t *path, from, to int, start, end int64) {
	was, w := &origin, &t.last
	if from > 0 {
		was = &t.at[from]
	}
	if to < len(t.ops) {
		w = &t.at[to]
	}
	n := int64(w.cycles - was.cycles)
	if end == 0 {
		end = start + n
	}
	if c.loop.armed {
		c.trace(t, from, to, start > c.cycle)
	}
	c.count.Interlocks += int64(w.stalls-was.stalls) + start - c.cycle
	c.count.Waits += end - start - n
	c.count.Accesses += int64(w.accesses - was.accesses)
	c.count.Jumps += int64(w.jumps - was.jumps)
	c.count.Instructions += int64(to - from)
	c.cycle = end
	c.hz = w.hz
	switch v := c.reg[pcResult]; w.jump {
	case jumpNone:
		c.p0, c.p1, c.p2 = w.p0, w.p1, w.p2
	case jumpP0:
		c.jump(v)
	case jumpP1:
		c.p0, c.p1, c.p2 = w.p0, v, v+4
	case jumpP2:
		c.p0, c.p1, c.p2 = w.p0, w.p1, v
	}
}

// origin is where sums begin.
var origin place

// trace takes in what rounds need of a path's instructions from number from up
// to number to, of which the first one may have been stalled.
func (c *CPU) trace(t *path, from, to int, stalled bool) {
	r := &c.time.trace
	i := uint64(c.executed()) % traceBytes
	at := i
	for n := to - from; n > 0; n -= traceChunk {
		if at+traceChunk > traceBytes {
			left := uint64(copy(r[at:], t.traces[from:from+n]))
			copy(r[:], t.traces[from+int(left):to])
			break
		}
		*(*[traceChunk]uint8)(r[at:]) = [traceChunk]uint8(t.traces[from:])
		at += traceChunk
		from += traceChunk
	}
	if stalled {
		r[i] |= stallBit
	}
}
