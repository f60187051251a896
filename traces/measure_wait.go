package traces

import "spinesim/sim/des"

// openWait is a packet's wait of which it may not be known yet until when its
// reason held. A wait's record spans the time until the packet's handler
// began; from when its precondition was met, the packet waited for the
// dispatcher alone. A record whose Ready lies within it tells when that was,
// else the record of the handler does, which begins where the wait ends. A wait
// that no handler ends had its reason to the end.
type openWait struct {
	open       bool
	reason     Reason
	event      Event
	packet     uint64
	start, end des.Time
	ready      des.Time
}

func (w *openWait) begin(r *Record) {
	*w = openWait{true, r.Reason, r.Event, r.Packet, r.Start, r.End, r.Ready}
}

// settled tells until when the reason held, if that is known already.
func (w *openWait) settled() (des.Time, bool) {
	switch w.reason {
	case ReasonNoCredit, ReasonEngineBusy, ReasonWireBusy, ReasonBusBusy:
		if w.ready > w.start && w.ready <= w.end {
			return w.ready, true
		}
		return 0, false
	}
	return w.end, true
}

// until tells until when the reason held, given the card's next handler.
func (w *openWait) until(ev Event, packet uint64, start, ready des.Time) des.Time {
	if ev == w.event && packet == w.packet && start == w.end && packet != 0 {
		return min(max(ready, w.start), w.end)
	}
	return w.end
}
