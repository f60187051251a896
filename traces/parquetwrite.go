package traces

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"spinesim/sim/des"
)

// parquetGroupRows is how many records make a row group (chosen: about half a
// megabyte in the file, and 25 MB in memory while it is made or read).
const parquetGroupRows = 1 << 17

// ParquetWriter writes Apache Parquet, typed, with dictionaries, delta encoding
// and zstd, in 4 to 7 bytes a record. Within a row group the rows are sorted by
// card, where they compress best; ordered by (end_ps, card) and otherwise as
// they stand they are the stream again, and ParquetReader gives them so.
//
// Schema, encodings and metadata are the library's; the way of the values into
// them is our own, since the library's takes a value of any column as 24 bytes,
// which for rows of 17 columns takes several times as long.
type ParquetWriter struct {
	rows    []Record
	order   []int32
	block   []Record
	taken   parquetBlock
	columns []parquetChunk
	pages   parquetPages
	groups  []format.RowGroup
	keys    []format.KeyValue
	end     des.Time // of the record before
	card    uint8    // likewise
	tally
}

// NewParquetWriter begins a Parquet file on w.
func NewParquetWriter(w io.Writer, meta *Meta) (*ParquetWriter, error) {
	m, err := meta.encode()
	if err != nil {
		return nil, err
	}
	p := &ParquetWriter{}
	if err := p.pages.begin(w); err != nil {
		return nil, err
	}
	p.key(parquetMetaKey, string(m))
	if meta != nil {
		p.key("run_id", meta.RunID)
		p.key("scenario_hash", meta.ScenarioHash)
		p.key("scenario", meta.Scenario)
		p.key("program", meta.Program)
		p.key("seed", strconv.FormatUint(meta.Seed, 10))
	}
	for _, c := range parquetColumns {
		p.key("column."+c.name+".about", c.about)
		if c.unit != "" {
			p.key("column."+c.name+".unit", c.unit)
		}
	}
	return p, nil
}

func (w *ParquetWriter) key(key, value string) {
	w.keys = append(w.keys, format.KeyValue{Key: key, Value: value})
}

// Record writes r. Since the reader restores the order from the times, records
// must come in canonical order; others are refused with ErrOrder.
func (w *ParquetWriter) Record(r *Record) error {
	if w.n > 0 && (r.End < w.end || r.End == w.end && r.Card < w.card) {
		return fmt.Errorf("%w: (%d ps, card %d) follows (%d ps, card %d)", ErrOrder, int64(r.End), r.Card, int64(w.end), w.card)
	}
	w.end, w.card = r.End, r.Card
	w.count(r)
	w.rows = append(w.rows, *r)
	if len(w.rows) < parquetGroupRows {
		return nil
	}
	return w.flush()
}

// flush writes the records at hand as a row group.
func (w *ParquetWriter) flush() error {
	if len(w.rows) == 0 {
		return nil
	}
	w.sort()
	if w.columns == nil {
		w.columns = newParquetChunks()
		w.block = make([]Record, 0, parquetBlockRows)
	}
	for i := range w.columns {
		w.columns[i].reset(len(w.rows))
	}
	// Block by block, so that a block's records stay at hand for all columns.
	for part := range slices.Chunk(w.order, parquetBlockRows) {
		w.block = w.block[:0]
		for _, row := range part {
			w.block = append(w.block, w.rows[row])
		}
		for i := range w.columns {
			w.columns[i].add(w.block, &w.taken)
		}
	}
	group := format.RowGroup{
		NumRows:    int64(len(w.rows)),
		Columns:    make([]format.ColumnChunk, len(w.columns)),
		FileOffset: w.pages.offset,
		Ordinal:    int16(len(w.groups)),
	}
	for i := range w.columns {
		m := &group.Columns[i].MetaData
		if err := w.columns[i].write(&w.pages, m); err != nil {
			return fmt.Errorf("column %s: %w", w.columns[i].name, err)
		}
		group.TotalByteSize += m.TotalUncompressedSize
		group.TotalCompressedSize += m.TotalCompressedSize
	}
	w.groups = append(w.groups, group)
	w.rows = w.rows[:0]
	return nil
}

// sort orders the records at hand by card, and leaves them as they stand within
// each: a counting sort.
func (w *ParquetWriter) sort() {
	var at [257]int
	for i := range w.rows {
		at[int(w.rows[i].Card)+1]++
	}
	for c := range 256 {
		at[c+1] += at[c]
	}
	w.order = slices.Grow(w.order[:0], len(w.rows))[:len(w.rows)]
	for i := range w.rows {
		c := w.rows[i].Card
		w.order[at[c]] = int32(i)
		at[c]++
	}
}

// Close writes what is pending and the file's footer; it does not close w.
func (w *ParquetWriter) Close() error {
	if err := w.flush(); err != nil {
		return err
	}
	w.key(parquetTallyKey, strings.TrimSpace(string(appendTrailer(nil, w.tally))))
	slices.SortFunc(w.keys, func(a, b format.KeyValue) int { return cmp.Compare(a.Key, b.Key) })
	layout, err := parquetLayout()
	if err != nil {
		return err
	}
	footer, err := thrift.Marshal(new(thrift.CompactProtocol), &format.FileMetaData{
		Version:          layout.Version,
		Schema:           layout.Schema,
		NumRows:          int64(w.n),
		RowGroups:        w.groups,
		KeyValueMetadata: w.keys,
		CreatedBy:        fmt.Sprintf("spinesim version %d (build record)", RecordVersion),
		ColumnOrders:     layout.ColumnOrders,
	})
	if err != nil {
		return fmt.Errorf("footer: %w", err)
	}
	footer = binary.LittleEndian.AppendUint32(footer, uint32(len(footer)))
	return w.pages.put(append(footer, parquetMagic...))
}

// parquetLayout is the footer that the library writes behind no rows: the
// schema in the form that files hold it in.
var parquetLayout = sync.OnceValues(func() (*format.FileMetaData, error) {
	var b bytes.Buffer
	if err := parquet.NewGenericWriter[parquetRow](&b, parquetSchema).Close(); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	f, err := parquet.OpenFile(bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	return f.Metadata(), nil
})
