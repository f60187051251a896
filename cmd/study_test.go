package cmd

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"spinesim/sim/study"
	"spinesim/sim/study/sweep"
)

// result runs a command that prints one JSON object.
func result[T any](t *testing.T, args ...string) T {
	t.Helper()
	code, stdout, stderr := spinesim(append(args, "--json")...)
	if code != 0 {
		t.Fatalf("spinesim %q: status %d, %s", args, code, stderr)
	}
	var v T
	if err := json.Unmarshal([]byte(stdout), &v); err != nil {
		t.Fatalf("spinesim %q: %v", args, err)
	}
	return v
}

// text runs a command that prints for people, and looks for words.
func text(t *testing.T, want []string, args ...string) string {
	t.Helper()
	code, stdout, stderr := spinesim(args...)
	if code != 0 {
		t.Fatalf("spinesim %q: status %d, %s", args, code, stderr)
	}
	for _, w := range want {
		if !strings.Contains(stdout, w) {
			t.Errorf("spinesim %q prints no %q:\n%s", args, w, stdout)
		}
	}
	return stdout
}

func TestMaxRateCommand(t *testing.T) {
	quick := []string{"maxrate", "--packets", "400", "--first-packets", "400", "--replications", "2", "--resolution", "0.05"}
	r := result[study.MaxRateResult](t, append(quick, "--policy", "pci-first")...)
	if !r.Found() || r.Policy != "pci-first" || r.LossBound != 0.005 || len(r.Probes) == 0 {
		t.Errorf("got %+v", r)
	}
	text(t, []string{"highest rate with at most 0.5 % loss (PDR)", "a packet every", "resolution"}, quick...)
	text(t, []string{"no loss (NDR)"}, append(quick, "--ndr")...)
	text(t, []string{"saturated gap"}, append(quick, "--set", "traffic.arrivals.process=saturating")...)
	tab := result[study.MaxRateTableResult](t, append(quick, "--frames", "64,1518", "--processes", "constant,saturating")...)
	if len(tab.Rows) != 4 {
		t.Errorf("%d rows, want 4", len(tab.Rows))
	}
	text(t, []string{"arrivals", "constant", "1518"}, append(quick, "--frames", "1518", "--processes", "constant")...)
}

func TestCompareCommand(t *testing.T) {
	args := []string{"compare", "default", "pci-first", "--saturated", "--packets", "400", "-n", "3"}
	r := result[study.CompareResult](t, args...)
	if len(r.Policies) != 2 || r.Replications != 3 || r.Policies[1].Differences["bubble_share"].Verdict != study.VerdictBetter {
		t.Errorf("got %+v", r)
	}
	text(t, []string{"saturated, 3 replications", "against default", "better", "bubbles %"}, args...)
}

func TestTuneCommand(t *testing.T) {
	out := text(t, []string{"6 orders tried", "never used: Q2 host", "above Q6 dma", "no other has both", "best: "},
		"tune", "--orders", "0123456,6345012,6123450,0123465,1023456,Q0 Q2 Q6 Q3 Q4 Q5 Q1", "--packets", "60", "--policies", "none", "--no-maxrate", "--final-packets", "20", "--final-replications", "2", "--finalists", "2", "--top", "3")
	if n := strings.Count(out, "\n"); n > 70 {
		t.Errorf("%d lines", n)
	}
}

func TestSweepCommand(t *testing.T) {
	t.Chdir(t.TempDir())
	err := os.WriteFile("buffers.yaml", []byte("scenario: fig6.4\nsettings: {traffic.packets: 20}\nreplications: 2\nfactors:\n  policy: [default, pci-first]\n  firmware.buffers: [2, 16]\n"), 0o644)
	if err != nil {
		t.Fatal(err)
	}
	text(t, []string{"4 points, 2 replications, 8 runs"}, "sweep", "buffers.yaml", "--plan")
	if _, err := os.Stat("buffers.db"); err == nil {
		t.Error("a plan made a database")
	}
	text(t, []string{"8 runs, 0 were there, 8 made, 0 failed; in buffers.db"}, "sweep", "buffers.yaml")
	text(t, []string{"8 runs, 8 were there, 0 made"}, "sweep", "buffers.yaml")
	r := result[sweep.Report](t, "sweep", "buffers.yaml", "--replications", "3")
	if r.Made != 4 || r.Found != 8 {
		t.Errorf("got %+v", r)
	}
	for _, s := range []string{"0/2", "1/2"} {
		text(t, []string{"of shard " + s, "-of-2.db"}, "sweep", "buffers.yaml", "--shard", s)
	}
	text(t, []string{"buffers-0-of-2.db: 4 new runs", "buffers-1-of-2.db: 4 new runs"}, "sweep", "merge", "all.db", "buffers-0-of-2.db", "buffers-1-of-2.db")
	text(t, []string{"8 runs of 4 points", "pci-first", "at each value of a factor"}, "sweep", "show", "all.db")
	sum := result[sweep.Summary](t, "sweep", "show", "all.db", "--metrics", "all")
	if len(sum.Points) != 4 || len(sum.Metrics) != len(study.Metrics()) {
		t.Errorf("got %d points and %d metrics", len(sum.Points), len(sum.Metrics))
	}
	for _, f := range []string{"all.csv", "all.parquet"} {
		text(t, nil, "sweep", "export", "all.db", f)
		if st, err := os.Stat(f); err != nil || st.Size() == 0 {
			t.Errorf("%s: %v", f, err)
		}
	}
}

func TestStudyMistakes(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	bad := filepath.Join(dir, "bad.yaml")
	if err := os.WriteFile(bad, []byte("scenario: fig6.4\nfactors:\n  firmware.bufers: [1]\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"maxrate", "--loss", "7"}, `--loss "7"`},
		{[]string{"maxrate", "--loss", "1%", "--ndr"}, "ndr"},
		{[]string{"maxrate", "--frames", "12"}, "--frames"},
		{[]string{"maxrate", "--frames", "9018"}, "traffic.sizes.bytes"},
		{[]string{"maxrate", "--processes", "often"}, "often"},
		{[]string{"maxrate", "--policy", "fastest"}, "fastest"},
		{[]string{"maxrate", "--resolution", "3"}, "resolution"},
		{[]string{"compare", "default", "fastest"}, "fastest"},
		{[]string{"compare", "--rate", "fast"}, "traffic.arrivals.rate"},
		{[]string{"compare", "--replications", "-1"}, "-1 replications"},
		{[]string{"tune", "--objective", "speed"}, "speed"},
		{[]string{"tune", "--policies", "fastest"}, "fastest"},
		{[]string{"tune", "--orders", "0123456,012"}, "leaves out"},
		{[]string{"compare", "--rate", "65 µs", "--saturated"}, "exclude each other"},
		{[]string{"sweep"}, "sweep"},
		{[]string{"sweep", "absent.yaml"}, "absent.yaml"},
		{[]string{"sweep", bad}, "bad.yaml:3: factors.firmware.bufers: unknown key"},
		{[]string{"sweep", bad, "--shard", "4/4"}, "4/4"},
		{[]string{"sweep", "show", "absent.db"}, "absent.db"},
		{[]string{"sweep", "show", bad}, "bad.yaml"},
		{[]string{"sweep", "show", "absent.db", "--metrics", "speed"}, "speed"},
		{[]string{"sweep", "export", "absent.db", "x.csv"}, "absent.db"},
		{[]string{"sweep", "merge", "out.db", "absent.db"}, "absent.db"},
		{[]string{"sweep", "merge", bad, bad}, "merged into"},
	} {
		code, stdout, stderr := spinesim(tc.args...)
		if code != 2 || !strings.Contains(stderr, tc.want) || strings.Count(stderr, "\n") != 1 || stdout != "" {
			t.Errorf("spinesim %q: status %d, says %q and prints %q; want 2 and one line that names %q", tc.args, code, stderr, stdout, tc.want)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*.db")); len(left) > 0 {
		t.Errorf("databases left behind: %v", left)
	}
}

// TestStudyInterrupted: a study that is ended prints what it has and says so.
func TestStudyInterrupted(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("d.yaml", []byte("scenario: fig6.4\nfactors:\n  policy: [default, pci-first]\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"maxrate"}, "rates tried until then"},
		{[]string{"maxrate", "--rfc2544"}, "rows finished until then"},
		{[]string{"compare", "default", "pci-first"}, "replications that every policy has"},
		{[]string{"tune"}, "orders and 0 policies"},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		var out, errs strings.Builder
		if code := Execute(ctx, tc.args, nil, &out, &errs); code != 1 || !strings.Contains(errs.String(), tc.want) {
			t.Errorf("spinesim %q: status %d, %q; want 1 and %q", tc.args, code, errs.String(), tc.want)
		}
	}
}
