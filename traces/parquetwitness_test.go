package traces

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// A second reader of Parquet, written from the format's specification and
// sharing nothing with the library that wrote the file: it takes names, types
// and encodings from the file alone. It knows what our files use (zstd, plain,
// dictionaries, delta, pages of version 1, optional columns) and panics on
// anything else, which fails the test.

// compact decodes Thrift's compact protocol into maps by field number.
type compact struct{ b []byte }

func (c *compact) uvarint() uint64 {
	v, n := binary.Uvarint(c.b)
	if n <= 0 {
		panic("number expected")
	}
	c.b = c.b[n:]
	return v
}

func (c *compact) take(n int) []byte {
	b := c.b[:n]
	c.b = c.b[n:]
	return b
}

func (c *compact) value(kind byte) any {
	switch kind {
	case 1, 2:
		return kind == 1
	case 3:
		return int64(int8(c.take(1)[0]))
	case 4, 5, 6:
		return unzigzag(c.uvarint())
	case 8:
		return c.take(int(c.uvarint()))
	case 9:
		h := c.take(1)[0]
		n := uint64(h >> 4)
		if n == 15 {
			n = c.uvarint()
		}
		list := make([]any, n)
		for i := range list {
			list[i] = c.value(h & 15)
		}
		return list
	case 12:
		m := map[int64]any{}
		for id := int64(0); ; {
			h := c.take(1)[0]
			if h == 0 {
				return m
			}
			if h>>4 == 0 {
				id = unzigzag(c.uvarint())
			} else {
				id += int64(h >> 4)
			}
			m[id] = c.value(h & 15)
		}
	}
	panic(fmt.Sprintf("type %d", kind))
}

func field[T any](m any, path ...int64) T {
	for _, id := range path {
		m = m.(map[int64]any)[id]
	}
	v, _ := m.(T)
	return v
}

// hybrid decodes the hybrid of runs and packed bits: n values of some bits.
func hybrid(b []byte, width, n int) []uint64 {
	var out []uint64
	c := compact{b}
	for len(out) < n {
		h := c.uvarint()
		if h&1 == 0 {
			v := uint64(0)
			for i, x := range c.take((width + 7) / 8) {
				v |= uint64(x) << (8 * i)
			}
			for range h >> 1 {
				out = append(out, v)
			}
			continue
		}
		packed := c.take(min(int(h>>1)*width, len(c.b)))
		out = append(out, unpack(packed, width, int(h>>1)*8)...)
	}
	return out[:n]
}

func unpack(b []byte, width, n int) []uint64 {
	out := make([]uint64, n)
	for i := range out {
		for bit := range width {
			at := i*width + bit
			if at/8 < len(b) && b[at/8]>>(at%8)&1 != 0 {
				out[i] |= 1 << bit
			}
		}
	}
	return out
}

func deltas(b []byte, n int) []uint64 {
	if n == 0 {
		return nil
	}
	c := compact{b}
	block, parts, total := int(c.uvarint()), int(c.uvarint()), int(c.uvarint())
	if total != n {
		panic("count of deltas")
	}
	out := []uint64{uint64(unzigzag(c.uvarint()))}
	for len(out) < total {
		least := uint64(unzigzag(c.uvarint()))
		widths := c.take(parts)
		for _, w := range widths {
			if len(out) >= total {
				break
			}
			size := block / parts
			for _, d := range unpack(c.take(size*int(w)/8), int(w), size) {
				if len(out) < total {
					out = append(out, out[len(out)-1]+least+d)
				}
			}
		}
	}
	return out
}

// plainValues decodes numbers of 4 or 8 bytes, or byte strings, as text.
func plainValues(b []byte, typ int64, n int) (out []string) {
	c := compact{b}
	for range n {
		switch typ {
		case 1:
			out = append(out, strconv.Itoa(int(int32(binary.LittleEndian.Uint32(c.take(4))))))
		case 2:
			out = append(out, strconv.FormatInt(int64(binary.LittleEndian.Uint64(c.take(8))), 10))
		case 6:
			out = append(out, string(c.take(int(binary.LittleEndian.Uint32(c.take(4))))))
		default:
			panic(fmt.Sprintf("type %d", typ))
		}
	}
	return out
}

type witnessTable struct {
	names []string
	rows  [][]string // "NULL" for null
	kv    map[string]string
}

func witnessParquet(file []byte) witnessTable {
	if string(file[:4]) != "PAR1" || string(file[len(file)-4:]) != "PAR1" {
		panic("magic")
	}
	size := int(binary.LittleEndian.Uint32(file[len(file)-8:]))
	footer := (&compact{file[len(file)-8-size : len(file)-8]}).value(12)
	t := witnessTable{kv: map[string]string{}}
	for _, kv := range field[[]any](footer, 5) {
		t.kv[string(field[[]byte](kv, 1))] = string(field[[]byte](kv, 2))
	}
	schema := field[[]any](footer, 2)[1:]
	for _, s := range schema {
		t.names = append(t.names, string(field[[]byte](s, 4)))
	}
	unzip, err := zstd.NewReader(nil)
	if err != nil {
		panic(err)
	}
	defer unzip.Close()
	for _, g := range field[[]any](footer, 4) {
		n := int(field[int64](g, 3))
		base := len(t.rows)
		t.rows = append(t.rows, make([][]string, n)...)
		for i := range n {
			t.rows[base+i] = make([]string, len(schema))
		}
		for i, column := range field[[]any](g, 1) {
			meta := field[map[int64]any](column, 3)
			typ, optional := field[int64](meta, 1), field[int64](schema[i], 3) == 1
			at := field[int64](meta, 9)
			if d := field[int64](meta, 11); d > 0 {
				at = min(at, d)
			}
			c := compact{file[at : at+field[int64](meta, 7)]}
			row := base
			var dict []string
			for len(c.b) > 0 {
				h := c.value(12)
				page := c.take(int(field[int64](h, 3)))
				if field[int64](h, 1) == 2 { // dictionary
					b, err := unzip.DecodeAll(page, nil)
					if err != nil {
						panic(err)
					}
					dict = plainValues(b, typ, int(field[int64](h, 7, 1)))
					continue
				}
				if typ := field[int64](h, 1); typ != 0 {
					panic(fmt.Sprintf("page of type %d", typ))
				}
				b, err := unzip.DecodeAll(page, nil)
				if err != nil {
					panic(err)
				}
				values := int(field[int64](h, 5, 1))
				defined, nulls := slices.Repeat([]uint64{1}, values), 0
				if optional {
					size := binary.LittleEndian.Uint32(b)
					defined = hybrid(b[4:4+size], 1, values)
					b = b[4+size:]
					for _, d := range defined {
						nulls += int(1 - d)
					}
				}
				var present []string
				switch enc := field[int64](h, 5, 2); enc {
				case 0:
					present = plainValues(b, typ, values-nulls)
				case 5:
					for _, v := range deltas(b, values-nulls) {
						if typ == 1 {
							v = uint64(int64(int32(v)))
						}
						present = append(present, strconv.FormatInt(int64(v), 10))
					}
				case 8:
					if values > nulls {
						for _, v := range hybrid(b[1:], int(b[0]), values-nulls) {
							present = append(present, dict[v])
						}
					}
				default:
					panic(fmt.Sprintf("encoding %d", enc))
				}
				for _, d := range defined {
					cell := "NULL"
					if d == 1 {
						cell, present = present[0], present[1:]
					}
					t.rows[row][i] = cell
					row++
				}
			}
			if row != len(t.rows) {
				panic("rows")
			}
			unsigned := typ != 6 && !field[bool](schema[i], 10, 10, 2)
			witnessStatistics(field[map[int64]any](meta, 12), typ, unsigned, columnCells(t.rows[base:], i))
		}
	}
	return t
}

func columnCells(rows [][]string, i int) (cells []string) {
	for _, row := range rows {
		cells = append(cells, row[i])
	}
	return cells
}

// witnessStatistics holds what the file says of a column in a row group, by
// which programs pass over row groups, against the values.
func witnessStatistics(s map[int64]any, typ int64, unsigned bool, cells []string) {
	nulls := int64(0)
	var least, most []byte
	for _, cell := range cells {
		if cell == "NULL" {
			nulls++
			continue
		}
		var plain []byte
		switch typ {
		case 1:
			n, _ := strconv.ParseInt(cell, 10, 64)
			plain = binary.LittleEndian.AppendUint32(nil, uint32(n))
		case 2:
			n, _ := strconv.ParseInt(cell, 10, 64)
			plain = binary.LittleEndian.AppendUint64(nil, uint64(n))
		case 6:
			plain = []byte(cell)
		}
		if least == nil || witnessLess(plain, least, typ, unsigned) {
			least = plain
		}
		if most == nil || witnessLess(most, plain, typ, unsigned) {
			most = plain
		}
	}
	if n, there := s[3]; !there || n != nulls || !bytes.Equal(field[[]byte](s, 6), least) || !bytes.Equal(field[[]byte](s, 5), most) {
		panic(fmt.Sprintf("statistics are %v, want %d nulls, %v to %v", s, nulls, least, most))
	}
}

func witnessLess(a, b []byte, typ int64, unsigned bool) bool {
	switch {
	case typ == 6:
		return string(a) < string(b)
	case typ == 1:
		return binary.LittleEndian.Uint32(a) < binary.LittleEndian.Uint32(b) // all are unsigned
	case unsigned:
		return binary.LittleEndian.Uint64(a) < binary.LittleEndian.Uint64(b)
	}
	return int64(binary.LittleEndian.Uint64(a)) < int64(binary.LittleEndian.Uint64(b))
}

// witnessRow is what a record's row must hold, written out once more.
func witnessRow(r *Record) []string {
	unless := func(null bool, v any) string {
		if null {
			return "NULL"
		}
		return fmt.Sprint(v)
	}
	name := func(n int, max int, s string) string {
		if n >= max {
			return strconv.Itoa(n)
		}
		return s
	}
	return []string{
		name(int(r.Kind), NumKinds, r.Kind.String()),
		unless(r.Event == NoEvent, name(int(r.Event), NumEvents, r.Event.String())),
		fmt.Sprint(r.Card),
		unless(r.Peer == NoCard, r.Peer),
		unless(r.Queue == NoQueue, r.Queue),
		unless(r.Packet == 0, int64(r.Packet)),
		fmt.Sprint(int64(r.End)),
		fmt.Sprint(int64(r.End - r.Start)),
		unless(r.Ready == 0, int64(r.Start-r.Ready)),
		unless(r.ID == 0, int64(r.ID)),
		unless(r.Cause == 0, int64(r.Cause)),
		unless(r.Bytes == 0, int32(r.Bytes)),
		fmt.Sprint(int32(r.Count)),
		unless(r.Cycles == 0, int64(r.Cycles)),
		unless(r.Stall == 0, int32(r.Stall)),
		unless(r.Reason == 0, name(int(r.Reason), NumReasons, r.Reason.String())),
		unless(r.Verdict == 0, name(int(r.Verdict), NumVerdicts, r.Verdict.String())),
	}
}

func TestParquetWitness(t *testing.T) {
	for name, recs := range map[string][]Record{
		"none": nil, "synthetic": sampleExpanded(t, 51, 5000), "wild": wild(52, 3000), "groups": sample(t, 53, parquetGroupRows+500),
	} {
		meta := synthMeta(51)
		table := witnessParquet(encode(t, &formats[2], meta, recs))
		wantNames := "kind event card peer queue packet end_ps duration_ps waited_ps id cause bytes count cycles stall_cycles reason verdict"
		if got := strings.Join(table.names, " "); got != wantNames {
			t.Fatalf("%s: columns %s", name, got)
		}
		for key, want := range map[string]string{
			"run_id": meta.RunID, "scenario_hash": meta.ScenarioHash, "seed": "51",
			"column.end_ps.unit": "ps", "column.bytes.unit": "B", "column.cycles.unit": "clocks",
		} {
			if table.kv[key] != want {
				t.Errorf("%s: metadata %s is %q, want %q", name, key, table.kv[key], want)
			}
		}
		if len(table.rows) != len(recs) {
			t.Fatalf("%s: %d rows, want %d", name, len(table.rows), len(recs))
		}
		number := func(s string) int64 {
			n, err := strconv.ParseInt(s, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		order := make([]int, len(table.rows))
		ends := make([][2]int64, len(table.rows))
		for i, row := range table.rows {
			order[i], ends[i] = i, [2]int64{number(row[6]), number(row[2])}
		}
		slices.SortStableFunc(order, func(i, j int) int { return slices.Compare(ends[i][:], ends[j][:]) })
		for i := range recs {
			if got, want := table.rows[order[i]], witnessRow(&recs[i]); !slices.Equal(got, want) {
				t.Fatalf("%s: row of record %d is\n%q, want\n%q", name, i, got, want)
			}
		}
	}
}

// DuckDB is asked too where it is installed. It is not required: few systems
// package it, and the witness above reads the same file from the specification.
func TestDuckDB(t *testing.T) {
	duckdb, err := exec.LookPath("duckdb")
	if err != nil {
		t.Skip("client program duckdb is missing")
	}
	recs := sample(t, 54, 20000)
	path := filepath.Join(t.TempDir(), "x.parquet")
	if err := os.WriteFile(path, encode(t, &formats[2], synthMeta(54), recs), 0o600); err != nil {
		t.Fatal(err)
	}
	var cycles uint64
	var ends, starts int64
	boxes := 0
	for _, r := range recs {
		cycles += r.Cycles
		ends += int64(r.End)
		starts += int64(r.Start)
		if r.Kind == KindBox {
			boxes++
		}
	}
	out := runClient(t, nil, duckdb, "-csv", "-noheader", "-c", "select count(*), sum(cycles), sum(end_ps), sum(end_ps - duration_ps), count(*) filter (kind = 'box') from '"+path+"'")
	if want := fmt.Sprintf("%d,%d,%d,%d,%d\n", len(recs), cycles, ends, starts, boxes); out != want {
		t.Errorf("DuckDB says %q, want %q", out, want)
	}
}

func TestParquetRefusesDisorder(t *testing.T) {
	w, err := NewParquetWriter(new(bytes.Buffer), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []Record{{End: 5, Card: 1}, {End: 5, Card: 1}, {End: 6, Card: 0}} {
		if err := w.Record(&r); err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range []Record{{End: 5, Card: 2}, {End: 4, Card: 0}} {
		if err := w.Record(&r); err == nil {
			t.Errorf("(%d, %d) is accepted behind (6, 0)", r.End, r.Card)
		}
	}
}
