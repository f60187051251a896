package cmd

import (
	"fmt"
	"io"
	"os"
	"slices"
	"sort"
	"strings"

	"github.com/spf13/cobra"
	"gonum.org/v1/plot"

	"spinesim/plots"
	"spinesim/plots/report"
	"spinesim/sim"
	"spinesim/sim/des"
	"spinesim/traces"
)

func newReport() *cobra.Command {
	var f recordFlags
	var span filterFlags
	var out, title string
	var events int
	var asJSON bool
	c := &cobra.Command{
		Use:   "report [FILE]",
		Short: "One HTML page of a run: summary, figures, and an event graph to move about in",
		Long: `Write one HTML page of a recorded run, or of a scenario, that needs nothing else
and opens no connection: a summary, the figures, and an event graph of every
record to zoom, to search, and to follow packets in over all cards.

Measures and figures are of the whole run. The event graph holds at most --events
records: of a longer run, those round the longest receive run, or those between
--from and --to.`,
		Example: `  spinesim report run.parquet -o run.html
  spinesim report --scenario four-way --set traffic.packets=20000
  spinesim report run.parquet --from "1 s" --to "1.2 s" --events 2000000`,
		Args: wrapArgs(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			if events < 1 || events > report.MostEvents {
				return usagef("--events %d, want 1 to %d", events, report.MostEvents)
			}
			if err := checkOutput("--out", out); err != nil {
				return err
			}
			from, to, err := span.window()
			if err != nil {
				return err
			}
			src, err := f.get(args)
			if err != nil {
				return err
			}
			if len(args) > 0 {
				if err := outPath(args[0], out); err != nil {
					return err
				}
			}
			b := &reportBuilder{c: c, src: src, title: title, events: events, from: from, to: to}
			r, err := b.build()
			if err != nil {
				return err
			}
			if err := writeFile(out, func(w io.Writer) error { return r.Write(w) }); err != nil {
				return fileError(err)
			}
			src.warn(c)
			return b.tell(out, r, asJSON)
		},
	}
	f.add(c)
	span.addSpan(c)
	c.Flags().StringVarP(&out, "out", "o", "report.html", "file to write")
	c.Flags().StringVar(&title, "title", "", "title of the page")
	c.Flags().IntVar(&events, "events", 1_000_000, "most records in the event graph")
	c.Flags().BoolVar(&asJSON, "json", false, "print what was written as one JSON object")
	return c
}

// reportBuilder makes the page in two passes over the records.
type reportBuilder struct {
	c        *cobra.Command
	src      *records
	title    string
	events   int
	from, to des.Time

	card       uint8
	print      traces.Fingerprint
	res        *traces.Result
	path       *traces.PathResult
	dist       *plots.Distributions
	n          tallied
	best, slow sim.Window
	timeline   sim.Span
	shown      sim.Span // of the event graph
}

// tallied knows how many records there are, and over what time.
type tallied struct {
	lastTime
	n uint64
}

// Record implements traces.Sink.
func (t *tallied) Record(r *traces.Record) error {
	t.n++
	return t.lastTime.Record(r)
}

func (b *reportBuilder) build() (*report.Report, error) {
	if err := b.measure(); err != nil {
		return nil, err
	}
	b.choose()
	events, kept, err := b.gather()
	if err != nil {
		return nil, err
	}
	r := &report.Report{Title: b.title, Lead: b.lead(events), Meta: b.src.meta, Summary: b.summary(), Events: events}
	if r.Title == "" {
		r.Title = "spinesim: " + b.src.meta.Scenario
		if b.src.meta.Scenario == "" {
			r.Title = "spinesim: " + b.src.name
		}
	}
	r.Figures, err = b.figures(kept)
	return r, err
}

// measure is the first pass.
func (b *reportBuilder) measure() error {
	var err error
	if b.card, err = firstCard(b.c, b.src); err != nil {
		return err
	}
	x, err := newMeasurer(b.src, 0, 0)
	if err != nil {
		return err
	}
	b.dist = plots.NewDistributions()
	w := &sim.Windows{Card: b.card}
	if b.src.path == "" {
		w.Skip, w.Limit = sim.WarmUpPackets, sim.WindowPackets
	}
	if err := b.src.feed(b.c, part{}, x, b.dist, w, &b.n, &b.print); err != nil {
		return err
	}
	if b.res, b.path, err = x.result(b.src.name); err != nil {
		return err
	}
	b.best, b.slow = w.Best(), w.Slow()
	return nil
}

// choose decides which parts are shown.
func (b *reportBuilder) choose() {
	mid := (b.n.first + b.n.end) / 2
	if b.slow.Found {
		mid = (b.slow.From + b.slow.To) / 2
	} else if b.best.Found {
		mid = (b.best.From + b.best.To) / 2
	}
	round := func(length des.Time) sim.Span {
		from := max(b.n.first, mid-length/2)
		to := min(b.n.end, from+length)
		return sim.Span{From: max(b.n.first, to-length), To: to}
	}
	b.timeline = round(min(sim.TimelineSpan, b.n.end-b.n.first))
	b.shown = sim.Span{From: b.n.first, To: b.n.end}
	if b.n.n > uint64(b.events) {
		// Records lie about evenly in time; a tenth is left for polls that
		// are recorded one by one.
		b.shown = round(des.Time(float64(b.n.end-b.n.first) * 0.9 * float64(b.events) / float64(b.n.n)))
	}
	if b.from > 0 || b.to > 0 {
		b.shown.From = b.from
		b.shown.To = b.n.end
		if b.to > 0 {
			b.shown.To = b.to
		}
	}
}

// gather is the second pass.
func (b *reportBuilder) gather() (*report.Events, []traces.Record, error) {
	events := report.NewEvents(b.events)
	kept := &keptRecords{most: mostDrawn}
	need := b.timeline
	var expand []sim.Span
	for _, w := range []sim.Window{b.best, b.slow} {
		if w.Found {
			expand = append(expand, w.Span)
		}
	}
	sort.Slice(expand, func(i, j int) bool { return expand[i].From < expand[j].From })
	if len(expand) == 2 && expand[1].From <= expand[0].To {
		expand = []sim.Span{{From: expand[0].From, To: max(expand[0].To, expand[1].To)}}
	}
	parts := append(slices.Clone(expand), need)
	until := b.shown.To
	var filters []traces.Filter
	for _, s := range parts {
		filters = append(filters, traces.Filter{From: max(0, s.From-drawMargin), To: s.To + drawMargin})
		until = max(until, s.To)
	}
	draw := sinkFunc(func(r *traces.Record) error {
		for i := range filters {
			if r.End >= filters[i].From && r.Start <= filters[i].To {
				return kept.Record(r)
			}
		}
		return nil
	})
	err := b.src.feed(b.c, part{until: until + drawMargin, expand: expand},
		traces.NewWindow(traces.Filter{From: b.shown.From, To: b.shown.To}, events), draw)
	return events, kept.records, err
}

func (b *reportBuilder) lead(events *report.Events) string {
	m := b.src.meta
	s := fmt.Sprintf("Scenario %s, seed %d", m.Scenario, m.Seed)
	if p, ok := m.Label("policy"); ok {
		s += ", policy " + p
	}
	s += fmt.Sprintf(": %d packets in %.3f s of simulated time.", b.res.Received, float64(b.res.Observed))
	if n := uint64(events.Len()); b.shown.From > b.n.first || b.shown.To < b.n.end || events.Lost() > 0 {
		s += fmt.Sprintf(" The event graph shows %d records from %s to %s of the run's %d.", n, milli(b.shown.From), milli(b.shown.To), b.n.n)
		if events.Lost() > 0 {
			s += fmt.Sprintf(" %d records at its end found no room.", events.Lost())
		}
	}
	return s
}

func milli(t des.Time) string { return fmt.Sprintf("%.3f ms", t.Microseconds()/1000) }

// summary are the tables of figures.
func (b *reportBuilder) summary() []report.Group {
	m, r := b.src.meta, b.res
	var groups []report.Group
	add := func(name string, rows ...report.Row) {
		rows = slices.DeleteFunc(rows, func(x report.Row) bool { return x.Value == "" })
		if len(rows) > 0 {
			groups = append(groups, report.Group{Name: name, Rows: rows})
		}
	}
	row := func(name, value string, note ...string) report.Row {
		return report.Row{Name: name, Value: value, Note: strings.Join(note, "")}
	}
	micros := func(v traces.Real) string {
		if !v.OK() {
			return "–"
		}
		return fmt.Sprintf("%.2f µs", float64(v))
	}
	mean := func(d *traces.Distribution) (string, string) {
		note := fmt.Sprintf("median %s, p99 %s, max %s", num(d.P50, "%.1f"), num(d.P99, "%.1f"), num(d.Max, "%.1f"))
		if d.Short != "" {
			return micros(d.Mean), "no interval: " + d.Short + "; " + note
		}
		return fmt.Sprintf("%s ± %s µs", num(d.Mean, "%.2f"), num(d.CI95, "%.2f")), note
	}
	dist := func(name string, d *traces.Distribution) report.Row {
		v, n := mean(d)
		return row(name, v, n)
	}
	policy, _ := m.Label("policy")
	cutBy, _ := m.Label(partLabel)
	table := ""
	if m.RouteTableBytes > 0 {
		table = fmt.Sprintf("%d bytes", m.RouteTableBytes)
	}
	add("Run",
		row("scenario", m.Scenario, m.ScenarioHash), row("policy", policy), row("seed", fmt.Sprint(m.Seed)), row("program", m.Program),
		row("cut", cutBy), row("simulated time", fmt.Sprintf("%.6f s", float64(r.Observed))), row("route table", table),
		row("records", fmt.Sprint(b.n.n)), row("fingerprint", b.print.String()))
	var drops []report.Row
	for _, reason := range sortedKeys(r.ViaHostBy) {
		drops = append(drops, row("by way of the host, "+reason, fmt.Sprint(r.ViaHostBy[reason])))
	}
	for _, reason := range sortedKeys(r.ToHostBy) {
		drops = append(drops, row("to the host, "+reason, fmt.Sprint(r.ToHostBy[reason])))
	}
	for _, reason := range sortedKeys(r.Dropped) {
		drops = append(drops, row("dropped, "+reason, fmt.Sprint(r.Dropped[reason])))
	}
	for _, reason := range sortedKeys(r.Stranded) {
		drops = append(drops, row("stranded, "+reason, fmt.Sprint(r.Stranded[reason])))
	}
	add("Packets", append([]report.Row{
		row("arrived", fmt.Sprint(r.Received)), row("forwarded", fmt.Sprint(r.Forwarded)), row("handed to the host", fmt.Sprint(r.ToHost)),
		row("loss", percent(r.Loss)),
	}, drops...)...)
	add("Departure gap",
		dist("mean", &r.Gap.Distribution),
		row("best case", micros(r.Gap.BestCase), fmt.Sprintf("median of %d periods in fast windows", r.Gap.BestCaseN)))
	add("Latency",
		dist("ingress card", &r.Latency.Ingress.Distribution),
		row("in fast windows", micros(r.Latency.Ingress.Fast), fmt.Sprintf("%d packets", r.Latency.Ingress.FastN)),
		dist("total", &r.Latency.Total), dist("wait upstream", &r.Latency.Upstream))
	add("State of the pipeline",
		row("fast windows", percent(r.FastShare), "of the time"),
		row("slow state", percent(r.SlowShare), fmt.Sprintf("in %d spells of %s µs", r.Slow.N, num(r.Slow.Mean, "%.0f"))),
		row("DMA backlog", num(r.Backlog.Mean, "%.2f")+" packets", fmt.Sprintf("most %d", r.Backlog.Max)),
		row("dominant period", micros(r.Backlog.Period), percent(r.Backlog.PeriodShare)+" of the variance"),
		row("receive runs", num(r.ReceiveRun.MeanNonEmpty, "%.2f"), fmt.Sprintf("longest %d, %s above one", r.ReceiveRun.Max, percent(r.ReceiveRun.ShareOver1))),
		row("bubbles", percent(r.BubbleShare), "engine idle with a packet waiting"))
	add("A packet's cost",
		dist("DMA step", &r.DMAStep.Distribution), dist("occupancy", &r.Occupancy.Distribution), dist("transfer", &r.Transfer.Distribution))
	var units []report.Row
	for _, u := range r.Utilisation.Cards {
		units = append(units, row(m.CardName(u.Card), percent(u.Handlers)+" handlers", fmt.Sprintf("polls %s, DMA %s, receive %s, send %s", percent(u.Polls), percent(u.DMA), percent(u.Receive), percent(u.Send))))
	}
	units = append(units, row("bus", percent(r.Utilisation.Bus.Busy)+" busy"))
	add("Use of units", units...)
	return groups
}

func sortedKeys(m map[string]uint64) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}

// figures draws what there is to draw; a run too short for a figure has none.
func (b *reportBuilder) figures(kept []traces.Record) ([]report.Figure, error) {
	spec, _, err := b.src.spec()
	if err != nil {
		return nil, err
	}
	var figs []report.Figure
	add := func(title, caption string, size plots.Size, p *plot.Plot, err error) error {
		if err != nil {
			return fmt.Errorf("figure %q: %w", title, err)
		}
		figs = append(figs, report.Figure{Title: title, Caption: caption, Size: size, Plots: one(p)})
		return nil
	}
	for _, g := range []struct {
		title string
		win   sim.Window
	}{
		{fmt.Sprintf("Best case: a packet every %.1f µs", b.best.Period.Microseconds()), b.best},
		{fmt.Sprintf("Slow state: %d packets received in a row", b.slow.Run), b.slow},
	} {
		if !g.win.Found {
			continue
		}
		graph := plots.EventGraph{Title: "SPINE IP router event graph", Card: b.card, From: g.win.From, To: g.win.To, Style: plots.Coloured, Trace: g.win.Packet}
		p, err := graph.Plot(kept)
		if err := add(g.title, "The rows are the events of the thesis's Figure 6.4 (p.107); arrows follow one packet.", plots.Wide, p, err); err != nil {
			return nil, err
		}
	}
	if b.timeline.To > b.timeline.From {
		t := plots.Timeline{Card: b.card, From: b.timeline.From, To: b.timeline.To, ChainHandlers: spec.ChainHandlers}
		if ps, err := t.Plots(kept); err == nil {
			var rows [][]*plot.Plot
			for _, p := range ps {
				rows = append(rows, []*plot.Plot{p})
			}
			figs = append(figs, report.Figure{Title: "How the pipeline runs over time", Plots: rows, Size: plots.Tall,
				Caption: "Fast: three packets or more in a row with one receive and one DMA start each. Slow: two packets or more wait for their DMA, or the engine idles with one waiting."})
		}
	}
	if b.path.All.N > 0 {
		bars := plots.WhereTimeGoesBars("Mean gap along its critical path", b.path)
		p, err := bars.Plot()
		if err := add("Where the time between departures goes", "Each gap is followed back from the second departure: what that packet did and waited for, and what the processor did instead.", bars.Size(), p, err); err != nil {
			return nil, err
		}
		worst := plots.WorstGapsBars("The longest gaps", b.path)
		p, err = worst.Plot()
		if err := add("What the longest gaps are made of", "", worst.Size(), p, err); err != nil {
			return nil, err
		}
	}
	use := plots.UtilisationBars("Shares of the observed time", &b.res.Utilisation)
	p, err := use.Plot()
	if err := add("Use of processors, engines and bus", "", use.Size(), p, err); err != nil {
		return nil, err
	}
	if b.dist.Ingress.N() > 0 {
		cdf := plots.CDFPlot{Title: "Distribution of latencies and gaps", XLabel: "time (µs)"}
		for _, s := range []plots.CDF{
			plots.TimeCDF("ingress card", b.dist.Ingress), plots.TimeCDF("total", b.dist.Total),
			plots.TimeCDF("wait upstream", b.dist.Upstream), plots.TimeCDF("gap", b.dist.Gap),
		} {
			if s.N > 0 {
				cdf.Series = append(cdf.Series, s)
			}
		}
		p, err := cdf.Plot()
		if err := add("Latency", "Ingress card: from Rx check header to the departure. Total: from the arrival to the end of the send.", plots.Wide, p, err); err != nil {
			return nil, err
		}
	}
	return figs, nil
}

// tell says what was written.
func (b *reportBuilder) tell(out string, r *report.Report, asJSON bool) error {
	fi, err := os.Stat(out)
	if err != nil {
		return err
	}
	if asJSON {
		return writeJSON(b.c.OutOrStdout(), struct {
			File    string  `json:"file"`
			Bytes   int64   `json:"bytes"`
			Records uint64  `json:"records"`
			Events  int     `json:"events"`
			From    float64 `json:"from_us"`
			To      float64 `json:"to_us"`
			Figures int     `json:"figures"`
		}{out, fi.Size(), b.n.n, r.Events.Len(), b.shown.From.Microseconds(), b.shown.To.Microseconds(), len(r.Figures)})
	}
	_, err = fmt.Fprintf(b.c.OutOrStdout(), "wrote %s: %d of %d records, %d figures, %d bytes\n", out, r.Events.Len(), b.n.n, len(r.Figures), fi.Size())
	return err
}
