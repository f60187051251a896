package pci

import (
	"spinesim/sim/des"
	"spinesim/traces"
)

// Command is the bus command of a transfer.
type Command uint8

// The commands.
const (
	MemWrite        Command = iota // memory write
	MemRead                        // memory read; a target may disconnect it at TargetSpec.ReadLine
	MemReadMultiple                // memory read multiple: the target fetches ahead
	numCommands
)

var commandNames = [numCommands]string{"memory write", "memory read", "memory read multiple"}

func (c Command) String() string {
	if c < numCommands {
		return commandNames[c]
	}
	return "unknown command"
}

// Status says how a transfer ended.
type Status uint8

// The outcomes of a transfer.
const (
	StatusOK        Status = iota
	MasterAbort            // nobody claimed the address
	TargetAbort            // the target has nothing behind the address
	RetriesExceeded        // Spec.RetryLimit retries without a data phase between
	numStatuses
)

var statusNames = [numStatuses]string{"ok", "master abort", "target abort", "retries exceeded"}

func (s Status) String() string {
	if s < numStatuses {
		return statusNames[s]
	}
	return "unknown status"
}

// Transfer is a move of Bytes bytes between a master and the bus addresses
// from Addr on, in as many bursts as it takes. The caller owns it and may use
// it again once TransferDone has been called for it; between Start and
// TransferDone it must not be touched.
type Transfer struct {
	Cmd   Command
	Addr  uint32 // first byte; need not be aligned (byte enables mask the rest of its word)
	Bytes int    // at least 1; Addr+Bytes must not pass 4 GB

	// Data are the bytes that really move, from Addr on: the source of a
	// write, the destination of a read. At most Bytes long; what lies behind
	// its end, or all of it when Data is nil, is carried as length only.
	Data []byte

	// For the transfer's record.
	Packet uint64
	Cause  traces.ID
	Event  traces.Event
	Peer   uint8

	// Results, set when TransferDone is called.

	Status Status
	Moved  int       // bytes whose data phases took place; Bytes when Status is StatusOK
	ID     traces.ID // of the transfer's record

	Requested des.Time // the call of Start
	Granted   des.Time // start of the first address phase
	End       des.Time // end of the last data phase (of the abort, the retry)

	Held    uint32 // bus clocks held, with the idle clock behind each burst
	Lost    uint32 // clocks between Granted and End in which it did not hold the bus
	Bursts  uint32 // transactions in which data moved
	Retries uint32 // transactions that the target answered with retry
}

// Initiator is the device behind a master.
type Initiator interface {
	// TransferDone reports that t has ended, at t.End, which is now. The
	// device may Start the next transfer, the same one included, at once.
	// An error stops the simulation.
	TransferDone(now des.Time, t *Transfer) error

	// BusStream reports that the data phases of one of this master's bursts
	// begin (on) or have stopped. In between, the device's memory sees
	// num/den 32-bit words a bus clock.
	BusStream(now des.Time, on bool, num, den int32)
}

// DataWatcher is implemented by an Initiator that wants to hear, just before it
// happens, that bytes of its transfer's Data are read or written.
type DataWatcher interface {
	DataMoves(now des.Time)
}

// Target is the device behind an address window.
type Target interface {
	// BusWrite stores p from bus address addr on. It is called when the last
	// data phase of the transfer (of its part in this window) ends, with the
	// bytes that really moved; it is not called when there are none.
	BusWrite(addr uint32, p []byte)

	// BusRead fills p from bus address addr on, at the same time.
	BusRead(addr uint32, p []byte)

	// BusStream is as for an Initiator, for the memory behind the window.
	BusStream(now des.Time, on bool, num, den int32)
}
