package des

import (
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseTime(t *testing.T) {
	tests := []struct {
		in   string
		want Time
		err  error
		says string // in the error
	}{
		{in: "55 µs", want: 55 * Microsecond},
		{in: "55 μs", want: 55 * Microsecond},
		{in: "33.333 us", want: 33_333 * Nanosecond},
		{in: "30ns", want: 30 * Nanosecond},
		{in: "  1  ps ", want: 1},
		{in: "0 s", want: 0},
		{in: "-1.5 ms", want: -1500 * Microsecond},
		{in: "+2 s", want: 2 * Second},
		{in: "1/3 ns", want: 333},
		{in: "2/3 ns", want: 667},
		{in: "1 1/2 ns", want: 1500},
		{in: "0.5 ps", want: 1},
		{in: "-0.5 ps", want: -1},
		{in: "1.4999 ps", want: 1},
		{in: "9223372.036854775807 s", want: MaxTime},
		{in: "-9223372.036854775808 s", want: math.MinInt64},
		{in: "9223372.036854775808 s", err: ErrRange, says: `time "9223372.036854775808 s": beyond`},
		{in: "99999999999999999999 s", err: ErrRange, says: "beyond"},
		{in: "0.1 ps", err: ErrRange, says: "resolution of 1 ps"},
		{in: "55", err: ErrUnit, says: "no unit, want s, ms, µs"},
		{in: "55 MHz", err: ErrUnit, says: `"MHz", want s`},
		{in: "", err: ErrSyntax, says: "no number"},
		{in: "µs", err: ErrSyntax, says: "no number"},
		{in: "1e3 ps", err: ErrSyntax},
		{in: "1,500 ps", err: ErrSyntax},
		{in: ".5 ns", err: ErrSyntax},
		{in: "5. ns", err: ErrSyntax},
		{in: "1/0 ns", err: ErrSyntax},
		{in: "1 4/3 ns", err: ErrSyntax},
		{in: "1 2 ns", err: ErrSyntax},
		{in: "--1 ns", err: ErrSyntax},
		{in: "0x10 ns", err: ErrSyntax},
		{in: "1_000 ns", err: ErrSyntax},
		{in: strings.Repeat("9", 100) + " s", err: ErrSyntax, says: "102 bytes of text"},
	}
	for _, tt := range tests {
		got, err := ParseTime(tt.in)
		if got != tt.want || !errors.Is(err, tt.err) {
			t.Errorf("ParseTime(%q) = %d, %v, want %d, %v", tt.in, got, err, tt.want, tt.err)
		}
		if err != nil && !strings.Contains(err.Error(), tt.says) {
			t.Errorf("ParseTime(%q): %v does not say %q", tt.in, err, tt.says)
		}
	}
}

func TestTimeString(t *testing.T) {
	tests := []struct {
		t    Time
		want string
	}{
		{0, "0 ps"}, {1, "1 ps"}, {999, "999 ps"}, {1000, "1 ns"}, {30_000, "30 ns"},
		{30_303, "30.303 ns"}, {1_000_001, "1.000001 µs"}, {55 * Microsecond, "55 µs"},
		{-1500 * Microsecond, "-1.5 ms"}, {Second, "1 s"}, {MaxTime, "9223372.036854775807 s"},
		{math.MinInt64, "-9223372.036854775808 s"},
	}
	for _, tt := range tests {
		if got := tt.t.String(); got != tt.want {
			t.Errorf("Time(%d) = %q, want %q", int64(tt.t), got, tt.want)
		}
	}
	buf := make([]byte, 0, 64)
	if n := testing.AllocsPerRun(100, func() { buf = MaxTime.AppendText(buf[:0]) }); n != 0 {
		t.Errorf("AppendText allocates %v times", n)
	}
}

func TestQuantities(t *testing.T) {
	type row struct {
		Value any
		Text  string // as String prints it
		Err   error
	}
	freq := func(s string) row { v, err := ParseFrequency(s); return row{v, v.String(), err} }
	rate := func(s string) row { v, err := ParseRate(s); return row{v, v.String(), err} }
	size := func(s string) row { v, err := ParseBytes(s); return row{v, v.String(), err} }
	cycles := func(s string) row { v, err := ParseCycles(s); return row{v, v.String(), err} }
	ppm := func(s string) row { v, err := ParseDeviation(s); return row{v, v.String(), err} }
	third := Frequency{100_000_000, 3}
	tests := []struct {
		parse func(string) row
		in    string
		want  row
	}{
		{freq, "33.333 MHz", row{Frequency{33_333_000, 1}, "33.333 MHz", nil}},
		{freq, "33 1/3 MHz", row{third, "33 1/3 MHz", nil}},
		{freq, "100/3 MHz", row{third, "33 1/3 MHz", nil}},
		{freq, "100/3MHz", row{third, "33 1/3 MHz", nil}},
		{freq, "1/3 Hz", row{Frequency{1, 3}, "1/3 Hz", nil}},
		{freq, "132 MHz", row{Hertz(132e6), "132 MHz", nil}},
		{freq, "1 GHz", row{Hertz(1e9), "1 GHz", nil}},
		{freq, "0.5 kHz", row{Hertz(500), "500 Hz", nil}},
		{freq, "0 MHz", row{Frequency{}, "0 Hz", ErrRange}},
		{freq, "-1 MHz", row{Frequency{}, "0 Hz", ErrRange}},
		{freq, "33", row{Frequency{}, "0 Hz", ErrUnit}},
		{freq, "99999999999 GHz", row{Frequency{}, "0 Hz", ErrRange}},
		{rate, "160 MB/s", row{Rate{160e6, 1}, "160 MB/s", nil}},
		{rate, "133 1/3 MB/s", row{Rate{400e6, 3}, "133 1/3 MB/s", nil}},
		{rate, "1.28 Gbit/s", row{Rate{160e6, 1}, "160 MB/s", nil}},
		{rate, "8 MiB/s", row{Rate{8 << 20, 1}, "8.388608 MB/s", nil}},
		{rate, "1 bit/s", row{Rate{1, 8}, "0.125 B/s", nil}},
		{rate, "160 MB", row{Rate{}, "0 B/s", ErrUnit}},
		{rate, "0 MB/s", row{Rate{}, "0 B/s", ErrRange}},
		{size, "1 MiB", row{MiB, "1 MiB", nil}},
		{size, "32 B", row{Bytes(32), "32 B", nil}},
		{size, "1.5 KiB", row{Bytes(1536), "1536 B", nil}},
		{size, "64 kB", row{Bytes(64000), "64000 B", nil}},
		{size, "0 B", row{Bytes(0), "0 B", nil}},
		{size, "2 GiB", row{2 * GiB, "2 GiB", nil}},
		{size, "0.5 B", row{Bytes(0), "0 B", ErrRange}},
		{size, "-1 B", row{Bytes(0), "0 B", ErrRange}},
		{size, "99999999999 GiB", row{Bytes(0), "0 B", ErrRange}},
		{size, "1500", row{Bytes(0), "0 B", ErrUnit}},
		{cycles, "132 cycles", row{Cycles(132), "132 cycles", nil}},
		{cycles, "1 cycle", row{Cycles(1), "1 cycle", nil}},
		{cycles, "1.5 cycles", row{Cycles(0), "0 cycles", ErrRange}},
		{cycles, "132", row{Cycles(0), "0 cycles", ErrUnit}},
		{ppm, "100 ppm", row{100 * PartPerMillion, "100 ppm", nil}},
		{ppm, "-0.5 ppm", row{-500 * PartPerBillion, "-500 ppb", nil}},
		{ppm, "100", row{Deviation(0), "0 ppm", ErrUnit}},
	}
	for _, tt := range tests {
		got := tt.parse(tt.in)
		if !errors.Is(got.Err, tt.want.Err) {
			t.Errorf("%q: error %v, want %v", tt.in, got.Err, tt.want.Err)
		}
		got.Err, tt.want.Err = nil, nil
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", tt.in, diff)
		}
	}
}

// reread checks that String and its reader are inverse.
func reread[T comparable](t *testing.T, v T, text string, parse func(string) (T, error)) {
	t.Helper()
	if got, err := parse(text); err != nil || got != v {
		t.Errorf("%v prints %q, which reads as %v, %v", v, text, got, err)
	}
}

func TestQuantityRoundTrip(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	size := func() int64 { return int64(rng.Uint64() >> (1 + rng.UintN(63))) }
	for range 5000 {
		v := Time(size())
		reread(t, v, v.String(), ParseTime)
		reread(t, -v, (-v).String(), ParseTime)
		reread(t, Bytes(v), Bytes(v).String(), ParseBytes)
		reread(t, Cycles(v), Cycles(v).String(), ParseCycles)
		reread(t, Deviation(v), Deviation(v).String(), ParseDeviation)
	}
	for range 2000 {
		// Below 2^31 the exact text stays within what is read.
		num, den := 1+rng.Uint64N(1<<31), 1+rng.Uint64N(1<<rng.UintN(20))
		g := gcd(num, den)
		f := Frequency{num / g, den / g}
		reread(t, f, f.String(), ParseFrequency)
		r := Rate{num / g, den / g}
		reread(t, r, r.String(), ParseRate)
	}
}

// TestQuantityText is what scenario files and JSON go through.
func TestQuantityText(t *testing.T) {
	type spec struct {
		Time   Time
		Clock  Frequency
		Link   Rate
		Memory Bytes
		Cost   Cycles
		Skew   Deviation
	}
	want := spec{55 * Microsecond, Frequency{100_000_000, 3}, Rate{160e6, 1}, MiB, 132, -20 * PartPerMillion}
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	const doc = `{"Time":"55 µs","Clock":"33 1/3 MHz","Link":"160 MB/s","Memory":"1 MiB","Cost":"132 cycles","Skew":"-20 ppm"}`
	if diff := cmp.Diff(doc, string(text)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var got spec
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, key := range []string{"Time", "Clock", "Link", "Memory", "Cost", "Skew"} {
		if err := json.Unmarshal([]byte(`{"`+key+`":"1"}`), &got); !errors.Is(err, ErrUnit) {
			t.Errorf("%s as a bare number: %v", key, err)
		}
	}
}

func gcd(a, b uint64) uint64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

func TestRateDuration(t *testing.T) {
	myrinet, err := ParseRate("160 MB/s")
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		r    Rate
		n    Bytes
		want Time
		err  error
	}{
		{myrinet, 0, 0, nil},
		{myrinet, 1, 6250, nil},
		{myrinet, 1500, 9375 * Nanosecond, nil},
		{Rate{400_000_000, 3}, 1, 7500, nil},
		{Rate{3, 1}, 1, 333_333_333_334, nil}, // up: the byte has passed
		{Rate{3, 1}, 3_000_000, 1_000_000 * Second, nil},
		{Rate{1, 1}, math.MaxInt64, 0, ErrRange},
		{Rate{1, math.MaxInt64}, math.MaxInt64, 0, ErrRange},
		{Rate{1e12, 1}, math.MaxInt64, MaxTime, nil},
		{Rate{}, 1, 0, ErrRange},
		{myrinet, -1, 0, ErrRange},
	}
	for _, tt := range tests {
		got, err := tt.r.Duration(tt.n)
		if got != tt.want || !errors.Is(err, tt.err) {
			t.Errorf("%v of %v = %v, %v, want %v, %v", tt.n, tt.r, got, err, tt.want, tt.err)
		}
	}
}

// FuzzQuantity feeds every reader; what one accepts must print and read back
// as the same value.
func FuzzQuantity(f *testing.F) {
	for _, s := range []string{"55 µs", "33 1/3 MHz", "160 MB/s", "1 MiB", "132 cycles", "-20 ppm", "1/0 s", "1 2/3", "9e9 s", "0.000001 ps"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if v, err := ParseTime(s); err == nil {
			reread(t, v, v.String(), ParseTime)
		}
		if v, err := ParseBytes(s); err == nil {
			reread(t, v, v.String(), ParseBytes)
		}
		if v, err := ParseCycles(s); err == nil {
			reread(t, v, v.String(), ParseCycles)
		}
		if v, err := ParseDeviation(s); err == nil {
			reread(t, v, v.String(), ParseDeviation)
		}
		if v, err := ParseFrequency(s); err == nil && v.Num > 0 && v.Den > 0 {
			reread(t, v, v.String(), ParseFrequency)
			_, _ = NewClock(v, 0)
		}
		if v, err := ParseRate(s); err == nil {
			reread(t, v, v.String(), ParseRate)
			_, _ = v.Duration(1500)
		}
	})
}
