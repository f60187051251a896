package traces

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"testing"

	"spinesim/sim/testenv"

	"github.com/google/go-cmp/cmp"

	"spinesim/sim/des"
	"spinesim/sim/stats"
)

// The oracle computes every measure from the whole stream at once, each by
// its definition, with no thought of speed.

type oracle struct {
	recs  []Record
	end   des.Time
	chain des.Time
	cache map[int][]moment
}

func (o *oracle) where(cond func(*Record) bool) []Record {
	var out []Record
	for i := range o.recs {
		if cond(&o.recs[i]) {
			out = append(out, o.recs[i])
		}
	}
	return out
}

func (o *oracle) on(card int, cond func(*Record) bool) []Record {
	return o.where(func(r *Record) bool { return int(r.Card) == card && cond(r) })
}

// moment is a card's state over a span in which it does not change.
type moment struct {
	from, to des.Time
	backlog  uint32
	busy     bool // engine
	move     Record
	proc     Record // Kind none where the processor has no record
	slow     bool
}

func (o *oracle) moments(card int) []moment {
	if ms, ok := o.cache[card]; ok {
		return ms
	}
	procs := o.on(card, func(r *Record) bool { return r.Kind == KindBox || r.Kind == KindPolls })
	moves := o.on(card, kind(KindTransfer))
	levels := o.on(card, levelOf(LevelBacklog))
	cuts := []des.Time{0, o.end}
	for _, r := range slices.Concat(procs, moves, levels) {
		cuts = append(cuts, r.Start, r.End)
		if r.Kind == KindTransfer {
			cuts = append(cuts, r.Ready)
		}
	}
	slices.Sort(cuts)
	cuts = slices.Compact(cuts)
	var ms []moment
	for i := 1; i < len(cuts); i++ {
		m := moment{from: cuts[i-1], to: cuts[i]}
		for _, r := range levels {
			if r.End <= m.from {
				m.backlog = r.Count
			}
		}
		for _, r := range moves {
			if r.Ready <= m.from && r.End >= m.to {
				m.busy, m.move = true, r
			}
		}
		for _, r := range procs {
			if r.Start <= m.from && r.End >= m.to {
				m.proc = r
			}
		}
		m.slow = m.backlog >= 2
		ms = append(ms, m)
	}
	for i := 0; i < len(ms); i++ {
		j := i
		for j < len(ms) && !ms[j].busy && ms[j].backlog >= 1 {
			j++
		}
		if j > i {
			if ms[j-1].to-ms[i].from > o.chain {
				for k := i; k < j; k++ {
					ms[k].slow = true
				}
			}
			i = j - 1
		}
	}
	if o.cache == nil {
		o.cache = map[int][]moment{}
	}
	o.cache[card] = ms
	return ms
}

func (o *oracle) bubbles(card int) (all des.Time, by map[string]des.Time) {
	by = map[string]des.Time{}
	for _, m := range o.moments(card) {
		if m.backlog == 0 || m.busy {
			continue
		}
		d := m.to - m.from
		all += d
		by[doing(&m.proc)] += d
	}
	return all, by
}

func doing(r *Record) string {
	switch r.Kind {
	case KindNone:
		return "unrecorded"
	case KindPolls:
		return "polls"
	}
	switch r.Event {
	case RxCheckHeader, RxCheckBody, EnqRouterIn, RouterIn, EnqIPOutput:
		return "receive_route"
	case PeerToPeerStart, DMAStartHandler, DMAGenericStart, DMAStartBody, DMAStartHeader:
		return "chain"
	case FreeBuffer, PeerAck, AckSend:
		return "flow"
	case WireOutputStart, WireOutputDone:
		return "output"
	}
	return "host"
}

func (o *oracle) slow(card int) (total des.Time, spells []des.Time) {
	var from des.Time
	in := false
	for _, m := range o.moments(card) {
		if m.slow {
			total += m.to - m.from
			if !in {
				in, from = true, m.from
			}
			continue
		}
		if in {
			spells = append(spells, m.from-from)
			in = false
		}
	}
	if in {
		spells = append(spells, o.end-from)
	}
	return total, spells
}

// fast gives the fast windows: from the first to the last receive start.
func (o *oracle) fast(card int) (windows [][2]des.Time, periods, own []des.Time, packets int) {
	rx := o.on(card, box(RxCheckHeader))
	tx := o.on(card, box(PeerToPeerStart))
	ms := o.moments(card)
	good := func(i int) bool {
		starts := 0
		for _, r := range tx {
			if r.Start >= rx[i].Start && r.Start < rx[i+1].Start {
				starts++
			}
		}
		for _, m := range ms {
			if m.from >= rx[i].Start && m.to <= rx[i+1].Start && m.backlog > 1 {
				return false
			}
		}
		return starts == 1
	}
	for i := 0; i+1 < len(rx); i++ {
		j := i
		for j+1 < len(rx) && good(j) {
			j++
		}
		if j-i >= 2 {
			windows = append(windows, [2]des.Time{rx[i].Start, rx[j].Start})
			packets += j - i + 1
			for k := i; k < j; k++ {
				periods = append(periods, rx[k+1].Start-rx[k].Start)
				for _, e := range o.where(kind(KindEnter)) {
					if e.Packet == rx[k+1].Packet && e.End <= rx[k].Start {
						own = append(own, rx[k+1].Start-rx[k].Start)
					}
				}
			}
		}
		if j > i {
			i = j - 1
		}
	}
	return windows, periods, own, packets
}

func (o *oracle) runs(card int) []int {
	rx := o.on(card, box(RxCheckHeader))
	tx := o.on(card, box(PeerToPeerStart))
	var runs []int
	for i := 1; i < len(tx); i++ {
		n := 0
		for _, r := range rx {
			if r.Start > tx[i-1].Start && r.Start < tx[i].Start {
				n++
			}
		}
		runs = append(runs, n)
	}
	return runs
}

// steps takes the DMA steps of a card apart, by part.
func (o *oracle) steps(card int) (lengths []des.Time, parts [numStepParts]des.Time) {
	ms := o.moments(card)
	for _, d := range o.on(card, kind(KindDepart)) {
		start := o.on(card, func(r *Record) bool { return box(PeerToPeerStart)(r) && r.Packet == d.Packet })[0].Start
		lengths = append(lengths, d.End-start)
		for _, m := range ms {
			if m.from < start || m.to > d.End {
				continue
			}
			part := stepOther
			switch {
			case doing(&m.proc) == "chain" && m.proc.Packet == d.Packet:
				part = stepHandlers
			case m.busy && m.move.Packet == d.Packet && m.from >= m.move.Start:
				part = stepTransfer
			case m.busy && m.move.Packet == d.Packet:
				part = stepBusWait
			case m.proc.Kind == KindPolls:
				part = stepPolls
			case m.proc.Kind == KindBox:
				part = stepInterruptions
			}
			parts[part] += m.to - m.from
		}
	}
	return lengths, parts
}

// sums gives occupancy and transfer of the forwarded packets whose buffer came
// back, in the order in which it did.
func (o *oracle) sums(card int) (occupancy, transfer []des.Time) {
	for _, f := range o.where(box(FreeBuffer)) {
		left := o.where(func(r *Record) bool {
			return r.Kind == KindLeave && r.Packet == f.Packet && r.Verdict == VerdictForwarded && (card < 0 || int(r.Peer) == card)
		})
		if len(left) == 0 {
			continue
		}
		var a, b des.Time
		for _, r := range o.where(func(r *Record) bool { return r.Packet == f.Packet }) {
			switch r.Kind {
			case KindBox:
				a += r.End - r.Start
			case KindTransfer, KindReceive, KindSend:
				b += r.End - r.Start
			}
		}
		occupancy, transfer = append(occupancy, a), append(transfer, b)
	}
	return occupancy, transfer
}

func (o *oracle) backlog(card int) (area float64, most uint32) {
	for _, m := range o.moments(card) {
		area += float64(m.backlog) * float64(m.to-m.from)
	}
	for _, r := range o.on(card, levelOf(LevelBacklog)) {
		most = max(most, r.Count)
	}
	return area, most
}

// latencies in the order of the records that end them; card −1 is all cards.
func (o *oracle) latencies(card int) (gap, ingress, fast, total, upstream []des.Time) {
	enter, rx := map[uint64]des.Time{}, map[uint64]des.Time{}
	last := map[uint8]des.Time{}
	windows := map[uint8][][2]des.Time{}
	for c := range 4 {
		windows[uint8(c)], _, _, _ = o.fast(c)
	}
	by := map[uint64]uint8{}
	mine := func(c uint8) bool { return card < 0 || int(c) == card }
	for i := range o.recs {
		r := &o.recs[i]
		switch {
		case r.Kind == KindEnter:
			enter[r.Packet], by[r.Packet] = r.End, r.Card
		case box(RxCheckHeader)(r):
			rx[r.Packet] = r.Start
			if mine(r.Card) {
				upstream = append(upstream, r.Start-enter[r.Packet])
			}
		case r.Kind == KindDepart && mine(r.Card):
			if t, ok := last[r.Card]; ok {
				gap = append(gap, r.End-t)
			}
			last[r.Card] = r.End
			ingress = append(ingress, r.End-rx[r.Packet])
			for _, w := range windows[r.Card] {
				if w[0] <= rx[r.Packet] && r.End <= w[1] {
					fast = append(fast, r.End-rx[r.Packet])
				}
			}
		case r.Kind == KindLeave && r.Verdict == VerdictForwarded && mine(by[r.Packet]):
			total = append(total, r.End-enter[r.Packet])
		}
	}
	return gap, ingress, fast, total, upstream
}

// held is until when a wait's reason held.
func (o *oracle) held(w *Record) des.Time {
	if w.Reason == ReasonLowerPriority || w.Reason == ReasonNoBuffer {
		return w.End
	}
	if w.Ready > w.Start {
		return w.Ready
	}
	b := o.on(int(w.Card), func(r *Record) bool { return box(w.Event)(r) && r.Packet == w.Packet && r.Start == w.End })
	return b[0].Ready
}

type checker struct {
	t    *testing.T
	name string
}

func (c checker) real(what string, got Real, want float64) {
	c.t.Helper()
	g := float64(got)
	if math.IsNaN(g) && math.IsNaN(want) {
		return
	}
	if !(math.Abs(g-want) <= 1e-9*math.Abs(want)+1e-12) {
		c.t.Errorf("%s: %s: %v, want %v", c.name, what, g, want)
	}
}

func (c checker) quantile(what string, got Real, q float64, values []des.Time, relative float64) {
	c.t.Helper()
	if len(values) == 0 {
		if got.OK() {
			c.t.Errorf("%s: %s: %v of nothing", c.name, what, got)
		}
		return
	}
	s := slices.Clone(values)
	slices.Sort(s)
	want := s[max(1, int(math.Ceil(q*float64(len(s)))))-1].Microseconds()
	if math.Abs(float64(got)-want) > relative*want {
		c.t.Errorf("%s: %s: %v, want %v", c.name, what, got, want)
	}
}

func (c checker) distribution(what string, d Distribution, values []des.Time) {
	c.t.Helper()
	var b stats.Batches
	for _, v := range values {
		b.Add(float64(v))
	}
	e := b.Estimate(0.95).Scale(1e-6)
	if d.N != uint64(len(values)) || d.Warmup != e.Warmup || (d.Short == "") != e.OK() {
		c.t.Errorf("%s: %s: n %d, warm-up %d, short %q, want %d, %d, %v", c.name, what, d.N, d.Warmup, d.Short, len(values), e.Warmup, e.Shortfall)
	}
	c.real(what+" mean", d.Mean, e.Mean)
	if e.OK() {
		c.real(what+" ci", d.CI95, e.Half)
	} else if d.CI95.OK() {
		c.t.Errorf("%s: %s has an interval", c.name, what)
	}
	c.quantile(what+" p50", d.P50, 0.5, values, coarseError)
	c.quantile(what+" p99", d.P99, 0.99, values, coarseError)
	c.quantile(what+" max", d.Max, 1, values, 1e-12)
}

func sum(ds []des.Time) (s des.Time) {
	for _, d := range ds {
		s += d
	}
	return s
}

func perCard(cards []int, f func(int) float64) float64 {
	s := 0.0
	for _, c := range cards {
		s += f(c)
	}
	return s / float64(len(cards))
}

func (c checker) figures(o *oracle, f *Figures, cards []int) {
	c.t.Helper()
	card := cards[0]
	if len(cards) > 1 {
		card = -1
	}
	gap, ingress, fast, total, upstream := o.latencies(card)
	c.distribution("gap", f.Gap.Distribution, gap)
	c.distribution("ingress latency", f.Latency.Ingress.Distribution, ingress)
	c.distribution("total latency", f.Latency.Total, total)
	c.distribution("upstream", f.Latency.Upstream, upstream)
	if f.Latency.Ingress.FastN != uint64(len(fast)) {
		c.t.Errorf("%s: %d latencies in fast windows, want %d", c.name, f.Latency.Ingress.FastN, len(fast))
	}
	if len(fast) > 0 {
		c.real("fast latency", f.Latency.Ingress.Fast, sum(fast).Microseconds()/float64(len(fast)))
	}
	c.quantile("fast latency p50", f.Latency.Ingress.FastP50, 0.5, fast, fineError)

	occupancy, transfer := o.sums(card)
	c.distribution("occupancy", f.Occupancy.Distribution, occupancy)
	c.distribution("transfer", f.Transfer.Distribution, transfer)
	if n := len(occupancy); n > 0 {
		parts := f.Occupancy.Receive + f.Occupancy.Route + f.Occupancy.DMA + f.Occupancy.FlowControl + f.Occupancy.Output + f.Occupancy.Host
		c.real("parts of the occupancy", parts, sum(occupancy).Microseconds()/float64(n))
		x := &f.Transfer
		c.real("parts of the transfer", x.Receive+x.Body+x.Header+x.Ack+x.Host+x.Send, sum(transfer).Microseconds()/float64(n))
	}

	var periods, own, spells, lengths []des.Time
	var runs []int
	var parts [numStepParts]des.Time
	packets, departed := 0, 0
	for _, k := range cards {
		_, p, q, n := o.fast(k)
		periods, own, packets = append(periods, p...), append(own, q...), packets+n
		_, s := o.slow(k)
		spells = append(spells, s...)
		runs = append(runs, o.runs(k)...)
		departed += len(o.on(k, kind(KindDepart)))
		l, ps := o.steps(k)
		lengths = append(lengths, l...)
		for i, d := range ps {
			parts[i] += d
		}
	}
	if card == -1 { // in the order of the departures
		at := map[uint64]des.Time{}
		for _, r := range o.where(box(PeerToPeerStart)) {
			at[r.Packet] = r.Start
		}
		lengths = lengths[:0]
		for _, r := range o.where(kind(KindDepart)) {
			lengths = append(lengths, r.End-at[r.Packet])
		}
	}
	if f.Gap.BestCaseN != uint64(len(periods)) {
		c.t.Errorf("%s: %d fast periods, want %d", c.name, f.Gap.BestCaseN, len(periods))
	}
	c.quantile("best case", f.Gap.BestCase, 0.5, periods, fineError)
	if f.Gap.WaitingN != uint64(len(own)) {
		c.t.Errorf("%s: %d fast periods with a packet waiting, want %d", c.name, f.Gap.WaitingN, len(own))
	}
	c.quantile("best case, packet waiting", f.Gap.Waiting, 0.5, own, fineError)
	span := float64(o.end)
	c.real("fast share", f.FastShare, float64(sum(periods))/span/float64(len(cards)))
	c.real("fast packets", f.FastPackets, float64(packets)/float64(departed))

	c.real("slow share", f.SlowShare, perCard(cards, func(k int) float64 { s, _ := o.slow(k); return float64(s) / span }))
	if f.Slow.N != uint64(len(spells)) {
		c.t.Errorf("%s: %d slow spells, want %d", c.name, f.Slow.N, len(spells))
	}
	if len(spells) > 0 {
		c.real("spell mean", f.Slow.Mean, sum(spells).Microseconds()/float64(len(spells)))
	}
	c.quantile("spell p50", f.Slow.P50, 0.5, spells, coarseError)

	c.real("bubble share", f.BubbleShare, perCard(cards, func(k int) float64 { s, _ := o.bubbles(k); return float64(s) / span }))
	for name, got := range map[string]Real{
		"receive_route": f.Bubbles.ReceiveRoute, "polls": f.Bubbles.Polls, "flow": f.Bubbles.FlowControl, "chain": f.Bubbles.Chain,
		"output": f.Bubbles.Output, "host": f.Bubbles.Host, "unrecorded": f.Bubbles.Unrecorded,
	} {
		c.real("bubbles: "+name, got, perCard(cards, func(k int) float64 { _, by := o.bubbles(k); return float64(by[name]) / span }))
	}

	c.distribution("DMA step", f.DMAStep.Distribution, lengths)
	if n := float64(len(lengths)); n > 0 {
		for i, got := range [numStepParts]Real{
			stepHandlers: f.DMAStep.Handlers, stepPolls: f.DMAStep.Polls, stepInterruptions: f.DMAStep.Interruptions,
			stepTransfer: f.DMAStep.Transfer, stepBusWait: f.DMAStep.BusWait, stepOther: f.DMAStep.Unrecorded,
		} {
			c.real(fmt.Sprintf("DMA step part %d", i), got, parts[i].Microseconds()/n)
		}
	}

	sort.Ints(runs)
	all, over, filled := 0, 0, 0
	for _, n := range runs {
		all += n
		if n > 1 {
			over++
		}
		if n > 0 {
			filled++
		}
	}
	if f.ReceiveRun.N != uint64(len(runs)) || len(runs) > 0 && int(f.ReceiveRun.Max) != runs[len(runs)-1] {
		c.t.Errorf("%s: %d receive runs up to %d, want %d: %v", c.name, f.ReceiveRun.N, f.ReceiveRun.Max, len(runs), runs)
	}
	if len(runs) > 0 {
		c.real("receive run", f.ReceiveRun.Mean, float64(all)/float64(len(runs)))
		c.real("receive run, not empty", f.ReceiveRun.MeanNonEmpty, float64(all)/float64(filled))
		c.real("receive runs over 1", f.ReceiveRun.ShareOver1, float64(over)/float64(len(runs)))
	}
	counts := make([]uint64, len(f.ReceiveRun.Counts))
	for _, n := range runs {
		if n < len(counts) {
			counts[n]++
		}
	}
	if !slices.Equal(counts, f.ReceiveRun.Counts) {
		c.t.Errorf("%s: receive runs %v, want %v", c.name, f.ReceiveRun.Counts, counts)
	}

	most := uint32(0)
	for _, k := range cards {
		_, m := o.backlog(k)
		most = max(most, m)
	}
	if f.Backlog.Max != most {
		c.t.Errorf("%s: backlog up to %d, want %d", c.name, f.Backlog.Max, most)
	}
	if f.Backlog.Short != "" { // else the mean leaves the warm-up out
		c.real("backlog", f.Backlog.Mean, perCard(cards, func(k int) float64 { a, _ := o.backlog(k); return a / span }))
	}
}

func measure(t *testing.T, recs []Record, spec MeasureSpec) *Result {
	t.Helper()
	m, err := NewMeasures(spec)
	if err != nil {
		t.Fatal(err)
	}
	for i := range recs {
		if err := m.Record(&recs[i]); err != nil {
			t.Fatal(err)
		}
	}
	r, err := m.Finish(0)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Every measure of random streams, per card and over all cards, is what the
// oracle finds.
func TestMeasuresAgainstOracle(t *testing.T) {
	n := testenv.Size(80, 230)
	for _, s := range modelStreams(n) {
		if s.ingress > 1 {
			s.packets = n / s.ingress
		}
		recs := runModel(s)
		o := &oracle{recs: recs, end: recs[len(recs)-1].End, chain: DefaultChainHandlers}
		r := measure(t, recs, MeasureSpec{})
		cards := []int{}
		for i := range s.ingress {
			cards = append(cards, i)
		}
		if len(r.Cards) != s.ingress {
			t.Fatalf("seed %d: %d ingress cards, want %d", s.seed, len(r.Cards), s.ingress)
		}
		for i, k := range cards {
			checker{t, fmt.Sprintf("seed %d, card %d", s.seed, k)}.figures(o, &r.Cards[i].Figures, cards[i:i+1])
		}
		c := checker{t, fmt.Sprintf("seed %d, all", s.seed)}
		c.figures(o, &r.Figures, cards)
		c.counts(o, r)
		c.use(o, r)
	}
}

func (c checker) counts(o *oracle, r *Result) {
	leave := func(v Verdict) uint64 {
		return uint64(len(o.where(func(r *Record) bool { return r.Kind == KindLeave && r.Verdict == v })))
	}
	got := [...]uint64{r.Received, r.Forwarded, r.ToHost}
	want := [...]uint64{uint64(len(o.where(kind(KindEnter)))), leave(VerdictForwarded), leave(VerdictToHost)}
	if got != want {
		c.t.Errorf("%s: received, forwarded, to host %v, want %v", c.name, got, want)
	}
	by := func(v Verdict) map[string]uint64 {
		n := map[string]uint64{}
		for _, x := range o.where(func(r *Record) bool { return r.Kind == KindLeave && r.Verdict == v }) {
			n[x.Reason.String()]++
		}
		return n
	}
	if d := cmp.Diff(by(VerdictDropped), r.Dropped); d != "" {
		c.t.Errorf("%s: dropped (-want +got):\n%s", c.name, d)
	}
	if d := cmp.Diff(by(VerdictToHost), r.ToHostBy); d != "" {
		c.t.Errorf("%s: handed to the host (-want +got):\n%s", c.name, d)
	}
	via := map[string]uint64{}
	for _, x := range o.where(func(r *Record) bool {
		return r.Kind == KindLeave && r.Verdict == VerdictForwarded && r.Reason != ReasonNone
	}) {
		via[x.Reason.String()]++
	}
	if d := cmp.Diff(via, r.ViaHostBy); d != "" {
		c.t.Errorf("%s: forwarded by way of the host (-want +got):\n%s", c.name, d)
	}
	c.real("loss", r.Loss, float64(leave(VerdictDropped))/float64(want[0]))
}

// use checks the units' shares.
func (c checker) use(o *oracle, r *Result) {
	span := float64(o.end)
	var polls, hits uint64
	var held des.Time
	for _, x := range o.where(kind(KindPolls)) {
		polls += uint64(x.Count)
		if x.Queue != NoQueue {
			hits++
		}
	}
	if r.Polls.N != polls || r.Polls.Hits != hits || r.Polls.Misses != polls-hits {
		c.t.Errorf("%s: polls %+v, want %d with %d hits", c.name, r.Polls, polls, hits)
	}
	for _, x := range o.where(kind(KindTransfer)) {
		held += des.Time(x.Cycles) * modelCycle
	}
	c.real("bus", r.Utilisation.Bus.Busy, float64(held)/span)
	for _, u := range r.Utilisation.Cards {
		time := func(cond func(*Record) bool) (d des.Time) {
			for _, x := range o.on(int(u.Card), cond) {
				d += x.End - x.Start
			}
			return d
		}
		c.real("handlers", u.Handlers, float64(time(kind(KindBox)))/span)
		c.real("dma", u.DMA, float64(time(kind(KindTransfer)))/span)
		c.real("receive", u.Receive, float64(time(kind(KindReceive)))/span)
		c.real("send", u.Send, float64(time(kind(KindSend)))/span)
		c.real("processor", u.Handlers+u.Polls+u.Idle, 1)
		// A run of polls searches from when the box behind it was ready.
		var search des.Time
		procs := o.on(int(u.Card), func(r *Record) bool { return r.Kind == KindPolls || r.Kind == KindBox })
		for i, p := range procs {
			if p.Kind == KindPolls && p.Queue != NoQueue {
				search += p.End - max(p.Start, procs[i+1].Ready)
			}
		}
		c.real("polls", u.Polls, float64(search)/span)
		for _, e := range u.Events {
			ev, _ := EventByName(e.Event)
			n := o.on(int(u.Card), box(ev))
			if e.N != uint64(len(n)) {
				c.t.Errorf("%s: card %d: %d × %s, want %d", c.name, u.Card, e.N, e.Event, len(n))
			}
			c.real(e.Event, e.Share, float64(time(box(ev)))/span)
		}
		waits := map[Reason]des.Time{}
		for _, x := range o.on(int(u.Card), kind(KindWait)) {
			if x.Reason == ReasonLowerPriority {
				waits[x.Reason] += x.End - x.Start
				continue
			}
			ready := o.held(&x)
			waits[x.Reason] += ready - x.Start
			waits[ReasonLowerPriority] += x.End - ready
		}
		for _, w := range u.Waits {
			reason, _ := ReasonByName(w.Reason)
			c.real(w.Reason, w.Share, float64(waits[reason])/span)
			delete(waits, reason)
		}
		for reason, d := range waits {
			if d > 0 {
				c.t.Errorf("%s: card %d: no wait for %v", c.name, u.Card, reason)
			}
		}
	}
}
