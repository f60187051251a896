package loader

import (
	"encoding/binary"
	"errors"
	"testing"

	"spinesim/lanai/isa"
)

func TestApply(t *testing.T) {
	for _, c := range []struct {
		name    string
		kind    relocKind
		word, v uint32
		want    uint32
		text    string // of the result, where it is an instruction
		err     error
	}{
		{"21, small", reloc21, 0xF1800000, 0x1234, 0xF1801234, "ld\t[0x1234], %r3", nil},
		{"21, large", reloc21, 0xF1820000, 0x1FABCD, 0xF1FEABCD, "mov\t0x1fabcd, %r3", nil},
		{"21 replaces", reloc21, 0xF1FEFFFF, 0, 0xF1820000, "mov\t0x0, %r3", nil},
		{"21 too large", reloc21, 0xF1820000, 0x200000, 0, "", ErrRange},
		{"21_F", reloc21F, 0xF1810000, 0x1FABCF, 0xF1FDABCC, "st\t%r3, [0x1fabcc]", nil},
		{"25", reloc25, 0xE6000001, 0x1234, 0xE6001235, "beq\t0x1234", nil},
		{"25, largest", reloc25, 0xE0000000, 0x1FFFFFC, 0xE1FFFFFC, "bt\t0x1fffffc", nil},
		{"25 misaligned", reloc25, 0xE0000000, 0x1236, 0, "", ErrRange},
		{"25 too large", reloc25, 0xE0000000, 0x2000000, 0, "", ErrRange},
		{"32", reloc32, 0x11111111, 0xDEADBEEF, 0xDEADBEEF, "", nil},
		{"HI16", relocHigh, 0x01810000, 0xDEADBEEF, 0x0181DEAD, "mov\t0xdead0000, %r3", nil},
		{"LO16", relocLow, 0x518C0000, 0xDEADBEEF, 0x518CBEEF, "or\t%r3, 0xbeef, %r3", nil},
	} {
		b := binary.BigEndian.AppendUint32(nil, c.word)
		err := c.kind.apply(b, c.v)
		if !errors.Is(err, c.err) || err != nil && c.err == nil {
			t.Errorf("%s: %v, want %v", c.name, err, c.err)
		}
		if err != nil {
			continue
		}
		got := binary.BigEndian.Uint32(b)
		if got != c.want {
			t.Errorf("%s: %#08x, want %#08x", c.name, got, c.want)
		}
		if s := isa.Decode(got).String(); c.text != "" && s != c.text {
			t.Errorf("%s: %q, want %q", c.name, s, c.text)
		}
	}
}
