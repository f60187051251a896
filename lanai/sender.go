package lanai

import (
	"fmt"
	"slices"

	"spinesim/sim/des"
	"spinesim/traces"
)

// SendClient hears when a frame has left. An error stops the simulation.
type SendClient interface {
	Sent(now des.Time, f *Frame) error
}

// FrameSource is implemented by a SendClient that supplies the frame for a
// send which the firmware started by the registers, from the address in SMP.
// Without it such a frame has no number.
type FrameSource interface {
	FrameFor(addr uint32) *Frame
}

// Sender is the send half of the packet interface. Its engine reads a packet
// from SRAM at the rate of the link, as far as the memory bus lets it.
type Sender struct {
	card   *Card
	client SendClient

	busy       bool
	tail       bool // the frame ends with this run
	f          *Frame
	open       *Frame // begun by SML, not ended by SMLT yet
	addr       uint32
	bytes      int
	start      des.Time
	startCycle int64
	words      int64
}

// Bind connects the client.
func (s *Sender) Bind(c SendClient) { s.client = c }

// Busy tells whether the engine runs.
func (s *Sender) Busy() bool { return s.busy }

// Send writes SMP and SMLT: f leaves as the given number of bytes from addr
// on. When its last byte is out, f.Bytes is that number and f.Data, as long as
// it was (at most bytes), holds what SRAM holds. The error wraps ErrBusy or
// ErrOutside.
func (s *Sender) Send(f *Frame, addr uint32, bytes int) error {
	if err := s.check(addr, bytes); err != nil {
		return err
	}
	if len(f.Data) > bytes {
		return fmt.Errorf("lanai: %s: frame %d carries %d of %d bytes at %v", s.card.name, f.ID, len(f.Data), bytes, s.card.engine.Now())
	}
	f.Bytes = bytes
	return s.begin(f, addr, bytes, true)
}

func (s *Sender) check(addr uint32, bytes int) error {
	if s.busy {
		return fmt.Errorf("lanai: %s: send engine at %v: %w", s.card.name, s.card.engine.Now(), ErrBusy)
	}
	if bytes < 1 || !s.card.SRAM.Contains(addr, bytes) {
		return fmt.Errorf("lanai: %s: send of %d bytes from %#x, SRAM has %d: %w", s.card.name, bytes, addr, s.card.SRAM.Bytes(), ErrOutside)
	}
	return nil
}

func (s *Sender) begin(f *Frame, addr uint32, bytes int, tail bool) error {
	now := s.card.engine.Now()
	s.busy, s.tail = true, tail
	s.f, s.addr, s.bytes = f, addr, bytes
	s.start, s.startCycle = now, s.card.Mem.clk.ceil(now)
	s.words = words(int(addr%4) + bytes)
	return s.card.Mem.start(now, Send, s.words)
}

// piece begins what the firmware wrote to SML (tail false) or SMLT (true): the
// words from smp to last, inclusive, as all or a part of a frame whose bytes
// are all carried.
func (s *Sender) piece(smp, last uint32, tail bool) error {
	bytes := int(int64(last&^3) + 4 - int64(smp))
	if err := s.check(smp, bytes); err != nil {
		return err
	}
	f := s.open
	if f == nil {
		if src, ok := s.client.(FrameSource); ok {
			f = src.FrameFor(smp)
		}
		if f == nil {
			f = &Frame{Ingress: traces.NoCard, Egress: traces.NoCard}
		}
		f.Bytes, f.Data = 0, f.Data[:0]
	}
	s.open = f
	f.Data = slices.Grow(f.Data, bytes)[:len(f.Data)+bytes] // filled when it has left
	f.Bytes += bytes
	return s.begin(f, smp, bytes, tail)
}

func (s *Sender) streamDone(now des.Time) error {
	s.card.CPU.disturb()
	f := s.f
	s.busy = false
	// The piece is the frame's last s.bytes; of them f carries some or all.
	at := f.Bytes - s.bytes
	if at < len(f.Data) {
		copy(f.Data[at:], s.card.SRAM.View(s.addr, s.bytes))
	}
	if rec := s.card.rec; rec != nil {
		n := s.card.Mem.arb.paces[Send].cyclesFor(s.words)
		out := rec.Next(now, s.card.index)
		out.Kind, out.Event = traces.KindSend, traces.SendPacket
		out.Start, out.Ready = s.start, s.start
		out.Packet, out.Bytes = f.ID, uint32(s.bytes)
		out.Cycles, out.Stall = uint64(n), uint32(s.card.Mem.clk.floor(now)-s.startCycle-n)
		out.Cause = f.Cause
		f.Cause = rec.NextID(s.card.index)
		out.ID = f.Cause
	}
	s.card.Regs.raise(IntSend)
	s.f = nil
	if !s.tail {
		return nil
	}
	s.open = nil
	if s.client == nil {
		return nil
	}
	return s.client.Sent(now, f)
}
