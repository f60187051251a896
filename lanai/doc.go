// Package lanai models one LANai network card, true to the cycle: processor,
// SRAM and its memory bus, packet interface (a receive and a send engine),
// host-DMA engine and special registers. Figures come from hardware documents
// and firmware sources of the LANai 4 family; what no source says is marked
// "chosen" where it stands.
//
// # The memory bus
//
// SRAM serves a fixed number of 32-bit accesses in each card cycle
// ([Spec].Slots, two on a LANai 4), granted in the order E-bus, receive, send,
// processor. The order of the three engines is a parameter; the processor is
// always last. All state changes at cycle boundaries:
//
//   - An engine's stream is a demand at a rational pace of p/q words a cycle.
//     After k cycles of being on it has asked for D(k) = min(W, ceil(k·p/q))
//     words of the W it has to move. What a cycle does not grant is backlog,
//     served as soon as slots are left. It is bounded by the engine's FIFO:
//     in a cycle that begins with fewer free FIFO places than the most that
//     one cycle can ask for (ceil(p/q)), the pace stands still. Then the link
//     is held back (or, for the send engine, has a gap) and the stream ends
//     that much later. Backlog asks before new words do; which is which has
//     no effect on the counts.
//   - The E-bus stream has no W: the bus switches it on and off around data
//     phases, and its pace is the bus's. A change of pace begins a new D. What
//     is left in its FIFO when it stops drains later. The bus itself is never
//     slowed down by the memory: with the E-bus first in order, which is how
//     the hardware is wired, it has no reason to be.
//   - A box of N instruction cycles and M loads and stores asks for A = N + M
//     accesses, D(k) = min(A, ceil(k·A/N)) after k cycles, is granted at most
//     two a cycle and may catch up. It ends at the first boundary k ≥ N at
//     which all A have been granted. Polls are boxes back to back.
//   - A change at time t (a stream starts or stops) takes effect in the first
//     cycle that begins at t or later.
//
// Because paces are rational and FIFOs finite, the engines' pattern of grants
// repeats. It is tabulated once for each state met, up to its period, and
// shared ever after. The end of a box or transfer follows from the table in
// closed form: within one residue class of the period, cumulative grants minus
// ceil-linear demand is monotone, so the extreme that decides the end lies at
// one end of the class. Work is bounded by the period of the pattern, not by
// the length of a box, a transfer or a run of polls.
// What a box or polls do from a place in a pattern on is remembered, too: under a
// steady load the same few hundred cases come back.
//
// A pace whose denominator exceeds 1,024 (a clock some parts per million off,
// say) is replaced by the simplest fraction that differs from it by at most one
// part in 4,096. A pattern whose period still exceeds 4,096 cycles is
// tabulated in pieces of that length, as far as somebody looks.
//
// # Executed firmware
//
// Instead of a box of known demand the processor may execute compiled code
// (Processor.Execute, package isa). Every fetch is then an access and every
// load or store another, in the cycle in which it is made, and what is free in
// each cycle comes from the same tables; so executed code meets the engines to
// the cycle. Its length is known only once it has been executed.
//
// That happens ahead of time: the processors of the cards on one bus run past
// each other, up to the next event of anything else, and one that goes round a
// loop that waits up to the end of the run. Where an event touches a card whose
// processor has gone further, be it a stream that starts on its memory bus, a
// write from the bus or an engine's end, the processor is first taken back to
// that time. Device accesses, which are all that processors do to anything but
// their own memory, are events of their own. Tests hold it equal to processors
// that stop for each other's every step.
//
// # Left out
//
// Interrupts (firmware of this family masks them and polls), the second
// register context, reset and halt by the control words, JTAG and EEPROM, byte lanes on the memory bus (a part-word
// access costs as much as a word), and words that wait in the receive FIFO
// between two armed buffers: a stream begins afresh when it is armed.
package lanai
