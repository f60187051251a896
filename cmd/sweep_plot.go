package cmd

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"spinesim/plots"
	"spinesim/sim/study/sweep"
)

// mostLines is how many lines a panel can hold and still be read (chosen).
const mostLines = 8

// factor is a parameter of a sweep with the values it takes, in rising order
// where they are numbers.
type factor struct {
	sweep.Parameter
	index   int
	values  []any
	numbers bool
}

// factors are the parameters that take more than one value.
func factors(r *sweep.Summary) []factor {
	var out []factor
	for i, p := range r.Parameters {
		f := factor{Parameter: p, index: i, numbers: true}
		for _, q := range r.Points {
			v := q.Values[i]
			if !slices.Contains(f.values, v) {
				f.values = append(f.values, v)
			}
			if _, ok := number(v); !ok {
				f.numbers = false
			}
		}
		if f.numbers {
			slices.SortFunc(f.values, func(a, b any) int {
				x, _ := number(a)
				y, _ := number(b)
				return cmp.Compare(x, y)
			})
		}
		if len(f.values) > 1 {
			out = append(out, f)
		}
	}
	return out
}

// number is a value as the database has it, if it is one.
func number(v any) (float64, bool) {
	switch v := v.(type) {
	case float64:
		return v, true
	case int64:
		return float64(v), true
	}
	return 0, false
}

func (f *factor) title() string {
	if f.Unit == "" {
		return f.Path
	}
	return f.Path + " (" + f.Unit + ")"
}

func sweepValue(v any) string {
	switch v := v.(type) {
	case nil:
		return "–"
	case float64:
		return strconv.FormatFloat(v, 'g', 6, 64)
	}
	return fmt.Sprint(v)
}

// axes choose the factor along the axis and the one of the lines; the second is
// nil for a single line. Empty names leave the choice to what the sweep has:
// the number with most values, and the first other factor of few values.
func axes(r *sweep.Summary, over, by string) (x, lines *factor, err error) {
	fs := factors(r)
	find := func(flag, path string) (*factor, error) {
		var names []string
		for i := range fs {
			if fs[i].Path == path {
				return &fs[i], nil
			}
			names = append(names, fs[i].Path)
		}
		return nil, usagef("%s: no factor %q takes several values, want one of: %s", flag, path, strings.Join(names, ", "))
	}
	if over != "" {
		if x, err = find("--over", over); err != nil {
			return nil, nil, err
		}
	}
	if by != "" {
		if by == over {
			return nil, nil, usagef("--over and --by name the same factor %q", by)
		}
		if lines, err = find("--by", by); err != nil {
			return nil, nil, err
		}
		if len(lines.values) > mostLines {
			return nil, nil, usagef("--by: factor %q takes %d values, more than the %d lines a figure can hold", by, len(lines.values), mostLines)
		}
	}
	if x == nil {
		for i := range fs {
			f := &fs[i]
			if f.Path != by && (x == nil || f.numbers && (!x.numbers || len(f.values) > len(x.values))) {
				x = f
			}
		}
	}
	if x == nil {
		return nil, nil, usagef("--plot: no factor of the sweep takes several values")
	}
	if lines == nil {
		for i := range fs {
			if f := &fs[i]; f.index != x.index && len(f.values) <= mostLines {
				lines = f
				break
			}
		}
	}
	return x, lines, nil
}

// drawSweep draws each metric over one factor, a line for each value of another
// one. Where further factors vary, a point is the mean over them and has no
// interval, for they are no replications.
func drawSweep(r *sweep.Summary, x, lines *factor) (*sheet, error) {
	names := []any{nil}
	title := " over " + x.Path
	if lines != nil {
		names = lines.values
		title += " by " + lines.Path
	}
	var averaged []string
	for _, f := range factors(r) {
		if f.index != x.index && (lines == nil || f.index != lines.index) {
			averaged = append(averaged, f.Path)
		}
	}
	if len(averaged) > 0 {
		title += ", mean over " + strings.Join(averaged, ", ")
	}
	var all []drawing
	groups := 0
	for _, m := range r.Metrics {
		label := m.Name
		if m.Unit != "" {
			label += " (" + m.Unit + ")"
		}
		cells := make([][]plots.Value, len(names)) // by line, then place
		for i, n := range names {
			for _, v := range x.values {
				cells[i] = append(cells[i], sweepCell(r, m.Name, x.index, v, lines, n))
			}
		}
		if !x.numbers {
			d := &plots.Comparison{Title: m.Name + title, XLabel: label, FromZero: true}
			for _, n := range names {
				d.Series = append(d.Series, lineName(lines, n))
			}
			for j, v := range x.values {
				g := plots.BarGroup{Name: sweepValue(v)}
				for i := range names {
					g.Values = append(g.Values, cells[i][j])
				}
				d.Groups = append(d.Groups, g)
			}
			groups = len(d.Groups) * len(d.Series)
			all = append(all, d)
			continue
		}
		d := &plots.Sweep{Title: m.Name + title, XLabel: x.title(), YLabel: label}
		var xs []float64
		for _, v := range x.values {
			f, _ := number(v)
			xs = append(xs, f)
		}
		d.LogX = len(xs) > 2 && xs[0] > 0 && xs[len(xs)-1] >= 16*xs[0] // chosen
		if len(xs) <= 12 && !d.LogX {
			d.Ticks = xs
		}
		for i, n := range names {
			d.Series = append(d.Series, plots.SweepSeries{Name: lineName(lines, n), X: xs, Y: cells[i]})
		}
		all = append(all, d)
	}
	height := 4.0
	if !x.numbers {
		height = max(2.4, 1.4+0.2*float64(groups))
	}
	return drawAll(min(2, len(all)), 8, height, all...)
}

func lineName(lines *factor, v any) string {
	if lines == nil {
		return ""
	}
	if lines.numbers {
		return lines.title() + " = " + sweepValue(v)
	}
	return sweepValue(v)
}

// sweepCell is a metric at the points with the given values.
func sweepCell(r *sweep.Summary, metric string, x int, v any, lines *factor, n any) plots.Value {
	var only plots.Value
	sum, count := 0.0, 0
	for _, p := range r.Points {
		if p.Values[x] != v || lines != nil && p.Values[lines.index] != n {
			continue
		}
		f, ok := p.Figures[metric]
		if !ok || math.IsNaN(float64(f.Mean)) {
			continue
		}
		only = drawable(f, 1)
		sum += only.Mean
		count++
	}
	if count == 1 {
		return only
	}
	return plots.PlusMinus(sum/float64(count), math.NaN()) // NaN of none
}
