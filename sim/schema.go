package sim

import (
	"reflect"
	"strconv"
	"strings"

	"spinesim/sim/des"
	"spinesim/sim/traffic"
)

// unitPatterns are what the texts of quantities look like.
var unitPatterns = map[reflect.Type]struct{ pattern, doc string }{
	reflect.TypeFor[des.Time]():      {`^\s*-?[0-9][0-9 ./]*\s*(ps|ns|us|µs|μs|ms|s)\s*$`, "A time with its unit, such as 55 µs."},
	reflect.TypeFor[des.Frequency](): {`^\s*[0-9][0-9 ./]*\s*(Hz|kHz|MHz|GHz)\s*$`, "A frequency with its unit, such as 33 1/3 MHz."},
	reflect.TypeFor[des.Rate]():      {`^\s*[0-9][0-9 ./]*\s*[kMG]?i?B/s\s*$`, "A rate with its unit, such as 160 MB/s."},
	reflect.TypeFor[des.Bytes]():     {`^\s*[0-9][0-9 ./]*\s*[kMG]?i?B\s*$`, "A number of bytes with its unit, such as 1 MiB."},
	reflect.TypeFor[des.Cycles]():    {`^\s*[0-9]+\s*cycles?\s*$`, "A number of cycles, such as 132 cycles."},
	reflect.TypeFor[des.Deviation](): {`^\s*-?[0-9][0-9 ./]*\s*(ppm|ppb)\s*$`, "A deviation, such as 50 ppm."},
	reflect.TypeFor[traffic.Rate]():  {`^\s*[0-9][0-9 .]*\s*([kM]?packets/s|ps|ns|us|µs|μs|ms|s)\s*$`, "A packet rate, such as 10000 packets/s, or a mean gap, such as 95 µs."},
}

// Schema is the JSON Schema (draft 2020-12) of scenario files.
func Schema() map[string]any {
	s := schemaOf(reflect.TypeFor[Scenario](), "")
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	s["title"] = "spinesim scenario"
	return s
}

func schemaOf(t reflect.Type, tag reflect.StructTag) map[string]any {
	s := map[string]any{}
	if d := tag.Get("doc"); d != "" {
		s["description"] = d
	}
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if u, ok := unitPatterns[t]; ok {
		s["type"], s["pattern"] = "string", u.pattern
		if s["description"] == nil {
			s["description"] = u.doc
		}
		return s
	}
	switch t.Kind() {
	case reflect.Struct:
		props := map[string]any{}
		for i := range t.NumField() {
			f := t.Field(i)
			if n := yamlName(f); n != "" {
				props[n] = schemaOf(f.Type, f.Tag)
			}
		}
		s["type"], s["properties"], s["additionalProperties"] = "object", props, false
	case reflect.Map:
		s["type"], s["additionalProperties"] = "object", schemaOf(t.Elem(), "")
		if t.Elem() == reflect.TypeFor[CostSpec]() {
			s["propertyNames"] = map[string]any{"enum": handlerNames()}
		}
	case reflect.Slice:
		s["type"], s["items"] = "array", schemaOf(t.Elem(), "")
	case reflect.Bool:
		s["type"] = "boolean"
	case reflect.Float64:
		// A share may be written as a number or as a percentage.
		s["anyOf"] = []any{bounded(map[string]any{"type": "number"}, tag), map[string]any{"type": "string", "pattern": `^[0-9.]+\s*%$`}}
	case reflect.Int, reflect.Int32, reflect.Int64:
		if e := tag.Get("enum"); e != "" {
			var v []any
			for _, x := range strings.Split(e, ",") {
				n, _ := strconv.Atoi(x)
				v = append(v, n)
			}
			s["enum"] = v
			break
		}
		s["type"] = "integer"
		bounded(s, tag)
	case reflect.Uint64:
		s["type"], s["minimum"] = "integer", 0
	default:
		s["type"] = "string"
		if e := tag.Get("enum"); e != "" {
			s["enum"] = strings.Split(e, ",")
		}
	}
	return s
}

func bounded(s map[string]any, tag reflect.StructTag) map[string]any {
	if v, err := strconv.ParseFloat(tag.Get("min"), 64); err == nil {
		s["minimum"] = v
	}
	if v, err := strconv.ParseFloat(tag.Get("max"), 64); err == nil {
		s["maximum"] = v
	}
	return s
}
