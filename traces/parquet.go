package traces

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"

	"spinesim/sim/des"
)

// parquetRow is the schema. NULL stands for: no event, no peer, no queue, no
// packet, a zero where zero says nothing, never ready. Absolute times other
// than the end are kept as spans, which have far fewer different values.
type parquetRow struct {
	Kind     string `parquet:"kind,dict"`
	Event    string `parquet:"event,optional,dict"`
	Card     uint8  `parquet:"card,dict"`
	Peer     uint8  `parquet:"peer,optional,dict"`
	Queue    uint8  `parquet:"queue,optional,dict"`
	Packet   uint64 `parquet:"packet,optional,delta"`
	End      int64  `parquet:"end_ps,delta"`
	Duration int64  `parquet:"duration_ps,dict"`
	Waited   int64  `parquet:"waited_ps,optional,dict"`
	ID       uint64 `parquet:"id,optional,delta"`
	Cause    uint64 `parquet:"cause,optional,delta"`
	Bytes    uint32 `parquet:"bytes,optional,dict"`
	Count    uint32 `parquet:"count,dict"`
	Cycles   uint64 `parquet:"cycles,optional,dict"`
	Stall    uint32 `parquet:"stall_cycles,optional,dict"`
	Reason   string `parquet:"reason,optional,dict"`
	Verdict  string `parquet:"verdict,optional,dict"`
}

// parquetColumn says how a column's values come from a record and go back.
// Values come back column by column, so a column that needs another's
// (duration needs the end) stands behind it.
type parquetColumn struct {
	name, unit, about string
	get               func(r *Record) (v uint64, ok bool) // ok: it says something
	names             *[256]parquet.Value                 // what v names; nil: v is a number
	set               func(p *parquetParser, r *Record, v parquet.Value) error
}

// nameValues are the values of an enumeration, made once: its names, and the
// numbers of what has none.
func nameValues(known int, name func(uint8) string) (v [256]parquet.Value) {
	for i := range v {
		s := strconv.Itoa(i)
		if i < known {
			s = name(uint8(i))
		}
		v[i] = parquet.ByteArrayValue([]byte(s))
	}
	return v
}

var (
	kindValues    = nameValues(NumKinds, func(n uint8) string { return Kind(n).String() })
	eventValues   = nameValues(NumEvents, func(n uint8) string { return Event(n).String() })
	reasonValues  = nameValues(NumReasons, func(n uint8) string { return Reason(n).String() })
	verdictValues = nameValues(NumVerdicts, func(n uint8) string { return Verdict(n).String() })
)

var parquetColumns = []parquetColumn{
	{"kind", "", "what the row tells of",
		func(r *Record) (uint64, bool) { return uint64(r.Kind), true },
		&kindValues,
		func(p *parquetParser, r *Record, v parquet.Value) (err error) {
			r.Kind, err = valueNamed(p.names.kinds, "kind", v.ByteArray())
			return err
		}},
	{"event", "", "handler, transfer, engine run or level",
		func(r *Record) (uint64, bool) { return uint64(r.Event), r.Event != NoEvent },
		&eventValues,
		func(p *parquetParser, r *Record, v parquet.Value) (err error) {
			r.Event, err = valueNamed(p.names.events, "event", v.ByteArray())
			return err
		}},
	{"card", "", "number of the card; 254 is the host, 255 none",
		func(r *Record) (uint64, bool) { return uint64(r.Card), true },
		nil,
		func(_ *parquetParser, r *Record, v parquet.Value) error { return setUint8(&r.Card, v) }},
	{"peer", "", "number of the other card",
		func(r *Record) (uint64, bool) { return uint64(r.Peer), r.Peer != NoCard },
		nil,
		func(_ *parquetParser, r *Record, v parquet.Value) error { return setUint8(&r.Peer, v) }},
	{"queue", "", "queue of the card's dispatcher",
		func(r *Record) (uint64, bool) { return uint64(r.Queue), r.Queue != NoQueue },
		nil,
		func(_ *parquetParser, r *Record, v parquet.Value) error { return setUint8(&r.Queue, v) }},
	{"packet", "", "number of the packet, from 1",
		func(r *Record) (uint64, bool) { return r.Packet, r.Packet != 0 },
		nil,
		func(_ *parquetParser, r *Record, v parquet.Value) error { r.Packet = v.Uint64(); return nil }},
	{"end_ps", "ps", "when it ended",
		func(r *Record) (uint64, bool) { return uint64(r.End), true },
		nil,
		func(_ *parquetParser, r *Record, v parquet.Value) error { r.End = des.Time(v.Int64()); return nil }},
	{"duration_ps", "ps", "how long it took: it began at end_ps - duration_ps",
		func(r *Record) (uint64, bool) { return uint64(r.End - r.Start), true },
		nil,
		func(_ *parquetParser, r *Record, v parquet.Value) error {
			r.Start = r.End - des.Time(v.Int64())
			return nil
		}},
	{"waited_ps", "ps", "how long it was ready before it began",
		func(r *Record) (uint64, bool) { return uint64(r.Start - r.Ready), r.Ready != 0 },
		nil,
		func(_ *parquetParser, r *Record, v parquet.Value) error {
			r.Ready = r.Start - des.Time(v.Int64())
			return nil
		}},
	{"id", "", "name of the record: card * 2^48 + number on the card",
		func(r *Record) (uint64, bool) { return uint64(r.ID), r.ID != 0 },
		nil,
		func(_ *parquetParser, r *Record, v parquet.Value) error { r.ID = ID(v.Uint64()); return nil }},
	{"cause", "", "id of the record that caused it",
		func(r *Record) (uint64, bool) { return uint64(r.Cause), r.Cause != 0 },
		nil,
		func(_ *parquetParser, r *Record, v parquet.Value) error { r.Cause = ID(v.Uint64()); return nil }},
	{"bytes", "B", "length of what was moved",
		func(r *Record) (uint64, bool) { return uint64(r.Bytes), r.Bytes != 0 },
		nil,
		func(_ *parquetParser, r *Record, v parquet.Value) error { r.Bytes = v.Uint32(); return nil }},
	{"count", "", "number of polls, or the level",
		func(r *Record) (uint64, bool) { return uint64(r.Count), true },
		nil,
		func(_ *parquetParser, r *Record, v parquet.Value) error { r.Count = v.Uint32(); return nil }},
	{"cycles", "clocks", "uncontended processor cycles; bus clocks held for a transfer",
		func(r *Record) (uint64, bool) { return r.Cycles, r.Cycles != 0 },
		nil,
		func(_ *parquetParser, r *Record, v parquet.Value) error { r.Cycles = v.Uint64(); return nil }},
	{"stall_cycles", "clocks", "lost to the memory bus; to bus waits for a transfer",
		func(r *Record) (uint64, bool) { return uint64(r.Stall), r.Stall != 0 },
		nil,
		func(_ *parquetParser, r *Record, v parquet.Value) error { r.Stall = v.Uint32(); return nil }},
	{"reason", "", "why a packet waited or was dropped",
		func(r *Record) (uint64, bool) { return uint64(r.Reason), r.Reason != ReasonNone },
		&reasonValues,
		func(p *parquetParser, r *Record, v parquet.Value) (err error) {
			r.Reason, err = valueNamed(p.names.reasons, "reason", v.ByteArray())
			return err
		}},
	{"verdict", "", "how a packet left",
		func(r *Record) (uint64, bool) { return uint64(r.Verdict), r.Verdict != VerdictNone },
		&verdictValues,
		func(p *parquetParser, r *Record, v parquet.Value) (err error) {
			r.Verdict, err = valueNamed(p.names.verdicts, "verdict", v.ByteArray())
			return err
		}},
}

func setUint8(to *uint8, v parquet.Value) error {
	n := v.Uint32()
	if n > 255 {
		return fmt.Errorf("%w: %d is over 8 bits", ErrCorrupt, n)
	}
	*to = uint8(n)
	return nil
}

var parquetSchema = parquet.SchemaOf(parquetRow{})

// Keys of the file's metadata. Units and meanings of columns stand there too,
// as "column.NAME.unit" and "column.NAME.about", since the library writes no
// metadata of single columns.
const (
	parquetMetaKey  = "spinesim.meta"
	parquetTallyKey = "spinesim.end"
)

// parquetGroupRows is how many records make a row group (chosen: about half a
// megabyte in the file, and 10 MB in memory while it is made or read).
const parquetGroupRows = 1 << 17

// parquetBlockRows is how many records are handed over at a time (chosen: some
// 50 kB).
const parquetBlockRows = 1024

// parquetLeveled holds, by column, values as the library takes them, made once:
// NULL, and the small numbers and all names.
var parquetLeveled = func() []leveled {
	columns := make([]leveled, len(parquetColumns))
	for i, f := range parquetSchema.Fields() {
		l := &columns[i]
		if l.optional = f.Optional(); l.optional {
			l.some = 1
		}
		l.wide = f.Type().Kind() == parquet.Int64
		l.null = parquet.NullValue().Level(0, 0, i)
		for v := range l.small {
			switch names := parquetColumns[i].names; {
			case names != nil:
				l.small[v] = names[v]
			case l.wide:
				l.small[v] = parquet.Int64Value(int64(v))
			default:
				l.small[v] = parquet.Int32Value(int32(v))
			}
			l.small[v] = l.small[v].Level(0, l.some, i)
		}
	}
	return columns
}()

type leveled struct {
	optional bool
	wide     bool // numbers have 64 bits, else 32
	some     int  // definition level of what is not NULL
	null     parquet.Value
	small    [256]parquet.Value
}

// ParquetWriter writes Apache Parquet, typed, with dictionaries, delta encoding
// and zstd, in 4 to 7 bytes a record. Within a row group the rows are sorted by
// card, where they compress best; ordered by (end_ps, card) and otherwise as
// they stand they are the stream again, and ParquetReader gives them so.
type ParquetWriter struct {
	w      *parquet.GenericWriter[parquetRow]
	rows   []Record
	block  []Record
	values []parquet.Value
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
	opts := []parquet.WriterOption{
		parquetSchema,
		parquet.CreatedBy("spinesim", strconv.Itoa(RecordVersion), "record"),
		parquet.PageBufferSize(1 << 20),
		parquet.Compression(&zstd.Codec{Level: zstd.SpeedFastest}),
		parquet.KeyValueMetadata(parquetMetaKey, string(m)),
	}
	if meta != nil {
		opts = append(opts,
			parquet.KeyValueMetadata("run_id", meta.RunID),
			parquet.KeyValueMetadata("scenario_hash", meta.ScenarioHash),
			parquet.KeyValueMetadata("scenario", meta.Scenario),
			parquet.KeyValueMetadata("program", meta.Program),
			parquet.KeyValueMetadata("seed", strconv.FormatUint(meta.Seed, 10)))
	}
	for _, c := range parquetColumns {
		opts = append(opts, parquet.KeyValueMetadata("column."+c.name+".about", c.about))
		if c.unit != "" {
			opts = append(opts, parquet.KeyValueMetadata("column."+c.name+".unit", c.unit))
		}
	}
	return &ParquetWriter{w: parquet.NewGenericWriter[parquetRow](w, opts...)}, nil
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

func (w *ParquetWriter) flush() error {
	if len(w.rows) == 0 {
		return nil
	}
	// A counting sort by card: it keeps the order within each.
	var at [257]int
	for i := range w.rows {
		at[int(w.rows[i].Card)+1]++
	}
	for c := range 256 {
		at[c+1] += at[c]
	}
	order := make([]int32, len(w.rows))
	for i := range w.rows {
		c := w.rows[i].Card
		order[at[c]] = int32(i)
		at[c]++
	}
	// Block by block, so that a block's records stay at hand for all columns.
	columns := w.w.ColumnWriters()
	for from := 0; from < len(order); from += parquetBlockRows {
		block := w.block[:0]
		for _, row := range order[from:min(from+parquetBlockRows, len(order))] {
			block = append(block, w.rows[row])
		}
		w.block = block
		for i, column := range columns {
			c := &parquetColumns[i]
			values := w.values[:0]
			l := &parquetLeveled[i]
			for j := range block {
				v, ok := c.get(&block[j])
				switch {
				case !ok && l.optional:
					values = append(values, l.null)
				case v < uint64(len(l.small)):
					values = append(values, l.small[v])
				case l.wide:
					values = append(values, parquet.Int64Value(int64(v)).Level(0, l.some, i))
				default:
					values = append(values, parquet.Int32Value(int32(v)).Level(0, l.some, i))
				}
			}
			w.values = values
			if _, err := column.WriteRowValues(values); err != nil {
				return fmt.Errorf("column %s: %w", c.name, err)
			}
		}
	}
	w.rows = w.rows[:0]
	return w.w.Flush()
}

// Close writes what is pending and the file's footer; it does not close w.
func (w *ParquetWriter) Close() error {
	if err := w.flush(); err != nil {
		return err
	}
	w.w.SetKeyValueMetadata(parquetTallyKey, strings.TrimSpace(string(appendTrailer(nil, w.tally))))
	return w.w.Close()
}
