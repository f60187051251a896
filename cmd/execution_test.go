package cmd

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"spinesim/sim"
	"spinesim/sim/study"
)

// testExtension is an object that needs no compiler here.
func testExtension(t *testing.T) string {
	t.Helper()
	p, err := filepath.Abs("../sim/testdata/extensions/misdeeds.o")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestRunExtension: run and replay take an extension in C, tell its marks and
// faults, and a record of it can be run again.
func TestRunExtension(t *testing.T) {
	object := testExtension(t)
	t.Chdir(t.TempDir())
	code, out, stderr := spinesim("run", "--extension", object, "--packets", "120", "--check", "--record", "x.csv", "--record", "x.parquet", "--json")
	if code != 0 {
		t.Fatal(stderr)
	}
	var r sim.Result
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatal(err)
	}
	if r.Execution != "handlers" || len(r.Marks) != 5 || r.Marks[3] == 0 || len(r.Faults) < 5 || r.Faults[0].Symbol == "" {
		t.Errorf("execution %q, marks %v, %d faults", r.Execution, r.Marks, len(r.Faults))
	}
	b, err := os.ReadFile("x.csv")
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(b), "\nmark,Router In handler,"); uint64(n) != r.Marks[3] {
		t.Errorf("%d marks in the CSV file, want %d", n, r.Marks[3])
	}
	code, out, stderr = spinesim("run", "--extension", object, "--firmware", "full", "--packets", "120")
	if code != 0 || !strings.Contains(out, "marks: log_3 ") || !strings.Contains(out, "fault: extension on card 0, ") || !strings.Contains(out, "watchdog ran out at pc ") {
		t.Errorf("%d %s%s", code, stderr, out)
	}
	if code, out, stderr = spinesim("replay", "x.parquet", "--firmware", "full"); code != 0 ||
		!strings.Contains(out, "gave the very records of the file") || !strings.Contains(out, "every packet arrived at the same time in both runs") {
		t.Errorf("replay of the record: %d %s%s", code, stderr, out)
	}
	if code, out, stderr = spinesim("replay", "--extension", object, "--set", "traffic.packets=400", "-o", "drawn"); code != 0 || !strings.Contains(out, "marks: log_3 ") {
		t.Errorf("replay: %d %s%s", code, stderr, out)
	}
	for _, args := range [][]string{
		{"run", "--firmware", "some"},
		{"run", "--firmware", "table", "--extension", object},
		{"run", "--extension", "absent.o"},
		{"run", "--extension", "x.csv"},
		{"run", "--firmware", "full", "--policy", "round-robin"},
	} {
		if code, _, stderr := spinesim(args...); code != 2 || stderr == "" {
			t.Errorf("%v: status %d, %s", args, code, stderr)
		}
	}
}

// TestExtensionPath: an extension's object lies where the scenario file says,
// beside itself.
func TestExtensionPath(t *testing.T) {
	b, err := os.ReadFile(testExtension(t))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"own.o":     string(b),
		"mine.yaml": "name: mine\nextends: fig6.4\nfirmware: {execution: full, extension: [own.o]}\ntraffic: {packets: 20}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if code, out, stderr := spinesim("run", "-s", filepath.Join(dir, "mine.yaml"), "--json"); code != 0 || !strings.Contains(out, `"execution": "full"`) {
		t.Errorf("%d %s %s", code, stderr, out)
	}
}

// TestProfileScenario: the listing of a card's code in a whole run.
func TestProfileScenario(t *testing.T) {
	code, out, stderr := spinesim("firmware", "profile", "--scenario", "fig6.4", "--packets", "50", "--extension", testExtension(t), "--function", "spine_extension")
	if code != 0 || !strings.Contains(out, "<spine_extension>:") || !strings.Contains(out, "log_3") || !strings.Contains(out, "        50         50         0") {
		t.Errorf("%d %s%s", code, stderr, out)
	}
	code, out, stderr = spinesim("firmware", "profile", "--scenario", "fig6.4", "--packets", "50", "--card", "2", "--firmware", "handlers", "--function", "spine_wire_output_done")
	if code != 0 || !strings.Contains(out, "<spine_wire_output_done>:") {
		t.Errorf("%d %s%s", code, stderr, out)
	}
	for _, args := range [][]string{
		{"--scenario", "fig6.4", "--card", "4"}, {"--scenario", "fig6.4", "--firmware", "table"}, {"--scenario", "fig6.4", "--bytes", "100"},
		{"--scenario", "absent"}, {"--card", "1"}, {"--firmware", "full"},
	} {
		if code, _, _ := spinesim(append([]string{"firmware", "profile", "--packets", "5"}, args...)...); code != 2 {
			t.Errorf("%v: status %d, want 2", args, code)
		}
	}
}

func TestFirmwareCompare(t *testing.T) {
	code, out, stderr := spinesim("firmware", "compare", "--saturated", "--packets", "120", "-n", "1", "--json")
	if code != 0 {
		t.Fatal(stderr)
	}
	var r study.ExecutionsResult
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Executions) != 3 || r.Otherwise != 0 || r.Compared != 240 || !r.Saturating {
		t.Errorf("%d executions, %d of %d packets went otherwise", len(r.Executions), r.Otherwise, r.Compared)
	}
	code, out, stderr = spinesim("firmware", "compare", "--rate", "200 µs", "--packets", "100", "-n", "1", "--firmware", "handlers,full", "--extension", testExtension(t))
	if code != 0 || !strings.Contains(out, "handlers was off full, for a packet, by most in: poll ") || !strings.Contains(out, "200 packets that both took in: 0 went otherwise") &&
		!strings.Contains(out, "100 packets that both took in: 0 went otherwise") {
		t.Errorf("%d %s%s", code, stderr, out)
	}
	for _, args := range [][]string{{"--rate", "9 µs", "--saturated"}, {"--firmware", "some"}, {"-n", "-1"}} {
		if code, _, _ := spinesim(append([]string{"firmware", "compare"}, args...)...); code != 2 {
			t.Errorf("%v: status %d, want 2", args, code)
		}
	}
}
