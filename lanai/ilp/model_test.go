package ilp

import (
	"math"
	"math/rand/v2"
	"testing"
)

// walk is the oracle: it goes through a message block by block and counts every
// instruction and access, with nothing divided by anything but the length.
func walk(m Model, mode Mode, at Placement, length int) (clocks float64) {
	var instructions, loads, stores, state float64
	word := m.Machine.WordBytes
	spilled := func(s float64, block int) (n float64) {
		r := m.Machine.Registers
		if m.BlockRegisters {
			for b := word; b < block && r > 0; b += word {
				r--
			}
		}
		for ; s > float64(r); s-- {
			n++
		}
		return n
	}
	pass := func(fs []Function, block int) {
		var sum float64
		writes := false
		for _, f := range fs {
			sum += f.StateWords
			writes = writes || f.Out > 0
		}
		for pos := 0; pos < length; pos += block {
			for _, f := range fs {
				instructions += f.Instructions * float64(block/f.In)
			}
			instructions += m.Machine.LoopInstructions
			loads += float64(block) / float64(word)
			if writes {
				stores += float64(block) / float64(word)
			}
			state += 2 * spilled(sum, block)
		}
	}
	if mode == Integrated {
		block := 1
		for ok := false; !ok; {
			ok = true
			for _, f := range m.Functions {
				ok = ok && block%f.In == 0
			}
			if !ok {
				block++
			}
		}
		pass(m.Functions, block)
	} else {
		for _, f := range m.Functions {
			pass([]Function{f}, f.In)
		}
	}
	data := at.HitRate*m.Machine.CacheClocks + (1-at.HitRate)*m.Machine.MemoryClocks
	return m.Machine.CPI*instructions + (loads+stores)*data + state*m.Machine.CacheClocks
}

func TestCostAgainstWalk(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	blocks := []int{2, 4, 6, 8, 16, 64}
	for range 3000 {
		m := Model{
			Machine: Machine{
				Name: "random", Registers: rng.IntN(40), CacheClocks: 1 + rng.Float64(), MemoryClocks: 1 + 9*rng.Float64(),
				CPI: 0.25 + rng.Float64(), LoopInstructions: float64(rng.IntN(8)), ClockMHz: 100, WordBytes: 1 << (1 + rng.IntN(3)),
			},
			BlockRegisters: rng.IntN(2) == 1,
		}
		for range 1 + rng.IntN(4) {
			f := Function{Name: "f", StateWords: float64(rng.IntN(20)), Instructions: float64(rng.IntN(30)), In: blocks[rng.IntN(len(blocks))]}
			if rng.IntN(2) == 1 {
				f.Out = f.In
			}
			m.Functions = append(m.Functions, f)
		}
		if err := m.Validate(); err != nil {
			t.Fatal(err)
		}
		const length = 64 * 3 * 2
		at := Placement{HitRate: rng.Float64()}
		for mode := range Mode(NumModes) {
			want := walk(m, mode, at, length)
			if got := m.Cost(mode, at).ClocksPerByte * length; math.Abs(got-want) > 1e-9*want {
				t.Fatalf("%v of %+v: %g clocks, want %g", mode, m, got, want)
			}
		}
	}
}

func TestAbbottPetersonNeverLoses(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	lost := 0
	for range 2000 {
		m := Model{Machine: DefaultCatalogue().Machines[rng.IntN(4)]}
		for range 2 + rng.IntN(4) {
			m.Functions = append(m.Functions, SyntheticFunction("f", float64(rng.IntN(16)), 10, 4))
		}
		c, err := Compare(m, InCache(), InCache())
		if err != nil {
			t.Fatal(err)
		}
		if c.AbbottSpeedup <= 1 {
			t.Fatalf("Abbott and Peterson's model makes integration lose: %+v", c)
		}
		if c.Speedup < 1 {
			lost++
		}
	}
	if lost == 0 {
		t.Error("Ahlgren's model never lost in the same cases")
	}
}

func TestAbbottPetersonIsAhlgrenWithoutState(t *testing.T) {
	m := Model{Machine: SS20(), Functions: []Function{BSWAP(), {Name: "r", Instructions: 7, In: 4}}}
	for mode := range Mode(NumModes) {
		for _, at := range []Placement{InCache(), InMemory(), {HitRate: 0.3}} {
			if a, b := m.Cost(mode, at), m.AbbottPeterson(mode, at); a.ClocksPerByte != b.ClocksPerByte {
				t.Errorf("%v at %g: %g and %g clocks", mode, at.HitRate, a.ClocksPerByte, b.ClocksPerByte)
			}
		}
	}
}

func TestConstantsSpill(t *testing.T) {
	// 9 registers; state 4 takes them first, 5 remain for 64 constants of which
	// each of the other 59 is loaded once a block of 64 bytes.
	m := Model{Machine: Lanai4(), Functions: []Function{MD5()}, SpillConstants: true}
	if got, want := m.Cost(Sequential, InCache()).StateAccesses, 59.0/64; got != want {
		t.Errorf("state accesses %g a byte, want %g", got, want)
	}
	// The block of 16 words takes all registers: state spills whole, too.
	m.BlockRegisters = true
	if got, want := m.Cost(Sequential, InCache()).StateAccesses, (2*4+64)/64.0; got != want {
		t.Errorf("with the block in registers: state accesses %g a byte, want %g", got, want)
	}
}

func TestModelErrors(t *testing.T) {
	good := Model{Machine: HP735(), Functions: []Function{BSWAP(), PES(), CKSUM()}}
	for _, c := range []struct {
		name   string
		change func(*Model)
		want   string
	}{
		{"no functions", func(m *Model) { m.Functions = nil }, "no functions"},
		{"negative clock", func(m *Model) { m.Machine.ClockMHz = -1 }, `machine "hp735": clock is -1, want 0 to 1e+06`},
		{"NaN", func(m *Model) { m.Machine.CPI = math.NaN() }, `machine "hp735": CPI is NaN, want 0 to 1000`},
		{"no access time", func(m *Model) { m.Machine.CacheClocks = 0 }, `machine "hp735": cache access time is 0, want more`},
		{"output size", func(m *Model) { m.Functions = []Function{{Name: "zip", In: 8, Out: 4}} }, `function "zip": output block is 4 bytes, want 0 or the input block's 8`},
		{"block", func(m *Model) { m.Block = 12 }, `block of 12 bytes does not fit function "pes" with blocks of 8`},
		{"negative block", func(m *Model) { m.Block = -4 }, `block is -4 bytes, want 1 to 4096, or 0 for the least common multiple`},
		{"common multiple", func(m *Model) { m.Functions = []Function{{Name: "a", In: 4095}, {Name: "b", In: 4093}} },
			`function "b": the least common multiple of the blocks exceeds 4096 bytes`},
	} {
		m := good
		c.change(&m)
		if err := m.Validate(); err == nil || err.Error() != c.want {
			t.Errorf("%s: error %v, want %s", c.name, err, c.want)
		}
	}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	if _, err := Compare(good, InCache(), Placement{HitRate: 1.5}); err == nil || err.Error() != "hit rate is 1.5, want 0 to 1" {
		t.Errorf("hit rate above 1: error %v", err)
	}
}

func TestPresetsAreValid(t *testing.T) {
	c := DefaultCatalogue()
	for _, m := range c.Machines {
		if err := m.Validate(); err != nil || m.Source == "" {
			t.Errorf("%s: error %v, source %q", m.Name, err, m.Source)
		}
	}
	for _, f := range c.Functions {
		if err := f.Validate(); err != nil || f.Source == "" {
			t.Errorf("%s: error %v, source %q", f.Name, err, f.Source)
		}
	}
}

// The card's two fitted parameters give both measured checksums.
func TestLanaiChecksum(t *testing.T) {
	m := Model{Machine: Lanai4(), Functions: []Function{CKSUM()}}
	for _, c := range []struct{ bytes, cycles, accesses int }{{20, 57, 4 + 5}, {1500, 3017, 4 + 375}} {
		if cycles, accesses := m.PacketCost(Sequential, InMemory(), c.bytes); cycles != c.cycles || accesses != c.accesses {
			t.Errorf("checksum of %d bytes: %d cycles, %d accesses, want %d, %d", c.bytes, cycles, accesses, c.cycles, c.accesses)
		}
	}
}
