package loader

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
)

// The fields of an ELF file's header and of a section's, by offset.
const (
	identClass  = 4
	identData   = 5
	headSecAt   = 32
	headProgs   = 44
	headSecSize = 46
	headSecs    = 48
	headBytes   = 52
	secType     = 4
	secFlags    = 8
	secOffset   = 16
	secLength   = 20
	secBytes    = 40
)

// checkHeaders makes sure that what the headers tell of lies in the file, before
// a reader that trusts them allocates for it.
func checkHeaders(b []byte) error {
	switch {
	case len(b) < headBytes || string(b[:4]) != elf.ELFMAG:
		return fmt.Errorf("%w: no ELF file", ErrObject)
	case elf.Class(b[identClass]) != elf.ELFCLASS32 || elf.Data(b[identData]) != elf.ELFDATA2MSB:
		return fmt.Errorf("%w: %v %v, want 32-bit big-endian", ErrMachine, elf.Class(b[identClass]), elf.Data(b[identData]))
	}
	at := uint64(binary.BigEndian.Uint32(b[headSecAt:]))
	each, n := binary.BigEndian.Uint16(b[headSecSize:]), binary.BigEndian.Uint16(b[headSecs:])
	if n == 0 || binary.BigEndian.Uint16(b[headProgs:]) != 0 {
		return fmt.Errorf("%w: want section headers and no program headers", ErrObject)
	}
	if each != secBytes || at+uint64(n)*secBytes > uint64(len(b)) {
		return fmt.Errorf("%w: %d section headers of %d bytes at offset %#x, the file has %d bytes", ErrObject, n, each, at, len(b))
	}
	for i := range uint64(n) {
		h := b[at+i*secBytes:]
		if elf.SectionFlag(binary.BigEndian.Uint32(h[secFlags:]))&elf.SHF_COMPRESSED != 0 {
			return fmt.Errorf("%w: section %d is compressed", ErrObject, i)
		}
		from, size := binary.BigEndian.Uint32(h[secOffset:]), binary.BigEndian.Uint32(h[secLength:])
		if elf.SectionType(binary.BigEndian.Uint32(h[secType:])) != elf.SHT_NOBITS && uint64(from)+uint64(size) > uint64(len(b)) {
			return fmt.Errorf("%w: section %d has %d bytes at offset %#x, the file %d", ErrObject, i, size, from, len(b))
		}
	}
	return nil
}
