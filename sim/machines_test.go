package sim

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"spinesim/sim/des"
	"spinesim/sim/testenv"
	"spinesim/spine"
	"spinesim/traces"
)

// machine is a preset and what differs from it.
type machine struct {
	name, preset string
	settings     []string
}

// load gives the machine so many packets a card.
func (m machine) load(t testing.TB, packets int, more ...string) *Scenario {
	t.Helper()
	return mustLoad(t, m.preset, slices.Concat([]string{fmt.Sprintf("traffic.packets=%d", packets)}, m.settings, more)...)
}

// variants are machines that differ in every choice of the model's rules.
var variants = []machine{
	{"default", "fig6.4", nil},
	{"loss", "fig6.4", []string{"traffic.arrivals.rate=20000 packets/s"}},
	{"saturating", "fig6.4", []string{"traffic.arrivals.process=saturating"}},
	{"whole", "fig6.4", []string{"firmware.receive=whole", "traffic.arrivals.rate=14000 packets/s"}},
	{"ring", "fig6.4", []string{"firmware.receive=ring", "traffic.arrivals.rate=14000 packets/s"}},
	{"self chain", "fig6.4", []string{"firmware.dma_chain=self", "traffic.arrivals.rate=14000 packets/s"}},
	{"two buffers", "fig6.4", []string{"firmware.buffers=2", "traffic.arrivals.rate=14000 packets/s"}},
	{"one credit", "fig6.4", []string{"firmware.credits=1", "traffic.arrivals.rate=14000 packets/s"}},
	{"discard", "fig6.4", []string{"card.no_buffer=discard", "firmware.buffers=3", "traffic.arrivals.rate=16000 packets/s"}},
	{"pci-first", "fig6.4", []string{"policy=pci-first", "traffic.arrivals.rate=17000 packets/s"}},
	{"round-robin", "fig6.4", []string{"policy=round-robin", "traffic.arrivals.rate=14000 packets/s"}},
	{"imix", "fig6.4", []string{"traffic.sizes.kind=imix", "traffic.arrivals.rate=15000 packets/s"}},
	{"rfc2544", "fig6.4", []string{"traffic.sizes.kind=rfc2544"}},
	{"unroutable", "fig6.4", []string{"routes.default_route=false", "traffic.destinations.unroutable=0.2"}},
	{"host returns", "fig6.4", []string{"routes.default_route=false", "traffic.destinations.unroutable=0.2", "host.return=card", "host.return_card=2"}},
	{"bursts", "fig6.4", []string{"traffic.arrivals.process=bursts", "traffic.arrivals.on=1 ms", "traffic.arrivals.off=2 ms"}},
	{"jittered", "fig6.4", []string{"traffic.arrivals.process=jittered", "traffic.arrivals.jitter=0.5"}},
	{"short bursts on the bus", "fig6.4", []string{"bus.burst=64 B", "bus.latency_timer=16"}},
	{"expired", "fig6.4", []string{"traffic.ttl=1"}},
	{"four-way", "four-way", nil},
	{"four-way loss", "four-way", []string{"traffic.arrivals.rate=9000 packets/s"}},
	{"one card", "one-card", nil},
	{"heavy loss, clocks aligned", "four-way", []string{"firmware.receive=whole", "firmware.credits=2", "traffic.fifo=2", "bus.burst=32 B", "card.phases=aligned", "traffic.arrivals.process=constant", "traffic.arrivals.rate=100000 packets/s"}},
	{"heavy loss, host returns", "four-way", []string{"firmware.buffers=5", "firmware.factors={receive: 3, dma: 3, flow: 3, send: 3}", "traffic.fifo=2", "policy=round-robin", "traffic.arrivals.rate=100000 packets/s", "traffic.destinations.unroutable=0.3", "routes.default_route=false", "host.return=card", "host.return_card=2"}},
	{"bridge, clocks aligned", "l2", []string{"seed=842", "firmware.buffers=3", "firmware.poll=1 cycles", "firmware.factors={receive: 0.3, dma: 0.3, flow: 0.3, send: 0.3}", "bus.peer_wait=1", "card.phases=aligned", "traffic.arrivals.process=saturating"}},
	{"bridge, heavy loss", "l2", []string{"firmware.receive=ring", "traffic.fifo=3", "firmware.factors={receive: 3, dma: 3, flow: 3, send: 3}", "policy=oldest-first", "traffic.arrivals.rate=100000 packets/s"}},
	{"lanai9", "fig6.4", []string{"card.preset=lanai9", "bus.clock=66 MHz", "bus.width=64"}},
	{"drifting clocks", "fig6.4", []string{"card.deviation=[50 ppm, -50 ppm, 0 ppm, 10 ppm]"}},
	{"to host, pci-first", "fig6.4", []string{"policy=pci-first", "traffic.destinations.unroutable=1", "routes.default_route=false", "traffic.arrivals.rate=14000 packets/s"}},
	{"host returns, pci-first", "fig6.4", []string{"policy=pci-first", "traffic.destinations.unroutable=0.5", "routes.default_route=false", "host.return=card", "host.return_card=0", "traffic.arrivals.rate=9000 packets/s"}},
	{"host returns, round-robin", "four-way", []string{"policy=round-robin", "traffic.destinations.unroutable=0.5", "routes.default_route=false", "host.return=card", "host.return_card=1"}},
	{"one of each", "four-way", []string{"firmware.buffers=1", "firmware.credits=1", "policy=pci-first"}},
	{"batches", "fig6.4", []string{"firmware.batch=4", "policy=pci-first"}},
	{"flooding", "l2", []string{"policy=pci-first"}},
}

// withExtensions are machines whose router handler, or host, does more than
// route by the table.
var withExtensions = []struct {
	machine
	floods bool
}{
	{machine{"bridge", "l2", nil}, true},
	{machine{"bridge from IPv4 addresses", "l2", []string{"traffic.link=ip"}}, true},
	{machine{"bridge that forgets", "l2", []string{"extensions=[{kind: l2, l2: {age: 8 ms, notice: 1 ms}}]", "traffic.arrivals.rate=800 packets/s"}}, true},
	{machine{"bridge of few stations", "l2", []string{"extensions=[{kind: l2, l2: {stations: 20, buckets: 1, memory: 4 KiB, hash: multiplicative}}]"}}, true},
	{machine{"bridge under load", "l2", []string{"traffic.arrivals.process=saturating"}}, true},
	{machine{"bridge with two buffers", "l2", []string{"firmware.buffers=2", "firmware.credits=1", "traffic.arrivals.rate=5000 packets/s"}}, true},
	{machine{"bridge before the router", "l2", []string{"extensions=[{kind: l2, l2: {unknown: next}}, {kind: ipv4}]"}}, false},
	{machine{"bridge of two cards", "l2", []string{"cards=2", "traffic.ingress=[0, 1]"}}, false},
	{machine{"bridge with receive: ring", "l2", []string{"firmware.receive=ring", "traffic.arrivals.rate=6000 packets/s"}}, true},
	{machine{"unknown stations to the host", "l2", []string{"extensions=[{kind: l2, l2: {unknown: to-host}}]", "host.return=card", "host.return_card=3"}}, false},
	{machine{"unknown stations dropped", "l2", []string{"extensions=[{kind: l2, l2: {unknown: drop, learning: off}}]"}}, false},
	{machine{"batches", "l2", []string{"firmware.batch=4", "traffic.arrivals.rate=8000 packets/s"}}, true},
	{machine{"batches longer than buffers", "fig6.4", []string{"firmware.batch=64", "traffic.arrivals.rate=12000 packets/s"}}, false},
	{machine{"batches, round-robin", "fig6.4", []string{"firmware.batch=8", "policy=round-robin", "firmware.receive=whole"}}, false},
	{machine{"sequential", "ilp", []string{manipulating("sequential"), "traffic.arrivals.rate=2000 packets/s"}}, false},
	{machine{"integrated", "ilp", nil}, false},
	{machine{"checksum by DMA", "ilp", []string{manipulating("dma-checksum")}}, false},
	{machine{"manipulated, then bridged", "l2", []string{"extensions=[{kind: ilp, ilp: {functions: [pes], mode: integrated}}, {kind: l2}]", "traffic.carry=700 B", "traffic.arrivals.rate=1000 packets/s"}}, true},
	{machine{"kernel", "host-path", nil}, false},
	{machine{"kernel that polls", "host-path", []string{"host.kernel.notify=poll", "host.kernel.flush=eager", "host.kernel.mapped_every=2"}}, false},
	{machine{"kernel without room", "host-path", []string{"host.kernel.queue=1", "host.kernel.processor=walnut-405", "traffic.destinations.unroutable=0.9", "traffic.arrivals.rate=14000 packets/s"}}, false},
}

// policyTexts are policies of every kind: as they are by default, and with
// parameters that make them differ from what they are by default.
func policyTexts() []string {
	texts := []string{
		"Q6 Q3 Q4 Q5 Q0 Q1 Q2", "Q1 Q2 Q3 Q4 Q5 Q6 Q0", "round-robin:order=6543210", "weighted-round-robin:weights=1/9/1/1/1/1/2",
		"stride:tickets=1/7/2/1/1/1/3", "quota:limit=1", "quota:round=7", "adaptive:low=12,high=15",
		"continuation-first:hold=yes", "continuation-first:order=1234560", "longest-queue-first:order=pci-first",
		"rules:order=pci-first,when backlog<2 first Q1,when not engine and credits<=50% until credits=100% first Q3 Q4 Q5",
	}
	for _, k := range spine.PolicyKinds() {
		if !k.WorkConserving {
			continue // a dispatcher that waits need not fit every machine
		}
		if !k.Language {
			texts = append(texts, k.Name)
		}
		texts = append(texts, k.Example)
	}
	return texts
}

// missed holds the dispatcher to what its own record says: a poll that ends
// while the message which its queue hands out next can run is a hit, an arrival
// at the very end of the poll excluded. Messages' times come from the handlers'
// records, polls' outcomes from the dispatcher.
type missed struct {
	t     *testing.T
	ends  [4][spine.NumQueues][]des.Time // of polls that missed
	polls int
	wrong int
}

func (m *missed) Record(r *traces.Record) error {
	if r.Queue == traces.NoQueue {
		return nil
	}
	switch ends := &m.ends[r.Card][r.Queue]; {
	case r.Kind == traces.KindPoll && r.Count == 0:
		*ends = append(*ends, r.End)
		m.polls++
	case r.Kind == traces.KindBox:
		for _, end := range slices.Backward(*ends) {
			if end <= r.Ready {
				break
			}
			if end <= r.Start {
				if m.wrong++; m.wrong < 4 {
					m.t.Errorf("card %d polled Q%d to %v and missed %v, which could run from %v on", r.Card, r.Queue, end, r.Event, r.Ready)
				}
			}
		}
	}
	return nil
}

// accounted runs a machine with the validator on, the dispatcher taking whole
// scans at once, and again poll by poll with every poll written out: nothing
// stands still, is lost or breaks a rule, no poll misses what is ready, and both
// runs do the same. It gives the result of the first. A dispatcher that is not
// work-conserving may look for the one message that its step names: its misses
// are right with others ready.
func accounted(t *testing.T, sc *Scenario, opt Options) *Result {
	t.Helper()
	var first *Result
	var counts []spine.StaticCounts
	conserving := opt.Policy == nil && slices.ContainsFunc(spine.PolicyKinds(), func(k spine.PolicyKind) bool {
		return k.WorkConserving && (k.Name == strings.Split(sc.Policy, ":")[0] || k.Name == "strict" && strings.HasPrefix(sc.Policy, "Q"))
	})
	for _, stepping := range []bool{false, true} {
		o, seen := opt, missed{t: t}
		if o.Check, o.Stepping = !stepping, stepping; stepping && conserving {
			o.Expand = []Span{{0, sc.Measure.Drain * 10}}
			o.Sinks = append(slices.Clone(o.Sinks), &seen)
		}
		s, err := New(sc, o)
		if err != nil {
			t.Fatal(err)
		}
		r, err := s.Run(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Violations) > 0 || !r.Drained || len(r.Unloaded) > 0 {
			t.Fatalf("drained %v, unloaded %v, notes %v, violations %v", r.Drained, r.Unloaded, r.Notes, r.Violations)
		}
		for i := range sc.Cards {
			c := s.Router().Card(i).StaticCounts()
			if !stepping {
				counts = append(counts, c)
			} else if got := counts[i]; !slices.Equal(got.Steps, c.Steps) || got.ToHost != c.ToHost || got.Passes != c.Passes || got.IdlePolls != c.IdlePolls ||
				got.Unforeseen != c.Unforeseen || got.UnforeseenPolls != c.UnforeseenPolls || got.GaveUp != c.GaveUp {
				t.Errorf("card %d counts\n%+v at once,\n%+v poll by poll", i, got, c)
			}
		}
		if first == nil {
			first = r
		} else if r.Fingerprint != first.Fingerprint {
			t.Errorf("fingerprint %s at once, %s poll by poll", first.Fingerprint, r.Fingerprint)
		}
		left := r.Forwarded + r.ToHost
		for _, n := range r.Dropped {
			left += n
		}
		if left != r.Received+r.Copies || r.Received != r.Offered {
			t.Errorf("%d offered, %d received, %d copied, %d left", r.Offered, r.Received, r.Copies, left)
		}
		if seen.wrong > 0 {
			t.Errorf("%d polls missed what was ready", seen.wrong)
		}
		if stepping && conserving && seen.polls == 0 && !strings.HasPrefix(r.Policy, "longest-queue-first") { // which is told in one read
			t.Error("no poll missed: nothing was looked at")
		}
	}
	return first
}

func TestInvariants(t *testing.T) {
	for _, m := range variants {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			accounted(t, m.load(t, testenv.Size(200, 1500)), Options{})
		})
	}
}

func TestExtensionInvariants(t *testing.T) {
	for _, v := range withExtensions {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			r := accounted(t, v.load(t, testenv.Size(150, 250)), Options{})
			if v.floods != (r.Copies > 0) {
				t.Errorf("%d copies", r.Copies)
			}
		})
	}
}

// TestPolicies runs every kind of policy.
func TestPolicies(t *testing.T) {
	for _, text := range policyTexts() {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			for _, c := range []struct {
				machine
				small, long int
			}{
				{machine{"loss", "fig6.4", []string{"traffic.arrivals.rate=15000 packets/s"}}, 150, 500},
				{machine{"four cards", "four-way", []string{"firmware.buffers=6", "firmware.credits=2"}}, 40, 150},
				{machine{"self chain", "fig6.4", []string{"firmware.dma_chain=self", "firmware.receive=ring", "traffic.arrivals.process=saturating"}}, 120, 400},
			} {
				sc := c.load(t, testenv.Size(c.small, c.long), "policy='"+text+"'")
				r := accounted(t, sc, Options{})
				if want := r.Policy; want == "" || !strings.HasPrefix(want, strings.Split(text, ":")[0]) && !strings.HasPrefix(text, "strict") {
					t.Errorf("policy %q calls itself %q", text, want)
				}
			}
		})
	}
}
