package ilp

// HP735 is the HP 9000-735/99 (Ahlgren Table 3).
func HP735() Machine {
	return Machine{
		Name: "hp735", Registers: 13, CacheClocks: 1, MemoryClocks: 4, CPI: 1,
		LoopInstructions: 1, ClockMHz: 99, WordBytes: 4,
		Source: "HP 9000-735/99, Ahlgren Table 3",
	}
}

// SS2 is the SPARCstation 2 (Ahlgren Table 3).
func SS2() Machine {
	return Machine{
		Name: "ss2", Registers: 8, CacheClocks: 3, MemoryClocks: 7, CPI: 1,
		LoopInstructions: 5, ClockMHz: 40, WordBytes: 4,
		Source: "SPARCstation 2, Ahlgren Table 3",
	}
}

// SS20 is the SPARCstation 20/71 (Ahlgren Table 3).
func SS20() Machine {
	return Machine{
		Name: "ss20", Registers: 8, CacheClocks: 1, MemoryClocks: 2.4, CPI: 0.5,
		LoopInstructions: 5, ClockMHz: 75, WordBytes: 4,
		Source: "SPARCstation 20/71, Ahlgren Table 3",
	}
}

// Lanai4 is the card's processor. Chosen: 9 registers of 24, after the
// fixed and reserved ones (zero, minus one, pc, ps, sp, fp, two scratch,
// return address, ISR, IMR) and a loop's own (two pointers, count, data
// word). No cache, SRAM answers a load or store in its one cycle, so
// t_c = t_m = 1. Loop overhead 3 (pointer, compare, branch with its slot
// filled) and 17 cycles of entry are fitted: they give both figures measured
// on compiled C for the LANai family, 57 cycles for the Internet checksum of
// 20 bytes and 3,017 of 1,500. Entry accesses: frame and return address
// saved and restored, chosen.
func Lanai4() Machine {
	return Machine{
		Name: "lanai4", Registers: 9, CacheClocks: 1, MemoryClocks: 1, CPI: 1,
		LoopInstructions: 3, ClockMHz: 100.0 / 3, WordBytes: 4,
		EntryClocks: 17, EntryAccesses: 4,
		Source: "LANai 4 at 33⅓ MHz, SRAM without cache; registers and entry accesses chosen, loop overhead and entry clocks fitted to compiled firmware (checksum of 20 bytes 57 cycles, of 1,500 bytes 3,017)",
	}
}

// BSWAP swaps the bytes of a word (Ahlgren Table 4).
func BSWAP() Function {
	return Function{Name: "bswap", StateWords: 0, Constants: 3, Instructions: 5, In: 4, Out: 4,
		Source: "byte swap, Ahlgren Table 4"}
}

// PES is the pseudo-encryption of Abbott and Peterson (Ahlgren Table 4).
func PES() Function {
	return Function{Name: "pes", StateWords: 0, Constants: 2, Instructions: 6, In: 8, Out: 8,
		Source: "pseudo-encryption, Ahlgren Table 4"}
}

// CKSUM is the Internet checksum (Ahlgren Table 4).
func CKSUM() Function {
	return Function{Name: "cksum", StateWords: 1, Constants: 2, Instructions: 4, In: 4, Out: 0,
		Source: "Internet checksum, Ahlgren Table 4"}
}

// CRC32 is the byte-wise table method. Chosen: a byte takes index, mask, shift and exclusive-or beside
// its table load, which is counted as an instruction: the model has no
// tables (Ahlgren §4.1).
func CRC32() Function {
	return Function{Name: "crc32", StateWords: 1, Constants: 1, Instructions: 20, In: 4, Out: 0,
		Source: "CRC-32, byte-wise table; instruction count chosen (5 a byte, table load included)"}
}

// MD5 is MD5-like: state, block and constants from Ahlgren §6.3. Instructions counted
// over RFC 1321's 64 steps for a processor without rotate or and-not:
// 16·(11+11+9+10) and 4 chaining additions.
func MD5() Function {
	return Function{Name: "md5", StateWords: 4, Constants: 64, Instructions: 660, In: 64, Out: 0,
		Source: "MD5-like, Ahlgren §6.3 (state 4 words, block 64 bytes, 64 constants); instruction count from RFC 1321"}
}

// SAFER is SAFER-like: block and key from Ahlgren §6.3, 104 bytes of expanded key as 26
// constant words. Instructions: 6 rounds of 16 key operations, 8 look-ups,
// 24 additions and 8 masks, then 8 key operations. Chosen.
func SAFER() Function {
	return Function{Name: "safer", StateWords: 0, Constants: 26, Instructions: 344, In: 8, Out: 8,
		Source: "SAFER-like, Ahlgren §6.3 (block 8 bytes, key 104 bytes); instruction count chosen (56 a round, 6 rounds, 8)"}
}

// SyntheticFunction is a function like those that Ahlgren measured: state words
// as given, an input and output block of block bytes, and instructions per
// block.
func SyntheticFunction(name string, state, instructions float64, block int) Function {
	return Function{Name: name, StateWords: state, Instructions: instructions, In: block, Out: block,
		Source: "synthetic, after Ahlgren §5.2"}
}

// Catalogue is the set of machines and functions known by name. The zero value
// is empty.
type Catalogue struct {
	Machines  []Machine  `json:"machines"`
	Functions []Function `json:"functions"`
}

// DefaultCatalogue holds the presets above.
func DefaultCatalogue() Catalogue {
	return Catalogue{
		Machines:  []Machine{HP735(), SS2(), SS20(), Lanai4()},
		Functions: []Function{BSWAP(), PES(), CKSUM(), CRC32(), MD5(), SAFER()},
	}
}

// Machine finds a machine by name.
func (c *Catalogue) Machine(name string) (Machine, error) {
	names := make([]string, 0, len(c.Machines))
	for _, m := range c.Machines {
		if m.Name == name {
			return m, nil
		}
		names = append(names, m.Name)
	}
	return Machine{}, unknown("machine", name, names)
}

// Function finds a function by name.
func (c *Catalogue) Function(name string) (Function, error) {
	names := make([]string, 0, len(c.Functions))
	for _, f := range c.Functions {
		if f.Name == name {
			return f, nil
		}
		names = append(names, f.Name)
	}
	return Function{}, unknown("function", name, names)
}

// Model puts a model together from names, in the functions' order.
func (c *Catalogue) Model(machine string, functions ...string) (Model, error) {
	var m Model
	var err error
	if m.Machine, err = c.Machine(machine); err != nil {
		return Model{}, err
	}
	for _, n := range functions {
		f, err := c.Function(n)
		if err != nil {
			return Model{}, err
		}
		m.Functions = append(m.Functions, f)
	}
	return m, m.Validate()
}
