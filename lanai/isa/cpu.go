package isa

import (
	"errors"
	"fmt"
)

// Stop tells why Run came back.
type Stop uint8

// The reasons.
const (
	Boundary Stop = iota // reached the boundary it was given
	Device               // an access to a device takes effect at Cycle, or Gates are to be asked then; call Run with that for now
	Returned             // the function begun with Call has returned, at Cycle
	Faulted              // stands until Reset or Call
)

var stopNames = [...]string{"boundary", "device access", "returned", "faulted"}

func (s Stop) String() string { return stopNames[s] }

// Counters are what a processor has done, in finished instructions.
type Counters struct {
	Instructions int64
	Accesses     int64 // loads and stores
	Interlocks   int64 // cycles waited for a load's result or the load/store unit
	Waits        int64 // cycles waited for the memory bus
	Jumps        int64 // computed jumps: results of the ALU that went into pc
	Skipped      int64 // instructions of these that were accounted for in whole rounds of a waiting loop
}

// Cycles is the time that all finished instructions took.
func (c Counters) Cycles() int64 { return c.Instructions + c.Interlocks + c.Waits }

// Sub is what was done since an earlier reading.
func (c Counters) Sub(before Counters) Counters {
	c.Instructions -= before.Instructions
	c.Accesses -= before.Accesses
	c.Interlocks -= before.Interlocks
	c.Waits -= before.Waits
	c.Jumps -= before.Jumps
	c.Skipped -= before.Skipped
	return c
}

// Mark is a log_n instruction that was executed.
type Mark struct {
	Number int // 0 to 4
	PC     uint32
	Cycle  int64 // boundary at which it took effect
}

// CPU is a processor with its memory. Fields may be set between runs.
type CPU struct {
	// Devices answers from DeviceBase on; nil makes such accesses faults.
	Devices Devices
	// Slots is the memory bus; nil leaves all of it to the processor.
	Slots Slots
	// OnMark, when set, is told of log_n.
	OnMark func(Mark)
	// OnJump, when set, is told of computed jumps (see Counters) with the boundary
	// at which they took effect, one delay slot before their target. It keeps
	// waiting loops from being skipped.
	OnJump func(target uint32, cycle int64)
	// Gates, when set, is asked before a fetch that is not allowed is a fault.
	Gates Gates
	// SymbolAt names an address in faults, "" for none. It may be nil.
	SymbolAt func(addr uint32) string
	// Profile, when set, is added to with every instruction, those of skipped
	// rounds included. It must not be changed between Ahead and Back.
	Profile *Profile
	// StepLoops keeps waiting loops from being skipped; all results but
	// Counters.Skipped are the same.
	StepLoops bool
	// Singly makes the processor look at everything with each instruction; all
	// results are the same.
	Singly bool
	// Told means that Written is called when others write to memory. Where it
	// is not set, code is compared with memory whenever they may have.
	Told bool

	mem       []byte
	rights    Rights
	pages     []*page
	decoded   span // that pages cover
	epoch     uint32
	epochs    uint32 // how many there were
	kept      []underRights
	stackLow  uint32
	stackHigh uint32
	watchdog  int64

	state

	x      running
	steady Steady
	free   []uint8 // the window: from cycle base on
	waits  []uint8
	base   int64
	until  int64
	quiet  bool // the window has two accesses in every cycle
	loop   waiting
	ahead  ahead
	time   rounds
	rec    recorder
	way    way
	// touched is what the instructions of a path last loaded or stored.
	touched [longestPath]word
	scan    *Scan
	scanSP  uint32
}

// state is all that changes as a processor runs, memory and devices apart.
type state struct {
	reg        [numSlots]uint32
	p0, p1, p2 uint32 // the instruction, and the two that follow
	nz         uint32 // result by which N and Z go
	cf, vf     uint32
	hz         uint32 // what the last instruction left to wait for

	cycle   int64
	begun   bool  // an instruction is in progress at cycle
	ready   bool  // it has all its cycles; only its effects are due
	wait    int64 // interlock cycles it still has to wait
	got     uint32
	waited  int64 // memory-bus cycles it has waited
	stalled int64 // interlock cycles it had to wait in all

	count Counters
	fault *Fault
	sc    scanning
}

// NoWatchdog is the boundary that is never reached.
const NoWatchdog = int64(1) << 62

// New makes a processor on big-endian memory of a multiple of Granule bytes,
// at most 1 GB, which it shares with its owner.
func New(mem []byte) (*CPU, error) {
	if len(mem) == 0 || len(mem)%Granule != 0 || len(mem) > 1<<30 {
		return nil, fmt.Errorf("isa: memory of %d bytes: want a multiple of %d up to 1 GB", len(mem), Granule)
	}
	c := &CPU{mem: mem, watchdog: NoWatchdog}
	c.rights = make(Rights, len(mem)/Granule)
	for i := range c.rights {
		c.rights[i] = All
	}
	c.pages = make([]*page, (len(mem)+pageWords*wordSize-1)/(pageWords*wordSize))
	c.renew()
	c.Reset(0, 0)
	return c, nil
}

// Reset clears the registers and flags and puts the processor at pc, with its
// next instruction to begin at the boundary cycle.
func (c *CPU) Reset(pc uint32, cycle int64) {
	c.scan = nil
	c.reg = [numSlots]uint32{Ones: ^uint32(0)}
	c.nz, c.cf, c.vf = 1, 0, 0
	c.jump(pc)
	c.begin(cycle)
}

func (c *CPU) jump(pc uint32) { c.p0, c.p1, c.p2 = pc, pc+4, pc+8 }

// begin makes the next instruction start afresh at a boundary.
func (c *CPU) begin(cycle int64) {
	c.cycle, c.hz = cycle, 0
	c.begun, c.ready, c.wait, c.got, c.waited = false, false, 0, 0, 0
	c.fault = nil
}

// Call puts the processor at a function's first instruction, to begin at the
// boundary cycle, as if it had been called with sp as stack pointer and up to
// four arguments by code that waits at ReturnAddress: the return address is
// pushed, as the caller does. The call itself takes no time. The error wraps
// ErrOutside or ErrMisaligned.
func (c *CPU) Call(cycle int64, entry, sp uint32, args ...uint32) error {
	if len(args) > 4 {
		return fmt.Errorf("isa: call of %#x with %d arguments, 4 fit in registers", entry, len(args))
	}
	sp -= wordSize
	if sp%wordSize != 0 {
		return fmt.Errorf("isa: call of %#x: stack pointer %#x: %w", entry, sp+wordSize, ErrMisaligned)
	}
	if uint64(sp)+wordSize > uint64(len(c.mem)) {
		return fmt.Errorf("isa: call of %#x: stack pointer %#x: %w", entry, sp+wordSize, ErrOutside)
	}
	c.scan = nil
	c.enter(sp, entry)
	for i, a := range args {
		c.reg[[...]uint8{Arg0, Arg1, Arg2, Arg3}[i]] = a
	}
	c.begin(cycle)
	return nil
}

// enter puts the processor at a function that is called from outside, with the
// return address at sp.
func (c *CPU) enter(sp, entry uint32) {
	storeWord(c.mem, sp, ReturnAddress)
	c.reg[SP], c.reg[FP], c.reg[RCA] = sp, sp, ReturnAddress
	c.jump(entry)
	c.hz = 0
}

// Reg reads register r, 0 to 31; pc is the next instruction's address.
func (c *CPU) Reg(r int) uint32 {
	if r == PC {
		return c.p0
	}
	return c.reg[r]
}

// SetReg writes register r, 3 to 31; others do not change.
func (c *CPU) SetReg(r int, v uint32) {
	if r > PC {
		c.reg[r] = v
	}
}

// PC is the address of the next instruction, or the one in progress.
func (c *CPU) PC() uint32 { return c.p0 }

// Cycle is the boundary up to which time has passed for the processor.
func (c *CPU) Cycle() int64 { return c.cycle }

// Counters tell what was done so far.
func (c *CPU) Counters() Counters { return c.count }

// SetWatchdog makes it a fault that an instruction ends after the boundary
// cycle. NoWatchdog takes it away.
func (c *CPU) SetWatchdog(cycle int64) { c.watchdog = cycle }

// Bytes is the size of the memory.
func (c *CPU) Bytes() int { return len(c.mem) }

// ErrStopped is what Run wraps after a fault, until Reset or Call.
var ErrStopped = errors.New("processor stands after a fault")

func (c *CPU) raise(err error, word uint32, access string, addr uint32, bytes int, cycle int64) error {
	c.fault = &Fault{Err: err, PC: c.p0, Word: word, Access: access, Addr: addr, Bytes: bytes, Cycle: cycle}
	if c.SymbolAt != nil {
		c.fault.Symbol = c.SymbolAt(c.p0)
	}
	return c.fault
}

// window makes cycle lie in the window.
func (c *CPU) window(cycle int64) {
	c.base = cycle
	if c.Slots == nil {
		c.free, c.until, c.quiet = nil, NoWatchdog, true
		return
	}
	w := c.Slots.Window(cycle)
	c.free, c.waits, c.until = w.Free, w.Waits, w.Until
	c.quiet = c.free == nil
	if !c.quiet {
		c.until = cycle + int64(len(c.free))
	}
}

// pass takes the instruction in progress on from cycle, at most to the
// boundary to. It tells where it ended, or that it did not.
func (c *CPU) pass(cycle, to int64, need uint8) (end int64, ended bool) {
	for cycle < to {
		if c.wait > 0 {
			c.wait--
			c.count.Interlocks++
			cycle++
			continue
		}
		if cycle >= c.until || cycle < c.base {
			c.window(cycle)
		}
		f := uint8(2)
		if !c.quiet {
			f = c.free[cycle-c.base]
		}
		cycle++
		c.got += uint32(f)
		if c.got >= uint32(need) {
			c.ready = true
			return cycle, true
		}
		c.waited++
		c.count.Waits++
	}
	return cycle, false
}

// Hold lets time pass up to the boundary to without effects. It is for a
// change in what the bus leaves free that comes in the middle of a cycle: what
// that cycle grants is by the old rule. At most one instruction may end by
// then; its effects follow in the next Run.
func (c *CPU) Hold(to int64) {
	if c.cycle >= to || c.ready || c.fault != nil {
		return
	}
	c.base, c.until = 0, 0
	pc := c.p0
	p := c.fetch(pc)
	if p == nil {
		return // a return, or a fault: no instruction is in progress
	}
	u := &p.ops[pc/wordSize%pageWords]
	if !c.begun {
		c.begun, c.got, c.waited, c.wait = true, 0, 0, 0
		if c.hz&u.uses != 0 {
			c.wait = 1
		}
		c.stalled = c.wait
	}
	c.cycle, _ = c.pass(c.cycle, to, u.need())
}
