package plots

import (
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"spinesim/sim/des"
	"spinesim/traces"
)

func TestTimelineByHand(t *testing.T) {
	depart := func(at des.Time) traces.Record {
		return traces.Record{Kind: traces.KindDepart, Start: at, End: at}
	}
	recs := []traces.Record{
		level(5*us, 1), depart(10 * us), handler(traces.RxCheckHeader, 20*us, 22*us), handler(traces.RxCheckHeader, 24*us, 26*us),
		handler(traces.PeerToPeerStart, 30*us, 33*us), level(31*us, 3), depart(70 * us), level(71*us, 2), handler(traces.PeerToPeerStart, 80*us, 83*us), depart(125 * us),
		{Kind: traces.KindDepart, Card: 1, Start: 90 * us, End: 90 * us}, depart(400 * us),
	}
	tl := Timeline{From: 20 * us, To: 200 * us}
	d := tl.series(recs)
	type series struct{ Gaps, Runs, Backlog [][2]float64 }
	pairs := func(ps []point) (out [][2]float64) {
		for _, p := range ps {
			out = append(out, [2]float64{p.at.Microseconds(), p.y})
		}
		return out
	}
	want := series{
		Gaps: [][2]float64{{70, 60}, {125, 55}}, Runs: [][2]float64{{30, 2}, {80, 0}}, Backlog: [][2]float64{{20, 1}, {31, 3}, {71, 2}},
	}
	if diff := cmp.Diff(want, series{pairs(d.gaps), pairs(d.runs), pairs(d.backlog)}); diff != "" {
		t.Error(diff)
	}
	if _, err := tl.Plots(recs[:3]); !errors.Is(err, ErrNoEvents) {
		t.Errorf("without a gap: %v", err)
	}
	if _, err := (&Timeline{From: 3, To: 3}).Plots(recs); err == nil {
		t.Error("an empty span is drawn")
	}
}

// TestTimelineLegible: no text over another at any length, and a long run's
// figure stays small, for values too many to be told apart are drawn as ranges.
func TestTimelineLegible(t *testing.T) {
	r := replay(t)
	for _, span := range []des.Time{130 * us, des.Millisecond, 13 * des.Millisecond} {
		tl := Timeline{Card: r.Ingress, From: r.Slow.From, To: r.Slow.From + span}
		if span == 13*des.Millisecond {
			tl.From, tl.To = r.Span.From, r.Span.To
		}
		ps, err := tl.Plots(r.Records)
		if err != nil {
			t.Fatal(span, err)
		}
		c := drawnOn(Tall, column(ps))
		c.checkTexts(t)
	}
	var long []traces.Record
	for i := range des.Time(200_000) {
		long = append(long, traces.Record{Kind: traces.KindDepart, Start: i * 60 * us, End: i * 60 * us}, level(i*60*us, uint32(i%7)))
	}
	tl := Timeline{From: 0, To: 12 * des.Second}
	ps, err := tl.Plots(long)
	if err != nil {
		t.Fatal(err)
	}
	c := drawnOn(Tall, column(ps))
	n := 0
	for _, f := range append(c.fills, c.lines...) {
		n += len(f.boxes)
	}
	if n > 12_000 {
		t.Errorf("%d parts are drawn of 400,000 records", n)
	}
	c.checkTexts(t)
}

// TestRangesHoldEveryValue compares with all values, gathered one by one.
func TestRangesHoldEveryValue(t *testing.T) {
	var ps []point
	for i := range 5000 {
		ps = append(ps, point{des.Time(i) * us, float64((i * 7919) % 113)})
	}
	x := axisOf(0, 5000*us)
	rs := ranges(ps, x)
	k := 0
	for _, p := range ps {
		for k+1 < len(rs) && rs[k+1].x <= x(p.at) {
			k++
		}
		if p.y < rs[k].lo || p.y > rs[k].hi {
			t.Fatalf("value %v at %v is not within %v to %v", p.y, p.at, rs[k].lo, rs[k].hi)
		}
	}
	if len(rs) > 5000 || len(rs) < 100 {
		t.Errorf("%d ranges", len(rs))
	}
}

// TestCovered compares with the overlap of every span and every stretch.
func TestCovered(t *testing.T) {
	var spans []Span
	for i := range des.Time(700) {
		from := (i*13 + i*i%7) * us
		spans = append(spans, Span{from, from + (1+i%9)*us})
	}
	x := axisOf(0, 9000*us)
	got := covered(spans, x, 0, 500)
	for i := range got {
		sum := 0.0
		lo, hi := float64(i)*float64(binWidth), float64(i+1)*float64(binWidth)
		for _, s := range spans {
			sum += max(0, min(hi, float64(x(s.To)))-max(lo, float64(x(s.From))))
		}
		if want := sum / float64(binWidth) * shadeLevels; math.Abs(float64(got[i])-min(want, shadeLevels)) > 0.51 {
			t.Fatalf("stretch %d: %d of %d covered, want %.2f", i, got[i], shadeLevels, want)
		}
	}
}
