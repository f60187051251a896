package bihash

import "encoding/binary"

// bucket is a bucket word as it lies in memory, big-endian:
//
//	63 … 32  first page, counted from 1; 0 in a bucket without pages
//	31 … 24  log2 of the number of pages
//	23       linear search: a pair can lie in any page
//	15 …  0  pairs in the bucket
//
// The order of the fields is ours. The original's lock bit is left out: one
// processor runs a card's handlers to completion.
type bucket uint64

const linearBit = 1 << 23

func makeBucket(page uint32, log2 int, linear bool, pairs int) bucket {
	b := bucket(page+1)<<32 | bucket(log2)<<24 | bucket(pairs)
	if linear {
		b |= linearBit
	}
	return b
}

func (b bucket) empty() bool  { return b == 0 }
func (b bucket) page() uint32 { return uint32(b>>32) - 1 }
func (b bucket) log2() int    { return int(b >> 24 & 0x7F) }
func (b bucket) linear() bool { return b&linearBit != 0 }
func (b bucket) pairs() int   { return int(b & 0xFFFF) }
func (b bucket) count() int   { return 1 << b.log2() }
func (b bucket) plus(n int) bucket {
	return b&^0xFFFF | bucket(b.pairs()+n)
}

// maxPairs is what a bucket word can count.
const maxPairs = 0xFFFF

func (t *Table) bucket(i int) bucket {
	return bucket(binary.BigEndian.Uint64(t.mem[i*bucketBytes:]))
}

func (t *Table) setBucket(i int, b bucket) {
	binary.BigEndian.PutUint64(t.mem[i*bucketBytes:], uint64(b))
}

// index is the number of the hash's bucket.
func (t *Table) index(h uint64) int { return int(h & t.mask) }

// pageOf is the page of the bucket in which the hash's pair must lie, unless
// the bucket is linear.
func (t *Table) pageOf(b bucket, h uint64) uint32 {
	return b.page() + uint32(h>>t.log2Buckets)&uint32(b.count()-1)
}

// pageAt is where a page begins in the table's memory.
func (t *Table) pageAt(page uint32) int { return t.pages + int(page)*t.pageBytes }
