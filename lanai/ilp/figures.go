package ilp

import (
	"fmt"
	"io"
)

// Series is a line of a figure.
type Series struct {
	Name string    `json:"name"`
	X    []float64 `json:"x"`
	Y    []float64 `json:"y"`
}

// Figure is a plot of lines over one axis.
type Figure struct {
	ID     string   `json:"id"`
	Title  string   `json:"title"`
	XLabel string   `json:"x_label"`
	YLabel string   `json:"y_label"`
	Series []Series `json:"series"`
	Notes  []string `json:"notes,omitempty"`
}

// Surface is a value over two axes: Z[i][j] belongs to Y[i] and X[j].
type Surface struct {
	Name string      `json:"name"`
	X    []float64   `json:"x"`
	Y    []float64   `json:"y"`
	Z    [][]float64 `json:"z"`
}

// SurfaceFigure is a plot of surfaces.
type SurfaceFigure struct {
	ID       string    `json:"id"`
	Title    string    `json:"title"`
	XLabel   string    `json:"x_label"`
	YLabel   string    `json:"y_label"`
	ZLabel   string    `json:"z_label"`
	Surfaces []Surface `json:"surfaces"`
	Notes    []string  `json:"notes,omitempty"`
}

// FiguresReport holds the figures of Ahlgren's paper that show the model.
type FiguresReport struct {
	Lines    []Figure        `json:"lines"`
	Surfaces []SurfaceFigure `json:"surfaces"`
}

// Figures computes all of them.
func Figures() FiguresReport {
	return FiguresReport{
		Lines:    Figure3(),
		Surfaces: append(append(Figure5(), Figure6()...), Figure7()...),
	}
}

// repeated is a model of n equal functions.
func repeated(m Machine, f Function, n int) Model {
	fs := make([]Function, n)
	for i := range fs {
		fs[i] = f
	}
	return Model{Machine: m, Functions: fs}
}

// steps is lo, lo+1 … hi.
func steps(lo, hi int) []float64 {
	var xs []float64
	for x := lo; x <= hi; x++ {
		xs = append(xs, float64(x))
	}
	return xs
}

// Figure3 is time a byte against state on the HP 9000-735/99: three functions,
// 4-byte blocks, 10 instructions a block, 1 to 9 words of state each (Ahlgren
// §5.2). (a) data in the cache, (b) in memory. The paper's measured points are
// not known in figures; [Measure] draws the same on the running machine.
func Figure3() []Figure {
	var figs []Figure
	for i, at := range []Placement{InCache(), InMemory()} {
		fig := Figure{
			ID:     [2]string{"3a", "3b"}[i],
			Title:  "HP 9000-735/99, 3 functions, message data in " + [2]string{"cache", "memory"}[i],
			XLabel: "state size (words per function)",
			YLabel: "ns/byte",
			Notes:  []string{"modelled; the measured points are not known in figures"},
		}
		for mode := range Mode(NumModes) {
			s := Series{Name: mode.String(), X: steps(1, 9)}
			for _, x := range s.X {
				m := repeated(HP735(), SyntheticFunction("synthetic", x, 10, 4), 3)
				s.Y = append(s.Y, m.Cost(mode, at).NanosecondPerByte)
			}
			fig.Series = append(fig.Series, s)
		}
		figs = append(figs, fig)
	}
	return figs
}

// figureMachine is that of Ahlgren's Figure 6: 10 registers, t_c 1, CPI 1, lo 1
// (§6.2). Its memory access time is not stated; 4 is that of the HP, chosen.
// Clocks do not depend on the frequency; 100 MHz is chosen.
func figureMachine() Machine {
	return Machine{
		Name: "figure6", Registers: 10, CacheClocks: 1, MemoryClocks: 4, CPI: 1,
		LoopInstructions: 1, ClockMHz: 100, WordBytes: 4,
		Source: "Ahlgren §6.2; memory access time and clock chosen",
	}
}

// Instructions per 4 bytes in Figure 6 (Ahlgren §6.2).
const figureInstructions = 3

// surfaces fills one surface a mode.
func surfaces(xs, ys []float64, model func(x, y float64) (Model, Placement)) []Surface {
	var out []Surface
	for mode := range Mode(NumModes) {
		s := Surface{Name: mode.String(), X: xs, Y: ys}
		for _, y := range ys {
			row := make([]float64, len(xs))
			for j, x := range xs {
				m, at := model(x, y)
				row[j] = m.Cost(mode, at).ClocksPerByte
			}
			s.Z = append(s.Z, row)
		}
		out = append(out, s)
	}
	return out
}

// Figure5 is clocks a byte against state (0 to 15 words) and number of
// functions (1 to 5), (a) in the cache, (b) in memory. The paper's other
// parameters are not stated where the figure is; those of Figure 6 are chosen,
// and keep within the printed axis (0 to 40 clocks).
func Figure5() []SurfaceFigure {
	var figs []SurfaceFigure
	for i, at := range []Placement{InCache(), InMemory()} {
		figs = append(figs, SurfaceFigure{
			ID:     [2]string{"5a", "5b"}[i],
			Title:  "Modelled performance, message data in " + [2]string{"cache", "memory"}[i],
			XLabel: "state size (words per function)",
			YLabel: "functions",
			ZLabel: "clock cycles per byte",
			Notes:  []string{"registers, CPI, access times and instructions of Figure 6, chosen"},
			Surfaces: surfaces(steps(0, 15), steps(1, 5), func(x, y float64) (Model, Placement) {
				return repeated(figureMachine(), SyntheticFunction("synthetic", x, figureInstructions, 4), int(y)), at
			}),
		})
	}
	return figs
}

// Figure6 is clocks a byte against state and block size: 3 functions, 3
// instructions per 4 bytes, t_c 1, CPI 1, lo 1; 10 registers at 4 bytes, fewer
// by what a larger block occupies (Ahlgren §6.2). Integration is faster at any
// state once the block is 32 bytes.
func Figure6() []SurfaceFigure {
	return []SurfaceFigure{{
		ID:     "6",
		Title:  "Modelled performance for different block sizes, message data in cache",
		XLabel: "state size (words per function)",
		YLabel: "block size (bytes)",
		ZLabel: "clock cycles per byte",
		Surfaces: surfaces(steps(0, 15), []float64{4, 8, 16, 32}, func(x, y float64) (Model, Placement) {
			m := repeated(figureMachine(), SyntheticFunction("synthetic", x, figureInstructions*y/4, int(y)), 3)
			m.BlockRegisters = true
			return m, InCache()
		}),
	}}
}

// slowMemory is an access time at which integration always wins with a cold
// cache: above the break-even of 9.5 clocks a word that BreakEven gives for the
// figures' machine. Chosen.
const slowMemory = 20

// Figure7 shows that slow memory and a low hit rate make integration always
// faster (Ahlgren §6.3): (a) clocks against state and hit rate with a memory of
// 20 clocks a word, (b) against state and memory access time with no hits. The
// paper states neither axes nor values in the text that is known; 3 functions
// and the parameters of Figure 6 are chosen.
func Figure7() []SurfaceFigure {
	hits := []float64{0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1}
	function := func(state float64) Function {
		return SyntheticFunction("synthetic", state, figureInstructions, 4)
	}
	return []SurfaceFigure{{
		ID:     "7a",
		Title:  fmt.Sprintf("Modelled performance for different hit rates, memory access %d clocks/word", slowMemory),
		XLabel: "state size (words per function)",
		YLabel: "cache hit rate",
		ZLabel: "clock cycles per byte",
		Notes:  []string{"axes and memory access time chosen"},
		Surfaces: surfaces(steps(0, 15), hits, func(x, y float64) (Model, Placement) {
			m := figureMachine()
			m.MemoryClocks = slowMemory
			return repeated(m, function(x), 3), Placement{HitRate: y}
		}),
	}, {
		ID:     "7b",
		Title:  "Modelled performance for different memory access times, no hits",
		XLabel: "state size (words per function)",
		YLabel: "memory access (clocks/word)",
		ZLabel: "clock cycles per byte",
		Notes:  []string{"axes chosen"},
		Surfaces: surfaces(steps(0, 15), steps(1, slowMemory), func(x, y float64) (Model, Placement) {
			m := figureMachine()
			m.MemoryClocks = y
			return repeated(m, function(x), 3), InMemory()
		}),
	}}
}

// WriteText writes every figure as a table for people.
func (r FiguresReport) WriteText(w io.Writer) error {
	for _, f := range r.Lines {
		if err := f.WriteText(w); err != nil {
			return err
		}
	}
	for _, f := range r.Surfaces {
		if err := f.WriteText(w); err != nil {
			return err
		}
	}
	return nil
}

// WriteText writes the figure as a table, one column a series.
func (f Figure) WriteText(w io.Writer) error {
	t := newTable(w)
	t.line("Figure %s: %s, %s", f.ID, f.Title, f.YLabel)
	head := []string{f.XLabel}
	for _, s := range f.Series {
		head = append(head, s.Name)
	}
	t.row(head...)
	if len(f.Series) > 0 {
		for i, x := range f.Series[0].X {
			row := []string{fmt.Sprintf("%g", x)}
			for _, s := range f.Series {
				row = append(row, f1(s.Y[i]))
			}
			t.row(row...)
		}
	}
	for _, n := range f.Notes {
		t.line("note: %s", n)
	}
	t.line("")
	return t.flush()
}

// WriteText writes the figure as one table a surface, one column a value of Y.
func (f SurfaceFigure) WriteText(w io.Writer) error {
	t := newTable(w)
	t.line("Figure %s: %s, %s", f.ID, f.Title, f.ZLabel)
	for _, s := range f.Surfaces {
		t.line("%s, by %s:", s.Name, f.YLabel)
		head := []string{f.XLabel}
		for _, y := range s.Y {
			head = append(head, fmt.Sprintf("%g", y))
		}
		t.row(head...)
		for j, x := range s.X {
			row := []string{fmt.Sprintf("%g", x)}
			for i := range s.Y {
				row = append(row, fmt.Sprintf("%.2f", s.Z[i][j]))
			}
			t.row(row...)
		}
	}
	for _, n := range f.Notes {
		t.line("note: %s", n)
	}
	t.line("")
	return t.flush()
}
