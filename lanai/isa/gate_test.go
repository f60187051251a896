package isa

import (
	"errors"
	"slices"
	"testing"
)

// doorman lets some ways pass.
type doorman struct {
	c     *CPU
	inner Rights
	deny  error
	idle  bool // says yes and opens nothing
	pcs   []uint32
	at    []int64
}

func (d *doorman) Cross(pc uint32) error {
	d.pcs, d.at = append(d.pcs, pc), append(d.at, d.c.Cycle())
	if d.deny != nil || d.idle {
		return d.deny
	}
	return d.c.SetRights(d.inner)
}

// TestGates: a way into memory that may not be executed is asked for when the
// instruction there would begin, once, and the answer is what happens.
func TestGates(t *testing.T) {
	const bt, nop = 0xE0000000, 1
	setup := func() (*CPU, *doorman) {
		mem := make([]byte, 4096)
		for i, w := range []uint32{nop, bt | 0x200, nop} { // the last is in the delay slot
			storeWord(mem, 0x100+4*uint32(i), w)
		}
		for i, w := range []uint32{nop, bt | 0x200, nop} {
			storeWord(mem, 0x200+4*uint32(i), w)
		}
		c, err := New(mem)
		if err != nil {
			t.Fatal(err)
		}
		d := &doorman{c: c, inner: c.Rights().Clone()}
		outer := c.Rights().Clone()
		if err := outer.Set(0x200, 16, Read); err != nil {
			t.Fatal(err)
		}
		if err := c.SetRights(outer); err != nil {
			t.Fatal(err)
		}
		c.Gates = d
		c.Reset(0x100, 10)
		return c, d
	}
	c, d := setup()
	stop, err := c.Run(10, 100)
	if stop != Device || err != nil || c.Cycle() != 13 || c.PC() != 0x200 || len(d.pcs) != 0 {
		t.Fatalf("%v, %v at cycle %d, pc %#x, asked for %#x; want to stand at the gate", stop, err, c.Cycle(), c.PC(), d.pcs)
	}
	if stop, err = c.Run(13, 100); stop != Boundary || err != nil || c.Cycle() != 13 {
		t.Fatalf("%v, %v at cycle %d: want to stand behind the gate", stop, err, c.Cycle())
	}
	if stop, err = c.Run(13, 20); stop != Boundary || err != nil || c.Cycle() != 20 {
		t.Fatalf("%v, %v at cycle %d", stop, err, c.Cycle())
	}
	if !slices.Equal(d.pcs, []uint32{0x200}) || !slices.Equal(d.at, []int64{13}) {
		t.Errorf("asked for %#x at %d, want once for 0x200 at 13", d.pcs, d.at)
	}

	c, d = setup()
	d.deny = errors.New("not today")
	var f *Fault
	if stop, err = c.Run(13, 100); stop != Faulted {
		stop, err = c.Run(13, 100)
	}
	if !errors.Is(err, d.deny) || !errors.As(err, &f) || f.PC != 0x200 || f.Cycle != 13 {
		t.Errorf("%v, %v: want the gate's own reason", stop, err)
	}
	c.Resume(15, 0x100)
	if stop, err = c.Run(15, 17); stop != Boundary || err != nil || c.PC() != 0x108 {
		t.Errorf("resumed: %v, %v at %#x", stop, err, c.PC())
	}

	c, d = setup()
	d.idle = true
	if _, err = c.Run(13, 100); err == nil {
		_, err = c.Run(13, 100)
	}
	if !errors.Is(err, ErrProtected) {
		t.Errorf("a gate that opens nothing: %v", err)
	}

	if err := c.SetRights(make(Rights, 3)); err == nil {
		t.Error("rights for another memory were taken")
	}
	if err := c.Rights().Set(8, 16, All); !errors.Is(err, ErrOutside) {
		t.Errorf("half a granule: %v", err)
	}
	if a := c.Rights().At(0x200); a != Read {
		t.Errorf("0x200 is %v", a)
	}
	if a := c.Rights().At(1 << 20); a != 0 {
		t.Errorf("an address that is none is %v", a)
	}
}

// TestJumps: computed jumps are counted and told of, other changes of pc are not.
func TestJumps(t *testing.T) {
	mem := make([]byte, 4096)
	// add %r6, 0, %pc; nop; at 0x40: bt 0x80; nop; at 0x80: add %r7, 0, %pc; nop.
	for at, w := range map[uint32]uint32{
		0x10: 2<<23 | 6<<18, 0x14: 1, 0x40: 0xE0000000 | 0x80, 0x44: 1, 0x80: 2<<23 | 7<<18, 0x84: 1, 0xC0: 1, 0xC4: 1,
	} {
		storeWord(mem, at, w)
	}
	c, err := New(mem)
	if err != nil {
		t.Fatal(err)
	}
	var to []uint32
	var when []int64
	c.OnJump = func(target uint32, cycle int64) { to, when = append(to, target), append(when, cycle) }
	c.Reset(0x10, 0)
	c.SetReg(Arg0, 0x40)
	c.SetReg(Arg1, 0xC0)
	if stop, err := c.Run(0, 8); stop != Boundary || err != nil {
		t.Fatal(stop, err)
	}
	if !slices.Equal(to, []uint32{0x40, 0xC0}) || !slices.Equal(when, []int64{1, 5}) || c.Counters().Jumps != 2 || c.PC() != 0xC8 {
		t.Errorf("jumps to %#x at %d, %d counted, pc %#x", to, when, c.Counters().Jumps, c.PC())
	}
}
