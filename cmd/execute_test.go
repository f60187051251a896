package cmd

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"spinesim/sim/testenv"

	"github.com/google/pprof/profile"
	"github.com/spf13/cobra"
)

func spinesim(args ...string) (code int, stdout, stderr string) {
	var o, e bytes.Buffer
	code = Execute(context.Background(), args, nil, &o, &e)
	return code, o.String(), e.String()
}

// TestMistakes: wrong usage and bad input end with status 2 and one line that
// names the place and what was expected.
func TestMistakes(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	file := func(name, text string) string {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return p
	}
	scenario := file("s.yaml", "extends: fig6.4\nfirmware:\n  bufers: 3\n")
	routes := file("r.txt", "1.2.3.0/24 10.0.0.1\n1.2.3.4/33 10.0.0.1\n")
	capture := file("c.pcap", "\xd4\xc3\xb2\xa1\x02\x00\x04\x00\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff\x00\x00\x65\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x40\x00\x00\x00\x40\x00\x00\x00\x45")
	foreign := file("x.parquet", "this is no record at all, whatever its name says")
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"frob"}, "frob"},
		{[]string{"run", "--nope"}, "--nope"},
		{[]string{"run", "extra"}, "extra"},
		{[]string{"plot", "nosuch", "--out", "x.svg"}, `"nosuch"`},
		{[]string{"nosuch", "--out", "x.svg"}, `"nosuch"`},
		{[]string{"plot", "--nosuch"}, "--nosuch"},
		{[]string{"run", "--scenario", scenario}, "s.yaml:3: firmware.bufers"},
		{[]string{"run", "--scenario", "nowhere"}, "nowhere"},
		{[]string{"run", "--routes", routes}, "r.txt: line 2"},
		{[]string{"run", "--routes", "absent.txt"}, "absent.txt"},
		{[]string{"run", "--pcap", capture}, "c.pcap"},
		{[]string{"run", "--pcap", foreign}, "x.parquet"},
		{[]string{"run", "--policy", "fastest"}, "fastest"},
		{[]string{"run", "--set", "firmware.buffers=none"}, "firmware.buffers"},
		{[]string{"run", "--set", "firmware.buffers"}, "path=value"},
		{[]string{"run", "--packets", "10", "--record", "r.unknown"}, "r.unknown"},
		{[]string{"run", "--packets", "10", "--wires", filepath.Join("absent", "w.pcapng")}, "--wires"},
		{[]string{"run", "--packets", "10", "--wires", dir}, "is a directory"},
		{[]string{"run", "--packets", "10", "--memprofile", filepath.Join("absent", "m")}, "--memprofile"},
		{[]string{"run", "--packets", "10", "--sample", "1 ms=" + filepath.Join("absent", "s.pb.gz")}, "--sample"},
		{[]string{"report", "--out", filepath.Join("absent", "r.html")}, "--out"},
		{[]string{"report", "--out", dir}, "is a directory"},
		{[]string{"calibrate", "--out", filepath.Join("absent", "f.yaml")}, "--out"},
		{[]string{"replay", capture}, "c.pcap"},
		{[]string{"replay", capture, "--policy", "pci-first"}, "c.pcap"},
		{[]string{"replay", dir}, "not that of a record"},
		{[]string{"replay", "absent.parquet"}, "absent.parquet"},
		{[]string{"replay", foreign}, "x.parquet"},
		{[]string{"replay", foreign, "--policy", "pci-first"}, "x.parquet"},
		{[]string{"replay", "--style", "baroque"}, "baroque"},
		{[]string{"scenario", "show", "nowhere"}, "nowhere"},
		{[]string{"scenario", "init", scenario}, "--force"},
		{[]string{"calibrate", "--scenario", "nowhere"}, "nowhere"},
		{[]string{"predict", "--fits", scenario}, "s.yaml"},
	} {
		code, stdout, stderr := spinesim(tc.args...)
		if code != 2 {
			t.Errorf("spinesim %q: status %d, want 2 (%s)", tc.args, code, stderr)
		}
		if !strings.Contains(stderr, tc.want) || strings.Count(stderr, "\n") != 1 || strings.Contains(stderr, "goroutine") {
			t.Errorf("spinesim %q says %q, want one line that names %q", tc.args, stderr, tc.want)
		}
		if stdout != "" {
			t.Errorf("spinesim %q prints %q beside its complaint", tc.args, stdout)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".spinesim-*")); len(left) > 0 {
		t.Errorf("files left behind: %v", left)
	}
	if _, err := os.Stat(filepath.Join(dir, "r.unknown")); err == nil {
		t.Error("an output of unknown format was made")
	}
}

// TestHelp: every command has a help text with an example.
func TestHelp(t *testing.T) {
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		if c.Name() == "help" || c.Name() == "completion" {
			return
		}
		if c.Short == "" || c.Example == "" {
			t.Errorf("%s: no short help or no example", c.CommandPath())
		}
		for _, s := range c.Commands() {
			walk(s)
		}
	}
	walk(newRoot(&profiling{}))
}

// TestReplay runs the main job small, then again from its record.
func TestReplay(t *testing.T) {
	t.Chdir(t.TempDir())
	code, stdout, stderr := spinesim("replay", "--set", "traffic.packets=4000", "--json", "--check")
	if code != 0 {
		t.Fatal(stderr)
	}
	var r map[string]any
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{
		"received", "forwarded", "to_host", "dropped", "gap_us.mean", "gap_us.ci95", "gap_us.p50", "gap_us.p99", "gap_us.best_case",
		"latency_us.ingress.mean", "latency_us.ingress.p50", "latency_us.ingress.p99", "latency_us.ingress.fast",
		"latency_us.total.mean", "latency_us.upstream.mean", "receive_run.mean", "receive_run.max", "receive_run.share_over_1",
		"backlog.mean", "backlog.max", "slow_share", "bubble_share", "utilisation", "route_table_bytes",
		"simulated_s", "wall_s", "seed", "scenario_hash", "fingerprint",
	} {
		v := any(r)
		for _, k := range strings.Split(key, ".") {
			m, ok := v.(map[string]any)
			if !ok {
				t.Fatalf("%s: no object there", key)
			}
			if v, ok = m[k]; !ok {
				t.Errorf("--json has no %s", key)
				break
			}
		}
	}
	left := r["forwarded"].(float64) + r["to_host"].(float64)
	for _, n := range r["dropped"].(map[string]any) {
		left += n.(float64)
	}
	if left != 4000 || r["received"] != float64(4000) || r["forwarded"].(float64) < 3900 {
		t.Errorf("received %v, forwarded %v, %v left, want 4000 accounted for", r["received"], r["forwarded"], left)
	}
	for _, f := range []string{"event-graph-best.svg", "event-graph-best.png", "event-graph-slow.svg", "event-graph-slow.png", "oscillation.svg", "oscillation.png", "record.parquet", "record.csv.gz", "summary.json"} {
		st, err := os.Stat(filepath.Join("out", f))
		if err != nil || st.Size() < 1000 {
			t.Errorf("out/%s: %v", f, err)
		}
	}
	svg, err := os.ReadFile("out/event-graph-best.svg")
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"Poll Q0", "Poll Q6", "Free buffer", "Peer ACK", "Rx check header", "Rx check body", "EnQ router in", "Router In handler", "EnQ IP output", "Peer to peer start", "DMA start handler", "DMA generic start", "DMA start body", "DMA start header", "Time (µs)"} {
		if !strings.Contains(string(svg), text) {
			t.Errorf("the event graph does not name %q", text)
		}
	}

	if code, stdout, stderr = spinesim("replay", "out/record.parquet", "-o", "again"); code != 0 {
		t.Fatal(stderr)
	}
	if !strings.Contains(stdout, "fig6.4") {
		t.Errorf("a replay of the record does not name its scenario: %s", stdout)
	}
	if code, stdout, stderr = spinesim("replay", "out/record.parquet", "--policy", "pci-first"); code != 0 {
		t.Fatal(stderr)
	}
	for _, want := range []string{"gave the very records of the file", "arrived at the same time in both runs", "the runs part at record"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("side by side lacks %q:\n%s", want, stdout)
		}
	}
}

// TestReplaySteps: the default event graph holds the steps that the README says
// it does, of those of Figure 6.4 (thesis p.107).
func TestReplaySteps(t *testing.T) {
	testenv.NeedLong(t)
	t.Chdir(t.TempDir())
	if code, _, stderr := spinesim("replay"); code != 0 {
		t.Fatal(stderr)
	}
	b, err := os.ReadFile("out/event-graph-best.svg")
	if err != nil {
		t.Fatal(err)
	}
	svg := string(b)
	for _, step := range []string{">Receive Packet 1<", ">Receive Packet 2<", ">Receive Packet 3<", ">DMA Packet 1<", ">DMA Packet 2<", ">Packet 1<", ">Packet 2<"} {
		if strings.Count(svg, step) != 1 {
			t.Errorf("%d times %q in the event graph, want once", strings.Count(svg, step), step)
		}
	}
	if strings.Count(svg, ">Route<") != 2 || strings.Contains(svg, ">DMA Packet 0<") || strings.Contains(svg, ">Packet 3<") {
		t.Error("the event graph shows other steps than the README says")
	}
}

// TestReplayList: arrivals that somebody wrote into a file run on the machine
// that they name, and only what does not say what arrives can be changed.
func TestReplayList(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("list.csv", []byte("kind,card,end_ps,bytes,peer\nenter,0,1000000,1500,1\nenter,0,90000000,64,2\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := spinesim("replay", "list.csv", "--scenario", "four-way", "--policy", "pci-first")
	if code != 0 {
		t.Fatal(stderr)
	}
	for _, want := range []string{"its arrivals on four-way", "arrived at the same time in both runs", "the runs part at record"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("side by side lacks %q:\n%s", want, stdout)
		}
	}
	if code, _, stderr = spinesim("replay", "list.csv", "--set", "traffic.packets=7"); code != 2 || !strings.Contains(stderr, "only traffic.fifo") {
		t.Errorf("status %d: %s", code, stderr)
	}
}

// TestCutCapture: a run says that a capture was cut off, and where.
func TestCutCapture(t *testing.T) {
	t.Chdir(t.TempDir())
	if code, _, stderr := spinesim("run", "--packets", "50", "--wires", "whole.pcapng"); code != 0 {
		t.Fatal(stderr)
	}
	b, err := os.ReadFile("whole.pcapng")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("cut.pcapng", b[:len(b)*2/3+5], 0o644); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := spinesim("run", "--pcap", "cut.pcapng", "--set", "traffic.capture.partial=true", "--check")
	if code != 0 || !strings.Contains(stdout, "note: of the capture only the readable part was played") || !strings.Contains(stdout, "cut.pcapng") {
		t.Errorf("status %d, %s%s", code, stdout, stderr)
	}
	if code, stdout, stderr = spinesim("run", "--pcap", "whole.pcapng"); code != 0 || strings.Contains(stdout, "note:") {
		t.Errorf("status %d, %s%s", code, stdout, stderr)
	}
}

// TestViaHost: a result tells why packets took the way through the host, whether
// it is made by a run or from its record.
func TestViaHost(t *testing.T) {
	t.Chdir(t.TempDir())
	code, stdout, stderr := spinesim("run", "--scenario", "host-path", "--packets", "200", "--record", "r.parquet", "--check")
	if code != 0 || !strings.Contains(stdout, "by way of the host: no route") {
		t.Errorf("status %d, %s%s", code, stdout, stderr)
	}
	if code, stdout, stderr = spinesim("trace", "stats", "r.parquet"); code != 0 || !strings.Contains(stdout, "by way of the host") {
		t.Errorf("status %d, %s%s", code, stdout, stderr)
	}
}

// TestProfiles: profiles are whole, also those of a command that fails.
func TestProfiles(t *testing.T) {
	t.Chdir(t.TempDir())
	for i, args := range [][]string{
		{"run", "--packets", "200"},
		{"run", "--packets", "10", "--record", "r.unknown"},
		{"trace", "check", "absent.parquet"},
	} {
		code, _, stderr := spinesim(append(args, "--cpuprofile", "cpu", "--memprofile", "mem")...)
		if (code == 0) != (i == 0) {
			t.Errorf("%q: status %d: %s", args, code, stderr)
		}
		for _, name := range []string{"cpu", "mem"} {
			f, err := os.Open(name)
			if err != nil {
				t.Fatalf("%q: %v", args, err)
			}
			if _, err := profile.Parse(f); err != nil {
				t.Errorf("%q: profile %s: %v", args, name, err)
			}
			f.Close()
			os.Remove(name)
		}
	}
}

// TestInterrupted: a command that keeps nothing of an interrupted run says so.
func TestInterrupted(t *testing.T) {
	t.Chdir(t.TempDir())
	ctx, stop := context.WithCancel(context.Background())
	stop()
	for _, args := range [][]string{{"calibrate", "--out", "f.yaml"}, {"predict"}, {"replay"}} {
		var o, e bytes.Buffer
		if code := Execute(ctx, args, nil, &o, &e); code != 1 || !strings.Contains(e.String(), "interrupted") || strings.Count(e.String(), "\n") != 1 {
			t.Errorf("spinesim %q: status %d, %q, want 1 and one line that says it was interrupted", args, code, e.String())
		}
	}
	if _, err := os.Stat("f.yaml"); err == nil {
		t.Error("calibrate wrote a scenario without a fit")
	}
}

// TestRecordWindow: a run records no more than its window.
func TestRecordWindow(t *testing.T) {
	t.Chdir(t.TempDir())
	lines := func(args ...string) int {
		t.Helper()
		args = append([]string{"run", "--packets", "400", "--set", "traffic.arrivals.rate=20000 packets/s", "--record", "w.csv"}, args...)
		if code, _, stderr := spinesim(args...); code != 0 {
			t.Fatalf("%q: %s", args, stderr)
		}
		b, err := os.ReadFile("w.csv")
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(string(b), "\n")
	}
	all := lines()
	for _, w := range [][]string{
		{"--record-from", "5 ms", "--record-to", "6 ms"},
		{"--record-after", "200"},
		{"--record-around-gap", "2"},
		{"--record-before-drop", "30"},
	} {
		if n := lines(w...); n < 20 || n > all*3/4 {
			t.Errorf("%q: %d lines of %d", w, n, all)
		}
	}
	few := lines("--record-from", "5 ms", "--record-to", "6 ms")
	if polls := lines("--record-from", "5 ms", "--record-to", "6 ms", "--record-polls"); polls < few+5000 {
		t.Errorf("%d lines with single polls, %d without", polls, few)
	}
	if code, _, stderr := spinesim("run", "--record", "w.csv", "--record-from", "6 ms", "--record-to", "5 ms"); code != 2 || !strings.Contains(stderr, "--record-from") {
		t.Errorf("a window that ends before it begins: status %d, %s", code, stderr)
	}
}

// TestReplayOfOnePacket: a run too short for a figure says which are missing.
func TestReplayOfOnePacket(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, args := range [][]string{{"replay", "--set", "traffic.packets=1"}, {"replay", "out/record.parquet", "--out", "again"}} {
		code, stdout, stderr := spinesim(args...)
		if code != 0 || !strings.HasSuffix(stdout, "\nfound nothing to draw for event-graph-best, event-graph-slow, oscillation\n") {
			t.Errorf("spinesim %q: status %d\n%s%s", args, code, stdout, stderr)
		}
	}
}
