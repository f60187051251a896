package sim

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"spinesim/sim/des"
	"spinesim/spine"
	"spinesim/spine/policy"
	"spinesim/traces"
)

// step is what the windows' finder looks at, in µs.
type step struct {
	at     des.Time
	what   byte // r: receive, s: start of a DMA, d: departure, b: backlog of 2
	packet uint64
}

func feed(t *testing.T, w *Windows, steps []step) {
	t.Helper()
	for _, x := range steps {
		r := traces.Record{Start: x.at * des.Microsecond, End: (x.at + 2) * des.Microsecond, Packet: x.packet, Kind: traces.KindBox}
		switch x.what {
		case 'r':
			r.Event = traces.RxCheckHeader
		case 's':
			r.Event = traces.PeerToPeerStart
		case 'd':
			r.Kind, r.Event, r.End = traces.KindDepart, traces.NoEvent, r.Start
		case 'b':
			r.Kind, r.Event, r.Count = traces.KindLevel, traces.LevelBacklog, 2
		}
		if err := w.Record(&r); err != nil {
			t.Fatal(err)
		}
	}
}

// TestBestWindow: of a stretch with the shorter mean and one whose periods are
// even, the even one is drawn; the packet that the arrows follow is the one
// received second, whatever numbers packets lost in between have taken.
func TestBestWindow(t *testing.T) {
	w := &Windows{}
	feed(t, w, []step{
		{100, 'r', 1}, {110, 's', 1}, {140, 'r', 2}, {150, 's', 2}, {220, 'r', 3}, {230, 's', 3}, {255, 'r', 4}, {260, 's', 4},
		{270, 'b', 0}, // the stretch is over
		{400, 'r', 10}, {410, 's', 10}, {455, 'r', 13}, {470, 's', 13}, {480, 'd', 10},
		{511, 'r', 14}, {530, 's', 14}, {555, 'd', 13}, {570, 'r', 17},
	})
	want := Window{
		Span:  Span{399 * des.Microsecond, 529 * des.Microsecond},
		Found: true, Period: 170 * des.Microsecond / 3, Packet: 13, Latency: 100 * des.Microsecond,
	}
	if d := cmp.Diff(want, w.Best()); d != "" {
		t.Errorf("best window (-want +got):\n%s", d)
	}
	// A packet that departs later is followed to its departure.
	w = &Windows{}
	feed(t, w, []step{
		{400, 'r', 10}, {410, 's', 10}, {455, 'r', 13}, {470, 's', 13},
		{511, 'r', 14}, {530, 's', 14}, {570, 'r', 17}, {590, 'd', 13}, {600, 'd', 14},
	})
	if got := w.Best().Latency; got != 135*des.Microsecond {
		t.Errorf("latency %v, want 135 µs", got)
	}
}

// TestSlowWindow: the longest run of receives, with the packet that was
// received second in it.
func TestSlowWindow(t *testing.T) {
	w := &Windows{}
	feed(t, w, []step{
		{10, 'r', 1}, {20, 's', 1}, {30, 'r', 2}, {50, 'r', 3}, {70, 's', 2},
		{80, 'r', 4}, {100, 'r', 8}, {120, 'r', 9}, {140, 's', 3}, {150, 'r', 11}, {170, 'r', 12},
	})
	want := Window{Span: Span{74 * des.Microsecond, 204 * des.Microsecond}, Found: true, Run: 3, Packet: 8}
	if d := cmp.Diff(want, w.Slow()); d != "" {
		t.Errorf("slow window (-want +got):\n%s", d)
	}
	if w.Best().Found {
		t.Error("a fast stretch was found where there is none")
	}
}

// TestReplayDraws: the best-case graph of the default scenario holds what
// Figure 6.4 holds: three receives, two DMAs at least, and a followed packet
// that goes all the way (thesis p.107).
func TestReplayDraws(t *testing.T) {
	r, err := RunReplay(t.Context(), mustLoad(t, "fig6.4", "traffic.packets=30000"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if !r.Best.Found || !r.Slow.Found {
		t.Fatalf("best window found: %t, slow: %t", r.Best.Found, r.Slow.Found)
	}
	n := map[traces.Event]int{}
	followed := map[traces.Event]bool{}
	for _, x := range r.Records {
		if x.Kind == traces.KindBox && x.Card == r.Ingress && x.Start >= r.Best.From && x.Start < r.Best.To {
			n[x.Event]++
			followed[x.Event] = followed[x.Event] || x.Packet == r.Best.Packet
		}
	}
	if n[traces.RxCheckHeader] != 3 || n[traces.PeerToPeerStart] < 2 {
		t.Errorf("%d receives and %d DMA starts, want 3 and at least 2", n[traces.RxCheckHeader], n[traces.PeerToPeerStart])
	}
	for _, e := range []traces.Event{traces.RxCheckHeader, traces.RxCheckBody, traces.EnqRouterIn, traces.RouterIn, traces.EnqIPOutput, traces.PeerToPeerStart, traces.DMAStartHandler, traces.DMAGenericStart, traces.DMAStartBody} {
		if !followed[e] {
			t.Errorf("%v of the followed packet is not in the window", e)
		}
	}
}

// TestReplayRunsTheSame: the second run of a replay, which is recorded, does
// what the first one did, whose measures are printed.
func TestReplayRunsTheSame(t *testing.T) {
	sc := mustLoad(t, "fig6.4", "traffic.packets=3000")
	for name, opt := range map[string]Options{
		"scenario's own": {},
		"policy by code": {Policy: func(int) (spine.Policy, error) { return policy.NewStrict("", spine.PCIFirstOrder), nil }},
	} {
		var first, second []traces.Record
		opt.Sinks = []traces.Sink{sinkFunc(func(r *traces.Record) {
			if r.Kind == traces.KindBox {
				first = append(first, *r)
			}
		})}
		rep, err := RunReplay(t.Context(), sc, opt)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rep.Records {
			if r.Kind == traces.KindBox {
				second = append(second, r)
			}
		}
		in := slices.DeleteFunc(first, func(r traces.Record) bool {
			return r.End < rep.Span.From || r.Start > rep.Span.To || r.End > rep.Span.To
		})
		second = slices.DeleteFunc(second, func(r traces.Record) bool { return r.End > rep.Span.To })
		if len(in) == 0 {
			t.Errorf("%s: no handler in the span", name)
		}
		if d := cmp.Diff(in, second); d != "" {
			t.Errorf("%s: the recorded run differs (-first +second):\n%.2000s", name, d)
		}
	}
}
