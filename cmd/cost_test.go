package cmd

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"spinesim/router/bihash"
)

// TestCostILP: Table 2 as it is printed.
func TestCostILP(t *testing.T) {
	code, out, errs := spinesim("cost", "ilp", "--json")
	if code != 0 {
		t.Fatal(errs)
	}
	var r struct {
		Table2 struct {
			Mismatches int `json:"mismatches"`
			Systems    []struct {
				Machine struct{ Name string }
				Cells   []struct {
					Printed float64 `json:"printed_ns_per_byte"`
				}
			}
		}
		Figures struct{ Lines, Surfaces []any }
	}
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatal(err)
	}
	printed := map[string][]float64{}
	for _, s := range r.Table2.Systems {
		for _, c := range s.Cells {
			printed[s.Machine.Name] = append(printed[s.Machine.Name], c.Printed)
		}
	}
	for name, want := range map[string][]float64{"hp735": {87, 52, 49, 37}, "ss20": {81, 40, 58, 31}} {
		got := printed[name]
		for i := range want {
			if len(got) != 4 || got[i] != want[i] {
				t.Errorf("%s: %v, printed are %v", name, got, want)
				break
			}
		}
	}
	if r.Table2.Mismatches != 0 || len(r.Figures.Lines) == 0 || len(r.Figures.Surfaces) == 0 {
		t.Errorf("%d mismatches, %d and %d figures", r.Table2.Mismatches, len(r.Figures.Lines), len(r.Figures.Surfaces))
	}
	code, out, errs = spinesim("cost", "ilp", "--machine", "lanai4", "--function", "bswap", "--function", "cksum", "--simulate", "--set", "traffic.packets=20")
	if code != 0 || !strings.Contains(out, "bswap → cksum on lanai4") || !strings.Contains(out, "dma-checksum") {
		t.Errorf("status %d: %s\n%s", code, errs, out)
	}
}

func TestCostHost(t *testing.T) {
	code, out, errs := spinesim("cost", "host", "--flush", "lazy", "--processor", "powerbook-g3", "--notify", "poll", "--poll-interval", "20 µs")
	if code != 0 || !strings.Contains(out, "not modelled") || !strings.Contains(out, "calibrated") {
		t.Errorf("status %d: %s\n%s", code, errs, out)
	}
	if code, out, errs = spinesim("cost", "host", "--json"); code != 0 || !json.Valid([]byte(out)) {
		t.Errorf("status %d: %s", code, errs)
	}
}

// TestCostBihash draws, from a report of few points.
func TestCostBihash(t *testing.T) {
	pub, err := bihash.Figures()
	if err != nil {
		t.Fatal(err)
	}
	r := &bihash.Report{Published: pub}
	c, err := bihash.Crossover(bihash.DefaultNode(), bihash.Haswell(), bihash.DefaultSpec(), []int{1, 300, 700}, bihash.RoundRobin, bihash.PrefetchBucket)
	if err != nil {
		t.Fatal(err)
	}
	r.Crossover = append(r.Crossover, c)
	f, err := bihash.Frames(bihash.DefaultNode(), bihash.Haswell(), bihash.DefaultSpec(), 10, bihash.PrefetchBucket, 0.5)
	if err != nil {
		t.Fatal(err)
	}
	r.Frames = append(r.Frames, f)
	path := filepath.Join(t.TempDir(), "x.svg")
	if err := saveCrossover(path, r); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(b), "Haswell (published") {
		t.Errorf("the picture does not name its line: %v", err)
	}
}

func TestCostMistakes(t *testing.T) {
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"cost", "ilp", "--machine", "pdp11", "--function", "bswap"}, "pdp11"},
		{[]string{"cost", "ilp", "--machine", "ss2"}, "--function"},
		{[]string{"cost", "ilp", "--hit-rate", "0.5"}, "--machine"},
		{[]string{"cost", "ilp", "--machine", "ss2", "--function", "bswap", "--hit-rate", "2"}, "hit rate"},
		{[]string{"cost", "ilp", "--file", "absent.yaml", "--machine", "ss2"}, "absent.yaml"},
		{[]string{"cost", "ilp", "--set", "seed=2"}, "--simulate"},
		{[]string{"cost", "ilp", "--simulate", "--set", "traffic.sizes.kind=imix"}, "traffic.sizes.kind"},
		{[]string{"cost", "bihash", "--plot", "x.bmp"}, "x.bmp"},
		{[]string{"cost", "bihash", "--scenario", "l2"}, "--simulate"},
		{[]string{"cost", "host", "--processor", "z80"}, "z80"},
		{[]string{"cost", "host", "--notify", "shout"}, "shout"},
		{[]string{"cost", "host", "--flush", "often"}, "often"},
		{[]string{"cost", "host", "--poll-interval", "50"}, "--poll-interval"},
		{[]string{"cost", "host", "--copies", "99"}, "copies"},
		{[]string{"cost", "nothing"}, "nothing"},
	} {
		code, stdout, stderr := spinesim(tc.args...)
		if code != 2 || !strings.Contains(stderr, tc.want) || stdout != "" {
			t.Errorf("spinesim %q: status %d, %q, want 2 and a line that names %q", tc.args, code, stderr, tc.want)
		}
	}
}
