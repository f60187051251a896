package bihash

import (
	"fmt"
	"math/bits"
	"strings"
)

// Level is one level of a processor's caches.
type Level struct {
	Name  string `json:"name"`
	Bytes int    `json:"bytes"`
	Ways  int    `json:"ways"`
	// Random replaces any line of a set, by a pseudo-random choice, instead of
	// the one used longest ago.
	Random bool `json:"random"`
	// Clocks is the time from a load that hits here to the use of its value.
	Clocks float64 `json:"clocks"`
}

// Processor is what the model knows of a processor and its memory. It is a plain
// value: copy it and change what differs.
type Processor struct {
	Name      string  `json:"name"`
	ClockMHz  float64 `json:"clock_mhz"`
	LineBytes int     `json:"line_bytes"`
	// Levels, the fastest first. Each is set-associative.
	Levels []Level `json:"levels"`
	// MemoryClocks is a load that misses them all.
	MemoryClocks float64 `json:"memory_clocks"`

	// Outstanding is how many lines can be on their way at once. With fewer of
	// them prefetching gains less.
	Outstanding int `json:"outstanding"`
	// Window is how many instructions can be under way, from dispatch to
	// retirement in order. A larger one overlaps more look-ups by itself, and
	// leaves less for prefetching to gain. 1 is a core that waits for each load.
	Window int `json:"window"`
	// Scheduler is how many instructions can wait for operands; once those
	// that wait for loads fill it, nothing behind them goes on, although the
	// window has room.
	Scheduler int `json:"scheduler"`
	// Rate is how many instructions a clock the core completes while nothing
	// misses, on code like this.
	Rate float64 `json:"instructions_per_clock"`

	// Source says where the values are from, and which were chosen.
	Source string `json:"source"`
}

// Validate tells the first value that is out of range; the error wraps ErrSpec.
func (p Processor) Validate() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: processor %s: %s", ErrSpec, p.Name, fmt.Sprintf(format, args...))
	}
	if bits.OnesCount(uint(p.LineBytes)) != 1 || p.LineBytes < 8 || p.LineBytes > 4096 {
		return bad("lines of %d bytes, want a power of two from 8 to 4096", p.LineBytes)
	}
	if len(p.Levels) < 1 || len(p.Levels) > 8 {
		return bad("%d levels of cache, want 1 to 8", len(p.Levels))
	}
	last := 0.0
	for _, l := range p.Levels {
		sets := 0
		if l.Ways > 0 {
			sets = l.Bytes / p.LineBytes / l.Ways
		}
		if sets < 1 || l.Bytes != sets*l.Ways*p.LineBytes || l.Bytes > maxBytes {
			return bad("%s of %d bytes in %d ways, want whole sets of %d-byte lines and at most %d bytes", l.Name, l.Bytes, l.Ways, p.LineBytes, maxBytes)
		}
		if !(l.Clocks > last) || l.Clocks > 1e6 {
			return bad("%s answers in %g clocks, want more than %g", l.Name, l.Clocks, last)
		}
		last = l.Clocks
	}
	switch {
	case !(p.MemoryClocks > last) || p.MemoryClocks > 1e6:
		return bad("memory answers in %g clocks, want more than %g", p.MemoryClocks, last)
	case p.Outstanding < 1 || p.Outstanding > 1024:
		return bad("%d misses outstanding, want 1 to 1024", p.Outstanding)
	case p.Window < 1 || p.Window > 1<<16:
		return bad("a window of %d instructions, want 1 to 65536", p.Window)
	case p.Scheduler < 1 || p.Scheduler > 1<<16:
		return bad("a scheduler of %d instructions, want 1 to 65536", p.Scheduler)
	case !(p.Rate > 0) || p.Rate > 16:
		return bad("%g instructions a clock, want above 0 to 16", p.Rate)
	case !(p.ClockMHz > 0) || p.ClockMHz > 1e5:
		return bad("%g MHz, want above 0 to 100000", p.ClockMHz)
	}
	return nil
}

// Three published machines. Sizes, ways and windows are the makers'. Latencies
// are typical of published measurements and rounded, since the mail names no
// machine beyond its core; rates of instructions are chosen between half and
// two thirds of the cores' width.

// CortexA72 is a Cortex-A72 at 2 GHz.
func CortexA72() Processor {
	return Processor{
		Name: "Cortex-A72", ClockMHz: 2000, LineBytes: 64,
		Levels: []Level{
			{"L1", 32 << 10, 2, false, 4},
			{"L2", 1 << 20, 16, true, 21},
			{"L3", 16 << 20, 16, false, 75},
		},
		MemoryClocks: 260, Outstanding: 6, Window: 128, Scheduler: 64, Rate: 1.6,
		Source: "L1 32 KB in 2 ways, L2 512 KB to 4 MB in 16 ways, lines of 64 bytes: Arm Cortex-A72 TRM (100095), sections 6 and 7; 3-wide with 128 instructions under way: Arm's presentation of the core, 2015; L1 4 clocks: Arm Cortex-A72 optimisation guide. Chosen: 2 GHz, 1 MB of L2 of those sizes, L2 19 clocks, memory 130 ns, 6 misses, 1.6 instructions a clock",
	}
}

// ThunderX2 is a ThunderX2 CN9975 at 2 GHz.
func ThunderX2() Processor {
	return Processor{
		Name: "ThunderX2", ClockMHz: 2000, LineBytes: 64,
		Levels: []Level{
			{"L1", 32 << 10, 8, false, 4},
			{"L2", 256 << 10, 8, false, 12},
			{"L3", 28 << 20, 16, false, 60},
		},
		MemoryClocks: 260, Outstanding: 8, Window: 180, Scheduler: 60, Rate: 2,
		Source: "L1 32 KB and L2 256 KB in 8 ways, 1 MB of L3 a core, 28 cores, 180 instructions under way, 4-wide: Cavium's presentation of Vulcan/ThunderX2 (and the LLVM model for thunderx2t99). Chosen: 2 GHz, 16 ways of L3, L2 12, L3 68 clocks (about 34 ns over the ring), memory 130 ns, 8 misses, 2 instructions a clock",
	}
}

// Haswell is a Xeon E5-2699 v3 at 2.3 GHz, the Haswell of the project's own
// test beds.
func Haswell() Processor {
	return Processor{
		Name: "Haswell", ClockMHz: 2300, LineBytes: 64,
		Levels: []Level{
			{"L1", 32 << 10, 8, false, 4},
			{"L2", 256 << 10, 8, false, 12},
			{"L3", 45 << 20, 20, false, 50},
		},
		MemoryClocks: 210, Outstanding: 10, Window: 192, Scheduler: 60, Rate: 2.2,
		Source: "L1 32 KB and L2 256 KB in 8 ways, L1 4 and L2 12 clocks, 10 line-fill buffers, 192 instructions under way, 4-wide: Intel 64 and IA-32 Optimization Reference Manual, section 2.3; 45 MB of L3, 2.3 GHz: Intel's data sheet. Chosen: L3 50 clocks and memory 91 ns (measurements of large server dies lie near), 2.2 instructions a clock",
	}
}

// Processors lists the presets, in the published order of what prefetching
// saves.
func Processors() []Processor { return []Processor{CortexA72(), Haswell(), ThunderX2()} }

// ProcessorByName finds a preset, whatever the case of the letters.
func ProcessorByName(name string) (Processor, error) {
	var names []string
	for _, p := range Processors() {
		if strings.EqualFold(p.Name, name) {
			return p, nil
		}
		names = append(names, p.Name)
	}
	return Processor{}, fmt.Errorf("%w: processor %q, want one of %s", ErrSpec, name, strings.Join(names, ", "))
}
