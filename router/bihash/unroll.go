package bihash

import "fmt"

// UnrollLengths are the key lengths of the published table, in bytes.
func UnrollLengths() []int { return []int{8, 16, 24, 32, 40} }

// Unroll is how many of the clocks of clib_crc32c, a CRC-32C over a key of known
// length in steps of 8 bytes, forcing the compiler to unroll its loop saves, by
// key length (L. Zhang, vpp-dev, 27 December 2019). Up to 24 bytes the compiler
// had unrolled the loop by itself. The savings do not grow with the length: the
// loop's last branch is mispredicted or not. So this is a table, and there is no
// model behind it.
type Unroll struct {
	Processor string    `json:"processor"`
	Savings   []float64 `json:"savings"` // by UnrollLengths, as shares
}

// UnrollTable is the published table.
func UnrollTable() []Unroll {
	return []Unroll{
		{"Taishan", []float64{0, 0, 0, 0.69, 0.53}},
		{"ThunderX1", []float64{0, 0, 0, 0.26, 0.05}},
		{"ThunderX2", []float64{0, 0, 0, 0.19, 0.71}},
		{"Haswell", []float64{0, 0, 0, 0.50, 0.38}},
	}
}

// UnrollSaving looks a saving up. Lengths between those of the table, or beyond
// it, are not known.
func UnrollSaving(processor string, keyBytes int) (float64, error) {
	for _, u := range UnrollTable() {
		if u.Processor != processor {
			continue
		}
		for i, l := range UnrollLengths() {
			if l == keyBytes {
				return u.Savings[i], nil
			}
		}
		return 0, fmt.Errorf("%w: nothing is published for keys of %d bytes, want one of %v", ErrKey, keyBytes, UnrollLengths())
	}
	return 0, fmt.Errorf("%w: nothing is published of processor %q", ErrSpec, processor)
}
