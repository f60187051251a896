package host

import (
	"fmt"
	"math"

	"spinesim/sim/des"
)

// Notify is how the kernel learns of a packet.
type Notify uint8

// The ways.
const (
	NotifyInterrupt Notify = iota // an interrupt for every packet
	NotifyCoalesced               // an interrupt for the first of a busy spell; the driver then empties its queue
	NotifyPoll                    // the queue is looked at in fixed intervals
	NumNotify       = int(iota)
)

var notifyNames = [NumNotify]string{"interrupt", "coalesced", "poll"}

func (n Notify) String() string {
	if int(n) < NumNotify {
		return notifyNames[n]
	}
	return "unknown notification"
}

// MarshalText writes the name, for JSON.
func (n Notify) MarshalText() ([]byte, error) { return []byte(n.String()), nil }

// UnmarshalText reads the name.
func (n *Notify) UnmarshalText(b []byte) (err error) {
	*n, err = NotifyByName(string(b))
	return err
}

// NotifyByName finds a way of notification.
func NotifyByName(name string) (Notify, error) {
	for i, s := range notifyNames {
		if s == name {
			return Notify(i), nil
		}
	}
	return 0, fmt.Errorf("unknown notification %q, want interrupt, coalesced or poll", name)
}

// PathSpec describes the kernel's slow path. Clocks are the host processor's,
// for each packet unless said otherwise, each 0 to 1e8. DefaultPath gives
// values; change what differs.
type PathSpec struct {
	Processor Processor `json:"processor"`

	// QueuePackets is the driver queue's capacity, 1 to 1e6: packets in host
	// memory that the driver has not taken yet. One that finds it full is lost.
	QueuePackets int `json:"queue_packets"`

	// Notify says how the kernel learns of packets. Polls happen at multiples of
	// PollInterval (above 0 for NotifyPoll, at most a second).
	Notify       Notify   `json:"notify"`
	PollInterval des.Time `json:"poll_interval"`

	// InterruptLatency passes between a card's interrupt and the first
	// instruction of its handler on an idle processor, 0 to a second.
	// InterruptClocks is entry and exit; PollClocks one look at the queue.
	InterruptLatency des.Time `json:"interrupt_latency"`
	InterruptClocks  float64  `json:"interrupt_clocks"`
	PollClocks       float64  `json:"poll_clocks"`

	// DriverClocks takes a packet from the queue; AllocateClocks finds it a
	// kernel buffer.
	DriverClocks   float64 `json:"driver_clocks"`
	AllocateClocks float64 `json:"allocate_clocks"`

	// RegisterReads and RegisterWrites are accesses to the card's registers over
	// the bus, 0 to 1000 each, of RegisterRead and RegisterWrite time each, during
	// which the processor waits.
	RegisterReads  int      `json:"register_reads"`
	RegisterWrites int      `json:"register_writes"`
	RegisterRead   des.Time `json:"register_read"`
	RegisterWrite  des.Time `json:"register_write"`

	// Copies is how often the packet is copied, 0 to 8. The first copy reads what
	// a card wrote into memory, outside the caches; later ones find it in the
	// cache. CopyOffset is where a packet begins in its buffer, 0 to 63 bytes:
	// one that is no multiple of the word makes copies unaligned, as a 14-byte
	// link header does.
	Copies     int `json:"copies"`
	CopyOffset int `json:"copy_offset"`

	// Flush is when the pages that packets are copied to are made coherent.
	// Pages of them are used in turn, 1 to 1e6. Every MappedEvery-th packet's
	// page is then mapped into a process, every ExecutedEvery-th executed from;
	// 0 is never, as for packets that are only routed. Eagerly, each packet's
	// bytes are flushed where its page is mapped; lazily, and at execution, the
	// whole page, if it has been written to since.
	Flush         FlushPolicy `json:"flush"`
	Pages         int         `json:"pages"`
	MappedEvery   int         `json:"mapped_every"`
	ExecutedEvery int         `json:"executed_every"`

	// RouteClocks is the network stack: header checks, look-up, time to live.
	RouteClocks float64 `json:"route_clocks"`

	// BackClocks hands the packet to a card's driver again.
	BackClocks float64 `json:"back_clocks"`
}

// DefaultPath is the thesis's PC as a slow path. The machine is thesis p.107's.
// A register read of about 14 bus clocks (0.42 µs) and a write of about 4
// (0.12 µs) are known of such hosts. All else is chosen: the thesis says that
// the host's stack can route, not what it costs.
func DefaultPath() PathSpec {
	return PathSpec{
		Processor:        PentiumPro(),
		QueuePackets:     64,
		Notify:           NotifyInterrupt,
		PollInterval:     50 * des.Microsecond,
		InterruptLatency: 2 * des.Microsecond,
		InterruptClocks:  1000,
		PollClocks:       100,
		DriverClocks:     800,
		AllocateClocks:   300,
		RegisterReads:    1,
		RegisterWrites:   2,
		RegisterRead:     14 * 30 * des.Nanosecond,
		RegisterWrite:    4 * 30 * des.Nanosecond,
		Copies:           1,
		Flush:            FlushNever,
		Pages:            64,
		RouteClocks:      2000,
		BackClocks:       800,
	}
}

// Validate reports the first value out of range.
func (s PathSpec) Validate() error {
	if err := s.Processor.Validate(); err != nil {
		return fmt.Errorf("host path: %w", err)
	}
	if int(s.Notify) >= NumNotify {
		return fmt.Errorf("host path: %v %d", s.Notify, s.Notify)
	}
	if int(s.Flush) >= NumFlushPolicies {
		return fmt.Errorf("host path: %v %d", s.Flush, s.Flush)
	}
	for _, c := range []struct {
		what     string
		v        float64
		min, max float64
	}{
		{"queue", float64(s.QueuePackets), 1, 1e6},
		{"interrupt clocks", s.InterruptClocks, 0, 1e8},
		{"poll clocks", s.PollClocks, 0, 1e8},
		{"driver clocks", s.DriverClocks, 0, 1e8},
		{"allocate clocks", s.AllocateClocks, 0, 1e8},
		{"register reads", float64(s.RegisterReads), 0, 1000},
		{"register writes", float64(s.RegisterWrites), 0, 1000},
		{"register read time (ps)", float64(s.RegisterRead), 0, float64(des.Second)},
		{"register write time (ps)", float64(s.RegisterWrite), 0, float64(des.Second)},
		{"interrupt latency (ps)", float64(s.InterruptLatency), 0, float64(des.Second)},
		{"copies", float64(s.Copies), 0, 8},
		{"copy offset", float64(s.CopyOffset), 0, 63},
		{"pages", float64(s.Pages), 1, 1e6},
		{"mapped every", float64(s.MappedEvery), 0, math.MaxInt32},
		{"executed every", float64(s.ExecutedEvery), 0, math.MaxInt32},
		{"route clocks", s.RouteClocks, 0, 1e8},
		{"back clocks", s.BackClocks, 0, 1e8},
	} {
		if !(c.v >= c.min && c.v <= c.max) {
			return fmt.Errorf("host path: %s is %g, want %g to %g", c.what, c.v, c.min, c.max)
		}
	}
	if s.Notify == NotifyPoll && (s.PollInterval <= 0 || s.PollInterval > des.Second) {
		return fmt.Errorf("host path: poll interval is %v, want above 0 to 1 s", s.PollInterval)
	}
	return nil
}

// Part is a step of the slow path.
type Part uint8

// The parts, in the order in which a packet meets them.
const (
	PartNotify Part = iota // latency, interrupt or poll
	PartDriver
	PartRegisters
	PartAllocate
	PartCopy
	PartFlush
	PartRoute
	PartBack
	NumParts = int(iota)
)

var partNames = [NumParts]string{"notify", "driver", "registers", "allocate", "copy", "flush", "route", "back"}

func (p Part) String() string {
	if int(p) < NumParts {
		return partNames[p]
	}
	return "unknown part"
}

// Breakdown is the service time of a packet by part.
type Breakdown [NumParts]des.Time

// Total is the sum of the parts.
func (b Breakdown) Total() des.Time {
	var t des.Time
	for _, x := range b {
		t += x
	}
	return t
}

// MarshalJSON writes the parts by name, in order.
func (b Breakdown) MarshalJSON() ([]byte, error) {
	out := []byte{'{'}
	for i, t := range b {
		if i > 0 {
			out = append(out, ',')
		}
		out = fmt.Appendf(out, "%q:%q", Part(i), t)
	}
	return append(out, '}'), nil
}

// Path is the slow path at work: a single server whose times depend on what it
// served before. It is driven with times that do not decrease.
type Path struct {
	spec    PathSpec
	flags   *PageFlags
	until   des.Time // end of the service begun last
	served  uint64
	started bool
	parts   [NumParts]des.Time // summed over packets
}

// NewPath checks the description and makes an idle path.
func NewPath(spec PathSpec) (*Path, error) {
	if err := spec.Validate(); err != nil {
		return nil, err
	}
	return &Path{spec: spec, flags: NewPageFlags(spec.Flush, spec.Pages)}, nil
}

// Spec is the description that the path was made from.
func (p *Path) Spec() PathSpec { return p.spec }

// Service is the time that a packet's service takes if the kernel turns to it
// at now, which is when it arrived, or when the one before it was done. A
// packet that begins when the path has been idle wakes it up, and that time is
// in it: interrupt latency, or the wait for the next poll. A packet of up to a
// page is copied with the small copy, a page's worth as a page (UserCopy),
// longer ones page by page. Negative lengths count as 0. It does not
// allocate.
func (p *Path) Service(bytes int, now des.Time) des.Time {
	return p.Serve(bytes, now).Total()
}

// Serve is Service, by part.
func (p *Path) Serve(bytes int, now des.Time) Breakdown {
	s, cpu := &p.spec, &p.spec.Processor
	var b Breakdown
	idle := !p.started || now > p.until
	switch s.Notify {
	case NotifyInterrupt, NotifyCoalesced:
		if idle {
			b[PartNotify] = s.InterruptLatency
		}
		if idle || s.Notify == NotifyInterrupt {
			b[PartNotify] += cpu.Time(s.InterruptClocks)
		}
	case NotifyPoll:
		if idle {
			if late := now % s.PollInterval; late != 0 {
				b[PartNotify] = s.PollInterval - late
			}
		}
		b[PartNotify] += cpu.Time(s.PollClocks)
	}
	b[PartDriver] = cpu.Time(s.DriverClocks)
	b[PartRegisters] = des.Time(s.RegisterReads)*s.RegisterRead + des.Time(s.RegisterWrites)*s.RegisterWrite
	b[PartAllocate] = cpu.Time(s.AllocateClocks)
	bytes = max(bytes, 0)
	for i := range s.Copies {
		b[PartCopy] += cpu.Time(p.copyClocks(bytes, Cached{Source: i > 0, Destination: i > 0}))
	}
	b[PartFlush] = cpu.Time(p.flushClocks(bytes))
	b[PartRoute] = cpu.Time(s.RouteClocks)
	b[PartBack] = cpu.Time(s.BackClocks)
	p.started = true
	p.served++
	p.until = now + b.Total()
	for i, t := range b {
		p.parts[i] += t
	}
	return b
}

func (p *Path) copyClocks(bytes int, at Cached) float64 {
	var clocks float64
	for done := 0; done < bytes; {
		n := min(bytes-done, p.spec.Processor.PageBytes)
		// Offsets are in range: Validate has seen to it.
		_, c, _ := p.spec.Processor.UserCopy(0, p.spec.CopyOffset, n, at)
		clocks += c
		done += n
	}
	return clocks
}

// flushClocks is the cost of coherence for the packet that was just copied.
func (p *Path) flushClocks(bytes int) float64 {
	s := &p.spec
	page := int(p.served % uint64(s.Pages))
	p.flags.Modify(page)
	nth := func(every int) bool { return every > 0 && (p.served+1)%uint64(every) == 0 }
	mapped := nth(s.MappedEvery) && p.flags.Map(page)
	executed := nth(s.ExecutedEvery) && p.flags.Execute(page)
	if !mapped && !executed {
		return 0
	}
	if s.Flush != FlushEager {
		bytes = s.Processor.PageBytes
	}
	// The copy has just left the lines dirty.
	return s.Processor.Flush(0, bytes, 1).Clocks
}

// Idle reports whether the path has nothing in service at now.
func (p *Path) Idle(now des.Time) bool { return !p.started || now >= p.until }

// Spent is the service time given so far, by part, and the number of packets.
func (p *Path) Spent() (Breakdown, uint64) { return p.parts, p.served }
