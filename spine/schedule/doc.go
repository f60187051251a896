// Package schedule makes static schedules: a fixed cycle of handlers for each
// card's dispatcher, known a priori, in place of polling by priority. It answers
// how much a general-purpose event scheduler costs against a schedule made for
// the traffic, which the thesis leaves open.
//
//   - [LowerBound] adds up what a packet asks of every resource: no dispatcher
//     can do better than the busiest one allows.
//   - [Build] turns a packet's chain of handlers and transfers into a cyclic
//     scheduling [Problem], with buffers, credits and engines as limits;
//     [Solve] finds the shortest cycle. It first places ops greedily, then
//     searches exhaustively by branch and bound, so that it proves the cycle
//     to be the shortest, or tells how far from it it may be.
//   - [Synthesise] does both and makes a [Plan]: the steps by which a card's
//     dispatcher (spine.StaticCycle) runs the cycle, with a poll only where it
//     must look. [Parse] reads a plan that people wrote, [Plan.WriteYAML]
//     writes one, [Check] refuses one that cannot work.
//
// In the model of a cycle, times are those of an idle machine: boxes at the full
// speed of the processor, transfers on an idle bus, a wait for hardware ending
// half a poll late, the router handler at its mean. What memory accesses of the
// engines and ACKs that cut into transfers add is computed from the cycle found
// and told apart (Result.MemoryUS, Result.BusUS).
//
// Left out: the extra bursts by which several cards that contend for the bus
// chop each other's transfers (there a transfer is one whole), packets for the
// host, and those that leave by the wire they came from: cycles have steps for
// both, but are not made for them.
//
// Sources: the chain is the thesis's (pp. 107–109); modulo scheduling after Rau,
// Huff and Llosa; costs, buffers and credits as package spine has them.
package schedule
