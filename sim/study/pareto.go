package study

import (
	"cmp"
	"math"
	"slices"

	"spinesim/traces"
)

// ParetoPoint is a policy that no other beats in both gap and latency.
type ParetoPoint struct {
	Policy     string      `json:"policy"`
	Gap        traces.Real `json:"gap_us"`
	LatencyP99 traces.Real `json:"latency_p99_us"`
}

// paretoFront are the points that no other beats in one figure without being
// worse in the other, by rising gap. Of equal points the first stays.
func paretoFront(points []ParetoPoint) []ParetoPoint {
	sorted := slices.Clone(points)
	sorted = slices.DeleteFunc(sorted, func(p ParetoPoint) bool {
		return math.IsNaN(float64(p.Gap)) || math.IsNaN(float64(p.LatencyP99))
	})
	slices.SortStableFunc(sorted, func(a, b ParetoPoint) int {
		return cmp.Or(cmp.Compare(a.Gap, b.Gap), cmp.Compare(a.LatencyP99, b.LatencyP99))
	})
	front := []ParetoPoint{}
	for _, p := range sorted {
		if len(front) == 0 || p.LatencyP99 < front[len(front)-1].LatencyP99 {
			front = append(front, p)
		}
	}
	return front
}
