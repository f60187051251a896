package traffic

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"net/netip"

	"spinesim/sim/des"
)

// ErrNoAddress reports that no address was found that may be a destination.
var ErrNoAddress = errors.New("no such destination")

// maxTries bounds the search for an address that passes the filters (chosen:
// it finds one that is a ten-thousandth of all with near certainty).
const maxTries = 100_000

// DestinationSpec says where packets go. Addresses that a router must refuse
// (0/8, 127/8, 224/3) are never drawn.
type DestinationSpec struct {
	// Prefixes to draw from: IPv4, at least one unless Unroutable is 1. An
	// address is a random one in a drawn prefix; a longer prefix may cover it.
	Prefixes []netip.Prefix
	// Zipf is the exponent s of the prefixes' popularity: the i-th most
	// popular has weight i^-s. 0: all alike. Which prefix is how popular is
	// drawn. 0 to 8.
	Zipf float64
	// Unroutable is the share of packets, 0 to 1, for addresses that Covered
	// says are not covered by any route.
	Unroutable float64
	// Covered tells whether a route covers an address; needed with Unroutable.
	Covered func(netip.Addr) bool
	// Accept, if not nil, must approve of a routable address: for instance
	// those only that leave by one card. Weights then hold among the accepted.
	Accept func(netip.Addr) bool
}

// Destinations draws addresses. It is made by NewDestinations.
type Destinations struct {
	spec       DestinationSpec
	base       []uint32
	length     []uint8
	popularity *des.Empirical // nil: uniform
	unroutable uint64         // share in 2^-53
	prefix     *des.Stream
	host       *des.Stream
	share      *des.Stream
}

// NewDestinations makes one; its streams are called name/prefix, name/host and
// name/unroutable, and one for the order of popularity.
func NewDestinations(spec DestinationSpec, seed uint64, name string) (*Destinations, error) {
	switch {
	case !(spec.Unroutable >= 0 && spec.Unroutable <= 1):
		return nil, fmt.Errorf("destinations: unroutable share %g, want 0 to 1", spec.Unroutable)
	case spec.Unroutable > 0 && spec.Covered == nil:
		return nil, fmt.Errorf("destinations: an unroutable share needs a table that says what is covered")
	case !(spec.Zipf >= 0 && spec.Zipf <= 8):
		return nil, fmt.Errorf("destinations: Zipf exponent %g, want 0 to 8", spec.Zipf)
	case len(spec.Prefixes) == 0 && spec.Unroutable < 1:
		return nil, fmt.Errorf("destinations: no prefix to draw from")
	case len(spec.Prefixes) > 1<<24:
		return nil, fmt.Errorf("destinations: %d prefixes, want at most %d", len(spec.Prefixes), 1<<24)
	}
	d := &Destinations{
		spec:       spec,
		base:       make([]uint32, len(spec.Prefixes)),
		length:     make([]uint8, len(spec.Prefixes)),
		unroutable: uint64(math.Round(spec.Unroutable * (1 << 53))),
		prefix:     des.NewStream(seed, name+"/prefix"),
		host:       des.NewStream(seed, name+"/host"),
		share:      des.NewStream(seed, name+"/unroutable"),
	}
	for i, p := range spec.Prefixes {
		if !p.IsValid() || !p.Addr().Is4() {
			return nil, fmt.Errorf("destinations: prefix %d is %v, want an IPv4 one", i, p)
		}
		a := p.Masked().Addr().As4()
		d.base[i], d.length[i] = binary.BigEndian.Uint32(a[:]), uint8(p.Bits())
	}
	if spec.Zipf > 0 && len(d.base) > 1 {
		des.NewStream(seed, name+"/popularity").Shuffle(len(d.base), func(i, j int) {
			d.base[i], d.base[j] = d.base[j], d.base[i]
			d.length[i], d.length[j] = d.length[j], d.length[i]
		})
		var err error
		if d.popularity, err = zipf(len(d.base), spec.Zipf); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// zipf is the distribution of ranks 0 … n−1 with weights (i+1)^-s.
func zipf(n int, s float64) (*des.Empirical, error) {
	values, weights := make([]int64, n), make([]uint64, n)
	// The alias table needs n times the sum of the weights within 64 bits.
	sum := 0.0
	for i := range n {
		sum += math.Pow(float64(i+1), -s)
	}
	top := min(52, 63-bits.Len(uint(n))-bits.Len(uint(math.Ceil(sum))))
	for i := range n {
		values[i] = int64(i)
		// 20 significant bits: a power function's last bit may differ between
		// machines, these do not.
		frac, exp := math.Frexp(math.Pow(float64(i+1), -s))
		weights[i] = uint64(math.Ldexp(math.Round(frac*(1<<20)), exp-20+top))
	}
	d, err := des.NewEmpirical(values, weights)
	if err != nil {
		return nil, fmt.Errorf("destinations: %d prefixes of Zipf exponent %g: %w", n, s, err)
	}
	return d, nil
}

// refused tells whether a router must refuse the address as a destination.
func refused(a uint32) bool {
	top := a >> 24
	return top == 0 || top == 127 || top >= 224
}

func addr(a uint32) netip.Addr {
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], a)
	return netip.AddrFrom4(b)
}

// Next draws an address. The error is ErrNoAddress when the filters leave none
// that can be found.
func (d *Destinations) Next() (netip.Addr, error) {
	a, err := d.next()
	return addr(a), err
}

func (d *Destinations) next() (uint32, error) {
	if d.unroutable > 0 && d.share.Uint64()>>11 < d.unroutable {
		for range maxTries {
			a := uint32(d.host.Uint64() >> 32)
			if !refused(a) && !d.spec.Covered(addr(a)) {
				return a, nil
			}
		}
		return 0, fmt.Errorf("%w: %d random addresses are all covered by a route (by a default route?)", ErrNoAddress, maxTries)
	}
	for range maxTries {
		var i int
		if d.popularity != nil {
			i = int(d.prefix.Empirical(d.popularity))
		} else {
			i = d.prefix.IntN(len(d.base))
		}
		a := d.base[i] | uint32(d.host.Uint64N(1<<(32-d.length[i])))
		if !refused(a) && (d.spec.Accept == nil || d.spec.Accept(addr(a))) {
			return a, nil
		}
	}
	return 0, fmt.Errorf("%w: %d addresses in %d prefixes are all refused", ErrNoAddress, maxTries, len(d.base))
}
