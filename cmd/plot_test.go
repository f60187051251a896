package cmd

import (
	"bytes"
	"encoding/json"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPlots draws every figure from a file and from a scenario.
func TestPlots(t *testing.T) {
	t.Chdir(t.TempDir())
	recorded(t, nil, "a.parquet")
	recorded(t, []string{"policy=pci-first"}, "b.parquet")
	scenario := []string{"--set", "traffic.packets=300", "--set", "traffic.arrivals.rate=15000 packets/s"}
	for _, tc := range []struct {
		args []string
		says []string
	}{
		{[]string{"events", "a.parquet"}, []string{"best case, a packet every", "Receive Packet 1", "Router In handler"}},
		{append([]string{"events", "--window", "slow", "--style", "colour"}, scenario...), []string{"packets received in a row", "flow control"}},
		{[]string{"events", "a.parquet", "--gap", "2", "--packet", "0", "--title", "Mine"}, []string{"Mine"}},
		{[]string{"events", "a.parquet", "--from", "3 ms", "--span", "400 µs"}, []string{"0 is 3.000 ms of the run"}},
		{[]string{"events", "a.parquet", "--window", "slow", "--span", "13 ms"}, []string{"13000"}},
		{[]string{"timeline", "a.parquet"}, []string{"DMA backlog", "Time (ms)"}},
		{append([]string{"timeline", "--span", "1 ms"}, scenario...), []string{"Time (µs)"}},
		{[]string{"latency", "a.parquet", "b.parquet"}, []string{"a: median", "b: median", "ingress latency (µs)"}},
		{append([]string{"latency", "--of", "gap", "--log", "--policy", "default", "--policy", "round-robin"}, scenario...), []string{"round-robin: median", "gap (µs)"}},
		{[]string{"utilisation", "a.parquet"}, []string{"card 0 processor", "bus"}},
		{[]string{"path", "a.parquet"}, []string{"all gaps", "DMA chain"}},
		{append([]string{"path", "--worst"}, scenario...), []string{"transfer"}},
		{[]string{"compare", "a.parquet", "b.parquet"}, []string{"Mean gap between departures", "quantile"}},
		{[]string{"ilp", "--figure", "6"}, []string{"integration is slower"}},
	} {
		args := append([]string{"plot"}, tc.args...)
		if s := ok(t, append(args, "-o", "x.svg")...); s != "wrote x.svg\n" {
			t.Errorf("%q says %q", args, s)
		}
		b, err := os.ReadFile("x.svg")
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range tc.says {
			if !bytes.Contains(b, []byte(want)) {
				t.Errorf("%q draws no %q", args, want)
			}
		}
		if !bytes.HasSuffix(bytes.TrimSpace(b), []byte("</svg>")) {
			t.Errorf("%q writes no whole SVG", args)
		}
	}
}

// TestPlotFiles: several files at once, and what is drawn as JSON.
func TestPlotFiles(t *testing.T) {
	t.Chdir(t.TempDir())
	recorded(t, nil, "a.rec")
	var v struct {
		Files []string
		Drawn struct {
			Card     uint8
			From     float64 `json:"from_us"`
			To       float64 `json:"to_us"`
			Packet   uint64
			Found    string
			Elephant string
		}
	}
	if err := json.Unmarshal([]byte(ok(t, "plot", "events", "a.rec", "-o", "a.png", "-o", "a.pdf", "--json")), &v); err != nil {
		t.Fatal(err)
	}
	if strings.Join(v.Files, " ") != "a.png a.pdf" || v.Drawn.To-v.Drawn.From < 129 || v.Drawn.To-v.Drawn.From > 131 || v.Drawn.Packet == 0 {
		t.Errorf("%+v", v)
	}
	f, err := os.Open("a.png")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := png.Decode(f); err != nil {
		t.Error(err)
	}
	if b, err := os.ReadFile("a.pdf"); err != nil || !bytes.HasPrefix(b, []byte("%PDF-")) || !bytes.Contains(b[len(b)-20:], []byte("%%EOF")) {
		t.Errorf("a.pdf: %v", err)
	}
}

func TestPlotMistakes(t *testing.T) {
	t.Chdir(t.TempDir())
	recorded(t, nil, "a.rec")
	if err := os.WriteFile("bad.csv", []byte("nothing of the kind\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"events", "absent.rec"}, "absent.rec"},
		{[]string{"events", "bad.csv"}, "bad.csv:1"},
		{[]string{"events", "a.rec", "-o", "x.gif"}, "x.gif"},
		{[]string{"events", "a.rec", "-o", filepath.Join("absent", "x.svg")}, "absent"},
		{[]string{"events", "a.rec", "--style", "baroque"}, "baroque"},
		{[]string{"events", "a.rec", "--window", "open"}, "open"},
		{[]string{"events", "a.rec", "--gap", "99999"}, "99999"},
		{[]string{"events", "a.rec", "--card", "7", "--from", "0 s", "--span", "100 µs"}, "no events"},
		{[]string{"events", "a.rec", "--card", "254"}, "--card"},
		{[]string{"events", "a.rec", "--set", "cards=2"}, "--set"},
		{[]string{"events", "--scenario", "nowhere"}, "nowhere"},
		{[]string{"timeline", "a.rec", "--span", "long"}, "--span"},
		{[]string{"timeline", "a.rec", "--from", "9 s", "--to", "10 s"}, "no events"},
		{[]string{"latency", "a.rec", "--of", "love"}, "love"},
		{[]string{"latency", "a.rec", "--policy", "default"}, "--policy"},
		{[]string{"compare", "a.rec", "absent.rec"}, "absent.rec"},
		{[]string{"compare", "--policy", "fastest"}, "fastest"},
		{[]string{"ilp", "--figure", "4"}, "--figure 4"},
		{[]string{"utilisation", "a.rec", "b.rec"}, "arg"},
	} {
		code, stdout, stderr := spinesim(append([]string{"plot"}, tc.args...)...)
		if code != 2 || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, tc.want) || stdout != "" {
			t.Errorf("plot %q: status %d, %q, %q; want one line that names %q", tc.args, code, stderr, stdout, tc.want)
		}
	}
	files, err := filepath.Glob("*")
	if err != nil || len(files) != 2 {
		t.Errorf("%v after commands that all failed", files)
	}
}

func TestReport(t *testing.T) {
	t.Chdir(t.TempDir())
	recorded(t, nil, "a.parquet")
	var v struct {
		File    string
		Bytes   int64
		Records uint64
		Events  int
		From    float64 `json:"from_us"`
		To      float64 `json:"to_us"`
		Figures int
	}
	report := func(args ...string) string {
		t.Helper()
		if err := json.Unmarshal([]byte(ok(t, append([]string{"report", "-o", "r.html", "--json"}, args...)...)), &v); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile("r.html")
		if err != nil {
			t.Fatal(err)
		}
		if int64(len(b)) != v.Bytes {
			t.Errorf("%d bytes, said %d", len(b), v.Bytes)
		}
		return string(b)
	}
	page := report("a.parquet")
	if v.Records == 0 || uint64(v.Events) != v.Records || v.Figures < 6 {
		t.Errorf("%+v", v)
	}
	for _, want := range []string{"<title>spinesim: fig6.4</title>", "Departure gap", "fingerprint", "<canvas", "Where the time between departures goes", "EnQ IP output", "name: fig6.4"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %q", want)
		}
	}
	// The fingerprint is that of the run.
	s := ok(t, "run", "--packets", "600", "--set", "traffic.arrivals.rate=15000 packets/s", "--json")
	var run struct{ Fingerprint string }
	if err := json.Unmarshal([]byte(s), &run); err != nil || !strings.Contains(page, run.Fingerprint) {
		t.Errorf("the page does not show fingerprint %q, %v", run.Fingerprint, err)
	}
	report("a.parquet", "--events", "5000", "--title", "A <part>")
	if v.Events > 5000 || v.Events < 2000 {
		t.Errorf("%d events of at most 5000", v.Events)
	}
	report("a.parquet", "--from", "5 ms", "--to", "6 ms")
	if v.From != 5000 || v.To != 6000 || v.Events == 0 {
		t.Errorf("%+v", v)
	}
	// Of a scenario, polls in the windows are there one by one.
	page = report("--set", "traffic.packets=300", "--set", "traffic.arrivals.rate=15000 packets/s")
	if uint64(v.Events) <= v.Records {
		t.Errorf("%d events of %d records: no polls of their own", v.Events, v.Records)
	}
	if page != report("--set", "traffic.packets=300", "--set", "traffic.arrivals.rate=15000 packets/s") {
		t.Error("the same scenario gives different pages")
	}
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"absent.rec"}, "absent.rec"},
		{[]string{"a.parquet", "--events", "0"}, "--events"},
		{[]string{"a.parquet", "-o", "a.parquet"}, "both input and output"},
		{[]string{"a.parquet", "-o", filepath.Join("absent", "r.html")}, "absent"},
		{[]string{"a.parquet", "--from", "x"}, "--from"},
	} {
		code, _, stderr := spinesim(append([]string{"report"}, tc.args...)...)
		if code != 2 || !strings.Contains(stderr, tc.want) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("report %q: status %d, %q", tc.args, code, stderr)
		}
	}
}
