package isa

import "fmt"

// Gates watch over the ways from one part of the code to another. A processor
// that is about to fetch from where its present rights do not let it execute
// asks first: the parts of firmware that are to be told apart have rights of
// their own, and asking costs nothing while code stays within a part.
type Gates interface {
	// Cross is called at the boundary at which the instruction at pc, which has
	// not begun, would begin; everything else stands at that time too. It may
	// change the processor's rights, registers, stack bound and watchdog. An
	// error is the fault's.
	Cross(pc uint32) error
}

// Rights say what is allowed with each Granule of memory.
type Rights []Access

// NewRights allows nothing.
func (c *CPU) NewRights() Rights { return make(Rights, len(c.rights)) }

// Rights are those in force; they are not copied. Whoever changes them has to
// call SetRights.
func (c *CPU) Rights() Rights { return c.rights }

// SetRights puts others in force, made by NewRights of a processor with the same
// memory or by Clone. They are not copied. It must not be called while Run runs,
// other than by Gates.
func (c *CPU) SetRights(r Rights) error {
	if len(r) != len(c.rights) {
		return fmt.Errorf("isa: rights for %d bytes, the memory has %d", len(r)*Granule, len(c.mem))
	}
	c.rights = r
	c.renew()
	return nil
}

// BackToRights is SetRights for rights that have not changed since they were last
// in force: what was found of the code then still holds.
func (c *CPU) BackToRights(r Rights) error {
	was, epoch := c.rights, c.epoch
	known := uint32(0)
	for i := range c.kept {
		if k := &c.kept[i]; len(r) > 0 && &k.rights[0] == &r[0] {
			known = k.epoch
			k.rights, k.epoch = was, epoch
			break
		}
	}
	if known == 0 {
		kept := c.kept
		if err := c.SetRights(r); err != nil {
			return err
		}
		c.kept = append(kept, underRights{was, epoch})
		return nil
	}
	c.rights, c.epoch = r, known
	return nil
}

// underRights are rights that are not in force, and the epoch that is theirs.
type underRights struct {
	rights Rights
	epoch  uint32
}

// Clone copies them.
func (r Rights) Clone() Rights { return append(Rights(nil), r...) }

// Set sets what is allowed with the bytes from addr on, all multiples of
// Granule. The error names what does not fit and wraps ErrOutside.
func (r Rights) Set(addr uint32, bytes int, a Access) error {
	if addr%Granule != 0 || bytes < 0 || bytes%Granule != 0 || uint64(addr)+uint64(bytes) > uint64(len(r))*Granule {
		return fmt.Errorf("isa: protection of %d bytes at %#x: want multiples of %d within %d bytes: %w", bytes, addr, Granule, len(r)*Granule, ErrOutside)
	}
	for g := addr / Granule; g < (addr+uint32(bytes))/Granule; g++ {
		r[g] = a
	}
	return nil
}

// At is what is allowed with the byte at addr.
func (r Rights) At(addr uint32) Access {
	if g := addr >> granuleShift; int(g) < len(r) {
		return r[g]
	}
	return 0
}

// Resume puts the processor, which may stand after a fault, at the instruction
// at pc, to begin at the boundary cycle. Registers and flags stay.
func (c *CPU) Resume(cycle int64, pc uint32) {
	c.jump(pc)
	c.begin(cycle)
}
