package bihash

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"
)

// Errors that this package's functions wrap.
var (
	ErrSpec  = errors.New("bad hash table spec")
	ErrKey   = errors.New("bad key")
	ErrValue = errors.New("bad value")
	ErrFull  = errors.New("hash table is full")
)

// PairsPerPage is how many key-value pairs a page holds: with 8-byte keys a page
// is a cache line of 64 bytes.
const PairsPerPage = 4

// Empty is the value of a place without a pair; no pair can have it.
const Empty = ^uint64(0)

const (
	valueBytes  = 8
	bucketBytes = 8
)

// KeySizes are the lengths of keys there are, in bytes.
func KeySizes() []int { return slices.Clone(keySizes[:]) }

var keySizes = [...]int{8, 16, 24, 40, 48}

// Spec describes a table.
type Spec struct {
	// KeyBytes is the length of a key: 8, 16, 24, 40 or 48.
	KeyBytes int
	// Buckets is their number, a power of two, 1 to 2^24. More of them make
	// pages with few pairs, fewer of them buckets of many pages.
	Buckets int
	// Bytes bounds the memory of bucket words and pages together, up to 1 GiB.
	// It is taken once, and must hold the bucket words and a page at least.
	Bytes int
	Hash  Hash
}

// DefaultSpec is the MAC table that the published figures were measured on:
// 8-byte keys, 65,536 buckets (l2_fwd's, December 2019), CRC32C. The 8 MiB are
// chosen.
func DefaultSpec() Spec { return Spec{KeyBytes: 8, Buckets: 65536, Bytes: 8 << 20, Hash: CRC32C} }

const (
	maxBuckets = 1 << 24
	maxBytes   = 1 << 30
)

// Validate tells what is wrong with the spec; the error wraps ErrSpec.
func (s Spec) Validate() error {
	if !slices.Contains(keySizes[:], s.KeyBytes) {
		return fmt.Errorf("%w: keys of %d bytes, want one of %v", ErrSpec, s.KeyBytes, keySizes)
	}
	if s.Buckets < 1 || s.Buckets > maxBuckets || bits.OnesCount(uint(s.Buckets)) != 1 {
		return fmt.Errorf("%w: %d buckets, want a power of two from 1 to %d", ErrSpec, s.Buckets, maxBuckets)
	}
	if least := s.Buckets*bucketBytes + s.PageBytes(); s.Bytes < least || s.Bytes > maxBytes {
		return fmt.Errorf("%w: memory of %d bytes, want %d (bucket words and a page) to %d", ErrSpec, s.Bytes, least, maxBytes)
	}
	return s.Hash.validate()
}

// PageBytes is the length of a page.
func (s Spec) PageBytes() int { return PairsPerPage * (s.KeyBytes + valueBytes) }
