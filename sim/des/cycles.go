package des

import "math/big"

// Cycles is a number of periods of some clock, which Clock turns into a time.
type Cycles int64

var cyclesUnits = []unit{
	{"cycles", big.NewRat(1, 1)},
	{"cycle", big.NewRat(1, 1)},
}

// ParseCycles reads a whole, non-negative number of cycles: "132 cycles",
// "1 cycle".
func ParseCycles(s string) (Cycles, error) {
	v, err := parseQuantity("length", s, cyclesUnits)
	if err != nil {
		return 0, err
	}
	n, err := countInt64("length", "cycles", s, v)
	return Cycles(n), err
}

// String prints "132 cycles"; ParseCycles reads it back unchanged.
func (c Cycles) String() string { return plural(int64(c), "cycle", "cycles") }
