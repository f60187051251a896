package cmd

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"gonum.org/v1/plot"

	"spinesim/lanai/ilp"
	"spinesim/plots"
	"spinesim/sim"
	"spinesim/sim/des"
	"spinesim/traces"
)

func newPlot() *cobra.Command {
	c := &cobra.Command{
		Use:   "plot",
		Short: "Draw figures of a recorded run or of a scenario",
		Long: `Draw figures as SVG, PNG or PDF, by the extension of --out, which may be repeated.
Each command takes a recorded file, or runs a scenario.`,
		Example: `  spinesim plot events run.parquet --window slow -o slow.svg
  spinesim plot timeline --scenario fig6.4 --span "40 ms" -o gaps.pdf
  spinesim plot compare --policy default --policy pci-first`,
		Args: wrapArgs(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(plotEvents(), plotTimeline(), plotLatency(), plotUtilisation(), plotPath(), plotCompare(), plotILP())
	return c
}

// figureFlags are what every command that draws has.
type figureFlags struct {
	out    []string
	title  string
	asJSON bool
}

func (f *figureFlags) add(c *cobra.Command, out string) {
	c.Flags().StringArrayVarP(&f.out, "out", "o", []string{out}, "file to write: .svg, .png or .pdf; may be repeated")
	c.Flags().StringVar(&f.title, "title", "", "title of the figure")
	c.Flags().BoolVar(&f.asJSON, "json", false, "print what is drawn as one JSON object")
}

// check looks at the files' names before any work is done.
func (f *figureFlags) check() error {
	for _, p := range f.out {
		if err := plots.CheckPath(p); err != nil {
			return usagef("%w", err)
		}
	}
	return nil
}

func (f *figureFlags) titled(title string) string {
	if f.title != "" {
		return f.title
	}
	return title
}

// save writes the figure to every file, and tells.
func (f *figureFlags) save(c *cobra.Command, size plots.Size, rows [][]*plot.Plot, drawn any) error {
	for _, p := range f.out {
		if err := plots.SaveGrid(p, size, rows); err != nil {
			return fileError(err)
		}
	}
	if f.asJSON {
		return writeJSON(c.OutOrStdout(), struct {
			Files []string `json:"files"`
			Drawn any      `json:"drawn"`
		}{f.out, drawn})
	}
	_, err := fmt.Fprintln(c.OutOrStdout(), "wrote", strings.Join(f.out, ", "))
	return err
}

func one(p *plot.Plot) [][]*plot.Plot { return [][]*plot.Plot{{p}} }

// windowFlags choose the part of a run that is drawn.
type windowFlags struct {
	filterFlags
	window string
	gap    int
	span   string
	card   int
}

func (f *windowFlags) add(c *cobra.Command, window string) {
	f.addSpan(c)
	c.Flags().StringVar(&f.window, "window", window, "part to draw unless --from is given: best (fastest one-for-one stretch), slow (longest receive run) or gap (see --gap)")
	c.Flags().IntVar(&f.gap, "gap", 0, "draw round the K-th longest gap between departures; 1 is the longest")
	c.Flags().StringVar(&f.span, "span", "", "length of the part, such as 130 µs or 13 ms")
	c.Flags().IntVar(&f.card, "card", -1, "card to draw; the first that receives unless given")
}

// drawn is the part of a run that is drawn.
type drawn struct {
	Card   uint8   `json:"card"`
	From   float64 `json:"from_us"`
	To     float64 `json:"to_us"`
	Packet uint64  `json:"packet,omitempty"` // whose path is followed
	Found  string  `json:"found"`

	from, to des.Time
	records  []traces.Record
}

// drawMargin is how much more of the run is kept on both sides, for steps that
// began or end beyond the part to be whole.
const drawMargin = des.Millisecond

// mostDrawn bounds the records of a part: 400 MB.
const mostDrawn = 5_000_000

// look finds the part and gathers its records. span is its usual length.
func (f *windowFlags) look(c *cobra.Command, src *records, span des.Time) (*drawn, error) {
	from, to, err := f.filterFlags.window()
	if err != nil {
		return nil, err
	}
	want, err := timeFlag("--span", f.span)
	if err != nil {
		return nil, err
	}
	if f.card >= traces.HostCard {
		return nil, usagef("--card %d, want a number below %d", f.card, traces.HostCard)
	}
	d := &drawn{}
	if f.card >= 0 {
		d.Card = uint8(f.card)
	} else if d.Card, err = firstCard(c, src); err != nil {
		return nil, err
	}
	switch {
	case f.from != "" || f.to != "":
		d.Found = "by time"
		d.from, d.to = from, to
		if f.to == "" {
			if want == 0 {
				want = span
			}
			d.to = from + want
		} else if f.from == "" && want > 0 {
			d.from = max(0, to-want)
		}
	default:
		if want == 0 {
			want = span
		}
		if err := f.find(c, src, d, want); err != nil {
			return nil, err
		}
	}
	keep := &keptRecords{most: mostDrawn}
	part := part{until: d.to + drawMargin, expand: []sim.Span{{From: d.from, To: d.to}}}
	filter := traces.Filter{From: max(0, d.from-drawMargin), To: d.to + drawMargin}
	if err := src.feed(c, part, traces.NewWindow(filter, keep)); err != nil {
		return nil, err
	}
	d.records = keep.records
	d.From, d.To = d.from.Microseconds(), d.to.Microseconds()
	return d, nil
}

// find looks for a part that shows something.
func (f *windowFlags) find(c *cobra.Command, src *records, d *drawn, span des.Time) error {
	if f.gap > 0 || f.window == "gap" {
		k := max(f.gap, 1)
		g, err := findGap(c, src, k)
		if err != nil {
			return err
		}
		d.Found, d.Packet = fmt.Sprintf("gap number %d by length, %.1f µs", k, g.Length().Microseconds()), g.After
		d.centre((g.From+g.To)/2, max(span, g.Length()*11/10))
		return nil
	}
	if f.window != "best" && f.window != "slow" {
		return usagef("--window %q, want best, slow or gap", f.window)
	}
	w := &sim.Windows{Card: d.Card}
	if src.path == "" {
		w.Skip, w.Limit = sim.WarmUpPackets, sim.WindowPackets
	}
	last := &lastTime{}
	if err := src.feed(c, part{}, w, last); err != nil {
		return err
	}
	win := w.Best()
	d.Found = fmt.Sprintf("best case, a packet every %.1f µs", win.Period.Microseconds())
	if f.window == "slow" || !win.Found {
		win = w.Slow()
		d.Found = fmt.Sprintf("slow state, %d packets received in a row", win.Run)
	}
	if !win.Found { // too short a record to show either
		d.Found, d.from, d.to = "all", last.first, last.end
		return nil
	}
	d.Packet = win.Packet
	if span == sim.GraphSpan {
		d.from, d.to = win.From, win.To
	} else {
		d.centre((win.From+win.To)/2, span)
	}
	return nil
}

func (d *drawn) centre(mid, span des.Time) {
	d.from = max(0, mid-span/2)
	d.to = d.from + span
}

// firstCard is the first card that receives.
func firstCard(c *cobra.Command, src *records) (uint8, error) {
	if src.sc != nil && len(src.sc.Traffic.Ingress) > 0 {
		return uint8(src.sc.Traffic.Ingress[0]), nil
	}
	card, found := uint8(0), false
	err := src.feed(c, part{}, sinkFunc(func(r *traces.Record) error {
		if r.Kind == traces.KindBox && r.Event == traces.RxCheckHeader {
			card, found = r.Card, true
			return errEnough
		}
		return nil
	}))
	if err == nil && !found {
		err = usagef("%s: no card receives a packet; give --card", src.name)
	}
	return card, err
}

// keptRecords keeps records, up to a bound.
type keptRecords struct {
	records []traces.Record
	most    int
}

// Record implements traces.Sink.
func (k *keptRecords) Record(r *traces.Record) error {
	if len(k.records) == k.most {
		return usagef("the part to draw holds more than %d records: choose a shorter one with --span, or --from and --to", k.most)
	}
	k.records = append(k.records, *r)
	return nil
}

// lastTime knows what time records span.
type lastTime struct {
	seen       bool
	first, end des.Time
}

// Record implements traces.Sink.
func (l *lastTime) Record(r *traces.Record) error {
	if !l.seen {
		l.seen, l.first = true, r.Start
	}
	l.end = r.End
	return nil
}

// noEvents tells that there is nothing to draw as a user's mistake.
func noEvents(name string, err error) error {
	if err == nil {
		return nil
	}
	return usagef("%s: %w", name, err)
}

func styleFlag(style string) (plots.Style, error) {
	switch style {
	case "thesis":
		return plots.Thesis, nil
	case "colour", "color":
		return plots.Coloured, nil
	}
	return 0, usagef("--style %q, want thesis or colour", style)
}

func plotEvents() *cobra.Command {
	var f recordFlags
	var fig figureFlags
	var win windowFlags
	var style string
	var packet int64
	c := &cobra.Command{
		Use:   "events [FILE]",
		Short: "Event graph: every event of a card, as Figure 6.4 has it",
		Long: `Draw the event graph: the 19 events of the thesis's Figure 6.4 as rows, a box at
each occurrence, a dashed rectangle round each packet's receive, route and DMA,
and arrows along the causal path of one packet. Of a scenario, polls are drawn
one by one; a recorded file shows them so where they were recorded so.`,
		Example: `  spinesim plot events --window best --style colour -o best.svg
  spinesim plot events run.parquet --from "12.3 ms" --span "400 µs" --packet 117`,
		Args: wrapArgs(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			st, err := styleFlag(style)
			if err != nil {
				return err
			}
			if err := fig.check(); err != nil {
				return err
			}
			src, err := f.get(args)
			if err != nil {
				return err
			}
			d, err := win.look(c, src, sim.GraphSpan)
			if err != nil {
				return err
			}
			if packet >= 0 {
				d.Packet = uint64(packet)
			}
			g := plots.EventGraph{Title: fig.titled("SPINE IP router event graph: " + d.Found), Card: d.Card, From: d.from, To: d.to, Style: st, Trace: d.Packet}
			if d.Found == "by time" {
				g.Title = fig.titled("SPINE IP router event graph")
			}
			p, err := g.Plot(d.records)
			if err != nil {
				return noEvents(src.name, err)
			}
			src.warn(c)
			return fig.save(c, plots.Wide, one(p), d)
		},
	}
	f.add(c)
	win.add(c, "best")
	fig.add(c, "event-graph.svg")
	c.Flags().StringVar(&style, "style", "thesis", "thesis (black and white) or colour")
	c.Flags().Int64Var(&packet, "packet", -1, "packet whose path the arrows follow; 0 is none")
	return c
}

func plotTimeline() *cobra.Command {
	var f recordFlags
	var fig figureFlags
	var win windowFlags
	c := &cobra.Command{
		Use:   "timeline [FILE]",
		Short: "Gap, receive runs and DMA backlog over time",
		Long: `Draw the gap before each departure, the packets received between two DMA starts,
and the packets waiting for their DMA, over time, with the fast and the slow
state shaded.`,
		Example: `  spinesim plot timeline -o oscillation.svg
  spinesim plot timeline run.parquet --from "0 s" --to "100 ms"`,
		Args: wrapArgs(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			if err := fig.check(); err != nil {
				return err
			}
			src, err := f.get(args)
			if err != nil {
				return err
			}
			spec, _, err := src.spec()
			if err != nil {
				return err
			}
			d, err := win.look(c, src, sim.TimelineSpan)
			if err != nil {
				return err
			}
			t := plots.Timeline{Title: fig.title, Card: d.Card, From: d.from, To: d.to, ChainHandlers: spec.ChainHandlers}
			ps, err := t.Plots(d.records)
			if err != nil {
				return noEvents(src.name, err)
			}
			var rows [][]*plot.Plot
			for _, p := range ps {
				rows = append(rows, []*plot.Plot{p})
			}
			src.warn(c)
			return fig.save(c, plots.Tall, rows, d)
		},
	}
	f.add(c)
	win.add(c, "slow")
	fig.add(c, "timeline.svg")
	return c
}

// runSet is several runs to lay over each other: recorded files, or a scenario
// under several policies.
type runSet struct {
	recordFlags
	policies []string
}

func (r *runSet) add(c *cobra.Command) {
	r.recordFlags.add(c)
	c.Flags().StringArrayVar(&r.policies, "policy", nil, "run the scenario under this policy; may be repeated")
}

// measuredRun is one of them.
type measuredRun struct {
	Name     string         `json:"name"`
	Measures *traces.Result `json:"measures"`
	dist     *plots.Distributions
	src      *records
}

// get measures all runs.
func (r *runSet) get(c *cobra.Command, args []string) ([]measuredRun, error) {
	var srcs []*records
	switch {
	case len(args) > 0 && len(r.policies) > 0:
		return nil, usagef("--policy runs a scenario, and does not go with recorded files")
	case len(args) > 0:
		for _, path := range args {
			s, err := r.recordFlags.get([]string{path})
			if err != nil {
				return nil, err
			}
			srcs = append(srcs, s)
		}
		nameFiles(srcs)
	case len(r.policies) > 0:
		for _, p := range r.policies {
			sc, err := sim.Load(r.name, append(append([]string(nil), r.settings...), "policy="+quoted(p))...)
			if err != nil {
				return nil, err
			}
			s, err := scenarioRecords(sc)
			if err != nil {
				return nil, err
			}
			s.name = p
			srcs = append(srcs, s)
		}
	default:
		s, err := r.recordFlags.get(nil)
		if err != nil {
			return nil, err
		}
		srcs = append(srcs, s)
	}
	var out []measuredRun
	for _, s := range srcs {
		x, err := newMeasurer(s, 0, 0)
		if err != nil {
			return nil, err
		}
		d := plots.NewDistributions()
		if err := s.feed(c, part{}, x, d); err != nil {
			return nil, err
		}
		res, _, err := x.result(s.name)
		if err != nil {
			return nil, err
		}
		s.warn(c)
		out = append(out, measuredRun{s.name, res, d, s})
	}
	return out, nil
}

// nameFiles gives files short names that tell them apart.
func nameFiles(srcs []*records) {
	count := map[string]int{}
	short := func(s *records) string {
		base := filepath.Base(s.path)
		name, _, _ := strings.Cut(base, ".")
		return name
	}
	for _, s := range srcs {
		count[short(s)]++
	}
	for _, s := range srcs {
		if n := short(s); count[n] == 1 && n != "" {
			s.name = n
		}
	}
}

func plotLatency() *cobra.Command {
	var set runSet
	var fig figureFlags
	var of string
	var log bool
	c := &cobra.Command{
		Use:   "latency [FILE...]",
		Short: "Distribution of latencies or gaps, of several runs over each other",
		Long: `Draw the distribution function of a latency or of the gap between departures:
ingress is from Rx check header to the departure, upstream from the arrival to
Rx check header, total from the arrival to the end of the send.`,
		Example: `  spinesim plot latency run.parquet -o latency.svg
  spinesim plot latency --policy default --policy pci-first --of gap`,
		RunE: func(c *cobra.Command, args []string) error {
			if err := fig.check(); err != nil {
				return err
			}
			if _, ok := distributionNames[of]; !ok {
				return usagef("--of %q, want ingress, upstream, total or gap", of)
			}
			runs, err := set.get(c, args)
			if err != nil {
				return err
			}
			p := cdfOf(of, runs)
			p.Title, p.Log = fig.titled(p.Title), log
			pl, err := p.Plot()
			if err != nil {
				return noEvents(runs[0].Name, err)
			}
			return fig.save(c, plots.Wide, one(pl), p.Series)
		},
	}
	set.add(c)
	fig.add(c, "latency.svg")
	c.Flags().StringVar(&of, "of", "ingress", "ingress, upstream, total or gap")
	c.Flags().BoolVar(&log, "log", false, "logarithmic axis")
	return c
}

var distributionNames = map[string]string{
	"ingress": "Latency through the ingress card", "upstream": "Wait upstream of the card",
	"total": "Latency from arrival to the end of the send", "gap": "Gap between departures",
}

// cdfOf lays the distributions of the runs over each other.
func cdfOf(of string, runs []measuredRun) *plots.CDFPlot {
	p := &plots.CDFPlot{Title: distributionNames[of], XLabel: strings.ToLower(of[:1]) + of[1:] + " latency (µs)"}
	switch of {
	case "gap":
		p.XLabel = "gap (µs)"
	case "upstream":
		p.XLabel = "wait (µs)"
	}
	for _, r := range runs {
		h := r.dist.Ingress
		switch of {
		case "upstream":
			h = r.dist.Upstream
		case "total":
			h = r.dist.Total
		case "gap":
			h = r.dist.Gap
		}
		p.Series = append(p.Series, plots.TimeCDF(r.Name, h))
	}
	return p
}

func plotUtilisation() *cobra.Command {
	var f recordFlags
	var fig figureFlags
	var span filterFlags
	c := &cobra.Command{
		Use:   "utilisation [FILE]",
		Short: "What processors, engines and the bus spend their time on",
		Long: `Draw for each card how its processor, DMA engine and wire engines spend the time,
by what for, and for the bus who holds it.`,
		Example: "  spinesim plot utilisation run.parquet -o use.svg",
		Args:    wrapArgs(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			res, _, err := measuredPart(c, &f, &fig, &span, args)
			if err != nil {
				return err
			}
			b := plots.UtilisationBars(fig.titled("Use of processors, engines and bus"), &res.Utilisation)
			p, err := b.Plot()
			if err != nil {
				return err
			}
			return fig.save(c, b.Size(), one(p), res.Utilisation)
		},
	}
	f.add(c)
	span.addSpan(c)
	fig.add(c, "utilisation.svg")
	return c
}

// measuredPart measures a source between two times.
func measuredPart(c *cobra.Command, f *recordFlags, fig *figureFlags, span *filterFlags, args []string) (*traces.Result, *traces.PathResult, error) {
	if err := fig.check(); err != nil {
		return nil, nil, err
	}
	from, to, err := span.window()
	if err != nil {
		return nil, nil, err
	}
	src, err := f.get(args)
	if err != nil {
		return nil, nil, err
	}
	res, path, err := measure(c, src, from, to)
	if err != nil {
		return nil, nil, err
	}
	src.warn(c)
	return res, path, nil
}

func plotPath() *cobra.Command {
	var f recordFlags
	var fig figureFlags
	var span filterFlags
	var worst bool
	c := &cobra.Command{
		Use:   "path [FILE]",
		Short: "Where the time between departures goes",
		Long: `Draw what the mean gap between departures is made of, kind by kind along its
critical path: of all gaps, of the fast and of the slow ones; with --worst, of
each of the longest.`,
		Example: "  spinesim plot path run.parquet -o path.svg\n  spinesim plot path --worst",
		Args:    wrapArgs(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			_, path, err := measuredPart(c, &f, &fig, &span, args)
			if err != nil {
				return err
			}
			b := plots.WhereTimeGoesBars(fig.titled("Where the time between departures goes"), path)
			if worst {
				b = plots.WorstGapsBars(fig.titled("What the longest gaps are made of"), path)
			}
			p, err := b.Plot()
			if err != nil {
				return usagef("fewer than two packets departed: %w", err)
			}
			return fig.save(c, b.Size(), one(p), path)
		},
	}
	f.add(c)
	span.addSpan(c)
	fig.add(c, "path.svg")
	c.Flags().BoolVar(&worst, "worst", false, "the longest gaps, one by one")
	return c
}

func plotCompare() *cobra.Command {
	var set runSet
	var fig figureFlags
	c := &cobra.Command{
		Use:   "compare [FILE...]",
		Short: "Several runs: gap and latency with intervals, and their distributions",
		Long: `Draw mean gap and mean latency of several runs with their 95 % intervals, and
below them the distributions over each other. The runs are recorded files, or a
scenario under each --policy.`,
		Example: `  spinesim plot compare default.parquet pci-first.parquet -o compare.svg
  spinesim plot compare --policy default --policy pci-first --policy round-robin`,
		RunE: func(c *cobra.Command, args []string) error {
			if err := fig.check(); err != nil {
				return err
			}
			runs, err := set.get(c, args)
			if err != nil {
				return err
			}
			bars := func(title, x string, of func(*traces.Result) *traces.Distribution) (*plot.Plot, error) {
				d := plots.Comparison{Title: title, XLabel: x, Series: []string{""}, FromZero: true}
				for _, r := range runs {
					v := of(r.Measures)
					d.Groups = append(d.Groups, plots.BarGroup{Name: r.Name, Values: []plots.Value{plots.PlusMinus(float64(v.Mean), float64(v.CI95))}})
				}
				return d.Plot()
			}
			gap, err := bars(fig.titled("Mean gap between departures"), "gap (µs)", func(r *traces.Result) *traces.Distribution { return &r.Gap.Distribution })
			if err != nil {
				return noEvents(runs[0].Name, err)
			}
			lat, err := bars("Mean latency through the ingress card", "ingress latency (µs)", func(r *traces.Result) *traces.Distribution { return &r.Latency.Ingress.Distribution })
			if err != nil {
				return noEvents(runs[0].Name, err)
			}
			rows := [][]*plot.Plot{{gap, lat}}
			var below []*plot.Plot
			for _, of := range []string{"gap", "ingress"} {
				d := cdfOf(of, runs)
				d.Until, d.Narrow = 0.995, true
				p, err := d.Plot()
				if err != nil {
					return noEvents(runs[0].Name, err)
				}
				below = append(below, p)
			}
			return fig.save(c, plots.Tall, append(rows, below), runs)
		},
	}
	set.add(c)
	fig.add(c, "compare.svg")
	return c
}

func plotILP() *cobra.Command {
	var fig figureFlags
	var number int
	var numbers []string
	for _, n := range plots.ILPFigures {
		numbers = append(numbers, strconv.Itoa(n))
	}
	c := &cobra.Command{
		Use:   "ilp",
		Short: "Figures of integrated layer processing: 3, 5, 6 and 7 of Ahlgren's paper",
		Long: `Draw a figure of the model of integrated layer processing: 3 (time against state),
5 (against state and functions), 6 (against state and block size) or 7 (against
hit rate and memory time). Beside the surfaces stands what integration gains or
loses.`,
		Example: "  spinesim plot ilp --figure 6 -o blocks.svg",
		Args:    wrapArgs(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := fig.check(); err != nil {
				return err
			}
			r := ilp.Figures()
			rows, size, err := plots.ILPFigure(&r, number)
			if err != nil {
				return usagef("--figure %d, want %s", number, strings.Join(numbers, ", "))
			}
			if fig.title != "" {
				rows[0][0].Title.Text = fig.title
			}
			return fig.save(c, size, rows, figuresOf(&r, number))
		},
	}
	fig.add(c, "ilp.svg")
	c.Flags().IntVar(&number, "figure", 3, "number in the paper: "+strings.Join(numbers, ", "))
	return c
}

// figuresOf are the values of one figure.
func figuresOf(r *ilp.FiguresReport, number int) *ilp.FiguresReport {
	out := &ilp.FiguresReport{}
	for _, f := range r.Lines {
		if strings.TrimRight(f.ID, "ab") == strconv.Itoa(number) {
			out.Lines = append(out.Lines, f)
		}
	}
	for _, f := range r.Surfaces {
		if strings.TrimRight(f.ID, "ab") == strconv.Itoa(number) {
			out.Surfaces = append(out.Surfaces, f)
		}
	}
	return out
}
