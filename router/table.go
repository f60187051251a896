package router

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"spinesim/lanai"
	"spinesim/router/lctrie"
)

// Table is a route table ready for a card: an LC-trie, and the vector of next
// hops that its records index. It does not change; several cards may share it.
type Table struct {
	trie *lctrie.Table
	hops []NextHop
}

// hopBytes is a next hop in the image: the address, then the card, a word each.
const hopBytes = 8

// NewTable builds the table of some routes, whose next hops it puts on cards.
// Errors are those of Assignment.Assign and lctrie.Build.
func NewTable(routes []Route, a Assignment, opt lctrie.Options) (*Table, error) {
	hops, of, err := a.Assign(routes)
	if err != nil {
		return nil, fmt.Errorf("route table: %w", err)
	}
	rs := make([]lctrie.Route, len(routes))
	for i, r := range routes {
		rs[i] = lctrie.Route{Prefix: r.Prefix, NextHop: of[i]}
	}
	trie, err := lctrie.Build(rs, opt)
	if err != nil {
		return nil, fmt.Errorf("route table: %w", err)
	}
	return &Table{trie: trie, hops: hops}, nil
}

// Hops are the next hops, by address and card. The slice must not be changed.
func (t *Table) Hops() []NextHop { return t.hops }

// Stats tells of the trie. Its Bytes are without the next hops.
func (t *Table) Stats() lctrie.Stats { return t.trie.Stats() }

// Bytes is the memory that the whole table takes on a card, next hops included.
func (t *Table) Bytes() int { return t.trie.Bytes() + len(t.hops)*hopBytes }

// Lookup gives the route of an address on the host, without simulated memory.
// It allocates nothing.
func (t *Table) Lookup(a netip.Addr) (NextHop, bool) {
	i, ok := t.trie.LookupAddr(a)
	if !ok {
		return NextHop{}, false
	}
	return t.hops[i], true
}

// Match is Lookup that also names the prefix.
func (t *Table) Match(a netip.Addr) (netip.Prefix, NextHop, bool) {
	if !a.Is4() {
		return netip.Prefix{}, NextHop{}, false
	}
	p, i, ok := t.trie.Match(number(a))
	if !ok {
		return netip.Prefix{}, NextHop{}, false
	}
	return p, t.hops[i], true
}

// AppendImage appends the image's bytes: the trie's (see package lctrie), then
// the next hops.
func (t *Table) AppendImage(b []byte) []byte {
	b = t.trie.AppendImage(b)
	for _, h := range t.hops {
		b = binary.BigEndian.AppendUint32(b, number(h.Addr))
		b = binary.BigEndian.AppendUint32(b, uint32(h.Card))
	}
	return b
}

// Owner is the name under which a card's SRAM map shows the table.
const Owner = "route table"

// Load puts the table into a card's memory and returns where. When it does not
// fit, the error names the sizes and wraps lanai.ErrNoRoom.
func (t *Table) Load(sram *lanai.SRAM) (addr uint32, err error) {
	addr, err = sram.Alloc(Owner, uint32(t.Bytes()), 4)
	if err != nil {
		return 0, fmt.Errorf("route table of %d routes (%d bytes): %w", t.trie.Routes(), t.Bytes(), err)
	}
	image, err := sram.Slice(addr, t.Bytes())
	if err != nil {
		return 0, fmt.Errorf("route table at %#x: %w", addr, err)
	}
	t.AppendImage(image[:0])
	return addr, nil
}

// placed is a table in a card's memory, as the firmware would know it.
type placed struct {
	trie lctrie.Image
	hops uint32
}

func (t *Table) at(addr uint32) placed {
	return placed{trie: t.trie.At(addr), hops: addr + uint32(t.trie.Bytes())}
}
