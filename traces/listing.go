package traces

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
)

// ListingWriter writes a line a record for people to read, and for tests to
// keep: start and length in µs, card, kind and event in columns, then what
// else there is as name=value. For example
//
//	12.345000    +1.980000  0     box       Rx check header     | packet=7 queue=1 cycles=66 id=0#12 cause=0#9
//
// Everything is there exactly, so the listing can be read back. The reader takes
// a listing without preamble and trailer too, as one writes by hand.
type ListingWriter struct {
	w io.Writer
	b []byte
	tally
}

// NewListingWriter begins a listing on w.
func NewListingWriter(w io.Writer, meta *Meta) (*ListingWriter, error) {
	b, err := appendPreamble(make([]byte, 0, lineBuffer+1024), "listing", meta)
	if err != nil {
		return nil, err
	}
	b = append(b, "#   start/µs   length/µs  card  kind      event\n"...)
	return &ListingWriter{w: w, b: b}, nil
}

// Record writes r.
func (w *ListingWriter) Record(r *Record) error {
	w.count(r)
	w.b = append(AppendListing(w.b, r), '\n')
	if len(w.b) < lineBuffer {
		return nil
	}
	return w.flush()
}

func (w *ListingWriter) flush() error {
	_, err := w.w.Write(w.b)
	w.b = w.b[:0]
	return err
}

// Close writes the trailer; it does not close w.
func (w *ListingWriter) Close() error {
	w.b = appendTrailer(w.b, w.tally)
	return w.flush()
}

// AppendListing appends r's line of a listing, without a line end.
func AppendListing(b []byte, r *Record) []byte {
	b = rightAlign(b, 12, func(b []byte) []byte { return appendMicros(b, r.Start) })
	b = append(b, ' ')
	b = rightAlign(b, 12, func(b []byte) []byte { return appendMicros(append(b, '+'), r.End-r.Start) })
	b = append(b, "  "...)
	b = leftAlign(b, 6, func(b []byte) []byte { return appendCard(b, r.Card, "-") })
	b = leftAlign(b, 10, func(b []byte) []byte { return appendKind(b, r.Kind) })
	b = leftAlign(b, 20, func(b []byte) []byte {
		if r.Event == NoEvent {
			return append(b, '-')
		}
		return appendEvent(b, r.Event)
	})
	b = append(b, '|')
	number := func(name string, v uint64) {
		b = append(b, ' ')
		b = append(b, name...)
		b = strconv.AppendUint(append(b, '='), v, 10)
	}
	if r.Packet != 0 {
		number("packet", r.Packet)
	}
	if r.Queue != NoQueue {
		number("queue", uint64(r.Queue))
	}
	if r.Peer != NoCard {
		b = appendCard(append(b, " peer="...), r.Peer, "-")
	}
	if r.Verdict != VerdictNone {
		b = append(appendVerdict(append(b, ` verdict="`...), r.Verdict), '"')
	}
	if r.Reason != ReasonNone {
		b = append(appendReason(append(b, ` reason="`...), r.Reason), '"')
	}
	if r.Bytes != 0 {
		number("bytes", uint64(r.Bytes))
	}
	if r.Count != 0 || r.Kind == KindLevel || r.Kind == KindMark || r.Kind == KindStop {
		number("count", uint64(r.Count))
	}
	if r.Cycles != 0 {
		number("cycles", r.Cycles)
	}
	if r.Stall != 0 {
		number("stall", uint64(r.Stall))
	}
	if r.Ready != 0 {
		b = appendMicros(append(b, " ready="...), r.Ready)
	}
	if r.ID != 0 {
		b = appendID(append(b, " id="...), r.ID)
	}
	if r.Cause != 0 {
		b = appendID(append(b, " cause="...), r.Cause)
	}
	return b
}

func rightAlign(b []byte, width int, f func([]byte) []byte) []byte {
	at := len(b)
	b = f(b)
	n := len(b) - at
	if n >= width {
		return b
	}
	for range width - n {
		b = append(b, ' ')
	}
	copy(b[at+width-n:], b[at:at+n])
	for i := at; i < at+width-n; i++ {
		b[i] = ' '
	}
	return b
}

func leftAlign(b []byte, width int, f func([]byte) []byte) []byte {
	at := len(b)
	b = f(b)
	for n := len(b) - at; n < width-1; n++ {
		b = append(b, ' ')
	}
	return append(b, ' ')
}

// ListingReader reads listings.
type ListingReader struct {
	lines
	names *names
}

// NewListingReader reads a listing from its start.
func NewListingReader(in io.Reader, o ReadOptions) (*ListingReader, error) {
	r := &ListingReader{names: newNames()}
	if err := r.open(in, o, "listing", "listing"); err != nil {
		return nil, err
	}
	return r, nil
}

// Next gives the next record.
func (r *ListingReader) Next(rec *Record) (bool, error) {
	line, more, err := r.next()
	if !more {
		return false, err
	}
	if err := r.names.parseListing(line, rec); err != nil {
		return r.stop(err)
	}
	r.count(rec)
	return true, nil
}

// Close ends reading; it does not close what is read from.
func (r *ListingReader) Close() error { r.done = true; return nil }

// ParseListing reads one line of a listing.
func ParseListing(line string, r *Record) error {
	return newNames().parseListing([]byte(line), r)
}

func word(b []byte) (first, rest []byte) {
	b = bytes.TrimLeft(b, " \t")
	if i := bytes.IndexAny(b, " \t"); i >= 0 {
		return b[:i], b[i:]
	}
	return b, nil
}

func (n *names) parseListing(line []byte, r *Record) error {
	*r = Record{Event: NoEvent, Card: NoCard, Peer: NoCard, Queue: NoQueue}
	left, right, ok := bytes.Cut(line, []byte("|"))
	if !ok {
		return fmt.Errorf("%w: %.40q is no line of a listing: there is no |", ErrForeign, line)
	}
	start, left := word(left)
	var err error
	if r.Start, err = parseMicros(start); err != nil {
		return fmt.Errorf("start: %w", err)
	}
	length, left := word(left)
	if len(length) < 2 || length[0] != '+' {
		return fmt.Errorf("%w: length %q does not begin with +", ErrCorrupt, length)
	}
	span, err := parseMicros(length[1:])
	if err != nil {
		return fmt.Errorf("length: %w", err)
	}
	r.End = r.Start + span
	card, left := word(left)
	if r.Card, err = parseCard(card, "-"); err != nil {
		return fmt.Errorf("card: %w", err)
	}
	kind, left := word(left)
	if r.Kind, err = valueNamed(n.kinds, "kind", kind); err != nil {
		return err
	}
	if event := bytes.TrimSpace(left); string(event) != "-" {
		if r.Event, err = valueNamed(n.events, "event", event); err != nil {
			return err
		}
	}
	for {
		right = bytes.TrimLeft(right, " \t")
		if len(right) == 0 {
			return nil
		}
		name, rest, ok := bytes.Cut(right, []byte("="))
		if !ok {
			return fmt.Errorf("%w: %.40q is not of the form name=value", ErrCorrupt, right)
		}
		var value []byte
		if len(rest) > 0 && rest[0] == '"' {
			if value, right, ok = bytes.Cut(rest[1:], []byte(`"`)); !ok {
				return fmt.Errorf("%w: quote does not end", ErrCorrupt)
			}
		} else {
			value, right = word(rest)
			if len(rest) > 0 && (rest[0] == ' ' || rest[0] == '\t') {
				value = nil
			}
		}
		if err := n.setListing(r, name, value); err != nil {
			return fmt.Errorf("%.20s: %w", name, err)
		}
	}
}

func (n *names) setListing(r *Record, name, value []byte) (err error) {
	switch string(name) {
	case "peer":
		r.Peer, err = parseCard(value, "-")
	case "stall":
		r.Stall, err = parseUint32(value)
	case "ready":
		r.Ready, err = parseMicros(value)
	case "id":
		r.ID, err = ParseID(string(value))
	case "cause":
		r.Cause, err = ParseID(string(value))
	default:
		known, err := n.set(r, string(name), value)
		if !known {
			return fmt.Errorf("%w: the name is not known", ErrCorrupt)
		}
		return err
	}
	return err
}
