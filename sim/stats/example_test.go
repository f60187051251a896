package stats_test

import (
	"fmt"

	"spinesim/sim/des"
	"spinesim/sim/stats"
)

func ExampleHistogram() {
	h, err := stats.NewHistogram(0.005) // quantiles to half a per cent
	if err != nil {
		fmt.Println(err)
		return
	}
	for v := range int64(100000) {
		h.Add(v)
	}
	median, _ := h.Quantile(0.5)
	p99, _ := h.Quantile(0.99)
	fmt.Println(h.N(), h.Max(), median, p99)
	// Output: 100000 99999 50047 99071
}

func ExampleBatches() {
	var gaps stats.Batches
	s := des.NewStream(1, "gaps")
	for range 100000 {
		gaps.Add(s.Exponential(55 * des.Microsecond).Microseconds())
	}
	fmt.Println(gaps.Estimate(0.95))

	var few stats.Batches
	few.Add(55)
	fmt.Println(few.Estimate(0.95))
	// Output:
	// 55.07 ± 0.33
	// too short to say (too few observations)
}

func ExampleCompare() {
	before := []float64{81, 95, 70, 88}
	after := []float64{79, 92, 68, 85}
	c, err := stats.Compare(before, after, 0.95, stats.LessIsBetter)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(c.Difference, c.Verdict)
	// Output: -2.50 ± 0.92 better
}

func ExampleTimeAverage() {
	var depth stats.TimeAverage
	for _, s := range []struct {
		at    int64
		level float64
	}{{0, 0}, {10, 2}, {20, 1}, {40, 0}} {
		if err := depth.Set(s.at, s.level); err != nil {
			fmt.Println(err)
			return
		}
	}
	fmt.Println(depth.Mean(), depth.Max())
	// Output: 1 2
}
