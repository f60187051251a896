package ilp

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const goodConfig = `# a card and a sum
machines:
  - name: my-card
    registers: 9
    cache: 1 clock/word
    memory: 2.5 clocks/word
    cpi: 1
    loop: 3
    clock: 0.25 GHz
    word: 4 bytes
    entry: 17 cycles
    entry_accesses: 4
    source: a data sheet
functions:
  - name: my-sum
    state: 1 word
    constants: 2
    instructions: 4
    in: 4 bytes
    out: 0 B
`

func TestConfig(t *testing.T) {
	c := DefaultCatalogue()
	if err := c.Read("my.yaml", strings.NewReader(goodConfig)); err != nil {
		t.Fatal(err)
	}
	m, err := c.Model("my-card", "bswap", "my-sum")
	if err != nil {
		t.Fatal(err)
	}
	want := Model{
		Machine: Machine{Name: "my-card", Registers: 9, CacheClocks: 1, MemoryClocks: 2.5, CPI: 1, LoopInstructions: 3,
			ClockMHz: 250, WordBytes: 4, EntryClocks: 17, EntryAccesses: 4, Source: "a data sheet"},
		Functions: []Function{BSWAP(), {Name: "my-sum", StateWords: 1, Constants: 2, Instructions: 4, In: 4}},
	}
	if diff := cmp.Diff(want, m); diff != "" {
		t.Errorf("model (-want +got):\n%s", diff)
	}
	if _, err := c.Model("my-car", "bswap"); err == nil || err.Error() != `unknown machine "my-car", have hp735, ss2, ss20, lanai4, my-card` {
		t.Errorf("error %v", err)
	}
	if _, err := c.Model("hp735", "zip"); err == nil || !strings.HasPrefix(err.Error(), `unknown function "zip", have bswap`) {
		t.Errorf("error %v", err)
	}
}

func TestConfigErrors(t *testing.T) {
	edit := func(old, new string) string {
		if !strings.Contains(goodConfig, old) {
			t.Fatalf("%q is not in the good file", old)
		}
		return strings.Replace(goodConfig, old, new, 1)
	}
	for _, c := range []struct{ name, text, want string }{
		{"unknown key", edit("cpi:", "cpj:"), "f:7:cpj: unknown key, want one of name, registers, cache, memory, cpi, loop, clock, word, entry, entry_accesses, source"},
		{"top-level key", "machine: []\n", "f:1:machine: unknown key, want one of machines, functions"},
		{"missing key", edit("    clock: 0.25 GHz\n", ""), "f:3:clock: missing in this machine"},
		{"bare number", edit("1 clock/word", "1"), `f:5:cache: "1": want a number with a unit, such as "4 clocks/word"`},
		{"wrong unit", edit("0.25 GHz", "33 ns"), `f:9:clock: "33 ns": want a number with a unit, such as "4 MHz"`},
		{"unit on a count", edit("registers: 9", "registers: 9 words"), `f:4:registers: "9 words" has a unit, want a bare number`},
		{"not whole", edit("registers: 9", "registers: 9.5"), "f:4:registers: want a whole number, not 9.5"},
		{"no number", edit("loop: 3", "loop: many"), `f:8:loop: "many" is no number, want a bare number`},
		{"out of range", edit("registers: 9", "registers: -9"), `f:3:machine: machine "my-card": registers is -9, want 0 to 1024`},
		{"output", edit("out: 0 B", "out: 2 B"), `f:15:function: function "my-sum": output block is 2 bytes, want 0 or the input block's 4`},
		{"name taken", edit("name: my-card", "name: lanai4"), `f:3:name: machine "lanai4" exists already`},
		{"function name taken", edit("name: my-sum", "name: pes"), `f:15:name: function "pes" exists already`},
		{"not a list", "machines: 3\n", "f:1:machines: want a list without anchor or alias"},
		{"not a mapping", "- 1\n", "f:1:top level: want a mapping without anchor or alias"},
		{"list entry", "machines: [3]\n", "f:1:machine: want a mapping without anchor or alias"},
		{"anchor", "functions: &a\n  - *a\n", "f:"},
		{"empty", "", "f: empty file, want machines or functions"},
		{"comment only", "# nothing\n", "f: empty file, want machines or functions"},
		{"two documents", goodConfig + "---\na: 1\n", "f: more than one document"},
		{"syntax", "machines: [\n", "f: "},
		{"repeated key", edit("    cpi: 1\n", "    cpi: 1\n    cpi: 2\n"), "f:"},
		{"too long", strings.Repeat("#", MaxConfigBytes+1), "f: more than 1048576 bytes"},
	} {
		cat := DefaultCatalogue()
		err := cat.Read("f", strings.NewReader(c.text))
		switch {
		case err == nil:
			t.Errorf("%s: no error", c.name)
		case strings.HasSuffix(c.want, ":") || strings.HasSuffix(c.want, ": "):
			if !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("%s: error %v, want %s…", c.name, err, c.want)
			}
		case err.Error() != c.want:
			t.Errorf("%s: error %v, want %s", c.name, err, c.want)
		}
		if diff := cmp.Diff(DefaultCatalogue(), cat); diff != "" {
			t.Errorf("%s: the catalogue changed:\n%s", c.name, diff)
		}
	}
	if err := new(Catalogue).ReadFile(t.TempDir() + "/none.yaml"); err == nil {
		t.Error("a missing file: no error")
	}
}

// Whatever is read, it does not panic, and what is accepted is valid.
func FuzzConfig(f *testing.F) {
	f.Add([]byte(goodConfig))
	f.Add([]byte("machines: [{name: x, registers: 1e9}]"))
	f.Add([]byte("functions: &a [*a]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		var c Catalogue
		if c.Read("f", bytes.NewReader(text)) != nil {
			if len(c.Machines)+len(c.Functions) != 0 {
				t.Error("an error left something behind")
			}
			return
		}
		for _, m := range c.Machines {
			if err := m.Validate(); err != nil {
				t.Error(err)
			}
		}
		for _, fn := range c.Functions {
			if err := fn.Validate(); err != nil {
				t.Error(err)
			}
		}
	})
}
