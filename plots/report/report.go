package report

import (
	"bytes"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io"
	"regexp"
	"strings"

	"gonum.org/v1/plot"

	"spinesim/plots"
	"spinesim/traces"
)

//go:embed page.html
var page string

//go:embed style.css
var style string

//go:embed viewer.js
var viewer string

// Report is what a page shows.
type Report struct {
	Title string
	// Lead says in a sentence what the run is.
	Lead    string
	Meta    *traces.Meta
	Summary []Group
	Figures []Figure
	// Events are drawn as an event graph; nil leaves it out.
	Events *Events
}

// Group is a part of the summary table.
type Group struct {
	Name string
	Rows []Row
}

// Row is one figure of the summary.
type Row struct {
	Name  string
	Value string
	Note  string // smaller, beside it; may be empty
}

// Figure is a figure of the page. Its SVG comes from the plots.
type Figure struct {
	Title   string
	Caption string
	Plots   [][]*plot.Plot
	Size    plots.Size
}

// figure is a Figure made ready.
type figure struct {
	Title, Caption string
	SVG            template.HTML
}

// sized are the attributes that fix an SVG to its size on paper.
var sized = regexp.MustCompile(`<svg width="[^"]*" height="[^"]*"`)

// Write writes the page.
func (r *Report) Write(w io.Writer) error {
	t, err := template.New("page").Parse(page)
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	v := struct {
		*Report
		Style    template.CSS
		Viewer   template.JS
		Drawn    []figure
		Head     template.JS
		Packed   template.HTML
		Scenario string
	}{Report: r, Style: template.CSS(style), Viewer: template.JS(viewer)}
	for _, f := range r.Figures {
		svg, err := inline(&f)
		if err != nil {
			return fmt.Errorf("report: figure %q: %w", f.Title, err)
		}
		v.Drawn = append(v.Drawn, figure{f.Title, f.Caption, template.HTML(svg)})
	}
	if r.Meta != nil {
		v.Scenario = r.Meta.ScenarioYAML
	}
	if r.Events != nil && r.Events.Len() > 0 {
		head, packed, err := r.Events.pack(r.Meta)
		if err != nil {
			return fmt.Errorf("report: %w", err)
		}
		text, err := json.Marshal(head)
		if err != nil {
			return fmt.Errorf("report: %w", err)
		}
		v.Head = template.JS(text)                                          // json.Marshal writes < as \u003c
		v.Packed = template.HTML(base64.StdEncoding.EncodeToString(packed)) // escaping would break it
	}
	return t.Execute(w, v)
}

// inline is a figure's SVG to stand within a page.
func inline(f *Figure) (string, error) {
	if len(f.Plots) == 0 {
		return "", errors.New("nothing to draw")
	}
	var b bytes.Buffer
	if err := plots.WriteGrid(&b, ".svg", f.Size, f.Plots); err != nil {
		return "", err
	}
	s := b.String()
	i := strings.Index(s, "<svg")
	if i < 0 {
		return "", errors.New("no drawing came out")
	}
	return sized.ReplaceAllLiteralString(s[i:], `<svg role="img"`), nil
}
