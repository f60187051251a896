package ilp

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// MaxConfigBytes bounds a catalogue file.
const MaxConfigBytes = 1 << 20

// ReadFile adds the machines and functions of a YAML file; see Read.
func (c *Catalogue) ReadFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("catalogue: %w", err)
	}
	defer f.Close()
	return c.Read(path, f)
}

// Read adds machines and functions from YAML:
//
//	machines:
//	  - name: my-card
//	    registers: 9
//	    cache: 1 clock/word       # t_c
//	    memory: 1 clock/word      # t_m
//	    cpi: 1
//	    loop: 3                   # instructions an iteration
//	    clock: 33.333 MHz
//	    word: 4 bytes
//	    entry: 17 clocks          # optional, with entry_accesses
//	    source: where from        # optional
//	functions:
//	  - name: my-sum
//	    state: 1 word
//	    constants: 2              # optional
//	    instructions: 4           # an input block
//	    in: 4 bytes
//	    out: 0 bytes
//
// A quantity that has a unit must carry it. Unknown, missing and repeated keys,
// names already taken, anchors and aliases are errors, reported as
// file:line:key. On an error the catalogue is unchanged. At most MaxConfigBytes
// are read.
func (c *Catalogue) Read(file string, r io.Reader) error {
	text, err := io.ReadAll(io.LimitReader(r, MaxConfigBytes+1))
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if len(text) > MaxConfigBytes {
		return fmt.Errorf("%s: more than %d bytes", file, MaxConfigBytes)
	}
	l := yamlReader{file: file}
	loader, err := yaml.NewLoader(strings.NewReader(string(text)))
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	var doc yaml.Node
	if err := loader.Load(&doc); err != nil {
		if errors.Is(err, io.EOF) {
			return fmt.Errorf("%s: empty file, want machines or functions", file)
		}
		return fmt.Errorf("%s: %w", file, err)
	}
	var second yaml.Node
	if err := loader.Load(&second); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: more than one document", file)
	}
	if doc.Kind != yaml.DocumentNode || len(doc.Content) != 1 {
		return fmt.Errorf("%s: empty file, want machines or functions", file)
	}
	next := Catalogue{Machines: slices.Clone(c.Machines), Functions: slices.Clone(c.Functions)}
	root, err := l.mapping(doc.Content[0], "top level", nil, []string{"machines", "functions"})
	if err != nil {
		return err
	}
	for _, n := range root.sequence("machines") {
		m, err := l.machine(n)
		if err != nil {
			return err
		}
		if _, err := next.Machine(m.Name); err == nil {
			return l.errorf(n, "name", "machine %q exists already", m.Name)
		}
		next.Machines = append(next.Machines, m)
	}
	for _, n := range root.sequence("functions") {
		f, err := l.function(n)
		if err != nil {
			return err
		}
		if _, err := next.Function(f.Name); err == nil {
			return l.errorf(n, "name", "function %q exists already", f.Name)
		}
		next.Functions = append(next.Functions, f)
	}
	if err := root.err(); err != nil {
		return err
	}
	*c = next
	return nil
}

type yamlReader struct{ file string }

func (l yamlReader) errorf(n *yaml.Node, key, format string, args ...any) error {
	return fmt.Errorf("%s:%d:%s: %s", l.file, n.Line, key, fmt.Sprintf(format, args...))
}

// fields is a mapping being read. The first error sticks.
type fields struct {
	l     yamlReader
	where *yaml.Node
	keys  []string
	value []*yaml.Node
	first error
}

func (f *fields) err() error { return f.first }

func (f *fields) fail(n *yaml.Node, key, format string, args ...any) {
	if f.first == nil {
		f.first = f.l.errorf(n, key, format, args...)
	}
}

// mapping checks that n is a mapping with the required keys, and with no other
// than those and the optional ones.
func (l yamlReader) mapping(n *yaml.Node, what string, required, optional []string) (*fields, error) {
	if n.Kind != yaml.MappingNode || n.Anchor != "" {
		return nil, l.errorf(n, what, "want a mapping without anchor or alias")
	}
	f := &fields{l: l, where: n}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		if k.Kind != yaml.ScalarNode || !slices.Contains(required, k.Value) && !slices.Contains(optional, k.Value) {
			return nil, l.errorf(k, k.Value, "unknown key, want one of %s", strings.Join(append(slices.Clone(required), optional...), ", "))
		}
		if slices.Contains(f.keys, k.Value) {
			return nil, l.errorf(k, k.Value, "key given twice")
		}
		f.keys = append(f.keys, k.Value)
		f.value = append(f.value, v)
	}
	for _, k := range required {
		if !slices.Contains(f.keys, k) {
			return nil, l.errorf(n, k, "missing in this %s", what)
		}
	}
	return f, nil
}

func (f *fields) node(key string) *yaml.Node {
	if i := slices.Index(f.keys, key); i >= 0 {
		return f.value[i]
	}
	return nil
}

func (f *fields) sequence(key string) []*yaml.Node {
	n := f.node(key)
	if n == nil {
		return nil
	}
	if n.Kind != yaml.SequenceNode || n.Anchor != "" {
		f.fail(n, key, "want a list without anchor or alias")
		return nil
	}
	return n.Content
}

func (f *fields) text(key string) string {
	n := f.node(key)
	if n == nil {
		return ""
	}
	if n.Kind != yaml.ScalarNode || n.Anchor != "" || n.Value == "" {
		f.fail(n, key, "want a text")
		return ""
	}
	return n.Value
}

// number reads a number with one of the units; no units means a bare number.
func (f *fields) number(key string, units ...unit) float64 {
	n := f.node(key)
	if n == nil {
		return 0
	}
	want := "a bare number"
	if len(units) > 0 {
		want = fmt.Sprintf("a number with a unit, such as %q", "4 "+units[0].name)
	}
	if n.Kind != yaml.ScalarNode || n.Anchor != "" {
		f.fail(n, key, "want %s", want)
		return 0
	}
	digits, rest := n.Value, ""
	if i := strings.IndexFunc(digits, func(r rune) bool { return !strings.ContainsRune("0123456789.+-", r) }); i >= 0 {
		digits, rest = digits[:i], strings.TrimSpace(digits[i:])
	}
	v, err := strconv.ParseFloat(digits, 64)
	if err != nil {
		f.fail(n, key, "%q is no number, want %s", n.Value, want)
		return 0
	}
	if len(units) == 0 {
		if rest != "" {
			f.fail(n, key, "%q has a unit, want %s", n.Value, want)
		}
		return v
	}
	for _, u := range units {
		if rest == u.name {
			return v * u.scale
		}
	}
	f.fail(n, key, "%q: want %s", n.Value, want)
	return 0
}

func (f *fields) whole(key string, units ...unit) int {
	v := f.number(key, units...)
	if v != float64(int(v)) {
		f.fail(f.node(key), key, "want a whole number, not %g", v)
		return 0
	}
	return int(v)
}

// unit is a unit's name and its size in the field's own unit.
type unit struct {
	name  string
	scale float64
}

var (
	clocksPerWord = []unit{{"clocks/word", 1}, {"clock/word", 1}}
	clocks        = []unit{{"clocks", 1}, {"clock", 1}, {"cycles", 1}, {"cycle", 1}}
	frequency     = []unit{{"MHz", 1}, {"GHz", 1e3}, {"kHz", 1e-3}, {"Hz", 1e-6}}
	byteSize      = []unit{{"bytes", 1}, {"byte", 1}, {"B", 1}}
	words         = []unit{{"words", 1}, {"word", 1}}
)

func (l yamlReader) machine(n *yaml.Node) (Machine, error) {
	f, err := l.mapping(n, "machine",
		[]string{"name", "registers", "cache", "memory", "cpi", "loop", "clock", "word"},
		[]string{"entry", "entry_accesses", "source"})
	if err != nil {
		return Machine{}, err
	}
	m := Machine{
		Name:             f.text("name"),
		Registers:        f.whole("registers"),
		CacheClocks:      f.number("cache", clocksPerWord...),
		MemoryClocks:     f.number("memory", clocksPerWord...),
		CPI:              f.number("cpi"),
		LoopInstructions: f.number("loop"),
		ClockMHz:         f.number("clock", frequency...),
		WordBytes:        f.whole("word", byteSize...),
		EntryClocks:      f.number("entry", clocks...),
		EntryAccesses:    f.number("entry_accesses"),
		Source:           f.text("source"),
	}
	if f.first == nil {
		if err := m.Validate(); err != nil {
			return Machine{}, l.errorf(n, "machine", "%v", err)
		}
	}
	return m, f.first
}

func (l yamlReader) function(n *yaml.Node) (Function, error) {
	f, err := l.mapping(n, "function",
		[]string{"name", "state", "instructions", "in", "out"},
		[]string{"constants", "source"})
	if err != nil {
		return Function{}, err
	}
	fn := Function{
		Name:         f.text("name"),
		StateWords:   f.number("state", words...),
		Constants:    f.number("constants"),
		Instructions: f.number("instructions"),
		In:           f.whole("in", byteSize...),
		Out:          f.whole("out", byteSize...),
		Source:       f.text("source"),
	}
	if f.first == nil {
		if err := fn.Validate(); err != nil {
			return Function{}, l.errorf(n, "function", "%v", err)
		}
	}
	return fn, f.first
}

func unknown(what, name string, have []string) error {
	return fmt.Errorf("unknown %s %q, have %s", what, name, strings.Join(have, ", "))
}
