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
// nothing. It is not safe for concurrent use;
// see Overlap for its own.
type Recorder struct {
	sinks   []Sink
	batch   int      // records that are passed on together, at least
	pending []Record // in order up to from, behind it all of one End
	from    int
	stray   Record // takes what Next must not pass on
	expand  bool
	mixed   bool // the records behind from are not sorted by Card
	err     error
	over    *overlap // or nil
	next    [256]uint64

	// The cards of records to be sorted, as one chain of records each.
	unsorted   []Record
	present    [4]uint64
	head, tail [256]int32
	link       []int32
}

// NewRecorder returns a recorder that passes records on to the sinks, to each
// in the order given.
func NewRecorder(sinks ...Sink) *Recorder { return &Recorder{sinks: sinks, batch: 1} }

// batchSink is a sink that takes many records in one call.
type batchSink interface {
	records(rs []Record) error
}

// SetBatch makes the recorder gather about n records before it passes them on,
// to one sink after the other. The sinks then hear of things later, and each
// works through many records while its state is at hand, which is faster. At
// first a record is passed on as soon as one with a later End comes: n = 1.
func (r *Recorder) SetBatch(n int) {
	if r != nil {
		r.batch = max(n, 1)
	}
}

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
			r.turn()
		} else if rec.Card < last.Card {
			r.mixed = true
		}
	}
	r.pending = append(r.pending, *rec)
}

// Next is Add for the model's hot path: it gives the record that comes next, to
// be filled in place before the next record is reported. End and Card are set,
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
			r.turn()
			n = len(r.pending)
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
	if r.err == nil && r.over != nil {
		if err := r.over.err.Load(); err != nil {
			return *err
		}
	}
	return r.err
}

func (r *Recorder) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

// turn ends the records of one End, behind which a later one comes.
func (r *Recorder) turn() {
	if r.mixed {
		r.sort()
	}
	r.from = len(r.pending)
	if r.from >= r.batch {
		r.pass()
	}
}

// pass passes the pending records on, which are in order.
func (r *Recorder) pass() {
	if o := r.over; o != nil {
		o.full <- r.pending
		r.pending, r.from = <-o.empty, 0
		return
	}
	if err := deliver(r.sinks, r.pending); err != nil {
		r.fail(err)
	}
	r.pending, r.from = r.pending[:0], 0
}

// deliver tells each sink of the records, whatever the others make of them, and
// returns the first error.
func deliver(sinks []Sink, rs []Record) (first error) {
	for _, s := range sinks {
		if b, ok := s.(batchSink); ok {
			if err := b.records(rs); err != nil && first == nil {
				first = err
			}
			continue
		}
		for i := range rs {
			if err := s.Record(&rs[i]); err != nil && first == nil {
				first = err
			}
		}
	}
	return first
}

// sort is a stable sort by card of the records of one End in linear time: one
// chain of records a card, the cards taken from a bit set in ascending order.
func (r *Recorder) sort() {
	r.mixed = false
	r.present = [4]uint64{}
	r.link = r.link[:0]
	r.unsorted = append(r.unsorted[:0], r.pending[r.from:]...)
	for i := range r.unsorted {
		c := r.unsorted[i].Card
		r.link = append(r.link, -1)
		if word, bit := c>>6, uint64(1)<<(c&63); r.present[word]&bit == 0 {
			r.present[word] |= bit
			r.head[c] = int32(i)
		} else {
			r.link[r.tail[c]] = int32(i)
		}
		r.tail[c] = int32(i)
	}
	to := r.pending[r.from:]
	for word, set := range r.present {
		for ; set != 0; set &= set - 1 {
			c := word<<6 | bits.TrailingZeros64(set)
			for i := r.head[c]; i >= 0; i = r.link[i] {
				to[0] = r.unsorted[i]
				to = to[1:]
			}
		}
	}
}

// Close passes on what is pending and returns the first error of any sink. It
// does not close the sinks.
func (r *Recorder) Close() error {
	if r == nil {
		return nil
	}
	if r.mixed {
		r.sort()
	}
	r.pass()
	r.Stop()
	return r.err
}
