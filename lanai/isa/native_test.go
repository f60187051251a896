package isa_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"testing"

	"spinesim/sim/testenv"

	"github.com/google/go-cmp/cmp"

	"spinesim/lanai"
	"spinesim/lanai/isa"
	"spinesim/lanai/loader"
	"spinesim/spine/firmware"
)

var programs = []string{"checksum", "crc", "sort", "wide", "division", "tree", "indirect", "moves", "varargs", "parts"}

const inputWords = 64

// machine is loaded firmware and a processor for it.
type machine struct {
	sram  *lanai.SRAM
	image *loader.Image
	cpu   *isa.CPU
	sp    uint32
}

func newMachine(t testing.TB, objects ...*loader.Object) *machine {
	t.Helper()
	m := &machine{sram: lanai.NewSRAM(1 << 20)}
	// Address 0 is nobody's, so that a null pointer points nowhere.
	if _, err := m.sram.Alloc("nothing", isa.Granule, isa.Granule); err != nil {
		t.Fatal(err)
	}
	lib, err := firmware.Library()
	if err != nil {
		t.Fatal(err)
	}
	if m.image, err = loader.Load(m.sram, "test", append(objects, lib...)...); err != nil {
		t.Fatal(err)
	}
	const stack = 8 << 10
	low, err := m.sram.Alloc("stack", stack, isa.Granule)
	if err != nil {
		t.Fatal(err)
	}
	m.sp = low + stack
	if m.cpu, err = isa.New(m.sram.View(0, int(m.sram.Bytes()))); err != nil {
		t.Fatal(err)
	}
	if err := m.cpu.Protect(0, int(m.sram.Bytes()), 0); err != nil {
		t.Fatal(err)
	}
	if err := m.image.Protect(m.cpu); err != nil {
		t.Fatal(err)
	}
	if err := m.cpu.Protect(low, stack, isa.Read|isa.Write); err != nil {
		t.Fatal(err)
	}
	m.cpu.BoundStack(low, m.sp)
	m.cpu.SymbolAt = m.image.At
	return m
}

func (m *machine) symbol(t testing.TB, name string) uint32 {
	t.Helper()
	a, err := m.image.Symbol(name)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// call runs a function and returns what it did.
func (m *machine) call(t testing.TB, name string, args ...uint32) isa.Counters {
	t.Helper()
	before := m.cpu.Counters()
	start := m.cpu.Cycle()
	if err := m.cpu.Call(start, m.symbol(t, name), m.sp, args...); err != nil {
		t.Fatal(err)
	}
	m.cpu.SetWatchdog(start + 50_000_000)
	stop, err := m.cpu.Run(start, isa.NoWatchdog)
	if err != nil || stop != isa.Returned {
		t.Fatalf("%s: stopped for %v, %v", name, stop, err)
	}
	n := m.cpu.Counters().Sub(before)
	if n.Cycles() != m.cpu.Cycle()-start {
		t.Fatalf("%s: counters tell of %d cycles, %d went by", name, n.Cycles(), m.cpu.Cycle()-start)
	}
	return n
}

func compile(t testing.TB, level, source string) *loader.Object {
	t.Helper()
	b, err := firmware.Compiler{Optimise: level}.CompileTo(context.Background(), source)
	if err != nil {
		t.Fatal(err)
	}
	o, err := loader.Parse(filepath.Base(source), b)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// TestAgainstNative runs the same C on the simulated processor, at four levels
// of optimisation, and natively.
func TestAgainstNative(t *testing.T) {
	testenv.Client(t, "clang")
	cc := testenv.Client(t, "clang", "gcc", "cc")
	const runs = 60
	r := rand.New(rand.NewPCG(9, 1))
	var input []byte
	for run := range runs {
		for range inputWords {
			v := r.Uint32()
			switch r.IntN(8) {
			case 0:
				v &= 0xFF
			case 1:
				v = ^(v & 0xFFFF)
			case 2:
				v = []uint32{0, 1, ^uint32(0), 1 << 31, 1<<31 - 1}[r.IntN(5)]
			}
			if run == 0 {
				v = 0
			}
			input = binary.BigEndian.AppendUint32(input, v)
		}
	}
	native := filepath.Join(t.TempDir(), "native")
	if out, err := exec.Command(cc, "-O1", "-w", "-fno-strict-aliasing", "-o", native, "testdata/programs.c", "testdata/native.c").CombinedOutput(); err != nil {
		t.Fatalf("native build: %v\n%s", err, out)
	}
	cmd := exec.Command(native)
	cmd.Stdin = bytes.NewReader(swapped(input))
	answer, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	answer = swapped(answer)
	const bytesEach = inputWords * 4
	if len(answer) != runs*len(programs)*bytesEach {
		t.Fatalf("native answer has %d bytes", len(answer))
	}
	for _, level := range []string{"-O0", "-O1", "-O2", "-Os"} {
		t.Run(level, func(t *testing.T) {
			m := newMachine(t, compile(t, level, "testdata/programs.c"))
			in, out := m.symbol(t, "in"), m.symbol(t, "out")
			rest := answer
			for run := range runs {
				for _, p := range programs {
					copy(m.sram.View(in, bytesEach), input[run*bytesEach:])
					clear(m.sram.View(out, bytesEach))
					m.call(t, p)
					if d := cmp.Diff(rest[:bytesEach], m.sram.View(out, bytesEach)); d != "" {
						t.Fatalf("run %d of %s (-native +simulated):\n%s", run, p, d)
					}
					rest = rest[bytesEach:]
				}
			}
		})
	}
}

// swapped turns words from one byte order into the other.
func swapped(b []byte) []byte {
	var s []byte
	for ; len(b) >= 4; b = b[4:] {
		s = binary.LittleEndian.AppendUint32(s, binary.BigEndian.Uint32(b))
	}
	return s
}
