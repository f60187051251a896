package ilp

import (
	"fmt"
	"math"
)

// Machine holds the architecture parameters (Ahlgren Table 1). It is a plain
// value: copy it and change what differs.
type Machine struct {
	Name string `json:"name"`

	// Registers is R: registers that the compiler has left for function state.
	// 0 to 1024. More of them delay the point where integration overflows.
	Registers int `json:"registers"`

	// CacheClocks is t_c, the access time of the first-level cache in clocks
	// per word; MemoryClocks is t_m, the average for a sequential walk through
	// memory, line fills and write-backs included. Above 0, at most 1e6.
	CacheClocks  float64 `json:"cache_clocks_per_word"`
	MemoryClocks float64 `json:"memory_clocks_per_word"`

	// CPI is clocks per instruction that is not a load or store; below 1 for a
	// superscalar processor. Above 0, at most 1e3.
	CPI float64 `json:"cpi"`

	// LoopInstructions is lo: pointer increments, count, test and branch of one
	// iteration. 0 to 1e3.
	LoopInstructions float64 `json:"loop_instructions"`

	// ClockMHz is f. Above 0, at most 1e6 MHz.
	ClockMHz float64 `json:"clock_mhz"`

	// WordBytes is w. 1 to 64 bytes.
	WordBytes int `json:"word_bytes"`

	// EntryClocks and EntryAccesses are paid once for each loop entered and
	// left: call, prologue, epilogue, result. Ours; 0 in Ahlgren's model, which
	// knows long messages only. EntryAccesses is at most EntryClocks.
	EntryClocks   float64 `json:"entry_clocks"`
	EntryAccesses float64 `json:"entry_accesses"`

	// Source says where the values are from, and which were chosen.
	Source string `json:"source"`
}

// Validate reports the first parameter outside its range.
func (m Machine) Validate() error {
	if m.Name == "" {
		return fmt.Errorf("machine without a name")
	}
	for _, c := range []struct {
		what     string
		v        float64
		lo, hi   float64
		positive bool
	}{
		{"registers", float64(m.Registers), 0, 1024, false},
		{"cache access time", m.CacheClocks, 0, 1e6, true},
		{"memory access time", m.MemoryClocks, 0, 1e6, true},
		{"CPI", m.CPI, 0, 1e3, true},
		{"loop overhead", m.LoopInstructions, 0, 1e3, false},
		{"clock", m.ClockMHz, 0, 1e6, true},
		{"word size", float64(m.WordBytes), 1, 64, false},
		{"entry clocks", m.EntryClocks, 0, 1e9, false},
		{"entry accesses", m.EntryAccesses, 0, m.EntryClocks, false},
	} {
		if err := inRange(c.what, c.v, c.lo, c.hi, c.positive); err != nil {
			return fmt.Errorf("machine %q: %w", m.Name, err)
		}
	}
	return nil
}

// inRange checks lo <= v <= hi, and v > 0 where positive.
func inRange(what string, v, lo, hi float64, positive bool) error {
	switch {
	case math.IsNaN(v) || v < lo || v > hi:
		return fmt.Errorf("%s is %g, want %g to %g", what, v, lo, hi)
	case positive && v == 0:
		return fmt.Errorf("%s is 0, want more", what)
	}
	return nil
}
