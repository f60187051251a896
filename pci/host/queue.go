package host

import (
	"fmt"

	"spinesim/sim/des"
)

// Packet is a packet in host memory.
type Packet struct {
	ID      uint64   // number in the simulation
	Bytes   int      // length
	Card    uint8    // card that handed it up
	Arrived des.Time // when its last byte was in host memory
	Arg     uint64   // the owner's own
}

// Queue is the driver queue: first in, first out, of finite capacity. It
// allocates once.
type Queue struct {
	ring    []Packet
	first   int
	n       int
	deepest int
}

// NewQueue makes a queue for 1 to 1e6 packets.
func NewQueue(capacity int) (*Queue, error) {
	if capacity < 1 || capacity > 1e6 {
		return nil, fmt.Errorf("driver queue: capacity is %d packets, want 1 to 1000000", capacity)
	}
	return &Queue{ring: make([]Packet, capacity)}, nil
}

// Push puts a packet at the end; false means that the queue is full and the
// packet is lost.
func (q *Queue) Push(p Packet) bool {
	if q.n == len(q.ring) {
		return false
	}
	q.ring[(q.first+q.n)%len(q.ring)] = p
	q.n++
	q.deepest = max(q.deepest, q.n)
	return true
}

// Pop takes the oldest packet; ok is false when there is none.
func (q *Queue) Pop() (p Packet, ok bool) {
	if q.n == 0 {
		return Packet{}, false
	}
	p = q.ring[q.first]
	q.first = (q.first + 1) % len(q.ring)
	q.n--
	return p, true
}

// Len is how many packets wait, Cap how many can, Deepest how many ever did.
func (q *Queue) Len() int     { return q.n }
func (q *Queue) Cap() int     { return len(q.ring) }
func (q *Queue) Deepest() int { return q.deepest }
