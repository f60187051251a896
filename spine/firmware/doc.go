// Package firmware holds code that runs on the simulated card's processor: the
// SPINE run-time's handlers in C, the small library that compiled code needs,
// and their objects, so that no compiler is needed to run them. It compiles
// firmware of one's own where clang is installed, and tells what each handler
// costs when it is executed rather than charged from a table.
//
// A Card is a whole simulated card that runs it: the dispatcher in C for ever,
// or polls and handlers one by one as a dispatcher in Go asks for them. Where an
// extension is linked in, a guard keeps the run-time from harm: the extension
// runs with rights, a stack and a watchdog of its own, and what it may not do is
// a fault that costs it its packet and nothing else.
//
// What the firmware leaves out: link headers, packets from the host, frames
// longer than a buffer (a card's receive limit is never reached by what fits a
// slot), and a check of the link's CRC, of which the card's registers say
// nothing: a packet that is shorter than its header says is dropped as such.
package firmware
