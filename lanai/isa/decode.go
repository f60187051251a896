package isa

// bits returns v's bits hi … lo.
func bits(v uint32, hi, lo uint) uint32 { return v >> lo & (1<<(hi-lo+1) - 1) }

func signExtend(v uint32, n uint) uint32 { return uint32(int32(v<<(32-n)) >> (32 - n)) }

// Decode takes a word apart. Kind is Undefined for words that are no
// instruction: those that LLVM's disassembler does not know either.
func Decode(word uint32) Instr {
	i := Instr{
		Word: word,
		Rd:   uint8(bits(word, 27, 23)), Rs1: uint8(bits(word, 22, 18)), Rs2: uint8(bits(word, 15, 11)),
	}
	switch top := word >> 28; {
	case top < 8:
		i.immediate(top)
	case top < 10:
		i.Kind = Load
		if top == 9 {
			i.Kind = Store
		}
		i.Bytes = 4
		i.Mode = Mode(bits(word, 17, 16))
		i.Imm = signExtend(word, 16)
	case top < 12:
		i.index(top == 11)
	case top == 12:
		i.register()
	case top == 13:
		i.special()
	case top == 14:
		i.branch()
	default:
		i.small()
	}
	return i
}

func (i *Instr) immediate(op uint32) {
	switch {
	case i.Word == 1:
		i.Kind = Nop
		return
	case i.Word >= 2 && i.Word <= 6:
		i.Kind, i.Imm = Log, i.Word-2
		return
	}
	i.Kind, i.Op = ALUImm, Op(op)
	i.SetFlags = bits(i.Word, 17, 17) != 0
	high := bits(i.Word, 16, 16) != 0
	imm := i.Word & 0xFFFF
	switch {
	case i.Op == ShiftLogical:
		i.Imm = signExtend(imm, 16)
		if high {
			i.Op = ShiftArithmetic
		}
	case i.Op == And && high:
		i.Imm = imm<<16 | 0xFFFF
	case i.Op == And:
		i.Imm = imm | 0xFFFF0000
	case high:
		i.Imm = imm << 16
	default:
		i.Imm = imm
	}
}

func (i *Instr) index(store bool) {
	yle := i.Word & 7
	i.Op = Op(bits(i.Word, 10, 8))
	if i.Op == ShiftLogical {
		// Of bits 7:3, 11xxx is arithmetic; the disassembler knows no others
		// than xx0xx.
		if bits(i.Word, 5, 5) != 0 {
			return
		}
		if bits(i.Word, 6, 6) != 0 {
			i.Op = ShiftArithmetic
		}
	}
	i.Mode = Mode(bits(i.Word, 17, 16))
	switch yle >> 1 {
	case 0:
		i.Bytes = 2
	case 1:
		i.Bytes = 4
	case 2:
		i.Bytes = 1
	default:
		return
	}
	i.ZeroExtend = yle&1 != 0
	switch {
	case !store:
		i.Kind = LoadIndex
	case !i.ZeroExtend:
		i.Kind = StoreIndex
	}
}

func (i *Instr) register() {
	i.Op = Op(bits(i.Word, 10, 8))
	i.Cond = Cond(bits(i.Word, 2, 0)<<1 | bits(i.Word, 16, 16))
	i.SetFlags = bits(i.Word, 17, 17) != 0
	switch jjjjj := bits(i.Word, 7, 3); {
	case i.Op != ShiftLogical:
		if jjjjj == 0 {
			i.Kind = ALUReg
		}
	case jjjjj == 0b10000:
		i.Kind = ALUReg
	case jjjjj == 0b11000:
		i.Kind, i.Op = ALUReg, ShiftArithmetic
	case jjjjj == 0 && !i.SetFlags:
		i.Kind = Select
	}
}

func (i *Instr) special() {
	if bits(i.Word, 17, 3) != 0 {
		return
	}
	switch i.Word & 7 {
	case 1:
		i.Kind = PopCount
	case 2:
		i.Kind = LeadingZeros
	case 3:
		i.Kind = TrailingZeros
	}
}

func (i *Instr) branch() {
	i.Cond = Cond(bits(i.Word, 27, 25)<<1 | i.Word&1)
	switch {
	case i.Word&2 == 0:
		i.Kind = Branch
		i.Imm = i.Word & 0x1FFFFFC
	case bits(i.Word, 24, 24) != 0:
		if bits(i.Word, 23, 16) == 0 {
			i.Kind = BranchRelative
			i.Imm = signExtend(i.Word&0xFFFC, 16)
		}
	case bits(i.Word, 23, 23) == 0 && bits(i.Word, 17, 2) == 0:
		i.Kind = SetCond
	}
}

func (i *Instr) small() {
	i.Bytes = 4
	far := bits(i.Word, 22, 18)<<16 | i.Word&0xFFFF
	switch bits(i.Word, 17, 16) {
	case 0:
		i.Kind, i.Mode, i.Imm = Load, Absolute, far
	case 1:
		i.Kind, i.Mode, i.Imm = Store, Absolute, far
	case 2:
		i.Kind, i.Imm = MoveImm, far
	default:
		i.Mode = Mode(bits(i.Word, 11, 10))
		i.Imm = signExtend(i.Word, 10)
		i.PartWord = true
		i.Bytes = 2
		if bits(i.Word, 14, 14) != 0 {
			i.Bytes = 1
		}
		store, e := bits(i.Word, 13, 13) != 0, bits(i.Word, 12, 12) != 0
		switch {
		case bits(i.Word, 15, 15) != 0 || store && e:
		case store:
			i.Kind = Store
		default:
			i.Kind, i.ZeroExtend = Load, e
		}
	}
}
