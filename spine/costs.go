package spine

import (
	"fmt"
	"math"

	"spinesim/lanai"
	"spinesim/traces"
)

// Cost is what one run of a handler demands of the card's processor.
type Cost struct {
	// Cycles is the instruction cycles, 30 ns each on a LANai 4.
	Cycles int32
	// Accesses is the loads and stores among them, at most Cycles.
	Accesses int32
	// Source says where the figure comes from.
	Source string
}

// CostTable holds the cost of every handler, and of a poll.
type CostTable struct {
	// Poll is the cost of polling one queue.
	Poll Cost
	// Vector is the cost of one read of the hardware event vector.
	Vector Cost
	// Handler is indexed by event; only handlers have entries. The entry for
	// the router handler is added to what the extension charges.
	Handler [traces.NumEvents]Cost
}

// Handlers lists the events that are handlers, in the figure's order, then
// those that the figure does not show.
var Handlers = [...]traces.Event{
	traces.FreeBuffer, traces.PeerAck, traces.RxCheckHeader, traces.RxCheckBody,
	traces.EnqRouterIn, traces.RouterIn, traces.EnqIPOutput, traces.PeerToPeerStart,
	traces.DMAStartHandler, traces.DMAGenericStart, traces.DMAStartBody, traces.DMAStartHeader,
	traces.WireOutputStart, traces.WireOutputDone, traces.AckSend, traces.ToHost, traces.FromHost,
}

// accessShare is the part of a table cost's instructions that load or store:
// one in four, as in compiled code for small RISC processors (chosen).
const accessShare = 4

// startCycles are the costs that the fit starts from, in cycles of 30 ns.
// None is published; they are chosen, except that the router handler's run is
// (about 4 µs, thesis p.108) and is charged by the extension itself.
var startCycles = map[traces.Event]int32{
	traces.FreeBuffer:      66,
	traces.PeerAck:         50,
	traces.RxCheckHeader:   90,
	traces.RxCheckBody:     90,
	traces.EnqRouterIn:     66,
	traces.RouterIn:        0,
	traces.EnqIPOutput:     66,
	traces.PeerToPeerStart: 100,
	traces.DMAStartHandler: 66,
	traces.DMAGenericStart: 66,
	traces.DMAStartBody:    66,
	traces.DMAStartHeader:  66,
	traces.WireOutputStart: 100,
	traces.WireOutputDone:  66,
	traces.AckSend:         66,
	traces.ToHost:          100,
	traces.FromHost:        100,
}

// StartCosts is the table before any fit: every figure chosen.
func StartCosts() CostTable { return ScaledCosts(1, 12) }

// ScaledCosts is the start table with every handler but the router handler
// multiplied by scale, and the given cycles a poll: the two free parameters of
// the fit that are costs. scale must be positive, pollCycles at least 1.
func ScaledCosts(scale float64, pollCycles int32) CostTable {
	var t CostTable
	mk := func(c int32, src string) Cost {
		return Cost{Cycles: c, Accesses: c / accessShare, Source: src}
	}
	t.Poll = mk(pollCycles, "chosen; free in the fit")
	t.Vector = mk(pollCycles, "chosen: as a poll")
	for _, h := range Handlers {
		src := "chosen; one common scale is free in the fit"
		if h == traces.RouterIn {
			t.Handler[h] = Cost{Source: "charged by the extension as it works; about 132 cycles, thesis p.108"}
			continue
		}
		c := int32(math.Round(float64(startCycles[h]) * scale))
		t.Handler[h] = mk(max(c, 1), src)
	}
	return t
}

// Validate refuses costs that no processor could run.
func (t *CostTable) Validate() error {
	check := func(name string, c Cost, lowest int32) error {
		if c.Cycles < lowest {
			return fmt.Errorf("cost of %s: %d cycles, want at least %d", name, c.Cycles, lowest)
		}
		if c.Accesses < 0 || c.Accesses > c.Cycles {
			return fmt.Errorf("cost of %s: %d loads and stores, want 0 … %d (one a cycle)", name, c.Accesses, c.Cycles)
		}
		return nil
	}
	if err := check("a poll", t.Poll, 1); err != nil {
		return err
	}
	if err := check("an event vector read", t.Vector, 1); err != nil {
		return err
	}
	for _, h := range Handlers {
		lowest := int32(1)
		if h == traces.RouterIn {
			lowest = 0
		}
		if err := check("handler "+h.String(), t.Handler[h], lowest); err != nil {
			return err
		}
	}
	return nil
}

func (c Cost) demand() lanai.Demand { return lanai.Demand{Cycles: c.Cycles, Accesses: c.Accesses} }
