package firmware

import (
	"encoding/binary"
	"errors"
	"fmt"

	"spinesim/lanai"
	"spinesim/lanai/isa"
	"spinesim/lanai/loader"
	"spinesim/traces"
)

// handlers names the C function of each event that is a handler.
var handlers = [...]struct {
	event  traces.Event
	symbol string
}{
	{traces.FreeBuffer, "spine_free_buffer"},
	{traces.PeerAck, "spine_peer_ack"},
	{traces.RxCheckHeader, "spine_rx_check_header"},
	{traces.RxCheckBody, "spine_rx_check_body"},
	{traces.EnqRouterIn, "spine_enq_router_in"},
	{traces.RouterIn, "spine_router_in"},
	{traces.EnqIPOutput, "spine_enq_ip_output"},
	{traces.PeerToPeerStart, "spine_peer_to_peer_start"},
	{traces.DMAStartHandler, "spine_dma_start_handler"},
	{traces.DMAGenericStart, "spine_dma_generic_start"},
	{traces.DMAStartBody, "spine_dma_start_body"},
	{traces.DMAStartHeader, "spine_dma_start_header"},
	{traces.WireOutputStart, "spine_wire_output_start"},
	{traces.WireOutputDone, "spine_wire_output_done"},
	{traces.AckSend, "spine_ack_send"},
	{traces.ToHost, "spine_to_host"},
}

// Symbol is the C function of a handler, "" for events that are none in C.
func Symbol(e traces.Event) string {
	for _, h := range handlers {
		if h.event == e {
			return h.symbol
		}
	}
	return ""
}

// Reasons maps the firmware's enum reason to the record's.
var Reasons = [...]traces.Reason{
	traces.ReasonNone, traces.ReasonBadCRC, traces.ReasonTruncated, traces.ReasonBadVersion, traces.ReasonBadHeaderLength,
	traces.ReasonBadChecksum, traces.ReasonBadTotalLength, traces.ReasonMartian, traces.ReasonLocal, traces.ReasonOptions,
	traces.ReasonTTLExpired, traces.ReasonNoRoute, traces.ReasonOwnWire, traces.ReasonTooLong,
}

// Offsets in struct packet, and what else Go has to know of spine.h.
const (
	packetBuffer = 4
	packetBytes  = 8
	packetBadCRC = 12
	packetPeer   = 16
	packetHop    = 20
	packetWhy    = 32
	packetSize   = 48

	flagValid   = 1 << 31
	headerBytes = 32
	peers       = 3
)

// registers stands for the card's devices: they remember what is written, and
// the interrupt status is the bench's to set.
type registers struct {
	kept [64]uint32
}

func (r *registers) Load(addr uint32) (uint32, error) { return r.kept[addr>>2&63], nil }

func (r *registers) Store(addr, v uint32) error {
	if at := addr - isa.DeviceBase; at == lanai.RegISR {
		r.kept[at>>2] &^= v
	} else {
		r.kept[at>>2] = v
	}
	return nil
}

func (r *registers) set(offset, v uint32) { r.kept[offset>>2] = v }

// Prefix is an entry of the router's lists of special addresses.
type Prefix struct{ Addr, Mask uint32 }

// Inputs are what the bench's card routes by.
type Inputs struct {
	// Image is the route table as router.Table.AppendImage makes it.
	Image []byte
	// BadSources, Locals and BadTargets are the lists of special addresses, 32
	// in all at most.
	BadSources, Locals, BadTargets []Prefix
	// OwnWire and MTU are as in router.IPv4Spec.
	OwnWire bool
	MTU     int
	// Extension is linked in before the router; nil for none.
	Extension []*loader.Object
	// Buffers is how many packet buffers a card has, 1 to MostBuffers, and
	// Credits how many packets it keeps slots for from each other card, 1 to
	// MostCredits; 0 is 16 and 4.
	Buffers, Credits int
	// MaxPacket is the longest packet that a buffer or slot holds, 64 to 16384
	// bytes; 0 is 1536.
	MaxPacket int
	// Order is the queues in the order in which the dispatcher polls them; nil is
	// from 0 on.
	Order []uint8
	// HostAt is where on the bus the host wants packets; 0 is 1 MB.
	HostAt uint32
	// Watchdog is the longest run of the extension for a packet, in cycles; 0 is
	// without bound. Only whole cards have one.
	Watchdog int64
}

// What the firmware's tables have room for.
const (
	MostBuffers = 32
	MostCredits = 64
)

func (in *Inputs) fill() error {
	set := func(v *int, least, most, otherwise int, what string) error {
		if *v == 0 {
			*v = otherwise
		}
		if *v < least || *v > most {
			return fmt.Errorf("firmware: %d %s, want %d to %d", *v, what, least, most)
		}
		return nil
	}
	if in.HostAt == 0 {
		in.HostAt = 1 << 20
	}
	return errors.Join(
		set(&in.Buffers, 1, MostBuffers, 16, "packet buffers"),
		set(&in.Credits, 1, MostCredits, 4, "credits"),
		set(&in.MaxPacket, 64, 16384, 1536, "bytes a packet"),
	)
}

// Bench is a card's processor and memory with the SPINE firmware, without a
// bus, link or time but the processor's own: it runs polls and handlers one by
// one, alone on the memory bus.
type Bench struct {
	SRAM  *lanai.SRAM
	CPU   *isa.CPU
	Image *loader.Image

	regs      registers
	sp        uint32
	found     uint32
	polls     uint32
	spine     uint32
	staging   uint32
	acks      uint32
	inbox     [peers]uint32
	scratch   uint32
	slotBytes uint32
	low       uint32 // of the stack
	credits   uint32
	byAddr    map[uint32]traces.Event
}

const (
	stackBytes = 4 << 10
	benchCard  = 0
	// watchdogCycles stops a call that does not end: 30 ms of a LANai 4.
	watchdogCycles = 1_000_000
)

// NewBench loads the firmware and sets it up as card 0 of four.
func NewBench(in Inputs) (*Bench, error) {
	b := &Bench{}
	if err := b.load(lanai.NewSRAM(1<<20), &b.regs, benchCard, in); err != nil {
		return nil, err
	}
	for p := range uint32(peers) {
		window := 0xE1000000 + p*0x200000
		if err := b.connect(p, window+0x100000, window+0x1F0000); err != nil {
			return nil, err
		}
	}
	if _, err := b.Call("spine_start"); err != nil {
		return nil, err
	}
	return b, nil
}

// connect tells of a peer: the bus addresses of this card's slots and of its
// ACK word there.
func (b *Bench) connect(peer, slots, ack uint32) error {
	if _, err := b.Call("spine_setup_peer", peer, slots, ack, b.inbox[peer]); err != nil {
		return err
	}
	_, err := b.Call("spine_setup_credits", peer, b.credits)
	return err
}

// load puts the firmware, a stack, the route table, buffers and slots into a
// memory and sets them up.
func (b *Bench) load(sram *lanai.SRAM, devices isa.Devices, card uint32, in Inputs) error {
	if err := in.fill(); err != nil {
		return err
	}
	// The word of VALID before a packet, and room for the last granule.
	b.slotBytes = (uint32(in.MaxPacket) + headerBytes + isa.Granule - 1) &^ (isa.Granule - 1)
	b.SRAM, b.credits, b.byAddr = sram, uint32(in.Credits), map[uint32]traces.Event{}
	if _, err := b.SRAM.Alloc("address 0, nobody's", isa.Granule, isa.Granule); err != nil {
		return err
	}
	objects := append([]*loader.Object(nil), in.Extension...)
	for _, list := range []func() ([]*loader.Object, error){Spine, Library} {
		os, err := list()
		if err != nil {
			return err
		}
		objects = append(objects, os...)
	}
	var err error
	if b.Image, err = loader.Load(b.SRAM, "firmware", objects...); err != nil {
		return err
	}
	if b.CPU, err = isa.New(b.SRAM.View(0, int(b.SRAM.Bytes()))); err != nil {
		return err
	}
	b.CPU.Devices, b.CPU.SymbolAt = devices, b.Image.At
	if err := b.CPU.Protect(0, int(b.SRAM.Bytes()), 0); err != nil {
		return err
	}
	if err := b.Image.Protect(b.CPU); err != nil {
		return err
	}
	block := func(owner string, n uint32, a isa.Access) uint32 {
		n = (n + isa.Granule - 1) &^ (isa.Granule - 1)
		at, aerr := b.SRAM.Alloc(owner, n, isa.Granule)
		if aerr == nil {
			aerr = b.CPU.Protect(at, int(n), a)
		}
		if err == nil {
			err = aerr
		}
		return at
	}
	low := block("stack", stackBytes, isa.Read|isa.Write)
	table := block("route table", max(uint32(len(in.Image)), 4), isa.Read)
	buffers := block("packet buffers", uint32(in.Buffers)*b.slotBytes, isa.Read|isa.Write)
	for i := range b.inbox {
		b.inbox[i] = block("slots of a peer", b.credits*b.slotBytes, isa.Read|isa.Write)
	}
	b.scratch = block("a packet of the bench's", packetSize, isa.Read|isa.Write)
	if err != nil {
		return err
	}
	copy(b.SRAM.View(table, len(in.Image)), in.Image)
	b.low, b.sp = low, low+stackBytes
	b.CPU.BoundStack(low, b.sp)
	for _, h := range handlers {
		a, err := b.Image.Symbol(h.symbol)
		if err != nil {
			return err
		}
		b.byAddr[a] = h.event
	}
	for _, s := range []struct {
		name string
		at   *uint32
	}{{"spine_found", &b.found}, {"spine", &b.spine}, {"spine_polls", &b.polls}, {"spine_staging", &b.staging}, {"spine_acks", &b.acks}} {
		if *s.at, err = b.Image.Symbol(s.name); err != nil {
			return err
		}
	}
	own := uint32(0)
	if in.OwnWire {
		own = 1
	}
	calls := []call{
		{"spine_setup", []uint32{card, uint32(in.Buffers), buffers, b.slotBytes}},
		{"spine_setup_slots", []uint32{b.slotBytes, b.credits * b.slotBytes, in.HostAt}},
		{"spine_setup_routes", []uint32{table, own, uint32(in.MTU)}},
	}
	for i := range b.inbox {
		// A peer that is never connected: no packet will ever be in its slots.
		calls = append(calls, call{"spine_setup_peer", []uint32{uint32(i), 0, 0, b.inbox[i]}})
	}
	for i, q := range in.Order {
		calls = append(calls, call{"spine_setup_order", []uint32{uint32(i), uint32(q)}})
	}
	for i, list := range [][]Prefix{in.BadSources, in.Locals, in.BadTargets} {
		for _, p := range list {
			calls = append(calls, call{"spine_setup_prefix", []uint32{uint32(i), p.Addr, p.Mask}})
		}
	}
	for _, c := range calls {
		if _, err := b.Call(c.symbol, c.args...); err != nil {
			return err
		}
	}
	return nil
}

type call struct {
	symbol string
	args   []uint32
}

// Call runs a function to its return, with up to four arguments, and tells what
// that took. The error is the processor's fault, or that of the loader's Symbol.
func (b *Bench) Call(symbol string, args ...uint32) (isa.Counters, error) {
	at, err := b.Image.Symbol(symbol)
	if err != nil {
		return isa.Counters{}, err
	}
	return b.enter(at, symbol, args...)
}

func (b *Bench) enter(at uint32, name string, args ...uint32) (isa.Counters, error) {
	c := b.CPU
	before, start := c.Counters(), c.Cycle()
	if err := c.Call(start, at, b.sp, args...); err != nil {
		return isa.Counters{}, err
	}
	c.SetWatchdog(start + watchdogCycles)
	for now := start; ; now = c.Cycle() {
		stop, err := c.Run(now, isa.NoWatchdog)
		if err != nil {
			return isa.Counters{}, fmt.Errorf("firmware: %s: %w", name, err)
		}
		if stop == isa.Returned {
			return c.Counters().Sub(before), nil
		}
	}
}

// Result is what the last function returned.
func (b *Bench) Result() uint32 { return b.CPU.Reg(isa.RV) }

// word reads memory; what a pointer gone astray names is 0 where there is none.
func (b *Bench) word(addr uint32) uint32 {
	if !b.SRAM.Contains(addr, 4) {
		return 0
	}
	return binary.BigEndian.Uint32(b.SRAM.View(addr, 4))
}

func (b *Bench) setWord(addr, v uint32) {
	binary.BigEndian.PutUint32(b.SRAM.View(addr, 4), v)
}

// Poll polls queue q. When it hits, run is the handler's event.
func (b *Bench) Poll(q int) (cost isa.Counters, run traces.Event, hit bool, err error) {
	at := b.word(b.polls + 4*uint32(q))
	cost, err = b.enter(at, b.Image.At(at))
	if err != nil || b.Result() == 0 {
		return cost, 0, false, err
	}
	at = b.word(b.found)
	run, ok := b.byAddr[at]
	if !ok {
		return cost, 0, true, fmt.Errorf("firmware: queue %d has a message for %#x (%s), which is no handler", q, at, b.Image.At(at))
	}
	return cost, run, true, nil
}

// Run runs the handler that the last poll found, and returns the address of its
// argument.
func (b *Bench) Run() (cost isa.Counters, arg uint32, err error) {
	at := b.word(b.found)
	arg = b.word(b.found + 4)
	cost, err = b.enter(at, b.Image.At(at), arg)
	return cost, arg, err
}

// Verdict is what spine_route made of a packet.
type Verdict struct {
	Action uint32 // 1 forward, 2 to the host, 3 drop
	Card   uint8
	Hop    uint32
	Reason traces.Reason
	Cost   isa.Counters
}

// Route runs the router alone on a packet of so many bytes, whose header, at
// most 60 bytes, it changes as the firmware does.
func (b *Bench) Route(header []byte, bytes int, badCRC bool) (Verdict, error) {
	if len(header) > 60 {
		return Verdict{}, fmt.Errorf("firmware: header of %d bytes, at most 60", len(header))
	}
	p := b.scratch
	buffer := b.inbox[0] // nobody's while no packet is there
	view := b.SRAM.View(buffer, 64)
	clear(view)
	copy(view[4:], header)
	clear(b.SRAM.View(p, packetSize))
	b.setWord(p+packetBuffer, buffer)
	b.setWord(p+packetBytes, uint32(bytes))
	if badCRC {
		b.setWord(p+packetBadCRC, 1)
	}
	cost, err := b.Call("spine_route", p)
	if err != nil {
		return Verdict{}, err
	}
	v := Verdict{Action: b.Result(), Card: uint8(b.word(p + packetPeer)), Hop: b.word(p + packetHop), Cost: cost}
	if why := b.word(p + packetWhy); int(why) < len(Reasons) {
		v.Reason = Reasons[why]
	}
	copy(header, view[4:])
	clear(view)
	return v, nil
}
