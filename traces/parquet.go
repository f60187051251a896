package traces

import (
	"fmt"
	"strconv"

	"github.com/parquet-go/parquet-go"

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

// parquetColumn says how a column's values come from records and go back.
// Values come back column by column, so a column that needs another's
// (duration needs the end) stands behind it.
type parquetColumn struct {
	name, unit, about string
	get               func(*Record) (v uint64, some bool) // some false: NULL
	names             func(uint8) string                  // what a value names; nil: it is a number
	set               func(p *parquetParser, r *Record, v parquet.Value) error
}

// parquetBlockRows is how many records are taken apart at a time (chosen: they
// stay in a processor's first cache for all columns).
const parquetBlockRows = 256

// parquetBlock is one column of some records.
type parquetBlock struct {
	value [parquetBlockRows]uint64
	some  [parquetBlockRows]uint8 // 1: the value says something, 0: NULL
}

// one is 1 where b holds, and 0 elsewhere; it compiles to no branch.
func one(b bool) uint8 {
	if b {
		return 1
	}
	return 0
}

// valueName is the name of an enumeration's value, and the number of what has none.
func valueName(n uint8, known int, name string) string {
	if int(n) < known {
		return name
	}
	return strconv.Itoa(int(n))
}

var parquetColumns = []parquetColumn{
	{"kind", "", "what the row tells of",
		func(r *Record) (uint64, bool) { return uint64(r.Kind), true },
		func(n uint8) string { return valueName(n, NumKinds, Kind(n).String()) },
		func(p *parquetParser, r *Record, v parquet.Value) (err error) {
			r.Kind, err = valueNamed(p.names.kinds, "kind", v.ByteArray())
			return err
		}},
	{"event", "", "handler, transfer, engine run or level",
		func(r *Record) (uint64, bool) { return uint64(r.Event), r.Event != NoEvent },
		func(n uint8) string { return valueName(n, NumEvents, Event(n).String()) },
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
		func(n uint8) string { return valueName(n, NumReasons, Reason(n).String()) },
		func(p *parquetParser, r *Record, v parquet.Value) (err error) {
			r.Reason, err = valueNamed(p.names.reasons, "reason", v.ByteArray())
			return err
		}},
	{"verdict", "", "how a packet left",
		func(r *Record) (uint64, bool) { return uint64(r.Verdict), r.Verdict != VerdictNone },
		func(n uint8) string { return valueName(n, NumVerdicts, Verdict(n).String()) },
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
