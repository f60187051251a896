package traces

import (
	"cmp"
	"fmt"
	"slices"

	"spinesim/sim/des"
)

// PathKind is what a stretch of the way between two departures was spent on.
type PathKind uint8

// The kinds.
const (
	PathChain      PathKind = iota // handlers of the departing packet's DMA chain
	PathTransfer                   // its body and header on the bus
	PathBusWait                    // its transfer had asked for the bus
	PathEngineWait                 // it was routed, and the DMA engine did something else
	PathCreditWait                 // it was routed, and its egress card had given no credit
	PathBufferWait                 // its header was in, and no packet buffer was free
	PathOwn                        // handlers that received and routed this packet
	PathWire                       // the receive engine took this packet in
	PathOthers                     // it could go on, and the processor ran receive or route handlers of other packets
	PathFlow                       // likewise, flow control
	PathPolls                      // likewise, polls on the way to it
	PathOutput                     // likewise, wire output of packets that leave by this card
	PathOtherWork                  // likewise, anything else: host packets, another chain
	PathUpstream                   // it had not arrived: the source is slow
	PathUnrecorded                 // nothing was recorded
	NumPathKinds   = int(iota)
)

var pathNames = [NumPathKinds]string{
	"DMA chain", "transfer", "bus wait", "engine wait", "credit wait", "buffer wait",
	"own receive and route", "wire", "others' receive and route", "flow control", "polls",
	"wire output", "other work", "source slow", "unrecorded",
}

func (k PathKind) String() string {
	if int(k) < NumPathKinds {
		return pathNames[k]
	}
	return "unknown kind"
}

// PathSpec says how a CriticalPath looks at a record. The zero value is ready.
type PathSpec struct {
	// From and To bound the gaps that count: both departures lie between
	// them. To of 0 is no bound.
	From, To des.Time
	// ChainHandlers is that of MeasureSpec, to tell slow gaps from fast ones.
	ChainHandlers des.Time
	// Worst is how many of the longest gaps are kept one by one, 0 for 10.
	Worst int
}

// CriticalPath is a Sink that explains each gap between two successive
// departures of an ingress card. It follows the second packet back from its
// departure: its transfers, the handlers that led to them, and what it waited
// for in between; where it could have gone on but for the processor, what the
// processor did instead. Before it arrived, the source is what was waited for.
// A packet waiting upstream waits for the processor to arm the receive engine
// again, so that time too goes to what the processor did. The stretches do not
// overlap and make up the gap to the picosecond.
//
// Memory is bounded by what happens on a card during one gap.
type CriticalPath struct {
	spec  PathSpec
	cards [256]*pathCard
	enter []entered
	last  des.Time
	worst []PathGap
}

type entered struct {
	packet uint64
	at     des.Time
}

// enterSlots is how many packets' arrivals are remembered, by packet number;
// a machine holds a few hundred packets.
const enterSlots = 1 << 13

// maxPathSpans is how many spans of a card are remembered within one gap
// (1 MB). Of a gap with more, the oldest part may be unrecorded.
const maxPathSpans = 1 << 14

// maxOwnSpans of the departing packet are looked at; it has some thirty.
const maxOwnSpans = 256

type pathSpan struct {
	start, end des.Time
	packet     uint64
	kind       PathKind // as seen by its own packet
	other      PathKind // as seen by any other packet, for the processor's
	processor  bool
}

type pathLevel struct {
	at      des.Time
	backlog uint32
}

type pathCard struct {
	card     uint8
	departed bool
	from     des.Time // last departure
	packet   uint64
	spans    queue[pathSpan]
	engine   queue[engineSpan]
	levels   queue[pathLevel]
	backlog  uint32 // at from
	waiting  openWait

	own  []pathSpan // scratch
	cuts []des.Time

	all, fast, slow pathSums
}

type pathSums struct {
	n   uint64
	gap des.Time
	by  [NumPathKinds]des.Time
}

func (s *pathSums) add(gap des.Time, by *[NumPathKinds]des.Time) {
	s.n++
	s.gap += gap
	for i, d := range by {
		s.by[i] += d
	}
}

// PathGap is one gap explained. The times by kind sum to To − From.
type PathGap struct {
	Card          uint8
	From, To      des.Time // the two departures
	First, Second uint64   // the two packets
	Slow          bool     // more than half of it was in the slow state
	By            [NumPathKinds]des.Time
}

// Length of the gap.
func (g *PathGap) Length() des.Time { return g.To - g.From }

// NewCriticalPath returns one that has seen nothing; the error names a value
// of the spec that makes no sense.
func NewCriticalPath(spec PathSpec) (*CriticalPath, error) {
	if spec.From < 0 || spec.To < 0 || spec.ChainHandlers < 0 || spec.Worst < 0 {
		return nil, fmt.Errorf("critical path: negative value in %+v", spec)
	}
	if spec.To == 0 {
		spec.To = des.MaxTime
	}
	if spec.To < spec.From {
		return nil, fmt.Errorf("critical path: window from %v to %v", spec.From, spec.To)
	}
	if spec.ChainHandlers == 0 {
		spec.ChainHandlers = DefaultChainHandlers
	}
	if spec.Worst == 0 {
		spec.Worst = 10
	}
	return &CriticalPath{spec: spec, enter: make([]entered, enterSlots)}, nil
}

func (c *CriticalPath) card(n uint8) *pathCard {
	k := c.cards[n]
	if k == nil {
		k = &pathCard{card: n}
		c.cards[n] = k
	}
	return k
}

// Record takes one record; the error is ErrOrder.
func (c *CriticalPath) Record(r *Record) error {
	if r.End < c.last || r.Start > r.End || r.Start < 0 {
		return fmt.Errorf("critical path: %v record of card %d from %v to %v, after one that ended at %v: %w",
			r.Kind, r.Card, r.Start, r.End, c.last, ErrOrder)
	}
	c.last = r.End
	switch r.Kind {
	case KindBox:
		s := pathSpan{r.Start, r.End, r.Packet, PathOtherWork, PathOtherWork, true}
		switch r.Event.Step() {
		case StepReceive, StepRoute:
			s.kind, s.other = PathOwn, PathOthers
		case StepDMA:
			s.kind = PathChain
		case StepFlow:
			s.kind, s.other = PathFlow, PathFlow
		case StepOutput:
			s.kind, s.other = PathOutput, PathOutput
		}
		k := c.card(r.Card)
		k.endWait(r.Event, r.Packet, r.Start, r.Ready)
		k.span(s)
	case KindPolls:
		c.card(r.Card).span(pathSpan{r.Start, r.End, 0, PathPolls, PathPolls, true})
	case KindTransfer:
		k := c.card(r.Card)
		if !k.departed {
			return nil
		}
		ready := min(max(r.Ready, 0), r.Start)
		k.engine.push(engineSpan{ready, r.Start, r.End, r.Packet})
		if k.engine.len() > maxPathSpans {
			k.engine.pop()
		}
		if r.Packet != 0 {
			k.span(pathSpan{ready, r.Start, r.Packet, PathBusWait, PathBusWait, false})
			k.span(pathSpan{r.Start, r.End, r.Packet, PathTransfer, PathTransfer, false})
		}
	case KindReceive:
		if r.Packet != 0 {
			c.card(r.Card).span(pathSpan{r.Start, r.End, r.Packet, PathWire, PathWire, false})
		}
	case KindWait:
		if r.Packet != 0 {
			k := c.card(r.Card)
			k.endWait(NoEvent, 0, 0, 0)
			k.waiting.begin(r)
			if ready, ok := k.waiting.settled(); ok {
				k.addWait(ready)
			}
		}
	case KindEnter:
		if r.Packet != 0 {
			c.enter[r.Packet%enterSlots] = entered{r.Packet, r.End}
		}
	case KindLevel:
		if r.Event == LevelBacklog {
			k := c.card(r.Card)
			if !k.departed {
				k.backlog = r.Count
				return nil
			}
			k.levels.push(pathLevel{r.End, r.Count})
			if k.levels.len() > maxPathSpans {
				k.backlog = k.levels.front().backlog
				k.levels.pop()
			}
		}
	case KindDepart:
		c.depart(c.card(r.Card), r)
	}
	return nil
}

// endWait ends a wait that is open with the record of a handler.
func (k *pathCard) endWait(ev Event, packet uint64, start, ready des.Time) {
	if k.waiting.open {
		k.addWait(k.waiting.until(ev, packet, start, ready))
	}
}

// addWait takes the open wait, for as long as its reason held; the rest, and
// waits for other reasons, are the processor's.
func (k *pathCard) addWait(ready des.Time) {
	w := &k.waiting
	w.open = false
	kind := PathBufferWait
	switch w.reason {
	case ReasonNoBuffer:
	case ReasonNoCredit:
		kind = PathCreditWait
	case ReasonEngineBusy:
		kind = PathEngineWait
	default:
		return
	}
	k.span(pathSpan{w.start, ready, w.packet, kind, kind, false})
}

func (k *pathCard) span(s pathSpan) {
	if !k.departed || s.end <= s.start { // before the first departure there is no gap
		return
	}
	k.spans.push(s)
	if k.spans.len() > maxPathSpans {
		k.spans.pop()
	}
}

func (c *CriticalPath) depart(k *pathCard, r *Record) {
	if k.departed && k.from >= c.spec.From && r.End <= c.spec.To {
		g := PathGap{Card: k.card, From: k.from, To: r.End, First: k.packet, Second: r.Packet}
		arrived := des.Time(0)
		if e := c.enter[r.Packet%enterSlots]; e.packet == r.Packet {
			arrived = e.at
		}
		k.explain(&g, arrived)
		g.Slow = 2*k.slowWithin(g.From, g.To, c.spec.ChainHandlers) > g.Length()
		k.all.add(g.Length(), &g.By)
		if g.Slow {
			k.slow.add(g.Length(), &g.By)
		} else {
			k.fast.add(g.Length(), &g.By)
		}
		c.keep(&g)
	}
	k.departed, k.from, k.packet = true, r.End, r.Packet
	k.spans.clear()
	k.engine.clear()
	for k.levels.len() > 0 {
		k.backlog = k.levels.front().backlog
		k.levels.pop()
	}
}

// keep puts a gap among the worst, longest first, the earlier of equals first.
func (c *CriticalPath) keep(g *PathGap) {
	i := len(c.worst)
	for i > 0 && c.worst[i-1].Length() < g.Length() {
		i--
	}
	if i >= c.spec.Worst {
		return
	}
	if len(c.worst) < c.spec.Worst {
		c.worst = append(c.worst, PathGap{})
	}
	copy(c.worst[i+1:], c.worst[i:])
	c.worst[i] = *g
}

// explain divides a gap. The packet's own spans come first, a handler before
// what it started, then waits; what none of them covers belongs to the
// processor, or to the source before the packet arrived.
func (k *pathCard) explain(g *PathGap, arrived des.Time) {
	k.own, k.cuts = k.own[:0], append(k.cuts[:0], g.From, g.To)
	if arrived > g.From && arrived < g.To {
		k.cuts = append(k.cuts, arrived)
	}
	for i := 0; i < k.spans.len() && len(k.own) < maxOwnSpans; i++ {
		s := k.spans.at(i)
		if s.packet != g.Second || g.Second == 0 || s.end <= g.From || s.start >= g.To {
			continue
		}
		k.own = append(k.own, *s)
		if s.start > g.From {
			k.cuts = append(k.cuts, s.start)
		}
		if s.end < g.To {
			k.cuts = append(k.cuts, s.end)
		}
	}
	slices.Sort(k.cuts)
	slices.SortStableFunc(k.own, func(a, b pathSpan) int { return cmp.Compare(rank(&a), rank(&b)) })
	at := 0 // first of spans that may reach into what is left
	for i := 1; i < len(k.cuts); i++ {
		from, to := k.cuts[i-1], k.cuts[i]
		if from == to {
			continue
		}
		if kind, ok := k.ownKind(from, to); ok {
			g.By[kind] += to - from
			continue
		}
		if from < arrived {
			g.By[PathUpstream] += to - from
			continue
		}
		at = k.charge(g, at, from, to)
	}
}

// rank orders a packet's own spans by which counts where they overlap.
func rank(s *pathSpan) int {
	switch {
	case s.processor:
		return 0
	case s.kind == PathTransfer:
		return 1
	case s.kind == PathBusWait:
		return 2
	case s.kind == PathWire:
		return 4
	}
	return 3
}

func (k *pathCard) ownKind(from, to des.Time) (PathKind, bool) {
	for i := range k.own {
		if s := &k.own[i]; s.start <= from && s.end >= to {
			return s.kind, true
		}
	}
	return 0, false
}

// charge gives a stretch to what the processor did in it. It starts at the
// at-th span, and returns where the next stretch may start.
func (k *pathCard) charge(g *PathGap, at int, from, to des.Time) int {
	t := from
	for i := at; i < k.spans.len() && t < to; i++ {
		s := k.spans.at(i)
		if !s.processor || s.end <= t {
			if i == at && s.end <= from {
				at++
			}
			continue
		}
		if s.start >= to {
			break
		}
		if s.start > t {
			g.By[PathUnrecorded] += s.start - t
			t = s.start
		}
		end := min(s.end, to)
		g.By[s.other] += end - t
		t = end
	}
	g.By[PathUnrecorded] += to - t
	return at
}

// slowWithin is how much of a gap is in the slow state as Measures defines it.
// The engine was busy up to both departures, so that no idle stretch reaches
// beyond the gap.
func (k *pathCard) slowWithin(from, to, chain des.Time) des.Time {
	var slow, idle, idleOver1 des.Time // idle: the present idle stretch
	end := func() {
		if idle > chain {
			slow += idle
		} else {
			slow += idleOver1
		}
		idle, idleOver1 = 0, 0
	}
	backlog, li, ei := k.backlog, 0, 0
	for t := from; t < to; {
		for li < k.levels.len() && k.levels.at(li).at <= t {
			backlog = k.levels.at(li).backlog
			li++
		}
		for ei < k.engine.len() && k.engine.at(ei).end <= t {
			ei++
		}
		next, busy := to, false
		if li < k.levels.len() {
			next = min(next, k.levels.at(li).at)
		}
		if ei < k.engine.len() {
			if e := k.engine.at(ei); e.ready > t {
				next = min(next, e.ready)
			} else {
				busy, next = true, min(next, e.end)
			}
		}
		d := next - t
		if busy || backlog == 0 {
			end()
			if backlog > 1 {
				slow += d
			}
		} else {
			idle += d
			if backlog > 1 {
				idleOver1 += d
			}
		}
		t = next
	}
	end()
	return slow
}
