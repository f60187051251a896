package isa

import "bytes"

// Periodic is implemented by Slots whose pattern repeats. Rounds of a waiting
// loop are then skipped while others are on the memory bus, too.
type Periodic interface {
	// Phase names what is free from the cycle on: after any two cycles with the
	// same phase it is the same, up to the boundary until of each. 0 is a phase
	// of which nothing is known.
	Phase(cycle int64) (phase uint64, until int64)
}

// traceBytes is how many of the last instructions are remembered, a power of two
// and the longest round that is skipped while others are on the memory bus.
const traceBytes = 1 << 12

// traceChunk is how many are written at a time: so many of the oldest may be
// overwritten with anything.
const traceChunk = 16

// stallBit in a byte of the trace is an interlock, beside op.second.
const stallBit = 1

// rounds is what is known of the time that rounds of a waiting loop take.
type rounds struct {
	trace [traceBytes]uint8 // of each instruction while a loop is watched, in a ring, what its time depends on
	valid int64             // the first in the ring that is of the loop watched
	known []uint8           // the trace of a round
	cycle []uint8           // scratch
	took  map[uint64]taken  // by the phase at its beginning
}

// taken is how long a round takes, length 0 where that is not known.
type taken struct{ length, waits int64 }

// maxTaken bounds what is remembered. Chosen; a load in steady state uses some
// hundreds.
const maxTaken = 1 << 12

// executed is how many instructions were not skipped.
func (s *state) executed() int64 { return s.count.Instructions - s.count.Skipped }

// learn makes the trace of the round behind, of n instructions, the known one.
func (r *rounds) learn(from, n int64) bool {
	if from < r.valid || n > traceBytes-traceChunk {
		return false
	}
	i := from % traceBytes
	if i+n <= traceBytes {
		r.cycle = append(r.cycle[:0], r.trace[i:i+n]...)
	} else {
		r.cycle = append(append(r.cycle[:0], r.trace[i:]...), r.trace[:i+n-traceBytes]...)
	}
	if !bytes.Equal(r.cycle, r.known) {
		r.known, r.cycle = r.cycle, r.known
		clear(r.took)
	}
	return true
}

// contended skips rounds of a waiting loop, whose last is behind, while others
// are on the bus, up to the boundary to.
func (c *CPU) contended(to int64) {
	p, ok := c.Slots.(Periodic)
	if !ok || c.Profile != nil {
		return
	}
	r, a := &c.time, &c.ahead
	if !r.learn(c.executed()-a.each.Instructions, a.each.Instructions) {
		return
	}
	if r.took == nil {
		r.took = make(map[uint64]taken)
	}
	for {
		phase, until := p.Phase(c.cycle)
		if phase == 0 {
			return
		}
		until = min(until, to)
		t, ok := r.took[phase]
		if !ok {
			if t = c.measure(until); t.length == 0 {
				return
			}
			if len(r.took) >= maxTaken {
				clear(r.took)
			}
			r.took[phase] = t
		}
		if c.cycle+t.length > until {
			return
		}
		each := a.each
		each.Waits = t.waits
		c.cycle += t.length
		c.count.add(1, &each)
		c.sc.skip(1, a.calls, t.length, &each)
	}
}

// measure finds how long a round takes that begins now, if it ends by the
// boundary until.
func (c *CPU) measure(until int64) (t taken) {
	var waits []uint8
	var base int64
	cycle := c.cycle
	for _, x := range c.time.known {
		at := cycle + int64(x&stallBit)
		w := uint8(longWait)
		for again := false; ; again = true {
			if i := at - base; uint64(i) < uint64(len(waits)) {
				w = waits[i] >> (x &^ stallBit) & longWait
			}
			if w < longWait || again || at >= until {
				break
			}
			waits, base = c.Slots.Window(at).Waits, at
		}
		if w == longWait {
			return taken{}
		}
		cycle = at + 1 + int64(w)
		t.waits += int64(w)
		if cycle > until {
			return taken{}
		}
	}
	t.length = cycle - c.cycle
	return t
}
