package traces

import (
	"fmt"

	"spinesim/sim/des"
)

// PacketRange is the packets First to Last, both included. A Last of 0 means
// no end.
type PacketRange struct{ First, Last uint64 }

// Filter says which records to keep. Its zero value keeps all; each field that
// is set narrows it.
type Filter struct {
	// From and To keep what touches the span [From, To]: records that end at
	// From or later and start at To or earlier. A To of 0 means no end.
	From, To des.Time
	// Packets keeps records of these packets only, and so none that belong to
	// no packet (polls, levels).
	Packets []PacketRange
	// Cards keeps records of these cards only; a transfer belongs to both its
	// ends. Empty means all.
	Cards []uint8
	// Kinds keeps records of these kinds only. Empty means all.
	Kinds []Kind
}

// Check tells what is wrong with a filter that can keep nothing.
func (f *Filter) Check() error {
	if f.To != 0 && f.To < f.From {
		return fmt.Errorf("window ends at %d ps, before its begin at %d ps", int64(f.To), int64(f.From))
	}
	for _, p := range f.Packets {
		if p.Last != 0 && p.Last < p.First {
			return fmt.Errorf("packets %d to %d: the last comes before the first", p.First, p.Last)
		}
	}
	for _, k := range f.Kinds {
		if int(k) >= NumKinds {
			return fmt.Errorf("there is no kind of record with number %d", k)
		}
	}
	return nil
}

// compiled is a filter made ready to be asked often.
type compiled struct {
	f     Filter
	cards [256]bool
	kinds [256]bool
}

func (f *Filter) compile() *compiled {
	c := &compiled{f: *f}
	for i := range c.cards {
		c.cards[i] = len(f.Cards) == 0
		c.kinds[i] = len(f.Kinds) == 0
	}
	for _, card := range f.Cards {
		c.cards[card] = true
	}
	for _, k := range f.Kinds {
		c.kinds[k] = true
	}
	return c
}

func (c *compiled) keep(r *Record) bool {
	if r.End < c.f.From || c.f.To != 0 && r.Start > c.f.To || !c.kinds[r.Kind] {
		return false
	}
	if !c.cards[r.Card] && !(r.Kind == KindTransfer && c.cards[r.Peer]) {
		return false
	}
	if len(c.f.Packets) == 0 {
		return true
	}
	for _, p := range c.f.Packets {
		if r.Packet != 0 && r.Packet >= p.First && (p.Last == 0 || r.Packet <= p.Last) {
			return true
		}
	}
	return false
}

// Keeps tells whether the filter keeps r.
func (f *Filter) Keeps(r *Record) bool { return f.compile().keep(r) }

// Window is a sink that passes on what its filter keeps.
type Window struct {
	c    *compiled
	next Sink
}

// NewWindow returns a window before next.
func NewWindow(f Filter, next Sink) *Window { return &Window{f.compile(), next} }

// Record passes r on where the filter keeps it.
func (w *Window) Record(r *Record) error {
	if w.c.keep(r) {
		return w.next.Record(r)
	}
	return nil
}

// Cut passes the records of r that f keeps on to w, and tells how many.
func Cut(r Reader, w Sink, f Filter) (uint64, error) {
	if err := f.Check(); err != nil {
		return 0, err
	}
	c := f.compile()
	var rec Record
	n := uint64(0)
	for {
		ok, err := r.Next(&rec)
		if err != nil || !ok {
			return n, err
		}
		if !c.keep(&rec) {
			continue
		}
		if err := w.Record(&rec); err != nil {
			return n, err
		}
		n++
	}
}

// AfterPackets is a sink that passes on what follows the n-th departure: all
// records after the KindDepart that makes n, so that a warm-up is left out.
type AfterPackets struct {
	n    uint64
	next Sink
}

// NewAfterPackets returns a sink that leaves out the first n departures.
func NewAfterPackets(n uint64, next Sink) *AfterPackets { return &AfterPackets{n, next} }

// Record passes r on once n packets have departed.
func (a *AfterPackets) Record(r *Record) error {
	if a.n == 0 {
		return a.next.Record(r)
	}
	if r.Kind == KindDepart {
		a.n--
	}
	return nil
}

// BeforeDrop is a sink that passes on, whenever a packet is dropped, the drop
// and what led to it: the last records before it, as many as its ring holds
// and as were not passed on with an earlier drop.
type BeforeDrop struct {
	ring   *Ring
	reason Reason
	left   int
	next   Sink
	drops  uint64
}

// NewBeforeDrop returns such a sink with a ring of n records (the drop itself
// included). reason limits it to drops for that reason, ReasonNone means any.
// After the given number of drops nothing more is passed on; 0 means no end.
func NewBeforeDrop(n int, reason Reason, drops int, next Sink) *BeforeDrop {
	if drops <= 0 {
		drops = -1
	}
	return &BeforeDrop{ring: NewRing(nil, n), reason: reason, left: drops, next: next}
}

// Drops is how many drops there were, passed on or not.
func (b *BeforeDrop) Drops() uint64 { return b.drops }

// Record keeps r, and passes on the ring when r is a drop.
func (b *BeforeDrop) Record(r *Record) error {
	drop := r.Kind == KindLeave && r.Verdict == VerdictDropped && (b.reason == ReasonNone || r.Reason == b.reason)
	if drop {
		b.drops++
	}
	if b.left == 0 {
		return nil
	}
	if err := b.ring.Record(r); err != nil || !drop {
		return err
	}
	b.left--
	for i := range b.ring.Len() {
		if err := b.next.Record(b.ring.At(i)); err != nil {
			return err
		}
	}
	b.ring.Reset()
	return nil
}
