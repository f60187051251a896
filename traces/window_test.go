package traces

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"spinesim/sim/des"
)

// sliceReader reads from a slice.
type sliceReader struct {
	meta *Meta
	recs []Record
}

func (s *sliceReader) Meta() *Meta  { return s.meta.clone() }
func (s *sliceReader) Close() error { return nil }
func (s *sliceReader) Next(r *Record) (bool, error) {
	if len(s.recs) == 0 {
		return false, nil
	}
	*r, s.recs = s.recs[0], s.recs[1:]
	return true, nil
}

func TestCut(t *testing.T) {
	recs := sample(t, 21, 5000)
	mid := recs[2500].End
	tests := map[string]struct {
		f    Filter
		keep func(r *Record) bool
	}{
		"all":     {Filter{}, func(*Record) bool { return true }},
		"from":    {Filter{From: mid}, func(r *Record) bool { return r.End >= mid }},
		"to":      {Filter{To: mid}, func(r *Record) bool { return r.Start <= mid }},
		"window":  {Filter{From: mid, To: mid + 1e6}, func(r *Record) bool { return r.End >= mid && r.Start <= mid+1e6 }},
		"packets": {Filter{Packets: []PacketRange{{5, 7}, {30, 0}}}, func(r *Record) bool { return r.Packet >= 5 && r.Packet <= 7 || r.Packet >= 30 }},
		"cards": {Filter{Cards: []uint8{1, 3}}, func(r *Record) bool {
			return r.Card == 1 || r.Card == 3 || r.Kind == KindTransfer && (r.Peer == 1 || r.Peer == 3)
		}},
		"kinds": {Filter{Kinds: []Kind{KindDepart, KindLeave}}, func(r *Record) bool { return r.Kind == KindDepart || r.Kind == KindLeave }},
		"several": {Filter{From: mid, Cards: []uint8{0}, Kinds: []Kind{KindBox}, Packets: []PacketRange{{1, 1 << 60}}}, func(r *Record) bool {
			return r.End >= mid && r.Card == 0 && r.Kind == KindBox && r.Packet > 0
		}},
	}
	for name, test := range tests {
		var want []Record
		for i := range recs {
			if test.keep(&recs[i]) {
				want = append(want, recs[i])
			}
		}
		var got, live collect
		n, err := Cut(&sliceReader{recs: recs}, &got, test.f)
		if err != nil || n != uint64(len(want)) || len(want) == 0 {
			t.Errorf("%s: %d records, %v; want %d", name, n, err, len(want))
		}
		if d := firstDifference(got, want); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		w := NewWindow(test.f, &live)
		for i := range recs {
			_ = w.Record(&recs[i])
			if test.f.Keeps(&recs[i]) != test.keep(&recs[i]) {
				t.Fatalf("%s: Keeps disagrees on record %d", name, i)
			}
		}
		if d := firstDifference(live, want); d != "" {
			t.Errorf("%s, live: %s", name, d)
		}
	}
	for _, bad := range []Filter{{From: 5, To: 4}, {Packets: []PacketRange{{4, 3}}}, {Kinds: []Kind{200}}} {
		if _, err := Cut(&sliceReader{recs: recs}, new(collect), bad); err == nil {
			t.Errorf("filter %+v is accepted", bad)
		}
	}
	full := errors.New("full")
	if n, err := Cut(&sliceReader{recs: recs}, failSink{full}, Filter{}); n != 0 || err != full {
		t.Errorf("cut into what fails: %d, %v", n, err)
	}
	if n, err := Convert(&sliceReader{recs: recs}, failSink{full}); n != 0 || err != full {
		t.Errorf("convert into what fails: %d, %v", n, err)
	}
}

func TestAfterPackets(t *testing.T) {
	recs := sample(t, 21, 3000)
	for _, n := range []uint64{0, 1, 10, 1000} {
		var got collect
		a := NewAfterPackets(n, &got)
		var want []Record
		left := n
		for i := range recs {
			_ = a.Record(&recs[i])
			if left == 0 {
				want = append(want, recs[i])
			} else if recs[i].Kind == KindDepart {
				left--
			}
		}
		if d := firstDifference(got, want); d != "" {
			t.Errorf("after %d packets: %s", n, d)
		}
	}
}

func TestBeforeDrop(t *testing.T) {
	recs := sample(t, 21, 60000)
	var drops []int
	for i, r := range recs {
		if r.Kind == KindLeave && r.Verdict == VerdictDropped {
			drops = append(drops, i)
		}
	}
	if len(drops) < 3 {
		t.Fatalf("only %d drops", len(drops))
	}
	for _, test := range []struct {
		n, drops int
		reason   Reason
	}{{50, 0, ReasonNone}, {1, 0, ReasonNone}, {50000, 0, ReasonNone}, {50, 2, ReasonNone}, {50, 0, ReasonTTLExpired}, {50, 0, ReasonMartian}} {
		var want []Record
		last, count, all := 0, 0, uint64(0)
		for _, d := range drops {
			if test.reason != ReasonNone && recs[d].Reason != test.reason {
				continue
			}
			all++
			if test.drops > 0 && count == test.drops {
				continue
			}
			want = append(want, recs[max(last, d+1-test.n):d+1]...)
			last = d + 1
			count++
		}
		var got collect
		b := NewBeforeDrop(test.n, test.reason, test.drops, &got)
		for i := range recs {
			_ = b.Record(&recs[i])
		}
		if d := firstDifference(got, want); d != "" {
			t.Errorf("%+v: %s", test, d)
		}
		if b.Drops() != all {
			t.Errorf("%+v: %d drops, want %d", test, b.Drops(), all)
		}
	}
}

func TestAroundGap(t *testing.T) {
	recs := sample(t, 22, 30000)
	var gaps []GapSpan // by the slow, obvious way
	last := -1
	for i, r := range recs {
		if r.Kind != KindDepart {
			continue
		}
		if last >= 0 {
			gaps = append(gaps, GapSpan{recs[last].End, r.End, recs[last].Packet, r.Packet})
		}
		last = i
	}
	slices.SortStableFunc(gaps, func(a, b GapSpan) int { return cmpTime(b.Length(), a.Length()) })

	worst := NewWorstGaps(5)
	for i := range recs {
		_ = worst.Record(&recs[i])
	}
	if d := cmp.Diff(gaps[:5], worst.Gaps()); d != "" {
		t.Error(d)
	}
	open := func() (Reader, error) { return &sliceReader{recs: recs}, nil }
	const margin = 200 * des.Microsecond
	for k := 1; k <= 5; k++ {
		g := gaps[k-1]
		var want []Record
		for _, r := range recs {
			if r.End >= g.From-margin && r.Start <= g.To+margin {
				want = append(want, r)
			}
		}
		var got, live collect
		found, n, err := CutAroundGap(open, k, margin, &got)
		if err != nil || found != g || n != uint64(len(want)) {
			t.Errorf("gap %d: %+v, %d records, %v; want %+v, %d", k, found, n, err, g, len(want))
		}
		if d := firstDifference(got, want); d != "" {
			t.Errorf("gap %d: %s", k, d)
		}
		a := NewAroundGap(k, margin, 4096, &live)
		for i := range recs {
			_ = a.Record(&recs[i])
		}
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
		if got, ok := a.Gap(); !ok || got != g {
			t.Errorf("gap %d, live: %+v, want %+v", k, got, g)
		}
		if d := firstDifference(live, want); d != "" {
			t.Errorf("gap %d, live: %s", k, d)
		}
		if len(a.windows) > k {
			t.Errorf("%d windows are held for gap %d", len(a.windows), k)
		}
	}
	if _, _, err := CutAroundGap(open, len(gaps)+1, 0, new(collect)); !errors.Is(err, ErrNoGap) {
		t.Errorf("one gap more than there is: %v", err)
	}
	if _, _, err := CutAroundGap(open, 0, 0, new(collect)); err == nil {
		t.Error("gap number 0 exists")
	}
	if err := NewAroundGap(3, 0, 10, new(collect)).Close(); !errors.Is(err, ErrNoGap) {
		t.Errorf("no gap, live: %v", err)
	}
}

func TestDiff(t *testing.T) {
	recs := sample(t, 23, 4000)
	metaA, metaB := synthMeta(23), synthMeta(24)
	metaB.Cards[0].QueueOrder = Order{6, 3, 4, 5, 0, 1, 2}
	metaB.ScenarioYAML = "name: other\ncards: 4\n"
	read := func(m *Meta, r []Record) Reader { return &sliceReader{m, r} }

	if d, err := Diff(read(metaA, recs), read(metaB, sampleExpanded(t, 23, 4000)), 3); d != nil || err != nil {
		t.Errorf("an expansion makes a difference: %+v, %v", d, err)
	}
	// A record with a chain of causes behind it.
	at := 3000
	for recs[at].Kind != KindBox || recs[at].Event != DMAStartHeader {
		at++
	}
	other := slices.Clone(recs)
	other[at].End++
	other[at].Stall++
	d, err := Diff(read(metaA, recs), read(metaB, other), 5)
	if err != nil {
		t.Fatal(err)
	}
	if d.Index != uint64(at) || *d.A != recs[at] || *d.B != other[at] {
		t.Errorf("parts at %d, want %d", d.Index, at)
	}
	if diff := cmp.Diff([]string{"end", "stall"}, d.Fields); diff != "" {
		t.Error(diff)
	}
	if s := firstDifference(d.Before, recs[at-5:at]); s != "" {
		t.Error(s)
	}
	if s := firstDifference(d.AfterA, recs[at+1:at+6]); s != "" {
		t.Error(s)
	}
	if s := firstDifference(d.AfterB, recs[at+1:at+6]); s != "" {
		t.Error(s)
	}
	// The chain, by the slow way.
	var chain []Record
	for want := recs[at].Cause; want != 0; {
		i := slices.IndexFunc(recs[:at], func(r Record) bool { return r.ID == want })
		if i < 0 {
			break
		}
		chain = append(chain, recs[i])
		want = recs[i].Cause
	}
	if len(chain) < 5 {
		t.Fatalf("chain of %d", len(chain))
	}
	if s := firstDifference(d.CausesA, chain); s != "" {
		t.Error(s)
	}
	var b strings.Builder
	if _, err := d.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"seed: 23, and 24", "in queue order: Q0 Q1 Q2 Q3 Q4 Q5 Q6, and Q6 Q3 Q4 Q5 Q0 Q1 Q2", `scenario line 1: "name: synthetic", and "name: other"`,
		"differ in end, stall", "causes in the first record", "\n- ", "\n+ ", "\n= ",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is missing in\n%s", want, b.String())
		}
	}
	// One that ends.
	d, err = Diff(read(nil, recs[:100]), read(nil, recs), 2)
	if err != nil || d.A != nil || d.B == nil || d.Index != 100 || len(d.AfterB) != 2 || len(d.AfterA) != 0 || len(d.Meta) != 0 {
		t.Errorf("the first ends: %+v, %v", d, err)
	}
	b.Reset()
	_, _ = d.WriteTo(&b)
	if !strings.Contains(b.String(), "the first record ends here") {
		t.Error(b.String())
	}
	d, err = Diff(read(nil, nil), read(nil, recs), 0)
	if err != nil || d.Index != 0 || d.B == nil {
		t.Errorf("the first is empty: %+v, %v", d, err)
	}
}
