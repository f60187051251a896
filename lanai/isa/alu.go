package isa

import (
	"encoding/binary"
	mathbits "math/bits"
)

func loadWord(mem []byte, addr uint32) uint32 { return binary.BigEndian.Uint32(mem[addr:]) }

func storeWord(mem []byte, addr, v uint32) { binary.BigEndian.PutUint32(mem[addr:], v) }

// condTable has a bit for each setting of the flags, N Z C V from the top, in
// which a condition holds.
var condTable = func() (t [16]uint16) {
	for f := range 16 {
		n, z, c, v := f&8 != 0, f&4 != 0, f&2 != 0, f&1 != 0
		for k, holds := range [...]bool{true, c && !z, !c, !z, !v, !n, n == v, n == v && !z} {
			if holds {
				t[2*k] |= 1 << f
			} else {
				t[2*k+1] |= 1 << f
			}
		}
	}
	return t
}()

// flags packs the flags: N by the result's sign, Z by its being 0.
func flags(nz, cf, vf uint32) uint32 {
	f := nz>>31<<3 | cf<<1 | vf
	if nz == 0 {
		f |= 4
	}
	return f
}

func holds(cond uint8, nz, cf, vf uint32) bool {
	return condTable[cond&15]>>flags(nz, cf, vf)&1 != 0
}

// adder is a + b + carry in, with carry and overflow. Subtractions give it the
// complement of what they subtract, so that carry means no borrow.
func adder(a, b, in uint32) (sum, carry, overflow uint32) {
	sum, carry = mathbits.Add32(a, b, in)
	return sum, carry, (^(a ^ b) & (a ^ sum)) >> 31
}

// shift is a logical shift by a signed amount, positive to the left. Amounts
// beyond 31 shift everything out (chosen; the assembler allows none).
func shift(a, by uint32) uint32 {
	if n := int32(by); n < 0 {
		return a >> uint32(-n)
	}
	return a << by
}

func shiftArithmetic(a, by uint32) uint32 {
	if n := int32(by); n < 0 {
		return uint32(int32(a) >> uint32(-n))
	}
	return a << by
}

// shiftCarry is what a shift leaves in C: the last bit shifted out on the
// left, 0 after a right shift.
func shiftCarry(a, by uint32) uint32 {
	if n := int32(by); n > 0 && n <= 32 {
		return a >> (32 - uint32(n)) & 1
	}
	return 0
}

// combine is an operation without flags, for the address of an RRM access.
func combine(op Op, a, b, cf uint32) uint32 {
	switch op {
	case Add:
		return a + b
	case AddCarry:
		return a + b + cf
	case Sub:
		return a - b
	case SubBorrow:
		return a + ^b + cf
	case And:
		return a & b
	case Or:
		return a | b
	case Xor:
		return a ^ b
	case ShiftLogical:
		return shift(a, b)
	}
	return shiftArithmetic(a, b)
}

// result is what an instruction of the ALU makes of its operands. It sets the
// flags.
func (c *CPU) result(u *op) uint32 {
	a, b := c.reg[u.ra&63], c.reg[u.rb&63]|u.imm
	switch u.x {
	case xAdd, xAddC, xSub, xSubB, xAnd, xOr, xXor, xShift, xShiftA:
		return combine(Add+Op(u.x-xAdd), a, b, c.cf)
	case xAddF:
		c.nz, c.cf, c.vf = adder(a, b, 0)
	case xAddCF:
		c.nz, c.cf, c.vf = adder(a, b, c.cf)
	case xSubF:
		c.nz, c.cf, c.vf = adder(a, ^b, 1)
	case xSubBF:
		c.nz, c.cf, c.vf = adder(a, ^b, c.cf)
	case xAndF:
		c.nz, c.cf, c.vf = a&b, 0, 0
	case xOrF:
		c.nz, c.cf, c.vf = a|b, 0, 0
	case xXorF:
		c.nz, c.cf, c.vf = a^b, 0, 0
	case xShiftF:
		c.nz, c.cf, c.vf = shift(a, b), shiftCarry(a, b), 0
	case xShiftAF:
		c.nz, c.cf, c.vf = shiftArithmetic(a, b), shiftCarry(a, b), 0
	case xSelect:
		if holds(u.cond, c.nz, c.cf, c.vf) {
			return a
		}
		return c.reg[u.rb&63]
	case xCount:
		return countBits(Kind(u.sub), a)
	case xSetCond:
		if holds(u.cond, c.nz, c.cf, c.vf) {
			return 1
		}
		return 0
	}
	return c.nz
}

func countBits(kind Kind, v uint32) uint32 {
	switch kind {
	case PopCount:
		return uint32(mathbits.OnesCount32(v))
	case LeadingZeros:
		return uint32(mathbits.LeadingZeros32(v))
	}
	return uint32(mathbits.TrailingZeros32(v))
}
