package host

import (
	"fmt"

	"spinesim/sim/des"
)

// Priority of the host's events: that of hardware, behind the ends of a card
// processor's boxes at the same instant.
const Priority des.Priority = 128

// Client is told when the kernel has done with a packet. It may Offer more.
type Client interface {
	Routed(now des.Time, p Packet, b Breakdown) error
}

// Server is what serves packets one by one: a Path, or a user's own. Service is
// asked when service begins, with times that do not decrease.
type Server interface {
	Service(bytes int, now des.Time) des.Time
}

// Host runs the slow path on an event engine: a driver queue in front of one
// server.
type Host struct {
	engine *des.Engine
	server Server
	path   *Path // server, where it is one, for its parts
	client Client
	queue  *Queue
	timer  des.Timer

	current Packet
	parts   Breakdown
	serving bool
	stats   Stats
}

// Stats of a Host. A packet is offered, then lost or served or still inside.
type Stats struct {
	Offered uint64   `json:"offered"`
	Lost    uint64   `json:"lost"` // driver queue full
	Served  uint64   `json:"served"`
	Busy    des.Time `json:"busy"`   // in service, waking up included
	Waited  des.Time `json:"waited"` // sum over served packets, from arrival to service
	Deepest int      `json:"deepest_queue"`
}

// New makes a host with a Path of the given description.
func New(spec PathSpec, e *des.Engine, c Client) (*Host, error) {
	path, err := NewPath(spec)
	if err != nil {
		return nil, err
	}
	h, err := NewWithServer(path, spec.QueuePackets, e, c)
	if err != nil {
		return nil, err
	}
	h.path = path
	return h, nil
}

// NewWithServer makes a host with any server.
func NewWithServer(s Server, queuePackets int, e *des.Engine, c Client) (*Host, error) {
	q, err := NewQueue(queuePackets)
	if err != nil {
		return nil, fmt.Errorf("host: %w", err)
	}
	h := &Host{engine: e, server: s, client: c, queue: q}
	h.timer.Init(h, Priority, 0)
	e.Adopt(&h.timer)
	return h, nil
}

// Offer hands up a packet whose last byte is in host memory at now, the
// engine's present time. accepted is false when the driver queue is full: the
// packet is lost. The packet in service is out of the queue.
func (h *Host) Offer(now des.Time, p Packet) (accepted bool, err error) {
	h.stats.Offered++
	p.Arrived = now
	if !h.queue.Push(p) {
		h.stats.Lost++
		return false, nil
	}
	if !h.serving {
		return true, h.begin(now)
	}
	return true, nil
}

// begin takes the oldest packet into service; there is one.
func (h *Host) begin(now des.Time) error {
	h.current, h.serving = h.queue.Pop()
	if !h.serving {
		return nil
	}
	h.stats.Waited += now - h.current.Arrived
	var d des.Time
	if h.path != nil {
		h.parts = h.path.Serve(h.current.Bytes, now)
		d = h.parts.Total()
	} else {
		d = h.server.Service(h.current.Bytes, now)
	}
	if d < 0 {
		return fmt.Errorf("host: service of packet %d at %v takes %v", h.current.ID, now, d)
	}
	h.stats.Busy += d
	if err := h.engine.Arm(&h.timer, now+d); err != nil {
		return fmt.Errorf("host: service of packet %d at %v: %w", h.current.ID, now, err)
	}
	return nil
}

// Handle ends a service. It is the engine's to call.
func (h *Host) Handle(now des.Time, _ uint64) error {
	done, parts := h.current, h.parts
	h.stats.Served++
	// The next service begins before the client hears of this one, so that what
	// the client offers finds the queue as it then is.
	if err := h.begin(now); err != nil {
		return err
	}
	return h.client.Routed(now, done, parts)
}

// Serving reports whether a packet is in service, Waiting how many wait.
func (h *Host) Serving() bool { return h.serving }
func (h *Host) Waiting() int  { return h.queue.Len() }

// Stats so far.
func (h *Host) Stats() Stats {
	s := h.stats
	s.Deepest = h.queue.Deepest()
	return s
}
