package traces

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"
)

// Format is one file format of the record stream.
type Format struct {
	Name       string   // as messages call it
	Extensions []string // with the dot; the first is the usual one
	Readable   bool     // can be read back, every field of every record exactly
	Summary    string   // what opens it, in a few words

	newWriter func(w io.Writer, meta *Meta, o *writeOptions) (Writer, error)
	newReader func(in io.Reader, o ReadOptions) (fileFormatReader, error)
}

// fileFormatReader is a Reader that can say why a partial stream ended.
type fileFormatReader interface {
	Reader
	Damage() error
}

var formats = []Format{
	{
		Name: "record", Extensions: []string{".rec"}, Readable: true,
		Summary:   "this program's own packed form, the smallest to write and the fastest to read",
		newWriter: func(w io.Writer, m *Meta, _ *writeOptions) (Writer, error) { return NewRecWriter(w, m) },
		newReader: func(r io.Reader, o ReadOptions) (fileFormatReader, error) { return NewRecReader(r, o) },
	},
	{
		Name: "CSV", Extensions: []string{".csv"}, Readable: true,
		Summary:   "spreadsheets, R, pandas, DuckDB",
		newWriter: func(w io.Writer, m *Meta, _ *writeOptions) (Writer, error) { return NewCSVWriter(w, m) },
		newReader: func(r io.Reader, o ReadOptions) (fileFormatReader, error) { return NewCSVReader(r, o) },
	},
	{
		Name: "Parquet", Extensions: []string{".parquet"}, Readable: true,
		Summary:   "DuckDB, pandas, Arrow, Spark",
		newWriter: func(w io.Writer, m *Meta, _ *writeOptions) (Writer, error) { return NewParquetWriter(w, m) },
		newReader: newParquetStreamReader,
	},
	{
		Name: "Perfetto", Extensions: []string{".perfetto-trace", ".pftrace", ".perfetto"}, Readable: true,
		Summary:   "the Perfetto viewer and trace processor",
		newWriter: func(w io.Writer, m *Meta, _ *writeOptions) (Writer, error) { return NewPerfettoWriter(w, m) },
		newReader: func(r io.Reader, o ReadOptions) (fileFormatReader, error) { return NewPerfettoReader(r, o) },
	},
	{
		Name: "listing", Extensions: []string{".txt", ".dump"}, Readable: true,
		Summary:   "plain text, a line a record",
		newWriter: func(w io.Writer, m *Meta, _ *writeOptions) (Writer, error) { return NewListingWriter(w, m) },
		newReader: func(r io.Reader, o ReadOptions) (fileFormatReader, error) { return NewListingReader(r, o) },
	},
	{
		Name: "Chrome trace", Extensions: []string{".json"},
		Summary:   "chrome://tracing, Perfetto, speedscope",
		newWriter: func(w io.Writer, m *Meta, _ *writeOptions) (Writer, error) { return NewChromeWriter(w, m) },
	},
	{
		Name: "VCD", Extensions: []string{".vcd"},
		Summary:   "GTKWave and other wave form viewers",
		newWriter: func(w io.Writer, m *Meta, _ *writeOptions) (Writer, error) { return NewVCDWriter(w, m) },
	},
	{
		Name: "pcapng", Extensions: []string{".pcapng"},
		Summary: "Wireshark and tshark",
		newWriter: func(w io.Writer, m *Meta, o *writeOptions) (Writer, error) {
			return NewPcapngWriter(w, m, o.contents)
		},
	},
	{
		Name: "pprof", Extensions: []string{".pprof", ".pb"},
		Summary:   "go tool pprof: where the processors' cycles went",
		newWriter: func(w io.Writer, m *Meta, _ *writeOptions) (Writer, error) { return NewPprofWriter(w, m) },
	},
}

// Formats lists the file formats, those that can be read back first.
func Formats() []Format { return append([]Format(nil), formats...) }

// FormatOf chooses the format by a path's extension, after a .gz or .zst.
func FormatOf(path string) (Format, error) {
	name, _ := splitCompression(path)
	ext := strings.ToLower(filepath.Ext(name))
	var known []string
	for _, f := range formats {
		for _, e := range f.Extensions {
			if e == ext {
				return f, nil
			}
			known = append(known, e)
		}
	}
	return Format{}, fmt.Errorf("%s: extension %q is not that of a record; known are %s", path, ext, strings.Join(known, " "))
}

type writeOptions struct{ contents Contents }

// WriteOption changes how CreateWriter writes.
type WriteOption func(*writeOptions)

// WithContents gives the bytes of packets to formats that have room for them
// (pcapng).
func WithContents(c Contents) WriteOption {
	return func(o *writeOptions) { o.contents = c }
}

// FileWriter writes a record stream to a file that appears whole at Close, or
// not at all.
type FileWriter struct {
	w   Writer
	out *outFile
	err error
}

// CreateWriter makes a file whose format and compression its path tells: see
// Formats for the extensions, to which .gz or .zst may be added. The file
// appears when Close succeeds. `defer w.Abort()` cleans up on every other way.
func CreateWriter(path string, meta *Meta, opts ...WriteOption) (*FileWriter, error) {
	f, err := FormatOf(path)
	if err != nil {
		return nil, err
	}
	var o writeOptions
	for _, opt := range opts {
		opt(&o)
	}
	_, c := splitCompression(path)
	if f.Name == "pprof" && c == gzipped {
		c = plain // the format is compressed that way already
	}
	out, err := createOut(path, c)
	if err != nil {
		return nil, err
	}
	w, err := f.newWriter(out, meta, &o)
	if err != nil {
		out.Abort()
		return nil, fmt.Errorf("write %s: %w", path, err)
	}
	return &FileWriter{w: w, out: out}, nil
}

// Record writes r. After an error the file is lost, and every later call
// returns that error.
func (w *FileWriter) Record(r *Record) error {
	if w.err != nil {
		return w.err
	}
	if err := w.w.Record(r); err != nil {
		w.err = fmt.Errorf("write %s: %w", w.out.path, err)
		return w.err
	}
	return nil
}

// Close completes the file and gives it its name. If that or an earlier write
// failed there is no file, and an earlier one of that name is untouched.
func (w *FileWriter) Close() error {
	if w.err == nil {
		if err := w.w.Close(); err != nil {
			w.err = fmt.Errorf("write %s: %w", w.out.path, err)
		}
	}
	if w.err != nil {
		w.Abort()
		return w.err
	}
	return w.out.Close()
}

// Abort gives the file up: nothing remains of it. After Close it does nothing.
func (w *FileWriter) Abort() {
	if a, ok := w.w.(interface{ abort() }); ok {
		a.abort()
	}
	w.out.Abort()
}

// ReadOption changes how OpenReader reads.
type ReadOption func(*ReadOptions)

// Partial makes a reader end quietly where a file is cut short or damaged; see
// ReadOptions.
func Partial() ReadOption { return func(o *ReadOptions) { o.Partial = true } }

// FileReader reads a record stream from a file.
type FileReader struct {
	r  fileFormatReader
	in *inFile
}

// OpenReader opens a recorded file; its path tells format and compression.
func OpenReader(path string, opts ...ReadOption) (*FileReader, error) {
	f, err := FormatOf(path)
	if err != nil {
		return nil, err
	}
	if !f.Readable {
		return nil, fmt.Errorf("%s: %s files hold a view of the record and cannot be read back", path, f.Name)
	}
	o := ReadOptions{Path: path}
	for _, opt := range opts {
		opt(&o)
	}
	_, c := splitCompression(path)
	in, err := openIn(path, c)
	if err != nil {
		return nil, err
	}
	var src io.Reader = in
	if c == plain {
		src = in.f // formats that can seek, do
	}
	r, err := f.newReader(src, o)
	if err != nil {
		in.Close()
		return nil, err
	}
	return &FileReader{r, in}, nil
}

// Meta tells of the run.
func (r *FileReader) Meta() *Meta { return r.r.Meta() }

// Next gives the next record.
func (r *FileReader) Next(rec *Record) (bool, error) { return r.r.Next(rec) }

// Damage tells why a partial reader ended early, and nil where it did not.
func (r *FileReader) Damage() error { return r.r.Damage() }

// Close closes the file.
func (r *FileReader) Close() error {
	err := r.r.Close()
	if cerr := r.in.Close(); err == nil {
		err = cerr
	}
	return err
}
