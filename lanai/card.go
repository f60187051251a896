package lanai

import (
	"encoding/binary"
	"fmt"
	"math/big"

	"spinesim/pci"
	"spinesim/sim/des"
	"spinesim/traces"
)

// Card is one LANai network card on a bus.
type Card struct {
	SRAM *SRAM
	CPU  *Processor
	Rx   *Receiver
	Tx   *Sender
	DMA  *HostDMA
	Mem  *MemoryBus
	Regs *Registers

	spec    Spec
	index   uint8
	name    string
	engine  *des.Engine
	bus     *pci.Bus
	rec     *traces.Recorder
	watches []watch
	failure error
	failed  des.Timer
}

// Watcher hears of writes that other bus masters made to this card's SRAM.
type Watcher interface {
	// Written tells that bytes from the SRAM address addr on were written,
	// when the last data phase of the transfer ends. Bytes that are carried
	// as length only are not told of. An error stops the simulation.
	Written(now des.Time, addr uint32, bytes int) error
}

type watch struct {
	from, to uint64
	w        Watcher
}

// New makes a card and attaches it to the bus: a master for its host-DMA
// engine, and its window as a target. index is its number among the cards; it
// names the card in records and places its window. phase is when its first
// cycle begins, from 0. rec may be nil.
func New(spec Spec, index uint8, phase des.Time, e *des.Engine, bus *pci.Bus, rec *traces.Recorder) (*Card, error) {
	if err := spec.Validate(); err != nil {
		return nil, fmt.Errorf("card %d: %w", index, err)
	}
	on := bus.Spec()
	if on.Width > spec.Bus.Width {
		return nil, fmt.Errorf("card %d: %w", index, bad("Bus", "the card is built for %d bits, the bus has %d", spec.Bus.Width, on.Width))
	}
	// 2 % is the slack between "33 MHz" and 33⅓.
	most := ratio(spec.Bus.Clock.Num, spec.Bus.Clock.Den)
	most.Mul(most, big.NewRat(102, 100))
	if ratio(on.Clock.Num, on.Clock.Den).Cmp(most) > 0 {
		return nil, fmt.Errorf("card %d: %w", index, bad("Bus", "the card is built for %v, the bus has %v", spec.Bus.Clock, on.Clock))
	}
	if end := uint64(spec.WindowBase) + (uint64(index)+1)*uint64(spec.WindowBytes); end > 1<<32 {
		return nil, fmt.Errorf("card %d: %w", index, bad("WindowBase", "the window's end, %#x, is beyond 4 GB", end))
	}
	clk, err := newCardClock(spec.Clock, phase)
	if err != nil {
		return nil, fmt.Errorf("lanai: card %d: %w", index, err)
	}
	c := &Card{
		SRAM: NewSRAM(spec.SRAMBytes),
		CPU:  &Processor{}, Rx: &Receiver{}, Tx: &Sender{},
		DMA: &HostDMA{}, Mem: &MemoryBus{}, Regs: &Registers{},
		spec: spec, index: index, name: fmt.Sprintf("card %d", index),
		engine: e, bus: bus, rec: rec,
	}
	c.CPU.init(c.Mem, e, c.name, index)
	c.CPU.meet(bus)
	c.Mem.init(spec, on, clk, e, c)
	c.Mem.owner = [numEngines]streamOwner{Receive: c.Rx, Send: c.Tx}
	c.Rx.init(c)
	c.Tx.card = c
	c.DMA.init(c)
	c.Regs.init(c)
	c.failed.Init(c, PrioProcessor, 0)
	e.Adopt(&c.failed)
	if c.DMA.master, err = bus.AttachMaster(c.name, index, c.DMA); err != nil {
		return nil, fmt.Errorf("lanai: card %d: %w", index, err)
	}
	base, size := spec.Window(index)
	if err := bus.AttachTarget(c.name, index, base, size, spec.Target, c); err != nil {
		return nil, fmt.Errorf("lanai: card %d: %w", index, err)
	}
	return c, nil
}

// Spec returns what the card was made from.
func (c *Card) Spec() Spec { return c.spec }

// Index is the card's number.
func (c *Card) Index() uint8 { return c.index }

// Name is the card's name in messages, "card 0".
func (c *Card) Name() string { return c.name }

// Window is where the card's window lies on the bus.
func (c *Card) Window() (base, size uint32) { return c.spec.Window(c.index) }

// BusAddr is the bus address of an SRAM address.
func (c *Card) BusAddr(addr uint32) uint32 {
	base, _ := c.Window()
	return base + c.spec.SRAMAt + addr
}

// CycleAt is the first of the card's cycles that begins at t or later.
func (c *Card) CycleAt(t des.Time) int64 { return c.Mem.clk.ceil(t) }

// TimeOf is when a cycle begins.
func (c *Card) TimeOf(cycle int64) des.Time { return c.Mem.clk.edge(cycle) }

// Watch makes w hear of writes by other bus masters to any of the bytes from
// the SRAM address addr on. Where several watches overlap, all are told, in
// the order of the calls. The error wraps ErrOutside.
func (c *Card) Watch(addr uint32, bytes int, w Watcher) error {
	if bytes < 1 || !c.SRAM.Contains(addr, bytes) {
		return fmt.Errorf("lanai: %s: watch of %d bytes at %#x, SRAM has %d: %w", c.name, bytes, addr, c.SRAM.Bytes(), ErrOutside)
	}
	c.watches = append(c.watches, watch{uint64(addr), uint64(addr) + uint64(bytes), w})
	return nil
}

// BusWrite implements pci.Target. Of the registers and control words only
// whole words are written; the rest of the window ignores writes.
func (c *Card) BusWrite(addr uint32, p []byte) {
	c.CPU.disturb()
	base, _ := c.Window()
	off := addr - base
	for len(p) > 0 {
		part, at, n := c.region(off, len(p))
		switch part {
		case regionSRAM:
			copy(c.SRAM.b[at:], p[:n])
			c.SRAM.wrote(at, n)
			c.tell(at, n)
		case regionRegisters, regionControl:
			for w := (at + 3) &^ 3; w+4 <= at+uint32(n); w += 4 {
				v := binary.BigEndian.Uint32(p[w-at:])
				if part == regionRegisters {
					c.fail(c.Regs.Write(w, v))
				} else if w == CtlWake {
					c.Regs.raise(IntWake)
				}
			}
		}
		off += uint32(n)
		p = p[n:]
	}
}

func (c *Card) tell(addr uint32, n int) {
	from, to := uint64(addr), uint64(addr)+uint64(n)
	for i := range c.watches {
		if w := &c.watches[i]; from < w.to && w.from < to {
			c.fail(w.w.Written(c.engine.Now(), addr, n))
		}
	}
}

// BusRead implements pci.Target. What is not there reads as 0.
func (c *Card) BusRead(addr uint32, p []byte) {
	c.CPU.Settle()
	base, _ := c.Window()
	off := addr - base
	for len(p) > 0 {
		part, at, n := c.region(off, len(p))
		switch part {
		case regionSRAM:
			copy(p[:n], c.SRAM.b[at:])
		case regionRegisters, regionControl:
			var word [4]byte
			last := ^uint32(0)
			for i := range n {
				a := at + uint32(i)
				if w := a &^ 3; w != last {
					last = w
					v := c.control(w)
					if part == regionRegisters {
						v = c.Regs.Read(w)
					}
					binary.BigEndian.PutUint32(word[:], v)
				}
				p[i] = word[a&3]
			}
		default:
			clear(p[:n])
		}
		off += uint32(n)
		p = p[n:]
	}
}

func (c *Card) control(at uint32) uint32 {
	switch at {
	case CtlWake:
		return c.Regs.Status() & c.Regs.eimr
	case CtlCard:
		return uint32(c.index)
	case CtlSRAMBytes:
		return c.SRAM.Bytes()
	case CtlHz:
		return uint32(min(c.spec.Clock.Num/c.spec.Clock.Den, 1<<32-1))
	}
	return 0
}

type region uint8

const (
	regionNone region = iota
	regionRegisters
	regionControl
	regionSRAM
)

// region finds what lies at an offset of the window, where in it, and how many
// of the next n bytes are of the same kind.
func (c *Card) region(off uint32, n int) (what region, at uint32, bytes int) {
	s := &c.spec
	end := uint64(off) + uint64(n)
	for _, r := range [...]struct {
		what     region
		from, to uint64
	}{
		{regionSRAM, uint64(s.SRAMAt), uint64(s.SRAMAt) + uint64(s.SRAMBytes)},
		{regionRegisters, uint64(s.RegistersAt), uint64(s.RegistersAt) + registerBytes},
		{regionControl, uint64(s.ControlAt), uint64(s.ControlAt) + controlBytes},
	} {
		switch o := uint64(off); {
		case o >= r.from && o < r.to:
			return r.what, off - uint32(r.from), int(min(end, r.to) - o)
		case o < r.from && end > r.from:
			end = r.from
		}
	}
	return regionNone, 0, int(end - uint64(off))
}

// BusStream implements pci.Target: others' accesses go through the E-bus.
func (c *Card) BusStream(now des.Time, on bool, num, den int32) {
	c.fail(c.Mem.setHost(now, asTarget, on, num, den))
}

// fail makes an error that cannot be returned to the caller stop the run.
func (c *Card) fail(err error) {
	if err == nil || c.failure != nil {
		return
	}
	c.failure = err
	if err := c.engine.Arm(&c.failed, c.engine.Now()); err != nil {
		c.engine.Stop()
	}
}

// Handle stops the run with a failure. It is for the engine to call.
func (c *Card) Handle(des.Time, uint64) error { return c.failure }
