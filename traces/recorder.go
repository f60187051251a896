package traces

// Sink takes records in canonical order: by End, then Card, then the order in
// which the card made them. The record is valid only during the call.
type Sink interface {
	Record(r *Record) error
}

// Recorder is handed to the model, which reports what happens to it. A nil
// *Recorder records nothing and costs a comparison.
//
// The model may call Add in any order within one End time; the recorder sorts
// those by card before it passes them on.
type Recorder struct {
	sinks   []Sink
	pending []Record
	expand  bool
	next    []uint64
	err     error
}

// NewRecorder returns a recorder that passes records on to the sinks.
func NewRecorder(sinks ...Sink) *Recorder { return &Recorder{sinks: sinks} }

// Expanding tells whether every poll is to be reported on its own too.
func (r *Recorder) Expanding() bool { return r != nil && r.expand }

// SetExpanding asks for every poll, from now on or no longer.
func (r *Recorder) SetExpanding(on bool) { r.expand = on }

// NextID gives the next record name of a card.
func (r *Recorder) NextID(card uint8) ID {
	if r == nil {
		return 0
	}
	for int(card) >= len(r.next) {
		r.next = append(r.next, 0)
	}
	r.next[card]++
	return ID(card)<<48 | ID(r.next[card])
}

// Add reports a record. Its End must not lie before that of an earlier one.
func (r *Recorder) Add(rec *Record) {
	if r == nil {
		return
	}
	if n := len(r.pending); n > 0 && r.pending[n-1].End != rec.End {
		r.flush()
	}
	i := len(r.pending)
	r.pending = append(r.pending, *rec)
	for ; i > 0 && r.pending[i-1].Card > rec.Card; i-- {
		r.pending[i] = r.pending[i-1]
	}
	r.pending[i] = *rec
}

func (r *Recorder) flush() {
	for i := range r.pending {
		for _, s := range r.sinks {
			if err := s.Record(&r.pending[i]); err != nil && r.err == nil {
				r.err = err
			}
		}
	}
	r.pending = r.pending[:0]
}

// Close passes on what is pending and returns the first error of any sink.
func (r *Recorder) Close() error {
	if r == nil {
		return nil
	}
	r.flush()
	return r.err
}
