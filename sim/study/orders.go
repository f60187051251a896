package study

import (
	"context"
	"fmt"
	"math"
	"slices"

	"spinesim/sim"
	"spinesim/sim/study/internal/runs"
	"spinesim/spine"
	"spinesim/spine/policy"
	"spinesim/traces"
)

// order is a strict priority of the queues, highest first.
type order = [spine.NumQueues]uint8

// allOrders lists all 5,040 orders in lexicographic order.
func allOrders() []order {
	var out []order
	var o order
	var place func(n int, used uint8)
	place = func(n int, used uint8) {
		if n == len(o) {
			out = append(out, o)
			return
		}
		for q := range uint8(spine.NumQueues) {
			if used&(1<<q) == 0 {
				o[n] = q
				place(n+1, used|1<<q)
			}
		}
	}
	place(0, 0)
	return out
}

// canonical is the order with the queues of a set in ascending order among the
// places that they hold.
//
// An order and its canonical one do the same as long as no card finds a
// message in any queue of the set: such a queue only ever costs a poll that
// misses, and which of them is polled in a place does not matter.
func canonical(o order, unused uint8) order {
	next := uint8(0)
	for i, q := range o {
		if unused&(1<<q) == 0 {
			continue
		}
		for unused&(1<<next) == 0 {
			next++
		}
		o[i] = next
		next++
	}
	return o
}

// Order is one strict order of an exhaustive search. Figures are means over
// the replications.
type Order struct {
	Order string `json:"order"`
	// Objective is what the orders are ranked by.
	Objective   traces.Real `json:"objective"`
	Gap         traces.Real `json:"gap_us"`
	Latency     traces.Real `json:"latency_us"`     // through the ingress card
	LatencyP99  traces.Real `json:"latency_p99_us"` // likewise
	Loss        traces.Real `json:"loss"`
	SlowShare   traces.Real `json:"slow_share"`
	BubbleShare traces.Real `json:"bubble_share"`
	Fingerprint string      `json:"fingerprint"` // of the first replication
	// RunOf is the order whose run this one shares, since the two differ only
	// in the places of queues that never held a message; empty for its own.
	RunOf string `json:"run_of,omitempty"`

	order  order
	unused uint8
}

// meanValues averages metrics over replications; a figure that one of them
// does not have is NaN.
func meanValues(os []outcome) []float64 {
	out := make([]float64, len(metrics))
	for _, o := range os {
		for i, v := range o.values {
			out[i] += v / float64(len(os))
		}
	}
	return out
}

// unusedIn is the set of queues that went unused in all runs.
func unusedIn(os []outcome) uint8 {
	set := uint8(1<<spine.NumQueues - 1)
	for _, o := range os {
		set &= o.unused
	}
	return set
}

func newOrder(o order, os []outcome, objective int) Order {
	v := meanValues(os)
	at := func(name string) traces.Real { return traces.Real(v[metricIndex(name)]) }
	unused := unusedIn(os)
	return Order{
		Order: policy.FormatOrder(o), order: o, unused: unused, Objective: traces.Real(v[objective]), Gap: at("gap_us"), Latency: at("latency_us"),
		LatencyP99: at("latency_p99_us"), Loss: at("loss"), SlowShare: at("slow_share"), BubbleShare: at("bubble_share"),
		Fingerprint: os[0].fingerprint,
	}
}

// exhaust runs orders, each with so many replications. It returns the orders
// that are done, in the order given, and the number of runs made.
func exhaust(ctx context.Context, sc *sim.Scenario, orders []order, replications, atOnce, objective int, report *runs.Reporter) ([]Order, int, error) {
	per := int64(sc.Traffic.Packets) * int64(len(sc.Traffic.Ingress))
	return shareRuns(orders, replications, objective, func(list []order) ([][]outcome, error) {
		grid := make([][]outcome, len(list))
		for i := range grid {
			grid[i] = make([]outcome, replications)
		}
		err := runs.Each(ctx, atOnce, len(list)*replications, func(ctx context.Context, k int) error {
			i, j := k/replications, k%replications
			v := replicate(sc, j)
			v.Policy = policy.FormatOrder(list[i])
			r, err := sim.Run(ctx, v, sim.Options{})
			if err != nil {
				return fmt.Errorf("order %s, seed %d: %w", v.Policy, v.Seed, err)
			}
			grid[i][j] = outcomeOf(r)
			report.Add(per, v.Policy)
			return nil
		})
		return grid, err
	})
}

// shareRuns has orders run, one for all those whose runs must be identical.
// What run returns beside an error may have gaps.
func shareRuns(orders []order, replications, objective int, run func([]order) ([][]outcome, error)) ([]Order, int, error) {
	if len(orders) == 0 {
		return nil, 0, nil
	}
	whole := func(os []outcome) bool {
		return !slices.ContainsFunc(os, func(o outcome) bool { return !o.done })
	}
	// The first order tells which queues are probably never used at all.
	first, err := run(orders[:1])
	if err != nil {
		return nil, 0, err
	}
	unused := unusedIn(first[0])
	runs := replications
	known := map[order][]outcome{orders[0]: first[0]}
	var reps []order
	listed := map[order]bool{orders[0]: true}
	for _, o := range orders {
		if c := canonical(o, unused); !listed[c] {
			listed[c] = true
			reps = append(reps, c)
		}
	}
	take := func(list []order, grid [][]outcome) {
		for i, o := range list {
			if whole(grid[i]) {
				known[o] = grid[i]
				runs += replications
			}
		}
	}
	grid, err := run(reps)
	take(reps, grid)
	// An order shares its canonical one's run only if that run itself never
	// used the queues in question; where one did, its kin run on their own.
	proven := func(c order) bool { os, ok := known[c]; return ok && unused&^unusedIn(os) == 0 }
	if err == nil {
		var own []order
		for _, o := range orders {
			if _, ok := known[o]; !ok && !proven(canonical(o, unused)) {
				own = append(own, o)
			}
		}
		if len(own) > 0 {
			grid, err = run(own)
			take(own, grid)
		}
	}
	var out []Order
	for _, o := range orders {
		c := canonical(o, unused)
		if os, ok := known[o]; ok {
			out = append(out, newOrder(o, os, objective))
		} else if proven(c) {
			r := newOrder(o, known[c], objective)
			r.RunOf = policy.FormatOrder(c)
			out = append(out, r)
		}
	}
	return out, runs, err
}

// PairEffect is what it means to poll one queue before another. Effects are in
// the objective's unit: First above Second minus Second above First, so that a
// negative one is in favour of First where less is better.
type PairEffect struct {
	First  string `json:"first"`
	Second string `json:"second"`
	// Effect is the mean over all pairs of orders that differ in exchanging
	// the two; its interval is over the arrangements of the other queues.
	Effect Interval `json:"effect"`
	// Adjacent is the same over those pairs in which the two stand next to
	// each other, so that no other priority changes.
	Adjacent Interval `json:"adjacent"`
	// Favours is the share of the pairs in which First above Second has the
	// better objective, Ties the share in which it makes no difference.
	Favours traces.Real `json:"favours"`
	Ties    traces.Real `json:"ties"`
	// Size is the effect over the standard deviation of the objective among
	// all orders; Explains the share of its variance that this one priority
	// explains.
	Size     traces.Real `json:"size"`
	Explains traces.Real `json:"explains"`
	Pairs    int         `json:"pairs"`
}

// queueNames are the queues' numbers and contents.
var queueNames = [spine.NumQueues]string{"Q0 self", "Q1 wire", "Q2 host", "Q3 peer 0", "Q4 peer 1", "Q5 peer 2", "Q6 dma"}

// pairEffects are the effects of all 21 priorities, largest first.
func pairEffects(orders []Order, objective *Metric) []PairEffect {
	at := map[order]float64{}
	for i := range orders {
		if v := float64(orders[i].Objective); !math.IsNaN(v) {
			at[orders[i].order] = v
		}
	}
	var n, mean, sq float64
	for i := range orders {
		if v, ok := at[orders[i].order]; ok {
			n++
			d := v - mean
			mean += d / n
			sq += d * (v - mean)
		}
	}
	if n < 2 {
		return nil
	}
	variance := sq / n
	var out []PairEffect
	for a := range uint8(spine.NumQueues) {
		for b := a + 1; b < spine.NumQueues; b++ {
			e := PairEffect{First: queueNames[a], Second: queueNames[b]}
			var all, near []float64
			var favours, ties int
			for i := range orders {
				o := orders[i].order
				ia, ib := slices.Index(o[:], a), slices.Index(o[:], b)
				if ia > ib {
					continue
				}
				swapped := o
				swapped[ia], swapped[ib] = b, a
				v, ok1 := at[o]
				w, ok2 := at[swapped]
				if !ok1 || !ok2 {
					continue
				}
				all = append(all, v-w)
				if ib == ia+1 {
					near = append(near, v-w)
				}
				switch c := objective.compare(v, w); {
				case c < 0:
					favours++
				case c == 0:
					ties++
				}
			}
			e.Pairs = len(all)
			if e.Pairs == 0 {
				continue
			}
			e.Effect, e.Adjacent = NewInterval(all), NewInterval(near)
			e.Favours = traces.Real(float64(favours) / float64(len(all)))
			e.Ties = traces.Real(float64(ties) / float64(len(all)))
			half := float64(e.Effect.Mean) / 2
			e.Size, e.Explains = 0, 0
			if variance > 0 {
				e.Size = traces.Real(float64(e.Effect.Mean) / math.Sqrt(variance))
				// Half of the orders lie half an effect above the mean, half
				// below it.
				e.Explains = traces.Real(half * half / variance)
			}
			out = append(out, e)
		}
	}
	slices.SortStableFunc(out, func(x, y PairEffect) int {
		switch a, b := math.Abs(float64(x.Effect.Mean)), math.Abs(float64(y.Effect.Mean)); {
		case a > b:
			return -1
		case a < b:
			return 1
		}
		return 0
	})
	return out
}
