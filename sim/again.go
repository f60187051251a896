package sim

import (
	"context"

	"spinesim/sim/des"
	"spinesim/traces"
)

// Again is a recorded run and the same arrivals on a changed machine.
type Again struct {
	Recorded *Result `json:"recorded"`
	Changed  *Result `json:"changed"`
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

// RunAgain takes the scenario from a record, runs it again to see that it gives
// the record, and runs it with the settings laid over it. told is called with
// 1 and 2 as the runs end.
func RunAgain(ctx context.Context, path string, settings []string, told func(int)) (*Again, error) {
	var meta *traces.Meta
	if err := scan(path, func(m *traces.Meta) error { meta = m; return nil }, func(*traces.Record) error { return nil }); err != nil {
		return nil, err
	}
	if meta.ScenarioYAML == "" {
		return nil, inputErrorf("%s: the record does not hold its scenario, so its arrivals cannot be run again", path)
	}
	where := "scenario in " + path
	base, err := Parse([]byte(meta.ScenarioYAML), where, "")
	if err != nil {
		return nil, err
	}
	changed, err := Parse([]byte(meta.ScenarioYAML), where, "", settings...)
	if err != nil {
		return nil, err
	}
	a := &Again{Meta: meta, Settings: settings}

	hashes := &hasher{}
	match, err := newMatcher(path)
	if err != nil {
		return nil, err
	}
	defer match.close()
	if a.Recorded, err = Run(ctx, base, Options{Sinks: []traces.Sink{hashes, match}}); err != nil {
		return nil, err
	}
	a.Reproduced = match.whole()
	told(1)

	other := &comparer{base: hashes.sums}
	if a.Changed, err = Run(ctx, changed, Options{Sinks: []traces.Sink{other}}); err != nil {
		return nil, err
	}
	told(2)
	a.SameArrivals = hashes.arrivals == other.arrivals
	if n, ok := other.parted(); ok {
		p := &Parting{Number: n}
		look := func(sc *Scenario, until des.Time) ([]traces.Record, error) {
			k := &around{n: n}
			_, err := Run(ctx, sc, Options{Unmeasured: true, Sinks: []traces.Sink{k}, Until: until})
			return k.records, err
		}
		recs, err := look(base, other.at+des.Millisecond)
		if err != nil {
			return nil, err
		}
		split := min(int(min(n, partContext)), len(recs))
		p.Common, p.Recorded = recs[:split], recs[split:]
		if recs, err = look(changed, other.at+des.Millisecond); err != nil {
			return nil, err
		}
		p.Changed = recs[min(split, len(recs)):]
		p.At = other.at
		if len(p.Recorded) > 0 {
			p.At = min(p.At, p.Recorded[0].End)
		}
		a.Parted = p
	}
	return a, nil
}

// counts tells whether a record is part of the stream that fingerprints see.
func counts(r *traces.Record) bool {
	return r.Kind != traces.KindPoll && (r.Kind != traces.KindLevel || r.Event > traces.LevelQueue6)
}

func sum(r *traces.Record) uint64 {
	var f traces.Fingerprint
	_ = f.Record(r) // it never fails
	return f.Sum()
}

// arrivals is the fingerprint of the packets that arrived.
type arrivals struct{ print traces.Fingerprint }

func (a *arrivals) add(r *traces.Record) {
	if r.Kind == traces.KindEnter {
		e := traces.Record{Kind: r.Kind, End: r.End, Packet: r.Packet, Bytes: r.Bytes, Card: r.Card}
		_ = a.print.Record(&e)
	}
}

// hasher keeps 8 bytes a record of a run.
type hasher struct {
	sums []uint64
	arrivals
}

func (h *hasher) Record(r *traces.Record) error {
	if counts(r) {
		h.sums = append(h.sums, sum(r))
		h.add(r)
	}
	return nil
}

// comparer finds the first record that differs from another run's.
type comparer struct {
	base []uint64
	n    uint64
	diff bool
	at   des.Time
	arrivals
}

func (c *comparer) Record(r *traces.Record) error {
	if !counts(r) {
		return nil
	}
	c.add(r)
	if c.diff {
		return nil
	}
	if c.n >= uint64(len(c.base)) || c.base[c.n] != sum(r) {
		c.diff, c.at = true, r.End
		return nil
	}
	c.n++
	c.at = r.End
	return nil
}

func (c *comparer) parted() (uint64, bool) { return c.n, c.diff || c.n < uint64(len(c.base)) }

// around keeps the records round the n-th.
type around struct {
	n, seen uint64
	records []traces.Record
}

func (a *around) Record(r *traces.Record) error {
	if !counts(r) {
		return nil
	}
	if a.seen+partContext >= a.n && a.seen < a.n+partContext {
		a.records = append(a.records, *r)
	}
	a.seen++
	return nil
}

// matcher follows a file along a run's record.
type matcher struct {
	rd   traces.Reader
	next traces.Record
	more bool
	n    uint64
	err  error
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
		if m.err != nil || !m.more || counts(&m.next) {
			return
		}
	}
}

// Record implements traces.Sink.
func (m *matcher) Record(r *traces.Record) error {
	if m.more && counts(r) && *r == m.next {
		m.n++
		m.advance()
	}
	return m.err
}

// whole tells that every record of the file was met, in order.
func (m *matcher) whole() bool { return !m.more && m.n > 0 }

func (m *matcher) close() { m.rd.Close() }
