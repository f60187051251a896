package plots

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgpdf"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Size of a figure on paper.
type Size struct{ Width, Height vg.Length }

// Sizes that fit a page.
var (
	Wide = Size{11 * vg.Inch, 5.5 * vg.Inch}
	Tall = Size{11 * vg.Inch, 8 * vg.Inch}
)

// dpi of PNG files.
const dpi = 130

// Extensions are the file types that Save writes.
var Extensions = []string{".svg", ".png", ".pdf"}

// Save writes plots, one below the other, to a file whose extension says the
// format: .svg, .png or .pdf. The file appears whole or not at all.
func Save(path string, size Size, ps ...*plot.Plot) error {
	if len(ps) == 0 {
		return fmt.Errorf("%s: nothing to draw", path)
	}
	dir, base := filepath.Split(path)
	f, err := os.CreateTemp(filepath.Clean(dir+"."), "."+base+"-*")
	if err != nil {
		return fmt.Errorf("figure: %w", err)
	}
	defer os.Remove(f.Name())
	if err := Write(f, filepath.Ext(path), size, ps...); err != nil {
		f.Close()
		return fmt.Errorf("figure %s: %w", path, err)
	}
	if err := f.Chmod(0o644); err != nil {
		f.Close()
		return fmt.Errorf("figure: %w", err)
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("figure: %w", err)
	}
	return os.Rename(f.Name(), path)
}

// Write writes plots, one below the other, in the format of the extension.
func Write(w io.Writer, ext string, size Size, ps ...*plot.Plot) error {
	var c interface {
		vg.CanvasSizer
		io.WriterTo
	}
	switch strings.ToLower(ext) {
	case ".svg":
		c = vgsvg.New(size.Width, size.Height)
	case ".png":
		c = vgimg.PngCanvas{Canvas: vgimg.NewWith(vgimg.UseWH(size.Width, size.Height), vgimg.UseDPI(dpi))}
	case ".pdf":
		c = vgpdf.New(size.Width, size.Height)
	default:
		return fmt.Errorf("extension %q, want .svg, .png or .pdf", ext)
	}
	tiles := draw.Tiles{Rows: len(ps), Cols: 1, PadY: vg.Points(10), PadTop: vg.Points(6), PadBottom: vg.Points(6), PadLeft: vg.Points(6), PadRight: vg.Points(14)}
	rows := make([][]*plot.Plot, len(ps))
	for i := range ps {
		rows[i] = []*plot.Plot{ps[i]}
	}
	canvases := plot.Align(rows, tiles, draw.New(c))
	for i := range ps {
		ps[i].Draw(canvases[i][0])
	}
	_, err := c.WriteTo(w)
	return err
}
