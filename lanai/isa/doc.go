// Package isa executes compiled firmware: a decoder, a disassembler and an
// interpreter of the instruction set for which clang's lanai target (version
// 14 and later) compiles. It descends from the LANai's own, with the same
// formats, condition codes and register names, but it is not binary-compatible
// with a LANai 4, which has two register contexts of 24, ISR and IMR among the
// registers, one exposed load slot, and a pc that reads four bytes further on.
// So what is simulated is that instruction set with a LANai 4's devices, memory
// and clock. The formats were read from LLVM's description of the target and
// confirmed with its disassembler and by running compiled C.
//
// # Time
//
// An instruction takes one cycle, and more in these cases:
//
//   - Load-use: an instruction that reads the register which the instruction
//     before it loads, be it as an operand, an address or the word to be
//     stored, waits one cycle.
//   - Part-word accesses in SPLS form keep the load/store unit for a second
//     cycle, so that a load or store that follows at once waits for one. Where
//     both apply it waits once.
//   - The memory bus: fetching an instruction is one access, a load or store
//     another. The instruction asks for its accesses in its first cycle after
//     the waits above (which ask for nothing), and ends with the cycle in which
//     the last of them is granted. What the bus has to spare in a cycle is not
//     saved up: there is no prefetching (chosen).
//
// All effects of an instruction, the reading of its own word included, happen
// at its end, the boundary behind its last cycle.
//
// A branch and an ALU result into pc have one delay slot, a load into pc two.
// The addresses in flight are kept, so that a branch in a delay slot does what
// the hardware's address pipeline does.
//
// # Meeting the memory bus
//
// [CPU.Run] goes on until a boundary up to which the caller vouches that
// nothing else acts: no event that may change memory, devices or what the bus
// leaves free. The bus is seen through [Slots], which tells for each cycle what
// is left to the processor. An instruction that straddles the boundary is kept
// half-way, with the accesses granted so far, and continues in the next call
// under whatever the bus then grants. A device access stops the run at the
// boundary where it takes effect, so that the caller can bring everything else
// to that time; registers that change only with events may be read on the way
// ([Steady]). So execution meets the three engines to the cycle without
// stepping cycle by cycle, and calls cost little: the boundary is the next
// event, some hundred instructions ahead.
//
// Who cannot vouch calls [CPU.Ahead], and [CPU.Back] where something did act
// before the boundary: registers are restored, stores undone by a log, and what
// is left is executed again. So processors that seldom touch each other need not
// stop for each other.
//
// # What is not executed instruction by instruction
//
// A loop that waits is skipped exactly: when the same branch is taken back to
// the same place with all registers, flags and memory as they were the time
// before, so many whole rounds as fit before the boundary are accounted for at
// once, in every counter and in the profile. That the loop comes back does not
// depend on the bus; how long a round takes does. On a quiet bus it follows from
// the counters. On one whose pattern repeats ([Periodic]) it is worked out from
// what each instruction of the last round asked for, once for each phase of the
// pattern. A dispatcher outside the firmware has the same for its polls
// ([CPU.CallScan]).
//
// What is executed is recorded as a path: the instructions as they came, across
// branches and calls, with their interlocks. Where the processor comes to the
// beginning of a known path it follows it as long as that is the way, without
// looking at anything else between instructions; what needs more, such as a
// device or the end of what is known of the bus, is left to the step that
// executes one instruction. A path whose registers, words of memory and device
// registers are those of the last time leads to where it did: that is how polls
// that find nothing are taken to their end at once, with only their time worked
// out. All of that can be turned off ([CPU.Singly]), and tests compare the two.
//
// Decoded instructions are kept, and compared with memory when they are first
// fetched after something else may have written there: after each event, or,
// where the owner tells of writes ([CPU.Written]), after one to code. The
// processor's own stores are watched. So a write by anybody, processor, DMA
// engine or bus master, is seen by the next fetch.
//
// # Faults
//
// Undefined opcodes, addresses that are misaligned or outside the memory,
// accesses that [CPU.Protect] does not allow, a stack pointer that leaves its
// bounds and a watchdog that runs out end the run with a [*Fault] that names
// pc, symbol and instruction.
//
// # Left out
//
// Interrupts, floating point and atomics (the target has none), and the
// status register as a register: compiled code uses r3 as any other.
package isa
