package ilp

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// table writes aligned columns and free lines; the first error sticks.
type table struct {
	w   *tabwriter.Writer
	err error
}

func newTable(w io.Writer) *table {
	return &table{w: tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)}
}

func (t *table) write(s string) {
	if t.err == nil {
		_, t.err = io.WriteString(t.w, s)
	}
}

// line writes a line that belongs to no column.
func (t *table) line(format string, args ...any) {
	t.write(fmt.Sprintf(format, args...) + "\n")
}

func (t *table) row(cells ...string) {
	t.write(strings.Join(cells, "\t") + "\n")
}

func (t *table) flush() error {
	if t.err != nil {
		return t.err
	}
	return t.w.Flush()
}

func f1(x float64) string { return fmt.Sprintf("%.1f", x) }
func f3(x float64) string { return fmt.Sprintf("%.3f", x) }

// percent writes a share as a signed percentage.
func percent(x float64) string { return fmt.Sprintf("%+.1f %%", 100*x) }

// optional writes what may be unknown.
func optional(x *float64, write func(float64) string) string {
	if x == nil {
		return "–"
	}
	return write(*x)
}
