package lanai

import (
	"spinesim/sim/des"
	"spinesim/traces"
)

// Frame is a packet on the wire.
type Frame struct {
	ID      uint64   // packet number, from 1
	Bytes   int      // length on the wire, IP header on, at least 1
	Data    []byte   // leading bytes that are really carried, at most Bytes; owned by the frame
	BadCRC  bool     // the CRC behind it was wrong
	Arrived des.Time // when it entered the FIFO upstream
	Ingress uint8    // card it came in by
	Egress  uint8    // card it leaves by

	// Cause is the record that brought it where it is. The engines name it as
	// the cause of their own record and put that in its place.
	Cause traces.ID
}

// words is how many memory words n bytes take.
func words(n int) int64 { return (int64(n) + 3) >> 2 }
