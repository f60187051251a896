package sim

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"spinesim/sim/testenv"

	"spinesim/sim/des"
	"spinesim/spine"
	"spinesim/spine/schedule"
)

// TestStaticHolds: 100,000 packets under a source that never pauses, with every
// invariant checked; the gap is the one that the schedule predicts.
func TestStaticHolds(t *testing.T) {
	packets := fmt.Sprintf("traffic.packets=%d", testenv.Size(5000, 100_000))
	sc := mustLoad(t, "fig6.4", packets, "traffic.arrivals.process=saturating", "policy=static")
	m, flows, err := ScheduleModel(sc)
	if err != nil {
		t.Fatal(err)
	}
	p, err := schedule.Synthesise(m, flows, schedule.Options{Nodes: policyNodes})
	if err != nil {
		t.Fatal(err)
	}
	if !p.Optimal {
		t.Errorf("interval %v µs, proved %v", p.IntervalUS, p.ProvedUS)
	}
	r, err := Run(context.Background(), sc, Options{Check: true})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Violations) > 0 || !r.Drained {
		t.Fatalf("drained %v, violations %v", r.Drained, r.Violations)
	}
	gap := float64(r.Gap.Mean)
	if gap < p.LowerUS {
		t.Errorf("gap %.3f µs below the lower bound %.3f", gap, p.LowerUS)
	}
	if d := gap/p.IntervalUS - 1; math.Abs(d) > 0.02 {
		t.Errorf("gap %.3f µs, interval %.3f: %.2f %% off", gap, p.IntervalUS, 100*d)
	}
	if d := gap/p.PredictedUS - 1; math.Abs(d) > 0.005 {
		t.Errorf("gap %.3f µs, with contention predicted %.3f: %.2f %% off", gap, p.PredictedUS, 100*d)
	}
}

// TestPrediction: the gap that a cycle predicts, with the contention it names,
// is the simulated one within 2 %, whatever the parameters.
func TestPrediction(t *testing.T) {
	for _, settings := range [][]string{
		{},
		{"firmware.poll=30 cycles", "firmware.factors={receive: 1.4, dma: 1.4, flow: 1.4, send: 1.4}"},
		{"firmware.factors={receive: 0.6, dma: 0.6, flow: 0.6, send: 0.6}", "bus.peer_wait=1"},
		{"traffic.sizes.bytes=64 B"},
		{"firmware.receive=whole"},
		{"firmware.receive=ring", "firmware.dma_chain=self"},
		{"firmware.buffers=2"},
		{"card.wire=80 MB/s"},
	} {
		t.Run(strings.Join(settings, " "), func(t *testing.T) {
			sc := mustLoad(t, "fig6.4", append(settings, "traffic.packets=2000", "traffic.arrivals.process=saturating", "policy=static")...)
			m, flows, err := ScheduleModel(sc)
			if err != nil {
				t.Fatal(err)
			}
			p, err := schedule.Synthesise(m, flows, schedule.Options{Nodes: policyNodes})
			if err != nil {
				t.Fatal(err)
			}
			r, err := Run(context.Background(), sc, Options{})
			if err != nil {
				t.Fatal(err)
			}
			gap := float64(r.Gap.Mean)
			if d := gap/p.PredictedUS - 1; math.Abs(d) > 0.02 || gap < p.LowerUS*0.999 {
				t.Errorf("gap %.3f µs; interval %.3f (proved %v), predicted %.3f, lower bound %.3f: %.2f %% off", gap, p.IntervalUS, p.Optimal, p.PredictedUS, p.LowerUS, 100*d)
			}
		})
	}
}

// TestStaticDeviations: whatever the traffic, static cycles break no invariant,
// lose no packet inside, and do the same poll by poll as in whole passes.
func TestStaticDeviations(t *testing.T) {
	for _, settings := range [][]string{
		{"traffic.arrivals.rate=9000 packets/s"},
		{"traffic.arrivals.process=bursts", "traffic.arrivals.on=2 ms", "traffic.arrivals.off=3 ms"},
		{"traffic.arrivals.process=saturating", "traffic.sizes.kind=imix"},
		{"traffic.arrivals.process=saturating", "traffic.destinations.unroutable=0.3", "routes.default_route=false"},
		{"traffic.arrivals.process=saturating", "firmware.buffers=1", "firmware.credits=1"},
		{"host.return=card", "host.return_card=2", "traffic.destinations.unroutable=0.2", "routes.default_route=false"},
		{"cards=2", "firmware.receive=ring", "random_ties=true"},
		{"traffic.ingress=[0, 1, 2, 3]", "routes.cards=[0, 1, 2, 3]", "traffic.arrivals.process=saturating"},
		{"cards=1", "routes.cards=[0]", "traffic.arrivals.process=saturating"},
		{"firmware.dma_chain=self", "card.no_buffer=discard", "firmware.receive=whole"},
	} {
		for _, policy := range []string{"static", "hybrid"} {
			t.Run(policy+" "+strings.Join(settings, " "), func(t *testing.T) {
				sc := mustLoad(t, "fig6.4", append([]string{"traffic.packets=400", "policy=" + policy}, settings...)...)
				accounted(t, sc, Options{})
			})
		}
	}
}

// TestStaticCountsDeviations: each deviation shows in its count.
func TestStaticCountsDeviations(t *testing.T) {
	run := func(settings ...string) (spine.StaticCounts, *Result) {
		t.Helper()
		sc := mustLoad(t, "fig6.4", append([]string{"traffic.packets=500", "policy=static", "traffic.arrivals.process=saturating"}, settings...)...)
		s, err := New(sc, Options{Check: true})
		if err != nil {
			t.Fatal(err)
		}
		r, err := s.Run(context.Background())
		if err != nil || len(r.Violations) > 0 {
			t.Fatal(err, r)
		}
		return s.Router().Card(0).StaticCounts(), r
	}
	regular, _ := run()
	if regular.NoBuffer+regular.NoCredit+regular.ToHost != 0 {
		t.Errorf("regular traffic deviates: %+v", regular)
	}
	if c, _ := run("firmware.buffers=1"); c.NoBuffer == 0 {
		t.Errorf("one buffer never runs out: %+v", c)
	}
	// The wire out is so slow that ACKs come late.
	if c, _ := run("firmware.credits=1", "card.wire=20 MB/s", "routes.cards=[1]"); c.NoCredit == 0 {
		t.Errorf("one credit never runs out: %+v", c)
	}
	if c, r := run("traffic.destinations.unroutable=0.1", "routes.default_route=false"); c.ToHost != r.ToHost || c.ToHost == 0 {
		t.Errorf("%d packets went to the host, the cycle counts %d", r.ToHost, c.ToHost)
	}
	c, r := run("traffic.arrivals.process=poisson")
	var missed, ran uint64
	for _, s := range c.Steps {
		missed += s.Missed
		ran += s.Ran
	}
	if missed == 0 || ran != 12*r.Received {
		t.Errorf("%d looks in vain, %d handlers for %d packets of 12 each", missed, ran, r.Received)
	}
}

// TestScheduleFile: a cycle in a file runs like the one it was written from; a
// wrong one is refused before the run, and the file's contents are in the hash.
func TestScheduleFile(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	sc := mustLoad(t, "fig6.4", "traffic.packets=300", "policy=static")
	m, flows, err := ScheduleModel(sc)
	if err != nil {
		t.Fatal(err)
	}
	p, err := schedule.Synthesise(m, flows, schedule.Options{Nodes: policyNodes})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := p.Plan.WriteYAML(&b); err != nil {
		t.Fatal(err)
	}
	write("cycle.yaml", b.String())
	// Beside the scenario that names it.
	write("mine.yaml", "extends: fig6.4\npolicy: static:file=cycle.yaml\ntraffic: {packets: 300}\n")
	mine := mustLoad(t, filepath.Join(dir, "mine.yaml"))
	want, err := Run(context.Background(), sc, Options{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := Run(context.Background(), mine, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got.Fingerprint != want.Fingerprint {
		t.Errorf("from the file %s, synthesised %s", got.Fingerprint, want.Fingerprint)
	}
	before, err := mine.Hash()
	if err != nil {
		t.Fatal(err)
	}
	write("cycle.yaml", strings.Replace(b.String(), "- {run: Peer ACK, guard: look}", "", 1))
	if after, err := mine.Hash(); err != nil || after == before {
		t.Errorf("another schedule has the same hash %s (%v)", after, err)
	}
	_, err = Run(context.Background(), mine, Options{})
	var input *InputError
	if !errors.As(err, &input) || !errors.Is(err, schedule.ErrAckStarvation) || !strings.Contains(err.Error(), "cycle.yaml:") {
		t.Errorf("a cycle without ACKs: %v", err)
	}
	if err := os.Remove(filepath.Join(dir, "cycle.yaml")); err != nil {
		t.Fatal(err)
	}
	if _, err := Run(context.Background(), mine, Options{}); !errors.As(err, &input) {
		t.Errorf("a schedule that is not there: %v", err)
	}
}

// TestDeferred: a router takes no policy whose cycle nobody has made, and a
// scenario without packets to forward has none.
func TestDeferred(t *testing.T) {
	sc := mustLoad(t, "fig6.4", "traffic.packets=10", "policy=static", "traffic.destinations.unroutable=1", "routes.default_route=false")
	var input *InputError
	if _, err := Run(context.Background(), sc, Options{}); !errors.As(err, &input) {
		t.Errorf("no packet is forwarded, and a schedule is made: %v", err)
	}
	var d spine.Deferred
	if p, err := spine.NewPolicy("hybrid:file=x.yaml", 0, 0); err != nil || p.Name() != "hybrid:file=x.yaml" {
		t.Errorf("%v, %v", p, err)
	}
	if d.Name() != "static" {
		t.Errorf("the zero one is %q", d.Name())
	}
}

// TestStaticNoAllocation: once queues have grown, a run under a static cycle
// allocates nothing.
func TestStaticNoAllocation(t *testing.T) {
	for _, policy := range []string{"static", "hybrid"} {
		for _, process := range []string{"saturating", "poisson"} {
			sc := mustLoad(t, "fig6.4", "policy="+policy, "traffic.arrivals.process="+process)
			s, err := New(sc, Options{Unmeasured: true})
			if err != nil {
				t.Fatal(err)
			}
			if err := s.router.Start(); err != nil {
				t.Fatal(err)
			}
			if err := s.ports[0].Start(s.router.Card(0).Card().Rx); err != nil {
				t.Fatal(err)
			}
			until := 300 * des.Millisecond
			step := func() {
				if err := s.eng.RunUntil(context.Background(), until); err != nil {
					t.Fatal(err)
				}
				until += 5 * des.Millisecond
			}
			step()
			if n := testing.AllocsPerRun(20, step); n > 1 {
				t.Errorf("%s, %s: %v allocations in 5 ms", policy, process, n)
			}
		}
	}
}
