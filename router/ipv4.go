package router

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"

	"spinesim/lanai"
	"spinesim/spine"
	"spinesim/traces"
)

// IPv4Spec is what there is to choose about IPv4 forwarding.
type IPv4Spec struct {
	// MartianSources and MartianDestinations are addresses that no packet on
	// a wire may come from or go to (RFC 1812, 5.3.7); such packets are
	// dropped. An empty list lets all pass.
	MartianSources, MartianDestinations []netip.Prefix

	// Local are the router's own addresses, broadcasts that end at it, and
	// groups it listens to: such packets go to the host, whatever their TTL.
	// Local comes before MartianDestinations.
	Local []netip.Prefix

	// OwnWire allows a packet to leave by the card it came in by. RFC 1812
	// (5.2.7.2) forwards such packets and has the host send a redirect,
	// which is left out here. Otherwise the packet goes to the host.
	OwnWire bool

	// MTU is the largest packet in bytes that is forwarded; a larger one goes
	// to the host, to be fragmented or refused. 0 is no limit.
	MTU int

	Costs Costs
}

// DefaultIPv4 forwards as RFC 1812 asks of a router without multicast: it drops
// what has no place on a wire, hands limited broadcasts and link-local groups
// to the host, and has no address of its own and no limit of size.
func DefaultIPv4() IPv4Spec {
	thisNetwork, loopback := netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("127.0.0.0/8")
	groups, reserved := netip.MustParsePrefix("224.0.0.0/4"), netip.MustParsePrefix("240.0.0.0/4")
	return IPv4Spec{
		MartianSources:      []netip.Prefix{thisNetwork, loopback, groups, reserved},
		MartianDestinations: []netip.Prefix{thisNetwork, loopback, groups, reserved},
		Local:               []netip.Prefix{netip.MustParsePrefix("255.255.255.255/32"), netip.MustParsePrefix("224.0.0.0/24")},
		OwnWire:             true,
		Costs:               DefaultCosts(),
	}
}

// Validate tells what is wrong with the spec; the error wraps ErrSpec.
func (s IPv4Spec) Validate() error {
	for _, l := range []struct {
		name string
		ps   []netip.Prefix
	}{{"martian sources", s.MartianSources}, {"martian destinations", s.MartianDestinations}, {"local", s.Local}} {
		for i, p := range l.ps {
			if !p.IsValid() || !p.Addr().Is4() {
				return fmt.Errorf("%w: %s: entry %d is %v, want an IPv4 prefix", ErrSpec, l.name, i, p)
			}
		}
	}
	if s.MTU != 0 && (s.MTU < 68 || s.MTU > 65535) {
		return fmt.Errorf("%w: MTU %d bytes, want 68 (RFC 791) to 65535, or 0 for no limit", ErrSpec, s.MTU)
	}
	return s.Costs.Validate()
}

// IPv4 is the forwarding extension of one card. It implements spine.Extension.
type IPv4 struct {
	costs     Costs
	sources   []block
	dests     []block
	local     []block
	ownWire   bool
	mtu       int
	table     *Table
	addr      uint32
	placed    placed
	forwarded uint64
	refused   [traces.NumReasons]uint64
	reads     uint64
	lookups   uint64
}

var _ spine.Extension = (*IPv4)(nil)

// block is a prefix as firmware would compare it.
type block struct{ addr, mask uint32 }

func blocks(ps []netip.Prefix) []block {
	bs := make([]block, len(ps))
	for i, p := range ps {
		mask := ^uint32(0) << (32 - p.Bits())
		bs[i] = block{number(p.Addr()) & mask, mask}
	}
	return bs
}

func in(bs []block, a uint32) bool {
	for _, b := range bs {
		if a&b.mask == b.addr {
			return true
		}
	}
	return false
}

// NewIPv4 puts the table into the card's memory and returns an extension for
// that card. It fails when the spec is wrong or the table does not fit.
func NewIPv4(spec IPv4Spec, table *Table, sram *lanai.SRAM) (*IPv4, error) {
	if err := spec.Validate(); err != nil {
		return nil, err
	}
	addr, err := table.Load(sram)
	if err != nil {
		return nil, err
	}
	return &IPv4{
		costs:   spec.Costs,
		sources: blocks(spec.MartianSources), dests: blocks(spec.MartianDestinations), local: blocks(spec.Local),
		ownWire: spec.OwnWire, mtu: spec.MTU,
		table: table, addr: addr, placed: table.at(addr),
	}, nil
}

// Name is "ipv4".
func (x *IPv4) Name() string { return "ipv4" }

// Handle forwards, hands to the host or drops one packet. A packet that is
// forwarded has its TTL lowered by one and its checksum corrected in place; any
// other is left as it came. It does not allocate.
//
// The order is that of RFC 1812, 5.2: the header's checks first; then martian
// sources, local delivery and martian destinations; then options, TTL, the
// route.
func (x *IPv4) Handle(ctx *spine.Context, p *spine.Packet) spine.Verdict {
	v := x.decide(ctx, p)
	if v.Action == spine.Forward {
		x.forwarded++
		return v
	}
	ctx.Charge(x.costs.Refuse)
	if x.costs.Refuse > 1 {
		ctx.Access(2) // the counter, read and written
	}
	x.refused[v.Reason]++
	return v
}

func drop(why traces.Reason) spine.Verdict { return spine.Verdict{Action: spine.Drop, Reason: why} }

func toHost(why traces.Reason) spine.Verdict { return spine.Verdict{Action: spine.ToHost, Reason: why} }

func (x *IPv4) decide(ctx *spine.Context, p *spine.Packet) spine.Verdict {
	c := &x.costs
	ctx.Charge(c.Checks)
	if p.BadCRC {
		return drop(traces.ReasonBadCRC)
	}
	h := p.Header
	if p.Bytes < minHeader || len(h) < minHeader {
		return drop(traces.ReasonTruncated)
	}
	if h[versionIHL]>>4 != 4 {
		return drop(traces.ReasonBadVersion)
	}
	words := int(h[versionIHL] & 0xF)
	size := words * 4
	if size < minHeader {
		return drop(traces.ReasonBadHeaderLength)
	}
	if size > p.Bytes || size > len(h) {
		return drop(traces.ReasonTruncated)
	}
	ctx.Charge(c.ChecksumFixed + words*c.ChecksumWord)
	ctx.Access(words)
	if Checksum(h[:size]) != 0 {
		return drop(traces.ReasonBadChecksum)
	}
	total := int(binary.BigEndian.Uint16(h[totalLength:]))
	if total < size {
		return drop(traces.ReasonBadTotalLength)
	}
	if total > p.Bytes {
		return drop(traces.ReasonTruncated)
	}
	dst := binary.BigEndian.Uint32(h[destination:])
	switch {
	case in(x.sources, binary.BigEndian.Uint32(h[source:])):
		return drop(traces.ReasonMartian)
	case in(x.local, dst):
		return toHost(traces.ReasonLocal)
	case in(x.dests, dst):
		return drop(traces.ReasonMartian)
	case size > minHeader:
		return toHost(traces.ReasonOptions)
	case h[ttlByte] < 2:
		return toHost(traces.ReasonTTLExpired)
	}
	hop, reads, ok := x.placed.trie.Lookup(ctx, dst)
	ctx.Charge(c.LookupFixed + max(reads.Nodes-1, 0)*c.LookupStep + reads.Prefixes*c.LookupPrefix)
	x.lookups++
	x.reads += uint64(reads.Words)
	if !ok {
		return toHost(traces.ReasonNoRoute)
	}
	at := x.placed.hops + hop*hopBytes
	v := spine.Verdict{Action: spine.Forward, NextHop: ctx.Load32(at), Card: uint8(ctx.Load32(at + 4))}
	switch {
	case v.Card == p.Ingress && !x.ownWire:
		return toHost(traces.ReasonOwnWire)
	case x.mtu > 0 && total > x.mtu:
		return toHost(traces.ReasonTooLong)
	}
	ctx.Charge(c.Update)
	ctx.Access(1)
	lowerTTL(h)
	return v
}

// lowerTTL takes one from the TTL of a header and corrects its checksum.
func lowerTTL(h []byte) {
	from := binary.BigEndian.Uint16(h[ttlByte:])
	to := from - 1<<8
	binary.BigEndian.PutUint16(h[ttlByte:], to)
	sum := binary.BigEndian.Uint16(h[checksumAt:])
	binary.BigEndian.PutUint16(h[checksumAt:], UpdateChecksum(sum, from, to))
}

// Table is the route table that the extension forwards by, and Address where
// it lies in the card's memory.
func (x *IPv4) Table() *Table   { return x.table }
func (x *IPv4) Address() uint32 { return x.addr }

// Counts are what an extension has done so far.
type Counts struct {
	Forwarded uint64
	// Refused are the packets dropped or handed to the host, by reason.
	Refused [traces.NumReasons]uint64
	// Lookups were made, with Reads words read from the trie in all.
	Lookups, Reads uint64
}

// Counts tells what the extension has done so far.
func (x *IPv4) Counts() Counts {
	return Counts{Forwarded: x.forwarded, Refused: x.refused, Lookups: x.lookups, Reads: x.reads}
}

// Reasons are the reasons for which an extension may refuse a packet, in the
// order of the checks.
func Reasons() []traces.Reason { return slices.Clone(reasons[:]) }

var reasons = [...]traces.Reason{
	traces.ReasonBadCRC, traces.ReasonTruncated, traces.ReasonBadVersion, traces.ReasonBadHeaderLength,
	traces.ReasonBadChecksum, traces.ReasonBadTotalLength, traces.ReasonMartian, traces.ReasonLocal,
	traces.ReasonOptions, traces.ReasonTTLExpired, traces.ReasonNoRoute, traces.ReasonOwnWire, traces.ReasonTooLong,
}
