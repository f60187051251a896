package traffic

import (
	"encoding/binary"
	"fmt"
	"net/netip"
)

const (
	ipv4Header    = 20
	maxIPv4Header = 60
	udpHeader     = 8
	protocolUDP   = 17
	dontFragment  = 0x4000
)

// Header holds what all packets of a Synthetic source have in common.
type Header struct {
	TTL  uint8 // [64]
	DSCP uint8 // differentiated services code point, 0 to 63 [0]
	// Source is the prefix of which the sources are random hosts
	// [198.18.0.0/15, RFC 2544's block for benchmarks].
	Source netip.Prefix
	// UDP ports [49152 and 7, the echo port of RFC 2544's test frames].
	SourcePort, DestinationPort uint16
}

// DefaultHeader gives the values in brackets.
func DefaultHeader() Header {
	return Header{
		TTL:        64,
		Source:     netip.PrefixFrom(netip.AddrFrom4([4]byte{198, 18, 0, 0}), 15),
		SourcePort: 49152, DestinationPort: 7,
	}
}

// Validate tells what is wrong with h.
func (h Header) Validate() error {
	if h.DSCP > 63 {
		return fmt.Errorf("packet header: DSCP %d, want 0 to 63", h.DSCP)
	}
	if !h.Source.IsValid() || !h.Source.Addr().Is4() {
		return fmt.Errorf("packet header: source prefix %v, want an IPv4 one", h.Source)
	}
	return nil
}

// HeaderBytes is what Write fills: an IPv4 header without options and a UDP
// header.
const HeaderBytes = minBytes

// Write fills p[:HeaderBytes] with the IPv4 and UDP headers of a packet of the
// given length, at least HeaderBytes, whose payload is all zero, both checksums
// included. src and dst are IPv4 addresses, most significant byte first.
func (h *Header) Write(p []byte, bytes int, id uint16, src, dst uint32) {
	be := binary.BigEndian
	p[0], p[1] = 0x45, h.DSCP<<2
	be.PutUint16(p[2:], uint16(bytes))
	be.PutUint16(p[4:], id)
	be.PutUint16(p[6:], dontFragment)
	p[8], p[9] = h.TTL, protocolUDP
	be.PutUint16(p[10:], 0)
	be.PutUint32(p[12:], src)
	be.PutUint32(p[16:], dst)
	be.PutUint16(p[10:], ^fold(sum16(p[:ipv4Header])))

	u := p[ipv4Header:minBytes]
	length := uint16(bytes - ipv4Header)
	be.PutUint16(u, h.SourcePort)
	be.PutUint16(u[2:], h.DestinationPort)
	be.PutUint16(u[4:], length)
	be.PutUint16(u[6:], 0)
	// The pseudo-header repeats addresses, protocol and length.
	c := ^fold(sum16(p[12:20]) + protocolUDP + uint32(length) + sum16(u))
	if c == 0 {
		c = 0xFFFF // zero would mean "no checksum" (RFC 768)
	}
	be.PutUint16(u[6:], c)
}

// sum16 adds up 16-bit words; p has an even length of at most 60 bytes.
func sum16(p []byte) (s uint32) {
	for ; len(p) >= 2; p = p[2:] {
		s += uint32(p[0])<<8 | uint32(p[1])
	}
	return s
}

func fold(s uint32) uint16 {
	for s > 0xFFFF {
		s = s>>16 + s&0xFFFF
	}
	return uint16(s)
}
