package sim_test

import (
	"context"
	"fmt"
	"log"

	"spinesim/sim"
	"spinesim/spine"
)

// alternate is a dispatcher of one's own: strict priority, but a queue whose
// handler has just run goes to the end for one turn.
type alternate struct {
	order [spine.NumQueues]uint8
}

// Name is shown in results.
func (*alternate) Name() string { return "alternate" }

// Plan says which queues to poll as long as every poll misses. It is called
// after each handler; v holds what the dispatcher knows without polling.
func (a *alternate) Plan(v *spine.View, p *spine.Plan) {
	p.Seq = p.Seq[:0] // keeps its memory: a plan must not allocate
	back := v.LastQueue
	for _, q := range a.order {
		if q != back {
			p.Seq = append(p.Seq, q)
		}
	}
	if len(p.Seq) < spine.NumQueues {
		p.Seq = append(p.Seq, back)
	}
	p.Loop = 0 // again from the first one, until a poll hits
}

// Hit tells that poll n of the plan found queue q ready. A policy that counts
// does it here; this one has nothing to count.
func (*alternate) Hit(n int64, q uint8) {}

// A policy of one's own is a type with three methods. Options.Policy hands one
// to each card.
func ExampleOptions_policy() {
	sc, err := sim.Load("fig6.4", "traffic.packets=5000", "traffic.arrivals.process=saturating")
	if err != nil {
		log.Fatal(err)
	}
	own, err := sim.Run(context.Background(), sc, sim.Options{
		Check: true, // every invariant holds whatever the policy does
		Policy: func(card int) (spine.Policy, error) {
			return &alternate{order: spine.DefaultOrder}, nil
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	standard, err := sim.Run(context.Background(), sc, sim.Options{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(own.Policy, "against", standard.Policy)
	fmt.Println("forwarded:", own.Forwarded, standard.Forwarded)
	fmt.Println("broken invariants:", len(own.Violations))
	fmt.Println("shorter gap:", own.Gap.Mean < standard.Gap.Mean)
	// Output:
	// alternate against default
	// forwarded: 5000 5000
	// broken invariants: 0
	// shorter gap: true
}

// A policy can also be written in the scenario: an order, and rules under which
// others hold.
func ExampleLoad_rules() {
	sc, err := sim.Load("fig6.4", "traffic.packets=5000", "traffic.arrivals.process=saturating",
		"policy='rules:order=default, when buffers<25% until buffers>50% use pci-first, when unpolled Q6>=6 first Q6'")
	if err != nil {
		log.Fatal(err)
	}
	r, err := sim.Run(context.Background(), sc, sim.Options{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(r.Policy)
	fmt.Println("forwarded:", r.Forwarded)
	// Output:
	// rules:when buffers<25% until buffers>50% use 6345012,when unpolled Q6>=6 first Q6
	// forwarded: 5000
}
