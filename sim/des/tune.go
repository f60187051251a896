package des

import "math/bits"

// What the tuning aims at. All chosen, by the hold model from 16 to a million
// pending events; they change speed only.
const (
	minSlots = 1 << 8
	maxSlots = 1 << 20

	// slotsPerEvent is the number of buckets for each pending event. The ring
	// reaches twice as far as the pending events last, so that a quarter of
	// this number of buckets stands between neighbours on average.
	slotsPerEvent = 4

	// Buckets are kept while their width is between these parts of the ideal
	// one, in eighths.
	narrowest = 7
	widest    = 18

	// minCredit is the least number of events between two looks.
	minCredit = 1 << 10

	// maxWidth bounds the ideal width, in eighths of a ps.
	maxWidth = 1 << 59

	// firstShift is the logarithm of the first bucket width in ps, about a
	// tenth of a microsecond, before any event has been measured.
	firstShift = 17
)

// init makes a small ring, starting at time 0.
func (w *wheel) init() {
	w.resize(minSlots)
	w.shift = firstShift
	w.cur = -1
	w.credit = minCredit
	w.taken = minCredit
	w.batch = 1
}

// resize gives the empty ring n slots, a power of two. Memory is kept.
func (w *wheel) resize(n int) {
	if cap(w.slots) < n {
		w.slots = make([]*Timer, n)
		w.used = make([]uint64, n/64)
		w.index = make([]uint64, max(n/4096, 1))
	}
	w.slots = w.slots[:n]
	w.used = w.used[:n/64]
	w.index = w.index[:max(n/4096, 1)]
	for i := range w.slots {
		w.slots[i] = &w.end
	}
	clear(w.used)
	clear(w.index)
	w.reach = uint64(n - 1)
	w.growAt = n / 2
	if n == maxSlots {
		w.growAt = int(^uint(0) >> 1)
	}
}

// slotsFor is the number of slots for a number of pending events.
func slotsFor(pending int) int {
	n := minSlots
	for n < maxSlots && n < slotsPerEvent*pending {
		n *= 2
	}
	return n
}

// tune compares the wheel with the rate of the events taken since the last
// look, and rebuilds it where it does not suit them.
func (e *Engine) tune() {
	w := &e.wheel
	pending := e.Pending()
	elapsed := e.now - w.since
	if elapsed == 0 {
		// Ties only: they tell nothing, so look at a longer stretch.
		w.credit = w.taken
		w.taken *= 2
		return
	}
	slots := slotsFor(pending)
	ideal := idealWidth(pending, elapsed, w.taken, slots)
	have := uint64(8) << w.shift
	same := slots == len(w.slots)
	if !same && len(w.slots) < slots*16 && len(w.slots) > slots {
		// Too many slots by little: keep them, at their width.
		slots = len(w.slots)
		ideal = idealWidth(pending, elapsed, w.taken, slots)
		same = true
	}
	if same && have >= ideal*narrowest/8 && have <= ideal*widest/8 {
		e.startCredit(pending)
		return
	}
	e.relayout(slots, ideal)
}

// rebuild makes room for more events than the ring was made for, before the
// credit has run out.
func (e *Engine) rebuild() {
	w := &e.wheel
	pending := e.Pending()
	slots := slotsFor(pending)
	taken := w.taken - w.credit
	if elapsed := e.now - w.since; elapsed > 0 && taken >= minCredit {
		e.relayout(slots, idealWidth(pending, elapsed, taken, slots))
		return
	}
	e.relayout(slots, 0)
}

// idealWidth is the bucket width at which the slots reach twice as far as the
// pending events last at the measured rate, in eighths of a ps, at least 8.
func idealWidth(pending int, elapsed Time, taken, slots int) uint64 {
	hi, lo := bits.Mul64(uint64(elapsed), 16*uint64(pending))
	div := uint64(max(taken, 1)) * uint64(slots)
	if hi >= div {
		return maxWidth
	}
	q, _ := bits.Div64(hi, lo, div)
	return min(max(q, 8), maxWidth)
}

// startCredit begins the next stretch of measurement.
func (e *Engine) startCredit(pending int) {
	w := &e.wheel
	w.credit = max(minCredit, 4*pending)
	w.taken = w.credit
	w.since = e.now
}

// relayout gives the wheel a number of slots and the bucket width that suits
// the ideal one, and puts every event but the front's in anew. An ideal of 0
// means that nothing was measured: the mean distance of the pending events
// from now then stands in.
func (e *Engine) relayout(slots int, ideal uint64) {
	w := &e.wheel
	var all *Timer
	count := 0
	var hi, lo, carry uint64 // sum of the distances from now
	take := func(t *Timer) {
		t.next = all
		all = t
		count++
		lo, carry = bits.Add64(lo, uint64(t.at-e.now), 0)
		hi += carry
	}
	for t := e.near.head; e.near.n > 0; e.near.n-- {
		next := t.next
		take(t)
		t = next
	}
	for word, set := range w.used {
		for ; set != 0; set &= set - 1 {
			t := w.slots[word<<6+bits.TrailingZeros64(set)]
			for t != &w.end {
				next := t.next
				take(t)
				t = next
			}
		}
	}
	for i := range e.far {
		take(e.far[i].t)
	}
	clear(e.far)
	e.far = e.far[:0]
	w.n = 0
	w.resize(slots)

	if ideal == 0 && count > 0 {
		// Where delays are uniform, the longest is three times the mean
		// distance of what is pending.
		mean, _ := bits.Div64(hi, lo, uint64(count))
		ideal = min(max(mean/uint64(slots)*24, 8), maxWidth)
	}
	w.shift = uint8(bits.Len64((ideal*narrowest/8+7)/8 - 1))
	w.cur = int64(e.now>>w.shift) - 1
	w.batch = min(max(count/64, 1), maxBatch)
	for all != nil {
		t := all
		all = t.next
		if uint64(int64(t.at>>w.shift)-w.cur-1) < w.reach {
			w.push(t)
		} else {
			e.pushFar(t)
		}
	}
	e.startCredit(count)
}
