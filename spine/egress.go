package spine

import (
	"spinesim/lanai"
	"spinesim/sim/des"
	"spinesim/traces"
)

// startWire is the end of `Wire output start` (or of `From host`): the packet
// leaves at the wire rate.
func (r *Runtime) startWire(now des.Time, p *packet, m message) error {
	addr := r.bufAddrOf(p)
	switch {
	case m.handler == traces.FromHost:
		addr = r.peerSlots[len(r.router.cards)] + uint32(p.slot)*uint32(r.slotBytes())
	case m.peer != r.index:
		addr = r.peerSlots[p.ingress] + uint32(p.slot)*uint32(r.slotBytes())
	}
	r.txPkt, r.txPeer = p, m.peer
	p.frame.Egress = r.index
	p.frame.Cause = r.curID
	if err := r.card.Tx.Send(p.frame, addr, p.bytes); err != nil {
		return err
	}
	return r.refreshSend()
}

func (r *Runtime) bufAddrOf(p *packet) uint32 {
	if p.buf < 0 {
		return 0
	}
	return r.bufAddr[p.buf]
}

// refreshSend looks again at the queues whose messages need the send engine.
func (r *Runtime) refreshSend() error {
	for q := uint8(QWire); q < QDMA; q++ {
		if r.static == nil && !r.toSend(q) {
			continue // nothing in it depends on the send engine
		}
		if err := r.refresh(q); err != nil {
			return err
		}
	}
	return nil
}

// toSend tells whether queue q holds a message that needs the send engine.
func (r *Runtime) toSend(q uint8) bool {
	switch q {
	case QWire:
		return r.wireOut.n > 0
	case QHost:
		return r.host.n > 0
	default:
		return r.peers[q-QPeer].out.n > 0
	}
}

// Sent is called by the send engine when the packet has left.
func (r *Runtime) Sent(now des.Time, f *lanai.Frame) error {
	p := r.txPkt
	r.txPkt = nil
	r.txIdleAt = now
	cause := f.Cause
	if r.rec != nil {
		rec := r.rec.Next(now, r.index)
		rec.Kind, rec.Peer, rec.Verdict = traces.KindLeave, p.ingress, traces.VerdictForwarded
		rec.Start, rec.Ready = now, now
		rec.Packet, rec.Bytes = p.id, uint32(p.bytes)
		rec.ID, rec.Cause = r.rec.NextID(r.index), cause
		if r.txPeer == traces.HostCard {
			// Why the cards did not forward it themselves.
			if rec.Reason = p.reason; p.reason == traces.ReasonNone {
				rec.Reason = traces.ReasonExtension
			}
		}
	}
	if s := r.router.sink; s != nil {
		if err := s.Deliver(now, r.index, f); err != nil {
			return err
		}
	}
	if err := r.send(&r.wire, QWire, now, traces.WireOutputDone, p, cause, r.txPeer); err != nil {
		return err
	}
	return r.refreshSend()
}

// wireDone is the end of `Wire output done`: the one who sent the packet here
// is told.
func (r *Runtime) wireDone(now des.Time, p *packet, m message) error {
	if m.peer == r.index {
		return r.sendSelf(now, traces.FreeBuffer, p, r.curID)
	}
	p.pushed = now
	r.acks.pushBack(r.message(now, traces.AckSend, p, r.curID, m.peer))
	r.levelQueue(now, QDMA)
	return r.refresh(QDMA)
}
