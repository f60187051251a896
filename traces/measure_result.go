package traces

import (
	"fmt"
	"math"

	"spinesim/sim/des"
	"spinesim/sim/stats"
)

// Result is all measures of one run. Times are in µs, shares between 0 and 1
// of the observed time; a figure that the record cannot give is NaN, in JSON
// null. The figures at the top are those of all ingress cards together: gaps
// are between departures of the same card, distributions are pooled, shares
// and levels averaged over the cards.
type Result struct {
	Observed  Real              `json:"observed_s"` // seconds
	Received  uint64            `json:"received"`   // packets that arrived, lost ones included
	Forwarded uint64            `json:"forwarded"`
	ToHost    uint64            `json:"to_host"`
	ToHostBy  map[string]uint64 `json:"to_host_by,omitempty"` // by the reason's name
	// ViaHostBy is packets that were forwarded by way of the host, by the name
	// of the reason for which the cards did not forward them themselves.
	ViaHostBy map[string]uint64 `json:"via_host_by,omitempty"`
	Copies    uint64            `json:"copies,omitempty"` // packets that came into being by flooding others
	Dropped   map[string]uint64 `json:"dropped"`          // by the reason's name
	Loss      Real              `json:"loss"`             // dropped / received
	// Stranded is packets that never left, because a card has stopped, by the
	// name of the reason for which each stays where it is.
	Stranded map[string]uint64 `json:"stranded,omitempty"`

	Figures

	Utilisation Utilisation   `json:"utilisation"`
	Polls       Polls         `json:"polls"`
	Cards       []CardFigures `json:"cards"` // ingress cards in order
}

// CardFigures are those of one ingress card.
type CardFigures struct {
	Card      uint8             `json:"card"`
	Received  uint64            `json:"received"`
	Departed  uint64            `json:"departed"`
	Forwarded uint64            `json:"forwarded"`
	ToHost    uint64            `json:"to_host"`
	Dropped   map[string]uint64 `json:"dropped"`
	Stranded  uint64            `json:"stranded,omitempty"`
	Figures
}

// Figures are what is measured at an ingress card.
type Figures struct {
	Gap         Gap        `json:"gap_us"`
	Latency     Latency    `json:"latency_us"`
	ReceiveRun  ReceiveRun `json:"receive_run"`
	Backlog     Backlog    `json:"backlog"`
	SlowShare   Real       `json:"slow_share"`
	Slow        Spells     `json:"slow"`
	FastShare   Real       `json:"fast_share"`   // of time, in fast windows
	FastPackets Real       `json:"fast_packets"` // of departures: packets received in fast windows
	BubbleShare Real       `json:"bubble_share"`
	Bubbles     Bubbles    `json:"bubbles"`
	DMAStep     DMAStep    `json:"dma_step_us"`
	Occupancy   Occupancy  `json:"occupancy_us"`
	Transfer    Moving     `json:"transfer_us"`
	FIFO        Level      `json:"fifo"`
	FreeBuffers Level      `json:"free_buffers"`
}

// Distribution of a span of time in µs. Mean is that after the warm-up where
// the run was long enough, with half the width of its confidence interval;
// quantiles and extremes are of all N values.
type Distribution struct {
	Mean   Real   `json:"mean"`
	CI95   Real   `json:"ci95"` // half-width at the spec's level, 95 % by default
	P50    Real   `json:"p50"`
	P99    Real   `json:"p99"`
	Min    Real   `json:"min"`
	Max    Real   `json:"max"`
	N      uint64 `json:"n"`
	Warmup uint64 `json:"warmup"`          // leading values that Mean leaves out
	Short  string `json:"short,omitempty"` // why there is no interval
}

// Gap is the time between successive departures of an ingress card.
type Gap struct {
	Distribution
	// BestCase is the median period of Rx check header starts within fast
	// windows: at least three packets in a row with exactly one receive and
	// one DMA start between neighbours and never more than one packet routed
	// and waiting for its DMA.
	BestCase  Real   `json:"best_case"`
	BestCaseN uint64 `json:"best_case_n"` // periods it is the median of
	// Waiting is the same of those periods only whose packet had arrived
	// upstream before they began, so that the source had no part in them.
	Waiting  Real   `json:"best_case_waiting"`
	WaitingN uint64 `json:"best_case_waiting_n"`
}

// Latency of packets that went through.
type Latency struct {
	Ingress  IngressLatency `json:"ingress"`  // Rx check header start to departure
	Total    Distribution   `json:"total"`    // arrival upstream to the end of the send
	Upstream Distribution   `json:"upstream"` // arrival upstream to Rx check header start
}

// IngressLatency is the latency through the ingress card. Fast is the mean and
// FastP50 the median over packets that were received and departed within one
// fast window.
type IngressLatency struct {
	Distribution
	Fast    Real   `json:"fast"`
	FastP50 Real   `json:"fast_p50"`
	FastN   uint64 `json:"fast_n"`
}

// ReceiveRun counts Rx check header starts between two successive Peer to peer
// starts. Mean is over all runs, empty ones included, and so near 1 in a
// router that loses nothing; MeanNonEmpty leaves the empty ones out.
type ReceiveRun struct {
	Mean         Real     `json:"mean"`
	MeanNonEmpty Real     `json:"mean_non_empty"`
	Max          uint32   `json:"max"`
	ShareOver1   Real     `json:"share_over_1"`
	N            uint64   `json:"n"`
	Counts       []uint64 `json:"counts"` // by length from 0; the 65th holds longer ones too
}

// Backlog is the number of packets routed and waiting for their DMA.
type Backlog struct {
	Mean        Real   `json:"mean"` // over time
	CI95        Real   `json:"ci95"`
	Max         uint32 `json:"max"`
	Period      Real   `json:"period_us"`    // dominant period
	PeriodShare Real   `json:"period_share"` // of the backlog's variance, near that period
	Short       string `json:"short,omitempty"`
}

// Spells are the maximal spans of the slow state, in µs: backlog of two or
// more, or the engine idle with a packet waiting for it for longer than one
// chain's handlers take.
type Spells struct {
	CI95 Real   `json:"share_ci95"` // of slow_share
	N    uint64 `json:"spells"`
	Mean Real   `json:"mean_us"`
	P50  Real   `json:"p50_us"`
	P99  Real   `json:"p99_us"`
	Max  Real   `json:"max_us"`
}

// Bubbles split the time with the engine idle and a packet waiting for it by
// what the processor did meanwhile; shares of the observed time that sum to
// the bubble share.
type Bubbles struct {
	CI95         Real `json:"share_ci95"` // of bubble_share
	ReceiveRoute Real `json:"receive_route"`
	Polls        Real `json:"polls"`
	FlowControl  Real `json:"flow_control"`
	Chain        Real `json:"chain"`  // the DMA chain's own handlers
	Output       Real `json:"output"` // wire output of packets that leave here
	Host         Real `json:"host"`
	Unrecorded   Real `json:"unrecorded"` // nothing was recorded
}

// DMAStep takes the time from Peer to peer start to departure apart; the parts
// are means over all steps and sum to their mean.
type DMAStep struct {
	Distribution
	Handlers      Real `json:"handlers"`
	Polls         Real `json:"polls"`
	Interruptions Real `json:"interruptions"`
	Transfer      Real `json:"transfer"`
	BusWait       Real `json:"bus_wait"`
	Unrecorded    Real `json:"unrecorded"`
}

// Occupancy is the processor time that handlers spend on one forwarded packet,
// on all cards, and its parts.
type Occupancy struct {
	Distribution
	Receive     Real `json:"receive"`
	Route       Real `json:"route"`
	DMA         Real `json:"dma"`
	FlowControl Real `json:"flow_control"`
	Output      Real `json:"output"`
	Host        Real `json:"host"`
}

// Moving is the engine and bus time that moving one forwarded packet takes,
// and its parts. Waiting for the bus stands beside it.
type Moving struct {
	Distribution
	Receive Real `json:"receive"` // receive engine
	Body    Real `json:"body"`
	Header  Real `json:"header"`
	Ack     Real `json:"ack"`
	Host    Real `json:"host"`
	Send    Real `json:"send"`     // send engine
	BusWait Real `json:"bus_wait"` // not part of the sum
}

// Level is the mean over time and the extremes of a count.
type Level struct {
	Mean Real `json:"mean"`
	Min  Real `json:"min"`
	Max  Real `json:"max"`
}

func micros(t float64) Real { return Real(t / float64(des.Microsecond)) }

func share(part, of des.Time) Real {
	if of <= 0 {
		return Real(math.NaN())
	}
	return Real(float64(part) / float64(of))
}

func ratio(a, b uint64) Real {
	if b == 0 {
		return Real(math.NaN())
	}
	return Real(float64(a) / float64(b))
}

func half(e stats.Estimate) Real {
	if !e.OK() {
		return Real(math.NaN())
	}
	return Real(e.Half)
}

func distribution(h *stats.Histogram, b *stats.Batches, level float64) Distribution {
	e := b.Estimate(level)
	d := Distribution{
		Mean: micros(e.Mean), CI95: half(e) / Real(des.Microsecond),
		P50: quantile(h, 0.5), P99: quantile(h, 0.99), Min: quantile(h, 0), Max: quantile(h, 1),
		N: h.N(), Warmup: e.Warmup,
	}
	if !e.OK() {
		d.Short = e.Shortfall.String()
	}
	return d
}

func quantile(h *stats.Histogram, q float64) Real {
	v, ok := h.Quantile(q)
	if !ok {
		return Real(math.NaN())
	}
	return micros(float64(v))
}

// pool is what the figures of one or several lanes are made from.
type pool struct {
	span                                                            des.Time // observed, summed over the lanes
	gap, ingress, total, upstream, occupancy, transfer, step        *stats.Histogram
	fastPeriod, ownPeriod, fastDelay, spells                        *stats.Histogram
	gapB, ingressB, totalB, upstreamB, occupancyB, transferB, stepB *stats.Batches
	levels, slows, idles                                            []overTime
	maxBacklog, runMax                                              uint32
	power                                                           []float64
	slowTime, fastTime                                              des.Time
	table                                                           [3][numEngineStates][numClasses]des.Time
	runs                                                            [maxRun + 1]uint64
	runN, runSum, fastPacket, departed, steps, closed               uint64
	stepSum                                                         [numStepParts]des.Time
	handlerSum                                                      [NumSteps]des.Time
	unitSum                                                         [numUnits]des.Time
	fifo, buffers                                                   []*stats.TimeAverage
}

func (p *pool) add(l *lane, span des.Time, level float64) error {
	p.span += span
	merge := func(to **stats.Histogram, h *stats.Histogram) error {
		if *to == nil {
			*to = h
			return nil
		}
		return (*to).Merge(h)
	}
	for _, m := range []struct {
		to **stats.Histogram
		h  *stats.Histogram
	}{
		{&p.gap, l.gap.hist}, {&p.ingress, l.ingress.hist}, {&p.total, l.total.hist}, {&p.upstream, l.upstream.hist},
		{&p.occupancy, l.occupancy.hist}, {&p.transfer, l.transfer.hist}, {&p.step, l.dmaStep.hist},
		{&p.fastPeriod, l.state.fastPeriod}, {&p.ownPeriod, l.state.ownPeriod}, {&p.fastDelay, l.state.fastDelay}, {&p.spells, l.state.spells},
	} {
		if err := merge(m.to, m.h); err != nil {
			return err
		}
	}
	p.levels = append(p.levels, overTime{l.level.Estimate(level), l.level.All().Mean()})
	p.slows = append(p.slows, overTime{l.state.slowLevel.Estimate(level), l.state.slowLevel.All().Mean()})
	p.idles = append(p.idles, overTime{l.state.idleLevel.Estimate(level), l.state.idleLevel.All().Mean()})
	p.maxBacklog = max(p.maxBacklog, l.maxBacklog)
	p.runMax = max(p.runMax, l.state.runMax)
	p.power = l.spectrum.power(p.power)
	p.slowTime += l.state.slowTime
	p.fastTime += l.state.fastTime
	for b := range l.table {
		for e := range l.table[b] {
			for c, d := range l.table[b][e] {
				p.table[b][e][c] += d
			}
		}
	}
	for i, n := range l.state.runs {
		p.runs[i] += n
	}
	p.runN += l.state.runN
	p.runSum += l.state.runSum
	p.fastPacket += l.state.fastPacket
	p.departed += l.departed
	p.steps += l.step.n
	p.closed += l.closedPackets
	for i, d := range l.step.sum {
		p.stepSum[i] += d
	}
	for i, d := range l.handlerSum {
		p.handlerSum[i] += d
	}
	for i, d := range l.unitSum {
		p.unitSum[i] += d
	}
	p.fifo = append(p.fifo, &l.fifo)
	p.buffers = append(p.buffers, &l.buffers)
	return nil
}

// overTime is the mean of a level over time: estimated, and over all time.
type overTime struct {
	stats.Estimate
	all float64
}

// joined averages means of several cards, which are taken as independent. When
// one of them has no interval, all means are over all time.
func joined(es []overTime) (mean, ci Real, short string) {
	var sum, all, sq float64
	for _, e := range es {
		sum += e.Mean
		all += e.all
		sq += e.Half * e.Half
		if !e.OK() && short == "" {
			short = e.Shortfall.String()
		}
	}
	n := float64(len(es))
	if short != "" {
		return Real(all / n), Real(math.NaN()), short
	}
	return Real(sum / n), Real(math.Sqrt(sq) / n), ""
}

func level(as []*stats.TimeAverage) Level {
	l := Level{Mean: Real(math.NaN()), Min: Real(math.NaN()), Max: Real(math.NaN())}
	sum, n := 0.0, 0
	for _, a := range as {
		if mean := a.Mean(); !math.IsNaN(mean) {
			sum += mean
			n++
			if n == 1 {
				l.Min, l.Max = Real(a.Min()), Real(a.Max())
			}
			l.Min, l.Max = min(l.Min, Real(a.Min())), max(l.Max, Real(a.Max()))
		}
	}
	if n > 0 {
		l.Mean = Real(sum / float64(n))
	}
	return l
}

func (p *pool) figures(spec MeasureSpec) Figures {
	var f Figures
	f.Gap.Distribution = distribution(p.gap, p.gapB, spec.Level)
	f.Gap.BestCase, f.Gap.BestCaseN = quantile(p.fastPeriod, 0.5), p.fastPeriod.N()
	f.Gap.Waiting, f.Gap.WaitingN = quantile(p.ownPeriod, 0.5), p.ownPeriod.N()
	f.Latency.Ingress.Distribution = distribution(p.ingress, p.ingressB, spec.Level)
	f.Latency.Ingress.Fast = micros(p.fastDelay.Mean())
	f.Latency.Ingress.FastP50, f.Latency.Ingress.FastN = quantile(p.fastDelay, 0.5), p.fastDelay.N()
	f.Latency.Total = distribution(p.total, p.totalB, spec.Level)
	f.Latency.Upstream = distribution(p.upstream, p.upstreamB, spec.Level)

	f.ReceiveRun = ReceiveRun{
		Mean: ratio(p.runSum, p.runN), MeanNonEmpty: ratio(p.runSum, p.runN-p.runs[0]),
		Max: p.runMax, N: p.runN, Counts: []uint64{},
	}
	var over uint64
	for i, n := range p.runs {
		if i > 1 {
			over += n
		}
		if i <= int(p.runMax) && p.runN > 0 {
			f.ReceiveRun.Counts = append(f.ReceiveRun.Counts, n)
		}
	}
	f.ReceiveRun.ShareOver1 = ratio(over, p.runN)

	f.Backlog.Mean, f.Backlog.CI95, f.Backlog.Short = joined(p.levels)
	f.Backlog.Max = p.maxBacklog
	period, near := peak(p.power, spec.SampleEvery)
	f.Backlog.Period, f.Backlog.PeriodShare = Real(math.NaN()), Real(near)
	if !math.IsNaN(near) {
		f.Backlog.Period = Real(period.Microseconds())
	}

	f.SlowShare = share(p.slowTime, p.span)
	_, f.Slow.CI95, _ = joined(p.slows)
	f.Slow.N, f.Slow.Mean = p.spells.N(), micros(p.spells.Mean())
	f.Slow.P50, f.Slow.P99, f.Slow.Max = quantile(p.spells, 0.5), quantile(p.spells, 0.99), quantile(p.spells, 1)
	f.FastShare = share(p.fastTime, p.span)
	f.FastPackets = ratio(p.fastPacket, p.departed)

	var bubble [numClasses]des.Time
	var all des.Time
	for b := 1; b < len(p.table); b++ {
		for c, d := range p.table[b][engineIdle] {
			bubble[c] += d
			all += d
		}
	}
	f.BubbleShare = share(all, p.span)
	_, f.Bubbles.CI95, _ = joined(p.idles)
	f.Bubbles.ReceiveRoute = share(bubble[classReceiveRoute], p.span)
	f.Bubbles.Polls = share(bubble[classPolls], p.span)
	f.Bubbles.FlowControl = share(bubble[classFlow], p.span)
	f.Bubbles.Chain = share(bubble[classChain], p.span)
	f.Bubbles.Output = share(bubble[classOutput], p.span)
	f.Bubbles.Host = share(bubble[classHost], p.span)
	f.Bubbles.Unrecorded = share(bubble[classNone], p.span)

	f.DMAStep.Distribution = distribution(p.step, p.stepB, spec.Level)
	for i, to := range [numStepParts]*Real{
		stepHandlers: &f.DMAStep.Handlers, stepPolls: &f.DMAStep.Polls, stepInterruptions: &f.DMAStep.Interruptions,
		stepTransfer: &f.DMAStep.Transfer, stepBusWait: &f.DMAStep.BusWait, stepOther: &f.DMAStep.Unrecorded,
	} {
		*to = each(p.stepSum[i], p.steps)
	}

	f.Occupancy.Distribution = distribution(p.occupancy, p.occupancyB, spec.Level)
	f.Occupancy.Receive = each(p.handlerSum[StepReceive], p.closed)
	f.Occupancy.Route = each(p.handlerSum[StepRoute], p.closed)
	f.Occupancy.DMA = each(p.handlerSum[StepDMA], p.closed)
	f.Occupancy.FlowControl = each(p.handlerSum[StepFlow], p.closed)
	f.Occupancy.Output = each(p.handlerSum[StepOutput], p.closed)
	f.Occupancy.Host = each(p.handlerSum[StepHost]+p.handlerSum[StepNone]+p.handlerSum[StepPoll], p.closed)

	f.Transfer.Distribution = distribution(p.transfer, p.transferB, spec.Level)
	for i, to := range [numUnits]*Real{
		unitReceive: &f.Transfer.Receive, unitBody: &f.Transfer.Body, unitHeader: &f.Transfer.Header,
		unitAck: &f.Transfer.Ack, unitHost: &f.Transfer.Host, unitSend: &f.Transfer.Send, unitBusWait: &f.Transfer.BusWait,
	} {
		*to = each(p.unitSum[i], p.closed)
	}
	f.FIFO, f.FreeBuffers = level(p.fifo), level(p.buffers)
	return f
}

// each is the mean of a sum of times over n things, in µs.
func each(sum des.Time, n uint64) Real {
	if n == 0 {
		return Real(math.NaN())
	}
	return micros(float64(sum) / float64(n))
}

func dropCounts(dropped *[NumReasons]uint64) (map[string]uint64, uint64) {
	counts, all := map[string]uint64{}, uint64(0)
	for i, n := range dropped {
		if n > 0 {
			counts[Reason(i).String()] = n
			all += n
		}
	}
	return counts, all
}

// result makes the result. It merges histograms into those of the first lane,
// whose own figures are therefore made first.
func (m *Measures) result(end des.Time) (*Result, error) {
	span := end - m.spec.From
	r := &Result{
		Observed: Real(span.Seconds()), Received: m.received, Forwarded: m.forwarded, ToHost: m.toHost, Copies: m.copies,
		Cards: []CardFigures{},
	}
	var lost uint64
	r.Dropped, lost = dropCounts(&m.dropped)
	r.Loss = ratio(lost, m.received)
	r.ToHostBy, _ = dropCounts(&m.handed)
	r.ViaHostBy, _ = dropCounts(&m.returned)
	r.Stranded, _ = dropCounts(&m.stranded)

	var lanes []*lane
	for i, c := range m.cards {
		if c == nil || c.lane == nil {
			continue
		}
		l := c.lane
		lanes = append(lanes, l)
		var p pool
		if err := p.add(l, span, m.spec.Level); err != nil {
			return nil, fmt.Errorf("measures of card %d: %w", i, err)
		}
		p.gapB, p.ingressB, p.totalB, p.upstreamB = &l.gap.batches, &l.ingress.batches, &l.total.batches, &l.upstream.batches
		p.occupancyB, p.transferB, p.stepB = &l.occupancy.batches, &l.transfer.batches, &l.dmaStep.batches
		cf := CardFigures{
			Card: uint8(i), Received: l.received, Departed: l.departed, Forwarded: l.forwarded, ToHost: l.toHost, Stranded: l.stranded,
			Figures: p.figures(m.spec),
		}
		cf.Dropped, _ = dropCounts(&l.dropped)
		r.Cards = append(r.Cards, cf)
	}
	if len(lanes) == 0 { // nothing entered: a lane without events has the right zeros and NaNs
		l, err := newLane(m, NoCard)
		if err != nil {
			return nil, err
		}
		lanes = append(lanes, l)
		if err := l.finish(end); err != nil {
			return nil, err
		}
	}
	var p pool
	for _, l := range lanes {
		if err := p.add(l, span, m.spec.Level); err != nil {
			return nil, fmt.Errorf("measures of all cards: %w", err)
		}
	}
	p.gapB, p.ingressB, p.totalB, p.upstreamB = &m.gap, &m.ingress, &m.total, &m.upstream
	p.occupancyB, p.transferB, p.stepB = &m.occupancy, &m.transfer, &m.dmaStep
	r.Figures = p.figures(m.spec)
	m.utilisation(r, span)
	return r, nil
}
