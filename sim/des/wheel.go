package des

import "math/bits"

// wheel is a ring of unsorted buckets. Bucket b, a number that grows with
// time, holds the events of the times b<<shift … (b+1)<<shift-1 at the slot
// b&mask; the ring covers the reach buckets that follow cur. What lies at cur
// or before it is in the near list, what lies further in the heap.
type wheel struct {
	cur    int64
	reach  uint64 // buckets covered, one less than there are slots
	n      int    // events in the ring
	growAt int    // number of events that asks for more slots
	shift  uint8
	batch  int      // most buckets that one refill moves
	slots  []*Timer // first event of each bucket, or &end
	used   []uint64 // one bit a slot: it is not empty
	index  []uint64 // one bit a word of used: it may be not zero
	end    Timer    // ends every bucket's list, so that a push needs no test

	credit int  // events to be taken before the next look at the tuning
	taken  int  // events taken since the last look that ends with the credit
	since  Time // when that was
	touch  Time // keeps refill's early loads alive
}

// push links t into the bucket of its time, which the ring covers.
func (w *wheel) push(t *Timer) {
	slot := uint64(t.at>>(w.shift&63)) & w.reach
	t.next = w.slots[slot]
	t.next.prev = t
	w.slots[slot] = t
	t.pos = int32(slot)
	t.in = inWheel
	w.used[slot>>6] |= 1 << (slot & 63)
	w.index[slot>>12] |= 1 << (slot >> 6 & 63)
	w.n++
}

// remove unlinks t.
func (w *wheel) remove(t *Timer) {
	w.n--
	t.next.prev = t.prev
	if w.slots[t.pos] != t {
		t.prev.next = t.next
		return
	}
	w.slots[t.pos] = t.next
	if t.next == &w.end {
		w.used[t.pos>>6] &^= 1 << (t.pos & 63)
	}
}

// nextUsed is the first slot in use from slot on, around the ring. The ring
// must not be empty.
func (w *wheel) nextUsed(slot uint64) uint64 {
	if rest := w.used[slot>>6] >> (slot & 63); rest != 0 {
		return slot + uint64(bits.TrailingZeros64(rest))
	}
	return w.nextWord(slot>>6 + 1)
}

// nextWord is the first slot in use from the given word of the bitmap on.
func (w *wheel) nextWord(word uint64) uint64 {
	i := word >> 6 & uint64(len(w.index)-1)
	rest := w.index[i] &^ (1<<(word&63) - 1)
	for {
		for rest == 0 {
			i = (i + 1) & uint64(len(w.index)-1)
			rest = w.index[i]
		}
		word = i<<6 + uint64(bits.TrailingZeros64(rest))
		if set := w.used[word]; set != 0 {
			return word<<6 + uint64(bits.TrailingZeros64(set))
		}
		// Emptied since it was marked.
		w.index[i] &^= rest & -rest
		rest &= rest - 1
	}
}

// popSingle moves the ring to the next bucket in use and, if that holds but one
// event, unlinks and returns it; else it returns nil and refill is due.
func (w *wheel) popSingle() *Timer {
	from := uint64(w.cur+1) & w.reach
	slot := w.nextUsed(from)
	t := w.slots[slot]
	if t.next != &w.end {
		return nil
	}
	w.cur += 1 + int64((slot-from)&w.reach)
	w.slots[slot] = &w.end
	w.used[slot>>6] &^= 1 << (slot & 63)
	w.n--
	return t
}

// maxBatch is the most buckets that refill moves at once: about as many cache
// misses as a processor overlaps. Chosen.
const maxBatch = 16

// refill moves the next bucket or buckets into the near list, which is empty.
// The ring must not be empty.
func (w *wheel) refill(l *near) {
	from := uint64(w.cur+1) & w.reach
	slot := w.nextUsed(from)
	w.cur += 1 + int64((slot-from)&w.reach)
	var lists [maxBatch]*Timer
	k := 0
	// First only look at each bucket's first event, so that the misses
	// overlap; then sort.
	word := slot >> 6
	below := uint64(1)<<(slot&63) - 1
	set := w.used[word] &^ below
	below &= w.used[word] // buckets a whole turn later
	touch := Time(0)
	for {
		t := w.slots[slot]
		w.slots[slot] = &w.end
		set &= set - 1
		lists[k&(maxBatch-1)] = t
		touch ^= t.at
		k++
		if k >= w.batch || set == 0 {
			break
		}
		next := word<<6 + uint64(bits.TrailingZeros64(set))
		w.cur += int64(next - slot)
		slot = next
	}
	w.touch = touch
	w.used[word] = below | set
	moved := 0
	for _, t := range lists[:k] {
		moved += l.appendBucket(t, &w.end)
	}
	w.n -= moved
}
