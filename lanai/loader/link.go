package loader

import (
	"fmt"
	"slices"
	"strings"

	"spinesim/lanai"
	"spinesim/lanai/isa"
)

// spot is where a symbol of an object is defined.
type spot struct{ object, symbol int }

type linker struct {
	sram    *lanai.SRAM
	objects []*Object
	im      *Image

	defined map[string]spot
	commons []common // in order of first appearance
	at      [][]uint32
}

type common struct {
	name        string
	size, align uint32
	addr        uint32
}

// define finds who defines each global symbol.
func (l *linker) define() error {
	l.defined = map[string]spot{}
	tentative := map[string]int{}
	for oi, o := range l.objects {
		for si := range o.symbols {
			s := &o.symbols[si]
			if !s.global || s.place == placeNone {
				continue
			}
			if s.place == placeCommon {
				i, ok := tentative[s.name]
				if !ok {
					i = len(l.commons)
					tentative[s.name] = i
					l.commons = append(l.commons, common{name: s.name, align: 1})
				}
				c := &l.commons[i]
				c.size, c.align = max(c.size, s.size), max(c.align, s.value)
				continue
			}
			old, ok := l.defined[s.name]
			if !ok {
				l.defined[s.name] = spot{oi, si}
				continue
			}
			was := &l.objects[old.object].symbols[old.symbol]
			switch {
			case was.weak && !s.weak:
				l.defined[s.name] = spot{oi, si}
			case !was.weak && !s.weak:
				return fmt.Errorf("%w: %q in %s and in %s", ErrDuplicate, s.name, l.objects[old.object].Name, o.Name)
			}
		}
	}
	l.commons = slices.DeleteFunc(l.commons, func(c common) bool {
		_, ok := l.defined[c.name]
		return ok
	})
	return nil
}

const maxImage = 1 << 30

// layout gives every section its address.
func (l *linker) layout() error {
	l.at = make([][]uint32, len(l.objects))
	for i, o := range l.objects {
		l.at[i] = make([]uint32, len(o.sections))
	}
	for kind := range numKinds {
		// Offsets first: the block's alignment is the largest of its sections'.
		size, align := uint64(0), uint32(isa.Granule)
		place := func(n, to uint32) (off uint32, err error) {
			size = (size + uint64(to) - 1) &^ (uint64(to) - 1)
			off = uint32(size)
			align = max(align, to)
			if size += uint64(n); size > maxImage {
				return 0, fmt.Errorf("%s: %w: more than %d bytes", kind, lanai.ErrNoRoom, maxImage)
			}
			return off, nil
		}
		for oi, o := range l.objects {
			// No two objects share a granule, so that what the code of one may do
			// can differ from what another's may.
			least := uint32(isa.Granule)
			for si := range o.sections {
				s := &o.sections[si]
				if s.kind != kind {
					continue
				}
				off, err := place(s.size, max(s.align, least))
				least = 1
				if err != nil {
					return err
				}
				l.at[oi][si] = off
			}
		}
		if kind == Writable {
			for i := range l.commons {
				c := &l.commons[i]
				off, err := place(c.size, max(c.align, isa.Granule))
				if err != nil {
					return err
				}
				c.addr = off
			}
		}
		if size == 0 {
			continue
		}
		n := (uint32(size) + isa.Granule - 1) &^ (isa.Granule - 1)
		base, err := l.sram.Alloc(l.im.Owner+" "+kind.String(), n, align)
		if err != nil {
			return err
		}
		l.im.Blocks = append(l.im.Blocks, Block{kind, base, n})
		for oi, o := range l.objects {
			for si := range o.sections {
				if s := &o.sections[si]; s.kind == kind {
					l.at[oi][si] += base
					if s.size > 0 {
						l.im.Sections = append(l.im.Sections, Placed{o.Name, s.name, kind, l.at[oi][si], s.size, oi})
					}
				}
			}
		}
		if kind == Writable {
			for i := range l.commons {
				c := &l.commons[i]
				c.addr += base
				l.im.Sections = append(l.im.Sections, Placed{"", "common " + c.name, kind, c.addr, c.size, -1})
			}
		}
	}
	for name, sp := range l.defined {
		l.im.global[name] = l.local(sp.object, sp.symbol)
	}
	for _, c := range l.commons {
		l.im.global[c.name] = c.addr
	}
	return nil
}

// local is the address of a symbol that its object defines.
func (l *linker) local(object, sym int) uint32 {
	s := &l.objects[object].symbols[sym]
	if s.place == placeSection {
		return l.at[object][s.section] + s.value
	}
	return s.value
}

// value is what a relocation counts from.
func (l *linker) value(object int, sym uint32) (uint32, error) {
	if sym == 0 {
		return 0, nil
	}
	s := &l.objects[object].symbols[sym]
	if !s.global && s.place != placeNone {
		return l.local(object, int(sym)), nil
	}
	if v, ok := l.im.global[s.name]; ok && s.global {
		return v, nil
	}
	if s.weak {
		return 0, nil
	}
	return 0, fmt.Errorf("%w: %q", ErrUndefined, s.name)
}

// fill writes the sections and applies their relocations.
func (l *linker) fill() error {
	for _, b := range l.im.Blocks {
		clear(l.sram.View(b.Addr, int(b.Bytes)))
	}
	for oi, o := range l.objects {
		for si := range o.sections {
			s := &o.sections[si]
			if len(s.bytes) == 0 {
				continue
			}
			mem := l.sram.View(l.at[oi][si], len(s.bytes))
			copy(mem, s.bytes)
			for _, r := range s.relocs {
				v, err := l.value(oi, r.symbol)
				if err == nil {
					err = r.kind.apply(mem[r.offset:], v+uint32(r.addend))
				}
				if err != nil {
					return fmt.Errorf("%s: %s at %#x of section %q: %w", o.Name, r.kind, r.offset, s.name, err)
				}
			}
		}
	}
	return nil
}

// list makes the table of symbols.
func (l *linker) list() {
	for oi, o := range l.objects {
		for si := range o.symbols {
			s := &o.symbols[si]
			if s.place != placeSection || s.name == "" || strings.HasPrefix(s.name, ".L") || s.name == o.sections[s.section].name {
				continue
			}
			if s.global && l.im.global[s.name] != l.local(oi, si) {
				continue // a weak definition that gave way
			}
			l.im.Symbols = append(l.im.Symbols, Symbol{s.name, o.Name, l.local(oi, si), s.size, s.global, s.code})
		}
	}
	for _, c := range l.commons {
		l.im.Symbols = append(l.im.Symbols, Symbol{Name: c.name, Object: "common", Addr: c.addr, Bytes: c.size, Global: true})
	}
	slices.SortFunc(l.im.Symbols, func(a, b Symbol) int {
		if a.Addr != b.Addr {
			if a.Addr < b.Addr {
				return -1
			}
			return 1
		}
		return strings.Compare(a.Name, b.Name)
	})
}
