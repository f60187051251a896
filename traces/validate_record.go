package traces

import "spinesim/sim/des"

// fields checks that a record says something that can be; the other checks
// look only at records that do.
func (v *Validator) fields(r *Record) bool {
	bad := v.total
	if r.Kind == KindNone || int(r.Kind) >= NumKinds {
		v.fail(InvariantFields, r, "kind %d does not exist", r.Kind)
		return false
	}
	if int(r.Event) > NumEvents {
		v.fail(InvariantFields, r, "event %d does not exist", r.Event)
	}
	if int(r.Reason) >= NumReasons {
		v.fail(InvariantFields, r, "reason %d does not exist", r.Reason)
	}
	if int(r.Verdict) >= NumVerdicts {
		v.fail(InvariantFields, r, "verdict %d does not exist", r.Verdict)
	}
	if r.Card == NoCard {
		v.fail(InvariantFields, r, "it names no card")
	}
	switch r.Kind {
	case KindBox:
		if !isHandler(r.Event) {
			v.fail(InvariantFields, r, "%v is not a handler", r.Event)
		}
		if r.Queue != NoQueue && r.Queue >= v.lim.Queues {
			v.fail(InvariantFields, r, "queue %d, and there are %d", r.Queue, v.lim.Queues)
		}
	case KindPolls:
		if r.Count == 0 {
			v.fail(InvariantFields, r, "a run of no polls")
		}
		if r.Queue != NoQueue && r.Queue >= v.lim.Queues {
			v.fail(InvariantFields, r, "queue %d, and there are %d", r.Queue, v.lim.Queues)
		}
	case KindPoll:
		if r.Event > PollQ6 || r.Count > 1 {
			v.fail(InvariantFields, r, "event %v with count %d is not one poll", r.Event, r.Count)
		}
	case KindTransfer:
		if r.Event != NoEvent && (r.Event < TransferBody || r.Event > TransferFromHost) {
			v.fail(InvariantFields, r, "%v is not a transfer", r.Event)
		}
	case KindReceive:
		if r.Event != ReceiveHeader && r.Event != ReceiveBody {
			v.fail(InvariantFields, r, "%v is not a receive", r.Event)
		}
	case KindSend:
		if r.Event != SendPacket {
			v.fail(InvariantFields, r, "%v is not a send", r.Event)
		}
	case KindWait:
		if r.Reason == ReasonNone {
			v.fail(InvariantFields, r, "a wait without a reason")
		}
	case KindLeave:
		if r.Verdict == VerdictNone {
			v.fail(InvariantFields, r, "it leaves without a verdict")
		}
		if (r.Verdict == VerdictDropped || r.Verdict == VerdictStranded) && r.Reason == ReasonNone {
			v.fail(InvariantFields, r, "%v without a reason", r.Verdict)
		}
	case KindDepart:
		if r.Peer == NoCard || r.Peer == r.Card {
			v.fail(InvariantFields, r, "it departs to card %d", r.Peer)
		}
	case KindMark, KindStop:
		if r.Kind == KindMark && r.Count >= NumMarks {
			v.fail(InvariantFields, r, "mark %d does not exist", r.Count)
		}
		if r.Event != NoEvent && !isHandler(r.Event) {
			v.fail(InvariantFields, r, "%v is not a handler", r.Event)
		}
	case KindLevel:
		if r.Event < LevelQueue0 || r.Event > LevelBacklog {
			v.fail(InvariantFields, r, "%v is not a level", r.Event)
		}
	}
	switch r.Kind {
	case KindEnter, KindLeave, KindDepart, KindCopy, KindWait:
		if r.Packet == 0 {
			v.fail(InvariantFields, r, "it names no packet")
		}
	}
	return v.total == bad
}

func isHandler(e Event) bool { return e >= FreeBuffer && e <= FromHost }

func (v *Validator) times(r *Record) {
	if v.seen {
		switch {
		case r.End < v.last.End:
			v.fail(InvariantOrder, r, "the record before it (%s) ended at %v", describe(&v.last), v.last.End)
		case r.End == v.last.End && r.Card < v.last.Card:
			v.fail(InvariantOrder, r, "the record before it, of the same time, is of card %d", v.last.Card)
		}
	}
	if r.Start < 0 || r.End < r.Start {
		v.fail(InvariantTimes, r, "it runs from %v to %v", r.Start, r.End)
		return
	}
	switch r.Kind {
	case KindBox, KindTransfer:
		if r.Ready < 0 || r.Ready > r.Start {
			v.fail(InvariantTimes, r, "it begins at %v but is ready at %v", r.Start, r.Ready)
		}
	case KindEnter, KindLeave, KindDepart, KindCopy, KindLevel, KindMark, KindStop:
		if r.Start != r.End {
			v.fail(InvariantTimes, r, "it takes time")
		}
	}
}

// rememberedNames is how many records of a card can be looked up as causes.
// A cause lies a packet's stay back at most, some hundred records.
const rememberedNames = 1 << 13

type named struct {
	n          uint64
	start, end des.Time
	kind       Kind
}

// nameRing finds a card's recent records by number.
type nameRing struct {
	slots []named
	most  uint64
}

func (g *nameRing) get(n uint64) *named {
	if g.slots == nil {
		return nil
	}
	s := &g.slots[n%rememberedNames]
	if s.n != n {
		return nil
	}
	return s
}

// orphan is an effect whose cause has not been recorded yet: it is a box that
// is still running, or it does not exist.
type orphan struct {
	cause  ID
	effect Record
	number uint64
}

// maxOrphans is how many effects may wait for their cause's record at once;
// one a running box in practice.
const maxOrphans = 256

// maxNumberJump is how far ahead a record's number may be of those before it
// on its card before it is called foreign (chosen; it bounds nothing else).
const maxNumberJump = 1 << 32

func (v *Validator) identity(c *cardCheck, r *Record) {
	if r.ID != 0 {
		g := &c.names
		n := r.ID.Number()
		if r.ID.Card() != r.Card || uint64(r.ID)>>56 != 0 {
			v.fail(InvariantIdentity, r, "its name is of card %d", uint64(r.ID)>>idBits)
		} else if n == 0 || !v.lim.Window && n > g.most+maxNumberJump {
			v.fail(InvariantIdentity, r, "number %d after at most %d", n, g.most)
		} else {
			if g.slots == nil {
				g.slots = make([]named, rememberedNames)
			}
			if old := g.get(n); old != nil {
				v.fail(InvariantIdentity, r, "the %v record from %v to %v has the same name", old.kind, old.start, old.end)
			}
			if s := &g.slots[n%rememberedNames]; s.n <= n {
				*s = named{n, r.Start, r.End, r.Kind}
			}
			g.most = max(g.most, n)
			if len(v.orphans) > 0 {
				v.adopt(r)
			}
		}
	}
	if r.Cause == 0 {
		return
	}
	if r.Cause == r.ID {
		v.fail(InvariantCausality, r, "it is its own cause")
		return
	}
	if uint64(r.Cause)>>56 != 0 {
		v.fail(InvariantCausality, r, "the cause is of card %d", uint64(r.Cause)>>idBits)
		return
	}
	g := &v.card(r.Cause.Card()).names
	n := r.Cause.Number()
	if s := g.get(n); s != nil {
		v.caused(r, s.start, s.end, s.kind, v.n)
		return
	}
	if n+rememberedNames <= g.most {
		v.unproven++
		return
	}
	if len(v.orphans) == maxOrphans {
		// The oldest can hardly still be running.
		v.lost(&v.orphans[0])
		n := copy(v.orphans, v.orphans[1:])
		v.orphans = v.orphans[:n]
	}
	v.orphans = append(v.orphans, orphan{r.Cause, *r, v.n})
}

// caused checks an effect against its cause.
func (v *Validator) caused(r *Record, start, end des.Time, kind Kind, number uint64) {
	at, what := r.End, "ends"
	switch r.Kind {
	case KindBox, KindTransfer:
		at, what = r.Ready, "is ready"
	case KindSend:
		at, what = r.Start, "begins"
	}
	// A handler may send before it ends, an engine tells only when it is done.
	from, how := start, "begins"
	if r.Kind == KindBox && (kind == KindTransfer || kind == KindReceive || kind == KindSend) {
		from, how = end, "ends"
	}
	if at < from {
		before := v.n
		v.n = number
		v.fail(InvariantCausality, r, "it %s at %v, but its cause, a %v record, %s at %v", what, at, kind, how, from)
		v.n = before
	}
}

// adopt looks for effects that waited for this record.
func (v *Validator) adopt(r *Record) {
	n := 0
	for i := range v.orphans {
		if o := &v.orphans[i]; o.cause == r.ID {
			v.caused(&o.effect, r.Start, r.End, r.Kind, o.number)
			continue
		}
		v.orphans[n] = v.orphans[i]
		n++
	}
	v.orphans = v.orphans[:n]
}

func (v *Validator) lost(o *orphan) {
	// A window shows no boxes that began in it and end behind it, or lie before it.
	if !v.lim.Window {
		before := v.n
		v.n = o.number
		v.fail(InvariantCausality, &o.effect, "its cause was never recorded")
		v.n = before
	}
}

// orphaned reports the effects whose cause never came. Those of the last
// moments may have been caused by a box that was still running at the end.
func (v *Validator) orphaned() {
	for i := range v.orphans {
		o := &v.orphans[i]
		if c := v.card(o.cause.Card()); o.effect.End >= c.procEnd {
			continue
		}
		v.lost(o)
	}
	v.orphans = nil
}
