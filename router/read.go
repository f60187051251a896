package router

import (
	"bufio"
	"compress/bzip2"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
)

// What can be wrong with a file of routes, apart from errors of the system.
var (
	ErrTruncated = errors.New("the file is truncated")
	ErrCorrupt   = errors.New("the file is corrupt")
	ErrSyntax    = errors.New("not a route")
)

// Format is how a file of routes is written.
type Format uint8

// The formats.
const (
	Text Format = iota // one route a line
	MRT                // TABLE_DUMP or TABLE_DUMP_V2, RFC 6396
)

func (f Format) String() string {
	switch f {
	case Text:
		return "text"
	case MRT:
		return "MRT"
	}
	return fmt.Sprintf("format %d", uint8(f))
}

// ReadOptions says how to read a file of routes.
type ReadOptions struct {
	// Partial keeps the routes before a truncated or corrupt place. The
	// error is then in File.Problem, where errors.Is tells ErrTruncated and
	// ErrCorrupt apart, and in the notes. A mistake in a text file's line,
	// and a file with no routes at all, are errors still.
	Partial bool
}

// File is what was read.
type File struct {
	Name   string
	Format Format
	// Routes has each prefix once, in the file's order.
	Routes []Route
	// Notes are sentences for the user: what was skipped, and why.
	Notes []string
	// Problem is where and why the reading ended early, if it did and
	// ReadOptions.Partial allowed that.
	Problem error
}

func (f *File) note(n int, format string, args ...any) {
	if n > 0 {
		f.Notes = append(f.Notes, fmt.Sprintf("%s: %d ", f.Name, n)+fmt.Sprintf(format, args...))
	}
}

// ReadFile reads a file of routes. See Read.
func ReadFile(name string, opt ReadOptions) (*File, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("routes: %w", err)
	}
	defer f.Close()
	return Read(f, name, opt)
}

// Read reads routes in any of the formats, plain or compressed with gzip or
// bzip2; the content tells which. The name is for messages.
//
// Text has a route a line: prefix, next hop, and anything after them, apart by
// spaces or tabs; # begins a comment. The prefix is a.b.c.d/n without bits
// beyond its length, or the word default. The next hop is an IPv4 address, or
// an AS number, which stands for a next hop of its own (a note says so).
//
// Of an MRT dump the best path for each IPv4 prefix is taken: of those with an
// IPv4 next hop the one of the shortest AS path, and of several such the one of
// the lowest next hop.
//
// Errors name the file and the line or the byte (of the decompressed stream),
// and wrap ErrSyntax, ErrTruncated or ErrCorrupt.
func Read(r io.Reader, name string, opt ReadOptions) (*File, error) {
	f := &File{Name: name}
	in, err := open(r)
	if err == nil {
		err = f.read(in)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", name, err)
		broken := errors.Is(err, ErrTruncated) || errors.Is(err, ErrCorrupt)
		if !opt.Partial || !broken || len(f.Routes) == 0 {
			return nil, err
		}
		f.Problem = err
		f.Notes = append(f.Notes, fmt.Sprintf("%v; the %d routes before that are used", err, len(f.Routes)))
	}
	if len(f.Routes) == 0 {
		return nil, fmt.Errorf("%s: no IPv4 route in the file (read as %v): %w", name, f.Format, ErrSyntax)
	}
	return f, nil
}

func (f *File) read(in *input) error {
	head, err := in.Peek(mrtHeader)
	if err != nil && err != io.EOF {
		return in.broken(err)
	}
	// An MRT header's types are below 256, so its fifth byte is 0; text has
	// none such.
	if len(head) == mrtHeader && head[4] == 0 {
		f.Format = MRT
		return f.readMRT(in)
	}
	f.Format = Text
	return f.readText(in)
}

// input is the decompressed stream.
type input struct {
	*bufio.Reader
	off int64 // of the stream, as far as it was taken in whole
}

// open finds out about compression.
func open(r io.Reader) (*input, error) {
	b := bufio.NewReaderSize(r, 1<<16)
	head, err := b.Peek(3)
	if err != nil && err != io.EOF {
		return nil, err
	}
	switch {
	case len(head) >= 2 && head[0] == 0x1F && head[1] == 0x8B:
		z, err := gzip.NewReader(b)
		if err != nil {
			return nil, broken(err, 0)
		}
		b = bufio.NewReaderSize(z, 1<<16)
	case string(head) == "BZh":
		b = bufio.NewReaderSize(bzip2.NewReader(b), 1<<16)
	}
	return &input{Reader: b}, nil
}

func (in *input) broken(err error) error { return broken(err, in.off) }

// broken turns the errors of the decompressors into ours, with the place.
func broken(err error, off int64) error {
	_, structural := errors.AsType[bzip2.StructuralError](err)
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return fmt.Errorf("at byte %d: %w", off, ErrTruncated)
	case structural, errors.Is(err, gzip.ErrChecksum), errors.Is(err, gzip.ErrHeader), isFlate(err):
		return fmt.Errorf("at byte %d: %w: %w", off, ErrCorrupt, err)
	}
	return fmt.Errorf("at byte %d: %w", off, err)
}
