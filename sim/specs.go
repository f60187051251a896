package sim

import (
	"fmt"

	"spinesim/lanai"
	"spinesim/pci"
	"spinesim/router"
	"spinesim/sim/des"
	"spinesim/spine"
	"spinesim/traces"
)

// busSpec is the bus as package pci knows it.
func (s *Scenario) busSpec() pci.Spec {
	b := pci.DefaultSpec()
	b.Clock = s.Bus.Clock
	b.Width = s.Bus.Width
	b.LatencyTimer = s.Bus.LatencyTimer
	b.BurstBytes = int(s.Bus.Burst)
	return b
}

// cardSpec is card i as package lanai knows it.
func (s *Scenario) cardSpec(i int) (lanai.Spec, error) {
	var c lanai.Spec
	switch s.Card.Preset {
	case "lanai4":
		c = lanai.Lanai4()
	case "lanai9":
		c = lanai.Lanai9()
	default:
		return c, fmt.Errorf("preset %q, want lanai4 or lanai9", s.Card.Preset)
	}
	if s.Card.Clock != nil {
		c.Clock = *s.Card.Clock
	}
	if s.Card.SRAM != nil {
		if *s.Card.SRAM < 0 || *s.Card.SRAM > 1<<30 {
			return c, fmt.Errorf("sram %v, want at most 1 GiB", *s.Card.SRAM)
		}
		c.SRAMBytes = uint32(*s.Card.SRAM)
		// A card with more memory than its board's window has a larger one.
		for uint64(c.SRAMAt)+uint64(c.SRAMBytes) > uint64(c.WindowBytes) {
			c.WindowBytes *= 2
		}
		if uint64(c.WindowBytes)*uint64(s.Cards) > 1<<32-uint64(c.WindowBase) {
			c.WindowBase = 0x8000_0000
		}
	}
	if s.Card.Wire != nil {
		c.Link = *s.Card.Wire
	}
	if s.Card.NoBuffer == "discard" {
		c.NoBuffer = lanai.Discard
	}
	if i < len(s.Card.Deviation) {
		f, err := c.Clock.Offset(s.Card.Deviation[i])
		if err != nil {
			return c, err
		}
		c.Clock = f
	}
	c.Target.DataWait = s.Bus.PeerWait
	// The first data phase cannot come before the target has decoded its
	// address.
	c.Target.WriteWait = max(c.Target.WriteWait, c.Target.Devsel-s.Bus.PeerWait)
	c.Bus = s.busSpec()
	return c, nil
}

// firmware is the run-time as package spine knows it.
func (s *Scenario) firmware() (spine.Spec, error) {
	f := &s.Firmware
	fw := spine.DefaultSpec()
	fw.Receive = spine.ReceiveMode(f.Receive)
	fw.Chain = spine.DMAChain(f.DMAChain)
	fw.Buffers, fw.Credits = f.Buffers, f.Credits
	fw.HeaderBytes, fw.MaxPacket = int(f.HeaderBytes), int(f.MaxPacket)
	fw.Batch, fw.BatchWait = f.Batch, f.BatchWait
	fw.Watchdog = int(f.Watchdog)
	fw.HostReturn = s.Host.Return != "none"
	fw.HostCredits, fw.HostService = s.Host.Credits, s.Host.Service
	var err error
	fw.Costs, err = f.costTable()
	return fw, err
}

// applyCosts replaces the costs that a scenario gives one by one.
func applyCosts(t *spine.CostTable, costs map[string]CostSpec) error {
	for name, c := range costs {
		e, ok := traces.EventByName(name)
		if !ok {
			return fmt.Errorf("%q is not a handler", name)
		}
		t.Handler[e] = spine.Cost{Cycles: int32(c.Cycles), Accesses: int32(c.Accesses), Source: c.Source}
	}
	return nil
}

// phase is the offset of card i's clock.
func (s *Scenario) phase(i int, clock des.Frequency) des.Time {
	if s.Card.Phases != "seeded" || clock.Num == 0 {
		return 0
	}
	period := des.Time(uint64(des.Second) / max(1, clock.Num/clock.Den))
	if period <= 1 {
		return 0
	}
	return des.NewStream(s.Seed, fmt.Sprintf("card/%d/phase", i)).Uniform(0, period-1)
}

// chainTime is how long the handlers of one uninterrupted DMA chain take: the
// longest that the engine is idle with a packet waiting in the fast state.
func (s *Scenario) chainTime(fw *spine.Spec, clock des.Frequency) (des.Time, error) {
	costs := fw.Costs
	if s.executes() {
		var err error
		if costs, err = executedCosts(); err != nil {
			return 0, err
		}
	}
	var cycles int64
	for _, h := range []traces.Event{traces.PeerToPeerStart, traces.DMAStartHandler, traces.DMAGenericStart, traces.DMAStartBody, traces.DMAStartHeader} {
		cycles += int64(costs.Handler[h].Cycles)
	}
	if clock.Num == 0 {
		return 0, nil
	}
	return des.Time(float64(cycles) * float64(des.Second) / clock.Hz()), nil
}

// ipv4 is IPv4 forwarding as package router knows it.
func (s *Scenario) ipv4() router.IPv4Spec {
	spec := router.DefaultIPv4()
	if s.Firmware.RouterCost == "table" {
		spec.Costs = router.Costs{}
	}
	return spec
}
