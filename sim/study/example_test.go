package study_test

import (
	"context"
	"fmt"

	"spinesim/sim"
	"spinesim/sim/study"
)

// The highest rate with at most 0.5 % loss. The runs here are far too short for
// a figure; they show the call.
func ExampleMaxRate() {
	sc, err := sim.Load("fig6.4", "policy=pci-first")
	if err != nil {
		fmt.Println(err)
		return
	}
	opt := study.DefaultMaxRate()
	opt.Packets, opt.Replications, opt.Resolution = 1000, 4, 0.01
	r, err := study.MaxRate(context.Background(), sc, opt)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("found:", r.Found(), "within the bound:", r.Loss.Mean <= 0.005, "bracket at most 1 % wide:", r.Resolution <= 0.01)
	// Output:
	// found: true within the bound: true bracket at most 1 % wide: true
}

// Two policies on the same traffic.
func ExampleCompare() {
	sc, err := sim.Load("fig6.4", "traffic.packets=1000", "traffic.arrivals.process=saturating")
	if err != nil {
		fmt.Println(err)
		return
	}
	r, err := study.Compare(context.Background(), sc, study.CompareOptions{Policies: []string{"default", "pci-first"}, Replications: 4})
	if err != nil {
		fmt.Println(err)
		return
	}
	p := r.Policies[1]
	for _, metric := range []string{"gap_us", "bubble_share", "loss"} {
		fmt.Printf("%s: %s is %s\n", metric, p.Policy, p.Differences[metric].Verdict)
	}
	// Output:
	// gap_us: pci-first is better
	// bubble_share: pci-first is better
	// loss: pci-first is same
}
