package bihash

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// slowCache is a set as a list that is searched from end to end.
type slowCache struct {
	sets, ways int
	lines      [][]uint64
}

func (c *slowCache) touch(line uint64) bool {
	s := &c.lines[int((line+1)%uint64(c.sets))]
	if i := slices.Index(*s, line); i >= 0 {
		*s = append([]uint64{line}, slices.Delete(slices.Clone(*s), i, i+1)...)
		return true
	}
	*s = append([]uint64{line}, *s...)
	if len(*s) > c.ways {
		*s = (*s)[:c.ways]
	}
	return false
}

func TestCachesAgainstLists(t *testing.T) {
	p := Processor{Name: "x", LineBytes: 64, Levels: []Level{{"L1", 1 << 10, 2, false, 4}, {"L2", 12 << 10, 3, false, 10}}}
	c := newCaches(&p)
	slow := []*slowCache{{8, 2, make([][]uint64, 8)}, {64, 3, make([][]uint64, 64)}}
	r := rand.New(rand.NewPCG(1, 1))
	var levels [3]int
	for i := range 20000 {
		addr := r.Uint64N(300 * 64)
		if i%3 == 0 {
			addr = r.Uint64N(20 * 64)
		}
		want := 2
		for l := len(slow) - 1; l >= 0; l-- {
			if slow[l].touch(addr / 64) {
				want = l
			}
		}
		got := c.access(addr)
		levels[got]++
		if got != want {
			t.Fatalf("access %d of %#x: level %d, want %d", i, addr, got, want)
		}
	}
	if slices.Min(levels[:]) < 1000 {
		t.Errorf("accesses by level %v: the test does not reach all", levels)
	}
	// Pseudo-random replacement keeps a part of what just does not fit, where
	// the other kind keeps nothing.
	hits := map[bool]int{}
	for _, random := range []bool{false, true} {
		p := Processor{LineBytes: 64, Levels: []Level{{"L", 16 << 10, 16, random, 4}}}
		c := newCaches(&p)
		for i := range 20000 {
			if c.access(uint64(i%320)*64) == 0 {
				hits[random]++
			}
		}
	}
	if hits[false] != 0 || hits[true] < 8000 {
		t.Errorf("of 20,000 accesses in turn to 320 lines of 256: %d hits with the least recently used, %d at random", hits[false], hits[true])
	}
}

// simple is a machine whose times can be added up by hand.
func simple() Processor {
	return Processor{
		Name: "simple", ClockMHz: 1000, LineBytes: 64,
		Levels:       []Level{{"L1", 64 << 10, 8, false, 1}},
		MemoryClocks: 100, Outstanding: 4, Window: 64, Scheduler: 64, Rate: 1,
	}
}

func TestWindow(t *testing.T) {
	far := func(i int) uint64 { return uint64(i) * 4096 }
	const n = 400
	for _, c := range []struct {
		name   string
		change func(*Processor)
		run    func(w *window)
		want   float64 // clocks a step
	}{
		{"work alone goes at the core's rate", func(p *Processor) { p.Rate = 2 }, func(w *window) { w.work(10, 0, 1) }, 5},
		{"independent misses overlap as far as lines can be on their way", func(*Processor) {}, nil, 25},
		{"one line on its way: one miss after the other", func(p *Processor) { p.Outstanding = 1 }, nil, 100},
		{"a window of one instruction waits for each", func(p *Processor) { p.Window = 1 }, nil, 101},
		{"a window of two packets of ten overlaps two", func(p *Processor) { p.Window, p.Outstanding = 20, 64 }, func(w *window) { w.work(9, 0, 1) }, 50},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := simple()
			c.change(&p)
			w := newWindow(&p)
			for i := range n {
				if c.run != nil {
					c.run(w)
				}
				if c.want != 5 {
					w.load(far(i), 0)
				}
			}
			if got := w.drain() / n; math.Abs(got-c.want) > 0.06*c.want {
				t.Errorf("%.2f clocks, want about %.2f", got, c.want)
			}
		})
	}
	t.Run("a scheduler of four waits for each packet's eight", func(t *testing.T) {
		p := simple()
		p.Scheduler, p.Outstanding = 4, 64
		w := newWindow(&p)
		for i := range n {
			at := w.load(far(i), 0)
			w.work(8, at, 1)
		}
		if got := w.drain() / n; got < 95 {
			t.Errorf("%.2f clocks a packet, want about a miss each", got)
		}
	})
	t.Run("dependent loads add up", func(t *testing.T) {
		p := simple()
		w := newWindow(&p)
		at := 0.0
		for i := range n {
			at = w.load(far(i), at)
		}
		if got := w.drain() / n; math.Abs(got-100) > 1 {
			t.Errorf("%.2f clocks a load of a chain, want 100", got)
		}
	})
	t.Run("a prefetch far enough ahead hides the miss", func(t *testing.T) {
		p := simple()
		w := newWindow(&p)
		for i := range n {
			w.prefetch(far(i+4), 0)
			w.load(far(i), 0)
			w.work(38, 0, 1)
		}
		if got := w.drain() / n; math.Abs(got-40) > 1.5 {
			t.Errorf("%.2f clocks, want about the 40 of its instructions", got)
		}
	})
}

// figuresOnce plays the published cases once for all tests.
var figuresOnce = sync.OnceValues(Figures)

// TestPublishedShape is what the model must show: one flow costs, 10,000 save
// 10 to 25 %, in the published order, with one figure calibrated.
func TestPublishedShape(t *testing.T) {
	r, err := figuresOnce()
	if err != nil {
		t.Fatal(err)
	}
	if !r.OrderRight {
		t.Error("the machines do not come in the published order")
	}
	calibrated := 0
	for _, f := range r.Figures {
		t.Logf("%s, %s: %.1f %% saved, published %.1f %%; one flow %.1f %%", f.Processor, f.Role, 100*f.Model.Saving, 100*f.Published.Saving, 100*f.SingleFlow.Saving)
		if f.Model.Saving < 0.10 || f.Model.Saving > 0.25 {
			t.Errorf("%s saves %.3f, want 0.10 to 0.25", f.Processor, f.Model.Saving)
		}
		if f.SingleFlow.Saving >= 0 || f.SingleFlow.Saving < -0.2 {
			t.Errorf("%s with one flow saves %.3f, want a small cost", f.Processor, f.SingleFlow.Saving)
		}
		if f.Role == "calibrated" {
			calibrated++
			if math.Abs(f.Deviation) > 0.005 {
				t.Errorf("%s was calibrated and is off by %.3f", f.Processor, f.Deviation)
			}
		}
		// A single flow never touches the table: other loads than headers are
		// few.
		if f.SingleFlow.Plain.PerPacket >= f.Model.Plain.PerPacket {
			t.Errorf("%s: one flow takes %.1f clocks, ten thousand %.1f", f.Processor, f.SingleFlow.Plain.PerPacket, f.Model.Plain.PerPacket)
		}
	}
	if calibrated != 1 {
		t.Errorf("%d figures calibrated, want one", calibrated)
	}
	// The footprint known of the original: 5,775 bucket lines and 9,275 pages.
	if s := r.Table; math.Abs(float64(s.BucketLines)-5775) > 60 || math.Abs(float64(s.Pages)-9275) > 60 {
		t.Errorf("table of 10,000: %d bucket lines, %d pages", s.BucketLines, s.Pages)
	}
}

// TestCalibrate finds a parameter again from what it gives. 600 flows do for
// Haswell: they are beyond its L2, as 10,000 are. Short frames take less time.
func TestCalibrate(t *testing.T) {
	n := DefaultNode()
	n.Frame, n.OtherInstructions = 32, 80
	want, err := Compare(n, Haswell(), DefaultSpec(), 600, RoundRobin, PrefetchBucket)
	if err != nil {
		t.Fatal(err)
	}
	k, got, err := Calibrate(n, Haswell(), DefaultSpec(), 600, PrefetchBucket, want.Saving)
	if err != nil || math.Abs(got-want.Saving) > 1e-9 {
		t.Errorf("calibrated to %d instructions and %.4f, %v; want %.4f", k, got, err, want.Saving)
	}
}

func TestCrossover(t *testing.T) {
	for _, p := range []Processor{Haswell(), ThunderX2()} {
		s, err := Crossover(DefaultNode(), p, DefaultSpec(), []int{1, 64, 256, 512, 2048}, RoundRobin, PrefetchBucket)
		if err != nil {
			t.Fatal(err)
		}
		if s.Points[0].Saving >= 0 || s.Points[4].Saving <= 0 {
			t.Errorf("%s: savings %.3f with one flow, %.3f with 2,048", p.Name, s.Points[0].Saving, s.Points[4].Saving)
		}
		if s.Crossover < 64 || s.Crossover > 512 {
			t.Errorf("%s: crossover at %.0f flows", p.Name, s.Crossover)
		}
	}
	for _, c := range []struct {
		points []Comparison
		want   float64
	}{
		{nil, 0},
		{[]Comparison{{Flows: 10, Saving: -1}}, 0},
		{[]Comparison{{Flows: 10, Saving: 0.1}, {Flows: 20, Saving: 0.2}}, 10},
		{[]Comparison{{Flows: 10, Saving: -0.1}, {Flows: 1000, Saving: 0.1}}, 100},
		{[]Comparison{{Flows: 1, Saving: 0.1}, {Flows: 10, Saving: -0.1}, {Flows: 1000, Saving: 0.1}}, 100},
	} {
		if got := crossing(c.points); math.Abs(got-c.want) > 1e-6 {
			t.Errorf("crossing of %v: %g, want %g", c.points, got, c.want)
		}
	}
}

// TestFrames: longer frames share what a frame costs once.
func TestFrames(t *testing.T) {
	s, err := Frames(DefaultNode(), Haswell(), DefaultSpec(), 1000, NoPrefetch, 0.5)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Rows) != 9 {
		t.Fatalf("%d rows", len(s.Rows))
	}
	for i := 1; i < len(s.Rows); i++ {
		if s.Rows[i].GapNS >= s.Rows[i-1].GapNS {
			t.Errorf("frames of %d take %.1f ns a packet, of %d %.1f", s.Rows[i].Frame, s.Rows[i].GapNS, s.Rows[i-1].Frame, s.Rows[i-1].GapNS)
		}
	}
	if s.Rows[0].LatencyNS != 0 || s.Rows[0].Load <= 1 {
		t.Errorf("frames of one carry half of what frames of 256 do: %+v", s.Rows[0])
	}
	last := s.Rows[8]
	rate := 0.5 / last.GapNS
	if want := 255/2.0/rate + 256*last.GapNS; math.Abs(last.LatencyNS-want) > 1e-6*want {
		t.Errorf("latency of the longest frame %.1f ns, want %.1f", last.LatencyNS, want)
	}
	if s.Least < 2 || s.Least > 64 {
		t.Errorf("least latency with frames of %d", s.Least)
	}
}

func TestUnroll(t *testing.T) {
	if got, err := UnrollSaving("ThunderX2", 40); err != nil || got != 0.71 {
		t.Errorf("ThunderX2, 40 bytes: %g, %v", got, err)
	}
	if _, err := UnrollSaving("ThunderX2", 48); !errors.Is(err, ErrKey) {
		t.Errorf("48 bytes: %v", err)
	}
	if _, err := UnrollSaving("6502", 8); !errors.Is(err, ErrSpec) {
		t.Errorf("unknown processor: %v", err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for i, k := range keySizes {
		key := make([]byte, k)
		for j := range key {
			key[j] = byte(r.Uint32())
		}
		if got, want := unrolled[i](key), multiply(key); got != want {
			t.Errorf("unrolled hash of %d bytes %#x, in a loop %#x", k, got, want)
		}
	}
}

func TestBadModels(t *testing.T) {
	flows, err := NewFlows(DefaultSpec(), 4, Random, 1)
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Node, *Processor){
		"frame":       func(n *Node, _ *Processor) { n.Frame = 257 },
		"distance":    func(n *Node, _ *Processor) { n.Distance = 0 },
		"region":      func(n *Node, _ *Processor) { n.RegionBytes = 0 },
		"ways":        func(_ *Node, p *Processor) { p.Levels[0].Ways = 7 },
		"no ways":     func(_ *Node, p *Processor) { p.Levels[0].Ways = 0 },
		"order":       func(_ *Node, p *Processor) { p.Levels[1].Clocks = 3 },
		"memory":      func(_ *Node, p *Processor) { p.MemoryClocks = math.NaN() },
		"rate":        func(_ *Node, p *Processor) { p.Rate = 0 },
		"outstanding": func(_ *Node, p *Processor) { p.Outstanding = 0 },
		"scheduler":   func(_ *Node, p *Processor) { p.Scheduler = 0 },
		"window":      func(_ *Node, p *Processor) { p.Window = 0 },
		"line":        func(_ *Node, p *Processor) { p.LineBytes = 48 },
		"levels":      func(_ *Node, p *Processor) { p.Levels = nil },
		"clock":       func(_ *Node, p *Processor) { p.ClockMHz = -1 },
	} {
		n, p := DefaultNode(), Haswell()
		change(&n, &p)
		if _, err := n.Run(p, flows, NoPrefetch); !errors.Is(err, ErrSpec) {
			t.Errorf("%s: %v, want %v", name, err, ErrSpec)
		}
	}
	if _, err := NewFlows(DefaultSpec(), 0, Random, 1); !errors.Is(err, ErrSpec) {
		t.Errorf("no flows: %v", err)
	}
	if _, err := NewFlows(Spec{KeyBytes: 8, Buckets: 1, Bytes: 8 + 64, Hash: CRC32C}, 100, Random, 1); !errors.Is(err, ErrFull) {
		t.Errorf("too many flows: %v", err)
	}
	if _, err := ProcessorByName("cortex-a72"); err != nil {
		t.Error(err)
	}
	if _, err := ProcessorByName("z80"); !errors.Is(err, ErrSpec) {
		t.Errorf("z80: %v", err)
	}
}

// TestRunRepeats: same flows, same clocks.
func TestRunRepeats(t *testing.T) {
	var got [2]Comparison
	for i := range got {
		c, err := Compare(DefaultNode(), CortexA72(), DefaultSpec(), 300, Random, PrefetchBoth)
		if err != nil {
			t.Fatal(err)
		}
		got[i] = c
	}
	if d := cmp.Diff(got[0], got[1]); d != "" {
		t.Error(d)
	}
}

func TestMeasure(t *testing.T) {
	r, err := Measure(context.Background(), MeasureOptions{Flows: []int{1, 3000}, Frames: 8, Rounds: 3})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range r.Flows {
		for _, l := range f.Loops {
			if !(l.NS > 0) || l.NS > 1e6 {
				t.Errorf("%d flows, %s: %g ns", f.Flows, l.Name, l.NS)
			}
		}
	}
	if len(r.Hashes) != len(keySizes) {
		t.Errorf("%d hashes", len(r.Hashes))
	}
	var b bytes.Buffer
	if err := r.WriteText(&b); err != nil || !strings.Contains(b.String(), "16 ahead") {
		t.Errorf("%v\n%s", err, b.String())
	}
	ctx, cancel := context.WithTimeout(context.Background(), -time.Second)
	defer cancel()
	if _, err := Measure(ctx, MeasureOptions{Frames: 2, Rounds: 2}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("cancelled: %v", err)
	}
	if _, err := Measure(context.Background(), MeasureOptions{Rounds: -1}); !errors.Is(err, ErrSpec) {
		t.Errorf("bad rounds: %v", err)
	}
}

// TestSensitivity: a core without a window gains most, a larger L2 least.
func TestSensitivity(t *testing.T) {
	v, err := Sensitivity(600)
	if err != nil {
		t.Fatal(err)
	}
	by := map[string][]float64{}
	for _, x := range v {
		by[x.What] = x.Savings
	}
	chosen, blocking := by["as chosen"], by["a core that waits for each load"]
	for i := range chosen {
		if blocking[i] <= chosen[i] {
			t.Errorf("machine %d: a core that waits for each load saves %.3f, one that does not %.3f", i, blocking[i], chosen[i])
		}
	}
	if fast, slow := by["last level of cache 20 % faster"], by["last level of cache 20 % slower"]; fast[1] >= slow[1] {
		t.Errorf("Haswell saves %.3f with a faster last level, %.3f with a slower one", fast[1], slow[1])
	}
}

func TestReportText(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := NewReport(ctx, func(string) {}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	pub, err := figuresOnce()
	if err != nil {
		t.Fatal(err)
	}
	r := &Report{
		Published: pub, UnrollKeys: UnrollLengths(), Unroll: UnrollTable(),
		Sensitivity: []Variation{{What: "as chosen", Savings: []float64{0.1, 0.2, 0.3}, Order: true}},
	}
	c, err := Crossover(DefaultNode(), ThunderX2(), DefaultSpec(), []int{1, 500}, RoundRobin, PrefetchBucket)
	if err != nil {
		t.Fatal(err)
	}
	r.Crossover = append(r.Crossover, c)
	f, err := Frames(DefaultNode(), ThunderX2(), DefaultSpec(), 10, PrefetchBucket, frameShare)
	if err != nil {
		t.Fatal(err)
	}
	r.Frames = append(r.Frames, f)
	var b bytes.Buffer
	if err := r.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"calibrated", "predicted", "the published order", "as chosen", "crossover", "Frames on ThunderX2", "too fast", "Taishan"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	if _, err := json.Marshal(r); err != nil {
		t.Error(err)
	}
}

func BenchmarkSearch(b *testing.B) {
	f, err := NewFlows(DefaultSpec(), 10000, RoundRobin, 1)
	if err != nil {
		b.Fatal(err)
	}
	var keys []byte
	f.t.All(func(k []byte, _ uint64) bool { keys = append(keys, k...); return true })
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		at := i % 10000 * 8
		if _, ok := f.t.Search(keys[at : at+8]); !ok {
			b.Fatal("lost")
		}
	}
}
