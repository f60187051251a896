package sim_test

import (
	"context"
	"fmt"
	"log"

	"spinesim/lanai"
	"spinesim/sim"
	"spinesim/spine"
	"spinesim/traces"
)

// A scenario, changed in two places, run and looked at.
func ExampleRun() {
	sc, err := sim.Load("fig6.4", "traffic.packets=5000", "policy=pci-first")
	if err != nil {
		log.Fatal(err)
	}
	r, err := sim.Run(context.Background(), sc, sim.Options{Check: true})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("forwarded:", r.Forwarded, "of", r.Received)
	fmt.Println("routes:", r.Routes, "in less than 20 KB:", r.RouteTableBytes < 20_000)
	fmt.Println("broken invariants:", len(r.Violations))
	// Output:
	// forwarded: 5000 of 5000
	// routes: 1000 in less than 20 KB: true
	// broken invariants: 0
}

// oddHosts is an extension: it drops packets to odd addresses and leaves the
// others to IPv4 forwarding.
type oddHosts struct{ dropped int }

// Name is shown where the extension is mentioned.
func (*oddHosts) Name() string { return "odd-hosts" }

// Handle looks at one packet. What it charges is how long the router handler
// runs on the card's processor.
func (x *oddHosts) Handle(ctx *spine.Context, p *spine.Packet) spine.Verdict {
	ctx.Charge(6) // address, mask, compare, branch
	ctx.Access(1) // one load
	if len(p.Header) >= 20 && p.Header[19]&1 == 1 {
		x.dropped++
		return spine.Verdict{Action: spine.Drop, Reason: traces.ReasonExtension}
	}
	return spine.Verdict{Action: spine.Next}
}

// An extension of one's own runs on every card before IPv4 forwarding.
func ExampleOptions_extensions() {
	sc, err := sim.Load("fig6.4", "traffic.packets=2000")
	if err != nil {
		log.Fatal(err)
	}
	var mine []*oddHosts
	r, err := sim.Run(context.Background(), sc, sim.Options{
		Extensions: func(card int, sram *lanai.SRAM) ([]spine.Extension, error) {
			x := &oddHosts{}
			mine = append(mine, x)
			return []spine.Extension{x}, nil
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	dropped := 0
	for _, x := range mine {
		dropped += x.dropped
	}
	fmt.Println("all accounted for:", int(r.Forwarded)+dropped == 2000)
	fmt.Println("dropped by the extension:", r.Dropped["extension"] == uint64(dropped) && dropped > 900)
	// Output:
	// all accounted for: true
	// dropped by the extension: true
}
