package plots_test

import (
	"fmt"
	"os"
	"path/filepath"

	"spinesim/plots"
	"spinesim/sim/des"
	"spinesim/traces"
)

// An event graph of a record, as SVG.
func ExampleEventGraph_Plot() {
	us := des.Microsecond
	records := []traces.Record{
		{Kind: traces.KindBox, Event: traces.RxCheckHeader, Packet: 1, Start: 2 * us, End: 5 * us},
		{Kind: traces.KindBox, Event: traces.RxCheckBody, Packet: 1, Start: 15 * us, End: 18 * us},
		{Kind: traces.KindBox, Event: traces.RouterIn, Packet: 1, Start: 20 * us, End: 24 * us},
	}
	g := plots.EventGraph{Title: "One packet", From: 0, To: 30 * us, Trace: 1}
	p, err := g.Plot(records)
	if err != nil {
		fmt.Println(err)
		return
	}
	dir, err := os.MkdirTemp("", "plots")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	fmt.Println(plots.Save(filepath.Join(dir, "graph.svg"), plots.Wide, p))
	// Output: <nil>
}

// The policies that no other beats in both rate and latency.
func ExamplePareto_Front() {
	p := plots.Pareto{MoreX: true, Points: []plots.ParetoPoint{
		{Name: "default", X: plots.PlusMinus(12500, 60), Y: plots.PlusMinus(740, 20)},
		{Name: "pci-first", X: plots.PlusMinus(17200, 40), Y: plots.PlusMinus(130, 5)},
		{Name: "round-robin", X: plots.PlusMinus(15100, 50), Y: plots.PlusMinus(120, 4)},
	}}
	for _, i := range p.Front() {
		fmt.Println(p.Points[i].Name)
	}
	// Output:
	// round-robin
	// pci-first
}

// A lower bound on the gap is set by the busiest resource.
func ExampleBound_Lowest() {
	b := plots.Bound{Resources: []plots.StackedBar{
		{Name: "processor", Parts: []plots.Part{{Name: "receive", Value: 7.4}, {Name: "DMA chain", Value: 10.9}}},
		{Name: "DMA engine", Parts: []plots.Part{{Name: "body", Value: 33}, {Name: "header", Value: 0.75}}},
	}}
	fmt.Println(b.Lowest())
	// Output: 33.75 DMA engine
}
