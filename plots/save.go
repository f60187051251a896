package plots

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	stdfont "golang.org/x/image/font"
	"golang.org/x/text/encoding/charmap"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
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

// ErrExtension says that a figure's file has an extension of no known format.
var ErrExtension = errors.New("want .svg, .png or .pdf")

// CheckPath tells, before any work is done, whether Save can write such a file.
func CheckPath(path string) error {
	ext := strings.ToLower(filepath.Ext(path))
	for _, e := range Extensions {
		if e == ext {
			return nil
		}
	}
	return fmt.Errorf("figure %s: extension %q: %w", path, filepath.Ext(path), ErrExtension)
}

// Save writes plots, one below the other, to a file whose extension says the
// format: .svg, .png or .pdf. The file appears whole or not at all.
func Save(path string, size Size, ps ...*plot.Plot) error {
	return SaveGrid(path, size, column(ps))
}

// SaveGrid writes rows of plots as Save does. Rows have equally many plots.
func SaveGrid(path string, size Size, rows [][]*plot.Plot) error {
	if err := CheckPath(path); err != nil {
		return err
	}
	dir, base := filepath.Split(path)
	f, err := os.CreateTemp(filepath.Clean(dir+"."), "."+base+"-*")
	if err != nil {
		return fmt.Errorf("figure: %w", err)
	}
	defer os.Remove(f.Name())
	if err := WriteGrid(f, filepath.Ext(path), size, rows); err != nil {
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

// Write writes plots, one below the other, in the format of the extension. The
// same plots give the same bytes.
func Write(w io.Writer, ext string, size Size, ps ...*plot.Plot) error {
	return WriteGrid(w, ext, size, column(ps))
}

func column(ps []*plot.Plot) [][]*plot.Plot {
	rows := make([][]*plot.Plot, len(ps))
	for i, p := range ps {
		rows[i] = []*plot.Plot{p}
	}
	return rows
}

// WriteGrid writes rows of plots as Write does.
func WriteGrid(w io.Writer, ext string, size Size, rows [][]*plot.Plot) error {
	if len(rows) == 0 || len(rows[0]) == 0 {
		return errors.New("nothing to draw")
	}
	for _, r := range rows {
		if len(r) != len(rows[0]) {
			return fmt.Errorf("rows of %d and of %d plots", len(rows[0]), len(r))
		}
	}
	if !(size.Width > 0 && size.Height > 0) || size.Width > maxSide || size.Height > maxSide {
		return fmt.Errorf("size of %g by %g inch, want more than 0 and at most %g", size.Width/vg.Inch, size.Height/vg.Inch, maxSide/vg.Inch)
	}
	var c interface {
		vg.CanvasSizer
		io.WriterTo
	}
	polish := func(b []byte) []byte { return b }
	switch strings.ToLower(ext) {
	case ".svg":
		c, polish = vgsvg.New(size.Width, size.Height), fontFallback
	case ".png":
		c = pngCanvas{vgimg.PngCanvas{Canvas: vgimg.NewWith(vgimg.UseWH(size.Width, size.Height), vgimg.UseDPI(dpi))}}
	case ".pdf":
		c, polish = pdfCanvas{vgpdf.New(size.Width, size.Height)}, undated
	default:
		return fmt.Errorf("extension %q: %w", ext, ErrExtension)
	}
	lay(draw.New(c), rows)
	var b bytes.Buffer
	if _, err := c.WriteTo(&b); err != nil {
		return err
	}
	_, err := w.Write(polish(b.Bytes()))
	return err
}

// lay draws rows of plots on a sheet.
func lay(dc draw.Canvas, rows [][]*plot.Plot) {
	tiles := draw.Tiles{
		Rows: len(rows), Cols: len(rows[0]), PadX: vg.Points(16), PadY: vg.Points(8),
		PadTop: vg.Points(6), PadBottom: vg.Points(6), PadLeft: vg.Points(6), PadRight: vg.Points(14),
	}
	dc.SetColor(white)
	dc.Fill(dc.Rectangle.Path())
	canvases := plot.Align(rows, tiles, dc)
	for i, r := range rows {
		for j, p := range r {
			if p != nil {
				p.Draw(canvases[i][j])
			}
		}
	}
}

// maxSide bounds a figure, and with it the memory of a PNG: 100 inches are 13,000
// dots.
const maxSide = 100 * vg.Inch

// fontFallback names fonts of the same widths for viewers without Liberation.
func fontFallback(b []byte) []byte {
	return bytes.ReplaceAll(b, []byte("font-family:Liberation Sans;"), []byte("font-family:'Liberation Sans',Arimo,Arial,Helvetica,sans-serif;"))
}

// dated are the times that a PDF file carries.
var dated = regexp.MustCompile(`/(CreationDate|ModDate) \(D:[0-9]{14}\)`)

// undated sets them all to one time, for the same figure to be the same bytes.
func undated(b []byte) []byte { return dated.ReplaceAll(b, []byte("/$1 (D:19700101000000)")) }

// pdfCanvas writes text in the encoding of the fonts that a PDF holds.
type pdfCanvas struct{ *vgpdf.Canvas }

// FillString implements vg.Canvas.
func (c pdfCanvas) FillString(f font.Face, at vg.Point, s string) {
	var b strings.Builder
	for _, r := range s {
		code, ok := charmap.Windows1252.EncodeRune(r)
		if !ok {
			code = '?'
			if plain, found := asASCII[r]; found {
				code = plain
			}
		}
		b.WriteByte(code)
	}
	if f.Font.Weight != stdfont.WeightNormal { // that canvas holds one font file only
		f = font.DefaultCache.Lookup(sans(f.Font.Size.Points()), f.Font.Size)
	}
	c.Canvas.FillString(f, at, b.String())
}

// pngCanvas keeps the space between words that begin or end with an A, which
// the font's kerning takes away at small sizes.
type pngCanvas struct{ vgimg.PngCanvas }

// FillString implements vg.Canvas.
func (c pngCanvas) FillString(f font.Face, at vg.Point, s string) {
	c.PngCanvas.FillString(f, at, strings.ReplaceAll(s, " ", "\u00a0"))
}

// asASCII stands in for what the encoding lacks.
var asASCII = map[rune]byte{'−': '-', '→': '>', '≤': '<', '≥': '>', '\u2009': ' ', '\u202f': ' '}

// finite tells that all values can be drawn.
func finite(vs ...float64) bool {
	for _, v := range vs {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return false
		}
	}
	return true
}
