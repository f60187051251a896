package lanai

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"sort"
	"strings"

	"spinesim/lanai/isa"
)

// Errors that SRAM's methods wrap.
var (
	ErrOutside   = errors.New("outside the SRAM")
	ErrUnaligned = errors.New("not aligned")
	ErrNoRoom    = errors.New("does not fit in the SRAM")
)

// SRAM is the card's memory: big-endian words of 32 bits, and an allocator
// whose map says who holds what.
type SRAM struct {
	b      []byte
	blocks []Block    // by address, no two overlap
	cores  []*isa.CPU // that execute what is here
}

// Block is a piece of SRAM and who holds it.
type Block struct {
	Addr, Bytes uint32
	Owner       string // "" in a free block of Map
}

// NewSRAM returns n zero bytes of memory, n a multiple of 4.
func NewSRAM(n uint32) *SRAM { return &SRAM{b: make([]byte, n&^3)} }

// Bytes is the memory's size.
func (s *SRAM) Bytes() uint32 { return uint32(len(s.b)) }

// Contains tells whether the n bytes from addr on exist.
func (s *SRAM) Contains(addr uint32, n int) bool {
	return n >= 0 && uint64(addr)+uint64(n) <= uint64(len(s.b))
}

func (s *SRAM) check(what string, addr uint32, n int, align uint32) error {
	if !s.Contains(addr, n) {
		return fmt.Errorf("lanai: %s of %d bytes at %#x, SRAM has %d: %w", what, n, addr, len(s.b), ErrOutside)
	}
	if addr%align != 0 {
		return fmt.Errorf("lanai: %s of %d bytes at %#x: %w to %d", what, n, addr, ErrUnaligned, align)
	}
	return nil
}

// Word reads the 32-bit word at addr. The error wraps ErrOutside or
// ErrUnaligned.
func (s *SRAM) Word(addr uint32) (uint32, error) {
	if err := s.check("read", addr, 4, 4); err != nil {
		return 0, err
	}
	return binary.BigEndian.Uint32(s.b[addr:]), nil
}

// SetWord writes the 32-bit word at addr, with errors as Word has them.
func (s *SRAM) SetWord(addr, v uint32) error {
	if err := s.check("write", addr, 4, 4); err != nil {
		return err
	}
	binary.BigEndian.PutUint32(s.b[addr:], v)
	s.wrote(addr, 4)
	return nil
}

// Half reads the 16-bit half-word at addr, with errors as Word has them.
func (s *SRAM) Half(addr uint32) (uint16, error) {
	if err := s.check("read", addr, 2, 2); err != nil {
		return 0, err
	}
	return binary.BigEndian.Uint16(s.b[addr:]), nil
}

// SetHalf writes the 16-bit half-word at addr, with errors as Word has them.
func (s *SRAM) SetHalf(addr uint32, v uint16) error {
	if err := s.check("write", addr, 2, 2); err != nil {
		return err
	}
	binary.BigEndian.PutUint16(s.b[addr:], v)
	s.wrote(addr, 2)
	return nil
}

// Byte reads the byte at addr. The error wraps ErrOutside.
func (s *SRAM) Byte(addr uint32) (byte, error) {
	if err := s.check("read", addr, 1, 1); err != nil {
		return 0, err
	}
	return s.b[addr], nil
}

// SetByte writes the byte at addr. The error wraps ErrOutside.
func (s *SRAM) SetByte(addr uint32, v byte) error {
	if err := s.check("write", addr, 1, 1); err != nil {
		return err
	}
	s.b[addr] = v
	s.wrote(addr, 1)
	return nil
}

// executes makes a processor be told of writes.
func (s *SRAM) executes(core *isa.CPU) {
	for _, c := range s.cores {
		if c == core {
			return
		}
	}
	s.cores = append(s.cores, core)
	core.Told = true
}

// wrote tells processors that n bytes from addr on are written.
func (s *SRAM) wrote(addr uint32, n int) {
	for _, c := range s.cores {
		c.Written(addr, n)
	}
}

// Slice returns the n bytes from addr on, shared with the memory. The error
// wraps ErrOutside. A processor that executes has to be told of instructions
// that are written in this way: isa.CPU.Written.
func (s *SRAM) Slice(addr uint32, n int) ([]byte, error) {
	if err := s.check("view", addr, n, 1); err != nil {
		return nil, err
	}
	return s.View(addr, n), nil
}

// View is Slice for an owner who knows that the bytes exist: it panics, as a
// slice expression does, when they do not.
func (s *SRAM) View(addr uint32, n int) []byte {
	end := addr + uint32(n)
	return s.b[addr:end:end]
}

// NoRoomError reports an allocation that does not fit; it wraps ErrNoRoom.
type NoRoomError struct {
	Owner   string
	Bytes   uint32 // asked for
	Align   uint32
	Free    uint32 // free in all
	Largest uint32 // largest free piece so aligned
	Size    uint32 // of the SRAM
}

func (e *NoRoomError) Error() string {
	return fmt.Sprintf("lanai: %d bytes for %q (aligned to %d): %v: %d of %d bytes are free, the largest piece has %d",
		e.Bytes, e.Owner, e.Align, ErrNoRoom, e.Free, e.Size, e.Largest)
}

func (e *NoRoomError) Unwrap() error { return ErrNoRoom }

// Alloc takes n bytes, n ≥ 1, aligned to a power of two, from the lowest place
// that has them, and returns their address. Owner names them in the map and
// must not be empty; one owner may hold several blocks. When nothing is large
// enough the error is a *NoRoomError.
func (s *SRAM) Alloc(owner string, n, align uint32) (uint32, error) {
	if owner == "" || n == 0 || bits.OnesCount32(align) != 1 {
		return 0, fmt.Errorf("lanai: allocation of %d bytes for %q aligned to %d: needs an owner, a size and a power of two", n, owner, align)
	}
	var at, free, largest uint64
	for i := 0; ; i++ {
		end := uint64(len(s.b))
		if i < len(s.blocks) {
			end = uint64(s.blocks[i].Addr)
		}
		free += end - at
		from := (at + uint64(align) - 1) &^ (uint64(align) - 1)
		if from+uint64(n) <= end {
			s.blocks = append(s.blocks, Block{})
			copy(s.blocks[i+1:], s.blocks[i:])
			s.blocks[i] = Block{Addr: uint32(from), Bytes: n, Owner: owner}
			return uint32(from), nil
		}
		if from < end {
			largest = max(largest, end-from)
		}
		if i == len(s.blocks) {
			break
		}
		at = uint64(s.blocks[i].Addr) + uint64(s.blocks[i].Bytes)
	}
	return 0, &NoRoomError{Owner: owner, Bytes: n, Align: align, Free: uint32(free), Largest: uint32(largest), Size: s.Bytes()}
}

// Free gives back the block that begins at addr.
func (s *SRAM) Free(addr uint32) error {
	i := sort.Search(len(s.blocks), func(i int) bool { return s.blocks[i].Addr >= addr })
	if i == len(s.blocks) || s.blocks[i].Addr != addr {
		return fmt.Errorf("lanai: free of %#x: no block begins there", addr)
	}
	s.blocks = append(s.blocks[:i], s.blocks[i+1:]...)
	return nil
}

// Left is the number of bytes that nobody holds.
func (s *SRAM) Left() uint32 {
	n := s.Bytes()
	for _, b := range s.blocks {
		n -= b.Bytes
	}
	return n
}

// Held is the number of bytes that owner holds.
func (s *SRAM) Held(owner string) uint32 {
	var n uint32
	for _, b := range s.blocks {
		if b.Owner == owner {
			n += b.Bytes
		}
	}
	return n
}

// Map lists the memory from address 0 on, free pieces included.
func (s *SRAM) Map() []Block {
	var m []Block
	var at uint32
	for _, b := range s.blocks {
		if b.Addr > at {
			m = append(m, Block{Addr: at, Bytes: b.Addr - at})
		}
		m = append(m, b)
		at = b.Addr + b.Bytes
	}
	if at < s.Bytes() {
		m = append(m, Block{Addr: at, Bytes: s.Bytes() - at})
	}
	return m
}

// WriteMap prints the map, and how much is left, as a table.
func (s *SRAM) WriteMap(w io.Writer) error {
	var out strings.Builder
	fmt.Fprintf(&out, "%10s %10s %10s  %s\n", "from", "to", "bytes", "holder")
	for _, b := range s.Map() {
		owner := b.Owner
		if owner == "" {
			owner = "(free)"
		}
		fmt.Fprintf(&out, "0x%08x 0x%08x %10d  %s\n", b.Addr, b.Addr+b.Bytes-1, b.Bytes, owner)
	}
	fmt.Fprintf(&out, "%d of %d bytes left\n", s.Left(), s.Bytes())
	if _, err := io.WriteString(w, out.String()); err != nil {
		return fmt.Errorf("lanai: writing the SRAM map: %w", err)
	}
	return nil
}
