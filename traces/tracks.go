package traces

import "spinesim/sim/des"

// The viewers (Perfetto, Chrome) show one group of tracks a card. Which track
// a record belongs to is decided here, for both.

type trackClass uint8

const (
	trackHandler  trackClass = iota // sub: the event
	trackPolls                      // runs of polls
	trackReceive                    // receive engine
	trackSend                       // send engine
	trackDMA                        // host-DMA engine: from asking for the bus to the end
	trackWait                       // sub: the reason
	trackPackets                    // packets that enter, depart and leave
	trackLevel                      // sub: the event, peer: for credits
	trackBus                        // the bus
	trackMarks                      // marks of executed firmware, and its stop
	trackOther                      // records of unknown kind
	numTrackClass = int(iota)
)

// trackKey names a track.
type trackKey struct {
	class     trackClass
	card, sub uint8
	peer      uint8
}

// trackOf tells where a record is drawn.
func trackOf(r *Record) trackKey {
	k := trackKey{card: r.Card}
	switch r.Kind {
	case KindBox, KindPoll:
		k.class, k.sub = trackHandler, uint8(r.Event)
	case KindPolls:
		k.class = trackPolls
	case KindReceive:
		k.class = trackReceive
	case KindSend:
		k.class = trackSend
	case KindTransfer:
		k.class, k.card = trackBus, 0
	case KindWait:
		k.class, k.sub = trackWait, uint8(r.Reason)
	case KindEnter, KindLeave, KindDepart, KindCopy:
		k.class = trackPackets
	case KindMark, KindStop:
		k.class = trackMarks
	case KindLevel:
		k.class, k.sub, k.peer = trackLevel, uint8(r.Event), r.Peer
	default:
		k.class = trackOther
	}
	return k
}

// name is what the viewer calls the track.
func (k trackKey) name(m *Meta) string {
	switch k.class {
	case trackHandler:
		return Event(k.sub).String()
	case trackPolls:
		return "Polls"
	case trackReceive:
		return "Receive engine"
	case trackSend:
		return "Send engine"
	case trackDMA:
		return "DMA engine"
	case trackWait:
		return "Wait: " + Reason(k.sub).String()
	case trackPackets:
		return "Packets"
	case trackLevel:
		if k.peer != NoCard {
			return Event(k.sub).String() + " for " + m.CardName(k.peer)
		}
		return Event(k.sub).String()
	case trackBus:
		return "Bus"
	case trackMarks:
		return "Marks"
	}
	return "Other"
}

// rank orders the tracks of a card from the top down. Handlers stand in the
// published figure's order, whose bottom row is Poll Q0 (thesis p.107), those
// that it does not show above them, runs of polls below.
func (k trackKey) rank() int32 {
	const handlers = 100
	switch k.class {
	case trackPackets:
		return 0
	case trackReceive:
		return 1
	case trackDMA:
		return 2
	case trackSend:
		return 3
	case trackBus:
		return 4
	case trackMarks:
		return 5
	case trackHandler:
		return handlers + 255 - int32(k.sub)
	case trackPolls:
		return handlers + 256
	case trackWait:
		return 1000 + int32(k.sub)
	case trackLevel:
		return 2000 + 256*int32(k.sub) + int32(k.peer)
	}
	return 90000
}

// isSlice tells that a record is drawn as a span; others are instants, and
// levels are counter values.
func isSlice(r *Record) bool {
	switch r.Kind {
	case KindBox, KindPolls, KindPoll, KindTransfer, KindReceive, KindSend, KindWait:
		return true
	}
	return false
}

// onFlow tells that a record is a step of its packet's way, to be joined to the
// step before by an arrow; ends that it is the last one.
func onFlow(r *Record) (on, ends bool) {
	if r.Packet == 0 {
		return false, false
	}
	switch r.Kind {
	case KindBox:
		return true, r.Event == FreeBuffer
	case KindTransfer, KindReceive, KindSend, KindEnter, KindDepart, KindCopy:
		return true, false
	case KindLeave:
		// A packet that had a buffer goes on until that is free.
		return true, r.Verdict == VerdictDropped && (r.Reason == ReasonFIFOFull || r.Reason == ReasonNoBufferDiscard)
	}
	return false, false
}

// sliceName is what the viewer writes on a record's span or instant.
func sliceName(r *Record) string {
	switch r.Kind {
	case KindPolls:
		if r.Queue != NoQueue {
			return "Polls, hit"
		}
		return "Polls"
	case KindWait:
		return r.Reason.String()
	case KindLeave:
		if r.Verdict == VerdictDropped {
			return dropName(r.Reason)
		}
		return r.Verdict.String()
	case KindEnter, KindDepart, KindCopy:
		return r.Kind.String()
	case KindStop:
		return "stopped"
	case KindMark:
		if int(r.Count) < len(markNames) {
			return markNames[r.Count]
		}
		return "mark"
	}
	if r.Event == NoEvent {
		return r.Kind.String()
	}
	return r.Event.String()
}

var markNames = [NumMarks]string{"log_0", "log_1", "log_2", "log_3", "log_4"}

// dropNames saves putting them together for every drop.
var dropNames = func() (names [NumReasons]string) {
	for i := range names {
		names[i] = "dropped: " + Reason(i).String()
	}
	return names
}()

func dropName(r Reason) string {
	if int(r) < NumReasons {
		return dropNames[r]
	}
	return "dropped"
}

// strips are the parallel parts of a track whose spans may overlap (two
// packets that wait for the same thing): on each strip they do not, as the
// viewers demand. Spans come by their end, so the first strip that was free
// when a span began is a right place for it.
type strips struct{ end []int64 }

// place returns the strip for [begin, end], and whether it is a new one.
func (s *strips) place(begin, end int64) (strip int, isNew bool) {
	for i, e := range s.end {
		if e <= begin {
			s.end[i] = end
			return i, false
		}
	}
	s.end = append(s.end, end)
	return len(s.end) - 1, true
}

// nanos rounds a time to nanoseconds, halves up: once for each begin and each
// end, so that spans that touch still do.
func nanos(t des.Time) int64 {
	n := int64(t) / 1000
	rest := int64(t) % 1000
	if rest < 0 {
		rest += 1000
		n--
	}
	if rest >= 500 {
		n++
	}
	return n
}
