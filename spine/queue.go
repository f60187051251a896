package spine

import (
	"spinesim/lanai"
	"spinesim/sim/des"
	"spinesim/traces"
)

// packet is a packet inside the router. It lives from its first byte in a card
// until its ingress buffer is free again.
type packet struct {
	id      uint64
	frame   *lanai.Frame
	bytes   int
	ingress uint8
	egress  uint8
	buf     int32  // ingress buffer, -1 when none
	slot    int32  // slot in the egress card's memory
	nextHop uint32 // next hop chosen by the extension
	reason  traces.Reason
	pushed  des.Time // when its start, ACK or output was queued
	arrived des.Time // for waits: since when
	place   int32    // in its batch
	batch   int32    // how many there are
	whole   bool     // the frame is completely in the card

	// Executed firmware:
	at       uint32 // its structure in the card's memory
	carried  int32  // leading bytes that the frame carried when it came
	short    bool   // it ended with its header
	handedUp bool   // it goes to the host
	inHost   bool   // on the host's path
	left     bool   // the record says so
}

// message is an active message: a handler to run, its packet and its cause.
type message struct {
	ready   des.Time
	seq     uint64
	cause   traces.ID
	pkt     *packet
	handler traces.Event
	peer    uint8
}

// ring is a double-ended queue of messages that grows to what a run needs and
// then allocates no more.
type ring struct {
	buf  []message
	head int
	n    int
}

func (r *ring) grow() {
	b := make([]message, max(8, 2*len(r.buf)))
	for i := range r.n {
		b[i] = r.buf[(r.head+i)&(len(r.buf)-1)]
	}
	r.buf, r.head = b, 0
}

// newBack makes room at the back, for a message to be put there.
func (r *ring) newBack() *message {
	if r.n == len(r.buf) {
		r.grow()
	}
	r.n++
	return &r.buf[(r.head+r.n-1)&(len(r.buf)-1)]
}

// newFront is likewise at the front.
func (r *ring) newFront() *message {
	if r.n == len(r.buf) {
		r.grow()
	}
	r.head = (r.head - 1) & (len(r.buf) - 1)
	r.n++
	return &r.buf[r.head]
}

func (r *ring) pushBack(m message) { *r.newBack() = m }

func (r *ring) pushFront(m message) { *r.newFront() = m }

func (r *ring) front() *message { return &r.buf[r.head] }

func (r *ring) popFront() (m message) {
	r.popInto(&m)
	return m
}

func (r *ring) popInto(m *message) {
	*m = r.buf[r.head]
	r.buf[r.head].pkt = nil
	r.head = (r.head + 1) & (len(r.buf) - 1)
	r.n--
}
