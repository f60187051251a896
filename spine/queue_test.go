package spine

import (
	"math/rand/v2"
	"testing"
)

// TestRing holds the queue to a plain slice.
func TestRing(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	for trial := range 50 {
		var r ring
		var want []uint64
		grow := 1 + rnd.IntN(3) // how much pushing outweighs popping
		for step := range 2000 {
			m := message{seq: uint64(step), pkt: &packet{id: uint64(step)}}
			switch op := rnd.IntN(grow + 3); {
			case op == 0:
				r.pushFront(m)
				want = append([]uint64{m.seq}, want...)
			case op <= grow:
				r.pushBack(m)
				want = append(want, m.seq)
			case len(want) > 0:
				if f := r.front(); f.seq != want[0] {
					t.Fatalf("trial %d, step %d: front %d, want %d", trial, step, f.seq, want[0])
				}
				got := r.popFront()
				if got.seq != want[0] || got.pkt == nil || got.pkt.id != want[0] {
					t.Fatalf("trial %d, step %d: popped %+v, want %d", trial, step, got, want[0])
				}
				want = want[1:]
			}
			if r.n != len(want) {
				t.Fatalf("trial %d, step %d: %d messages, want %d", trial, step, r.n, len(want))
			}
		}
		// What has been popped is let go of.
		held := 0
		for _, m := range r.buf {
			if m.pkt != nil {
				held++
			}
		}
		if held != r.n {
			t.Errorf("trial %d: %d packets held by %d messages", trial, held, r.n)
		}
	}
}

// TestRingAllocation: a queue that has grown allocates no more.
func TestRingAllocation(t *testing.T) {
	var r ring
	for range 20 {
		r.pushBack(message{})
	}
	if n := testing.AllocsPerRun(100, func() {
		r.popFront()
		r.pushFront(message{})
		r.popFront()
		r.pushBack(message{})
	}); n != 0 {
		t.Errorf("%.0f allocations", n)
	}
}
