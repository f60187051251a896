package lanai

import "math/big"

const (
	// maxPaceDen bounds the denominator of a pace, and so the period of the
	// grants. It exceeds those of all round figures (250 MB/s at 132 MHz: 264).
	maxPaceDen = 1024

	// maxFIFO bounds a FIFO's depth, and with it what a pace may ask for in
	// one cycle.
	maxFIFO = 63
)

// pace is words per card cycle, p/q in lowest terms; most is ceil(p/q).
type pace struct{ p, q, most int32 }

// makePace returns the fraction nearest to r > 0 whose denominator is at most
// maxPaceDen. It is at least 1/maxPaceDen and at most maxFIFO + 1.
func makePace(r *big.Rat) pace {
	if r.Cmp(big.NewRat(maxFIFO+1, 1)) > 0 {
		return pace{p: maxFIFO + 1, q: 1, most: maxFIFO + 1}
	}
	limit := big.NewInt(maxPaceDen)
	// Continued fraction, up to the last convergent that fits.
	n, d := new(big.Int).Set(r.Num()), new(big.Int).Set(r.Denom())
	p0, q0, p1, q1 := big.NewInt(0), big.NewInt(1), big.NewInt(1), big.NewInt(0)
	next := func(a, x0, x1 *big.Int) *big.Int { return new(big.Int).Add(x0, new(big.Int).Mul(a, x1)) }
	for d.Sign() != 0 {
		a, rest := new(big.Int).QuoRem(n, d, new(big.Int))
		if q := next(a, q0, q1); q.Cmp(limit) > 0 {
			// The largest semiconvergent that fits may be nearer.
			t := new(big.Int).Sub(limit, q0)
			t.Quo(t, q1)
			semi := new(big.Rat).SetFrac(next(t, p0, p1), next(t, q0, q1))
			conv := new(big.Rat).SetFrac(p1, q1)
			ds, dc := new(big.Rat).Sub(semi, r), new(big.Rat).Sub(conv, r)
			if ds.Abs(ds).Cmp(dc.Abs(dc)) < 0 {
				p1, q1 = semi.Num(), semi.Denom()
			}
			break
		}
		p0, p1 = p1, next(a, p0, p1)
		q0, q1 = q1, next(a, q0, q1)
		n, d = d, rest
	}
	p, q := int32(p1.Int64()), int32(q1.Int64())
	if p == 0 {
		p, q = 1, maxPaceDen
	}
	return pace{p: p, q: q, most: (p + q - 1) / q}
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
