package sim

import (
	"context"
	"errors"
	"iter"
	"strings"

	"spinesim/sim/des"
	"spinesim/traces"
)

// Again is a recorded run and the same arrivals on a changed machine.
type Again struct {
	// Recorded is the recorded scenario, run again; where the record does not
	// hold it, what the record itself shows.
	Recorded *Result `json:"recorded"`
	Changed  *Result `json:"changed"`
	// Machine is the scenario that stands in for one that the record does not
	// hold.
	Machine string `json:"machine,omitempty"`
	// Generated tells that the traffic of the recorded scenario is what arrives
	// in the record. Where it is not, the record's arrivals are taken.
	Generated bool `json:"arrivals_generated"`
	// Reproduced tells that the recorded scenario, run again, gave the very
	// records of the file.
	Reproduced bool `json:"reproduced"`
	// SameArrivals tells that every packet arrived at the same time in both
	// runs. Saturating sources wait for the machine, so theirs differ.
	SameArrivals bool     `json:"same_arrivals"`
	Settings     []string `json:"settings"`
	// Parted is where the runs part; nil when they do the same throughout.
	Parted *Parting     `json:"parted,omitempty"`
	Meta   *traces.Meta `json:"-"`
}

// Parting is the first event in which two runs differ.
type Parting struct {
	// Number of the record in both streams, from 0.
	Number uint64 `json:"number"`
	// At is the time of the earlier of the two.
	At des.Time `json:"at"`
	// Common are the last records that both have, Recorded and Changed the
	// first ones that they have not.
	Common   []traces.Record `json:"common"`
	Recorded []traces.Record `json:"recorded"`
	Changed  []traces.Record `json:"changed"`
}

// partContext is how many records are shown before and after a parting.
const partContext = 4

// RunAgain runs the arrivals of a record on the machine of its scenario, to see
// that it gives the record, and on one with the settings laid over it. Where the
// record does not hold its scenario, machine names the one to take, and the
// record stands for its own run. told is called with 1 and 2 as the runs end.
// Memory does not grow with the record.
func RunAgain(ctx context.Context, path, machine string, settings []string, told func(int)) (*Again, error) {
	if err := keepsArrivals(settings); err != nil {
		return nil, err
	}
	fallback, err := Load(machine)
	if err != nil {
		return nil, err
	}
	in, err := ReadArrivals(path, fallback)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	changed, err := in.changed(machine, settings)
	if err != nil {
		return nil, err
	}
	a := &Again{Meta: in.meta, Settings: settings, Generated: in.Generated}
	var opt Options
	if !in.Generated {
		opt.Arrivals = in.Source
	}
	base := fileRun(path)
	if !in.own {
		a.Machine = in.base.Name
		a.Recorded, _, _, err = measureRecord(path, nil)
	} else {
		match, merr := newMatcher(path)
		if merr != nil {
			return nil, merr
		}
		defer match.close()
		sum := &arrivals{}
		o := opt
		o.Sinks = []traces.Sink{sum, match}
		a.Recorded, err = Run(ctx, in.base, o)
		if a.Reproduced = match.whole(); !a.Reproduced || match.passed {
			base = sceneRun(ctx, in.base, opt) // the file is not all of it
		}
		in.print = sum.print.Sum()
	}
	if err != nil {
		return nil, err
	}
	told(1)

	other, stop := newComparer(base)
	defer stop()
	o := opt
	o.Sinks = []traces.Sink{other}
	if a.Changed, err = Run(ctx, changed, o); err != nil {
		return nil, err
	}
	n, parted := other.parted()
	if stop(); other.err != nil {
		return nil, other.err
	}
	told(2)
	a.SameArrivals = in.print == other.print.Sum()
	if !parted {
		return a, nil
	}
	p := &Parting{Number: n, At: other.at}
	if p.Common, p.Recorded, err = around(base, n); err != nil {
		return nil, err
	}
	if _, p.Changed, err = around(sceneRun(ctx, changed, opt), n); err != nil {
		return nil, err
	}
	if len(p.Recorded) > 0 {
		p.At = min(p.At, p.Recorded[0].End)
	}
	a.Parted = p
	return a, nil
}

// keepsArrivals refuses settings that say what arrives: the record does.
func keepsArrivals(settings []string) error {
	for _, s := range settings {
		key, _, _ := strings.Cut(s, "=")
		if key = strings.TrimSpace(key); strings.HasPrefix(key, "traffic.") && key != "traffic.fifo" {
			return inputErrorf("%s: what arrives is the record's; of traffic, only traffic.fifo can be changed", key)
		}
	}
	return nil
}

// changed is the machine with the settings laid over it.
func (r *RecordedArrivals) changed(machine string, settings []string) (*Scenario, error) {
	var sc *Scenario
	var err error
	if r.own {
		sc, err = load([]byte(r.meta.ScenarioYAML), "scenario in "+r.path, "", settings, true)
	} else {
		sc, err = Load(machine, settings...)
	}
	if err == nil {
		r.adapt(sc)
	}
	return sc, err
}

// records is a stream of records, without those of expanded polls.
type records = iter.Seq2[*traces.Record, error]

// fileRun is the stream of a file.
func fileRun(path string) records {
	return func(yield func(*traces.Record, error) bool) {
		err := scan(path, nil, func(r *traces.Record) error {
			if !r.Expansion() && !yield(r, nil) {
				return errEnough
			}
			return nil
		})
		if err != nil && !errors.Is(err, errEnough) {
			yield(nil, err)
		}
	}
}

// sceneRun is the stream of a run.
func sceneRun(ctx context.Context, sc *Scenario, opt Options) records {
	return func(yield func(*traces.Record, error) bool) {
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		y := &yielder{yield: yield, stop: stop}
		o := opt
		o.Unmeasured, o.Sinks = true, []traces.Sink{y}
		if _, err := Run(ctx, sc, o); err != nil && !y.ended {
			yield(nil, err)
		}
	}
}

// errEnough ends a stream whose reader wants no more.
var errEnough = errors.New("enough records")

// yielder is a sink that hands records on until nobody wants more; then the run
// is to stop.
type yielder struct {
	yield func(*traces.Record, error) bool
	stop  func()
	ended bool
}

// Record implements traces.Sink.
func (y *yielder) Record(r *traces.Record) error {
	if y.ended || r.Expansion() || y.yield(r, nil) {
		return nil
	}
	y.ended = true
	y.stop()
	return nil
}

// arrivals is the fingerprint of the packets that arrived.
type arrivals struct{ print traces.Fingerprint }

func (a *arrivals) add(r *traces.Record) {
	if r.Kind == traces.KindEnter {
		e := traces.Record{Kind: r.Kind, End: r.End, Bytes: r.Bytes, Card: r.Card}
		_ = a.print.Record(&e) // it never fails
	}
}

// Record implements traces.Sink.
func (a *arrivals) Record(r *traces.Record) error {
	a.add(r)
	return nil
}

// comparer finds the first record that differs from those of another run, which
// goes on beside its own until then.
type comparer struct {
	next func() (*traces.Record, error, bool)
	n    uint64
	diff bool
	at   des.Time
	err  error
	arrivals
}

// newComparer begins the other run; stop ends it.
func newComparer(base records) (c *comparer, stop func()) {
	c = &comparer{}
	c.next, stop = iter.Pull2(base)
	return c, stop
}

// pull is the other run's next record, nil at its end.
func (c *comparer) pull() *traces.Record {
	r, err, ok := c.next()
	if !ok || err != nil {
		c.err = err
		return nil
	}
	return r
}

// Record implements traces.Sink.
func (c *comparer) Record(r *traces.Record) error {
	c.add(r)
	if c.diff || r.Expansion() {
		return nil
	}
	if c.at = r.End; c.err == nil {
		if b := c.pull(); b != nil && *b == *r {
			c.n++
			return nil
		}
	}
	c.diff = true
	return c.err
}

// parted tells at which record the runs part, if they do.
func (c *comparer) parted() (uint64, bool) { return c.n, c.diff || c.pull() != nil }

// around is the records just before the n-th of a stream, and just from it on.
func around(stream records, n uint64) (before, after []traces.Record, err error) {
	seen := uint64(0)
	for r, err := range stream {
		if err != nil {
			return nil, nil, err
		}
		switch {
		case seen >= n+partContext:
			return before, after, nil
		case seen >= n:
			after = append(after, *r)
		case seen+partContext >= n:
			before = append(before, *r)
		}
		seen++
	}
	return before, after, nil
}

// matcher follows a file along a run's record.
type matcher struct {
	rd   traces.Reader
	next traces.Record
	more bool
	n    uint64
	err  error
	// passed tells that the run had records that the file has not.
	passed bool
}

func newMatcher(path string) (*matcher, error) {
	rd, err := traces.OpenReader(path)
	if err != nil {
		return nil, err
	}
	m := &matcher{rd: rd}
	m.advance()
	return m, m.err
}

func (m *matcher) advance() {
	for {
		m.more, m.err = m.rd.Next(&m.next)
		if m.err != nil || !m.more || !m.next.Expansion() {
			return
		}
	}
}

// Record implements traces.Sink.
func (m *matcher) Record(r *traces.Record) error {
	switch {
	case r.Expansion():
	case m.more && *r == m.next:
		m.n++
		m.advance()
	default:
		m.passed = true
	}
	return m.err
}

// whole tells that every record of the file was met, in order.
func (m *matcher) whole() bool { return !m.more && m.n > 0 }

func (m *matcher) close() { m.rd.Close() }
