package isa_test

import (
	"testing"

	"spinesim/lanai/isa"
)

// pattern repeats what is free in each cycle.
type pattern struct{ free, waits []uint8 }

func (p *pattern) Window(cycle int64) isa.Window {
	if p.waits == nil {
		p.waits = isa.AppendWaits(nil, p.free, len(p.free))
	}
	i := int(cycle % int64(len(p.free)))
	return isa.Window{Free: p.free[i:], Waits: p.waits[i:]}
}

func benchmark(b *testing.B, slots isa.Slots) {
	m := newMachine(b, compile(b, "-O2", "testdata/programs.c"))
	m.cpu.Slots = slots
	names := []string{"checksum", "crc", "sort", "division", "tree", "moves"}
	for i := range inputWords {
		if err := m.sram.SetWord(m.symbol(b, "in")+uint32(4*i), uint32(i)*0x9E3779B9); err != nil {
			b.Fatal(err)
		}
	}
	m.call(b, "checksum")
	before := m.cpu.Counters()
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		m.call(b, names[i%len(names)])
	}
	n := m.cpu.Counters().Sub(before)
	b.ReportMetric(float64(n.Instructions)/b.Elapsed().Seconds()/1e6, "Minstr/s")
	b.ReportMetric(float64(n.Waits)/float64(n.Instructions), "waits/instr")
}

func BenchmarkAlone(b *testing.B) { benchmark(b, nil) }

// BenchmarkContended runs against a receive engine at 1.2 accesses a cycle,
// as the link at its full rate asks for.
func BenchmarkContended(b *testing.B) {
	p := &pattern{}
	for i := range 4096 {
		p.free = append(p.free, []uint8{0, 1, 1, 1, 1}[i%5])
	}
	benchmark(b, p)
}
