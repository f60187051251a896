package traces

import (
	"fmt"
	"math/bits"
)

// RecordVersion names the set of fields and their meaning. Files of a later
// version are refused, and fingerprints compare within one version only.
const RecordVersion = 1

// Odd constants with about half their bits set, from the fractional parts of
// the square roots of primes, as multiplicands (chosen).
const (
	mix0 = 0x6a09e667f3bcc909
	mix1 = 0xbb67ae8584caa73b
	mix2 = 0x3c6ef372fe94f82b
	mix3 = 0xa54ff53a5f1d36f1
	mix4 = 0x510e527fade682d1
	mix5 = 0x9b05688c2b3e6c1f
	mix6 = 0x1f83d9abfb41bd6b
)

func fold(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}

// word collects the small fields of a record.
func (r *Record) word() uint64 {
	return uint64(r.Kind) | uint64(r.Event)<<8 | uint64(r.Card)<<16 | uint64(r.Peer)<<24 |
		uint64(r.Queue)<<32 | uint64(r.Reason)<<40 | uint64(r.Verdict)<<48
}

// hashRecord folds every field of r into h. The products over pairs of fields
// do not depend on one another or on h, so a processor computes them side by
// side; only the last multiplication is on the path from record to record.
func hashRecord(h uint64, r *Record) uint64 {
	p := fold(uint64(r.Start)^mix1, uint64(r.End)^mix2)
	p ^= fold(uint64(r.Ready)^mix2, uint64(r.Packet)^mix3)
	p ^= fold(uint64(r.ID)^mix3, uint64(r.Cause)^mix4)
	p ^= fold(r.Cycles^mix4, uint64(r.Bytes)^uint64(r.Count)<<32^mix5)
	p ^= fold(r.word()^mix5, uint64(r.Stall)^mix6)
	return fold(h^p, mix0^uint64(r.End)) + p
}

// Expansion tells that r is one of the records that are written only where
// polls are expanded (Recorder.SetExpanding): single polls and queue depths.
// What they say follows from the others.
func (r *Record) Expansion() bool {
	return r.Kind == KindPoll || r.Kind == KindLevel && r.Event >= LevelQueue0 && r.Event <= LevelQueue6
}

// Fingerprint is a sink that condenses a record stream into 64 bits: two runs
// that agree in it did the same. It takes every field of every record except
// those of an Expansion, so that it does not depend on whether there was one;
// put it before any window, so that it does not depend on what was kept. It is
// not a cryptographic hash. The zero value is ready.
type Fingerprint struct {
	h, n uint64
}

// Record takes r into account; it never fails.
func (f *Fingerprint) Record(r *Record) error {
	if !r.Expansion() {
		f.h = hashRecord(f.h, r)
		f.n++
	}
	return nil
}

// records is Record for many.
func (f *Fingerprint) records(rs []Record) error {
	h, n := f.h, f.n
	for i := range rs {
		if r := &rs[i]; !r.Expansion() {
			h = hashRecord(h, r)
			n++
		}
	}
	f.h, f.n = h, n
	return nil
}

// Sum is the fingerprint of what was seen so far.
func (f *Fingerprint) Sum() uint64 {
	return fold(f.h^mix6, f.n^mix0^RecordVersion<<56)
}

// Records is how many records were taken into account.
func (f *Fingerprint) Records() uint64 { return f.n }

// String is Sum as 16 hexadecimal digits.
func (f *Fingerprint) String() string { return fmt.Sprintf("%016x", f.Sum()) }
