package router

import (
	"encoding/binary"
	"net/netip"
)

// Route says that packets to Prefix go to NextHop. Both are IPv4.
type Route struct {
	Prefix  netip.Prefix
	NextHop netip.Addr
}

// WithoutDefault returns the routes other than 0.0.0.0/0, in their order. With
// a default route no packet is unroutable.
func WithoutDefault(routes []Route) []Route {
	kept := make([]Route, 0, len(routes))
	for _, r := range routes {
		if r.Prefix.Bits() != 0 {
			kept = append(kept, r)
		}
	}
	return kept
}

// number is an IPv4 address as the processor has it in a register.
func number(a netip.Addr) uint32 {
	b := a.As4()
	return binary.BigEndian.Uint32(b[:])
}

func address(n uint32) netip.Addr {
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], n)
	return netip.AddrFrom4(b)
}

// key tells prefixes apart: the address and the length below it.
func key(p netip.Prefix) uint64 { return uint64(number(p.Addr()))<<8 | uint64(p.Bits()) }
