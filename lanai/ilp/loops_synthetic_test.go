package ilp

import (
	"flag"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"spinesim/lanai/ilp/internal/loopgen"
)

var update = flag.Bool("update", false, "rewrite generated and golden files")

func TestSyntheticLoopsAreCurrent(t *testing.T) {
	want, err := loopgen.Source()
	if err != nil {
		t.Fatal(err)
	}
	const file = "loops_synthetic.go"
	if *update {
		if err := os.WriteFile(file, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s is not what the generator writes (-want +got); run with -update:\n%s", file, diff)
	}
}
