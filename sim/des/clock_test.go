package des

import (
	"errors"
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func mustClock(tb testing.TB, freq string, phase Time) Clock {
	tb.Helper()
	f, err := ParseFrequency(freq)
	if err != nil {
		tb.Fatal(err)
	}
	c, err := NewClock(f, phase)
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

func TestClockNeverDrifts(t *testing.T) {
	const many = 1_000_000_000_000 // edges
	tests := []struct {
		freq string
		n    int64
		want Time
	}{
		{"33 1/3 MHz", many, 30_000 * many},
		{"33 1/3 MHz", 1, 30_000},
		{"33 MHz", many / 1e6, 30_303_030_303},          // 10^12/33 = 30303030303.03…
		{"33 MHz", many / 10, 3_030_303_030_303_030},    // 10^11 edges
		{"132 MHz", many, 7_575_757_575_757_576},        // 7575.75… ps each
		{"160 MHz", many, 6250 * many},                  // a byte of Myrinet at 160 MB/s
		{"33.333 MHz", many / 4, 7_500_075_000_750_008}, // …007.5000750…
		{"3 Hz", 2, 666_666_666_667},
		{"1000 GHz", many, many},
	}
	for _, tt := range tests {
		c := mustClock(t, tt.freq, 0)
		if got := c.Edge(tt.n); got != tt.want {
			t.Errorf("edge %d at %s = %d ps, want %d", tt.n, tt.freq, got, tt.want)
		}
	}
}

// exactEdge is the oracle of Clock.Edge; ok is false beyond Time.
func exactEdge(f Frequency, phase Time, n int64) (Time, bool) {
	v := new(big.Rat).SetFrac(new(big.Int).SetUint64(f.Den), new(big.Int).SetUint64(f.Num))
	v.Mul(v, new(big.Rat).SetInt64(int64(Second)))
	v.Mul(v, new(big.Rat).SetInt64(n))
	v.Add(v, big.NewRat(1, 2))
	q := new(big.Int).Div(v.Num(), v.Denom()) // floors
	q.Add(q, big.NewInt(int64(phase)))
	return Time(q.Int64()), q.IsInt64()
}

func TestClockOracle(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 3000 {
		f := Frequency{1 + rng.Uint64N(1<<(1+rng.UintN(39))), 1 + rng.Uint64N(1<<rng.UintN(24))}
		phase := Time(rng.Uint64N(2) * rng.Uint64N(1<<rng.UintN(63)))
		c, err := NewClock(f, phase)
		if err != nil {
			if f.Hz() < 1e12 {
				t.Fatalf("%v: %v", f, err)
			}
			continue
		}
		for range 20 {
			n := int64(rng.Uint64() >> (1 + rng.UintN(63)))
			if rng.IntN(4) == 0 {
				n = c.LastEdge() - 3 + rng.Int64N(6)
			}
			if n < 0 {
				continue
			}
			want, ok := exactEdge(f, phase, n)
			got, err := c.EdgeTime(n)
			if ok != (err == nil) || ok && got != want || ok != (n <= c.LastEdge()) {
				t.Fatalf("%v: EdgeTime(%d) = %d, %v, want %d, %v; last %d", c, n, got, err, want, ok, c.LastEdge())
			}
			if !ok {
				want = MaxTime
			}
			if got := c.Edge(n); got != want {
				t.Fatalf("%v: Edge(%d) = %d, want %d", c, n, got, want)
			}
			if !ok {
				continue
			}
			for d := Time(-2); d <= 2; d++ {
				at := want + d
				if at < 0 {
					continue
				}
				k := c.EdgeAtOrAfter(at)
				if k < 0 || c.Edge(k) < at || k > 0 && c.Edge(k-1) >= at {
					t.Fatalf("%v: EdgeAtOrAfter(%d) = %d", c, at, k)
				}
			}
			span := Time(rng.Uint64() >> (1 + rng.UintN(63)))
			down, up := c.Cycles(span), c.CyclesUp(span)
			if over, err := c.CyclesTime(down + 1); c.Duration(down) > span || err == nil && over <= span {
				t.Fatalf("%v: Cycles(%d) = %d", c, span, down)
			}
			if c.Duration(up) < span || up > 0 && c.Duration(up-1) >= span {
				t.Fatalf("%v: CyclesUp(%d) = %d", c, span, up)
			}
			length, ok := exactEdge(f, 0, int64(down))
			if !ok || c.Duration(down) != length {
				t.Fatalf("%v: Duration(%d) = %d, want %d", c, down, c.Duration(down), length)
			}
		}
	}
}

func TestClockErrors(t *testing.T) {
	for _, f := range []Frequency{{}, {1, 0}, {0, 1}, {2e12, 1}, {1, math.MaxInt64}} {
		if _, err := NewClock(f, 0); !errors.Is(err, ErrRange) || !strings.Contains(err.Error(), "frequency") {
			t.Errorf("NewClock(%+v): %v", f, err)
		}
	}
	if _, err := NewClock(Hertz(1), -1); !errors.Is(err, ErrRange) || !strings.Contains(err.Error(), "phase") {
		t.Errorf("negative phase: %v", err)
	}
	c := mustClock(t, "33 MHz", 10)
	if _, err := c.EdgeTime(math.MaxInt64); !errors.Is(err, ErrRange) || !strings.Contains(err.Error(), "edge 9223372036854775807 of a clock of 33 MHz") {
		t.Errorf("far edge: %v", err)
	}
	if _, err := c.EdgeTime(-1); !errors.Is(err, ErrRange) {
		t.Errorf("edge -1: %v", err)
	}
	if _, err := c.CyclesTime(math.MaxInt64); !errors.Is(err, ErrRange) || !strings.Contains(err.Error(), "9223372036854775807 cycles") {
		t.Errorf("many cycles: %v", err)
	}
	if _, err := c.CyclesTime(-1); !errors.Is(err, ErrRange) {
		t.Errorf("-1 cycles: %v", err)
	}
	if got := [...]Time{c.Edge(-5), c.Edge(math.MaxInt64), c.Duration(-5), c.Duration(math.MaxInt64)}; got != [...]Time{10, MaxTime, 0, MaxTime} {
		t.Errorf("saturation: %v", got)
	}
	if got := c.EdgeAtOrAfter(MaxTime); c.Edge(got) != MaxTime {
		t.Errorf("edge at or after the end of time: %d", got)
	}
}

func TestFrequencyOffset(t *testing.T) {
	f, err := Hertz(33e6).Offset(100 * PartPerMillion)
	if err != nil || f != (Frequency{33_003_300, 1}) {
		t.Errorf("33 MHz +100 ppm = %v, %v", f, err)
	}
	f, err = Frequency{100_000_000, 3}.Offset(-1)
	if want := (Frequency{333_333_333, 10}); err != nil || f != want {
		t.Errorf("33 1/3 MHz -1 ppb = %v, %v, want %v", f, err, want)
	}
	if f, err = Hertz(1).Offset(-1e9); !errors.Is(err, ErrRange) {
		t.Errorf("1 Hz -100 %% = %v, %v", f, err)
	}
	if f, err = (Frequency{}).Offset(1); !errors.Is(err, ErrRange) {
		t.Errorf("no frequency +1 ppb = %v, %v", f, err)
	}
}

func TestClockReports(t *testing.T) {
	c := mustClock(t, "33 1/3 MHz", 10)
	if got, want := c.String(), "33 1/3 MHz from 10 ps"; got != want {
		t.Errorf("clock prints %q, want %q", got, want)
	}
	if got := mustClock(t, "33 MHz", 0).String(); got != "33 MHz" {
		t.Errorf("clock prints %q", got)
	}
	if c.Frequency() != (Frequency{100_000_000, 3}) || c.Phase() != 10 {
		t.Errorf("frequency %v, phase %v", c.Frequency(), c.Phase())
	}
	got := []float64{
		c.Frequency().Hz(), Frequency{}.Hz(), Rate{1, 8}.BytesPerSecond(), Rate{}.BytesPerSecond(),
		(55 * Microsecond).Microseconds(), (-Millisecond).Seconds(),
	}
	want := []float64{1e8 / 3.0, 0, 0.125, 0, 55, -0.001}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("as floating point (-want +got):\n%s", diff)
	}
	// Near the end of time, Duration is one of the saturating kind.
	slow := mustClock(t, "1/9000000 Hz", 5*Second)
	for n, want := range map[Cycles]Time{1: 9_000_000 * Second, 2: MaxTime} {
		if got := slow.Duration(n); got != want {
			t.Errorf("%v of %v take %v, want %v", n, slow, got, want)
		}
	}
	late := mustClock(t, "1/9000000 Hz", 9_000_000*Second)
	if got := late.Duration(1); got != 9_000_000*Second || late.LastEdge() != 0 {
		t.Errorf("a phase shortened a duration to %v; last edge %d", got, late.LastEdge())
	}
}

func TestClockAllocs(t *testing.T) {
	c := mustClock(t, "33.333 MHz", 7)
	var sink Time
	n := testing.AllocsPerRun(100, func() {
		sink += c.Edge(c.EdgeAtOrAfter(sink+1)) + c.Duration(c.Cycles(sink))
		sink &= 1<<40 - 1
	})
	if n != 0 {
		t.Errorf("clock arithmetic allocates %v times", n)
	}
}

func BenchmarkClock(b *testing.B) {
	for _, freq := range []string{"33 1/3 MHz", "33 MHz"} {
		c := mustClock(b, freq, 0)
		name := strings.NewReplacer(" ", "", "/", "-").Replace(freq)
		b.Run("Edge/"+name, func(b *testing.B) {
			var sink Time
			for i := range b.N {
				sink += c.Edge(int64(i))
			}
			_ = sink
		})
		b.Run("EdgeAtOrAfter/"+name, func(b *testing.B) {
			var sink int64
			for i := range b.N {
				sink += c.EdgeAtOrAfter(Time(i) * 1_000_003)
			}
			_ = sink
		})
	}
}
