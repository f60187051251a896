package sim

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite golden files")

// pinnedRuns are the presets as every way of execution runs them, a few packets
// each: the firmware in C is slower.
var pinnedRuns = []struct {
	execution string
	packets   string
}{
	{"table", "400"},
	{"handlers", "60"},
	{"full", "40"},
}

// TestPinned: scenario hash, fingerprint and every measure of each preset are
// what they were. A change that is meant to move a figure rewrites the files
// with -update and names the figure; any other moves none.
func TestPinned(t *testing.T) {
	for _, preset := range PresetNames() {
		for _, v := range pinnedRuns {
			t.Run(preset+"/"+v.execution, func(t *testing.T) {
				t.Parallel()
				golden := filepath.Join("testdata", "pinned", preset+"-"+v.execution+".json")
				got := pinned(t, preset, v.execution, v.packets)
				if *update {
					if err := os.WriteFile(golden, got, 0o644); err != nil {
						t.Fatal(err)
					}
					return
				}
				want, err := os.ReadFile(golden)
				if err != nil {
					t.Fatal(err)
				}
				if d := cmp.Diff(string(want), string(got)); d != "" {
					t.Errorf("-pinned +now:\n%.3000s", d)
				}
			})
		}
	}
}

// pinned is the result of a preset as JSON, or the reason why it does not run
// that way. What depends on the machine that computed it is left out.
func pinned(t *testing.T, preset, execution, packets string) []byte {
	t.Helper()
	sc, err := Load(preset, "firmware.execution="+execution, "traffic.packets="+packets)
	if err != nil {
		return []byte("does not run: " + err.Error() + "\n")
	}
	r := mustRun(t, sc, Options{Check: true})
	r.WallS, r.Version = 0, ""
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return append(b, '\n')
}
