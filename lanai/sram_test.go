package lanai

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSRAMBigEndian(t *testing.T) {
	s := NewSRAM(4096)
	if err := s.SetWord(8, 0x01020304); err != nil {
		t.Fatal(err)
	}
	if err := s.SetHalf(10, 0xA0B0); err != nil {
		t.Fatal(err)
	}
	if err := s.SetByte(9, 0xFF); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]byte{0x01, 0xFF, 0xA0, 0xB0}, s.View(8, 4)); diff != "" {
		t.Error(diff)
	}
	w, err := s.Word(8)
	h, err2 := s.Half(8)
	b, err3 := s.Byte(11)
	if err := errors.Join(err, err2, err3); err != nil {
		t.Fatal(err)
	}
	if w != 0x01FFA0B0 || h != 0x01FF || b != 0xB0 {
		t.Errorf("read %#x %#x %#x", w, h, b)
	}
}

func TestSRAMRefuses(t *testing.T) {
	s := NewSRAM(4096)
	read := func(_ any, err error) error { return err }
	word := func(a uint32) error { v, err := s.Word(a); return read(v, err) }
	half := func(a uint32) error { v, err := s.Half(a); return read(v, err) }
	byt := func(a uint32) error { v, err := s.Byte(a); return read(v, err) }
	slice := func(a uint32, n int) error { v, err := s.Slice(a, n); return read(v, err) }
	for _, tt := range []struct {
		what string
		err  error
		want error
	}{
		{"word at the end", word(4096), ErrOutside},
		{"word across the end", word(4094), ErrOutside},
		{"word that wraps", word(0xFFFFFFFE), ErrOutside},
		{"unaligned word", word(6), ErrUnaligned},
		{"last word", word(4092), nil},
		{"unaligned half", half(7), ErrUnaligned},
		{"half outside", half(4096), ErrOutside},
		{"byte outside", byt(4096), ErrOutside},
		{"last byte", byt(4095), nil},
		{"set word", s.SetWord(4093, 1), ErrOutside},
		{"set unaligned word", s.SetWord(1, 1), ErrUnaligned},
		{"set half", s.SetHalf(4095, 1), ErrOutside},
		{"set byte", s.SetByte(5000, 1), ErrOutside},
		{"slice", slice(4090, 7), ErrOutside},
		{"negative slice", slice(0, -1), ErrOutside},
		{"whole slice", slice(0, 4096), nil},
	} {
		if !errors.Is(tt.err, tt.want) {
			t.Errorf("%s: %v, want %v", tt.what, tt.err, tt.want)
		}
	}
}

func TestSRAMMap(t *testing.T) {
	s := NewSRAM(4096)
	for _, a := range []struct {
		owner    string
		n, align uint32
		want     uint32
	}{
		{"firmware", 1000, 4, 0},
		{"queues", 256, 256, 1024},
		{"small", 20, 4, 1000}, // the gap is used
		{"table", 2000, 16, 1280},
	} {
		at, err := s.Alloc(a.owner, a.n, a.align)
		if err != nil || at != a.want {
			t.Fatalf("%s: at %d, %v; want %d", a.owner, at, err, a.want)
		}
	}
	var b strings.Builder
	if err := s.WriteMap(&b); err != nil {
		t.Fatal(err)
	}
	const want = `      from         to      bytes  holder
0x00000000 0x000003e7       1000  firmware
0x000003e8 0x000003fb         20  small
0x000003fc 0x000003ff          4  (free)
0x00000400 0x000004ff        256  queues
0x00000500 0x00000ccf       2000  table
0x00000cd0 0x00000fff        816  (free)
820 of 4096 bytes left
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("map (-want +got):\n%s", diff)
	}
	if s.Left() != 820 || s.Held("queues") != 256 || s.Held("nobody") != 0 {
		t.Errorf("left %d, held %d", s.Left(), s.Held("queues"))
	}

	_, err := s.Alloc("buffers", 900, 32)
	var room *NoRoomError
	if !errors.As(err, &room) || !errors.Is(err, ErrNoRoom) {
		t.Fatalf("allocation too large: %v", err)
	}
	if diff := cmp.Diff(NoRoomError{Owner: "buffers", Bytes: 900, Align: 32, Free: 820, Largest: 800, Size: 4096}, *room); diff != "" {
		t.Error(diff)
	}
	for _, part := range []string{"900", `"buffers"`, "820", "800", "4096"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not name %s", err, part)
		}
	}
	for _, bad := range []struct {
		owner    string
		n, align uint32
	}{{"", 4, 4}, {"x", 0, 4}, {"x", 4, 0}, {"x", 4, 12}} {
		if _, err := s.Alloc(bad.owner, bad.n, bad.align); err == nil || errors.Is(err, ErrNoRoom) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	if err := s.Free(1024); err != nil {
		t.Error(err)
	}
	if err := s.Free(1024); err == nil {
		t.Error("freed twice")
	}
	if s.Left() != 820+256 {
		t.Errorf("%d left after freeing", s.Left())
	}
}

// The allocator against a map of every byte.
func TestSRAMAllocatorAgainstBytes(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		s := NewSRAM(4096)
		var holder [4096]string
		held := map[uint32]Block{}
		for i := range 200 {
			if r.IntN(3) == 0 && len(held) > 0 {
				var at uint32 // the lowest block, or any other chance block
				for _, b := range s.Map() {
					if b.Owner != "" && (at == 0 || r.IntN(3) == 0) {
						at = b.Addr
					}
				}
				b, ok := held[at]
				if err := s.Free(at); (err == nil) != ok {
					t.Fatalf("free %d: %v", at, err)
				}
				for j := b.Addr; j < b.Addr+b.Bytes; j++ {
					holder[j] = ""
				}
				delete(held, at)
				continue
			}
			n, align := 1+r.Uint32N(600), uint32(1)<<r.IntN(9)
			owner := fmt.Sprintf("o%d", i)
			want := int64(-1)
		search:
			for at := uint32(0); at+n <= 4096; at += align {
				for j := at; j < at+n; j++ {
					if holder[j] != "" {
						continue search
					}
				}
				want = int64(at)
				break
			}
			at, err := s.Alloc(owner, n, align)
			switch {
			case want < 0 && !errors.Is(err, ErrNoRoom):
				t.Fatalf("%d bytes at %d: %v", n, at, err)
			case want >= 0 && (err != nil || int64(at) != want):
				t.Fatalf("%d bytes aligned to %d: at %d, %v; want %d", n, align, at, err, want)
			case want >= 0:
				held[at] = Block{at, n, owner}
				for j := at; j < at+n; j++ {
					holder[j] = owner
				}
			}
		}
		var left uint32
		for _, o := range holder {
			if o == "" {
				left++
			}
		}
		if s.Left() != left {
			t.Fatalf("left %d, want %d", s.Left(), left)
		}
		var at uint32
		for _, b := range s.Map() {
			if b.Addr != at {
				t.Fatalf("map has a hole before %d", b.Addr)
			}
			for j := b.Addr; j < b.Addr+b.Bytes; j++ {
				if holder[j] != b.Owner {
					t.Fatalf("byte %d is %q's, the map says %q", j, holder[j], b.Owner)
				}
			}
			at += b.Bytes
		}
		if at != 4096 {
			t.Fatalf("map ends at %d", at)
		}
	}
}
