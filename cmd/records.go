package cmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"spinesim/sim"
	"spinesim/sim/des"
	"spinesim/traces"
)

// records is where records come from: a recorded file, or a scenario that is
// run, each time the same.
type records struct {
	name    string // for people
	path    string // of a file
	partial bool
	sc      *sim.Scenario // of the run, or the one that the file carries; may be nil for a file
	meta    *traces.Meta
	damage  error // why a file of which a part is read ends early
}

// openRecords looks at a file, to say early what is wrong with it.
func openRecords(path string, partial bool) (*records, error) {
	s := &records{name: path, path: path, partial: partial}
	r, err := s.open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	s.meta = r.Meta()
	if s.sc, err = sim.Recorded(s.meta, path); err != nil {
		return nil, err
	}
	return s, nil
}

// scenarioRecords are those of a scenario.
func scenarioRecords(sc *sim.Scenario) (*records, error) {
	s, err := sim.New(sc, sim.Options{Unmeasured: true})
	if err != nil {
		return nil, err
	}
	return &records{name: sc.Name, sc: sc, meta: s.Meta()}, nil
}

// recordFlags choose between a file and a scenario.
type recordFlags struct {
	scenarioFlags
	partial bool
}

func (f *recordFlags) add(c *cobra.Command) {
	f.scenarioFlags.add(c, "fig6.4")
	c.Flags().BoolVar(&f.partial, "partial", false, "read what is whole of a truncated or damaged file")
}

// get gives the records of a file, or without one those of the scenario.
func (f *recordFlags) get(args []string) (*records, error) {
	if len(args) > 0 {
		if len(f.settings) > 0 {
			return nil, usagef("--set changes a scenario, not a recorded file (see spinesim replay FILE --set)")
		}
		return openRecords(args[0], f.partial)
	}
	sc, err := f.load()
	if err != nil {
		return nil, err
	}
	return scenarioRecords(sc)
}

func (s *records) open() (*traces.FileReader, error) {
	var opts []traces.ReadOption
	if s.partial {
		opts = append(opts, traces.Partial())
	}
	r, err := traces.OpenReader(s.path, opts...)
	if err != nil {
		return nil, inputError(err)
	}
	return r, nil
}

// inputError marks what is wrong with a file that the user named.
func inputError(err error) error {
	var input *sim.InputError
	if err == nil || errors.As(err, &input) {
		return err
	}
	return &sim.InputError{Err: err}
}

// part says how much of a source is asked for.
type part struct {
	until  des.Time   // a run may end here; 0: at its end
	expand []sim.Span // polls to be recorded one by one, of a run
}

// errEnough ends a pass over records that has seen what it wants.
var errEnough = errors.New("enough records")

// feed passes the records on to the sinks. A file is read, a scenario run.
func (s *records) feed(c *cobra.Command, p part, sinks ...traces.Sink) error {
	if s.path == "" {
		what := "run " + s.sc.Name
		bar := newProgress(c, what, int64(s.sc.Traffic.Packets)*int64(len(s.sc.Traffic.Ingress)))
		defer bar.end()
		_, err := sim.Run(c.Context(), s.sc, sim.Options{
			Unmeasured: true, Sinks: sinks, Until: p.until, Expand: p.expand,
			Progress: func(done, _ uint64) { bar.set(int64(done)) },
		})
		return s.ended(err)
	}
	r, err := s.open()
	if err != nil {
		return err
	}
	defer r.Close()
	_, err = traces.Convert(&boundedReader{Reader: r, ctx: c.Context(), until: p.until}, traces.Tee(sinks...))
	s.damage = r.Damage()
	return s.ended(readError(err))
}

// ended tells what ended a pass.
func (s *records) ended(err error) error {
	switch {
	case errors.Is(err, errEnough):
		return nil
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("%s: interrupted, nothing was written: %w", s.name, err)
	}
	return err
}

// boundedReader ends where the user or a bound on time ends it.
type boundedReader struct {
	traces.Reader
	ctx   context.Context
	until des.Time
	n     uint64
}

// Next implements traces.Reader.
func (b *boundedReader) Next(r *traces.Record) (bool, error) {
	if b.n++; b.n&0xfff == 0 && b.ctx != nil && b.ctx.Err() != nil {
		return false, b.ctx.Err()
	}
	ok, err := b.Reader.Next(r)
	if ok && b.until > 0 && r.End > b.until {
		return false, nil
	}
	return ok, err
}

// spec says how the records are measured.
func (s *records) spec() (traces.MeasureSpec, traces.Limits, error) {
	if s.sc == nil {
		return traces.MeasureSpec{}, traces.Limits{}, nil
	}
	return s.sc.RecordSpec()
}

// warn tells of a file that was read in part.
func (s *records) warn(c *cobra.Command) {
	if s.damage != nil {
		fmt.Fprintln(c.ErrOrStderr(), "spinesim: read in part:", s.damage)
	}
}

// wholeRun tells whether a stream begins where a run does: the first record
// that names a packet is then the arrival of packet 1.
type wholeRun struct{ known, whole bool }

func (w *wholeRun) look(r *traces.Record) {
	if !w.known && r.Packet != 0 {
		w.known, w.whole = true, r.Kind == traces.KindEnter && r.Packet == 1
	}
}

// filterFlags narrow records down.
type filterFlags struct {
	from, to, packets string
	cards             []uint
	kinds             []string
}

func (f *filterFlags) add(c *cobra.Command) {
	f.addSpan(c)
	c.Flags().StringVar(&f.packets, "packets", "", "only records of these packets, such as 7 or 100-200 or 7,9-")
	c.Flags().UintSliceVar(&f.cards, "card", nil, "only records of these cards; a transfer belongs to both ends")
	c.Flags().StringSliceVar(&f.kinds, "kind", nil, "only these kinds: box, polls, poll, transfer, receive, send, wait, enter, leave, depart, level, copy, mark, stop")
}

func (f *filterFlags) addSpan(c *cobra.Command) {
	c.Flags().StringVar(&f.from, "from", "", "begin at this time of the run, such as 12.5 ms")
	c.Flags().StringVar(&f.to, "to", "", "end at this time")
}

// window reads --from and --to.
func (f *filterFlags) window() (from, to des.Time, err error) {
	if from, err = timeFlag("--from", f.from); err != nil {
		return 0, 0, err
	}
	if to, err = timeFlag("--to", f.to); err != nil {
		return 0, 0, err
	}
	if f.to != "" && to <= from {
		return 0, 0, usagef("--to %v does not lie after --from %v", to, from)
	}
	return from, to, nil
}

func timeFlag(name, text string) (des.Time, error) {
	if text == "" {
		return 0, nil
	}
	t, err := des.ParseTime(text)
	if err != nil {
		return 0, usagef("%s: %w", name, err)
	}
	if t < 0 {
		return 0, usagef("%s %v lies before the run", name, t)
	}
	return t, nil
}

func (f *filterFlags) filter() (traces.Filter, error) {
	var out traces.Filter
	var err error
	if out.From, out.To, err = f.window(); err != nil {
		return out, err
	}
	if out.Packets, err = packetRanges(f.packets); err != nil {
		return out, err
	}
	for _, c := range f.cards {
		if c >= traces.HostCard {
			return out, usagef("--card %d, want a number below %d", c, traces.HostCard)
		}
		out.Cards = append(out.Cards, uint8(c))
	}
	for _, k := range f.kinds {
		kind, ok := traces.KindByName(k)
		if !ok || kind == traces.KindNone {
			return out, usagef("--kind %q, want box, polls, poll, transfer, receive, send, wait, enter, leave, depart, level, copy, mark or stop", k)
		}
		out.Kinds = append(out.Kinds, kind)
	}
	if err := out.Check(); err != nil {
		return out, usagef("%w", err)
	}
	return out, nil
}

// packetRanges reads "7,100-200,900-".
func packetRanges(text string) ([]traces.PacketRange, error) {
	if text == "" {
		return nil, nil
	}
	var out []traces.PacketRange
	for p := range strings.SplitSeq(text, ",") {
		first, last, isRange := strings.Cut(strings.TrimSpace(p), "-")
		r := traces.PacketRange{}
		var err error
		if r.First, err = strconv.ParseUint(first, 10, 64); err != nil || r.First == 0 {
			return nil, usagef("--packets %q: %q is not a packet's number, from 1", text, first)
		}
		r.Last = r.First
		if isRange {
			r.Last = 0
			if last != "" {
				if r.Last, err = strconv.ParseUint(last, 10, 64); err != nil || r.Last < r.First {
					return nil, usagef("--packets %q: %q is not a range such as 100-200", text, p)
				}
			}
		}
		out = append(out, r)
	}
	return out, nil
}

// outPath refuses a file that the user cannot mean.
func outPath(in, out string) error {
	a, errA := os.Stat(in)
	b, errB := os.Stat(out)
	if errA == nil && errB == nil && os.SameFile(a, b) {
		return usagef("%s is both input and output", out)
	}
	return nil
}

// fileError marks an output file that cannot be made where the user wants it.
func fileError(err error) error {
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission) {
		return usagef("%w", err)
	}
	return err
}
