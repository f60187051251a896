package sim

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"spinesim/lanai/isa"
	"spinesim/sim/des"
	"spinesim/traces"
)

// stoppedRun is the record of a run in which card 1, an egress card, stops in a
// handler, and what the machine has.
func stoppedRun(t *testing.T) (rs keep, lim traces.Limits, meta *traces.Meta) {
	t.Helper()
	sc := withExecution(t, executions[2], "fig6.4", "traffic.packets=200", "traffic.arrivals.rate=150 µs")
	s, err := New(sc, Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = runHarmed(t, sc, Options{Sinks: []traces.Sink{&rs}, Expand: []Span{{5 * des.Millisecond, 6 * des.Millisecond}}},
		harm{card: 1, at: 5 * des.Millisecond, do: code("spine_wire_output_done", 1, undefinedWord)})
	if !errors.Is(err, isa.ErrUndefined) {
		t.Fatal(err)
	}
	return rs, s.limits(), s.Meta()
}

// TestStoppedRecordChecked: the validator takes a run with a stopped card, and
// nothing in it that is wrong besides.
func TestStoppedRecordChecked(t *testing.T) {
	rs, lim, _ := stoppedRun(t)
	if err := traces.Validate(rs, lim, true); err != nil {
		t.Fatal(err)
	}
	last := func(cond func(*traces.Record) bool) int {
		for i := len(rs) - 1; i >= 0; i-- {
			if cond(&rs[i]) {
				return i
			}
		}
		t.Fatal("the record has none such")
		return 0
	}
	stop := last(func(r *traces.Record) bool { return r.Kind == traces.KindStop })
	stranded := func(card uint8) int {
		return last(func(r *traces.Record) bool { return r.Verdict == traces.VerdictStranded && r.Card == card })
	}
	level := func(ev traces.Event, card, peer uint8) int {
		return last(func(r *traces.Record) bool {
			return r.Kind == traces.KindLevel && r.Event == ev && r.Card == card && r.Peer == peer
		})
	}
	if x := rs[stop]; x.Event != traces.WireOutputDone || x.Packet == 0 || x.Count == 0 || x.Cause == 0 || rs[stop-1].Reason != traces.ReasonStopped || rs[stop-1].ID != x.Cause {
		t.Errorf("stop %+v behind %+v", x, rs[stop-1])
	}
	for _, c := range []struct {
		name   string
		change func(keep) keep
		inv    traces.Invariant
		detail string
	}{
		{"it works on", func(r keep) keep {
			x := r[stop-1]
			x.ID, x.Packet, x.Start, x.Ready, x.Cycles, x.Stall = 0, 0, x.End, x.End, 0, 0
			return slices.Insert(r, stop+1, x)
		}, traces.InvariantStop, "stopped at"},
		{"it stops twice", func(r keep) keep {
			x := r[stop]
			x.ID = 0
			return slices.Insert(r, stop+1, x)
		}, traces.InvariantStop, "already"},
		{"it stops before the box has ended", func(r keep) keep {
			r[stop-1], r[stop] = r[stop], r[stop-1]
			return r
		}, traces.InvariantStop, "stopped at"},
		{"none has stopped", func(r keep) keep { return slices.Delete(r, stop, stop+1) }, traces.InvariantStop, "no card has stopped"},
		{"a packet is lost", func(r keep) keep { i := stranded(1); return slices.Delete(r, i, i+1) }, traces.InvariantConservation, "1 of 200 packets are still inside"},
		{"a packet upstream is lost", func(r keep) keep { i := stranded(0); return slices.Delete(r, i, i+1) }, traces.InvariantConservation, "1 of 200 packets are still inside"},
		{"stranded for no reason", func(r keep) keep { r[stranded(0)].Reason = 0; return r }, traces.InvariantFields, "stranded without a reason"},
		{"stranded, and forwarded all the same", func(r keep) keep {
			i := stranded(0)
			x := r[i]
			x.ID, x.Verdict, x.Reason = 0, traces.VerdictForwarded, 0
			return slices.Insert(r, i+1, x)
		}, traces.InvariantConservation, "left already, stranded"},
		{"stranded, and moves", func(r keep) keep {
			i := stranded(0)
			x := r[i]
			x.ID, x.Kind, x.Event, x.Verdict, x.Reason, x.Bytes = 0, traces.KindReceive, traces.ReceiveHeader, 0, 0, 0
			return slices.Insert(r, i+1, x)
		}, traces.InvariantStop, "was stranded"},
		{"a buffer too few", func(r keep) keep { r[level(traces.LevelBuffers, 0, traces.NoCard)].Count++; return r }, traces.InvariantReturn, "card 0 has 1 free buffers of 0"},
		{"credits for a card that works", func(r keep) keep { r[level(traces.LevelCredits, 0, 2)].Count--; return r }, traces.InvariantReturn, "card 0 has 3 credits of 4 for card 2"},
		{"more upstream than stay", func(r keep) keep {
			for i := range r {
				if r[i].Verdict == traces.VerdictStranded && r[i].Card == 0 {
					r[i].Card = 1
				}
			}
			slices.SortStableFunc(r, func(a, b traces.Record) int {
				if a.End != b.End {
					return int(min(1, max(-1, a.End-b.End)))
				}
				return int(a.Card) - int(b.Card)
			})
			for i := range r {
				if r[i].Verdict == traces.VerdictStranded {
					r[i].ID = 0
				}
			}
			return r
		}, traces.InvariantReturn, "packets are still upstream of card 0"},
		{"the cut box is longer than its cycles", func(r keep) keep { r[stop-1].Cycles += 10; return r }, traces.InvariantClock, "10"},
	} {
		v := traces.NewValidator(lim)
		bad := c.change(slices.Clone(rs))
		for i := range bad {
			_ = v.Record(&bad[i]) // tells with FailFast only
		}
		_ = v.Finish(true)
		if !slices.ContainsFunc(v.Violations(), func(x *traces.Violation) bool { return x.Invariant == c.inv && strings.Contains(x.Error(), c.detail) }) {
			t.Errorf("%s: %v", c.name, v.Violations())
		}
	}
}

// TestStoppedRecordFormats: every format takes a record with a stopped card, and
// those that can be read give it back.
func TestStoppedRecordFormats(t *testing.T) {
	rs, _, meta := stoppedRun(t)
	shows := map[string]string{"VCD": "sstopped ", "Chrome trace": `"stopped"`, "CSV": "stop,", "listing": `verdict="stranded" reason="no credit"`}
	for _, f := range traces.Formats() {
		path := filepath.Join(t.TempDir(), "run"+f.Extensions[0])
		w, err := traces.CreateWriter(path, meta)
		if err != nil {
			t.Fatal(err)
		}
		for i := range rs {
			if err := w.Record(&rs[i]); err != nil {
				t.Fatalf("%s: %v", f.Name, err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatalf("%s: %v", f.Name, err)
		}
		b, err := os.ReadFile(path)
		if err != nil || len(b) == 0 || !bytes.Contains(b, []byte(shows[f.Name])) {
			t.Errorf("%s: %d bytes, %v; want %q in it", f.Name, len(b), err, shows[f.Name])
		}
		if !f.Readable {
			continue
		}
		rd, err := traces.OpenReader(path)
		if err != nil {
			t.Fatalf("%s: %v", f.Name, err)
		}
		var got keep
		var r traces.Record
		for {
			more, err := rd.Next(&r)
			if err != nil {
				t.Fatalf("%s: %v", f.Name, err)
			}
			if !more {
				break
			}
			got = append(got, r)
		}
		rd.Close()
		if d := cmp.Diff([]traces.Record(rs), []traces.Record(got)); d != "" {
			t.Errorf("%s (-written +read):\n%s", f.Name, d)
		}
	}
}
