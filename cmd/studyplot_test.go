package cmd

import (
	"bytes"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"spinesim/plots"
	"spinesim/sim/study"
	"spinesim/traces"
)

// drawnBy runs a command with --plot and looks for texts in the SVG file.
func drawnBy(t *testing.T, want []string, args ...string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "a.svg")
	text(t, []string{"wrote " + file}, append(args, "--plot", file)...)
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range want {
		if !strings.Contains(string(b), ">"+w) {
			t.Errorf("spinesim %q draws no %q", args, w)
		}
	}
}

func TestCompareDrawn(t *testing.T) {
	drawnBy(t, []string{"default", "pci-first", "Gap between departures (dotted: lower bound 44.91", "p99", "Distribution of the latency", "pci-first: median", "Loss", "bubbles", "processor"},
		"compare", "default", "pci-first", "--saturated", "--packets", "100", "-n", "2")
}

func TestMaxRateDrawn(t *testing.T) {
	quick := []string{"maxrate", "--packets", "400", "--first-packets", "200", "--replications", "2", "--resolution", "0.05"}
	drawnBy(t, []string{"Loss by rate: scenario fig6.4, policy default", "bound 0.5 %", "found: ", "runs of 400 packets", "The same within"}, quick...)
	drawnBy(t, []string{"Policy default: highest rate", "constant", "saturating", "1518", "throughput (Mbit/s)"},
		append(quick, "--frames", "64,1518", "--processes", "constant,saturating")...)
}

func TestTuneDrawn(t *testing.T) {
	drawnBy(t, []string{"Scenario fig6.4, saturated: gap and latency of 4 orders and 1 tuned policies", "Q0 Q1 Q2 Q3 Q4 Q5 Q6 (default)", "quota", "Q0 self above Q6 dma", "not beaten in both"},
		"tune", "--orders", "0123456,6345012,6123450,0123465", "--packets", "60", "--policies", "quota", "--evaluations", "2", "--no-maxrate",
		"--final-packets", "20", "--final-replications", "2", "--finalists", "2")
}

func TestSweepDrawn(t *testing.T) {
	t.Chdir(t.TempDir())
	err := os.WriteFile("d.yaml", []byte("scenario: fig6.4\nsettings: {traffic.packets: 20}\nreplications: 2\nfactors:\n  policy: [default, pci-first]\n  firmware.buffers: [2, 4, 16]\n"), 0o644)
	if err != nil {
		t.Fatal(err)
	}
	text(t, nil, "sweep", "d.yaml")
	show := []string{"sweep", "show", "d.db", "--metrics", "gap_us,loss"}
	drawnBy(t, []string{"gap_us over firmware.buffers by policy", "loss over firmware.buffers by policy", "default", "pci-first", "16"}, show...)
	drawnBy(t, []string{"gap_us over policy by firmware.buffers", "default", "pci-first", "firmware.buffers = 16"}, append(show, "--over", "policy")...)
	for _, tc := range []struct {
		want string
		args []string
	}{
		{"no factor \"speed\"", []string{"--plot", "a.svg", "--over", "speed"}},
		{"no factor \"speed\"", []string{"--plot", "a.svg", "--by", "speed"}},
		{"same factor", []string{"--plot", "a.svg", "--over", "policy", "--by", "policy"}},
		{"--plot", []string{"--over", "policy"}},
	} {
		code, stdout, stderr := spinesim(append(show, tc.args...)...)
		if code != 2 || stdout != "" || !strings.Contains(stderr, tc.want) {
			t.Errorf("%q: status %d, %q; want 2 and %q", tc.args, code, stderr, tc.want)
		}
	}
	if _, err := os.Stat("a.svg"); err == nil {
		t.Error("a refused figure was drawn")
	}
}

func TestScheduleDrawn(t *testing.T) {
	drawnBy(t, []string{"Scenario fig6.4: lower bound on the gap", "lower bound (DMA engine of card 0) 44.9", "shortest cycle 45.3", "Body transfer", "processor of card 0", "flow control"}, "schedule")
	drawnBy(t, []string{"simulated ", "receive", "2 packets every "}, "schedule", "--cycle", "2", "--nodes", "500", "--run", "--packets", "50")
}

func TestAgainstDrawn(t *testing.T) {
	v := func(x traces.Real) study.Interval { return study.Interval{Mean: x, Low: x - 1, High: x + 1, N: 3} }
	cells := []study.ScheduleCell{{Policy: "static", Gap: v(45), LatencyP50: v(70)}, {Policy: "pci-first", Gap: v(50), LatencyP50: v(80)}}
	r := &study.SchedulesResult{Scenario: "made", Load: 0.7, Rows: []study.ScheduleRow{{Traffic: "regular", LowerBound: 44, Cells: cells}}}
	curve := study.ScheduleCurve{
		Axis: "cards that receive", Points: []traces.Real{1, 2}, Bounds: []traces.Real{44, 60}, Policies: []string{"static", "pci-first"},
		Gaps: [][]study.Interval{{v(45), v(80)}, {v(50), v(70)}}, BreakEven: 1.5, Static: true,
	}
	r.Curves = append(r.Curves, curve)
	curve.BreakEven = traces.Real(math.NaN())
	r.Curves = append(r.Curves, curve)
	s, err := drawAgainst(r)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := plots.WriteGrid(&b, ".svg", s.size, s.rows); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"regular", "static", "pci-first", "lower bound", "50.0 ± 1.00", "load of 70 %", "break-even 1.5", "static ahead before the break-even, dynamic behind it", "static ahead throughout"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q is drawn", want)
		}
	}
	if _, err := drawAgainst(&study.SchedulesResult{}); !errors.Is(err, plots.ErrNoEvents) {
		t.Errorf("nothing is drawn with %v", err)
	}
}

// TestPlotsTogetherWithJSON: several files, and nothing but the object printed.
func TestPlotsTogetherWithJSON(t *testing.T) {
	t.Chdir(t.TempDir())
	result[map[string]any](t, "compare", "default", "--saturated", "--packets", "50", "-n", "2", "--plot", "a.png", "--plot", "b.pdf")
	for name, magic := range map[string]string{"a.png": "\x89PNG", "b.pdf": "%PDF"} {
		if b, err := os.ReadFile(name); err != nil || !strings.HasPrefix(string(b), magic) {
			t.Errorf("%s: %d bytes, %v", name, len(b), err)
		}
	}
}

// TestPlotRefused: what cannot be written is refused before the work.
func TestPlotRefused(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.Mkdir("dir.svg", 0o755); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"compare"}, {"maxrate"}, {"maxrate", "--rfc2544"}, {"tune"}, {"sweep", "show", "absent.db"}, {"schedule"}, {"schedule", "--against"},
	} {
		for file, want := range map[string]string{
			"a.gif": "want .svg, .png or .pdf", "plain": "want .svg, .png or .pdf", "absent/a.svg": "absent", "dir.svg": "is a directory",
		} {
			code, stdout, stderr := spinesim(append(args, "--plot", "good.svg", "--plot", file)...)
			if code != 2 || stdout != "" || !strings.Contains(stderr, "--plot") || !strings.Contains(stderr, want) || strings.Count(stderr, "\n") != 1 {
				t.Errorf("spinesim %q --plot %s: status %d, %q; want 2 and one line with %q", args, file, code, stderr, want)
			}
		}
	}
	if left, err := filepath.Glob("*"); err != nil || len(left) != 1 {
		t.Errorf("left behind: %q, %v", left, err)
	}
}
