// Package ilp models what it costs to touch every byte of a packet, and really
// touches them.
//
// # What it models
//
// Protocol layers manipulate data: they swap bytes, encrypt, sum. Layer by
// layer (sequential) each function makes a pass of its own over the message;
// integrated layer processing (ILP) makes one pass that runs all functions on
// a block while it sits in registers. ILP saves message accesses and loop
// overhead, but all functions' state now competes for the registers at once,
// and what overflows is loaded and stored in every iteration. [Model] counts
// both, after
//
//	B. Ahlgren, "A Performance Model for Integrated Layer Processing",
//	Swedish Institute of Computer Science (with the measurements of Ahlgren,
//	Björkman and Gunningberg, 1996),
//
// cited below as "Ahlgren". Clocks per byte of message:
//
//	B        = lcm(in_1 … in_N)                              eq. 4, 5
//	DA_ILP   = 1/w if no function writes, else 2/w           eq. 1
//	DA_SEQ   = Σ (1 or 2)/w                                  eq. 2
//	SA_ILP   = 2·max(0, Σ s_i − R)/B                         eq. 3
//	SA_SEQ   = Σ 2·max(0, s_i − R)/in_i                      eq. 6
//	LO_ILP   = lo/B,  LO_SEQ = Σ lo/in_i                     eq. 8, 9
//	cache    = CPI·(Σ c_i/in_i + LO) + (DA + SA)·t_c         eq. 7
//	memory   = CPI·(Σ c_i/in_i + LO) + DA·t_m + SA·t_c       eq. 10, 11
//
// The formulas' type did not survive in the copy this was written from: they
// are rebuilt from the paper's prose, and give its Table 2 to the printed digit
// (see [Table2]). Equation numbers follow the order of the text and can be off
// by one. A hit rate h puts h·t_c + (1−h)·t_m in the place of t_c or t_m for
// message data (Ahlgren §6.3, in words).
//
// Beside it stands the model of M. Abbott and L. Peterson, "Increasing Network
// Throughput by Integrating Protocol Layers", IEEE/ACM ToN 1(5), 1993, which
// counts message accesses only (Ahlgren §6.1): [Model.AbbottPeterson].
//
// # What it adds
//
// Marked as ours wherever they appear: registers lost to a larger block
// ([Model.BlockRegisters], Ahlgren uses it for Figure 6 alone), constants that
// overflow the registers ([Model.SpillConstants], Ahlgren §4.1 leaves them
// out), a chosen block with the word filter's extra work ([WordFilter]), and
// the cost of entering a loop ([Machine].EntryClocks).
//
// # What it does
//
// [Manipulator] functions transform bytes: byte swap, pseudo-encryption,
// Internet checksum, CRC-32, synthetic functions of n state words. [Stage] runs
// a chain of them over a packet and tells the box cost for a machine; [Measure]
// times Go loops of both kinds on the running machine, fits the model's
// parameters to one part of the measurements and predicts the other.
//
// # What it leaves out
//
// Cache geometry (line fills are an average in t_m), the dependence of the hit
// rate on the implementation (give each its own placement), table look-ups as
// memory accesses, functions whose output size differs from their input size,
// and everything outside the loops.
package ilp
