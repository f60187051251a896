package stats

import (
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// slowWarmup is MSER by its definition, quadratic.
func slowWarmup(y []float64) (int, bool) {
	best, at := math.Inf(1), 0
	for d := 0; d <= len(y)/2; d++ {
		mean := 0.0
		for _, v := range y[d:] {
			mean += v
		}
		n := float64(len(y) - d)
		mean /= n
		s := 0.0
		for _, v := range y[d:] {
			s += (v - mean) * (v - mean)
		}
		if s /= n * n; s < best {
			best, at = s, d
		}
	}
	return at, at < len(y)/2
}

func TestWarmupAgainstDefinition(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for range 300 {
		y := make([]float64, minBatches+rng.IntN(200))
		lead, height := rng.IntN(len(y)), rng.Float64()*20
		for i := range y {
			y[i] = rng.NormFloat64()
			if i < lead {
				y[i] += height
			}
		}
		d, ok := warmup(y)
		wantD, wantOK := slowWarmup(y)
		if d != wantD || ok != wantOK {
			t.Fatalf("%d values, %d of them raised by %.2f: warm-up %d %v, want %d %v", len(y), lead, height, d, ok, wantD, wantOK)
		}
	}
}

func TestBatchesKeepEveryObservation(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	for _, n := range []int{0, 4, 5, 199, 200, 5 * maxBatches, 5*maxBatches - 1, 100003, 1 << 18} {
		var b Batches
		var v []float64
		for range n {
			x := rng.ExpFloat64()
			v = append(v, x)
			b.Add(x)
		}
		if b.N() != uint64(n) || len(b.means) >= maxBatches || cap(b.means) > maxBatches {
			t.Fatalf("%d values: N %d in %d batches", n, b.N(), len(b.means))
		}
		for i, m := range b.means {
			s := 0.0
			for _, x := range v[i*int(b.size) : (i+1)*int(b.size)] {
				s += x
			}
			near(t, "batch mean", m, s/float64(b.size), 1e-12)
		}
		if rest := n - len(b.means)*int(b.size); uint64(max(rest, 0)) != b.n && n > 0 {
			t.Fatalf("%d values: %d in the batch begun, want %d", n, b.n, rest)
		}
	}
}

// ar1 is a first-order autoregressive series with mean 0, which starts at x0.
func ar1(rng *rand.Rand, phi, x0 float64) func() float64 {
	x := x0
	return func() float64 {
		x = phi*x + rng.NormFloat64()
		return x
	}
}

func TestBatchesOutcomes(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	feed := func(n int, next func() float64) Estimate {
		var b Batches
		for range n {
			b.Add(next())
		}
		return b.Estimate(0.95)
	}
	if e := feed(199, ar1(rng, 0, 0)); e.Shortfall != TooFew || e.N != 199 {
		t.Errorf("199 observations: %+v", e)
	}
	if e := feed(0, nil); e.Shortfall != TooFew || !math.IsNaN(e.Mean) {
		t.Errorf("no observation: %+v", e)
	}
	i := 0.0
	if e := feed(10000, func() float64 { i++; return i }); e.Shortfall != NotSettled {
		t.Errorf("a ramp: %+v", e)
	}
	if e := feed(10000, func() float64 { return 7 }); !e.OK() || e.Mean != 7 || e.Half != 0 || e.Warmup >= 32*10 {
		t.Errorf("a constant: %+v", e)
	}
	// Correlated over a quarter of the run: no number may come out.
	short := 0
	for range 100 {
		if e := feed(2000, ar1(rng, 0.999, 0)); !e.OK() {
			short++
		}
	}
	if short < 90 {
		t.Errorf("only %d of 100 runs of two correlation times were called too short", short)
	}
	// A transient of known length: 500 of 50,000 observations, high above.
	n := 0
	next := ar1(rng, 0.5, 0)
	e := feed(50000, func() float64 {
		n++
		if n <= 500 {
			return 50 + next()
		}
		return next()
	})
	if !e.OK() || e.Warmup < 500 || e.Warmup > 5000 || !e.Contains(0) {
		t.Errorf("a transient of 500: %+v", e)
	}
}

// The interval covers the true mean of a correlated series with a transient
// as often as it says.
func TestBatchesCoverageAutoregressive(t *testing.T) {
	for _, phi := range []float64{0, 0.5, 0.9, 0.98} {
		covered, short := 0, 0
		const runs = 400
		for run := range runs {
			var b Batches
			next := ar1(rand.New(rand.NewPCG(uint64(run), 99)), phi, 10)
			for range 20000 {
				b.Add(next())
			}
			switch e := b.Estimate(0.95); {
			case !e.OK():
				short++
			case e.Contains(0):
				covered++
			}
		}
		share := float64(covered) / float64(runs-short)
		t.Logf("φ = %g: %.1f %% covered, %d too short", phi, 100*share, short)
		if share < 0.91 || share > 0.98 || short > runs/20 {
			t.Errorf("φ = %g: %d of %d covered, %d too short", phi, covered, runs-short, short)
		}
	}
}

// TimeBatches agree with one observation for every tick.
func TestTimeBatchesAgainstTicks(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 14))
	for _, spell := range []int{1, 3, 50, 40000} {
		tb, err := NewTimeBatches(mserSize)
		if err != nil {
			t.Fatal(err)
		}
		var b Batches
		now := int64(-77)
		for b.N() < 60000 {
			level := float64(rng.IntN(4))
			if err := tb.Set(now, level); err != nil {
				t.Fatal(err)
			}
			step := 1 + rng.IntN(spell)
			for range step {
				b.Add(level)
			}
			now += int64(step)
			if err := tb.Advance(now); err != nil {
				t.Fatal(err)
			}
		}
		if len(b.means) != len(tb.means) || int64(b.size) != tb.width {
			t.Fatalf("spells up to %d: %d batches of %d, want %d of %d", spell, len(tb.means), tb.width, len(b.means), b.size)
		}
		for i := range b.means {
			near(t, "batch", tb.means[i], b.means[i], 1e-9)
		}
		got, want := tb.Estimate(0.95), b.Estimate(0.95)
		near(t, "mean", got.Mean, want.Mean, 1e-9)
		near(t, "half", got.Half, want.Half, 1e-9)
		if got.N != want.N || got.Warmup != want.Warmup || got.Shortfall != want.Shortfall {
			t.Errorf("spells up to %d: %+v, want %+v", spell, got, want)
		}
	}
}

func TestTimeBatchesEdges(t *testing.T) {
	if _, err := NewTimeBatches(0); err == nil {
		t.Error("a width of 0 was accepted")
	}
	b, err := NewTimeBatches(1)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Advance(3); err != nil {
		t.Errorf("before the first level: %v", err)
	}
	if err := b.Set(math.MaxInt64, 1); err == nil {
		t.Error("a batch beyond the end of time was accepted")
	}
	if err := b.Set(5, 1); err != nil {
		t.Fatal(err)
	}
	if err := b.Set(4, 1); !errors.Is(err, ErrBackwards) {
		t.Errorf("backwards: %v", err)
	}
	// One spell nearly as long as time itself ends in bounded work.
	if err := b.Advance(math.MaxInt64 / 2); err != nil {
		t.Errorf("a long spell: %v", err)
	}
	if e := b.Estimate(0.95); !e.OK() || e.Mean != 1 {
		t.Errorf("a long spell: %+v", e)
	}
	if err := b.Advance(math.MaxInt64); err == nil {
		t.Error("the end of time passed without an error")
	}
}

func TestEstimateText(t *testing.T) {
	for _, c := range []struct {
		e          Estimate
		text, json string
	}{
		{
			Estimate{Mean: 77.125, Half: 0.4375, Level: 0.95, N: 10, Warmup: 2, Batches: 5},
			"77.12 ± 0.44", `{"mean":77.125,"ci":[76.6875,77.5625],"level":0.95,"n":10,"warmup":2,"batches":5}`,
		},
		{
			Estimate{Mean: 123456, Half: 789, Level: 0.95, N: 10, Batches: 5},
			"123456 ± 789", `{"mean":123456,"ci":[122667,124245],"level":0.95,"n":10,"warmup":0,"batches":5}`,
		},
		{
			Estimate{Mean: 1.5, Level: 0.9, N: 3, Batches: 3},
			"1.5 ± 0", `{"mean":1.5,"ci":[1.5,1.5],"level":0.9,"n":3,"warmup":0,"batches":3}`,
		},
		{
			Estimate{Mean: 0x1p-60, Half: 0x1p-62, Level: 0.9, N: 3, Batches: 3},
			"8.67362e-19 ± 2.2e-19", `{"mean":8.673617379884035e-19,"ci":[6.505213034913027e-19,1.0842021724855044e-18],"level":0.9,"n":3,"warmup":0,"batches":3}`,
		},
		{
			Estimate{Mean: math.NaN(), Level: 0.95, Shortfall: TooFew},
			"too short to say (too few observations)", `{"mean":null,"ci":null,"level":0.95,"n":0,"warmup":0,"batches":0,"short":"too few observations"}`,
		},
		{
			Estimate{Mean: math.Inf(1), Half: math.NaN(), Level: 0.95},
			"+Inf ± NaN", `{"mean":null,"ci":null,"level":0.95,"n":0,"warmup":0,"batches":0}`,
		},
	} {
		if got := c.e.String(); got != c.text {
			t.Errorf("%+v prints %q, want %q", c.e, got, c.text)
		}
		got, err := json.Marshal(c.e)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(c.json, string(got)); d != "" {
			t.Error(d)
		}
	}
	e := Estimate{Mean: -4, Half: 1}
	if e.Relative() != 0.25 || (Estimate{Shortfall: Correlated}).Relative() != math.Inf(1) || (Estimate{Mean: 0}).Relative() != 0 {
		t.Error("relative width")
	}
	if s := e.Scale(-2); s.Mean != 8 || s.Half != 2 {
		t.Errorf("scaled: %+v", s)
	}
	if _, _, ok := (Estimate{Shortfall: NotSettled}).Interval(); ok || (Estimate{Shortfall: NotSettled}).Contains(0) {
		t.Error("an interval without one")
	}
	names := map[string]bool{}
	for i := range NumShortfalls {
		names[Shortfall(i).String()] = true
	}
	if len(names) != NumShortfalls || Shortfall(NumShortfalls).String() != "unknown shortfall" {
		t.Errorf("names of shortfalls: %v", names)
	}
}

func TestReplications(t *testing.T) {
	var r Replications
	if s := r.Summary(0.95); s.OK() || !math.IsNaN(s.Median) {
		t.Errorf("no run: %+v", s)
	}
	// Ten figures with mean 5.5, s = √(82.5/9) = 3.02765 and t₉ = 2.26216.
	for _, v := range []float64{10, 1, 9, 2, 8, 3, 7, 4, 6, 5} {
		r.Add(v)
	}
	s := r.Summary(0.95)
	near(t, "mean", s.Mean, 5.5, 1e-12)
	near(t, "half", s.Half, 2.26216*3.02765/math.Sqrt(10), 1e-4)
	near(t, "s", s.StdDev, 3.02765, 1e-5)
	near(t, "P1", s.P1, 1.09, 1e-12)
	if s.Median != 5.5 || s.Least != 1 || s.Most != 10 || s.EnoughForRFC || r.N() != 10 || r.Moments().N() != 10 {
		t.Errorf("%+v", s)
	}
	for range 10 {
		r.Add(0)
	}
	if !r.Summary(0.95).EnoughForRFC {
		t.Error("20 runs are enough for RFC 8219")
	}
	if !slices.Equal(r.values[:3], []float64{10, 1, 9}) {
		t.Error("the summary reordered the runs")
	}
}

func TestCompare(t *testing.T) {
	base := []float64{81, 95, 70, 88, 102, 79}
	shifted := func(by ...float64) []float64 {
		out := slices.Clone(base)
		for i := range out {
			out[i] += by[i%len(by)]
		}
		return out
	}
	for _, c := range []struct {
		name   string
		second []float64
		d      Direction
		want   Verdict
	}{
		{"less, less is better", shifted(-2, -3, -2.5), LessIsBetter, Better},
		{"less, more is better", shifted(-2, -3, -2.5), MoreIsBetter, Worse},
		{"more, less is better", shifted(2, 3, 2.5), LessIsBetter, Worse},
		{"more, more is better", shifted(2, 3, 2.5), MoreIsBetter, Better},
		{"either way", shifted(-2, 3, 1, -1), LessIsBetter, CannotTell},
		{"the same", base, LessIsBetter, CannotTell},
		{"always one less", shifted(-1), LessIsBetter, Better},
	} {
		got, err := Compare(base, c.second, 0.95, c.d)
		if err != nil {
			t.Fatal(err)
		}
		if got.Verdict != c.want {
			t.Errorf("%s: %v, difference %v; want %v", c.name, got.Verdict, got.Difference, c.want)
		}
		// What pairing is for: each machine's own interval is far wider.
		if c.want != CannotTell && got.Difference.Half > got.First.Half/4 {
			t.Errorf("%s: difference ± %g beside ± %g of one machine", c.name, got.Difference.Half, got.First.Half)
		}
		if c.want != CannotTell && got.Correlation < 0.99 {
			t.Errorf("%s: correlation %g", c.name, got.Correlation)
		}
	}
	if c, err := Compare([]float64{1}, []float64{2}, 0.95, LessIsBetter); err != nil || c.Verdict != CannotTell || c.Difference.OK() {
		t.Errorf("one pair: %+v %v", c, err)
	}
	for _, bad := range [][]float64{{1, 2, 3}, {1, math.NaN()}, {math.Inf(-1), 2}} {
		if _, err := Compare([]float64{1, 2}, bad, 0.95, LessIsBetter); !errors.Is(err, ErrPairs) {
			t.Errorf("%v: %v", bad, err)
		}
	}
	if c, _ := Compare([]float64{1, 1}, []float64{2, 3}, 0.95, LessIsBetter); !math.IsNaN(c.Correlation) {
		t.Errorf("correlation with a constant: %v", c.Correlation)
	}
	for v, want := range map[Verdict]string{CannotTell: "cannot tell", Better: "better", Worse: "worse", 9: "unknown verdict"} {
		if v.String() != want {
			t.Errorf("%d prints %q", v, v)
		}
	}
}
