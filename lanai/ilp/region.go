package ilp

import (
	"fmt"
	"io"
)

// BreakEven is the mean time of a message access, in clocks a word, from which
// on integrating n copies of f never loses, whatever their state. With equal
// functions the extra state accesses stop growing once each function alone
// overflows the registers, at 2(n−1)R/in a byte; against them stand the message
// accesses and the loop overhead of n−1 passes. The number of functions cancels.
// It can lie below 0: then integration always wins. Follows from Ahlgren eq. 1
// to 9; the formula is ours.
func BreakEven(m Machine, f Function) float64 {
	in, w := float64(f.In), float64(m.WordBytes)
	extraState := 2 * float64(m.Registers) / in * m.CacheClocks
	savedLoop := m.CPI * m.LoopInstructions / in
	return (extraState - savedLoop) * w / f.accesses()
}

// LossInterval is a range of state sizes where integration is slower.
type LossInterval struct {
	Functions int     `json:"functions"`
	From      int     `json:"from_state_words"` // per function
	To        int     `json:"to_state_words"`   // inclusive
	Open      bool    `json:"open"`             // still losing at the largest state examined
	Worst     float64 `json:"worst_loss"`       // (integrated − sequential) / sequential, at its largest
	WorstAt   int     `json:"worst_state_words"`
}

// maxRegionState is the largest state examined, in words per function.
const maxRegionState = 64

// Losses finds the whole-word state sizes, 0 to 64 words, at which n copies of
// f run slower integrated than sequentially, in ascending order.
func Losses(m Machine, f Function, n int, at Placement) []LossInterval {
	var out []LossInterval
	open := false
	for s := 0; s <= maxRegionState; s++ {
		f.StateWords = float64(s)
		model := repeated(m, f, n)
		seq, ilp := model.Cost(Sequential, at).ClocksPerByte, model.Cost(Integrated, at).ClocksPerByte
		if ilp <= seq {
			open = false
			continue
		}
		if !open {
			out = append(out, LossInterval{Functions: n, From: s})
			open = true
		}
		l := &out[len(out)-1]
		l.To = s
		if loss := (ilp - seq) / seq; loss > l.Worst {
			l.Worst, l.WorstAt = loss, s
		}
		l.Open = s == maxRegionState
	}
	return out
}

// RegionReport says where integration loses, for the published machines and the
// card.
type RegionReport struct {
	Function Function        `json:"function"` // its state varies
	Machines []MachineRegion `json:"machines"`
}

// MachineRegion is one machine's part.
type MachineRegion struct {
	Machine   Machine        `json:"machine"`
	BreakEven float64        `json:"break_even_clocks_per_word"`
	Cache     []LossInterval `json:"in_cache"`
	Memory    []LossInterval `json:"in_memory"`
	// SafeHitRate is the highest hit rate at which integration never loses; -1
	// when it can lose even with every access going to memory.
	SafeHitRate float64 `json:"safe_hit_rate"`
}

// Region computes the report for the synthetic function of Figure 3 (10
// instructions, 4-byte blocks), 2 to 5 functions.
func Region() RegionReport {
	r := RegionReport{Function: SyntheticFunction("synthetic", 0, 10, 4)}
	for _, m := range DefaultCatalogue().Machines {
		r.Machines = append(r.Machines, MachineRegionOf(m, r.Function))
	}
	return r
}

// MachineRegionOf computes one machine's part for 2 to 5 copies of f, whose
// state is varied.
func MachineRegionOf(m Machine, f Function) MachineRegion {
	k := MachineRegion{Machine: m, BreakEven: BreakEven(m, f), SafeHitRate: -1}
	for n := 2; n <= 5; n++ {
		k.Cache = append(k.Cache, Losses(m, f, n, InCache())...)
		k.Memory = append(k.Memory, Losses(m, f, n, InMemory())...)
	}
	switch {
	case m.CacheClocks >= k.BreakEven:
		k.SafeHitRate = 1
	case m.MemoryClocks >= k.BreakEven:
		k.SafeHitRate = (m.MemoryClocks - k.BreakEven) / (m.MemoryClocks - m.CacheClocks)
	}
	return k
}

// WriteText writes the report for people.
func (r RegionReport) WriteText(w io.Writer) error {
	t := newTable(w)
	t.line("Where integration loses: equal functions of %g instructions, %d-byte blocks", r.Function.Instructions, r.Function.In)
	t.row("machine", "functions", "data in", "state (words)", "worst loss", "at state")
	for _, k := range r.Machines {
		for i, ls := range [][]LossInterval{k.Cache, k.Memory} {
			for _, l := range ls {
				states := fmt.Sprintf("%d–%d", l.From, l.To)
				if l.Open {
					states = fmt.Sprintf("%d and more", l.From)
				}
				t.row(k.Machine.Name, fmt.Sprint(l.Functions), [2]string{"cache", "memory"}[i], states, percent(l.Worst), fmt.Sprint(l.WorstAt))
			}
		}
	}
	for _, k := range r.Machines {
		safe := fmt.Sprintf("hit rate up to %.2f", k.SafeHitRate)
		if k.SafeHitRate < 0 {
			safe = "no hit rate"
		}
		t.line("%s: never loses from %.1f clocks/word on; safe at %s (t_c %g, t_m %g)",
			k.Machine.Name, k.BreakEven, safe, k.Machine.CacheClocks, k.Machine.MemoryClocks)
	}
	return t.flush()
}
