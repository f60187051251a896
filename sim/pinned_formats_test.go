package sim

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"spinesim/traces"
)

// TestPinnedFormats: the same record, written in every format, gives the bytes
// that it gave. The scenario and the program's version are left out of the
// record's head, as they have pins of their own.
func TestPinnedFormats(t *testing.T) {
	t.Parallel()
	buf := traces.NewBuffer(nil, 0)
	sc := mustLoad(t, "four-way", "traffic.packets=15", "firmware.execution=handlers")
	s, err := New(sc, Options{Sinks: []traces.Sink{buf}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	meta := *s.Meta()
	meta.Program, meta.ScenarioHash, meta.ScenarioYAML, meta.RunID = "spinesim", "", "", ""
	var got strings.Builder
	fmt.Fprintf(&got, "%d records\n", buf.Len())
	for _, f := range traces.Formats() {
		fmt.Fprintf(&got, "%s %s\n", f.Extensions[0], writtenSum(t, buf, &meta, f.Extensions[0]))
	}
	golden := filepath.Join("testdata", "pinned", "formats.txt")
	if *update {
		if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got.String()); d != "" {
		t.Errorf("-pinned +now:\n%s", d)
	}
}

// writtenSum is the SHA-256 of the record as a file of a format.
func writtenSum(t *testing.T, buf *traces.Buffer, meta *traces.Meta, extension string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "record"+extension)
	w, err := traces.CreateWriter(path, meta)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := traces.Convert(buf.Reader(), w); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%d bytes %x", len(b), sha256.Sum256(b))
}
