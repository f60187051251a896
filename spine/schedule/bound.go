package schedule

import (
	"fmt"
	"io"
	"text/tabwriter"

	"spinesim/sim/des"
	"spinesim/spine"
	"spinesim/traces"
)

// Demand is what a packet of each ingress card asks of one resource, in
// microseconds.
type Demand struct {
	// Resource names it; Card is the card it is on, -1 for the bus.
	Resource string `json:"resource"`
	Card     int    `json:"card"`
	// WorkUS is the least that it is held; PollsUS what the polls of a static
	// cycle add on average, a poll that waits for hardware ending half a poll
	// late.
	WorkUS  float64 `json:"work_us"`
	PollsUS float64 `json:"polls_us"`
	// Note says what is counted.
	Note string `json:"note"`
}

// Total is the demand with polls, in microseconds.
func (d Demand) Total() float64 { return d.WorkUS + d.PollsUS }

// Bound is the lower bound on the gap between the packets of an ingress card:
// no dispatcher of this machine sends them faster, for some resource has no
// time left. Rows are in a fixed order.
type Bound struct {
	Rows []Demand `json:"rows"`
	// LowerUS is the greatest demand without polls, Binding its resource;
	// PolledUS and PolledBinding the same with the polls of a static cycle.
	LowerUS       float64 `json:"lower_bound_us"`
	Binding       string  `json:"binding_resource"`
	PolledUS      float64 `json:"lower_bound_polled_us"`
	PolledBinding string  `json:"binding_resource_polled"`
}

// LowerBound adds up what packets of the flows ask of every resource. All
// ingress cards are taken to receive at the same rate.
func LowerBound(m *Machine, flows []Flow) (*Bound, error) {
	if err := m.Validate(); err != nil {
		return nil, err
	}
	if err := checkFlows(m, flows); err != nil {
		return nil, err
	}
	a := &account{m: m, t: timing{m: m, poll: m.cycles(float64(m.Firmware.Costs.Poll.Cycles))}}
	// A packet is one that crosses the bus, where there are such; the others
	// come on top of it.
	share := map[uint8]float64{}
	for _, f := range crossing(flows) {
		share[f.Ingress] += f.Weight
	}
	for _, f := range flows {
		a.receives[f.Ingress] = true
	}
	a.sources = make([]int, m.Cards)
	for c := range uint8(m.Cards) {
		seen := map[uint8]bool{}
		for _, f := range flows {
			if f.Egress == c && f.crosses() && !seen[f.Ingress] {
				seen[f.Ingress] = true
				a.sources[c]++
			}
		}
	}
	for _, f := range flows {
		if err := a.flow(f, f.Weight/share[f.Ingress]); err != nil {
			return nil, err
		}
	}
	return a.bound(), nil
}

// account is what the packets of all flows ask for, per packet of an ingress
// card.
type account struct {
	m        *Machine
	t        timing
	receives [spine.MaxCards]bool
	sources  []int

	processor, receive, chain, engine, accesses, wireIn, wireOut [spine.MaxCards]use
	residence                                                    [spine.MaxCards]use
	creditOf                                                     [spine.MaxCards][spine.MaxCards]use
	bus                                                          use
}

// use is the demand on one resource.
type use struct{ work, polls float64 }

func (u *use) add(share float64, t des.Time) { u.work += share * float64(t) }
func (u *use) wait(share float64, polls float64, poll des.Time) {
	u.polls += share * polls * float64(poll)
}

func (a *account) flow(f Flow, share float64) error {
	m, t, fw := a.m, &a.t, &a.m.Firmware
	in, out := f.Ingress, f.Egress
	body, err := m.transfer(align4(f.Bytes - fw.HeaderBytes))
	if err != nil {
		return err
	}
	header, err := m.transfer(fw.HeaderBytes)
	if err != nil {
		return err
	}
	ack, err := m.transfer(fw.AckBytes)
	if err != nil {
		return err
	}
	box := func(h traces.Event) des.Time { return t.box(h, 0) }
	sum := func(hs ...traces.Event) (s des.Time) {
		for _, h := range hs {
			s += box(h)
		}
		return s
	}
	split := fw.Receive == spine.ReceiveSplit
	head := f.Bytes
	if split {
		head = min(f.Bytes, fw.HeaderBytes)
	}
	check := sum(traces.RxCheckHeader)
	checks := check + box(traces.RxCheckBody)
	route := sum(traces.EnqRouterIn, traces.RouterIn, traces.EnqIPOutput)
	starts := sum(traces.PeerToPeerStart, traces.DMAStartHandler, traces.DMAGenericStart, traces.DMAStartBody)
	chain := starts + box(traces.DMAStartHeader)
	flow := sum(traces.PeerAck, traces.FreeBuffer)
	egress := sum(traces.WireOutputStart, traces.WireOutputDone, traces.AckSend)
	both := a.receives[out] && a.sources[out] > 0
	ackPolls := 0.0
	if both {
		ackPolls = 1
	}
	wirePolls := float64((a.sources[out] + 1) / 2)
	bodyPolls := 0.0
	if split {
		bodyPolls = 1
	}

	ownWire := !f.crosses()
	if ownWire {
		a.processor[in].add(share, checks+route+sum(traces.WireOutputStart, traces.WireOutputDone, traces.FreeBuffer))
		a.processor[in].wait(share, 2+bodyPolls, t.poll)
	} else {
		a.processor[in].add(share, checks+route+chain+flow)
		a.processor[in].wait(share, 4+bodyPolls, t.poll)
		a.processor[out].add(share, egress)
		a.processor[out].wait(share, wirePolls+1+ackPolls, t.poll)
	}

	// The receive engine stands between header and body, and between packets.
	wire := m.wire(head) + m.wire(f.Bytes-head)
	switch fw.Receive {
	case spine.ReceiveSplit:
		a.receive[in].add(share, wire+checks)
		a.receive[in].wait(share, 1, t.poll) // two waits of half a poll
	case spine.ReceiveWhole:
		a.receive[in].add(share, wire+check)
		a.receive[in].wait(share, 0.5, t.poll)
	default:
		a.receive[in].add(share, wire)
	}
	a.wireIn[in].add(share, wire)
	a.wireOut[out].add(share, m.wire(f.Bytes))

	// Accesses to memory: fetches, loads and stores, and the engines' words.
	words := func(bytes int) float64 { return float64((bytes + 3) / 4) }
	access := func(h traces.Event) float64 {
		c := fw.Costs.Handler[h]
		n := float64(c.Cycles) + float64(c.Accesses)
		if h == traces.RouterIn {
			n += float64(m.Router.Cycles) + float64(m.Router.Accesses)
		}
		return n
	}
	slot := float64(m.cycles(1)) / float64(m.Card.Slots)
	boxes := func(c uint8, polls float64, hs ...traces.Event) {
		n := 0.0
		for _, h := range hs {
			n += access(h)
		}
		a.accesses[c].work += share * n * slot
		a.accesses[c].polls += share * polls * float64(fw.Costs.Poll.Cycles+fw.Costs.Poll.Accesses) * slot
	}
	moves := func(c uint8, n float64) { a.accesses[c].work += share * n * slot }
	moves(in, words(f.Bytes))
	moves(out, words(f.Bytes))
	boxes(in, 0, traces.RxCheckHeader, traces.RxCheckBody, traces.EnqRouterIn, traces.RouterIn, traces.EnqIPOutput, traces.FreeBuffer)
	if ownWire {
		boxes(in, 2+bodyPolls, traces.WireOutputStart, traces.WireOutputDone)
		a.residence[in].add(share/float64(fw.Buffers), m.wire(f.Bytes-head)+box(traces.RxCheckBody)+route+m.wire(f.Bytes)+sum(traces.WireOutputStart, traces.WireOutputDone, traces.FreeBuffer))
		a.residence[in].wait(share/float64(fw.Buffers), 1, t.poll)
		return nil
	}
	boxes(in, 4+bodyPolls, traces.PeerToPeerStart, traces.DMAStartHandler, traces.DMAGenericStart, traces.DMAStartBody, traces.DMAStartHeader, traces.PeerAck)
	boxes(out, wirePolls+1+ackPolls, traces.WireOutputStart, traces.WireOutputDone, traces.AckSend)
	moved := words(max(0, f.Bytes-fw.HeaderBytes)) + words(fw.HeaderBytes) + words(fw.AckBytes)
	moves(in, moved)
	moves(out, moved)

	waits := 0.5 // for the next packet's start
	if body.took > 0 {
		waits += 0.5
	} else {
		waits++
	}
	a.chain[in].add(share, chain+body.took+header.took)
	a.chain[in].wait(share, waits, t.poll)
	a.chain[out].add(share, box(traces.AckSend)+ack.took)
	a.chain[out].wait(share, ackPolls/2, t.poll)
	a.engine[in].add(share, body.took+header.took)
	a.engine[out].add(share, ack.took)
	a.bus.add(share, body.held+header.held+ack.held)

	// A buffer is taken until the ACK has come back, a credit as well.
	back := m.wire(f.Bytes) + egress + ack.took
	a.residence[in].add(share/float64(fw.Buffers), m.wire(f.Bytes-head)+box(traces.RxCheckBody)+route+chain+body.took+header.took+back+flow)
	a.residence[in].wait(share/float64(fw.Buffers), 3.5, t.poll)
	round := chain + body.took + header.took + back + box(traces.PeerAck)
	c := &a.creditOf[in][out]
	c.add(share/float64(fw.Credits), round)
	c.wait(share/float64(fw.Credits), 3, t.poll)
	return nil
}

func (a *account) bound() *Bound {
	b := &Bound{}
	us := func(t float64) float64 { return t / float64(des.Microsecond) }
	row := func(name string, card int, u use, note string) {
		if u.work == 0 {
			return
		}
		if card >= 0 {
			name = fmt.Sprintf("%s card %d", name, card)
		}
		d := Demand{Resource: name, Card: card, WorkUS: us(u.work), PollsUS: us(u.polls), Note: note}
		b.Rows = append(b.Rows, d)
		if d.WorkUS > b.LowerUS {
			b.LowerUS, b.Binding = d.WorkUS, name
		}
		if d.Total() > b.PolledUS {
			b.PolledUS, b.PolledBinding = d.Total(), name
		}
	}
	for c := range a.m.Cards {
		row("processor of", c, a.processor[c], "handlers")
	}
	for c := range a.m.Cards {
		row("DMA engine of", c, a.chain[c], "reserved, from a start to the end of its last transfer")
		row("DMA transfers of", c, a.engine[c], "moving data only")
	}
	row("bus", -1, a.bus, "held, with address and idle clocks")
	for c := range a.m.Cards {
		row("memory bus of", c, a.accesses[c], fmt.Sprintf("accesses at %d a cycle", a.m.Card.Slots))
	}
	for c := range a.m.Cards {
		row("wire into", c, a.wireIn[c], "bytes at the link's rate")
		row("wire out of", c, a.wireOut[c], "bytes at the link's rate")
		row("receive engine of", c, a.receive[c], "armed anew by the checks")
	}
	for c := range a.m.Cards {
		row("buffers of", c, a.residence[c], fmt.Sprintf("a packet's way until its buffer is free, over %d buffers", a.m.Firmware.Buffers))
		for d := range a.m.Cards {
			if u := a.creditOf[c][d]; u.work > 0 {
				row(fmt.Sprintf("credits for card %d of", d), c, u, fmt.Sprintf("start to ACK, over %d credits", a.m.Firmware.Credits))
			}
		}
	}
	return b
}

// WriteText prints the bound as a table.
func (b *Bound) WriteText(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "resource\twork µs\tpolls µs\ttotal µs\twhat is counted")
	for _, d := range b.Rows {
		mark := ""
		if d.Resource == b.Binding {
			mark = "  ← binds"
		}
		fmt.Fprintf(t, "%s\t%8.2f\t%8.2f\t%8.2f\t%s%s\n", d.Resource, d.WorkUS, d.PollsUS, d.Total(), d.Note, mark)
	}
	return t.Flush()
}
