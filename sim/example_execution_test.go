package sim_test

import (
	"context"
	"fmt"
	"log"

	"spinesim/sim"
)

// The same packets through cards whose costs are data, whose handlers are
// executed, and whose whole firmware is.
func ExampleRun_executed() {
	for _, how := range []string{"table", "handlers", "full"} {
		sc, err := sim.Load("fig6.4", "traffic.packets=500", "traffic.arrivals.rate=150 µs", "firmware.execution="+how)
		if err != nil {
			log.Fatal(err)
		}
		r, err := sim.Run(context.Background(), sc, sim.Options{Check: true})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s: %d of %d forwarded, %d invariants broken, latency %.0f µs\n",
			how, r.Forwarded, r.Received, len(r.Violations), float64(r.Latency.Ingress.Mean))
	}
	// Output:
	// table: 500 of 500 forwarded, 0 invariants broken, latency 114 µs
	// handlers: 500 of 500 forwarded, 0 invariants broken, latency 143 µs
	// full: 500 of 500 forwarded, 0 invariants broken, latency 280 µs
}

// An extension compiled from C runs in the router handler. This one breaks rules
// now and then; it is stopped each time, its packet is dropped, and the router
// goes on.
func ExampleRun_extension() {
	sc, err := sim.Load("fig6.4", "traffic.packets=300", "traffic.arrivals.rate=500 µs",
		"firmware.execution=full", "firmware.extension=[testdata/extensions/misdeeds.o]")
	if err != nil {
		log.Fatal(err)
	}
	r, err := sim.Run(context.Background(), sc, sim.Options{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("all came out or were dropped:", r.Forwarded+r.Dropped["extension"]+r.Dropped["watchdog"] == r.Received)
	for _, f := range r.Faults {
		if f.Symbol == "spine_send" {
			fmt.Println("not allowed to call", f.Symbol)
		}
	}
	// Output:
	// all came out or were dropped: true
	// not allowed to call spine_send
}
