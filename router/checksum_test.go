package router

import (
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"testing"
)

// slowChecksum adds 16-bit words one by one, with the carry round the end at
// once, as RFC 1071 explains it.
func slowChecksum(b []byte) uint16 {
	sum := uint32(0)
	for i := 0; i < len(b); i += 2 {
		w := uint32(b[i]) << 8
		if i+1 < len(b) {
			w |= uint32(b[i+1])
		}
		if sum += w; sum > 0xFFFF {
			sum -= 0xFFFF
		}
	}
	return ^uint16(sum)
}

func TestChecksum(t *testing.T) {
	// The example of RFC 1071, section 3.
	if got := Checksum([]byte{0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7}); got != ^uint16(0xddf2) {
		t.Errorf("%#x, want %#x", got, ^uint16(0xddf2))
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		b := make([]byte, rng.IntN(70))
		for i := range b {
			if b[i] = byte(rng.Uint32()); rng.IntN(4) == 0 {
				b[i] = 0xFF
			}
		}
		if got, want := Checksum(b), slowChecksum(b); got != want {
			t.Fatalf("%x: %#x, want %#x", b, got, want)
		}
	}
}

// TestLowerTTL recomputes the checksum for every value that it can have and
// every TTL.
func TestLowerTTL(t *testing.T) {
	h, err := Header{TTL: 64, Protocol: 17, Src: netip.MustParseAddr("10.0.0.1"), Dst: netip.MustParseAddr("10.0.0.2")}.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	want := make([]byte, minHeader)
	for ttl := 1; ttl < 256; ttl++ {
		for id := range 1 << 16 { // the identification reaches every checksum
			h[ttlByte] = uint8(ttl)
			binary.BigEndian.PutUint16(h[identity:], uint16(id))
			binary.BigEndian.PutUint16(h[checksumAt:], 0)
			binary.BigEndian.PutUint16(h[checksumAt:], Checksum(h))
			copy(want, h)
			want[ttlByte]--
			binary.BigEndian.PutUint16(want[checksumAt:], 0)
			binary.BigEndian.PutUint16(want[checksumAt:], Checksum(want))
			lowerTTL(h)
			if [minHeader]byte(h) != [minHeader]byte(want) {
				t.Fatalf("TTL %d, identification %d: % x, want % x", ttl, id, h, want)
			}
		}
	}
}

// TestUpdateChecksum changes any word of a random header.
func TestUpdateChecksum(t *testing.T) {
	// The case that RFC 1624, section 4, works out.
	if got := UpdateChecksum(0xDD2F, 0x5555, 0x3285); got != 0x0000 {
		t.Errorf("%#04x, want 0x0000", got)
	}
	rng := rand.New(rand.NewPCG(3, 4))
	for range 200_000 {
		h, err := Header{
			TOS: uint8(rng.Uint32()), ID: uint16(rng.Uint32()), TTL: uint8(rng.Uint32()), Protocol: uint8(rng.Uint32()),
			Src: address(rng.Uint32()), Dst: address(rng.Uint32()), Options: make([]byte, 4*rng.IntN(11)),
		}.Append(nil)
		if err != nil {
			t.Fatal(err)
		}
		at := 2 * rng.IntN(len(h)/2)
		if at == checksumAt {
			continue
		}
		sum := binary.BigEndian.Uint16(h[checksumAt:])
		from := binary.BigEndian.Uint16(h[at:])
		to := uint16(rng.Uint32())
		binary.BigEndian.PutUint16(h[at:], to)
		got := UpdateChecksum(sum, from, to)
		binary.BigEndian.PutUint16(h[checksumAt:], 0)
		if want := slowChecksum(h); got != want {
			t.Fatalf("% x: %#04x, want %#04x", h, got, want)
		}
	}
}
