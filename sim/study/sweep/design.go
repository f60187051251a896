package sweep

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"spinesim/sim"
	"spinesim/sim/study/internal/runs"
)

// The kinds of design.
const (
	FullDesign     = "full"     // every combination of the factors' levels
	FractionDesign = "fraction" // a regular fraction of them
	LatinDesign    = "latin"    // a Latin hypercube
)

// Bounds of a sweep (chosen): what a job array can run, and what a design file
// can ask for without filling the memory.
const (
	maxDesignFile = 1 << 20
	maxPoints     = 1_000_000
	maxLevels     = 10_000
	maxFactors    = 200
	maxReps       = 100_000
)

// Design is a designed experiment over fields of a scenario. It is read from
// YAML:
//
//	scenario: fig6.4            # a preset, or a file beside this one
//	settings:                   # what holds at every point
//	  traffic.packets: 20000
//	design: full                # or fraction, or latin
//	replications: 5
//	factors:
//	  policy: [default, pci-first]
//	  firmware.buffers: [4, 16, 64]
//	  traffic.arrivals.rate: {from: 10000 packets/s, to: 16000 packets/s, levels: 7}
//
// A fraction says which with "fraction: 4" (a quarter), and may say how with
// "generators: {factor: [factor, factor]}". A Latin hypercube says how many
// with "points: 200" and may take another draw with "draw: 2". A range may run
// in equal ratios, "scale: log".
type Design struct {
	Name         string
	Description  string
	Scenario     string // as sim.Load takes it
	Settings     []Setting
	Kind         string
	Fraction     int // one point of so many combinations
	Generators   []Generator
	Points       int    // of a Latin hypercube
	Draw         uint64 // seed of a Latin hypercube
	Replications int
	Seed         *uint64 // of the first replication; the scenario's unless given
	Factors      []Factor

	file string
	at   map[string]int // lines of keys
}

// Setting is a field of the scenario and its value.
type Setting struct{ Path, Value string }

// text is the setting as sim.Load takes it.
func (s Setting) text() string { return s.Path + "=" + s.Value }

// Factor is a field of the scenario that varies.
type Factor struct {
	Path   string
	Levels []string // as sim.Load takes values
	// From and To are the ends of a range, empty for a list of levels.
	From, To string
	Log      bool // equal ratios instead of equal steps

	span *span
}

// Generator makes a factor's level the sum of other factors' levels, modulo
// their number.
type Generator struct {
	Factor string
	Of     []string
}

// LoadDesign reads a design file. A mistake is an *sim.InputError that names
// file, line and key.
func LoadDesign(path string) (*Design, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, &sim.InputError{Err: fmt.Errorf("sweep %w", err)}
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxDesignFile+1))
	if err != nil {
		return nil, &sim.InputError{Err: fmt.Errorf("sweep %w", err)}
	}
	return ParseDesign(text, path)
}

// ParseDesign reads a design from text. The file's name is for errors, and its
// directory for a scenario file beside it.
func ParseDesign(text []byte, file string) (*Design, error) {
	if len(text) > maxDesignFile {
		return nil, runs.InputErrorf("%s: more than %d bytes", file, maxDesignFile)
	}
	r := &designReader{file: file, d: &Design{file: file, at: map[string]int{}, Kind: FullDesign, Replications: 1, Draw: 1}}
	dec := yaml.NewDecoder(bytes.NewReader(text))
	var n yaml.Node
	switch err := dec.Decode(&n); {
	case errors.Is(err, io.EOF):
		return nil, runs.InputErrorf("%s: empty, want a design with scenario and factors", file)
	case err != nil:
		return nil, runs.InputErrorf("%s: %s", file, strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, runs.InputErrorf("%s: more than one document", file)
	}
	if len(n.Content) != 1 {
		return nil, runs.InputErrorf("%s: empty, want a design with scenario and factors", file)
	}
	if err := r.top(n.Content[0]); err != nil {
		return nil, err
	}
	d := r.d
	if d.Name == "" {
		d.Name = strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
	}
	if err := d.check(); err != nil {
		return nil, err
	}
	return d, nil
}

// fail is a mistake at a key.
func (d *Design) fail(key, format string, args ...any) error {
	place := d.file
	if l, ok := d.at[key]; ok {
		place += ":" + strconv.Itoa(l)
	}
	return runs.InputErrorf("%s: %s: %w", place, key, fmt.Errorf(format, args...))
}

type designReader struct {
	file string
	d    *Design
}

func (r *designReader) fail(n *yaml.Node, key, format string, args ...any) error {
	return runs.InputErrorf("%s:%d: %s: %w", r.file, n.Line, key, fmt.Errorf(format, args...))
}

// each walks a mapping, noting the lines of its keys.
func (r *designReader) each(n *yaml.Node, path string, do func(key string, v *yaml.Node) error) error {
	what := path
	if what == "" {
		what = "design"
	}
	if n.Kind != yaml.MappingNode {
		return r.fail(n, what, "want keys and values")
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		full := k.Value
		if path != "" {
			full = path + "." + k.Value
		}
		if k.Kind != yaml.ScalarNode {
			return r.fail(k, what, "want single words as keys")
		}
		if seen[k.Value] {
			return r.fail(k, full, "the key is there twice")
		}
		seen[k.Value] = true
		r.d.at[full] = k.Line
		if v.Kind == yaml.AliasNode || v.Anchor != "" {
			return r.fail(v, full, "aliases are not supported here")
		}
		if err := do(k.Value, v); err != nil {
			return err
		}
	}
	return nil
}

func (r *designReader) word(n *yaml.Node, key string) (string, error) {
	if n.Kind != yaml.ScalarNode {
		return "", r.fail(n, key, "want a single value")
	}
	return n.Value, nil
}

func (r *designReader) number(n *yaml.Node, key string, low, high uint64) (uint64, error) {
	w, err := r.word(n, key)
	if err != nil {
		return 0, err
	}
	v, err := strconv.ParseUint(strings.ReplaceAll(w, "_", ""), 10, 64)
	if err != nil || v < low || v > high {
		return 0, r.fail(n, key, "%q, want a whole number, %d to %d", w, low, high)
	}
	return v, nil
}

// value is a field's value as sim.Load takes it behind path=. A single value
// is quoted, so that its text arrives as it is; anything else goes as YAML.
func (r *designReader) value(n *yaml.Node, key string) (string, error) {
	if n.Kind == yaml.ScalarNode {
		return QuoteValue(n.Value), nil
	}
	if n.Kind != yaml.SequenceNode {
		return "", r.fail(n, key, "want a value or a list of values; name fields by their whole path")
	}
	var parts []string
	for _, c := range n.Content {
		if c.Kind != yaml.ScalarNode {
			return "", r.fail(c, key, "want a list of single values")
		}
		parts = append(parts, QuoteValue(c.Value))
	}
	return "[" + strings.Join(parts, ", ") + "]", nil
}

var designKeys = []string{"name", "description", "scenario", "settings", "design", "fraction", "generators", "points", "draw", "replications", "seed", "factors"}

func (r *designReader) top(n *yaml.Node) error {
	d := r.d
	return r.each(n, "", func(key string, v *yaml.Node) (err error) {
		var u uint64
		switch key {
		case "name":
			d.Name, err = r.word(v, key)
		case "description":
			d.Description, err = r.word(v, key)
		case "scenario":
			if d.Scenario, err = r.word(v, key); err == nil {
				d.Scenario = beside(r.file, d.Scenario)
			}
		case "settings":
			return r.each(v, key, func(path string, v *yaml.Node) error {
				t, err := r.value(v, key+"."+path)
				d.Settings = append(d.Settings, Setting{path, t})
				return err
			})
		case "design":
			if d.Kind, err = r.word(v, key); err == nil && d.Kind != FullDesign && d.Kind != FractionDesign && d.Kind != LatinDesign {
				return r.fail(v, key, "%q, want %s, %s or %s", d.Kind, FullDesign, FractionDesign, LatinDesign)
			}
		case "fraction":
			u, err = r.number(v, key, 2, maxPoints)
			d.Fraction = int(u)
		case "generators":
			return r.each(v, key, func(factor string, v *yaml.Node) error {
				g := Generator{Factor: factor}
				if v.Kind != yaml.SequenceNode {
					return r.fail(v, key+"."+factor, "want a list of factors")
				}
				for _, c := range v.Content {
					w, err := r.word(c, key+"."+factor)
					if err != nil {
						return err
					}
					g.Of = append(g.Of, w)
				}
				d.Generators = append(d.Generators, g)
				return nil
			})
		case "points":
			u, err = r.number(v, key, 1, maxPoints)
			d.Points = int(u)
		case "draw":
			d.Draw, err = r.number(v, key, 0, 1<<63)
		case "replications":
			u, err = r.number(v, key, 1, maxReps)
			d.Replications = int(u)
		case "seed":
			u, err = r.number(v, key, 0, 1<<63)
			d.Seed = &u
		case "factors":
			return r.each(v, key, r.factor)
		default:
			return r.fail(v, key, "unknown key, want one of %s", strings.Join(designKeys, ", "))
		}
		return err
	})
}

// factor reads one factor: a list of levels, or a range.
func (r *designReader) factor(path string, v *yaml.Node) error {
	key := "factors." + path
	f := Factor{Path: path}
	if len(r.d.Factors) == maxFactors {
		return r.fail(v, key, "more than %d factors", maxFactors)
	}
	switch v.Kind {
	case yaml.SequenceNode:
		if len(v.Content) > maxLevels {
			return r.fail(v, key, "%d levels, want at most %d", len(v.Content), maxLevels)
		}
		for _, c := range v.Content {
			t, err := r.value(c, key)
			if err != nil {
				return err
			}
			if slices.Contains(f.Levels, t) {
				return r.fail(c, key, "the level %s is there twice", t)
			}
			f.Levels = append(f.Levels, t)
		}
		if len(f.Levels) == 0 {
			return r.fail(v, key, "no levels, want at least one")
		}
	case yaml.MappingNode:
		levels := uint64(0)
		err := r.each(v, key, func(k string, v *yaml.Node) (err error) {
			switch k {
			case "from":
				f.From, err = r.word(v, key+"."+k)
			case "to":
				f.To, err = r.word(v, key+"."+k)
			case "levels":
				levels, err = r.number(v, key+"."+k, 2, maxLevels)
			case "scale":
				var w string
				if w, err = r.word(v, key+"."+k); err == nil && w != "linear" && w != "log" {
					return r.fail(v, key+"."+k, "%q, want linear or log", w)
				}
				f.Log = w == "log"
			default:
				return r.fail(v, key+"."+k, "unknown key, want from, to, levels, scale")
			}
			return err
		})
		if err != nil {
			return err
		}
		if f.From == "" || f.To == "" {
			return r.fail(v, key, "want from and to")
		}
		if f.span, err = newSpan(path, f.From, f.To, f.Log); err != nil {
			return r.fail(v, key, "%w", err)
		}
		if levels > 0 {
			for i := range levels {
				t := QuoteValue(f.span.at(float64(i) / float64(levels-1)))
				if !slices.Contains(f.Levels, t) { // whole numbers may fall together
					f.Levels = append(f.Levels, t)
				}
			}
		}
	default:
		return r.fail(v, key, "want a list of levels, or {from, to, levels}")
	}
	r.d.Factors = append(r.d.Factors, f)
	return nil
}

// beside finds a scenario file named in a design file: one beside it goes
// before the working directory's. The names of presets stay.
func beside(file, scenario string) string {
	if slices.Contains(sim.PresetNames(), scenario) || filepath.IsAbs(scenario) || scenario == "" {
		return scenario
	}
	return filepath.Join(filepath.Dir(file), scenario)
}

// check looks at what only several keys together show.
func (d *Design) check() error {
	if d.Scenario == "" {
		return d.fail("scenario", "missing, want a preset (%s) or a file", strings.Join(sim.PresetNames(), ", "))
	}
	if len(d.Factors) == 0 {
		return d.fail("factors", "missing, want at least one")
	}
	set := map[string]bool{}
	for _, s := range d.Settings {
		set[s.Path] = true
	}
	for _, f := range d.Factors {
		key := "factors." + f.Path
		switch {
		case f.Path == "seed":
			return d.fail(key, "replications vary the seed")
		case f.Path == "name" || f.Path == "description" || f.Path == "found" || f.Path == "extends":
			return d.fail(key, "it changes nothing in a run")
		case set[f.Path]:
			return d.fail(key, "settings fix it")
		case d.Kind != LatinDesign && len(f.Levels) == 0:
			return d.fail(key, "want levels, for only a Latin hypercube takes any value of a range")
		}
	}
	for _, k := range []struct {
		key, kind string
		given     bool
	}{
		{"fraction", FractionDesign, d.Fraction != 0}, {"generators", FractionDesign, len(d.Generators) > 0},
		{"points", LatinDesign, d.Points != 0}, {"draw", LatinDesign, d.Draw != 1},
	} {
		if k.given && d.Kind != k.kind {
			return d.fail(k.key, "it belongs to design: %s, this one is %s", k.kind, d.Kind)
		}
	}
	if d.Kind == LatinDesign && d.Points == 0 {
		return d.fail("points", "missing, want the number of points of the Latin hypercube")
	}
	if d.Kind == FractionDesign && d.Fraction == 0 {
		return d.fail("fraction", "missing, want one of how many combinations is run, such as 4")
	}
	return nil
}
