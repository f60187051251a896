package host

import (
	"fmt"
	"math"

	"spinesim/sim/des"
)

// Processor holds what the cost models need to know of a host's processor and
// caches. It is a plain value: copy it and change what differs. Clocks may be
// fractions; they are throughput costs of a long run.
type Processor struct {
	Name string `json:"name"`

	// ClockMHz is the processor's frequency, above 0, at most 1e5.
	ClockMHz float64 `json:"clock_mhz"`

	// WordBytes is what one load or store moves: 4 or 8.
	WordBytes int `json:"word_bytes"`

	// LineBytes is a cache line, PageBytes a page: powers of two, a line at
	// least two words and at most a page, a page at most 1 MiB.
	LineBytes int `json:"line_bytes"`
	PageBytes int `json:"page_bytes"`

	// CPI is the clocks of an instruction that neither loads nor stores;
	// LoadClocks and StoreClocks those of one that hits the first-level cache.
	CPI         float64 `json:"cpi"`
	LoadClocks  float64 `json:"load_clocks"`
	StoreClocks float64 `json:"store_clocks"`

	// LoopInstructions is the count and branch of a copy loop's iteration.
	LoopInstructions float64 `json:"loop_instructions"`

	// ReadMissClocks is waited for each line read that is not in the cache,
	// WriteMissClocks for each line written that is not.
	ReadMissClocks  float64 `json:"read_miss_clocks"`
	WriteMissClocks float64 `json:"write_miss_clocks"`

	// Flushing a line takes one dcbst and one icbi (slide 11); a dirty line is
	// also written back. SyncClocks is paid once a flush.
	DcbstClocks     float64 `json:"dcbst_clocks"`
	WriteBackClocks float64 `json:"write_back_clocks"`
	IcbiClocks      float64 `json:"icbi_clocks"`
	SyncClocks      float64 `json:"sync_clocks"`

	// Banks is how many interleaved banks the second-level cache has, by line;
	// BankClocks how long one store occupies its bank. 1 bank and 0 clocks where
	// stores do not go through to it. The page copy's main loop takes
	// Banks × BlockLines lines at a time (slide 23: 3 banks, 6 lines).
	Banks      int     `json:"banks"`
	BankClocks float64 `json:"bank_clocks"`
	BlockLines int     `json:"block_lines"`

	// Source says where the values are from, and which were chosen.
	Source string `json:"source"`
}

// maxBanks bounds the banks of a second-level cache.
const maxBanks = 64

// Validate reports the first value outside its range.
func (p Processor) Validate() error {
	fail := func(format string, args ...any) error {
		return fmt.Errorf("processor %q: %s", p.Name, fmt.Sprintf(format, args...))
	}
	if p.Name == "" {
		return fmt.Errorf("processor without a name")
	}
	if !(p.ClockMHz > 0 && p.ClockMHz <= 1e5) {
		return fail("clock is %g MHz, want above 0 to 1e5", p.ClockMHz)
	}
	if p.WordBytes != 4 && p.WordBytes != 8 {
		return fail("word is %d bytes, want 4 or 8", p.WordBytes)
	}
	if p.PageBytes < 64 || p.PageBytes > 1<<20 || p.PageBytes&(p.PageBytes-1) != 0 {
		return fail("page is %d bytes, want a power of two from 64 to 1048576", p.PageBytes)
	}
	if p.LineBytes < 2*p.WordBytes || p.LineBytes > p.PageBytes || p.LineBytes&(p.LineBytes-1) != 0 {
		return fail("cache line is %d bytes, want a power of two from %d to %d", p.LineBytes, 2*p.WordBytes, p.PageBytes)
	}
	for _, c := range []struct {
		what string
		v    float64
	}{
		{"CPI", p.CPI}, {"load", p.LoadClocks}, {"store", p.StoreClocks}, {"loop", p.LoopInstructions},
		{"read miss", p.ReadMissClocks}, {"write miss", p.WriteMissClocks},
		{"dcbst", p.DcbstClocks}, {"write back", p.WriteBackClocks}, {"icbi", p.IcbiClocks}, {"sync", p.SyncClocks},
		{"bank", p.BankClocks},
	} {
		if !(c.v >= 0 && c.v <= 1e6) {
			return fail("%s cost is %g, want 0 to 1e6", c.what, c.v)
		}
	}
	if p.Banks < 1 || p.Banks > maxBanks || p.BlockLines < 1 || p.BlockLines > 64 {
		return fail("%d banks with blocks of %d lines, want 1 to 64 each", p.Banks, p.BlockLines)
	}
	return nil
}

// Time turns clocks into simulated time, rounded to a picosecond. At 100 MHz or
// more, 1e12 clocks still fit.
func (p Processor) Time(clocks float64) des.Time {
	return des.Time(math.Round(clocks * float64(des.Microsecond) / p.ClockMHz))
}

// lines is how many cache lines the bytes from an offset on touch.
func (p Processor) lines(offset, bytes int) int {
	if bytes <= 0 {
		return 0
	}
	return (offset%p.LineBytes + bytes + p.LineBytes - 1) / p.LineBytes
}

// PowerBookG3 is the laptop on which the kernel was profiled: 400 MHz PowerPC
// 750, 32 KB + 32 KB first-level, 1 MB second-level cache (slide 10), 4 KB pages
// (slide 5). The line of 32 bytes is the 750's. Every cost in clocks is chosen.
func PowerBookG3() Processor {
	return Processor{
		Name: "powerbook-g3", ClockMHz: 400, WordBytes: 4, LineBytes: 32, PageBytes: 4096,
		CPI: 0.5, LoadClocks: 1, StoreClocks: 1, LoopInstructions: 2,
		ReadMissClocks: 40, WriteMissClocks: 40,
		DcbstClocks: 4, WriteBackClocks: 30, IcbiClocks: 20, SyncClocks: 50,
		Banks: 1, BlockLines: 1,
		Source: "400 MHz PowerPC 750, slide 10; pages slide 5; costs in clocks chosen",
	}
}

// PSeries650 is the server on which the copies were measured: 1.45 GHz POWER4+,
// 64 KB + 32 KB first-level, 1.5 MB second-level cache (slide 10) in three
// interleaved banks, to which stores go through; the page copy takes 6 lines at
// a time (slide 23). The line of 128 bytes is POWER4's. Every cost in clocks is
// chosen.
func PSeries650() Processor {
	return Processor{
		Name: "pseries-650", ClockMHz: 1450, WordBytes: 8, LineBytes: 128, PageBytes: 4096,
		CPI: 0.5, LoadClocks: 0.5, StoreClocks: 1, LoopInstructions: 1,
		ReadMissClocks: 12, WriteMissClocks: 0,
		DcbstClocks: 10, WriteBackClocks: 40, IcbiClocks: 40, SyncClocks: 100,
		Banks: 3, BankClocks: 3, BlockLines: 2,
		Source: "1.45 GHz POWER4+, slide 10; banks and lines slide 23; costs in clocks chosen",
	}
}

// Walnut is the embedded board with the 405 (slide 10, whose text breaks off
// before the frequency: 200 MHz is chosen, as are all costs in clocks). The 405
// has 32-byte lines and 4 KB pages, with per-page execute permission (slide 17).
func Walnut() Processor {
	return Processor{
		Name: "walnut-405", ClockMHz: 200, WordBytes: 4, LineBytes: 32, PageBytes: 4096,
		CPI: 1, LoadClocks: 1, StoreClocks: 1, LoopInstructions: 2,
		ReadMissClocks: 25, WriteMissClocks: 25,
		DcbstClocks: 4, WriteBackClocks: 20, IcbiClocks: 6, SyncClocks: 20,
		Banks: 1, BlockLines: 1,
		Source: "PowerPC 405 board, slides 10 and 17; frequency and costs in clocks chosen",
	}
}

// PentiumPro is the router's PC: Pentium Pro, 200 MHz, 512 KB second-level
// cache (thesis p.107). Its instruction cache is coherent, so that flushing
// costs nothing. Costs in clocks are chosen; they give a cold copy of about 80
// MB/s.
func PentiumPro() Processor {
	return Processor{
		Name: "pentium-pro-200", ClockMHz: 200, WordBytes: 4, LineBytes: 32, PageBytes: 4096,
		CPI: 0.5, LoadClocks: 1, StoreClocks: 1, LoopInstructions: 2,
		ReadMissClocks: 30, WriteMissClocks: 30,
		Banks: 1, BlockLines: 1,
		Source: "Pentium Pro 200 MHz, thesis p.107; costs in clocks chosen",
	}
}

// Processors lists the presets.
func Processors() []Processor {
	return []Processor{PentiumPro(), PowerBookG3(), PSeries650(), Walnut()}
}

// ProcessorByName finds a preset.
func ProcessorByName(name string) (Processor, error) {
	for _, p := range Processors() {
		if p.Name == name {
			return p, nil
		}
	}
	return Processor{}, fmt.Errorf("unknown host processor %q", name)
}
