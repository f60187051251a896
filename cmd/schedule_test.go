package cmd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSchedule: the figures of a schedule, its file, and its run from the file.
func TestSchedule(t *testing.T) {
	t.Chdir(t.TempDir())
	r := result[map[string]any](t, "schedule", "--nodes", "500", "--out", "cycle.yaml", "--run", "--check", "--packets", "1500")
	lower, interval := r["lower_bound_us"].(float64), r["initiation_interval_us"].(float64)
	if lower <= 0 || interval < lower || r["binding_resource"] == "" || r["proved_optimal"] != true {
		t.Errorf("bound %v by %v, interval %v, proved %v", lower, r["binding_resource"], interval, r["proved_optimal"])
	}
	if len(r["rows"].([]any)) < 10 || len(r["gantt"].([]any)) < 15 {
		t.Errorf("%d rows and %d bars", len(r["rows"].([]any)), len(r["gantt"].([]any)))
	}
	run := r["run"].(map[string]any)
	if d := run["difference"].(float64); d < -0.02 || d > 0.02 {
		t.Errorf("simulated gap %v µs, interval %v", run["simulated_gap_us"], interval)
	}
	text(t, []string{"initiation interval", "proved optimal", "← binds", "every invariant held", "deviations", "passed the check"},
		"schedule", "--nodes", "500", "--file", "cycle.yaml", "--run", "--check", "--packets", "500")
	text(t, []string{"policy static:file=cycle.yaml", "every invariant held"},
		"run", "--policy", "static:file=cycle.yaml", "--packets", "500", "--check")
	text(t, []string{"background"}, "schedule", "--nodes", "500", "--hybrid")

	// A step taken out, or misspelt: refused, with the place.
	good, err := os.ReadFile("cycle.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ from, to, want string }{
		"ack.yaml":   {"- {run: Peer ACK, ", "- {run: Free buffer, ", "ACKs starve"},
		"wait.yaml":  {"run: Wire output start, guard: look", "run: Wire output start, guard: wait", "ACKs starve"},
		"blind.yaml": {"run: DMA start header, guard: wait", "run: DMA start header, guard: known", "without a poll"},
		"typo.yaml":  {"Free buffer", "Free bufer", "is not a handler"},
		"cards.yaml": {"cards: [1, 2, 3]", "cards: [1, 2]", "no cycle for card 3"},
	} {
		text := strings.Replace(string(good), c.from, c.to, 1)
		if text == string(good) {
			t.Fatalf("%s: nothing replaced in\n%s", name, text)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{
			{"schedule", "--nodes", "100", "--file", name},
			{"run", "--packets", "10", "--policy", "static:file=" + name},
		} {
			code, stdout, stderr := spinesim(args...)
			if code != 2 || !strings.Contains(stderr, c.want) || !strings.Contains(stderr, name+":") && !strings.Contains(stderr, name) || stdout != "" {
				t.Errorf("spinesim %q: status %d, %q, printed %q; want 2 and %q", args, code, stderr, stdout, c.want)
			}
		}
	}
	for _, args := range [][]string{
		{"schedule", "--cycle", "0"},
		{"schedule", "--cycle", "99"},
		{"schedule", "--nodes", "0"},
		{"schedule", "--file", "absent.yaml"},
		{"schedule", "--nodes", "100", "--out", filepath.Join("absent", "x.yaml")},
		{"schedule", "--against", "--run"},
		{"run", "--packets", "10", "--policy", "static:file=absent.yaml"},
		{"schedule", "--set", "traffic.destinations.unroutable=1", "--set", "routes.default_route=false"},
	} {
		if code, _, stderr := spinesim(args...); code != 2 {
			t.Errorf("spinesim %q: status %d, want 2: %s", args, code, stderr)
		}
	}
}
