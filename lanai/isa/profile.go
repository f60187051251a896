package isa

// Cell is what a profile knows of one instruction.
type Cell struct {
	Count      int64 // times executed
	Interlocks int64 // cycles waited for a load or the load/store unit
	Waits      int64 // cycles waited for the memory bus
}

// Cycles is the time the instruction took in all.
func (c Cell) Cycles() int64 { return c.Count + c.Interlocks + c.Waits }

// Profile counts per instruction over a range of memory.
type Profile struct {
	from  uint32
	cells []Cell
}

// NewProfile covers the bytes from addr on.
func NewProfile(addr uint32, bytes int) *Profile {
	return &Profile{from: addr &^ 3, cells: make([]Cell, (bytes+3)/4)}
}

// At is the cell of the instruction at addr; the zero Cell outside the range.
func (p *Profile) At(addr uint32) Cell {
	if i := (addr - p.from) / wordSize; int(i) < len(p.cells) {
		return p.cells[i]
	}
	return Cell{}
}

func (p *Profile) add(pc uint32, interlocks, waits, times int64) {
	if i := (pc - p.from) / wordSize; int(i) < len(p.cells) {
		x := &p.cells[i]
		x.Count += times
		x.Interlocks += interlocks * times
		x.Waits += waits * times
	}
}
