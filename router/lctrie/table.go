package lctrie

import (
	"encoding/binary"
	"net/netip"
)

// Table is a built trie: the words of its image, in the processor's own order.
// It does not change, and any number of goroutines may look things up in it.
// The zero value is an empty table.
type Table struct {
	words   []uint32 // the whole image, with its header
	nodes   []uint32
	base    []uint32
	pre     []uint32
	routes  int
	isWide  bool
	widthOf struct{ base, pre int }
}

func tableOf(h header, words []uint32) *Table {
	t := &Table{words: words, routes: h.routes, isWide: h.wide}
	t.widthOf.base, t.widthOf.pre = h.widths()
	rest := words[headerWords:]
	t.nodes, rest = rest[:h.nodes:h.nodes], rest[h.nodes:]
	n := h.base * t.widthOf.base
	t.base, rest = rest[:n:n], rest[n:]
	t.pre = rest
	return t
}

// Lookup gives the next-hop index of the longest prefix that contains the
// address, and false when there is none. It does not allocate.
func (t *Table) Lookup(addr uint32) (nextHop uint32, ok bool) {
	nodes := t.nodes
	if len(nodes) == 0 {
		return 0, false
	}
	n := nodes[0]
	pos := uint32(0)
	for n >= 1<<branchShift {
		branch := n >> branchShift
		pos += n >> addrBits & skipMask
		i := n&addrMask + addr<<(pos&31)>>((32-branch)&31)
		pos += branch
		if uint(i) >= uint(len(nodes)) {
			return 0, false // not in a table that Build made or Open checked
		}
		n = nodes[i]
	}
	if t.isWide {
		return t.wideMatch(addr, n)
	}
	i := int(n) * packedBase
	base := t.base[i : i+packedBase : i+packedBase]
	diff, w := base[0]^addr, base[1]
	for uint64(diff)<<(w>>packedLenShift&63)>>32 != 0 {
		link := w >> packedHopBits & packedNoLink
		if link == packedNoLink {
			return 0, false
		}
		w = t.pre[link]
	}
	return w & packedHopMask, true
}

// wideMatch is the end of Lookup for wide records.
func (t *Table) wideMatch(addr, leaf uint32) (uint32, bool) {
	i := int(leaf) * wideBase
	base := t.base[i : i+wideBase : i+wideBase]
	diff, w, hop := base[0]^addr, base[1], base[2]
	for uint64(diff)<<(w>>wideLenShift&63)>>32 != 0 {
		link := w & wideNoLink
		if link == wideNoLink {
			return 0, false
		}
		i := int(link) * widePrefix
		pre := t.pre[i : i+widePrefix : i+widePrefix]
		w, hop = pre[0], pre[1]
	}
	return hop, true
}

// Match gives the longest prefix that contains the address and its next-hop
// index. It is slower than Lookup.
func (t *Table) Match(addr uint32) (p netip.Prefix, nextHop uint32, ok bool) {
	if len(t.nodes) == 0 {
		return netip.Prefix{}, 0, false
	}
	leaf, _ := t.walk(addr)
	r := t.baseAt(leaf)
	diff := r.str() ^ addr
	for !matches(diff, r.len()) {
		if r.link == noLink {
			return netip.Prefix{}, 0, false
		}
		r = t.prefixAt(r.link, r.str())
	}
	return prefixOf(r.str()&^uint32(1<<(32-r.len())-1), r.len()), r.nextHop, true
}

// LookupAddr is Lookup for an address of package netip. An address that is not
// IPv4 matches nothing.
func (t *Table) LookupAddr(a netip.Addr) (nextHop uint32, ok bool) {
	if !a.Is4() {
		return 0, false
	}
	b := a.As4()
	return t.Lookup(binary.BigEndian.Uint32(b[:]))
}

// walk goes down to the leaf for an address: the base record's number and how
// many nodes were read, the root and the leaf among them.
func (t *Table) walk(addr uint32) (leaf uint32, reads int) {
	n := t.nodes[0]
	pos := uint32(0)
	for reads = 1; n>>branchShift != 0; reads++ {
		branch := n >> branchShift
		pos += n >> addrBits & skipMask
		n = t.nodes[n&addrMask+addr<<(pos&31)>>(32-branch)]
		pos += branch
	}
	return n, reads
}

// baseAt and prefixAt unpack records. A prefix record has no string of its own.
func (t *Table) baseAt(i uint32) record {
	w := t.base[int(i)*t.widthOf.base:]
	return t.unpack(w[0], w[1:])
}

func (t *Table) prefixAt(i, str uint32) record {
	return t.unpack(str, t.pre[int(i)*t.widthOf.pre:])
}

func (t *Table) unpack(str uint32, w []uint32) record {
	var r record
	var length uint32
	if t.isWide {
		length, r.link, r.nextHop = w[0]>>wideLenShift, w[0]&wideNoLink, w[1]
		if r.link == wideNoLink {
			r.link = noLink
		}
	} else {
		length, r.link, r.nextHop = w[0]>>packedLenShift, w[0]>>packedHopBits&packedNoLink, w[0]&packedHopMask
		if r.link == packedNoLink {
			r.link = noLink
		}
	}
	r.key = uint64(str)<<8 | uint64(length)
	return r
}

// Stats says what a table consists of.
type Stats struct {
	Routes    int // distinct prefixes
	Nodes     int // trie nodes, one word each
	Leaves    int // nodes that are leaves; where more than Base, the rest are copies
	Base      int // routes that are no prefix of another
	Prefix    int // routes that are
	Wide      bool
	Bytes     int     // the whole image with its header
	MeanDepth float64 // nodes between root and leaf, the leaf counted, averaged over the base vector's strings
	MaxDepth  int
	MaxChain  int // the most prefix records that a lookup can follow
}

// Stats counts. It walks the whole table.
func (t *Table) Stats() Stats {
	s := Stats{Routes: t.routes, Nodes: len(t.nodes), Wide: t.isWide, Bytes: t.Bytes()}
	if len(t.nodes) == 0 {
		return s
	}
	s.Base, s.Prefix = len(t.base)/t.widthOf.base, len(t.pre)/t.widthOf.pre
	for _, n := range t.nodes {
		if n>>branchShift == 0 {
			s.Leaves++
		}
	}
	sum := 0
	for i := range uint32(s.Base) {
		r := t.baseAt(i)
		_, reads := t.walk(r.str())
		sum += reads - 1
		s.MaxDepth = max(s.MaxDepth, reads-1)
		chain := 0
		for l := r.link; l != noLink; l = t.prefixAt(l, 0).link {
			chain++
		}
		s.MaxChain = max(s.MaxChain, chain)
	}
	s.MeanDepth = float64(sum) / float64(s.Base)
	return s
}

// Bytes is how much memory the table's image takes, its header included.
func (t *Table) Bytes() int {
	if t.words == nil {
		return headerWords * 4
	}
	return len(t.words) * 4
}

// Routes is the number of distinct prefixes in the table.
func (t *Table) Routes() int { return t.routes }
