package spine

import (
	"encoding/json"
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
	// Charged is the factor on what extensions charge for the router handler's
	// run, 0.01 to 100.
	Charged float64
}

// Factors multiply the start table's costs, group by group; 1 leaves a group
// as it is. How heavy receiving is beside moving a packet over the bus is not
// published, so there is one for each part of a packet's way. Each lies from
// 0.01 to 100.
type Factors struct {
	Receive float64 `yaml:"receive" doc:"Factor on Rx check header, Rx check body, EnQ router in and EnQ IP output." min:"0.01" max:"100"`
	Route   float64 `yaml:"route" doc:"Factor on what extensions charge for the Router In handler's run (about 132 cycles in all, thesis p.108); firmware.watchdog bounds the product." min:"0.01" max:"100"`
	DMA     float64 `yaml:"dma" doc:"Factor on Peer to peer start, DMA start handler, DMA generic start, DMA start body and DMA start header." min:"0.01" max:"100"`
	Flow    float64 `yaml:"flow" doc:"Factor on Free buffer, Peer ACK and ACK send." min:"0.01" max:"100"`
	Send    float64 `yaml:"send" doc:"Factor on Wire output start, Wire output done, To host and From host." min:"0.01" max:"100"`
}

// MarshalJSON writes one number where only one was chosen for all but the
// router handler, so that the names of such scenarios stay what they were.
func (f Factors) MarshalJSON() ([]byte, error) {
	if f == SameFactors(f.Receive) {
		return json.Marshal(f.Receive)
	}
	type all Factors
	return json.Marshal(all(f))
}

// NoFactors leave the start table as it is.
func NoFactors() Factors { return Factors{1, 1, 1, 1, 1} }

// SameFactors are f for every group but the router handler, whose run is
// published.
func SameFactors(f float64) Factors { return Factors{f, 1, f, f, f} }

// Of is the factor on a handler's cost.
func (f Factors) Of(h traces.Event) float64 {
	switch h {
	case traces.RxCheckHeader, traces.RxCheckBody, traces.EnqRouterIn, traces.EnqIPOutput:
		return f.Receive
	case traces.RouterIn:
		return f.Route
	case traces.PeerToPeerStart, traces.DMAStartHandler, traces.DMAGenericStart, traces.DMAStartBody, traces.DMAStartHeader:
		return f.DMA
	case traces.FreeBuffer, traces.PeerAck, traces.AckSend:
		return f.Flow
	default:
		return f.Send
	}
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
func StartCosts() CostTable { return FactoredCosts(NoFactors(), 12) }

// FactoredCosts is the start table with every group of handlers multiplied by
// its factor, to a whole cycle and one at least, and the given cycles a poll, at
// least 1.
func FactoredCosts(f Factors, pollCycles int32) CostTable {
	t := CostTable{Charged: f.Route}
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
		c := int32(math.Round(float64(startCycles[h]) * f.Of(h)))
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
	if !(t.Charged >= 0.01 && t.Charged <= 100) {
		return fmt.Errorf("factor on the router handler's charged cost: %g, want 0.01 … 100", t.Charged)
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

// Charge is what a charge of n cycles or accesses comes to.
func (t *CostTable) Charge(n int) int {
	if t.Charged == 1 {
		return n
	}
	return int(math.Round(t.Charged * float64(n)))
}

func (c Cost) demand() lanai.Demand { return lanai.Demand{Cycles: c.Cycles, Accesses: c.Accesses} }
