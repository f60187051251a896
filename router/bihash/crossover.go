package bihash

import "math"

// Series is what prefetching saves against the number of flows, on one
// processor.
type Series struct {
	Processor string       `json:"processor"`
	Prefetch  Prefetch     `json:"prefetch"`
	Order     Order        `json:"order"`
	Points    []Comparison `json:"points"`
	// Crossover is the number of flows from which on prefetching saves, between
	// the two points around it on a logarithmic axis; 0 when it never does.
	Crossover float64 `json:"crossover_flows"`
}

// CrossoverFlows are the numbers of flows that a plot takes: 1 to 65,536.
func CrossoverFlows() []int {
	return []int{1, 2, 4, 16, 64, 128, 256, 384, 512, 768, 1024, 1536, 2048, 4096, 8192, 10000, 16384, 65536}
}

// Crossover compares both loops over numbers of flows, in ascending order.
func Crossover(n Node, p Processor, spec Spec, flows []int, order Order, pre Prefetch) (Series, error) {
	s := Series{Processor: p.Name, Prefetch: pre, Order: order, Points: make([]Comparison, len(flows))}
	err := each(len(flows), func(i int) error {
		c, err := Compare(n, p, spec, flows[i], order, pre)
		s.Points[i] = c
		return err
	})
	if err != nil {
		return Series{}, err
	}
	s.Crossover = crossing(s.Points)
	return s, nil
}

// crossing finds the last change from costing to saving.
func crossing(points []Comparison) float64 {
	last := len(points) - 1
	if last < 0 || points[last].Saving <= 0 {
		return 0
	}
	for i := last; i > 0; i-- {
		a, b := points[i-1], points[i]
		if a.Saving > 0 {
			continue
		}
		x, y := math.Log(float64(a.Flows)), math.Log(float64(b.Flows))
		return math.Exp(x + (y-x)*(0-a.Saving)/(b.Saving-a.Saving))
	}
	return float64(points[0].Flows)
}
