package ilp

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math/bits"
	"strconv"
	"strings"
)

// Manipulator is a data-manipulation function at work on real bytes. It is
// used for one message at a time: Reset, Blocks as often as needed, Tail once.
// None of its methods allocates.
type Manipulator interface {
	// Function tells the parameters that the model computes with.
	Function() Function
	// Reset begins a message: state takes its initial value.
	Reset()
	// Blocks transforms p in place; len(p) is a multiple of Function().In.
	Blocks(p []byte)
	// Tail ends a message with the bytes that fill no block, fewer than
	// Function().In; p may be empty. Each function says what it does to them.
	Tail(p []byte)
	// Result is what a function that produces no data has computed, once Tail
	// has been called; ok is false for those that produce data.
	Result() (value uint32, ok bool)
}

// ByteSwap turns each 4-byte word around. A tail of 1 to 3 bytes is turned
// around as it stands.
type ByteSwap struct{}

// Function is BSWAP.
func (ByteSwap) Function() Function { return BSWAP() }

// Reset does nothing: there is no state.
func (ByteSwap) Reset() {}

// Blocks swaps whole words.
func (ByteSwap) Blocks(p []byte) { swapLoop(p) }

// Tail swaps what is left.
func (ByteSwap) Tail(p []byte) {
	for i, j := 0, len(p)-1; i < j; i, j = i+1, j-1 {
		p[i], p[j] = p[j], p[i]
	}
}

// Result is none.
func (ByteSwap) Result() (uint32, bool) { return 0, false }

// PseudoEncryption scrambles 8-byte blocks, after the function that Abbott and
// Peterson used: no state, two constants, six instructions a block. The mixing
// itself is ours. A tail of 1 to 7 bytes is exclusive-ored with the key's bytes.
type PseudoEncryption struct{}

// Function is PES.
func (PseudoEncryption) Function() Function { return PES() }

// Reset does nothing: there is no state.
func (PseudoEncryption) Reset() {}

// Blocks encrypts whole blocks.
func (PseudoEncryption) Blocks(p []byte) { encryptLoop(p) }

// Tail encrypts what is left.
func (PseudoEncryption) Tail(p []byte) { encryptTail(p) }

// Result is none.
func (PseudoEncryption) Result() (uint32, bool) { return 0, false }

// Decrypt undoes the pseudo-encryption of a whole message.
func (PseudoEncryption) Decrypt(p []byte) {
	whole := len(p) &^ 7
	decryptLoop(p[:whole])
	encryptTail(p[whole:])
}

func encryptTail(p []byte) {
	const key = uint64(pesKey1)<<32 | pesKey0
	for i := range p {
		p[i] ^= byte(key >> (8 * (i & 7)))
	}
}

// Checksum is the Internet checksum (RFC 1071) over the message. An odd last
// byte counts as if a zero followed.
type Checksum struct{ sum uint64 }

// Function is CKSUM.
func (*Checksum) Function() Function { return CKSUM() }

// Reset clears the sum.
func (c *Checksum) Reset() { c.sum = 0 }

// Blocks adds whole words.
func (c *Checksum) Blocks(p []byte) { c.sum = sumLoop(p, c.sum) }

// Tail adds what is left.
func (c *Checksum) Tail(p []byte) {
	var last [4]byte
	copy(last[:], p)
	c.sum = sumWord(c.sum, binary.LittleEndian.Uint32(last[:]))
}

// Result is the checksum as it stands in a header field: complemented, in
// network order.
func (c *Checksum) Result() (uint32, bool) { return uint32(foldSum(c.sum)), true }

// CRC is the CRC-32 of Ethernet (IEEE 802.3) over the message.
type CRC struct{ crc uint32 }

// Function is CRC32.
func (*CRC) Function() Function { return CRC32() }

// Reset sets the register to all ones.
func (c *CRC) Reset() { c.crc = ^uint32(0) }

// Blocks feeds whole words.
func (c *CRC) Blocks(p []byte) { c.crc = crcLoop(p, c.crc) }

// Tail feeds what is left.
func (c *CRC) Tail(p []byte) {
	for _, b := range p {
		c.crc = crc32.IEEETable[byte(c.crc)^b] ^ c.crc>>8
	}
}

// Result is the complemented register, as hash/crc32 gives it.
func (c *CRC) Result() (uint32, bool) { return ^c.crc, true }

// MaxSyntheticState bounds the state of a Synthetic, in words.
const MaxSyntheticState = 64

// Synthetic is a function without a purpose, after Ahlgren §5.2: n words of
// state, 4-byte blocks, 10 instructions a block (n + 1 where that is more). Each
// state word takes in each word of data; the data is stirred by constants and
// by the first state word. A tail of 1 to 3 bytes is exclusive-ored with the
// last data that the first state word holds, and left alone without state.
type Synthetic struct {
	function Function
	initial  uint32
	state    []uint32
}

// NewSynthetic makes a synthetic function of 0 to MaxSyntheticState state words.
// seed sets the initial state, so that functions in a chain differ.
func NewSynthetic(state int, seed uint32) (*Synthetic, error) {
	if state < 0 || state > MaxSyntheticState {
		return nil, fmt.Errorf("synthetic function: state is %d words, want 0 to %d", state, MaxSyntheticState)
	}
	s := &Synthetic{
		function: SyntheticFunction("synthetic:"+strconv.Itoa(state), float64(state), float64(max(syntheticInstructions, state+1)), 4),
		initial:  seed,
		state:    make([]uint32, state),
	}
	s.Reset()
	return s, nil
}

// syntheticInstructions is what Ahlgren's synthetic functions compute a block
// (§5.2).
const syntheticInstructions = 10

// Function tells the parameters.
func (s *Synthetic) Function() Function { return s.function }

// Reset sets the state to words that follow from the seed.
func (s *Synthetic) Reset() { seedState(s.state, s.initial) }

func seedState(state []uint32, seed uint32) {
	for i := range state {
		state[i] = (seed + uint32(i) + 1) * pesKey0
	}
}

// Blocks transforms whole words.
func (s *Synthetic) Blocks(p []byte) {
	for ; len(p) >= 4; p = p[4:] {
		x := binary.LittleEndian.Uint32(p)
		binary.LittleEndian.PutUint32(p, s.word(x))
	}
}

// word is the slow, general form of the generated loops.
func (s *Synthetic) word(x uint32) uint32 {
	for j := range s.state {
		switch j % 3 {
		case 0:
			s.state[j] += x
		case 1:
			s.state[j] ^= x
		default:
			s.state[j] -= x
		}
	}
	stirs := syntheticInstructions - len(s.state)
	if len(s.state) > 0 {
		stirs--
	}
	for k := 0; k < stirs; k++ {
		switch k % 3 {
		case 0:
			x = bits.RotateLeft32(x, 5)
		case 1:
			x ^= pesKey0
		default:
			x += pesKey1
		}
	}
	if len(s.state) > 0 {
		x ^= s.state[0]
	}
	return x
}

// Tail stirs what is left.
func (s *Synthetic) Tail(p []byte) {
	if len(s.state) == 0 {
		return
	}
	for i := range p {
		p[i] ^= byte(s.state[0] >> (8 * (i & 3)))
	}
}

// Result is none.
func (s *Synthetic) Result() (uint32, bool) { return 0, false }

// NewManipulator makes a function at work by name: bswap, pes, cksum, crc32, or
// synthetic:N with N state words. place is its position in a chain and seeds
// synthetic state.
func NewManipulator(name string, place int) (Manipulator, error) {
	switch name {
	case "bswap":
		return ByteSwap{}, nil
	case "pes":
		return PseudoEncryption{}, nil
	case "cksum":
		return &Checksum{}, nil
	case "crc32":
		return &CRC{crc: ^uint32(0)}, nil
	}
	if n, found := strings.CutPrefix(name, "synthetic:"); found {
		words, err := strconv.Atoi(n)
		if err != nil {
			return nil, fmt.Errorf("function %q: %q is no number of state words", name, n)
		}
		return NewSynthetic(words, uint32(place))
	}
	return nil, unknown("manipulating function", name, []string{"bswap", "pes", "cksum", "crc32", "synthetic:N"})
}
