package traces

import "spinesim/sim/des"

// The units that move a packet's bytes.
const (
	unitReceive = iota
	unitBody
	unitHeader
	unitAck
	unitHost
	unitSend
	unitBusWait
	numUnits
)

// packetSlot is what is known of one packet while it is inside, and after it
// has left until its buffer is free.
type packetSlot struct {
	id        uint64   // 0 when the slot is empty
	enter, rx des.Time // -1: not known
	start     des.Time // of its Peer to peer start, -1: not known
	ingress   uint8
	left      Verdict
	freed     bool
	handlers  [NumSteps]des.Time
	units     [numUnits]des.Time
}

const (
	firstSlots = 1 << 9
	// maxSlots bounds the memory (12 MB) against a record whose packets never
	// leave; the machine itself holds a few hundred packets.
	maxSlots = 1 << 16
)

// packetRing finds packets by number: consecutive numbers lie side by side.
type packetRing struct {
	slots []packetSlot
	mask  uint64
	done  func(*packetSlot)
	freed bool // a Free buffer has been seen, so that packets close by it
}

func (p *packetRing) init(done func(*packetSlot)) {
	p.slots = make([]packetSlot, firstSlots)
	p.mask = firstSlots - 1
	p.done = done
}

// get finds a packet, or nil.
func (p *packetRing) get(id uint64) *packetSlot {
	s := &p.slots[id&p.mask]
	if s.id != id || id == 0 {
		return nil
	}
	return s
}

// claim makes place for a packet that was not known; nil for packet 0.
func (p *packetRing) claim(id uint64) *packetSlot {
	if id == 0 {
		return nil
	}
	for {
		s := &p.slots[id&p.mask]
		if s.id == id || s.id == 0 || p.over(s) || len(p.slots) == maxSlots {
			p.close(s)
			*s = packetSlot{id: id, enter: -1, rx: -1, start: -1}
			return s
		}
		p.grow()
	}
}

// over tells that nothing more is expected of a packet: it has left, and it
// never was in a card, or the record does not tell when its buffer is free.
func (p *packetRing) over(s *packetSlot) bool {
	return s.left != VerdictNone && (s.rx < 0 || !p.freed)
}

func (p *packetRing) grow() {
	old := p.slots
	p.slots = make([]packetSlot, 2*len(old))
	p.mask = uint64(len(p.slots) - 1)
	for i := range old {
		if old[i].id != 0 {
			p.slots[old[i].id&p.mask] = old[i]
		}
	}
}

func (p *packetRing) close(s *packetSlot) {
	if s.id != 0 && s.left != VerdictNone {
		p.done(s)
	}
	s.id = 0
}

// closeAll ends the run. Where buffers are seen to be freed, a packet whose
// buffer is not free yet is incomplete and does not count.
func (p *packetRing) closeAll() {
	// In order of packet numbers, whatever the ring's size.
	least := ^uint64(0)
	for i := range p.slots {
		if id := p.slots[i].id; id != 0 {
			least = min(least, id)
		}
	}
	for i := range p.slots {
		s := &p.slots[(least+uint64(i))&p.mask]
		if !p.freed {
			p.close(s)
		}
		s.id = 0
	}
}
