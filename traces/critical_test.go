package traces

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"spinesim/sim/testenv"

	"github.com/google/go-cmp/cmp"

	"spinesim/sim/des"
)

// handPath is three gaps of card 0, times in µs.
//
// Gap 1, packet 1 at 100 to packet 2 at 160. Packet 2 was routed at 90 and
// waited for the engine until 100. From 100 on it could start, but the
// processor was busy:
//
//	Rx check header of packet 3 98–106   others 6
//	polls 106–107, 110–112               polls 3
//	Free buffer of packet 0 107–110      flow control 3
//	Peer to peer start 112–115, DMA start handler 116–118, DMA generic start
//	118–120, DMA start body 123–125, DMA start header 154–156   chain 11
//	polls 115–116                        polls 1
//	Rx check body of packet 3 120–123    others 3
//	body asked 125, granted 127, done 150: bus wait 2, transfer 23
//	Router In handler of packet 3 148–154: others 4 (from 150 on)
//	header 156–160                       transfer 4
//
// Sum 13 + 4 + 3 + 11 + 2 + 27 = 60. Waiting with an idle engine from 100 to
// 112, longer than 10.92, is slow; 12 of 60 make the gap a fast one.
//
// Gap 2, to packet 3 at 198: routed at 158, no credit until 175, polls to 176,
// then the chain 176–185 and 195–197, body 185–195, header 197–198:
// credit 15, polls 1, chain 11, transfer 11 = 38. The backlog is 2 from 165
// on; the engine idles with a packet waiting from 160 to 185: 25 of 38 are
// slow.
//
// Gap 3, to packet 4 at 283: it enters at 230 (source slow 32), its header is
// in at 231 (wire 1), polls to 233 (2), Rx check header to 236, no buffer
// until 240 (4), body in at 245 (wire 5), polls to 246 (1), receive and route
// to 257 (own 3 + 11), the engine sends an ACK until 259 (engine wait 2), polls
// to 260 (1), chain 260–269 and 280–282 (11), body 269–280, header 282–283
// (12): 32 + 6 + 4 + 14 + 4 + 2 + 11 + 12 = 85.
func handPath() []Record {
	h := &hand{}
	h.at(0, KindEnter, 2, 50)
	h.at(0, KindEnter, 3, 95)
	h.at(0, KindDepart, 1, 100).Peer = 1
	h.backlog(0, 1, 90)

	h.box(0, RxCheckHeader, 3, 98, 106)
	h.polls(0, 1, 0, 106, 107)
	h.box(0, FreeBuffer, 9, 107, 110)
	h.polls(0, 2, 6, 110, 112)
	h.backlog(0, 0, 112)
	h.wait(0, ReasonEngineBusy, 2, 90, 100, 112)
	h.box(0, PeerToPeerStart, 2, 112, 115)
	h.polls(0, 1, 6, 115, 116)
	h.box(0, DMAStartHandler, 2, 116, 118)
	h.box(0, DMAGenericStart, 2, 118, 120)
	h.box(0, RxCheckBody, 3, 120, 123)
	h.box(0, DMAStartBody, 2, 123, 125)
	h.transfer(0, TransferBody, 2, 125, 127, 150)
	h.polls(0, 23, 0, 125, 148)
	h.box(0, RouterIn, 3, 148, 154)
	h.box(0, DMAStartHeader, 2, 154, 156)
	h.box(0, EnqIPOutput, 3, 156, 158)
	h.backlog(0, 1, 158)
	h.transfer(0, TransferHeader, 2, 156, 156, 160)
	h.at(0, KindDepart, 2, 160).Peer = 1

	h.backlog(0, 2, 165)
	h.polls(0, 18, 6, 158, 176)
	h.backlog(0, 1, 176)
	h.wait(0, ReasonNoCredit, 3, 158, 158, 176) // the handler's record tells until when
	h.recs[len(h.recs)-1].Event = PeerToPeerStart
	h.box(0, PeerToPeerStart, 3, 176, 179).Ready = us(175)
	h.box(0, DMAStartHandler, 3, 179, 181)
	h.box(0, DMAGenericStart, 3, 181, 183)
	h.box(0, DMAStartBody, 3, 183, 185)
	h.transfer(0, TransferBody, 3, 185, 185, 195)
	h.polls(0, 10, 6, 185, 195)
	h.box(0, DMAStartHeader, 3, 195, 197)
	h.transfer(0, TransferHeader, 3, 197, 197, 198)
	h.at(0, KindDepart, 3, 198).Peer = 1
	h.backlog(0, 0, 198)

	h.at(0, KindEnter, 4, 230)
	h.engine(0, KindReceive, ReceiveHeader, 4, 230, 231)
	h.polls(0, 36, 1, 197, 233)
	h.box(0, RxCheckHeader, 4, 233, 236)
	h.wait(0, ReasonNoBuffer, 4, 236, 240, 240)
	h.engine(0, KindReceive, ReceiveBody, 4, 240, 245)
	h.polls(0, 10, 1, 236, 246)
	h.box(0, RxCheckBody, 4, 246, 249)
	h.box(0, EnqRouterIn, 4, 249, 251)
	h.box(0, RouterIn, 4, 251, 255)
	h.transfer(0, TransferAck, 8, 255, 258, 259)
	h.box(0, EnqIPOutput, 4, 255, 257)
	h.polls(0, 3, 6, 257, 260)
	h.wait(0, ReasonEngineBusy, 4, 257, 259, 260)
	h.box(0, PeerToPeerStart, 4, 260, 263)
	h.box(0, DMAStartHandler, 4, 263, 265)
	h.box(0, DMAGenericStart, 4, 265, 267)
	h.box(0, DMAStartBody, 4, 267, 269)
	h.transfer(0, TransferBody, 4, 269, 269, 280)
	h.polls(0, 11, 6, 269, 280)
	h.box(0, DMAStartHeader, 4, 280, 282)
	h.transfer(0, TransferHeader, 4, 282, 282, 283)
	h.at(0, KindDepart, 4, 283).Peer = 1
	return h.sorted()
}

func critical(t *testing.T, recs []Record, spec PathSpec) *CriticalPath {
	t.Helper()
	c, err := NewCriticalPath(spec)
	if err != nil {
		t.Fatal(err)
	}
	for i := range recs {
		if err := c.Record(&recs[i]); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func TestCriticalPathByHand(t *testing.T) {
	c := critical(t, handPath(), PathSpec{})
	by := func(m map[PathKind]float64) (b [NumPathKinds]des.Time) {
		for k, d := range m {
			b[k] = us(d)
		}
		return b
	}
	want := []PathGap{
		{From: us(198), To: us(283), First: 3, Second: 4, By: by(map[PathKind]float64{
			PathUpstream: 32, PathWire: 6, PathPolls: 4, PathOwn: 14, PathBufferWait: 4, PathEngineWait: 2, PathChain: 11, PathTransfer: 12,
		})},
		{From: us(100), To: us(160), First: 1, Second: 2, By: by(map[PathKind]float64{
			PathOthers: 13, PathPolls: 4, PathFlow: 3, PathChain: 11, PathBusWait: 2, PathTransfer: 27,
		})},
		{From: us(160), To: us(198), First: 2, Second: 3, Slow: true, By: by(map[PathKind]float64{
			PathCreditWait: 15, PathPolls: 1, PathChain: 11, PathTransfer: 11,
		})},
	}
	if diff := cmp.Diff(want, c.Worst()); diff != "" {
		t.Error(diff)
	}
	r := c.Result()
	if r.All.N != 3 || r.Fast.N != 2 || r.Slow.N != 1 {
		t.Errorf("%d gaps, %d fast, %d slow", r.All.N, r.Fast.N, r.Slow.N)
	}
	near(t, "mean", r.All.Mean, (60+38+85)/3.0)
	near(t, "fast mean", r.Fast.Mean, (60+85)/2.0)
	near(t, "chain", r.All.Parts[PathChain].Mean, 11)
	near(t, "chain's share", r.All.Parts[PathChain].Share, 33.0/183)
	near(t, "slow credit wait", r.Slow.Parts[PathCreditWait].Mean, 15)

	var text strings.Builder
	if err := r.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{"worst: 85.00 µs from 198.000 µs on card 0, packet 3 to 4: DMA chain 11.00, transfer 12.00", "credit wait"} {
		if !strings.Contains(text.String(), s) {
			t.Errorf("no %q in\n%s", s, text.String())
		}
	}
	if _, err := json.Marshal(r); err != nil {
		t.Error(err)
	}
	// A window takes the gaps that lie in it.
	if r := critical(t, handPath(), PathSpec{From: us(110), To: us(200)}).Result(); r.All.N != 1 || r.All.Mean != 38 {
		t.Errorf("window: %d gaps, mean %v", r.All.N, r.All.Mean)
	}
	if w := critical(t, handPath(), PathSpec{Worst: 1}).Worst(); len(w) != 1 || w[0].Second != 4 {
		t.Errorf("worst: %v", w)
	}
}

// path explains a gap by the rules, instant by instant.
func (o *oracle) path(card int, from, to des.Time, packet uint64) (by [NumPathKinds]des.Time) {
	recs := o.on(card, func(*Record) bool { return true })
	cuts := []des.Time{from, to}
	arrived := des.Time(0)
	for _, r := range recs {
		cuts = append(cuts, r.Start, r.End, r.Ready)
		if r.Kind == KindEnter && r.Packet == packet {
			arrived = r.End
		}
	}
	held := make([]des.Time, len(recs))
	for i := range recs {
		if recs[i].Kind == KindWait && recs[i].Packet == packet {
			held[i] = o.held(&recs[i])
		}
	}
	slices.Sort(cuts)
	cuts = slices.Compact(cuts)
	for i := 1; i < len(cuts); i++ {
		a, b := cuts[i-1], cuts[i]
		if a < from || b > to {
			continue
		}
		kind := PathUnrecorded
		best := 100
		set := func(rank int, k PathKind) {
			if rank < best {
				best, kind = rank, k
			}
		}
		for j := range recs {
			r := &recs[j]
			if r.End < b || r.Start > a && r.Ready > a {
				continue
			}
			covers := r.Start <= a
			mine := r.Packet == packet
			switch {
			case r.Kind == KindBox && mine && covers:
				k := PathOwn
				switch doing(r) {
				case "chain":
					k = PathChain
				case "flow":
					k = PathFlow
				case "output":
					k = PathOutput
				case "host":
					k = PathOtherWork
				}
				set(0, k)
			case r.Kind == KindTransfer && mine && covers:
				set(1, PathTransfer)
			case r.Kind == KindTransfer && mine && r.Ready <= a && b <= r.Start:
				set(2, PathBusWait)
			case r.Kind == KindWait && mine && covers && b <= held[j] && r.Reason == ReasonNoBuffer:
				set(3, PathBufferWait)
			case r.Kind == KindWait && mine && covers && b <= held[j] && r.Reason == ReasonNoCredit:
				set(3, PathCreditWait)
			case r.Kind == KindWait && mine && covers && b <= held[j] && r.Reason == ReasonEngineBusy:
				set(3, PathEngineWait)
			case r.Kind == KindReceive && mine && covers:
				set(4, PathWire)
			case b <= arrived:
				set(5, PathUpstream)
			case r.Kind == KindPolls && covers:
				set(6, PathPolls)
			case r.Kind == KindBox && covers:
				switch doing(r) {
				case "receive_route":
					set(6, PathOthers)
				case "flow":
					set(6, PathFlow)
				case "output":
					set(6, PathOutput)
				default:
					set(6, PathOtherWork)
				}
			}
		}
		by[kind] += b - a
	}
	return by
}

// On random streams every gap is divided as the oracle divides it, and whole.
func TestCriticalPathAgainstOracle(t *testing.T) {
	n := testenv.Size(30, 60)
	for _, s := range modelStreams(n) {
		s.packets = n / s.ingress
		recs := runModel(s)
		o := &oracle{recs: recs, end: recs[len(recs)-1].End, chain: DefaultChainHandlers}
		c := critical(t, recs, PathSpec{Worst: 1 << 16})
		var want []PathGap
		for card := range s.ingress {
			deps := o.on(card, kind(KindDepart))
			for i := 1; i < len(deps); i++ {
				g := PathGap{Card: uint8(card), From: deps[i-1].End, To: deps[i].End, First: deps[i-1].Packet, Second: deps[i].Packet}
				g.By = o.path(card, g.From, g.To, g.Second)
				var slow des.Time
				for _, m := range o.moments(card) {
					if m.slow && m.from >= g.From && m.to <= g.To {
						slow += m.to - m.from
					}
				}
				g.Slow = 2*slow > g.To-g.From
				want = append(want, g)
			}
		}
		got := slices.Clone(c.Worst())
		order := func(a, b PathGap) int { return int(a.Card)*2 - int(b.Card)*2 + int(min(1, max(-1, a.From-b.From))) }
		slices.SortFunc(got, order)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("seed %d: %s", s.seed, diff)
		}
		for _, g := range got {
			if sum(g.By[:]) != g.Length() {
				t.Errorf("seed %d: a gap of %v is divided into %v", s.seed, g.Length(), sum(g.By[:]))
			}
		}
		w := c.Worst()
		if !slices.IsSortedFunc(w, func(a, b PathGap) int { return int(b.Length() - a.Length()) }) {
			t.Error("the worst gaps are not in order")
		}
	}
}

// The parts of a gap sum to it in a stream of any length, and means are those
// of the measures.
func TestCriticalPathAgreesWithMeasures(t *testing.T) {
	for _, s := range modelStreams(600) {
		s.packets /= s.ingress
		recs := runModel(s)
		r := critical(t, recs, PathSpec{}).Result()
		m := measure(t, recs, MeasureSpec{})
		if r.All.N != m.Gap.N {
			t.Errorf("seed %d: %d gaps, measures count %d", s.seed, r.All.N, m.Gap.N)
		}
		parts := Real(0)
		for _, p := range r.All.Parts {
			parts += p.Mean
		}
		near(t, "sum of parts", parts, float64(r.All.Mean))
		if u := r.All.Parts[PathUnrecorded].Mean; u != 0 {
			t.Errorf("seed %d: %v µs of a gap unexplained in a whole record", s.seed, u)
		}
	}
}

// A gap with more happening in it than is remembered still sums up.
func TestCriticalPathBounded(t *testing.T) {
	c, err := NewCriticalPath(PathSpec{})
	if err != nil {
		t.Fatal(err)
	}
	put := func(r Record) {
		if err := c.Record(&r); err != nil {
			t.Fatal(err)
		}
	}
	put(Record{Kind: KindDepart, Packet: 1})
	n := maxPathSpans * 2
	for i := range n {
		at := des.Time(i+1) * 10
		put(Record{Kind: KindPolls, Start: at - 10, End: at, Queue: NoQueue, Count: 1})
		put(Record{Kind: KindLevel, Event: LevelBacklog, Start: at, End: at, Count: 1})
		put(Record{Kind: KindTransfer, Event: TransferAck, Start: at, End: at, Ready: at})
	}
	end := des.Time(n) * 10
	put(Record{Kind: KindDepart, Packet: 2, Start: end, End: end})
	g := c.Worst()[0]
	if g.By[PathPolls] != maxPathSpans*10 || g.By[PathUnrecorded] != end-maxPathSpans*10 {
		t.Errorf("%v", g)
	}
}

func TestCriticalPathSpec(t *testing.T) {
	for _, s := range []PathSpec{{From: -1}, {To: -1}, {From: 5, To: 4}, {ChainHandlers: -1}, {Worst: -1}} {
		if _, err := NewCriticalPath(s); err == nil {
			t.Errorf("%+v is taken", s)
		}
	}
	c := critical(t, nil, PathSpec{})
	late, early := Record{Kind: KindEnter, Start: 5, End: 5}, Record{Kind: KindEnter, Start: 4, End: 4}
	if err := c.Record(&late); err != nil {
		t.Error(err)
	}
	if err := c.Record(&early); !errors.Is(err, ErrOrder) {
		t.Errorf("error %v, want ErrOrder", err)
	}
}

func BenchmarkCriticalPath(b *testing.B) {
	spec := modelStreams(2000)[1]
	recs := runModel(spec)
	b.ReportAllocs()
	b.ResetTimer()
	packets := 0
	for range b.N {
		c, err := NewCriticalPath(PathSpec{})
		if err != nil {
			b.Fatal(err)
		}
		for i := range recs {
			if err := c.Record(&recs[i]); err != nil {
				b.Fatal(err)
			}
		}
		packets += spec.packets
	}
	b.ReportMetric(float64(packets)/b.Elapsed().Seconds(), "packets/s")
}
