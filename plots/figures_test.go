package plots

import (
	"bytes"
	"compress/zlib"
	"encoding/xml"
	"errors"
	"fmt"
	"image/png"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"

	"spinesim/lanai/ilp"
	"spinesim/sim/des"
	"spinesim/sim/stats"
	"spinesim/traces"
)

// sample is one figure of each kind.
type sample struct {
	name string
	size Size
	rows [][]*plot.Plot
	says []string // texts that must stand in it
}

func samples(t *testing.T) []sample {
	t.Helper()
	var out []sample
	add := func(name string, size Size, p *plot.Plot, err error, says ...string) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		out = append(out, sample{name, size, [][]*plot.Plot{{p}}, says})
	}
	g := EventGraph{Title: "By hand", From: 5 * us, To: 60 * us, Trace: 7, Style: Coloured}
	p, err := g.Plot(hand())
	add("event graph", Wide, p, err, "By hand", "Router In handler", "Time (µs)")

	h, err := stats.NewHistogram(0.001)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 1000 {
		h.Add(int64(des.Time(50+i%97) * us))
	}
	for _, log := range []bool{false, true} {
		c := CDFPlot{Title: "Latency", XLabel: "latency (µs)", Log: log, Marks: []Mark{{"thesis 100", 100}},
			Series: []CDF{TimeCDF("default", h), TimeCDF("again", h)}}
		p, err = c.Plot()
		add(fmt.Sprintf("CDF %v", log), Wide, p, err, "latency (µs)", "thesis 100")
	}
	for _, zero := range []bool{true, false} {
		c := Comparison{Title: "Gap by policy", XLabel: "gap (µs)", Series: []string{"Poisson", "constant"}, FromZero: zero, Marks: []Mark{{"thesis 95", 95}},
			Groups: []BarGroup{{"default", []Value{PlusMinus(77, 1), PlusMinus(63, math.NaN())}}, {"pci-first", []Value{PlusMinus(58, 0.5), PlusMinus(math.NaN(), 1)}}}}
		p, err = c.Plot()
		add(fmt.Sprintf("comparison %v", zero), c.Size(), p, err, "pci-first", "77.0 ± 1.00", "63.0")
	}
	par := Pareto{Title: "Rate and latency", XLabel: "rate (packets/s)", YLabel: "latency (µs)", MoreX: true}
	for i := range 60 {
		par.Points = append(par.Points, ParetoPoint{Name: fmt.Sprintf("policy-%d", i), X: PlusMinus(8000+math.Mod(float64(i)*2377, 9000), 90), Y: PlusMinus(200+math.Mod(float64(i)*317.7, 900), 12), Marked: i == 9})
	}
	p, err = par.Plot()
	add("Pareto", Wide, p, err, "not beaten in both", "start", "policy-34")
	for _, log := range []bool{true, false} {
		s := Sweep{Title: "Gap over buffers", XLabel: "buffers", YLabel: "gap (µs)", LogX: log, LogY: log, FromZero: !log, Marks: []Mark{{"thesis", 95}},
			Series: []SweepSeries{{"default", []float64{1, 2, 4, 8, 16}, []Value{PlusMinus(120, 9), PlusMinus(90, 5), PlusMinus(math.NaN(), 1), PlusMinus(70, 2), PlusMinus(66, math.NaN())}}}}
		p, err = s.Plot()
		add(fmt.Sprintf("sweep %v", log), Wide, p, err, "default", "thesis", "buffers")
	}
	b := Bound{Title: "Lower bound", Resources: []StackedBar{
		{Name: "processor", Parts: []Part{{"receive", 7.4}, {"route", 6.1}}}, {Name: "DMA engine", Parts: []Part{{"body", 33}, {"header", 0.75}}},
	}, Reached: []Mark{{"static", 36.2}, {"default order", 77}, {"not known", math.NaN()}}}
	p, err = b.Plot()
	add("bound", b.Size(), p, err, "lower bound (DMA engine) 33.8", "static 36.2", "default order 77.0")
	ga := Gantt{Title: "Static schedule", Period: 36 * us, Lanes: []string{"processor", "DMA engine"}, Spans: []GanttSpan{
		{0, 6 * us, 3 * us, "Rx", traces.StepReceive}, {0, 40 * us, 2 * us, "P2P", traces.StepDMA}, {1, 48 * us, 33 * us, "body transfer", traces.StepDMA}}}
	p, err = ga.Plot()
	add("Gantt", Wide, p, err, "processor", "DMA", "a packet every 36.0 µs; in full colour the packet that enters at 0")
	zero := 0.0
	for _, centre := range []*float64{nil, &zero} {
		reg := Region{Title: "Region", XLabel: "buffers", YLabel: "credits", ZLabel: "gap (µs)", X: []string{"1", "2", "4"}, Y: []string{"1", "2"}, Centre: centre,
			Z: [][]float64{{-3, 2, 1}, {2, math.NaN(), 0.5}}, Inside: [][]bool{{true, false, false}, {false, false, false}}, InsideName: "good", Percent: centre != nil}
		p, err = reg.Plot()
		add(fmt.Sprint("region ", centre != nil), Wide, p, err, "good", "buffers", "credits")
	}
	use := traces.Utilisation{Bus: traces.BusUse{Busy: 0.5, By: []traces.HolderUse{{Card: 0, Busy: 0.4}, {Card: traces.HostCard, Busy: 0.1}}},
		Cards: []traces.CardUse{{Card: 0, Handlers: 0.4, Polls: 0.3, Idle: 0.3, DMA: 0.4, DMAWait: 0.1, Receive: 0.2,
			Events:   []traces.EventUse{{Event: "Rx check header", Share: 0.25}, {Event: "Router In handler", Share: 0.15}},
			Transfer: []traces.EventUse{{Event: "Body transfer", Share: 0.4}}}}}
	ub := UtilisationBars("Use", &use)
	p, err = ub.Plot()
	add("utilisation", ub.Size(), p, err, "card 0 processor", "70 % busy", "receive 25 %", "body transfer 40 %", "host bridge has the bus", "waits for the bus")
	path := traces.PathResult{All: traces.PathFigures{N: 9, Mean: 60, Parts: []traces.PathPart{{Kind: traces.PathChain.String(), Mean: 20}, {Kind: traces.PathTransfer.String(), Mean: 40}}},
		Worst: []traces.WorstGap{{From: 12345, Length: 130, Second: 7, Parts: []traces.PathPart{{Kind: traces.PathPolls.String(), Mean: 130}}}}}
	p, err = WhereTimeGoes("Where", &path)
	add("path", WhereTimeGoesBars("", &path).Size(), p, err, "all gaps", "60.0 µs (9)", "DMA chain 20.0", "transfer 40.0")
	p, err = WorstGaps("Worst", &path)
	add("worst", WorstGapsBars("", &path).Size(), p, err, "at 12.345 ms, packet 7", "polls 130")
	rep := ilp.Figures()
	for _, n := range ILPFigures {
		rows, size, err := ILPFigure(&rep, n)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, sample{fmt.Sprint("ILP ", n), size, rows, []string{"state size (words per function)"}})
	}
	return out
}

// TestFiguresLegible: no text of any figure over another or off the sheet.
func TestFiguresLegible(t *testing.T) {
	for _, s := range samples(t) {
		t.Run(s.name, func(t *testing.T) {
			c := drawnOn(s.size, s.rows)
			c.checkTexts(t)
			for _, want := range s.says {
				if !c.has(want) {
					t.Errorf("no %q among %q", want, c.words())
				}
			}
		})
	}
}

func (c *ink) words() (out []string) {
	for _, x := range c.texts {
		out = append(out, x.s)
	}
	return out
}

// TestFiguresInEveryFormat: each figure is written in each format, twice the
// same, with its texts as text.
func TestFiguresInEveryFormat(t *testing.T) {
	for i, s := range samples(t) {
		for _, ext := range Extensions {
			if ext == ".png" && i%3 != 0 { // they take longest
				continue
			}
			var a, b bytes.Buffer
			for _, w := range []*bytes.Buffer{&a, &b} {
				if err := WriteGrid(w, ext, s.size, s.rows); err != nil {
					t.Fatal(s.name, ext, err)
				}
			}
			if !bytes.Equal(a.Bytes(), b.Bytes()) {
				t.Errorf("%s%s differs from one time to the next", s.name, ext)
			}
			var texts string
			switch ext {
			case ".svg":
				texts = svgTexts(t, a.Bytes())
				if strings.Contains(a.String(), "http://") && strings.Count(a.String(), "http://") > strings.Count(a.String(), "http://www.w3.org/") {
					t.Errorf("%s refers to elsewhere", s.name)
				}
			case ".pdf":
				texts = pdfTexts(t, a.Bytes())
			case ".png":
				img, err := png.Decode(&a)
				if err != nil {
					t.Fatal(s.name, err)
				}
				if w := img.Bounds().Dx(); math.Abs(float64(w)-float64(s.size.Width/vg.Inch)*dpi) > 1 {
					t.Errorf("%s: %d dots wide", s.name, w)
				}
				continue
			}
			for _, want := range s.says {
				if !strings.Contains(texts, want) {
					t.Errorf("%s%s: no text %q in %q", s.name, ext, want, texts)
				}
			}
		}
	}
}

// svgTexts are the contents of the text elements; the file must be well formed.
func svgTexts(t *testing.T, b []byte) string {
	t.Helper()
	d := xml.NewDecoder(bytes.NewReader(b))
	var out strings.Builder
	in := false
	for {
		tok, err := d.Token()
		if errors.Is(err, io.EOF) {
			return out.String()
		}
		if err != nil {
			t.Fatal(err)
		}
		switch x := tok.(type) {
		case xml.StartElement:
			in = x.Name.Local == "text"
		case xml.CharData:
			if in {
				out.Write(x)
				out.WriteByte('\n')
			}
		case xml.EndElement:
			in = false
		}
	}
}

var (
	pdfStream = regexp.MustCompile(`(?s)stream\r?\n(.*?)\r?\nendstream`)
	pdfText   = regexp.MustCompile(`\(((?:[^()\\]|\\.)*)\) ?Tj`)
)

// pdfTexts are the texts that a PDF file shows, in its encoding.
func pdfTexts(t *testing.T, b []byte) string {
	t.Helper()
	var out strings.Builder
	for _, m := range pdfStream.FindAllSubmatch(b, -1) {
		z, err := zlib.NewReader(bytes.NewReader(m[1]))
		if err != nil {
			continue
		}
		s, err := io.ReadAll(z)
		if err != nil {
			continue
		}
		for _, x := range pdfText.FindAllSubmatch(s, -1) {
			for i := 0; i < len(x[1]); i++ {
				c := x[1][i]
				if c == '\\' && i+1 < len(x[1]) {
					i++
					c = x[1][i]
				}
				out.WriteRune(rune(c)) // Latin-1, as far as it is used here
			}
			out.WriteByte('\n')
		}
	}
	return out.String()
}

func TestFiguresOfMistakes(t *testing.T) {
	nan := math.NaN()
	for name, f := range map[string]func() (*plot.Plot, error){
		"no bars":            (&StackedBars{}).Plot,
		"empty bars":         (&StackedBars{Bars: []StackedBar{{Name: "a", Parts: []Part{{"x", nan}, {"y", -1}}}}}).Plot,
		"no groups":          (&Comparison{Series: []string{"a"}}).Plot,
		"values missing":     (&Comparison{Series: []string{"a", "b"}, Groups: []BarGroup{{"x", []Value{{1, 1, 1}}}}}).Plot,
		"nothing to compare": (&Comparison{Series: []string{"a"}, Groups: []BarGroup{{"x", []Value{{nan, nan, nan}}}}}).Plot,
		"no points":          (&Pareto{}).Plot,
		"points of nothing":  (&Pareto{Points: []ParetoPoint{{X: Value{nan, nan, nan}}}}).Plot,
		"no series":          (&Sweep{}).Plot,
		"uneven series":      (&Sweep{Series: []SweepSeries{{X: []float64{1}}}}).Plot,
		"log of 0":           (&Sweep{LogX: true, Series: []SweepSeries{{X: []float64{0}, Y: []Value{{1, 1, 1}}}}}).Plot,
		"no distribution":    (&CDFPlot{Series: []CDF{{}}}).Plot,
		"no resources":       (&Bound{}).Plot,
		"no cycle":           (&Gantt{Lanes: []string{"a"}, Spans: []GanttSpan{{}}}).Plot,
		"a lane too far":     (&Gantt{Period: us, Lanes: []string{"a"}, Spans: []GanttSpan{{Lane: 1, Length: us}}}).Plot,
		"before the packet":  (&Gantt{Period: us, Lanes: []string{"a"}, Spans: []GanttSpan{{Start: -us, Length: us}}}).Plot,
		"no grid":            (&Region{}).Plot,
		"uneven grid":        (&Region{X: []string{"1", "2"}, Y: []string{"1"}, Z: [][]float64{{1}}}).Plot,
		"uneven marks":       (&Region{X: []string{"1"}, Y: []string{"1"}, Z: [][]float64{{1}}, Inside: [][]bool{{}}}).Plot,
		"grid of nothing":    (&Region{X: []string{"1"}, Y: []string{"1"}, Z: [][]float64{{nan}}}).Plot,
	} {
		if p, err := f(); err == nil || p != nil {
			t.Errorf("%s: no error", name)
		}
	}
	rep := ilp.Figures()
	if _, _, err := ILPFigure(&rep, 4); err == nil {
		t.Error("figure 4 is drawn, which the model does not have")
	}
}

func TestSave(t *testing.T) {
	p, err := (&Pareto{Points: []ParetoPoint{{Name: "a", X: PlusMinus(1, 0), Y: PlusMinus(2, 0)}}}).Plot()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	good := filepath.Join(dir, "a.SVG")
	if err := Save(good, Wide, p); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(good); err != nil || !bytes.Contains(b, []byte("</svg>")) {
		t.Errorf("saved %d bytes, %v", len(b), err)
	}
	if err := os.WriteFile(filepath.Join(dir, "old.png"), []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		path string
		size Size
		rows [][]*plot.Plot
		want error
	}{
		{"a.gif", Wide, column([]*plot.Plot{p}), ErrExtension},
		{"absent/a.svg", Wide, column([]*plot.Plot{p}), os.ErrNotExist},
		{"old.png", Size{-1, 1}, column([]*plot.Plot{p}), nil},
		{"old.png", Size{1e6 * vg.Inch, vg.Inch}, column([]*plot.Plot{p}), nil},
		{"old.png", Wide, nil, nil},
		{"old.png", Wide, [][]*plot.Plot{{p}, {p, p}}, nil},
	} {
		err := SaveGrid(filepath.Join(dir, tc.path), tc.size, tc.rows)
		if err == nil || tc.want != nil && !errors.Is(err, tc.want) || !strings.Contains(err.Error(), filepath.Base(tc.path)[:3]) {
			t.Errorf("%s: %v, want %v", tc.path, err, tc.want)
		}
	}
	if b, err := os.ReadFile(filepath.Join(dir, "old.png")); err != nil || string(b) != "old" {
		t.Errorf("a failed figure replaced the old one by %q, %v", b, err)
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 2 {
		t.Errorf("%v left in the directory, %v", files, err)
	}
}

// TestFrontAgainstOracle: the front is what no point beats, pair by pair.
func TestFrontAgainstOracle(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		d := Pareto{MoreX: rnd.IntN(2) == 0, MoreY: rnd.IntN(2) == 0}
		for range rnd.IntN(20) {
			v := func() Value {
				if rnd.IntN(12) == 0 {
					return PlusMinus(math.NaN(), 1)
				}
				return PlusMinus(float64(rnd.IntN(6)), 1)
			}
			d.Points = append(d.Points, ParetoPoint{X: v(), Y: v()})
		}
		on := map[int]bool{}
		last := math.Inf(-1)
		for _, i := range d.Front() {
			on[i] = true
			if d.Points[i].X.Mean < last {
				t.Fatal("the front is not in order")
			}
			last = d.Points[i].X.Mean
		}
		better := func(a, b float64, more bool) int { // 1: a is better than b
			if a == b {
				return 0
			}
			if (a > b) == more {
				return 1
			}
			return -1
		}
		for i, a := range d.Points {
			want := !math.IsNaN(a.X.Mean) && !math.IsNaN(a.Y.Mean)
			for _, b := range d.Points {
				if math.IsNaN(b.X.Mean) || math.IsNaN(b.Y.Mean) {
					continue
				}
				x, y := better(b.X.Mean, a.X.Mean, d.MoreX), better(b.Y.Mean, a.Y.Mean, d.MoreY)
				if x >= 0 && y >= 0 && x+y > 0 {
					want = false
				}
			}
			if on[i] != want {
				t.Fatalf("point %d (%v, %v) of %+v: on the front %v, want %v", i, a.X.Mean, a.Y.Mean, d, on[i], want)
			}
		}
	}
}

func TestTicks(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		lo := (rnd.Float64() - 0.5) * math.Pow(10, float64(rnd.IntN(9)-3))
		hi := lo + rnd.Float64()*math.Pow(10, float64(rnd.IntN(9)-3))
		ts := evenTicks{most: 8}.Ticks(lo, hi)
		if len(ts) > 9 || hi-lo > 1e-6*math.Abs(lo) && len(ts) < 1 {
			t.Fatalf("%d ticks from %v to %v", len(ts), lo, hi)
		}
		for i, x := range ts {
			if x.Value < lo-(hi-lo)*1e-6 || x.Value > hi+(hi-lo)*1e-6 || i > 0 && x.Value <= ts[i-1].Value {
				t.Fatalf("tick %v from %v to %v", x, lo, hi)
			}
		}
	}
	for _, tc := range []struct {
		ticker plot.Ticker
		lo, hi float64
		want   []string
	}{
		{evenTicks{}, 0, 130, []string{"0", "10", "20", "30", "40", "50", "60", "70", "80", "90", "100", "110", "120", "130"}},
		{evenTicks{whole: true, most: 7}, 0, 3.2, []string{"0", "1", "2", "3"}},
		{logTicks{}, 1, 20, []string{"1", "2", "", "", "5", "", "", "", "", "10", "20"}},
		{percentTicks{most: 5}, 0, 1, []string{"0", "20", "40", "60", "80", "100"}},
		{evenTicks{}, 1, 1, nil}, {logTicks{}, 0, 1, nil}, {evenTicks{}, 0, math.Inf(1), nil},
	} {
		var got []string
		for _, x := range tc.ticker.Ticks(tc.lo, tc.hi) {
			got = append(got, x.Label)
		}
		if d := cmp.Diff(tc.want, got); d != "" {
			t.Errorf("%T from %v to %v: %s", tc.ticker, tc.lo, tc.hi, d)
		}
	}
}

// TestILPRegions: the published statements hold in what is drawn.
func TestILPRegions(t *testing.T) {
	rep := ilp.Figures()
	slower := func(id string, y float64) (n int) {
		for _, f := range rep.Surfaces {
			if f.ID != id {
				continue
			}
			for i, v := range f.Surfaces[0].Y {
				if v != y {
					continue
				}
				for j := range f.Surfaces[0].X {
					if f.Surfaces[1].Z[i][j] > f.Surfaces[0].Z[i][j]+1e-12 {
						n++
					}
				}
			}
		}
		return n
	}
	// Integration is faster at any state once the block is 32 bytes.
	if n := slower("6", 32); n != 0 {
		t.Errorf("with blocks of 32 bytes integration is slower at %d states", n)
	}
	if n := slower("6", 4); n == 0 {
		t.Error("with blocks of 4 bytes integration is never slower")
	}
	rows, _, err := ILPFigure(&rep, 6)
	if err != nil {
		t.Fatal(err)
	}
	if c := drawnOn(Wide, rows); !c.has("integration is slower") || !c.has("block size (bytes) 4") {
		t.Errorf("figure 6 says %q", c.words())
	}
}
