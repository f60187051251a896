package traffic

import (
	"fmt"
	"slices"

	"spinesim/sim/des"
)

const (
	// minBytes is an IPv4 header and a UDP header.
	minBytes = 28
	maxBytes = 65535
)

// rfc2544Frames are the Ethernet frame sizes of RFC 2544, section 9.1, in bytes
// with header and check sequence.
var rfc2544Frames = [...]int{64, 128, 256, 512, 1024, 1280, 1518}

// ethernetFraming is the header and check sequence of an Ethernet frame.
const ethernetFraming = 18

// Sizes is a distribution of packet lengths, from the IPv4 header on. It is
// immutable and may be shared.
type Sizes struct {
	d *des.Empirical
	// largest length, for the buffer
	largest int
}

// Fixed is one length, 28 to 65,535 bytes.
func Fixed(bytes int) (Sizes, error) { return Empirical([]int{bytes}, nil) }

// IMIX is 7:4:1 of 40, 576 and 1,500 bytes, mean 340.3.
func IMIX() Sizes {
	s, err := Empirical([]int{40, 576, 1500}, []uint64{7, 4, 1})
	if err != nil {
		panic(err) // constants
	}
	return s
}

// RFC2544 is the packets of RFC 2544's frame sizes in equal shares.
func RFC2544() Sizes {
	s, err := Empirical(RFC2544Packets(), nil)
	if err != nil {
		panic(err) // constants
	}
	return s
}

// RFC2544Packets lists the lengths of the packets in RFC 2544's frames of 64,
// 128, 256, 512, 1,024, 1,280 and 1,518 bytes: 18 less each. A test by that
// RFC runs each of them on its own.
func RFC2544Packets() []int {
	out := make([]int, len(rfc2544Frames))
	for i, f := range rfc2544Frames {
		out[i] = f - ethernetFraming
	}
	return out
}

// Empirical gives each length its weight; nil weights are equal ones. Lengths
// lie between 28 and 65,535 bytes.
func Empirical(bytes []int, weights []uint64) (Sizes, error) {
	values := make([]int64, len(bytes))
	for i, b := range bytes {
		if b < minBytes || b > maxBytes {
			return Sizes{}, fmt.Errorf("packet sizes: %d bytes, want %d to %d", b, minBytes, maxBytes)
		}
		values[i] = int64(b)
	}
	d, err := des.NewEmpirical(values, weights)
	if err != nil {
		return Sizes{}, fmt.Errorf("packet sizes: %w", err)
	}
	return Sizes{d: d, largest: slices.Max(bytes)}, nil
}

// Mean length in bytes; 0 for the zero Sizes.
func (s Sizes) Mean() float64 {
	if s.d == nil {
		return 0
	}
	return s.d.Mean()
}

// Largest length in bytes.
func (s Sizes) Largest() int { return s.largest }
