package traces

import "spinesim/sim/des"

// processor checks boxes and runs of polls.
func (v *Validator) processor(c *cardCheck, r *Record) {
	if c.stopped {
		v.fail(InvariantStop, r, "the card's processor stopped at %v", c.stop)
	}
	if c.procSeen {
		if r.Start < c.procEnd {
			v.fail(InvariantProcessor, r, "the %v record before it ended at %v", c.procKind, c.procEnd)
		}
		if c.procKind == KindPolls {
			switch {
			case c.procHit != NoQueue && r.Kind == KindPolls:
				v.fail(InvariantPolling, r, "the polls before it found a message in Q%d, and no handler followed", c.procHit)
			case c.procHit != NoQueue && (r.Start != c.procEnd || r.Queue != c.procHit):
				v.fail(InvariantPolling, r, "the polls before it found a message in Q%d at %v", c.procHit, c.procEnd)
			case c.procHit == NoQueue && r.Kind == KindPolls && r.Start == c.procEnd:
				v.fail(InvariantPolling, r, "the polls before it are of the same run")
			}
		}
	}
	c.procSeen, c.procEnd, c.procKind, c.procHit = true, r.End, r.Kind, NoQueue
	if r.Kind == KindPolls {
		c.procHit = r.Queue
	}
	if p := v.lim.CardPeriod; p > 0 {
		cycles := des.Time(r.Cycles) + des.Time(r.Stall)
		want := cycles * p
		slack := want/1000 + 2
		long := want + slack
		if r.Kind == KindPolls && r.Queue == NoQueue && r.Count > 0 {
			// The end of the simulation cuts a poll short; only whole ones count.
			long += 2 * want / des.Time(r.Count)
		} else if r.Kind == KindPolls && r.Queue == NoQueue {
			long = des.MaxTime
		} else if r.Reason == ReasonStopped {
			long += 2 * p // a cycle may have been in progress
		}
		if took := r.End - r.Start; cycles < 1<<40 && (took < want-slack || took > long) {
			v.fail(InvariantClock, r, "%d cycles and %d of stall are %v, and it took %v", r.Cycles, r.Stall, want, took)
		}
	}
	c.memory.processor(r)
}

// unit checks that an engine does one thing at a time, and the bus.
func (v *Validator) unit(c *cardCheck, r *Record) {
	switch r.Kind {
	case KindReceive:
		if r.Start < c.receiveEnd {
			v.fail(InvariantUnit, r, "the receive engine was busy until %v", c.receiveEnd)
		}
		c.receiveEnd = r.End
	case KindSend:
		if r.Start < c.sendEnd {
			v.fail(InvariantUnit, r, "the send engine was busy until %v", c.sendEnd)
		}
		c.sendEnd = r.End
	case KindTransfer:
		// The host bridge has several masters, a card one engine.
		if r.Card != HostCard && r.Ready < c.engineEnd {
			v.fail(InvariantUnit, r, "asked for the bus at %v, and the DMA engine was busy until %v", r.Ready, c.engineEnd)
		}
		c.engineEnd = r.End
		v.busUse(r)
	}
	if v.lim.CardPeriod > 0 {
		v.memory(r.Card, r)
		if r.Kind == KindTransfer && r.Peer < HostCard && r.Peer != r.Card {
			v.memory(r.Peer, r)
		}
	}
}

// busGroup is a stretch of time covered by transfers that overlap each other.
type busGroup struct {
	start, end des.Time
	held       des.Time
}

// maxGroups is how many earlier groups a long transfer can reach back over.
const maxGroups = 256

// busUse checks that the masters of the bus did not hold it for longer than
// there was time. Bursts of several transfers interleave, so overlapping ones
// are taken together; the idle clock behind a burst counts as held.
func (v *Validator) busUse(r *Record) {
	p := v.lim.BusPeriod
	if p <= 0 || r.Cycles == 0 || r.Cycles > 1<<40 {
		return
	}
	g := busGroup{r.Start, r.End + p, des.Time(r.Cycles) * p}
	for n := len(v.bus); n > 0 && v.bus[n-1].end > g.start; n = len(v.bus) {
		top := v.bus[n-1]
		g.start, g.end, g.held = min(g.start, top.start), max(g.end, top.end), g.held+top.held
		v.bus = v.bus[:n-1]
	}
	if slack := g.held/1000 + 2; g.held > g.end-g.start+slack {
		v.fail(InvariantUnit, r, "the bus was held for %v between %v and %v", g.held, g.start, g.end)
		g.held = g.end - g.start
	}
	if len(v.bus) == maxGroups {
		n := copy(v.bus, v.bus[1:])
		v.bus = v.bus[:n]
	}
	v.bus = append(v.bus, g)
}

// Remembered of a card's memory use.
const (
	rememberedBoxes   = 256
	rememberedStreams = 32
)

type memoryUse struct {
	start, end des.Time
	accesses   uint64 // for boxes: of all up to and including this one
}

// memoryCheck remembers who used a card's memory lately.
type memoryCheck struct {
	boxes   [rememberedBoxes]memoryUse
	nb      uint64
	sum     uint64
	streams [rememberedStreams]memoryUse
	ns      uint64
}

// processor notes the least that a box or run of polls takes: a fetch a cycle.
func (m *memoryCheck) processor(r *Record) {
	m.sum += min(r.Cycles, 1<<40)
	m.boxes[m.nb%rememberedBoxes] = memoryUse{r.Start, r.End, m.sum}
	m.nb++
}

// boxesWithin counts the accesses of the remembered boxes that lie in a span.
func (m *memoryCheck) boxesWithin(start, end des.Time) uint64 {
	var from, to uint64
	found := false
	for i := m.nb; i > 0 && m.nb-i < rememberedBoxes; i-- {
		b := &m.boxes[(i-1)%rememberedBoxes]
		if b.end > end {
			continue
		}
		if b.start < start {
			from = b.accesses
			break
		}
		if !found {
			found, to = true, b.accesses
		}
		if m.nb-i == rememberedBoxes-1 || i == 1 {
			// The oldest known: what it took itself cannot be told from what
			// came before it, unless it is the first.
			from = b.accesses
			if i == 1 {
				from = 0
			}
		}
	}
	if !found {
		return 0
	}
	return to - min(from, to)
}

// memory checks that while an engine streamed r's bytes, all who lie within
// that time took no more accesses than a card's memory has.
func (v *Validator) memory(card uint8, r *Record) {
	m := &v.card(card).memory
	words := (uint64(r.Bytes) + 3) / 4
	used := words + m.boxesWithin(r.Start, r.End)
	for i := m.ns; i > 0 && m.ns-i < rememberedStreams; i-- {
		if s := &m.streams[(i-1)%rememberedStreams]; s.start >= r.Start && s.end <= r.End {
			used += s.accesses
		}
	}
	m.streams[m.ns%rememberedStreams] = memoryUse{r.Start, r.End, words}
	m.ns++
	// Four cycles for what falls on the edges, 0.1 % for a clock that is off.
	took := r.End - r.Start
	cycles := uint64((took+took/1000)/v.lim.CardPeriod) + 4
	if has := cycles * uint64(v.lim.MemoryAccesses); used > has {
		v.fail(InvariantMemory, r, "at least %d accesses to the memory of card %d in %v, which has %d", used, card, took, has)
	}
}

// level checks that nothing is below zero or above what there is.
func (v *Validator) level(c *cardCheck, r *Record) {
	var l *level32
	most, what := uint32(0), ""
	switch r.Event {
	case LevelBuffers:
		l, most, what = &c.buffers, v.lim.Buffers, "buffers"
	case LevelCredits:
		l = c.credits[r.Peer]
		if l == nil {
			l = &level32{}
			c.credits[r.Peer] = l
		}
		most, what = v.lim.Credits, "credits"
	case LevelFIFO:
		l, most, what = &c.fifo, v.lim.FIFO, "places in the FIFO"
	case LevelBacklog:
		l, what = &c.backlog, "packets in the backlog"
	default:
		l, what = &c.queues[r.Event-LevelQueue0], "messages in the queue"
	}
	switch {
	case r.Count > 1<<31:
		v.fail(InvariantLevel, r, "%d %s", int32(r.Count), what)
	case most > 0 && r.Count > most:
		v.fail(InvariantLevel, r, "%d %s, and there are %d", r.Count, what, most)
	}
	l.now, l.seen, l.most = r.Count, true, max(l.most, r.Count)
}

// stop notes that a card's processor has stopped.
func (v *Validator) stop(c *cardCheck, r *Record) {
	switch {
	case c.stopped:
		v.fail(InvariantStop, r, "it stopped at %v already", c.stop)
	case r.Start < c.procEnd:
		v.fail(InvariantStop, r, "the %v record before it ended at %v", c.procKind, c.procEnd)
	}
	c.stopped, c.stop, v.stopped = true, r.End, true
}

// returned checks that a drained router has everything back. Where a card has
// stopped, what packets hold that will never go on is not back: their buffers,
// and credits for that card. Of what the stopped card itself has left nothing is
// known.
func (v *Validator) returned() {
	var held [256]uint32 // buffers, by ingress card
	if v.stopped {
		for i := range v.packets.slots {
			if s := &v.packets.slots[i]; s.id != 0 && s.handled&bit(RxCheckHeader) != 0 && s.handled&bit(FreeBuffer) == 0 {
				held[s.ingress]++
			}
		}
	}
	if v.inside > 0 {
		v.fail(InvariantConservation, nil, "%d of %d packets are still inside, the first of them packet %d",
			v.inside, v.entered, v.packets.firstInside())
	}
	for i, c := range v.cards {
		if c == nil || c.stopped {
			continue
		}
		if c.buffers.seen {
			want := v.lim.Buffers - min(v.lim.Buffers, v.lim.Posted)
			if v.lim.Buffers == 0 {
				want = c.buffers.most
			}
			want -= min(want, held[i])
			if c.buffers.now != want {
				v.fail(InvariantReturn, nil, "card %d has %d free buffers of %d", i, c.buffers.now, want)
			}
		}
		for peer := range len(v.cards) {
			l := c.credits[uint8(peer)]
			if l == nil || v.cards[peer] != nil && v.cards[peer].stopped {
				continue
			}
			want := v.lim.Credits
			if want == 0 {
				want = l.most
			}
			if l.now != want {
				v.fail(InvariantReturn, nil, "card %d has %d credits of %d for card %d", i, l.now, want, peer)
			}
		}
		if c.fifo.now > c.stranded {
			v.fail(InvariantReturn, nil, "%d packets are still upstream of card %d", c.fifo.now, i)
		}
		if c.backlog.now > c.stranded {
			v.fail(InvariantReturn, nil, "%d packets still wait for the DMA of card %d", c.backlog.now, i)
		}
		for q := range c.queues {
			if n := c.queues[q].now; n > c.stranded {
				v.fail(InvariantReturn, nil, "%d messages are still in Q%d of card %d", n, q, i)
			}
		}
	}
}
