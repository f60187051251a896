package bihash

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math/bits"
)

// Hash names a hash function over keys.
type Hash string

// The hash functions.
const (
	// CRC32C is the Castagnoli CRC of the key, 8 bytes a step, from a register
	// of 0 and without the final complement, as the crc32 instructions of x86
	// and Arm leave it. 32 bits.
	CRC32C Hash = "crc32c"
	// Multiplicative multiplies each 8 bytes of the key by an odd constant near
	// 2^64 over the golden ratio and folds the two halves of the product into
	// one (chosen, after Knuth's multiplicative hashing). 64 bits.
	Multiplicative Hash = "multiplicative"
)

// Hashes are the hash functions, in the order of their explanation.
func Hashes() []Hash { return []Hash{CRC32C, Multiplicative} }

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// golden is the odd number next to 2^64/φ.
const golden = 0x9E3779B97F4A7C15

// Sum hashes a key. A name that is not among Hashes counts as CRC32C.
func (h Hash) Sum(key []byte) uint64 {
	if h == Multiplicative {
		return multiply(key)
	}
	// Update complements the register on the way in and out; undone here.
	return uint64(^crc32.Update(^uint32(0), castagnoli, key))
}

func multiply(key []byte) uint64 {
	var x uint64
	for ; len(key) >= 8; key = key[8:] {
		x = step(x, key)
	}
	return x
}

func step(x uint64, key []byte) uint64 {
	high, low := bits.Mul64(bits.RotateLeft64(x, 29)^binary.LittleEndian.Uint64(key), golden)
	return high ^ low
}

// width is how many bits of a hash differ between keys.
func (h Hash) width() int {
	if h == Multiplicative {
		return 64
	}
	return 32
}

func (h Hash) validate() error {
	if h == CRC32C || h == Multiplicative {
		return nil
	}
	return fmt.Errorf("%w: hash %q, want one of %q", ErrSpec, h, Hashes())
}
