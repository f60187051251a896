package traces

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"slices"

	"github.com/parquet-go/parquet-go/encoding/delta"
	"github.com/parquet-go/parquet-go/encoding/rle"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// parquetChunk is one column of the row group that is being made: its values,
// and what the file says of the column in every row group.
type parquetChunk struct {
	*parquetColumn
	about    format.ColumnMetaData
	encoding format.Encoding // of the values: delta, or numbers of a dictionary
	optional bool
	flip     uint64 // what makes the type's order that of unsigned numbers

	levels      []uint8 // of an optional column: 1 for a value, 0 for NULL
	nulls       int
	numbers     []int64 // delta: the values
	least, most uint64  // delta: the bounds of the values, flipped
	index       []int32 // dictionary: the values' numbers there
	dict        parquetDictionary
}

// newParquetChunks makes the columns as the schema describes them.
func newParquetChunks() []parquetChunk {
	chunks := make([]parquetChunk, len(parquetColumns))
	for i, f := range parquetSchema.Fields() {
		c := &chunks[i]
		c.parquetColumn = &parquetColumns[i]
		c.optional = f.Optional()
		c.about = format.ColumnMetaData{
			Type:         *f.Type().PhysicalType(),
			PathInSchema: []string{c.name},
			Codec:        format.Zstd,
		}
		if l, ok := f.Type().LogicalType().Value.(*format.IntType); ok && l.IsSigned {
			c.flip = 1 << 63
		}
		if c.optional {
			c.about.Encoding = append(c.about.Encoding, format.RLE)
		}
		c.encoding = f.Encoding().Encoding()
		if c.encoding != format.DeltaBinaryPacked {
			c.encoding = format.RLEDictionary
			c.about.Encoding = append(c.about.Encoding, format.Plain)
			c.about.EncodingStats = append(c.about.EncodingStats, format.PageEncodingStats{
				PageType: format.DictionaryPage, Encoding: format.Plain, Count: 1,
			})
		}
		c.about.Encoding = append(c.about.Encoding, c.encoding)
		c.about.EncodingStats = append(c.about.EncodingStats, format.PageEncodingStats{
			PageType: format.DataPage, Encoding: c.encoding, Count: 1,
		})
	}
	return chunks
}

// reset makes room for a row group's values.
func (c *parquetChunk) reset(rows int) {
	c.levels, c.nulls = slices.Grow(c.levels[:0], rows), 0
	if c.encoding == format.DeltaBinaryPacked {
		c.numbers = slices.Grow(c.numbers[:0], rows)
		c.least, c.most = 1<<64-1, 0
		return
	}
	c.index = slices.Grow(c.index[:0], rows)
	c.dict.reset()
}

// add takes the column's values from some records, at most parquetBlockRows.
func (c *parquetChunk) add(rs []Record, b *parquetBlock) {
	n := len(rs)
	for i := range rs[:min(n, parquetBlockRows)] {
		v, some := c.get(&rs[i])
		b.value[i], b.some[i] = v, one(some)
	}
	if c.optional {
		c.levels = append(c.levels, b.some[:n]...)
		n = b.squeeze(n)
		c.nulls += len(rs) - n
	}
	if c.encoding != format.DeltaBinaryPacked {
		c.index = c.dict.append(c.index, b.value[:n])
		return
	}
	from := len(c.numbers)
	c.numbers = c.numbers[:from+n]
	to := c.numbers[from:]
	least, most := c.least, c.most
	for i, v := range b.value[:n] {
		to[i] = int64(v)
		least, most = min(least, v^c.flip), max(most, v^c.flip)
	}
	c.least, c.most = least, most
}

// squeeze drops what is NULL of the first n values and tells how many remain.
func (b *parquetBlock) squeeze(n int) int {
	to := 0
	for i := range n {
		b.value[to] = b.value[i]
		to += int(b.some[i])
	}
	return to
}

// write writes the column as one page, behind its dictionary where it has one,
// and tells about it in m. Pages are of version 1: there the levels, which tell
// NULL from values, are compressed too, and more programs read it.
func (c *parquetChunk) write(p *parquetPages, m *format.ColumnMetaData) error {
	*m = c.about
	m.Statistics = c.statistics()
	start, size := p.offset, int64(0)
	if c.encoding == format.RLEDictionary {
		p.plain = p.plain[:0]
		for _, v := range c.dict.values {
			if c.names != nil {
				p.plain = binary.LittleEndian.AppendUint32(p.plain, uint32(len(c.names(uint8(v)))))
			}
			p.plain = c.appendValue(p.plain, v)
		}
		m.DictionaryPageOffset = p.offset
		n, err := p.page(format.PageHeader{
			Type: format.DictionaryPage,
			DictionaryPageHeader: thrift.New(format.DictionaryPageHeader{
				NumValues: int32(len(c.dict.values)), Encoding: format.Plain,
			}),
		})
		if err != nil {
			return err
		}
		size += n
	}
	if err := c.encode(p); err != nil {
		return err
	}
	m.NumValues = int64(len(c.numbers) + len(c.index) + c.nulls)
	m.DataPageOffset = p.offset
	n, err := p.page(format.PageHeader{
		Type: format.DataPage,
		DataPageHeader: thrift.New(format.DataPageHeader{
			NumValues:               int32(m.NumValues),
			Encoding:                c.encoding,
			DefinitionLevelEncoding: format.RLE,
			RepetitionLevelEncoding: format.RLE,
		}),
	})
	m.TotalUncompressedSize = size + n
	m.TotalCompressedSize = p.offset - start
	return err
}

// encode leaves the page of values in p.plain.
func (c *parquetChunk) encode(p *parquetPages) (err error) {
	p.plain = p.plain[:0]
	if c.optional {
		if p.coded, err = (&rle.Encoding{BitWidth: 1}).EncodeLevels(p.coded, c.levels); err != nil {
			return err
		}
		p.plain = binary.LittleEndian.AppendUint32(p.plain, uint32(len(p.coded)))
		p.plain = append(p.plain, p.coded...)
	}
	if c.encoding == format.DeltaBinaryPacked {
		p.coded, err = new(delta.BinaryPackedEncoding).EncodeInt64(p.coded, c.numbers)
	} else {
		width := bits.Len(uint(max(len(c.dict.values), 1) - 1))
		p.plain = append(p.plain, byte(width))
		p.coded, err = (&rle.Encoding{BitWidth: width}).EncodeInt32(p.coded, c.index)
	}
	p.plain = append(p.plain, p.coded...)
	return err
}

// appendValue appends a value as the format writes it on its own.
func (c *parquetChunk) appendValue(b []byte, v uint64) []byte {
	switch {
	case c.names != nil:
		return append(b, c.names(uint8(v))...)
	case c.about.Type == format.Int64:
		return binary.LittleEndian.AppendUint64(b, v)
	default:
		return binary.LittleEndian.AppendUint32(b, uint32(v))
	}
}

// statistics are the number of NULLs and, where there are values, the least and
// the greatest in the order of the column's type: names in that of their bytes.
func (c *parquetChunk) statistics() format.Statistics {
	s := format.Statistics{NullCount: int64(c.nulls)}
	if c.names != nil {
		for _, v := range c.dict.values {
			name := []byte(c.names(uint8(v)))
			if s.MinValue == nil || bytes.Compare(name, s.MinValue) < 0 {
				s.MinValue = name
			}
			if s.MaxValue == nil || bytes.Compare(name, s.MaxValue) > 0 {
				s.MaxValue = name
			}
		}
		return s
	}
	least, most := c.least, c.most
	if c.encoding == format.RLEDictionary {
		least, most = 1<<64-1, 0
		for _, v := range c.dict.values {
			least, most = min(least, v^c.flip), max(most, v^c.flip)
		}
	}
	if least <= most {
		s.MinValue, s.MaxValue = c.appendValue(nil, least^c.flip), c.appendValue(nil, most^c.flip)
	}
	return s
}
