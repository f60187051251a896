package loader_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"spinesim/sim/testenv"

	"spinesim/lanai"
	"spinesim/lanai/isa"
	"spinesim/lanai/loader"
	"spinesim/spine/firmware"
)

func read(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "spine", "firmware", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func parse(t testing.TB, name string) *loader.Object {
	t.Helper()
	o, err := loader.Parse(filepath.Base(name), read(t, name))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// relocation finds the first record of a type in an object and returns its
// offset in the file.
func relocation(t *testing.T, b []byte, kind byte) int {
	t.Helper()
	at := binary.BigEndian.Uint32(b[32:])
	for i := range int(binary.BigEndian.Uint16(b[48:])) {
		h := b[int(at)+40*i:]
		if binary.BigEndian.Uint32(h[4:]) != 4 {
			continue
		}
		from, n := int(binary.BigEndian.Uint32(h[16:])), int(binary.BigEndian.Uint32(h[20:]))
		for k := from; k < from+n; k += 12 {
			if b[k+7] == kind {
				return k
			}
		}
	}
	t.Fatal("no relocation of that type")
	return 0
}

func TestParseErrors(t *testing.T) {
	good := read(t, "spine/dma.o")
	change := func(f func(b []byte)) []byte {
		b := bytes.Clone(good)
		f(b)
		return b
	}
	r := relocation(t, good, 3)
	for _, c := range []struct {
		name string
		file []byte
		err  error
		says string
	}{
		{"empty", nil, loader.ErrObject, ""},
		{"text", []byte("int main;"), loader.ErrObject, ""},
		{"cut", good[:len(good)/2], loader.ErrObject, ""},
		{"machine", change(func(b []byte) { b[18], b[19] = 0, 62 }), loader.ErrMachine, "EM_X86_64"},
		{"executable", change(func(b []byte) { b[17] = 2 }), loader.ErrObject, "ET_EXEC"},
		{"relocation", change(func(b []byte) { b[r+7] = 9 }), loader.ErrRelocation, `unknown relocation 9 at 0x`},
		{"relocation outside", change(func(b []byte) { b[r] = 0x7F }), loader.ErrObject, "which has"},
		{"relocation's symbol", change(func(b []byte) { b[r+4] = 0x7F }), loader.ErrObject, "names symbol"},
	} {
		_, err := loader.Parse("x.o", c.file)
		if !errors.Is(err, c.err) || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "x.o") {
			t.Errorf("%s: %v, want %v with %q", c.name, err, c.err, c.says)
		}
	}
}

func TestLoadErrors(t *testing.T) {
	for _, c := range []struct {
		name    string
		bytes   uint32
		objects []*loader.Object
		err     error
		says    string
	}{
		{"undefined", 1 << 20, []*loader.Object{parse(t, "spine/dma.o")}, loader.ErrUndefined, `dma.o: R_LANAI`},
		{"duplicate", 1 << 20, []*loader.Object{parse(t, "lib/divide.o"), parse(t, "lib/divide.o")}, loader.ErrDuplicate, `"__udivsi3" in divide.o and in divide.o`},
		{"no room", 1 << 10, []*loader.Object{parse(t, "lib/divide.o")}, lanai.ErrNoRoom, "bytes are free"},
	} {
		sram := lanai.NewSRAM(c.bytes)
		_, err := loader.Load(sram, "fw", c.objects...)
		if !errors.Is(err, c.err) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %v with %q", c.name, err, c.err, c.says)
		}
		if sram.Left() != c.bytes {
			t.Errorf("%s: %d bytes still held", c.name, c.bytes-sram.Left())
		}
	}
}

func TestLoad(t *testing.T) {
	sram := lanai.NewSRAM(1 << 20)
	if _, err := sram.Alloc("before", 20, 4); err != nil {
		t.Fatal(err)
	}
	objects, err := firmware.Spine()
	if err != nil {
		t.Fatal(err)
	}
	im, err := loader.Load(sram, "spine", objects...)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range im.Blocks {
		if b.Addr%isa.Granule != 0 || b.Bytes%isa.Granule != 0 {
			t.Errorf("%+v is not made of granules", b)
		}
	}
	at, err := im.Symbol("spine_router_in")
	if err != nil {
		t.Fatal(err)
	}
	if got := im.At(at + 8); got != "spine_router_in+0x8" {
		t.Errorf("at %#x is %q", at+8, got)
	}
	if got := im.At(4); got != "" {
		t.Errorf("at 4 is %q", got)
	}
	if _, err := im.Symbol("nothing"); !errors.Is(err, loader.ErrNoSymbol) {
		t.Errorf("%v", err)
	}
	var m bytes.Buffer
	if err := im.WriteMap(&m); err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{"text r-x", "data rw-", "dma.o(.text)", "spine_router_in"} {
		if !strings.Contains(m.String(), s) {
			t.Errorf("the map does not say %q:\n%s", s, m.String())
		}
	}
}

// TestSymbols links objects with weak, common and local symbols, and data that
// points at data.
func TestSymbols(t *testing.T) {
	testenv.Client(t, "clang")
	dir := t.TempDir()
	var objects []*loader.Object
	for i, text := range []string{
		"__attribute__((weak)) int which(void) { return 1; } __attribute__((common)) int shared; extern int *p; static int own = 5; int f(void) { return which() + *p + own; }",
		"int which(void) { return 2; } __attribute__((common)) int shared[4]; int *p = (int *)shared + 2; __attribute__((weak)) extern int none; int g(void) { p[0] = 40; return &none == 0; } static int own = 7; int h(void) { return own; } int big[1000];",
	} {
		src := filepath.Join(dir, string(rune('a'+i))+".c")
		if err := os.WriteFile(src, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		b, err := firmware.Compiler{Optimise: "-O1"}.CompileTo(context.Background(), src)
		if err != nil {
			t.Fatal(err)
		}
		o, err := loader.Parse(filepath.Base(src), b)
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, o)
	}
	sram := lanai.NewSRAM(1 << 16)
	im, err := loader.Load(sram, "fw", objects...)
	if err != nil {
		t.Fatal(err)
	}
	cpu, err := isa.New(sram.View(0, 1<<16))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		want uint32
	}{{"g", 1}, {"f", 47}, {"h", 7}} {
		at, err := im.Symbol(c.name)
		if err != nil {
			t.Fatal(err)
		}
		if err := cpu.Call(cpu.Cycle(), at, 1<<16-64); err != nil {
			t.Fatal(err)
		}
		if stop, err := cpu.Run(cpu.Cycle(), cpu.Cycle()+10_000); stop != isa.Returned {
			t.Fatalf("%s: %v, %v", c.name, stop, err)
		}
		if got := cpu.Reg(isa.RV); got != c.want {
			t.Errorf("%s() = %d, want %d", c.name, got, c.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, n := range []string{"lib/shift.o", "spine/extension.o", "spine/queue.o"} {
		f.Add(read(f, n))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		o, err := loader.Parse("fuzz.o", b)
		if err != nil {
			return
		}
		sram := lanai.NewSRAM(1 << 16)
		im, err := loader.Load(sram, "fuzz", o)
		if err != nil {
			if sram.Left() != 1<<16 {
				t.Errorf("%v, and %d bytes still held", err, 1<<16-sram.Left())
			}
			return
		}
		if im.Bytes() > 1<<16 {
			t.Errorf("%d bytes in 64 KB", im.Bytes())
		}
	})
}

// TestHeadersDoNotAllocate changes each word of the headers to large numbers and
// looks at what is allocated.
func TestHeadersDoNotAllocate(t *testing.T) {
	good := read(t, "spine/extension.o")
	sections := int(binary.BigEndian.Uint32(good[32:]))
	for at := 16; at < len(good); at += 4 {
		if at == 52 {
			at = sections
		}
		b := bytes.Clone(good)
		binary.BigEndian.PutUint32(b[at:min(at+4, len(b))][:4:4], 0x7FFFFFF0)
		var before, after = memory(), uint64(0)
		if o, err := loader.Parse("x.o", b); err == nil {
			_, _ = loader.Load(lanai.NewSRAM(1<<12), "x", o)
		}
		after = memory()
		if after-before > 4<<20 {
			t.Fatalf("word %#x: %d bytes allocated for a file of %d", at, after-before, len(b))
		}
	}
}
