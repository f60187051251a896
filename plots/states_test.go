package plots

import (
	"context"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"spinesim/sim"
	"spinesim/sim/des"
	"spinesim/traces"
)

func level(at des.Time, n uint32) traces.Record {
	return traces.Record{Kind: traces.KindLevel, Event: traces.LevelBacklog, Start: at, End: at, Ready: at, Count: n}
}

func transfer(ready, start, end des.Time) traces.Record {
	return traces.Record{Kind: traces.KindTransfer, Event: traces.TransferBody, Ready: ready, Start: start, End: end}
}

func handler(ev traces.Event, from, to des.Time) traces.Record {
	return traces.Record{Kind: traces.KindBox, Event: ev, Start: from, End: to}
}

func TestStatesByHand(t *testing.T) {
	for _, tc := range []struct {
		name string
		recs []traces.Record
		want States
	}{
		{"nothing", nil, States{}},
		{"two wait", []traces.Record{level(10*us, 1), level(12*us, 2), level(20*us, 1), level(50*us, 0), transfer(10*us, 11*us, 60*us)},
			States{Slow: []Span{{12 * us, 20 * us}}}},
		{"one waits for an idle engine, longer than a chain", []traces.Record{level(10*us, 1), level(40*us, 0)},
			States{Slow: []Span{{10 * us, 40 * us}}}},
		{"one waits for an idle engine, shorter than a chain", []traces.Record{level(10*us, 1), level(15*us, 0)}, States{}},
		{"a busy engine is not idle", []traces.Record{level(10*us, 1), transfer(12*us, 13*us, 50*us), level(55*us, 0)}, States{}},
		{"idle and crowded join", []traces.Record{level(10*us, 1), level(15*us, 2), level(20*us, 1), level(50*us, 0)},
			States{Slow: []Span{{10 * us, 50 * us}}}},
		{"of another card", []traces.Record{{Kind: traces.KindLevel, Event: traces.LevelBacklog, End: 10 * us, Count: 5, Card: 1}}, States{}},
		{"three in a row", []traces.Record{
			handler(traces.RxCheckHeader, 0, 2*us), handler(traces.PeerToPeerStart, 5*us, 6*us),
			handler(traces.RxCheckHeader, 10*us, 12*us), handler(traces.PeerToPeerStart, 15*us, 16*us),
			handler(traces.RxCheckHeader, 20*us, 22*us),
		}, States{Fast: []Span{{0, 20 * us}}}},
		{"two in a row are no window", []traces.Record{
			handler(traces.RxCheckHeader, 0, 2*us), handler(traces.PeerToPeerStart, 5*us, 6*us), handler(traces.RxCheckHeader, 10*us, 12*us),
		}, States{}},
		{"a receive run ends the window", []traces.Record{
			handler(traces.RxCheckHeader, 0, 2*us), handler(traces.PeerToPeerStart, 5*us, 6*us),
			handler(traces.RxCheckHeader, 10*us, 12*us), handler(traces.PeerToPeerStart, 15*us, 16*us),
			handler(traces.RxCheckHeader, 20*us, 22*us), handler(traces.RxCheckHeader, 30*us, 32*us), handler(traces.PeerToPeerStart, 35*us, 36*us),
		}, States{Fast: []Span{{0, 20 * us}}}},
	} {
		got := FindStates(tc.recs, 0, 0, 100*us, 12*us)
		if d := cmp.Diff(tc.want, got); d != "" {
			t.Errorf("%s: %s", tc.name, d)
		}
	}
}

func sumSpans(ss []Span) (d des.Time) {
	for _, s := range ss {
		d += s.To - s.From
	}
	return d
}

// TestStatesAreMeasures: the spans that are shaded sum up to the shares that
// the measures give, on machines that differ.
func TestStatesAreMeasures(t *testing.T) {
	for _, settings := range [][]string{
		{"traffic.arrivals.rate=15000 packets/s"},
		{"traffic.arrivals.rate=11000 packets/s"},
		{"policy=pci-first", "traffic.arrivals.rate=16000 packets/s"},
		{"firmware.receive=whole", "traffic.arrivals.rate=14000 packets/s"},
		{"traffic.arrivals.process=saturating"},
	} {
		sc, err := sim.Load("fig6.4", append(settings, "traffic.packets=1500")...)
		if err != nil {
			t.Fatal(err)
		}
		keep := &keeper{}
		d := NewDistributions()
		r, err := sim.Run(context.Background(), sc, sim.Options{Sinks: []traces.Sink{keep, d}})
		if err != nil {
			t.Fatal(err)
		}
		spec, _, err := sc.RecordSpec()
		if err != nil {
			t.Fatal(err)
		}
		end := des.Time(math.Round(float64(r.Observed) * 1e12))
		got := FindStates(keep.records, 0, 0, end, spec.ChainHandlers)
		slow, fast := float64(sumSpans(got.Slow))/float64(end), float64(sumSpans(got.Fast))/float64(end)
		if math.Abs(slow-float64(r.SlowShare)) > 1e-9 || math.Abs(fast-float64(r.FastShare)) > 1e-9 {
			t.Errorf("%v: slow %.6f and fast %.6f of the time, the measures say %v and %v", settings, slow, fast, r.SlowShare, r.FastShare)
		}
		if r.SlowShare == 0 && r.FastShare == 0 {
			t.Errorf("%v: neither slow nor fast at any time", settings)
		}
		for _, x := range []struct {
			name string
			got  CDF
			want traces.Distribution
		}{
			{"gap", TimeCDF("", d.Gap), r.Gap.Distribution}, {"ingress", TimeCDF("", d.Ingress), r.Latency.Ingress.Distribution},
			{"upstream", TimeCDF("", d.Upstream), r.Latency.Upstream}, {"total", TimeCDF("", d.Total), r.Latency.Total},
		} {
			if x.got.N != x.want.N {
				t.Errorf("%v: %d values of %s, the measures have %d", settings, x.got.N, x.name, x.want.N)
			}
			for q, want := range map[float64]traces.Real{0.5: x.want.P50, 0.99: x.want.P99, 1: x.want.Max} {
				if v := x.got.Quantile(q); math.Abs(v/float64(want)-1) > 0.005 && math.Abs(v-float64(want)) > 0.01 {
					t.Errorf("%v: %s at quantile %v is %v, the measures say %v", settings, x.name, q, v, want)
				}
			}
		}
	}
}

type keeper struct{ records []traces.Record }

func (k *keeper) Record(r *traces.Record) error {
	k.records = append(k.records, *r)
	return nil
}

func TestDistributionsAllocateNothing(t *testing.T) {
	d := NewDistributions()
	recs := hand()
	_ = d.Record(&recs[0])
	if n := testing.AllocsPerRun(100, func() {
		for i := range recs {
			if err := d.Record(&recs[i]); err != nil {
				t.Fatal(err)
			}
		}
	}); n > 0 {
		t.Errorf("%v allocations a record stream", n)
	}
}
