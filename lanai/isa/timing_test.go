package isa_test

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"spinesim/lanai/isa"
)

// TestCyclesByHand runs listings whose cycles were worked out on paper.
func TestCyclesByHand(t *testing.T) {
	const halt = 0x00000006 // log_4 ends a listing
	for _, c := range []struct {
		name  string
		free  []uint8 // repeated; nil: two in every cycle
		words []uint32
		want  int64 // cycles before log_4's own
	}{
		{"three ALU instructions", nil, []uint32{0x01800001, 0x01800002, 0x01800003}, 3},
		{"a load used at once", nil, []uint32{
			0x81820100, // ld 256[%r0], %r3
			0x030C0001, // add %r3, 1, %r6: waits 1
		}, 3},
		{"a load used later", nil, []uint32{0x81820100, 0x00000001, 0x030C0001}, 3},
		{"a loaded word stored", nil, []uint32{
			0x81820100,
			0x91820104, // st %r3, 260[%r0]: waits 1
		}, 3},
		{"a loaded base", nil, []uint32{0x81820100, 0x830E0000}, 3},
		{"two words loaded", nil, []uint32{0x81820100, 0x83020104}, 2},
		{"part-words keep the unit", nil, []uint32{
			0xF1831900, // uld.h 256[%r0], %r3 (SPLS)
			0xF3031900, // waits 1
			0x00000001,
			0x83020100, // does not wait
		}, 5},
		{"part-word, then its use: one wait for both", nil, []uint32{
			0xF1831900,
			0x91820104, // waits for the register and the unit at once
		}, 3},
		{"a branch and its delay slot", nil, []uint32{
			0xE0000010, // bt 16
			0x01800001, // the delay slot
			0x01800002, // not executed
			0x01800002, // not executed
			0x00000001, // 16:
		}, 3},
		{"mov to pc and its delay slot", nil, []uint32{
			0xF1020010, // mov 16, %pc
			0x01800001, 0, 0,
			0x00000001,
		}, 3},
		{"a load into pc and its two", nil, []uint32{
			0x81020108, // ld 264[%r0], %pc: 20
			0x00000001, 0x00000001, 0, 0,
			0x00000001, // 20:
		}, 4},
		{"a branch not taken", nil, []uint32{0xE1000010&^0x01000000 | 1, 0x00000001}, 2},
		{"one access a cycle, no loads", []uint8{1}, []uint32{0x01800001, 0x01800002}, 2},
		{"one access a cycle, loads", []uint8{1}, []uint32{0x81820100, 0x83020104, 0x00000001}, 5},
		{"every other cycle", []uint8{0, 2}, []uint32{0x81820100, 0x00000001, 0x00000001}, 6},
		{"nothing is saved up", []uint8{2, 1, 1}, []uint32{0x00000001, 0x81820100, 0x00000001}, 4},
		{"an interlock asks for nothing", []uint8{2, 0, 2, 0}, []uint32{0x81820100, 0x030C0001}, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			mem := make([]byte, 512)
			for i, w := range append(c.words, halt) {
				binary.BigEndian.PutUint32(mem[4*i:], w)
			}
			binary.BigEndian.PutUint32(mem[264:], 20)
			cpu, err := isa.New(mem)
			if err != nil {
				t.Fatal(err)
			}
			if c.free != nil {
				p := &pattern{}
				for len(p.free) < 4096 {
					p.free = append(p.free, c.free...)
				}
				cpu.Slots = p
			}
			got := int64(-1)
			cpu.OnMark = func(m isa.Mark) {
				if got < 0 {
					got = m.Cycle
				}
			}
			if _, err := cpu.Run(0, 64); err != nil {
				t.Fatal(err)
			}
			// The mark's own cycle, and what it waited for the bus.
			own := int64(1)
			if c.free != nil {
				for k := c.want; c.free[int(k)%len(c.free)] == 0; k++ {
					own++
				}
			}
			if got-own != c.want {
				t.Errorf("%d cycles, want %d", got-own, c.want)
			}
		})
	}
}

func TestFaults(t *testing.T) {
	for _, c := range []struct {
		name  string
		words []uint32
		set   func(*isa.CPU)
		err   error
		says  []string
	}{
		{"undefined", []uint32{1, 0xD0000007}, nil, isa.ErrUndefined, []string{"pc 0x4", "entry+0x4", "<unknown>", "0xd0000007"}},
		{"misaligned load", []uint32{0x81820102}, nil, isa.ErrMisaligned, []string{"ld 258[%r0], %r3", "load of 4 bytes at 0x102"}},
		{"wild store", []uint32{0xF1867FF0, 0x930E0000}, nil, isa.ErrOutside, []string{"store of 4 bytes at 0x"}},
		{"jump outside", []uint32{0xF1021000, 1}, nil, isa.ErrOutside, []string{"fetch of 4 bytes at 0x1000"}},
		{"store into text", []uint32{0x91820000}, func(c *isa.CPU) {
			if err := c.Protect(0, 256, isa.Read|isa.Execute); err != nil {
				panic(err)
			}
		}, isa.ErrProtected, []string{"st %r3, 0[%r0]"}},
		{"stack", []uint32{0x22100008}, func(c *isa.CPU) { c.SetReg(isa.SP, 0x104); c.BoundStack(0x100, 0x200) }, isa.ErrStack, []string{"sub %sp, 0x8, %sp", ": 0xfc"}},
		{"no devices", []uint32{0x8182FF44}, nil, isa.ErrDevice, []string{"0xffffff44"}},
		{"watchdog", []uint32{0xE0000000, 1}, func(c *isa.CPU) { c.SetWatchdog(1000) }, isa.ErrWatchdog, []string{"cycle 1000"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			begin := func() *isa.CPU {
				mem := make([]byte, 1024)
				for i, w := range c.words {
					binary.BigEndian.PutUint32(mem[4*i:], w)
				}
				cpu, err := isa.New(mem)
				if err != nil {
					t.Fatal(err)
				}
				cpu.SymbolAt = func(a uint32) string {
					if a == 4 {
						return "entry+0x4"
					}
					return ""
				}
				if c.set != nil {
					c.set(cpu)
				}
				return cpu
			}
			cpu := begin()
			stop, err := cpu.Run(0, 5000)
			if stop != isa.Faulted || !errors.Is(err, c.err) {
				t.Fatalf("%v, %v; want %v", stop, err, c.err)
			}
			for _, s := range c.says {
				if !strings.Contains(err.Error(), s) {
					t.Errorf("%q does not say %q", err, s)
				}
			}
			if _, err := cpu.Run(0, 5000); !errors.Is(err, isa.ErrStopped) {
				t.Errorf("after a fault: %v", err)
			}
			// It is of the same boundary wherever a run is cut before, and is told
			// by a run that goes just there.
			var f *isa.Fault
			if !errors.As(err, &f) {
				t.Fatal(err)
			}
			for cut := max(1, f.Cycle-20); cut <= f.Cycle+1; cut++ {
				cpu := begin()
				stop, err := cpu.Run(0, cut)
				if (stop == isa.Faulted) != (cut >= f.Cycle) {
					t.Errorf("cut at %d: %v, %v; the fault is at %d", cut, stop, err, f.Cycle)
				}
				if stop == isa.Boundary {
					_, err = cpu.Run(cut+1, 5000)
				}
				var g *isa.Fault
				if !errors.As(err, &g) || g.Cycle != f.Cycle || g.PC != f.PC {
					t.Errorf("cut at %d: %v, want %v", cut, err, f)
				}
			}
		})
	}
}

func TestRunAllocatesNothing(t *testing.T) {
	m := newMachine(t)
	src, dst := m.sp-2048, m.sp-4096
	f := func() { m.call(t, "memcpy", dst, src, 1024) }
	f()
	// The four arguments are a slice.
	if n := testing.AllocsPerRun(100, f); n > 1 {
		t.Errorf("%v allocations a run", n)
	}
}

// TestWaitingIsSkipped polls a word in memory that an event changes.
func TestWaitingIsSkipped(t *testing.T) {
	mem := make([]byte, 512)
	for i, w := range []uint32{
		0x81820100, // 0: ld 256[%r0], %r3
		0x200C0000, //    sub.f %r3, 0, %r0: waits 1
		0xE6000001, //    beq 0
		0x00000001, //    nop
		0x00000002, //    log_0
		0xE0000014, 1,
	} {
		binary.BigEndian.PutUint32(mem[4*i:], w)
	}
	run := func(step bool) (marks []isa.Mark, n isa.Counters) {
		clear(mem[256:260])
		cpu, err := isa.New(mem)
		if err != nil {
			t.Fatal(err)
		}
		cpu.StepLoops = step
		cpu.OnMark = func(m isa.Mark) { marks = append(marks, m) }
		if _, err := cpu.Run(0, 1_000_003); err != nil {
			t.Fatal(err)
		}
		mem[259] = 1
		if _, err := cpu.Run(1_000_003, 1_000_100); err != nil {
			t.Fatal(err)
		}
		return marks, cpu.Counters()
	}
	marks, n := run(false)
	stepped, m := run(true)
	if len(marks) != 1 || len(stepped) != 1 || marks[0] != stepped[0] {
		t.Errorf("marks %v, stepped %v", marks, stepped)
	}
	if n.Skipped < 799_000 {
		t.Errorf("only %d instructions skipped", n.Skipped)
	}
	if n.Skipped = 0; n != m {
		t.Errorf("counters %+v, stepped %+v", n, m)
	}
}
