package lanai

// work is the demand of a box or poll: n instruction cycles, a accesses,
// n ≤ a ≤ 2n.
type work struct{ n, a int64 }

// demand is D(k), what the box has asked for after k cycles.
func (w work) demand(k int64) int64 {
	if k >= w.n {
		return w.a
	}
	if k|w.a < 1<<31 {
		return int64((uint64(k)*uint64(w.a) + uint64(w.n) - 1) / uint64(w.n))
	}
	// a = n + m, so ceil(k·a/n) = k + ceil(k·m/n); k, n < 2^31 in any case.
	return k + (k*(w.a-w.n)+w.n-1)/w.n
}

// deficit is the most by which free accesses have outrun the box's demand at
// some boundary, so that they went unused: the maximum of F(i) − D(e+i) over
// 1 ≤ i ≤ j, and of −g. F(i) is what the orbit leaves free from offset x to
// x+i, f0 what it left free up to x, e and g what the box had behind it at x. The accesses granted by x+i
// are then F(i) − deficit.
func (o *orbit) deficit(w work, x, j, e, g, f0 int64) int64 {
	most := -g
	if j <= 0 {
		return most
	}
	if o.period == 0 {
		o.place(x + j) // so that the period is known if it is reached
	}
	head := j
	if o.period != 0 {
		head = max(int64(o.pre)-x, 0) + int64(o.period)
	}
	if j <= head+int64(o.period) {
		return o.scan(w, x, 1, j, e, most, f0)
	}
	// F(i) − D(e+i) is monotone along i, i+period, i+2·period, …: F grows by
	// the same in each period, and D is the ceiling of a line.
	most = o.scan(w, x, 1, head, e, most, f0)
	return o.scan(w, x, j-int64(o.period)+1, j, e, most, f0)
}

// scan raises most to the maximum of F(i) − D(e+i) over from ≤ i ≤ to. It
// steps along the table, with D and its remainder r = n·D − k·a, k = e + i.
func (o *orbit) scan(w work, x, from, to, e, most, f0 int64) int64 {
	k := e + from - 1
	d := w.demand(k)
	r := w.n*d - min(k, w.n)*w.a
	cell, periods := o.place(x + from)
	more := -f0
	per := int64(0)
	if o.period != 0 {
		per = o.freesPerPeriod()
		more += periods * per
	}
	frees := o.frees
	for i := from; i <= to; i++ {
		if cell >= len(frees) {
			// Behind the period's last cell comes its second: the first is
			// the same as the last.
			cell = o.pre + 1
			more += per
		}
		if k++; k <= w.n {
			if r < w.a {
				r += w.n
				d++
				if r < w.a {
					r += w.n
					d++
				}
			}
			r -= w.a
		}
		most = max(most, int64(frees[cell])+more-d)
		cell++
	}
	return most
}

// run follows a box, with e cycles and g accesses behind it at offset x, to
// its end if that comes by offset to (at most the orbit's end). Otherwise end
// is -1 and e2 and g2 are what is behind it at to.
func (o *orbit) run(w work, x, to, e, g int64) (end, e2, g2 int64) {
	j := w.n - e
	if o.idle {
		// Every cycle grants two accesses, as much as any demand grows.
		if end = x + max(j, (w.a-g+1)/2); end <= to {
			return end, 0, 0
		}
		e2 = e + to - x
		return -1, e2, min(g+2*(to-x), w.demand(e2))
	}
	f0 := o.free(x)
	lost := o.deficit(w, x, min(j, to-x), e, g, f0)
	if j <= to-x {
		end = max(x+max(j, 0), o.firstFree(f0+w.a+lost))
		if end <= to {
			return end, 0, 0
		}
	}
	return -1, e + to - x, min(o.free(to)-f0-lost, w.a)
}

// pollTable holds how long a poll takes that begins at each offset of an
// orbit.
type pollTable struct {
	w      work
	length []int32 // by cell; 0: not worked out, -1: never ends here
}

// maxPollTables is how many kinds of poll an orbit keeps tables for.
const maxPollTables = 4

func (o *orbit) table(w work) *pollTable {
	for i := range o.polls {
		if o.polls[i].w == w {
			return &o.polls[i]
		}
	}
	if n := len(o.polls); n < maxPollTables {
		if n < cap(o.polls) {
			o.polls = o.polls[:n+1] // with the memory of a table before
		} else {
			o.polls = append(o.polls, pollTable{})
		}
		t := &o.polls[n]
		t.w, t.length = w, t.length[:0]
		return t
	}
	t := &o.polls[o.evict]
	o.evict = (o.evict + 1) % maxPollTables
	t.w, t.length = w, t.length[:0]
	return t
}

// poll is the length of a poll that begins at cell i, -1 when it does not end
// within the orbit.
func (o *orbit) poll(t *pollTable, i int) int64 {
	for len(t.length) <= i {
		t.length = append(t.length, 0)
	}
	if n := t.length[i]; n != 0 {
		return int64(n)
	}
	n := o.length(t.w, i)
	t.length[i] = int32(n)
	return n
}

// length is how long a box or poll takes that begins at cell i, -1 when it does
// not end within the orbit.
func (o *orbit) length(w work, i int) int64 {
	if end, _, _ := o.run(w, int64(i), o.end(), 0, 0); end >= 0 && end-int64(i) < 1<<31 {
		return end - int64(i)
	}
	return -1
}

// walk follows whole polls, back to back from offset x on, as long as they end
// by offset to and are no more than most. It tells how many and where the last
// one ended (x when there was none).
func (o *orbit) walk(w work, x, to, most int64) (count, end int64) {
	if o.idle {
		count = min(most, (to-x)/w.n)
		return count, x + count*w.n
	}
	t := o.table(w)
	// Beyond the orbit's prefix, how polls go on depends on the place within
	// the period only, so their ends repeat. Brent's search finds the cycle.
	mark, markCount, markEnd, power := -1, int64(0), int64(0), int64(1)
	for count < most {
		i, _ := o.place(x)
		if mark >= 0 && i == mark {
			if rounds := min((most-count)/(count-markCount), (to-x)/(x-markEnd)); rounds > 0 {
				dc, dx := count-markCount, x-markEnd
				count += rounds * dc
				x += rounds * dx
			}
			mark = -2 // found: what is left is less than one cycle
			if count == most {
				break
			}
			i, _ = o.place(x)
		}
		if o.period != 0 && i >= o.pre && mark != -2 && (mark == -1 || count-markCount >= power) {
			if mark >= 0 {
				power *= 2
			}
			mark, markCount, markEnd = i, count, x
		}
		n := o.poll(t, i)
		if n < 0 || n > to-x {
			break
		}
		x += n
		count++
	}
	return count, x
}
