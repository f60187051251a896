package loader

import (
	"debug/elf"
	"fmt"
	"io"
	"sort"
	"strings"

	"spinesim/lanai"
	"spinesim/lanai/isa"
)

// Kind is what a section holds; sections of a kind lie in one block.
type Kind uint8

// The kinds.
const (
	Text Kind = iota
	ReadOnly
	Writable // initialised and zero data
	numKinds
)

var kindNames = [numKinds]string{"text", "read-only data", "data"}

func (k Kind) String() string { return kindNames[k] }

// Access is what code needs to be allowed to do with a kind. Text may be read:
// compilers put jump tables there.
func (k Kind) Access() isa.Access {
	switch k {
	case Text:
		return isa.Read | isa.Execute
	case ReadOnly:
		return isa.Read
	}
	return isa.Read | isa.Write
}

func kindOf(s *elf.Section) Kind {
	switch {
	case s.Flags&elf.SHF_EXECINSTR != 0:
		return Text
	case s.Flags&elf.SHF_WRITE != 0:
		return Writable
	}
	return ReadOnly
}

// Block is a piece of SRAM that an image holds.
type Block struct {
	Kind        Kind
	Addr, Bytes uint32 // multiples of isa.Granule
}

// Placed is a section where it lies, or a common symbol, which no object has a
// section for.
type Placed struct {
	Object, Section string
	Kind            Kind
	Addr, Bytes     uint32
	Order           int // of the object among those loaded, from 0; -1 for a common symbol
}

// Symbol is a name and its address.
type Symbol struct {
	Name   string
	Object string
	Addr   uint32
	Bytes  uint32
	Global bool
	Code   bool
}

// Image is firmware in a card's memory.
type Image struct {
	Owner    string
	Blocks   []Block
	Sections []Placed
	Symbols  []Symbol // by address, then name; compiler's local labels left out

	global map[string]uint32
}

// Load links the objects and puts them into SRAM, one block of it for each kind
// of section, held by owner and the kind's name. Nothing is left held when it
// fails. The errors wrap lanai.ErrNoRoom, ErrUndefined, ErrDuplicate or
// ErrRange, and name object, section and symbol.
func Load(sram *lanai.SRAM, owner string, objects ...*Object) (im *Image, err error) {
	l := linker{sram: sram, objects: objects, im: &Image{Owner: owner, global: map[string]uint32{}}}
	defer func() {
		if err != nil {
			for _, b := range l.im.Blocks {
				// The blocks are this function's own, so this cannot fail.
				_ = sram.Free(b.Addr)
			}
			im, err = nil, fmt.Errorf("loader: %s: %w", owner, err)
		}
	}()
	if err = l.define(); err != nil {
		return nil, err
	}
	if err = l.layout(); err != nil {
		return nil, err
	}
	if err = l.fill(); err != nil {
		return nil, err
	}
	l.list()
	return l.im, nil
}

// Symbol is the address of a global symbol. The error wraps ErrNoSymbol.
func (im *Image) Symbol(name string) (uint32, error) {
	a, ok := im.global[name]
	if !ok {
		return 0, fmt.Errorf("loader: %s: %w: %q", im.Owner, ErrNoSymbol, name)
	}
	return a, nil
}

// At names what encloses an address: a symbol, and the distance from it where
// there is one. It is "" outside the image.
func (im *Image) At(addr uint32) string {
	if s, off, ok := im.Enclosing(addr); ok {
		if off == 0 {
			return s.Name
		}
		return fmt.Sprintf("%s+%#x", s.Name, off)
	}
	return ""
}

// Enclosing is the symbol that an address belongs to, and the distance from it.
func (im *Image) Enclosing(addr uint32) (s Symbol, off uint32, ok bool) {
	in := false
	for _, b := range im.Blocks {
		in = in || addr-b.Addr < b.Bytes
	}
	if !in {
		return s, 0, false
	}
	i := sort.Search(len(im.Symbols), func(i int) bool { return im.Symbols[i].Addr > addr })
	// Of several at one address a function is the best name, then the first.
	best := -1
	for i--; i >= 0; i-- {
		if best >= 0 && im.Symbols[i].Addr != im.Symbols[best].Addr {
			break
		}
		if best < 0 || im.Symbols[i].Code || !im.Symbols[best].Code {
			best = i
		}
	}
	if best < 0 {
		return s, 0, false
	}
	return im.Symbols[best], addr - im.Symbols[best].Addr, true
}

// Bytes is the memory that the image holds.
func (im *Image) Bytes() uint32 {
	var n uint32
	for _, b := range im.Blocks {
		n += b.Bytes
	}
	return n
}

// Protect allows a processor to use the image's blocks as their kinds need, and
// nothing more of them.
func (im *Image) Protect(c *isa.CPU) error {
	for _, b := range im.Blocks {
		if err := c.Protect(b.Addr, int(b.Bytes), b.Kind.Access()); err != nil {
			return fmt.Errorf("loader: %s: %w", im.Owner, err)
		}
	}
	return nil
}

// WriteMap prints blocks, sections and symbols as a table.
func (im *Image) WriteMap(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %d bytes\n", im.Owner, im.Bytes())
	for _, bl := range im.Blocks {
		fmt.Fprintf(&b, "\n0x%08x %8d  %s %v\n", bl.Addr, bl.Bytes, bl.Kind, bl.Kind.Access())
		for _, s := range im.Sections {
			if s.Kind != bl.Kind {
				continue
			}
			fmt.Fprintf(&b, "  0x%08x %8d  %s(%s)\n", s.Addr, s.Bytes, s.Object, s.Section)
			for _, y := range im.Symbols {
				if y.Object == s.Object && y.Addr-s.Addr < max(s.Bytes, 1) {
					fmt.Fprintf(&b, "    0x%08x %8d  %s\n", y.Addr, y.Bytes, y.Name)
				}
			}
		}
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("loader: writing the map: %w", err)
	}
	return nil
}
