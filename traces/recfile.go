package traces

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
)

// The packed file:
//
//	magic    8 bytes
//	length   uvarint, then that many bytes of metadata in JSON
//	chunks   each: uvarint records (not 0), uvarint length, CRC-32C of the
//	         contents (4 bytes, little-endian), packed records
//	trailer  uvarint 0, uvarint records, check sum of the records (8 bytes)
//
// Each chunk can be unpacked without the ones before it.
const recMagic = "spnrec\x01\n"

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// RecWriter writes the packed form.
type RecWriter struct {
	w     io.Writer
	state codec
	chunk []byte
	in    uint64 // records in chunk
	head  []byte
	tally
}

// NewRecWriter begins a packed file on w.
func NewRecWriter(w io.Writer, meta *Meta) (*RecWriter, error) {
	m, err := meta.encode()
	if err != nil {
		return nil, err
	}
	head := binary.AppendUvarint([]byte(recMagic), uint64(len(m)))
	if _, err := w.Write(append(head, m...)); err != nil {
		return nil, err
	}
	return &RecWriter{w: w, chunk: make([]byte, 0, chunkBytes)}, nil
}

// Record writes r.
func (w *RecWriter) Record(r *Record) error {
	if len(w.chunk)+maxPacked > cap(w.chunk) {
		if err := w.flush(); err != nil {
			return err
		}
	}
	w.chunk = w.state.append(w.chunk, r)
	w.in++
	w.count(r)
	return nil
}

func (w *RecWriter) flush() error {
	if w.in == 0 {
		return nil
	}
	w.head = binary.AppendUvarint(w.head[:0], w.in)
	w.head = binary.AppendUvarint(w.head, uint64(len(w.chunk)))
	w.head = binary.LittleEndian.AppendUint32(w.head, crc32.Checksum(w.chunk, castagnoli))
	if _, err := w.w.Write(w.head); err != nil {
		return err
	}
	if _, err := w.w.Write(w.chunk); err != nil {
		return err
	}
	w.state, w.chunk, w.in = codec{}, w.chunk[:0], 0
	return nil
}

// Close writes what is pending and the trailer; it does not close w.
func (w *RecWriter) Close() error {
	if err := w.flush(); err != nil {
		return err
	}
	w.head = append(w.head[:0], 0)
	w.head = binary.AppendUvarint(w.head, w.n)
	w.head = binary.LittleEndian.AppendUint64(w.head, w.h)
	_, err := w.w.Write(w.head)
	return err
}

// RecReader reads the packed form.
type RecReader struct {
	input
	r     offsetReader
	state codec
	buf   []byte
	chunk []byte // what is left of buf
	at    int64  // offset of the chunk's contents
	left  uint64 // records that the chunk still holds
}

// offsetReader counts the bytes taken.
type offsetReader struct {
	r   *bufio.Reader
	off int64
}

func (o *offsetReader) ReadByte() (byte, error) {
	b, err := o.r.ReadByte()
	if err == nil {
		o.off++
	}
	return b, err
}

func (o *offsetReader) Read(b []byte) (int, error) {
	n, err := o.r.Read(b)
	o.off += int64(n)
	return n, err
}

// bytes reads n bytes into b's room. What it allocates grows with what the
// input really holds, not with n.
func (o *offsetReader) bytes(b []byte, n int) ([]byte, error) {
	b = b[:0]
	for len(b) < n {
		step := min(n-len(b), 64<<10)
		b = slices.Grow(b, step)
		got, err := io.ReadFull(o, b[len(b):len(b)+step])
		b = b[:len(b)+got]
		if err != nil {
			return b, shortRead(err)
		}
	}
	return b, nil
}

// uvarint reads a number; what is wrong with it, if anything, is mapped to the
// errors of this package.
func (o *offsetReader) uvarint() (uint64, error) {
	v, err := binary.ReadUvarint(o)
	if err != nil {
		return 0, shortRead(err)
	}
	return v, nil
}

// shortRead maps what an input says at its end, and failed decompression.
func shortRead(err error) error {
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return ErrTruncated
	case err.Error() == "binary: varint overflows a 64-bit integer":
		return fmt.Errorf("%w: number over 64 bits", ErrCorrupt)
	}
	return foreignOrShort(err)
}

// NewRecReader reads a packed file from its start.
func NewRecReader(in io.Reader, o ReadOptions) (*RecReader, error) {
	r := &RecReader{input: input{opt: o, format: "record"}, r: offsetReader{r: bufio.NewReaderSize(in, 64<<10)}}
	magic, err := r.r.bytes(nil, len(recMagic))
	if n := len(magic); string(magic) != recMagic[:n] {
		return nil, r.errorAt(0, 0, fmt.Errorf("%w: it begins with %q", ErrForeign, magic))
	}
	if err != nil {
		return nil, r.errorAt(r.r.off, 0, err)
	}
	n, err := r.r.uvarint()
	if err != nil {
		return nil, r.errorAt(r.r.off, 0, err)
	}
	if n > maxMetaBytes {
		return nil, r.errorAt(r.r.off, 0, fmt.Errorf("%w: metadata of %d bytes", ErrCorrupt, n))
	}
	at := r.r.off
	b, err := r.r.bytes(nil, int(n))
	if err != nil {
		return nil, r.errorAt(r.r.off, 0, err)
	}
	if r.meta, err = decodeMeta(b); err != nil {
		return nil, r.errorAt(at, 0, err)
	}
	return r, nil
}

// Next gives the next record.
func (r *RecReader) Next(rec *Record) (bool, error) {
	if r.done {
		return false, r.err
	}
	if r.left == 0 {
		if more, err := r.nextChunk(); !more {
			return false, err
		}
	}
	rest, err := r.state.next(r.chunk, rec)
	if err != nil {
		return r.fail(r.at+int64(len(r.buf)-len(r.chunk)), 0, fmt.Errorf("%w: %w", ErrCorrupt, err))
	}
	r.chunk = rest
	r.left--
	r.count(rec)
	return true, nil
}

func (r *RecReader) nextChunk() (bool, error) {
	if len(r.chunk) != 0 {
		return r.fail(r.at+int64(len(r.buf)-len(r.chunk)), 0, fmt.Errorf("%w: %d bytes are left over in a chunk", ErrCorrupt, len(r.chunk)))
	}
	start := r.r.off
	n, err := r.r.uvarint()
	if err != nil {
		return r.fail(r.r.off, 0, err)
	}
	if n == 0 {
		return r.trailer()
	}
	size, err := r.r.uvarint()
	if err != nil {
		return r.fail(r.r.off, 0, err)
	}
	if size > chunkBytes || n > size {
		return r.fail(start, 0, fmt.Errorf("%w: chunk of %d records in %d bytes", ErrCorrupt, n, size))
	}
	var sum [4]byte
	if _, err := io.ReadFull(&r.r, sum[:]); err != nil {
		return r.fail(r.r.off, 0, shortRead(err))
	}
	r.at = r.r.off
	if r.buf, err = r.r.bytes(r.buf, int(size)); err != nil {
		r.chunk = nil
		return r.fail(r.r.off, 0, err)
	}
	if got := crc32.Checksum(r.buf, castagnoli); got != binary.LittleEndian.Uint32(sum[:]) {
		return r.fail(r.at, 0, fmt.Errorf("%w: chunk of %d bytes has a wrong check sum", ErrCorrupt, size))
	}
	r.chunk, r.left, r.state = r.buf, n, codec{}
	return true, nil
}

func (r *RecReader) trailer() (bool, error) {
	n, err := r.r.uvarint()
	if err != nil {
		return r.fail(r.r.off, 0, err)
	}
	var sum [8]byte
	if _, err := io.ReadFull(&r.r, sum[:]); err != nil {
		return r.fail(r.r.off, 0, shortRead(err))
	}
	if b, err := r.r.ReadByte(); err == nil {
		return r.fail(r.r.off-1, 0, fmt.Errorf("%w: byte %#02x follows the end of the record", ErrCorrupt, b))
	} else if !errors.Is(err, io.EOF) {
		return r.fail(r.r.off, 0, shortRead(err))
	}
	return r.finish(r.r.off, 0, n, binary.LittleEndian.Uint64(sum[:]))
}

// Close ends reading; it does not close what is read from.
func (r *RecReader) Close() error { r.done = true; return nil }
