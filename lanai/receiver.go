package lanai

import (
	"fmt"

	"spinesim/sim/des"
	"spinesim/traces"
)

// Upstream is the FIFO in front of a card: switch port and sender.
type Upstream interface {
	// Head is the oldest waiting frame, nil if there is none. It stays.
	Head() *Frame
	// Pop tells that the head frame has left entirely: its last byte is in
	// the card, or was discarded.
	Pop(now des.Time) error
}

// ReceiveEvent says why a run of the receive engine ended.
type ReceiveEvent uint8

// The events.
const (
	PacketEnd    ReceiveEvent = iota // the frame's last byte came (RECV_INT)
	LimitReached                     // the buffer was full first (BUFF_INT)
)

func (e ReceiveEvent) String() string {
	if e == PacketEnd {
		return "packet end"
	}
	return "limit reached"
}

// ReceiveClient hears of each run of the receive engine: bytes of f were put
// at addr. It may call Arm. An error stops the simulation.
type ReceiveClient interface {
	Received(now des.Time, f *Frame, addr uint32, bytes int, ev ReceiveEvent) error
}

// DiscardClient is implemented by a ReceiveClient that wants to hear of frames
// thrown away for lack of a buffer.
type DiscardClient interface {
	Discarded(now des.Time, f *Frame) error
}

// Receiver is the receive half of the packet interface. Its engine moves the
// frame at the head of the upstream FIFO into the posted buffer at the rate of
// the link, as far as the memory bus lets it. While no buffer is posted the
// link is held back, or frames are discarded (Spec.NoBuffer); of a frame that
// has been taken in partly, the rest always waits.
type Receiver struct {
	card   *Card
	up     Upstream
	client ReceiveClient
	timer  des.Timer // end of a discarded frame

	armed      bool
	running    bool
	discarding bool
	ending     bool // inside streamDone
	ready      bool // what byteReady says while firmware is executed

	addr, room uint32
	pointer    uint32 // RMP while the engine stands
	f          *Frame // being received
	off, part  int    // its bytes received before this run, and in it
	copied     int    // of part
	start      des.Time
	startCycle int64
}

func (r *Receiver) init(c *Card) {
	r.card = c
	r.timer.Init(r, PrioHardware, 0)
	c.engine.Adopt(&r.timer)
}

// Bind connects the FIFO in front of the card and the client.
func (r *Receiver) Bind(up Upstream, c ReceiveClient) { r.up, r.client = up, c }

// Arm posts a buffer: it writes RMP (addr, word-aligned) and RML, so that the
// engine takes in at most the words that hold the given number of bytes. A
// frame of which a part has been received is continued, otherwise the next
// one upstream is begun, as soon as there is one. The error wraps ErrBusy when
// a buffer is posted already, ErrUnaligned or ErrOutside.
func (r *Receiver) Arm(addr uint32, bytes int) error {
	if r.armed {
		return fmt.Errorf("lanai: %s: receive engine at %v: %w", r.card.name, r.card.engine.Now(), ErrBusy)
	}
	if bytes < 1 || !r.card.SRAM.Contains(addr, bytes) {
		return fmt.Errorf("lanai: %s: receive buffer of %d bytes at %#x, SRAM has %d: %w", r.card.name, bytes, addr, r.card.SRAM.Bytes(), ErrOutside)
	}
	if addr%4 != 0 {
		return fmt.Errorf("lanai: %s: receive buffer at %#x: %w to 4", r.card.name, addr, ErrUnaligned)
	}
	r.armed = true
	r.addr, r.room, r.pointer = addr, uint32(words(bytes))*4, addr
	return r.begin()
}

// Armed tells whether a buffer is posted and not yet done with.
func (r *Receiver) Armed() bool { return r.armed }

// Busy tells whether the engine takes a frame in, or lets one go by.
func (r *Receiver) Busy() bool { return r.running || r.discarding }

// Receiving is the frame of which a part has been or is being taken in, nil if
// there is none.
func (r *Receiver) Receiving() *Frame { return r.f }

// Wake tells that a frame has become the head of an empty FIFO.
func (r *Receiver) Wake(now des.Time) error {
	r.card.CPU.disturb()
	if r.ending {
		return nil
	}
	err := r.begin()
	r.look()
	return err
}

// byteReady tells whether a frame waits at the link. Executed firmware may be
// ahead of what happens there; so it is told what was last looked at.
func (r *Receiver) byteReady() bool {
	if r.card.CPU.mode != modeExecute {
		r.look()
	}
	return r.ready
}

func (r *Receiver) look() { r.ready = r.f != nil || r.up != nil && r.up.Head() != nil }

// begin starts what can be started.
func (r *Receiver) begin() error {
	if r.running || r.discarding || r.up == nil {
		return nil
	}
	if r.f == nil {
		f := r.up.Head()
		if f == nil {
			return nil
		}
		if f.Bytes < 1 {
			return fmt.Errorf("lanai: %s: frame %d of %d bytes at %v", r.card.name, f.ID, f.Bytes, r.card.engine.Now())
		}
		if !r.armed {
			if r.card.spec.NoBuffer == Discard {
				return r.discard(f)
			}
			return nil
		}
		r.f, r.off = f, 0
	}
	if !r.armed {
		return nil
	}
	r.part = min(int(r.room), r.f.Bytes-r.off)
	r.copied = 0
	r.running = true
	now := r.card.engine.Now()
	r.start = now
	r.startCycle = r.card.Mem.clk.ceil(now)
	return r.card.Mem.start(now, Receive, words(r.part))
}

// Pointer is RMP, live: where the next word goes. All below it is in SRAM.
func (r *Receiver) Pointer() uint32 {
	if r.running {
		got := words(r.part) - r.card.Mem.left(r.card.engine.Now(), Receive)
		r.copy(int(min(got*4, int64(r.part))))
		return r.addr + uint32(got)*4
	}
	return r.pointer
}

// copy brings the first n bytes of the part into SRAM.
func (r *Receiver) copy(n int) {
	from, to := r.off+r.copied, min(r.off+n, len(r.f.Data))
	if from < to {
		at := r.addr + uint32(r.copied)
		copy(r.card.SRAM.b[at:], r.f.Data[from:to])
		r.card.SRAM.wrote(at, to-from)
	}
	r.copied = max(r.copied, n)
}

func (r *Receiver) streamDone(now des.Time) error {
	r.card.CPU.disturb()
	f, addr, part := r.f, r.addr, r.part
	r.copy(part)
	r.running, r.armed = false, false
	r.pointer = addr + uint32(words(part))*4
	r.off += part
	ev := LimitReached
	if r.off == f.Bytes {
		ev = PacketEnd
		r.f = nil
	}
	r.record(now, f, ev)
	r.ending = true
	err := r.tell(now, f, addr, part, ev)
	r.ending = false
	if err == nil {
		err = r.begin()
	}
	r.look()
	return err
}

func (r *Receiver) tell(now des.Time, f *Frame, addr uint32, part int, ev ReceiveEvent) error {
	if ev == PacketEnd {
		r.card.Regs.raise(IntReceive | IntTail)
		if err := r.up.Pop(now); err != nil {
			return err
		}
	} else {
		r.card.Regs.raise(IntBuffer)
	}
	if r.client == nil {
		return nil
	}
	return r.client.Received(now, f, addr, part, ev)
}

func (r *Receiver) record(now des.Time, f *Frame, ev ReceiveEvent) {
	rec := r.card.rec
	if rec == nil {
		return
	}
	n := r.card.Mem.arb.paces[Receive].cyclesFor(words(r.part))
	out := rec.Next(now, r.card.index)
	out.Kind, out.Event = traces.KindReceive, traces.ReceiveBody
	if ev == LimitReached {
		out.Event = traces.ReceiveHeader
	}
	out.Start, out.Ready = r.start, f.Arrived
	out.Packet, out.Bytes = f.ID, uint32(r.part)
	out.Cycles, out.Stall = uint64(n), uint32(r.card.Mem.clk.floor(now)-r.startCycle-n)
	out.Cause = f.Cause
	f.Cause = rec.NextID(r.card.index)
	out.ID = f.Cause
}

// discard takes the frame from the wire without storing it.
func (r *Receiver) discard(f *Frame) error {
	r.discarding = true
	m := r.card.Mem
	c := m.clk.ceil(r.card.engine.Now()) + m.arb.paces[Receive].cyclesFor(words(f.Bytes))
	return r.card.engine.Arm(&r.timer, m.clk.edge(c))
}

// Handle ends a discarded frame. It is for the engine to call.
func (r *Receiver) Handle(now des.Time, _ uint64) error {
	r.card.CPU.disturb()
	f := r.up.Head()
	r.ending = true
	err := r.up.Pop(now)
	if c, ok := r.client.(DiscardClient); ok && err == nil {
		err = c.Discarded(now, f)
	}
	r.discarding, r.ending = false, false
	if err == nil {
		err = r.begin()
	}
	r.look()
	return err
}
