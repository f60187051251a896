package traces

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var updateFormats = flag.Bool("update-formats", false, "rewrite the golden files of the text formats")

// The text formats, byte for byte, so that a change of one is seen. The listing
// is the source: the others are converted from what is read back from it.
func TestGolden(t *testing.T) {
	path := func(ext string) string { return filepath.Join("testdata", "packet"+ext) }
	if *updateFormats {
		recs := sample(t, 61, 70)
		if err := os.WriteFile(path(".txt"), encode(t, &formats[4], synthMeta(61), recs), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	listing, err := os.ReadFile(path(".txt"))
	if err != nil {
		t.Fatal(err)
	}
	meta, recs, _, err := decode(&formats[4], listing, ReadOptions{Path: path(".txt")})
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range []int{1, 4, 5, 6} {
		f := &formats[i]
		got := encode(t, f, meta, recs)
		golden := path(f.Extensions[0])
		if *updateFormats {
			if err := os.WriteFile(golden, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is another (-want +got)\n%s", golden, cmp.Diff(string(want), string(got)))
		}
	}
}
