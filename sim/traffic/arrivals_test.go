package traffic

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"spinesim/sim/des"
	"spinesim/sim/stats"
)

func take(t testing.TB, p Process, n int) []des.Time {
	t.Helper()
	out := make([]des.Time, n)
	last := des.Time(0)
	for i := range out {
		at, err := p.Next()
		if err != nil {
			t.Fatal(err)
		}
		if at < last {
			t.Fatalf("arrival %d at %v, after %v", i, at, last)
		}
		out[i], last = at, at
	}
	return out
}

func process(t testing.TB, s ArrivalSpec, seed uint64) Process {
	t.Helper()
	p, err := s.Process(seed, "traffic/0")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A constant rate is exact after any number of packets.
func TestConstantNeverDrifts(t *testing.T) {
	for _, text := range []string{"3 packets/s", "81 µs", "12345.678901 packets/s", "7 ps", "333333.333333 packets/s"} {
		r := rate(t, text)
		got := take(t, process(t, ArrivalSpec{Kind: Constant, Rate: r, Start: 5}, 1), 20000)
		gap := new(big.Rat).SetFrac(
			new(big.Int).Mul(new(big.Int).SetUint64(r.f.Den), big.NewInt(int64(des.Second))),
			new(big.Int).SetUint64(r.f.Num))
		for n, at := range got {
			want := new(big.Rat).Mul(gap, big.NewRat(int64(n), 1))
			want.Add(want, big.NewRat(5, 1))
			diff := new(big.Rat).Sub(want, big.NewRat(int64(at), 1))
			if diff.Abs(diff).Cmp(big.NewRat(1, 2)) > 0 {
				t.Fatalf("%s: packet %d at %d, want %s", text, n, at, want.FloatString(3))
			}
		}
	}
}

// Each process has the rate it was asked for, however many senders share it.
func TestMeanRates(t *testing.T) {
	gap := 80 * des.Microsecond
	r, err := MeanGap(gap)
	if err != nil {
		t.Fatal(err)
	}
	for _, senders := range []int{0, 1, 3, 20} {
		for _, s := range []ArrivalSpec{
			{Kind: Constant}, {Kind: Jittered, Jitter: 1}, {Kind: Jittered, Jitter: 0.3}, {Kind: Poisson},
			{Kind: OnOff, On: 500 * des.Microsecond, Off: 1500 * des.Microsecond},
			{Kind: OnOff, On: 500 * des.Microsecond, Off: 0},
		} {
			s.Rate, s.Senders = r, senders
			n := 60000
			at := take(t, process(t, s, 3), n)
			mean := float64(at[n-1]-at[0]) / float64(n-1) / float64(gap)
			tolerance := 1e-3
			switch {
			case s.Kind == Poisson:
				tolerance = 4 / math.Sqrt(float64(n))
			case s.Kind == OnOff && s.Off > 0:
				// About 25 packets a cycle and sender, whose length varies by about its mean.
				tolerance = 4 * 1.5 / math.Sqrt(float64(n)/25)
			}
			if math.Abs(mean-1) > tolerance {
				t.Errorf("%v, %d senders: mean gap %.4f of what was asked for", s.Kind, senders, mean)
			}
		}
	}
}

func TestPoissonIsPoisson(t *testing.T) {
	r := rate(t, "10000 packets/s")
	for _, senders := range []int{1, 3} {
		at := take(t, process(t, ArrivalSpec{Kind: Poisson, Rate: r, Senders: senders}, 5), 100001)
		var m stats.Moments
		longer, product := 0.0, 0.0
		var before float64
		for i := 1; i < len(at); i++ {
			g := float64(at[i]-at[i-1]) / float64(100*des.Microsecond)
			m.Add(g)
			if g > 1 {
				longer++
			}
			if i > 1 {
				product += (g - 1) * (before - 1)
			}
			before = g
		}
		n := float64(len(at) - 1)
		if v := m.Variance(); math.Abs(v-1) > 0.03 {
			t.Errorf("%d senders: variance of gaps %.3f, want 1", senders, v)
		}
		if s := longer / n; math.Abs(s-math.Exp(-1)) > 0.006 {
			t.Errorf("%d senders: share of gaps above the mean %.4f, want 1/e", senders, s)
		}
		if c := product / n; math.Abs(c) > 0.015 {
			t.Errorf("%d senders: correlation of successive gaps %.4f", senders, c)
		}
	}
}

func TestJitterStaysInItsSlot(t *testing.T) {
	r := rate(t, "100 µs")
	var spread stats.Moments
	for i, at := range take(t, process(t, ArrivalSpec{Kind: Jittered, Rate: r, Jitter: 0.25}, 2), 20000) {
		d := at - des.Time(i)*100*des.Microsecond
		if d < 0 || d > 25*des.Microsecond {
			t.Fatalf("packet %d is %v into its slot, want up to 25 µs", i, d)
		}
		spread.Add(d.Microseconds())
	}
	if math.Abs(spread.Mean()-12.5) > 0.2 || math.Abs(spread.Variance()-25.0*25/12) > 1.5 {
		t.Errorf("jitter has mean %.2f µs, variance %.1f", spread.Mean(), spread.Variance())
	}
}

func TestOnOffBursts(t *testing.T) {
	// 10 packets a burst on average, at four times the mean rate.
	s := ArrivalSpec{Kind: OnOff, Rate: rate(t, "40 µs"), On: 100 * des.Microsecond, Off: 300 * des.Microsecond}
	at := take(t, process(t, s, 9), 200000)
	var bursts stats.Moments
	run := 1.0
	for i := 1; i < len(at); i++ {
		g := at[i] - at[i-1]
		switch {
		case g <= 10*des.Microsecond+1:
			if g < 10*des.Microsecond-1 {
				t.Fatalf("gap %v within a burst, want 10 µs", g)
			}
			run++
		default:
			bursts.Add(run)
			run = 1
		}
	}
	// Bursts that hold no packet are not seen: a mean of 1/(1 − e^-0.1) seen.
	if want := 1 / (1 - math.Exp(-0.1)); math.Abs(bursts.Mean()-want) > 0.25 {
		t.Errorf("%.2f packets a burst, want %.2f", bursts.Mean(), want)
	}
}

// Merging is sorting.
func TestSendersMergeInOrder(t *testing.T) {
	for _, kind := range []ArrivalKind{Constant, Poisson} {
		const senders, n = 5, 3000
		s := ArrivalSpec{Kind: kind, Rate: rate(t, "10 µs"), Senders: senders}
		got := take(t, process(t, s, 4), n)
		var want []des.Time
		m, ok := process(t, s, 4).(*merge)
		if !ok {
			t.Fatal("several senders are not merged")
		}
		for i, p := range m.ps {
			want = append(want, m.next[i])
			want = append(want, take(t, p, n)...)
		}
		slices.Sort(want)
		if !slices.Equal(got, want[:n]) {
			t.Errorf("%v: merged arrivals differ from sorted ones", kind)
		}
		phases := map[des.Time]bool{}
		for _, at := range got[:senders] {
			phases[at] = true
		}
		if len(phases) != senders {
			t.Errorf("%v: senders start together: %v", kind, got[:senders])
		}
	}
}

// Poisson arrivals at twice the rate are the same pattern, twice as fast.
func TestScalingKeepsThePattern(t *testing.T) {
	s := ArrivalSpec{Kind: Poisson, Rate: rate(t, "90 µs"), Senders: 3}
	twice, err := s.Scale(2)
	if err != nil {
		t.Fatal(err)
	}
	a, b := take(t, process(t, s, 8), 5000), take(t, process(t, twice, 8), 5000)
	for i := range a {
		if math.Abs(float64(a[i])/float64(b[i])-2) > 1e-6 {
			t.Fatalf("packet %d: at %v, at twice the rate at %v", i, a[i], b[i])
		}
	}
	if c := take(t, process(t, s, 9), 100); slices.Equal(c, a[:100]) {
		t.Error("another seed gives the same arrivals")
	}
	if sat, err := (ArrivalSpec{Kind: Saturating}).Scale(2); err != nil || sat != (ArrivalSpec{Kind: Saturating}) {
		t.Errorf("scaling a saturating source: %+v %v", sat, err)
	}
}

// The wire against exact arithmetic, packet by packet.
func TestWireAgainstExactArithmetic(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, text := range []string{"160 MB/s", "133 1/3 MB/s", "7 B/s", "1 GB/s", "999999937 B/s"} {
		r, err := des.ParseRate(text)
		if err != nil {
			t.Fatal(err)
		}
		w := Wire{Rate: r, Overhead: rng.IntN(9)}
		s := serialiser{w: w}
		perByte := new(big.Rat).SetFrac(
			new(big.Int).Mul(new(big.Int).SetUint64(r.Den), big.NewInt(int64(des.Second))), new(big.Int).SetUint64(r.Num))
		free := new(big.Rat)
		now := des.Time(0)
		mean := int64(800e12 / r.BytesPerSecond())
		for i := range 3000 {
			now += des.Time(rng.Int64N(2 * mean))
			bytes := 28 + rng.IntN(1473)
			got, err := s.send(now, bytes)
			if err != nil {
				t.Fatal(err)
			}
			if at := big.NewRat(int64(now), 1); at.Cmp(free) > 0 {
				free = at
			}
			free = new(big.Rat).Add(free, new(big.Rat).Mul(perByte, big.NewRat(int64(bytes+w.Overhead), 1)))
			diff, _ := new(big.Rat).Sub(big.NewRat(int64(got), 1), free).Float64()
			if diff < -1 || diff > 1 {
				t.Fatalf("%s: packet %d arrives at %d, %g ps off", text, i, got, diff)
			}
		}
	}
}

func TestWireBackToBack(t *testing.T) {
	r, err := des.ParseRate("160 MB/s")
	if err != nil {
		t.Fatal(err)
	}
	s := serialiser{w: Wire{Rate: r}}
	p := process(t, ArrivalSpec{Kind: Saturating, Start: 1000}, 0)
	for i := range des.Time(2000000) {
		at, err := p.Next()
		if err != nil {
			t.Fatal(err)
		}
		// 1,500 bytes at 160 MB/s are 9.375 µs exactly.
		if got, err := s.send(at, 1500); err != nil || got != 1000+(i+1)*9375*des.Nanosecond {
			t.Fatalf("packet %d arrives at %v (%v)", i, got, err)
		}
	}
	none := serialiser{}
	if got, err := none.send(77, 1500); err != nil || got != 77 {
		t.Errorf("a wire without a rate: %v %v", got, err)
	}
}

func TestArrivalErrors(t *testing.T) {
	r := rate(t, "1000 packets/s")
	for i, s := range []ArrivalSpec{
		{Kind: Constant},
		{Kind: 99, Rate: r},
		{Kind: Poisson, Rate: r, Senders: -1},
		{Kind: Poisson, Rate: r, Senders: 5000},
		{Kind: Poisson, Rate: r, Start: -1},
		{Kind: Jittered, Rate: r, Jitter: 1.5},
		{Kind: Jittered, Rate: r, Jitter: math.NaN()},
		{Kind: OnOff, Rate: r},
		{Kind: OnOff, Rate: r, On: 5, Off: -1},
		{Kind: Poisson, Rate: rate(t, "0.000001 packets/s"), Senders: 100},
	} {
		if _, err := s.Process(1, "x"); err == nil {
			t.Errorf("case %d: %+v was accepted", i, s)
		}
	}
	// Every process ends in an error, not in a wrap-around, where time ends.
	slow := rate(t, "1000 s")
	for _, s := range []ArrivalSpec{
		{Kind: Constant}, {Kind: Jittered, Jitter: 1}, {Kind: Poisson},
		{Kind: OnOff, On: 5000 * des.Second, Off: 5000 * des.Second}, {Kind: Poisson, Senders: 3},
		{Kind: OnOff, On: 1, Off: 9000 * des.Second},
	} {
		s.Rate = slow
		p := process(t, s, 1)
		var err error
		last := des.Time(0)
		for n := 0; err == nil && n < 1e6; n++ {
			var at des.Time
			if at, err = p.Next(); err == nil && at < last {
				t.Fatalf("%v: %v after %v", s.Kind, at, last)
			}
			last = max(last, at)
		}
		if !errors.Is(err, ErrEndOfTime) {
			t.Errorf("%v: %v", s.Kind, err)
		}
	}
	s := serialiser{w: Wire{Rate: des.Rate{Num: 1, Den: 1}}}
	if _, err := s.send(des.MaxTime-5, 1); !errors.Is(err, ErrEndOfTime) {
		t.Errorf("the wire beyond the end of time: %v", err)
	}
	if err := (Wire{Overhead: -1}).Validate(); err == nil {
		t.Error("a negative overhead")
	}
	if err := (Wire{Rate: des.Rate{Num: 1}}).Validate(); err == nil {
		t.Error("half a rate")
	}
}

func TestNames(t *testing.T) {
	for k := range NumArrivalKinds {
		var back ArrivalKind
		if b, _ := ArrivalKind(k).MarshalText(); back.UnmarshalText(b) != nil || int(back) != k {
			t.Errorf("arrivals %d print %q", k, b)
		}
	}
	for k := range NumTimings {
		var back Timing
		if b, _ := Timing(k).MarshalText(); back.UnmarshalText(b) != nil || int(back) != k {
			t.Errorf("timing %d prints %q", k, b)
		}
	}
	var k ArrivalKind
	var g Timing
	if k.UnmarshalText([]byte("pareto")) == nil || g.UnmarshalText([]byte("never")) == nil {
		t.Error("an unknown name was read")
	}
	if fmt.Sprint(ArrivalKind(99), Timing(99)) != "unknown arrivals unknown timing" {
		t.Error(ArrivalKind(99), Timing(99))
	}
}
