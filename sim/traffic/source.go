package traffic

import "spinesim/sim/des"

// Arrival is one packet that arrives in front of a card.
type Arrival struct {
	At    des.Time // when its last byte has arrived
	Bytes int      // length, from the IPv4 header on
	// Data holds the leading bytes that are known, at most Bytes: at least the
	// whole IPv4 header. It is valid until the next call of Next.
	Data []byte
	// Skip, when not empty, says why this packet cannot enter. Such packets
	// are counted by reason; Bytes and Data then mean nothing.
	Skip string
}

// Source yields arrivals in order of time. Next fills in a and reports true,
// or false at the end; At never decreases. After an error or the end it is not
// called again. Implementations must not allocate in steady state.
type Source interface {
	Next(a *Arrival) (bool, error)
}

// Process is an arrival process: the times at which packets are handed to the
// link, before they are serialised. Next never decreases and fails only where
// des.Time ends.
type Process interface {
	Next() (des.Time, error)
}
