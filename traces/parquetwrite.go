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

// ParquetWriter writes Apache Parquet, typed, with dictionaries, delta encoding
// and zstd, in 4 to 7 bytes a record. Within a row group the rows are sorted by
// card, where they compress best; ordered by (end_ps, card) and otherwise as
// they stand they are the stream again, and ParquetReader gives them so.
//
// Schema, encodings and metadata are the library's; the way of the values into
// them is our own, since the library's takes a value of any column as 24 bytes,
// which for rows of 17 columns takes several times as long.
//
// A row group is made while the records of the next one come in. So the file is
// written to from another goroutine, one at a time and none after Close, and an
// error may come out a row group late.
type ParquetWriter struct {
	rows   []Record   // of the row group that comes next
	making []Record   // of the one that is being made
	made   chan error // what becomes of that; nil: there is none
	err    error      // the first
	file   parquetGroups
	keys   []format.KeyValue
	end    des.Time // of the record before
	card   uint8    // likewise
	tally
}

// NewParquetWriter begins a Parquet file on w.
func NewParquetWriter(w io.Writer, meta *Meta) (*ParquetWriter, error) {
	m, err := meta.encode()
	if err != nil {
		return nil, err
	}
	p := &ParquetWriter{}
	if err := p.file.pages.begin(w); err != nil {
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

// flush has the row group at hand written, once the one before is.
func (w *ParquetWriter) flush() error {
	if err := w.wait(); err != nil {
		return err
	}
	w.rows, w.making = slices.Grow(w.making[:0], parquetGroupRows), w.rows
	w.made = make(chan error, 1)
	go func(rows []Record, made chan<- error) { made <- w.file.write(rows) }(w.making, w.made)
	return nil
}

// wait waits for the row group that is being made, and tells the first error.
func (w *ParquetWriter) wait() error {
	if w.made != nil {
		err := <-w.made
		w.made = nil
		if w.err == nil {
			w.err = err
		}
	}
	return w.err
}

// abort sees to it that nothing is written any more.
func (w *ParquetWriter) abort() { w.wait() }

// Close writes what is pending and the file's footer; it does not close w.
func (w *ParquetWriter) Close() error {
	if err := w.wait(); err != nil {
		return err
	}
	if len(w.rows) > 0 {
		if w.err = w.file.write(w.rows); w.err != nil {
			return w.err
		}
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
		RowGroups:        w.file.groups,
		KeyValueMetadata: w.keys,
		CreatedBy:        fmt.Sprintf("spinesim version %d (build record)", RecordVersion),
		ColumnOrders:     layout.ColumnOrders,
	})
	if err != nil {
		return fmt.Errorf("footer: %w", err)
	}
	footer = binary.LittleEndian.AppendUint32(footer, uint32(len(footer)))
	return w.file.pages.put(append(footer, parquetMagic...))
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
