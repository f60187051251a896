package ilp

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTable2ToThePrintedDigit(t *testing.T) {
	r := Table2()
	if r.Mismatches != 0 {
		t.Errorf("%d modelled cells differ from the published ones", r.Mismatches)
	}
	// The published columns again, not through the report's own comparison.
	want := map[string][]float64{
		"hp735": {87, 52, 49, 37},
		"ss20":  {81, 40, 58, 31},
		"ss2":   {372, 178, 247, 128},
	}
	for _, s := range r.Systems {
		var got []float64
		for _, c := range s.Cells {
			got = append(got, c.Printed)
		}
		if diff := cmp.Diff(want[s.Machine.Name], got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", s.Machine.Name, diff)
		}
	}
	// "About 10 %" for the HP, sequential, warm (Ahlgren §5.1).
	if r.WorstCell != "hp735, sequential, warm" || r.WorstDeviation < 0.08 || r.WorstDeviation > 0.11 {
		t.Errorf("worst deviation %.3f at %s", r.WorstDeviation, r.WorstCell)
	}
}

func TestFigure3Knee(t *testing.T) {
	for _, f := range Figure3() {
		seq, ilp := f.Series[0], f.Series[1]
		for i := range ilp.X {
			rising := i > 0 && ilp.Y[i] > ilp.Y[i-1]
			// 3·4 = 12 words fit 13 registers, 3·5 = 15 do not (Ahlgren §5.2).
			if rising != (ilp.X[i] > 4) {
				t.Errorf("figure %s: integrated time rising to %g words: %v", f.ID, ilp.X[i], rising)
			}
			if seq.Y[i] != seq.Y[0] {
				t.Errorf("figure %s: sequential time at %g words differs from that at 1", f.ID, seq.X[i])
			}
		}
	}
}

func TestFigure6Crossover(t *testing.T) {
	f := Figure6()[0]
	seq, ilp := f.Surfaces[0], f.Surfaces[1]
	for i, block := range ilp.Y {
		loses := false
		for j := range ilp.X {
			loses = loses || ilp.Z[i][j] > seq.Z[i][j]
		}
		// Integration is faster at any state from 32 bytes on (Ahlgren §6.2).
		if loses != (block < 32) {
			t.Errorf("block of %g bytes: integration loses somewhere: %v", block, loses)
		}
	}
}

func TestFigure7AlwaysFaster(t *testing.T) {
	figs := Figure7()
	m, f := figureMachine(), SyntheticFunction("f", 0, 3, 4)
	for _, fig := range figs {
		seq, ilp := fig.Surfaces[0], fig.Surfaces[1]
		for i, y := range ilp.Y {
			loses := false
			for j := range ilp.X {
				loses = loses || ilp.Z[i][j] > seq.Z[i][j]+1e-9
			}
			access := y
			if fig.ID == "7a" {
				access = y*m.CacheClocks + (1-y)*slowMemory
			}
			if want := access < BreakEven(m, f); loses != want {
				t.Errorf("figure %s at %g (%g clocks an access): loses %v, break-even says %v", fig.ID, y, access, loses, want)
			}
		}
	}
}

func TestFigure5KeepsWithinThePrintedAxis(t *testing.T) {
	for _, f := range Figure5() {
		for _, s := range f.Surfaces {
			for _, row := range s.Z {
				for _, z := range row {
					if z <= 0 || z > 40 {
						t.Errorf("figure %s, %s: %g clocks", f.ID, s.Name, z)
					}
				}
			}
		}
	}
}

// Break-even against a search: just above it no state loses, just below one
// does, for any number of functions.
func TestBreakEvenAgainstSearch(t *testing.T) {
	for _, m := range DefaultCatalogue().Machines {
		for _, f := range []Function{SyntheticFunction("rw", 0, 10, 4), SyntheticFunction("wide", 0, 10, 8), {Name: "ro", Instructions: 4, In: 4}} {
			for n := 2; n <= 5; n++ {
				at := BreakEven(m, f)
				m.MemoryClocks = at * 1.001
				if l := Losses(m, f, n, InMemory()); len(l) != 0 {
					t.Errorf("%s, %s × %d above break-even loses: %+v", m.Name, f.Name, n, l)
				}
				m.MemoryClocks = at * 0.999
				if l := Losses(m, f, n, InMemory()); len(l) == 0 {
					t.Errorf("%s, %s × %d below break-even never loses", m.Name, f.Name, n)
				}
			}
		}
	}
}

func TestLossesBegin(t *testing.T) {
	// Three functions on the HP, data in the cache: at 5 words the extra
	// accesses, 2·2/4 clocks, weigh as much as the saved passes, 1 + 0.5.
	got := Losses(HP735(), SyntheticFunction("f", 0, 10, 4), 3, InCache())
	if len(got) != 1 || got[0].From != 6 || !got[0].Open || got[0].WorstAt != 13 {
		t.Errorf("losses: %+v", got)
	}
}

func TestBlockSize(t *testing.T) {
	for _, c := range BlockSize().Rows {
		if c.Gain <= 0 || c.GainFiltered <= c.Gain {
			t.Errorf("%+v: two words do not gain, or the filter costs nothing", c)
		}
		// What is said to be needed explains the published gain.
		known := DefaultCatalogue()
		machine, err := known.Machine(c.Machine)
		if err != nil {
			t.Fatal(err)
		}
		m := Model{Machine: machine, Functions: []Function{BSWAP(), PES(), CKSUM()}, Block: 4,
			Filter: WordFilter{Instructions: c.NeedInstructions}}
		at := InCache()
		if c.Cache == "cold" {
			at = InMemory()
		}
		if gain := m.Cost(Integrated, at).ClocksPerByte/c.TwoWords - 1; math.Abs(gain-c.GainPublished) > 1e-9 {
			t.Errorf("%s %s: with %.2f instructions the gain is %.3f, want %.3f", c.Machine, c.Cache, c.NeedInstructions, gain, c.GainPublished)
		}
	}
}

func TestGoldenText(t *testing.T) {
	var b bytes.Buffer
	m := Model{Machine: Lanai4(), Functions: []Function{BSWAP(), PES(), CKSUM()}}
	c, err := Compare(m, InMemory(), InMemory())
	if err != nil {
		t.Fatal(err)
	}
	for _, write := range []func() error{
		func() error { return Table2().WriteText(&b) },
		func() error { return BlockSize().WriteText(&b) },
		func() error { return Region().WriteText(&b) },
		func() error { return c.WriteText(&b) },
		func() error { return Figures().WriteText(&b) },
	} {
		if err := write(); err != nil {
			t.Fatal(err)
		}
		b.WriteString("\n")
	}
	const file = "testdata/reports.txt"
	if *update {
		if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Errorf("reports differ from %s (-want +got); -update rewrites it:\n%s", file, diff)
	}
}

func TestReportsAreJSON(t *testing.T) {
	text, err := json.Marshal(Table2())
	if err != nil {
		t.Fatal(err)
	}
	var back Table2Report
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Table2(), back); diff != "" {
		t.Errorf("table 2 after a round trip (-want +got):\n%s", diff)
	}
	for _, r := range []any{Figures(), Region(), BlockSize()} {
		if _, err := json.Marshal(r); err != nil {
			t.Errorf("%T: %v", r, err)
		}
	}
}
