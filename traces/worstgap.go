package traces

import (
	"errors"
	"fmt"
	"slices"

	"spinesim/sim/des"
)

// GapSpan is the time between two successive departures (KindDepart) of the
// router, whichever cards they left from and for.
type GapSpan struct {
	From, To      des.Time // the two departures
	Before, After uint64   // the two packets
}

// Length of the gap.
func (g GapSpan) Length() des.Time { return g.To - g.From }

// worse orders gaps: the longer first, of equals the earlier.
func worse(a, b GapSpan) int {
	if a.Length() != b.Length() {
		return cmpTime(b.Length(), a.Length())
	}
	return cmpTime(a.To, b.To)
}

func cmpTime(a, b des.Time) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// WorstGaps is a sink that remembers the k longest gaps between departures.
type WorstGaps struct {
	k    int
	seen bool
	last Record
	gaps []GapSpan // by worse
}

// NewWorstGaps returns a sink for the k longest, k at least 1.
func NewWorstGaps(k int) *WorstGaps { return &WorstGaps{k: max(k, 1)} }

// Record takes a departure into account; it never fails.
func (w *WorstGaps) Record(r *Record) error {
	w.take(r)
	return nil
}

// take returns the gap's place among the worst, or -1.
func (w *WorstGaps) take(r *Record) int {
	if r.Kind != KindDepart {
		return -1
	}
	g := GapSpan{From: w.last.End, To: r.End, Before: w.last.Packet, After: r.Packet}
	first := !w.seen
	w.last, w.seen = *r, true
	if first {
		return -1
	}
	i, _ := slices.BinarySearchFunc(w.gaps, g, worse)
	if i >= w.k {
		return -1
	}
	w.gaps = slices.Insert(w.gaps, i, g)
	if len(w.gaps) > w.k {
		w.gaps = w.gaps[:w.k]
	}
	return i
}

// Gaps are the longest gaps, the longest first, of equals the earlier first.
// There are fewer than k where fewer were seen.
func (w *WorstGaps) Gaps() []GapSpan { return slices.Clone(w.gaps) }

// ErrNoGap: the stream has fewer gaps between departures than were asked for.
var ErrNoGap = errors.New("fewer gaps between departures than asked for")

// CutAroundGap passes on the records around the k-th longest gap (k from 1):
// those that touch the time from margin before it to margin after it. It reads
// the stream twice, so open must give a fresh reader each time, and needs no
// memory to speak of. It returns the gap and the number of records.
func CutAroundGap(open func() (Reader, error), k int, margin des.Time, w Sink) (GapSpan, uint64, error) {
	if k < 1 {
		return GapSpan{}, 0, fmt.Errorf("gap number %d: the longest is number 1", k)
	}
	worst := NewWorstGaps(k)
	if err := readOnce(open, func(r Reader) error {
		_, err := Convert(r, worst)
		return err
	}); err != nil {
		return GapSpan{}, 0, err
	}
	if len(worst.gaps) < k {
		return GapSpan{}, 0, fmt.Errorf("%w: %d of %d", ErrNoGap, len(worst.gaps), k)
	}
	g := worst.gaps[k-1]
	n := uint64(0)
	err := readOnce(open, func(r Reader) (err error) {
		n, err = Cut(r, w, around(g, margin))
		return err
	})
	return g, n, err
}

func readOnce(open func() (Reader, error), do func(Reader) error) error {
	r, err := open()
	if err != nil {
		return err
	}
	if err := do(r); err != nil {
		r.Close()
		return err
	}
	return r.Close()
}

func around(g GapSpan, margin des.Time) Filter {
	return Filter{From: g.From - margin, To: max(g.To+margin, 1)}
}

// AroundGap is the one-pass counterpart of CutAroundGap for a live run: it
// holds the windows of the k longest gaps so far, and passes on that of the
// k-th when it is closed. Since the past of a gap must still be there when it
// turns out to be long, it keeps the last records in a ring; of a window that
// reaches back further, the beginning is missing.
type AroundGap struct {
	worst   *WorstGaps
	k       int
	margin  des.Time
	ring    *Ring
	windows []gapWindow
	next    Sink
}

type gapWindow struct {
	gap GapSpan
	buf *Buffer
	c   *compiled
}

// NewAroundGap returns such a sink with a ring of n records. The windows
// together take about 20 bytes for each record in them.
func NewAroundGap(k int, margin des.Time, n int, next Sink) *AroundGap {
	return &AroundGap{worst: NewWorstGaps(k), k: max(k, 1), margin: margin, ring: NewRing(nil, n), next: next}
}

// Record takes r into account; it never fails.
func (a *AroundGap) Record(r *Record) error {
	_ = a.ring.Record(r)
	for i := range a.windows {
		// However late it is: records come by their end, and a long one may
		// have begun within the window.
		if w := &a.windows[i]; w.c.keep(r) {
			_ = w.buf.Record(r)
		}
	}
	i := a.worst.take(r)
	if i < 0 {
		return nil
	}
	g := a.worst.gaps[i]
	f := around(g, a.margin)
	w := gapWindow{gap: g, buf: NewBuffer(nil, 0), c: f.compile()}
	for j := range a.ring.Len() {
		if old := a.ring.At(j); w.c.keep(old) {
			_ = w.buf.Record(old)
		}
	}
	a.windows = slices.Insert(a.windows, i, w)
	if len(a.windows) > a.k {
		a.windows[a.k] = gapWindow{}
		a.windows = a.windows[:a.k]
	}
	return nil
}

// Gap is the k-th longest gap, if there were so many.
func (a *AroundGap) Gap() (GapSpan, bool) {
	if len(a.windows) < a.k {
		return GapSpan{}, false
	}
	return a.windows[a.k-1].gap, true
}

// Close passes on the window of the k-th longest gap; it returns ErrNoGap
// where there were fewer. It does not close the sink behind it.
func (a *AroundGap) Close() error {
	if len(a.windows) < a.k {
		return fmt.Errorf("%w: %d of %d", ErrNoGap, len(a.windows), a.k)
	}
	_, err := Convert(a.windows[a.k-1].buf.Reader(), a.next)
	return err
}
