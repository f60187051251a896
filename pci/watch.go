package pci

// BurstEnd says why a transaction ended.
type BurstEnd uint8

// The ends of a transaction.
const (
	EndDone        BurstEnd = iota // the transfer is complete
	EndBurstLength                 // Spec.BurstBytes reached
	EndTimer                       // the latency timer ran out and another master waits
	EndDisconnect                  // the target disconnected
	EndRetry                       // the target answered with retry
	EndMasterAbort                 // nobody claimed the address
	EndTargetAbort                 // the target has nothing there
	numBurstEnds
)

var burstEndNames = [numBurstEnds]string{"done", "burst length", "latency timer", "disconnect", "retry", "master abort", "target abort"}

func (e BurstEnd) String() string {
	if e < numBurstEnds {
		return burstEndNames[e]
	}
	return "unknown end"
}

// Burst is one transaction, in bus clocks.
type Burst struct {
	Master  int     // index of its owner
	Cmd     Command // of its transfer
	Addr    uint32  // of its first byte
	Phases  int64   // data phases; 0 for a retry or abort
	Wanted  int64   // first clock in which the owner waited for this address phase
	Address int64   // clock of the address phase
	Data    int64   // first clock of the first data phase, its wait states included
	Last    int64   // last clock before the idle one in which data moved (or the stop or abort was taken)
	Idle    int64   // the idle clock: the last one the owner is charged with
	End     BurstEnd
}

// Watcher hears of every transaction when its last data phase ends, before the
// transfer's TransferDone. b is valid only during the call.
type Watcher interface {
	Burst(b *Burst)
}
