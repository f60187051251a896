package traces

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"spinesim/sim/des"
)

func limitsOf(s modelSpec) Limits {
	return Limits{
		Buffers: uint32(s.buffers), Credits: uint32(s.credits), FIFO: 16, Queues: 7,
		CardPeriod: modelCycle, BusPeriod: modelCycle, MemoryAccesses: 3,
	}
}

// Streams of a machine that keeps the rules have no violation, whatever the
// load.
func TestValidateAccepts(t *testing.T) {
	for _, s := range modelStreams(300) {
		recs := runModel(s)
		v := NewValidator(limitsOf(s))
		for i := range recs {
			if err := v.Record(&recs[i]); err != nil {
				t.Fatal(err)
			}
		}
		if err := v.Finish(true); err != nil {
			var x *Violation
			errors.As(err, &x)
			t.Errorf("seed %d: %d violations, first:\n%s", s.seed, v.Total(), x.Explain())
		}
		if v.Inside() != 0 || v.Records() != uint64(len(recs)) {
			t.Errorf("seed %d: %d inside, %d records of %d", s.seed, v.Inside(), v.Records(), len(recs))
		}
	}
}

// find returns the n-th record (from 0) that a condition holds for.
func find(t *testing.T, recs []Record, n int, cond func(*Record) bool) int {
	t.Helper()
	for i := range recs {
		if cond(&recs[i]) {
			if n == 0 {
				return i
			}
			n--
		}
	}
	t.Fatal("the stream has no such record")
	return 0
}

func box(e Event) func(*Record) bool {
	return func(r *Record) bool { return r.Kind == KindBox && r.Event == e }
}

func kind(k Kind) func(*Record) bool { return func(r *Record) bool { return r.Kind == k } }

func levelOf(e Event) func(*Record) bool {
	return func(r *Record) bool { return r.Kind == KindLevel && r.Event == e }
}

// Each way of breaking a good stream breaks the invariant it should.
func TestValidateRejects(t *testing.T) {
	spec := modelStreams(60)[1]
	good := runModel(spec)
	cases := []struct {
		name   string
		want   Invariant
		detail string
		mutate func(r []Record) []Record
	}{
		{"swapped records", InvariantOrder, "ended at", func(r []Record) []Record {
			i := find(t, r, 20, kind(KindPolls))
			r[i], r[i+9] = r[i+9], r[i]
			return r
		}},
		{"cards of one instant out of order", InvariantOrder, "of the same time", func(r []Record) []Record {
			a := Record{Kind: KindLevel, Event: LevelFIFO, Card: 3, Start: r[0].End, End: r[0].End}
			return append([]Record{a}, r...)
		}},
		{"end before start", InvariantTimes, "it runs from", func(r []Record) []Record {
			i := find(t, r, 5, box(RouterIn))
			r[i].Start = r[i].End + 1
			return r
		}},
		{"ready after start", InvariantTimes, "is ready at", func(r []Record) []Record {
			i := find(t, r, 5, box(RouterIn))
			r[i].Ready = r[i].Start + 1
			return r
		}},
		{"an instant that lasts", InvariantTimes, "takes time", func(r []Record) []Record {
			r[find(t, r, 5, kind(KindDepart))].Start--
			return r
		}},
		{"no such kind", InvariantFields, "kind 77", func(r []Record) []Record { r[40].Kind = 77; return r }},
		{"no such event", InvariantFields, "event 200", func(r []Record) []Record { r[find(t, r, 3, box(RouterIn))].Event = 200; return r }},
		{"no such reason", InvariantFields, "reason 99", func(r []Record) []Record { r[40].Reason = 99; return r }},
		{"no such verdict", InvariantFields, "verdict 9", func(r []Record) []Record { r[40].Verdict = 9; return r }},
		{"no card", InvariantFields, "names no card", func(r []Record) []Record { r[40].Card = NoCard; return r }},
		{"transfer event on a box", InvariantFields, "not a handler", func(r []Record) []Record {
			r[find(t, r, 3, box(RouterIn))].Event = TransferAck
			return r
		}},
		{"no such queue", InvariantFields, "queue 9", func(r []Record) []Record { r[find(t, r, 3, box(RouterIn))].Queue = 9; return r }},
		{"no polls", InvariantFields, "no polls", func(r []Record) []Record { r[find(t, r, 3, kind(KindPolls))].Count = 0; return r }},
		{"wait for nothing", InvariantFields, "without a reason", func(r []Record) []Record { r[find(t, r, 3, kind(KindWait))].Reason = 0; return r }},
		{"leaves without verdict", InvariantFields, "without a verdict", func(r []Record) []Record { r[find(t, r, 3, kind(KindLeave))].Verdict = 0; return r }},
		{"dropped without reason", InvariantFields, "dropped without", func(r []Record) []Record {
			r[find(t, r, 3, kind(KindLeave))].Verdict = VerdictDropped
			return r
		}},
		{"departs to itself", InvariantFields, "departs to", func(r []Record) []Record {
			i := find(t, r, 3, kind(KindDepart))
			r[i].Peer = r[i].Card
			return r
		}},
		{"not a level", InvariantFields, "not a level", func(r []Record) []Record { r[find(t, r, 3, levelOf(LevelFIFO))].Event = RouterIn; return r }},
		{"no packet enters", InvariantFields, "names no packet", func(r []Record) []Record { r[find(t, r, 3, kind(KindEnter))].Packet = 0; return r }},

		{"name twice", InvariantIdentity, "same name", func(r []Record) []Record {
			i, j := find(t, r, 5, box(RouterIn)), find(t, r, 6, box(RouterIn))
			r[j].ID = r[i].ID
			return r
		}},
		{"name of another card", InvariantIdentity, "is of card 2", func(r []Record) []Record {
			i := find(t, r, 5, box(RouterIn))
			r[i].ID = MakeID(2, 1<<30)
			return r
		}},
		{"far-off number", InvariantIdentity, "after at most", func(r []Record) []Record {
			i := find(t, r, 5, box(RouterIn))
			r[i].ID = MakeID(r[i].Card, 1<<40)
			return r
		}},
		{"effect before its cause", InvariantCausality, "its cause, a box record, begins at", func(r []Record) []Record {
			i, j := find(t, r, 5, box(RouterIn)), find(t, r, 9, box(EnqIPOutput))
			r[i].Cause = r[j].ID
			return r
		}},
		{"continuation before the transfer's end", InvariantCausality, "a transfer record, ends at", func(r []Record) []Record {
			i := find(t, r, 5, box(DMAStartHeader))
			r[i].Ready -= 10 * des.Microsecond
			return r
		}},
		{"its own cause", InvariantCausality, "own cause", func(r []Record) []Record {
			i := find(t, r, 5, box(RouterIn))
			r[i].Cause = r[i].ID
			return r
		}},
		{"cause that never was", InvariantCausality, "never recorded", func(r []Record) []Record {
			i := find(t, r, 5, box(RouterIn))
			r[i].Cause = MakeID(r[i].Card, 1<<30)
			return r
		}},
		{"foreign cause", InvariantCausality, "of card 259", func(r []Record) []Record {
			r[find(t, r, 5, box(RouterIn))].Cause = 259<<idBits | 4
			return r
		}},

		{"enters twice", InvariantConservation, "entered before", func(r []Record) []Record {
			i, j := find(t, r, 5, kind(KindEnter)), find(t, r, 6, kind(KindEnter))
			r[j].Packet = r[i].Packet
			return r
		}},
		{"never entered", InvariantConservation, "has not entered", func(r []Record) []Record {
			i := find(t, r, 5, kind(KindEnter))
			return slices.Delete(r, i, i+1)
		}},
		{"leaves twice", InvariantConservation, "has left already, forwarded", func(r []Record) []Record {
			i := find(t, r, 5, kind(KindLeave))
			x := r[i]
			x.ID = 0
			return slices.Insert(r, i, x)
		}},
		{"never leaves", InvariantConservation, "1 of 60 packets are still inside, the first of them packet", func(r []Record) []Record {
			i := find(t, r, 5, kind(KindLeave))
			return slices.Delete(r, i, i+1)
		}},
		{"handler twice", InvariantLifecycle, "before", func(r []Record) []Record {
			r[find(t, r, 5, box(EnqIPOutput))].Event = RouterIn
			return r
		}},
		{"handler left out", InvariantLifecycle, "nothing that it follows from", func(r []Record) []Record {
			i := find(t, r, 5, box(DMAGenericStart))
			return slices.Delete(r, i-1, i+1) // with its polls
		}},
		{"two handlers of a packet at once", InvariantLifecycle, "ran until", func(r []Record) []Record {
			i := find(t, r, 5, box(WireOutputDone))
			j := find(t, r[:i], 5, box(WireOutputStart))
			r[j].Start = r[j].End - 1
			k := find(t, r, 0, func(x *Record) bool { return x.Kind == KindBox && x.Event == DMAStartHeader && x.Packet == r[j].Packet })
			r[j].Start = r[k].End - 1
			return r
		}},
		{"buffer freed too early", InvariantLifecycle, "still needs its buffer", func(r []Record) []Record {
			i := find(t, r, 5, box(PeerAck))
			r[i].Packet = 0
			return r
		}},
		{"departs twice", InvariantLifecycle, "departed before", func(r []Record) []Record {
			i := find(t, r, 5, kind(KindDepart))
			x := r[i]
			x.ID = 0
			return slices.Insert(r, i, x)
		}},
		{"departs without a DMA", InvariantLifecycle, "no DMA was started", func(r []Record) []Record {
			i := find(t, r, 5, kind(KindDepart))
			j := find(t, r, 0, func(x *Record) bool { return x.Kind == KindEnter && x.Packet > r[i].Packet })
			r[i].Packet = r[j].Packet
			if j > i {
				x := r[j]
				r = slices.Delete(r, j, j+1)
				x.Start, x.End = r[i].End, r[i].End
				return slices.Insert(r, i, x)
			}
			return r
		}},
		{"forwarded without output", InvariantLifecycle, "without a wire output", func(r []Record) []Record {
			r[find(t, r, 5, box(WireOutputStart))].Packet = 0
			return r
		}},
		{"to the host without its handler", InvariantLifecycle, "without the handler", func(r []Record) []Record {
			r[find(t, r, 5, kind(KindLeave))].Verdict = VerdictToHost
			return r
		}},
		{"work on a dropped packet", InvariantLifecycle, "was dropped", func(r []Record) []Record {
			i := find(t, r, 5, kind(KindLeave))
			r[i].Verdict, r[i].Reason = VerdictDropped, ReasonHost
			return r
		}},

		{"boxes overlap", InvariantProcessor, "ended at", func(r []Record) []Record {
			i := find(t, r, 5, box(RouterIn))
			r[i].Start -= 100 * des.Nanosecond
			return r
		}},
		{"expanded polls overlap", InvariantProcessor, "the poll before it", func(r []Record) []Record {
			i := find(t, r, 5, kind(KindPolls))
			p := Record{Kind: KindPoll, Event: PollQ0, Card: r[i].Card, Start: r[i].Start, End: r[i].End, Ready: r[i].Start}
			return slices.Insert(r, i, p, p)
		}},
		{"hit without handler", InvariantPolling, "found a message", func(r []Record) []Record {
			i := find(t, r, 30, func(x *Record) bool { return x.Kind == KindPolls && x.Card == 0 })
			j := i + 1
			for r[j].Kind != KindBox || r[j].Card != 0 {
				j++
			}
			return slices.Delete(r, j, j+1)
		}},
		{"handler from another queue", InvariantPolling, "found a message in Q0", func(r []Record) []Record {
			i := find(t, r, 5, func(x *Record) bool { return x.Kind == KindPolls && x.Queue == 1 && x.Card == 0 })
			r[i].Queue = 0
			return r
		}},
		{"run of polls cut in two", InvariantPolling, "same run", func(r []Record) []Record {
			i := find(t, r, 5, func(x *Record) bool { return x.Kind == KindPolls && x.Count > 3 })
			a := r[i]
			a.Count, a.Queue, a.Cycles, a.Stall = 1, NoQueue, 12, 0
			a.End = a.Start + 12*modelCycle
			r[i].Start, r[i].Count = a.End, r[i].Count-1
			r[i].Cycles -= 12
			r = append(r, a)
			slices.SortStableFunc(r, func(x, y Record) int { // a is the last but ends early
				if x.End != y.End {
					return int(min(1, max(-1, x.End-y.End)))
				}
				return int(x.Card) - int(y.Card)
			})
			return r
		}},

		{"two receives at once", InvariantUnit, "receive engine was busy", func(r []Record) []Record {
			r[find(t, r, 5, kind(KindReceive))].Start -= 10 * des.Millisecond
			return r
		}},
		{"two sends at once", InvariantUnit, "send engine was busy", func(r []Record) []Record {
			r[find(t, r, 5, kind(KindSend))].Start = 0
			return r
		}},
		{"two transfers of one engine", InvariantUnit, "DMA engine was busy", func(r []Record) []Record {
			r[find(t, r, 5, kind(KindTransfer))].Ready = 0
			return r
		}},
		{"bus held for longer than there was", InvariantUnit, "the bus was held", func(r []Record) []Record {
			r[find(t, r, 5, kind(KindTransfer))].Cycles *= 2
			return r
		}},
		{"bus held by two", InvariantUnit, "the bus was held", func(r []Record) []Record {
			i := find(t, r, 5, func(x *Record) bool { return x.Kind == KindTransfer && x.Event == TransferBody })
			x := r[i]
			x.Card, x.ID, x.Packet, x.Cause = 1, 0, 0, 0
			for i++; r[i].End == x.End && r[i].Card < 1; i++ {
			}
			return slices.Insert(r, i, x)
		}},

		{"buffers below zero", InvariantLevel, "-1 buffers", func(r []Record) []Record {
			r[find(t, r, 5, levelOf(LevelBuffers))].Count = ^uint32(0)
			return r
		}},
		{"more buffers than there are", InvariantLevel, "17 buffers, and there are 16", func(r []Record) []Record {
			r[find(t, r, 5, levelOf(LevelBuffers))].Count = 17
			return r
		}},
		{"more credits than there are", InvariantLevel, "5 credits", func(r []Record) []Record {
			r[find(t, r, 5, levelOf(LevelCredits))].Count = 5
			return r
		}},
		{"FIFO overfull", InvariantLevel, "17 places", func(r []Record) []Record {
			r[find(t, r, 5, levelOf(LevelFIFO))].Count = 17
			return r
		}},
		{"a buffer does not come back", InvariantReturn, "15 free buffers of 16", func(r []Record) []Record {
			for i := len(r) - 1; ; i-- {
				if r[i].Kind == KindLevel && r[i].Event == LevelBuffers {
					r[i].Count--
					return r
				}
			}
		}},
		{"a credit does not come back", InvariantReturn, "3 credits of 4 for card", func(r []Record) []Record {
			for i := len(r) - 1; ; i-- {
				if r[i].Kind == KindLevel && r[i].Event == LevelCredits {
					r[i].Count--
					return r
				}
			}
		}},
		{"backlog left over", InvariantReturn, "still wait for the DMA", func(r []Record) []Record {
			x := r[len(r)-1]
			return append(r, Record{Kind: KindLevel, Event: LevelBacklog, Card: 3, Count: 1, Start: x.End, End: x.End, Ready: x.End})
		}},
		{"message left over", InvariantReturn, "still in Q4", func(r []Record) []Record {
			x := r[len(r)-1]
			return append(r, Record{Kind: KindLevel, Event: LevelQueue4, Card: 3, Count: 1, Start: x.End, End: x.End, Ready: x.End})
		}},
		{"packet left upstream", InvariantReturn, "still upstream", func(r []Record) []Record {
			x := r[len(r)-1]
			return append(r, Record{Kind: KindLevel, Event: LevelFIFO, Card: 3, Count: 1, Start: x.End, End: x.End, Ready: x.End})
		}},

		{"memory overcommitted", InvariantMemory, "accesses to the memory", func(r []Record) []Record {
			r[find(t, r, 5, kind(KindSend))].Bytes *= 8
			return r
		}},
		{"memory overcommitted on the far side", InvariantMemory, "the memory of card 2 ", func(r []Record) []Record {
			// A transfer at more than the memory's rate.
			i := find(t, r, 5, func(x *Record) bool { return x.Kind == KindTransfer && x.Event == TransferBody && x.Peer == 2 })
			r[i].Bytes *= 16
			return r
		}},
		{"box shorter than its cycles", InvariantClock, "cycles and", func(r []Record) []Record {
			i := find(t, r, 5, box(RouterIn))
			r[i].Cycles += 5
			return r
		}},
		{"polls longer than their cycles", InvariantClock, "cycles and", func(r []Record) []Record {
			i := find(t, r, 5, kind(KindPolls))
			r[i].Cycles--
			return r
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			recs := c.mutate(slices.Clone(good))
			l := limitsOf(spec)
			l.Keep = 1000
			v := NewValidator(l)
			for i := range recs {
				if err := v.Record(&recs[i]); err != nil {
					t.Fatal(err)
				}
			}
			err := v.Finish(true)
			if !errors.Is(err, ErrInvalid) {
				t.Fatalf("error %v, want a violation", err)
			}
			var all []string
			for _, x := range v.Violations() {
				if x.Invariant == c.want && strings.Contains(x.Error(), c.detail) {
					return
				}
				all = append(all, x.Error())
			}
			t.Errorf("want %q with %q, got\n%s", c.want, c.detail, strings.Join(all, "\n"))
		})
	}
}

// A window of a run is taken as it is: what lies before it is not missed.
func TestValidateWindow(t *testing.T) {
	for _, s := range modelStreams(100) {
		recs := runModel(s)
		l := limitsOf(s)
		l.Window = true
		part := recs[len(recs)/3 : 2*len(recs)/3]
		if err := Validate(part, l, false); err != nil {
			t.Errorf("seed %d: %v", s.seed, err)
		}
		l.Window = false
		if err := Validate(part, l, false); err == nil {
			t.Errorf("seed %d: a cut stream passes as a whole one", s.seed)
		}
	}
}

func TestValidateFailFast(t *testing.T) {
	recs := runModel(modelStreams(20)[0])
	i := find(t, recs, 3, box(RouterIn))
	recs[i].Start--
	l := limitsOf(modelStreams(20)[0])
	l.FailFast = true
	v := NewValidator(l)
	for j := range recs {
		err := v.Record(&recs[j])
		if j < i && err != nil {
			t.Fatal(err)
		}
		if j == i {
			var x *Violation
			if !errors.As(err, &x) || x.Number != uint64(i+1) || x.Record != recs[i] {
				t.Fatalf("record %d: %v", i+1, err)
			}
			if len(x.Before) != 4 || !strings.Contains(x.Explain(), "before it: polls on card 0") {
				t.Fatalf("context: %s", x.Explain())
			}
			return
		}
	}
}

// Far more violations than are kept, and memory stays as it is.
func TestValidateKeeps(t *testing.T) {
	v := NewValidator(Limits{Keep: 3})
	for i := range 1000 {
		r := Record{Kind: KindLeave, Event: NoEvent, Packet: uint64(i + 1), Verdict: VerdictForwarded}
		if err := v.Record(&r); err != nil {
			t.Fatal(err)
		}
	}
	if len(v.Violations()) != 3 || v.Total() != 1000 {
		t.Errorf("%d kept of %d", len(v.Violations()), v.Total())
	}
}

func TestValidateAllocates(t *testing.T) {
	s := modelStreams(200)[3]
	recs := runModel(s)
	v := NewValidator(limitsOf(s))
	half := len(recs) / 2
	for i := range half {
		_ = v.Record(&recs[i])
	}
	i := half
	if n := testing.AllocsPerRun(len(recs)-half-1, func() { _ = v.Record(&recs[i]); i++ }); n != 0 {
		t.Errorf("%g allocations a record", n)
	}
	if v.Total() > 0 {
		t.Error(v.Err())
	}
}

func ExampleValidate() {
	records := []Record{
		{Kind: KindEnter, Event: NoEvent, Card: 0, Packet: 1, Start: 1000, End: 1000},
		{Kind: KindLeave, Event: NoEvent, Card: 0, Packet: 1, Start: 2000, End: 2000, Verdict: VerdictDropped, Reason: ReasonFIFOFull},
		{Kind: KindLeave, Event: NoEvent, Card: 0, Packet: 1, Start: 3000, End: 3000, Verdict: VerdictForwarded},
	}
	fmt.Println(Validate(records, Limits{}, true))
	// Output: packet conservation: record 3 (leave on card 0 at 3 ns, packet 1): packet 1 has left already, dropped
}

// More packets inside than the first table holds, and causes too old to look
// up, are neither lost nor mistaken for violations.
func TestValidateGrows(t *testing.T) {
	v := NewValidator(Limits{})
	put := func(r Record) {
		if err := v.Record(&r); err != nil {
			t.Fatal(err)
		}
	}
	n := 5 * firstSlots
	for i := range n {
		put(Record{Kind: KindEnter, Event: NoEvent, Packet: uint64(i + 1), ID: MakeID(0, uint64(i+1)), Start: des.Time(i), End: des.Time(i)})
	}
	for i := range rememberedNames {
		put(Record{Kind: KindLevel, Event: LevelFIFO, ID: MakeID(0, uint64(n+i+1)), Start: des.Time(n), End: des.Time(n)})
	}
	for i := range n - 1 {
		at := des.Time(2*n + i)
		put(Record{Kind: KindLeave, Event: NoEvent, Packet: uint64(n - i), Cause: MakeID(0, uint64(i+1)), Start: at, End: at, Verdict: VerdictDropped, Reason: ReasonHost})
	}
	if v.Total() != 0 || v.Inside() != 1 || v.Unproven() != uint64(n-1) {
		t.Errorf("%d violations (%v), %d inside, %d causes too old", v.Total(), v.Err(), v.Inside(), v.Unproven())
	}
	if err := v.Finish(true); err == nil || !strings.Contains(err.Error(), "1 of 2560 packets are still inside, the first of them packet 1") {
		t.Error(err)
	}
}
