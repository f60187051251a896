package firmware

import (
	"fmt"

	"spinesim/lanai"
	"spinesim/lanai/isa"
	"spinesim/traces"
)

// Cost is what a poll or handler took on a processor that has the memory bus to
// itself, over some runs.
type Cost struct {
	Runs       int
	Cycles     int64 // of all runs
	Accesses   int64 // loads and stores of all runs
	Interlocks int64 // cycles waited for loads and the load/store unit, among Cycles
	Min, Max   int64 // cycles of a run
}

func (c *Cost) add(n isa.Counters) {
	cycles := n.Cycles()
	if c.Runs == 0 || cycles < c.Min {
		c.Min = cycles
	}
	c.Max = max(c.Max, cycles)
	c.Runs++
	c.Cycles += cycles
	c.Accesses += n.Accesses
	c.Interlocks += n.Interlocks
}

// Mean is the mean of cycles and accesses a run, rounded to the nearest whole
// number, as a cost table has them. Both are 0 when nothing ran.
func (c Cost) Mean() (cycles, accesses int32) {
	if c.Runs == 0 {
		return 0, 0
	}
	n := int64(c.Runs)
	return int32((c.Cycles + n/2) / n), int32((c.Accesses + n/2) / n)
}

// Costs are the executed costs of the firmware.
type Costs struct {
	// Miss and Hit are polls, by queue: those that found nothing, and those
	// that found a message.
	Miss, Hit [traces.PollQ6 + 1]Cost
	// Scan is what the dispatcher in C takes for a scan of all queues that
	// finds nothing: the polls, and the calls of them.
	Scan Cost
	// Handler is indexed by event; only those with a Symbol have entries.
	Handler [traces.NumEvents]Cost
}

// Packet is a representative input: an IPv4 header without options.
type Packet struct {
	Header []byte // at least 20 bytes
	Bytes  int    // of the packet, 64 to 1500
}

// HandlerCosts takes packets through the whole way: received, routed, moved to
// the peer, acknowledged; and each once more as the peer's, out on the wire. The
// polls on the way, a scan of all queues before each packet among them, and the
// handlers are executed, and their cycles counted.
func HandlerCosts(in Inputs, packets []Packet) (*Costs, error) {
	b, err := NewBench(in)
	if err != nil {
		return nil, err
	}
	return b.HandlerCosts(packets)
}

// HandlerCosts is as the function of that name, on a bench that may have been
// given a profile.
func (b *Bench) HandlerCosts(packets []Packet) (*Costs, error) {
	var c Costs
	for i, p := range packets {
		if len(p.Header) < 20 || p.Bytes < 64 || p.Bytes > 1500 {
			return nil, fmt.Errorf("firmware: packet %d: header of %d bytes, packet of %d: want 20 and 64 to 1500", i, len(p.Header), p.Bytes)
		}
		if err := b.carry(&c, p); err != nil {
			return nil, fmt.Errorf("firmware: packet %d: %w", i, err)
		}
	}
	if err := b.scan(&c); err != nil {
		return nil, err
	}
	return &c, nil
}

// scanCycles is how long the idle dispatcher is watched.
const scanCycles = 20_000

// scan lets the dispatcher run with nothing to do.
func (b *Bench) scan(c *Costs) error {
	entry, err := b.Image.Symbol("spine_dispatch")
	if err != nil {
		return err
	}
	cpu := b.CPU
	kept := cpu.Profile
	defer func() { cpu.Profile = kept }()
	first := b.word(b.polls)
	cpu.Profile = isa.NewProfile(first, 4)
	before, start := cpu.Counters(), cpu.Cycle()
	if err := cpu.Call(start, entry, b.sp); err != nil {
		return err
	}
	cpu.SetWatchdog(isa.NoWatchdog)
	// The status register is read at its time, which is now for a bench.
	for cpu.Cycle() < start+scanCycles {
		if _, err := cpu.Run(cpu.Cycle(), start+scanCycles); err != nil {
			return fmt.Errorf("firmware: spine_dispatch: %w", err)
		}
	}
	n := cpu.Counters().Sub(before)
	c.Scan = Cost{Runs: int(cpu.Profile.At(first).Count), Cycles: n.Cycles(), Accesses: n.Accesses, Interlocks: n.Interlocks}
	if c.Scan.Runs > 0 {
		c.Scan.Min = n.Cycles() / int64(c.Scan.Runs)
		c.Scan.Max = c.Scan.Min
	}
	return nil
}

// The queues, as spine.h numbers them.
const (
	qSelf = iota
	qWire
	qHost
	qPeer0
	_
	_
	qDMA
)

// step polls a queue, which has to hit with the event wanted, and runs that.
func (b *Bench) step(c *Costs, q int, want traces.Event) (arg uint32, err error) {
	n, run, hit, err := b.Poll(q)
	if err != nil {
		return 0, err
	}
	if !hit || run != want {
		return 0, fmt.Errorf("queue %d: hit %t with %v, want %v", q, hit, run, want)
	}
	c.Hit[q].add(n)
	n, arg, err = b.Run()
	if err != nil {
		return 0, err
	}
	c.Handler[run].add(n)
	return arg, nil
}

// idle polls all queues, which have to be empty.
func (b *Bench) idle(c *Costs) error {
	for q := range c.Miss {
		n, run, hit, err := b.Poll(q)
		if err != nil {
			return err
		}
		if hit {
			return fmt.Errorf("queue %d has %v, want nothing", q, run)
		}
		c.Miss[q].add(n)
	}
	return nil
}

func (b *Bench) carry(c *Costs, p Packet) error {
	r := &b.regs
	if err := b.idle(c); err != nil {
		return err
	}
	head := b.SRAM.View(b.staging, headerBytes)
	clear(head)
	copy(head, p.Header[:20])
	head[2], head[3] = byte(p.Bytes>>8), byte(p.Bytes)
	head[10], head[11] = 0, 0
	sum := checksum(head[:20])
	head[10], head[11] = byte(sum>>8), byte(sum)
	r.set(lanai.RegISR, lanai.IntBuffer)
	if _, err := b.step(c, qWire, traces.RxCheckHeader); err != nil {
		return err
	}
	r.set(lanai.RegRMP, r.kept[lanai.RegRML>>2]+4)
	r.set(lanai.RegISR, lanai.IntReceive)
	if _, err := b.step(c, qWire, traces.RxCheckBody); err != nil {
		return err
	}
	if _, err := b.step(c, qSelf, traces.EnqRouterIn); err != nil {
		return err
	}
	packet, err := b.step(c, qSelf, traces.RouterIn)
	if err != nil {
		return err
	}
	// Why says nothing where an extension drops without a reason.
	if sent, arg := b.Newest(); sent != traces.EnqIPOutput || arg != packet {
		return b.refused(c, packet)
	}
	peer := b.word(packet + packetPeer)
	if peer > benchCard {
		peer--
	}
	// The chain.
	for _, s := range []struct {
		q    int
		want traces.Event
	}{
		{qSelf, traces.EnqIPOutput}, {qDMA, traces.PeerToPeerStart}, {qDMA, traces.DMAStartHandler},
		{qDMA, traces.DMAGenericStart}, {qDMA, traces.DMAStartBody}, {qDMA, traces.DMAStartHeader},
	} {
		if s.want == traces.DMAStartHeader {
			r.set(lanai.RegISR, lanai.IntDMA)
		}
		if _, err := b.step(c, s.q, s.want); err != nil {
			return err
		}
	}
	r.set(lanai.RegISR, lanai.IntDMA)
	if err := b.idle(c); err != nil { // which sees the engine's end
		return err
	}
	// The peer's ACK.
	b.setWord(b.acks+4*peer, b.word(b.acks+4*peer)+1)
	if _, err := b.step(c, qPeer0+int(peer), traces.PeerAck); err != nil {
		return err
	}
	if _, err := b.step(c, qSelf, traces.FreeBuffer); err != nil {
		return err
	}
	return b.egress(c, p.Bytes)
}

// egress takes a packet that peer 0 wrote here out on the wire.
func (b *Bench) egress(c *Costs, bytes int) error {
	r := &b.regs
	// Four slots, in turn.
	at := b.inbox[0] + uint32(c.Handler[traces.WireOutputStart].Runs%4)*b.slotBytes
	b.setWord(at, flagValid|1<<16|uint32(bytes))
	if _, err := b.step(c, qPeer0, traces.WireOutputStart); err != nil {
		return err
	}
	r.set(lanai.RegISR, lanai.IntSend)
	if _, err := b.step(c, qWire, traces.WireOutputDone); err != nil {
		return err
	}
	if _, err := b.step(c, qDMA, traces.AckSend); err != nil {
		return err
	}
	r.set(lanai.RegISR, lanai.IntDMA)
	return b.idle(c)
}

// refused is the rest of the way of a packet that is not forwarded.
func (b *Bench) refused(c *Costs, packet uint32) error {
	_, run, hit, err := b.Poll(qSelf)
	if err != nil {
		return err
	}
	if hit { // dropped
		n, _, err := b.Run()
		if err == nil {
			c.Handler[run].add(n)
		}
		return err
	}
	if _, err := b.step(c, qDMA, traces.ToHost); err != nil {
		return err
	}
	b.regs.set(lanai.RegISR, lanai.IntDMA)
	_, err = b.step(c, qDMA, traces.FreeBuffer)
	return err
}

func checksum(b []byte) uint16 {
	var sum uint32
	for i := 0; i+1 < len(b); i += 2 {
		sum += uint32(b[i])<<8 | uint32(b[i+1])
	}
	for sum>>16 != 0 {
		sum = sum&0xFFFF + sum>>16
	}
	return ^uint16(sum)
}
