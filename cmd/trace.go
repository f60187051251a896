package cmd

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"spinesim/sim/des"
	"spinesim/traces"
)

func newTrace() *cobra.Command {
	c := &cobra.Command{
		Use:   "trace",
		Short: "Convert, cut, check, measure, compare or list recorded runs",
		Long: `Work on recorded runs. A file's extension tells its format, and .gz or .zst after
it that it is compressed; spinesim trace formats lists them.`,
		Example: "  spinesim run --record run.parquet\n  spinesim trace convert run.parquet run.perfetto-trace\n  spinesim trace stats run.parquet",
		Args:    wrapArgs(cobra.NoArgs),
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(traceConvert(), traceCut(), traceCheck(), traceStats(), traceDiff(), traceDump(), traceFormats())
	return c
}

// moved is what convert and cut tell.
type moved struct {
	In      string `json:"in"`
	Out     string `json:"out"`
	Records uint64 `json:"records"`
	Bytes   int64  `json:"bytes"`
	Partial string `json:"partial,omitempty"` // why only a part was read
}

func (m *moved) print(c *cobra.Command, asJSON bool) error {
	if fi, err := os.Stat(m.Out); err == nil {
		m.Bytes = fi.Size()
	}
	if asJSON {
		return writeJSON(c.OutOrStdout(), m)
	}
	_, err := fmt.Fprintf(c.OutOrStdout(), "%s: %d records, %d bytes\n", m.Out, m.Records, m.Bytes)
	return err
}

// pass copies records from a file to another, through what between makes of
// the writer. close completes what between has begun.
func pass(c *cobra.Command, src *records, out string, meta *traces.Meta, between func(traces.Sink) (sink traces.Sink, finish func() error)) (*moved, error) {
	if err := outPath(src.path, out); err != nil {
		return nil, err
	}
	w, err := traces.CreateWriter(out, meta)
	if err != nil {
		return nil, usagef("%w", err)
	}
	defer w.Abort()
	n := &counting{next: w}
	sink, finish := between(n)
	if err := src.feed(c, part{}, sink); err != nil {
		return nil, err
	}
	if err := finish(); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	src.warn(c)
	m := &moved{In: src.path, Out: out, Records: n.n}
	if src.damage != nil {
		m.Partial = src.damage.Error()
	}
	return m, nil
}

// counting counts the records that pass.
type counting struct {
	next traces.Sink
	n    uint64
}

// Record implements traces.Sink.
func (c *counting) Record(r *traces.Record) error {
	c.n++
	return c.next.Record(r)
}

func nothing() error { return nil }

func traceConvert() *cobra.Command {
	var partial, asJSON bool
	c := &cobra.Command{
		Use:   "convert IN OUT",
		Short: "Write a recorded run in another format",
		Long: `Write a recorded run in another format. OUT appears whole or not at all. Formats
that can be read back keep every field of every record; see spinesim trace formats.`,
		Example: "  spinesim trace convert run.parquet run.perfetto-trace\n  spinesim trace convert run.csv.gz run.pcapng",
		Args:    wrapArgs(cobra.ExactArgs(2)),
		RunE: func(c *cobra.Command, args []string) error {
			if err := knownFormat(args[1]); err != nil {
				return err
			}
			src, err := openRecords(args[0], partial)
			if err != nil {
				return err
			}
			m, err := pass(c, src, args[1], src.meta, func(w traces.Sink) (traces.Sink, func() error) { return w, nothing })
			if err != nil {
				return err
			}
			return m.print(c, asJSON)
		},
	}
	c.Flags().BoolVar(&partial, "partial", false, "read what is whole of a truncated or damaged file")
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return c
}

func knownFormat(path string) error {
	if _, err := traces.FormatOf(path); err != nil {
		return usagef("%w", err)
	}
	return nil
}

func traceCut() *cobra.Command {
	var f filterFlags
	var partial, asJSON bool
	var gap, beforeDrop, drops int
	var after uint64
	var margin, reason string
	c := &cobra.Command{
		Use:   "cut IN OUT",
		Short: "Keep a part of a recorded run",
		Long: `Keep a part of a recorded run: what touches a span of time, belongs to packets or
cards, or is of some kind; what lies around the K-th longest gap between
departures; what follows N departures; or the last N records before drops.`,
		Example: `  spinesim trace cut run.parquet part.csv --from "12 ms" --to "13 ms"
  spinesim trace cut run.parquet worst.perfetto-trace --around-gap 1 --margin "500 µs"
  spinesim trace cut run.parquet drops.txt --before-drop 2000 --reason "FIFO full"`,
		Args: wrapArgs(cobra.ExactArgs(2)),
		RunE: func(c *cobra.Command, args []string) error {
			if err := knownFormat(args[1]); err != nil {
				return err
			}
			filter, err := f.filter()
			if err != nil {
				return err
			}
			m, err := timeFlag("--margin", margin)
			if err != nil {
				return err
			}
			why := traces.ReasonNone
			if reason != "" {
				var ok bool
				if why, ok = traces.ReasonByName(reason); !ok {
					return usagef("--reason %q is not the name of a reason for a drop", reason)
				}
			}
			if gap < 0 || beforeDrop < 0 || drops < 0 {
				return usagef("--around-gap, --before-drop and --drops want numbers of at least 0")
			}
			if gap > 0 && beforeDrop > 0 {
				return usagef("--around-gap and --before-drop exclude each other")
			}
			if beforeDrop > maxRing {
				return usagef("--before-drop %d, want at most %d", beforeDrop, maxRing)
			}
			src, err := openRecords(args[0], partial)
			if err != nil {
				return err
			}
			if gap > 0 {
				g, err := findGap(c, src, gap)
				if err != nil {
					return err
				}
				filter.From, filter.To = max(filter.From, g.From-m), g.To+m
			}
			meta := *src.meta
			meta.Labels = append(slices.Clone(meta.Labels), traces.Label{Key: partLabel, Value: describeCut(c)})
			res, err := pass(c, src, args[1], &meta, func(w traces.Sink) (traces.Sink, func() error) {
				w = traces.NewWindow(filter, w)
				if after > 0 {
					w = traces.NewAfterPackets(after, w)
				}
				if beforeDrop > 0 {
					w = traces.NewBeforeDrop(beforeDrop, why, drops, w)
				}
				return w, nothing
			})
			if err != nil {
				return err
			}
			return res.print(c, asJSON)
		},
	}
	f.add(c)
	c.Flags().IntVar(&gap, "around-gap", 0, "what lies around the K-th longest gap between departures; 1 is the longest")
	c.Flags().StringVar(&margin, "margin", "100 µs", "with --around-gap: time before and after the gap")
	c.Flags().Uint64Var(&after, "after-packets", 0, "what follows so many departures")
	c.Flags().IntVar(&beforeDrop, "before-drop", 0, "the last N records before each drop, the drop included")
	c.Flags().StringVar(&reason, "reason", "", "with --before-drop: only drops for this reason")
	c.Flags().IntVar(&drops, "drops", 0, "with --before-drop: only the first so many drops; 0 is all")
	c.Flags().BoolVar(&partial, "partial", false, "read what is whole of a truncated or damaged file")
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return c
}

// maxRing bounds the records kept before a drop: 800 MB.
const maxRing = 10_000_000

// partLabel is the key of the label that says how a part was cut from a run.
const partLabel = "cut"

// describeCut is the cut as the user asked for it.
func describeCut(c *cobra.Command) string {
	var out []string
	for _, name := range []string{"from", "to", "packets", "card", "kind", "around-gap", "margin", "after-packets", "before-drop", "reason", "drops"} {
		if f := c.Flags().Lookup(name); f.Changed {
			out = append(out, fmt.Sprintf("--%s %s", name, f.Value))
		}
	}
	if len(out) == 0 {
		return "all"
	}
	return strings.Join(out, " ")
}

// findGap finds the k-th longest gap.
func findGap(c *cobra.Command, src *records, k int) (traces.GapSpan, error) {
	if k > maxGaps {
		return traces.GapSpan{}, usagef("gap number %d, want at most %d", k, maxGaps)
	}
	w := traces.NewWorstGaps(k)
	if err := src.feed(c, part{}, w); err != nil {
		return traces.GapSpan{}, err
	}
	gaps := w.Gaps()
	if len(gaps) < k {
		return traces.GapSpan{}, usagef("%s: %w: %d of %d", src.name, traces.ErrNoGap, len(gaps), k)
	}
	return gaps[k-1], nil
}

const maxGaps = 100_000

func traceCheck() *cobra.Command {
	var partial, asJSON, window, all bool
	c := &cobra.Command{
		Use:   "check FILE...",
		Short: "Check the invariants that every record keeps",
		Long: `Check recorded runs against the invariants that every record keeps: packets are
conserved, causes come before effects, no unit does two things at once, buffers
and credits stay within bounds, handlers do not overlap, and others. The first
violation is explained with the records that led to it.

A record that does not begin with the arrival of packet 1, or that was cut, is
taken as a part of a run, in which packets and causes from before are taken on
trust. The exit status is 1 when an invariant is broken.`,
		Example: "  spinesim trace check run.parquet\n  spinesim trace check --all part.csv.gz",
		Args:    wrapArgs(cobra.MinimumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			var results []checked
			broken := 0
			for _, path := range args {
				r, err := check(c, path, partial, window, all)
				if err != nil {
					return err
				}
				if r.Total > 0 {
					broken++
				}
				if results = append(results, *r); !asJSON {
					if err := r.print(c.OutOrStdout(), all); err != nil {
						return err
					}
				}
			}
			if asJSON {
				if err := writeJSON(c.OutOrStdout(), results); err != nil {
					return err
				}
			}
			if broken > 0 {
				return fmt.Errorf("invariants are broken in %d of %d records", broken, len(args))
			}
			return nil
		},
	}
	c.Flags().BoolVar(&window, "window", false, "take the record as a part of a run even where it begins like a whole one")
	c.Flags().BoolVar(&all, "all", false, "explain every violation that was kept, not only the first")
	c.Flags().BoolVar(&partial, "partial", false, "read what is whole of a truncated or damaged file")
	c.Flags().BoolVar(&asJSON, "json", false, "print a JSON array, an object a file")
	return c
}

// checked is what the validator says of one file.
type checked struct {
	File       string      `json:"file"`
	Records    uint64      `json:"records"`
	Part       bool        `json:"part"`   // of a run
	Inside     uint64      `json:"inside"` // packets that did not leave
	Unproven   uint64      `json:"unproven"`
	Total      uint64      `json:"violations"`
	Violations []violation `json:"kept,omitempty"`
	Damage     string      `json:"damage,omitempty"`
}

type violation struct {
	Invariant string `json:"invariant"`
	Record    uint64 `json:"record"`
	Detail    string `json:"detail"`
	Explained string `json:"explained"`
}

func (r *checked) print(w io.Writer, all bool) error {
	what := "a whole run"
	switch {
	case r.Damage != "":
		what = "the readable part of a file"
	case r.Part:
		what = "a part of a run"
	}
	rest := ""
	if r.Unproven > 0 {
		rest = fmt.Sprintf(", %d causes from before it", r.Unproven)
	}
	if r.Total == 0 {
		_, err := fmt.Fprintf(w, "%s: every invariant held in %d records, %s, %d packets still inside%s\n", r.File, r.Records, what, r.Inside, rest)
		return err
	}
	if _, err := fmt.Fprintf(w, "%s: %d violations in %d records, %s%s\n", r.File, r.Total, r.Records, what, rest); err != nil {
		return err
	}
	for i, v := range r.Violations {
		if i > 0 && !all {
			_, err := fmt.Fprintf(w, "  %d more (--all)\n", r.Total-1)
			return err
		}
		if _, err := fmt.Fprintf(w, "  %s\n", strings.ReplaceAll(v.Explained, "\n", "\n  ")); err != nil {
			return err
		}
	}
	return nil
}

// check runs the validator over a file.
func check(c *cobra.Command, path string, partial, window, all bool) (*checked, error) {
	src, err := openRecords(path, partial)
	if err != nil {
		return nil, err
	}
	_, limits, err := src.spec()
	if err != nil {
		return nil, err
	}
	_, cut := src.meta.Label(partLabel)
	v := &lateValidator{limits: limits, window: window || cut}
	if all {
		v.limits.Keep = 1000
	}
	if err := src.feed(c, part{}, v); err != nil {
		return nil, err
	}
	v.begin() // where no record names a packet
	// A whole run drains, unless it was ended; packets that are still inside
	// are told, and are no violation.
	_ = v.v.Finish(!v.limits.Window && v.v.Inside() == 0 && src.damage == nil)
	src.warn(c)
	out := &checked{File: path, Records: v.v.Records(), Part: v.limits.Window, Inside: v.v.Inside(), Unproven: v.v.Unproven(), Total: v.v.Total()}
	for _, x := range v.v.Violations() {
		out.Violations = append(out.Violations, violation{string(x.Invariant), x.Number, x.Detail, x.Explain()})
	}
	if src.damage != nil {
		out.Damage, out.Part = src.damage.Error(), true
	}
	return out, nil
}

// lateValidator finds out whether it sees a whole run before it begins.
type lateValidator struct {
	limits traces.Limits
	window bool
	start  wholeRun
	early  []traces.Record
	v      *traces.Validator
}

// mostEarly bounds the records kept until the first that names a packet.
const mostEarly = 1 << 16

// Record implements traces.Sink.
func (l *lateValidator) Record(r *traces.Record) error {
	if l.v != nil {
		return l.v.Record(r)
	}
	l.early = append(l.early, *r)
	l.start.look(r)
	if l.start.known || len(l.early) == mostEarly {
		l.begin()
	}
	return nil
}

func (l *lateValidator) begin() {
	if l.v != nil {
		return
	}
	l.limits.Window = l.window || l.start.known && !l.start.whole || !l.start.known && len(l.early) > 0
	l.v = traces.NewValidator(l.limits)
	for i := range l.early {
		_ = l.v.Record(&l.early[i]) // violations are kept; it fails only when told to be fast
	}
	l.early = nil
}

func traceStats() *cobra.Command {
	var partial, asJSON bool
	var f filterFlags
	c := &cobra.Command{
		Use:   "stats FILE",
		Short: "Print every measure of a recorded run",
		Long: `Print every measure of a recorded run, the same as the run itself printed: gaps,
latencies, receive runs, backlog, fast and slow states, bubbles, the DMA step,
occupancy, utilisation, and where the time between departures goes.`,
		Example: "  spinesim trace stats run.parquet\n  spinesim trace stats run.parquet --from \"100 ms\" --json",
		Args:    wrapArgs(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			from, to, err := f.window()
			if err != nil {
				return err
			}
			src, err := openRecords(args[0], partial)
			if err != nil {
				return err
			}
			res, path, err := measure(c, src, from, to)
			if err != nil {
				return err
			}
			src.warn(c)
			w := c.OutOrStdout()
			if asJSON {
				return writeJSON(w, struct {
					File     string             `json:"file"`
					Scenario string             `json:"scenario"`
					Hash     string             `json:"scenario_hash"`
					Seed     uint64             `json:"seed"`
					Measures *traces.Result     `json:"measures"`
					Path     *traces.PathResult `json:"critical_path"`
				}{args[0], src.meta.Scenario, src.meta.ScenarioHash, src.meta.Seed, res, path})
			}
			if err := printMeta(w, src.meta, args[0]); err != nil {
				return err
			}
			if err := res.WriteText(w); err != nil {
				return err
			}
			fmt.Fprintln(w, "\nwhere the time between departures goes")
			return path.WriteText(w)
		},
	}
	f.addSpan(c)
	c.Flags().BoolVar(&partial, "partial", false, "read what is whole of a truncated or damaged file")
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return c
}

func printMeta(w io.Writer, m *traces.Meta, path string) error {
	s := path + ": "
	if m.Program != "" {
		s += m.Program + ", "
	}
	s += fmt.Sprintf("scenario %s (%s), seed %d", m.Scenario, m.ScenarioHash, m.Seed)
	for _, l := range m.Labels {
		s += fmt.Sprintf(", %s %s", l.Key, l.Value)
	}
	_, err := fmt.Fprintln(w, s)
	return err
}

// measurer measures records from the first on.
type measurer struct {
	spec   traces.MeasureSpec
	from   des.Time
	to     des.Time
	m      *traces.Measures
	path   *traces.CriticalPath
	begun  bool
	latest des.Time
}

func newMeasurer(src *records, from, to des.Time) (*measurer, error) {
	spec, _, err := src.spec()
	if err != nil {
		return nil, err
	}
	spec.From = from
	x := &measurer{spec: spec, from: from, to: to}
	x.path, err = traces.NewCriticalPath(traces.PathSpec{From: from, To: to, ChainHandlers: spec.ChainHandlers})
	return x, err
}

// Record implements traces.Sink.
func (x *measurer) Record(r *traces.Record) error {
	if r.End < x.from || x.to > 0 && r.End > x.to {
		return nil // as if it had been cut
	}
	if !x.begun {
		x.begun = true
		if x.spec.From == 0 && !(r.Kind == traces.KindEnter && r.Packet == 1) && r.Start > 0 {
			x.spec.From = r.Start // a part of a run
		}
		var err error
		if x.m, err = traces.NewMeasures(x.spec); err != nil {
			return err
		}
	}
	x.latest = r.End
	if err := x.m.Record(r); err != nil {
		return err
	}
	return x.path.Record(r)
}

func (x *measurer) result(name string) (*traces.Result, *traces.PathResult, error) {
	if !x.begun {
		return nil, nil, usagef("%s: there are no records in that time", name)
	}
	res, err := x.m.Finish(max(x.latest, x.spec.From))
	return res, x.path.Result(), err
}

// measure measures records between two times; to of 0 is the end.
func measure(c *cobra.Command, src *records, from, to des.Time) (*traces.Result, *traces.PathResult, error) {
	x, err := newMeasurer(src, from, to)
	if err != nil {
		return nil, nil, err
	}
	if err := src.feed(c, part{}, x); err != nil {
		return nil, nil, err
	}
	return x.result(src.name)
}

func traceDiff() *cobra.Command {
	var context int
	var asJSON bool
	c := &cobra.Command{
		Use:   "diff A B",
		Short: "Find the first event in which two recorded runs part",
		Long: `Find the first event in which two recorded runs part: what both did before, what
each does after, in what the first two records differ, the causes that led to
them, and what was set up differently. Polls that are recorded one by one are
passed over, as the fingerprint does.

The exit status is 0 when the runs are the same, and 1 when they are not.`,
		Example: "  spinesim trace diff a.parquet b.parquet --context 10",
		Args:    wrapArgs(cobra.ExactArgs(2)),
		RunE: func(c *cobra.Command, args []string) error {
			if context < 0 || context > 10000 {
				return usagef("--context %d, want 0 to 10000", context)
			}
			var rs [2]*boundedReader
			for i, path := range args {
				src, err := openRecords(path, false)
				if err != nil {
					return err
				}
				r, err := src.open()
				if err != nil {
					return err
				}
				defer r.Close()
				rs[i] = &boundedReader{Reader: r, ctx: c.Context()}
			}
			d, err := traces.Diff(rs[0], rs[1], context)
			if err != nil {
				return readError(err)
			}
			w := c.OutOrStdout()
			if asJSON {
				if err := writeJSON(w, newDivergence(args, d)); err != nil {
					return err
				}
			} else if d == nil {
				_, err := fmt.Fprintf(w, "%s and %s: the same records\n", args[0], args[1])
				return err
			} else if _, err := d.WriteTo(w); err != nil {
				return err
			}
			if d == nil {
				return nil
			}
			return fmt.Errorf("%s and %s part after %d records", args[0], args[1], d.Index)
		},
	}
	c.Flags().IntVar(&context, "context", 5, "records to show before and after")
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return c
}

// divergence is where two runs part, as JSON.
type divergence struct {
	A         string       `json:"a"`
	B         string       `json:"b"`
	Same      bool         `json:"same"`
	Index     uint64       `json:"records_in_common,omitempty"`
	Fields    []string     `json:"differ_in,omitempty"`
	Meta      []string     `json:"set_up_differently,omitempty"`
	Before    []recordJSON `json:"before,omitempty"`
	RecordsA  []recordJSON `json:"records_a,omitempty"`
	RecordsB  []recordJSON `json:"records_b,omitempty"`
	CausesOfA []recordJSON `json:"causes_a,omitempty"`
	CausesOfB []recordJSON `json:"causes_b,omitempty"`
}

func newDivergence(paths []string, d *traces.Divergence) *divergence {
	out := &divergence{A: paths[0], B: paths[1], Same: d == nil}
	if d == nil {
		return out
	}
	out.Index, out.Fields, out.Meta = d.Index, d.Fields, d.Meta
	list := func(first *traces.Record, rest []traces.Record) (l []recordJSON) {
		if first != nil {
			l = append(l, newRecordJSON(first))
		}
		for i := range rest {
			l = append(l, newRecordJSON(&rest[i]))
		}
		return l
	}
	out.Before = list(nil, d.Before)
	out.RecordsA, out.RecordsB = list(d.A, d.AfterA), list(d.B, d.AfterB)
	out.CausesOfA, out.CausesOfB = list(nil, d.CausesA), list(nil, d.CausesB)
	return out
}

// recordJSON is one record with its values by name; times in ps.
type recordJSON struct {
	Kind    string `json:"kind"`
	Event   string `json:"event,omitempty"`
	Card    *uint8 `json:"card,omitempty"`
	Peer    *uint8 `json:"peer,omitempty"`
	Queue   *uint8 `json:"queue,omitempty"`
	Packet  uint64 `json:"packet,omitempty"`
	Start   int64  `json:"start_ps"`
	End     int64  `json:"end_ps"`
	Ready   int64  `json:"ready_ps"`
	ID      string `json:"id,omitempty"`
	Cause   string `json:"cause,omitempty"`
	Bytes   uint32 `json:"bytes,omitempty"`
	Count   uint32 `json:"count"`
	Cycles  uint64 `json:"cycles,omitempty"`
	Stall   uint32 `json:"stall,omitempty"`
	Reason  string `json:"reason,omitempty"`
	Verdict string `json:"verdict,omitempty"`
}

func newRecordJSON(r *traces.Record) recordJSON {
	number := func(v, none uint8) *uint8 {
		if v == none {
			return nil
		}
		return &v
	}
	name := func(id traces.ID) string {
		if id == 0 {
			return ""
		}
		return id.String()
	}
	j := recordJSON{
		Kind: r.Kind.String(), Card: number(r.Card, traces.NoCard), Peer: number(r.Peer, traces.NoCard), Queue: number(r.Queue, traces.NoQueue),
		Packet: r.Packet, Start: int64(r.Start), End: int64(r.End), Ready: int64(r.Ready), ID: name(r.ID), Cause: name(r.Cause),
		Bytes: r.Bytes, Count: r.Count, Cycles: r.Cycles, Stall: r.Stall,
	}
	if r.Event != traces.NoEvent {
		j.Event = r.Event.String()
	}
	if r.Reason != traces.ReasonNone {
		j.Reason = r.Reason.String()
	}
	if r.Verdict != traces.VerdictNone {
		j.Verdict = r.Verdict.String()
	}
	return j
}

func traceDump() *cobra.Command {
	var f filterFlags
	var partial, asJSON bool
	var limit uint64
	c := &cobra.Command{
		Use:   "dump FILE",
		Short: "List the records of a run as text",
		Long: `List the records of a run, one a line: start and length in µs, card, kind and
event, then everything else as name=value. A whole listing can be read back (as
.txt); --json writes a JSON object a line instead, times in ps.`,
		Example: "  spinesim trace dump run.parquet -n 40\n  spinesim trace dump run.parquet --packets 100 --kind box,wait",
		Args:    wrapArgs(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			filter, err := f.filter()
			if err != nil {
				return err
			}
			src, err := openRecords(args[0], partial)
			if err != nil {
				return err
			}
			w := bufio.NewWriterSize(c.OutOrStdout(), 1<<16)
			var sink traces.Sink
			finish := nothing
			if asJSON {
				e := json.NewEncoder(w)
				e.SetEscapeHTML(false)
				sink = sinkFunc(func(r *traces.Record) error { return e.Encode(newRecordJSON(r)) })
			} else {
				l, err := traces.NewListingWriter(w, src.meta)
				if err != nil {
					return err
				}
				sink, finish = l, l.Close
			}
			if limit > 0 {
				sink = &limited{next: sink, left: limit}
			}
			sink = traces.NewWindow(filter, sink)
			err = src.feed(c, part{}, sink)
			if err == nil {
				err = finish()
			}
			if ferr := w.Flush(); err == nil {
				err = ferr
			}
			src.warn(c)
			return err
		},
	}
	f.add(c)
	c.Flags().Uint64VarP(&limit, "lines", "n", 0, "list only the first so many records; 0 is all")
	c.Flags().BoolVar(&partial, "partial", false, "read what is whole of a truncated or damaged file")
	c.Flags().BoolVar(&asJSON, "json", false, "print a JSON object a line")
	return c
}

type sinkFunc func(*traces.Record) error

// Record implements traces.Sink.
func (f sinkFunc) Record(r *traces.Record) error { return f(r) }

// limited ends the pass after so many records.
type limited struct {
	next traces.Sink
	left uint64
}

// Record implements traces.Sink.
func (l *limited) Record(r *traces.Record) error {
	if l.left == 0 {
		return errEnough
	}
	l.left--
	return l.next.Record(r)
}

func traceFormats() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "formats", Short: "List the file formats of recorded runs", Example: "  spinesim trace formats",
		Args: wrapArgs(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			type row struct {
				Name       string   `json:"name"`
				Extensions []string `json:"extensions"`
				Readable   bool     `json:"readable"`
				Opens      string   `json:"opens_in"`
			}
			var rows []row
			for _, f := range traces.Formats() {
				rows = append(rows, row{f.Name, f.Extensions, f.Readable, f.Summary})
			}
			if asJSON {
				return writeJSON(c.OutOrStdout(), rows)
			}
			t := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintln(t, "format\textensions\tread back\tfor")
			for _, r := range rows {
				back := "no"
				if r.Readable {
					back = "yes"
				}
				fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", r.Name, strings.Join(r.Extensions, " "), back, r.Opens)
			}
			if err := t.Flush(); err != nil {
				return err
			}
			_, err := fmt.Fprintln(c.OutOrStdout(), "\n.gz or .zst may follow the extension.")
			return err
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print a JSON array")
	return c
}
