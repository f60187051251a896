package lctrie

import "fmt"

// Form is the size of a table's base and prefix records.
type Form uint8

// The forms.
const (
	Auto   Form = iota // packed where all fits, else wide
	Packed             // base records of 8 bytes, prefix records of 4
	Wide               // base records of 12 bytes, prefix records of 8
)

func (f Form) String() string {
	switch f {
	case Auto:
		return "auto"
	case Packed:
		return "packed"
	case Wide:
		return "wide"
	}
	return fmt.Sprintf("form %d", uint8(f))
}

// Options shape a trie. The zero value means DefaultOptions.
type Options struct {
	// FillFactor is the least share of a node's children that must have a
	// string of their own, above 0 and at most 1; 0 means the default, 0.5.
	// A node branches as wide as that allows: lower makes the trie shallower
	// (fewer reads a lookup) and larger, higher the reverse. At 1 only
	// complete nodes branch by more than one bit.
	FillFactor float64

	// RootBranch fixes how many bits the root takes, 1 to 21. 0 lets the fill
	// factor decide, as for every other node. A root of 16 bits saves reads
	// in a full table, but costs 256 KB whatever the number of routes.
	RootBranch int

	// Records chooses the form of the records.
	Records Form
}

// DefaultOptions are those of the published figures: fill factor 0.5, free
// root, the shortest records.
func DefaultOptions() Options { return Options{FillFactor: defaultFill} }

const (
	defaultFill   = 0.5
	maxRootBranch = addrBits - 1 // with the root itself, 2^22 children are one too many
)

// Validate tells what is wrong with the options, if anything.
func (o Options) Validate() error {
	if o.FillFactor != 0 && !(o.FillFactor > 0 && o.FillFactor <= 1) {
		return fmt.Errorf("%w: fill factor %g, want above 0 and at most 1", ErrOptions, o.FillFactor)
	}
	if o.RootBranch < 0 || o.RootBranch > maxRootBranch {
		return fmt.Errorf("%w: root branch %d, want 0 (free) to %d bits", ErrOptions, o.RootBranch, maxRootBranch)
	}
	if o.Records > Wide {
		return fmt.Errorf("%w: %v, want auto, packed or wide", ErrOptions, o.Records)
	}
	return nil
}
