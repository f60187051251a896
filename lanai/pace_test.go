package lanai

import (
	"math/big"
	"math/rand/v2"
	"testing"

	"spinesim/sim/des"
)

func TestPaces(t *testing.T) {
	four, nine := Lanai4(), Lanai9()
	fast := Lanai4()
	fast.Clock = des.Frequency{Num: 100_010_000, Den: 3} // 100 ppm up
	for _, tt := range []struct {
		what string
		got  pace
		p, q int32
		most int32
	}{
		{"160 MB/s at 33 1/3 MHz", four.linkPace(), 6, 5, 2}, // reference: 1.2 accesses a cycle
		{"33 1/3 MHz bus", four.busPace(four.Bus), 1, 1, 1},
		{"250 MB/s at 132 MHz", nine.linkPace(), 125, 264, 1},
		{"64 bits at 66 MHz, 132 MHz card", nine.busPace(nine.Bus), 1, 1, 1},
		{"160 MB/s, 100 ppm off", fast.linkPace(), 6, 5, 2},
		{"two thirds", makePace(big.NewRat(2, 3)), 2, 3, 1},
		{"very slow", makePace(big.NewRat(1, 1_000_000)), 1, 1024, 1},
		{"very fast", makePace(big.NewRat(1_000_000, 7)), 64, 1, 64},
	} {
		if tt.got != (pace{tt.p, tt.q, tt.most}) {
			t.Errorf("%s: %+v, want %d/%d, at most %d", tt.what, tt.got, tt.p, tt.q, tt.most)
		}
	}
}

// The simplest fraction near enough, against trying all denominators.
func TestPaceIsSimplest(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	near := func(x *big.Rat, p, q, slack int64) bool {
		d := new(big.Rat).Sub(x, big.NewRat(p, q))
		return d.Quo(d.Abs(d), x).Cmp(big.NewRat(1, slack)) <= 0
	}
	for range 1000 {
		x := big.NewRat(1+r.Int64N(1_000_000_000), 1+r.Int64N(1_000_000_000))
		if x.Cmp(big.NewRat(60, 1)) > 0 || x.Cmp(big.NewRat(1, 100)) < 0 || x.Denom().Int64() <= maxPaceDen {
			continue
		}
		f, _ := x.Float64()
		slack, want := int64(paceSlack), int64(0)
	search:
		for ; ; slack /= 2 {
			for q := int64(1); q <= maxPaceDen; q++ {
				p := int64(f * float64(q))
				if p > 0 && near(x, p, q, slack) || near(x, p+1, q, slack) {
					want = q
					break search
				}
			}
		}
		got := makePace(x)
		if int64(got.q) != want || !near(x, int64(got.p), want, slack) || got.most != (got.p+got.q-1)/got.q {
			t.Fatalf("%v: %+v, want a denominator of %d", x, got, want)
		}
	}
}

func TestPaceDemandIsCeiling(t *testing.T) {
	for _, p := range []pace{{6, 5, 2}, {1, 3, 1}, {125, 264, 1}, {7, 2, 4}, {1, 1, 1}} {
		phase, d := int32(0), int64(0)
		for k := int64(1); k < 2000; k++ {
			var n int32
			n, phase = p.newWords(phase)
			d += int64(n)
			if want := ceilDiv(k*int64(p.p), int64(p.q)); d != want {
				t.Fatalf("%d/%d: %d words after %d cycles, want %d", p.p, p.q, d, k, want)
			}
			// d was reached now, and d - n + 1 too.
			if n > 0 && (p.cyclesFor(d) != k || p.cyclesFor(d-int64(n)+1) != k) {
				t.Fatalf("%d/%d: %d words take %d cycles, want %d", p.p, p.q, d, p.cyclesFor(d), k)
			}
		}
	}
}

func TestStatePacks(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 10_000 {
		var s busState
		for c := range numEngines {
			s.phase[c], s.backlog[c] = r.Int32N(1024), r.Int32N(64)
		}
		s.pace[EBus] = uint8(r.IntN(256))
		s.pace[Receive] = uint8(Receive) * uint8(r.IntN(2))
		s.pace[Send] = uint8(Send) * uint8(r.IntN(2))
		if got := unpack(s.pack()); got != s {
			t.Fatalf("%+v came back as %+v", s, got)
		}
	}
}

func TestCardClock(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 9))
	for _, f := range []des.Frequency{{Num: 100_000_000, Den: 3}, des.Hertz(132_000_000), {Num: 100_010_000, Den: 3}, des.Hertz(1000)} {
		for _, phase := range []des.Time{0, 17, 29_999} {
			k, err := newCardClock(f, phase)
			if err != nil {
				t.Fatal(err)
			}
			for range 1000 {
				c := min(r.Int64N(1<<r.IntN(37)), k.last-2) // also where times are too large for the inverse
				at := k.edge(c)
				if at != k.exact.Edge(c) || k.ceil(at) != c || k.floor(at) != c || k.ceil(at+1) != c+1 || k.floor(at-1) != c-1 || k.floor(at+1) != c {
					t.Fatalf("%v from %v: cycle %d begins at %v, ceil %d, floor %d", f, phase, c, at, k.ceil(at), k.floor(at))
				}
				if k.ceil(at-1) != c {
					t.Fatalf("ceil before cycle %d is %d", c, k.ceil(at-1))
				}
			}
			if k.ceil(phase-1) != 0 || k.floor(phase-1) != -1 {
				t.Errorf("before the first: %d, %d", k.ceil(phase-1), k.floor(phase-1))
			}
		}
	}
}
