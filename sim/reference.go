package sim

import (
	"encoding"
	"fmt"
	"reflect"
	"strings"
)

// Key describes one key of a scenario file.
type Key struct {
	Path    string `json:"key"`
	Default string `json:"default"` // as one writes it; empty when the key may be left out
	Doc     string `json:"doc"`
}

// Reference lists every key of a scenario file, in the file's order, with the
// value it has when nobody sets it.
func Reference() ([]Key, error) {
	base, err := Parse(nil, "base", "")
	if err != nil {
		return nil, err
	}
	var out []Key
	var walk func(v reflect.Value, path string) error
	walk = func(v reflect.Value, path string) error {
		t := v.Type()
		for i := range t.NumField() {
			f, x := t.Field(i), v.Field(i)
			name := yamlName(f)
			if name == "" {
				continue
			}
			k := Key{Path: join(path, name), Doc: f.Tag.Get("doc")}
			if e := f.Tag.Get("enum"); e != "" && !strings.Contains(k.Doc, strings.Split(e, ",")[0]) {
				k.Doc += " One of " + strings.ReplaceAll(e, ",", ", ") + "."
			}
			if x.Kind() == reflect.Pointer {
				if x.IsNil() && x.Type().Elem().Kind() == reflect.Struct && !isText(reflect.New(x.Type().Elem())) {
					out = append(out, k)
					if err := walk(reflect.New(x.Type().Elem()).Elem(), k.Path); err != nil {
						return err
					}
					continue
				}
				out = append(out, k)
				continue
			}
			if x.Kind() == reflect.Struct && !isText(x.Addr()) {
				if err := walk(x, k.Path); err != nil {
					return err
				}
				continue
			}
			d, err := defaultText(x)
			if err != nil {
				return fmt.Errorf("%s: %w", k.Path, err)
			}
			k.Default = d
			out = append(out, k)
		}
		return nil
	}
	err = walk(reflect.ValueOf(base).Elem(), "")
	return out, err
}

func isText(v reflect.Value) bool {
	_, ok := v.Interface().(encoding.TextUnmarshaler)
	return ok
}

func defaultText(v reflect.Value) (string, error) {
	if m, ok := v.Interface().(encoding.TextMarshaler); ok {
		if v.IsZero() && v.Kind() == reflect.Struct {
			return "", nil
		}
		b, err := m.MarshalText()
		return string(b), err
	}
	switch v.Kind() {
	case reflect.Map, reflect.Slice:
		if v.Len() == 0 {
			return "", nil
		}
		return strings.ReplaceAll(fmt.Sprint(v.Interface()), " ", ", "), nil
	case reflect.String:
		return v.String(), nil
	}
	return fmt.Sprint(v.Interface()), nil
}
