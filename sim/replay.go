package sim

import (
	"context"
	"errors"
	"slices"

	"spinesim/sim/des"
	"spinesim/traces"
)

// Replay is a run with the part of its record that is worth drawing.
type Replay struct {
	Result *Result
	Meta   *traces.Meta
	// Ingress is the card that the pictures show.
	Ingress uint8
	// Span is what Records covers.
	Span Span
	// Best and Slow are the windows of the two event graphs, within Span.
	Best, Slow Window
	// Records holds everything that happened in the span, and in the windows
	// every poll on its own.
	Records []traces.Record
}

// TimelineSpan is how much time the oscillation is drawn over.
const TimelineSpan = 13 * des.Millisecond

// replaySkip and replayLimit say among which packets the windows are looked
// for: after the pipeline has filled, and early enough to run up to them again
// in little time (chosen).
const (
	replaySkip  = 64
	replayLimit = 25000
)

// RunReplay runs a scenario twice: once whole, to measure it and to find the
// fastest stretch, and once up to that, to record it with every poll. Both
// runs do the same, for a run depends on nothing but the scenario and its seed.
// Where cards have stopped the replay is whole, and comes beside the run's
// *StoppedError.
func RunReplay(ctx context.Context, sc *Scenario, opt Options) (*Replay, error) {
	if err := sc.Validate(); err != nil {
		return nil, err
	}
	w := &Windows{Card: uint8(sc.Traffic.Ingress[0]), Skip: replaySkip, Limit: replayLimit}
	first := opt
	first.Sinks = append(slices.Clone(opt.Sinks), w)
	s, err := New(sc, first)
	if err != nil {
		return nil, err
	}
	res, err := s.Run(ctx)
	var stopped *StoppedError
	if err != nil && !errors.As(err, &stopped) {
		return &Replay{Result: res}, err
	}
	r := &Replay{Result: res, Meta: s.Meta(), Ingress: w.Card}
	res.Windows = w.result()
	centre := w.centre()
	end := s.eng.Now()
	if centre.Found {
		r.Span.From = max(0, (centre.From+centre.To)/2-TimelineSpan/2)
	}
	r.Span.To = min(end, r.Span.From+TimelineSpan)
	keep := &keeper{span: r.Span}
	second := Options{Unmeasured: true, Expand: []Span{r.Span}, Until: r.Span.To, Sinks: []traces.Sink{keep}, Extensions: opt.Extensions, Policy: opt.Policy}
	var again *StoppedError
	if _, err := Run(ctx, sc, second); err != nil && !errors.As(err, &again) {
		return r, err
	}
	r.Records = keep.records
	if r.Span.To < end {
		// The second run ends early: runs of polls that it cuts short are
		// none of the whole run's.
		r.Records = slices.DeleteFunc(r.Records, func(x traces.Record) bool {
			return x.Kind == traces.KindPolls && x.Queue == traces.NoQueue && x.Reason != traces.ReasonStopped
		})
	}
	r.findWindows()
	r.Records = slices.DeleteFunc(r.Records, r.extra)
	if stopped != nil {
		return r, stopped
	}
	return r, nil
}

// findWindows chooses the windows within the records.
func (r *Replay) findWindows() {
	w := &Windows{Card: r.Ingress, Within: r.Span}
	for i := range r.Records {
		_ = w.Record(&r.Records[i]) // it never fails
	}
	r.Best, r.Slow = w.Best(), w.Slow()
}

// extra tells whether a record is a single poll, or a queue's depth, outside
// both windows.
func (r *Replay) extra(rec traces.Record) bool {
	if !rec.Expansion() {
		return false
	}
	for _, w := range []Window{r.Best, r.Slow} {
		if w.Found && rec.End >= w.From && rec.Start <= w.To {
			return false
		}
	}
	return true
}

// keeper keeps what touches a span.
type keeper struct {
	span    Span
	records []traces.Record
}

func (k *keeper) Record(r *traces.Record) error {
	if r.End >= k.span.From && r.Start <= k.span.To {
		k.records = append(k.records, *r)
	}
	return nil
}

// maxReplayRecords bounds what ReadReplay keeps of a file in memory.
const maxReplayRecords = 1 << 20

// measureRecord measures all of a record. each, if not nil, sees every record
// as well.
func measureRecord(path string, each func(*traces.Record) error) (r *Result, meta *traces.Meta, span Span, err error) {
	var meas *traces.Measures
	err = scan(path, func(m *traces.Meta) error { meta = m; return nil }, func(rec *traces.Record) error {
		if meas == nil {
			if meas, err = traces.NewMeasures(traces.MeasureSpec{From: rec.Start}); err != nil {
				return err
			}
			span.From = rec.Start
		}
		span.To = rec.End
		if each != nil {
			if err := each(rec); err != nil {
				return err
			}
		}
		return meas.Record(rec)
	})
	if err != nil {
		return nil, nil, span, err
	}
	if meas == nil {
		return nil, nil, span, inputErrorf("%s: the record is empty", path)
	}
	m, err := meas.Finish(span.To)
	if err != nil {
		return nil, nil, span, err
	}
	return &Result{Result: *m}, meta, span, nil
}

// ReadReplay reads a recorded trace: it measures all of it and keeps the part
// round its fastest stretch. Errors of the file are *traces.FormatError.
func ReadReplay(path string) (*Replay, error) {
	r := &Replay{}
	w := &Windows{}
	known := false
	var err error
	r.Result, r.Meta, r.Span, err = measureRecord(path, func(rec *traces.Record) error {
		if !known && rec.Kind == traces.KindBox && rec.Event == traces.RxCheckHeader {
			w.Card, known = rec.Card, true
		}
		return w.Record(rec)
	})
	if err != nil {
		return nil, err
	}
	r.Ingress = w.Card
	if r.Span.To-r.Span.From > TimelineSpan {
		if centre := w.centre(); centre.Found {
			r.Span.From = max(r.Span.From, (centre.From+centre.To)/2-TimelineSpan/2)
		}
		r.Span.To = min(r.Span.To, r.Span.From+TimelineSpan)
	}
	keep := &keeper{span: r.Span}
	err = scan(path, nil, func(rec *traces.Record) error {
		if len(keep.records) >= maxReplayRecords {
			return nil
		}
		return keep.Record(rec)
	})
	if err != nil {
		return nil, err
	}
	r.Records = keep.records
	r.findWindows()
	return r, nil
}

// scan reads a file of records from start to end.
func scan(path string, meta func(*traces.Meta) error, each func(*traces.Record) error) error {
	rd, err := traces.OpenReader(path)
	if err != nil {
		return &InputError{err}
	}
	defer rd.Close()
	if meta != nil {
		if err := meta(rd.Meta()); err != nil {
			return err
		}
	}
	var rec traces.Record
	for {
		ok, err := rd.Next(&rec)
		if err != nil || !ok {
			return err
		}
		if err := each(&rec); err != nil {
			return err
		}
	}
}
