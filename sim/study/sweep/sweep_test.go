package sweep

import (
	"bufio"
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/parquet-go/parquet-go"

	"spinesim/sim"
	"spinesim/sim/study"
)

// small is a sweep of 24 points that takes a moment.
const small = `
scenario: fig6.4
settings:
  traffic.packets: 30
replications: 2
factors:
  policy: [default, pci-first, round-robin]
  firmware.buffers: [2, 16]
  traffic.arrivals.rate: {from: 10000 packets/s, to: 16000 packets/s, levels: 4}
`

// childEnv makes a process of the tests a sweep that the test may kill.
const childEnv = "SPINESIM_SWEEP_CHILD"

func TestMain(m *testing.M) {
	if path := os.Getenv(childEnv); path != "" {
		if err := child(path); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// child sweeps into a database and prints a line for each commit.
func child(path string) error {
	d, err := ParseDesign([]byte(small), "sweep.yaml")
	if err != nil {
		return err
	}
	db, err := OpenStore(path)
	if err != nil {
		return err
	}
	defer db.Close()
	_, err = Run(context.Background(), d, db, Options{Progress: func(done, _ int64, _ string) { fmt.Println(done) }})
	return err
}

func store(t testing.TB, name string) *Store {
	t.Helper()
	s, err := OpenStore(filepath.Join(t.TempDir(), name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func sweepInto(t testing.TB, db *Store, text string, opt Options) *Report {
	t.Helper()
	r, err := Run(t.Context(), design(t, text), db, opt)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// table is everything in the table of runs, sorted by key.
func table(t testing.TB, s *Store) string {
	t.Helper()
	cols, err := s.columns()
	if err != nil {
		t.Fatal(err)
	}
	quoted := make([]string, len(cols))
	for i, c := range cols {
		quoted[i] = column(c)
	}
	rows, err := s.db.Query("SELECT " + strings.Join(quoted, ", ") + " FROM runs ORDER BY key")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var b strings.Builder
	fmt.Fprintln(&b, cols)
	for rows.Next() {
		v, p := make([]any, len(cols)), make([]any, len(cols))
		for i := range v {
			p[i] = &v[i]
		}
		if err := rows.Scan(p...); err != nil {
			t.Fatal(err)
		}
		for i := range v {
			fmt.Fprintf(&b, "%T %v|", v[i], cell(v[i]))
		}
		fmt.Fprintln(&b)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// insertions are the keys in the order in which their rows came in, which a
// restart must not change for those that were there.
func insertions(t testing.TB, s *Store) []string {
	t.Helper()
	rows, err := s.db.Query("SELECT key FROM runs ORDER BY rowid")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var out []string
	for rows.Next() {
		var k string
		if err := rows.Scan(&k); err != nil {
			t.Fatal(err)
		}
		out = append(out, k)
	}
	return out
}

// TestSweepKilled kills a sweep three times and lets it end: nothing is lost,
// nothing repeated, and its table is that of an undisturbed one.
func TestSweepKilled(t *testing.T) {
	undisturbed := store(t, "undisturbed.db")
	whole := sweepInto(t, undisturbed, small, Options{})
	if whole.Made != 48 || whole.Found != 0 || whole.Points != 24 {
		t.Fatalf("undisturbed: %+v", whole)
	}
	path := filepath.Join(t.TempDir(), "killed.db")
	var before []string
	for kill := range 3 {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), childEnv+"="+path)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		// Kill it while it works, right after some commits.
		lines := bufio.NewScanner(out)
		reported := 0
		for lines.Scan() {
			if reported, err = strconv.Atoi(lines.Text()); err != nil {
				t.Fatalf("child said %q", lines.Text())
			}
			if reported >= 5+3*kill {
				break
			}
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err == nil || stderr.Len() > 0 {
			t.Fatalf("child %d ended by itself: %v %s", kill, err, &stderr)
		}
		db, err := OpenStore(path)
		if err != nil {
			t.Fatal(err)
		}
		now := insertions(t, db)
		db.Close()
		if len(now) < len(before)+reported || len(now) >= 48 {
			t.Fatalf("kill %d: %d runs are there, %d before it and %d reported", kill, len(now), len(before), reported)
		}
		if d := cmp.Diff(before, now[:len(before)], cmpopts.EquateEmpty()); d != "" {
			t.Fatalf("kill %d: earlier runs changed: %s", kill, d)
		}
		before = now
	}
	db, err := OpenStore(path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	r := sweepInto(t, db, small, Options{})
	if r.Found != len(before) || r.Made != 48-len(before) {
		t.Errorf("after the kills: %d found and %d made, want %d and %d", r.Found, r.Made, len(before), 48-len(before))
	}
	if d := cmp.Diff(table(t, undisturbed), table(t, db)); d != "" {
		t.Errorf("the tables differ:\n%s", d)
	}
	if r := sweepInto(t, db, small, Options{}); r.Made != 0 || r.Found != 48 {
		t.Errorf("once more: %+v", r)
	}
}

func TestSweepShards(t *testing.T) {
	whole := store(t, "whole.db")
	sweepInto(t, whole, small, Options{Workers: 1})
	merged := store(t, "merged.db")
	made := 0
	for i := range 3 {
		part := store(t, fmt.Sprintf("part%d.db", i))
		r := sweepInto(t, part, small, Options{Shard: Shard{i, 3}, Workers: 2})
		if r.Planned != 16 || r.Made != 16 || r.Shard != fmt.Sprintf("%d/3", i) {
			t.Errorf("shard %d: %+v", i, r)
		}
		made += r.Made
		for _, want := range []int{16, 0} { // merging again adds nothing
			n, err := merged.Merge(t.Context(), part)
			if err != nil || n != want {
				t.Errorf("merge of shard %d: %d new, %v; want %d", i, n, err, want)
			}
		}
	}
	if made != 48 {
		t.Errorf("%d runs in all shards, want 48", made)
	}
	if d := cmp.Diff(table(t, whole), table(t, merged)); d != "" {
		t.Errorf("the shards merged differ from the whole:\n%s", d)
	}
	// A run that gave something else in another database.
	liar := store(t, "liar.db")
	sweepInto(t, liar, small, Options{Shard: Shard{0, 24}})
	if _, err := liar.db.Exec("UPDATE runs SET fingerprint = 'another' WHERE replication = 1"); err != nil {
		t.Fatal(err)
	}
	before := table(t, merged)
	if _, err := merged.Merge(t.Context(), liar); !errors.Is(err, ErrDiffers) {
		t.Errorf("merging a run that differs: %v", err)
	}
	if d := cmp.Diff(before, table(t, merged)); d != "" {
		t.Errorf("a merge that failed changed the table:\n%s", d)
	}
}

func TestSweepGrows(t *testing.T) {
	db := store(t, "grows.db")
	sweepInto(t, db, small, Options{})
	first := insertions(t, db)
	r := sweepInto(t, db, small, Options{Replications: 3})
	if r.Found != 48 || r.Made != 24 {
		t.Errorf("a third replication: %+v", r)
	}
	// A further factor: its present value has been run already.
	more := small + "  firmware.credits: [4, 8]\n"
	r = sweepInto(t, db, more, Options{})
	if r.Found != 48 || r.Made != 48 || r.Points != 48 {
		t.Errorf("a further factor: %+v", r)
	}
	if d := cmp.Diff(first, insertions(t, db)[:48]); d != "" {
		t.Errorf("the first runs changed: %s", d)
	}
	var without int
	if err := db.db.QueryRow(`SELECT count(*) FROM runs WHERE "firmware.credits" IS NULL`).Scan(&without); err != nil || without != 0 {
		t.Errorf("%d runs do not say their credits, %v", without, err)
	}
	s, err := db.Summary([]string{"gap_us"})
	if err != nil {
		t.Fatal(err)
	}
	if s.Runs != 120 || len(s.Points) != 48 {
		t.Errorf("%d runs of %d points", s.Runs, len(s.Points))
	}
	for _, p := range s.Points {
		want := 2
		if p.Values[3] == int64(4) {
			want = 3
		}
		if p.Replications != want || p.Figures["gap_us"].N != want {
			t.Errorf("point %v: %d replications, want %d", p.Values, p.Replications, want)
		}
	}
}

// TestSweepRows looks at one row against the same run made by hand.
func TestSweepRows(t *testing.T) {
	db := store(t, "rows.db")
	sweepInto(t, db, small, Options{})
	sc := scenario(t, "fig6.4", "traffic.packets=30", "policy=pci-first", "firmware.buffers=2", "traffic.arrivals.rate=12000 packets/s", "seed=2")
	want, err := sim.Run(t.Context(), sc, sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var key, print string
	var gap, loss float64
	var received, seed int64
	err = db.db.QueryRow(`SELECT key, fingerprint, gap_us, loss, received, seed FROM runs
		WHERE policy = 'pci-first' AND "firmware.buffers" = 2 AND "traffic.arrivals.rate" = 12000 AND replication = 1`).Scan(&key, &print, &gap, &loss, &received, &seed)
	if err != nil {
		t.Fatal(err)
	}
	if print != want.Fingerprint || gap != float64(want.Gap.Mean) || loss != float64(want.Loss) || received != 30 || seed != 2 {
		t.Errorf("row: %s, %v µs, %v, %d, seed %d; want %s, %v, %v", print, gap, loss, received, seed, want.Fingerprint, want.Gap.Mean, want.Loss)
	}
	got, err := db.Result(key)
	if err != nil {
		t.Fatal(err)
	}
	want.WallS = 0
	if d := cmp.Diff(asJSON(t, want), asJSON(t, got)); d != "" {
		t.Error(d)
	}
	vs, err := db.Values(want.ScenarioHash, "gap_us")
	if err != nil || len(vs) != 2 || vs[1] != want.Gap.Mean {
		t.Errorf("values of the point: %v, %v", vs, err)
	}
	if _, err := db.Result("none"); err == nil {
		t.Error("a run that is not there has a result")
	}
}

func TestSweepSummary(t *testing.T) {
	db := store(t, "summary.db")
	sweepInto(t, db, small, Options{})
	s, err := db.Summary(nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Points) != 24 || s.Runs != 48 || len(s.Metrics) != len(study.Metrics()) || len(s.Effects) != 3+2+4 {
		t.Fatalf("%d points, %d runs, %d metrics, %d effects", len(s.Points), s.Runs, len(s.Metrics), len(s.Effects))
	}
	// An effect by hand, in SQL.
	for _, e := range s.Effects {
		var want float64
		if err := db.db.QueryRow(`SELECT avg(gap_us) FROM runs WHERE `+column(e.Parameter)+` = ?`, e.Value).Scan(&want); err != nil {
			t.Fatal(err)
		}
		if got := float64(e.Figures["gap_us"].Mean); got/want > 1+1e-12 || got/want < 1-1e-12 {
			t.Errorf("%s = %v: gap %v, want %v", e.Parameter, e.Value, got, want)
		}
	}
	var in *sim.InputError
	if _, err := db.Summary([]string{"speed"}); !errors.As(err, &in) {
		t.Errorf("a metric that is not there: %v", err)
	}
}

func TestSweepExport(t *testing.T) {
	db := store(t, "export.db")
	// One packet has no gap to the next: a figure that is missing.
	sweepInto(t, db, `
scenario: fig6.4
replications: 2
factors:
  traffic.packets: [1, 40]
  firmware.receive: [split, whole]
  firmware.poll: [12 cycles, 20 cycles]
`, Options{})
	var text bytes.Buffer
	if err := db.WriteCSV(&text); err != nil {
		t.Fatal(err)
	}
	lines, err := csv.NewReader(&text).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if len(lines) != 17 {
		t.Fatalf("%d lines, want a header and 16 runs", len(lines))
	}
	at := map[string]int{}
	for i, n := range lines[0] {
		at[n] = i
	}
	var got []string
	for _, l := range lines[1:] {
		got = append(got, strings.Join([]string{l[at["traffic.packets"]], l[at["firmware.receive"]], l[at["firmware.poll (cycles)"]], l[at["replication"]]}, " "))
		if (l[at["gap_us"]] == "") != (l[at["traffic.packets"]] == "1") {
			t.Errorf("gap %q with %s packets", l[at["gap_us"]], l[at["traffic.packets"]])
		}
	}
	want := []string{
		"1 split 12 0", "1 split 12 1", "1 split 20 0", "1 split 20 1", "1 whole 12 0", "1 whole 12 1", "1 whole 20 0", "1 whole 20 1",
		"40 split 12 0", "40 split 12 1", "40 split 20 0", "40 split 20 1", "40 whole 12 0", "40 whole 12 1", "40 whole 20 0", "40 whole 20 1",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}

	// The Parquet file holds the same, cell by cell.
	var file bytes.Buffer
	if err := db.WriteParquet(&file); err != nil {
		t.Fatal(err)
	}
	pf, err := parquet.OpenFile(bytes.NewReader(file.Bytes()), int64(file.Len()))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range pf.Schema().Fields() {
		names = append(names, f.Name())
	}
	if d := cmp.Diff(lines[0], names); d != "" {
		t.Fatal(d)
	}
	rows := pf.RowGroups()[0].Rows()
	defer rows.Close()
	buf := make([]parquet.Row, 32)
	n, _ := rows.ReadRows(buf)
	if n != 16 {
		t.Fatalf("%d rows, want 16", n)
	}
	for i, r := range buf[:n] {
		for j, v := range r {
			text := ""
			switch {
			case v.IsNull():
			case v.Kind() == parquet.Double:
				text = cell(v.Double())
			case v.Kind() == parquet.Int64:
				text = cell(v.Int64())
			default:
				text = string(v.ByteArray())
			}
			if want := lines[i+1][j]; text != want {
				t.Errorf("row %d, %s: %q, want %q", i, names[j], text, want)
			}
		}
	}
	if k := pf.Schema().Fields()[at["firmware.poll (cycles)"]].Type().Kind(); k != parquet.Int64 {
		t.Errorf("cycles are of kind %v", k)
	}
	if k := pf.Schema().Fields()[at["gap_us"]].Type().Kind(); k != parquet.Double {
		t.Errorf("gaps are of kind %v", k)
	}
}

func TestSweepInterrupted(t *testing.T) {
	db := store(t, "cut.db")
	ctx, cancel := context.WithCancel(t.Context())
	r, err := Run(ctx, design(t, small), db, Options{Progress: func(done, _ int64, _ string) {
		if done >= 7 {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) || !r.Interrupted || r.Made < 7 || r.Made > 30 {
		t.Fatalf("%+v, %v", r, err)
	}
	if n := len(insertions(t, db)); n != r.Made {
		t.Errorf("%d runs are there, %d were made", n, r.Made)
	}
	if r2 := sweepInto(t, db, small, Options{}); r2.Found != r.Made || r2.Found+r2.Made != 48 {
		t.Errorf("%+v", r2)
	}
}

// TestSweepFailures has a run that cannot be made: the others are.
func TestSweepFailures(t *testing.T) {
	dir := t.TempDir()
	routes := filepath.Join(dir, "routes.txt")
	if err := os.WriteFile(routes, []byte("no prefix at all\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	db := store(t, "failures.db")
	r, err := Run(t.Context(), design(t, `
scenario: fig6.4
settings: {traffic.packets: 20}
factors:
  routes.file: ["`+routes+`", ""]
`), db, Options{})
	if err == nil || r == nil || len(r.Failed) != 1 || r.Made != 1 || !strings.Contains(err.Error(), "routes.txt") {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestSweepDiffersFromWhatIsThere(t *testing.T) {
	db := store(t, "liar.db")
	d := design(t, small)
	p, err := d.Plan(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.AddParameters(t.Context(), p.Parameters); err != nil {
		t.Fatal(err)
	}
	_, w := p.run(0)
	w.Values, w.Counts, w.Fingerprint, w.Version, w.Result = make([]float64, len(study.Metrics())), make([]uint64, 4), "a", "v", "{}"
	if err := db.Insert(t.Context(), p.Parameters, []Row{w}); err != nil {
		t.Fatal(err)
	}
	if err := db.Insert(t.Context(), p.Parameters, []Row{w}); err != nil {
		t.Errorf("the same again: %v", err)
	}
	w.Fingerprint = "b"
	if err := db.Insert(t.Context(), p.Parameters, []Row{w}); !errors.Is(err, ErrDiffers) {
		t.Errorf("something else: %v", err)
	}
}

func TestOpenStoreMistakes(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text.db")
	if err := os.WriteFile(text, []byte(strings.Repeat("this is no database ", 100)), 0o644); err != nil {
		t.Fatal(err)
	}
	foreign := store(t, "foreign.db")
	if _, err := foreign.db.Exec("PRAGMA application_id = 1"); err != nil {
		t.Fatal(err)
	}
	newer := store(t, "newer.db")
	if _, err := newer.db.Exec("PRAGMA user_version = 9"); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ path, want string }{
		"text":      {text, "not a database"},
		"foreign":   {foreign.Path(), "not a database of a sweep"},
		"newer":     {newer.Path(), "version 9, want 1"},
		"directory": {dir, dir},
		"nowhere":   {filepath.Join(dir, "none", "x.db"), "none"},
	} {
		var in *sim.InputError
		if _, err := OpenStore(c.path); !errors.As(err, &in) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want an input error with %q", name, err, c.want)
		}
	}
	if _, err := OpenStoreForReading(filepath.Join(dir, "none.db")); err == nil {
		t.Error("a database that is not there was opened for reading")
	}
	if _, err := os.Stat(filepath.Join(dir, "none.db")); err == nil {
		t.Error("opening for reading made a file")
	}
	// A name that a URL would read otherwise.
	odd := filepath.Join(dir, "50% of a?b#c.db")
	s, err := OpenStore(odd)
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	if _, err := os.Stat(odd); err != nil {
		t.Error(err)
	}
}

func TestParseShard(t *testing.T) {
	for text, want := range map[string]Shard{"0/1": {0, 1}, "3/4": {3, 4}} {
		if got, err := ParseShard(text); err != nil || got != want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "1", "4/4", "-1/4", "1/0", "a/b", "1/4/2"} {
		var in *sim.InputError
		if _, err := ParseShard(text); !errors.As(err, &in) {
			t.Errorf("%q: %v", text, err)
		}
	}
	for of := 1; of < 6; of++ {
		for run := range 50 {
			n := 0
			for i := range of {
				if (Shard{i, of}).has(run) {
					n++
				}
			}
			if n != 1 {
				t.Errorf("run %d is in %d of %d shards", run, n, of)
			}
		}
	}
}

// TestEveryMetricHasAColumn holds the table against the list of metrics.
func TestEveryMetricHasAColumn(t *testing.T) {
	cols, err := store(t, "columns.db").columns()
	if err != nil {
		t.Fatal(err)
	}
	want := append([]string{}, fixedColumns...)
	for _, m := range study.Metrics() {
		want = append(want, m.Name)
	}
	want = append(append(want, countColumns...), "fingerprint", "version", "result")
	if !reflect.DeepEqual(want, cols) {
		t.Error(cmp.Diff(want, cols))
	}
}

// BenchmarkSweep reports how much faster two workers are than one.
func BenchmarkSweep(b *testing.B) {
	text := strings.Replace(small, "traffic.packets: 30", "traffic.packets: 1000", 1)
	var wall [3]float64
	for b.Loop() {
		for _, n := range []int{1, 2} {
			db := store(b, "bench.db")
			start := b.Elapsed()
			sweepInto(b, db, text, Options{Workers: n})
			wall[n] += (b.Elapsed() - start).Seconds()
			db.Close()
		}
	}
	b.ReportMetric(wall[1]/wall[2], "speedup")
	b.ReportMetric(48*float64(b.N)/wall[2], "runs/s")
}
