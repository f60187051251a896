package traces

import (
	"spinesim/sim/des"
	"spinesim/sim/stats"
)

// What the processor of a card does at an instant.
const (
	classNone = iota // nothing was recorded
	classPolls
	classReceiveRoute
	classFlow
	classChain
	classOutput
	classHost
	numClasses
)

var stepClass = [NumSteps]uint8{
	StepNone: classHost, StepPoll: classPolls, StepReceive: classReceiveRoute, StepRoute: classReceiveRoute,
	StepDMA: classChain, StepFlow: classFlow, StepOutput: classOutput, StepHost: classHost,
}

// What the host-DMA engine of a card does at an instant.
const (
	engineIdle = iota
	engineWaits
	engineMoves
	numEngineStates
)

type procSpan struct {
	start, end des.Time
	entered    des.Time // of the packet upstream; negative: not known
	packet     uint64
	event      Event
	class      uint8
}

type engineSpan struct {
	ready, grant, end des.Time
	packet            uint64
}

// mark is something that happens at an instant: the backlog changes, or a
// packet that was received at rx departs.
type mark struct {
	at, rx  des.Time
	packet  uint64
	backlog uint32
	depart  bool
}

// maxLag is how many spans or marks of a lane wait for what is not known yet.
// A transfer is recorded at its end but counts from the moment it was asked
// for, so a lane stays behind by one transfer: some ten spans. Beyond maxLag
// the older half is taken as it stands.
const maxLag = 4096

// lane follows one ingress card: it lays processor, engine and backlog side by
// side, cuts time into pieces in which none of them changes, and sums up what
// holds in each piece.
type lane struct {
	card  uint8
	from  des.Time
	at    des.Time // pieces are taken up to here
	known des.Time // the engine's doings are known up to here
	ahead des.Time // the processor's likewise

	procs   queue[procSpan]
	engines queue[engineSpan]
	marks   queue[mark]
	begun   bool // the first of procs has begun

	backlog    uint32
	maxBacklog uint32
	table      [3][numEngineStates][numClasses]des.Time // by backlog 0, 1, more

	joined     uint8    // kind of state from joinedFrom on
	joinedFrom des.Time // pieces from here up to at have not reached state
	state      state
	step       dmaStep

	level        *stats.TimeBatches // backlog
	spectrum     sampler
	buffers      stats.TimeAverage
	fifo         stats.TimeAverage
	gap, ingress series
	total        series
	upstream     series
	occupancy    series
	transfer     series
	dmaStep      series

	received, departed, forwarded, toHost uint64
	dropped                               [NumReasons]uint64
	stranded                              uint64
	lastDepart                            des.Time
	closedPackets                         uint64
	handlerSum                            [NumSteps]des.Time
	unitSum                               [numUnits]des.Time
}

// series is a stream of spans of time: their distribution and, because
// neighbours are not independent, their mean by batch means.
type series struct {
	hist    *stats.Histogram
	batches stats.Batches
}

func newSeries(relativeError float64) (series, error) {
	h, err := stats.NewHistogram(relativeError)
	return series{hist: h}, err
}

func (s *series) add(t des.Time) {
	s.hist.Add(int64(t))
	s.batches.Add(float64(t))
}

// Relative errors of quantiles: 0.2 % is 0.2 µs of a latency of 100 µs; the
// best case, a figure that machines are fitted to, gets 0.02 %.
const (
	coarseError = 1.0 / (1 << 9)
	fineError   = 1.0 / (1 << 12)
)

// batchWidth is the first width of batches of levels: a few packets (chosen).
const batchWidth = 200 * des.Microsecond

func newLane(m *Measures, card uint8) (*lane, error) {
	l := &lane{card: card, from: m.spec.From, at: m.spec.From, known: m.spec.From, joinedFrom: m.spec.From}
	var err error
	for _, s := range []*series{&l.gap, &l.ingress, &l.total, &l.upstream, &l.occupancy, &l.transfer, &l.dmaStep} {
		if *s, err = newSeries(coarseError); err != nil {
			return nil, err
		}
	}
	if l.level, err = stats.NewTimeBatches(int64(batchWidth)); err != nil {
		return nil, err
	}
	if err := l.level.Set(int64(l.from), 0); err != nil {
		return nil, err
	}
	l.spectrum.init(l.from, m.spec.SampleEvery)
	return l, l.state.init(l.from, m.spec.ChainHandlers)
}

// setBacklog takes a new level at time t.
func (l *lane) setBacklog(t des.Time, n uint32) error {
	l.maxBacklog = max(l.maxBacklog, n)
	k := l.marks.more()
	*k = mark{}
	k.at, k.backlog = t, n
	if t >= l.from {
		l.spectrum.set(t, float64(n))
		if err := l.level.Set(int64(t), float64(n)); err != nil {
			return err
		}
	} else {
		l.spectrum.level = float64(n)
		if err := l.level.Set(int64(l.from), float64(n)); err != nil {
			return err
		}
	}
	return l.catchUp()
}

// depart notes the departure of a packet that the card began to receive at rx
// (-1: unknown).
func (l *lane) depart(t des.Time, packet uint64, rx des.Time) {
	l.marks.push(mark{at: t, rx: rx, packet: packet, depart: true})
}

// engine takes a finished transfer.
func (l *lane) engine(ready, grant, end des.Time, packet uint64) {
	l.engines.push(engineSpan{ready, grant, end, packet})
	l.known = end
}

// processor takes a finished box, whose packet arrived upstream at entered, or
// a run of polls.
func (l *lane) processor(start, end, entered des.Time, packet uint64, ev Event, class uint8) error {
	p := l.procs.more()
	p.start, p.end, p.entered = start, end, entered
	p.packet, p.event, p.class = packet, ev, class
	l.ahead = end
	return l.catchUp()
}

// catchUp takes all pieces that are settled.
func (l *lane) catchUp() error {
	to := min(l.known, l.ahead)
	if n := l.procs.len(); n > maxLag {
		to = max(to, l.procs.at(n/2).end)
	}
	if n := l.marks.len(); n > maxLag {
		to = max(to, l.marks.at(n/2).at)
	}
	if n := l.engines.len(); n > maxLag {
		to = max(to, l.engines.at(n/2).end)
	}
	if to > l.at {
		return l.advance(to)
	}
	return nil
}

// advance takes the pieces up to a time.
func (l *lane) advance(to des.Time) error {
	none := procSpan{class: classNone, event: NoEvent} // nothing was recorded
	for l.at < to {
		t := l.at
		l.marksUntil(t)
		next := to
		if l.marks.len() > 0 {
			next = min(next, l.marks.front().at)
		}

		p := &none
		for l.procs.len() > 0 {
			f := l.procs.front()
			if f.start > t {
				next = min(next, f.start)
				break
			}
			if !l.begun {
				l.begun = true
				l.begin(f)
			}
			if f.end > t {
				p = f
				next = min(next, f.end)
				break
			}
			l.procs.pop()
			l.begun = false
		}

		engine, moved := engineIdle, uint64(0)
		for l.engines.len() > 0 && l.engines.front().end <= t {
			l.engines.pop()
		}
		if l.engines.len() > 0 {
			e := l.engines.front()
			switch {
			case t < e.ready:
				next = min(next, e.ready)
			case t < e.grant:
				engine, moved = engineWaits, e.packet
				next = min(next, e.grant)
			default:
				engine, moved = engineMoves, e.packet
				next = min(next, e.end)
			}
		}

		d := next - t
		l.table[min(l.backlog, 2)][engine][p.class] += d
		l.step.piece(d, p, engine, moved)
		if l.backlog > 1 {
			l.state.crowded = true
		}
		// What the processor does makes no difference to the state: pieces that
		// differ only in that are joined.
		if kind := stateKind(l.backlog, engine); kind != l.joined {
			if err := l.state.piece(l.joinedFrom, t, l.joined); err != nil {
				return err
			}
			l.joined, l.joinedFrom = kind, t
		}
		l.at = next
	}
	return nil
}

// marksUntil applies what has happened up to t.
func (l *lane) marksUntil(t des.Time) {
	for l.marks.len() > 0 {
		f := l.marks.front()
		if f.at > t {
			break
		}
		if f.depart {
			l.step.depart(f.packet)
			l.state.depart(f.at, f.rx)
		} else {
			l.backlog = f.backlog
		}
		l.marks.pop()
	}
}

// begin notes that a box has begun.
func (l *lane) begin(p *procSpan) {
	switch p.event {
	case RxCheckHeader:
		l.state.receive(p.start, p.entered, l.backlog)
	case PeerToPeerStart:
		l.state.start()
		l.step.begin(p.packet)
	}
}

func (l *lane) finish(end des.Time) error {
	if err := l.advance(end); err != nil {
		return err
	}
	l.marksUntil(end)
	if err := l.state.piece(l.joinedFrom, end, l.joined); err != nil {
		return err
	}
	l.joinedFrom = end
	if err := l.state.finish(end); err != nil {
		return err
	}
	l.spectrum.advance(end)
	if err := l.level.Advance(int64(end)); err != nil {
		return err
	}
	if err := l.buffers.Advance(int64(end)); err != nil {
		return err
	}
	return l.fifo.Advance(int64(end))
}
