package traffic

import (
	"errors"
	"math"
	"testing"

	"spinesim/sim/des"
)

func rate(t testing.TB, text string) Rate {
	t.Helper()
	r, err := ParseRate(text)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRateText(t *testing.T) {
	for _, c := range []struct {
		text, prints string
		gap          des.Time
	}{
		{"12500 packets/s", "12500 packets/s", 80 * des.Microsecond},
		{"12.5 kpackets/s", "12500 packets/s", 80 * des.Microsecond},
		{" 1.25Mpackets/s ", "1250000 packets/s", 800 * des.Nanosecond},
		{"0.000001 packets/s", "0.000001 packets/s", 1000000 * des.Second},
		{"80 µs", "12500 packets/s", 80 * des.Microsecond},
		{"81 µs", "", 81 * des.Microsecond},
		{"7 ps", "", 7},
		{"11904.761905 packets/s", "11904.761905 packets/s", 84000000},
	} {
		r := rate(t, c.text)
		if c.prints != "" && r.String() != c.prints {
			t.Errorf("%q prints %q, want %q", c.text, r, c.prints)
		}
		if r.Gap() != c.gap {
			t.Errorf("%q: gap %v, want %v", c.text, r.Gap(), c.gap)
		}
		var back Rate
		if b, _ := r.MarshalText(); back.UnmarshalText(b) != nil || back != r {
			t.Errorf("%q: %q reads back as %v", c.text, r, back)
		}
	}
	for _, bad := range []string{"", "12500", "-1 packets/s", "0 packets/s", "x packets/s", "1e13 packets/s", "NaN packets/s", "0 µs", "-3 µs", "5 MHz", "1e-7 packets/s"} {
		if r, err := ParseRate(bad); err == nil {
			t.Errorf("%q was read as %v", bad, r)
		}
	}
	if _, err := MeanGap(0); !errors.Is(err, ErrRate) {
		t.Errorf("a gap of 0: %v", err)
	}
	var none Rate
	if none.Set() || none.String() != "not set" || none.Gap() != des.MaxTime || none.PerSecond() != 0 {
		t.Errorf("the zero rate: %v %v", none, none.Gap())
	}
}

func TestRateScale(t *testing.T) {
	for _, text := range []string{"12500 packets/s", "81 µs", "0.3 packets/s", "77.7 s"} {
		r := rate(t, text)
		if same, err := r.Scale(1); err != nil || same != r {
			t.Errorf("%s times 1: %v %v", text, same, err)
		}
		for _, f := range []float64{0.001, 0.5, 1.1, 3, 1000} {
			s, err := r.Scale(f)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := s.PerSecond(), f*r.PerSecond(); math.Abs(got/want-1) > 1e-6 {
				t.Errorf("%s times %g: %g packets/s, want %g", text, f, got, want)
			}
		}
		for _, f := range []float64{0, -1, math.NaN(), math.Inf(1), 1e300} {
			if s, err := r.Scale(f); !errors.Is(err, ErrRate) {
				t.Errorf("%s times %g: %v %v", text, f, s, err)
			}
		}
	}
	if _, err := (Rate{}).Scale(2); !errors.Is(err, ErrRate) {
		t.Errorf("scaling no rate: %v", err)
	}
	if _, err := rate(t, "1 s").Scale(1e-30); !errors.Is(err, ErrRate) {
		t.Errorf("a rate below all: %v", err)
	}
}
