package l2

import (
	"errors"
	"fmt"

	"spinesim/router/bihash"
	"spinesim/sim/des"
)

// Errors that this package's functions wrap.
var (
	ErrSpec = errors.New("bad L2 forwarding spec")
)

// Addressing says where a packet's station addresses are.
type Addressing string

// The ways of addressing.
const (
	Ethernet Addressing = "ethernet"  // in the Ethernet header that the packet begins with
	FromIPv4 Addressing = "from-ipv4" // derived from its IPv4 addresses
)

// Unknown says what happens to a frame whose destination is not known.
type Unknown string

// The choices.
const (
	Flood  Unknown = "flood"   // to every other card
	Next   Unknown = "next"    // to the next extension, such as an IP router
	ToHost Unknown = "to-host" // to the host
	Drop   Unknown = "drop"
)

// Spec is what there is to choose about forwarding. DefaultSpec gives values.
type Spec struct {
	Addressing Addressing
	// Table is each card's table; its keys have 8 bytes.
	Table bihash.Spec
	// NoLearning leaves the table to static stations.
	NoLearning bool
	// Age is how long a station is remembered that is not heard of; 0 is for
	// ever. It is kept in eighths.
	Age des.Time
	// Stations bounds how many a card knows; a source beyond it is not learned.
	Stations int
	Unknown  Unknown
	// NoCache leaves out the one-entry caches of destination and source.
	NoCache bool
	// Static stations are known from the start and never forgotten.
	Static []Station
	// Notice is how long it takes until the other cards know what one has
	// learned, above 0.
	Notice des.Time
	Costs  Costs
}

// Station is a station and the card whose wire leads to it.
type Station struct {
	Address [6]byte
	Card    uint8
}

// DefaultSpec is a bridge of stations known by their IPv4 addresses, with room
// for 1,024 in 64 KiB of each card. 300 s of age is IEEE 802.1D's; the table's
// size and 100 µs of notice are chosen.
func DefaultSpec() Spec {
	return Spec{
		Addressing: FromIPv4,
		Table:      bihash.Spec{KeyBytes: 8, Buckets: 1024, Bytes: 96 << 10, Hash: bihash.CRC32C},
		Age:        300 * des.Second, Stations: 1024, Unknown: Flood,
		Notice: 100 * des.Microsecond,
		Costs:  DefaultCosts(),
	}
}

// Validate tells what is wrong with the spec; the error wraps ErrSpec or
// bihash.ErrSpec.
func (s Spec) Validate() error {
	if s.Addressing != Ethernet && s.Addressing != FromIPv4 {
		return fmt.Errorf("%w: addressing %q, want %s or %s", ErrSpec, s.Addressing, Ethernet, FromIPv4)
	}
	switch s.Unknown {
	case Flood, Next, ToHost, Drop:
	default:
		return fmt.Errorf("%w: unknown stations: %q, want %s, %s, %s or %s", ErrSpec, s.Unknown, Flood, Next, ToHost, Drop)
	}
	if err := s.Table.Validate(); err != nil {
		return err
	}
	if s.Table.KeyBytes != keyBytes {
		return fmt.Errorf("%w: keys of %d bytes, want %d", ErrSpec, s.Table.KeyBytes, keyBytes)
	}
	if s.Stations < 1 || s.Stations > 1<<24 {
		return fmt.Errorf("%w: %d stations, want 1 to %d", ErrSpec, s.Stations, 1<<24)
	}
	if s.Age < 0 || s.Age > 0 && s.Age < ages*des.Microsecond {
		return fmt.Errorf("%w: age %v, want 0 (for ever) or at least %v", ErrSpec, s.Age, ages*des.Microsecond)
	}
	if s.Notice <= 0 {
		return fmt.Errorf("%w: notice %v, want a time above 0", ErrSpec, s.Notice)
	}
	return s.Costs.Validate()
}

// Costs are what forwarding costs the card's processor, in instruction cycles of
// 30 ns, loads and stores among them. All are chosen: instructions counted over
// the steps of the algorithm, for a processor without multiply or CRC
// instructions.
type Costs struct {
	// Frame is paid once for the packets that are handled together, Packet for
	// each: the call, and the verdict.
	Frame, Packet int
	// Key is putting an address into registers, Cached comparing it with the
	// cached one.
	Key, Cached int
	// HashFixed and HashByte are the hash of a key: by table, one load a byte.
	HashFixed, HashByte int
	// Bucket is taking a bucket word apart, Word each word that is read and
	// compared.
	Bucket, Word int
	// Learn is putting a station into the table or changing it, beside the
	// look-up; Notice is telling one other card, Heard taking that in.
	Learn, Notice, Heard int
	// Sweep is looking at one bucket for stations that are too old.
	Sweep int
}

// DefaultCosts are the costs that Costs explains.
func DefaultCosts() Costs {
	return Costs{
		Frame: 24, Packet: 10, Key: 6, Cached: 4, HashFixed: 6, HashByte: 6, Bucket: 9, Word: 3,
		Learn: 40, Notice: 30, Heard: 50, Sweep: 6,
	}
}

const maxCost = 1_000_000

// Validate tells which cost is out of range, 0 to 1,000,000 cycles; the error
// wraps ErrSpec.
func (c Costs) Validate() error {
	for _, f := range []struct {
		name string
		v    int
	}{
		{"frame", c.Frame}, {"packet", c.Packet}, {"key", c.Key}, {"cached", c.Cached}, {"hash fixed", c.HashFixed},
		{"hash byte", c.HashByte}, {"bucket", c.Bucket}, {"word", c.Word}, {"learn", c.Learn}, {"notice", c.Notice},
		{"heard", c.Heard}, {"sweep", c.Sweep},
	} {
		if f.v < 0 || f.v > maxCost {
			return fmt.Errorf("%w: cost %q is %d cycles, want 0 to %d", ErrSpec, f.name, f.v, maxCost)
		}
	}
	return nil
}
