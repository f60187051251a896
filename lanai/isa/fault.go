package isa

import (
	"errors"
	"fmt"
	"strings"
)

// Errors that a Fault wraps, by its kind.
var (
	ErrUndefined  = errors.New("undefined opcode")
	ErrMisaligned = errors.New("misaligned address")
	ErrOutside    = errors.New("address outside the memory")
	ErrProtected  = errors.New("access not allowed")
	ErrStack      = errors.New("stack pointer out of bounds")
	ErrWatchdog   = errors.New("watchdog ran out")
	ErrDevice     = errors.New("device register")
)

// Fault is what stopped the processor.
type Fault struct {
	Err    error  // one of the errors above, or a device's own
	PC     uint32 // of the instruction
	Word   uint32 // the instruction, 0 where it could not be fetched
	Symbol string // what encloses PC, "router_in+0x1c"; "" if unknown
	Access string // "fetch", "load", "store" or ""
	Addr   uint32 // of the access; the stack pointer for ErrStack
	Bytes  int    // of the access
	Cycle  int64  // boundary at which it took effect
}

// Error names pc, symbol, instruction and address.
func (f *Fault) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v at pc %#x", f.Err, f.PC)
	if f.Symbol != "" {
		fmt.Fprintf(&b, " (%s)", f.Symbol)
	}
	if f.Access != "fetch" {
		fmt.Fprintf(&b, " in %q", strings.ReplaceAll(Decode(f.Word).String(), "\t", " "))
		if f.Access == "" && f.Err == ErrUndefined {
			fmt.Fprintf(&b, " %#08x", f.Word)
		}
	}
	switch {
	case f.Access != "":
		fmt.Fprintf(&b, ": %s of %d bytes at %#x", f.Access, f.Bytes, f.Addr)
	case f.Err == ErrStack:
		fmt.Fprintf(&b, ": %#x", f.Addr)
	}
	fmt.Fprintf(&b, ", cycle %d", f.Cycle)
	return b.String()
}

func (f *Fault) Unwrap() error { return f.Err }
