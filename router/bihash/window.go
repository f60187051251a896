package bihash

// window plays instructions in program order on a core that executes them as
// soon as their operands are there, as long as they fit into the window of
// those that have not retired, and retires them in order. Times are clocks.
type window struct {
	p   *Processor
	c   *caches
	lat []float64 // by level, memory last

	dispatch float64 // of the latest instruction
	retire   float64 // of the latest instruction
	count    int64   // instructions dispatched
	ring     []retired
	head, n  int
	waiting  []waiter // instructions that have no operands yet, by when they get them
	waits    int      // how many

	fills    []fill // lines on their way
	accesses []uint64
}

// retired is a piece of the program: the number of its last instruction, and
// when that retired.
type retired struct {
	last int64
	at   float64
}

// waiter is a piece of the program in the scheduler: n instructions that can
// execute from at on.
type waiter struct {
	at float64
	n  int
}

type fill struct {
	line  uint64
	ready float64
}

const ringSize = 1 << 12

func newWindow(p *Processor) *window {
	w := &window{p: p, c: newCaches(p), ring: make([]retired, ringSize), fills: make([]fill, p.Outstanding), accesses: make([]uint64, len(p.Levels)+1)}
	for _, l := range p.Levels {
		w.lat = append(w.lat, l.Clocks)
	}
	w.lat = append(w.lat, p.MemoryClocks)
	return w
}

// piece is the longest run of instructions that is dispatched as one.
const piece = 8

// issue dispatches n instructions, which wait for the window, and returns when
// the last of them was dispatched.
func (w *window) issue(n int) float64 {
	w.count += int64(n)
	w.dispatch += float64(n) / w.p.Rate
	for w.n > 0 && w.ring[w.head].last <= w.count-int64(w.p.Window) {
		w.dispatch = max(w.dispatch, w.ring[w.head].at)
		w.head = (w.head + 1) % ringSize
		w.n--
	}
	w.start(w.dispatch)
	for w.waits > 0 && w.waits+n > w.p.Scheduler {
		w.start(w.waiting[0].at)
	}
	return w.dispatch
}

// start lets the scheduler issue what can execute at a time, for which dispatch
// waits.
func (w *window) start(at float64) {
	w.dispatch = max(w.dispatch, at)
	k := 0
	for k < len(w.waiting) && w.waiting[k].at <= at {
		w.waits -= w.waiting[k].n
		k++
	}
	if k > 0 {
		w.waiting = w.waiting[:copy(w.waiting, w.waiting[k:])]
	}
}

// wait puts the n instructions issued last into the scheduler, where they stay
// until their operands are there.
func (w *window) wait(n int, ready float64) {
	if ready <= w.dispatch {
		return
	}
	i := len(w.waiting)
	w.waiting = append(w.waiting, waiter{})
	for i > 0 && w.waiting[i-1].at > ready {
		w.waiting[i] = w.waiting[i-1]
		i--
	}
	w.waiting[i] = waiter{ready, n}
	w.waits += n
}

// leave retires what was issued last once it is complete.
func (w *window) leave(complete float64) {
	w.retire = max(w.retire, complete)
	if w.n == ringSize { // the window is longer than the ring: merge
		w.ring[(w.head+w.n-1)%ringSize] = retired{w.count, w.retire}
		return
	}
	w.ring[(w.head+w.n)%ringSize] = retired{w.count, w.retire}
	w.n++
}

// work executes n instructions that need an operand which is there at ready and
// take latency clocks from the last one's dispatch. It returns when the result
// is there.
func (w *window) work(n int, ready, latency float64) float64 {
	for ; n > piece; n -= piece {
		at := w.issue(piece)
		w.wait(piece, ready)
		w.leave(max(at, ready) + 1)
	}
	done := max(w.issue(n), ready) + latency
	w.wait(n, ready)
	w.leave(done)
	return done
}

// fetch finds when the line of an address is in the first level, if it is asked
// for at start, and from when on nobody waits for a place among those under way.
func (w *window) fetch(addr uint64, start float64) (asked, ready float64) {
	line := addr >> w.c.shift
	level := w.c.access(addr)
	w.accesses[level]++
	for i := range w.fills {
		if w.fills[i].line == line && w.fills[i].ready > start {
			return start, max(w.fills[i].ready, start+w.lat[0])
		}
	}
	if level == 0 {
		return start, start + w.lat[0]
	}
	slot := 0
	for i := range w.fills {
		if w.fills[i].ready < w.fills[slot].ready {
			slot = i
		}
	}
	asked = max(start, w.fills[slot].ready)
	w.fills[slot] = fill{line, asked + w.lat[level]}
	return asked, asked + w.lat[level]
}

// load is one instruction whose address is known at ready. It returns when its
// value is there.
func (w *window) load(addr uint64, ready float64) float64 {
	_, done := w.fetch(addr, max(w.issue(1), ready))
	w.wait(1, ready)
	w.leave(done)
	return done
}

// prefetch is one instruction that asks for a line and retires without it.
func (w *window) prefetch(addr uint64, ready float64) {
	asked, _ := w.fetch(addr, max(w.issue(1), ready))
	w.wait(1, asked)
	w.leave(asked + 1)
}

// drain waits until all has retired, as the end of a frame does when other code
// follows.
func (w *window) drain() float64 {
	w.dispatch = max(w.dispatch, w.retire)
	w.n, w.head = 0, 0
	w.waiting, w.waits = w.waiting[:0], 0
	return w.dispatch
}
