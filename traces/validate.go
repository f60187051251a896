package traces

import (
	"errors"
	"fmt"
	"strings"

	"spinesim/sim/des"
)

// ErrInvalid is what every violation wraps.
var ErrInvalid = errors.New("record breaks an invariant")

// Invariant names a rule that every record stream keeps.
type Invariant string

// The invariants.
const (
	InvariantOrder        Invariant = "canonical order"      // by End, then Card
	InvariantTimes        Invariant = "times of a record"    // Ready ≤ Start ≤ End
	InvariantFields       Invariant = "fields of a record"   // kinds, events, reasons and verdicts that exist and fit
	InvariantIdentity     Invariant = "record names"         // no two records share a name
	InvariantCausality    Invariant = "cause before effect"  // every cause is recorded and begins first
	InvariantConservation Invariant = "packet conservation"  // who entered leaves once, or is still inside
	InvariantLifecycle    Invariant = "a packet's way"       // each handler once, after those it follows from
	InvariantProcessor    Invariant = "one box at a time"    // boxes and polls of a card do not overlap
	InvariantPolling      Invariant = "polls and handlers"   // runs are maximal; a hit is followed at once by its handler
	InvariantUnit         Invariant = "one thing at a time"  // engines and bus
	InvariantLevel        Invariant = "levels within bounds" // buffers, credits, FIFO, backlog
	InvariantReturn       Invariant = "all comes back"       // buffers and credits of a drained router
	InvariantStop         Invariant = "a stopped card"       // it executes nothing more, and only then packets are stranded
	InvariantMemory       Invariant = "memory bus"           // no more accesses than it has
	InvariantClock        Invariant = "box length"           // cycles and stalls make up the time
)

// Limits are what the machine has. A field of 0 is not known, and what depends
// on it is not checked.
type Limits struct {
	Buffers uint32 // packet buffers of a card
	Posted  uint32 // of those, posted to the receive engine when nothing is inside: 0 with receive: split, else 1
	Credits uint32 // credits for one peer
	FIFO    uint32 // places upstream of a card
	Queues  uint8  // input queues of a card, 0 for 7
	// CardPeriod is one cycle of a card, nominally; 0.1 % more or less is let
	// pass for a card whose clock is off.
	CardPeriod des.Time
	BusPeriod  des.Time // one bus clock
	// MemoryAccesses a card's memory grants a cycle, 0 for 2.
	MemoryAccesses uint32
	// Window says that the stream is a part of a run: packets and causes from
	// before it are taken on trust.
	Window bool
	// FailFast makes Record return the first violation, which stops a run.
	FailFast bool
	// Keep is how many violations are kept with their context, 0 for 20; the
	// others are counted.
	Keep int
}

// Violation is one broken invariant.
type Violation struct {
	Invariant Invariant
	Number    uint64 // of the record in the stream, from 1; one past the last for what is found at the end
	Record    Record // zero Kind for what is found at the end
	Detail    string
	Before    []Record // the card's records before it, oldest first
}

// Error says what is wrong in one line.
func (v *Violation) Error() string {
	if v.Record.Kind == KindNone {
		return fmt.Sprintf("%s: at the end of %d records: %s", v.Invariant, v.Number-1, v.Detail)
	}
	return fmt.Sprintf("%s: record %d (%s): %s", v.Invariant, v.Number, describe(&v.Record), v.Detail)
}

// Unwrap lets errors.Is find ErrInvalid.
func (v *Violation) Unwrap() error { return ErrInvalid }

// Explain says what is wrong with the records that led to it, on several lines.
func (v *Violation) Explain() string {
	var b strings.Builder
	b.WriteString(v.Error())
	for i := range v.Before {
		fmt.Fprintf(&b, "\n  before it: %s", describe(&v.Before[i]))
	}
	return b.String()
}

// describe names a record for people.
func describe(r *Record) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v", r.Kind)
	if r.Event != NoEvent || r.Kind == KindBox {
		fmt.Fprintf(&b, " %q", r.Event.String())
	}
	switch r.Card {
	case HostCard:
		b.WriteString(" on the host")
	default:
		fmt.Fprintf(&b, " on card %d", r.Card)
	}
	if r.Start != r.End {
		fmt.Fprintf(&b, " from %v to %v", r.Start, r.End)
	} else {
		fmt.Fprintf(&b, " at %v", r.End)
	}
	if r.Packet != 0 {
		fmt.Fprintf(&b, ", packet %d", r.Packet)
	}
	if r.ID != 0 {
		fmt.Fprintf(&b, ", name %v", r.ID)
	}
	if r.Cause != 0 {
		fmt.Fprintf(&b, ", cause %v", r.Cause)
	}
	if r.Kind == KindLevel || r.Kind == KindPolls || r.Kind == KindMark || r.Kind == KindStop {
		fmt.Fprintf(&b, ", count %d", r.Count)
	}
	return b.String()
}

// Validator is a Sink that checks what must always hold. Its memory is bounded
// by the number of cards and of packets inside.
type Validator struct {
	lim     Limits
	cards   [256]*cardCheck
	packets packetChecks
	bus     []busGroup
	orphans []orphan

	n        uint64
	last     Record
	seen     bool
	done     bool
	inside   uint64
	entered  uint64
	total    uint64
	kept     []*Violation
	unproven uint64 // causes too long ago to look up
	stopped  bool   // a card has
}

// NewValidator returns a validator that has seen nothing.
func NewValidator(l Limits) *Validator {
	if l.Queues == 0 {
		l.Queues = 7
	}
	if l.MemoryAccesses == 0 {
		l.MemoryAccesses = 2
	}
	if l.Keep <= 0 {
		l.Keep = 20
	}
	v := &Validator{lim: l}
	v.packets.init()
	return v
}

// Validate checks a record stream that lies in memory; drained says that the
// run went on until the router was empty. The error is the first *Violation.
func Validate(records []Record, l Limits, drained bool) error {
	v := NewValidator(l)
	for i := range records {
		if err := v.Record(&records[i]); err != nil {
			return err
		}
	}
	return v.Finish(drained)
}

// cardCheck is what is remembered of one card.
type cardCheck struct {
	names nameRing

	procEnd  des.Time // end of the last box or run of polls
	procKind Kind
	procHit  uint8 // queue that the last run of polls found something in
	procSeen bool
	stopped  bool
	stop     des.Time
	stranded uint32   // packets, here
	pollEnd  des.Time // of expanded polls

	receiveEnd, sendEnd, engineEnd des.Time

	buffers, fifo, backlog level32
	queues                 [7]level32
	credits                map[uint8]*level32 // small, and not iterated into output

	memory memoryCheck
	before [4]Record
	nth    uint64
}

type level32 struct {
	now, most uint32
	seen      bool
}

func (v *Validator) card(n uint8) *cardCheck {
	c := v.cards[n]
	if c == nil {
		c = &cardCheck{credits: map[uint8]*level32{}}
		v.cards[n] = c
	}
	return c
}

func (v *Validator) fail(inv Invariant, r *Record, format string, args ...any) {
	v.total++
	if len(v.kept) >= v.lim.Keep {
		return
	}
	x := &Violation{Invariant: inv, Number: v.n, Detail: fmt.Sprintf(format, args...)}
	if r != nil {
		x.Record = *r
		c := v.card(r.Card)
		for i := c.nth - min(c.nth, uint64(len(c.before))); i < c.nth; i++ {
			x.Before = append(x.Before, c.before[i%uint64(len(c.before))])
		}
	} else {
		x.Number = v.n + 1
	}
	v.kept = append(v.kept, x)
}

// Record checks one record. It returns an error only with Limits.FailFast:
// the violation.
func (v *Validator) Record(r *Record) error {
	v.n++
	bad := v.total
	c := v.card(r.Card)
	if v.fields(r) {
		v.times(r)
		v.identity(c, r)
		switch r.Kind {
		case KindBox, KindPolls:
			v.processor(c, r)
		case KindStop:
			v.stop(c, r)
		case KindPoll:
			if r.Start < c.pollEnd {
				v.fail(InvariantProcessor, r, "the poll before it ended at %v", c.pollEnd)
			}
			c.pollEnd = r.End
		case KindTransfer, KindReceive, KindSend:
			v.unit(c, r)
		case KindLevel:
			v.level(c, r)
		}
		v.packet(r)
	}
	c.before[c.nth%uint64(len(c.before))] = *r
	c.nth++
	v.last, v.seen = *r, true
	if v.lim.FailFast && v.total > bad {
		return v.kept[0]
	}
	return nil
}

// Finish checks what can only be known at the end. drained says that the run
// went on until no packet was inside. It returns the first violation.
func (v *Validator) Finish(drained bool) error {
	if !v.done {
		v.done = true
		v.orphaned()
		if drained {
			v.returned()
		}
	}
	return v.Err()
}

// Err is the first *Violation, or nil.
func (v *Validator) Err() error {
	if len(v.kept) == 0 {
		return nil
	}
	return v.kept[0]
}

// Violations are those kept, in the order found.
func (v *Validator) Violations() []*Violation { return v.kept }

// Total counts all violations.
func (v *Validator) Total() uint64 { return v.total }

// Records counts the records seen.
func (v *Validator) Records() uint64 { return v.n }

// Unproven counts causes that lay too far back to look up.
func (v *Validator) Unproven() uint64 { return v.unproven }

// Inside is how many packets have entered and not left.
func (v *Validator) Inside() uint64 { return v.inside }
