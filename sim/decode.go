package sim

import (
	"bytes"
	"encoding"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// InputError is a mistake in what a user gave: a scenario, a setting, a route
// file, a capture. Its text names the place and what was expected.
type InputError struct{ Err error }

func (e *InputError) Error() string { return e.Err.Error() }
func (e *InputError) Unwrap() error { return e.Err }

func inputErrorf(format string, args ...any) error {
	return &InputError{fmt.Errorf(format, args...)}
}

// document is a scenario as text: its tree, with the file that each node came
// from.
type document struct {
	root  *yaml.Node
	where map[*yaml.Node]string
}

// place is "file:line" of a node.
func (d *document) place(n *yaml.Node) string {
	f := d.where[n]
	if n.Line > 0 {
		return f + ":" + strconv.Itoa(n.Line)
	}
	return f
}

func (d *document) mark(n *yaml.Node, file string) {
	d.where[n] = file
	for _, c := range n.Content {
		d.mark(c, file)
	}
}

// maxExtends bounds a chain of scenarios that extend each other.
const maxExtends = 16

// maxScenario bounds the size of a scenario file, maxKeys the keys of one of
// its mappings.
const (
	maxScenario = 1 << 20
	maxKeys     = 1000
)

// parseDocument reads YAML text into a tree.
func parseDocument(text []byte, file string) (*document, error) {
	if len(text) > maxScenario {
		return nil, inputErrorf("%s: %d bytes, want at most %d", file, len(text), maxScenario)
	}
	var n, more yaml.Node
	in := yaml.NewDecoder(bytes.NewReader(text))
	if err := in.Decode(&n); err != nil && err != io.EOF {
		return nil, inputErrorf("%s: %s", file, strings.TrimPrefix(err.Error(), "yaml: "))
	}
	switch err := in.Decode(&more); {
	case err == nil:
		return nil, inputErrorf("%s:%d: a second document, want one", file, more.Line)
	case err != io.EOF:
		return nil, inputErrorf("%s: %s", file, strings.TrimPrefix(err.Error(), "yaml: "))
	}
	d := &document{where: map[*yaml.Node]string{}}
	if len(n.Content) == 0 {
		d.root = &yaml.Node{Kind: yaml.MappingNode}
		d.where[d.root] = file
		return d, nil
	}
	d.root = n.Content[0]
	if d.root.Kind != yaml.MappingNode {
		return nil, inputErrorf("%s:%d: want keys and values, not %s", file, d.root.Line, kindName(d.root))
	}
	if a := findAlias(d.root); a != nil {
		return nil, inputErrorf("%s:%d: aliases are not supported here", file, a.Line)
	}
	d.mark(d.root, file)
	if k := findTwice(d.root); k != nil {
		return nil, inputErrorf("%s:%d: %s: the key is there twice", file, k.Line, k.Value)
	}
	if k := findCrowd(d.root); k != nil {
		return nil, inputErrorf("%s:%d: %s: more than %d keys side by side", file, k.Line, k.Value, maxKeys)
	}
	return d, nil
}

// findCrowd finds the first key too many of a mapping.
func findCrowd(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.MappingNode && len(n.Content) > 2*maxKeys {
		return n.Content[2*maxKeys]
	}
	for _, c := range n.Content {
		if k := findCrowd(c); k != nil {
			return k
		}
	}
	return nil
}

// findTwice finds a key that its mapping has already.
func findTwice(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.MappingNode {
		seen := make(map[string]bool, len(n.Content)/2)
		for i := 0; i+1 < len(n.Content); i += 2 {
			if k := n.Content[i]; seen[k.Value] {
				return k
			}
			seen[n.Content[i].Value] = true
		}
	}
	for _, c := range n.Content {
		if k := findTwice(c); k != nil {
			return k
		}
	}
	return nil
}

func findAlias(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n
	}
	for _, c := range n.Content {
		if a := findAlias(c); a != nil {
			return a
		}
	}
	return nil
}

func kindName(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "keys and values"
	case yaml.SequenceNode:
		return "a list"
	default:
		return "a single value"
	}
}

// child is the value of a key in a mapping, and the key's node.
func child(m *yaml.Node, key string) (k, v *yaml.Node) {
	for i := 0; i+1 < len(m.Content); i += 2 {
		if m.Content[i].Value == key {
			return m.Content[i], m.Content[i+1]
		}
	}
	return nil, nil
}

// merge lays over onto base: mappings key by key, all else replaced.
func (d *document) merge(base, over *yaml.Node) {
	for i := 0; i+1 < len(over.Content); i += 2 {
		k, v := over.Content[i], over.Content[i+1]
		bk, bv := child(base, k.Value)
		switch {
		case bk == nil:
			base.Content = append(base.Content, k, v)
		case bv.Kind == yaml.MappingNode && v.Kind == yaml.MappingNode:
			d.merge(bv, v)
		default:
			for j := 0; j+1 < len(base.Content); j += 2 {
				if base.Content[j] == bk {
					base.Content[j], base.Content[j+1] = k, v
				}
			}
		}
	}
}

// resolve follows extends.
func resolve(text []byte, file, dir string, depth int) (*document, error) {
	d, err := parseDocument(text, file)
	if err != nil {
		return nil, err
	}
	d.anchor(dir)
	k, v := child(d.root, "extends")
	if k == nil || v.Value == "" {
		return d, nil
	}
	if depth >= maxExtends {
		return nil, inputErrorf("%s: extends: a chain of more than %d scenarios (does it extend itself?)", d.place(k), maxExtends)
	}
	baseText, baseFile, baseDir, err := open(v.Value, dir)
	if err != nil {
		return nil, inputErrorf("%s: extends: %w", d.place(k), err)
	}
	base, err := resolve(baseText, baseFile, baseDir, depth+1)
	if err != nil {
		return nil, err
	}
	for n, f := range d.where {
		base.where[n] = f
	}
	base.merge(base.root, d.root)
	return base, nil
}

// anchor makes the paths in a scenario file relative to that file. Those of
// settings stay relative to the working directory.
func (d *document) anchor(dir string) {
	for _, path := range [][]string{{"routes", "file"}, {"traffic", "capture", "file"}} {
		n := d.root
		for _, key := range path {
			if n != nil && n.Kind == yaml.MappingNode {
				_, n = child(n, key)
			} else {
				n = nil
			}
		}
		if n != nil && n.Kind == yaml.ScalarNode {
			n.Value = beside(dir, n.Value)
		}
	}
	if _, n := child(d.root, "firmware"); n != nil && n.Kind == yaml.MappingNode {
		if _, n = child(n, "extension"); n != nil && n.Kind == yaml.SequenceNode {
			for _, f := range n.Content {
				if f.Kind == yaml.ScalarNode {
					f.Value = beside(dir, f.Value)
				}
			}
		}
	}
}

// scaleKey is the key that factors have replaced.
const scaleKey = "scale"

// refuseScale refuses firmware.scale, which was one factor on all handlers.
func (d *document) refuseScale() error {
	_, firmware := child(d.root, "firmware")
	if firmware == nil || firmware.Kind != yaml.MappingNode {
		return nil
	}
	k, v := child(firmware, scaleKey)
	if k == nil {
		return nil
	}
	return d.errorf(k, "firmware."+scaleKey, "one factor on all handlers is no longer offered, want firmware.factors: {receive: %[1]s, dma: %[1]s, flow: %[1]s, send: %[1]s}, or one of them (route is the router handler's own)", v.Value)
}

// readScale reads firmware.scale of a scenario that was written when there was
// no other factor.
func (d *document) readScale() {
	_, firmware := child(d.root, "firmware")
	if firmware == nil || firmware.Kind != yaml.MappingNode {
		return
	}
	for i := 0; i+1 < len(firmware.Content); i += 2 {
		k, v := firmware.Content[i], firmware.Content[i+1]
		if k.Value != scaleKey || v.Kind != yaml.ScalarNode {
			continue
		}
		groups := &yaml.Node{Kind: yaml.MappingNode, Line: k.Line}
		for _, g := range []string{"receive", "dma", "flow", "send"} {
			groups.Content = append(groups.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: g, Line: k.Line}, v)
		}
		k.Value, firmware.Content[i+1] = "factors", groups
		d.mark(groups, d.where[k])
		return
	}
}

// open finds a scenario by a preset's name or by a file's path.
func open(name, dir string) (text []byte, file, newDir string, err error) {
	if !strings.ContainsAny(name, `/\`) && !strings.HasSuffix(name, ".yaml") && !strings.HasSuffix(name, ".yml") {
		text, err = presets.ReadFile("scenarios/" + name + ".yaml")
		if err == nil {
			return text, name, "", nil
		}
		if _, serr := os.Stat(filepath.Join(dir, name)); serr != nil {
			return nil, "", "", fmt.Errorf("scenario %q is neither a file nor one of %s", name, strings.Join(PresetNames(), ", "))
		}
	}
	path := name
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, name)
	}
	st, err := os.Stat(path)
	if err != nil {
		return nil, "", "", fmt.Errorf("scenario %w", err)
	}
	if st.IsDir() || st.Size() > maxScenario {
		return nil, "", "", fmt.Errorf("scenario %s: want a file of at most %d bytes", path, maxScenario)
	}
	text, err = os.ReadFile(path)
	return text, path, filepath.Dir(path), err
}

// set lays "path=value" over the tree.
func (d *document) set(setting string) error {
	path, value, ok := strings.Cut(setting, "=")
	if !ok || path == "" {
		return inputErrorf("--set %s: want path=value, such as firmware.buffers=32", setting)
	}
	var v yaml.Node
	if err := yaml.Unmarshal([]byte(value), &v); err != nil || len(v.Content) == 0 {
		v = yaml.Node{Kind: yaml.DocumentNode, Content: []*yaml.Node{{Kind: yaml.ScalarNode, Tag: "!!str", Value: value}}}
	}
	node := v.Content[0]
	file := "--set " + path
	d.mark(node, file)
	clearLines(node)
	at := d.root
	keys := strings.Split(path, ".")
	for i, key := range keys {
		k, c := child(at, key)
		if i == len(keys)-1 {
			if k == nil {
				k = &yaml.Node{Kind: yaml.ScalarNode, Value: key}
				d.where[k] = file
				at.Content = append(at.Content, k, node)
				return nil
			}
			for j := 0; j+1 < len(at.Content); j += 2 {
				if at.Content[j] == k {
					nk := &yaml.Node{Kind: yaml.ScalarNode, Value: key}
					d.where[nk] = file
					at.Content[j], at.Content[j+1] = nk, node
				}
			}
			return nil
		}
		if k == nil {
			k = &yaml.Node{Kind: yaml.ScalarNode, Value: key}
			c = &yaml.Node{Kind: yaml.MappingNode}
			d.where[k], d.where[c] = file, file
			at.Content = append(at.Content, k, c)
		}
		if c.Kind != yaml.MappingNode {
			return inputErrorf("--set %s: %s is %s, it has no keys", setting, strings.Join(keys[:i+1], "."), kindName(c))
		}
		at = c
	}
	return nil
}

func clearLines(n *yaml.Node) {
	n.Line = 0
	for _, c := range n.Content {
		clearLines(c)
	}
}

// decode fills a struct from a mapping, strictly.
func (d *document) decode(n *yaml.Node, v reflect.Value, path string) error {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		return d.decode(n, v.Elem(), path)
	}
	if u, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		if n.Kind != yaml.ScalarNode {
			return d.errorf(n, path, "want a single value, not %s", kindName(n))
		}
		if err := u.UnmarshalText([]byte(n.Value)); err != nil {
			return d.errorf(n, path, "%w", err)
		}
		return nil
	}
	switch v.Kind() {
	case reflect.Struct:
		if n.Kind != yaml.MappingNode {
			return d.errorf(n, path, "want keys and values, not %s", kindName(n))
		}
		for i := 0; i+1 < len(n.Content); i += 2 {
			k, c := n.Content[i], n.Content[i+1]
			f, tag, ok := fieldOf(v, k.Value)
			if !ok {
				return d.errorf(k, join(path, k.Value), "unknown key, want one of %s%s", strings.Join(keysOf(v.Type()), ", "), nearest(k.Value, keysOf(v.Type())))
			}
			if err := d.decode(c, f, join(path, k.Value)); err != nil {
				return err
			}
			if err := d.bounds(c, f, tag, join(path, k.Value)); err != nil {
				return err
			}
		}
		return nil
	case reflect.Map:
		if n.Kind != yaml.MappingNode {
			return d.errorf(n, path, "want keys and values, not %s", kindName(n))
		}
		if v.IsNil() {
			v.Set(reflect.MakeMap(v.Type()))
		}
		for i := 0; i+1 < len(n.Content); i += 2 {
			e := reflect.New(v.Type().Elem()).Elem()
			if err := d.decode(n.Content[i+1], e, join(path, n.Content[i].Value)); err != nil {
				return err
			}
			v.SetMapIndex(reflect.ValueOf(n.Content[i].Value), e)
		}
		return nil
	case reflect.Slice:
		if n.Kind != yaml.SequenceNode {
			return d.errorf(n, path, "want a list, not %s", kindName(n))
		}
		v.Set(reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content)))
		for i, c := range n.Content {
			if err := d.decode(c, v.Index(i), path+"["+strconv.Itoa(i)+"]"); err != nil {
				return err
			}
		}
		return nil
	}
	if n.Kind != yaml.ScalarNode {
		return d.errorf(n, path, "want a single value, not %s", kindName(n))
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(n.Value)
	case reflect.Bool:
		b, err := strconv.ParseBool(n.Value)
		if err != nil {
			return d.errorf(n, path, "%q, want true or false", n.Value)
		}
		v.SetBool(b)
	case reflect.Int, reflect.Int32, reflect.Int64:
		i, err := strconv.ParseInt(strings.ReplaceAll(n.Value, "_", ""), 10, 64)
		if err != nil || v.OverflowInt(i) {
			return d.errorf(n, path, "%q, want a whole number", n.Value)
		}
		v.SetInt(i)
	case reflect.Uint64:
		i, err := strconv.ParseUint(strings.ReplaceAll(n.Value, "_", ""), 10, 64)
		if err != nil {
			return d.errorf(n, path, "%q, want a whole number of 0 or more", n.Value)
		}
		v.SetUint(i)
	case reflect.Float64:
		t, percent := strings.CutSuffix(n.Value, "%")
		f, err := strconv.ParseFloat(strings.TrimSpace(t), 64)
		if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
			return d.errorf(n, path, "%q, want a number", n.Value)
		}
		if percent {
			f /= 100
		}
		v.SetFloat(f)
	default:
		return d.errorf(n, path, "cannot hold a value of kind %v", v.Kind())
	}
	return nil
}

// bounds checks a field's enum, min and max.
func (d *document) bounds(n *yaml.Node, v reflect.Value, tag reflect.StructTag, path string) error {
	if e := tag.Get("enum"); e != "" && n.Kind == yaml.ScalarNode {
		if list := strings.Split(e, ","); !slices.Contains(list, n.Value) {
			return d.errorf(n, path, "%q, want one of %s%s", n.Value, strings.Join(list, ", "), nearest(n.Value, list))
		}
	}
	var x float64
	switch v.Kind() {
	case reflect.Int, reflect.Int32, reflect.Int64:
		x = float64(v.Int())
	case reflect.Float64:
		x = v.Float()
	default:
		return nil
	}
	low, high := tag.Get("min"), tag.Get("max")
	if low == "" && high == "" {
		return nil
	}
	lo, lerr := strconv.ParseFloat(low, 64)
	hi, herr := strconv.ParseFloat(high, 64)
	switch {
	case lerr == nil && !(x >= lo) && herr == nil, herr == nil && !(x <= hi) && lerr == nil:
		return d.errorf(n, path, "%s, want %s … %s", n.Value, low, high)
	case lerr == nil && !(x >= lo):
		return d.errorf(n, path, "%s, want at least %s", n.Value, low)
	case herr == nil && !(x <= hi):
		return d.errorf(n, path, "%s, want at most %s", n.Value, high)
	}
	return nil
}

func (d *document) errorf(n *yaml.Node, path, format string, args ...any) error {
	at := d.place(n)
	if strings.HasPrefix(at, "--set ") {
		return inputErrorf("%s: %w", at, fmt.Errorf(format, args...))
	}
	return inputErrorf("%s: %s: %w", at, path, fmt.Errorf(format, args...))
}

// at wraps a problem with the value at a path in the tree, so that checks of
// several values together can still name a line.
func (d *document) at(path string, err error) error {
	if err == nil {
		return nil
	}
	var in *InputError
	if errors.As(err, &in) {
		return err
	}
	n := d.root
	for _, key := range strings.Split(path, ".") {
		if n.Kind != yaml.MappingNode {
			break
		}
		key, index, indexed := strings.Cut(key, "[")
		_, c := child(n, key)
		if c == nil {
			break
		}
		n = c
		if i, err := strconv.Atoi(strings.TrimSuffix(index, "]")); indexed && err == nil && n.Kind == yaml.SequenceNode && i < len(n.Content) {
			n = n.Content[i]
		}
	}
	return d.errorf(n, path, "%w", err)
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func yamlName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
	return name
}

func fieldOf(v reflect.Value, key string) (reflect.Value, reflect.StructTag, bool) {
	t := v.Type()
	for i := range t.NumField() {
		if yamlName(t.Field(i)) == key {
			return v.Field(i), t.Field(i).Tag, true
		}
	}
	return reflect.Value{}, "", false
}

func keysOf(t reflect.Type) []string {
	var out []string
	for i := range t.NumField() {
		if n := yamlName(t.Field(i)); n != "" {
			out = append(out, n)
		}
	}
	return out
}

// nearest suggests the name that differs least from what was written.
func nearest(got string, names []string) string {
	best, dist := "", 3
	for _, n := range names {
		if d := distance(got, n); d < dist {
			best, dist = n, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %s?)", best)
}

// distance counts the single-letter edits between two words.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diag := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			diag, row[j] = row[j], min(row[j]+1, row[j-1]+1, diag+cost)
		}
	}
	return row[len(b)]
}
