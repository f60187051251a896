package lctrie

import (
	"encoding/binary"
	"fmt"
)

// The header of an image: a magic word, the form of the records, the counts of
// routes, nodes, base records and prefix records. After it follow the nodes,
// the base vector and the prefix vector. A lookup never reads the header:
// firmware has the addresses of the vectors at hand, as Image does.
const (
	headerWords = 6
	magic       = 0x4C437431 // "LCt1"
)

type header struct {
	wide                        bool
	routes, nodes, base, prefix int
}

func (h header) append(words []uint32) []uint32 {
	form := uint32(Packed)
	if h.wide {
		form = uint32(Wide)
	}
	return append(words, magic, form, uint32(h.routes), uint32(h.nodes), uint32(h.base), uint32(h.prefix))
}

// widths are the words of a base and a prefix record.
func (h header) widths() (base, prefix int) {
	if h.wide {
		return wideBase, widePrefix
	}
	return packedBase, packedPrefix
}

// Words is the table's image as 32-bit words. The slice is the table itself:
// it must not be changed.
func (t *Table) Words() []uint32 {
	if t.words == nil {
		return header{}.append(nil)
	}
	return t.words
}

// AppendImage appends the image's bytes, big-endian as the LANai reads them.
func (t *Table) AppendImage(b []byte) []byte {
	for _, w := range t.Words() {
		b = binary.BigEndian.AppendUint32(b, w)
	}
	return b
}

// Open makes a table of the words of an image, which it checks first: that the
// counts are those of the words, that every address lies in its vector, and
// that no walk and no chain can go in a circle. The table keeps the slice. It
// fails with ErrImage, and the error names the word.
func Open(words []uint32) (*Table, error) {
	if len(words) < headerWords {
		return nil, fmt.Errorf("%w: %d words, the header alone has %d", ErrImage, len(words), headerWords)
	}
	if words[0] != magic {
		return nil, fmt.Errorf("%w: word 0 is %#08x, want %#08x", ErrImage, words[0], uint32(magic))
	}
	if f := Form(words[1]); words[1] > uint32(Wide) || f == Auto {
		return nil, fmt.Errorf("%w: word 1 is %d, want %d (packed) or %d (wide)", ErrImage, words[1], Packed, Wide)
	}
	h := header{wide: words[1] == uint32(Wide), routes: int(words[2]), nodes: int(words[3]), base: int(words[4]), prefix: int(words[5])}
	baseWords, preWords := h.widths()
	want := int64(headerWords) + int64(h.nodes) + int64(h.base)*int64(baseWords) + int64(h.prefix)*int64(preWords)
	if want != int64(len(words)) {
		return nil, fmt.Errorf("%w: %d words, the header tells of %d", ErrImage, len(words), want)
	}
	if h.nodes > maxNodes || (h.nodes == 0) != (h.base == 0) || h.routes != h.base+h.prefix {
		return nil, fmt.Errorf("%w: impossible counts: %d routes, %d nodes, %d base and %d prefix records", ErrImage, h.routes, h.nodes, h.base, h.prefix)
	}
	t := tableOf(h, words)
	if err := t.check(h); err != nil {
		return nil, err
	}
	return t, nil
}

func (t *Table) check(h header) error {
	for i, n := range t.nodes {
		branch, addr := n>>branchShift, int(n&addrMask)
		switch {
		case branch == 0 && (n>>addrBits&skipMask != 0 || addr >= h.base):
			return fmt.Errorf("%w: word %d: leaf %#08x, want no skip and a base record below %d", ErrImage, headerWords+i, n, h.base)
		case branch > 0 && (addr <= i || int64(addr)+1<<branch > int64(len(t.nodes))):
			return fmt.Errorf("%w: word %d: node %#08x has children outside nodes %d to %d", ErrImage, headerWords+i, n, i+1, len(t.nodes)-1)
		}
	}
	for i := range uint32(h.base) {
		if r := t.baseAt(i); r.len() > 32 || (r.link != noLink && int(r.link) >= h.prefix) {
			return fmt.Errorf("%w: base record %d: length %d, link %d, want at most 32 and below %d", ErrImage, i, r.len(), r.link, h.prefix)
		}
	}
	for i := range uint32(h.prefix) {
		if r := t.prefixAt(i, 0); r.len() > 32 || (r.link != noLink && r.link >= i) {
			return fmt.Errorf("%w: prefix record %d: length %d, link %d, want at most 32 and below the record itself", ErrImage, i, r.len(), r.link)
		}
	}
	return nil
}

// Memory is what an image is read from: 32-bit words at byte addresses.
type Memory interface {
	Load32(addr uint32) uint32
}

// Image is a table that lies in some memory, ready for lookups there. It holds
// what firmware would keep in registers.
type Image struct {
	nodes, base, prefix uint32 // byte addresses of the vectors
	empty, wide         bool
}

// At says where the parts of the table lie when its image begins at a byte
// address, which should be a multiple of 4.
func (t *Table) At(addr uint32) Image {
	im := Image{empty: len(t.nodes) == 0, wide: t.isWide}
	im.nodes = addr + headerWords*4
	im.base = im.nodes + uint32(len(t.nodes))*4
	im.prefix = im.base + uint32(len(t.base))*4
	return im
}

// Reads are the memory reads of a lookup.
type Reads struct {
	Nodes    int // trie nodes, the root and the leaf among them
	Prefixes int // records of the prefix vector
	Words    int // 32-bit words in all, those of the base record included
}

// A walk takes a bit of the address a step, and a chain gets shorter by a bit a
// link. Only a damaged image can ask for more.
const (
	maxReads = 33
	maxChain = 33
)

// Lookup finds an address as Table.Lookup does, with every word read from
// memory when the firmware would read it, and counts the reads. A damaged image
// gives a wrong answer, but always an answer. It does not allocate.
func (im Image) Lookup(m Memory, addr uint32) (nextHop uint32, reads Reads, ok bool) {
	if im.empty {
		return 0, reads, false
	}
	n := m.Load32(im.nodes)
	reads.Nodes = 1
	pos := uint32(0)
	for n>>branchShift != 0 && reads.Nodes < maxReads {
		branch := n >> branchShift
		pos += n >> addrBits & skipMask
		i := n&addrMask + addr<<(pos&31)>>(32-branch)
		pos += branch
		n = m.Load32(im.nodes + i*4)
		reads.Nodes++
	}
	if im.wide {
		return im.wideMatch(m, addr, n, reads)
	}
	at := im.base + (n&addrMask)*(packedBase*4)
	diff := m.Load32(at) ^ addr
	w := m.Load32(at + 4)
	reads.Words = reads.Nodes + 2
	for !matches(diff, w>>packedLenShift) {
		link := w >> packedHopBits & packedNoLink
		if link == packedNoLink || reads.Prefixes == maxChain {
			return 0, reads, false
		}
		w = m.Load32(im.prefix + link*(packedPrefix*4))
		reads.Prefixes++
		reads.Words++
	}
	return w & packedHopMask, reads, true
}

func (im Image) wideMatch(m Memory, addr, leaf uint32, reads Reads) (uint32, Reads, bool) {
	at := im.base + (leaf&addrMask)*(wideBase*4)
	diff := m.Load32(at) ^ addr
	w := m.Load32(at + 4)
	hop := at + 8 // read only once the record matches
	reads.Words = reads.Nodes + 2
	for !matches(diff, w>>wideLenShift) {
		link := w & wideNoLink
		if link == wideNoLink || reads.Prefixes == maxChain {
			return 0, reads, false
		}
		at = im.prefix + link*(widePrefix*4)
		w = m.Load32(at)
		hop = at + 4
		reads.Prefixes++
		reads.Words++
	}
	reads.Words++
	return m.Load32(hop), reads, true
}
