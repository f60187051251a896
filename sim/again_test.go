package sim

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"spinesim/sim/testenv"

	"github.com/google/go-cmp/cmp"

	"spinesim/sim/des"
	"spinesim/sim/traffic"
	"spinesim/traces"
)

// recordTo runs a scenario and writes its record, changed on the way, to a file
// in a temporary directory.
func recordTo(t testing.TB, name string, sc *Scenario, change func(*traces.Meta, *traces.Record) bool) (string, *Result) {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	s, err := New(sc, Options{})
	if err != nil {
		t.Fatal(err)
	}
	meta := s.Meta()
	if change != nil {
		change(meta, nil)
	}
	w, err := traces.CreateWriter(path, meta)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Run(context.Background(), sc, Options{Sinks: []traces.Sink{sinkFunc(func(r *traces.Record) {
		x := *r
		if change != nil && !change(nil, &x) {
			return
		}
		if err := w.Record(&x); err != nil {
			t.Fatal(err)
		}
	})}})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return path, r
}

func again(t testing.TB, path, machine string, settings ...string) *Again {
	t.Helper()
	a, err := RunAgain(context.Background(), path, machine, settings, func(int) {})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestAgain: a record is reproduced, and its arrivals are the same on a changed
// machine.
func TestAgain(t *testing.T) {
	for _, preset := range []string{"fig6.4", "l2", "host-path"} {
		sc := mustLoad(t, preset, "traffic.packets=300")
		path, first := recordTo(t, "r.csv", sc, nil)
		a := again(t, path, "base", "policy=pci-first")
		if !a.Generated || !a.Reproduced || !a.SameArrivals || a.Machine != "" || a.Parted == nil {
			t.Errorf("%s: %+v", preset, a)
		}
		if a.Recorded.Fingerprint != first.Fingerprint {
			t.Errorf("%s: recorded %s, again %s", preset, first.Fingerprint, a.Recorded.Fingerprint)
		}
		changed := mustLoad(t, preset, "traffic.packets=300", "policy=pci-first")
		if want := mustRun(t, changed, Options{}).Fingerprint; a.Changed.Fingerprint != want {
			t.Errorf("%s: changed %s, want %s", preset, a.Changed.Fingerprint, want)
		}
		p := a.Parted
		if len(p.Common) == 0 || len(p.Recorded) == 0 || len(p.Changed) == 0 || p.Recorded[0] == p.Changed[0] {
			t.Errorf("%s: parting %+v", preset, p)
		}
		if same := again(t, path, "base", "policy=default"); same.Parted != nil || same.Changed.Fingerprint != first.Fingerprint {
			t.Errorf("%s: nothing is changed, and the runs part at %+v", preset, same.Parted)
		}
	}
}

// TestAgainWindow: a window of a run is one of its scenario's, whose whole run
// is told of.
func TestAgainWindow(t *testing.T) {
	sc := mustLoad(t, "fig6.4", "traffic.packets=300")
	path, first := recordTo(t, "w.parquet", sc, func(m *traces.Meta, r *traces.Record) bool {
		return m != nil || r.End > 5*des.Millisecond && r.End < 9*des.Millisecond
	})
	a := again(t, path, "base", "policy=pci-first")
	if !a.Generated || !a.Reproduced || !a.SameArrivals || a.Recorded.Fingerprint != first.Fingerprint || a.Parted == nil {
		t.Errorf("%+v", a)
	}
}

// TestAgainOtherTraffic: where a record's scenario no longer makes the traffic
// that the record shows, the record's arrivals are run, and packets go where
// they went.
func TestAgainOtherTraffic(t *testing.T) {
	sc := mustLoad(t, "fig6.4", "traffic.packets=400", "routes.default_route=false", "traffic.destinations.unroutable=0.2")
	later := 250 * des.Nanosecond
	path, first := recordTo(t, "r.rec", sc, func(m *traces.Meta, r *traces.Record) bool {
		if r != nil && r.Kind == traces.KindEnter {
			r.Start, r.End, r.Ready = r.Start+later, r.End+later, r.Ready+later
		}
		return true
	})
	a := again(t, path, "base", "policy=pci-first")
	if a.Generated || a.Reproduced || !a.SameArrivals {
		t.Errorf("%+v", a)
	}
	if a.Recorded.Received != first.Received || a.Recorded.ToHost != first.ToHost {
		t.Errorf("%d in, %d to the host, want %d, %d as recorded", a.Recorded.Received, a.Recorded.ToHost, first.Received, first.ToHost)
	}
	to := func(path string) (n [4]int) {
		t.Helper()
		if err := scan(path, nil, func(r *traces.Record) error {
			if r.Kind == traces.KindDepart {
				n[r.Peer]++
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return n
	}
	in, err := ReadArrivals(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	var n [4]int
	mustRun(t, sc, Options{Arrivals: in.Source, Sinks: []traces.Sink{sinkFunc(func(r *traces.Record) {
		if r.Kind == traces.KindDepart {
			n[r.Peer]++
		}
	})}})
	if diff := cmp.Diff(to(path), n); diff != "" {
		t.Errorf("departures by card (-recorded +again):\n%s", diff)
	}
}

// TestAgainByHand: a list of arrivals that somebody wrote is run on a machine
// that they name.
func TestAgainByHand(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return p
	}
	path := write("list.csv", "kind,card,end_ps,bytes,peer\n"+
		"enter,0,1000000,1500,1\nenter,0,2000000,64,2\nenter,1,2000000,576,0\nenter,0,900000000,1500,\n")
	a := again(t, path, "four-way", "policy=pci-first")
	if a.Generated || a.Reproduced || !a.SameArrivals || a.Machine != "four-way" || a.Changed.Forwarded != 4 {
		t.Errorf("%+v, changed %+v", a, a.Changed.Result)
	}
	if a.Recorded.Received != 4 {
		t.Errorf("the list holds %d arrivals, want 4", a.Recorded.Received)
	}
	in, err := ReadArrivals(path, mustLoad(t, "four-way"))
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	var out []uint8
	mustRun(t, mustLoad(t, "four-way"), Options{Check: true, Arrivals: in.Source, Sinks: []traces.Sink{sinkFunc(func(r *traces.Record) {
		if r.Kind == traces.KindDepart && len(out) < 3 {
			out = append(out, r.Peer)
		}
	})}})
	if diff := cmp.Diff(map[uint8]int{0: 1, 1: 1, 2: 1}, map[uint8]int{out[0]: 1, out[1]: 1, out[2]: 1}); diff != "" {
		t.Errorf("packets left by cards (-want +got):\n%s", diff)
	}

	for _, c := range []struct{ text, settings, says string }{
		{"kind,card,end_ps,bytes\nenter,0,2000000,64\nenter,0,1000000,64\n", "policy=pci-first", "want them in order"},
		{"kind,card,end_ps,bytes\nenter,0,2000000,7\n", "policy=pci-first", "7 bytes, want at least 28"},
		{"kind,card,end_ps,bytes\nenter,9,2000000,64\n", "policy=pci-first", "card 9"},
		{"kind,card,end_ps,bytes\npolls,0,2000000,\n", "policy=pci-first", "nothing arrives"},
		{"kind,card,end_ps,bytes\nenter,0,2000000,64\n", "traffic.packets=7", "only traffic.fifo"},
	} {
		_, err := RunAgain(context.Background(), write("bad.csv", c.text), "four-way", []string{c.settings}, func(int) {})
		var input *InputError
		if !errors.As(err, &input) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q: %v, want %q", c.text, err, c.says)
		}
	}
}

// TestAgainMemory: a longer record takes no more memory.
func TestAgainMemory(t *testing.T) {
	testenv.NeedLong(t)
	peak := func(packets string) uint64 {
		path, _ := recordTo(t, "r.rec", mustLoad(t, "fig6.4", "traffic.packets="+packets), nil)
		runtime.GC()
		var before, m runtime.MemStats
		runtime.ReadMemStats(&before)
		most := before.HeapAlloc
		again := func(int) {
			runtime.GC()
			runtime.ReadMemStats(&m)
			most = max(most, m.HeapAlloc)
		}
		if _, err := RunAgain(context.Background(), path, "base", []string{"policy=default"}, again); err != nil {
			t.Fatal(err)
		}
		return most - before.HeapAlloc
	}
	few, many := peak("5000"), peak("55000")
	// 50,000 packets are 2.5 million records, which took 20 MB when each was
	// remembered by 8 bytes.
	if many > few+4<<20 {
		t.Errorf("%d kB live for 5,000 packets, %d kB for 55,000", few>>10, many>>10)
	}
}

// FuzzArrivals: whatever a list of arrivals says, it is refused, or gives as many
// packets as it holds, in order, each with a whole header.
func FuzzArrivals(f *testing.F) {
	f.Add("kind,card,end_ps,bytes,peer,packet,verdict,reason\nenter,0,5,1500,,1,,\nenter,1,5,64,2,,,\ndepart,0,9,1500,3,1,,\nleave,0,9,,,7,dropped,no route\n")
	f.Add("kind,card,end_ps,bytes\nenter,0,9223372036854775807,4294967295\n")
	f.Add("kind,card,end_ps,bytes,packet\nenter,3,1,40,1\nenter,3,1,40,1\nleave,3,2,40,1\n")
	sc := mustLoad(f, "four-way")
	path := filepath.Join(f.TempDir(), "list.csv")
	f.Fuzz(func(t *testing.T, text string) {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		in, err := ReadArrivals(path, sc)
		if err != nil {
			return
		}
		defer in.Close()
		var n uint64
		for _, c := range in.Ingress {
			src, err := in.Source(c)
			if err != nil {
				t.Fatal(err)
			}
			var a traffic.Arrival
			for last := des.Time(0); ; n++ {
				ok, err := src.Next(&a)
				if err != nil {
					t.Fatal(err)
				}
				if !ok {
					break
				}
				if a.At < last || len(a.Data) < traffic.HeaderBytes || len(a.Data) > a.Bytes {
					t.Fatalf("%+v after %v", a, last)
				}
				last = a.At
			}
		}
		if n != in.Packets {
			t.Fatalf("%d packets of %d", n, in.Packets)
		}
	})
}
