package traces

// Ring keeps the last records of a stream, unpacked: recording one is a copy
// of 80 bytes. It is a sink and never fails.
type Ring struct {
	meta    *Meta
	records []Record
	next    int // where the next one goes
	full    bool
}

// NewRing returns a ring of n records, at least 1, which takes 80 bytes each
// from the start.
func NewRing(meta *Meta, n int) *Ring {
	return &Ring{meta: meta.clone(), records: make([]Record, max(n, 1))}
}

// Record keeps r in place of the oldest; it never fails.
func (g *Ring) Record(r *Record) error {
	g.records[g.next] = *r
	g.next++
	if g.next == len(g.records) {
		g.next, g.full = 0, true
	}
	return nil
}

// Len is how many records the ring holds.
func (g *Ring) Len() int {
	if g.full {
		return len(g.records)
	}
	return g.next
}

// At is the i-th record held, 0 the oldest, Len()-1 the newest. It is valid
// until the next call of Record.
func (g *Ring) At(i int) *Record {
	if g.full {
		i += g.next
		if i >= len(g.records) {
			i -= len(g.records)
		}
	}
	return &g.records[i]
}

// Reset forgets all records.
func (g *Ring) Reset() { g.next, g.full = 0, false }

// Reader reads what the ring holds, from the oldest on. It must not be used
// any more once the ring takes another record.
func (g *Ring) Reader() Reader { return &ringReader{g: g} }

type ringReader struct {
	g *Ring
	i int
}

func (r *ringReader) Meta() *Meta  { return r.g.meta }
func (r *ringReader) Close() error { return nil }

func (r *ringReader) Next(rec *Record) (bool, error) {
	if r.i >= r.g.Len() {
		return false, nil
	}
	*rec = *r.g.At(r.i)
	r.i++
	return true, nil
}
