package traffic

import (
	"encoding/binary"
	"fmt"

	"spinesim/sim/des"
)

// SyntheticSpec describes made-up traffic. It has no end; PortSpec.Limit ends
// it.
type SyntheticSpec struct {
	Arrivals ArrivalSpec
	Wire     Wire
	Sizes    Sizes
	// Destinations; their streams are called name/destinations/… .
	Destinations DestinationSpec
	Header       Header
	// Carry is how many leading bytes of a packet are made (the rest, all
	// zero, is only counted), at least 28; 0 counts as 28.
	Carry int
	// Process, if not nil, replaces Arrivals by an arrival process of the
	// caller's own.
	Process Process
}

// Synthetic is a Source of UDP packets. Next does not allocate.
type Synthetic struct {
	arrivals Process
	wire     serialiser
	sizes    Sizes
	size     *des.Stream
	to       *Destinations
	from     *des.Stream
	base     uint32
	hosts    uint64
	header   Header
	id       uint16
	buf      []byte
}

// NewSynthetic makes a source; all its streams' names begin with name, which
// must differ between the sources of a run.
func NewSynthetic(spec SyntheticSpec, seed uint64, name string) (*Synthetic, error) {
	fail := func(err error) (*Synthetic, error) { return nil, fmt.Errorf("source %s: %w", name, err) }
	if err := spec.Wire.Validate(); err != nil {
		return fail(err)
	}
	if err := spec.Header.Validate(); err != nil {
		return fail(err)
	}
	if spec.Sizes.d == nil {
		return fail(fmt.Errorf("packet sizes are not set"))
	}
	if spec.Carry != 0 && (spec.Carry < minBytes || spec.Carry > maxBytes) {
		return fail(fmt.Errorf("%d bytes carried, want %d to %d", spec.Carry, minBytes, maxBytes))
	}
	if spec.Wire.Rate.Num == 0 && spec.Process == nil && spec.Arrivals.Kind == Saturating {
		return fail(fmt.Errorf("saturating arrivals on a wire without a rate would all come at once"))
	}
	to, err := NewDestinations(spec.Destinations, seed, name+"/destinations")
	if err != nil {
		return fail(err)
	}
	process := spec.Process
	if process == nil {
		if process, err = spec.Arrivals.Process(seed, name); err != nil {
			return fail(err)
		}
	}
	prefix := spec.Header.Source.Masked()
	base := prefix.Addr().As4()
	return &Synthetic{
		arrivals: process,
		wire:     serialiser{w: spec.Wire},
		sizes:    spec.Sizes,
		size:     des.NewStream(seed, name+"/sizes"),
		to:       to,
		from:     des.NewStream(seed, name+"/sources"),
		base:     binary.BigEndian.Uint32(base[:]),
		hosts:    1 << (32 - prefix.Bits()),
		header:   spec.Header,
		buf:      make([]byte, min(max(spec.Carry, minBytes), spec.Sizes.largest)),
	}, nil
}

// Next makes the next packet.
func (s *Synthetic) Next(a *Arrival) (bool, error) {
	t, err := s.arrivals.Next()
	if err != nil {
		return false, err
	}
	bytes := int(s.size.Empirical(s.sizes.d))
	if t, err = s.wire.send(t, bytes); err != nil {
		return false, err
	}
	dst, err := s.to.next()
	if err != nil {
		return false, err
	}
	src := s.base | uint32(s.from.Uint64N(s.hosts))
	s.id++
	s.header.Write(s.buf, bytes, s.id, src, dst)
	*a = Arrival{At: t, Bytes: bytes, Data: s.buf[:min(bytes, len(s.buf))]}
	return true, nil
}
