package des

// farEvent is an entry of the 4-ary heap of events that lie beyond the wheel,
// or for which the near list has no cheap place. It repeats the event's key,
// so that sifting does not visit the timers it compares.
type farEvent struct {
	at   Time
	ord  uint64
	t    *Timer
	prio Priority
}

// less is the order of Timer.before.
func (a *farEvent) less(b *farEvent) bool {
	if a.at != b.at {
		return a.at < b.at
	}
	if a.prio != b.prio {
		return a.prio < b.prio
	}
	return a.ord < b.ord
}

// before compares an entry with a timer outside the heap.
func (a *farEvent) before(t *Timer) bool {
	if a.at != t.at {
		return a.at < t.at
	}
	if a.prio != t.prio {
		return a.prio < t.prio
	}
	return a.ord < t.ord
}

// pushFar adds t to the heap.
func (e *Engine) pushFar(t *Timer) {
	t.in = inFar
	e.far = append(e.far, farEvent{})
	e.siftUp(len(e.far)-1, farEvent{t.at, t.ord, t, t.prio})
}

// removeFar takes the entry at index i out of the heap.
func (e *Engine) removeFar(i int) {
	n := len(e.far) - 1
	moved := e.far[n]
	e.far[n].t = nil
	e.far = e.far[:n]
	if i == n {
		return
	}
	if i > 0 && moved.less(&e.far[(i-1)/4]) {
		e.siftUp(i, moved)
	} else {
		e.siftDown(i, moved)
	}
}

// siftUp places v at index i, whose entry is free, or above it.
func (e *Engine) siftUp(i int, v farEvent) {
	h := e.far
	for i > 0 {
		p := (i - 1) / 4
		if !v.less(&h[p]) {
			break
		}
		h[i] = h[p]
		h[i].t.pos = int32(i)
		i = p
	}
	h[i] = v
	v.t.pos = int32(i)
}

// siftDown places v at index i, whose entry is free, or below it.
func (e *Engine) siftDown(i int, v farEvent) {
	h := e.far
	for {
		c := 4*i + 1
		if c >= len(h) {
			break
		}
		least := c
		for j := c + 1; j < min(c+4, len(h)); j++ {
			if h[j].less(&h[least]) {
				least = j
			}
		}
		if !h[least].less(&v) {
			break
		}
		h[i] = h[least]
		h[i].t.pos = int32(i)
		i = least
	}
	h[i] = v
	v.t.pos = int32(i)
}
