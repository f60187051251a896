package sim_test

import (
	"context"
	"errors"
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

// A fault of the run-time's own code stops its card and no other. Here something
// has overwritten an instruction of a handler on card 2: it acknowledges nothing,
// and packets for it wait for credits until they hold all buffers of card 0.
func ExampleStoppedError() {
	sc, err := sim.Load("fig6.4", "traffic.packets=300", "firmware.execution=full")
	if err != nil {
		log.Fatal(err)
	}
	s, err := sim.New(sc, sim.Options{Check: true})
	if err != nil {
		log.Fatal(err)
	}
	fw := s.Router().Card(2).Firmware()
	at, err := fw.Image.Symbol("spine_ack_send")
	if err != nil {
		log.Fatal(err)
	}
	if err := fw.SRAM.SetWord(at, 0xD0000007); err != nil {
		log.Fatal(err)
	}
	r, err := s.Run(context.Background())
	var stop *sim.StoppedError
	if !errors.As(err, &stop) {
		log.Fatal(err)
	}
	c := stop.Cards[0]
	fmt.Printf("card %d stopped in %s: %s at %s, word %#x\n", c.Card, c.Handler, c.Instruction, c.Symbol, c.Word)
	stranded := uint64(0)
	for _, n := range r.Stranded {
		stranded += n
	}
	fmt.Println("forwarded all the same:", r.Forwarded)
	fmt.Println("each accounted for:", r.Forwarded+r.Dropped["FIFO full"]+stranded == r.Received)
	fmt.Println("broken invariants:", len(r.Violations))
	// Output:
	// card 2 stopped in ACK send: <unknown> at spine_ack_send, word 0xd0000007
	// forwarded all the same: 41
	// each accounted for: true
	// broken invariants: 0
}
