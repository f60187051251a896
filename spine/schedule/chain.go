package schedule

import (
	"cmp"
	"fmt"
	"slices"

	"spinesim/sim/des"
	"spinesim/spine"
	"spinesim/traces"
)

// packetSpec is a packet of a cycle.
type packetSpec struct {
	ingress, egress uint8
	bytes           int
	number          int // among those of its ingress card
}

// cyclePackets picks the packets of a cycle: k for each ingress card, from its
// flows by their weights, each time the flow that is furthest behind. With k 1
// the packet has the flows' mean length.
func cyclePackets(flows []Flow, k int) []packetSpec {
	var out []packetSpec
	sent := make([]float64, len(flows))
	toEgress := map[uint8]int{}
	cards := ingressCards(flows)
	for n := range k {
		for _, c := range cards {
			best := -1
			var all, mean float64
			behind := func(i int) float64 { return sent[i] / flows[i].Weight }
			for i, f := range flows {
				if f.Ingress != c {
					continue
				}
				all += f.Weight
				mean += f.Weight * float64(f.Bytes)
				if best < 0 {
					best = i
					continue
				}
				g := flows[best]
				// Ties spread the packets over the egress cards.
				order := cmp.Or(
					cmp.Compare((sent[i]+1)/f.Weight, (sent[best]+1)/g.Weight),
					cmp.Compare(toEgress[f.Egress], toEgress[g.Egress]),
					cmp.Compare(behind(i), behind(best)))
				if order < 0 {
					best = i
				}
			}
			f := flows[best]
			sent[best]++
			toEgress[f.Egress]++
			bytes := f.Bytes
			if k == 1 {
				bytes = int(mean/all + 0.5)
			}
			out = append(out, packetSpec{c, f.Egress, bytes, n})
		}
	}
	return out
}

// ingressCards are the cards that receive, in order.
func ingressCards(flows []Flow) []uint8 {
	var out []uint8
	for _, f := range flows {
		if !slices.Contains(out, f.Ingress) {
			out = append(out, f.Ingress)
		}
	}
	slices.Sort(out)
	return out
}

// egressCards are the cards that send, in order.
func egressCards(flows []Flow) []uint8 {
	var out []uint8
	for _, f := range flows {
		if !slices.Contains(out, f.Egress) {
			out = append(out, f.Egress)
		}
	}
	slices.Sort(out)
	return out
}

// MaxPackets is the most packets of each ingress card in a cycle.
const MaxPackets = 16

// timing is what a packet's way takes on a machine.
type timing struct {
	m    *Machine
	poll des.Time // 0: without polls
}

// box is a handler's run with so many polls before it.
func (t *timing) box(h traces.Event, polls int) des.Time {
	c := float64(t.m.Firmware.Costs.Handler[h].Cycles)
	if h == traces.RouterIn {
		c = max(c+float64(t.m.Router.Cycles), 1)
	}
	return t.m.cycles(c) + des.Time(polls)*t.poll
}

// Build makes the problem of a cycle of k packets for each ingress card: their
// chains of handlers and transfers, with what holds between them. polls counts
// the polls that a static cycle must make; without them the problem is that of
// a dispatcher that knows everything.
//
// A poll's outcome is the queue's state at its end, so a handler that waits for
// hardware begins half a poll late on average: that is what the model charges.
func Build(m *Machine, flows []Flow, k int, polls bool) (*Problem, error) {
	return build(m, flows, k, polls, false)
}

// build makes the problem; ownBus gives every card a bus of its own.
func build(m *Machine, flows []Flow, k int, polls, ownBus bool) (*Problem, error) {
	if err := m.Validate(); err != nil {
		return nil, err
	}
	if err := checkFlows(m, flows); err != nil {
		return nil, err
	}
	if k < 1 || k > MaxPackets {
		return nil, fmt.Errorf("a cycle of %d packets, want 1 … %d", k, MaxPackets)
	}
	b := &builder{timing: timing{m: m}, p: &Problem{Packets: k}, cards: m.Cards, ownBus: ownBus}
	if polls {
		b.poll = m.cycles(float64(m.Firmware.Costs.Poll.Cycles))
	}
	b.half = b.poll / 2
	for _, f := range flows {
		b.receives[f.Ingress] = true
		if f.crosses() && !slices.Contains(b.sources[f.Egress], f.Ingress) {
			b.sources[f.Egress] = append(b.sources[f.Egress], f.Ingress)
		}
	}
	for _, s := range cyclePackets(crossing(flows), k) {
		if err := b.packet(s); err != nil {
			return nil, err
		}
	}
	b.between()
	if err := b.p.Validate(); err != nil {
		return nil, err
	}
	return b.p, nil
}

// hardware names the ops that no processor runs.
type hardware uint8

const (
	rxHeader hardware = iota // the header comes in; the whole packet where it is not split
	rxBody
	moveBody
	moveHeader
	send
	moveAck
	numHardware
)

// built is a packet's ops by what they do; -1 where it has none.
type built struct {
	packetSpec
	run  [traces.NumEvents]int
	hard [numHardware]int
}

type builder struct {
	timing
	p         *Problem
	half      des.Time
	cards     int
	ownBus    bool
	receives  [spine.MaxCards]bool
	sources   [spine.MaxCards][]uint8
	packets   []built
	resources map[string]int
}

func (b *builder) resource(format string, args ...any) int {
	name := fmt.Sprintf(format, args...)
	if b.resources == nil {
		b.resources = map[string]int{}
	}
	if r, ok := b.resources[name]; ok {
		return r
	}
	r := len(b.p.Resources)
	b.p.Resources = append(b.p.Resources, name)
	b.resources[name] = r
	return r
}

func (b *builder) add(x *built, name string, o Op) int {
	o.Name = name
	if b.p.Packets > 1 {
		o.Name = fmt.Sprintf("%s %d", name, x.number+1)
	}
	o.Packet = x.number
	b.p.Ops = append(b.p.Ops, o)
	return len(b.p.Ops) - 1
}

func (b *builder) handler(x *built, card uint8, h traces.Event, polls int) {
	x.run[h] = b.add(x, h.String(), Op{
		Resource: b.resource("processor of card %d", card), Time: b.box(h, polls), Handler: h, Card: card,
	})
}

func (b *builder) device(x *built, card uint8, k hardware, name, resource string, t, lead des.Time) {
	x.hard[k] = b.add(x, name, Op{Resource: b.resource("%s", resource), Time: t, Lead: lead, Handler: traces.NoEvent, Card: card})
}

func (b *builder) edge(from, to int, after des.Time, height int) {
	b.p.Edges = append(b.p.Edges, Edge{From: from, To: to, After: after, Height: height})
}

// bus names the bus that a card's engine moves data over.
func (b *builder) bus(card uint8) string {
	if b.ownBus {
		return fmt.Sprintf("bus of card %d", card)
	}
	return "bus"
}

// both tells whether a card receives and sends, so that its DMA engine carries
// packets one way and ACKs the other.
func (b *builder) both(card uint8) bool { return b.receives[card] && len(b.sources[card]) > 0 }

// wirePolls is how many polls find the next packet to send on a card, when it
// may come from several.
func (b *builder) wirePolls(egress uint8) int { return (len(b.sources[egress]) + 1) / 2 }

// packet adds a packet's own way.
func (b *builder) packet(s packetSpec) error {
	m, fw := b.m, &b.m.Firmware
	x := built{packetSpec: s}
	for i := range x.run {
		x.run[i] = -1
	}
	for i := range x.hard {
		x.hard[i] = -1
	}
	in, out := s.ingress, s.egress
	wireIn, wireOut := fmt.Sprintf("wire into card %d", in), fmt.Sprintf("wire out of card %d", out)
	split := fw.Receive == spine.ReceiveSplit

	// Receive.
	head := s.bytes
	if split {
		head = min(s.bytes, fw.HeaderBytes)
	}
	b.device(&x, in, rxHeader, traces.ReceiveHeader.String(), wireIn, m.wire(head), 0)
	b.handler(&x, in, traces.RxCheckHeader, 1)
	b.edge(x.hard[rxHeader], x.run[traces.RxCheckHeader], -b.half, 0)
	bodyPolls := 0
	if split {
		bodyPolls = 1
	}
	if s.bytes > head {
		b.device(&x, in, rxBody, traces.ReceiveBody.String(), wireIn, m.wire(s.bytes-head), 0)
		b.edge(x.run[traces.RxCheckHeader], x.hard[rxBody], 0, 0)
	}
	b.handler(&x, in, traces.RxCheckBody, bodyPolls)
	if x.hard[rxBody] >= 0 {
		b.edge(x.hard[rxBody], x.run[traces.RxCheckBody], -b.half, 0)
	} else {
		b.edge(x.run[traces.RxCheckHeader], x.run[traces.RxCheckBody], 0, 0)
	}

	// Route.
	last := traces.RxCheckBody
	follow := func(h traces.Event, polls int) {
		b.handler(&x, in, h, polls)
		b.edge(x.run[last], x.run[h], 0, 0)
		last = h
	}
	follow(traces.EnqRouterIn, 0)
	follow(traces.RouterIn, 0)
	follow(traces.EnqIPOutput, 0)

	if in == out {
		// Out on the wire that it came from: no bus, no flow control.
		follow(traces.WireOutputStart, 0)
		b.device(&x, out, send, traces.SendPacket.String(), wireOut, m.wire(s.bytes), 0)
		b.edge(x.run[last], x.hard[send], 0, 0)
		b.handler(&x, out, traces.WireOutputDone, 1)
		b.edge(x.hard[send], x.run[traces.WireOutputDone], -b.half, 0)
		b.handler(&x, in, traces.FreeBuffer, 0)
		b.edge(x.run[traces.WireOutputDone], x.run[traces.FreeBuffer], 0, 0)
		b.p.Spans = append(b.p.Spans, Span{x.run[traces.RxCheckHeader], x.hard[send]})
		b.packets = append(b.packets, x)
		return nil
	}

	// DMA.
	follow(traces.PeerToPeerStart, 1)
	follow(traces.DMAStartHandler, 0)
	follow(traces.DMAGenericStart, 0)
	follow(traces.DMAStartBody, 0)
	body, err := m.transfer(align4(s.bytes - fw.HeaderBytes))
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
	b.handler(&x, in, traces.DMAStartHeader, 1)
	if body.took > 0 {
		b.device(&x, in, moveBody, traces.TransferBody.String(), b.bus(in), body.took, body.lead())
		b.edge(x.run[last], x.hard[moveBody], 0, 0)
		b.edge(x.hard[moveBody], x.run[traces.DMAStartHeader], -b.half, 0)
	} else {
		b.edge(x.run[last], x.run[traces.DMAStartHeader], 0, 0)
	}
	b.device(&x, in, moveHeader, traces.TransferHeader.String(), b.bus(in), header.took, header.lead())
	b.edge(x.run[traces.DMAStartHeader], x.hard[moveHeader], 0, 0)
	b.claim(in, x.run[traces.PeerToPeerStart], x.hard[moveHeader], b.half, 0)

	// The egress card, and back.
	b.handler(&x, out, traces.WireOutputStart, b.wirePolls(out))
	b.edge(x.hard[moveHeader], x.run[traces.WireOutputStart], -b.half, 0)
	b.device(&x, out, send, traces.SendPacket.String(), wireOut, m.wire(s.bytes), 0)
	b.edge(x.run[traces.WireOutputStart], x.hard[send], 0, 0)
	b.handler(&x, out, traces.WireOutputDone, 1)
	b.edge(x.hard[send], x.run[traces.WireOutputDone], -b.half, 0)
	ackPolls, ackLead := 0, des.Time(0)
	if b.both(out) {
		ackPolls, ackLead = 1, b.half
	}
	b.handler(&x, out, traces.AckSend, ackPolls)
	b.edge(x.run[traces.WireOutputDone], x.run[traces.AckSend], 0, 0)
	b.device(&x, out, moveAck, traces.TransferAck.String(), b.bus(out), ack.took, ack.lead())
	b.edge(x.run[traces.AckSend], x.hard[moveAck], 0, 0)
	b.claim(out, x.run[traces.AckSend], x.hard[moveAck], ackLead, 1)
	b.handler(&x, in, traces.PeerAck, 1)
	b.edge(x.hard[moveAck], x.run[traces.PeerAck], -b.half, 0)
	b.handler(&x, in, traces.FreeBuffer, 0)
	b.edge(x.run[traces.PeerAck], x.run[traces.FreeBuffer], 0, 0)

	b.p.Spans = append(b.p.Spans, Span{x.run[traces.RxCheckHeader], x.hard[moveHeader]})
	b.packets = append(b.packets, x)
	return nil
}

// claim reserves a card's DMA engine: group 0 for packets, 1 for ACKs.
func (b *builder) claim(card uint8, first, last int, lead des.Time, group int) {
	b.p.Claims = append(b.p.Claims, Claim{
		Resource: b.resource("DMA engine of card %d", card), First: first, Last: last, Lead: lead, Group: group,
	})
}

func align4(n int) int { return (max(n, 0) + 3) &^ 3 }

// lead is how long a transfer takes until it has the bus.
func (t transferTime) lead() des.Time { return max(0, t.took-t.held) }

// between adds what holds between the packets of a cycle and of the next ones.
func (b *builder) between() {
	fw := &b.m.Firmware
	card := func(x *built) int { return int(x.ingress) }
	egress := func(x *built) int { return int(x.egress) }
	route := func(x *built) int { return int(x.ingress)*spine.MaxCards + int(x.egress) }

	// after so many packets of the same group, to may begin when from has ended.
	after := func(group func(*built) int, packets int, from, to func(*built) int, d des.Time) {
		for i := range b.packets {
			x := &b.packets[i]
			f := from(x)
			if f < 0 {
				continue
			}
			y, height := b.nth(i, group, packets)
			if t := to(y); t >= 0 && !(f == t && height == 1 && d <= 0) {
				b.edge(f, t, d, height)
			}
		}
	}
	run := func(h traces.Event) func(*built) int { return func(x *built) int { return x.run[h] } }
	hard := func(k hardware) func(*built) int { return func(x *built) int { return x.hard[k] } }
	firstIn := func(x *built) int {
		if x.hard[rxBody] >= 0 {
			return x.hard[rxBody]
		}
		return x.run[traces.RxCheckBody]
	}

	// The receive engine is armed anew, and buffers are taken in turn.
	switch fw.Receive {
	case spine.ReceiveSplit:
		after(card, 1, run(traces.RxCheckBody), hard(rxHeader), 0)
		after(card, fw.Buffers, run(traces.FreeBuffer), firstIn, 0)
	case spine.ReceiveWhole:
		after(card, 1, run(traces.RxCheckHeader), hard(rxHeader), 0)
		after(card, fw.Buffers, run(traces.FreeBuffer), hard(rxHeader), 0)
	default:
		after(card, 1, hard(rxHeader), hard(rxHeader), 0)
		after(card, fw.Buffers, run(traces.FreeBuffer), hard(rxHeader), 0)
	}
	// Queues are first in, first out.
	for _, h := range spine.Handlers {
		switch h {
		case traces.WireOutputStart, traces.WireOutputDone, traces.AckSend:
			after(egress, 1, run(h), run(h), 0)
		case traces.ToHost, traces.FromHost:
		default:
			after(card, 1, run(h), run(h), 0)
		}
	}
	// One packet at a time for the engine, the send engine and its ACK.
	after(card, 1, hard(moveHeader), run(traces.PeerToPeerStart), -b.half)
	after(egress, 1, hard(send), run(traces.WireOutputStart), -b.half)
	after(egress, 1, hard(moveAck), run(traces.AckSend), 0)
	// Credits.
	after(route, fw.Credits, run(traces.PeerAck), run(traces.PeerToPeerStart), 0)
}

// nth is the packet n packets after packet i in its group, and how many cycles
// later it is.
func (b *builder) nth(i int, group func(*built) int, n int) (*built, int) {
	g := group(&b.packets[i])
	var same []int
	at := 0
	for j := range b.packets {
		if group(&b.packets[j]) == g {
			if j == i {
				at = len(same)
			}
			same = append(same, j)
		}
	}
	k := at + n
	return &b.packets[same[k%len(same)]], k / len(same)
}
