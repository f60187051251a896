package spine

import (
	"fmt"

	"spinesim/lanai"
	"spinesim/sim/des"
	"spinesim/traces"
)

// armFirst posts the first receive at the start of a run.
func (r *Runtime) armFirst() error {
	if r.spec.Receive == ReceiveSplit {
		return r.armHeader()
	}
	return r.armBuffer(r.eng.Now())
}

func (r *Runtime) armHeader() error {
	r.rxPkt = nil
	return r.card.Rx.Arm(r.staging, r.spec.HeaderBytes)
}

// armBuffer posts a whole buffer when one is free.
func (r *Runtime) armBuffer(now des.Time) error {
	r.rxPkt = nil
	r.rxIdle = len(r.freeBufs) == 0
	if r.rxIdle {
		return nil
	}
	r.nextBuf = r.takeBuffer(now)
	return r.card.Rx.Arm(r.bufAddr[r.nextBuf], r.spec.MaxPacket)
}

func (r *Runtime) takeBuffer(now des.Time) int32 {
	n := len(r.freeBufs) - 1
	b := r.freeBufs[n]
	r.freeBufs = r.freeBufs[:n]
	r.level(now, traces.LevelBuffers, n, traces.NoQueue, traces.NoCard)
	return b
}

// Received is called by the receive engine when a packet ended or the limit
// was reached.
func (r *Runtime) Received(now des.Time, f *lanai.Frame, addr uint32, bytes int, ev lanai.ReceiveEvent) error {
	p := r.rxPkt
	fresh := p == nil
	if fresh {
		p = r.router.packet()
		p.id, p.frame, p.bytes = f.ID, f, f.Bytes
		p.ingress, p.egress = r.index, traces.NoCard
		r.rxPkt = p
	}
	ended := ev == lanai.PacketEnd
	cause := f.Cause
	if r.spec.Receive == ReceiveSplit {
		switch {
		case fresh:
			p.whole = ended
			return r.send(&r.wire, QWire, now, traces.RxCheckHeader, p, cause, traces.NoCard)
		case !ended:
			return r.swallow(p)
		}
		p.whole = true
		return r.send(&r.wire, QWire, now, traces.RxCheckBody, p, cause, traces.NoCard)
	}
	if !ended {
		return r.swallow(p)
	}
	p.whole, p.buf = true, r.nextBuf
	if r.spec.Receive == ReceiveRing {
		if err := r.armBuffer(now); err != nil {
			return err
		}
	}
	return r.send(&r.wire, QWire, now, traces.RxCheckHeader, p, cause, traces.NoCard)
}

// swallow receives the rest of a packet that is longer than a buffer over its
// own first bytes; the packet will be dropped.
func (r *Runtime) swallow(p *packet) error {
	p.reason = traces.ReasonTooLong
	b := p.buf
	if r.spec.Receive != ReceiveSplit {
		b = r.nextBuf
	}
	return r.card.Rx.Arm(r.bufAddr[b], r.spec.MaxPacket)
}

// headerChecked is the end of `Rx check header`.
func (r *Runtime) headerChecked(now des.Time, p *packet) error {
	if r.spec.Receive == ReceiveSplit {
		if len(r.freeBufs) == 0 {
			p.pushed = now
			r.bufWait = p
			return nil
		}
		return r.receiveBody(now, p)
	}
	if r.spec.Receive == ReceiveWhole {
		if err := r.armBuffer(now); err != nil {
			return err
		}
	}
	return r.sendSelf(now, traces.RxCheckBody, p, r.curID)
}

// receiveBody takes a buffer and lets the rest of the packet stream into it.
func (r *Runtime) receiveBody(now des.Time, p *packet) error {
	p.buf = r.takeBuffer(now)
	head := min(r.spec.HeaderBytes, p.bytes)
	copy(r.card.SRAM.View(r.bufAddr[p.buf], head), r.card.SRAM.View(r.staging, head))
	if p.whole {
		return r.send(&r.wire, QWire, now, traces.RxCheckBody, p, r.curID, traces.NoCard)
	}
	return r.card.Rx.Arm(r.bufAddr[p.buf]+uint32(r.spec.HeaderBytes), r.spec.MaxPacket-r.spec.HeaderBytes)
}

// bodyChecked is the end of `Rx check body`.
func (r *Runtime) bodyChecked(now des.Time, p *packet) error {
	if r.spec.Receive == ReceiveSplit {
		if err := r.armHeader(); err != nil {
			return err
		}
	}
	if p.frame.BadCRC && p.reason == traces.ReasonNone {
		p.reason = traces.ReasonBadCRC
	}
	if p.reason != traces.ReasonNone {
		return r.drop(now, p, p.reason)
	}
	return r.sendSelf(now, traces.EnqRouterIn, p, r.curID)
}

// drop discards a packet and frees its buffer.
func (r *Runtime) drop(now des.Time, p *packet, why traces.Reason) error {
	r.leave(now, p, traces.VerdictDropped, why)
	return r.sendSelf(now, traces.FreeBuffer, p, r.curID)
}

func (r *Runtime) leave(now des.Time, p *packet, v traces.Verdict, why traces.Reason) {
	if r.rec == nil {
		return
	}
	r.rec.Add(&traces.Record{
		Kind: traces.KindLeave, Event: traces.NoEvent, Card: r.index, Peer: p.ingress, Queue: traces.NoQueue,
		Start: now, End: now, Ready: now, Packet: p.id, Bytes: uint32(p.bytes), Verdict: v, Reason: why,
		ID: r.rec.NextID(r.index), Cause: r.curID,
	})
}

// freeBuffer is the end of `Free buffer`: the buffer goes back, and whoever
// waited for one gets it.
func (r *Runtime) freeBuffer(now des.Time, p *packet) error {
	if p.buf < 0 {
		return fmt.Errorf("card %d: packet %d has no buffer to free", r.index, p.id)
	}
	if r.sharers[p.buf] > 0 { // a copy is still to be sent
		r.sharers[p.buf]--
		p.buf = -1
		r.router.release(p)
		return nil
	}
	r.freeBufs = append(r.freeBufs, p.buf)
	p.buf = -1
	r.level(now, traces.LevelBuffers, len(r.freeBufs), traces.NoQueue, traces.NoCard)
	if !p.inHost {
		r.router.release(p)
	}
	switch {
	case r.bufWait != nil:
		w := r.bufWait
		r.bufWait = nil
		if r.rec != nil {
			r.rec.Add(&traces.Record{
				Kind: traces.KindWait, Event: traces.RxCheckHeader, Card: r.index, Peer: traces.NoCard, Queue: traces.NoQueue,
				Start: w.pushed, End: now, Ready: w.pushed, Packet: w.id, Reason: traces.ReasonNoBuffer,
				ID: r.rec.NextID(r.index), Cause: r.curID,
			})
		}
		return r.receiveBody(now, w)
	case r.rxIdle:
		return r.armBuffer(now)
	}
	return nil
}

// Discarded is called by the receive engine when a packet went by because no
// buffer was posted.
func (r *Runtime) Discarded(now des.Time, f *lanai.Frame) error {
	if r.rec != nil {
		r.rec.Add(&traces.Record{
			Kind: traces.KindLeave, Event: traces.NoEvent, Card: r.index, Peer: r.index, Queue: traces.NoQueue,
			Start: now, End: now, Ready: now, Packet: f.ID, Bytes: uint32(f.Bytes),
			Verdict: traces.VerdictDropped, Reason: traces.ReasonNoBufferDiscard, ID: r.rec.NextID(r.index),
		})
	}
	if r.router.rel != nil {
		r.router.rel(f)
	}
	return nil
}
