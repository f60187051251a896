package sim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v4"

	"spinesim/sim/traffic"
	"spinesim/spine"
	"spinesim/traces"
)

// TestMistakes: each mistake gives one line that names place and expectation.
func TestMistakes(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		want       []string
	}{
		{"misspelt key", "extends: fig6.4\nfirmware:\n  bufers: 3\n", []string{"bad.yaml:3", "firmware.bufers", "unknown key", "did you mean buffers"}},
		{"no unit", "extends: fig6.4\nbus:\n  clock: 33\n", []string{"bad.yaml:3", "bus.clock", "unit"}},
		{"wrong unit", "extends: fig6.4\nfirmware:\n  poll: 12 µs\n", []string{"bad.yaml:3", "firmware.poll", "cycle"}},
		{"bad enum", "firmware:\n  receive: splat\n", []string{"bad.yaml:2", "split, whole, ring", "did you mean split"}},
		{"out of range", "cards: 9\n", []string{"bad.yaml:1", "cards", "1 … 4"}},
		{"contradiction", "cards: 2\ntraffic:\n  ingress: [3]\n", []string{"bad.yaml:3", "traffic.ingress", "card 3"}},
		{"twice", "seed: 1\nseed: 2\n", []string{"bad.yaml", "seed"}},
		{"policy", "policy: fastest\n", []string{"bad.yaml:1", "policy", "round-robin"}},
		{"handler", "firmware:\n  costs:\n    Rx chek header: {cycles: 3 cycles, accesses: 1}\n", []string{"Rx chek header", "did you mean Rx check header"}},
		{"list for value", "seed: [1]\n", []string{"bad.yaml:1", "seed", "single value"}},
		{"not yaml", "seed: [1\n", []string{"bad.yaml"}},
		{"list", "- 1\n", []string{"bad.yaml:1", "keys and values"}},
		{"extends nothing", "extends: nowhere\n", []string{"bad.yaml:1", "extends", "nowhere", "fig6.4"}},
		{"too big for SRAM", "card:\n  sram: 3 B\n", []string{"bad.yaml:2", "card"}},
		{"no number", "traffic:\n  destinations: {kind: zipf, exponent: NaN}\n", []string{"bad.yaml:2", "traffic.destinations.exponent", "want a number"}},
		{"infinite", "firmware:\n  factors: {send: inf}\n", []string{"bad.yaml:2", "firmware.factors.send", "want a number"}},
		{"poll beyond 32 bits", "firmware:\n  poll: 4294967297 cycles\n", []string{"bad.yaml:2", "firmware.poll", "at most 1000000000"}},
		{"cost beyond 32 bits", "firmware:\n  costs:\n    Peer ACK: {cycles: 4294967297 cycles, accesses: 1}\n", []string{"bad.yaml:3", "Peer ACK.cycles", "at most 1000000000"}},
		{"accesses beyond 32 bits", "firmware:\n  costs:\n    Peer ACK: {cycles: 7 cycles, accesses: 4294967297}\n", []string{"bad.yaml:3", "Peer ACK.accesses", "at most 1000000000"}},
		{"firmware field", "seed: 2\nfirmware:\n  header_bytes: 30 B\n", []string{"bad.yaml:3", "firmware.header_bytes", "multiples of 4"}},
		{"firmware range", "seed: 2\nfirmware:\n  header_bytes: 1 GB\n", []string{"bad.yaml:3", "firmware.header_bytes", "20 … 1024"}},
		{"bus field", "seed: 2\nbus:\n  clock: 1 Hz\n", []string{"bad.yaml:3", "bus.clock", "1 kHz"}},
		{"bus timer", "seed: 2\nbus:\n  latency_timer: 2\n", []string{"bad.yaml:3", "bus.latency_timer", "32-byte burst"}},
		{"oscillator of the last card", "card:\n  deviation: [0 ppm, 0 ppm, 0 ppm, -1000000 ppm]\n", []string{"bad.yaml:2", "card.deviation[3]", "offset"}},
		{"two documents", "seed: 1\n---\nseed: 2\n", []string{"bad.yaml:2", "a second document"}},
		{"very many keys", manyKeys(3000), []string{"bad.yaml:1001", "more than 1000 keys"}},
		{"size above buffer", "traffic:\n  sizes: {kind: fixed, bytes: 9000 B}\n", []string{"bad.yaml:2", "traffic.sizes.bytes", "1536 B"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := Parse([]byte(tc.text), "bad.yaml", "")
			if err == nil {
				t.Fatal("no error")
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("more than one line: %q", err)
			}
			for _, w := range tc.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%q does not name %q", err, w)
				}
			}
		})
	}
}

// manyKeys is a mapping of n keys that are all different.
func manyKeys(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "k%d: 1\n", i)
	}
	return b.String()
}

func TestSettings(t *testing.T) {
	sc := mustLoad(t, "fig6.4", "firmware.buffers=64", "traffic.arrivals.rate=80 µs", "policy=Q6 Q3 Q4 Q5 Q0 Q1 Q2", "traffic.ingress=[0, 1]", "measure.loss_limit=1%")
	if sc.Firmware.Buffers != 64 || sc.Traffic.Arrivals.Rate.PerSecond() != 12500 || sc.Policy != "Q6 Q3 Q4 Q5 Q0 Q1 Q2" || len(sc.Traffic.Ingress) != 2 || sc.Measure.LossLimit != 0.01 {
		t.Errorf("settings did not arrive: %+v", sc)
	}
	for _, bad := range []string{"firmware.buffers", "firmware.bufers=3", "policy.name=x", "seed=-1"} {
		_, err := Load("fig6.4", bad)
		if err == nil || !strings.Contains(err.Error(), "--set") {
			t.Errorf("--set %s: %v, want an error that names it", bad, err)
		}
	}
}

// TestExtends: a file beside another, which extends a preset.
func TestExtends(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return p
	}
	write("a.yaml", "extends: four-way\nfirmware: {buffers: 9}\n")
	b := write("b.yaml", "extends: a.yaml\nfirmware: {credits: 2}\n")
	sc := mustLoad(t, b)
	if sc.Firmware.Buffers != 9 || sc.Firmware.Credits != 2 || len(sc.Traffic.Ingress) != 4 {
		t.Errorf("inheritance lost values: %+v", sc)
	}
	// Paths belong to the file that they stand in, those of settings to the
	// working directory.
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	write("sub/base.yaml", "routes: {file: routes.txt}\ntraffic: {capture: {file: a.pcap, pace: link}}\n")
	d := write("d.yaml", "extends: sub/base.yaml\n")
	sc = mustLoad(t, d)
	if want := filepath.Join(dir, "sub", "routes.txt"); sc.Routes.File != want {
		t.Errorf("routes.file is %s, want %s", sc.Routes.File, want)
	}
	if want := filepath.Join(dir, "sub", "a.pcap"); sc.Traffic.Capture.File != want {
		t.Errorf("traffic.capture.file is %s, want %s", sc.Traffic.Capture.File, want)
	}
	e := write("e.yaml", "extends: sub/base.yaml\nroutes: {file: own.txt}\n")
	sc = mustLoad(t, e, "traffic.capture.file=here.pcap")
	if want := filepath.Join(dir, "own.txt"); sc.Routes.File != want {
		t.Errorf("routes.file is %s, want %s", sc.Routes.File, want)
	}
	if want := "here.pcap"; sc.Traffic.Capture.File != want {
		t.Errorf("traffic.capture.file is %s, want %s", sc.Traffic.Capture.File, want)
	}
	loop := write("c.yaml", "extends: c.yaml\n")
	if _, err := Load(loop); err == nil || !strings.Contains(err.Error(), "extends") {
		t.Errorf("a scenario that extends itself: %v", err)
	}
}

// TestRoundTrip: what "scenario show" prints is the same scenario.
func TestRoundTrip(t *testing.T) {
	for _, n := range PresetNames() {
		sc := mustLoad(t, n)
		text, err := sc.YAML()
		if err != nil {
			t.Fatal(err)
		}
		back, err := Parse([]byte(text), n, "")
		if err != nil {
			t.Fatalf("%s: %v\n%s", n, err, text)
		}
		if d := cmp.Diff(sc, back, cmp.AllowUnexported(traffic.Rate{}), cmpopts.EquateEmpty()); d != "" {
			t.Errorf("%s: %s", n, d)
		}
	}
}

// TestSchema: the schema accepts the presets and refuses what the reader
// refuses.
func TestSchema(t *testing.T) {
	b, err := json.Marshal(Schema())
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("scenario.json", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("scenario.json")
	if err != nil {
		t.Fatal(err)
	}
	value := func(text string) any {
		var v any
		if err := yaml.Unmarshal([]byte(text), &v); err != nil {
			t.Fatal(err)
		}
		j, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		out, err := jsonschema.UnmarshalJSON(bytes.NewReader(j))
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	for _, n := range append(PresetNames(), "base") {
		text, err := PresetText(n)
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(value(text)); err != nil {
			t.Errorf("%s: %v", n, err)
		}
	}
	for _, n := range PresetNames() {
		text, err := mustLoad(t, n).YAML()
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(value(text)); err != nil {
			t.Errorf("%s in full: %v", n, err)
		}
	}
	for _, bad := range []string{"bufers: 3", "bus: {clock: 33}", "firmware: {receive: splat}", "cards: 9", "seed: -1"} {
		if schema.Validate(value(bad)) == nil {
			t.Errorf("the schema accepts %q", bad)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, n := range append(PresetNames(), "base") {
		text, err := PresetText(n)
		if err != nil {
			f.Fatal(err)
		}
		f.Add([]byte(text))
	}
	f.Add([]byte("extends: fig6.4\nfirmware: {buffers: 1e9, poll: 9999999999999999999 cycles}\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		dir := t.TempDir()
		sc, err := Parse(text, "fuzz.yaml", dir)
		if err != nil {
			return
		}
		out, err := sc.YAML()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Parse([]byte(out), "again.yaml", ""); err != nil {
			t.Fatalf("a scenario that was read cannot be read again: %v\n%s", err, out)
		}
	})
}

// TestScale: one factor on all handlers is refused with the names of those that
// there are, but a record that was made with it is read as it was meant.
func TestScale(t *testing.T) {
	text := "extends: fig6.4\nfirmware:\n  scale: 1.5\n"
	_, err := Parse([]byte(text), "mine.yaml", "")
	if want := "mine.yaml:3: firmware.scale: one factor on all handlers is no longer offered, want firmware.factors: {receive: 1.5, dma: 1.5, flow: 1.5, send: 1.5}"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
	if _, err = Load("fig6.4", "firmware.scale=2"); err == nil || !strings.Contains(err.Error(), "--set firmware.scale: one factor") {
		t.Errorf("as a setting: %v", err)
	}
	sc, err := Recorded(&traces.Meta{ScenarioYAML: text}, "old.rec")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := sc.Firmware.Factors, spine.SameFactors(1.5); got != want {
		t.Errorf("a record's scale 1.5 is read as %+v, want %+v", got, want)
	}
	if _, err := Recorded(&traces.Meta{ScenarioYAML: "firmware:\n  scale: 0.001\n"}, "old.rec"); err == nil || !strings.Contains(err.Error(), "scenario in old.rec:2: firmware.factors.receive: 0.001, want 0.01 … 100") {
		t.Errorf("a record's scale out of range: %v", err)
	}
	both, err := Recorded(&traces.Meta{ScenarioYAML: mustYAML(t, mustLoad(t, "fig6.4"))}, "new.rec")
	if err != nil || both.Firmware.Factors != spine.NoFactors() {
		t.Errorf("a new record: %+v, %v", both, err)
	}
}

func mustYAML(t *testing.T, sc *Scenario) string {
	t.Helper()
	text, err := sc.YAML()
	if err != nil {
		t.Fatal(err)
	}
	return text
}
