package sim

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"spinesim/spine"
	"spinesim/spine/policy"
	"spinesim/traces"
)

// waits counts, for each card and queue, the handlers of other queues that ran
// while a message that could run stood first in the queue.
type waits struct {
	boxes [4][]traces.Record
	worst [spine.NumQueues]int
}

func (w *waits) Record(r *traces.Record) error {
	if r.Kind != traces.KindBox || int(r.Card) >= len(w.boxes) {
		return nil
	}
	past := w.boxes[r.Card]
	others := 0
	for i := len(past) - 1; i >= 0 && past[i].Start >= r.Ready; i-- {
		if past[i].Queue == r.Queue {
			break // the queue was served: its wait begins anew
		}
		others++
	}
	w.worst[r.Queue] = max(w.worst[r.Queue], others)
	if len(past) > 4096 {
		past = past[:copy(past, past[len(past)-2048:])]
	}
	w.boxes[r.Card] = append(past, *r)
	return nil
}

// TestPoliciesStarveNobody: on an overloaded router, policies that claim to be
// free of starvation keep to the bounds that their manuals give; pci-first and
// the default order, which claim nothing, are beyond the tightest of them.
func TestPoliciesStarveNobody(t *testing.T) {
	worst := func(text string) [spine.NumQueues]int {
		var w waits
		sc := mustLoad(t, "four-way", "policy='"+text+"'", "traffic.packets=1200", "traffic.arrivals.process=saturating")
		mustRun(t, sc, Options{Unmeasured: true, Sinks: []traces.Sink{&w}})
		return w.worst
	}
	const shares = 15 // the sum of the default shares
	for _, tc := range []struct {
		text  string
		bound func(q int) int
	}{
		{"round-robin", func(int) int { return spine.NumQueues - 1 }},
		{"weighted-round-robin", func(q int) int { return shares - policy.DefaultShares[q] }},
		{"quota", func(q int) int { return 2 * (shares - policy.DefaultShares[q]) }},
		{"stride", func(q int) int {
			sum := 0
			for i, n := range policy.DefaultShares {
				if i != q {
					sum += n/policy.DefaultShares[q] + 2
				}
			}
			return sum
		}},
	} {
		got := worst(tc.text)
		for q, n := range got {
			if n > tc.bound(q) {
				t.Errorf("%s: a message of Q%d waited for %d handlers, want at most %d", tc.text, q, n, tc.bound(q))
			}
		}
		if got[spine.QWire] == 0 || got[spine.QDMA] == 0 {
			t.Errorf("%s: waits %v on an overloaded router, want some", tc.text, got)
		}
	}
	if got := worst("default"); got[spine.QDMA] < spine.NumQueues {
		t.Errorf("default: Q6 never waited for more than %d handlers, want more than round-robin's bound", got[spine.QDMA])
	}
	if got := worst("oldest-first"); got[spine.QDMA] == 0 {
		t.Errorf("oldest-first: waits %v, want some", got)
	}
}

// TestPoliciesAllocateNothing: no policy costs an allocation a packet.
func TestPoliciesAllocateNothing(t *testing.T) {
	for _, text := range []string{
		"weighted-round-robin", "stride", "quota", "adaptive", "continuation-first", "longest-queue-first", "oldest-first", "lottery",
		"rules:when buffers<25% until buffers>50% use pci-first,when unpolled Q6>=6 first Q6",
	} {
		allocs := func(packets int) float64 {
			sc := mustLoad(t, "fig6.4", fmt.Sprintf("traffic.packets=%d", packets), "policy='"+text+"'")
			s, err := New(sc, Options{Unmeasured: true})
			if err != nil {
				t.Fatal(err)
			}
			return mallocs(func() {
				if _, err := s.Run(context.Background()); err != nil {
					t.Fatal(err)
				}
			})
		}
		if per := (allocs(9000) - allocs(4000)) / 5000; per > 0.01 {
			t.Errorf("%s: %.3f allocations a packet", text, per)
		}
	}
}

// TestPolicyMechanism: each remedy does what it is for. A chain that is not
// interrupted has no handlers of others in its DMA step; the default order
// lets bubbles grow, and pci-first keeps them small.
func TestPolicyMechanism(t *testing.T) {
	run := func(text string) *Result {
		return mustRun(t, mustLoad(t, "fig6.4", "policy='"+text+"'", "traffic.packets=5000", "traffic.arrivals.process=saturating"), Options{})
	}
	def, first, cont := run("default"), run("pci-first"), run("continuation-first")
	if !(first.Gap.Mean < cont.Gap.Mean && cont.Gap.Mean < def.Gap.Mean) {
		t.Errorf("saturated gaps: pci-first %.1f, continuation-first %.1f, default %.1f µs; want them in this order", first.Gap.Mean, cont.Gap.Mean, def.Gap.Mean)
	}
	if !(first.BubbleShare < cont.BubbleShare && cont.BubbleShare < def.BubbleShare) {
		t.Errorf("bubbles: pci-first %.3f, continuation-first %.3f, default %.3f; want them in this order", first.BubbleShare, cont.BubbleShare, def.BubbleShare)
	}
	if def.DMAStep.Interruptions < 2*cont.DMAStep.Interruptions {
		t.Errorf("interruptions of a DMA step: default %.2f, continuation-first %.2f µs; want the default's at least twice as long", def.DMAStep.Interruptions, cont.DMAStep.Interruptions)
	}
	// A rule says the same as the policy made for it.
	if r := run("rules:when chain first Q6"); r.Fingerprint != cont.Fingerprint {
		t.Errorf("a rule that lifts Q6 beside a chain gives %s, continuation-first %s", r.Fingerprint, cont.Fingerprint)
	}
	if r := run("strict:order=pci-first"); r.Fingerprint != first.Fingerprint {
		t.Errorf("the order of pci-first gives %s, pci-first %s", r.Fingerprint, first.Fingerprint)
	}
	if r := run("adaptive"); r.Fingerprint != run("rules:when buffers<=25% until buffers>=50% use pci-first").Fingerprint {
		t.Error("adaptive and the rule that says the same differ")
	}
	// Weights of one are plain round-robin.
	if r := run("weighted-round-robin:weights=1"); r.Fingerprint != run("round-robin").Fingerprint {
		t.Error("weighted round-robin with weights of one differs from round-robin")
	}
}

// planned is a policy that plans whatever it is told.
type planned struct{ plan spine.Plan }

func (*planned) Name() string                          { return "planned" }
func (p *planned) Plan(_ *spine.View, out *spine.Plan) { *out = p.plan }
func (*planned) Hit(int64, uint8)                      {}

// chosen is a vector policy that always chooses the same queue.
type chosen struct {
	planned
	queue uint8
}

func (c *chosen) Choose(*spine.Vector) uint8 { return c.queue }

// TestBrokenPolicies: a policy of the user's that the dispatcher cannot follow
// ends the run with an error that names card and policy.
func TestBrokenPolicies(t *testing.T) {
	seq := func(loop int, q ...uint8) *planned { return &planned{spine.Plan{Seq: q, Loop: loop}} }
	for _, tc := range []struct {
		policy spine.Policy
		want   string
	}{
		{seq(0), "policy planned plans no poll"},
		{seq(1, 3), "plans 1 polls and a loop from poll 2 on"},
		{seq(-1, 0, 7), "plans to poll Q7, want Q0 … Q6"},
		{&chosen{queue: 5}, "policy planned chose Q5, which is not ready"},
		{&chosen{queue: 77}, "chose Q77"},
		{nil, "card 0: no policy"},
	} {
		sc := mustLoad(t, "fig6.4", "traffic.packets=50")
		_, err := Run(context.Background(), sc, Options{Policy: func(card int) (spine.Policy, error) {
			if card != 0 {
				return spine.NewPolicy("default", 1, uint8(card))
			}
			return tc.policy, nil
		}})
		if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), "card 0") {
			t.Errorf("%v, want an error with %q", err, tc.want)
		}
	}
	sc := mustLoad(t, "fig6.4", "traffic.packets=50")
	_, err := Run(context.Background(), sc, Options{Policy: func(card int) (spine.Policy, error) {
		return nil, fmt.Errorf("none for card %d", card)
	}})
	if err == nil || !strings.Contains(err.Error(), "none for card 0") {
		t.Errorf("%v, want the maker's own error", err)
	}
}
