package traces

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// compression of a whole file, by the last part of its name.
type compression uint8

const (
	plain compression = iota
	gzipped
	zstdCompressed
)

// splitCompression takes .gz or .zst off a name.
func splitCompression(path string) (string, compression) {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".gz":
		return path[:len(path)-len(".gz")], gzipped
	case ".zst":
		return path[:len(path)-len(".zst")], zstdCompressed
	}
	return path, plain
}

// zstdWindow bounds what decompression may allocate for its window (chosen:
// what the encoder's highest level uses).
const zstdWindow = 32 << 20

// outFile is a file that appears under its name when it is complete, and not
// at all otherwise. What stands there before is replaced then, not earlier. A
// path that exists and is no regular file (a pipe, a terminal, /dev/null) is
// written to directly.
type outFile struct {
	path, temp string // temp is "" when written directly
	f          *os.File
	buf        *bufio.Writer
	comp       io.WriteCloser // nil when plain
	gone       bool           // closed or aborted
}

func createOut(path string, c compression) (*outFile, error) {
	o := &outFile{path: path}
	if st, err := os.Stat(path); err == nil && !st.Mode().IsRegular() {
		if st.IsDir() {
			return nil, fmt.Errorf("create %s: is a directory", path)
		}
		if o.f, err = os.OpenFile(path, os.O_WRONLY, 0); err != nil {
			return nil, err
		}
	} else if err := o.openBeside(); err != nil {
		return nil, err
	}
	o.buf = bufio.NewWriterSize(o.f, 256<<10)
	switch c {
	case gzipped:
		o.comp = gzip.NewWriter(o.buf)
	case zstdCompressed:
		// One goroutine: the same bytes whatever the machine.
		z, err := zstd.NewWriter(o.buf, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(4<<20))
		if err != nil {
			o.Abort()
			return nil, fmt.Errorf("create %s: %w", path, err)
		}
		o.comp = z
	}
	return o, nil
}

// openBeside makes a new file next to the one meant, with the permissions that
// the user's mask gives.
func (o *outFile) openBeside() error {
	dir, base := filepath.Split(o.path)
	for i := 0; ; i++ {
		temp := filepath.Join(dir, fmt.Sprintf(".%s.%d-%d.part", base, os.Getpid(), i))
		f, err := os.OpenFile(temp, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
		if errors.Is(err, os.ErrExist) && i < 10000 {
			continue
		}
		if err != nil {
			return fmt.Errorf("create %s: %w", o.path, err)
		}
		o.f, o.temp = f, temp
		return nil
	}
}

func (o *outFile) Write(b []byte) (int, error) {
	if o.comp != nil {
		return o.comp.Write(b)
	}
	return o.buf.Write(b)
}

// Close completes the file and gives it its name; on an error it is removed.
func (o *outFile) Close() error {
	if o.gone {
		return nil
	}
	err := func() error {
		if o.comp != nil {
			if err := o.comp.Close(); err != nil {
				return err
			}
		}
		if err := o.buf.Flush(); err != nil {
			return err
		}
		if o.temp == "" {
			return nil
		}
		return o.f.Sync()
	}()
	if err != nil {
		o.Abort()
		return fmt.Errorf("write %s: %w", o.path, err)
	}
	o.gone = true
	if err := o.f.Close(); err != nil {
		o.remove()
		return fmt.Errorf("write %s: %w", o.path, err)
	}
	if o.temp != "" {
		if err := os.Rename(o.temp, o.path); err != nil {
			o.remove()
			return fmt.Errorf("write %s: %w", o.path, err)
		}
	}
	return nil
}

func (o *outFile) remove() {
	if o.temp != "" {
		os.Remove(o.temp)
	}
}

// Abort gives the file up. After Close it does nothing.
func (o *outFile) Abort() {
	if o.gone {
		return
	}
	o.gone = true
	if z, ok := o.comp.(*zstd.Encoder); ok {
		z.Reset(nil) // lets go of its buffers without writing
	}
	o.f.Close()
	o.remove()
}

// inFile is an opened file, seen through its decompression.
type inFile struct {
	io.Reader
	f     *os.File
	close func() error
}

func openIn(path string, c compression) (*inFile, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if st, err := f.Stat(); err == nil && st.IsDir() {
		f.Close()
		return nil, fmt.Errorf("open %s: is a directory", path)
	}
	in := &inFile{Reader: f, f: f, close: f.Close}
	switch c {
	case gzipped:
		z, err := gzip.NewReader(bufio.NewReaderSize(f, 64<<10))
		if err != nil {
			f.Close()
			return nil, fmt.Errorf("open %s: gzip: %w", path, foreignOrShort(err))
		}
		in.Reader = z
	case zstdCompressed:
		z, err := zstd.NewReader(f, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(zstdWindow))
		if err != nil {
			f.Close()
			return nil, fmt.Errorf("open %s: zstd: %w", path, foreignOrShort(err))
		}
		in.Reader = z
		in.close = func() error { z.Close(); return f.Close() }
	}
	return in, nil
}

// foreignOrShort maps the errors of decompression to ours.
func foreignOrShort(err error) error {
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF):
		return fmt.Errorf("%w: %w", ErrTruncated, err)
	case errors.Is(err, gzip.ErrHeader) || errors.Is(err, zstd.ErrMagicMismatch):
		return fmt.Errorf("%w: %w", ErrForeign, err)
	case errors.Is(err, gzip.ErrChecksum):
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return err
}

func (f *inFile) Close() error { return f.close() }
