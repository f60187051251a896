package sim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"

	"spinesim/lanai"
	"spinesim/sim/des"
	"spinesim/spine"
	"spinesim/traces"
)

func mustLoad(t testing.TB, name string, settings ...string) *Scenario {
	t.Helper()
	sc, err := Load(name, settings...)
	if err != nil {
		t.Fatal(err)
	}
	return sc
}

func mustRun(t testing.TB, sc *Scenario, opt Options) *Result {
	t.Helper()
	r, err := Run(context.Background(), sc, opt)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range r.Violations {
		t.Error(v)
	}
	return r
}

// TestDeterminism: same scenario and seed, same fingerprint, whatever the
// machine's processors and whoever watches.
func TestDeterminism(t *testing.T) {
	sc := mustLoad(t, "four-way", "traffic.packets=800")
	want := mustRun(t, sc, Options{}).Fingerprint
	for _, procs := range []int{1, 2} {
		was := runtime.GOMAXPROCS(procs)
		got := mustRun(t, sc, Options{}).Fingerprint
		runtime.GOMAXPROCS(was)
		if got != want {
			t.Errorf("with GOMAXPROCS %d: %s, want %s", procs, got, want)
		}
	}
	var wires bytes.Buffer
	span := Span{3 * des.Millisecond, 4 * des.Millisecond}
	n := 0
	watched := mustRun(t, sc, Options{
		Check: true, Unmeasured: true, Wires: &wires, Expand: []Span{span},
		Sinks: []traces.Sink{sinkFunc(func(r *traces.Record) {
			if r.Kind == traces.KindPoll {
				n++
				if r.End < span.From || r.Start > span.To+des.Microsecond {
					t.Errorf("a single poll at %v … %v, outside the span", r.Start, r.End)
				}
			}
		})},
	})
	if watched.Fingerprint != want {
		t.Errorf("watched: %s, want %s", watched.Fingerprint, want)
	}
	if n < 1000 {
		t.Errorf("%d single polls in a millisecond of four cards, want thousands", n)
	}
	other := mustLoad(t, "four-way", "traffic.packets=800", "seed=2")
	if mustRun(t, other, Options{}).Fingerprint == want {
		t.Error("another seed gives the same fingerprint")
	}
}

type sinkFunc func(*traces.Record)

func (f sinkFunc) Record(r *traces.Record) error { f(r); return nil }

// TestRandomTies shuffles simultaneous events: nothing is lost, and the mean
// gap moves by less than 1 %.
func TestRandomTies(t *testing.T) {
	base := mustRun(t, mustLoad(t, "four-way", "traffic.packets=4000"), Options{})
	r := mustRun(t, mustLoad(t, "four-way", "traffic.packets=4000", "random_ties=true"), Options{Check: true})
	if r.Received != base.Received {
		t.Errorf("received %d, want %d", r.Received, base.Received)
	}
	if d := math.Abs(float64(r.Gap.Mean-base.Gap.Mean)) / float64(base.Gap.Mean); d > 0.01 {
		t.Errorf("random ties move the mean gap by %.2f %%", 100*d)
	}
}

// TestRandomTiesSteps: which of simultaneous events goes first does not hang on
// how many events there were before, so that a shuffled run does the same
// skipping, stepping and with every poll written out, even where the cards'
// clocks are in step and events fall together all the time.
func TestRandomTiesSteps(t *testing.T) {
	for _, v := range []struct {
		preset   string
		settings []string
	}{
		{"four-way", nil},
		{"four-way", []string{"traffic.arrivals.process=constant", "traffic.arrivals.rate=30 µs", "traffic.sizes.bytes=320 B"}},
		{"four-way", []string{"traffic.arrivals.process=saturating", "firmware.receive=ring", "bus.burst=64 B", "policy=round-robin"}},
		{"l2", []string{"traffic.arrivals.process=constant", "traffic.arrivals.rate=60 µs", "firmware.batch=3"}},
		{"four-way", []string{"routes.default_route=false", "traffic.destinations.unroutable=0.3", "host.return=card", "host.return_card=2", "host.service=30 µs"}},
	} {
		orders := map[string]bool{}
		for seed := range 3 {
			sc := mustLoad(t, v.preset, append([]string{
				"traffic.packets=200", "random_ties=true", "card.phases=aligned", fmt.Sprintf("seed=%d", seed),
			}, v.settings...)...)
			plain := mustRun(t, sc, Options{Check: true})
			orders[plain.Fingerprint] = true
			if r := mustRun(t, sc, Options{Stepping: true}); r.Fingerprint != plain.Fingerprint {
				t.Errorf("%s %q seed %d: %s, stepping %s", v.preset, v.settings, seed, plain.Fingerprint, r.Fingerprint)
			}
			spans := []Span{{des.Millisecond, 2 * des.Millisecond}, {3 * des.Millisecond, 20 * des.Second}}
			if r := mustRun(t, sc, Options{Expand: spans}); r.Fingerprint != plain.Fingerprint {
				t.Errorf("%s %q seed %d: %s, polls written out %s", v.preset, v.settings, seed, plain.Fingerprint, r.Fingerprint)
			}
			still := mustLoad(t, v.preset, append([]string{
				"traffic.packets=200", "card.phases=aligned", fmt.Sprintf("seed=%d", seed),
			}, v.settings...)...)
			if r := mustRun(t, still, Options{}); r.Fingerprint != plain.Fingerprint {
				orders["shuffled"] = true
			}
		}
		if !orders["shuffled"] {
			t.Errorf("%s %q: the shuffle changes nothing", v.preset, v.settings)
		}
	}
}

// TestSelfChainHidesTheDifference: what separates the default order from
// pci-first is where the DMA chain's continuations wait.
func TestMechanism(t *testing.T) {
	gap := func(settings ...string) float64 {
		sc := mustLoad(t, "fig6.4", append([]string{"traffic.packets=6000", "traffic.arrivals.process=saturating"}, settings...)...)
		return float64(mustRun(t, sc, Options{}).Gap.Mean)
	}
	def, first := gap(), gap("policy=pci-first")
	if def < 1.05*first {
		t.Errorf("saturated gap: default %.1f µs, pci-first %.1f µs; want the default at least 5 %% slower", def, first)
	}
	defSelf, firstSelf := gap("firmware.dma_chain=self"), gap("firmware.dma_chain=self", "policy=pci-first")
	if math.Abs(defSelf-firstSelf)/firstSelf > (def-first)/first {
		t.Errorf("chain through self: default %.1f, pci-first %.1f µs; want them closer than %.1f and %.1f", defSelf, firstSelf, def, first)
	}
}

// TestHysteresis: with evenly spaced packets the default order carries a packet
// every 70 µs one for one, until one burst fills the buffers: from then on it
// stays in the slow state. With the bus first it recovers.
func TestHysteresis(t *testing.T) {
	slow := func(policy string, first int) (share, latency float64) {
		sc := mustLoad(t, "fig6.4", "traffic.packets=4000", "traffic.arrivals.process=constant", "traffic.arrivals.senders=1",
			"traffic.arrivals.rate=70 µs", "policy="+policy, fmt.Sprintf("traffic.arrivals.first=%d", first))
		r := mustRun(t, sc, Options{Check: true})
		return float64(r.SlowShare), float64(r.Latency.Ingress.P50)
	}
	if s, l := slow("default", 0); s > 0.01 || l > 110 {
		t.Errorf("undisturbed: slow %.3f of the time, latency %.1f µs; want the fast state", s, l)
	}
	if s, l := slow("default", 64); s < 0.99 || l < 500 {
		t.Errorf("after a burst: slow %.3f of the time, latency %.1f µs; want the slow state to the end", s, l)
	}
	if s, l := slow("pci-first", 64); s > 0.01 || l > 110 {
		t.Errorf("pci-first after a burst: slow %.3f of the time, latency %.1f µs; want the fast state", s, l)
	}
}

// greedy is an extension that never ends once it sees its victim.
type greedy struct{ n, victim int }

func (g *greedy) Name() string { return "greedy" }
func (g *greedy) Handle(ctx *spine.Context, _ *spine.Packet) spine.Verdict {
	g.n++
	for g.n == g.victim {
		ctx.Charge(10)
	}
	return spine.Verdict{Action: spine.Next}
}

// faulty is an extension that breaks.
type faulty struct{ n int }

func (*faulty) Name() string { return "faulty" }
func (f *faulty) Handle(*spine.Context, *spine.Packet) spine.Verdict {
	f.n++
	if f.n == 5 {
		var nothing []int
		_ = nothing[f.n]
	}
	return spine.Verdict{Action: spine.Next}
}

// charging is an extension that charges what it is told, for one packet.
type charging [2]int

func (*charging) Name() string { return "charging" }
func (c *charging) Handle(ctx *spine.Context, p *spine.Packet) spine.Verdict {
	if p.ID == 3 {
		ctx.Charge(c[0])
		ctx.Charge(c[1])
		ctx.Access(c[1])
	}
	return spine.Verdict{Action: spine.Next}
}

// TestChargesSaturate: without a watchdog the longest run is what a handler can
// have; a charge below 0 takes nothing back.
func TestChargesSaturate(t *testing.T) {
	for _, tc := range []struct {
		ext  charging
		long bool
	}{{charging{math.MaxInt, math.MaxInt}, true}, {charging{math.MinInt, -5}, false}} {
		sc := mustLoad(t, "fig6.4", "traffic.packets=5", "firmware.watchdog=0 cycles", "measure.drain=100 s")
		most := uint64(0)
		r := mustRun(t, sc, Options{
			Check: true,
			Extensions: func(card int, _ *lanai.SRAM) ([]spine.Extension, error) {
				return []spine.Extension{&tc.ext}, nil
			},
			Sinks: []traces.Sink{sinkFunc(func(r *traces.Record) {
				if r.Kind == traces.KindBox && r.Event == traces.RouterIn {
					most = max(most, r.Cycles)
				}
			})},
		})
		if r.Forwarded != 5 || tc.long != (most == 1<<30) || !tc.long && most > 1000 {
			t.Errorf("charging %d: %d forwarded, longest run %d cycles", tc.ext, r.Forwarded, most)
		}
	}
}

// leavingOut is a policy that never comes by the DMA queue.
type leavingOut struct{}

func (leavingOut) Name() string { return "leaving out Q6" }
func (leavingOut) Plan(_ *spine.View, p *spine.Plan) {
	p.Seq, p.Loop = append(p.Seq[:0], 0, 1, 2, 3, 4, 5), 0
}
func (leavingOut) Hit(int64, uint8) {}

// TestStandstill: a machine in which nothing moves any more is given up, even
// under sources that never end, and the run says so. A source that pauses is no
// standstill.
func TestStandstill(t *testing.T) {
	stuck := Options{Policy: func(int) (spine.Policy, error) { return leavingOut{}, nil }}
	for _, process := range []string{"saturating", "poisson"} {
		sc := mustLoad(t, "fig6.4", "traffic.packets=1000000000", "traffic.arrivals.process="+process)
		r := mustRun(t, sc, stuck)
		if r.Drained || r.SimulatedS > 2 || len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "nothing had moved for") {
			t.Errorf("%s: drained %t after %.1f s, notes %q; want a standstill after a second", process, r.Drained, r.SimulatedS, r.Notes)
		}
	}
	sc := mustLoad(t, "fig6.4", "traffic.packets=3", "traffic.arrivals.rate=0.1 packets/s")
	if r := mustRun(t, sc, Options{}); !r.Drained || r.Forwarded != 3 {
		t.Errorf("packets seconds apart: drained %t, %d forwarded, notes %q", r.Drained, r.Forwarded, r.Notes)
	}
}

// TestUnroutableNeedsRoom: with a default route no address is unroutable.
func TestUnroutableNeedsRoom(t *testing.T) {
	_, err := Run(t.Context(), mustLoad(t, "fig6.4", "traffic.destinations.unroutable=0.5"), Options{})
	var in *InputError
	if !errors.As(err, &in) || !strings.Contains(err.Error(), "routes.default_route: false") {
		t.Errorf("%v, want an input error that names the default route", err)
	}
}

// TestWatchdog: an extension that runs too long, or breaks, is unloaded, its
// packet goes to the host, and the router goes on.
func TestWatchdog(t *testing.T) {
	for _, tc := range []struct {
		ext  spine.Extension
		want string
	}{
		{&greedy{victim: 7}, "watchdog"},
		{&faulty{}, "fault"},
		{&charging{1, math.MaxInt}, "watchdog"},
		{&charging{math.MaxInt, math.MaxInt}, "watchdog"},
	} {
		sc := mustLoad(t, "fig6.4", "traffic.packets=200")
		r := mustRun(t, sc, Options{Check: true, Extensions: func(card int, _ *lanai.SRAM) ([]spine.Extension, error) {
			if card == 0 {
				return []spine.Extension{tc.ext}, nil
			}
			return nil, nil
		}})
		if len(r.Unloaded) != 1 || !strings.Contains(r.Unloaded[0], tc.want) {
			t.Errorf("unloaded %q, want one that names %q", r.Unloaded, tc.want)
		}
		if r.ToHost != 1 || r.Forwarded != 199 {
			t.Errorf("%d to host, %d forwarded, want 1 and 199", r.ToHost, r.Forwarded)
		}
	}
}

// TestInterrupt: a cancelled run says so and keeps what it has.
func TestInterrupt(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	sc := mustLoad(t, "fig6.4", "traffic.packets=100000000")
	r, err := Run(ctx, sc, Options{Progress: func(done, _ uint64) {
		if done > 2000 {
			cancel()
		}
	}})
	if err == nil || r == nil || !r.Interrupted || r.Received < 2000 {
		t.Errorf("result %+v, error %v: want an interrupted result", r, err)
	}
}

// TestSteadyState: a packet costs no allocation once the run is warm.
func TestSteadyState(t *testing.T) {
	allocs := func(packets int) float64 {
		sc := mustLoad(t, "fig6.4", fmt.Sprintf("traffic.packets=%d", packets), "traffic.arrivals.rate=13000 packets/s")
		s, err := New(sc, Options{})
		if err != nil {
			t.Fatal(err)
		}
		var a, b runtime.MemStats
		runtime.ReadMemStats(&a)
		if _, err := s.Run(context.Background()); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&b)
		return float64(b.Mallocs - a.Mallocs)
	}
	few, many := allocs(5000), allocs(25000)
	if per := (many - few) / 20000; per > 0.01 {
		t.Errorf("%.3f allocations a packet (%.0f for 5,000 packets, %.0f for 25,000)", per, few, many)
	}
}
