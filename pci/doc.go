// Package pci models a conventional PCI bus to the clock: its arbiter, its
// masters and targets, and the bridge that puts a host's memory and processor
// on it.
//
// # A transaction
//
// Clock n is the time from the bus clock's edge n to its edge n+1. What a
// device asks for between two edges is seen at the later one. One burst takes
//
//	1            address phase
//	1            turnaround of the lines, reads only
//	W or L       wait of the target before its first data: DEVSEL# and initial
//	             wait of a write (W), latency of a read (L)
//	n × (1+d)    n data phases, each with d wait states of the target
//	0 or 1       the clock in which a target's disconnect is taken
//	1            idle
//
// so that with d = 0 a 64-byte write with W = 2 takes 20 clocks and a 64-byte
// read with L = 8 takes 27, the textbook figures for 32 bits and 33 MHz.
//
// # Arbitration
//
// The arbiter sees REQ# at an edge and lets the master drive its address
// phase Spec.GrantLatency clocks later at the earliest. It works while a
// burst is running (hidden arbitration), so on a busy bus the next address
// phase follows the idle clock. Priority rotates: the search begins behind
// the master that had the bus last, so that six masters each get every sixth
// burst and nobody starves. An idle bus is parked (Spec.Park): the parked
// master needs no grant.
//
// A master whose transfer was cut by its own burst length or its latency
// timer keeps REQ# asserted and takes part in the next arbitration. The timer
// is counted from the address phase; once it has run out and another master
// has been seen by the arbiter, the data phase in progress is the last.
//
// # Targets that end a burst
//
// A target disconnects at the multiples of TargetSpec.Boundary, at the end of
// its window, after each data phase when the next would take more than
// MaxNextData clocks, and, for a plain MemRead, at the multiples of
// TargetSpec.ReadLine. The master releases REQ# and asks again in the clock
// after the idle one. A target whose first data would take more than
// MaxFirstData clocks from the address phase answers with retry and prepares
// the access meanwhile (a delayed transaction); the master comes back after a
// back-off (Spec.RetryBackoff). An address that nobody claims is a master
// abort, one in the window but behind TargetSpec.Populated a target abort;
// both are results of the transfer, not errors.
//
// # How it is computed
//
// A burst's clocks follow in closed form from its address clock, its target
// and the time at which another master is first seen; only a request that
// arrives during a burst makes them be computed again. So the bus costs two
// events a burst, the first data phase (which devices hear of through
// BusStream) and the end, whatever the burst's length. The tests hold all of
// it equal to the clock to a machine that steps every signal.
//
// # What is left out
//
// I/O and configuration cycles, interrupt acknowledge, memory write and
// invalidate, dual address cycles, fast back-to-back, locked accesses, parity
// and system errors, and wait states of the initiator. Byte enables appear
// only as the first and last word of an unaligned transfer. Bridges to other
// buses are left out; a delayed transaction waits for its own master only, so
// a target can hold one for each master.
//
// Sources: the PCI Local Bus Specification, revision 2.2, for the rules (3.2
// to 3.5: 16-clock and 8-clock rule, latency timer, retry, disconnect,
// hidden arbitration, REQ# released for two clocks after a target's
// termination). Figures that no source gives are marked "chosen".
package pci
