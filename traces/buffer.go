package traces

// chunkBytes is how much packed record goes into one chunk. Each chunk can be
// read without those before it, so it is what a bounded buffer forgets at a
// time, and what a damaged file loses.
const chunkBytes = 16 << 10

type chunk struct {
	packed  []byte
	records uint64
}

// Buffer keeps a record stream in memory, packed to about 20 bytes a record.
// It is a sink; any number of readers can read what it holds so far. Recording
// allocates only when a chunk is full, and in a bounded buffer that is full
// not at all. It is not safe for concurrent use.
type Buffer struct {
	meta    *Meta
	chunks  []chunk
	first   uint64 // number of the oldest chunk held
	state   codec
	limit   int
	bytes   int
	records uint64
	lost    uint64
	spare   []byte
}

// NewBuffer returns an empty buffer. limit bounds the bytes it takes for
// records: when they would exceed it, the oldest are forgotten, about 800 at a
// time. A limit of 0 or less is no bound; one below 32 KiB counts as that.
func NewBuffer(meta *Meta, limit int) *Buffer {
	if limit > 0 {
		limit = max(limit, 2*chunkBytes)
	}
	return &Buffer{meta: meta.clone(), limit: limit}
}

// Meta tells of the run.
func (b *Buffer) Meta() *Meta { return b.meta }

// SetMeta replaces what the buffer says of the run, for readers made later.
func (b *Buffer) SetMeta(m *Meta) {
	b.meta = m.clone()
}

// Record keeps r; it never fails.
func (b *Buffer) Record(r *Record) error {
	n := len(b.chunks)
	if n == 0 || len(b.chunks[n-1].packed)+maxPacked > cap(b.chunks[n-1].packed) {
		b.grow()
		n = len(b.chunks)
	}
	c := &b.chunks[n-1]
	before := len(c.packed)
	c.packed = b.state.append(c.packed, r)
	b.bytes += len(c.packed) - before
	c.records++
	b.records++
	return nil
}

// grow starts a chunk, forgetting the oldest ones where there is a bound.
func (b *Buffer) grow() {
	if b.limit > 0 {
		for len(b.chunks) > 0 && (len(b.chunks)+1)*chunkBytes > b.limit {
			old := b.chunks[0]
			b.chunks = append(b.chunks[:0], b.chunks[1:]...)
			b.first++
			b.lost += old.records
			b.records -= old.records
			b.bytes -= len(old.packed)
			b.spare = old.packed[:0]
		}
	}
	b.state = codec{}
	packed := b.spare
	b.spare = nil
	if packed == nil {
		packed = make([]byte, 0, chunkBytes)
	}
	b.chunks = append(b.chunks, chunk{packed: packed})
}

// Len is how many records the buffer holds.
func (b *Buffer) Len() uint64 {
	return b.records
}

// Lost is how many records were forgotten because of the bound.
func (b *Buffer) Lost() uint64 {
	return b.lost
}

// Bytes is how much memory the packed records take.
func (b *Buffer) Bytes() int {
	return b.bytes
}

// Reader reads the buffer from its oldest record on. Records that are added
// later are read too; records that are forgotten before the reader comes to
// them are passed over.
func (b *Buffer) Reader() Reader {
	return &bufferReader{b: b, meta: b.meta, chunk: b.first}
}

type bufferReader struct {
	b     *Buffer
	meta  *Meta
	chunk uint64 // number of the chunk being read
	at    int    // offset within it
	state codec
}

func (r *bufferReader) Meta() *Meta  { return r.meta }
func (r *bufferReader) Close() error { return nil }

func (r *bufferReader) Next(rec *Record) (bool, error) {
	for {
		if r.chunk < r.b.first {
			r.chunk, r.at, r.state = r.b.first, 0, codec{}
		}
		i := int(r.chunk - r.b.first)
		if i >= len(r.b.chunks) {
			return false, nil
		}
		packed := r.b.chunks[i].packed
		if r.at < len(packed) {
			rest, err := r.state.next(packed[r.at:], rec)
			if err != nil {
				return false, err
			}
			r.at = len(packed) - len(rest)
			return true, nil
		}
		if i == len(r.b.chunks)-1 {
			return false, nil
		}
		r.chunk, r.at, r.state = r.chunk+1, 0, codec{}
	}
}
