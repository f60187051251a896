package ilp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"hash/crc32"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// The loops that are timed do the same to the bytes in both modes, and the same
// as the stage does with its general code.
func TestTimedLoopsAgree(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	source := make([]byte, 1024)
	for i := range source {
		source[i] = byte(rng.Uint32())
	}
	first := map[string][]byte{}
	for _, l := range timedLoops() {
		p := append([]byte(nil), source...)
		l.run(p)
		if w, ok := first[l.name]; !ok {
			first[l.name] = p
		} else if diff := cmp.Diff(w, p); diff != "" {
			t.Errorf("%s: modes differ (-sequential +integrated):\n%s", l.name, diff)
		}
	}
	for name, chain := range map[string][]string{
		"bswap": {"bswap"}, "pes": {"pes"}, "cksum": {"cksum"}, "crc32": {"crc32"},
		"bswap → pes":            {"bswap", "pes"},
		"bswap → cksum":          {"bswap", "cksum"},
		"pes → cksum":            {"pes", "cksum"},
		"bswap → pes → cksum":    {"bswap", "pes", "cksum"},
		"bswap → pes → crc32":    {"bswap", "pes", "crc32"},
		"synthetic, 3 × 0 words": {"synthetic:0", "synthetic:0", "synthetic:0"},
		"synthetic, 3 × 1 words": {"synthetic:1", "synthetic:1", "synthetic:1"},
		"synthetic, 3 × 5 words": {"synthetic:5", "synthetic:5", "synthetic:5"},
		"synthetic, 3 × 9 words": {"synthetic:9", "synthetic:9", "synthetic:9"},
	} {
		if diff := cmp.Diff(both(t, chain, source), first[name]); diff != "" {
			t.Errorf("%s: stage and timed loop differ (-stage +loop):\n%s", name, diff)
		}
	}
}

func FuzzIntegratedLoops(f *testing.F) {
	f.Add([]byte("sixteen bytes and some more"))
	f.Fuzz(func(t *testing.T, p []byte) {
		p = p[:len(p)&^7]
		a, b := append([]byte(nil), p...), append([]byte(nil), p...)
		swapLoop(a)
		encryptLoop(a)
		if sum := swapEncryptSumLoop(b, 0); sum != sumLoop(a, 0) || foldSum(sum) != rfc1071(a) {
			t.Errorf("checksum %#x, want %#x", foldSum(sum), rfc1071(a))
		}
		if diff := cmp.Diff(a, b); diff != "" {
			t.Errorf("modes differ (-sequential +integrated):\n%s", diff)
		}
		c := append([]byte(nil), p...)
		if crc := ^swapEncryptCRCLoop(c, ^uint32(0)); crc != crc32.ChecksumIEEE(a) {
			t.Errorf("CRC %#x, want %#x", crc, crc32.ChecksumIEEE(a))
		}
		var chain [2]*syntheticChain
		for _, s := range []int{2, 9} {
			chain[0], chain[1] = newSyntheticChain(s), newSyntheticChain(s)
			copy(a, p)
			copy(b, p)
			for range 2 { // state carries over
				chain[0].sequential(a)
				chain[1].integrated(b)
			}
			if diff := cmp.Diff(a, b); diff != "" {
				t.Errorf("%d words: modes differ (-sequential +integrated):\n%s", s, diff)
			}
		}
	})
}

// A machine made up by hand is found again from times that the model itself
// gives, also when one of its parameters is 0.
func TestFitFindsKnownMachines(t *testing.T) {
	for _, want := range []struct {
		registers int
		times     parameterTimes
	}{
		{7, parameterTimes{0.25, 1.5, 0.5, 2.5}},
		{11, parameterTimes{1, 0, 1, 4}},
		{14, parameterTimes{0.1, 0.6, 0.2, 0.2}},
	} {
		var obs []observation
		for _, l := range timedLoops() {
			for _, memory := range []bool{false, true} {
				if !l.fit {
					continue
				}
				o := observation{functions: l.functions, mode: l.mode, memory: memory}
				o.measured = want.times.predict(o.terms(want.registers, measuredWord))
				obs = append(obs, o)
			}
		}
		registers, times, err := fitMachine(obs, measuredWord)
		if err != nil {
			t.Fatal(err)
		}
		// Odd state sizes 1, 3, 5 … times 3 leave R undetermined between knees;
		// what matters is that the same words spill.
		if registers != want.registers {
			t.Errorf("R = %d, want %d", registers, want.registers)
		}
		for i := range times {
			if math.Abs(times[i]-want.times[i]) > 1e-6 {
				t.Errorf("R %d: time %d is %g ns, want %g", want.registers, i, times[i], want.times[i])
			}
		}
	}
}

// The bounded least squares is compared with a search on a grid.
func TestNonNegativeAgainstSearch(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	for range 20 {
		rows := make([][4]float64, 8)
		for i := range rows {
			for j := range rows[i] {
				rows[i][j] = rng.Float64()
			}
		}
		p, sum, ok := nonNegative(rows)
		if !ok {
			t.Fatal("no solution")
		}
		for _, x := range p {
			if x < 0 {
				t.Fatalf("negative parameter in %v", p)
			}
		}
		for range 20000 {
			var q parameterTimes
			for i := range q {
				q[i] = math.Max(0, p[i]+rng.NormFloat64()*0.3)
			}
			var s float64
			for _, row := range rows {
				s += (q.predict(row) - 1) * (q.predict(row) - 1)
			}
			if s < sum-1e-9 {
				t.Fatalf("%v has a smaller sum (%g) than %v (%g)", q, s, p, sum)
			}
		}
	}
	if _, _, ok := nonNegative([][4]float64{{}, {}}); ok {
		t.Error("a solution from nothing")
	}
	if _, _, err := fitMachine(nil, 4); !errors.Is(err, errNoFit) {
		t.Errorf("fit of nothing: error %v", err)
	}
}

func TestMeasure(t *testing.T) {
	rounds := 0
	r, err := Measure(t.Context(), MeasureOptions{
		CacheBytes: 4 << 10, MemoryBytes: 256 << 10, Rounds: 2, SampleTime: 20 * time.Microsecond, ClockMHz: 2000,
		Progress: func(round, of int) {
			if round != rounds || of != 2 {
				t.Errorf("progress %d of %d", round, of)
			}
			rounds++
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if rounds != 2 || r.ClockMHz != 2000 || r.Pairs != 20 {
		t.Errorf("%d rounds, %g MHz, %d pairs", rounds, r.ClockMHz, r.Pairs)
	}
	for _, l := range r.Loops {
		if l.Measured <= 0 || l.Measured > l.Median || l.Predicted <= 0 {
			t.Errorf("%+v", l)
		}
		if want := (l.Predicted - l.Measured) / l.Measured; l.Deviation != want {
			t.Errorf("%s: deviation %g, want %g", l.Name, l.Deviation, want)
		}
	}
	var b bytes.Buffer
	if err := r.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), "faster mode named rightly") {
		t.Errorf("report: %s", b.String())
	}
	for _, f := range r.Figure() {
		if len(f.Series) != 4 || len(f.Series[0].X) != 10 || len(f.Series[3].Y) != 10 {
			t.Errorf("figure %s: %d series", f.ID, len(f.Series))
		}
	}
	if _, err := json.Marshal(r); err != nil {
		t.Error(err)
	}
}

func TestMeasureStops(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	_, err := Measure(ctx, MeasureOptions{Rounds: 1000, Progress: func(int, int) { cancel() }})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

func TestMeasureErrors(t *testing.T) {
	for want, o := range map[string]MeasureOptions{
		"measure: cache working set is 100 bytes, want a multiple of 8 from 1 KiB to 1 GiB":           {CacheBytes: 100},
		"measure: memory working set of 2048 bytes is not larger than the cache working set of 16384": {MemoryBytes: 2048},
		"measure: -1 rounds, want 1 to 1000":                                                          {Rounds: -1},
		"measure: clock is -3 MHz, want 0 to 1e6":                                                     {ClockMHz: -3},
		"measure: sample time -1ns, want up to a minute":                                              {SampleTime: -1},
	} {
		if _, err := Measure(t.Context(), o); err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

func TestReadProcessor(t *testing.T) {
	root := t.TempDir()
	if got := readProcessor(root); got != (hostProcessor{}) {
		t.Errorf("from nothing: %+v", got)
	}
	for name, text := range map[string]string{
		"proc/cpuinfo": "processor : 0\nmodel name\t: Some CPU @ 2.00GHz\ncpu MHz\t\t: 1999.5\n\nprocessor : 1\nmodel name : Another\ncpu MHz : 3\n",
		"sys/devices/system/cpu/cpu0/cache/index0/size": "48K\n",
		"sys/devices/system/cpu/cpu0/cache/index1/size": "2M\n",
		"sys/devices/system/cpu/cpu0/cache/index2/size": "nonsense\n",
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := readProcessor(root), (hostProcessor{"Some CPU @ 2.00GHz", 1999.5, 2 << 20}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	for s, want := range map[string]int{"480M": 480 << 20, "1G": 1 << 30, "12": 12, "": 0, "-3K": 0, "99999999999G": 0} {
		if got := cacheSize(s); got != want {
			t.Errorf("cacheSize(%q) = %d, want %d", s, got, want)
		}
	}
}
