package isa

// Kind is an instruction's format.
type Kind uint8

// The kinds.
const (
	Undefined    Kind = iota
	Nop               // 0x00000001
	Log               // log_0 … log_4: marks for traces, Imm says which
	ALUImm            // RI: Rd ← Rs1 op Imm
	ALUReg            // RR: Rd ← Rs1 op Rs2, if Cond
	Select            // Rd ← Rs1 if Cond, else Rs2
	Load              // RM, SLS or SPLS: Rd ← memory
	Store             // RM, SLS or SPLS: memory ← Rd
	LoadIndex         // RRM: as Load, with Rs1 op Rs2 for an address
	StoreIndex        // RRM
	MoveImm           // SLI: Rd ← 21-bit constant
	PopCount          // Rd ← number of ones in Rs1
	LeadingZeros      // Rd ← zeros before the first one
	TrailingZeros
	Branch         // pc ← Imm, if Cond
	BranchRelative // pc ← own address + Imm, if Cond
	SetCond        // Rs1 ← 1 if Cond, else 0
)

// Op is what the ALU does.
type Op uint8

// The operations, as encoded, and the arithmetic shift.
const (
	Add Op = iota
	AddCarry
	Sub
	SubBorrow
	And
	Or
	Xor
	ShiftLogical    // by a signed amount, positive to the left
	ShiftArithmetic // the same, right shifts keep the sign
)

// Cond is a condition on the flags.
type Cond uint8

// The conditions, as encoded.
const (
	Always Cond = iota
	Never
	Higher      // unsigned >
	LowerOrSame // unsigned <=
	CarryClear  // unsigned <
	CarrySet    // unsigned >=
	NotEqual
	Equal
	OverflowClear
	OverflowSet
	Plus
	Minus
	GreaterOrEqual
	Less
	Greater
	LessOrEqual
)

// Mode is how a load or store makes its address.
type Mode uint8

// The modes: bits P and Q.
const (
	Direct   Mode = iota // Rs1; the offset is not used
	Post                 // Rs1, to which the offset is added afterwards
	Offset               // Rs1 and offset
	Pre                  // the same, and Rs1 becomes it
	Absolute             // Imm alone (SLS)
)

// The registers with a role.
const (
	Zero     = 0 // reads as 0
	Ones     = 1 // reads as all ones
	PC       = 2 // reads as the instruction's own address
	Status   = 3 // an ordinary register for compiled code
	SP       = 4
	FP       = 5
	Arg0     = 6
	Arg1     = 7
	RV       = 8
	RVLow    = 9 // low word of a 64-bit result
	Arg2     = 18
	Arg3     = 19
	RCA      = 15 // return address, on its way to the stack
	NumRegs  = 32
	wordSize = 4
)

// Instr is a decoded instruction.
type Instr struct {
	Word         uint32
	Kind         Kind
	Op           Op
	Cond         Cond
	Mode         Mode
	Rd, Rs1, Rs2 uint8
	SetFlags     bool
	Bytes        uint8  // width of a load or store
	ZeroExtend   bool   // of a part-word load
	PartWord     bool   // SPLS form, which keeps the load/store unit for two cycles
	Imm          uint32 // operand, offset (two's complement), address or number
}

// IsLoad tells whether memory is read.
func (i *Instr) IsLoad() bool { return i.Kind == Load || i.Kind == LoadIndex }

// IsStore tells whether memory is written.
func (i *Instr) IsStore() bool { return i.Kind == Store || i.Kind == StoreIndex }
