package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
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
	drawnBy(t, []string{"default", "pci-first", "Gap between departures (dotted: lower bound 44.91", "p99", "Loss", "bubbles", "processor"},
		"compare", "default", "pci-first", "--saturated", "--packets", "100", "-n", "2")
}

func TestMaxRateDrawn(t *testing.T) {
	quick := []string{"maxrate", "--packets", "400", "--first-packets", "200", "--replications", "2", "--resolution", "0.05"}
	drawnBy(t, []string{"Loss by rate: scenario fig6.4, policy default", "bound 0.5 %", "found: ", "runs of 400 packets", "The same within"}, quick...)
	drawnBy(t, []string{"Policy default: highest rate", "constant", "saturating", "1518", "throughput (Mbit/s)"},
		append(quick, "--frames", "64,1518", "--processes", "constant,saturating")...)
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
		{"compare"}, {"maxrate"}, {"maxrate", "--rfc2544"},
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
