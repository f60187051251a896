package loader

import (
	"encoding/binary"
	"fmt"
)

type relocKind uint8

const (
	relocNone relocKind = iota
	reloc21             // SLS and SLI: bits 20:16 go to 22:18
	reloc21F            // the same for a word's address
	reloc25             // branches
	reloc32
	relocHigh
	relocLow
	numRelocs
)

var relocNames = [numRelocs]string{"R_LANAI_NONE", "R_LANAI_21", "R_LANAI_21_F", "R_LANAI_25", "R_LANAI_32", "R_LANAI_HI16", "R_LANAI_LO16"}

func (k relocKind) String() string { return relocNames[k] }

// apply puts the value v into the word at b.
func (k relocKind) apply(b []byte, v uint32) error {
	w := binary.BigEndian.Uint32(b)
	switch k {
	case reloc21, reloc21F:
		if v>>21 != 0 {
			return fmt.Errorf("%w: %#x does not fit in 21 bits", ErrRange, v)
		}
		if k == reloc21F {
			v &^= 3
		}
		w = w&^0x7CFFFF | v>>16<<18 | v&0xFFFF
	case reloc25:
		if v>>25 != 0 || v&3 != 0 {
			return fmt.Errorf("%w: %#x is no multiple of 4 below 2^25", ErrRange, v)
		}
		w = w&^0x1FFFFFC | v
	case reloc32:
		w = v
	case relocHigh:
		w = w&^0xFFFF | v>>16
	case relocLow:
		w = w&^0xFFFF | v&0xFFFF
	}
	binary.BigEndian.PutUint32(b, w)
	return nil
}
