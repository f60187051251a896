package router

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/netip"
)

// What of RFC 6396 matters here.
const (
	mrtHeader = 12 // time, type, subtype, length

	mrtTableDump     = 12 // one path a record
	mrtIPv4          = 1
	mrtIPv4LongAS    = 3  // as some collectors wrote it before the second version: AS numbers of 32 bits
	mrtTableDumpV2   = 13 // all paths of a prefix in a record
	mrtPeerIndex     = 1
	mrtRIBIPv4       = 2
	mrtRIBIPv4PathID = 8 // with a path identifier in each entry (RFC 8050)

	attrASPath  = 2
	attrNextHop = 3

	attrExtended = 0x10 // the flag of a length of two bytes
)

// mrtTypes are the record types that IANA has registered.
var mrtTypes = [...]uint16{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 16, 17, 32, 33, 48, 49, 64}

// maxRecord bounds a record. A real one, with a path from each of some dozens
// of peers, has some kilobytes.
const maxRecord = 16 << 20

// rib gathers the best path of each prefix: that of the shortest AS path, and
// among equals that of the lowest next hop. BGP's last tie-break is the lowest
// peer address (RFC 4271, 9.1.2.2 g), and next hop and peer are the same for
// all but a few paths of a dump; this way the order of paths does not matter.
type rib struct {
	routes  []Route
	lengths []int // of their AS paths
	at      map[uint64]int
	noHop   int // paths without an IPv4 next hop
}

func (t *rib) offer(p netip.Prefix, hop netip.Addr, length int) {
	if !hop.IsValid() {
		t.noHop++
		return
	}
	i, ok := t.at[key(p)]
	switch {
	case !ok:
		t.at[key(p)] = len(t.routes)
		t.routes = append(t.routes, Route{p, hop})
		t.lengths = append(t.lengths, length)
	case length < t.lengths[i], length == t.lengths[i] && hop.Less(t.routes[i].NextHop):
		t.routes[i].NextHop, t.lengths[i] = hop, length
	}
}

// readMRT reads records to the end. Only two of the attributes of a path are of
// use here, so it looks for those and does not decode the others: a dump has
// tens of millions of them.
func (f *File) readMRT(in *input) error {
	t := rib{at: map[uint64]int{}}
	skipped := 0
	defer func() {
		f.Routes = t.routes
		f.note(skipped, "records skipped that hold no IPv4 unicast route")
		f.note(t.noHop, "paths skipped that have no IPv4 next hop")
	}()
	var body bytes.Buffer
	for {
		var head [mrtHeader]byte
		if n, err := io.ReadFull(in, head[:]); err == io.EOF {
			return nil
		} else if err == io.ErrUnexpectedEOF {
			return fmt.Errorf("at byte %d: an MRT header of %d bytes ends after %d: %w", in.off, mrtHeader, n, ErrTruncated)
		} else if err != nil {
			return in.broken(err)
		}
		kind, sub := binary.BigEndian.Uint16(head[4:]), binary.BigEndian.Uint16(head[6:])
		length := binary.BigEndian.Uint32(head[8:])
		if err := checkRecord(kind, sub, length); err != nil {
			return fmt.Errorf("at byte %d: %w", in.off, err)
		}
		body.Reset()
		if n, err := io.CopyN(&body, in, int64(length)); err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) {
			return fmt.Errorf("at byte %d: an MRT record of %d bytes ends after %d: %w", in.off, length, n, ErrTruncated)
		} else if err != nil {
			return in.broken(err)
		}
		var err error
		switch (recordKind{kind, sub}) {
		case recordKind{mrtTableDump, mrtIPv4}:
			err = t.path(body.Bytes(), 2)
		case recordKind{mrtTableDump, mrtIPv4LongAS}:
			err = t.path(body.Bytes(), 4)
		case recordKind{mrtTableDumpV2, mrtRIBIPv4}:
			err = t.paths(body.Bytes(), false)
		case recordKind{mrtTableDumpV2, mrtRIBIPv4PathID}:
			err = t.paths(body.Bytes(), true)
		case recordKind{mrtTableDumpV2, mrtPeerIndex}:
		default:
			skipped++
		}
		if err != nil {
			return fmt.Errorf("at byte %d: MRT record: %w: %w", in.off, ErrCorrupt, err)
		}
		in.off += mrtHeader + int64(length)
	}
}

type recordKind struct{ kind, sub uint16 }

func checkRecord(kind, sub uint16, length uint32) error {
	known := false
	for _, k := range mrtTypes {
		known = known || k == kind
	}
	switch {
	case !known:
		return fmt.Errorf("%w: MRT record of unknown type %d, expected TABLE_DUMP_V2 (%d)", ErrCorrupt, kind, mrtTableDumpV2)
	case length > maxRecord:
		return fmt.Errorf("%w: MRT record (type %d, subtype %d) of %d bytes, expected at most %d", ErrCorrupt, kind, sub, length, maxRecord)
	}
	return nil
}

// cursor takes a record apart from the front.
type cursor struct{ b []byte }

var errShort = errors.New("a field reaches beyond the end")

func (c *cursor) take(n int) ([]byte, error) {
	if n > len(c.b) {
		return nil, errShort
	}
	b := c.b[:n]
	c.b = c.b[n:]
	return b, nil
}

func (c *cursor) uint8() (int, error) {
	b, err := c.take(1)
	if err != nil {
		return 0, err
	}
	return int(b[0]), nil
}

func (c *cursor) uint16() (int, error) {
	b, err := c.take(2)
	if err != nil {
		return 0, err
	}
	return int(binary.BigEndian.Uint16(b)), nil
}

// prefix makes a prefix of an address that may have fewer than four bytes, and
// may have bits set beyond the length.
func prefix(addr []byte, bits int) netip.Prefix {
	var a [4]byte
	copy(a[:], addr)
	return netip.PrefixFrom(netip.AddrFrom4(a), bits).Masked()
}

// path takes a record of the first version: view, sequence number, prefix,
// status, time, peer, attributes.
func (t *rib) path(b []byte, asBytes int) error {
	c := cursor{b}
	h, err := c.take(18 + asBytes)
	if err != nil {
		return err
	}
	bits := int(h[8])
	if bits > 32 {
		return fmt.Errorf("prefix length %d, expected at most 32", bits)
	}
	p := prefix(h[4:8], bits)
	if err := t.entry(&c, p, asBytes); err != nil {
		return fmt.Errorf("%v: %w", p, err)
	}
	if len(c.b) > 0 {
		return fmt.Errorf("%v: %d bytes after the attributes", p, len(c.b))
	}
	return nil
}

// paths takes a record of the second version: sequence number, prefix, number
// of entries, and for each the peer, the time and the attributes.
func (t *rib) paths(b []byte, pathIDs bool) error {
	c := cursor{b}
	h, err := c.take(5)
	if err != nil {
		return err
	}
	bits := int(h[4])
	if bits > 32 {
		return fmt.Errorf("prefix length %d, expected at most 32", bits)
	}
	a, err := c.take((bits + 7) / 8)
	if err != nil {
		return fmt.Errorf("prefix: %w", err)
	}
	p := prefix(a, bits)
	n, err := c.uint16()
	if err != nil {
		return fmt.Errorf("%v: number of entries: %w", p, err)
	}
	head := 6
	if pathIDs {
		head += 4
	}
	for i := range n {
		_, err := c.take(head)
		if err == nil {
			err = t.entry(&c, p, 4)
		}
		if err != nil {
			return fmt.Errorf("%v: entry %d: %w", p, i, err)
		}
	}
	if len(c.b) > 0 {
		return fmt.Errorf("%v: %d bytes after the last entry", p, len(c.b))
	}
	return nil
}

// entry takes the attributes of a path, with their length before them.
func (t *rib) entry(c *cursor, p netip.Prefix, asBytes int) error {
	size, err := c.uint16()
	if err != nil {
		return err
	}
	attrs, err := c.take(size)
	if err != nil {
		return fmt.Errorf("attributes of %d bytes: %w", size, err)
	}
	hop, length, err := parsePath(attrs, asBytes)
	if err != nil {
		return err
	}
	t.offer(p, hop, length)
	return nil
}

// parsePath finds the next hop and the length of the AS path among a path's
// attributes.
func parsePath(b []byte, asBytes int) (hop netip.Addr, length int, err error) {
	c := cursor{b}
	for len(c.b) > 0 {
		h, err := c.take(2)
		if err != nil {
			return hop, 0, fmt.Errorf("attribute: %w", err)
		}
		size, err := 0, error(nil)
		if h[0]&attrExtended != 0 {
			size, err = c.uint16()
		} else {
			size, err = c.uint8()
		}
		if err != nil {
			return hop, 0, fmt.Errorf("attribute %d: length: %w", h[1], err)
		}
		v, err := c.take(size)
		if err != nil {
			return hop, 0, fmt.Errorf("attribute %d of %d bytes: %w", h[1], size, err)
		}
		switch h[1] {
		case attrNextHop:
			if size != 4 {
				return hop, 0, fmt.Errorf("next hop of %d bytes, expected 4", size)
			}
			hop = netip.AddrFrom4([4]byte(v))
		case attrASPath:
			if length, err = pathLength(v, asBytes); err != nil {
				return hop, 0, err
			}
		}
	}
	return hop, length, nil
}

// pathLength counts an AS path as RFC 4271 (9.1.2.2) and RFC 5065 (5.3) do: an
// AS of a sequence is 1, a set is 1 as a whole, those of a confederation are 0.
// AS numbers have 2 bytes in the first version of the dump and 4 in the second,
// whatever the peer's session had.
func pathLength(b []byte, asBytes int) (int, error) {
	const set, sequence, confedSequence, confedSet = 1, 2, 3, 4
	c := cursor{b}
	length := 0
	for len(c.b) > 0 {
		h, err := c.take(2)
		if err == nil {
			_, err = c.take(asBytes * int(h[1]))
		}
		if err != nil {
			return 0, fmt.Errorf("AS path: %w", err)
		}
		switch h[0] {
		case sequence:
			length += int(h[1])
		case set:
			length++
		case confedSequence, confedSet:
		default:
			return 0, fmt.Errorf("AS path: segment of unknown type %d", h[0])
		}
	}
	return length, nil
}
