package cmd

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"spinesim/traces"
)

// recorded runs a scenario and leaves its record, of the given formats.
func recorded(t *testing.T, settings []string, paths ...string) {
	t.Helper()
	args := []string{"run", "--packets", "600", "--set", "traffic.arrivals.rate=15000 packets/s"}
	for _, s := range settings {
		args = append(args, "--set", s)
	}
	for _, p := range paths {
		args = append(args, "--record", p)
	}
	if code, _, stderr := spinesim(args...); code != 0 {
		t.Fatal(stderr)
	}
}

// ok runs a command that must succeed.
func ok(t *testing.T, args ...string) string {
	t.Helper()
	code, stdout, stderr := spinesim(args...)
	if code != 0 {
		t.Fatalf("spinesim %q: status %d: %s", args, code, stderr)
	}
	return stdout
}

// read gives all records of a file.
func read(t *testing.T, path string) []traces.Record {
	t.Helper()
	r, err := traces.OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	k := &keptRecords{most: 1e7}
	if _, err := traces.Convert(r, k); err != nil {
		t.Fatal(err)
	}
	return k.records
}

// TestTraceConvert: every format is written, and through those that can be read
// back the record comes out as it went in.
func TestTraceConvert(t *testing.T) {
	t.Chdir(t.TempDir())
	recorded(t, nil, "a.rec")
	want := read(t, "a.rec")
	last := "a.rec"
	for _, f := range traces.Formats() {
		for _, ext := range []string{"", ".gz", ".zst"} {
			out := "b" + f.Extensions[0] + ext
			ok(t, "trace", "convert", last, out)
			if f.Readable {
				if got := read(t, out); len(got) != len(want) || fmt.Sprint(got) != fmt.Sprint(want) {
					t.Fatalf("%s differs from %s", out, last)
				}
				last = out
			}
		}
	}
	var m struct {
		Records uint64 `json:"records"`
		Bytes   int64  `json:"bytes"`
	}
	if err := json.Unmarshal([]byte(ok(t, "trace", "convert", last, "c.csv", "--json")), &m); err != nil {
		t.Fatal(err)
	}
	if st, err := os.Stat("c.csv"); err != nil || m.Bytes != st.Size() || m.Records != uint64(len(want)) {
		t.Errorf("--json says %+v of %d records", m, len(want))
	}
	ok(t, "trace", "diff", "a.rec", "c.csv")
}

func TestTraceCut(t *testing.T) {
	t.Chdir(t.TempDir())
	recorded(t, []string{"traffic.fifo=2"}, "a.rec")
	all := read(t, "a.rec")
	keep := func(f func(*traces.Record) bool) (n int) {
		for i := range all {
			if f(&all[i]) {
				n++
			}
		}
		return n
	}
	for _, tc := range []struct {
		args []string
		want int
	}{
		{[]string{"--from", "2 ms", "--to", "3 ms"}, keep(func(r *traces.Record) bool { return r.End >= 2e9 && r.Start <= 3e9 })},
		{[]string{"--packets", "7,100-110"}, keep(func(r *traces.Record) bool { return r.Packet == 7 || r.Packet >= 100 && r.Packet <= 110 })},
		{[]string{"--packets", "590-", "--kind", "box,leave"}, keep(func(r *traces.Record) bool {
			return r.Packet >= 590 && (r.Kind == traces.KindBox || r.Kind == traces.KindLeave)
		})},
		{[]string{"--card", "2"}, keep(func(r *traces.Record) bool { return r.Card == 2 || r.Kind == traces.KindTransfer && r.Peer == 2 })},
		{nil, len(all)},
	} {
		ok(t, append([]string{"trace", "cut", "a.rec", "b.parquet"}, tc.args...)...)
		if got := len(read(t, "b.parquet")); got != tc.want || got == 0 {
			t.Errorf("cut %q keeps %d records, want %d", tc.args, got, tc.want)
		}
	}
	// Round the longest gap lie its two departures.
	ok(t, "trace", "cut", "a.rec", "gap.rec", "--around-gap", "1", "--margin", "50 µs")
	w := traces.NewWorstGaps(1)
	for i := range all {
		_ = w.Record(&all[i])
	}
	g := w.Gaps()[0]
	departs := 0
	for _, r := range read(t, "gap.rec") {
		if r.End < g.From-50e6 || r.Start > g.To+50e6 {
			t.Fatalf("a record from %v to %v is not near the gap from %v to %v", r.Start, r.End, g.From, g.To)
		}
		if r.Kind == traces.KindDepart && (r.End == g.From || r.End == g.To) {
			departs++
		}
	}
	if departs != 2 {
		t.Errorf("%d of the gap's departures", departs)
	}
	// Each drop with what led to it.
	ok(t, "trace", "cut", "a.rec", "drops.rec", "--before-drop", "30", "--reason", "FIFO full", "--drops", "2")
	if got := read(t, "drops.rec"); len(got) > 60 || len(got) < 31 || got[len(got)-1].Verdict != traces.VerdictDropped {
		t.Errorf("%d records before drops, the last %v", len(got), got[len(got)-1].Kind)
	}
	// A part is measured and checked as one, and says that it is one.
	if s := ok(t, "trace", "check", "a.rec", "gap.rec"); !strings.Contains(s, "a.rec: every invariant held") || !strings.Contains(s, "a part of a run") {
		t.Error(s)
	}
	if s := ok(t, "trace", "stats", "gap.rec"); !strings.Contains(s, "cut --around-gap 1") {
		t.Error(s)
	}
}

// TestTraceCheckFinds: a record in which something is wrong is found out.
func TestTraceCheckFinds(t *testing.T) {
	t.Chdir(t.TempDir())
	recorded(t, nil, "a.txt")
	b, err := os.ReadFile("a.txt")
	if err != nil {
		t.Fatal(err)
	}
	// A packet that leaves twice. Without its comments a listing may be edited.
	var lines []string
	for _, l := range strings.Split(string(b), "\n") {
		if strings.HasPrefix(l, "#") {
			continue
		}
		lines = append(lines, l)
		if strings.Contains(l, "leave ") && strings.Contains(l, "packet=9 ") {
			lines = append(lines, l)
		}
	}
	if err := os.WriteFile("bad.txt", []byte(strings.Join(lines, "\n")), 0o644); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := spinesim("trace", "check", "bad.txt")
	if code != 1 || !strings.Contains(stdout, "before it:") || !strings.Contains(stderr, "broken") {
		t.Errorf("status %d: %s%s", code, stdout, stderr)
	}
	code, stdout, _ = spinesim("trace", "check", "--json", "a.txt", "bad.txt")
	var got []checked
	if err := json.Unmarshal([]byte(stdout), &got); err != nil {
		t.Fatal(err)
	}
	if code != 1 || len(got) != 2 || got[0].Total != 0 || got[1].Total == 0 || got[0].Part || got[0].Records == 0 {
		t.Errorf("status %d, %+v", code, got)
	}
}

// TestTraceStats: measures of the file are those that the run printed.
func TestTraceStats(t *testing.T) {
	t.Chdir(t.TempDir())
	printed := ok(t, "run", "--packets", "600", "--set", "traffic.arrivals.rate=15000 packets/s", "--record", "a.parquet", "--json")
	var live, file map[string]any
	if err := json.Unmarshal([]byte(printed), &live); err != nil {
		t.Fatal(err)
	}
	var s struct {
		Measures map[string]any
		Path     traces.PathResult `json:"critical_path"`
	}
	if err := json.Unmarshal([]byte(ok(t, "trace", "stats", "a.parquet", "--json")), &s); err != nil {
		t.Fatal(err)
	}
	file = s.Measures
	for _, key := range []string{"received", "forwarded", "gap_us", "latency_us", "slow_share", "fast_share", "bubbles", "backlog", "dma_step_us", "occupancy_us"} {
		if a, b := fmt.Sprint(live[key]), fmt.Sprint(file[key]); a != b {
			t.Errorf("%s: %s in the run, %s in its file", key, a, b)
		}
	}
	if s.Path.All.N == 0 {
		t.Error("no gap was explained")
	}
	if text := ok(t, "trace", "stats", "a.parquet", "--from", "5 ms", "--to", "10 ms"); !strings.Contains(text, "where the time between departures goes") {
		t.Error(text)
	}
}

func TestTraceDiff(t *testing.T) {
	t.Chdir(t.TempDir())
	recorded(t, nil, "a.rec", "same.csv")
	recorded(t, []string{"policy=pci-first"}, "b.rec")
	if s := ok(t, "trace", "diff", "a.rec", "same.csv"); !strings.Contains(s, "the same records") {
		t.Error(s)
	}
	code, stdout, stderr := spinesim("trace", "diff", "a.rec", "b.rec", "--context", "2")
	if code != 1 || !strings.Contains(stdout, "set up differently") || !strings.Contains(stdout, "\n- ") || !strings.Contains(stdout, "\n+ ") || !strings.Contains(stderr, "part after") {
		t.Errorf("status %d: %s%s", code, stdout, stderr)
	}
	code, stdout, _ = spinesim("trace", "diff", "a.rec", "b.rec", "--json")
	var d divergence
	if err := json.Unmarshal([]byte(stdout), &d); err != nil || code != 1 || d.Same || len(d.RecordsA) == 0 || len(d.RecordsB) == 0 || len(d.Meta) == 0 {
		t.Errorf("status %d, %v: %+v", code, err, d)
	}
}

func TestTraceDump(t *testing.T) {
	t.Chdir(t.TempDir())
	recorded(t, nil, "a.rec")
	all := read(t, "a.rec")
	if err := os.WriteFile("b.txt", []byte(ok(t, "trace", "dump", "a.rec")), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := read(t, "b.txt"); fmt.Sprint(got) != fmt.Sprint(all) {
		t.Error("a dump read back is another record")
	}
	count := func(s string) (n int) {
		for l := range strings.SplitSeq(strings.TrimSpace(s), "\n") {
			if !strings.HasPrefix(l, "#") {
				n++
			}
		}
		return n
	}
	if n := count(ok(t, "trace", "dump", "a.rec", "-n", "7")); n != 7 {
		t.Errorf("-n 7 lists %d records", n)
	}
	d := json.NewDecoder(strings.NewReader(ok(t, "trace", "dump", "a.rec", "--json", "--packets", "5", "--kind", "box")))
	n := 0
	for d.More() {
		var r recordJSON
		if err := d.Decode(&r); err != nil {
			t.Fatal(err)
		}
		if r.Kind != "box" || r.Packet != 5 || r.Event == "" || r.Card == nil || r.End <= r.Start {
			t.Errorf("%+v", r)
		}
		n++
	}
	if n < 12 {
		t.Errorf("only %d boxes of packet 5", n)
	}
}

// TestTraceMistakes: one line, status 2, and no output that is not whole.
func TestTraceMistakes(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	recorded(t, nil, "a.rec", "a.csv", "a.parquet")
	for _, f := range []string{"a.rec", "a.csv", "a.parquet"} {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile("cut-"+f, b[:len(b)/2], 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile("foreign-"+f, []byte(strings.Repeat("no record at all ", 40)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile("out.csv", []byte("kept"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"convert", "a.rec"}, "2 arg"},
		{[]string{"convert", "absent.rec", "out.csv"}, "absent.rec"},
		{[]string{"convert", "a.rec", "b.unknown"}, "b.unknown"},
		{[]string{"convert", "a.rec", filepath.Join("absent", "b.csv")}, "absent"},
		{[]string{"convert", "a.rec", "a.rec"}, "both input and output"},
		{[]string{"convert", "cut-a.rec", "out.csv"}, "cut-a.rec: record: byte"},
		{[]string{"convert", "cut-a.csv", "out.csv"}, "cut-a.csv:"},
		{[]string{"convert", "cut-a.parquet", "out.csv"}, "cut-a.parquet: Parquet: byte"},
		{[]string{"convert", "foreign-a.rec", "out.csv"}, "foreign-a.rec: record: byte 0"},
		{[]string{"convert", "a.rec", "x.json.rar"}, "x.json.rar"},
		{[]string{"check", "foreign-a.csv"}, "foreign-a.csv:1"},
		{[]string{"check"}, "1 arg"},
		{[]string{"stats", "foreign-a.parquet"}, "foreign-a.parquet"},
		{[]string{"stats", "a.rec", "--from", "soon"}, "--from"},
		{[]string{"stats", "a.rec", "--from", "5 ms", "--to", "4 ms"}, "--to"},
		{[]string{"stats", "a.rec", "--from", "50 s"}, "no records"},
		{[]string{"diff", "a.rec", "cut-a.csv"}, "cut-a.csv"},
		{[]string{"diff", "a.rec", "a.csv", "--context", "-1"}, "--context"},
		{[]string{"dump", "absent.txt"}, "absent.txt"},
		{[]string{"dump", "a.rec", "--kind", "cube"}, "cube"},
		{[]string{"dump", "a.rec", "--packets", "9-3"}, "9-3"},
		{[]string{"dump", "a.rec", "--packets", "x"}, "x"},
		{[]string{"dump", "a.rec", "--card", "300"}, "300"},
		{[]string{"cut", "a.rec", "out.csv", "--around-gap", "9999"}, "9999"},
		{[]string{"cut", "a.rec", "out.csv", "--around-gap", "1", "--before-drop", "5"}, "exclude"},
		{[]string{"cut", "a.rec", "out.csv", "--before-drop", "5", "--reason", "whim"}, "whim"},
		{[]string{"cut", "a.rec", "out.csv", "--margin", "wide"}, "--margin"},
	} {
		code, stdout, stderr := spinesim(append([]string{"trace"}, tc.args...)...)
		if code != 2 || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, tc.want) || stdout != "" && tc.args[0] != "dump" {
			t.Errorf("trace %q: status %d, %q, %q; want one line that names %q", tc.args, code, stderr, stdout, tc.want)
		}
	}
	if b, err := os.ReadFile("out.csv"); err != nil || string(b) != "kept" {
		t.Errorf("a failed command left %d bytes in an older file, %v", len(b), err)
	}
	left, err := filepath.Glob(".*")
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	// What is whole of a damaged file can be had.
	for _, f := range []string{"cut-a.rec", "cut-a.csv"} {
		code, stdout, stderr := spinesim("trace", "convert", "--partial", f, "part.csv")
		if code != 0 || !strings.Contains(stderr, "read in part") || !strings.Contains(stdout, "records") {
			t.Errorf("--partial %s: status %d: %s", f, code, stderr)
		}
		got, all := read(t, "part.csv"), read(t, "a.rec")
		if len(got) < len(all)/4 || len(got) >= len(all) || fmt.Sprint(got) != fmt.Sprint(all[:len(got)]) {
			t.Errorf("--partial %s gives %d of %d records", f, len(got), len(all))
		}
		if s := ok(t, "trace", "check", "--partial", f); !strings.Contains(s, "every invariant held") || !strings.Contains(s, "the readable part of a file") || strings.Contains(s, "whole run") {
			t.Error(s)
		}
	}
}

// TestTraceInterrupted: an interrupted command says so and leaves no file.
func TestTraceInterrupted(t *testing.T) {
	t.Chdir(t.TempDir())
	recorded(t, nil, "a.rec")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, args := range [][]string{
		{"trace", "convert", "a.rec", "b.csv"}, {"plot", "events", "a.rec", "-o", "b.svg"}, {"report", "a.rec", "-o", "b.html"}, {"plot", "path", "-o", "b.svg"},
	} {
		var o, e bytes.Buffer
		if code := Execute(ctx, args, nil, &o, &e); code != 1 || !strings.Contains(e.String(), "interrupted") || strings.Count(e.String(), "\n") != 1 {
			t.Errorf("%q: status %d, %q", args, code, e.String())
		}
	}
	if files, _ := filepath.Glob("b.*"); len(files) > 0 {
		t.Errorf("left behind: %v", files)
	}
}

func TestTraceFormats(t *testing.T) {
	s := ok(t, "trace", "formats")
	for _, f := range traces.Formats() {
		if !strings.Contains(s, f.Extensions[0]) {
			t.Errorf("formats lists no %s", f.Extensions[0])
		}
	}
	var rows []map[string]any
	if err := json.Unmarshal(bytes.TrimSpace([]byte(ok(t, "trace", "formats", "--json"))), &rows); err != nil || len(rows) != len(traces.Formats()) {
		t.Errorf("%d formats, %v", len(rows), err)
	}
}
