package bihash

import "encoding/binary"

// MaxBatch is the longest batch of look-ups, as long as a frame of packets in
// the software that the table is after.
const MaxBatch = 256

// Pipeline looks keys up many at a time, in stages: all hashes, then all bucket
// words, then all pages. The loads of a stage do not depend on each other, so
// that a processor with several misses under way overlaps them, which it cannot
// where a key's page is asked for only once its bucket word has come. It
// belongs to one table and allocates once.
type Pipeline struct {
	t     *Table
	hash  [MaxBatch]uint64
	at    [MaxBatch]int
	pairs [MaxBatch]int
	warm  uint64
}

// NewPipeline makes a pipeline for look-ups in t.
func NewPipeline(t *Table) *Pipeline { return &Pipeline{t: t} }

// Search looks up the keys that lie one behind the other in keys, at most
// MaxBatch of them and as many as values has places. It writes each one's
// value, or Empty, and returns how many were found.
func (p *Pipeline) Search(keys []byte, values []uint64) (found int) {
	t := p.t
	k := t.spec.KeyBytes
	n := min(len(keys)/k, len(values), MaxBatch)
	for i := range n {
		p.hash[i] = t.Hash(keys[i*k : i*k+k])
	}
	for i := range n {
		h := p.hash[i]
		b := t.bucket(t.index(h))
		if b.empty() {
			p.pairs[i] = 0
			continue
		}
		p.at[i], p.pairs[i] = t.span(b, h)
	}
	// A load whose value is used, for Go has no prefetch instruction.
	var warm uint64
	for i := range n {
		if p.pairs[i] > 0 {
			warm += uint64(t.mem[p.at[i]])
		}
	}
	p.warm = warm
	for i := range n {
		values[i] = Empty
		if p.pairs[i] == 0 {
			continue
		}
		if at := t.match(p.at[i], p.pairs[i], keys[i*k:i*k+k]); at >= 0 {
			values[i] = binary.BigEndian.Uint64(t.mem[at+k:])
			found++
		}
	}
	return found
}

// SearchAhead is Search in one loop, software-pipelined: while one key is
// compared, the page of the key distance behind it is touched, and the bucket
// word of the one 2·distance behind it is read. distance is 1 to 64.
func (p *Pipeline) SearchAhead(keys []byte, values []uint64, distance int) (found int) {
	t := p.t
	k := t.spec.KeyBytes
	n := min(len(keys)/k, len(values), MaxBatch)
	d := min(max(distance, 1), 64)
	var warm uint64
	for i := -2 * d; i < n; i++ {
		if j := i + 2*d; j < n {
			h := t.Hash(keys[j*k : j*k+k])
			p.hash[j] = h
			warm += uint64(t.mem[t.index(h)*bucketBytes])
		}
		if j := i + d; j >= 0 && j < n {
			h := p.hash[j]
			if b := t.bucket(t.index(h)); b.empty() {
				p.pairs[j] = 0
			} else {
				p.at[j], p.pairs[j] = t.span(b, h)
				warm += uint64(t.mem[p.at[j]])
			}
		}
		if i < 0 {
			continue
		}
		values[i] = Empty
		if p.pairs[i] == 0 {
			continue
		}
		if at := t.match(p.at[i], p.pairs[i], keys[i*k:i*k+k]); at >= 0 {
			values[i] = binary.BigEndian.Uint64(t.mem[at+k:])
			found++
		}
	}
	p.warm = warm
	return found
}
