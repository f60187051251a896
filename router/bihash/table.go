package bihash

import (
	"encoding/binary"
	"fmt"
	"math/bits"

	"spinesim/lanai"
)

// Table is a bounded-index extensible hash table. Look-ups and deletions do not
// allocate; additions do so only where lists of free pages grow. It is not safe
// for concurrent use.
type Table struct {
	spec        Spec
	mem         []byte // bucket words, then pages
	addr        uint32
	mask        uint64
	log2Buckets int
	pages       int // where they begin in mem
	pageBytes   int
	pairBytes   int

	capacity uint32 // pages there are
	next     uint32 // first page never taken
	free     [][]uint32
	inUse    int
	pairs    int
	scratch  []byte  // pairs of a bucket that is laid out anew
	counts   []uint8 // of them, by page
}

// New makes an empty table in host memory.
func New(spec Spec) (*Table, error) {
	if err := spec.Validate(); err != nil {
		return nil, err
	}
	return newTable(spec, make([]byte, spec.Bytes), 0), nil
}

// NewIn makes an empty table in a card's memory, in a block held by owner. When
// it does not fit, the error names the sizes and wraps lanai.ErrNoRoom.
func NewIn(spec Spec, sram *lanai.SRAM, owner string) (*Table, error) {
	if err := spec.Validate(); err != nil {
		return nil, err
	}
	addr, err := sram.Alloc(owner, uint32(spec.Bytes), 8)
	if err != nil {
		return nil, fmt.Errorf("hash table of %d buckets (%d bytes): %w", spec.Buckets, spec.Bytes, err)
	}
	mem, err := sram.Slice(addr, spec.Bytes)
	if err != nil {
		return nil, fmt.Errorf("hash table at %#x: %w", addr, err)
	}
	clear(mem[:spec.Buckets*bucketBytes])
	return newTable(spec, mem, addr), nil
}

func newTable(spec Spec, mem []byte, addr uint32) *Table {
	t := &Table{
		spec: spec, mem: mem, addr: addr,
		mask: uint64(spec.Buckets - 1), log2Buckets: bits.TrailingZeros(uint(spec.Buckets)),
		pages: spec.Buckets * bucketBytes, pageBytes: spec.PageBytes(), pairBytes: spec.KeyBytes + valueBytes,
	}
	t.capacity = uint32((len(mem) - t.pages) / t.pageBytes)
	return t
}

// Spec is what the table was made from.
func (t *Table) Spec() Spec { return t.spec }

// Len is the number of pairs.
func (t *Table) Len() int { return t.pairs }

// Address is where the table lies in the card's memory, 0 in host memory.
func (t *Table) Address() uint32 { return t.addr }

// Hash is the hash of a key.
func (t *Table) Hash(key []byte) uint64 { return t.spec.Hash.Sum(key) }

// Reads are the memory accesses of a look-up.
type Reads struct {
	Words int // 32-bit words read, the bucket word's two included
	Pages int // pages looked into
	Pairs int // keys compared
	// Linear tells that the bucket had to be searched from end to end.
	Linear bool
}

// Search finds a key's value. A key of a wrong length is not found.
func (t *Table) Search(key []byte) (value uint64, ok bool) {
	if len(key) != t.spec.KeyBytes {
		return 0, false
	}
	return t.SearchHash(t.Hash(key), key)
}

// SearchHash is Search for a caller that has the key's hash already.
func (t *Table) SearchHash(h uint64, key []byte) (value uint64, ok bool) {
	b := t.bucket(t.index(h))
	if b.empty() {
		return 0, false
	}
	at, n := t.span(b, h)
	if at = t.match(at, n, key); at < 0 {
		return 0, false
	}
	return binary.BigEndian.Uint64(t.mem[at+t.spec.KeyBytes:]), true
}

// span is where the pages begin that the hash's pair can lie in, and how many
// pairs they hold.
func (t *Table) span(b bucket, h uint64) (at, pairs int) {
	if b.linear() {
		return t.pageAt(b.page()), PairsPerPage << b.log2()
	}
	return t.pageAt(t.pageOf(b, h)), PairsPerPage
}

// match finds the key among n pairs from at on, -1 when it is not there. An
// empty place has the value Empty, whatever its key.
func (t *Table) match(at, n int, key []byte) int {
	k := t.spec.KeyBytes
	first := binary.LittleEndian.Uint64(key)
	for range n {
		p := t.mem[at : at+k+valueBytes]
		if binary.LittleEndian.Uint64(p) == first && binary.BigEndian.Uint64(p[k:]) != Empty && (k == 8 || string(p[8:k]) == string(key[8:])) {
			return at
		}
		at += t.pairBytes
	}
	return -1
}

// Find is Search that counts what a card's processor reads: two words of the
// bucket, words of each key up to the first that differs, two words of the
// value.
func (t *Table) Find(key []byte) (value uint64, r Reads, ok bool) {
	if len(key) != t.spec.KeyBytes {
		return 0, r, false
	}
	h := t.Hash(key)
	b := t.bucket(t.index(h))
	r.Words = 2
	if b.empty() {
		return 0, r, false
	}
	at, n := t.span(b, h)
	r.Linear = b.linear()
	for i := range n {
		if i%PairsPerPage == 0 {
			r.Pages++
		}
		r.Pairs++
		p := t.mem[at+i*t.pairBytes:]
		same := 0
		for same < t.spec.KeyBytes && string(p[same:same+4]) == string(key[same:same+4]) {
			same += 4
			r.Words++
		}
		if same < t.spec.KeyBytes {
			r.Words++ // the word that differs
			continue
		}
		r.Words += 2
		if v := binary.BigEndian.Uint64(p[t.spec.KeyBytes:]); v != Empty {
			return v, r, true
		}
	}
	return 0, r, false
}

// Place tells where a look-up of the hash goes: the offsets of the bucket word
// and of the first page to look into, from the beginning of the table's memory.
// A bucket without pages has none.
func (t *Table) Place(h uint64) (bucket, page int, ok bool) {
	i := t.index(h)
	b := t.bucket(i)
	if b.empty() {
		return i * bucketBytes, 0, false
	}
	at, _ := t.span(b, h)
	return i * bucketBytes, at, true
}

// Buckets is how many buckets there are; Bucket calls yield for each pair of
// bucket i until it returns false. The key is valid during the call only, and
// the table must not be changed within.
func (t *Table) Buckets() int { return t.spec.Buckets }

// Bucket calls yield for the pairs of one bucket; see Buckets.
func (t *Table) Bucket(i int, yield func(key []byte, value uint64) bool) bool {
	b := t.bucket(i)
	if b.empty() {
		return true
	}
	at := t.pageAt(b.page())
	for range PairsPerPage << b.log2() {
		p := t.mem[at : at+t.pairBytes]
		if v := binary.BigEndian.Uint64(p[t.spec.KeyBytes:]); v != Empty && !yield(p[:t.spec.KeyBytes:t.spec.KeyBytes], v) {
			return false
		}
		at += t.pairBytes
	}
	return true
}

// All calls yield for every pair, by bucket and place, until it returns false.
// The key is valid during the call only, and the table must not be changed
// within.
func (t *Table) All(yield func(key []byte, value uint64) bool) {
	for i := range t.spec.Buckets {
		if !t.Bucket(i, yield) {
			return
		}
	}
}

// Stats describe a table's shape.
type Stats struct {
	Pairs         int   `json:"pairs"`
	Buckets       int   `json:"buckets"`
	UsedBuckets   int   `json:"used_buckets"`
	LinearBuckets int   `json:"linear_buckets"`
	Pages         int   `json:"pages"`     // in use
	MaxPages      int   `json:"max_pages"` // of a bucket
	ByLog2        []int `json:"by_log2"`   // buckets of 2^i pages
	// Bytes is the memory behind it, TouchedBytes what look-ups can reach:
	// the lines (of 64 bytes) of bucket words in use, and the pages.
	Bytes        int `json:"bytes"`
	BucketLines  int `json:"bucket_lines"`
	TouchedBytes int `json:"touched_bytes"`
}

const statsLine = 64

// Stats counts the table through.
func (t *Table) Stats() Stats {
	s := Stats{Pairs: t.pairs, Buckets: t.spec.Buckets, Pages: t.inUse, Bytes: len(t.mem)}
	lastLine := -1
	for i := range t.spec.Buckets {
		b := t.bucket(i)
		if b.empty() {
			continue
		}
		s.UsedBuckets++
		if line := i * bucketBytes / statsLine; line != lastLine {
			s.BucketLines++
			lastLine = line
		}
		if b.linear() {
			s.LinearBuckets++
		}
		for len(s.ByLog2) <= b.log2() {
			s.ByLog2 = append(s.ByLog2, 0)
		}
		s.ByLog2[b.log2()]++
		s.MaxPages = max(s.MaxPages, b.count())
	}
	s.TouchedBytes = s.BucketLines*statsLine + s.Pages*t.pageBytes
	return s
}
