package l2

import (
	"encoding/binary"
	"fmt"

	"spinesim/router/bihash"
	"spinesim/sim/des"
)

// HeaderBytes is the length of an Ethernet header: destination, source, type.
const HeaderBytes = 14

// keyBytes is a station's key: its address, and 2 bytes for the bridge domain,
// which is always 0.
const keyBytes = 8

type key = [keyBytes]byte

// StationOf is the address of a station that is known by its IPv4 address:
// locally administered, 02:00 and the four bytes.
func StationOf(ipv4 uint32) (a [6]byte) {
	a[0] = 2
	binary.BigEndian.PutUint32(a[2:], ipv4)
	return a
}

// group tells whether an address is of a group of stations.
func group(a []byte) bool { return a[0]&1 != 0 }

// ages is in how many steps an age is kept: a station is written anew, and told
// of, once a step at most.
const ages = 8

// entry is a station's value in the table:
//
//	63 … 32  step of time in which it was heard of last
//	8        static
//	 7 …  0  card
type entry uint64

const staticBit = 1 << 8

func makeEntry(card uint8, step uint32) entry { return entry(step)<<32 | entry(card) }
func (e entry) card() uint8                   { return uint8(e) }
func (e entry) step() uint32                  { return uint32(e >> 32) }
func (e entry) static() bool                  { return e&staticBit != 0 }

// step is the step of time of now, from 1.
func (s *Spec) step(now des.Time) uint32 {
	if s.Age == 0 {
		return 1
	}
	return uint32(now/(s.Age/ages)) + 1
}

// expired tells whether an entry is too old in a step of time.
func (s *Spec) expired(e entry, step uint32) bool {
	return s.Age > 0 && !e.static() && step > e.step()+ages
}

// station tells a static station's key.
func (s Station) key() (k key) {
	copy(k[:], s.Address[:])
	return k
}

// fill puts the static stations into a table.
func fill(t *bihash.Table, static []Station, cards int) error {
	for i, s := range static {
		if int(s.Card) >= cards {
			return fmt.Errorf("%w: static station %d lies behind card %d, want 0 to %d", ErrSpec, i, s.Card, cards-1)
		}
		if group(s.Address[:]) {
			return fmt.Errorf("%w: static station %d, %x, is a group", ErrSpec, i, s.Address)
		}
		k := s.key()
		if err := t.Add(k[:], uint64(makeEntry(s.Card, 0)|staticBit)); err != nil {
			return fmt.Errorf("static station %d: %w", i, err)
		}
	}
	return nil
}
