package ilp

import (
	"fmt"
)

// StageSpec describes the data manipulation in an extension's path.
type StageSpec struct {
	// Functions are applied in this order; names as for NewManipulator. At
	// least one, at most 16.
	Functions []string `json:"functions"`

	// Mode is layer by layer or integrated.
	Mode Mode `json:"mode"`

	// Machine computes the cost; Lanai4 for the card. Data lies in its memory.
	Machine Machine `json:"machine"`

	// BlockRegisters and SpillConstants are passed on to the Model.
	BlockRegisters bool `json:"block_registers"`
	SpillConstants bool `json:"spill_constants"`

	// DMAChecksum leaves the Internet checksum to the host-DMA engine, which
	// sums words as they move: the processor only reads the result. The engine
	// sees data either before or after the chain, so the checksum must not
	// stand between functions that change data. LANai hardware sums transfers
	// from the bus to the card (register CKS); with the checksum at the end of
	// the chain and data going the other way, this is a what-if.
	DMAChecksum bool `json:"dma_checksum"`
}

// maxStageFunctions bounds a chain.
const maxStageFunctions = 16

// The cost of reading the engine's checksum register: a load, and a cycle until
// its result can be used. Chosen, after the exposed load slot of the LANai.
const (
	checksumReadCycles   = 2
	checksumReadAccesses = 1
)

// Stage applies a chain of functions to packets. Its results in bytes and sums
// are the same in each mode; its cost is not. A Stage is used by one card at a
// time.
type Stage struct {
	spec  StageSpec
	chain []Manipulator
	block int
	loops int
	cost  Cost // of what the processor does
	dma   bool
}

// NewStage checks the description and makes a stage.
func NewStage(spec StageSpec) (*Stage, error) {
	if n := len(spec.Functions); n == 0 || n > maxStageFunctions {
		return nil, fmt.Errorf("stage: %d functions, want 1 to %d", n, maxStageFunctions)
	}
	if int(spec.Mode) >= NumModes {
		return nil, fmt.Errorf("stage: %v %d", spec.Mode, spec.Mode)
	}
	s := &Stage{spec: spec}
	s.spec.Functions = append([]string(nil), spec.Functions...)
	model := Model{Machine: spec.Machine, BlockRegisters: spec.BlockRegisters, SpillConstants: spec.SpillConstants}
	whole := model
	for i, name := range spec.Functions {
		f, err := NewManipulator(name, i)
		if err != nil {
			return nil, fmt.Errorf("stage: %w", err)
		}
		s.chain = append(s.chain, f)
		whole.Functions = append(whole.Functions, f.Function())
		if _, sums := f.(*Checksum); sums && spec.DMAChecksum {
			if s.dma {
				return nil, fmt.Errorf("stage: the engine computes one checksum, the chain has two")
			}
			s.dma = true
			continue
		}
		model.Functions = append(model.Functions, f.Function())
	}
	if err := whole.Validate(); err != nil {
		return nil, fmt.Errorf("stage: %w", err)
	}
	if spec.DMAChecksum {
		if !s.dma {
			return nil, fmt.Errorf("stage: checksum by DMA, but no cksum among the functions")
		}
		if err := s.checkEngineSees(); err != nil {
			return nil, err
		}
	}
	s.block = whole.IntegratedBlock()
	if len(model.Functions) > 0 {
		s.cost = model.Cost(spec.Mode, InMemory())
		s.loops = 1
		if spec.Mode == Sequential {
			s.loops = len(model.Functions)
		}
	}
	return s, nil
}

// checkEngineSees refuses a checksum between two functions that change data.
func (s *Stage) checkEngineSees() error {
	before, after, seen := "", "", false
	for _, f := range s.chain {
		fn := f.Function()
		switch {
		case fn.Name == "cksum":
			seen = true
		case fn.Out == 0:
		case seen:
			after = fn.Name
		default:
			before = fn.Name
		}
	}
	if before != "" && after != "" {
		return fmt.Errorf("stage: checksum by DMA between %s and %s, which both change data: the engine never sees the data in between", before, after)
	}
	return nil
}

// Spec is the description that the stage was made from.
func (s *Stage) Spec() StageSpec { return s.spec }

// PerByte is the model's cost of a byte, without what entering loops costs.
func (s *Stage) PerByte() Cost { return s.cost }

// Cost is what the processor pays for a packet of the given bytes: instruction
// cycles, and the loads and stores among them (accesses <= cycles), as a box's
// demand has it. A negative length counts as 0.
func (s *Stage) Cost(bytes int) (cycles, accesses int) {
	if s.loops > 0 {
		cycles, accesses = s.cost.packet(s.spec.Machine, s.loops, bytes)
	}
	if s.dma {
		cycles += checksumReadCycles
		accesses += checksumReadAccesses
	}
	return cycles, accesses
}

// Apply transforms the packet's bytes in place and leaves the functions'
// results to be asked for. It does not allocate.
func (s *Stage) Apply(p []byte) {
	for _, f := range s.chain {
		f.Reset()
	}
	if s.spec.Mode == Sequential {
		for _, f := range s.chain {
			whole := len(p) - len(p)%f.Function().In
			f.Blocks(p[:whole])
			f.Tail(p[whole:])
		}
		return
	}
	whole := len(p) - len(p)%s.block
	for i := 0; i < whole; i += s.block {
		for _, f := range s.chain {
			f.Blocks(p[i : i+s.block])
		}
	}
	// Fewer bytes than a common block are left: layer by layer.
	for _, f := range s.chain {
		rest := p[whole:]
		n := len(rest) - len(rest)%f.Function().In
		f.Blocks(rest[:n])
		f.Tail(rest[n:])
	}
}

// Result is what the i-th function of the chain computed over the last packet,
// if it computes something (checksum, CRC).
func (s *Stage) Result(i int) (value uint32, ok bool) {
	if i < 0 || i >= len(s.chain) {
		return 0, false
	}
	return s.chain[i].Result()
}
