package des

// near is the sorted list of the events that come next, linked through them.
// Everything in it lies within the part of time that the wheel has left
// behind.
type near struct {
	head *Timer
	last *Timer // meaningless while the list is empty
	n    int
}

// nearWalk bounds the search for a place in the list, so that a list of many
// events, which ties can make as long as one likes, costs no more than the
// heap would. Chosen.
const nearWalk = 32

// fewEvents is how many pending events the near list takes alone, without the
// ring: to walk past half of them is cheaper than a bucket. At most nearWalk.
// Chosen.
const fewEvents = 16

// insert links t at its place. It reports false, with nothing changed, when
// the place is not at the end and not near the head.
func (l *near) insert(t *Timer) bool {
	if l.n == 0 {
		l.head, l.last = t, t
		t.next = nil
	} else if l.last.before(t) {
		t.next, t.prev = nil, l.last
		l.last.next = t
		l.last = t
	} else if p := l.head; t.before(p) {
		t.next = p
		p.prev = t
		l.head = t
	} else {
		// t is not last, so the walk meets a later event before the end.
		p = p.next
		for steps := 0; p.before(t); p = p.next {
			if steps++; steps > nearWalk {
				return false
			}
		}
		t.next, t.prev = p, p.prev
		p.prev.next = t
		p.prev = t
	}
	t.in = inNear
	l.n++
	return true
}

// remove unlinks t.
func (l *near) remove(t *Timer) {
	l.n--
	if l.head == t {
		l.head = t.next
		return
	}
	t.prev.next = t.next
	if t.next != nil {
		t.next.prev = t.prev
	} else {
		l.last = t.prev
	}
}

// appendBucket sorts an unsorted list that ends with end and links it behind
// the present last. All of it must come after what the near list holds. It
// returns the number of timers moved.
func (l *near) appendBucket(t, end *Timer) int {
	if t.next != end {
		t = sortList(t, end)
	} else {
		t.next = nil
	}
	if l.n == 0 {
		l.head = t
	} else {
		t.prev = l.last
		l.last.next = t
	}
	moved := 1
	t.in = inNear
	for ; t.next != nil; moved++ {
		t.next.prev = t
		t = t.next
		t.in = inNear
	}
	l.last = t
	l.n += moved
	return moved
}

// sortList sorts a list that is linked by next and ends with end; the result
// ends with nil. Short lists are sorted by insertion, long ones by a merge
// sort that uses the runs it finds, rising or falling: a bucket of ties, which
// lie in it last first, takes linear time.
func sortList(t, end *Timer) *Timer {
	const short = 8
	n := 0
	for u := t; u != end && n <= short; u = u.next {
		n++
	}
	if n > short {
		return mergeSort(t, end)
	}
	var sorted *Timer
	for t != end {
		rest := t.next
		link := &sorted
		for *link != nil && (*link).before(t) {
			link = &(*link).next
		}
		t.next = *link
		*link = t
		t = rest
	}
	return sorted
}

// mergeSort is sortList for any length.
func mergeSort(t, end *Timer) *Timer {
	// level[i] is nil or a sorted list made of 2^i natural runs.
	var level [64]*Timer
	for t != end {
		var run *Timer
		run, t = naturalRun(t, end)
		i := 0
		for ; level[i] != nil; i++ {
			run = merge(level[i], run)
			level[i] = nil
		}
		level[i] = run
	}
	var all *Timer
	for _, l := range level {
		if l != nil {
			all = merge(l, all)
		}
	}
	return all
}

// naturalRun cuts the longest sorted list off the front of t, in rising order,
// and returns it and the rest.
func naturalRun(t, end *Timer) (run, rest *Timer) {
	run, rest = t, t.next
	if rest == end {
		run.next = nil
		return run, rest
	}
	if t.before(rest) {
		last := rest
		for rest = last.next; rest != end && last.before(rest); rest = rest.next {
			last = rest
		}
		last.next = nil
		return run, rest
	}
	run.next = nil
	for rest != end && rest.before(run) {
		next := rest.next
		rest.next = run
		run, rest = rest, next
	}
	return run, rest
}

// merge joins two sorted lists that end with nil.
func merge(a, b *Timer) *Timer {
	var first *Timer
	link := &first
	for a != nil && b != nil {
		if a.before(b) {
			*link = a
			link = &a.next
			a = a.next
		} else {
			*link = b
			link = &b.next
			b = b.next
		}
	}
	if a == nil {
		a = b
	}
	*link = a
	return first
}
