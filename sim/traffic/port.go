package traffic

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"spinesim/lanai"
	"spinesim/sim/des"
	"spinesim/traces"
)

// ErrOrder reports a source whose arrivals go back in time.
var ErrOrder = errors.New("arrivals go back in time")

// ErrEmpty reports a frame taken from an empty FIFO.
var ErrEmpty = errors.New("FIFO is empty")

// PacketIDs numbers the packets of a run from 1 on, in the order in which they
// arrive at any port. The zero value is ready.
type PacketIDs struct{ last uint64 }

// Next gives the next number.
func (c *PacketIDs) Next() uint64 { c.last++; return c.last }

// Last is the number given last; 0 for none.
func (c *PacketIDs) Last() uint64 { return c.last }

// Waker is woken when a frame has become head of an empty FIFO.
type Waker interface {
	Wake(now des.Time) error
}

// PortSpec describes the FIFO upstream of a card: that of the switch's port and
// of the sender.
type PortSpec struct {
	Card uint8
	// Capacity in packets, at least 1 [16, chosen]. A packet holds its slot
	// until its last byte is in the card. More: fewer losses at the same rate,
	// longer waiting.
	Capacity int
	// Limit ends the traffic after so many packets have been offered, lost
	// ones included and skipped ones not; 0: with the source.
	Limit uint64
	// Saturating ignores the source's times: the next packet comes as soon as
	// one has left, so that the FIFO is never empty, never full, and loses
	// nothing. Needs a capacity of 2 or more.
	Saturating bool
}

// Validate tells what is wrong with s.
func (s PortSpec) Validate() error {
	least := 1
	if s.Saturating {
		least = 2
	}
	if s.Capacity < least || s.Capacity > 1<<20 {
		return fmt.Errorf("port of card %d: FIFO of %d packets, want %d to %d", s.Card, s.Capacity, least, 1<<20)
	}
	return nil
}

// SkipCount says how many packets of a source could not enter, and why.
type SkipCount struct {
	Reason string
	Count  uint64
}

// Counts of a port. Offered = Lost + Delivered + Waiting.
type Counts struct {
	Offered, OfferedBytes     uint64 // arrived at the FIFO
	Lost, LostBytes           uint64 // FIFO full
	Delivered, DeliveredBytes uint64 // taken by the card
	Waiting                   int    // in the FIFO now, one that is being taken in included
	Skipped                   []SkipCount
}

// prioPort is the priority of arrivals, that of hardware events.
const prioPort = lanai.PrioHardware

// Port is a FIFO in front of a card and implements lanai.Upstream. It records
// a KindEnter for every packet offered, a KindLeave for every one lost, and
// the FIFO's level when it changes.
type Port struct {
	spec PortSpec
	src  Source
	e    *des.Engine
	rec  *traces.Recorder
	pool *FramePool
	ids  *PacketIDs
	rx   Waker

	timer des.Timer
	next  Arrival
	ended bool

	ring []*lanai.Frame
	head int
	n    int

	counts  Counts
	skipped []SkipCount
}

var _ lanai.Upstream = (*Port)(nil)

// NewPort makes a port. rec may be nil. Frames come from pool and belong to
// the card, and whoever it hands them to, once popped; the last one puts them
// back. Only lost frames are put back by the port.
func NewPort(spec PortSpec, src Source, e *des.Engine, rec *traces.Recorder, pool *FramePool, ids *PacketIDs) (*Port, error) {
	if err := spec.Validate(); err != nil {
		return nil, err
	}
	if src == nil || e == nil || pool == nil || ids == nil {
		return nil, fmt.Errorf("port of card %d: source, engine, frame pool and packet numbers must be given", spec.Card)
	}
	p := &Port{spec: spec, src: src, e: e, rec: rec, pool: pool, ids: ids, ring: make([]*lanai.Frame, spec.Capacity)}
	p.timer.Init(p, prioPort, 0)
	e.Adopt(&p.timer)
	return p, nil
}

// Start begins the traffic at the engine's present time; rx is woken whenever
// the FIFO ceases to be empty.
func (p *Port) Start(rx Waker) error {
	p.rx = rx
	if !p.spec.Saturating {
		return p.await()
	}
	if err := p.refill(p.e.Now()); err != nil {
		return err
	}
	p.level(p.e.Now())
	if p.n == 0 {
		return nil
	}
	return p.rx.Wake(p.e.Now())
}

// fetch gets the next packet that may enter into p.next, or ends the traffic.
func (p *Port) fetch() error {
	if p.spec.Limit > 0 && p.counts.Offered >= p.spec.Limit {
		p.ended = true
		return nil
	}
	for {
		ok, err := p.src.Next(&p.next)
		if err != nil {
			p.ended = true
			return fmt.Errorf("port of card %d, after %d packets: %w", p.spec.Card, p.counts.Offered, err)
		}
		if !ok {
			p.ended = true
			return nil
		}
		if p.next.Skip == "" {
			return nil
		}
		p.skip(p.next.Skip)
	}
}

func (p *Port) skip(reason string) {
	for i := range p.skipped {
		if p.skipped[i].Reason == reason {
			p.skipped[i].Count++
			return
		}
	}
	p.skipped = append(p.skipped, SkipCount{reason, 1})
}

// await arms the timer for the next arrival.
func (p *Port) await() error {
	if err := p.fetch(); err != nil || p.ended {
		return err
	}
	if p.next.At < p.e.Now() {
		return fmt.Errorf("port of card %d, packet %d of the source: at %v, after %v: %w",
			p.spec.Card, p.counts.Offered+1, p.next.At, p.e.Now(), ErrOrder)
	}
	return p.e.Arm(&p.timer, p.next.At)
}

// Handle is a packet's arrival; the engine calls it.
func (p *Port) Handle(now des.Time, _ uint64) error {
	wasEmpty := p.n == 0
	if p.admit(now) {
		p.level(now)
	}
	// Everything is in its place before the card hears of it, since it may
	// answer at once.
	if err := p.await(); err != nil {
		return err
	}
	if wasEmpty {
		return p.rx.Wake(now)
	}
	return nil
}

// admit puts p.next into the FIFO, or loses it.
func (p *Port) admit(now des.Time) bool {
	a := &p.next
	f := p.pool.Get(a.Bytes, len(a.Data))
	copy(f.Data, a.Data)
	f.ID, f.Arrived, f.Ingress, f.Egress = p.ids.Next(), now, p.spec.Card, traces.NoCard
	f.Cause = p.rec.NextID(p.spec.Card)
	p.counts.Offered++
	p.counts.OfferedBytes += uint64(f.Bytes)
	r := traces.Record{
		Start: now, End: now, Ready: now, ID: f.Cause, Packet: f.ID, Bytes: uint32(f.Bytes),
		Kind: traces.KindEnter, Event: traces.NoEvent, Card: p.spec.Card, Peer: traces.NoCard, Queue: traces.NoQueue,
	}
	p.rec.Add(&r)
	if p.n == len(p.ring) {
		p.counts.Lost++
		p.counts.LostBytes += uint64(f.Bytes)
		r.ID, r.Cause = p.rec.NextID(p.spec.Card), f.Cause
		r.Kind, r.Peer = traces.KindLeave, p.spec.Card
		r.Verdict, r.Reason = traces.VerdictDropped, traces.ReasonFIFOFull
		p.rec.Add(&r)
		p.pool.Put(f)
		return false
	}
	p.ring[(p.head+p.n)%len(p.ring)] = f
	p.n++
	return true
}

// level records how many packets wait.
func (p *Port) level(now des.Time) {
	if p.rec == nil {
		return
	}
	rec := p.rec.Next(now, p.spec.Card)
	rec.Kind, rec.Event = traces.KindLevel, traces.LevelFIFO
	rec.Start, rec.Ready, rec.Count = now, now, uint32(p.n)
}

// refill keeps a saturating port's level: one packet behind the head, unless
// that would fill the FIFO.
func (p *Port) refill(now des.Time) error {
	for p.n < min(2, len(p.ring)-1) && !p.ended {
		if err := p.fetch(); err != nil {
			return err
		}
		if !p.ended {
			p.admit(now)
		}
	}
	return nil
}

// Head is the oldest waiting frame, nil if none. It stays in its place.
func (p *Port) Head() *lanai.Frame {
	if p.n == 0 {
		return nil
	}
	return p.ring[p.head]
}

// Pop frees the head's slot: its last byte is in the card, or it was thrown
// away there. The error is ErrEmpty when no frame waits.
func (p *Port) Pop(now des.Time) error {
	if p.n == 0 {
		return fmt.Errorf("port of card %d at %v: %w", p.spec.Card, now, ErrEmpty)
	}
	before := p.n
	f := p.ring[p.head]
	p.ring[p.head] = nil
	if p.head++; p.head == len(p.ring) {
		p.head = 0
	}
	p.n--
	p.counts.Delivered++
	p.counts.DeliveredBytes += uint64(f.Bytes)
	if p.spec.Saturating {
		if err := p.refill(now); err != nil {
			return err
		}
	}
	if p.n != before {
		p.level(now)
	}
	return nil
}

// Ended tells that no packet will be offered any more.
func (p *Port) Ended() bool { return p.ended }

// Drained tells that no packet will be offered any more and none waits.
func (p *Port) Drained() bool { return p.ended && p.n == 0 }

// Quiet tells that no packet will be offered until one is taken.
func (p *Port) Quiet() bool { return p.ended || p.spec.Saturating }

// Waiting yields the frames in the FIFO, oldest first.
func (p *Port) Waiting(yield func(*lanai.Frame) bool) {
	for i := range p.n {
		if !yield(p.ring[(p.head+i)%len(p.ring)]) {
			return
		}
	}
}

// Counts so far, with the reasons for skipping in alphabetical order.
func (p *Port) Counts() Counts {
	c := p.counts
	c.Waiting = p.n
	c.Skipped = slices.Clone(p.skipped)
	slices.SortFunc(c.Skipped, func(a, b SkipCount) int { return cmp.Compare(a.Reason, b.Reason) })
	return c
}
