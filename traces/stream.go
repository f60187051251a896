package traces

import (
	"errors"
	"fmt"
)

// Reader gives the records of a stream one after another.
type Reader interface {
	// Meta tells of the run; it is never nil, and must not be changed.
	Meta() *Meta
	// Next fills in *r and reports true, or false at the end of the stream.
	// After an error or the end it keeps giving the same answer.
	Next(r *Record) (bool, error)
	Close() error
}

// Writer is a sink that must be closed for its output to be complete.
type Writer interface {
	Sink
	Close() error
}

// Errors that a caller may decide by; a *FormatError wraps them.
var (
	// ErrTruncated: the file ends before its records do.
	ErrTruncated = errors.New("file is cut short")
	// ErrForeign: the file is not of this format, or of the format but not
	// written by this program.
	ErrForeign = errors.New("not a record of this format")
	// ErrCorrupt: what stands in the file contradicts itself.
	ErrCorrupt = errors.New("file is damaged")
)

// FormatError says where a file cannot be read.
type FormatError struct {
	Path   string // "" where the input has no name
	Format string // name of the format
	Offset int64  // byte offset, within the uncompressed contents
	Line   int    // from 1, 0 for formats without lines
	Record uint64 // how many records were read before
	Err    error  // the reason
}

func (e *FormatError) Error() string {
	path := e.Path
	if path == "" {
		path = "input"
	}
	if e.Line > 0 {
		return fmt.Sprintf("%s:%d: %s: byte %d, after %d records: %v", path, e.Line, e.Format, e.Offset, e.Record, e.Err)
	}
	return fmt.Sprintf("%s: %s: byte %d, after %d records: %v", path, e.Format, e.Offset, e.Record, e.Err)
}

// Unwrap gives the reason.
func (e *FormatError) Unwrap() error { return e.Err }

// ReadOptions say how a reader treats what it finds.
type ReadOptions struct {
	// Path names the input in errors.
	Path string
	// Partial reads what is whole of a truncated or damaged file: the reader
	// ends where it would have failed, and its Damage method tells why.
	// Metadata must be readable all the same.
	Partial bool
}

// input is what all readers share: the metadata, the tally against the file's
// trailer, and how an error ends the stream.
type input struct {
	opt    ReadOptions
	format string
	meta   *Meta
	n, h   uint64 // records so far, and their hash
	done   bool
	err    error
	damage error
}

func (in *input) Meta() *Meta { return in.meta }

// Damage tells why a partial reader ended early, and nil where it did not.
func (in *input) Damage() error { return in.damage }

func (in *input) errorAt(offset int64, line int, err error) error {
	return &FormatError{Path: in.opt.Path, Format: in.format, Offset: offset, Line: line, Record: in.n, Err: err}
}

// fail ends the stream with an error, or quietly where a part will do.
func (in *input) fail(offset int64, line int, err error) (bool, error) {
	in.done = true
	err = in.errorAt(offset, line, err)
	if in.opt.Partial {
		in.damage = err
		return false, nil
	}
	in.err = err
	return false, err
}

func (in *input) count(r *Record) {
	in.n++
	in.h = hashRecord(in.h, r)
}

// finish compares the trailer with what was read.
func (in *input) finish(offset int64, line int, n, h uint64) (bool, error) {
	if n != in.n {
		return in.fail(offset, line, fmt.Errorf("%w: the trailer counts %d records", ErrCorrupt, n))
	}
	if h != in.h {
		return in.fail(offset, line, fmt.Errorf("%w: the records' check sum is %016x, the trailer says %016x", ErrCorrupt, in.h, h))
	}
	in.done = true
	return false, nil
}

// tally is the writers' counterpart: what goes into the trailer.
type tally struct{ n, h uint64 }

func (t *tally) count(r *Record) {
	t.n++
	t.h = hashRecord(t.h, r)
}

// Convert passes every record of r on to w and tells how many there were. It
// closes neither.
func Convert(r Reader, w Sink) (uint64, error) {
	var rec Record
	for n := uint64(0); ; n++ {
		ok, err := r.Next(&rec)
		if err != nil || !ok {
			return n, err
		}
		if err := w.Record(&rec); err != nil {
			return n, err
		}
	}
}

// Tee is a sink that passes records on to several, in the order given.
func Tee(sinks ...Sink) Sink { return tee(sinks) }

type tee []Sink

func (t tee) Record(r *Record) error {
	for _, s := range t {
		if err := s.Record(r); err != nil {
			return err
		}
	}
	return nil
}
