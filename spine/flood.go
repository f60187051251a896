package spine

import (
	"fmt"

	"spinesim/sim/des"
	"spinesim/traces"
)

// flood sends a packet to every other card. The copies share the packet's
// buffer, which is free once the last of them has been acknowledged; each is a
// packet of its own from here on, with a start, a credit and a transfer.
func (r *Runtime) flood(now des.Time, p *packet) error {
	first := true
	for c := range uint8(len(r.router.cards)) {
		if c == r.index {
			continue
		}
		q := p
		if !first {
			var err error
			if q, err = r.copyOf(now, p); err != nil {
				return err
			}
		}
		first = false
		q.egress, q.nextHop = c, 0
		if err := r.sendSelf(now, traces.EnqIPOutput, q, r.curID); err != nil {
			return err
		}
	}
	if first { // there is no other card
		return r.drop(now, p, traces.ReasonOwnWire)
	}
	return nil
}

// copyOf makes another packet of a packet's buffer.
func (r *Runtime) copyOf(now des.Time, p *packet) (*packet, error) {
	if r.router.copy == nil {
		return nil, fmt.Errorf("card %d at %v: an extension floods packet %d, and the router has no way to copy frames", r.index, now, p.id)
	}
	q := r.router.packet()
	q.frame = r.router.copy(p.frame)
	q.id, q.bytes, q.ingress = q.frame.ID, p.bytes, p.ingress
	q.buf, q.whole = p.buf, true
	r.sharers[p.buf]++
	if r.rec != nil {
		r.rec.Add(&traces.Record{
			Kind: traces.KindCopy, Event: traces.NoEvent, Card: r.index, Peer: traces.NoCard, Queue: traces.NoQueue,
			Start: now, End: now, Ready: now, Packet: q.id, Bytes: uint32(q.bytes),
			ID: r.rec.NextID(r.index), Cause: r.curID,
		})
	}
	return q, nil
}
