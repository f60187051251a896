package study

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"sync/atomic"

	"spinesim/sim"
	"spinesim/sim/study/internal/runs"
	"spinesim/spine"
	"spinesim/traces"
)

// ExecutionOptions are those of a comparison of what the processors execute.
type ExecutionOptions struct {
	// Executions; the first is what the others are compared with. Nil: all
	// three, the table first.
	Executions []spine.Execution
	// Replications of each, under the scenario's seed and those that follow
	// it [3, chosen]. More: narrower intervals, with their root.
	Replications int
	// Workers is how many runs go on at once [GOMAXPROCS].
	Workers int
	// Progress is told the runs that are done.
	Progress Progress
}

// StepCost is what a handler, or a poll, took on the ingress cards and, for the
// handlers of the egress side, on the others.
type StepCost struct {
	Name string `json:"name"` // a handler's, or "poll"
	// Runs for each forwarded packet.
	Runs traces.Real `json:"runs_per_packet"`
	// Cycles and Stall, means of a run: its own, and those lost to the memory
	// bus.
	Cycles traces.Real `json:"cycles"`
	Stall  traces.Real `json:"stall_cycles"`
	// Off is how many cycles of a packet's way the first execution's cost is
	// short (above 0) or too long of this one's: the difference of a run's
	// cycles, times this one's runs for each packet. NaN, in JSON null, for the
	// first itself.
	Off traces.Real `json:"off_cycles_per_packet"`
}

// ExecutionResult is one of a comparison.
type ExecutionResult struct {
	Execution spine.Execution `json:"execution"`
	// Figures by metric, and their differences from the first's.
	Figures     map[string]Interval   `json:"figures"`
	Differences map[string]Difference `json:"differences,omitempty"`
	// BestPeriod and BestLatency, in µs, are those of the best window of all
	// replications: the most even fast stretch of four receives.
	BestPeriod  traces.Real `json:"best_window_period_us"`
	BestLatency traces.Real `json:"best_window_latency_us"`
	// Costs, polls of the ingress cards first, then handlers in the order of
	// the event graph.
	Costs        []StepCost `json:"costs"`
	Fingerprints []string   `json:"fingerprints"` // by replication
}

// ExecutionsResult compares what a run gives when costs are data, when polls and
// handlers are executed, and when the whole firmware is.
type ExecutionsResult struct {
	Scenario     string            `json:"scenario"`
	Process      string            `json:"process"`
	Rate         traces.Real       `json:"rate"` // packets/s into each ingress card; null when saturating
	Saturating   bool              `json:"saturating"`
	Packets      uint64            `json:"packets"`
	Seed         uint64            `json:"seed"`
	Replications int               `json:"replications"`
	CycleUS      traces.Real       `json:"cycle_us"` // of card 0
	Metrics      []Metric          `json:"metrics"`
	Executions   []ExecutionResult `json:"executions"`
	// Compared counts the packets that the first and another execution both
	// took in, Otherwise those of them that did not leave by the same card, or
	// not for the same reason. It should be 0.
	Compared  uint64   `json:"packets_compared"`
	Otherwise uint64   `json:"packets_that_went_otherwise"`
	Version   string   `json:"version"`
	Notes     []string `json:"notes,omitempty"`
}

// CompareExecutions runs a scenario under the same seeds with different things
// executed, compares what comes out, and says where the table was wrong.
func CompareExecutions(ctx context.Context, sc *sim.Scenario, opt ExecutionOptions) (*ExecutionsResult, error) {
	if opt.Executions == nil {
		opt.Executions = []spine.Execution{spine.ExecuteTable, spine.ExecuteHandlers, spine.ExecuteFull}
	}
	if opt.Replications == 0 {
		opt.Replications = 3
	}
	if len(opt.Executions) == 0 {
		return nil, runs.InputErrorf("nothing to compare")
	}
	if opt.Replications < 1 || opt.Replications > 100_000 {
		return nil, runs.InputErrorf("%d replications, want 1 to 100000", opt.Replications)
	}
	r := &ExecutionsResult{
		Scenario: sc.Name, Process: sc.Traffic.Arrivals.Process, Saturating: saturates(sc), Packets: sc.Traffic.Packets,
		Seed: sc.Seed, Replications: opt.Replications, Metrics: Metrics(), Version: sim.Version, Rate: traces.Real(math.NaN()),
	}
	if !r.Saturating && sc.Traffic.Arrivals.Rate.Set() {
		r.Rate = traces.Real(sc.Traffic.Arrivals.Rate.PerSecond())
	}
	var variants []*sim.Scenario
	for i, how := range opt.Executions {
		if slices.Contains(opt.Executions[:i], how) {
			return nil, runs.InputErrorf("execution %s is there twice", how)
		}
		v := runs.With(sc, func(v *sim.Scenario) {
			v.Firmware.Execution = string(how)
			if how == spine.ExecuteTable {
				v.Firmware.Extension = nil // nothing could run it
			}
		})
		if err := v.Validate(); err != nil {
			return nil, err
		}
		if how == spine.ExecuteTable && len(sc.Firmware.Extension) > 0 {
			r.Notes = append(r.Notes, "the extension does not run with execution: table")
		}
		variants = append(variants, v)
	}
	period, err := sim.CardPeriod(sc)
	if err != nil {
		return nil, err
	}
	r.CycleUS = traces.Real(period.Microseconds())
	grid := make([][]executionRun, len(variants))
	for i := range grid {
		grid[i] = make([]executionRun, opt.Replications)
	}
	var done atomic.Int64
	report := runs.NewReporter(opt.Progress, int64(len(variants)*opt.Replications), &done)
	err = runs.Each(ctx, opt.Workers, len(variants)*opt.Replications, func(ctx context.Context, k int) error {
		i, j := k%len(variants), k/len(variants)
		v := replicate(variants[i], j)
		run := &grid[i][j]
		run.init(v)
		res, err := sim.Run(ctx, v, sim.Options{Sinks: []traces.Sink{run}})
		if err != nil {
			return fmt.Errorf("execution %s, seed %d: %w", v.Firmware.Execution, v.Seed, err)
		}
		run.outcome, run.forwarded = outcomeOf(res), res.Forwarded
		report.Add(1, v.Firmware.Execution)
		return nil
	})
	if err != nil {
		return nil, err
	}
	for i, how := range opt.Executions {
		r.Executions = append(r.Executions, executionResult(how, grid[0], grid[i], i == 0))
		if i == 0 {
			continue
		}
		for j := range grid[i] {
			same, other := grid[0][j].agree(&grid[i][j])
			r.Compared += same + other
			r.Otherwise += other
		}
	}
	return r, nil
}

// executionRun is what is kept of one run.
type executionRun struct {
	outcome
	forwarded uint64
	ingress   uint64 // cards, a bit each
	windows   sim.Windows
	runs      [traces.NumEvents + 1]stepSum // by event; the last for polls
	places    []packetPlace                 // by packet
	ends      [spine.MaxCards][]packetEnd   // by ingress card and place there
}

// packetPlace is which of the packets of its ingress card a packet is. Numbers
// go by the order of arrival at any card, which saturating sources leave to the
// machine.
type packetPlace struct {
	card uint8
	n    int32
}

type stepSum struct{ n, cycles, stall uint64 }

func (s *stepSum) add(n, cycles, stall uint64) {
	s.n += n
	s.cycles += cycles
	s.stall += stall
}

// packetEnd is how a packet left.
type packetEnd struct {
	verdict traces.Verdict
	reason  traces.Reason
	card    uint8
}

// windowSkip is how many packets are let pass before windows are looked for
// (chosen: the pipeline is full by then).
const windowSkip = 100

func (x *executionRun) init(sc *sim.Scenario) {
	for _, c := range sc.Traffic.Ingress {
		x.ingress |= 1 << c
	}
	x.windows = sim.Windows{Card: uint8(sc.Traffic.Ingress[0]), Skip: min(windowSkip, sc.Traffic.Packets/10)}
}

// Record implements traces.Sink.
func (x *executionRun) Record(r *traces.Record) error {
	switch r.Kind {
	case traces.KindBox:
		x.runs[r.Event].add(1, r.Cycles, uint64(r.Stall))
	case traces.KindPolls:
		if r.Card < 64 && x.ingress>>r.Card&1 != 0 {
			x.runs[traces.NumEvents].add(uint64(r.Count), r.Cycles, uint64(r.Stall))
		}
	case traces.KindEnter:
		if int(r.Card) >= len(x.ends) {
			break
		}
		for uint64(len(x.places)) <= r.Packet {
			x.places = append(x.places, packetPlace{card: traces.NoCard})
		}
		x.places[r.Packet] = packetPlace{r.Card, int32(len(x.ends[r.Card]))}
		x.ends[r.Card] = append(x.ends[r.Card], packetEnd{})
	case traces.KindLeave:
		if r.Reason == traces.ReasonFIFOFull || r.Reason == traces.ReasonNoBufferDiscard {
			break // a matter of time
		}
		if r.Packet < uint64(len(x.places)) && x.places[r.Packet].card != traces.NoCard {
			at := x.places[r.Packet]
			x.ends[at.card][at.n] = packetEnd{r.Verdict, r.Reason, r.Card}
		}
	}
	return x.windows.Record(r)
}

// agree counts the packets that both runs took in, by whether they ended alike.
func (x *executionRun) agree(y *executionRun) (same, other uint64) {
	for c := range x.ends {
		for i := range min(len(x.ends[c]), len(y.ends[c])) {
			a, b := x.ends[c][i], y.ends[c][i]
			switch {
			case a.verdict == traces.VerdictNone || b.verdict == traces.VerdictNone:
			case a == b:
				same++
			default:
				other++
			}
		}
	}
	return same, other
}

// metricOf is a metric of all runs.
func metricOf(runs []executionRun, metric int) []float64 {
	var v []float64
	for i := range runs {
		v = append(v, runs[i].values[metric])
	}
	return v
}

func executionResult(how spine.Execution, first, runs []executionRun, isFirst bool) ExecutionResult {
	nan := traces.Real(math.NaN())
	e := ExecutionResult{Execution: how, Figures: map[string]Interval{}, BestPeriod: nan, BestLatency: nan}
	if !isFirst {
		e.Differences = map[string]Difference{}
	}
	for m := range metrics {
		v := metricOf(runs, m)
		e.Figures[metrics[m].Name] = NewInterval(v)
		if !isFirst {
			e.Differences[metrics[m].Name] = difference(&metrics[m], metricOf(first, m), v)
		}
	}
	for i := range runs {
		e.Fingerprints = append(e.Fingerprints, runs[i].fingerprint)
		if b := runs[i].windows.Best(); b.Found && !(b.Period.Microseconds() >= float64(e.BestPeriod)) {
			e.BestPeriod, e.BestLatency = traces.Real(b.Period.Microseconds()), nan
			if b.Latency > 0 {
				e.BestLatency = traces.Real(b.Latency.Microseconds())
			}
		}
	}
	e.Costs = stepCosts(first, runs, isFirst)
	return e
}

// stepCosts are the polls and handlers of all runs.
func stepCosts(first, runs []executionRun, isFirst bool) (out []StepCost) {
	total := func(runs []executionRun, i int) (s stepSum, packets uint64) {
		for j := range runs {
			x := &runs[j].runs[i]
			s.add(x.n, x.cycles, x.stall)
			packets += runs[j].forwarded
		}
		return s, packets
	}
	of := func(name string, i int) {
		s, packets := total(runs, i)
		if s.n == 0 || packets == 0 {
			return
		}
		n := float64(s.n)
		c := StepCost{
			Name: name, Runs: traces.Real(n / float64(packets)), Cycles: traces.Real(float64(s.cycles) / n),
			Stall: traces.Real(float64(s.stall) / n), Off: traces.Real(math.NaN()),
		}
		if b, _ := total(first, i); !isFirst && b.n > 0 {
			c.Off = (c.Cycles - traces.Real(float64(b.cycles)/float64(b.n))) * c.Runs
		}
		out = append(out, c)
	}
	of("poll", traces.NumEvents)
	for _, h := range spine.Handlers {
		of(h.String(), int(h))
	}
	return out
}

// Wrong lists where the first execution's costs were furthest off this one's,
// the largest difference for a packet first.
func (e *ExecutionResult) Wrong() []StepCost {
	out := slices.DeleteFunc(slices.Clone(e.Costs), func(c StepCost) bool { return math.IsNaN(float64(c.Off)) })
	slices.SortStableFunc(out, func(a, b StepCost) int {
		return cmp.Compare(math.Abs(float64(b.Off)), math.Abs(float64(a.Off)))
	})
	return out
}

// Cost finds a handler's, or "poll".
func (e *ExecutionResult) Cost(name string) (StepCost, bool) {
	i := slices.IndexFunc(e.Costs, func(c StepCost) bool { return c.Name == name })
	if i < 0 {
		return StepCost{}, false
	}
	return e.Costs[i], true
}
