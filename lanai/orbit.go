package lanai

// busState is what the engines' grants depend on: for each engine its pace (an
// index into the bus's list, 0 when it asks for nothing new), the phase of the
// pace and the backlog.
type busState struct {
	pace    [numEngines]uint8
	phase   [numEngines]int32
	backlog [numEngines]int32
}

// Layout of a packed busState: a backlog takes 6 bits, a phase 10, the E-bus's
// pace 8; receive and send have one pace each, so a bit says whether it runs.
func (s *busState) pack() uint64 {
	v := uint64(s.pace[EBus])<<16 | uint64(s.phase[EBus])<<6 | uint64(s.backlog[EBus])
	for c := Receive; c < CPU; c++ {
		v <<= 17
		if s.pace[c] != 0 {
			v |= 1 << 16
		}
		v |= uint64(s.phase[c])<<6 | uint64(s.backlog[c])
	}
	return v
}

// Where the fields of a packed busState lie, by engine. The E-bus's paceBits
// hold an index, the others' tell whether the one pace there is runs.
var (
	phaseBits = [numEngines]uint64{1023 << 6 << 34, 1023 << 6 << 17, 1023 << 6}
	paceBits  = [numEngines]uint64{255 << eBusPaceAt, 1 << 16 << 17, 1 << 16}
)

const eBusPaceAt = 16 + 34

func unpack(v uint64) (s busState) {
	for c := Send; c > EBus; c-- {
		s.backlog[c] = int32(v & 63)
		s.phase[c] = int32(v >> 6 & 1023)
		if v>>16&1 != 0 {
			s.pace[c] = uint8(c) // paces 1 and 2 are theirs
		}
		v >>= 17
	}
	s.backlog[EBus] = int32(v & 63)
	s.phase[EBus] = int32(v >> 6 & 1023)
	s.pace[EBus] = uint8(v >> 16)
	return s
}

// arbiter is the rule by which one cycle passes.
type arbiter struct {
	slots int32
	order [numEngines]Client // the engines, first first
	fifo  [numEngines]int32
	paces []pace // 0 unused, 1 receive, 2 send, then the E-bus's
	cells int    // in all orbits made so far
}

const noLimit = int32(1) << 30

// passed is what happened in one cycle.
type passed struct {
	asked, granted [numEngines]int32 // new words asked for, and words granted
	held           [numEngines]bool  // the pace stood still
	free           int32             // left for the processor
}

// cycle passes one cycle; limit bounds the new words of each engine.
func (a *arbiter) cycle(s *busState, limit *[numEngines]int32) (out passed) {
	left := a.slots
	for _, c := range a.order {
		b := s.backlog[c]
		if s.pace[c] != 0 {
			p := a.paces[s.pace[c]]
			if b+p.most <= a.fifo[c] {
				n, next := p.newWords(s.phase[c])
				n = min(n, limit[c])
				s.phase[c] = next
				out.asked[c] = n
				b += n
			} else {
				out.held[c] = true
			}
		}
		g := min(b, left)
		left -= g
		out.granted[c] = g
		s.backlog[c] = b - g
	}
	out.free = min(left, 2)
	return out
}

// cell is what has been asked and granted since an orbit's start.
type cell struct {
	state   uint64 // packed, at this boundary
	asked   [numEngines]int32
	granted [numEngines]int32
}

// maxOrbit bounds an orbit's table, in cycles. A pattern whose period was not
// found by then is cut there and goes on in another orbit.
const maxOrbit = 1 << 12

// firstCells is how far a new orbit is worked out; the period of most is found
// within that.
const firstCells = 64

// orbit tabulates how the engines' demands and grants go on from a state while
// nothing starts, stops or runs out. Cells are worked out as far as somebody
// looks, up to the first repetition of a state.
type orbit struct {
	arb    *arbiter
	cells  []cell  // cells[k]: after k cycles
	frees  []int32 // frees[k]: what was left to the processor in k cycles
	start  busState
	hash   uint64
	held   [numEngines]bool // the engine's pace stands still in some cell
	anchor int              // Brent's: the cell whose return is waited for
	pre    int              // cells before the period
	period int              // 0 while unknown
	inv    []int32          // inv[v]: first cell in which frees has reached v; made once the period is known
	idle   bool             // nothing is asked or pending: all slots are the processor's
	polls  []pollTable
	steps  []uint8 // what each cycle leaves to executed firmware, as far as somebody looked
	serial uint64  // of all orbits of the bus, from 1
	waits  []uint8 // how long that makes it wait (isa.AppendWaits)
	evict  int
}

// init makes o the orbit of a state, in the memory that it has.
func (o *orbit) init(a *arbiter, state uint64) {
	*o = orbit{
		arb: a, start: unpack(state), hash: state * 0xbf58476d1ce4e5b9, idle: state == 0 && a.slots >= 2,
		cells: append(o.cells[:0], cell{state: state}), frees: append(o.frees[:0], 0),
		inv: o.inv[:0], polls: o.polls[:0], steps: o.steps[:0], waits: o.waits[:0],
	}
	o.extend(firstCells)
}

// extend works cells out up to k, as far as the table goes.
func (o *orbit) extend(k int) {
	lim := [numEngines]int32{noLimit, noLimit, noLimit}
	for o.period == 0 && len(o.cells) <= k && len(o.cells) <= maxOrbit {
		at := len(o.cells) - 1
		last := o.cells[at]
		s := unpack(last.state)
		now := o.arb.cycle(&s, &lim)
		last.state = s.pack()
		for c := range numEngines {
			last.asked[c] += now.asked[c]
			last.granted[c] += now.granted[c]
			o.held[c] = o.held[c] || now.held[c]
		}
		o.cells = append(o.cells, last)
		o.frees = append(o.frees, o.frees[at]+now.free)
		o.arb.cells++
		at++
		if last.state == o.cells[o.anchor].state {
			o.pre, o.period = o.anchor, at-o.anchor
		} else if at >= 2*o.anchor {
			o.anchor = at
		}
	}
}

// end is how far the orbit is known to go, in cycles: endless once its period
// is known.
func (o *orbit) end() int64 {
	if o.period == 0 {
		return maxOrbit
	}
	return endless
}

// place finds the cell that stands for offset k and how many periods lie
// between.
func (o *orbit) place(k int64) (cell int, periods int64) {
	if k < int64(len(o.cells)) {
		return int(k), 0
	}
	return o.placeBeyond(k)
}

func (o *orbit) placeBeyond(k int64) (cell int, periods int64) {
	if o.period == 0 {
		o.extend(int(min(k, maxOrbit)))
		if k < int64(len(o.cells)) {
			return int(k), 0
		}
	}
	d := k - int64(o.pre)
	if d < 1<<32 {
		n := uint32(d) / uint32(o.period)
		return o.pre + int(uint32(d)-n*uint32(o.period)), int64(n)
	}
	n := d / int64(o.period)
	return o.pre + int(d-n*int64(o.period)), n
}

// free is the accesses left to the processor in the first k cycles.
func (o *orbit) free(k int64) int64 {
	if k < int64(len(o.frees)) {
		return int64(o.frees[k])
	}
	i, n := o.place(k)
	v := int64(o.frees[i])
	if n != 0 {
		v += n * o.freesPerPeriod()
	}
	return v
}

func (o *orbit) freesPerPeriod() int64 { return int64(o.frees[o.pre+o.period] - o.frees[o.pre]) }

// grantedIn is what engine c has got in the first cycles, as place tells them.
func (o *orbit) grantedIn(x *cell, c Client, periods int64) int64 {
	v := int64(x.granted[c])
	if periods != 0 {
		v += periods * int64(o.cells[o.pre+o.period].granted[c]-o.cells[o.pre].granted[c])
	}
	return v
}

// askedIn is likewise what it has asked for.
func (o *orbit) askedIn(x *cell, c Client, periods int64) int64 {
	v := int64(x.asked[c])
	if periods != 0 {
		v += periods * int64(o.cells[o.pre+o.period].asked[c]-o.cells[o.pre].asked[c])
	}
	return v
}

// asked is what engine c has asked for in the first k cycles.
func (o *orbit) asked(c Client, k int64) int64 {
	i, n := o.place(k)
	return o.askedIn(&o.cells[i], c, n)
}

// column is one of an orbit's sums.
type column uint8

const (
	colFree    column = iota
	colAsked          // + engine
	colGranted = colAsked + column(numEngines)
)

// at is column col's sum in cell k.
func (o *orbit) at(k int, col column) int64 {
	switch {
	case col == colFree:
		return int64(o.frees[k])
	case col < colGranted:
		return int64(o.cells[k].asked[col-colAsked])
	default:
		return int64(o.cells[k].granted[col-colGranted])
	}
}

const (
	endless = int64(1) << 62 // where an orbit or segment ends that does not
	never   = endless + 1    // what does not happen before that
)

// first is the fewest cycles after which the column has reached v, never when
// it does not within the orbit.
func (o *orbit) first(col column, v int64) int64 {
	if v <= 0 {
		return 0
	}
	k := len(o.cells) - 1
	for o.at(k, col) < v {
		// Not within what has been worked out.
		if o.period == 0 && k < maxOrbit {
			// At least (v − at)/maxPerCycle cycles more.
			o.extend(k + max(1, int(min(int64(maxOrbit), (v-o.at(k, col))/int64(maxPerCycle)))))
			k = len(o.cells) - 1
			continue
		}
		if o.period == 0 {
			return never
		}
		per := o.at(o.pre+o.period, col) - o.at(o.pre, col)
		if per == 0 {
			return never
		}
		n := (v - o.at(k, col) + per - 1) / per
		return o.search(col, v-n*per, o.pre) + n*int64(o.period)
	}
	return o.search(col, v, 0)
}

// firstFree is first for what is left free.
func (o *orbit) firstFree(v int64) int64 {
	if o.period == 0 {
		return o.first(colFree, v)
	}
	if len(o.inv) == 0 {
		o.inv = append(o.inv, make([]int32, o.frees[len(o.frees)-1]+1)...)
		k := int32(0)
		for v := range o.inv {
			for o.frees[k] < int32(v) {
				k++
			}
			o.inv[v] = k
		}
	}
	if v < int64(len(o.inv)) {
		return int64(o.inv[max(v, 0)])
	}
	per := o.freesPerPeriod()
	if per == 0 {
		return never
	}
	over := v - int64(len(o.inv)) + per // to the last cell at most, by whole periods
	var n int64
	if over < 1<<32 {
		n = int64(uint32(over) / uint32(per))
	} else {
		n = over / per
	}
	return int64(o.inv[v-n*per]) + n*int64(o.period)
}

// firstAsked is the fewest cycles after which engine c, which has a pace, has
// asked for v ≥ 1 words, or never.
func (o *orbit) firstAsked(c Client, v int64) int64 {
	if o.period == 0 || o.held[c] {
		return o.first(colAsked+column(c), v)
	}
	// The pace never stands still: ceil((k·p − phase)/q) ≥ v.
	p := o.arb.paces[o.start.pace[c]]
	n := (v-1)*int64(p.q) + int64(o.start.phase[c])
	if uint64(n) < 1<<32 {
		return int64(uint32(n)/uint32(p.p)) + 1
	}
	return n/int64(p.p) + 1
}

// maxPerCycle is more than any column can grow by in a cycle.
const maxPerCycle = maxFIFO + 1

// search finds the first cell from lo on that has reached v; one has.
func (o *orbit) search(col column, v int64, lo int) int64 {
	hi := len(o.cells) - 1
	for lo < hi {
		m := int(uint(lo+hi) >> 1)
		if o.at(m, col) >= v {
			hi = m
		} else {
			lo = m + 1
		}
	}
	return int64(lo)
}
