package pci

import (
	"fmt"

	"spinesim/sim/des"
)

// Limits that the PCI specification sets.
const (
	MaxMasters   = 6  // REQ#/GNT# pairs of the arbiter
	MaxFirstData = 16 // clocks from the address phase to the first data (PCI 2.2, 3.5.1.1)
	MaxNextData  = 8  // clocks from one data phase to the next (PCI 2.2, 3.5.1.2)
)

// Parking says which master an idle bus is parked at.
type Parking uint8

// The choices of parking.
const (
	ParkNone   Parking = iota // GNT# is withdrawn when nobody asks
	ParkLast                  // at the master that had the bus last
	ParkMaster                // at the master of index Spec.ParkAt
	numParkings
)

// Spec describes a bus. It does not change once the bus is made.
type Spec struct {
	// Clock is the bus clock's frequency, 1 kHz to 10 GHz. 33⅓ MHz is
	// des.Frequency{Num: 100_000_000, Den: 3}: 30,000 ps a clock.
	Clock des.Frequency

	// Width is that of a data phase in bits: 32 or 64. Addresses have 32.
	Width int

	// GrantLatency is how many clocks after REQ# is seen the address phase
	// can begin on an idle bus, 1 to 16. More delays lone transfers; a busy
	// bus hides it.
	GrantLatency int

	// Park and ParkAt (an index in the order of AttachMaster, used with
	// ParkMaster only) say who needs no grant on an idle bus.
	Park   Parking
	ParkAt int

	// LatencyTimer is the number of clocks from the address phase that a
	// master may keep the bus while others want it. It must let a burst of 32
	// bytes (of BurstBytes, if fewer) pass without wait states: 1 + 32·8/Width
	// clocks; less would chop every burst. At most 1<<20; a device's register
	// holds 8 bits. More means longer bursts and longer waits for the others.
	LatencyTimer int

	// BurstBytes is the longest burst a master makes, counted in whole data
	// phases: a multiple of Width/8, at least 32. A longer transfer asks again
	// for the rest. 0: bursts as long as the transfer.
	BurstBytes int

	// AbortClocks is how many clocks after the address phase a master gives up
	// when no DEVSEL# comes, 1 to 16.
	AbortClocks int

	// RetryBackoff is how many clocks after the idle clock of a retried
	// transaction a master asks again, at least 1. It doubles with each retry
	// that follows without a data phase between, up to RetryBackoffMax.
	RetryBackoff, RetryBackoffMax int

	// RetryLimit ends a transfer with RetriesExceeded after so many retries
	// without a data phase between. 0: it tries for ever.
	RetryLimit int
}

// DefaultSpec is the bus of the router's host: 32 bit, 33⅓ MHz.
func DefaultSpec() Spec {
	return Spec{
		Clock:           des.Frequency{Num: 100_000_000, Den: 3},
		Width:           32,
		GrantLatency:    2, // practitioners' figure for an idle bus
		Park:            ParkNone,
		LatencyTimer:    64, // chosen: a common BIOS setting
		BurstBytes:      0,  // chosen: the card's engine streams a whole packet
		AbortClocks:     5,  // fast, medium, slow and subtractive decode, then FRAME# is released
		RetryBackoff:    2,  // PCI 2.2, 3.3.3.2.2: REQ# released for two clocks
		RetryBackoffMax: 16, // chosen
	}
}

// SpecError tells which field of a Spec or TargetSpec contradicts what.
type SpecError struct {
	Field  string // as in the Go type
	Reason string
}

func (e *SpecError) Error() string { return fmt.Sprintf("pci: %s: %s", e.Field, e.Reason) }

func bad(field, format string, a ...any) error {
	return &SpecError{Field: field, Reason: fmt.Sprintf(format, a...)}
}

// Validate returns a *SpecError for the first field that is out of range or
// contradicts another, nil when the spec can be built.
func (s Spec) Validate() error {
	if s.Clock.Num == 0 || s.Clock.Den == 0 {
		return bad("Clock", "%d/%d Hz; must be positive", s.Clock.Num, s.Clock.Den)
	}
	if hz := s.Clock.Hz(); hz < 1e3 || hz > 1e10 {
		return bad("Clock", "%v; must be 1 kHz to 10 GHz", s.Clock)
	}
	if _, err := des.NewClock(s.Clock, 0); err != nil {
		return bad("Clock", "%v", err)
	}
	if s.Width != 32 && s.Width != 64 {
		return bad("Width", "%d bits; must be 32 or 64", s.Width)
	}
	if s.GrantLatency < 1 || s.GrantLatency > 16 {
		return bad("GrantLatency", "%d clocks; must be 1 to 16", s.GrantLatency)
	}
	if s.Park >= numParkings {
		return bad("Park", "unknown choice %d", s.Park)
	}
	if s.Park == ParkMaster && (s.ParkAt < 0 || s.ParkAt >= MaxMasters) {
		return bad("ParkAt", "master %d; must be 0 to %d", s.ParkAt, MaxMasters-1)
	}
	if s.Park != ParkMaster && s.ParkAt != 0 {
		return bad("ParkAt", "master %d is named but Park is not ParkMaster", s.ParkAt)
	}
	if s.BurstBytes != 0 && s.BurstBytes < 32 || s.BurstBytes%(s.Width/8) != 0 {
		return bad("BurstBytes", "%d bytes; must be 0 or at least 32, in whole data phases of %d", s.BurstBytes, s.Width/8)
	}
	if s.BurstBytes > 1<<30 {
		return bad("BurstBytes", "%d bytes is more than 1 GB", s.BurstBytes)
	}
	if least := 1 + 32*8/s.Width; s.LatencyTimer < least || s.LatencyTimer > 1<<20 {
		return bad("LatencyTimer", "%d clocks; a 32-byte burst takes %d, and at most %d are allowed", s.LatencyTimer, least, 1<<20)
	}
	if s.AbortClocks < 1 || s.AbortClocks > 16 {
		return bad("AbortClocks", "%d clocks; must be 1 to 16", s.AbortClocks)
	}
	if s.RetryBackoff < 1 || s.RetryBackoff > 1<<20 {
		return bad("RetryBackoff", "%d clocks; must be 1 to %d", s.RetryBackoff, 1<<20)
	}
	if s.RetryBackoffMax < s.RetryBackoff || s.RetryBackoffMax > 1<<20 {
		return bad("RetryBackoffMax", "%d clocks; must be RetryBackoff (%d) to %d", s.RetryBackoffMax, s.RetryBackoff, 1<<20)
	}
	if s.RetryLimit < 0 {
		return bad("RetryLimit", "%d retries; must not be negative", s.RetryLimit)
	}
	return nil
}

// TargetSpec describes how fast and how far a target answers.
type TargetSpec struct {
	// Devsel is the decode time: clocks after the address phase before the
	// target can claim it, 0 (fast) to 3. It passes within the waits before
	// the first data, which must be long enough: WriteWait+DataWait and
	// ReadLatency+DataWait are at least Devsel.
	Devsel int

	// WriteWait (W) is the clocks between the address phase of a write and the
	// first data phase; ReadLatency (L) those between the turnaround of a read
	// and the first data phase. Beyond the 16-clock rule the target answers
	// with retry and has the data ready after that time.
	WriteWait, ReadLatency int

	// DataWait (d) is the wait states of each data phase. More than 7 breaks
	// the 8-clock rule: the target then disconnects after every data phase.
	DataWait int

	// Boundary is where the target disconnects: at bus addresses that are
	// multiples of it; a power of two, at least 16. 0: nowhere.
	Boundary int

	// ReadLine is where the target disconnects a plain MemRead: its
	// cache-line or prefetch size, a power of two, at least 16. 0: nowhere.
	ReadLine int

	// Populated is the bytes from the window's base on behind which there is
	// something; an access beyond ends in target abort. 0: the whole window.
	Populated uint32
}

// CardTarget is a LANai card's window as the router model has it. Its two wait
// states a data phase are chosen, and free in the model's fit: 1,500 bytes then
// take about 35 µs on an idle bus. A programmed read takes 14 clocks and a
// programmed write 5, where practitioners tell of about 14 and 4.
func CardTarget() TargetSpec {
	return TargetSpec{
		Devsel:      1, // chosen: medium decode
		WriteWait:   0, // the first data phase's own wait states cover the decode
		ReadLatency: 8, // the textbook example; makes a programmed read 14 clocks
		DataWait:    2,
	}
}

// HostMemoryTarget is a PC's main memory behind its bridge.
func HostMemoryTarget() TargetSpec {
	return TargetSpec{
		Devsel:      1,    // chosen: medium decode
		WriteWait:   2,    // upper end of the usual 0 to 2; posted from there on
		ReadLatency: 8,    // the textbook example's latency
		Boundary:    4096, // chosen: a DRAM page
		ReadLine:    32,   // the Pentium Pro's cache line
	}
}

// Validate returns a *SpecError for the first field that is out of range or
// contradicts another.
func (s TargetSpec) Validate() error {
	if s.Devsel < 0 || s.Devsel > 3 {
		return bad("Devsel", "%d clocks; must be 0 to 3", s.Devsel)
	}
	if most := MaxFirstData - 2; s.DataWait < 0 || s.DataWait > most {
		// Otherwise not even a prepared access could meet the 16-clock rule.
		return bad("DataWait", "%d clocks; must be 0 to %d, so that a first data phase can come within %d clocks", s.DataWait, most, MaxFirstData)
	}
	decode := max(0, s.Devsel-s.DataWait)
	if s.WriteWait < decode || s.WriteWait > 1<<20 {
		return bad("WriteWait", "%d clocks; must be %d (the decode takes %d) to %d", s.WriteWait, decode, s.Devsel, 1<<20)
	}
	if s.ReadLatency < decode || s.ReadLatency > 1<<20 {
		return bad("ReadLatency", "%d clocks; must be %d (the decode takes %d) to %d", s.ReadLatency, decode, s.Devsel, 1<<20)
	}
	if s.Boundary != 0 && (s.Boundary < 16 || s.Boundary > 1<<30 || s.Boundary&(s.Boundary-1) != 0) {
		return bad("Boundary", "%d bytes; must be 0 or a power of two from 16 to 1 GB", s.Boundary)
	}
	if s.ReadLine != 0 && (s.ReadLine < 16 || s.ReadLine > 1<<30 || s.ReadLine&(s.ReadLine-1) != 0) {
		return bad("ReadLine", "%d bytes; must be 0 or a power of two from 16 to 1 GB", s.ReadLine)
	}
	return nil
}
