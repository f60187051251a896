package infer

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"spinesim/sim"
	"spinesim/sim/study/internal/runs"
	"spinesim/sim/study/sweep"
)

// Kind is how a choice is distributed before anything is compared.
type Kind string

// The kinds.
const (
	Uniform    Kind = "uniform" // every value of a range alike
	LogUniform Kind = "log"     // every ratio of a range alike
	Levels     Kind = "levels"  // some values in an order
	Options    Kind = "options" // some values, or groups of settings, without an order
)

// Choice is something that the sources leave open, with the distribution that
// stands for what is known of it beforehand.
type Choice struct {
	Name string   `json:"name"`
	Keys []string `json:"keys,omitempty"` // of the scenario; all of them take the value
	Kind Kind     `json:"kind"`
	// Low and High bound a range, in Unit.
	Low  float64 `json:"low,omitempty"`
	High float64 `json:"high,omitempty"`
	Unit string  `json:"unit,omitempty"`
	// Whole takes whole numbers of a range only, its ends included.
	Whole bool `json:"whole,omitempty"`
	// Values are the levels, or the names of the options; Weights their prior
	// probabilities.
	Values  []string  `json:"values,omitempty"`
	Weights []float64 `json:"weights,omitempty"`
	// Why defends the range and its distribution.
	Why string `json:"why"`
	// When, unless empty, names an earlier choice of options, and the options
	// with which this one means anything.
	When   string   `json:"when,omitempty"`
	WhenIs []string `json:"when_is,omitempty"`

	settings [][]string // of options that are groups of settings
}

// Choices are all open choices of a machine.
type Choices struct {
	Name     string
	Scenario string   // what all machines start from, as sim.Load takes it
	Settings []string // what holds for all of them, as sim.Load takes settings
	List     []Choice
	Text     []byte // the file

	file string
}

// maxChoicesFile bounds the file (chosen).
const maxChoicesFile = 1 << 20

//go:embed choices.yaml
var published []byte

// PublishedChoices are what the sources of Figure 6.4 leave open.
func PublishedChoices() (*Choices, error) { return ParseChoices(published, "choices.yaml") }

// LoadChoices reads a file of choices. A mistake is an *sim.InputError that
// names file, line and key.
func LoadChoices(path string) (*Choices, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, &sim.InputError{Err: fmt.Errorf("choices %w", err)}
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxChoicesFile+1))
	if err != nil {
		return nil, &sim.InputError{Err: fmt.Errorf("choices %w", err)}
	}
	return ParseChoices(text, path)
}

// ParseChoices reads choices from text; the file's name is for errors.
func ParseChoices(text []byte, file string) (*Choices, error) {
	if len(text) > maxChoicesFile {
		return nil, runs.InputErrorf("%s: more than %d bytes", file, maxChoicesFile)
	}
	var doc yaml.Node
	dec := yaml.NewDecoder(bytes.NewReader(text))
	switch err := dec.Decode(&doc); {
	case errors.Is(err, io.EOF) || err == nil && len(doc.Content) != 1:
		return nil, runs.InputErrorf("%s: empty, want a scenario and choices", file)
	case err != nil:
		return nil, runs.InputErrorf("%s: %s", file, strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, runs.InputErrorf("%s: more than one document", file)
	}
	r := &choicesReader{file: file, c: &Choices{file: file, Text: text}}
	if err := r.top(doc.Content[0]); err != nil {
		return nil, err
	}
	return r.c, r.check(doc.Content[0])
}

type choicesReader struct {
	file string
	c    *Choices
}

func (r *choicesReader) fail(n *yaml.Node, key, format string, args ...any) error {
	return runs.InputErrorf("%s:%d: %s: %w", r.file, n.Line, key, fmt.Errorf(format, args...))
}

// each walks a mapping.
func (r *choicesReader) each(n *yaml.Node, path string, known []string, do func(key string, k, v *yaml.Node) error) error {
	if n.Kind != yaml.MappingNode {
		return r.fail(n, strings.TrimPrefix(path, "."), "want keys and values")
	}
	seen := map[string]bool{}
	for i := 0; i < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		key := strings.TrimPrefix(path+"."+k.Value, ".")
		switch {
		case v.Kind == yaml.AliasNode || v.Anchor != "":
			return r.fail(v, key, "aliases are not supported")
		case seen[k.Value]:
			return r.fail(k, key, "the key is there twice")
		case known != nil && !slices.Contains(known, k.Value):
			return r.fail(k, key, "unknown key, want one of %s", strings.Join(known, ", "))
		}
		seen[k.Value] = true
		if err := do(k.Value, k, v); err != nil {
			return err
		}
	}
	return nil
}

func (r *choicesReader) text(n *yaml.Node, key string) (string, error) {
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		return "", r.fail(n, key, "want a single value")
	}
	return n.Value, nil
}

func (r *choicesReader) list(n *yaml.Node, key string) ([]string, error) {
	if n.Kind != yaml.SequenceNode || len(n.Content) == 0 {
		return nil, r.fail(n, key, "want a list of values, [a, b]")
	}
	var out []string
	for _, c := range n.Content {
		s, err := r.text(c, key)
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

func (r *choicesReader) settings(n *yaml.Node, path string) ([]string, error) {
	var out []string
	err := r.each(n, path, nil, func(key string, _, v *yaml.Node) error {
		s, err := r.text(v, path+"."+key)
		out = append(out, key+"="+sweep.QuoteValue(s))
		return err
	})
	return out, err
}

func (r *choicesReader) top(n *yaml.Node) error {
	return r.each(n, "", []string{"name", "scenario", "settings", "choices"}, func(key string, _, v *yaml.Node) (err error) {
		switch key {
		case "name":
			r.c.Name, err = r.text(v, key)
		case "scenario":
			r.c.Scenario, err = r.text(v, key)
		case "settings":
			r.c.Settings, err = r.settings(v, key)
		case "choices":
			err = r.each(v, key, nil, func(name string, k, v *yaml.Node) error { return r.choice(name, k, v) })
		}
		return err
	})
}

func (r *choicesReader) choice(name string, k, n *yaml.Node) error {
	c := Choice{Name: name}
	path := "choices." + name
	known := []string{"keys", "uniform", "log", "levels", "options", "weights", "whole", "why", "when"}
	err := r.each(n, path, known, func(key string, _, v *yaml.Node) (err error) {
		at := path + "." + key
		switch key {
		case "keys":
			c.Keys, err = r.list(v, at)
		case "uniform", "log":
			err = r.span(&c, Kind(key), v, at)
		case "levels":
			c.Kind = Levels
			c.Values, err = r.list(v, at)
		case "options":
			err = r.options(&c, v, at)
		case "weights":
			err = r.weights(&c, v, at)
		case "whole":
			var s string
			if s, err = r.text(v, at); err == nil && s != "true" && s != "false" {
				err = r.fail(v, at, "%q, want true or false", s)
			}
			c.Whole = s == "true"
		case "why":
			c.Why, err = r.text(v, at)
		case "when":
			err = r.when(&c, v, at)
		}
		return err
	})
	if err != nil {
		return err
	}
	if err := r.complete(&c, k, path); err != nil {
		return err
	}
	r.c.List = append(r.c.List, c)
	return nil
}

// span reads the ends of a range.
func (r *choicesReader) span(c *Choice, kind Kind, n *yaml.Node, at string) error {
	ends, err := r.list(n, at)
	if err != nil {
		return err
	}
	if len(ends) != 2 {
		return r.fail(n, at, "want two ends, [low, high]")
	}
	lo, u1, ok1 := sweep.SplitUnit(ends[0])
	hi, u2, ok2 := sweep.SplitUnit(ends[1])
	switch {
	case !ok1 || !ok2:
		return r.fail(n, at, "%q to %q, want numbers with their unit", ends[0], ends[1])
	case u1 != u2:
		return r.fail(n, at, "%q to %q, want the same unit", ends[0], ends[1])
	case !(lo < hi):
		return r.fail(n, at, "%q to %q, want a smaller and a larger value", ends[0], ends[1])
	case kind == LogUniform && lo <= 0:
		return r.fail(n, at, "%q in equal ratios, want values above 0", ends[0])
	}
	c.Kind, c.Low, c.High, c.Unit = kind, lo, hi, u1
	return nil
}

// options reads a list of values, or a mapping from names to settings.
func (r *choicesReader) options(c *Choice, n *yaml.Node, at string) (err error) {
	c.Kind = Options
	if n.Kind == yaml.SequenceNode {
		c.Values, err = r.list(n, at)
		return err
	}
	return r.each(n, at, nil, func(name string, _, v *yaml.Node) error {
		s, err := r.settings(v, at+"."+name)
		c.Values, c.settings = append(c.Values, name), append(c.settings, s)
		return err
	})
}

func (r *choicesReader) weights(c *Choice, n *yaml.Node, at string) error {
	ws, err := r.list(n, at)
	if err != nil {
		return err
	}
	for _, w := range ws {
		v, err := strconv.ParseFloat(w, 64)
		if err != nil || !(v > 0) || math.IsInf(v, 0) {
			return r.fail(n, at, "%q, want numbers above 0", w)
		}
		c.Weights = append(c.Weights, v)
	}
	return nil
}

func (r *choicesReader) when(c *Choice, n *yaml.Node, at string) error {
	if n.Kind != yaml.MappingNode || len(n.Content) != 2 {
		return r.fail(n, at, "want one choice and its options, {choice: [option]}")
	}
	c.When = n.Content[0].Value
	is, err := r.list(n.Content[1], at)
	if err != nil {
		return err
	}
	c.WhenIs = is
	i := slices.IndexFunc(r.c.List, func(o Choice) bool { return o.Name == c.When && o.Kind == Options })
	if i < 0 {
		return r.fail(n, at, "%s is not an earlier choice of options", c.When)
	}
	for _, v := range is {
		if !slices.Contains(r.c.List[i].Values, v) {
			return r.fail(n, at, "%s has no option %s, want of %s", c.When, v, strings.Join(r.c.List[i].Values, ", "))
		}
	}
	return nil
}

// complete fills in a choice's weights and looks at what is missing.
func (r *choicesReader) complete(c *Choice, n *yaml.Node, path string) error {
	switch {
	case c.Kind == "":
		return r.fail(n, path, "want uniform, log, levels or options")
	case c.Why == "":
		return r.fail(n, path, "want why: what defends this distribution")
	case len(c.Keys) == 0 && c.settings == nil:
		return r.fail(n, path, "want keys: the scenario's keys that take the value")
	case len(c.Keys) > 0 && c.settings != nil:
		return r.fail(n, path, "options that are settings name their keys themselves")
	case c.Whole && c.Kind != Uniform && c.Kind != LogUniform:
		return r.fail(n, path, "whole belongs to a range")
	case c.Whole && (c.Low != math.Trunc(c.Low) || c.High != math.Trunc(c.High)):
		return r.fail(n, path, "want whole numbers as ends of a range of whole numbers")
	}
	if c.Kind == Uniform || c.Kind == LogUniform {
		if c.Weights != nil {
			return r.fail(n, path, "weights belong to levels and options")
		}
		return nil
	}
	if len(c.Values) < 2 {
		return r.fail(n, path, "want at least two values")
	}
	for i, v := range c.Values {
		if slices.Contains(c.Values[:i], v) {
			return r.fail(n, path, "the value %s is there twice", v)
		}
	}
	if c.Weights == nil {
		for range c.Values {
			c.Weights = append(c.Weights, 1)
		}
	}
	if len(c.Weights) != len(c.Values) {
		return r.fail(n, path, "%d weights for %d values", len(c.Weights), len(c.Values))
	}
	sum := 0.0
	for _, w := range c.Weights {
		sum += w
	}
	for i := range c.Weights {
		c.Weights[i] /= sum
	}
	return nil
}

// check looks at all choices together and tries every one on the scenario.
func (r *choicesReader) check(n *yaml.Node) error {
	c := r.c
	switch {
	case c.Scenario == "":
		return r.fail(n, "scenario", "missing, want a preset (%s) or a file", strings.Join(sim.PresetNames(), ", "))
	case len(c.List) == 0:
		return r.fail(n, "choices", "missing, want at least one")
	case len(c.List) > maxDimensions:
		return r.fail(n, "choices", "%d of them, want at most %d", len(c.List), maxDimensions)
	}
	if _, err := sim.Load(c.Scenario, c.Settings...); err != nil {
		return fmt.Errorf("%s: %w", r.file, err)
	}
	for i := range c.List {
		// The middle of every other choice, and both ends of this one.
		for _, end := range []float64{1e-9, 1 - 1e-9} {
			u := slices.Repeat([]float64{0.5}, len(c.List))
			u[i] = end
			if j := c.index(c.List[i].When); j >= 0 {
				u[j] = c.List[j].place(slices.Index(c.List[j].Values, c.List[i].WhenIs[0]))
			}
			if _, err := c.Machine(u); err != nil {
				return fmt.Errorf("%s: choices.%s: %w", r.file, c.List[i].Name, err)
			}
		}
	}
	return nil
}

// index is the place of the choice of that name, -1 without one.
func (c *Choices) index(name string) int {
	return slices.IndexFunc(c.List, func(o Choice) bool { return o.Name == name })
}

// level is which of the values a place in the unit interval stands for.
func (c *Choice) level(u float64) int {
	for i, w := range c.Weights {
		if u -= w; u < 0 {
			return i
		}
	}
	return len(c.Weights) - 1
}

// place is the middle of the part of the unit interval that stands for a value.
func (c *Choice) place(level int) float64 {
	u := 0.0
	for _, w := range c.Weights[:level] {
		u += w
	}
	return u + c.Weights[level]/2
}

// digits that a value of a range keeps (chosen): enough to tell machines apart,
// and few enough to be written down.
const digits = 6

// number is the value of a range at a place in the unit interval.
func (c *Choice) number(u float64) float64 {
	lo, hi := c.Low, c.High
	if c.Whole {
		hi++ // every whole number has its own part
	}
	v := lo + u*(hi-lo)
	if c.Kind == LogUniform {
		v = lo * math.Pow(hi/lo, u)
	}
	if c.Whole {
		return min(max(math.Floor(v), c.Low), c.High)
	}
	v, _ = strconv.ParseFloat(strconv.FormatFloat(v, 'g', digits, 64), 64)
	return min(max(v, c.Low), c.High)
}

// Value is a choice's value at a place in the unit interval, as a scenario has
// it.
func (c *Choice) Value(u float64) string {
	switch c.Kind {
	case Levels, Options:
		return c.Values[c.level(u)]
	}
	text := strconv.FormatFloat(c.number(u), 'f', -1, 64)
	switch c.Unit {
	case "":
	case "%":
		text += "%"
	default:
		text += " " + c.Unit
	}
	return text
}

// Number is a choice's value as a number, where it is one.
func (c *Choice) Number(u float64) (float64, bool) {
	switch c.Kind {
	case Options:
		return 0, false
	case Levels:
		v, _, ok := sweep.SplitUnit(c.Values[c.level(u)])
		return v, ok
	}
	return c.number(u), true
}

// Machine is a value for every choice.
type Machine struct {
	// U is the machine's place in the unit cube, in which the priors are
	// uniform.
	U []float64
	// Settings are the choices' values as sim.Load takes them, and Scenario is
	// what they make.
	Settings []string
	Scenario *sim.Scenario
}

// active tells whether choice i means anything in a machine.
func (c *Choices) active(i int, u []float64) bool {
	o := &c.List[i]
	if o.When == "" {
		return true
	}
	j := c.index(o.When)
	return c.active(j, u) && slices.Contains(o.WhenIs, c.List[j].Value(u[j]))
}

// settings are a machine's values as sim.Load takes them.
func (c *Choices) settings(u []float64) []string {
	var out []string
	for i := range c.List {
		o := &c.List[i]
		if !c.active(i, u) {
			continue
		}
		if o.settings != nil {
			out = append(out, o.settings[o.level(u[i])]...)
			continue
		}
		for _, k := range o.Keys {
			out = append(out, k+"="+sweep.QuoteValue(o.Value(u[i])))
		}
	}
	return out
}

// Machine makes the machine at a place in the unit cube.
func (c *Choices) Machine(u []float64) (*Machine, error) {
	m := &Machine{U: u, Settings: c.settings(u)}
	sc, err := sim.Load(c.Scenario, append(slices.Clone(c.Settings), m.Settings...)...)
	if err != nil {
		return nil, err
	}
	sc.Name, sc.Found = "inferred", nil
	m.Scenario = sc
	return m, nil
}

// density is the prior density at a place, in the choices' own measure up to a
// factor that is the same everywhere: it tells only between levels and options,
// for ranges are uniform in theirs.
func (c *Choices) density(u []float64) float64 {
	d := 1.0
	for i := range c.List {
		if o := &c.List[i]; o.Kind == Levels || o.Kind == Options {
			d *= o.Weights[o.level(u[i])]
		}
	}
	return d
}
