// Package host models the host behind the bus: what its kernel pays to take a
// packet that a card hands up, move it, route it, and hand it back.
//
// # What it models
//
// Three cost models, and a slow path made of them:
//
//   - Copying ([Processor.SmallCopy], [Processor.PageCopy]): the small copy that
//     aligns its destination and then moves two words an iteration, with shifts
//     where the source is not aligned; the page copy that stores into each bank
//     of an interleaved second-level cache in turn.
//   - Instruction-cache coherence ([Processor.Flush], [PageFlags],
//     [FlushWorkload]): one dcbst and one icbi a cache line; eagerly at every
//     mapping, lazily with a clean flag a page, or at first execution.
//   - The kernel's way of a packet ([Path]): notification by interrupt or poll,
//     driver, buffer, copy, flush, route, and the driver again; [Host] runs it on
//     an event engine behind a driver queue of finite capacity.
//
// # From which source
//
// Structure and published figures are those of P. Mackerras, "Low-Level
// Optimizations in the PowerPC/Linux Kernels" (IBM Linux Technology Center,
// OzLabs, 2003), cited as "slide N"; the slides give operation counts and
// results, but hardly any cost in clocks. Costs that no source gives are chosen,
// and say so. The path's default machine is the thesis's: a 200 MHz Pentium Pro
// (thesis p.107). Bus access times are those that are known of 33 MHz PCI
// hosts: about 14 bus clocks to read a device register, 4 to write one.
//
// [Checks] sets published figures against the models, row by row, and says
// which were used to calibrate, which follow, and which the models cannot
// speak to.
//
// # What it leaves out
//
// Scheduling, processes and user space (so LMBench's process figures), the
// hashed page table, several processors, overlap of cache misses with each
// other, and the bus transfers themselves, which the bus simulates.
package host
