package study

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"spinesim/sim"
	"spinesim/traces"
)

func scenario(t testing.TB, name string, settings ...string) *sim.Scenario {
	t.Helper()
	sc, err := sim.Load(name, settings...)
	if err != nil {
		t.Fatal(err)
	}
	return sc
}

// quick is a search that takes a second.
func quick(workers int) MaxRateOptions {
	o := DefaultMaxRate()
	o.Packets, o.FirstPackets, o.Replications, o.Resolution, o.Workers = 1200, 600, 2, 0.02, workers
	return o
}

func asJSON(t testing.TB, v any) string {
	t.Helper()
	b, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestMaxRateIsTheSameWithAnyWorkers(t *testing.T) {
	sc := scenario(t, "fig6.4", "traffic.arrivals.rate=15000 packets/s")
	one, err := MaxRate(t.Context(), sc, quick(1))
	if err != nil {
		t.Fatal(err)
	}
	three, err := MaxRate(t.Context(), sc, quick(3))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(asJSON(t, one), asJSON(t, three)); d != "" {
		t.Error(d)
	}
	var last *Probe
	for i := range one.Probes {
		if p := &one.Probes[i]; p.Rate == one.Rate && p.Packets == 1200 {
			last = p
		}
	}
	if last == nil || !last.Pass || one.Loss != last.Loss {
		t.Fatalf("rate %v is not a probe that passed", one.Rate)
	}
	if math.Abs(float64(one.Gap)*float64(one.Rate)-1e6) > 1 {
		t.Errorf("gap %v µs at %v packets/s", one.Gap, one.Rate)
	}
	// The rate can be run again, and loses what the probe says.
	again := scenario(t, "fig6.4", "traffic.packets=1200", "traffic.arrivals.rate="+one.Rate.String()+" packets/s")
	r, err := sim.Run(t.Context(), again, sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := traces.Real(float64(lostPackets(r)) / float64(r.Received)); got != last.Losses[0] {
		t.Errorf("run again it loses %v, the probe lost %v", got, last.Losses[0])
	}
}

func TestMaxRateSaturating(t *testing.T) {
	sc := scenario(t, "fig6.4", "traffic.arrivals.process=saturating")
	r, err := MaxRate(t.Context(), sc, quick(0))
	if err != nil {
		t.Fatal(err)
	}
	if !r.Saturating || len(r.Probes) != 0 || r.Loss.Mean != 0 || !(r.Gap > 20 && r.Gap < 200) || r.Gap != r.MeasuredGap.Mean {
		t.Errorf("got %s", asJSON(t, r))
	}
}

func TestMaxRateAtTheWire(t *testing.T) {
	// 1 MB/s of 1,500 bytes are 667 packets/s.
	sc := scenario(t, "fig6.4", "card.wire=1 MB/s", "traffic.arrivals.process=constant", "traffic.arrivals.rate=500 packets/s")
	o := quick(0)
	o.Packets, o.FirstPackets = 200, 100
	r, err := MaxRate(t.Context(), sc, o)
	if err != nil {
		t.Fatal(err)
	}
	if !r.AtWire || math.Abs(float64(r.Rate)-666.67) > 0.1 || len(r.Notes) == 0 {
		t.Errorf("got %s", asJSON(t, r))
	}
}

func TestMaxRateInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	o := quick(2)
	o.Progress = func(done, total int64, _ string) {
		if done > 4000 {
			cancel()
		}
	}
	r, err := MaxRate(ctx, scenario(t, "fig6.4"), o)
	if !errors.Is(err, context.Canceled) || r == nil || !r.Interrupted || r.Found() || len(r.Probes) == 0 {
		t.Errorf("got %+v, %v; want the probes so far", r, err)
	}
}

func TestMaxRateMistakes(t *testing.T) {
	for name, c := range map[string]struct {
		set    []string
		change func(*MaxRateOptions)
		want   string
	}{
		"bound":        {nil, func(o *MaxRateOptions) { o.Loss = 2 }, "loss bound 2"},
		"replications": {nil, func(o *MaxRateOptions) { o.Replications = -1 }, "-1 replications"},
		"resolution":   {nil, func(o *MaxRateOptions) { o.Resolution = 2 }, "resolution 2"},
		"start":        {nil, func(o *MaxRateOptions) { o.Start = -3 }, "first rate -3"},
		"stamps":       {[]string{"traffic.capture.file=x.pcap", "traffic.capture.pace=stamps"}, nil, "traffic.capture.pace"},
		"always lost":  {[]string{"traffic.fifo=1", "traffic.arrivals.process=bursts", "traffic.arrivals.on=1 ns", "traffic.arrivals.off=1 s"}, nil, "lost even at"},
	} {
		t.Run(name, func(t *testing.T) {
			o := quick(0)
			o.Packets, o.FirstPackets = 60, 60
			if c.change != nil {
				c.change(&o)
			}
			_, err := MaxRate(t.Context(), scenario(t, "fig6.4", c.set...), o)
			var in *sim.InputError
			if !errors.As(err, &in) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an input error with %q", err, c.want)
			}
		})
	}
}

func TestMaxRateTable(t *testing.T) {
	o := TableOptions{MaxRateOptions: quick(0), Bytes: []int{46, 1500}, Processes: []string{"constant", "bursts", "saturating"}}
	o.Packets, o.FirstPackets, o.Replications, o.Resolution = 300, 300, 1, 0.05
	var each int
	o.Each = func(*MaxRateResult) { each++ }
	r, err := MaxRateTable(t.Context(), scenario(t, "fig6.4"), o)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range r.Rows {
		got = append(got, m.Process+" "+m.Bytes.String())
		if !m.Found() {
			t.Errorf("%s, %v bytes: nothing found", m.Process, m.Bytes)
		}
	}
	want := []string{"constant 46", "constant 1500", "bursts 46", "bursts 1500", "saturating 46", "saturating 1500"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	// Short packets are faster, and gaps of a never-empty source the shortest.
	if !(r.Rows[0].Rate > r.Rows[1].Rate) || each != len(r.Rows) || r.Rows[0].Frame() != 64 {
		t.Errorf("rows: %s", asJSON(t, r))
	}
	for _, bad := range []TableOptions{
		{MaxRateOptions: quick(0), Processes: []string{"sometimes"}},
		{MaxRateOptions: quick(0), Bytes: []int{46, 9000}},
	} {
		var in *sim.InputError
		if _, err := MaxRateTable(t.Context(), scenario(t, "fig6.4"), bad); !errors.As(err, &in) {
			t.Errorf("got %v, want an input error", err)
		}
	}
}
