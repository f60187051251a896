package bihash

import (
	"encoding/binary"
	"fmt"
)

func (t *Table) checkKey(key []byte) error {
	if len(key) != t.spec.KeyBytes {
		return fmt.Errorf("%w: %d bytes, want %d", ErrKey, len(key), t.spec.KeyBytes)
	}
	return nil
}

// Add puts a pair into the table, or gives a key that is there a new value. On
// an error the table is as it was: it wraps ErrKey, ErrValue (the value is
// Empty) or ErrFull.
func (t *Table) Add(key []byte, value uint64) error {
	if err := t.checkKey(key); err != nil {
		return err
	}
	if value == Empty {
		return fmt.Errorf("%w: %#x marks a place without a pair", ErrValue, value)
	}
	h := t.Hash(key)
	i := t.index(h)
	b := t.bucket(i)
	if b.empty() {
		page, err := t.take(0)
		if err != nil {
			return fmt.Errorf("bucket %d: %w", i, err)
		}
		t.put(t.pageAt(page), key, value)
		t.setBucket(i, makeBucket(page, 0, false, 1))
		t.pairs++
		return nil
	}
	at, n := t.span(b, h)
	if had := t.match(at, n, key); had >= 0 {
		binary.BigEndian.PutUint64(t.mem[had+t.spec.KeyBytes:], value)
		return nil
	}
	if b.pairs() == maxPairs {
		return fmt.Errorf("bucket %d: %w: it has %d pairs", i, ErrFull, maxPairs)
	}
	if hole := t.hole(at, n); hole >= 0 {
		t.put(hole, key, value)
		t.setBucket(i, b.plus(1))
		t.pairs++
		return nil
	}
	if err := t.grow(i, b, h, key, value); err != nil {
		return fmt.Errorf("bucket %d: %w", i, err)
	}
	t.pairs++
	return nil
}

// put writes a pair into a place.
func (t *Table) put(at int, key []byte, value uint64) {
	copy(t.mem[at:], key)
	binary.BigEndian.PutUint64(t.mem[at+t.spec.KeyBytes:], value)
}

// hole finds a place without a pair among n from at on, or -1.
func (t *Table) hole(at, n int) int {
	for range n {
		if binary.BigEndian.Uint64(t.mem[at+t.spec.KeyBytes:]) == Empty {
			return at
		}
		at += t.pairBytes
	}
	return -1
}

// tries is how often a full page is answered by doubling the pages once more
// before the bucket is searched from end to end.
const tries = 2

// grow lays a bucket out anew on more pages, with one more pair. Doubling the
// pages brings one more bit of the hash into the choice of the page; where that
// does not part the pairs twice running, the bucket becomes linear, and stays
// so until it is empty.
func (t *Table) grow(i int, b bucket, h uint64, key []byte, value uint64) error {
	t.scratch = t.scratch[:0]
	at := t.pageAt(b.page())
	for range PairsPerPage << b.log2() {
		if p := t.mem[at : at+t.pairBytes]; binary.BigEndian.Uint64(p[t.spec.KeyBytes:]) != Empty {
			t.scratch = append(t.scratch, p...)
		}
		at += t.pairBytes
	}
	t.scratch = append(t.scratch, key...)
	t.scratch = binary.BigEndian.AppendUint64(t.scratch, value)
	if !b.linear() {
		for log2 := b.log2() + 1; log2 <= b.log2()+tries && log2+t.log2Buckets <= t.spec.Hash.width(); log2++ {
			if !t.parts(log2) {
				continue
			}
			page, err := t.take(log2)
			if err != nil {
				return err
			}
			n := makeBucket(page, log2, false, b.pairs()+1)
			for p := t.scratch; len(p) > 0; p = p[t.pairBytes:] {
				k := p[:t.spec.KeyBytes]
				copy(t.mem[t.hole(t.pageAt(t.pageOf(n, t.Hash(k))), PairsPerPage):], p[:t.pairBytes])
			}
			t.replace(i, b, n)
			return nil
		}
	}
	log2 := b.log2() + 1
	page, err := t.take(log2)
	if err != nil {
		return err
	}
	copy(t.mem[t.pageAt(page):], t.scratch)
	t.replace(i, b, makeBucket(page, log2, true, b.pairs()+1))
	return nil
}

// parts tells whether no page overflows when the scratch's pairs are dealt out
// to 2^log2 pages.
func (t *Table) parts(log2 int) bool {
	n := 1 << log2
	if cap(t.counts) < n {
		t.counts = make([]uint8, n)
	}
	counts := t.counts[:n]
	clear(counts)
	for p := t.scratch; len(p) > 0; p = p[t.pairBytes:] {
		page := t.Hash(p[:t.spec.KeyBytes]) >> t.log2Buckets & uint64(n-1)
		if counts[page]++; counts[page] > PairsPerPage {
			return false
		}
	}
	return true
}

func (t *Table) replace(i int, old, now bucket) {
	t.setBucket(i, now)
	t.give(old.page(), old.log2())
}

// Delete takes a key's pair out and tells whether it was there. A bucket's
// pages go back with its last pair.
func (t *Table) Delete(key []byte) bool {
	if len(key) != t.spec.KeyBytes {
		return false
	}
	h := t.Hash(key)
	i := t.index(h)
	b := t.bucket(i)
	if b.empty() {
		return false
	}
	at, n := t.span(b, h)
	if at = t.match(at, n, key); at < 0 {
		return false
	}
	p := t.mem[at : at+t.pairBytes]
	for j := range p {
		p[j] = 0xFF
	}
	t.pairs--
	if b = b.plus(-1); b.pairs() == 0 {
		t.give(b.page(), b.log2())
		b = 0
	}
	t.setBucket(i, b)
	return true
}
