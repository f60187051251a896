package isa_test

import (
	"bufio"
	"bytes"
	"context"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"spinesim/sim/testenv"

	"spinesim/lanai/isa"
	"spinesim/spine/firmware"
)

// tool disassembles words with llvm-mc. ok is false when it did not know one.
func tool(t *testing.T, mc string, words []uint32) (lines []string, ok bool) {
	t.Helper()
	var in bytes.Buffer
	for _, w := range words {
		fmt.Fprintf(&in, "[%#x %#x %#x %#x]\n", w>>24, w>>16&255, w>>8&255, w&255)
	}
	var out, said bytes.Buffer
	cmd := exec.Command(mc, "--disassemble", "-triple=lanai")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = &in, &out, &said
	// Version 14 dies of words that it does not know.
	err := cmd.Run()
	for s := bufio.NewScanner(&out); s.Scan(); {
		if l := s.Text(); strings.HasPrefix(l, "\t") && l != "\t.text" {
			lines = append(lines, strings.TrimSpace(l))
		}
	}
	return lines, err == nil && !strings.Contains(said.String(), "warning")
}

// randomWord favours words that differ from an instruction in few bits.
func randomWord(r *rand.Rand) uint32 {
	w := r.Uint32()
	switch r.IntN(10) {
	case 0:
		return 0xC<<28 | w&^0xF00000F8
	case 1:
		return 0xC<<28 | 7<<8 | w&^0xF0000078
	case 2:
		return 0xD<<28 | w&^0xF003FFF8
	case 3:
		return 0xE0000002 | w&^0xF183FFFC
	case 4:
		return 0xE1000002 | w&^0xF0FF0000
	case 5: // steps of a width
		return 0x80000000 | w&^0xF000FFFF | uint32(r.IntN(9)-4)&0xFFFF | uint32(r.IntN(2))<<28
	case 6:
		return 0xF0030000 | w&^0xF003C3FF | uint32(r.IntN(9)-4)&0x3FF
	case 7:
		return w & 0xF
	}
	return w
}

func TestDisassemblerAgainstLLVM(t *testing.T) {
	mc := testenv.Client(t, "llvm-mc", "llvm-mc-19", "llvm-mc-14")
	r := rand.New(rand.NewPCG(4, 4))
	var known, unknown []uint32
	for range 40_000 {
		w := randomWord(r)
		if i := isa.Decode(w); i.Kind == isa.Undefined {
			unknown = append(unknown, w)
		} else {
			known = append(known, w)
		}
	}
	lines, ok := tool(t, mc, known)
	if !ok || len(lines) != len(known) {
		for _, w := range known[:2000] {
			if _, ok := tool(t, mc, []uint32{w}); !ok {
				t.Fatalf("%#08x is %q here, unknown there", w, isa.Decode(w))
			}
		}
		t.Fatalf("%d words decoded here, %d there", len(known), len(lines))
	}
	wrong := 0
	for i, w := range known {
		if got := isa.Decode(w).String(); got != lines[i] && wrong < 20 {
			t.Errorf("%#08x is %q, want %q", w, got, lines[i])
			wrong++
		}
	}
	for _, w := range unknown[:60] {
		if lines, ok := tool(t, mc, []uint32{w}); ok {
			t.Errorf("%#08x is unknown here, %v there", w, lines)
		}
	}
}

var dumped = regexp.MustCompile(`^\s*([0-9a-f]+): ((?:[0-9a-f]{2} ){4})\s*\t(.*)$`)

// TestDisassemblerAgainstObjdump compares listings of compiled objects.
func TestDisassemblerAgainstObjdump(t *testing.T) {
	testenv.Client(t, "clang")
	dump := testenv.Client(t, "llvm-objdump", "llvm-objdump-19", "llvm-objdump-14")
	for _, level := range []string{"-O0", "-O2", "-Os"} {
		b, err := firmware.Compiler{Optimise: level}.CompileTo(context.Background(), "testdata/programs.c")
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "programs.o")
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(dump, "-d", path).Output()
		if err != nil {
			t.Fatal(err)
		}
		f, err := elf.NewFile(bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		text, err := f.Section(".text").Data()
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, l := range strings.Split(string(out), "\n") {
			m := dumped.FindStringSubmatch(l)
			if m == nil {
				continue
			}
			at, err := strconv.ParseUint(m[1], 16, 32)
			if err != nil {
				t.Fatal(err)
			}
			want, _, _ := strings.Cut(m[3], " <")
			if got := isa.Decode(binary.BigEndian.Uint32(text[at:])).String(); got != want {
				t.Errorf("%s %#x: %q, want %q", level, at, got, want)
			}
			n++
		}
		if n != len(text)/4 {
			t.Errorf("%s: %d lines for %d instructions", level, n, len(text)/4)
		}
	}
}
