package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"spinesim/sim/testenv"

	"spinesim/lanai"
	"spinesim/spine"
	"spinesim/spine/schedule"
	"spinesim/traces"
)

// anyMachine draws settings that static schedules have to live with: machines
// of every kind and small, traffic that deviates in every way.
func anyMachine(rng *rand.Rand) (preset string, settings []string) {
	of := func(choices ...string) string { return choices[rng.IntN(len(choices))] }
	add := func(format string, args ...any) { settings = append(settings, fmt.Sprintf(format, args...)) }
	preset = of("fig6.4", "fig6.4", "fig6.4", "fig6.4", "four-way", "l2", "host-path", "host-path", "one-card")
	add("traffic.packets=%d", 20+rng.IntN(40))
	add("seed=%d", rng.IntN(1000))
	add("firmware.buffers=%d", 1+rng.IntN(8))
	add("firmware.credits=%d", 1+rng.IntN(5))
	add("firmware.poll=%d cycles", 1+rng.IntN(30))
	for _, g := range []string{"receive", "route", "dma", "flow", "send"} {
		add("firmware.factors.%s=%s", g, of("0.3", "1", "1.5", "4"))
	}
	add("firmware.receive=%s", of("split", "whole", "ring"))
	add("firmware.dma_chain=%s", of("dma", "self"))
	add("traffic.fifo=%d", 2+rng.IntN(15))
	add("traffic.arrivals.rate=%s", of("3000", "9000", "14000", "60000")+" packets/s")
	switch p := of("saturating", "constant", "jittered", "poisson", "bursts"); p {
	case "bursts":
		add("traffic.arrivals.process=bursts")
		add("traffic.arrivals.on=1 ms")
		add("traffic.arrivals.off=2 ms")
	case "jittered":
		add("traffic.arrivals.process=jittered")
		add("traffic.arrivals.jitter=0.7")
	default:
		add("traffic.arrivals.process=%s", p)
	}
	switch of("fixed", "small", "imix") {
	case "small":
		add("traffic.sizes.kind=fixed")
		add("traffic.sizes.bytes=%d B", 40+rng.IntN(400))
	case "imix":
		add("traffic.sizes.kind=imix")
	}
	if preset != "l2" && rng.IntN(2) == 0 {
		add("traffic.destinations.unroutable=%s", of("0.01", "0.3", "0.9"))
		add("routes.default_route=false")
	}
	if preset == "fig6.4" && rng.IntN(3) == 0 {
		n := 2 + rng.IntN(3)
		add("cards=%d", n)
		add("routes.cards=[%d]", rng.IntN(n))
		add("traffic.ingress=[%d, %d]", n-2, n-1)
	}
	if preset != "one-card" && rng.IntN(4) == 0 {
		add("host.return=card")
		add("host.return_card=%d", rng.IntN(2))
		add("host.credits=%d", 1+rng.IntN(3))
	}
	if rng.IntN(4) == 0 {
		add("firmware.batch=%d", 2+rng.IntN(5))
	}
	if rng.IntN(5) == 0 {
		add("card.no_buffer=discard")
	}
	if rng.IntN(4) == 0 {
		add("card.phases=aligned")
	}
	if preset == "l2" && rng.IntN(2) == 0 {
		add("extensions=[{kind: l2, l2: {unknown: %s}}]", of("flood", "to-host", "drop"))
	}
	return preset, settings
}

// byHand writes a cycle as a person with no sense of order might: the handlers
// in any order, with any guards, some of them left to a background slot.
func byHand(rng *rand.Rand, sc *Scenario, flows []schedule.Flow) *schedule.Plan {
	p := &schedule.Plan{Name: "by hand"}
	for c := range uint8(sc.Cards) {
		var handlers []traces.Event
		var receives, sends, own bool
		for _, f := range flows {
			receives = receives || f.Ingress == c
			sends = sends || f.Egress == c && f.Ingress != c
			own = own || f.Egress == c && f.Ingress == c
		}
		if receives {
			handlers = append(handlers, traces.RxCheckHeader, traces.RxCheckBody, traces.EnqRouterIn, traces.RouterIn, traces.EnqIPOutput,
				traces.PeerToPeerStart, traces.DMAStartHandler, traces.DMAGenericStart, traces.DMAStartBody, traces.DMAStartHeader,
				traces.PeerAck, traces.FreeBuffer, traces.ToHost)
		}
		host := sc.Host.Return == "card"
		if own || sends {
			handlers = append(handlers, traces.WireOutputStart)
		}
		if own || sends || host {
			handlers = append(handlers, traces.WireOutputDone)
		}
		if sends || host {
			handlers = append(handlers, traces.AckSend)
		}
		if host {
			handlers = append(handlers, traces.FromHost)
		}
		if rng.IntN(2) == 0 {
			rng.Shuffle(len(handlers), func(i, j int) { handlers[i], handlers[j] = handlers[j], handlers[i] })
		}
		var steps []schedule.Step
		slot := rng.IntN(4)
		for _, h := range handlers {
			if slot == 0 && rng.IntN(3) == 0 {
				continue
			}
			st := schedule.Step{StaticStep: spine.StaticStep{Handler: h, Guard: spine.Guard(rng.IntN(3))}}
			switch h {
			case traces.RxCheckHeader, traces.PeerAck, traces.FromHost, traces.WireOutputStart, traces.WireOutputDone:
				st.Guard = spine.GuardLook
				if rng.IntN(3) == 0 {
					st.Guard = spine.GuardWait
				}
			case traces.RxCheckBody, traces.DMAStartHeader:
				if st.Guard == spine.GuardKnown {
					st.Guard = spine.GuardWait
				}
			}
			if st.Guard == spine.GuardWait && (h != traces.WireOutputDone || rng.IntN(2) == 0) && rng.IntN(4) > 0 {
				st.Polls = 1 + rng.IntN(12)
			}
			for range 1 + rng.IntN(2)*rng.IntN(2) {
				steps = append(steps, st)
			}
		}
		if slot == 0 || len(steps) == 0 {
			order := []uint8{0, 1, 2, 3, 4, 5, 6}
			rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
			st := schedule.Step{StaticStep: spine.StaticStep{Handler: traces.NoEvent, Order: order, Handlers: 1 + rng.IntN(9)}}
			steps = slices.Insert(steps, rng.IntN(len(steps)+1), st)
		}
		p.Cards = append(p.Cards, schedule.CardPlan{Cards: []uint8{c}, Steps: steps})
	}
	return p
}

// careless leaves steps out: nobody has checked the cycle, which is handed to
// the router as a policy of the user's own.
func careless(rng *rand.Rand, p *schedule.Plan) {
	for i := range p.Cards {
		c := &p.Cards[i]
		for k := range c.Steps {
			if st := &c.Steps[k]; st.Guard == spine.GuardWait && st.Polls == 0 {
				st.Polls = 5
			}
		}
		left := slices.DeleteFunc(slices.Clone(c.Steps), func(schedule.Step) bool { return rng.IntN(4) == 0 })
		if len(left) > 0 {
			c.Steps = left
		}
	}
}

// TestStaticStress: hundreds of machines at random, under cycles of every
// making: synthesised ones of one and of several packets, with and without
// background slots, whatever of those by hand passes the check, and some that
// nobody has checked.
func TestStaticStress(t *testing.T) {
	machines := testenv.Size(50, 250)
	for n := range machines {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			staticStress(t, n)
		})
	}
}

func staticStress(t *testing.T, n int) {
	rng := rand.New(rand.NewPCG(7, uint64(n)))
	preset, settings := anyMachine(rng)
	base, err := Load(preset, settings...)
	if err != nil {
		t.Fatalf("%s %q: %v", preset, settings, err)
	}
	m, flows, err := ScheduleModel(base)
	if err != nil {
		t.Fatalf("%s %q: %v", preset, settings, err)
	}
	dir := t.TempDir()
	file := func(name string, p *schedule.Plan) {
		var b strings.Builder
		if err := p.WriteYAML(&b); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		if !t.Run(name, func(t *testing.T) {
			accounted(t, mustLoad(t, preset, append(slices.Clone(settings), "policy='static:file="+path+"'")...), Options{})
		}) {
			t.Logf("%s %q\n%s", preset, settings, b.String())
		}
	}
	// Making a cycle takes longer than running it, above all where several cards
	// receive.
	k, hybrid, every := 1+rng.IntN(4), rng.IntN(2) == 0, 5
	if len(base.Traffic.Ingress) > 1 {
		k, every = 1, 20
	}
	if n%every == 0 {
		r, err := schedule.Synthesise(m, flows, schedule.Options{Packets: k, Hybrid: hybrid, Nodes: 20})
		switch {
		case errors.Is(err, schedule.ErrNotFound):
		case err != nil:
			t.Errorf("%s %q: a cycle of %d packets, hybrid %v: %v", preset, settings, k, hybrid, err)
		default:
			file(fmt.Sprintf("%d-packets-hybrid-%v.yaml", k, hybrid), r.Plan)
		}
	}
	for i := range 3 {
		if p := byHand(rng, base, flows); schedule.Check(p, m, flows) == nil {
			file(fmt.Sprintf("by-hand-%d.yaml", i), p)
		}
	}
	p := byHand(rng, base, flows)
	careless(rng, p)
	if !t.Run("careless", func(t *testing.T) {
		accounted(t, base, Options{Policy: func(card int) (spine.Policy, error) { return p.Policy("careless", uint8(card)) }})
	}) {
		for i := range p.Cards {
			t.Logf("%s %q card %d\n%s", preset, settings, i, p.Cards[i].String())
		}
	}
}

// TestStaticFlood: a bridge floods what it does not know, so that packets leave
// by cards that no route table names. The schedule is made for what the
// scenario's own extension does.
func TestStaticFlood(t *testing.T) {
	sc := mustLoad(t, "l2", "traffic.packets=40", "seed=815", "firmware.buffers=2", "firmware.credits=4", "firmware.poll=3 cycles",
		"policy=hybrid", "traffic.arrivals.process=constant")
	if r := mustRun(t, sc, Options{Check: true}); !r.Drained || r.Copies == 0 {
		t.Errorf("drained %v, %d copies, notes %v", r.Drained, r.Copies, r.Notes)
	}
	m, flows, err := ScheduleModel(sc)
	if err != nil {
		t.Fatal(err)
	}
	if len(flows) != 12 {
		t.Errorf("%d flows between four cards, want each to each other: %+v", len(flows), flows)
	}
	if _, err := schedule.Synthesise(m, flows, schedule.Options{Nodes: 20}); err != nil {
		t.Error(err)
	}
	// A card that sends its own packets out again and those of others.
	own := mustLoad(t, "fig6.4", "cards=2", "routes.cards=[0]", "traffic.ingress=[0, 1]")
	if m, flows, err = ScheduleModel(own); err != nil {
		t.Fatal(err)
	}
	r, err := schedule.Synthesise(m, flows, schedule.Options{Nodes: 20})
	if err != nil {
		t.Fatal(err)
	}
	if text := r.Plan.Cards[0].String(); !strings.Contains(text, "Wire output start: look") {
		t.Errorf("nothing looks for the other card's packets:\n%s", text)
	}
}

// TestStaticUnforeseen: an extension sends packets where the schedule expects
// none. They get through, and are counted.
func TestStaticUnforeseen(t *testing.T) {
	elsewhere := func(int, *lanai.SRAM) ([]spine.Extension, error) { return []spine.Extension{toCard(3)}, nil }
	sc := mustLoad(t, "fig6.4", "traffic.packets=200", "policy=static", "routes.cards=[1]")
	s, err := New(sc, Options{Check: true, Extensions: elsewhere})
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Run(context.Background())
	if err != nil || !r.Drained || len(r.Violations) > 0 {
		t.Fatalf("%v, %+v", err, r)
	}
	if c := s.Router().Card(3).StaticCounts(); r.Forwarded+r.Dropped[traces.ReasonFIFOFull.String()] != r.Received || c.Unforeseen < 3*r.Forwarded || c.UnforeseenPolls < c.Unforeseen {
		t.Errorf("%d of %d packets forwarded, card 3 counts %+v, dropped %v", r.Forwarded, r.Received, c, r.Dropped)
	}
	accounted(t, sc, Options{Extensions: elsewhere})
}

// toCard is an extension that sends everything out by one card.
type toCard uint8

func (toCard) Name() string { return "elsewhere" }
func (c toCard) Handle(ctx *spine.Context, _ *spine.Packet) spine.Verdict {
	ctx.Charge(10)
	return spine.Verdict{Action: spine.Forward, Card: uint8(c)}
}
