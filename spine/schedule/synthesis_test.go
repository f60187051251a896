package schedule

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"spinesim/lanai"
	"spinesim/pci"
	"spinesim/sim/des"
	"spinesim/spine"
	"spinesim/traces"
)

// machine is the router before any fit.
func machine() *Machine {
	return &Machine{
		Cards: 4, Card: lanai.Lanai4(), Bus: pci.DefaultSpec(), Firmware: spine.DefaultSpec(),
		Router: spine.Cost{Cycles: 132, Accesses: 20},
	}
}

// spread is packets of one card for the other three.
func spread(bytes int) []Flow {
	return []Flow{{0, 1, bytes, 1}, {0, 2, bytes, 1}, {0, 3, bytes, 1}}
}

// fourWay is packets of every card for every other.
func fourWay(bytes int) []Flow {
	var out []Flow
	for i := range uint8(4) {
		for j := range uint8(4) {
			if i != j {
				out = append(out, Flow{i, j, bytes, 1})
			}
		}
	}
	return out
}

// TestLowerBoundByHand adds the default machine's demands up from its spec.
func TestLowerBoundByHand(t *testing.T) {
	m := machine()
	b, err := LowerBound(m, spread(1500))
	if err != nil {
		t.Fatal(err)
	}
	const cycle = 0.03
	cost := func(hs ...traces.Event) (n float64) {
		for _, h := range hs {
			n += float64(m.Firmware.Costs.Handler[h].Cycles)
		}
		return n * cycle
	}
	poll := float64(m.Firmware.Costs.Poll.Cycles) * cycle
	chain := cost(traces.PeerToPeerStart, traces.DMAStartHandler, traces.DMAGenericStart, traces.DMAStartBody, traces.DMAStartHeader)
	rest := cost(traces.RxCheckHeader, traces.RxCheckBody, traces.EnqRouterIn, traces.EnqIPOutput, traces.FreeBuffer, traces.PeerAck) + 132*cycle
	// From request to last data: 2 clocks to the grant, the address, words of
	// 1 + 2 clocks; half a clock and half a cycle to be seen.
	transfer := func(bytes int) float64 {
		words := float64((bytes + 3) / 4)
		return (2 + 1 + words*float64(1+m.Card.Target.DataWait) + 0.5 + 0.5) * cycle
	}
	want := map[string]float64{
		"processor of card 0":           chain + rest,
		"processor of card 2":           cost(traces.WireOutputStart, traces.WireOutputDone, traces.AckSend) / 3,
		"DMA engine of card 0":          chain + transfer(1468) + transfer(32),
		"DMA transfers of card 0":       transfer(1468) + transfer(32),
		"wire into card 0":              1500 / 160.,
		"wire out of card 1":            1500 / 160. / 3,
		"receive engine of card 0":      1500/160. + cost(traces.RxCheckHeader, traces.RxCheckBody),
		"DMA engine of card 3":          (cost(traces.AckSend) + transfer(4)) / 3,
		"credits for card 1 of card 0":  0, // looked at below
		"buffers of card 0":             0,
		"bus":                           0,
		"memory bus of card 0":          0,
		"DMA transfers of card 1":       transfer(4) / 3,
		"memory bus of card 1":          0,
		"polls of processor of card 0":  5 * poll,
		"polls of DMA engine of card 0": poll,
	}
	for _, d := range b.Rows {
		if w := want[d.Resource]; w != 0 && math.Abs(d.WorkUS-w) > 1e-3 {
			t.Errorf("%s: %.4f µs, want %.4f", d.Resource, d.WorkUS, w)
		}
		if w := want["polls of "+d.Resource]; w != 0 && math.Abs(d.PollsUS-w) > 1e-3 {
			t.Errorf("polls of %s: %.4f µs, want %.4f", d.Resource, d.PollsUS, w)
		}
	}
	top := slices.MaxFunc(b.Rows, func(a, b Demand) int { return cmp2(a.WorkUS, b.WorkUS) })
	if b.Binding != top.Resource || b.LowerUS != top.WorkUS {
		t.Errorf("binding %s with %v, want %s with %v", b.Binding, b.LowerUS, top.Resource, top.WorkUS)
	}
	if b.PolledUS < b.LowerUS {
		t.Errorf("with polls %v, without %v", b.PolledUS, b.LowerUS)
	}
}

func cmp2(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// TestBoundsAgree: the table's bound and the cyclic problem's are the same sums
// reached in two ways, so the problem's bound is never above the interval nor
// far below the table's.
func TestBoundsAgree(t *testing.T) {
	for _, receive := range []spine.ReceiveMode{spine.ReceiveSplit, spine.ReceiveWhole, spine.ReceiveRing} {
		for _, bytes := range []int{28, 64, 300, 576, 1500} {
			for name, flows := range map[string][]Flow{"spread": spread(bytes), "one": {{0, 1, bytes, 1}}} {
				m := machine()
				m.Firmware.Receive = receive
				b, err := LowerBound(m, flows)
				if err != nil {
					t.Fatal(err)
				}
				p, err := Build(m, flows, 1, true)
				if err != nil {
					t.Fatal(err)
				}
				least, what, err := p.Least()
				if err != nil {
					t.Fatal(err)
				}
				if d := math.Abs(least.Microseconds()/b.PolledUS - 1); d > 0.001 {
					t.Errorf("%s %s %d bytes: the problem's bound is %v (%s), the table's %.3f µs (%s)", receive, name, bytes, least, what, b.PolledUS, b.PolledBinding)
				}
			}
		}
	}
}

// TestSynthesise: what holds for every machine, whatever its parameters.
func TestSynthesise(t *testing.T) {
	imix := []Flow{{0, 1, 40, 7}, {0, 2, 576, 4}, {0, 3, 1500, 1}}
	for _, c := range []struct {
		name   string
		flows  []Flow
		k      int
		change func(*Machine)
	}{
		{"fig6.4", spread(1500), 1, nil},
		{"two packets", spread(1500), 2, nil},
		{"three packets", spread(1500), 3, nil},
		{"small", spread(64), 1, nil},
		{"mixed", imix, 1, nil},
		{"mixed, three packets", imix, 3, nil},
		{"four-way", fourWay(1500), 1, nil},
		{"one card for itself", []Flow{{0, 0, 1500, 1}}, 1, func(m *Machine) { m.Cards = 1 }},
		{"own wire beside others", []Flow{{0, 0, 1500, 1}, {0, 1, 1500, 3}, {1, 0, 1500, 1}}, 1, nil},
		{"whole", spread(1500), 1, func(m *Machine) { m.Firmware.Receive = spine.ReceiveWhole }},
		{"ring", spread(576), 1, func(m *Machine) { m.Firmware.Receive = spine.ReceiveRing }},
		{"self", spread(1500), 1, func(m *Machine) { m.Firmware.Chain = spine.ChainSelf }},
		{"few buffers", spread(1500), 1, func(m *Machine) { m.Firmware.Buffers, m.Firmware.Credits = 2, 1 }},
		{"one buffer", spread(1500), 1, func(m *Machine) { m.Firmware.Buffers, m.Firmware.Credits = 1, 1 }},
		{"slow", spread(1500), 1, func(m *Machine) {
			m.Firmware.Costs = spine.FactoredCosts(spine.SameFactors(1.7), 31)
			m.Card.Target.DataWait = 3
		}},
		{"host sends", spread(1500), 1, func(m *Machine) { m.Firmware.HostReturn = true }},
		{"lanai9", spread(1500), 1, func(m *Machine) { m.Card = lanai.Lanai9(); m.Bus = m.Card.Bus }},
	} {
		for _, hybrid := range []bool{false, true} {
			t.Run(fmt.Sprint(c.name, " ", hybrid), func(t *testing.T) {
				m := machine()
				if c.change != nil {
					c.change(m)
				}
				r, err := Synthesise(m, c.flows, Options{Packets: c.k, Hybrid: hybrid, Nodes: 800})
				if err != nil {
					t.Fatal(err)
				}
				if why := unsound(r.Problem, r.Schedule); why != "" {
					t.Error(why)
				}
				if r.ProvedUS > r.IntervalUS || r.Optimal != (r.ProvedUS == r.IntervalUS) || r.Optimal != (r.Distance == 0) {
					t.Errorf("interval %v, proved bound %v, optimal %v, distance %v", r.IntervalUS, r.ProvedUS, r.Optimal, r.Distance)
				}
				if r.PredictedUS < r.IntervalUS-1e-9 || r.MemoryUS < 0 || r.BusUS < 0 {
					t.Errorf("predicted %v of interval %v, memory %v, bus %v", r.PredictedUS, r.IntervalUS, r.MemoryUS, r.BusUS)
				}
				for _, n := range r.Needs {
					if n.Buffers > m.Firmware.Buffers || n.Credits > m.Firmware.Credits || n.Buffers < 1 {
						t.Errorf("needs %+v, and there are %d and %d", n, m.Firmware.Buffers, m.Firmware.Credits)
					}
				}
				for _, g := range r.Gantt {
					if g.StartUS < 0 || g.StartUS >= r.CycleUS || g.LengthUS < 0 {
						t.Errorf("bar %+v in a cycle of %v µs", g, r.CycleUS)
					}
				}
				if err := Check(r.Plan, m, c.flows); err != nil {
					t.Error(err)
				}
				// What is written is what is read.
				var b bytes.Buffer
				if err := r.Plan.WriteYAML(&b); err != nil {
					t.Fatal(err)
				}
				p, err := Parse(b.Bytes(), "plan.yaml")
				if err != nil {
					t.Fatalf("%v in\n%s", err, b.String())
				}
				for card := range uint8(m.Cards) {
					want, err := r.Plan.Policy("x", card)
					if err != nil {
						t.Fatal(err)
					}
					got, err := p.Policy("x", card)
					if err != nil {
						t.Fatal(err)
					}
					if diff := cmp.Diff(want.Cycle(), got.Cycle()); diff != "" {
						t.Errorf("card %d reads back differently:\n%s", card, diff)
					}
					if err := got.Cycle().Validate(); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
}

// TestScarce: with fewer buffers or credits a cycle cannot be shorter, and one
// buffer serialises a packet's whole way.
func TestScarce(t *testing.T) {
	last := 0.
	for _, n := range []int{16, 4, 3, 2, 1} {
		m := machine()
		m.Firmware.Buffers, m.Firmware.Credits = n, n
		r, err := Synthesise(m, []Flow{{0, 1, 1500, 1}}, Options{Nodes: 2000})
		if err != nil {
			t.Fatal(err)
		}
		if r.IntervalUS < last-1e-9 {
			t.Errorf("with %d buffers and credits the interval is %v µs, with more of them %v", n, r.IntervalUS, last)
		}
		last = r.IntervalUS
		if n == 1 {
			var way des.Time
			for _, o := range r.Problem.Ops {
				if o.Handler != traces.RxCheckHeader && o.Name != traces.ReceiveHeader.String() {
					way += o.Time
				}
			}
			// All but the next header, which comes in and is checked meanwhile;
			// each of five waits for hardware overlaps it by half a poll.
			poll := m.cycles(float64(m.Firmware.Costs.Poll.Cycles))
			if d := way.Microseconds() - 2.5*poll.Microseconds() - r.IntervalUS; math.Abs(d) > 0.01 {
				t.Errorf("with one buffer the interval is %v µs, and a packet's way %v with polls of %v", r.IntervalUS, way, poll)
			}
		}
	}
}

// TestFlowErrors: flows that no machine carries.
func TestFlowErrors(t *testing.T) {
	for name, f := range map[string][]Flow{
		"none":     nil,
		"ingress":  {{4, 0, 100, 1}},
		"egress":   {{0, 9, 100, 1}},
		"length":   {{0, 1, 5000, 1}},
		"no bytes": {{0, 1, 0, 1}},
		"weight":   {{0, 1, 100, 0}},
		"NaN":      {{0, 1, 100, math.NaN()}},
	} {
		if _, err := Synthesise(machine(), f, Options{}); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	if _, err := Build(machine(), spread(100), MaxPackets+1, true); err == nil {
		t.Error("a cycle of too many packets is accepted")
	}
	m := machine()
	m.Cards = 0
	if _, err := LowerBound(m, spread(100)); err == nil {
		t.Error("a router without cards is accepted")
	}
}

// TestStretched works a handler's contention out by hand: one stream takes 1.5
// of 2 accesses a cycle for half of the handler, which wants 1.25.
func TestStretched(t *testing.T) {
	m := machine()
	m.Firmware.Costs.Handler[traces.EnqRouterIn] = spine.Cost{Cycles: 100, Accesses: 25}
	p := &Problem{
		Resources: []string{"processor of card 0"},
		Ops:       []Op{{Name: "op", Time: 100 * 30 * des.Nanosecond, Handler: traces.EnqRouterIn}},
	}
	s, err := Solve(p, SolveOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// 20 cycles in which 0.5 of 1.25 accesses are left: 8 cycles' work. With
	// the cycle 100 long the stream comes once more, 80 cycles after its end:
	// 80 + 8 of work in 100 cycles, then 8 of the next 20, and 8.8 left …
	got := s.stretched(m, 0, []stream{{0, 0, 20 * 30 * des.Nanosecond, 1.5}})
	// After 100 cycles 88 are done; 20 more bring 8; the last 4 are free.
	if want := 124 * 30 * des.Nanosecond; got < want-30 || got > want+30 {
		t.Errorf("took %v, want %v", got, want)
	}
	if got := s.stretched(m, 0, []stream{{1, 0, 50 * 30 * des.Nanosecond, 2}}); got != p.Ops[0].Time {
		t.Errorf("another card's stream makes it %v", got)
	}
}

// TestDeterministic: the same machine gives the same schedule.
func TestDeterministic(t *testing.T) {
	var first *Result
	for range 3 {
		r, err := Synthesise(machine(), spread(576), Options{Packets: 2, Nodes: 300})
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = r
			continue
		}
		if diff := cmp.Diff(first.Gantt, r.Gantt); diff != "" {
			t.Fatal(diff)
		}
	}
}
