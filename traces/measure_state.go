package traces

import (
	"spinesim/sim/des"
	"spinesim/sim/stats"
)

// maxRun is the longest receive run that is counted on its own.
const maxRun = 64

// maxPending bounds the departures that wait for their window to become fast.
// A fast period holds one DMA start, so a handful wait in practice.
const maxPending = 64

type statePiece struct {
	start, end des.Time
	slow       bool
}

type departure struct{ at, rx des.Time }

// state tells a card's fast windows from its slow spells.
type state struct {
	chain des.Time // what a chain's handlers take

	// The engine idle while a packet waits for it. Whether that is slow is
	// known once it has lasted longer than a chain's handlers; pieces wait
	// until then.
	idle     bool
	idleFrom des.Time
	idleLong bool
	unsure   []statePiece

	slow      bool
	spellFrom des.Time
	slowTime  des.Time
	spells    *stats.Histogram
	slowLevel *stats.TimeBatches
	idleLevel *stats.TimeBatches // bubbles

	// Receives and DMA starts.
	received   bool // a receive has begun the present period
	lastRx     des.Time
	starts     uint32 // DMA starts in the period
	crowded    bool   // the backlog was above one in it
	periods    uint32 // fast periods up to now without a break
	firstRx    des.Time
	firstSpan  des.Time // the first of them, until a second makes them a window
	pending    []departure
	fastTime   des.Time
	fastPacket uint64 // packets within fast windows
	fastPeriod *stats.Histogram
	fastDelay  *stats.Histogram

	// Fast periods whose packet was there before they began: the source had
	// no part in them.
	firstOwn  bool
	ownPeriod *stats.Histogram

	started bool // a DMA start has begun the present run
	run     uint32
	runs    [maxRun + 1]uint64 // by length; the last holds all longer ones
	runN    uint64
	runSum  uint64
	runMax  uint32
}

func (s *state) init(from, chain des.Time) error {
	s.chain = chain
	s.unsure = make([]statePiece, 0, 64)
	s.pending = make([]departure, 0, maxPending)
	var err error
	if s.spells, err = stats.NewHistogram(coarseError); err != nil {
		return err
	}
	if s.fastDelay, err = stats.NewHistogram(fineError); err != nil {
		return err
	}
	if s.fastPeriod, err = stats.NewHistogram(fineError); err != nil {
		return err
	}
	if s.ownPeriod, err = stats.NewHistogram(fineError); err != nil {
		return err
	}
	for _, b := range []**stats.TimeBatches{&s.slowLevel, &s.idleLevel} {
		if *b, err = stats.NewTimeBatches(int64(batchWidth)); err != nil {
			return err
		}
		if err = (*b).Set(int64(from), 0); err != nil {
			return err
		}
	}
	return nil
}

// Kinds of state: bits.
const (
	kindCrowded = 1 << iota // backlog above one
	kindIdle                // the engine idle and a packet waiting for it
)

func stateKind(backlog uint32, engine int) uint8 {
	kind := uint8(0)
	if backlog > 1 {
		kind = kindCrowded
	}
	if backlog > 0 && engine == engineIdle {
		kind |= kindIdle
	}
	return kind
}

// piece takes a span of one kind.
func (s *state) piece(start, end des.Time, kind uint8) error {
	if start == end {
		return nil
	}
	slow := kind&kindCrowded != 0
	if kind&kindIdle == 0 {
		if s.idle {
			s.idle = false
			if err := s.idleLevel.Set(int64(start), 0); err != nil {
				return err
			}
			if err := s.settle(false); err != nil {
				return err
			}
		}
		return s.take(start, end, slow)
	}
	if !s.idle {
		s.idle, s.idleLong, s.idleFrom = true, false, start
		if err := s.idleLevel.Set(int64(start), 1); err != nil {
			return err
		}
	}
	if !s.idleLong && end-s.idleFrom > s.chain {
		s.idleLong = true
		if err := s.settle(true); err != nil {
			return err
		}
	}
	if s.idleLong {
		return s.take(start, end, true)
	}
	if n := len(s.unsure); n > 0 && s.unsure[n-1].slow == slow {
		s.unsure[n-1].end = end
		return nil
	}
	s.unsure = append(s.unsure, statePiece{start, end, slow})
	return nil
}

// settle decides on the pieces that were unsure.
func (s *state) settle(slow bool) error {
	for _, p := range s.unsure {
		if err := s.take(p.start, p.end, slow || p.slow); err != nil {
			return err
		}
	}
	s.unsure = s.unsure[:0]
	return nil
}

// take puts a piece whose state is known onto the spell.
func (s *state) take(start, end des.Time, slow bool) error {
	if slow {
		s.slowTime += end - start
	}
	if slow == s.slow {
		return nil
	}
	s.slow = slow
	level := 0.0
	if slow {
		s.spellFrom = start
		level = 1
	} else {
		s.spells.Add(int64(start - s.spellFrom))
	}
	return s.slowLevel.Set(int64(start), level)
}

// receive notes the start of an Rx check header, of a packet that arrived
// upstream at entered (negative: not known).
func (s *state) receive(t, entered des.Time, backlog uint32) {
	s.run++
	if s.received {
		s.period(t, entered >= 0 && entered <= s.lastRx)
	} else {
		s.received, s.firstRx = true, t
	}
	s.lastRx, s.starts, s.crowded = t, 0, backlog > 1
}

// period judges the time from the last receive to this one. own says that the
// packet had arrived before the period began.
func (s *state) period(t des.Time, own bool) {
	if s.starts != 1 || s.crowded {
		s.periods, s.firstRx, s.pending = 0, t, s.pending[:0]
		return
	}
	span := t - s.lastRx
	s.periods++
	switch s.periods {
	case 1: // two packets; a window needs three
		s.firstSpan, s.firstOwn = span, own
		return
	case 2:
		s.fastPeriod.Add(int64(s.firstSpan))
		if s.firstOwn {
			s.ownPeriod.Add(int64(s.firstSpan))
		}
		s.fastTime += s.firstSpan
		s.fastPacket += 2
	}
	s.fastPeriod.Add(int64(span))
	if own {
		s.ownPeriod.Add(int64(span))
	}
	s.fastTime += span
	s.fastPacket++
	for _, d := range s.pending {
		s.fastDelay.Add(int64(d.at - d.rx))
	}
	s.pending = s.pending[:0]
}

// start notes a Peer to peer start.
func (s *state) start() {
	s.starts++
	if s.started {
		s.runs[min(s.run, maxRun)]++
		s.runN++
		s.runSum += uint64(s.run)
		s.runMax = max(s.runMax, s.run)
	}
	s.started, s.run = true, 0
}

// depart notes a departure. It lies in a fast window when the packet's receive
// did and the window lasts until after it.
func (s *state) depart(t, rx des.Time) {
	if !s.received || rx < s.firstRx {
		return
	}
	if len(s.pending) == maxPending {
		s.crowded = true // more than one start a period, or packets that never started
		return
	}
	s.pending = append(s.pending, departure{t, rx})
}

func (s *state) finish(end des.Time) error {
	if err := s.settle(false); err != nil {
		return err
	}
	if s.slow {
		s.spells.Add(int64(end - s.spellFrom))
		s.slow = false
	}
	if err := s.slowLevel.Advance(int64(end)); err != nil {
		return err
	}
	return s.idleLevel.Advance(int64(end))
}
