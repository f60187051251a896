package isa

import (
	"fmt"
	"strconv"
)

var registerNames = func() (n [NumRegs]string) {
	for i := range n {
		n[i] = "%r" + strconv.Itoa(i)
	}
	n[PC], n[SP], n[FP], n[RV], n[10], n[11], n[RCA] = "%pc", "%sp", "%fp", "%rv", "%rr1", "%rr2", "%rca"
	return n
}()

// RegisterName is a register's name as the assembler has it, r 0 to 31.
func RegisterName(r int) string { return registerNames[r] }

var opNames = [...]string{"add", "addc", "sub", "subb", "and", "or", "xor", "sh", "sha"}

func (o Op) String() string { return opNames[o] }

var condNames = [...]string{"t", "f", "ugt", "ule", "ult", "uge", "ne", "eq", "vc", "vs", "pl", "mi", "ge", "lt", "gt", "le"}

func (c Cond) String() string { return condNames[c] }

func hex(v uint32) string { return "0x" + strconv.FormatUint(uint64(v), 16) }

func signedHex(v uint32) string {
	if int32(v) < 0 {
		return "-" + hex(-v)
	}
	return hex(v)
}

// String is the instruction as llvm-objdump prints it, without the symbol that
// objdump adds behind a branch: mnemonic, tab, operands.
func (i Instr) String() string {
	rd, rs1, rs2 := registerNames[i.Rd], registerNames[i.Rs1], registerNames[i.Rs2]
	f := ""
	if i.SetFlags {
		f = ".f"
	}
	switch i.Kind {
	case Nop:
		return "nop"
	case Log:
		return "log_" + strconv.Itoa(int(i.Imm))
	case ALUImm:
		switch {
		case i.Op >= ShiftLogical:
			return fmt.Sprintf("%s%s\t%s, %s, %s", i.Op, f, rs1, signedHex(i.Imm), rd)
		case !i.SetFlags && (i.Op == Add && i.Rs1 == Zero || i.Op == And && i.Rs1 == Ones):
			return fmt.Sprintf("mov\t%s, %s", hex(i.Imm), rd)
		}
		return fmt.Sprintf("%s%s\t%s, %s, %s", i.Op, f, rs1, hex(i.Imm), rd)
	case ALUReg:
		if i.Op == Or && i.Rd == PC && !i.SetFlags {
			// LLVM's indirect branches, which it writes with "add" although
			// they are encoded as "or".
			if i.Rs2 == Zero {
				return fmt.Sprintf("b%s\t%s", i.Cond, rs1)
			}
			return fmt.Sprintf("b%s\t%s add %s", i.Cond, rs1, rs2)
		}
		if i.Cond != Always {
			f += "." + i.Cond.String()
		} else if i.Op == Add && i.Rs2 == Zero && !i.SetFlags {
			return fmt.Sprintf("mov\t%s, %s", rs1, rd)
		}
		return fmt.Sprintf("%s%s\t%s, %s, %s", i.Op, f, rs1, rs2, rd)
	case Select:
		return fmt.Sprintf("sel.%s %s, %s, %s", i.Cond, rs1, rs2, rd)
	case Load, LoadIndex:
		u := ""
		if i.ZeroExtend {
			u = "u"
		}
		s := fmt.Sprintf("%sld%s\t%s, %s", u, i.width(), i.address(), rd)
		if i.Word == 0x8116FFFC {
			s += " ! return"
		}
		return s
	case Store, StoreIndex:
		return fmt.Sprintf("st%s\t%s, %s", i.width(), rd, i.address())
	case MoveImm:
		return fmt.Sprintf("mov\t%s, %s", hex(i.Imm), rd)
	case PopCount:
		return fmt.Sprintf("popc\t%s, %s", rs1, rd)
	case LeadingZeros:
		return fmt.Sprintf("leadz\t%s, %s", rs1, rd)
	case TrailingZeros:
		return fmt.Sprintf("trailz\t%s, %s", rs1, rd)
	case Branch:
		return fmt.Sprintf("b%s\t%s", i.Cond, hex(i.Imm))
	case BranchRelative:
		return fmt.Sprintf("b%s.r\t%s", i.Cond, hex(i.Imm&0xFFFF))
	case SetCond:
		return fmt.Sprintf("s%s\t%s", i.Cond, rs1)
	}
	return "<unknown>"
}

func (i *Instr) width() string {
	switch i.Bytes {
	case 1:
		return ".b"
	case 2:
		return ".h"
	}
	return ""
}

func (i *Instr) address() string {
	base := registerNames[i.Rs1]
	if i.Kind == LoadIndex || i.Kind == StoreIndex {
		switch i.Mode {
		case Post:
			return fmt.Sprintf("[%s* %s %s]", base, i.Op, registerNames[i.Rs2])
		case Pre:
			return fmt.Sprintf("[*%s %s %s]", base, i.Op, registerNames[i.Rs2])
		case Direct:
			return fmt.Sprintf("[%s %s %s]", base, i.Op, registerNames[Zero])
		}
		return fmt.Sprintf("[%s %s %s]", base, i.Op, registerNames[i.Rs2])
	}
	step := int32(i.Imm)
	up, down := step == int32(i.Bytes), step == -int32(i.Bytes)
	switch i.Mode {
	case Absolute:
		return "[" + hex(i.Imm) + "]"
	case Direct:
		return "0[" + base + "]"
	case Post:
		switch {
		case up:
			return "[" + base + "++]"
		case down:
			return "[" + base + "--]"
		}
		return fmt.Sprintf("%d[%s*]", step, base)
	case Pre:
		switch {
		case up:
			return "[++" + base + "]"
		case down:
			return "[--" + base + "]"
		}
		return fmt.Sprintf("%d[*%s]", step, base)
	}
	return fmt.Sprintf("%d[%s]", step, base)
}
