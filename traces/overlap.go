package traces

import "sync/atomic"

// overlap passes records on in a goroutine of its own.
type overlap struct {
	full  chan []Record // to be passed on, in order
	empty chan []Record // has been
	ended chan struct{} // when all are
	err   atomic.Pointer[error]
}

// Overlapped is how many batches are under way at most: while one is passed on
// and one is filled, others even out that now the one and now the other is
// slower. Chosen.
const overlapped = 4

// Overlap makes the recorder pass records on in a goroutine of its own, in the
// same order, while the model goes on: sinks hear the same of a run, by up to a
// few batches later. That is worth it where there is a processor for it, and
// where SetBatch says some hundreds. It is to be called before the first record;
// Close or Stop ends the goroutine. A nil Recorder ignores it.
func (r *Recorder) Overlap() {
	if r == nil || r.over != nil {
		return
	}
	o := &overlap{full: make(chan []Record, overlapped), empty: make(chan []Record, overlapped), ended: make(chan struct{})}
	for range overlapped - 1 {
		o.empty <- make([]Record, 0, r.batch+1)
	}
	r.over = o
	go func() {
		defer close(o.ended)
		for rs := range o.full {
			if err := deliver(r.sinks, rs); err != nil && o.err.Load() == nil {
				o.err.Store(&err)
			}
			o.empty <- rs[:0]
		}
	}()
}

// Stop waits until what was passed on has been heard, and ends what Overlap
// began. What is pending is not passed on: Stop is for a run that has failed.
func (r *Recorder) Stop() {
	if r == nil || r.over == nil {
		return
	}
	o := r.over
	r.over = nil
	close(o.full)
	<-o.ended
	if err := o.err.Load(); err != nil {
		r.fail(*err)
	}
}
