package sweep

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"spinesim/sim"
)

func design(t testing.TB, text string) *Design {
	t.Helper()
	d, err := ParseDesign([]byte(text), "sweep.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestDesign(t *testing.T) {
	d := design(t, `
name: buffers
scenario: fig6.4
settings:
  traffic.packets: 1_000
  traffic.ingress: [0, 1]
replications: 3
seed: 40
factors:
  policy: [default, "Q6 Q3 Q4 Q5 Q0 Q1 Q2"]
  firmware.buffers: {from: 4, to: 64, levels: 3, scale: log}
  traffic.arrivals.rate: {from: 10 kpackets/s, to: 12.5 kpackets/s, levels: 3}
  measure.loss_limit: {from: 0.5%, to: 1%, levels: 2}
`)
	if d.Name != "buffers" || d.Replications != 3 || *d.Seed != 40 || d.Kind != FullDesign {
		t.Errorf("got %+v", d)
	}
	want := []Factor{
		{Path: "policy", Levels: []string{`"default"`, `"Q6 Q3 Q4 Q5 Q0 Q1 Q2"`}},
		{Path: "firmware.buffers", Levels: []string{`"4"`, `"16"`, `"64"`}},
		{Path: "traffic.arrivals.rate", Levels: []string{`"10 kpackets/s"`, `"11.25 kpackets/s"`, `"12.5 kpackets/s"`}},
		{Path: "measure.loss_limit", Levels: []string{`"0.5%"`, `"1%"`}},
	}
	for i, f := range d.Factors {
		f.span, f.From, f.To, f.Log = nil, "", "", false
		if d := cmp.Diff(want[i], f, cmp.AllowUnexported(Factor{}), cmp.AllowUnexported(span{})); d != "" {
			t.Error(d)
		}
	}
	p, err := d.Plan(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	if p.Points != 2*3*3*2 || p.Runs != 3*p.Points {
		t.Errorf("%d points, %d runs", p.Points, p.Runs)
	}
	if d := cmp.Diff([]Parameter{{"policy", ""}, {"firmware.buffers", ""}, {"traffic.arrivals.rate", "packets/s"}, {"measure.loss_limit", ""}}, p.Parameters); d != "" {
		t.Error(d)
	}
	q, w := p.run(2*p.Points + 1)
	if d := cmp.Diff([]any{"default", int64(4), 10000.0, 0.01}, q.params); d != "" || w.Seed != 42 || w.Replication != 2 || !slices.Equal(q.sc.Traffic.Ingress, []int{0, 1}) {
		t.Errorf("run %+v of %+v: %s", w, q, d)
	}
}

func TestDesignMistakes(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"empty":             {"", "sweep.yaml: empty"},
		"comment only":      {"# nothing\n", "sweep.yaml: empty"},
		"no mapping":        {"- 1\n", "sweep.yaml:1: design: want keys and values"},
		"broken":            {"scenario: [", "sweep.yaml: "},
		"two documents":     {"scenario: fig6.4\n---\nscenario: x\n", "more than one document"},
		"unknown key":       {"scenario: fig6.4\nfaktors: {}\n", "sweep.yaml:2: faktors: unknown key, want one of name"},
		"twice":             {"scenario: fig6.4\nscenario: fig6.4\n", "scenario: the key is there twice"},
		"no scenario":       {"factors: {policy: [default]}\n", "sweep.yaml: scenario: missing"},
		"no factors":        {"scenario: fig6.4\n", "sweep.yaml: factors: missing"},
		"scenario unknown":  {"scenario: fig9\nfactors: {policy: [default]}\n", "sweep.yaml:1: scenario: scenario"},
		"design":            {"scenario: fig6.4\ndesign: quarter\n", `sweep.yaml:2: design: "quarter", want full, fraction or latin`},
		"replications":      {"scenario: fig6.4\nreplications: none\n", `sweep.yaml:2: replications: "none", want a whole number, 1 to 100000`},
		"points of full":    {"scenario: fig6.4\npoints: 4\nfactors: {policy: [default]}\n", "sweep.yaml:2: points: it belongs to design: latin"},
		"latin bare":        {"scenario: fig6.4\ndesign: latin\nfactors: {policy: [default]}\n", "points: missing"},
		"fraction bare":     {"scenario: fig6.4\ndesign: fraction\nfactors: {policy: [default]}\n", "fraction: missing"},
		"factor a word":     {"scenario: fig6.4\nfactors:\n  policy: default\n", "sweep.yaml:3: factors.policy: want a list of levels"},
		"no levels":         {"scenario: fig6.4\nfactors:\n  policy: []\n", "sweep.yaml:3: factors.policy: no levels"},
		"level twice":       {"scenario: fig6.4\nfactors:\n  policy: [default, default]\n", "is there twice"},
		"range of words":    {"scenario: fig6.4\nfactors:\n  policy: {from: a, to: b, levels: 2}\n", "want numbers with their unit"},
		"range of units":    {"scenario: fig6.4\nfactors:\n  host.service: {from: 1 ms, to: 2 s, levels: 2}\n", "want the same unit"},
		"range backwards":   {"scenario: fig6.4\nfactors:\n  firmware.buffers: {from: 8, to: 4, levels: 2}\n", "a smaller and a larger"},
		"range of log":      {"scenario: fig6.4\nfactors:\n  firmware.buffers: {from: 0, to: 4, levels: 2, scale: log}\n", "above 0"},
		"range key":         {"scenario: fig6.4\nfactors:\n  firmware.buffers: {from: 1, till: 4}\n", "factors.firmware.buffers.till: unknown key"},
		"range unlevelled":  {"scenario: fig6.4\nfactors:\n  firmware.buffers: {from: 1, to: 4}\n", "sweep.yaml:3: factors.firmware.buffers: want levels"},
		"range of one":      {"scenario: fig6.4\nfactors:\n  firmware.buffers: {from: 1, to: 4, levels: 1}\n", "want a whole number, 2 to"},
		"seed varies":       {"scenario: fig6.4\nfactors:\n  seed: [1, 2]\n", "factors.seed: replications vary the seed"},
		"name varies":       {"scenario: fig6.4\nfactors:\n  name: [a, b]\n", "it changes nothing"},
		"fixed and varying": {"scenario: fig6.4\nsettings: {policy: default}\nfactors:\n  policy: [pci-first]\n", "sweep.yaml:4: factors.policy: settings fix it"},
		"alias":             {"scenario: &s fig6.4\nfactors:\n  policy: [default]\n", "aliases are not supported"},
		"unknown field":     {"scenario: fig6.4\nfactors:\n  firmware.bufers: [4]\n", "sweep.yaml:3: factors.firmware.bufers: unknown key"},
		"unknown setting":   {"scenario: fig6.4\nsettings:\n  traffic.pakets: 4\nfactors:\n  policy: [default]\n", "sweep.yaml:3: settings.traffic.pakets: unknown key"},
		"level out of range": {"scenario: fig6.4\nfactors:\n  firmware.buffers: [4, 0]\n",
			"sweep.yaml:3: factors.firmware.buffers: 0, want 1 … 65536"},
		"level of policy": {"scenario: fig6.4\nfactors:\n  policy: [default, best]\n", `sweep.yaml:3: factors.policy: policy "best" is not known`},
		"only together": {"scenario: fig6.4\nfactors:\n  firmware.max_packet: [1000 B, 1536 B]\n  traffic.sizes.bytes: [900 B, 1500 B]\n",
			"point 2 ("},
		"too many":           {"scenario: fig6.4\nfactors:\n  firmware.buffers: {from: 1, to: 9000, levels: 9000}\n  firmware.credits: {from: 1, to: 4000, levels: 4000}\n", "more than 1000000 combinations"},
		"mapping as a value": {"scenario: fig6.4\nfactors:\n  card: [{preset: lanai9}]\n", "name fields by their whole path"},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := ParseDesign([]byte(c.text), "sweep.yaml")
			if err == nil {
				_, err = d.Plan(t.Context(), 0)
			}
			var in *sim.InputError
			if !errors.As(err, &in) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an input error with %q", err, c.want)
			}
		})
	}
	if _, err := LoadDesign(filepath.Join(t.TempDir(), "none.yaml")); err == nil {
		t.Error("a design that is not there was read")
	}
}

func TestDesignBesideItsScenario(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return p
	}
	write("mine.yaml", "name: mine\nextends: one-card\ntraffic: {packets: 7}\n")
	d, err := LoadDesign(write("design.yaml", "scenario: mine.yaml\nfactors: {firmware.buffers: [4, 8]}\n"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := d.Plan(t.Context(), 0)
	if err != nil || p.Scenario != "mine" || p.Points != 2 || p.Name != "design" {
		t.Errorf("%+v, %v", p, err)
	}
}

// twoLevel is a design of factors a, b, … with two levels each.
func twoLevel(k, levels int) *Design {
	d := &Design{Kind: FractionDesign, at: map[string]int{}}
	for i := range k {
		f := Factor{Path: string(rune('a' + i))}
		for l := range levels {
			f.Levels = append(f.Levels, string(rune('0'+l)))
		}
		d.Factors = append(d.Factors, f)
	}
	return d
}

func TestFullDesign(t *testing.T) {
	d := twoLevel(3, 2)
	d.Factors[1].Levels = []string{"0", "1", "2"}
	d.Kind = FullDesign
	points, _, err := d.points()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range points {
		got = append(got, strings.Join(p, ""))
	}
	want := []string{"000", "001", "010", "011", "020", "021", "100", "101", "110", "111", "120", "121"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// TestFractions checks every fraction against its definition: it is balanced
// in all sets of factors smaller than its resolution, and in some set of that
// size it is not.
func TestFractions(t *testing.T) {
	for _, c := range []struct{ k, levels, fraction, resolution int }{
		// The best resolutions there are (Box, Hunter and Hunter).
		{3, 2, 2, 3}, {4, 2, 2, 4}, {5, 2, 2, 5}, {6, 2, 2, 6}, {5, 2, 4, 3}, {6, 2, 4, 4}, {7, 2, 4, 4},
		{7, 2, 8, 4}, {7, 2, 16, 3}, {8, 2, 16, 4}, {9, 2, 4, 6}, {11, 2, 16, 5},
		{3, 3, 3, 3}, {4, 3, 3, 4}, {4, 3, 9, 3}, {4, 5, 25, 3}, {3, 7, 7, 3},
	} {
		d := twoLevel(c.k, c.levels)
		d.Fraction = c.fraction
		points, info, err := d.points()
		if err != nil {
			t.Fatal(err)
		}
		if want := int(math.Pow(float64(c.levels), float64(c.k))) / c.fraction; len(points) != want || info.Points != want {
			t.Errorf("%d^%d/%d: %d points, want %d", c.levels, c.k, c.fraction, len(points), want)
		}
		if info.Resolution != c.resolution {
			t.Errorf("%d^%d/%d: resolution %d, want %d (%v)", c.levels, c.k, c.fraction, info.Resolution, c.resolution, info.Generators)
		}
		for size := 1; size <= info.Resolution && size < 6; size++ {
			bal := balanced(points, c.k, c.levels, size)
			if bal != (size < info.Resolution) {
				t.Errorf("%d^%d/%d: balanced in all sets of %d factors is %v", c.levels, c.k, c.fraction, size, bal)
			}
		}
		if len(info.Words) == 0 || len(info.Words[0]) != info.Resolution {
			t.Errorf("%d^%d/%d: words %v", c.levels, c.k, c.fraction, info.Words)
		}
		// The same fraction comes from its own generators.
		again := twoLevel(c.k, c.levels)
		again.Fraction, again.Generators = c.fraction, info.Generators
		same, info2, err := again.points()
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(points, same); d != "" || info2.Resolution != info.Resolution {
			t.Errorf("%d^%d/%d again from %v: %s", c.levels, c.k, c.fraction, info.Generators, d)
		}
	}
}

// balanced tells whether all combinations of levels come up equally often in
// every set of so many factors.
func balanced(points []Point, k, levels, size int) bool {
	set := make([]int, size)
	var try func(n, from int) bool
	try = func(n, from int) bool {
		if n == size {
			count := map[string]int{}
			for _, p := range points {
				key := ""
				for _, i := range set {
					key += p[i]
				}
				count[key]++
			}
			want := int(math.Pow(float64(levels), float64(size)))
			for _, c := range count {
				if c*want != len(points) {
					return false
				}
			}
			return true
		}
		for i := from; i < k; i++ {
			set[n] = i
			if !try(n+1, i+1) {
				return false
			}
		}
		return true
	}
	return try(0, 0)
}

func TestFractionMistakes(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Design)
		want   string
	}{
		"uneven":       {func(d *Design) { d.Factors[1].Levels = []string{"0"} }, "as many of each"},
		"four levels":  {func(d *Design) { *d = *twoLevel(4, 4); d.Fraction = 4 }, "needs 2, 3, 5 or 7"},
		"no power":     {func(d *Design) { d.Fraction = 6 }, "not a power"},
		"nothing left": {func(d *Design) { d.Fraction = 16 }, "leaves nothing"},
		"generators":   {func(d *Design) { d.Generators = []Generator{{"d", []string{"a"}}, {"c", []string{"b"}}} }, "needs 1"},
		"who":          {func(d *Design) { d.Generators = []Generator{{"x", []string{"a"}}} }, "not one of the factors"},
		"of whom":      {func(d *Design) { d.Generators = []Generator{{"d", []string{"x"}}} }, "not a factor"},
		"of itself":    {func(d *Design) { d.Generators = []Generator{{"d", []string{"d"}}} }, "itself generated"},
		"constant":     {func(d *Design) { d.Generators = []Generator{{"d", []string{"a", "a"}}} }, "would not vary"},
	} {
		t.Run(name, func(t *testing.T) {
			d := twoLevel(4, 2)
			d.Fraction = 2
			c.change(d)
			var in *sim.InputError
			if _, _, err := d.points(); !errors.As(err, &in) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an input error with %q", err, c.want)
			}
		})
	}
}

func TestLatin(t *testing.T) {
	text := `
scenario: fig6.4
design: latin
points: 24
factors:
  policy: [default, pci-first]
  firmware.buffers: {from: 2, to: 50}
  traffic.arrivals.rate: {from: 10000 packets/s, to: 16000 packets/s}
`
	d := design(t, text)
	points, _, err := d.points()
	if err != nil {
		t.Fatal(err)
	}
	again, _, _ := design(t, text).points()
	if d := cmp.Diff(points, again); d != "" {
		t.Errorf("not the same twice: %s", d)
	}
	other, _, _ := design(t, strings.Replace(text, "points: 24", "points: 24\ndraw: 2", 1)).points()
	if cmp.Equal(points, other) {
		t.Error("another draw gave the same points")
	}
	policies := map[string]int{}
	parts := map[string]bool{}
	for _, p := range points {
		policies[p[0]]++
		if parts[p[2]] {
			t.Errorf("rate %s twice", p[2])
		}
		parts[p[2]] = true
	}
	if policies[`"default"`] != 12 || policies[`"pci-first"`] != 12 || !parts[`"10125 packets/s"`] || !parts[`"15875 packets/s"`] {
		t.Errorf("parts %v, policies %v", parts, policies)
	}
	if p, err := d.Plan(t.Context(), 0); err != nil || p.Points != 24 {
		t.Errorf("%+v, %v", p, err)
	}
}

func TestSpan(t *testing.T) {
	for _, c := range []struct {
		path, from, to string
		log            bool
		share          float64
		want           string
	}{
		{"firmware.buffers", "1", "4", false, 0.5, "3"},
		{"firmware.poll", "10 cycles", "13 cycles", false, 0.5, "12 cycles"},
		{"traffic.arrivals.on", "1 ms", "2 ms", false, 0.25, "1.25 ms"},
		{"firmware.factors.receive", "1", "2", false, 1.0 / 3, "1.33333"},
		{"firmware.factors.receive", "0.123456789", "2", false, 0, "0.123456789"},
		{"traffic.arrivals.rate", "1 kpackets/s", "100 kpackets/s", true, 0.5, "10 kpackets/s"},
		{"traffic.destinations.unroutable", "0%", "10%", false, 0.5, "5%"},
		{"host.service", "-1e3 µs", "1e3 µs", false, 0.5, "0 µs"},
	} {
		s, err := newSpan(c.path, c.from, c.to, c.log)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.at(c.share); got != c.want {
			t.Errorf("%s from %s to %s at %g: %q, want %q", c.path, c.from, c.to, c.share, got, c.want)
		}
	}
}

func TestFieldValue(t *testing.T) {
	sc := scenario(t, "fig6.4", "card.clock=50 MHz", "traffic.arrivals.rate=80 µs", `firmware.costs.Free buffer.cycles=70 cycles`)
	type got struct {
		Value any
		Unit  string
	}
	for path, want := range map[string]got{
		"firmware.buffers": {int64(16), ""}, "card.clock": {50e6, "Hz"}, "card.sram": {nil, ""}, "traffic.arrivals.rate": {12500.0, "packets/s"},
		"traffic.sizes.bytes": {int64(1500), "B"}, "firmware.poll": {int64(sc.Firmware.Poll), "cycles"}, "host.service": {100.0, "µs"},
		"policy": {"default", ""}, "random_ties": {"false", ""}, "measure.loss_limit": {0.005, ""}, "traffic.ingress": {"[0]", ""},
		"firmware.costs.Free buffer.cycles": {int64(70), "cycles"}, "traffic.packets": {int64(sc.Traffic.Packets), ""},
		"traffic.capture.file": {nil, ""}, "no.such": {nil, ""},
	} {
		v, u := FieldValue(sc, path)
		if d := cmp.Diff(want, got{v, u}); d != "" {
			t.Errorf("%s: %s", path, d)
		}
	}
}

func FuzzParseDesign(f *testing.F) {
	f.Add([]byte("scenario: fig6.4\nfactors:\n  policy: [default, pci-first]\n  firmware.buffers: {from: 1, to: 9, levels: 3, scale: log}\n"))
	f.Add([]byte("scenario: fig6.4\ndesign: fraction\nfraction: 2\ngenerators: {c: [a, b]}\nfactors: {a: [1, 2], b: [1, 2], c: [1, 2]}\n"))
	f.Add([]byte("scenario: fig6.4\ndesign: latin\npoints: 5\nfactors: {a: {from: 1e300 x, to: 2e300 x}}\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		d, err := ParseDesign(text, "sweep.yaml")
		if err != nil {
			var in *sim.InputError
			if !errors.As(err, &in) {
				t.Fatalf("%v is no input error", err)
			}
			return
		}
		// Working the points out must neither panic nor take for ever.
		if d.Points > 200 || d.Kind == FullDesign {
			return
		}
		if _, _, err := d.points(); err != nil {
			var in *sim.InputError
			if !errors.As(err, &in) {
				t.Fatalf("%v is no input error", err)
			}
		}
	})
}
