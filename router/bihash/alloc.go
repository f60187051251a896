package bihash

import "fmt"

// take finds 2^log2 pages in a row and empties them.
func (t *Table) take(log2 int) (page uint32, err error) {
	n := uint32(1) << log2
	if log2 < len(t.free) && len(t.free[log2]) > 0 {
		l := t.free[log2]
		page = l[len(l)-1]
		t.free[log2] = l[:len(l)-1]
	} else {
		if t.next+n > t.capacity || t.next+n < t.next {
			return t.carve(log2)
		}
		page = t.next
		t.next += n
	}
	t.inUse += int(n)
	t.clearPages(page, n)
	return page, nil
}

// carve cuts 2^log2 pages out of a longer free piece.
func (t *Table) carve(log2 int) (page uint32, err error) {
	for from := log2 + 1; from < len(t.free); from++ {
		if len(t.free[from]) == 0 {
			continue
		}
		l := t.free[from]
		page = l[len(l)-1]
		t.free[from] = l[:len(l)-1]
		for k := from - 1; k >= log2; k-- {
			t.free[k] = append(t.free[k], page+1<<k)
		}
		n := uint32(1) << log2
		t.inUse += int(n)
		t.clearPages(page, n)
		return page, nil
	}
	return 0, fmt.Errorf("%w: %d pages of %d bytes in a row wanted, %d of %d pages are in use", ErrFull, 1<<log2, t.pageBytes, t.inUse, t.capacity)
}

// give puts pages back. Neighbours are not joined: a bucket that grows again
// asks for the length that it had.
func (t *Table) give(page uint32, log2 int) {
	for len(t.free) <= log2 {
		t.free = append(t.free, nil)
	}
	t.free[log2] = append(t.free[log2], page)
	t.inUse -= 1 << log2
}

func (t *Table) clearPages(page, n uint32) {
	at := t.pageAt(page)
	p := t.mem[at : at+int(n)*t.pageBytes]
	for i := range p {
		p[i] = 0xFF
	}
}
