package spine

import (
	"fmt"

	"spinesim/pci"
	"spinesim/sim/des"
	"spinesim/traces"
)

// HostPath is the kernel's part in a packet that a card hands up: what it does
// and how long that takes.
type HostPath interface {
	// Service is the time the host's processor needs for a packet of the
	// given length that it takes up at now.
	Service(bytes int, now des.Time) des.Time
}

// HostRoute decides where the host sends a packet that came up from card
// ingress: to a card's wire (ok true), or nowhere.
type HostRoute func(p *Packet) (card uint8, ok bool)

// fixedService is a host that needs the same time for every packet.
type fixedService des.Time

func (f fixedService) Service(int, des.Time) des.Time { return des.Time(f) }

// host is the host behind the bridge: a slot of memory a card, a driver queue
// served in order, and transfers back to the cards.
type host struct {
	router *Router
	bridge *pci.HostBridge
	master *pci.Master
	path   HostPath
	route  HostRoute

	queue   []*packet // waiting for the processor
	limit   int       // of them; 0 is none
	serving *packet
	timer   des.Timer
	out     []*packet // served, waiting for the bus or a slot in a card
	moving  *packet
	xfer    pci.Transfer
	credits []int
	slot    []int32
}

const (
	hostSlotStride = 1 << 16 // one slot of 64 KiB a card
	hostAckBase    = 64 << 16
	hostMemory     = 8 << 20
)

func (h *host) slotAddr(card uint8) uint32 { return uint32(card) * hostSlotStride }
func (h *host) ackAddr(card uint8) uint32  { return hostAckBase + uint32(card)*64 }

// handedUp is the end of the transfer to the host: the card's buffer is free.
func (r *Runtime) handedUp(now des.Time, p *packet, cause traces.ID) error {
	h := r.router.host
	if r.spec.HostReturn {
		if h.limit > 0 && len(h.queue) >= h.limit {
			h.drop(now, p)
			if err := r.sendSelf(now, traces.FreeBuffer, p, cause); err != nil {
				return err
			}
			return h.serve(now)
		}
		p.inHost = true
		// The host sees what the card's memory holds.
		copy(p.frame.Data, r.card.SRAM.View(r.bufAddr[p.buf], min(len(p.frame.Data), p.bytes)))
		h.queue = append(h.queue, p)
	} else if r.rec != nil {
		r.rec.Add(&traces.Record{
			Kind: traces.KindLeave, Event: traces.NoEvent, Card: r.index, Peer: p.ingress, Queue: traces.NoQueue,
			Start: now, End: now, Ready: now, Packet: p.id, Bytes: uint32(p.bytes),
			Verdict: traces.VerdictToHost, Reason: p.reason, ID: r.rec.NextID(r.index), Cause: cause,
		})
	}
	if err := r.sendSelf(now, traces.FreeBuffer, p, cause); err != nil {
		return err
	}
	return h.serve(now)
}

// serve starts the host's processor on the next packet.
func (h *host) serve(now des.Time) error {
	if h.serving != nil || len(h.queue) == 0 {
		return nil
	}
	h.serving = h.queue[0]
	n := copy(h.queue, h.queue[1:])
	h.queue = h.queue[:n]
	d := h.path.Service(h.serving.bytes, now)
	if d < 0 {
		return fmt.Errorf("host: service time %v of packet %d is negative", d, h.serving.id)
	}
	return h.router.eng.Arm(&h.timer, now+d)
}

// Handle is the end of a packet's service on the host.
func (h *host) Handle(now des.Time, _ uint64) error {
	p := h.serving
	h.serving = nil
	pk := Packet{ID: p.id, Bytes: p.bytes, Header: p.frame.Data[:min(len(p.frame.Data), p.bytes)], Ingress: p.ingress}
	card, ok := uint8(0), false
	if h.route != nil {
		card, ok = h.route(&pk)
	}
	if ok && int(card) < len(h.router.cards) {
		p.egress = card
		h.out = append(h.out, p)
	} else {
		h.drop(now, p)
	}
	if err := h.move(now); err != nil {
		return err
	}
	return h.serve(now)
}

func (h *host) drop(now des.Time, p *packet) {
	rec := h.router.rec
	if rec != nil {
		rec.Add(&traces.Record{
			Kind: traces.KindLeave, Event: traces.NoEvent, Card: traces.HostCard, Peer: p.ingress, Queue: traces.NoQueue,
			Start: now, End: now, Ready: now, Packet: p.id, Bytes: uint32(p.bytes),
			Verdict: traces.VerdictDropped, Reason: traces.ReasonHost, ID: rec.NextID(traces.HostCard),
		})
	}
	h.done(p)
}

// done lets go of a packet; its ingress buffer may still be in use.
func (h *host) done(p *packet) {
	p.inHost = false
	if p.buf < 0 {
		h.router.release(p)
	}
}

// move starts the transfer of the oldest packet whose card has a slot.
func (h *host) move(now des.Time) error {
	if h.moving != nil {
		return nil
	}
	for i, p := range h.out {
		if h.credits[p.egress] == 0 {
			continue
		}
		n := copy(h.out[i:], h.out[i+1:])
		h.out = h.out[:i+n]
		h.credits[p.egress]--
		to := h.router.cards[p.egress]
		p.slot = h.slot[p.egress]
		h.slot[p.egress] = (p.slot + 1) % int32(to.spec.HostCredits)
		h.moving = p
		h.xfer = pci.Transfer{
			Cmd:   pci.MemWrite,
			Addr:  to.card.BusAddr(to.peerSlots[len(h.router.cards)] + uint32(p.slot)*uint32(to.slotBytes())),
			Bytes: align4(p.bytes), Data: p.frame.Data[:min(len(p.frame.Data), p.bytes)],
			Packet: p.id, Event: traces.TransferFromHost, Peer: p.egress,
		}
		return h.master.Start(&h.xfer)
	}
	return nil
}

// TransferDone is the end of a transfer from the host to a card.
func (h *host) TransferDone(now des.Time, t *pci.Transfer) error {
	p := h.moving
	h.moving = nil
	if t.Status != pci.StatusOK {
		return fmt.Errorf("host at %v: transfer of packet %d to bus address %#x: %v", now, p.id, t.Addr, t.Status)
	}
	to := h.router.cards[p.egress]
	p.pushed = now
	if err := to.send(&to.host, QHost, now, traces.FromHost, p, t.ID, traces.HostCard); err != nil {
		return err
	}
	return h.move(now)
}

// BusStream is of no interest to the host's memory.
func (h *host) BusStream(des.Time, bool, int32, int32) {}

// acked returns a slot of a card to the host.
func (h *host) acked(now des.Time, card uint8, p *packet) error {
	h.credits[card]++
	h.done(p)
	return h.move(now)
}
