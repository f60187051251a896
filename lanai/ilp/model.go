package ilp

import (
	"fmt"
	"math"
)

// Mode is how a chain of functions is carried out.
type Mode uint8

// The modes.
const (
	Sequential Mode = iota // a pass over the message for each function
	Integrated             // one pass, all functions on each block
	NumModes   = int(iota)
)

var modeNames = [NumModes]string{"sequential", "integrated"}

func (m Mode) String() string {
	if int(m) < NumModes {
		return modeNames[m]
	}
	return "unknown mode"
}

// ModeByName finds a mode by its name.
func ModeByName(name string) (Mode, error) {
	for i, n := range modeNames {
		if n == name {
			return Mode(i), nil
		}
	}
	return 0, fmt.Errorf("unknown mode %q, want sequential or integrated", name)
}

// MarshalText writes the name, for JSON.
func (m Mode) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText reads the name.
func (m *Mode) UnmarshalText(p []byte) (err error) {
	*m, err = ModeByName(string(p))
	return err
}

// Placement says where message data lies: the share of accesses to it that hit
// the cache, 0 to 1. Its zero value is data in memory. State always lies in
// registers or cache. The two modes may be given placements of their own: an
// integrated loop touches data once and so tends to a lower hit rate (Ahlgren
// §6.3).
type Placement struct {
	HitRate float64 `json:"hit_rate"`
}

// InCache is message data in the cache (Ahlgren's warm cache).
func InCache() Placement { return Placement{HitRate: 1} }

// InMemory is message data in memory (Ahlgren's cold cache).
func InMemory() Placement { return Placement{} }

// Validate reports a hit rate outside 0 to 1.
func (p Placement) Validate() error { return inRange("hit rate", p.HitRate, 0, 1, false) }

// clocks is the mean time of an access to message data on a machine.
func (p Placement) clocks(m Machine) float64 {
	return p.HitRate*m.CacheClocks + (1-p.HitRate)*m.MemoryClocks
}

// WordFilter is what it costs to run a function in an integrated loop whose
// block is smaller than the function's own: it must collect blocks, test
// whether it has enough, and keep what it has (Ahlgren §6.2 on Abbott and
// Peterson). Ours; both 0 in Ahlgren's formulas.
type WordFilter struct {
	// Instructions is spent in every iteration, for each such function.
	Instructions float64 `json:"instructions"`
	// StateWords is kept beside the blocks collected, for each such function.
	StateWords float64 `json:"state_words"`
}

// Model is a machine, a chain of functions and the choices in between. Its
// methods compute costs per byte of a long message.
type Model struct {
	Machine   Machine    `json:"machine"`
	Functions []Function `json:"functions"`

	// Block is the integrated loop's block in bytes; 0 takes the least common
	// multiple of the functions' input blocks (Ahlgren eq. 4, 5). A chosen
	// block and each input block must divide one another, one way or the other.
	Block int `json:"block_bytes"`

	// Filter applies to functions whose input block exceeds a chosen Block.
	Filter WordFilter `json:"word_filter"`

	// BlockRegisters takes the registers that a block beyond the first word
	// occupies away from R, as Ahlgren does for Figure 6.
	BlockRegisters bool `json:"block_registers"`

	// SpillConstants lets constants compete with state for registers; one that
	// overflows is loaded once an iteration and not stored back. Ours: Ahlgren
	// §4.1 leaves constants out, §3 says how they would behave.
	SpillConstants bool `json:"spill_constants"`
}

// Cost is what one byte of message costs.
type Cost struct {
	Block             int     `json:"block_bytes"`              // integrated block; 0 for a sequential chain
	Instructions      float64 `json:"instructions_per_byte"`    // Σ c_i/in_i, and the word filter's
	LoopInstructions  float64 `json:"loop_per_byte"`            // LO
	DataAccesses      float64 `json:"data_accesses_per_byte"`   // DA
	StateAccesses     float64 `json:"state_accesses_per_byte"`  // SA, constants included where they spill
	ClocksPerByte     float64 `json:"clocks_per_byte"`          // eq. 7 to 11
	NanosecondPerByte float64 `json:"nanoseconds_per_byte"`     // clocks / f
	MegabytePerSecond float64 `json:"megabytes_per_second"`     // 10^6 bytes
	AccessClocks      float64 `json:"data_access_clocks"`       // mean time of a message access
	SpilledWords      float64 `json:"spilled_words,omitempty"`  // state and constants beyond the registers, summed over loops
	RegistersLeft     float64 `json:"registers_left,omitempty"` // integrated loop only: R minus what is held
}

// Validate reports what is wrong with the machine, the functions or the block.
func (m Model) Validate() error {
	if err := m.Machine.Validate(); err != nil {
		return err
	}
	if len(m.Functions) == 0 {
		return fmt.Errorf("no functions")
	}
	b := 1
	for _, f := range m.Functions {
		if err := f.Validate(); err != nil {
			return err
		}
		if b = lcm(b, f.In); b > MaxBlock {
			return fmt.Errorf("function %q: the least common multiple of the blocks exceeds %d bytes", f.Name, MaxBlock)
		}
	}
	if m.Block != 0 {
		if m.Block < 0 || m.Block > MaxBlock {
			return fmt.Errorf("block is %d bytes, want 1 to %d, or 0 for the least common multiple", m.Block, MaxBlock)
		}
		for _, f := range m.Functions {
			if m.Block%f.In != 0 && f.In%m.Block != 0 {
				return fmt.Errorf("block of %d bytes does not fit function %q with blocks of %d", m.Block, f.Name, f.In)
			}
		}
	}
	if err := inRange("word filter's instructions", m.Filter.Instructions, 0, 1e4, false); err != nil {
		return err
	}
	return inRange("word filter's state", m.Filter.StateWords, 0, 1e4, false)
}

// IntegratedBlock is B: the chosen block, or the least common multiple of the
// input blocks (Ahlgren eq. 4, 5), in bytes.
func (m Model) IntegratedBlock() int {
	if m.Block != 0 {
		return m.Block
	}
	b := 1
	for _, f := range m.Functions {
		b = lcm(b, f.In)
	}
	return b
}

// Cost computes Ahlgren's model for a valid Model.
func (m Model) Cost(mode Mode, at Placement) Cost {
	var c Cost
	w := float64(m.Machine.WordBytes)
	if mode == Integrated {
		c.Block = m.IntegratedBlock()
		b := float64(c.Block)
		c.DataAccesses = 1 / w // eq. 1
		var state, constants, filtered float64
		for _, f := range m.Functions {
			if f.Out != 0 {
				c.DataAccesses = 2 / w
			}
			c.Instructions += f.Instructions / float64(f.In)
			state += f.StateWords
			constants += f.Constants
			// Without a filter the formulas stand as published: blocks that are
			// being collected take no state.
			if f.In > c.Block && m.Filter != (WordFilter{}) {
				filtered++
				state += (float64(f.In)-b)/w + m.Filter.StateWords
			}
		}
		c.Instructions += filtered * m.Filter.Instructions / b
		spill, accesses := m.spill(state, constants, c.Block)
		c.StateAccesses = accesses / b // eq. 3
		c.SpilledWords = spill
		c.RegistersLeft = math.Max(0, m.registers(c.Block)-state)
		c.LoopInstructions = m.Machine.LoopInstructions / b // eq. 8
	} else {
		for _, f := range m.Functions {
			in := float64(f.In)
			c.Instructions += f.Instructions / in
			c.DataAccesses += f.accesses() / w // eq. 2
			spill, accesses := m.spill(f.StateWords, f.Constants, f.In)
			c.StateAccesses += accesses / in // eq. 6
			c.SpilledWords += spill
			c.LoopInstructions += m.Machine.LoopInstructions / in // eq. 9
		}
	}
	return m.finish(c, at)
}

// finish turns counts into time: eq. 7, 10, 11.
func (m Model) finish(c Cost, at Placement) Cost {
	c.AccessClocks = at.clocks(m.Machine)
	c.ClocksPerByte = m.Machine.CPI*(c.Instructions+c.LoopInstructions) +
		c.DataAccesses*c.AccessClocks + c.StateAccesses*m.Machine.CacheClocks
	c.NanosecondPerByte = c.ClocksPerByte * 1000 / m.Machine.ClockMHz
	c.MegabytePerSecond = 1000 / c.NanosecondPerByte
	return c
}

// registers is R, less what a block beyond one word occupies where that counts.
func (m Model) registers(block int) float64 {
	r := float64(m.Machine.Registers)
	if m.BlockRegisters {
		words := math.Ceil(float64(block) / float64(m.Machine.WordBytes))
		r = math.Max(0, r-math.Max(0, words-1))
	}
	return r
}

// spill tells how many words of state and constants overflow the registers of
// a loop, and the accesses they cause in an iteration: state is loaded and
// stored, a constant only loaded. State goes first into the registers, because
// a word of it left outside costs twice.
func (m Model) spill(state, constants float64, block int) (words, accesses float64) {
	r := m.registers(block)
	over := math.Max(0, state-r)
	words, accesses = over, 2*over
	if m.SpillConstants {
		k := math.Max(0, constants-math.Max(0, r-state))
		words += k
		accesses += k
	}
	return words, accesses
}

// AbbottPeterson computes the cost after Abbott and Peterson's model: loop
// overhead, computation and message accesses in one-word blocks, no register
// ever lacking, so that integration always wins (Ahlgren §6.1; the formula of
// Ahlgren's Figure 4 did not survive and is rebuilt from that description).
func (m Model) AbbottPeterson(mode Mode, at Placement) Cost {
	var c Cost
	w := float64(m.Machine.WordBytes)
	writes := false
	for _, f := range m.Functions {
		c.Instructions += f.Instructions / float64(f.In)
		c.DataAccesses += f.accesses() / w
		writes = writes || f.Out != 0
	}
	c.LoopInstructions = float64(len(m.Functions)) * m.Machine.LoopInstructions / w
	if mode == Integrated {
		c.Block = m.Machine.WordBytes
		c.LoopInstructions = m.Machine.LoopInstructions / w
		c.DataAccesses = 1 / w
		if writes {
			c.DataAccesses = 2 / w
		}
	}
	return m.finish(c, at)
}

// PacketCost is the cost of one packet of the given bytes: the per-byte cost,
// rounded up once for each pass, and the machine's entry cost for each loop.
// Cycles are clocks, accesses the loads and stores among them. bytes <= 0 cost
// the entries alone.
func (m Model) PacketCost(mode Mode, at Placement, bytes int) (cycles, accesses int) {
	c := m.Cost(mode, at)
	loops := 1
	if mode == Sequential {
		loops = len(m.Functions)
	}
	return c.packet(m.Machine, loops, bytes)
}

func (c Cost) packet(m Machine, loops, bytes int) (cycles, accesses int) {
	n := float64(max(bytes, 0))
	cycles = loops*ceil(m.EntryClocks) + ceil(c.ClocksPerByte*n)
	accesses = loops*ceil(m.EntryAccesses) + ceil((c.DataAccesses+c.StateAccesses)*n)
	return cycles, min(accesses, cycles)
}

// ceil rounds up, forgiving the last bits of a product, so that a fused
// multiply-add on one architecture does not cost a cycle more than elsewhere.
func ceil(x float64) int { return int(math.Ceil(x - 1e-6)) }

func lcm(a, b int) int {
	x, y := a, b
	for y != 0 {
		x, y = y, x%y
	}
	return a / x * b
}
