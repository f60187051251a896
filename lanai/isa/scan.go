package isa

import "fmt"

// Scan is a list of functions without arguments that are called one after the
// other, by something that takes no time, until one returns other than 0: the
// polls of a dispatcher that is no firmware.
type Scan struct {
	Entries []uint32
	// Loop is the entry with which the list goes on behind its end; below 0 the
	// scan ends there.
	Loop int
}

// scanning is how far a scan has come.
type scanning struct {
	at    int   // the entry that runs
	calls int64 // that have returned
	from  int64 // boundary at which the last of them did, or the first was called
	done  Counters
	last  bool // the entry that runs is the last one
}

// skip accounts for n rounds of a loop, in each of which so many calls returned.
func (s *scanning) skip(n, calls, cycles int64, each *Counters) {
	if calls == 0 {
		return // it is a loop within the entry that runs
	}
	s.calls += n * calls
	s.from += n * cycles
	s.done.add(n, each)
}

// CallScan is Call for the first entry of a scan. Run returns when the scan has
// ended; the scan and its entries must not be changed before.
func (c *CPU) CallScan(cycle int64, s *Scan, sp uint32) error {
	if len(s.Entries) == 0 || s.Loop >= len(s.Entries) {
		return fmt.Errorf("isa: scan of %d functions that goes on with number %d", len(s.Entries), s.Loop)
	}
	if err := c.Call(cycle, s.Entries[0], sp); err != nil {
		return err
	}
	c.scan, c.scanSP = s, sp
	c.sc = scanning{from: cycle, done: c.count}
	return nil
}

// Scanned tells how many calls of the last scan have returned, at which boundary
// the last one did (or the first was called), and the counters at that time.
func (c *CPU) Scanned() (calls, cycle int64, done Counters) { return c.sc.calls, c.sc.from, c.sc.done }

// EndScan lets the scan end with the call in progress. It must not be called while
// the processor is ahead of time.
func (c *CPU) EndScan() {
	c.Forget() // of loops that would be known again
	c.sc.last = true
}

// another goes on with a scan behind a return. It tells whether there is another
// call, and whether the list has begun anew with it.
func (c *CPU) another() (more, anew bool) {
	s := &c.sc
	s.calls++
	s.from, s.done = c.cycle, c.count
	if c.reg[RV] != 0 || s.last {
		return false, false
	}
	if s.at++; s.at == len(c.scan.Entries) {
		if c.scan.Loop < 0 {
			return false, false
		}
		s.at, anew = c.scan.Loop, true
	}
	sp := c.scanSP - wordSize
	if (c.ahead.on || c.loop.armed) && loadWord(c.mem, sp) != ReturnAddress {
		c.note(sp) // where that was the last room, the next store ends the run
	}
	c.enter(sp, c.scan.Entries[s.at])
	return true, anew
}
