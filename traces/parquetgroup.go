package traces

import (
	"fmt"
	"slices"

	"github.com/parquet-go/parquet-go/format"
)

// parquetGroupRows is how many records make a row group (chosen: about half a
// megabyte in the file; in memory 12 MB, and as much again while it is made or
// read).
const parquetGroupRows = 1 << 17

// parquetGroups makes row groups of records and writes them.
type parquetGroups struct {
	order   []int32
	block   []Record
	taken   parquetBlock
	columns []parquetChunk
	pages   parquetPages
	groups  []format.RowGroup // so far
}

// write writes records as a row group.
func (g *parquetGroups) write(rows []Record) error {
	g.sort(rows)
	if g.columns == nil {
		g.columns = newParquetChunks()
		g.block = make([]Record, 0, parquetBlockRows)
	}
	for i := range g.columns {
		g.columns[i].reset(len(rows))
	}
	// Block by block, so that a block's records stay at hand for all columns.
	for part := range slices.Chunk(g.order, parquetBlockRows) {
		g.block = g.block[:0]
		for _, row := range part {
			g.block = append(g.block, rows[row])
		}
		for i := range g.columns {
			g.columns[i].add(g.block, &g.taken)
		}
	}
	group := format.RowGroup{
		NumRows:    int64(len(rows)),
		Columns:    make([]format.ColumnChunk, len(g.columns)),
		FileOffset: g.pages.offset,
		Ordinal:    int16(len(g.groups)),
	}
	for i := range g.columns {
		m := &group.Columns[i].MetaData
		if err := g.columns[i].write(&g.pages, m); err != nil {
			return fmt.Errorf("column %s: %w", g.columns[i].name, err)
		}
		group.TotalByteSize += m.TotalUncompressedSize
		group.TotalCompressedSize += m.TotalCompressedSize
	}
	g.groups = append(g.groups, group)
	return nil
}

// sort leaves in order the records' places by card, and within each card as
// they come: a counting sort.
func (g *parquetGroups) sort(rows []Record) {
	var at [257]int
	for i := range rows {
		at[int(rows[i].Card)+1]++
	}
	for c := range 256 {
		at[c+1] += at[c]
	}
	g.order = slices.Grow(g.order[:0], len(rows))[:len(rows)]
	for i := range rows {
		c := rows[i].Card
		g.order[at[c]] = int32(i)
		at[c]++
	}
}
