package router

import (
	"errors"
	"fmt"
)

// Costs are what forwarding costs the card's processor, in instruction cycles
// of 30 ns. Loads and stores are charged besides, as they are made: a cycle
// count includes the instruction that makes the access, not its wait.
//
// Two parts are measured on C compiled for a processor of the LANai's family
// with memory to itself. A look-up with 3 trie reads took 69 to 72 cycles, and
// the Internet checksum 57 for 20 bytes and 3,017 for 1,500. Their sum is the
// published run of the router handler, about 4 µs or 132 cycles (thesis p.108),
// with five cycles left for everything else. The other fields are chosen so
// that the mean over the thousand routes of RIB2008 is about 132; more than the
// mean is not known.
type Costs struct {
	// ChecksumFixed and ChecksumWord are the header checksum: the call, and
	// each 32-bit word. 17 + 5·8 = 57 and 17 + 375·8 = 3,017 (measured).
	ChecksumFixed, ChecksumWord int

	// LookupFixed is what a look-up costs besides its steps: the call, the
	// root, the comparison with the base record's string, the next hop.
	// LookupStep is a step down from the root: a node read, its fields taken
	// apart, the next bits of the address. 49 + 3·7 = 70 (measured as a sum,
	// split by choice).
	LookupFixed, LookupStep int

	// LookupPrefix is a link along the chain of prefixes: the record, its
	// length, the comparison (chosen).
	LookupPrefix int

	// Checks is for version, lengths, TTL and martian addresses (chosen: 0,
	// for the words are in registers for the checksum, and the published sum
	// leaves no room).
	Checks int

	// Update lowers the TTL and corrects the checksum: both lie in one word,
	// so that is one addition and one store (chosen).
	Update int

	// Refuse is for a packet that is not forwarded: finding the reason's
	// counter and adding to it (chosen).
	Refuse int
}

// DefaultCosts are the costs that Costs explains.
func DefaultCosts() Costs {
	return Costs{
		ChecksumFixed: 17, ChecksumWord: 8,
		LookupFixed: 49, LookupStep: 7, LookupPrefix: 6,
		Update: 2, Refuse: 6,
	}
}

// ErrSpec reports a spec that makes no sense.
var ErrSpec = errors.New("bad IPv4 forwarding spec")

// maxCost keeps sums far from overflowing a demand's 32 bits.
const maxCost = 1_000_000

// Validate tells which cost is out of range, 0 to 1,000,000 cycles. The
// run-time asks for at least as many cycles as accesses.
func (c Costs) Validate() error {
	for _, f := range []struct {
		name string
		v    int
	}{
		{"checksum fixed", c.ChecksumFixed}, {"checksum word", c.ChecksumWord},
		{"lookup fixed", c.LookupFixed}, {"lookup step", c.LookupStep}, {"lookup prefix", c.LookupPrefix},
		{"checks", c.Checks}, {"update", c.Update}, {"refuse", c.Refuse},
	} {
		if f.v < 0 || f.v > maxCost {
			return fmt.Errorf("%w: cost %q is %d cycles, want 0 to %d", ErrSpec, f.name, f.v, maxCost)
		}
	}
	return nil
}
