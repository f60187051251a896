package stats

// warmup finds by the MSER rule how many leading values to leave out: the d
// that minimises the squared standard error of the mean of what remains,
//
//	Σ_{i>d} (y_i − ȳ_d)² / (n − d)²,
//
// searched over the first half, where enough remains for the minimum to mean
// something. On batches of five observations it is MSER-5. settled is false
// when the minimum lies at the end of the search: the series is then still
// drifting at its middle.
func warmup(y []float64) (d int, settled bool) {
	limit := len(y) / 2
	var m Moments
	best, at := 0.0, -1
	for i := len(y) - 1; i >= 0; i-- {
		m.Add(y[i])
		if i > limit {
			continue
		}
		n := float64(m.n)
		if s := m.m2 / (n * n); at < 0 || s <= best {
			best, at = s, i
		}
	}
	if at <= 0 {
		return 0, at == 0
	}
	return at, at < limit
}
