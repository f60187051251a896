package schedule

import (
	"context"
	"errors"
	"fmt"

	"spinesim/lanai"
	"spinesim/pci"
	"spinesim/sim/des"
	"spinesim/spine"
)

// Machine is the hardware and firmware that a schedule is made for: the same
// on every card.
type Machine struct {
	Cards    int
	Card     lanai.Spec
	Bus      pci.Spec
	Firmware spine.Spec
	// Router is the run of the router handler for a packet that is forwarded:
	// the mean of what the extensions charge, in cycles and with the cost
	// table's factor on it, beside the table's entry.
	Router spine.Cost
}

// Validate tells what is wrong with the machine.
func (m *Machine) Validate() error {
	if m.Cards < 1 || m.Cards > spine.MaxCards {
		return fmt.Errorf("%d cards, want 1 … %d", m.Cards, spine.MaxCards)
	}
	if err := m.Card.Validate(); err != nil {
		return fmt.Errorf("card: %w", err)
	}
	if err := m.Bus.Validate(); err != nil {
		return fmt.Errorf("bus: %w", err)
	}
	if err := m.Firmware.Validate(); err != nil {
		return fmt.Errorf("firmware: %w", err)
	}
	if m.Router.Cycles < 0 || m.Router.Accesses < 0 {
		return fmt.Errorf("router handler of %d cycles with %d accesses, want 0 or more", m.Router.Cycles, m.Router.Accesses)
	}
	return nil
}

// Flow is traffic of one size that one card receives and another, or itself,
// sends.
type Flow struct {
	Ingress, Egress uint8
	Bytes           int
	// Weight is the flow's share of the packets of its ingress card, in any
	// unit; positive.
	Weight float64
}

// checkFlows refuses flows that the machine cannot carry.
func checkFlows(m *Machine, flows []Flow) error {
	if len(flows) == 0 {
		return errors.New("no flow of packets to schedule")
	}
	for i, f := range flows {
		switch {
		case int(f.Ingress) >= m.Cards || int(f.Egress) >= m.Cards:
			return fmt.Errorf("flow %d: from card %d to card %d, want 0 … %d", i+1, f.Ingress, f.Egress, m.Cards-1)
		case f.Bytes < 1 || f.Bytes > m.Firmware.MaxPacket:
			return fmt.Errorf("flow %d: packets of %d bytes, want 1 … %d", i+1, f.Bytes, m.Firmware.MaxPacket)
		case !(f.Weight > 0) || f.Weight > 1e12:
			return fmt.Errorf("flow %d: weight %v, want a positive number", i+1, f.Weight)
		}
	}
	return nil
}

// crosses tells whether the flow's packets go over the bus.
func (f Flow) crosses() bool { return f.Ingress != f.Egress }

// crossing is the flows that cycles are made for: those over the bus, and of
// cards that have none the others. Packets that leave by the wire they came
// from are in no cycle beside others, but steps for them are.
func crossing(flows []Flow) []Flow {
	var over [spine.MaxCards]bool
	for _, f := range flows {
		over[f.Ingress] = over[f.Ingress] || f.crosses()
	}
	var out []Flow
	for _, f := range flows {
		if f.crosses() || !over[f.Ingress] {
			out = append(out, f)
		}
	}
	return out
}

// cycles is n cycles of a card.
func (m *Machine) cycles(n float64) des.Time {
	return des.Time(n*float64(des.Second)/m.Card.Clock.Hz() + 0.5)
}

// wire is how long the link takes for so many bytes.
func (m *Machine) wire(bytes int) des.Time {
	words := (max(bytes, 0) + 3) / 4
	return des.Time(float64(4*words)*float64(des.Second)*float64(m.Card.Link.Den)/float64(m.Card.Link.Num) + 0.5)
}

// transferTime is one transfer on an idle bus: from the request to the end of
// the last data phase, and how long it holds the bus.
type transferTime struct{ took, held des.Time }

// transfer asks the bus model itself: a transfer of so many bytes into a
// card's window, requested half a clock before an edge, as on average.
func (m *Machine) transfer(bytes int) (transferTime, error) {
	if bytes <= 0 {
		return transferTime{}, nil
	}
	e := des.New(des.Options{})
	bus, err := pci.New(m.Bus, e, nil)
	if err != nil {
		return transferTime{}, err
	}
	p := &probe{}
	master, err := bus.AttachMaster("engine", 0, p)
	if err != nil {
		return transferTime{}, err
	}
	if err := bus.AttachTarget("window", 1, m.Card.WindowBase, m.Card.WindowBytes, m.Card.Target, p); err != nil {
		return transferTime{}, err
	}
	t := &pci.Transfer{Cmd: pci.MemWrite, Addr: m.Card.WindowBase + m.Card.SRAMAt, Bytes: bytes}
	if err := master.Start(t); err != nil {
		return transferTime{}, err
	}
	// Longer than any card's memory takes.
	if err := e.RunUntil(context.Background(), 10*des.Second); err != nil {
		return transferTime{}, err
	}
	if !p.done || t.Status != pci.StatusOK {
		return transferTime{}, fmt.Errorf("transfer of %d bytes into a card's window: %v", bytes, t.Status)
	}
	clock := float64(des.Second) / m.Bus.Clock.Hz()
	// The processor sees the end with its next cycle.
	half := des.Time(clock/2) + m.cycles(0.5)
	return transferTime{took: t.End - t.Requested + half, held: des.Time(float64(t.Held)*clock + 0.5)}, nil
}

// probe is both ends of a transfer that is only timed.
type probe struct{ done bool }

func (p *probe) TransferDone(des.Time, *pci.Transfer) error { p.done = true; return nil }
func (p *probe) BusStream(des.Time, bool, int32, int32)     {}
func (p *probe) BusWrite(uint32, []byte)                    {}
func (p *probe) BusRead(uint32, []byte)                     {}
