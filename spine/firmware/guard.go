package firmware

import (
	"errors"
	"fmt"

	"spinesim/lanai"
	"spinesim/lanai/isa"
	"spinesim/traces"
)

// Watcher is told of what the whole firmware does, at the time it does it.
type Watcher interface {
	// Enter tells that the dispatcher calls the handler of an event.
	Enter(run traces.Event, arg uint32) error
	// Exit tells that it has returned.
	Exit() error
}

// ErrExtension is what the faults of an extension wrap that breaks the rules of
// the call rather than those of the processor.
var ErrExtension = errors.New("extension breaks the rules of its call")

// extensionStack is how much stack an extension has (chosen).
const extensionStack = 2 << 10

// guard keeps the parts of the firmware apart (isa.Gates). An extension runs
// with rights of its own: it may read all memory and the device registers, and
// execute itself, the library, spine_lookup and spine_checksum; it may write its
// own data, a stack of its own, the packet's buffer, and of the packet's
// structure why, peer and hop. What else it does is a fault, as is running longer
// than the watchdog allows, or returning elsewhere than to the router's handler
// or with something that is no action. The guard is the simulator's, not the
// firmware's: it takes no time.
type guard struct {
	c     *Card
	watch Watcher // of the whole firmware; nil does not tell polls from handlers

	runtime  isa.Rights // for handlers; also for the dispatcher when nobody watches
	dispatch isa.Rights
	ext      isa.Rights

	// The handler that the dispatcher has called.
	inHandler bool
	handlerTo uint32 // where it returns to

	// The extension's call.
	entry     uint32 // of spine_extension; 0 for none
	low, high uint32 // its stack
	limit     int64
	inExt     bool
	back      uint32
	sp, fp    uint32
	packet    uint32
	kept      [packetSize / 4]uint32
}

// purely are the objects of the run-time that an extension may execute.
var purely = map[string]bool{"checksum.o": true, "lookup.o": true, "divide.o": true, "memory.o": true, "multiply.o": true, "shift.o": true}

// newGuard makes the guard of a card whose firmware has been loaded, where there
// is something to guard or to watch.
func newGuard(c *Card, in *Inputs, w Watcher) error {
	if len(in.Extension) == 0 && w == nil {
		return nil
	}
	g := &guard{c: c, watch: w, limit: in.Watchdog}
	base := c.CPU.Rights()
	g.runtime, g.dispatch = base.Clone(), base.Clone()
	if len(in.Extension) > 0 {
		var err error
		if g.entry, err = c.Image.Symbol("spine_extension"); err != nil {
			return err
		}
		if g.low, err = c.SRAM.Alloc("stack of the extension", extensionStack, isa.Granule); err != nil {
			return err
		}
		g.high = g.low + extensionStack
		g.ext = base.Clone()
		for i := range g.ext {
			g.ext[i] = isa.Read
		}
		if err := g.ext.Set(g.low, extensionStack, isa.Read|isa.Write); err != nil {
			return err
		}
	}
	for _, s := range c.Image.Sections {
		own := extensionOf(s, in)
		n := int(s.Bytes+isa.Granule-1) &^ (isa.Granule - 1)
		a := s.Kind.Access()
		set := func(r isa.Rights, a isa.Access) error {
			if r == nil {
				return nil
			}
			return r.Set(s.Addr, n, a)
		}
		var err error
		switch {
		case a&isa.Execute != 0 && own:
			err = errors.Join(set(g.ext, a), set(g.runtime, isa.Read), set(g.dispatch, isa.Read))
		case a&isa.Execute != 0:
			if purely[s.Object] {
				err = set(g.ext, a)
			}
			if w != nil {
				if s.Object == "dispatch.o" {
					err = errors.Join(err, set(g.runtime, isa.Read))
				} else {
					err = errors.Join(err, set(g.dispatch, isa.Read))
				}
			}
		case own && a&isa.Write != 0:
			err = set(g.ext, a)
		}
		if err != nil {
			return err
		}
	}
	c.guard = g
	return nil
}

// install puts the guard in its place.
func (g *guard) install() error {
	g.c.CPU.Gates = g
	if g.watch == nil {
		return g.c.CPU.SetRights(g.runtime)
	}
	return g.c.CPU.SetRights(g.dispatch)
}

// Cross implements isa.Gates.
func (g *guard) Cross(pc uint32) error {
	switch cpu := g.c.CPU; {
	case g.inExt:
		if pc != g.back {
			return isa.ErrProtected
		}
		return g.leave()
	case pc == g.entry && pc != 0 && (g.watch == nil || g.inHandler):
		return g.enter()
	case g.watch == nil:
		return isa.ErrProtected
	case g.inHandler:
		if pc != g.handlerTo {
			return isa.ErrProtected
		}
		g.inHandler = false
		if err := cpu.BackToRights(g.dispatch); err != nil {
			return err
		}
		return g.watch.Exit()
	default:
		e, ok := g.c.byAddr[pc]
		if !ok {
			return isa.ErrProtected
		}
		g.inHandler, g.handlerTo = true, cpu.Reg(isa.RCA)
		if err := cpu.BackToRights(g.runtime); err != nil {
			return err
		}
		return g.watch.Enter(e, cpu.Reg(isa.Arg0))
	}
}

// enter begins the extension's call: a stack, rights and watchdog of its own.
func (g *guard) enter() error {
	b, cpu := &g.c.Bench, g.c.CPU
	p := cpu.Reg(isa.Arg0)
	if !g.isPacket(p) {
		return fmt.Errorf("%w: the extension is called with %#x, which is no packet", isa.ErrProtected, p)
	}
	g.inExt, g.packet = true, p
	g.back, g.sp, g.fp = cpu.Reg(isa.RCA), cpu.Reg(isa.SP), cpu.Reg(isa.FP)
	for i := range g.kept {
		g.kept[i] = b.word(p + 4*uint32(i))
	}
	if err := g.reach(isa.Read | isa.Write); err != nil {
		return err
	}
	b.setWord(g.high-4, g.back)
	cpu.SetReg(isa.SP, g.high-4)
	cpu.BoundStack(g.low, g.high)
	if g.limit > 0 {
		cpu.SetWatchdog(cpu.Cycle() + g.limit)
	}
	return cpu.SetRights(g.ext)
}

// isPacket tells whether memory holds a packet's structure at an address, and
// the buffer that it names. The run-time's own memory may be in disorder.
func (g *guard) isPacket(p uint32) bool {
	is := func(addr, n uint32) bool { return addr%isa.Granule == 0 && g.c.SRAM.Contains(addr, int(n)) }
	return is(p, packetSize) && is(g.c.word(p+packetBuffer), g.c.slotBytes)
}

// reach sets what the extension may do with its packet.
func (g *guard) reach(a isa.Access) error {
	return errors.Join(
		g.ext.Set(g.packet, packetSize, a),
		g.ext.Set(g.kept[packetBuffer/4], int(g.c.slotBytes), a))
}

// restore ends the call: all is as the run-time left it.
func (g *guard) restore() error {
	b, cpu := &g.c.Bench, g.c.CPU
	g.inExt = false
	for i, v := range g.kept {
		switch i * 4 {
		case packetPeer, packetHop, packetWhy:
		default:
			b.setWord(g.packet+4*uint32(i), v)
		}
	}
	cpu.SetReg(isa.SP, g.sp+4) // the return address is off the stack
	cpu.SetReg(isa.FP, g.fp)
	cpu.BoundStack(b.low, b.sp)
	cpu.SetWatchdog(isa.NoWatchdog)
	return errors.Join(g.reach(isa.Read), cpu.SetRights(g.runtime))
}

// The actions of spine.h.
const (
	actNext = iota
	actForward
	actToHost
	actDrop
)

// leave is the extension's return.
func (g *guard) leave() error {
	b, cpu := &g.c.Bench, g.c.CPU
	verdict := cpu.Reg(isa.RV)
	if verdict > actDrop {
		return fmt.Errorf("%w: it returns %d, want an action", ErrExtension, verdict)
	}
	if peer := b.word(g.packet + packetPeer); verdict == actForward && (peer > peers || peer != uint32(g.c.card.Index()) && g.c.known>>peer&1 == 0) {
		return fmt.Errorf("%w: it forwards by card %d, which is none", ErrExtension, peer)
	}
	if verdict == actNext {
		b.setWord(g.packet+packetWhy, 0)
	}
	return g.restore()
}

// InExtension tells whether an extension was running when the processor stopped.
func (c *Card) InExtension() bool { return c.guard != nil && c.guard.inExt }

// Recover takes an extension's fault: its packet is dropped, with nothing else
// changed, and execution goes on in the router's handler at the present time.
func (c *Card) Recover() error {
	g := c.guard
	if g == nil || !g.inExt {
		return fmt.Errorf("firmware: %s: nothing to recover from", c.card.Name())
	}
	if err := g.restore(); err != nil {
		return err
	}
	c.setWord(g.packet+packetWhy, 0)
	c.CPU.SetReg(isa.RV, actDrop)
	c.CPU.Resume(c.card.CPU.Begin(), g.back)
	return c.card.CPU.Execute(c.CPU)
}

// devices are a card's registers as its firmware sees them: an extension may
// read them.
type devices struct{ c *Card }

// Load implements isa.Devices.
func (d devices) Load(addr uint32) (uint32, error) { return d.c.card.Load(addr) }

// Store implements isa.Devices.
func (d devices) Store(addr, v uint32) error {
	if d.c.InExtension() {
		return isa.ErrProtected
	}
	return d.c.card.Store(addr, v)
}

// Steady implements isa.Steady.
func (d devices) Steady(addr uint32) bool { return d.c.card.Steady(addr) }

var _ interface {
	isa.Devices
	isa.Steady
} = devices{}

var _ lanai.Program = (*Card)(nil)
