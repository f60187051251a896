package lctrie

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"
)

// Route is one entry of a table: packets to Prefix go to the next hop with
// this index.
type Route struct {
	Prefix  netip.Prefix
	NextHop uint32 // an index into the caller's vector of next hops
}

// The errors by which a caller may decide.
var (
	ErrPrefix    = errors.New("not a usable IPv4 prefix")
	ErrDuplicate = errors.New("prefix given twice with different next hops")
	ErrNodes     = errors.New("too many trie nodes")
	ErrNextHop   = errors.New("next-hop index too large")
	ErrLinks     = errors.New("too many nested prefixes")
	ErrOptions   = errors.New("bad trie options")
	ErrImage     = errors.New("bad trie image")
)

// entry is a route in the form that the build works with. Its key orders
// routes by string, and the shorter first where the strings are equal; it
// holds the string in bits 8 to 39 and the length below.
type entry struct {
	key     uint64
	nextHop uint32
}

func (e entry) str() uint32 { return uint32(e.key >> 8) }
func (e entry) len() uint32 { return uint32(e.key & 0xFF) }

func (e entry) prefix() netip.Prefix { return prefixOf(e.str(), e.len()) }

// contains tells whether every address of f is one of e's.
func (e entry) contains(f entry) bool {
	return e.len() <= f.len() && matches(e.str()^f.str(), e.len())
}

// matches tells whether the first n bits (0 … 32) of a difference are zero.
func matches(diff, n uint32) bool { return uint64(diff)<<(n&63)>>32 == 0 }

func prefixOf(str, length uint32) netip.Prefix {
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], str)
	return netip.PrefixFrom(netip.AddrFrom4(b), int(length))
}

// sorted brings routes in order and merges equal ones.
func sorted(routes []Route) ([]entry, error) {
	es := make([]entry, len(routes))
	for i, r := range routes {
		p := r.Prefix
		if !p.IsValid() || !p.Addr().Is4() {
			return nil, fmt.Errorf("route %d, %v: %w", i, p, ErrPrefix)
		}
		a := p.Addr().As4()
		str, n := binary.BigEndian.Uint32(a[:]), uint32(p.Bits())
		if uint64(str)<<n&0xFFFFFFFF != 0 {
			return nil, fmt.Errorf("route %d, %v: %w: bits beyond the length are set (the network is %v)", i, p, ErrPrefix, p.Masked())
		}
		es[i] = entry{key: uint64(str)<<8 | uint64(n), nextHop: r.NextHop}
	}
	slices.SortFunc(es, func(a, b entry) int {
		switch {
		case a.key < b.key:
			return -1
		case a.key > b.key:
			return 1
		}
		return 0
	})
	kept := es[:0]
	for _, e := range es {
		if n := len(kept); n > 0 && kept[n-1].key == e.key {
			if kept[n-1].nextHop != e.nextHop {
				return nil, fmt.Errorf("%v: %w (%d and %d)", e.prefix(), ErrDuplicate, min(kept[n-1].nextHop, e.nextHop), max(kept[n-1].nextHop, e.nextHop))
			}
			continue
		}
		kept = append(kept, e)
	}
	return kept, nil
}
