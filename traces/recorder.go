package traces

import (
	"fmt"
	"math/bits"

	"spinesim/sim/des"
)

// Sink takes records in canonical order: by End, then Card, then the order in
// which the card made them. The record is valid only during the call.
type Sink interface {
	Record(r *Record) error
}

// Recorder is handed to the model, which reports what happens to it. A nil
// *Recorder records nothing and costs a comparison.
//
// The model may call Add in any order within one End time; the recorder sorts
// those by card before it passes them on. In steady state it allocates
// nothing. It is not safe for concurrent use.
type Recorder struct {
	sinks   []Sink
	pending []Record // all of one End
	stray   Record   // takes what Next must not pass on
	expand  bool
	mixed   bool // pending is not sorted by Card
	err     error
	next    [256]uint64

	// The cards of a mixed batch, as one chain of pending records each.
	present    [4]uint64
	head, tail [256]int32
	link       []int32
}

// NewRecorder returns a recorder that passes records on to the sinks, to each
// in the order given.
func NewRecorder(sinks ...Sink) *Recorder { return &Recorder{sinks: sinks} }

// Expanding tells whether every poll is to be reported on its own too.
func (r *Recorder) Expanding() bool { return r != nil && r.expand }

// SetExpanding asks for every poll, from now on or no longer. Records that are
// reported because of it must not take numbers from NextID: the fingerprint
// would then depend on who is watching.
func (r *Recorder) SetExpanding(on bool) {
	if r != nil {
		r.expand = on
	}
}

// NextID gives the next record name of a card, and 0 where nothing is recorded.
func (r *Recorder) NextID(card uint8) ID {
	if r == nil {
		return 0
	}
	r.next[card]++
	return MakeID(card, r.next[card])
}

// Add reports a record. Its End must not lie before that of an earlier one:
// such a record breaks the canonical order, so it is passed on to nobody and
// Close and Err report it.
func (r *Recorder) Add(rec *Record) {
	if r == nil {
		return
	}
	if n := len(r.pending); n > 0 {
		last := &r.pending[n-1]
		if last.End != rec.End {
			if rec.End < last.End {
				r.past(rec.End, rec.Card, last.End)
				return
			}
			r.flush()
		} else if rec.Card < last.Card {
			r.mixed = true
		}
	}
	r.pending = append(r.pending, *rec)
}

// Next is Add for the model's hot path: it gives the record that comes next, to
// be filled in place before the next call of any method. End and Card are set,
// Event, Peer and Queue name nothing, all else is zero; End and Card must stay.
// It must not be called on a nil Recorder.
func (r *Recorder) Next(end des.Time, card uint8) *Record {
	n := len(r.pending)
	if n > 0 {
		last := &r.pending[n-1]
		if last.End != end {
			if end < last.End {
				r.past(end, card, last.End)
				return &r.stray
			}
			r.flush()
			n = 0
		} else if card < last.Card {
			r.mixed = true
		}
	}
	if n == cap(r.pending) {
		r.pending = append(r.pending, Record{})
	}
	r.pending = r.pending[:n+1]
	rec := &r.pending[n]
	*rec = Record{}
	rec.End, rec.Card = end, card
	rec.Event, rec.Peer, rec.Queue = NoEvent, NoCard, NoQueue
	return rec
}

func (r *Recorder) past(end des.Time, card uint8, last des.Time) {
	r.fail(fmt.Errorf("%w: record of card %d ends at %d ps, after one that ended at %d ps", ErrOrder, card, int64(end), int64(last)))
}

// Err is the first error of any sink so far; a run may stop on it early.
func (r *Recorder) Err() error {
	if r == nil {
		return nil
	}
	return r.err
}

func (r *Recorder) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

// flush passes the pending records on.
func (r *Recorder) flush() {
	if !r.mixed {
		for i := range r.pending {
			r.emit(&r.pending[i])
		}
	} else {
		r.flushMixed()
	}
	r.pending = r.pending[:0]
}

// flushMixed is a stable sort by card in linear time: one chain of records a
// card, the cards taken from a bit set in ascending order.
func (r *Recorder) flushMixed() {
	r.mixed = false
	r.present = [4]uint64{}
	r.link = r.link[:0]
	for i := range r.pending {
		c := r.pending[i].Card
		r.link = append(r.link, -1)
		if word, bit := c>>6, uint64(1)<<(c&63); r.present[word]&bit == 0 {
			r.present[word] |= bit
			r.head[c] = int32(i)
		} else {
			r.link[r.tail[c]] = int32(i)
		}
		r.tail[c] = int32(i)
	}
	for word, set := range r.present {
		for ; set != 0; set &= set - 1 {
			c := word<<6 | bits.TrailingZeros64(set)
			for i := r.head[c]; i >= 0; i = r.link[i] {
				r.emit(&r.pending[i])
			}
		}
	}
}

func (r *Recorder) emit(rec *Record) {
	for _, s := range r.sinks {
		if err := s.Record(rec); err != nil {
			r.fail(err)
		}
	}
}

// Close passes on what is pending and returns the first error of any sink. It
// does not close the sinks.
func (r *Recorder) Close() error {
	if r == nil {
		return nil
	}
	r.flush()
	return r.err
}
