package traces

import "spinesim/sim/des"

// packetCheck is what a packet has been through.
type packetCheck struct {
	id      uint64
	handled uint32   // handlers that ran for it, by event − FreeBuffer
	last    des.Time // end of the handler, of those, that ended last
	inside  bool
	left    Verdict
	ingress uint8
	depart  bool
	acked   bool // an ACK for it has been moved
}

// done tells that nothing more can happen to a packet: it has left, and
// whatever a card or the host's slot held for it is free again.
func (s *packetCheck) done() bool {
	switch {
	case s.inside:
		return false
	case s.handled&bit(FromHost) != 0 && !s.acked:
		return false
	}
	return s.handled == 0 || s.handled&bit(FreeBuffer) != 0
}

// packetChecks finds packets by number; a packet that is done with stays known
// until its slot is needed.
type packetChecks struct {
	slots []packetCheck
	mask  uint64
}

func (p *packetChecks) init() {
	p.slots = make([]packetCheck, firstSlots)
	p.mask = firstSlots - 1
}

func (p *packetChecks) get(id uint64) *packetCheck {
	if s := &p.slots[id&p.mask]; s.id == id {
		return s
	}
	return nil
}

func (p *packetChecks) claim(id uint64) *packetCheck {
	for {
		s := &p.slots[id&p.mask]
		if s.id == 0 || s.id == id || s.done() || len(p.slots) == maxSlots {
			*s = packetCheck{id: id}
			return s
		}
		old := p.slots
		p.slots = make([]packetCheck, 2*len(old))
		p.mask = uint64(len(p.slots) - 1)
		for i := range old {
			if old[i].id != 0 {
				p.slots[old[i].id&p.mask] = old[i]
			}
		}
	}
}

func (p *packetChecks) firstInside() uint64 {
	first := uint64(0)
	for i := range p.slots {
		if s := &p.slots[i]; s.inside && (first == 0 || s.id < first) {
			first = s.id
		}
	}
	return first
}

func bit(e Event) uint32 { return 1 << (e - FreeBuffer) }

// follows tells which handlers must have run for a packet before one can: any
// one of those set. Rules 6 to 13 of the model.
var follows = [FromHost + 1]uint32{
	RxCheckBody:     bit(RxCheckHeader),
	EnqRouterIn:     bit(RxCheckBody),
	RouterIn:        bit(EnqRouterIn),
	EnqIPOutput:     bit(RouterIn),
	PeerToPeerStart: bit(EnqIPOutput),
	DMAStartHandler: bit(PeerToPeerStart),
	DMAGenericStart: bit(DMAStartHandler),
	DMAStartBody:    bit(DMAGenericStart),
	DMAStartHeader:  bit(DMAStartBody),
	WireOutputStart: bit(DMAStartHeader) | bit(EnqIPOutput), // the latter when it goes out where it came in
	ToHost:          bit(RouterIn),
	FromHost:        bit(ToHost),
	WireOutputDone:  bit(WireOutputStart) | bit(FromHost),
	AckSend:         bit(WireOutputDone),
	PeerAck:         bit(AckSend),
}

// packet checks a packet's way, and that it enters and leaves once.
func (v *Validator) packet(r *Record) {
	if r.Packet == 0 || r.Kind == KindLevel || r.Kind == KindPoll || r.Kind == KindPolls {
		return
	}
	s := v.packets.get(r.Packet)
	if r.Kind == KindEnter {
		if s != nil {
			v.fail(InvariantConservation, r, "packet %d has entered before", r.Packet)
			if s.inside {
				v.inside--
			}
		}
		s = v.packets.claim(r.Packet)
		s.inside, s.ingress = true, r.Card
		v.inside++
		v.entered++
		return
	}
	if r.Kind == KindCopy {
		if s != nil {
			v.fail(InvariantConservation, r, "packet %d has entered before", r.Packet)
			if s.inside {
				v.inside--
			}
		}
		s = v.packets.claim(r.Packet)
		s.inside, s.ingress, s.last = true, r.Card, r.End
		s.handled = bit(RxCheckHeader) | bit(RxCheckBody) | bit(EnqRouterIn) | bit(RouterIn)
		v.inside++
		v.entered++
		return
	}
	if s == nil {
		if !v.lim.Window {
			v.fail(InvariantConservation, r, "packet %d has not entered, or left long ago", r.Packet)
		}
		return // of a window's older packets nothing is known
	}
	if s.left == VerdictStranded && r.Kind != KindLeave {
		v.fail(InvariantStop, r, "packet %d was stranded", r.Packet)
	}
	switch r.Kind {
	case KindTransfer:
		s.acked = s.acked || r.Event == TransferAck
	case KindBox:
		v.handler(s, r)
	case KindDepart:
		if s.depart {
			v.fail(InvariantLifecycle, r, "it has departed before")
		}
		s.depart = true
		if s.handled&bit(DMAStartHeader) == 0 && s.handled&bit(PeerToPeerStart) == 0 {
			v.fail(InvariantLifecycle, r, "no DMA was started for it")
		}
	case KindLeave:
		if !s.inside {
			v.fail(InvariantConservation, r, "packet %d has left already, %v", r.Packet, s.left)
			return
		}
		s.inside, s.left = false, r.Verdict
		v.inside--
		switch r.Verdict {
		case VerdictForwarded:
			if s.handled&(bit(WireOutputStart)|bit(FromHost)) == 0 {
				v.fail(InvariantLifecycle, r, "forwarded without a wire output")
			}
		case VerdictToHost:
			if s.handled&bit(ToHost) == 0 {
				v.fail(InvariantLifecycle, r, "handed to the host without the handler for it")
			}
		case VerdictStranded:
			v.card(r.Card).stranded++
			if !v.stopped && !v.lim.Window {
				v.fail(InvariantStop, r, "stranded, and no card has stopped")
			}
		}
	}
}

func (v *Validator) handler(s *packetCheck, r *Record) {
	ev := r.Event
	if s.handled&bit(ev) != 0 {
		v.fail(InvariantLifecycle, r, "%v has run for packet %d before", ev, r.Packet)
	}
	switch {
	case ev == FreeBuffer:
		done := bit(ToHost) | bit(WireOutputDone) // the latter when it went out where it came in
		if s.handled&bit(PeerToPeerStart) != 0 {
			done = bit(PeerAck)
		}
		if s.left != VerdictDropped && s.handled&done == 0 {
			v.fail(InvariantLifecycle, r, "packet %d still needs its buffer", r.Packet)
		}
	case follows[ev] != 0 && s.handled&follows[ev] == 0:
		v.fail(InvariantLifecycle, r, "nothing that it follows from has run for packet %d", r.Packet)
	case s.left == VerdictDropped:
		v.fail(InvariantLifecycle, r, "packet %d was dropped", r.Packet)
	}
	// A packet has one handler at a time, but for a buffer that is freed while
	// the host, or the egress card, has the packet's copy.
	if ev != FreeBuffer {
		if r.Start < s.last {
			v.fail(InvariantLifecycle, r, "a handler for packet %d ran until %v", r.Packet, s.last)
		}
		s.last = max(s.last, r.End)
	}
	s.handled |= bit(ev)
}
