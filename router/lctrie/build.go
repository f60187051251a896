package lctrie

import "fmt"

// Build makes a table of the routes, which may come in any order. A route given
// twice counts once; it must then have the same next hop.
//
// It fails with ErrPrefix on anything but an IPv4 prefix without bits beyond
// its length, with ErrDuplicate, ErrOptions, with ErrNodes when the trie would
// have more than 4,194,304 nodes, and with ErrNextHop or ErrLinks when the
// records cannot hold the next-hop indices or the nested prefixes.
func Build(routes []Route, opt Options) (*Table, error) {
	if err := opt.Validate(); err != nil {
		return nil, err
	}
	if opt.FillFactor == 0 {
		opt.FillFactor = defaultFill
	}
	es, err := sorted(routes)
	if err != nil {
		return nil, err
	}
	b := builder{opt: opt}
	b.split(es)
	wide, err := b.form()
	if err != nil {
		return nil, err
	}
	if len(b.base) > 0 {
		b.nodes = make([]uint32, 1, 2*len(b.base)+1)
		if err := b.grow(0, len(b.base), 0, 0); err != nil {
			return nil, err
		}
	}
	return b.table(wide, len(es)), nil
}

// builder holds the vectors while they grow.
type builder struct {
	opt   Options
	nodes []uint32
	base  []record
	pre   []record
}

// record is a route with the link to the longest route that is a prefix of it.
type record struct {
	entry
	link uint32
}

// split shares the ordered routes out between base and prefix vector. A route
// that is a prefix of another is one of the next in order.
func (b *builder) split(es []entry) {
	var open [33]uint32 // the prefix records that contain the present route, the longest last
	depth := 0
	nested := 0
	for i := range es {
		if i+1 < len(es) && es[i].contains(es[i+1]) {
			nested++
		}
	}
	b.pre = make([]record, 0, nested)
	b.base = make([]record, 0, len(es)-nested)
	for i, e := range es {
		for depth > 0 && !b.pre[open[depth-1]].contains(e) {
			depth--
		}
		r := record{entry: e, link: noLink}
		if depth > 0 {
			r.link = open[depth-1]
		}
		if i+1 < len(es) && e.contains(es[i+1]) {
			open[depth] = uint32(len(b.pre))
			depth++
			b.pre = append(b.pre, r)
		} else {
			b.base = append(b.base, r)
		}
	}
}

// form decides for packed or wide records.
func (b *builder) form() (wide bool, err error) {
	hop := uint32(0)
	for _, v := range [][]record{b.base, b.pre} {
		for i := range v {
			hop = max(hop, v[i].nextHop)
		}
	}
	if len(b.pre) > wideNoLink {
		return false, fmt.Errorf("%w: %d, a link reaches %d", ErrLinks, len(b.pre), wideNoLink)
	}
	fits := hop <= packedHopMask && len(b.pre) <= packedNoLink
	if b.opt.Records != Packed {
		return !fits || b.opt.Records == Wide, nil
	}
	if hop > packedHopMask {
		return false, fmt.Errorf("%w: %d, packed records hold up to %d", ErrNextHop, hop, packedHopMask)
	}
	if !fits {
		return false, fmt.Errorf("%w: %d, a link of packed records reaches %d", ErrLinks, len(b.pre), packedNoLink)
	}
	return false, nil
}

// grow makes node at the root of the trie of n strings from first on, which
// have pos bits in common that the walk has dealt with.
func (b *builder) grow(first, n int, pos uint32, at int) error {
	if n == 1 {
		b.nodes[at] = node(0, 0, uint32(first))
		return nil
	}
	root := at == 0 && b.opt.RootBranch > 0
	skip, branch := uint32(0), uint32(b.opt.RootBranch)
	if !root {
		skip = b.skip(first, n, pos)
		branch = b.branch(first, n, pos+skip)
	}
	pos += skip
	adr := len(b.nodes)
	size := 1 << branch
	if adr+size > maxNodes {
		return fmt.Errorf("%w: a node's address reaches %d (fill factor %g, root branch %d, %d routes)",
			ErrNodes, maxNodes, b.opt.FillFactor, b.opt.RootBranch, len(b.base)+len(b.pre))
	}
	b.nodes[at] = node(branch, skip, uint32(adr))
	for range size {
		b.nodes = append(b.nodes, 0)
	}
	end := first + n
	for p, child := first, 0; child < size; {
		k := 0
		for p+k < end && extract(b.base[p+k].str(), pos, branch) == uint32(child) {
			k++
		}
		switch {
		case k == 0:
			b.nodes[adr+child] = node(0, 0, uint32(b.neighbour(first, end, p, pos, branch, uint32(child))))
			child++
		case b.base[p].len() < pos+branch:
			// The string ends within the bits of this node, so it has all
			// the children that begin with it; no other string does.
			span := 1 << (pos + branch - b.base[p].len())
			for i := range span {
				b.nodes[adr+child+i] = node(0, 0, uint32(p))
			}
			child += span
		default:
			if err := b.grow(p, k, pos+branch, adr+child); err != nil {
				return err
			}
			child++
		}
		p += k
	}
	return nil
}

// extract gives n bits (1 … 31) of a string, from bit pos on counted from the
// top.
func extract(str, pos, n uint32) uint32 { return str << pos >> (32 - n) }

// skip counts the bits from pos on that are common to all n ≥ 2 strings.
func (b *builder) skip(first, n int, pos uint32) uint32 {
	lo, hi := b.base[first].str(), b.base[first+n-1].str()
	// The strings are in order and none is a prefix of another, so the first
	// and the last differ, and every bit in which they agree before that is
	// common to those between.
	common := uint32(0)
	for (lo^hi)<<(pos+common)>>31 == 0 {
		common++
	}
	return common
}

// branch finds the largest number of bits for which at least the fill factor's
// share of children has a string.
func (b *builder) branch(first, n int, pos uint32) uint32 {
	bits := uint32(1)
	for n > 2 && bits < 1<<branchBits-1 && pos+bits+1 <= 32 {
		need := b.opt.FillFactor * float64(uint64(1)<<(bits+1))
		if float64(n) < need {
			break
		}
		seen, last := 0, uint32(0)
		for i := first; i < first+n; i++ {
			if v := extract(b.base[i].str(), pos, bits+1); seen == 0 || v != last {
				seen, last = seen+1, v
			}
		}
		if float64(seen) < need {
			break
		}
		bits++
	}
	return bits
}

// neighbour chooses the leaf of a child without a string: the string before it
// or the one at p after it, whichever has a longer prefix that contains the
// child. Prefixes of up to pos bits contain all strings here and do not matter.
func (b *builder) neighbour(first, end, p int, pos, branch, child uint32) int {
	match := func(i int) uint32 {
		slot := b.base[i].str()&^(1<<(32-pos)-1) | child<<(32-pos-branch)
		for l := b.base[i].link; l != noLink; l = b.pre[l].link {
			if n := b.pre[l].len(); n > pos && matches(slot^b.base[i].str(), n) {
				return n
			}
		}
		return 0
	}
	switch {
	case p == first:
		return p
	case p == end:
		return p - 1
	case match(p-1) > match(p):
		return p - 1
	}
	return p
}

// table packs the vectors into words.
func (b *builder) table(wide bool, routes int) *Table {
	baseWords, preWords := packedBase, packedPrefix
	if wide {
		baseWords, preWords = wideBase, widePrefix
	}
	h := header{wide: wide, routes: routes, nodes: len(b.nodes), base: len(b.base), prefix: len(b.pre)}
	words := make([]uint32, 0, headerWords+h.nodes+h.base*baseWords+h.prefix*preWords)
	words = h.append(words)
	words = append(words, b.nodes...)
	for i := range b.base {
		words = append(words, b.base[i].str())
		words = b.base[i].append(words, wide)
	}
	for i := range b.pre {
		words = b.pre[i].append(words, wide)
	}
	return tableOf(h, words)
}

func (r *record) append(words []uint32, wide bool) []uint32 {
	if wide {
		link := r.link
		if link == noLink {
			link = wideNoLink
		}
		return append(words, wideWord(r.len(), link), r.nextHop)
	}
	link := r.link
	if link == noLink {
		link = packedNoLink
	}
	return append(words, packedWord(r.len(), link, r.nextHop))
}
