package traces

import "spinesim/sim/des"

// Kind says what a Record tells of.
type Kind uint8

// The kinds of record.
const (
	KindNone Kind = iota

	// KindBox: a handler ran on the card's processor from Start to End. Event
	// is the handler, Queue the queue it was found in, Ready when its message
	// became ready there, Cause the record that sent the message. Cycles is
	// the uncontended demand, Stall the cycles lost to the memory bus.
	KindBox

	// KindPolls: a maximal run of back-to-back polls from Start to End. Count
	// is the number of polls. Queue is the queue whose message the last poll
	// found, or NoQueue when the run ended without a hit (end of simulation).
	// Cycles and Stall as for a box.
	KindPolls

	// KindPoll: one poll, written only where polls are expanded. Event is
	// Poll Q0 … Q6, Queue the queue polled, Count 1 when it hit, else 0. Not
	// part of the fingerprint.
	KindPoll

	// KindTransfer: a DMA over the bus by Card's engine to or from Peer.
	// Ready is when the bus was asked, Start the grant, End the last data
	// phase; Bytes how many were moved; Stall bus clocks waited or lost after the
	// grant; Cycles bus clocks held. Event is one of the Transfer events.
	KindTransfer

	// KindReceive: the receive engine took in a header or body (Event).
	KindReceive

	// KindSend: the send engine put a packet on the wire.
	KindSend

	// KindWait: Packet waited on Card from Start to End for Reason.
	KindWait

	// KindEnter: Packet of Bytes bytes arrived at the FIFO upstream of Card
	// at End (= Start).
	KindEnter

	// KindLeave: Packet left the router at End. Verdict says how; for a drop
	// and for what the host gets Reason says why, and for a packet that the
	// host had and sent back, why it had it. Card is where it left, Peer the card it entered by.
	// A packet that is stranded because a card has stopped leaves only the
	// account, at the end of the run: Card is where it lies, Reason what it waits
	// for there.
	KindLeave

	// KindDepart: Packet departed from its ingress Card to Peer: the end of
	// its header transfer.
	KindDepart

	// KindLevel: the level named by Event (a queue's depth, buffers, credits,
	// FIFO) became Count on Card at End. Peer names the peer for credits.
	KindLevel

	// KindCopy: the packet of the record that Cause names is flooded, and
	// Packet, of Bytes bytes, became a copy of it on Card at End: inside the
	// router from then on, past the router handler.
	KindCopy

	// KindMark: executed firmware passed a mark, log_0 to log_4, at End. Count is
	// which, Event the handler that ran (NoEvent between handlers), Packet its
	// packet, Cause its box.
	KindMark

	// KindStop: Card's processor stopped for good at End, because of a fault of
	// its own firmware. Count is the pc; Event, Packet and Cause as for a mark. A
	// box or run of polls that it cut off ends there with ReasonStopped.
	KindStop
)

// NoQueue stands where no queue is meant.
const NoQueue = 0xFF

// NoCard stands where no card is meant; HostCard names the host bridge.
const (
	NoCard   = 0xFF
	HostCard = 0xFE
)

// ID names a record within a run, so that others can name it as their cause:
// the card in the top 16 bits, a per-card number from 1 below. 0 is no record.
type ID uint64

// Record is one thing that happened. Times are absolute.
type Record struct {
	Start, End des.Time
	Ready      des.Time
	ID, Cause  ID
	Packet     uint64 // from 1; 0 for none
	Bytes      uint32
	Count      uint32
	Cycles     uint64
	Stall      uint32
	Kind       Kind
	Event      Event
	Card       uint8
	Peer       uint8
	Queue      uint8
	Reason     Reason
	Verdict    Verdict
}
