package ilp

import (
	"encoding/binary"
	"hash/crc32"
	"math/bits"
)

//go:generate go test -run TestSyntheticLoopsAreCurrent -update

// The loops below are what is timed, one a function and one a chain. Each works
// on whole blocks and ignores what is left over. They load little-endian words,
// one plain load on common processors, and compute with the number of
// instructions that the function's parameters state, so that measurement and
// model speak of the same work.

// swapWord turns the bytes of a word around: two rotations, two masks, one or.
func swapWord(x uint32) uint32 {
	return bits.RotateLeft32(x, 8)&0x00ff00ff | bits.RotateLeft32(x, -8)&0xff00ff00
}

// The two constants of the pseudo-encryption, chosen: fractions of the golden
// ratio and of the square root of 2.
const (
	pesKey0 = 0x9e3779b9
	pesKey1 = 0x6a09e667
)

// encryptPair is the pseudo-encryption of two words: six instructions, two
// constants, no state, invertible. It hides nothing.
func encryptPair(a, b uint32) (uint32, uint32) {
	a ^= pesKey0
	b += pesKey1
	a += b
	b ^= a
	a ^= pesKey1
	b += pesKey0
	return a, b
}

// decryptPair undoes encryptPair.
func decryptPair(a, b uint32) (uint32, uint32) {
	b -= pesKey0
	a ^= pesKey1
	b ^= a
	a -= b
	b -= pesKey1
	a ^= pesKey0
	return a, b
}

// sumWord adds a word's two halves: mask, shift, two additions. The sum is not
// folded; 64 bits hold that of 2^47 words.
func sumWord(sum uint64, x uint32) uint64 {
	return sum + uint64(x&0xffff) + uint64(x>>16)
}

// foldSum makes the Internet checksum of little-endian sums (RFC 1071 §2: the
// sum may be formed in either byte order and swapped at the end).
func foldSum(sum uint64) uint16 {
	for sum > 0xffff {
		sum = sum&0xffff + sum>>16
	}
	return bits.ReverseBytes16(^uint16(sum))
}

// crcWord feeds the four bytes of a word into a CRC-32.
func crcWord(t *crc32.Table, crc, x uint32) uint32 {
	crc = t[byte(crc)^byte(x)] ^ crc>>8
	crc = t[byte(crc)^byte(x>>8)] ^ crc>>8
	crc = t[byte(crc)^byte(x>>16)] ^ crc>>8
	return t[byte(crc)^byte(x>>24)] ^ crc>>8
}

func swapLoop(p []byte) {
	for ; len(p) >= 4; p = p[4:] {
		binary.LittleEndian.PutUint32(p, swapWord(binary.LittleEndian.Uint32(p)))
	}
}

func encryptLoop(p []byte) {
	for ; len(p) >= 8; p = p[8:] {
		a, b := encryptPair(binary.LittleEndian.Uint32(p), binary.LittleEndian.Uint32(p[4:]))
		binary.LittleEndian.PutUint32(p, a)
		binary.LittleEndian.PutUint32(p[4:], b)
	}
}

func decryptLoop(p []byte) {
	for ; len(p) >= 8; p = p[8:] {
		a, b := decryptPair(binary.LittleEndian.Uint32(p), binary.LittleEndian.Uint32(p[4:]))
		binary.LittleEndian.PutUint32(p, a)
		binary.LittleEndian.PutUint32(p[4:], b)
	}
}

func sumLoop(p []byte, sum uint64) uint64 {
	for ; len(p) >= 4; p = p[4:] {
		sum = sumWord(sum, binary.LittleEndian.Uint32(p))
	}
	return sum
}

func crcLoop(p []byte, crc uint32) uint32 {
	t := crc32.IEEETable
	for ; len(p) >= 4; p = p[4:] {
		crc = crcWord(t, crc, binary.LittleEndian.Uint32(p))
	}
	return crc
}

// The integrated loops. A block is the least common multiple of the functions'
// blocks; data stays in variables from one function to the next.

func swapEncryptSumLoop(p []byte, sum uint64) uint64 {
	for ; len(p) >= 8; p = p[8:] {
		a, b := encryptPair(swapWord(binary.LittleEndian.Uint32(p)), swapWord(binary.LittleEndian.Uint32(p[4:])))
		sum = sumWord(sumWord(sum, a), b)
		binary.LittleEndian.PutUint32(p, a)
		binary.LittleEndian.PutUint32(p[4:], b)
	}
	return sum
}

func swapEncryptCRCLoop(p []byte, crc uint32) uint32 {
	t := crc32.IEEETable
	for ; len(p) >= 8; p = p[8:] {
		a, b := encryptPair(swapWord(binary.LittleEndian.Uint32(p)), swapWord(binary.LittleEndian.Uint32(p[4:])))
		crc = crcWord(t, crcWord(t, crc, a), b)
		binary.LittleEndian.PutUint32(p, a)
		binary.LittleEndian.PutUint32(p[4:], b)
	}
	return crc
}

func swapSumLoop(p []byte, sum uint64) uint64 {
	for ; len(p) >= 4; p = p[4:] {
		x := swapWord(binary.LittleEndian.Uint32(p))
		sum = sumWord(sum, x)
		binary.LittleEndian.PutUint32(p, x)
	}
	return sum
}

func encryptSumLoop(p []byte, sum uint64) uint64 {
	for ; len(p) >= 8; p = p[8:] {
		a, b := encryptPair(binary.LittleEndian.Uint32(p), binary.LittleEndian.Uint32(p[4:]))
		sum = sumWord(sumWord(sum, a), b)
		binary.LittleEndian.PutUint32(p, a)
		binary.LittleEndian.PutUint32(p[4:], b)
	}
	return sum
}

func swapEncryptLoop(p []byte) {
	for ; len(p) >= 8; p = p[8:] {
		a, b := encryptPair(swapWord(binary.LittleEndian.Uint32(p)), swapWord(binary.LittleEndian.Uint32(p[4:])))
		binary.LittleEndian.PutUint32(p, a)
		binary.LittleEndian.PutUint32(p[4:], b)
	}
}
