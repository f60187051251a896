package pci

import (
	"errors"
	"fmt"
	"math"

	"spinesim/sim/des"
	"spinesim/traces"
)

// PrioHardware is the priority of the bus's events: at one instant the
// processors' boxes end (priorities below, by card) before anything arrives.
const PrioHardware des.Priority = 128

// Errors that Start and the Attach functions wrap.
var (
	ErrBusy       = errors.New("a transfer is outstanding")
	ErrNoMaster   = errors.New("all masters are taken")
	ErrAttachLate = errors.New("the bus has started")
)

// Bus is one PCI bus segment with its arbiter.
type Bus struct {
	spec    Spec
	clk     des.Clock
	engine  *des.Engine
	rec     *traces.Recorder
	watcher Watcher
	told    Burst // what the watcher is shown
	timer   des.Timer

	width  int64 // bytes a data phase
	words  int32 // 32-bit words a data phase
	grant  int64 // Spec.GrantLatency
	ltimer int64 // Spec.LatencyTimer
	phases int64 // longest burst in data phases

	windows []window  // by base
	masters []*Master // by index

	cur     burst
	free    int64 // first clock not taken by a finished burst
	last    int   // index of the last owner, -1 before the first
	busy    bool  // inside the handler: Start must not plan
	total   Clocks
	started bool
}

type window struct {
	name   string
	card   uint8
	base   int64
	end    int64 // one past the last byte
	popEnd int64 // one past the last byte with something behind it
	spec   TargetSpec
	t      Target
}

// Master is a device's REQ#/GNT# pair.
type Master struct {
	bus     *Bus
	i       Initiator
	watcher DataWatcher // i, if it is one
	name    string
	card    uint8
	idx     int

	t *Transfer // outstanding, or nil

	pos     int64 // next bus address
	applied int64 // first bus address whose bytes have not been handed over
	first   bool  // no address phase yet

	req      int64 // clock from which the present wait counts
	ask      int64 // clock in which REQ# is seen; later than req after a retry
	seen     int64 // first clock of an address phase by the arbiter's leave
	blocked  int64 // clocks from ask on in which others had the bus
	delayed  bool  // the target prepares the access at pos
	ready    int64 // when delayed: clock of its first data
	tries    int   // retries since the last data phase
	firstClk int64 // first address clock

	use Owner
}

// New returns a bus driven by e that reports its transfers to rec (which may
// be nil). It fails when the spec does not validate.
func New(spec Spec, e *des.Engine, rec *traces.Recorder) (*Bus, error) {
	if err := spec.Validate(); err != nil {
		return nil, err
	}
	if e == nil {
		return nil, errors.New("pci: a bus needs an engine")
	}
	clk, err := des.NewClock(spec.Clock, 0)
	if err != nil {
		return nil, fmt.Errorf("pci: %w", err)
	}
	b := &Bus{
		spec:   spec,
		clk:    clk,
		engine: e,
		rec:    rec,
		width:  int64(spec.Width / 8),
		words:  int32(spec.Width / 32),
		grant:  int64(spec.GrantLatency),
		ltimer: int64(spec.LatencyTimer),
		phases: math.MaxInt64,
		last:   -1,
	}
	if spec.BurstBytes > 0 {
		b.phases = int64(spec.BurstBytes) / b.width
	}
	b.timer.Init(b, PrioHardware, 0)
	e.Adopt(&b.timer)
	return b, nil
}

// Spec returns what the bus was made from.
func (b *Bus) Spec() Spec { return b.spec }

// ClockAt returns the number of the first clock edge at or after t, where a
// request made at t is seen.
func (b *Bus) ClockAt(t des.Time) int64 { return b.clk.EdgeAtOrAfter(t) }

// TimeOf returns the time of clock edge n.
func (b *Bus) TimeOf(n int64) des.Time { return b.clk.Edge(n) }

// Watch makes w hear of every burst; nil ends that.
func (b *Bus) Watch(w Watcher) { b.watcher = w }

// AttachMaster gives the device i a REQ#/GNT# pair. card names it in records.
// Rotation follows the order of attachment. It fails when MaxMasters are
// attached or the first transfer has started.
func (b *Bus) AttachMaster(name string, card uint8, i Initiator) (*Master, error) {
	if i == nil {
		return nil, fmt.Errorf("pci: master %q has no device", name)
	}
	if len(b.masters) == MaxMasters {
		return nil, fmt.Errorf("pci: master %q: %w (%d)", name, ErrNoMaster, MaxMasters)
	}
	if b.started {
		return nil, fmt.Errorf("pci: master %q: %w", name, ErrAttachLate)
	}
	m := &Master{bus: b, i: i, name: name, card: card, idx: len(b.masters)}
	m.watcher, _ = i.(DataWatcher)
	m.use.Name, m.use.Card = name, card
	b.masters = append(b.masters, m)
	return m, nil
}

// Devices yields the devices of all masters, in the order of attachment.
func (b *Bus) Devices(yield func(Initiator) bool) {
	for _, m := range b.masters {
		if !yield(m.i) {
			return
		}
	}
}

// AttachTarget gives t the size bytes of bus addresses from base on, both
// multiples of 16. It returns a *SpecError when they are not, when the window
// passes 4 GB or overlaps another, or when the spec does not validate.
func (b *Bus) AttachTarget(name string, card uint8, base, size uint32, spec TargetSpec, t Target) error {
	if t == nil {
		return fmt.Errorf("pci: target %q has no device", name)
	}
	if b.started {
		return fmt.Errorf("pci: target %q: %w", name, ErrAttachLate)
	}
	if err := spec.Validate(); err != nil {
		return fmt.Errorf("target %q: %w", name, err)
	}
	w := window{name: name, card: card, base: int64(base), end: int64(base) + int64(size), spec: spec, t: t}
	w.popEnd = w.end
	if spec.Populated != 0 {
		w.popEnd = w.base + int64(spec.Populated)
	}
	var err error
	switch {
	case size == 0:
		err = bad("size", "the window is empty")
	case base%16 != 0 || size%16 != 0:
		err = bad("base, size", "%#x bytes from %#x; both must be multiples of 16", size, base)
	case w.end > 1<<32:
		err = bad("size", "%#x bytes from %#x pass 4 GB", size, base)
	case spec.Populated > size || spec.Populated%16 != 0:
		err = bad("Populated", "%#x bytes; must be a multiple of 16 within the window of %#x", spec.Populated, size)
	}
	if err != nil {
		return fmt.Errorf("target %q: %w", name, err)
	}
	at := 0
	for i := range b.windows {
		o := &b.windows[i]
		if w.base < o.end && o.base < w.end {
			return fmt.Errorf("target %q: %w", name, bad("base, size", "%#x bytes from %#x overlap the window of %q, %#x bytes from %#x", size, base, o.name, o.end-o.base, o.base))
		}
		if o.base < w.base {
			at = i + 1
		}
	}
	b.windows = append(b.windows, window{})
	copy(b.windows[at+1:], b.windows[at:])
	b.windows[at] = w
	return nil
}

// Name returns the master's name.
func (m *Master) Name() string { return m.name }

// Index returns the master's place in the rotation, from 0.
func (m *Master) Index() int { return m.idx }

// Busy tells whether a transfer is outstanding.
func (m *Master) Busy() bool { return m.t != nil }
