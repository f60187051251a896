package spine

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"spinesim/lanai/isa"
	"spinesim/sim/des"
	"spinesim/spine/firmware"
	"spinesim/traces"
)

// ErrOutOfStep is what a Stop wraps when the firmware did not fault, but did what
// cannot be: took a message that is not there, or used an engine for no packet.
var ErrOutOfStep = errors.New("run-time out of step with its devices")

// Stop tells why a card's processor executes nothing more: a fault of the
// run-time's own code. (An extension's costs only its packet, see Faults.)
//
// The rest of the card is hardware and goes on. Its engines end what they were
// given. The receive engine takes in what it has room for; then the link is held
// back and the FIFO upstream fills, or packets go by (lanai.Spec.NoBuffer). Other
// cards may write to its memory, but have no answer: their credits for it run
// out, and packets for it keep their buffers.
type Stop struct {
	Card uint8
	At   des.Time
	// Handler is what ran, traces.NoEvent between handlers, and Packet its packet,
	// 0 for none.
	Handler traces.Event
	Packet  uint64
	// PC is where, Symbol what encloses it, "" if nothing does, Word the
	// instruction (0 where it could not be fetched) and Instruction its text.
	PC          uint32
	Symbol      string
	Word        uint32
	Instruction string
	// Err is the whole; it wraps one of package isa's errors, or ErrOutOfStep.
	Err error
}

// Error tells which card stopped, when, in what and why.
func (s *Stop) Error() string {
	in := ""
	if s.Handler != traces.NoEvent {
		in = " in " + s.Handler.String()
	}
	return fmt.Sprintf("card %d stopped at %v%s: %v", s.Card, s.At, in, s.Err)
}

// Unwrap is Err.
func (s *Stop) Unwrap() error { return s.Err }

// Stopped tells why the card has stopped; nil while it works.
func (r *Runtime) Stopped() *Stop {
	if r.exec == nil {
		return nil
	}
	return r.exec.stop
}

// Stopped is how many cards have stopped.
func (r *Router) Stopped() int { return r.stopped }

// astray is an error that is the firmware's.
func astray(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrOutOfStep, fmt.Errorf(format, args...))
}

// own takes in an error: one that is the firmware's stops the card, any other
// ends the simulation.
func (x *executed) own(now des.Time, err error) error {
	if err == nil || !errors.Is(err, ErrOutOfStep) {
		return err
	}
	if err := x.rt.card.CPU.Halt(); err != nil {
		return err
	}
	return x.halt(now, x.faultOf(err))
}

// inFirmware passes an error through the processor, which makes a fault of it.
func (x *executed) inFirmware(err error) error {
	if err != nil && !errors.Is(err, ErrOutOfStep) {
		x.fatal = err
	}
	return err
}

// faultOf says where the firmware was when it went astray: where it stands, or,
// where its dispatcher is none of its own, in the handler that ran or was to.
func (x *executed) faultOf(err error) *isa.Fault {
	c := x.fw.CPU
	f := &isa.Fault{Err: err, PC: c.PC(), Cycle: c.Cycle()}
	if f.PC == isa.ReturnAddress {
		f.PC, _ = x.fw.Image.Symbol(firmware.Symbol(x.rt.cur.handler))
		if run, _, ferr := x.fw.Found(); ferr == nil && x.rt.cur.pkt == nil {
			f.PC, _ = x.fw.Image.Symbol(firmware.Symbol(run))
		}
	}
	f.Symbol = x.fw.Image.At(f.PC)
	if f.PC%4 == 0 {
		f.Word, _ = x.fw.SRAM.Word(f.PC) // 0 where there is none
	}
	return f
}

// halt stops the card, whose processor is idle, for good.
func (x *executed) halt(now des.Time, f *isa.Fault) error {
	if x.stop != nil {
		return nil // it stands already; an engine has ended what was begun
	}
	if errors.Is(f, ErrOutOfStep) && f.Access != "" {
		f = x.faultOf(f.Err) // it was no access that failed
	}
	r := x.rt
	s := &Stop{
		Card: r.index, At: now, Handler: traces.NoEvent,
		PC: f.PC, Symbol: f.Symbol, Word: f.Word, Err: f,
	}
	if f.Access != "fetch" {
		s.Instruction = isa.Decode(f.Word).String()
	}
	x.stop = s
	r.router.stopped++
	var cause traces.ID
	var cut *traces.Record
	if r.curRuns {
		s.Handler, cause = r.cur.handler, r.curID
		if r.cur.pkt != nil {
			s.Packet = r.cur.pkt.id
		}
		cycles, waits, _ := x.since()
		cut = r.recordBox(now, cycles, waits)
	} else {
		cut = x.closeRun(now)
	}
	if cut != nil {
		cut.Reason = traces.ReasonStopped
	}
	x.polling, x.open, r.curRuns = false, false, false
	if r.rec != nil {
		rec := r.rec.Next(now, r.index)
		rec.Kind, rec.Event, rec.Count, rec.Reason = traces.KindStop, s.Handler, s.PC, traces.ReasonStopped
		rec.Start, rec.Ready = now, now
		rec.Packet, rec.ID, rec.Cause = s.Packet, r.rec.NextID(r.index), cause
	}
	// What the engines have ended before the handler did is done.
	if early := x.early; early != nil {
		x.early = nil
		if err := x.sent(now, early); err != nil {
			return err
		}
	}
	if moved := x.moved; moved != nil {
		x.moved = nil
		return x.own(now, x.transferred(now, x.movedHow, moved))
	}
	return nil
}

// Settled tells that nothing will happen on any card any more unless a packet
// arrives: all that could go on has, and what is still inside waits for a card
// that has stopped. It is for executed firmware.
func (r *Router) Settled() bool {
	if h := r.host; h.serving != nil || h.moving != nil {
		return false
	}
	return !slices.ContainsFunc(r.cards, func(c *Runtime) bool { return !c.still() })
}

// still is Settled for one card.
func (r *Runtime) still() bool {
	switch c := r.card; {
	case c.DMA.Busy() || c.Tx.Busy() || c.Rx.Busy():
		return false
	case r.Stopped() != nil:
		return true
	case r.curRuns || r.self.n > 0 || r.wireOut.n > 0 || r.host.n > 0 || r.cont.n > 0:
		return false
	case !r.engineBusy && (r.acks.n > 0 || r.oldestStart() >= 0):
		return false
	}
	for i := range r.wire.n {
		if r.wire.at(i).handler != traces.RxCheckHeader || len(r.freeBufs) > 0 {
			return false
		}
	}
	return !slices.ContainsFunc(r.peers[:], func(p peerQueue) bool { return p.out.n > 0 || p.ack.n > 0 })
}

// stay is a packet that stays where it is.
type stay struct {
	p   *packet
	why traces.Reason
}

// Strand records of each packet that has not left a settled router where it
// stays and why, and tells how many there are on each card.
func (r *Router) Strand() []uint64 {
	on := make([][]stay, len(r.cards))
	for i, c := range r.cards {
		on[i] = c.staying()
	}
	for _, p := range r.made {
		// A handler gone astray has taken it and left it nowhere.
		if p.frame != nil && !p.left {
			on[p.ingress] = append(on[p.ingress], stay{p, traces.ReasonStopped})
		}
	}
	n := make([]uint64, len(r.cards))
	for i, c := range r.cards {
		n[i] = uint64(len(on[i]))
		slices.SortFunc(on[i], func(a, b stay) int { return cmp.Compare(a.p.id, b.p.id) })
		c.strand(on[i])
	}
	return n
}

// staying lists the packets that lie on a card.
func (r *Runtime) staying() (all []stay) {
	add := func(p *packet, why traces.Reason) {
		if p == nil || p.left {
			return
		}
		p.left = true // told once
		if r.Stopped() != nil {
			why = traces.ReasonStopped
		}
		all = append(all, stay{p, why})
	}
	every := func(g *ring, why traces.Reason) {
		for i := range g.n {
			add(g.at(i).pkt, why)
		}
	}
	for i := range r.starts {
		every(&r.starts[i], traces.ReasonNoCredit)
	}
	every(&r.wire, traces.ReasonNoBuffer)
	if r.exec != nil {
		add(r.exec.rx, traces.ReasonNoBuffer)
	}
	for _, g := range []*ring{&r.self, &r.wireOut, &r.host, &r.cont, &r.acks} {
		every(g, traces.ReasonStopped)
	}
	for i := range r.peers {
		every(&r.peers[i].out, traces.ReasonStopped)
		every(&r.peers[i].ack, traces.ReasonStopped)
	}
	for _, p := range []*packet{r.cur.pkt, r.dmaPacket, r.txPkt} {
		add(p, traces.ReasonStopped)
	}
	return all
}

func (r *Runtime) strand(all []stay) {
	if r.rec == nil {
		return
	}
	now := r.eng.Now()
	for _, s := range all {
		rec := r.rec.Next(now, r.index)
		rec.Kind, rec.Peer, rec.Verdict, rec.Reason = traces.KindLeave, s.p.ingress, traces.VerdictStranded, s.why
		rec.Start, rec.Ready = now, now
		rec.Packet, rec.Bytes, rec.ID = s.p.id, uint32(s.p.bytes), r.rec.NextID(r.index)
	}
}
