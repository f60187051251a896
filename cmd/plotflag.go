package cmd

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"

	"spinesim/plots"
	"spinesim/sim/study"
	"spinesim/traces"
)

// plotFlag is the flag of the studies that can draw their result.
type plotFlag struct{ files []string }

func (f *plotFlag) add(c *cobra.Command, what string) {
	c.Flags().StringArrayVar(&f.files, "plot", nil, "draw "+what+" into this file: .svg, .png or .pdf; may be repeated")
}

// check refuses, before any work is done, files that cannot be written.
func (f *plotFlag) check() error {
	for _, p := range f.files {
		if err := plots.CheckPath(p); err != nil {
			return usagef("--plot: %w", err)
		}
		if err := checkOutput("--plot", p); err != nil {
			return err
		}
		t, err := os.CreateTemp(filepath.Dir(p), ".spinesim-*")
		if err != nil {
			return usagef("--plot: %w", err)
		}
		t.Close()
		os.Remove(t.Name())
	}
	return nil
}

// sheet is a figure of several plots.
type sheet struct {
	size plots.Size
	rows [][]*plot.Plot
}

// panels lays plots out in so many columns, each of the given size in inches.
func panels(columns int, width, height float64, ps ...*plot.Plot) *sheet {
	s := &sheet{}
	for i, p := range ps {
		if i%columns == 0 {
			s.rows = append(s.rows, make([]*plot.Plot, columns))
		}
		s.rows[i/columns][i%columns] = p
	}
	s.size = plots.Size{Width: vg.Length(width*float64(columns)) * vg.Inch, Height: vg.Length(height*float64(len(s.rows))) * vg.Inch}
	return s
}

// drawing is what the package of plots draws.
type drawing interface{ Plot() (*plot.Plot, error) }

// drawAll draws panels, without those that have nothing to show.
func drawAll[D drawing](columns int, width, height float64, all ...D) (*sheet, error) {
	var ps []*plot.Plot
	for _, d := range all {
		p, err := d.Plot()
		if errors.Is(err, plots.ErrNoEvents) {
			continue
		}
		if err != nil {
			return nil, err
		}
		ps = append(ps, p)
	}
	if len(ps) == 0 {
		return nil, plots.ErrNoEvents
	}
	return panels(min(columns, len(ps)), width, height, ps...), nil
}

// save draws into every file, and tells people. A study that was interrupted
// before there was anything to draw leaves no file.
func (f *plotFlag) save(c *cobra.Command, interrupted, quiet bool, draw func() (*sheet, error)) error {
	if len(f.files) == 0 {
		return nil
	}
	s, err := draw()
	if errors.Is(err, plots.ErrNoEvents) {
		if interrupted {
			return nil
		}
		return fmt.Errorf("--plot: the result has nothing to draw")
	}
	if err != nil {
		return err
	}
	for _, p := range f.files {
		if err := plots.SaveGrid(p, s.size, s.rows); err != nil {
			return err
		}
	}
	if quiet {
		return nil
	}
	_, err = fmt.Fprintln(c.OutOrStdout(), "wrote", strings.Join(f.files, ", "))
	return err
}

// show prints what a study found, as one JSON object or by text for people, and
// draws it. interrupted says that it is only what there was when the user ended
// the study.
func (f *plotFlag) show(c *cobra.Command, interrupted, asJSON bool, result any, text func(io.Writer) error, draw func() (*sheet, error)) error {
	w := c.OutOrStdout()
	var err error
	if asJSON {
		err = writeJSON(w, result)
	} else {
		err = text(w)
	}
	if err != nil {
		return err
	}
	return f.save(c, interrupted, asJSON, draw)
}

// drawable is an interval, scaled to another unit, for a figure.
func drawable(v study.Interval, scale float64) plots.Value {
	v = v.Scale(scale)
	if !v.OK() {
		return plots.PlusMinus(float64(v.Mean), math.NaN())
	}
	return plots.Value{Mean: float64(v.Mean), Low: float64(v.Low), High: float64(v.High)}
}

// between is a value with given ends of its interval.
func between(mean, low, high traces.Real) plots.Value {
	if !low.OK() || !high.OK() {
		return plots.PlusMinus(float64(mean), math.NaN())
	}
	return plots.Value{Mean: float64(mean), Low: float64(low), High: float64(high)}
}

// upward is a value that cannot be below 0, in a figure of lines.
func upward(v plots.Value) plots.Value {
	v.Low = max(v.Low, 0) // NaN stays NaN
	return v
}

// upright is a vertical line of a plot of lines.
func upright(name string, x, from, to float64) plots.SweepSeries {
	nan := math.NaN()
	return plots.SweepSeries{Name: name, X: []float64{x, x}, Y: []plots.Value{plots.PlusMinus(from, nan), plots.PlusMinus(to, nan)}}
}
