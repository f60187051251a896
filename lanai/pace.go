package lanai

import "math/big"

const (
	// maxPaceDen bounds the denominator of an exact pace, and so the period of
	// the grants. It exceeds those of all round figures (250 MB/s at 132 MHz:
	// 264).
	maxPaceDen = 1024

	// paceSlack is the part of a pace by which one that is not exact may be
	// off, as a denominator: more than two crystals of 100 ppm differ by, and
	// less than a fifth of a word in a packet of 1,500 bytes.
	paceSlack = 4096

	// maxFIFO bounds a FIFO's depth, and with it what a pace may ask for in
	// one cycle.
	maxFIFO = 63
)

// pace is words per card cycle, p/q in lowest terms; most is ceil(p/q).
type pace struct{ p, q, most int32 }

// makePace returns r > 0 when its denominator is at most maxPaceDen, else the
// simplest fraction within r·(1 ± 1/paceSlack). Very slow paces, where that one
// has too large a denominator as well, get twice the slack, and so on. The
// pace is at least 1/maxPaceDen and at most maxFIFO + 1.
func makePace(r *big.Rat) pace {
	if r.Cmp(big.NewRat(maxFIFO+1, 1)) > 0 {
		return pace{p: maxFIFO + 1, q: 1, most: maxFIFO + 1}
	}
	if least := big.NewRat(1, maxPaceDen); r.Cmp(least) < 0 {
		r = least
	}
	most := big.NewInt(maxPaceDen)
	exact := r
	for slack := int64(paceSlack); r.Denom().Cmp(most) > 0; slack /= 2 {
		off := new(big.Rat).Mul(exact, big.NewRat(1, slack))
		r = simplest(new(big.Rat).Sub(exact, off), new(big.Rat).Add(exact, off))
	}
	p, q := int32(r.Num().Int64()), int32(r.Denom().Int64())
	return pace{p: p, q: q, most: (p + q - 1) / q}
}

// simplest is the fraction of least denominator from lo to hi, 0 ≤ lo < hi.
func simplest(lo, hi *big.Rat) *big.Rat {
	whole := new(big.Rat).SetInt(new(big.Int).Quo(lo.Num(), lo.Denom()))
	if whole.Cmp(lo) == 0 {
		return whole
	}
	if up := new(big.Rat).Add(whole, big.NewRat(1, 1)); up.Cmp(hi) <= 0 {
		return up
	}
	// Both have the same whole part: look at the reciprocals of the rest.
	inv := func(x *big.Rat) *big.Rat { d := new(big.Rat).Sub(x, whole); return d.Inv(d) }
	r := simplest(inv(hi), inv(lo))
	return r.Add(whole, r.Inv(r))
}

// ratio is num/den as a big.Rat, for terms that came from a validated spec.
func ratio(num, den uint64) *big.Rat {
	return new(big.Rat).SetFrac(new(big.Int).SetUint64(num), new(big.Int).SetUint64(den))
}

// newWords is how many words the stream asks for in its next cycle, and the
// phase after it. Phase r is q·D − k·p, from 0 to q − 1.
func (a pace) newWords(r int32) (words, next int32) {
	if r < a.p {
		words = (a.p - r + a.q - 1) / a.q
	}
	return words, r + words*a.q - a.p
}

// cyclesFor is the fewest cycles after which the unhindered demand reaches w.
func (a pace) cyclesFor(w int64) int64 {
	// ceil(k·p/q) ≥ w  ⇔  k·p > (w−1)·q
	if w <= 0 {
		return 0
	}
	return (w-1)*int64(a.q)/int64(a.p) + 1
}
