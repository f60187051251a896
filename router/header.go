package router

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"spinesim/traces"
)

// The fields of an IPv4 header (RFC 791), by byte.
const (
	versionIHL  = 0
	totalLength = 2
	identity    = 4
	fragment    = 6
	ttlByte     = 8
	protocol    = 9
	checksumAt  = 10
	source      = 12
	destination = 16

	minHeader = 20
	maxHeader = 60
)

// Header is an IPv4 header to be written.
type Header struct {
	TOS         uint8
	TotalLength int // bytes of the packet, header included; 0: the header alone
	ID          uint16
	DontFrag    bool
	TTL         uint8
	Protocol    uint8
	Src, Dst    netip.Addr
	Options     []byte // up to 40 bytes, a multiple of 4
}

// Append appends the header's 20 to 60 bytes, with the right checksum.
func (h Header) Append(b []byte) ([]byte, error) {
	n := minHeader + len(h.Options)
	length := h.TotalLength
	if length == 0 {
		length = n
	}
	switch {
	case !h.Src.Is4() || !h.Dst.Is4():
		return nil, fmt.Errorf("IPv4 header: from %v to %v, want IPv4 addresses", h.Src, h.Dst)
	case len(h.Options)%4 != 0 || n > maxHeader:
		return nil, fmt.Errorf("IPv4 header: %d bytes of options, want a multiple of 4 and at most %d", len(h.Options), maxHeader-minHeader)
	case length < n || length > 0xFFFF:
		return nil, fmt.Errorf("IPv4 header: total length %d, want %d to 65535", length, n)
	}
	at := len(b)
	b = append(b, make([]byte, minHeader)...)
	b = append(b, h.Options...)
	p := b[at:]
	p[versionIHL] = 4<<4 | uint8(n/4)
	p[1] = h.TOS
	binary.BigEndian.PutUint16(p[totalLength:], uint16(length))
	binary.BigEndian.PutUint16(p[identity:], h.ID)
	if h.DontFrag {
		p[fragment] = 0x40
	}
	p[ttlByte], p[protocol] = h.TTL, h.Protocol
	binary.BigEndian.PutUint32(p[source:], number(h.Src))
	binary.BigEndian.PutUint32(p[destination:], number(h.Dst))
	binary.BigEndian.PutUint16(p[checksumAt:], Checksum(p))
	return b, nil
}

// Spoil damages a good header without options so that a router refuses it for
// the given reason and no other. The header's checksum stays right except for
// ReasonBadChecksum. It fails for reasons that are not in the header.
func Spoil(header []byte, why traces.Reason) error {
	if len(header) < minHeader {
		return fmt.Errorf("IPv4 header: %d bytes, want at least %d", len(header), minHeader)
	}
	h := header[:minHeader]
	switch why {
	case traces.ReasonBadVersion:
		h[versionIHL] = 5<<4 | h[versionIHL]&0xF
	case traces.ReasonBadHeaderLength:
		h[versionIHL] = 4<<4 | 4
	case traces.ReasonBadTotalLength:
		binary.BigEndian.PutUint16(h[totalLength:], minHeader-1)
	case traces.ReasonTruncated:
		binary.BigEndian.PutUint16(h[totalLength:], 0xFFFF)
	case traces.ReasonTTLExpired:
		h[ttlByte] = 1
	case traces.ReasonMartian:
		h[source] = 127
	case traces.ReasonBadChecksum:
		// A single bit: every checksum notices that.
		h[checksumAt] ^= 0x10
		return nil
	default:
		return fmt.Errorf("IPv4 header: no way to spoil it for %q", why)
	}
	binary.BigEndian.PutUint16(h[checksumAt:], 0)
	binary.BigEndian.PutUint16(h[checksumAt:], Checksum(h))
	return nil
}
