package traces

import (
	"fmt"

	"spinesim/sim/des"
	"spinesim/sim/stats"
)

// DefaultChainHandlers is how long the five handlers of one DMA chain take
// when nothing comes between them: 100 + 4·66 cycles of 30 ns, the costs that
// the model starts from (chosen).
const DefaultChainHandlers = 364 * 30 * des.Nanosecond

// MeasureSpec says how Measures looks at a record. The zero value is ready.
type MeasureSpec struct {
	// From is the start of the observed span; what lies before it counts in no
	// share of time. 0 suits a whole run; a record cut to a window needs the
	// window's start.
	From des.Time
	// ChainHandlers is the time one uninterrupted DMA chain's handlers take on
	// this machine. An engine that idles longer while a packet waits for it is
	// in the slow state. 0 means DefaultChainHandlers; more makes fewer spells.
	ChainHandlers des.Time
	// BusPeriod is one bus clock, by which clocks held become time. 0 means
	// 30 ns (33⅓ MHz).
	BusPeriod des.Time
	// SampleEvery is the spacing of the backlog's samples for its spectrum, 0
	// for 20 µs (chosen): periods from twice that up to 2,048 times that can
	// be told.
	SampleEvery des.Time
	// Level of confidence of every interval, 0 for 0.95.
	Level float64
}

// maxLanes bounds the ingress cards, and with them the memory: 3 MB each. A
// PCI bus has six masters.
const maxLanes = 32

// maxMeasured is the latest time that is measured: 26 days, far enough from
// the end of des.Time for sums.
const maxMeasured = des.MaxTime / 4

func (s MeasureSpec) withDefaults() (MeasureSpec, error) {
	if s.From > maxMeasured || s.BusPeriod > des.Second || s.SampleEvery > des.Second || s.ChainHandlers > maxMeasured {
		return s, fmt.Errorf("measures: time out of range in %+v", s)
	}
	if s.From < 0 || s.ChainHandlers < 0 || s.BusPeriod < 0 || s.SampleEvery < 0 {
		return s, fmt.Errorf("measures: negative time in %+v", s)
	}
	if s.ChainHandlers == 0 {
		s.ChainHandlers = DefaultChainHandlers
	}
	if s.BusPeriod == 0 {
		s.BusPeriod = 30 * des.Nanosecond
	}
	if s.SampleEvery == 0 {
		s.SampleEvery = 20 * des.Microsecond
	}
	if s.Level == 0 {
		s.Level = 0.95
	}
	if !(s.Level > 0 && s.Level < 1) {
		return s, fmt.Errorf("measures: level of confidence %g, want between 0 and 1", s.Level)
	}
	return s, nil
}

// Measures is a Sink that computes every measure of a run while it goes by.
// Memory is bounded by the number of cards and of packets inside, and after
// the first records of a card it allocates nothing.
type Measures struct {
	spec MeasureSpec

	cards   [256]*cardMeasure
	lanes   int // of those, ingress cards
	packets packetRing

	received, forwarded, toHost uint64
	copies                      uint64
	dropped, handed, returned   [NumReasons]uint64 // handed to the host, returned by it
	stranded                    [NumReasons]uint64

	// Means over all ingress cards; their histograms are merged at the end.
	gap, ingress, total, upstream, dmaStep, occupancy, transfer stats.Batches

	last des.Time // End of the last record
	done *Result
}

// NewMeasures returns measures that have seen nothing; the error names a value
// of the spec that makes no sense.
func NewMeasures(spec MeasureSpec) (*Measures, error) {
	spec, err := spec.withDefaults()
	if err != nil {
		return nil, err
	}
	m := &Measures{spec: spec}
	m.packets.init(m.closed)
	return m, nil
}

// cardMeasure is what is summed up of one card.
type cardMeasure struct {
	card uint8

	handlers, search, idle des.Time // processor: boxes, polls that look for something, polls with nothing to find
	events                 [NumEvents + 1]eventTotal
	polls, hits            uint64
	queueHits              [8]uint64
	runStart, runEnd       des.Time // a run of polls that found something, until its handler tells since when
	runOpen                bool

	dmaBusy, dmaWait, receive, send des.Time
	busHeld                         des.Time
	transfers                       [NumEvents + 1]eventTotal
	waits                           [NumReasons]eventTotal
	waiting                         openWait

	lane *lane // nil until a packet enters here
}

type eventTotal struct {
	n    uint64
	time des.Time
}

func (t *eventTotal) add(d des.Time) { t.n++; t.time += d }

func (m *Measures) card(n uint8) *cardMeasure {
	c := m.cards[n]
	if c == nil {
		c = &cardMeasure{card: n}
		m.cards[n] = c
	}
	return c
}

// ingressLane is the card's lane, made when the first packet needs it.
func (m *Measures) ingressLane(n uint8) (*lane, error) {
	c := m.card(n)
	if c.lane == nil {
		if m.lanes == maxLanes {
			return nil, fmt.Errorf("measures: card %d is the %dth that packets enter by, want at most %d", n, m.lanes+1, maxLanes)
		}
		l, err := newLane(m, n)
		if err != nil {
			return nil, err
		}
		m.lanes++
		c.lane = l
	}
	return c.lane, nil
}

// within is the part of a span that lies in the observed time.
func (m *Measures) within(start, end des.Time) des.Time {
	return max(0, end-max(start, m.spec.From))
}

// Record takes one record. The error names a record that does not follow the
// one before it, or that ends before it starts; such a stream should be
// looked at with a Validator.
func (m *Measures) Record(r *Record) error {
	if r.End < m.last || r.Start > r.End || r.Start < 0 {
		return fmt.Errorf("measures: %v record of card %d from %v to %v, after one that ended at %v: %w",
			r.Kind, r.Card, r.Start, r.End, m.last, ErrOrder)
	}
	if r.End > maxMeasured {
		return fmt.Errorf("measures: %v record of card %d ends at %v, want at most %v", r.Kind, r.Card, r.End, maxMeasured)
	}
	if m.done != nil {
		return fmt.Errorf("measures: record after Finish: %w", ErrOrder)
	}
	m.last = r.End
	switch r.Kind {
	case KindLevel:
		if r.Event == LevelBacklog {
			l, err := m.ingressLane(r.Card)
			if err != nil {
				return err
			}
			return l.setBacklog(r.End, r.Count)
		}
		if l := m.card(r.Card).lane; l != nil {
			switch r.Event {
			case LevelBuffers:
				return l.buffers.Set(int64(r.End), float64(r.Count))
			case LevelFIFO:
				return l.fifo.Set(int64(r.End), float64(r.Count))
			}
		}
	case KindBox:
		return m.box(r)
	case KindPolls:
		m.pollRun(r)
	case KindTransfer:
		m.transferEnd(r)
	case KindReceive:
		m.card(r.Card).receive += m.within(r.Start, r.End)
		if s := m.packets.get(r.Packet); s != nil {
			s.units[unitReceive] += r.End - r.Start
		}
	case KindSend:
		m.card(r.Card).send += m.within(r.Start, r.End)
		if s := m.packets.get(r.Packet); s != nil {
			s.units[unitSend] += r.End - r.Start
		}
	case KindWait:
		m.wait(r)
	case KindEnter:
		m.received++
		l, err := m.ingressLane(r.Card)
		if err != nil {
			return err
		}
		l.received++
		if s := m.packets.claim(r.Packet); s != nil {
			s.enter, s.ingress = r.End, r.Card
		}
	case KindCopy:
		m.copies++
	case KindLeave:
		return m.leave(r)
	case KindDepart:
		return m.depart(r)
	}
	return nil
}

// records is Record for many; the error is the first.
func (m *Measures) records(rs []Record) error {
	var first error
	for i := range rs {
		if err := m.Record(&rs[i]); err != nil && first == nil {
			first = err
		}
	}
	return first
}

func (m *Measures) box(r *Record) error {
	c := m.card(r.Card)
	d := r.End - r.Start
	busy := m.within(r.Start, r.End)
	c.handlers += busy
	ev := r.Event
	if int(ev) >= len(c.events) {
		ev = NoEvent
	}
	c.events[ev].add(d)
	if c.runOpen {
		c.closeRun(m, r.Ready)
	}
	c.endWait(ev, r.Packet, r.Start, r.Ready)
	step := eventSteps[ev]
	s := m.packets.get(r.Packet)
	if s != nil {
		s.handlers[step] += d
	}
	switch ev {
	case RxCheckHeader:
		l, err := m.ingressLane(r.Card)
		if err != nil {
			return err
		}
		if s == nil {
			s = m.packets.claim(r.Packet)
			if s != nil {
				s.handlers[step] += d
			}
		}
		if s != nil {
			s.rx, s.ingress = r.Start, r.Card
			if s.enter >= 0 {
				l.upstream.add(r.Start - s.enter)
				m.upstream.Add(float64(r.Start - s.enter))
			}
		}
	case PeerToPeerStart:
		if _, err := m.ingressLane(r.Card); err != nil {
			return err
		}
		if s != nil {
			s.start = r.Start
		}
	case FreeBuffer:
		if s != nil {
			s.freed = true
			m.packets.freed = true
			if s.left != VerdictNone {
				m.packets.close(s)
			}
		}
	}
	if c.lane != nil {
		entered := des.Time(-1)
		if s != nil {
			entered = s.enter
		}
		return c.lane.processor(r.Start, r.End, entered, r.Packet, ev, stepClass[step])
	}
	return nil
}

// wait counts a wait when it is known until when its reason held.
func (m *Measures) wait(r *Record) {
	if int(r.Reason) >= NumReasons {
		return
	}
	c := m.card(r.Card)
	c.endWait(NoEvent, 0, 0, 0)
	c.waiting.begin(r)
	if ready, ok := c.waiting.settled(); ok {
		c.addWait(ready)
	}
}

// endWait ends a wait that is open with the record of a handler.
func (c *cardMeasure) endWait(ev Event, packet uint64, start, ready des.Time) {
	if c.waiting.open {
		c.addWait(c.waiting.until(ev, packet, start, ready))
	}
}

// addWait splits the open wait: from ready on the packet waited for the
// dispatcher only.
func (c *cardMeasure) addWait(ready des.Time) {
	w := &c.waiting
	w.open = false
	c.waits[w.reason].add(ready - w.start)
	if ready < w.end {
		c.waits[ReasonLowerPriority].add(w.end - ready)
	}
}

// pollRun counts a run. Time that a run spends before the message it finds is
// ready is idle; only the following handler's record tells when that was.
func (m *Measures) pollRun(r *Record) {
	c := m.card(r.Card)
	if c.runOpen {
		c.closeRun(m, c.runEnd)
	}
	c.polls += uint64(r.Count)
	if r.Queue != NoQueue {
		c.hits++
		if int(r.Queue) < len(c.queueHits) {
			c.queueHits[r.Queue]++
		}
		c.runOpen, c.runStart, c.runEnd = true, r.Start, r.End
	} else {
		c.idle += m.within(r.Start, r.End)
	}
	if c.lane != nil {
		// A lane cannot fail on polls: only levels and departures can.
		_ = c.lane.processor(r.Start, r.End, -1, 0, NoEvent, classPolls)
	}
}

func (c *cardMeasure) closeRun(m *Measures, ready des.Time) {
	ready = min(max(ready, c.runStart), c.runEnd)
	c.idle += m.within(c.runStart, ready)
	c.search += m.within(ready, c.runEnd)
	c.runOpen = false
}

func (m *Measures) transferEnd(r *Record) {
	c := m.card(r.Card)
	ready := min(max(r.Ready, 0), r.Start)
	c.dmaWait += m.within(ready, r.Start)
	c.dmaBusy += m.within(r.Start, r.End)
	// Clocks held include the idle one behind End.
	held := r.End - r.Start
	if r.Cycles > 0 && r.Cycles <= uint64(r.End/m.spec.BusPeriod)+1 {
		held = des.Time(r.Cycles) * m.spec.BusPeriod
	}
	if r.End >= m.spec.From {
		c.busHeld += held
	}
	ev := r.Event
	if int(ev) >= len(c.transfers) {
		ev = NoEvent
	}
	c.transfers[ev].add(r.End - r.Start)
	if s := m.packets.get(r.Packet); s != nil {
		unit := unitHost
		switch ev {
		case TransferBody:
			unit = unitBody
		case TransferHeader:
			unit = unitHeader
		case TransferAck:
			unit = unitAck
		}
		s.units[unit] += r.End - r.Start
		s.units[unitBusWait] += r.Start - ready
	}
	if c.lane != nil {
		c.lane.engine(ready, r.Start, r.End, r.Packet)
	}
}

func (m *Measures) depart(r *Record) error {
	l, err := m.ingressLane(r.Card)
	if err != nil {
		return err
	}
	if l.departed > 0 {
		gap := r.End - l.lastDepart
		l.gap.add(gap)
		m.gap.Add(float64(gap))
	}
	l.departed++
	l.lastDepart = r.End
	rx := des.Time(-1)
	if s := m.packets.get(r.Packet); s != nil {
		if s.rx >= 0 {
			rx = s.rx
			l.ingress.add(r.End - rx)
			m.ingress.Add(float64(r.End - rx))
		}
		if s.start >= 0 {
			l.dmaStep.add(r.End - s.start)
			m.dmaStep.Add(float64(r.End - s.start))
		}
	}
	l.depart(r.End, r.Packet, rx)
	return nil
}

func (m *Measures) leave(r *Record) error {
	s := m.packets.get(r.Packet)
	var l *lane
	if s != nil {
		l = m.card(s.ingress).lane
	} else if int(r.Peer) < len(m.cards) && m.cards[r.Peer] != nil {
		l = m.cards[r.Peer].lane
	}
	reason := r.Reason
	if int(reason) >= NumReasons {
		reason = ReasonNone
	}
	switch r.Verdict {
	case VerdictForwarded:
		m.forwarded++
		if reason != ReasonNone {
			m.returned[reason]++
		}
		if l != nil {
			l.forwarded++
			if s != nil && s.enter >= 0 {
				l.total.add(r.End - s.enter)
				m.total.Add(float64(r.End - s.enter))
			}
		}
	case VerdictToHost:
		m.toHost++
		m.handed[reason]++
		if l != nil {
			l.toHost++
		}
	case VerdictDropped:
		m.dropped[reason]++
		if l != nil {
			l.dropped[reason]++
		}
	case VerdictStranded:
		m.stranded[reason]++
		if l != nil {
			l.stranded++
		}
	}
	if s != nil {
		s.left = r.Verdict
		if s.freed {
			m.packets.close(s)
		}
	}
	return nil
}

// closed takes the sums of a packet that nothing more will be done for.
func (m *Measures) closed(s *packetSlot) {
	if s.left != VerdictForwarded {
		return
	}
	l := m.card(s.ingress).lane
	if l == nil {
		return
	}
	var occupancy, transfer des.Time
	for i, d := range s.handlers {
		occupancy += d
		l.handlerSum[i] += d
	}
	for i, d := range s.units {
		l.unitSum[i] += d
		if i != unitBusWait {
			transfer += d
		}
	}
	l.closedPackets++
	l.occupancy.add(occupancy)
	l.transfer.add(transfer)
	m.occupancy.Add(float64(occupancy))
	m.transfer.Add(float64(transfer))
}

// Finish closes the observed span at end, or at the end of the last record
// when that is later or end is 0, and gives the result. An end later than 26
// days is taken as that. Further calls give the
// same result.
func (m *Measures) Finish(end des.Time) (*Result, error) {
	if m.done != nil {
		return m.done, nil
	}
	end = max(min(end, maxMeasured), m.last, m.spec.From)
	for _, c := range m.cards {
		if c == nil {
			continue
		}
		c.endWait(NoEvent, 0, 0, 0)
		if c.runOpen {
			c.closeRun(m, c.runEnd)
		}
		if c.lane != nil {
			if err := c.lane.finish(end); err != nil {
				return nil, err
			}
		}
	}
	m.packets.closeAll()
	r, err := m.result(end)
	if err != nil {
		return nil, err
	}
	m.done = r
	return r, nil
}
