package spine_test

import (
	"fmt"
	"log"

	"spinesim/spine"
	"spinesim/spine/policy"
)

// A policy's plan is what it polls as long as every poll misses.
func ExampleNewPolicy() {
	for _, text := range []string{"6345012", "weighted-round-robin:weights=1", "continuation-first"} {
		p, err := spine.NewPolicy(text, 1, 0)
		if err != nil {
			log.Fatal(err)
		}
		v := spine.View{ChainActive: true, ChainQueue: spine.QDMA}
		var plan spine.Plan
		p.Plan(&v, &plan)
		fmt.Println(p.Name(), plan.Seq)
	}
	// Output:
	// Q6 Q3 Q4 Q5 Q0 Q1 Q2 [6 3 4 5 0 1 2]
	// weighted-round-robin:weights=1/1/1/1/1/1/1 [0 1 2 3 4 5 6]
	// continuation-first [6 0 1 2 3 4 5]
}

// A rule with "until" has hysteresis: between the two levels it stays as it was.
func ExampleNewRules() {
	p, err := policy.NewRules("order=default, when buffers <= 4 until buffers >= 8 use pci-first")
	if err != nil {
		log.Fatal(err)
	}
	var plan spine.Plan
	for _, free := range []int{16, 6, 4, 6, 8} {
		p.Plan(&spine.View{FreeBuffers: free, Buffers: 16}, &plan)
		fmt.Println(free, "free: first", plan.Seq[0])
	}
	// Output:
	// 16 free: first 0
	// 6 free: first 0
	// 4 free: first 6
	// 6 free: first 6
	// 8 free: first 0
}
