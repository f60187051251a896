package traces

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// Divergence is where two record streams part: what was the same just before,
// the first records that differ, what follows on each side, and who caused
// them.
type Divergence struct {
	// Index is how many records the streams have in common, those of an
	// expansion not counted.
	Index uint64
	// A and B are the first records that differ; nil where a stream ended.
	A, B *Record
	// Fields names the fields in which they differ; empty where one ended.
	Fields []string
	// Before are the last records in common, oldest first.
	Before []Record
	// AfterA and AfterB are the records that follow A and B.
	AfterA, AfterB []Record
	// CausesA and CausesB are the chains of causes of A and B, nearest first,
	// as far as they lie within the last diffHistory records in common.
	CausesA, CausesB []Record
	// Meta tells in which respects the runs were set up differently.
	Meta []string
}

// diffHistory is how many records back causes are looked for (chosen: over a
// thousand packets, in 5 MB).
const diffHistory = 1 << 16

// maxCauses bounds a chain of causes: a packet's whole way is about 30 records.
const maxCauses = 64

// Diff reads two streams until they part, and returns nil where they do not.
// context is how many records before and after to give. Like the fingerprint,
// it passes over the records of an expansion. It closes neither reader.
func Diff(a, b Reader, context int) (*Divergence, error) {
	context = max(context, 0)
	past := NewRing(nil, max(diffHistory, context))
	var ra, rb Record
	for n := uint64(0); ; n++ {
		okA, err := nextCanonical(a, &ra)
		if err != nil {
			return nil, fmt.Errorf("first record: %w", err)
		}
		okB, err := nextCanonical(b, &rb)
		if err != nil {
			return nil, fmt.Errorf("second record: %w", err)
		}
		if !okA && !okB {
			return nil, nil
		}
		if okA && okB && ra == rb {
			_ = past.Record(&ra) // never fails
			continue
		}
		d := &Divergence{Index: n, Meta: diffMeta(a.Meta(), b.Meta())}
		for i := max(0, past.Len()-context); i < past.Len(); i++ {
			d.Before = append(d.Before, *past.At(i))
		}
		if okA && okB {
			d.Fields = diffFields(&ra, &rb)
		}
		if okA {
			d.A = &ra
			d.CausesA = causes(past, &ra)
			if d.AfterA, err = follow(a, context); err != nil {
				return nil, fmt.Errorf("first record: %w", err)
			}
		}
		if okB {
			d.B = &rb
			d.CausesB = causes(past, &rb)
			if d.AfterB, err = follow(b, context); err != nil {
				return nil, fmt.Errorf("second record: %w", err)
			}
		}
		return d, nil
	}
}

func nextCanonical(r Reader, rec *Record) (bool, error) {
	for {
		ok, err := r.Next(rec)
		if !ok || !rec.Expansion() {
			return ok, err
		}
	}
}

func follow(r Reader, n int) (after []Record, err error) {
	for len(after) < n {
		var rec Record
		ok, err := nextCanonical(r, &rec)
		if err != nil {
			return nil, err
		}
		if !ok {
			break
		}
		after = append(after, rec)
	}
	return after, nil
}

// causes walks back from r through the ring. Causes come before effects, so one
// pass from the newest to the oldest finds the whole chain.
func causes(past *Ring, r *Record) (chain []Record) {
	want := r.Cause
	for i := past.Len() - 1; i >= 0 && want != 0 && len(chain) < maxCauses; i-- {
		if c := past.At(i); c.ID == want {
			chain = append(chain, *c)
			want = c.Cause
		}
	}
	return chain
}

func diffFields(a, b *Record) (fields []string) {
	check := func(name string, differ bool) {
		if differ {
			fields = append(fields, name)
		}
	}
	check("kind", a.Kind != b.Kind)
	check("event", a.Event != b.Event)
	check("card", a.Card != b.Card)
	check("peer", a.Peer != b.Peer)
	check("queue", a.Queue != b.Queue)
	check("packet", a.Packet != b.Packet)
	check("start", a.Start != b.Start)
	check("end", a.End != b.End)
	check("ready", a.Ready != b.Ready)
	check("bytes", a.Bytes != b.Bytes)
	check("count", a.Count != b.Count)
	check("cycles", a.Cycles != b.Cycles)
	check("stall", a.Stall != b.Stall)
	check("reason", a.Reason != b.Reason)
	check("verdict", a.Verdict != b.Verdict)
	check("id", a.ID != b.ID)
	check("cause", a.Cause != b.Cause)
	return fields
}

func diffMeta(a, b *Meta) (lines []string) {
	check := func(name, x, y string) {
		if x != y {
			lines = append(lines, fmt.Sprintf("%s: %s, and %s", name, orNone(x), orNone(y)))
		}
	}
	check("program", a.Program, b.Program)
	check("scenario", a.Scenario, b.Scenario)
	check("scenario hash", a.ScenarioHash, b.ScenarioHash)
	check("seed", fmt.Sprint(a.Seed), fmt.Sprint(b.Seed))
	check("route table", fmt.Sprint(a.RouteTableBytes, " bytes"), fmt.Sprint(b.RouteTableBytes, " bytes"))
	check("cards", fmt.Sprint(len(a.Cards)), fmt.Sprint(len(b.Cards)))
	for i := range min(len(a.Cards), len(b.Cards)) {
		x, y := &a.Cards[i], &b.Cards[i]
		name := a.CardName(uint8(i))
		check(name+" queue order", orderText(x.QueueOrder), orderText(y.QueueOrder))
		check(name+" clock", fmt.Sprintf("%d/%d Hz", x.ClockNum, x.ClockDen), fmt.Sprintf("%d/%d Hz", y.ClockNum, y.ClockDen))
		check(name+" clock phase", fmt.Sprint(int64(x.Phase), " ps"), fmt.Sprint(int64(y.Phase), " ps"))
	}
	if !slices.Equal(scenarioLines(a), scenarioLines(b)) {
		for i, l := range scenarioLines(a) {
			if other := scenarioLines(b); i < len(other) && l != other[i] {
				lines = append(lines, fmt.Sprintf("scenario line %d: %q, and %q", i+1, l, other[i]))
				return lines
			}
		}
		lines = append(lines, "scenario: one has more lines than the other")
	}
	return lines
}

func scenarioLines(m *Meta) []string {
	return strings.Split(strings.TrimSuffix(m.ScenarioYAML, "\n"), "\n")
}

func orderText(o Order) string {
	var s []string
	for _, q := range o {
		s = append(s, fmt.Sprintf("Q%d", q))
	}
	return strings.Join(s, " ")
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

// WriteTo describes the divergence for people: a listing with "=" before what
// is common, "-" before the first stream's and "+" before the second's.
func (d *Divergence) WriteTo(w io.Writer) (int64, error) {
	var b []byte
	for _, m := range d.Meta {
		b = fmt.Appendf(b, "set up differently: %s\n", m)
	}
	b = fmt.Appendf(b, "the first %d records are the same\n", d.Index)
	line := func(mark string, r *Record) {
		b = append(AppendListing(append(b, mark...), r), '\n')
	}
	for i := range d.Before {
		line("= ", &d.Before[i])
	}
	side := func(mark, which string, first *Record, after []Record) {
		if first == nil {
			b = fmt.Appendf(b, "%s(the %s record ends here)\n", mark, which)
			return
		}
		line(mark, first)
		for i := range after {
			line(mark, &after[i])
		}
	}
	side("- ", "first", d.A, d.AfterA)
	side("+ ", "second", d.B, d.AfterB)
	if len(d.Fields) > 0 {
		b = fmt.Appendf(b, "the first that differ, differ in %s\n", strings.Join(d.Fields, ", "))
	}
	chain := func(mark, which string, c []Record) {
		if len(c) > 0 {
			b = fmt.Appendf(b, "causes in the %s record, nearest first\n", which)
		}
		for i := range c {
			line(mark, &c[i])
		}
	}
	chain("- ", "first", d.CausesA)
	chain("+ ", "second", d.CausesB)
	n, err := w.Write(b)
	return int64(n), err
}
