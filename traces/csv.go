package traces

import (
	"fmt"
	"io"
	"slices"
	"strconv"

	"spinesim/sim/des"
)

// csvColumns are the columns of a CSV file in the order written. Times are in
// ps and absolute, stall_cycles and cycles in clocks of what the record is
// about, card and peer a number or "host" or empty for none, id and cause
// whole numbers with the card in the bits from 2⁴⁸ up.
var csvColumns = []string{
	"kind", "event", "card", "peer", "queue", "packet",
	"start_ps", "end_ps", "ready_ps", "id", "cause",
	"bytes", "count", "cycles", "stall_cycles", "reason", "verdict",
}

// CSVWriter writes comma-separated values: comments with the metadata (see
// CSVReader), a line of column names, a line a record. Cells that say nothing
// (none, no card, no queue, a time, number or name of zero other than a start,
// end or count) are empty.
type CSVWriter struct {
	w io.Writer
	b []byte
	tally
}

// lineBuffer is how much a writer of lines collects before it writes.
const lineBuffer = 64 << 10

// NewCSVWriter begins a CSV file on w.
func NewCSVWriter(w io.Writer, meta *Meta) (*CSVWriter, error) {
	b, err := appendPreamble(make([]byte, 0, lineBuffer+1024), "csv", meta)
	if err != nil {
		return nil, err
	}
	for i, c := range csvColumns {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, c...)
	}
	return &CSVWriter{w: w, b: append(b, '\n')}, nil
}

// Record writes r.
func (w *CSVWriter) Record(r *Record) error {
	w.count(r)
	b := w.b
	b = appendKind(b, r.Kind)
	b = append(b, ',')
	if r.Event != NoEvent {
		b = appendEvent(b, r.Event)
	}
	b = append(b, ',')
	b = appendCard(b, r.Card, "")
	b = append(b, ',')
	b = appendCard(b, r.Peer, "")
	b = append(b, ',')
	if r.Queue != NoQueue {
		b = strconv.AppendUint(b, uint64(r.Queue), 10)
	}
	b = appendCell(b, r.Packet)
	b = append(b, ',')
	b = strconv.AppendInt(b, int64(r.Start), 10)
	b = append(b, ',')
	b = strconv.AppendInt(b, int64(r.End), 10)
	b = append(b, ',')
	if r.Ready != 0 {
		b = strconv.AppendInt(b, int64(r.Ready), 10)
	}
	b = appendCell(b, uint64(r.ID))
	b = appendCell(b, uint64(r.Cause))
	b = appendCell(b, uint64(r.Bytes))
	b = append(b, ',')
	b = strconv.AppendUint(b, uint64(r.Count), 10)
	b = appendCell(b, r.Cycles)
	b = appendCell(b, uint64(r.Stall))
	b = append(b, ',')
	if r.Reason != ReasonNone {
		at := len(b)
		b = appendReason(b, r.Reason)
		if slices.Contains(b[at:], ',') {
			b = append(b, '"', '"')
			copy(b[at+1:], b[at:len(b)-2])
			b[at] = '"'
		}
	}
	b = append(b, ',')
	if r.Verdict != VerdictNone {
		b = appendVerdict(b, r.Verdict)
	}
	w.b = append(b, '\n')
	if len(w.b) < lineBuffer {
		return nil
	}
	return w.flush()
}

func appendCell(b []byte, v uint64) []byte {
	b = append(b, ',')
	if v != 0 {
		b = strconv.AppendUint(b, v, 10)
	}
	return b
}

func (w *CSVWriter) flush() error {
	_, err := w.w.Write(w.b)
	w.b = w.b[:0]
	return err
}

// Close writes the trailer; it does not close w.
func (w *CSVWriter) Close() error {
	w.b = appendTrailer(w.b, w.tally)
	return w.flush()
}

// CSVReader reads CSV files: those of CSVWriter, and others with the same
// column names in any order. A column that is missing reads as empty cells,
// but kind, card and end_ps must be there; a file without the comments has
// empty metadata and is not checked for completeness.
type CSVReader struct {
	lines
	names  *names
	column []int // cell number → index in csvColumns
}

// NewCSVReader reads a CSV file from its start.
func NewCSVReader(in io.Reader, o ReadOptions) (*CSVReader, error) {
	r := &CSVReader{names: newNames()}
	if err := r.open(in, o, "CSV", "csv"); err != nil {
		return nil, err
	}
	partial := r.opt.Partial
	r.opt.Partial = false // without column names there is nothing to read
	line, more, err := r.next()
	r.opt.Partial = partial
	if err != nil {
		return nil, err
	}
	if !more {
		return nil, r.here(fmt.Errorf("%w: column names are missing", ErrForeign))
	}
	seen := make([]bool, len(csvColumns))
	for rest, cell := line, []byte(nil); rest != nil; {
		if cell, rest, err = csvCell(rest); err != nil {
			return nil, r.here(err)
		}
		i := slices.Index(csvColumns, string(cell))
		if i < 0 || seen[i] {
			return nil, r.here(fmt.Errorf("%w: column %.40q is unknown or there twice", ErrForeign, cell))
		}
		seen[i] = true
		r.column = append(r.column, i)
	}
	for _, need := range []string{"kind", "card", "end_ps"} {
		if !seen[slices.Index(csvColumns, need)] {
			return nil, r.here(fmt.Errorf("%w: column %s is missing", ErrForeign, need))
		}
	}
	return r, nil
}

// csvCell takes the first cell off a line; rest is nil after the last.
func csvCell(line []byte) (cell, rest []byte, err error) {
	if len(line) > 0 && line[0] == '"' {
		end := slices.Index(line[1:], '"')
		if end < 0 {
			return nil, nil, fmt.Errorf("%w: quote does not end", ErrCorrupt)
		}
		cell, rest = line[1:1+end], line[2+end:]
		switch {
		case len(rest) == 0:
			return cell, nil, nil
		case rest[0] != ',':
			return nil, nil, fmt.Errorf("%w: %.20q follows a closing quote", ErrCorrupt, rest)
		}
		return cell, rest[1:], nil
	}
	if end := slices.Index(line, ','); end >= 0 {
		return line[:end], line[end+1:], nil
	}
	return line, nil, nil
}

// Next gives the next record.
func (r *CSVReader) Next(rec *Record) (bool, error) {
	line, more, err := r.next()
	if !more {
		return false, err
	}
	*rec = Record{Event: NoEvent, Card: NoCard, Peer: NoCard, Queue: NoQueue}
	hasStart := false
	rest := line
	if len(rest) == 0 {
		rest = []byte{}
	}
	for n, i := range r.column {
		if rest == nil {
			return r.stop(fmt.Errorf("%w: %d cells where %d are expected", ErrCorrupt, n, len(r.column)))
		}
		var cell []byte
		if cell, rest, err = csvCell(rest); err != nil {
			return r.stop(err)
		}
		if len(cell) == 0 {
			continue
		}
		hasStart = hasStart || csvColumns[i] == "start_ps"
		if err := r.set(rec, i, cell); err != nil {
			return r.stop(fmt.Errorf("column %s: %w", csvColumns[i], err))
		}
	}
	if rest != nil {
		return r.stop(fmt.Errorf("%w: more than %d cells", ErrCorrupt, len(r.column)))
	}
	if !hasStart {
		rec.Start = rec.End
	}
	r.count(rec)
	return true, nil
}

func (r *CSVReader) set(rec *Record, column int, cell []byte) (err error) {
	switch name := csvColumns[column]; name {
	case "kind":
		rec.Kind, err = valueNamed(r.names.kinds, "kind", cell)
	case "event":
		rec.Event, err = valueNamed(r.names.events, "event", cell)
	case "card":
		rec.Card, err = parseCard(cell, "")
	case "peer":
		rec.Peer, err = parseCard(cell, "")
	case "start_ps":
		rec.Start, err = parsePicoseconds(cell)
	case "end_ps":
		rec.End, err = parsePicoseconds(cell)
	case "ready_ps":
		rec.Ready, err = parsePicoseconds(cell)
	case "id":
		rec.ID, err = parseNumber(cell)
	case "cause":
		rec.Cause, err = parseNumber(cell)
	case "stall_cycles":
		rec.Stall, err = parseUint32(cell)
	default:
		_, err = r.names.set(rec, name, cell) // every column's name is known
	}
	return err
}

func parsePicoseconds(b []byte) (des.Time, error) {
	t, err := parseInt(b)
	return des.Time(t), err
}

func parseNumber(b []byte) (ID, error) {
	u, err := parseUint(b, 64)
	return ID(u), err
}

// Close ends reading; it does not close what is read from.
func (r *CSVReader) Close() error { r.done = true; return nil }
