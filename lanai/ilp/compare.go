package ilp

import (
	"fmt"
	"io"
	"strings"
)

// Comparison sets both modes of a chain side by side, by Ahlgren's model and
// by Abbott and Peterson's.
type Comparison struct {
	Model         Model     `json:"model"`
	SequentialAt  Placement `json:"sequential_placement"`
	IntegratedAt  Placement `json:"integrated_placement"`
	Sequential    Cost      `json:"sequential"`
	Integrated    Cost      `json:"integrated"`
	Speedup       float64   `json:"speedup"` // sequential time / integrated time; below 1 ILP loses
	AbbottSeq     Cost      `json:"abbott_peterson_sequential"`
	AbbottILP     Cost      `json:"abbott_peterson_integrated"`
	AbbottSpeedup float64   `json:"abbott_peterson_speedup"`
}

// Compare computes a Comparison. Pass the same placement twice unless each mode
// has a hit rate of its own.
func Compare(m Model, sequentialAt, integratedAt Placement) (Comparison, error) {
	if err := m.Validate(); err != nil {
		return Comparison{}, err
	}
	for _, p := range []Placement{sequentialAt, integratedAt} {
		if err := p.Validate(); err != nil {
			return Comparison{}, err
		}
	}
	c := Comparison{
		Model: m, SequentialAt: sequentialAt, IntegratedAt: integratedAt,
		Sequential: m.Cost(Sequential, sequentialAt),
		Integrated: m.Cost(Integrated, integratedAt),
		AbbottSeq:  m.AbbottPeterson(Sequential, sequentialAt),
		AbbottILP:  m.AbbottPeterson(Integrated, integratedAt),
	}
	c.Speedup = c.Sequential.ClocksPerByte / c.Integrated.ClocksPerByte
	c.AbbottSpeedup = c.AbbottSeq.ClocksPerByte / c.AbbottILP.ClocksPerByte
	return c, nil
}

// WriteText writes the comparison for people.
func (c Comparison) WriteText(w io.Writer) error {
	names := make([]string, len(c.Model.Functions))
	for i, f := range c.Model.Functions {
		names[i] = f.Name
	}
	t := newTable(w)
	t.line("%s on %s, integrated block %d bytes", strings.Join(names, " → "), c.Model.Machine.Name, c.Integrated.Block)
	t.row("", "instructions", "loop", "data acc.", "state acc.", "clocks/B", "ns/B", "MB/s")
	row := func(name string, k Cost) {
		t.row(name, f3(k.Instructions), f3(k.LoopInstructions), f3(k.DataAccesses), f3(k.StateAccesses),
			f3(k.ClocksPerByte), f1(k.NanosecondPerByte), f1(k.MegabytePerSecond))
	}
	row(fmt.Sprintf("sequential, hit rate %g", c.SequentialAt.HitRate), c.Sequential)
	row(fmt.Sprintf("integrated, hit rate %g", c.IntegratedAt.HitRate), c.Integrated)
	row("sequential, Abbott & Peterson", c.AbbottSeq)
	row("integrated, Abbott & Peterson", c.AbbottILP)
	t.line("integration is %s; by Abbott and Peterson %s", times(c.Speedup), times(c.AbbottSpeedup))
	return t.flush()
}

func times(speedup float64) string {
	switch {
	case speedup > 1:
		return fmt.Sprintf("%.2f times faster", speedup)
	case speedup < 1:
		return fmt.Sprintf("%.2f times slower", 1/speedup)
	}
	return "as fast"
}
