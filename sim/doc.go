// Package sim is a whole simulation: a Scenario, its wiring, Run and Result. It
// is the library's front door.
//
// It models the router of Martin's thesis (pp. 107–109): LANai cards on one
// PCI bus, SPINE on each, real routes, and traffic that arrives on their wires.
// Each value of a scenario that the thesis does not publish is marked as chosen
// in the scenario reference of the README.
//
// A scenario also says what the cards' processors execute: nothing (costs are
// data), each poll and handler, or the whole firmware, compiled from C. A card
// that a fault of its firmware stops does not end the run: the result is whole,
// tells which packets are stranded by it, and comes with a *StoppedError.
//
// What it leaves out: switches and links beyond a FIFO in front of each card,
// and hosts other than the router's own.
package sim
