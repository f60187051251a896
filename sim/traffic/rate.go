package traffic

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"

	"spinesim/sim/des"
)

// ErrRate reports a packet rate that is no positive, finite number in range.
var ErrRate = errors.New("packet rate out of range")

// Rate is a mean packet rate, exact: it is kept as a ratio, so that arrivals
// at a constant rate never drift. The zero value means "not set".
type Rate struct{ f des.Frequency }

// microPacket is the resolution of rates given in packets/s (chosen): a
// millionth of a packet a second.
const microPacket = 1_000_000

// PacketsPerSecond is a rate of 10^-6 to 10^12 packets/s, rounded to a
// millionth of a packet a second.
func PacketsPerSecond(r float64) (Rate, error) {
	n := math.Round(r * microPacket)
	if !(n >= 1 && r <= 1e12) {
		return Rate{}, fmt.Errorf("%w: %g packets/s, want 1e-6 to 1e12", ErrRate, r)
	}
	return reduced(uint64(n), microPacket), nil
}

// MeanGap is the rate of one packet every gap, which must be positive.
func MeanGap(gap des.Time) (Rate, error) {
	if gap <= 0 {
		return Rate{}, fmt.Errorf("%w: a mean gap of %v", ErrRate, gap)
	}
	return reduced(uint64(des.Second), uint64(gap)), nil
}

func reduced(num, den uint64) Rate {
	a, b := num, den
	for b != 0 {
		a, b = b, a%b
	}
	return Rate{des.Frequency{Num: num / a, Den: den / a}}
}

// ParseRate reads "12500 packets/s", "12.5 kpackets/s", "1.2 Mpackets/s", or a
// mean gap as a time: "80 µs".
func ParseRate(s string) (Rate, error) {
	text := strings.TrimSpace(s)
	for _, u := range []struct {
		suffix string
		factor float64
	}{{"kpackets/s", 1e3}, {"Mpackets/s", 1e6}, {"packets/s", 1}} {
		number, ok := strings.CutSuffix(text, u.suffix)
		if !ok {
			continue
		}
		v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		if err != nil {
			return Rate{}, fmt.Errorf("packet rate %q: want a number before %q", s, u.suffix)
		}
		return PacketsPerSecond(v * u.factor)
	}
	gap, err := des.ParseTime(text)
	if err != nil {
		return Rate{}, fmt.Errorf("packet rate %q: want packets/s, kpackets/s, Mpackets/s or a mean gap: %w", s, err)
	}
	return MeanGap(gap)
}

// Set tells whether there is a rate.
func (r Rate) Set() bool { return r.f.Num != 0 && r.f.Den != 0 }

// PerSecond is the rate in packets/s, for results; 0 when not set.
func (r Rate) PerSecond() float64 { return r.f.Hz() }

// Gap is the mean gap between packets, rounded to a picosecond; MaxTime when
// the rate is not set.
func (r Rate) Gap() des.Time { return r.gapTimes(1) }

// gapTimes is n mean gaps, rounded once and capped at MaxTime.
func (r Rate) gapTimes(n int) des.Time {
	if !r.Set() {
		return des.MaxTime
	}
	v := new(big.Int).SetUint64(r.f.Den)
	v.Mul(v, big.NewInt(int64(des.Second)))
	v.Mul(v, big.NewInt(int64(n)))
	num := new(big.Int).SetUint64(r.f.Num)
	v.Add(v, new(big.Int).Rsh(num, 1))
	if v.Quo(v, num); !v.IsInt64() {
		return des.MaxTime
	}
	return des.Time(v.Int64())
}

// Scale is the rate f times as high. Rates of at least 1 packet/s come out
// rounded to a millionth of a packet a second, lower ones to a picosecond of
// the mean gap. A factor of 1 changes nothing. The error is ErrRate.
func (r Rate) Scale(f float64) (Rate, error) {
	if !(f > 0) || math.IsInf(f, 0) || !r.Set() {
		return Rate{}, fmt.Errorf("%w: %v times %g", ErrRate, r, f)
	}
	if f == 1 {
		return r, nil
	}
	if v := r.PerSecond() * f; v >= 1 {
		return PacketsPerSecond(v)
	}
	gap := math.Round(float64(r.Gap()) / f)
	if !(gap >= 1 && gap < math.MaxInt64) {
		return Rate{}, fmt.Errorf("%w: %v times %g", ErrRate, r, f)
	}
	return MeanGap(des.Time(gap))
}

// clock ticks once a packet, from 0 on.
func (r Rate) clock() (des.Clock, error) {
	c, err := des.NewClock(r.f, 0)
	if err != nil {
		return c, fmt.Errorf("packet rate %v: %w", r, err)
	}
	return c, nil
}

// String prints packets/s where they are a whole number of millionths, else
// the mean gap; ParseRate reads either back unchanged.
func (r Rate) String() string {
	if !r.Set() {
		return "not set"
	}
	if microPacket%r.f.Den == 0 && r.f.Num < 1<<53/microPacket {
		return strconv.FormatFloat(r.PerSecond(), 'f', -1, 64) + " packets/s"
	}
	if uint64(des.Second)%r.f.Num == 0 {
		return r.Gap().String()
	}
	return strconv.FormatFloat(r.PerSecond(), 'f', -1, 64) + " packets/s"
}

// MarshalText and UnmarshalText are String and ParseRate.
func (r Rate) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText is ParseRate.
func (r *Rate) UnmarshalText(b []byte) (err error) {
	*r, err = ParseRate(string(b))
	return err
}

// IsZero tells that there is no rate, so that encoders can leave it out.
func (r Rate) IsZero() bool { return !r.Set() }
