package pci

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"testing"

	"spinesim/sim/des"
)

// caller counts what comes back of what it started.
type caller struct {
	m       *Master
	t       Transfer
	waiting bool
	done    int
}

func (c *caller) TransferDone(now des.Time, t *Transfer) error {
	switch {
	case !c.waiting || t != &c.t:
		return errors.New("a transfer ended that was not outstanding")
	case t.End != now || t.Granted < t.Requested || t.End <= t.Granted:
		return errors.New("times out of order")
	case t.Moved > t.Bytes || (t.Status == StatusOK) != (t.Moved == t.Bytes):
		return errors.New("moved bytes contradict the status")
	}
	c.waiting = false
	c.done++
	return nil
}
func (*caller) BusStream(des.Time, bool, int32, int32) {}

// inOrder checks that no two transactions share a clock.
type inOrder struct {
	t    *testing.T
	free int64
}

func (o *inOrder) Burst(b *Burst) {
	if b.Address < o.free || b.Address < b.Wanted || b.Data <= b.Address || b.Last < b.Data || b.Idle <= b.Last {
		o.t.Fatalf("burst %+v after clock %d", *b, o.free)
	}
	o.free = b.Idle + 1
}

// FuzzStart plays a tape of calls, valid or not, at any time.
func FuzzStart(f *testing.F) {
	f.Add(uint64(1), []byte("\x00\x00\x01\x00\x00\x40\x05\x01\x01\x01\x00\x02\x80\x05"))
	f.Add(uint64(2), make([]byte, 70))
	f.Add(uint64(77), []byte("any sequence of calls keeps the bus whole, whatever it says"))
	f.Fuzz(play)
}

// play makes the calls of a tape on a random bus and checks after each that
// nothing is broken.
func play(t *testing.T, seed uint64, tape []byte) {
	s := randomScenario(rand.New(rand.NewPCG(seed, 5)))
	e, b := newBus(t, s.spec)
	b.Watch(&inOrder{t: t})
	var cs []*caller
	for i := range s.jobs {
		c := &caller{}
		var err error
		if c.m, err = b.AttachMaster("c", uint8(i), c); err != nil {
			t.Fatal(err)
		}
		cs = append(cs, c)
	}
	for _, w := range s.targets {
		if err := b.AttachTarget("t", 0, uint32(w.base), uint32(w.end-w.base), w.spec, &sink{}); err != nil {
			t.Fatal(err)
		}
	}
	started := 0
	tape = tape[:min(len(tape), 4096)] // longer ones say nothing new
	for ; len(tape) >= 7; tape = tape[7:] {
		c := cs[int(tape[0]>>2)%len(cs)]
		next := Transfer{
			Cmd:   Command(tape[0] & 3), // 3 is none
			Addr:  0xFF00 + uint32(binary.LittleEndian.Uint16(tape[1:])),
			Bytes: int(int16(binary.LittleEndian.Uint16(tape[3:]))),
		}
		if tape[5]&0x80 != 0 {
			next.Addr |= 0xFFFF0000
		}
		ok := next.Cmd < numCommands && next.Bytes > 0 && int64(next.Addr)+int64(next.Bytes) <= 1<<32
		probe := &next
		if !c.waiting {
			c.t, probe = next, &c.t
		}
		err := c.m.Start(probe)
		switch {
		case ok && !c.waiting && err != nil:
			t.Fatalf("%+v: %v", next, err)
		case (!ok || c.waiting) && err == nil:
			t.Fatalf("%+v was taken", next)
		case err == nil:
			c.waiting = true
			started++
		}
		run(t, e, des.Time(tape[5]&0x7F)*des.Time(tape[6])*997)
		sums(t, b.Usage())
	}
	if err := e.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	sums(t, b.Usage())
	done := 0
	for _, c := range cs {
		done += c.done
	}
	if done != started {
		t.Fatalf("%d of %d transfers ended", done, started)
	}
}

// TestRandomStarts plays random tapes, so that each run of the tests passes
// through what the fuzz test looks at.
func TestRandomStarts(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 2))
	for range 2000 {
		tape := make([]byte, r.IntN(300))
		for i := range tape {
			tape[i] = byte(r.Uint32())
		}
		play(t, r.Uint64(), tape)
	}
}
