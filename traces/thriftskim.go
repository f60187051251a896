package traces

import (
	"encoding/binary"
	"fmt"
)

// skim walks a value of Thrift's compact protocol without building anything,
// to see that no length in it exceeds what is there: the library allocates
// what a length asks for.
type skim struct {
	b  []byte
	at int
}

// skimStruct returns the length of the structure that b begins with.
func skimStruct(b []byte) (int, error) {
	s := skim{b: b}
	err := s.structure(0)
	return s.at, err
}

func (s *skim) bad(what string) error {
	return fmt.Errorf("%w: %s at byte %d of a header", ErrCorrupt, what, s.at)
}

func (s *skim) byte() (byte, error) {
	if s.at >= len(s.b) {
		return 0, s.bad("end")
	}
	s.at++
	return s.b[s.at-1], nil
}

func (s *skim) uvarint() (uint64, error) {
	v, n := binary.Uvarint(s.b[s.at:])
	if n <= 0 {
		return 0, s.bad("no number")
	}
	s.at += n
	return v, nil
}

func (s *skim) skip(n uint64) error {
	if n > uint64(len(s.b)-s.at) {
		return s.bad("length beyond the end")
	}
	s.at += int(n)
	return nil
}

func (s *skim) structure(depth int) error {
	if depth > 16 {
		return s.bad("nesting over 16 levels")
	}
	for {
		h, err := s.byte()
		if err != nil {
			return err
		}
		if h == 0 {
			return nil
		}
		if h>>4 == 0 { // the field's number follows
			if _, err := s.uvarint(); err != nil {
				return err
			}
		}
		if err := s.value(h&15, false, depth); err != nil {
			return err
		}
	}
}

// value skips one value; a boolean of a field is in the field's header, that
// of a list is a byte.
func (s *skim) value(kind byte, inList bool, depth int) error {
	switch kind {
	case 1, 2:
		if inList {
			return s.skip(1)
		}
		return nil
	case 3:
		return s.skip(1)
	case 4, 5, 6:
		_, err := s.uvarint()
		return err
	case 7:
		return s.skip(8)
	case 8:
		n, err := s.uvarint()
		if err != nil {
			return err
		}
		return s.skip(n)
	case 9, 10:
		return s.list(depth)
	case 11:
		return s.mapping(depth)
	case 12:
		return s.structure(depth + 1)
	}
	return s.bad("unknown type")
}

func (s *skim) list(depth int) error {
	h, err := s.byte()
	if err != nil {
		return err
	}
	n := uint64(h >> 4)
	if n == 15 {
		if n, err = s.uvarint(); err != nil {
			return err
		}
	}
	if n > uint64(len(s.b)-s.at) { // each element takes a byte or more
		return s.bad("list longer than the rest")
	}
	for range n {
		if err := s.value(h&15, true, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func (s *skim) mapping(depth int) error {
	n, err := s.uvarint()
	if err != nil || n == 0 {
		return err
	}
	kinds, err := s.byte()
	if err != nil {
		return err
	}
	if n > uint64(len(s.b)-s.at) {
		return s.bad("map longer than the rest")
	}
	for range n {
		if err := s.value(kinds>>4, true, depth+1); err != nil {
			return err
		}
		if err := s.value(kinds&15, true, depth+1); err != nil {
			return err
		}
	}
	return nil
}
