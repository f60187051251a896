package cmd

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/pprof/profile"
)

// TestSample profiles a periodic load: a timer in step with it is far off, a
// jittered one is not, and the files are profiles.
func TestSample(t *testing.T) {
	dir := t.TempDir()
	errorOf := func(args ...string) float64 {
		t.Helper()
		file := filepath.Join(dir, "s.pb.gz")
		code, out, errs := spinesim(append([]string{
			"run", "--packets", "2000", "--json", "--set", "traffic.arrivals.process=constant", "--set", "traffic.arrivals.senders=1",
			"--set", "traffic.arrivals.rate=100 µs", "--sample", "100 µs=" + file,
		}, args...)...)
		if code != 0 {
			t.Fatal(errs)
		}
		var r struct {
			Forwarded uint64
			Sampled   []struct {
				Samples uint64
				Sigmas  float64 `json:"worst_sigmas"`
			}
		}
		if err := json.Unmarshal([]byte(out), &r); err != nil || r.Forwarded != 2000 || len(r.Sampled) != 1 {
			t.Fatalf("%v, %+v", err, r)
		}
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		prof, err := profile.ParseData(b)
		if err != nil {
			t.Fatal(err)
		}
		n := uint64(0)
		for _, s := range prof.Sample {
			n += uint64(s.Value[0])
		}
		if n != r.Sampled[0].Samples || n < 4*1900 {
			t.Errorf("%d samples in the file, %d reported", n, r.Sampled[0].Samples)
		}
		return math.Abs(r.Sampled[0].Sigmas)
	}
	if in, out := errorOf("--sample-first", "20 µs"), errorOf("--sample-jitter", "1"); in < 10 || out > 4 {
		t.Errorf("errors of %.1f expected ones in step, %.1f jittered", in, out)
	}
	code, out, errs := spinesim("run", "--packets", "200", "--sample", "97 µs="+filepath.Join(dir, "t.pb.gz"), "--sample-masked", "all")
	if code != 0 || !strings.Contains(out, "masked") || !strings.Contains(out, "sampled every 97 µs") {
		t.Errorf("status %d: %s\n%s", code, errs, out)
	}
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"run", "--sample", "1 ms"}, "PERIOD=FILE"},
		{[]string{"run", "--sample", "1=x.pb.gz"}, "--sample 1=x.pb.gz"},
		{[]string{"run", "--sample", "1 ms=x.pb.gz", "--sample-jitter", "3"}, "jitter"},
		{[]string{"run", "--sample", "1 ms=x.pb.gz", "--sample-masked", "Sleep"}, "Sleep"},
		{[]string{"run", "--sample-jitter", "1"}, "--sample"},
		{[]string{"run", "--packets", "5", "--sample", "1 ms=" + filepath.Join(dir, "absent", "x.pb.gz")}, "absent"},
	} {
		if code, _, errs := spinesim(tc.args...); code != 2 || !strings.Contains(errs, tc.want) {
			t.Errorf("spinesim %q: status %d, %q, want 2 and a line that names %q", tc.args, code, errs, tc.want)
		}
	}
}
