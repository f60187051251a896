package traces

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"slices"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

const (
	parquetMagic = "PAR1"
	// maxParquetPage bounds one page, uncompressed (chosen; those of
	// ParquetWriter are about a megabyte).
	maxParquetPage = 16 << 20
	// maxParquetChunk bounds one column of one row group, compressed (chosen).
	maxParquetChunk = 16 << 20
	maxFooter       = maxMetaBytes + 16<<20
)

// ParquetReader reads the Parquet files of ParquetWriter, a row group at a
// time. The footer stands at the end of such a file and says where everything
// is, so of a file that is cut short nothing can be read, partially or not;
// a partial reader gives the row groups before one that is damaged.
type ParquetReader struct {
	input
	in    io.ReaderAt
	size  int64
	file  *parquet.File
	parse parquetParser
	group int
	rows  []Record
	order []int32
	next  int
	total tally
	close func() error
	unzip *zstd.Decoder
	plain []byte
}

type parquetParser struct{ names *names }

// newParquetStreamReader puts a stream that cannot seek into a temporary file.
func newParquetStreamReader(in io.Reader, o ReadOptions) (fileFormatReader, error) {
	if f, ok := in.(*os.File); ok {
		if st, err := f.Stat(); err == nil && st.Mode().IsRegular() {
			return NewParquetReader(f, st.Size(), o)
		}
	}
	temp, err := os.CreateTemp("", "spinesim-*.parquet")
	if err != nil {
		return nil, err
	}
	drop := func() error {
		temp.Close()
		return os.Remove(temp.Name())
	}
	n, err := io.Copy(temp, in)
	if err != nil {
		drop()
		return nil, &FormatError{Path: o.Path, Format: "Parquet", Offset: n, Err: shortRead(err)}
	}
	r, err := NewParquetReader(temp, n, o)
	if err != nil {
		drop()
		return nil, err
	}
	r.close = drop
	return r, nil
}

// NewParquetReader reads a Parquet file of the given size.
func NewParquetReader(in io.ReaderAt, size int64, o ReadOptions) (*ParquetReader, error) {
	r := &ParquetReader{input: input{opt: o, format: "Parquet"}, in: in, size: size, parse: parquetParser{newNames()}}
	if at, err := r.open(); err != nil {
		return nil, r.errorAt(at, 0, err)
	}
	return r, nil
}

// guarded runs what calls the library, which panics on some damaged files.
func guarded(do func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", ErrCorrupt, p)
		}
	}()
	return do()
}

func (r *ParquetReader) open() (at int64, err error) {
	var b [8]byte
	if r.size < 12 {
		return 0, fmt.Errorf("%w: %d bytes are too few", ErrForeign, r.size)
	}
	if _, err := r.in.ReadAt(b[:4], 0); err != nil {
		return 0, err
	}
	if string(b[:4]) != parquetMagic {
		return 0, fmt.Errorf("%w: it begins with %q", ErrForeign, b[:4])
	}
	if _, err := r.in.ReadAt(b[:], r.size-8); err != nil {
		return r.size - 8, err
	}
	if string(b[4:]) != parquetMagic {
		return r.size - 4, fmt.Errorf("%w: the footer at the end is missing", ErrTruncated)
	}
	n := int64(binary.LittleEndian.Uint32(b[:]))
	if n > r.size-12 || n > maxFooter {
		return r.size - 8, fmt.Errorf("%w: footer of %d bytes", ErrCorrupt, n)
	}
	at = r.size - 8 - n
	footer := make([]byte, n)
	if _, err := r.in.ReadAt(footer, at); err != nil {
		return at, err
	}
	if used, err := skimStruct(footer); err != nil || used != len(footer) {
		return at, fmt.Errorf("%w: footer", errors.Join(ErrCorrupt, err))
	}
	err = guarded(func() error {
		r.file, err = parquet.OpenFile(r.in, r.size, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
		return err
	})
	if err != nil {
		return at, corrupt(err)
	}
	meta, ok := r.file.Lookup(parquetMetaKey)
	if !ok {
		return at, fmt.Errorf("%w: its metadata has no %s", ErrForeign, parquetMetaKey)
	}
	if r.meta, err = decodeMeta([]byte(meta)); err != nil {
		return at, err
	}
	end, ok := r.file.Lookup(parquetTallyKey)
	if !ok || len(end) < len(linesEnd) {
		return at, fmt.Errorf("%w: its metadata has no %s", ErrCorrupt, parquetTallyKey)
	}
	if r.total.n, r.total.h, err = parseTrailer(end); err != nil {
		return at, err
	}
	return at, guarded(r.checkSchema)
}

func (r *ParquetReader) checkSchema() error {
	columns := r.file.Root().Columns()
	if len(columns) != len(parquetColumns) {
		return fmt.Errorf("%w: %d columns instead of %d", ErrForeign, len(columns), len(parquetColumns))
	}
	for i, c := range columns {
		want := parquetSchema.Fields()[i]
		if c.Name() != want.Name() || !c.Leaf() || c.Repeated() || c.Optional() != want.Optional() || c.Type().Kind() != want.Type().Kind() {
			return fmt.Errorf("%w: column %d is %.40q instead of %q, or of another type", ErrForeign, i, c.Name(), want.Name())
		}
	}
	return nil
}

// corrupt marks an error of the library, unless it says what it is already.
func corrupt(err error) error {
	if errors.Is(err, ErrCorrupt) || errors.Is(err, ErrTruncated) || errors.Is(err, ErrForeign) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrCorrupt, err)
}

// Next gives the next record.
func (r *ParquetReader) Next(rec *Record) (bool, error) {
	if r.done {
		return false, r.err
	}
	for r.next == len(r.order) {
		groups := r.file.Metadata().RowGroups
		if r.group == len(groups) {
			return r.finish(r.size, 0, r.total.n, r.total.h)
		}
		at, err := int64(0), error(nil)
		if gerr := guarded(func() error {
			at, err = r.readGroup(&groups[r.group])
			return err
		}); gerr != nil {
			r.order, r.next = nil, 0
			return r.fail(at, 0, fmt.Errorf("row group %d: %w", r.group, corrupt(gerr)))
		}
		r.group++
		r.next = 0
	}
	*rec = r.rows[r.order[r.next]]
	r.next++
	r.count(rec)
	return true, nil
}

func (r *ParquetReader) readGroup(g *format.RowGroup) (int64, error) {
	if g.NumRows < 0 || g.NumRows > parquetGroupRows {
		return 0, fmt.Errorf("%w: %d rows, where at most %d are possible", ErrCorrupt, g.NumRows, parquetGroupRows)
	}
	if len(g.Columns) != len(parquetColumns) {
		return 0, fmt.Errorf("%w: %d columns", ErrCorrupt, len(g.Columns))
	}
	// The rows grow with the first column's values, not with what NumRows says.
	r.rows = r.rows[:0]
	chunks := r.file.RowGroups()[r.group].ColumnChunks()
	for i := range parquetColumns {
		if at, err := r.readColumn(i, &g.Columns[i].MetaData, chunks[i].(*parquet.FileColumnChunk), int(g.NumRows)); err != nil {
			return at, fmt.Errorf("column %s: %w", parquetColumns[i].name, err)
		}
	}
	r.order = slices.Grow(r.order[:0], len(r.rows))[:len(r.rows)]
	for i := range r.order {
		r.order[i] = int32(i)
	}
	slices.SortStableFunc(r.order, func(i, j int32) int {
		a, b := &r.rows[i], &r.rows[j]
		if a.End != b.End {
			return cmpTime(a.End, b.End)
		}
		return int(a.Card) - int(b.Card)
	})
	return 0, nil
}

// readColumn checks the pages of a column, then has the library decode them.
func (r *ParquetReader) readColumn(i int, m *format.ColumnMetaData, chunk *parquet.FileColumnChunk, rows int) (int64, error) {
	start, n := m.DataPageOffset, m.TotalCompressedSize
	if d := m.DictionaryPageOffset; d > 0 && d < start {
		start = d
	}
	if start < 4 || n < 0 || n > maxParquetChunk || start > r.size-n {
		return start, fmt.Errorf("%w: %d bytes from byte %d", ErrCorrupt, n, start)
	}
	if m.Codec != format.Zstd {
		return start, fmt.Errorf("%w: compressed by %v instead of zstd", ErrForeign, m.Codec)
	}
	b := make([]byte, n)
	if _, err := r.in.ReadAt(b, start); err != nil {
		return start, shortRead(err)
	}
	if at, err := r.checkPages(b, parquetSchema.Fields()[i].Optional(), rows); err != nil {
		return start + at, err
	}
	pages := chunk.PagesFrom(&window{b, start})
	defer pages.Close()
	column := &parquetColumns[i]
	row := 0
	var values [512]parquet.Value
	for {
		page, err := pages.ReadPage()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return start, corrupt(err)
		}
		for vr := page.Values(); ; {
			n, err := vr.ReadValues(values[:])
			for _, v := range values[:n] {
				if i == 0 {
					if row == rows {
						return start, fmt.Errorf("%w: more than %d values", ErrCorrupt, rows)
					}
					r.rows = append(r.rows, Record{Event: NoEvent, Peer: NoCard, Queue: NoQueue})
				}
				if row == len(r.rows) {
					return start, fmt.Errorf("%w: more than %d values", ErrCorrupt, row)
				}
				if !v.IsNull() {
					if err := column.set(&r.parse, &r.rows[row], v); err != nil {
						return start, err
					}
				}
				row++
			}
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return start, corrupt(err)
			}
			if n == 0 {
				return start, fmt.Errorf("%w: page without values", ErrCorrupt)
			}
		}
		parquet.Release(page)
	}
	if row != rows {
		return start, fmt.Errorf("%w: %d values for %d rows", ErrCorrupt, row, rows)
	}
	return start, nil
}

// window is a part of a file, read already; the library asks for it at its
// place in the file.
type window struct {
	b  []byte
	at int64
}

func (w *window) ReadAt(b []byte, off int64) (int, error) {
	if off < w.at || off-w.at > int64(len(w.b)) {
		return 0, fmt.Errorf("%w: byte %d lies outside the column", ErrCorrupt, off)
	}
	n := copy(b, w.b[off-w.at:])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

// checkPages walks the page headers of a column: sizes must fit, and each page
// must have the check sum that its header says, before anything in it is
// believed.
func (r *ParquetReader) checkPages(b []byte, optional bool, rows int) (at int64, err error) {
	values := 0
	for off := 0; off < len(b); {
		at = int64(off)
		n, err := skimStruct(b[off:])
		if err != nil {
			return at, fmt.Errorf("page: %w", err)
		}
		var h format.PageHeader
		if err := thrift.Unmarshal(new(thrift.CompactProtocol), b[off:off+n], &h); err != nil {
			return at, fmt.Errorf("%w: page: %w", ErrCorrupt, err)
		}
		off += n
		if h.CompressedPageSize < 0 || int(h.CompressedPageSize) > len(b)-off || h.UncompressedPageSize < 0 || h.UncompressedPageSize > maxParquetPage {
			return at, fmt.Errorf("%w: page of %d bytes, %d uncompressed", ErrCorrupt, h.CompressedPageSize, h.UncompressedPageSize)
		}
		page := b[off : off+int(h.CompressedPageSize)]
		off += len(page)
		if sum := crc32.ChecksumIEEE(page); uint32(h.CRC) != sum {
			return at, fmt.Errorf("%w: page has check sum %08x, its header says %08x", ErrCorrupt, sum, uint32(h.CRC))
		}
		n, compressed := int(h.DictionaryPageHeader.V.NumValues), page
		enc := h.DictionaryPageHeader.V.Encoding
		var levels []byte
		switch {
		case h.Type == format.DictionaryPage && h.DictionaryPageHeader.Valid:
		case h.Type == format.DataPage && h.DataPageHeader.Valid:
			n, enc = int(h.DataPageHeader.V.NumValues), h.DataPageHeader.V.Encoding
			values += n
		case h.Type == format.DataPageV2 && h.DataPageHeaderV2.Valid:
			v2 := &h.DataPageHeaderV2.V
			if v2.RepetitionLevelsByteLength != 0 || v2.DefinitionLevelsByteLength < 0 || int(v2.DefinitionLevelsByteLength) > len(page) {
				return at, fmt.Errorf("%w: data page", ErrCorrupt)
			}
			n, enc = int(v2.NumValues), v2.Encoding
			levels, compressed = page[:v2.DefinitionLevelsByteLength], page[v2.DefinitionLevelsByteLength:]
			values += n
		default:
			return at, fmt.Errorf("%w: page of type %v", ErrForeign, h.Type)
		}
		if n < 0 || n > rows || values > rows {
			return at, fmt.Errorf("%w: page of %d values in a group of %d rows", ErrCorrupt, n, rows)
		}
		if err := r.checkFrame(compressed, int(h.UncompressedPageSize)); err != nil {
			return at, err
		}
		plain := r.plain
		if h.Type == format.DataPage && optional {
			if h.DataPageHeader.V.DefinitionLevelEncoding != format.RLE {
				return at, fmt.Errorf("%w: levels in encoding %v", ErrForeign, h.DataPageHeader.V.DefinitionLevelEncoding)
			}
			if len(plain) < 4 || uint64(binary.LittleEndian.Uint32(plain)) > uint64(len(plain)-4) {
				return at, fmt.Errorf("%w: levels are longer than their page", ErrCorrupt)
			}
			end := 4 + binary.LittleEndian.Uint32(plain)
			levels, plain = plain[4:end], plain[end:]
		}
		if err := checkRuns(levels, 1, n); err != nil {
			return at, fmt.Errorf("levels: %w", err)
		}
		if err := checkValues(plain, enc, n); err != nil {
			return at, err
		}
	}
	return 0, nil
}

// checkFrame decompresses a page for the sake of its length, which the library
// would take on trust.
func (r *ParquetReader) checkFrame(b []byte, most int) error {
	r.plain = r.plain[:0]
	if len(b) == 0 {
		return nil
	}
	if r.unzip == nil {
		z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxParquetPage))
		if err != nil {
			return err
		}
		r.unzip = z
	}
	plain, err := r.unzip.DecodeAll(b, r.plain[:0])
	if err != nil {
		return fmt.Errorf("%w: page is not zstd: %w", ErrCorrupt, err)
	}
	r.plain = plain
	if len(plain) > most {
		return fmt.Errorf("%w: page of %d bytes, where its header says %d", ErrCorrupt, len(plain), most)
	}
	return nil
}

// checkValues sees that a page's encoded values are not more than n.
func checkValues(b []byte, enc format.Encoding, n int) error {
	switch enc {
	case format.Plain:
		return nil // as long as what is there
	case format.RLEDictionary:
		if len(b) == 0 {
			return nil
		}
		return checkRuns(b[1:], int(b[0]), n)
	case format.DeltaBinaryPacked:
		if len(b) == 0 {
			return nil
		}
		s := skim{b: b}
		var head [3]uint64 // values a block, parts a block, values
		for i := range head {
			var err error
			if head[i], err = s.uvarint(); err != nil {
				return err
			}
		}
		if head[0] > 1<<16 || head[1] > head[0] || head[2] > uint64(n) {
			return fmt.Errorf("%w: %d deltas in blocks of %d, where the page has %d values", ErrCorrupt, head[2], head[0], n)
		}
		return nil
	}
	return fmt.Errorf("%w: encoding %v", ErrForeign, enc)
}

// checkRuns walks the runs of the format's hybrid of run lengths and packed
// bits, and sees that they stand for no more than n values and padding.
func checkRuns(b []byte, width, n int) error {
	if width > 32 {
		return fmt.Errorf("%w: values of %d bits", ErrCorrupt, width)
	}
	s := skim{b: b}
	for total := uint64(0); s.at < len(b); {
		h, err := s.uvarint()
		if err != nil {
			return err
		}
		if h&1 == 0 {
			total += h >> 1
			err = s.skip(uint64(width+7) / 8)
		} else {
			total += h >> 1 * 8
			err = s.skip(min(h>>1*uint64(width), uint64(len(b)-s.at))) // the last may be cut
		}
		if err != nil {
			return err
		}
		if h>>1 > uint64(n)+8 || total > uint64(n)+8*uint64(len(b)) {
			return fmt.Errorf("%w: runs of %d values, where the page has %d", ErrCorrupt, total, n)
		}
	}
	return nil
}

// Close ends reading; it does not close what is read from.
func (r *ParquetReader) Close() error {
	r.done = true
	if r.unzip != nil {
		r.unzip.Close()
		r.unzip = nil
	}
	if r.close != nil {
		return r.close()
	}
	return nil
}
