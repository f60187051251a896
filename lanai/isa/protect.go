package isa

// Access is a set of ways to use memory.
type Access uint8

// The ways.
const (
	Read Access = 1 << iota
	Write
	Execute

	All = Read | Write | Execute
)

func (a Access) String() string {
	b := [3]byte{'-', '-', '-'}
	for i, c := range [...]byte{'r', 'w', 'x'} {
		if a>>i&1 != 0 {
			b[i] = c
		}
	}
	return string(b[:])
}

// Granule is the unit of memory protection, in bytes.
const (
	Granule      = 16
	granuleShift = 4
)

// Protect sets what is allowed with the bytes from addr on, all multiples of
// Granule. Before the first call everything is. The error names what does not
// fit.
func (c *CPU) Protect(addr uint32, bytes int, a Access) error {
	c.renew()
	return c.rights.Set(addr, bytes, a)
}

// Allowed is what is allowed with the byte at addr.
func (c *CPU) Allowed(addr uint32) Access { return c.rights.At(addr) }

// BoundStack makes it a fault that an instruction leaves a stack pointer below
// low or above high. Both 0 take the bound away.
func (c *CPU) BoundStack(low, high uint32) {
	c.stackLow, c.stackHigh = low, high
}
