package traces

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"spinesim/sim/des"
)

func TestRecorderOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	var want []Record
	end := des.Time(0)
	for range 500 {
		end += des.Time(1 + rng.IntN(3))
		for n := rng.IntN(12); n > 0; n-- {
			want = append(want, Record{End: end, Card: uint8(rng.IntN(256)), Packet: uint64(len(want))})
		}
	}
	var got collect
	r := NewRecorder(&got)
	for i := range want {
		r.Add(&want[i])
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	slices.SortStableFunc(want, func(a, b Record) int {
		if a.End != b.End {
			return cmpTime(a.End, b.End)
		}
		return int(a.Card) - int(b.Card)
	})
	if d := firstDifference(got, want); d != "" {
		t.Error(d)
	}
}

type discard struct{ n int }

func (d *discard) Record(*Record) error { d.n++; return nil }

func TestRecorderAllocates(t *testing.T) {
	var d discard
	var f Fingerprint
	r := NewRecorder(&d, &f)
	rec := Record{Kind: KindBox}
	batch := func() {
		for range 50 {
			rec.End += 30000
			for _, card := range []uint8{3, 0, 200, 0, 1, 64, 255, 3} {
				rec.Card = card
				rec.ID = r.NextID(card)
				r.Add(&rec)
			}
		}
	}
	batch()
	if n := testing.AllocsPerRun(20, batch); n != 0 {
		t.Errorf("%v allocations in 400 records", n)
	}
	if d.n == 0 || f.Records() == 0 {
		t.Error("nothing was passed on")
	}
}

func TestRecorderNil(t *testing.T) {
	var r *Recorder
	r.Add(&Record{})
	r.SetExpanding(true)
	if r.Expanding() || r.NextID(3) != 0 || r.Close() != nil || r.Err() != nil {
		t.Error("a nil recorder does something")
	}
}

func TestRecorderNumbers(t *testing.T) {
	r := NewRecorder()
	for n := uint64(1); n <= 3; n++ {
		for _, card := range []uint8{0, 7, HostCard, NoCard} {
			if id := r.NextID(card); id.Card() != card || id.Number() != n {
				t.Errorf("card %d, number %d: %v", card, n, id)
			}
		}
	}
	if r.Expanding() {
		t.Error("expands unasked")
	}
	if r.SetExpanding(true); !r.Expanding() {
		t.Error("does not expand")
	}
}

type failSink struct{ err error }

func (f failSink) Record(*Record) error { return f.err }

func TestRecorderErrors(t *testing.T) {
	first, second := errors.New("first"), errors.New("second")
	var d discard
	r := NewRecorder(failSink{first}, &d, failSink{second})
	r.Add(&Record{End: 1})
	if r.Err() != nil {
		t.Error("error before anything was passed on")
	}
	r.Add(&Record{End: 2})
	if r.Err() != first {
		t.Errorf("error %v", r.Err())
	}
	if r.Close() != first || d.n != 2 {
		t.Errorf("close: %v; the sink behind got %d records", r.Close(), d.n)
	}
	r = NewRecorder(&d)
	r.Add(&Record{End: 5})
	r.Add(&Record{End: 4})
	if err := r.Close(); !errors.Is(err, ErrOrder) {
		t.Errorf("a record of the past: %v", err)
	}
}

func TestFingerprint(t *testing.T) {
	recs := sample(t, 3, 5000)
	sum := func(recs []Record) string {
		var f Fingerprint
		for i := range recs {
			_ = f.Record(&recs[i])
		}
		return f.String()
	}
	want := sum(recs)
	if len(want) != 16 {
		t.Errorf("fingerprint %q", want)
	}
	if other := sum(sample(t, 4, 5000)); other == want {
		t.Error("another seed, the same fingerprint")
	}
	// An expansion does not count.
	expanded := sampleExpanded(t, 3, 5000)
	if len(expanded) < 2*len(recs) {
		t.Errorf("an expansion of %d records has %d", len(recs), len(expanded))
	}
	if got := sum(expanded); got != want {
		t.Error("an expansion changes it")
	}
	// Every field of every kind of record does, and so do order and number.
	change := []func(r *Record){
		func(r *Record) { r.Start-- }, func(r *Record) { r.End++ }, func(r *Record) { r.Ready++ },
		func(r *Record) { r.ID++ }, func(r *Record) { r.Cause++ }, func(r *Record) { r.Packet++ },
		func(r *Record) { r.Bytes++ }, func(r *Record) { r.Count++ }, func(r *Record) { r.Cycles++ },
		func(r *Record) { r.Stall++ }, func(r *Record) { r.Event++ }, func(r *Record) { r.Card++ },
		func(r *Record) { r.Peer++ }, func(r *Record) { r.Queue++ }, func(r *Record) { r.Reason++ },
		func(r *Record) { r.Verdict++ }, func(r *Record) { r.Kind = KindNone },
	}
	seen := map[string]int{want: -1}
	for at := 0; at < len(recs); at += 499 {
		for i, c := range change {
			old := recs[at]
			c(&recs[at])
			got := sum(recs)
			recs[at] = old
			if other, ok := seen[got]; ok {
				t.Errorf("change %d of record %d gives the fingerprint of change %d", i, at, other)
			}
			seen[got] = at*100 + i
		}
	}
	recs[10], recs[11] = recs[11], recs[10]
	if _, ok := seen[sum(recs)]; ok {
		t.Error("order does not count")
	}
	recs[10], recs[11] = recs[11], recs[10]
	if _, ok := seen[sum(recs[:4999])]; ok || sum(nil) == sum(make([]Record, 1)) {
		t.Error("number does not count")
	}
}

func BenchmarkFingerprint(b *testing.B) {
	recs := sample(b, 3, 5000)
	var f Fingerprint
	for i := 0; b.Loop(); i++ {
		_ = f.Record(&recs[i%len(recs)])
	}
}

func BenchmarkRecorder(b *testing.B) {
	recs := sample(b, 3, 5000)
	run := func(name string, sink Sink) {
		b.Run(name, func(b *testing.B) {
			r := NewRecorder(sink)
			step := recs[len(recs)-1].End
			base := des.Time(0)
			i := 0
			for b.Loop() {
				rec := recs[i]
				rec.End += base
				r.Add(&rec)
				if i++; i == len(recs) {
					i, base = 0, base+step
				}
			}
		})
	}
	run("nothing", new(discard))
	run("buffer", NewBuffer(nil, 1<<24))
	run("ring", NewRing(nil, 100000))
}
