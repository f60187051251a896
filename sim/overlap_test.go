package sim

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"spinesim/traces"
)

// TestOverlapChangesNothing: the results, and the bytes of a record, are those
// of a run whose measures and sinks keep step with it.
func TestOverlapChangesNothing(t *testing.T) {
	for _, settings := range [][]string{
		{"fig6.4", "traffic.packets=3000"},
		{"four-way", "traffic.packets=500", "policy=pci-first"},
		{"fig6.4", "traffic.packets=300", "firmware.execution=handlers"},
	} {
		run := func(over bool) (string, []byte) {
			var file bytes.Buffer
			late := &lateSink{}
			opt := Options{Overlap: over, Check: true, Sinks: []traces.Sink{late}, Expand: []Span{{From: 1e9, To: 2e9}}}
			s, err := New(mustLoad(t, settings[0], settings[1:]...), opt)
			if err != nil {
				t.Fatal(err)
			}
			w, err := traces.NewRecWriter(&file, s.Meta())
			if err != nil {
				t.Fatal(err)
			}
			late.Sink = w
			r, err := s.Run(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			r.WallS = 0
			text, err := json.MarshalIndent(r, "", " ")
			if err != nil {
				t.Fatal(err)
			}
			return string(text), file.Bytes()
		}
		want, text := run(false)
		got, same := run(true)
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%v: in step (-), overlapped (+):\n%s", settings, d)
		}
		if !bytes.Equal(text, same) || len(text) == 0 {
			t.Errorf("%v: the records differ, of %d and %d bytes", settings, len(text), len(same))
		}
	}
}

// refusing is a sink that takes nothing.
type refusing struct{ err error }

func (r refusing) Record(*traces.Record) error { return r.err }

// TestOverlapStopsEarly: a run whose record cannot be written does not go on to
// its end.
func TestOverlapStopsEarly(t *testing.T) {
	full := errors.New("disk full")
	for _, over := range []bool{false, true} {
		var after int
		failing := sinkFunc(func(*traces.Record) { after++ })
		_, err := Run(context.Background(), mustLoad(t, "fig6.4", "traffic.packets=200000"), Options{Overlap: over, Sinks: []traces.Sink{failing, refusing{full}}})
		if !errors.Is(err, full) {
			t.Errorf("overlap %v: %v", over, err)
		}
		if after > 100_000 {
			t.Errorf("overlap %v: %d records after the first error", over, after)
		}
	}
}
