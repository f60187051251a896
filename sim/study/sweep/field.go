package sweep

import (
	"encoding"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"

	"spinesim/sim"
	"spinesim/sim/des"
	"spinesim/sim/traffic"
)

// fieldType is the type of a scenario's field by its path; nil if there is
// none.
func fieldType(path string) reflect.Type {
	t := reflect.TypeFor[sim.Scenario]()
	for key := range strings.SplitSeq(path, ".") {
		if t = childType(t, key); t == nil {
			return nil
		}
	}
	return t
}

func childType(t reflect.Type, key string) reflect.Type {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.Struct:
		for i := range t.NumField() {
			if yamlKey(t.Field(i)) == key {
				return t.Field(i).Type
			}
		}
	case reflect.Map:
		return t.Elem()
	}
	return nil
}

func yamlKey(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
	return name
}

// FieldValue is the value that a scenario has in a field, as it is stored: a
// number in the returned unit where it is one, else text; nil where it is not
// set.
func FieldValue(sc *sim.Scenario, path string) (value any, unit string) {
	v := reflect.ValueOf(sc).Elem()
	for key := range strings.SplitSeq(path, ".") {
		for v.Kind() == reflect.Pointer {
			if v.IsNil() {
				return nil, ""
			}
			v = v.Elem()
		}
		switch v.Kind() {
		case reflect.Struct:
			i := 0
			for i < v.NumField() && yamlKey(v.Type().Field(i)) != key {
				i++
			}
			if i == v.NumField() {
				return nil, ""
			}
			v = v.Field(i)
		case reflect.Map:
			if v = v.MapIndex(reflect.ValueOf(key)); !v.IsValid() {
				return nil, ""
			}
		default:
			return nil, ""
		}
	}
	for v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return nil, ""
		}
		v = v.Elem()
	}
	switch x := v.Interface().(type) {
	case des.Time:
		return x.Microseconds(), "µs"
	case des.Frequency:
		return x.Hz(), "Hz"
	case des.Rate:
		return x.BytesPerSecond(), "B/s"
	case des.Bytes:
		return int64(x), "B"
	case des.Cycles:
		return int64(x), "cycles"
	case traffic.Rate:
		if !x.Set() {
			return nil, "packets/s"
		}
		return x.PerSecond(), "packets/s"
	case encoding.TextMarshaler:
		b, err := x.MarshalText()
		if err != nil {
			return nil, ""
		}
		return string(b), ""
	}
	switch v.Kind() {
	case reflect.String:
		return v.String(), ""
	case reflect.Bool:
		return strconv.FormatBool(v.Bool()), ""
	case reflect.Int, reflect.Int32, reflect.Int64:
		return v.Int(), ""
	case reflect.Uint64:
		return int64(v.Uint()), "" // counts; SQLite has no larger integers
	case reflect.Float64:
		return v.Float(), ""
	}
	return fmt.Sprint(v.Interface()), ""
}

// span is a range of values of a field.
type span struct {
	low, high float64
	unit      string
	log       bool
	whole     bool // the field takes whole numbers
}

// newSpan reads a range from its ends, which must have the same unit.
func newSpan(path, from, to string, log bool) (*span, error) {
	a, ua, aok := SplitUnit(from)
	b, ub, bok := SplitUnit(to)
	switch {
	case !aok || !bok:
		return nil, fmt.Errorf("from %q to %q, want numbers with their unit", from, to)
	case ua != ub:
		return nil, fmt.Errorf("from %q to %q, want the same unit", from, to)
	case !(a < b):
		return nil, fmt.Errorf("from %q to %q, want a smaller and a larger value", from, to)
	case log && a <= 0:
		return nil, fmt.Errorf("from %q in equal ratios, want values above 0", from)
	}
	s := &span{low: a, high: b, unit: ua, log: log}
	if t := fieldType(path); t != nil {
		if t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		// A time is an integer too, but its text may have decimals.
		switch t.Kind() {
		case reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint64:
			s.whole = t != reflect.TypeFor[des.Time]()
		}
	}
	return s, nil
}

// SplitUnit takes "8000 packets/s" apart.
func SplitUnit(s string) (v float64, unit string, ok bool) {
	s = strings.TrimSpace(s)
	n := 0
	for n < len(s) && strings.IndexByte("+-0123456789.eE_", s[n]) >= 0 {
		n++
	}
	// An exponent needs digits: "5 E" is no number.
	v, err := strconv.ParseFloat(strings.ReplaceAll(s[:n], "_", ""), 64)
	return v, strings.TrimSpace(s[n:]), err == nil && !math.IsInf(v, 0) && !math.IsNaN(v)
}

// at is the value a share of the way through the range, to six digits.
func (s *span) at(share float64) string {
	v := s.low + share*(s.high-s.low)
	if s.log {
		v = s.low * math.Pow(s.high/s.low, share)
	}
	v = min(max(v, s.low), s.high)
	text := ""
	if s.whole {
		text = strconv.FormatFloat(math.Round(v), 'f', -1, 64)
	} else {
		if v != s.low && v != s.high {
			v, _ = strconv.ParseFloat(strconv.FormatFloat(v, 'g', 6, 64), 64)
		}
		text = strconv.FormatFloat(v, 'f', -1, 64)
	}
	if s.unit == "%" {
		return text + s.unit
	}
	if s.unit != "" {
		return text + " " + s.unit
	}
	return text
}

// QuoteValue makes a single value a YAML text that means exactly that.
func QuoteValue(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`, "\r", `\r`).Replace(s) + `"`
}
