package loader

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
)

// Errors that are wrapped by what Parse, Link and Load return.
var (
	ErrObject     = errors.New("bad object")
	ErrMachine    = errors.New("object for another machine")
	ErrRelocation = errors.New("unknown relocation")
	ErrRange      = errors.New("relocation out of range")
	ErrUndefined  = errors.New("undefined symbol")
	ErrDuplicate  = errors.New("symbol defined twice")
	ErrNoSymbol   = errors.New("no such symbol")
)

// Object is one relocatable object, checked as far as it can be by itself.
type Object struct {
	Name     string
	sections []section // those that take memory, in the file's order
	symbols  []symbol  // indexed as in the file, entry 0 included
}

type section struct {
	name   string
	kind   Kind
	size   uint32
	align  uint32
	bytes  []byte // nil for those that begin as zeros
	relocs []reloc
}

type reloc struct {
	offset uint32
	kind   relocKind
	symbol uint32
	addend int32
}

// place says where a symbol's value counts from.
type place uint8

const (
	placeNone place = iota // undefined, or of no interest
	placeSection
	placeAbsolute
	placeCommon // size bytes aligned to value
)

type symbol struct {
	name    string
	place   place
	section int // index into sections
	value   uint32
	size    uint32
	global  bool
	weak    bool
	code    bool
}

// maxObject bounds an object's size: no card has as much memory.
const maxObject = 1 << 30

const (
	maxAlign  = 1 << 16
	relaBytes = 12
)

// Parse reads an object; name is for messages. Memory use is bounded by a small
// multiple of the file's size, whatever its headers say.
func Parse(name string, file []byte) (*Object, error) {
	fail := func(format string, args ...any) (*Object, error) {
		return nil, fmt.Errorf("loader: %s: %w", name, fmt.Errorf(format, args...))
	}
	if len(file) > maxObject {
		return fail("%w: %d bytes", ErrObject, len(file))
	}
	if err := checkHeaders(file); err != nil {
		return fail("%w", err)
	}
	f, err := elf.NewFile(bytes.NewReader(file))
	if err != nil {
		return fail("%w: %w", ErrObject, err)
	}
	switch {
	case f.Machine != elf.EM_LANAI:
		return fail("%w: %v, want EM_LANAI (244)", ErrMachine, f.Machine)
	case f.Type != elf.ET_REL:
		return fail("%w: %v, want a relocatable object", ErrObject, f.Type)
	}
	o := &Object{Name: name}
	index := make([]int, len(f.Sections)) // 1 + place in o.sections
	for i, s := range f.Sections {
		if s.Flags&elf.SHF_ALLOC == 0 {
			continue
		}
		sec, err := readSection(s, file)
		if err != nil {
			return fail("section %d %q: %w", i, s.Name, err)
		}
		o.sections = append(o.sections, sec)
		index[i] = len(o.sections)
	}
	if err := o.readSymbols(f, index, file); err != nil {
		return fail("%w", err)
	}
	for i, s := range f.Sections {
		if s.Type == elf.SHT_REL && int(s.Info) < len(index) && index[s.Info] != 0 {
			return fail("section %d %q: %w: relocations without addends", i, s.Name, ErrObject)
		}
		if s.Type != elf.SHT_RELA || int(s.Info) >= len(index) || index[s.Info] == 0 {
			continue
		}
		if err := o.readRelocs(s, &o.sections[index[s.Info]-1], file); err != nil {
			return fail("section %d %q: %w", i, s.Name, err)
		}
	}
	return o, nil
}

// content is a section's bytes in the file.
func content(s *elf.Section, file []byte) ([]byte, error) {
	if s.Offset > uint64(len(file)) || s.FileSize > uint64(len(file))-s.Offset {
		return nil, fmt.Errorf("%w: %d bytes at offset %#x, the file has %d", ErrObject, s.FileSize, s.Offset, len(file))
	}
	return file[s.Offset : s.Offset+s.FileSize], nil
}

func readSection(s *elf.Section, file []byte) (section, error) {
	out := section{name: s.Name, kind: kindOf(s), align: uint32(s.Addralign)}
	switch {
	case s.Flags&elf.SHF_TLS != 0:
		return out, fmt.Errorf("%w: thread-local storage", ErrObject)
	case s.Addralign > maxAlign || s.Addralign&(s.Addralign-1) != 0:
		return out, fmt.Errorf("%w: alignment %d, want a power of two up to %d", ErrObject, s.Addralign, maxAlign)
	case s.Size > maxObject:
		return out, fmt.Errorf("%w: %d bytes", ErrObject, s.Size)
	}
	out.align = max(out.align, 1)
	out.size = uint32(s.Size)
	if s.Type == elf.SHT_NOBITS {
		return out, nil
	}
	b, err := content(s, file)
	out.bytes = b
	return out, err
}

// Elf32_Sym in the file.
const symbolBytes = 16

func (o *Object) readSymbols(f *elf.File, index []int, file []byte) error {
	var table *elf.Section
	for i, s := range f.Sections {
		if s.Type != elf.SHT_SYMTAB {
			continue
		}
		if table != nil {
			return fmt.Errorf("section %d %q: %w: a second symbol table", i, s.Name, ErrObject)
		}
		table = s
	}
	if table == nil {
		return nil
	}
	b, err := content(table, file)
	if err != nil {
		return fmt.Errorf("symbol table: %w", err)
	}
	if len(b)%symbolBytes != 0 || int(table.Link) >= len(f.Sections) {
		return fmt.Errorf("symbol table: %w: %d bytes, names in section %d of %d", ErrObject, len(b), table.Link, len(f.Sections))
	}
	names, err := content(f.Sections[table.Link], file)
	if err != nil {
		return fmt.Errorf("symbol names: %w", err)
	}
	o.symbols = make([]symbol, len(b)/symbolBytes)
	for i := range o.symbols {
		e := b[i*symbolBytes:]
		at := binary.BigEndian.Uint32(e)
		s := symbol{value: binary.BigEndian.Uint32(e[4:]), size: binary.BigEndian.Uint32(e[8:])}
		in := elf.SectionIndex(binary.BigEndian.Uint16(e[14:]))
		if uint64(at) >= uint64(len(names)) {
			if at != 0 || len(names) != 0 {
				return fmt.Errorf("symbol %d: %w: name at offset %#x of %d", i, ErrObject, at, len(names))
			}
		} else {
			end := bytes.IndexByte(names[at:], 0)
			if end < 0 {
				return fmt.Errorf("symbol %d: %w: name without end", i, ErrObject)
			}
			s.name = string(names[at : int(at)+end])
		}
		bind, typ := elf.ST_BIND(e[12]), elf.ST_TYPE(e[12])
		s.weak = bind == elf.STB_WEAK
		s.global = bind != elf.STB_LOCAL
		s.code = typ == elf.STT_FUNC
		switch {
		case typ == elf.STT_FILE || in == elf.SHN_UNDEF:
		case in == elf.SHN_ABS:
			s.place = placeAbsolute
		case in == elf.SHN_COMMON:
			if s.value > maxAlign || s.value&(s.value-1) != 0 || s.size > maxObject {
				return fmt.Errorf("symbol %d %q: %w: common, %d bytes aligned to %d", i, s.name, ErrObject, s.size, s.value)
			}
			s.place = placeCommon
		case int(in) >= len(index):
			return fmt.Errorf("symbol %d %q: %w: in section %d of %d", i, s.name, ErrObject, in, len(index))
		case index[in] != 0:
			s.place, s.section = placeSection, index[in]-1
			if s.value > o.sections[s.section].size {
				return fmt.Errorf("symbol %d %q: %w: at %#x of section %q, which has %d bytes", i, s.name, ErrObject, s.value, o.sections[s.section].name, o.sections[s.section].size)
			}
			if typ == elf.STT_SECTION {
				s.name = o.sections[s.section].name
			}
		}
		o.symbols[i] = s
	}
	return nil
}

func (o *Object) readRelocs(s *elf.Section, to *section, file []byte) error {
	b, err := content(s, file)
	if err != nil {
		return err
	}
	if len(b)%relaBytes != 0 {
		return fmt.Errorf("%w: %d bytes, want a multiple of %d", ErrObject, len(b), relaBytes)
	}
	for at := 0; at < len(b); at += relaBytes {
		info := binary.BigEndian.Uint32(b[at+4:])
		r := reloc{
			offset: binary.BigEndian.Uint32(b[at:]), kind: relocKind(info & 0xFF), symbol: info >> 8,
			addend: int32(binary.BigEndian.Uint32(b[at+8:])),
		}
		switch {
		case r.kind >= numRelocs:
			return fmt.Errorf("%w %d at %#x of %q", ErrRelocation, r.kind, r.offset, to.name)
		case uint64(r.symbol) >= uint64(max(len(o.symbols), 1)):
			return fmt.Errorf("%w: relocation at %#x of %q names symbol %d of %d", ErrObject, r.offset, to.name, r.symbol, len(o.symbols))
		case r.kind != relocNone && (to.bytes == nil || uint64(r.offset)+4 > uint64(len(to.bytes))):
			return fmt.Errorf("%w: relocation at %#x of %q, which has %d bytes in the file", ErrObject, r.offset, to.name, len(to.bytes))
		}
		if r.kind != relocNone {
			to.relocs = append(to.relocs, r)
		}
	}
	return nil
}
