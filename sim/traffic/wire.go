package traffic

import (
	"errors"
	"fmt"

	"spinesim/sim/des"
)

// ErrEndOfTime reports an arrival beyond what des.Time can hold.
var ErrEndOfTime = errors.New("beyond the end of simulated time")

// Wire is the link into a card, as its senders share it.
type Wire struct {
	// Rate of the link. Not set: packets take no time, and arrive when the
	// process hands them over.
	Rate des.Rate
	// Overhead is what the link adds to each packet in bytes (route, tail,
	// preamble, gap).
	Overhead int
}

// Validate tells what is wrong with w.
func (w Wire) Validate() error {
	if w.Overhead < 0 || w.Overhead > 1<<16 {
		return fmt.Errorf("wire: overhead of %d bytes, want 0 to 65536", w.Overhead)
	}
	if (w.Rate.Num == 0) != (w.Rate.Den == 0) {
		return fmt.Errorf("wire: rate of %d/%d bytes/s", w.Rate.Num, w.Rate.Den)
	}
	return nil
}

// serialiser puts packets on a wire one behind the other. The bytes of a busy
// period are added up and turned into time once, so that roundings do not add
// up.
type serialiser struct {
	w     Wire
	begun des.Time // of the busy period
	bytes des.Bytes
	free  des.Time
}

// send gives the time at which a packet that was handed over at t has arrived
// whole.
func (s *serialiser) send(t des.Time, bytes int) (des.Time, error) {
	if s.w.Rate.Num == 0 {
		return t, nil
	}
	if t > s.free || s.bytes == 0 {
		s.begun, s.bytes = max(t, s.free), 0
	}
	s.bytes += des.Bytes(bytes + s.w.Overhead)
	d, err := s.w.Rate.Duration(s.bytes)
	if err != nil || d > des.MaxTime-s.begun {
		return 0, fmt.Errorf("%d bytes on the wire from %v on: %w", s.bytes, s.begun, ErrEndOfTime)
	}
	s.free = s.begun + d
	return s.free, nil
}
