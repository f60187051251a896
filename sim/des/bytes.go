package des

import (
	"math/big"
	"strconv"
)

// Bytes is an amount of memory or of packet data in bytes.
type Bytes int64

// Units of Bytes.
const (
	Byte Bytes = 1
	KiB        = 1024 * Byte
	MiB        = 1024 * KiB
	GiB        = 1024 * MiB
)

var bytesUnits = []unit{
	{"GiB", big.NewRat(int64(GiB), 1)},
	{"MiB", big.NewRat(int64(MiB), 1)},
	{"KiB", big.NewRat(int64(KiB), 1)},
	{"GB", big.NewRat(1e9, 1)},
	{"MB", big.NewRat(1e6, 1)},
	{"kB", big.NewRat(1e3, 1)},
	{"B", big.NewRat(1, 1)},
}

// ParseBytes reads a whole, non-negative number of bytes: "32 B", "1 MiB",
// "1.5 KiB", "64 kB". k, M and G are powers of ten; Ki, Mi and Gi powers of
// two.
func ParseBytes(s string) (Bytes, error) {
	v, err := parseQuantity("size", s, bytesUnits)
	if err != nil {
		return 0, err
	}
	n, err := countInt64("size", "bytes", s, v)
	return Bytes(n), err
}

// String prints in the largest binary unit that divides the amount: "1 MiB",
// "1536 B". ParseBytes reads it back unchanged.
func (b Bytes) String() string {
	size, name := Byte, " B"
	switch {
	case b == 0:
	case b%GiB == 0:
		size, name = GiB, " GiB"
	case b%MiB == 0:
		size, name = MiB, " MiB"
	case b%KiB == 0:
		size, name = KiB, " KiB"
	}
	return strconv.FormatInt(int64(b/size), 10) + name
}
