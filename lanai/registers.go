package lanai

import (
	"fmt"

	"spinesim/pci"
	"spinesim/sim/des"
	"spinesim/traces"
)

// RegisterBase is where firmware finds the special registers.
const RegisterBase = 0xFFFF_FF00

// Offsets of the special registers from RegisterBase, and from
// Spec.RegistersAt in the card's window [hardware].
const (
	RegISR     = 0x28 // interrupt status; a 1 written clears the bit
	RegEIMR    = 0x2C // which of them ask for the host's attention
	RegIT      = 0x30 // interval timer: counts down each Tick; at 0 IntTime is set
	RegRTC     = 0x34 // real-time clock: counts up each Tick
	RegCKS     = 0x38 // Internet checksum (one's complement sum) of bus-to-card DMA
	RegEAR     = 0x3C // host DMA: bus address
	RegLAR     = 0x40 // host DMA: SRAM address
	RegDMACTR  = 0x44 // host DMA: bytes; writing it starts the engine
	RegRMP     = 0x48 // receive: where the next word goes
	RegRML     = 0x4C // receive: address of the last word; writing it starts the engine
	RegSMP     = 0x50 // send: start
	RegSML     = 0x54 // send: last word; writing it starts the engine, the frame goes on
	RegSMLT    = 0x58 // send: the same, and the frame ends
	RegSA      = 0x6C // stored, no effect here
	RegDMADIR  = 0x80 // host DMA: 0 card to bus, 1 bus to card
	RegDMASTS  = 0x84 // host DMA: bits DMARunning … of the last operation
	RegTIMEOUT = 0x88 // watchdog: Ticks until IntWatchdog unless written again; 0 stops it

	registerBytes = 0x100
	controlBytes  = 0x40
)

// Bits of the interrupt status register [hardware].
const (
	IntByteReady uint32 = 1 << 0  // live: a frame waits at the link
	IntReceive   uint32 = 1 << 1  // a frame's last byte was received
	IntBuffer    uint32 = 1 << 2  // the receive limit was reached
	IntSend      uint32 = 1 << 3  // the send engine is done
	IntDMA       uint32 = 1 << 4  // the host-DMA engine is done
	IntTime      uint32 = 1 << 5  // the interval timer reached 0
	IntWatchdog  uint32 = 1 << 6  // the watchdog ran out
	IntTail      uint32 = 1 << 7  // a frame's tail was received
	IntWake      uint32 = 1 << 10 // a bus master wrote CtlWake
	IntNRES      uint32 = 1 << 11 // the link was reset; never here
	IntSendReady uint32 = 1 << 13 // live: the send engine stands
)

// Bits of DMA_STS (chosen).
const (
	DMARunning    uint32 = 1 << 0
	DMAErrMaster  uint32 = 1 << 1 // nobody claimed the address
	DMAErrTarget  uint32 = 1 << 2 // the target aborted
	DMAErrRetries uint32 = 1 << 3 // too many retries
	DMAErrAddress uint32 = 1 << 4 // unaligned, or outside the SRAM or 4 GB
)

// Offsets of the control words from Spec.ControlAt in the card's window
// (chosen; only bus masters see them).
const (
	CtlWake      = 0x00 // anything written sets IntWake; reads the unmasked interrupts, ISR & EIMR
	CtlCard      = 0x04 // the card's number
	CtlSRAMBytes = 0x08 // the SRAM's size
	CtlHz        = 0x0C // the clock in Hz, rounded down
)

// Registers are the card's special registers.
type Registers struct {
	card *Card

	isr, eimr, cks, ear, lar, ctr, dir uint32
	rml, smp, sml, smlt, sa            uint32
	rtc                                uint32 // added to the ticks since time 0
	it, timeout                        uint32 // as written
	itAt                               int64  // tick of that
	itTimer, watchdog                  des.Timer
	op                                 DMAOp // being started; kept here, for what is handed to an interface escapes
}

const (
	argInterval uint64 = iota
	argWatchdog
)

func (r *Registers) init(c *Card) {
	r.card = c
	r.itTimer.Init(r, PrioHardware, argInterval)
	r.watchdog.Init(r, PrioHardware, argWatchdog)
	c.engine.Adopt(&r.itTimer)
	c.engine.Adopt(&r.watchdog)
}

func (r *Registers) raise(bits uint32) { r.isr |= bits }

// ticks is the number of whole Ticks since time 0.
func (r *Registers) ticks(now des.Time) int64 { return int64(now / r.card.spec.Tick) }

// Status is ISR with its live bits.
func (r *Registers) Status() uint32 {
	v := r.isr &^ (IntByteReady | IntSendReady)
	if !r.card.Tx.busy {
		v |= IntSendReady
	}
	if r.card.Rx.byteReady() {
		v |= IntByteReady
	}
	return v
}

// Read returns the register at the given offset from RegisterBase. Offsets
// that name no register read as 0.
func (r *Registers) Read(offset uint32) uint32 {
	now := r.card.engine.Now()
	switch offset {
	case RegISR:
		return r.Status()
	case RegEIMR:
		return r.eimr
	case RegIT:
		return r.it - uint32(r.ticks(now)-r.itAt)
	case RegRTC:
		return r.rtc + uint32(r.ticks(now))
	case RegCKS:
		return r.cks
	case RegEAR:
		return r.ear
	case RegLAR:
		return r.lar
	case RegDMACTR:
		return r.ctr
	case RegRMP:
		return r.card.Rx.Pointer()
	case RegRML:
		return r.rml
	case RegSMP:
		return r.smp
	case RegSML:
		return r.sml
	case RegSMLT:
		return r.smlt
	case RegSA:
		return r.sa
	case RegDMADIR:
		return r.dir
	case RegDMASTS:
		return r.dmaStatus()
	case RegTIMEOUT:
		return r.timeout
	}
	return 0
}

func (r *Registers) dmaStatus() uint32 {
	d := r.card.DMA
	if d.busy {
		return DMARunning
	}
	switch d.status {
	case pci.StatusOK:
		return 0
	case pci.MasterAbort:
		return DMAErrMaster
	case pci.TargetAbort:
		return DMAErrTarget
	case pci.RetriesExceeded:
		return DMAErrRetries
	}
	return DMAErrAddress
}

// Write writes the register at the given offset from RegisterBase, and does
// what that entails: RML starts the receive engine, SML and SMLT the send
// engine, DMA_CTR the host-DMA engine. Offsets that name no register, the
// checksum's upper half, and RMP while a buffer is posted, ignore it. The error wraps ErrBusy when the engine
// runs, ErrOutside or ErrUnaligned when it cannot use the addresses of a
// receive or send.
func (r *Registers) Write(offset, v uint32) error {
	now := r.card.engine.Now()
	switch offset {
	case RegISR:
		r.isr &^= v
	case RegEIMR:
		r.eimr = v
	case RegIT:
		r.it, r.itAt = v, r.ticks(now)
		return r.arm(&r.itTimer, v)
	case RegRTC:
		r.rtc = v - uint32(r.ticks(now))
	case RegCKS:
		r.cks = v & 0xFFFF
	case RegEAR:
		r.ear = v
	case RegLAR:
		r.lar = v
	case RegDMACTR:
		r.op = DMAOp{ToCard: r.dir&1 != 0, EAR: r.ear, LAR: r.lar, Bytes: int(v), Carry: int(v)}
		r.op.Event, r.op.Peer = traces.NoEvent, traces.NoCard
		if src, ok := r.card.DMA.client.(DMASource); ok {
			src.DMAFor(&r.op)
		}
		return r.card.DMA.Start(r.op)
	case RegRMP:
		if rx := r.card.Rx; !rx.armed {
			rx.pointer = v
		}
	case RegRML:
		r.rml = v
		rx := r.card.Rx
		return rx.Arm(rx.pointer, int(int64(v&^3)+4-int64(rx.pointer)))
	case RegSMP:
		r.smp = v
	case RegSML:
		r.sml = v
		return r.card.Tx.piece(r.smp, v, false)
	case RegSMLT:
		r.smlt = v
		return r.card.Tx.piece(r.smp, v, true)
	case RegSA:
		r.sa = v
	case RegDMADIR:
		r.dir = v & 1
	case RegTIMEOUT:
		r.timeout = v
		return r.arm(&r.watchdog, v)
	}
	return nil
}

// arm sets t to the tick that lies n ticks ahead, or stops it when n is 0 or
// the tick is beyond time.
func (r *Registers) arm(t *des.Timer, n uint32) error {
	e := r.card.engine
	tick := r.card.spec.Tick
	at := r.ticks(e.Now()) + int64(n)
	if n == 0 || at > int64(des.MaxTime/tick) {
		e.Cancel(t)
		return nil
	}
	return e.Arm(t, des.Time(at)*tick)
}

// Handle is the interval timer's or the watchdog's end. It is for the engine
// to call.
func (r *Registers) Handle(_ des.Time, arg uint64) error {
	r.card.CPU.disturb()
	if arg == argInterval {
		r.raise(IntTime)
	} else {
		r.raise(IntWatchdog)
	}
	return nil
}

// IsRegister tells whether a processor's address names a special register
// rather than SRAM.
func IsRegister(addr uint32) bool { return addr >= RegisterBase }

// Load reads the word at a processor's address: SRAM or a special register.
// The error wraps ErrOutside or ErrUnaligned.
func (c *Card) Load(addr uint32) (uint32, error) {
	if IsRegister(addr) {
		if addr%4 != 0 {
			return 0, fmt.Errorf("lanai: %s: register at %#x: %w to 4", c.name, addr, ErrUnaligned)
		}
		return c.Regs.Read(addr - RegisterBase), nil
	}
	return c.SRAM.Word(addr)
}

// Store writes the word at a processor's address, with errors as Load and
// Registers.Write have them.
func (c *Card) Store(addr, v uint32) error {
	if IsRegister(addr) {
		if addr%4 != 0 {
			return fmt.Errorf("lanai: %s: register at %#x: %w to 4", c.name, addr, ErrUnaligned)
		}
		return c.Regs.Write(addr-RegisterBase, v)
	}
	return c.SRAM.SetWord(addr, v)
}
