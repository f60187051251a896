package spine

import (
	"fmt"

	"spinesim/lanai"
	"spinesim/pci"
	"spinesim/sim/des"
	"spinesim/traces"
)

// beginStart is the beginning of `Peer to peer start`: it reserves the engine
// and takes a credit.
func (r *Runtime) beginStart(now des.Time, m message) {
	p := m.pkt
	r.engineBusy = true
	r.view.ChainActive = true
	r.view.Backlog--
	r.credits[m.peer]--
	r.view.Credits--
	r.level(now, traces.LevelBacklog, r.view.Backlog, traces.NoQueue, traces.NoCard)
	r.level(now, traces.LevelCredits, r.credits[m.peer], traces.NoQueue, m.peer)
	why := traces.ReasonEngineBusy
	if r.creditAt[m.peer] > p.pushed && r.creditAt[m.peer] >= r.engineIdleAt {
		why = traces.ReasonNoCredit
	}
	r.wait(now, p, m.ready, why)
	p.slot = r.nextSlot[m.peer]
	r.nextSlot[m.peer] = (p.slot + 1) % int32(r.spec.Credits)
}

func align4(n int) int { return (n + 3) &^ 3 }

// slotAddr is the bus address of the packet's slot in its egress card.
func (r *Runtime) slotAddr(p *packet) uint32 {
	to := r.router.cards[p.egress]
	return to.card.BusAddr(to.peerSlots[r.index] + uint32(p.slot)*uint32(to.slotBytes()))
}

func (r *Runtime) slotBytes() int { return align4(r.spec.MaxPacket) }

// startBody is the end of `DMA start body`: the engine moves everything behind
// the header. A packet that is all header goes on at once.
func (r *Runtime) startBody(now des.Time, p *packet) error {
	h := r.spec.HeaderBytes
	n := align4(p.bytes - h)
	if n <= 0 {
		return r.sendChain(now, traces.DMAStartHeader, p, r.curID)
	}
	r.dmaPacket = p
	return r.card.DMA.Start(lanai.DMAOp{
		EAR: r.slotAddr(p) + uint32(h), LAR: r.bufAddr[p.buf] + uint32(h),
		Bytes: n, Carry: min(max(0, len(p.frame.Data)-h), p.bytes-h),
		Packet: p.id, Cause: r.curID, Event: traces.TransferBody, Peer: p.egress,
	})
}

// startHeader is the end of `DMA start header`: the header goes last, so that
// the peer only ever sees whole packets.
func (r *Runtime) startHeader(p *packet) error {
	h := r.spec.HeaderBytes
	r.dmaPacket = p
	return r.card.DMA.Start(lanai.DMAOp{
		EAR: r.slotAddr(p), LAR: r.bufAddr[p.buf], Bytes: h, Carry: min(h, len(p.frame.Data)),
		Packet: p.id, Cause: r.curID, Event: traces.TransferHeader, Peer: p.egress,
	})
}

// sendAck is the end of `ACK send`: the egress card's engine writes to the
// ingress card, or to the host.
func (r *Runtime) sendAck(p *packet, peer uint8) error {
	to := r.router.host.ackAddr(r.index)
	if peer != traces.HostCard {
		c := r.router.cards[peer]
		to = c.card.BusAddr(c.ackBox[r.index])
	}
	r.dmaPacket = p
	return r.card.DMA.Start(lanai.DMAOp{
		EAR: to, LAR: r.ackBox[r.index], Bytes: r.spec.AckBytes,
		Packet: p.id, Cause: r.curID, Event: traces.TransferAck, Peer: peer,
	})
}

// startToHost is the end of `To host`.
func (r *Runtime) startToHost(p *packet) error {
	r.dmaPacket = p
	return r.card.DMA.Start(lanai.DMAOp{
		EAR: r.router.host.slotAddr(r.index), LAR: r.bufAddr[p.buf],
		Bytes: align4(p.bytes), Carry: min(len(p.frame.Data), p.bytes),
		Packet: p.id, Cause: r.curID, Event: traces.TransferToHost, Peer: traces.HostCard,
	})
}

// DMADone is called by the host-DMA engine when a transfer has ended.
func (r *Runtime) DMADone(now des.Time, st pci.Status, t *pci.Transfer) error {
	p := r.dmaPacket
	if st != pci.StatusOK {
		return fmt.Errorf("card %d at %v: %v of packet %d to bus address %#x: %v", r.index, now, t.Event, t.Packet, t.Addr, st)
	}
	switch t.Event {
	case traces.TransferBody:
		return r.sendChain(now, traces.DMAStartHeader, p, t.ID)
	case traces.TransferHeader:
		return r.departed(now, p, t.ID)
	case traces.TransferAck:
		r.dmaPacket = nil
		if err := r.engineFree(now); err != nil {
			return err
		}
		if t.Peer == traces.HostCard {
			return r.router.host.acked(now, r.index, p)
		}
		in := r.router.cards[t.Peer]
		q := in.queueOf(r.index)
		return in.send(&in.peers[q-QPeer].ack, q, now, traces.PeerAck, p, t.ID, r.index)
	case traces.TransferToHost:
		r.dmaPacket = nil
		r.credits[len(r.credits)-1]++ // the host's memory has taken the packet in
		if err := r.engineFree(now); err != nil {
			return err
		}
		return r.handedUp(now, p, t.ID)
	}
	return fmt.Errorf("card %d: unexpected transfer %v", r.index, t.Event)
}

func (r *Runtime) engineFree(now des.Time) error {
	r.engineBusy = false
	r.engineIdleAt = now
	return r.refresh(QDMA)
}

// departed is the end of the header transfer: the egress card may find the
// packet from now on.
func (r *Runtime) departed(now des.Time, p *packet, cause traces.ID) error {
	r.dmaPacket = nil
	r.view.ChainActive = false
	if r.rec != nil {
		rec := r.rec.Next(now, r.index)
		rec.Kind, rec.Peer = traces.KindDepart, p.egress
		rec.Start, rec.Ready = now, now
		rec.Packet, rec.Bytes = p.id, uint32(p.bytes)
		rec.ID, rec.Cause = r.rec.NextID(r.index), cause
	}
	if err := r.engineFree(now); err != nil {
		return err
	}
	to := r.router.cards[p.egress]
	p.pushed = now
	q := to.queueOf(r.index)
	return to.send(&to.peers[q-QPeer].out, q, now, traces.WireOutputStart, p, cause, r.index)
}

// queueOf is the queue for messages from card peer.
func (r *Runtime) queueOf(peer uint8) uint8 {
	if peer > r.index {
		peer--
	}
	return QPeer + peer
}

// acked is the end of `Peer ACK`.
func (r *Runtime) acked(now des.Time, p *packet, peer uint8) error {
	if r.credits[peer] == 0 {
		r.creditAt[peer] = now
	}
	r.credits[peer]++
	r.view.Credits++
	r.level(now, traces.LevelCredits, r.credits[peer], traces.NoQueue, peer)
	if err := r.refresh(QDMA); err != nil {
		return err
	}
	return r.sendSelf(now, traces.FreeBuffer, p, r.curID)
}
