package spine

import (
	"fmt"

	"spinesim/sim/des"
)

// ReceiveMode says how the receive engine is armed.
type ReceiveMode string

// The ways of receiving.
const (
	// ReceiveSplit arms the engine for the header, checks it, then arms it
	// for the body in a packet buffer.
	ReceiveSplit ReceiveMode = "split"
	// ReceiveWhole arms one buffer a packet, again at the end of
	// `Rx check header` when a buffer is free.
	ReceiveWhole ReceiveMode = "whole"
	// ReceiveRing arms buffers by itself while any is free.
	ReceiveRing ReceiveMode = "ring"
)

// DMAChain says which queue the continuations of the DMA chain go through.
type DMAChain string

// The chains.
const (
	ChainDMA  DMAChain = "dma"  // the front of Q6
	ChainSelf DMAChain = "self" // the back of Q0, for comparison
)

// Spec is the firmware of one card. All of it is chosen: none of these figures
// is published.
type Spec struct {
	Receive ReceiveMode
	Chain   DMAChain
	// Buffers is the number of packet buffers on the card. More of them let
	// a longer backlog build up.
	Buffers int
	// Credits is how many packets may be under way to one egress card.
	Credits int
	// HeaderBytes is how much of a packet the header receive and the header
	// transfer carry; a multiple of 4.
	HeaderBytes int
	// MaxPacket is the longest packet a buffer holds, in bytes.
	MaxPacket int
	// Batch is how many packets the router extension is given at a time, 1 to
	// 256. With more of them an extension can share work among them, and each
	// waits for the others: for BatchWait at most, counted from the first.
	Batch     int
	BatchWait des.Time
	// Watchdog bounds a run of the router handler, in cycles; 0 is no bound.
	// The LANai's watchdog is the model; the length is chosen.
	Watchdog int
	// AckBytes is the length of an ACK's write.
	AckBytes int
	// HostReturn lets the host send a packet back to a card; without it a
	// packet handed to the host has left.
	HostReturn bool
	// HostCredits is how many packets the host may have under way to a card.
	HostCredits int
	// HostService is the time the host needs for a packet when no other
	// model of the host is given.
	HostService des.Time
	Costs       CostTable
}

// DefaultSpec is the firmware of the default experiment, before any fit.
func DefaultSpec() Spec {
	return Spec{
		Receive: ReceiveSplit, Chain: ChainDMA,
		Buffers: 16, Credits: 4, HeaderBytes: 32, MaxPacket: 1536,
		Batch: 1, BatchWait: 500 * des.Microsecond,
		Watchdog: 20000, AckBytes: 4,
		HostCredits: 4, HostService: 100 * des.Microsecond,
		Costs: StartCosts(),
	}
}

// SpecError is a field of a Spec that is wrong.
type SpecError struct {
	Field  string // as a scenario writes it, such as "header_bytes"
	Reason string
}

func (e *SpecError) Error() string { return e.Field + ": " + e.Reason }

func bad(field, format string, a ...any) error {
	return &SpecError{Field: field, Reason: fmt.Sprintf(format, a...)}
}

// Validate names the field that is wrong and what was expected, in a
// *SpecError, or the handler whose cost is.
func (s *Spec) Validate() error {
	switch s.Receive {
	case ReceiveSplit, ReceiveWhole, ReceiveRing:
	default:
		return bad("receive", "%q, want split, whole or ring", s.Receive)
	}
	switch s.Chain {
	case ChainDMA, ChainSelf:
	default:
		return bad("dma_chain", "%q, want dma or self", s.Chain)
	}
	for _, f := range []struct {
		name         string
		v, low, high int
	}{
		{"buffers", s.Buffers, 1, 1 << 16},
		{"credits", s.Credits, 1, 1 << 12},
		{"header_bytes", s.HeaderBytes, 20, 1024},
		{"max_packet", s.MaxPacket, 64, 65536},
		{"batch", s.Batch, 1, 256},
		{"watchdog", s.Watchdog, 0, 1 << 30},
		{"ack_bytes", s.AckBytes, 4, 64},
		{"host_credits", s.HostCredits, 1, 1 << 12},
	} {
		if f.v < f.low || f.v > f.high {
			return bad(f.name, "%d, want %d … %d", f.v, f.low, f.high)
		}
	}
	if s.HeaderBytes%4 != 0 || s.AckBytes%4 != 0 {
		return bad("header_bytes", "%d, with ack_bytes %d: want multiples of 4 (the host DMA moves words)", s.HeaderBytes, s.AckBytes)
	}
	if s.MaxPacket <= s.HeaderBytes {
		return bad("max_packet", "%d, want more than header_bytes (%d)", s.MaxPacket, s.HeaderBytes)
	}
	if s.Batch > 1 && s.BatchWait <= 0 {
		return bad("batch_wait", "%v, want a time above 0", s.BatchWait)
	}
	if s.HostService < 0 {
		return bad("host_service", "%v, want a time of 0 or more", s.HostService)
	}
	return s.Costs.Validate()
}
