package traces

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"spinesim/sim/des"
)

// hearing keeps what it hears, and is slow now and then.
type hearing struct {
	r     *rand.Rand
	heard []Record
	fail  int // with which record, 0: none
	err   error
}

func (h *hearing) Record(r *Record) error {
	if h.r != nil && h.r.IntN(200) == 0 {
		time.Sleep(time.Duration(h.r.IntN(300)) * time.Microsecond)
	}
	h.heard = append(h.heard, *r)
	if len(h.heard) == h.fail {
		return h.err
	}
	return nil
}

// TestOverlap: sinks hear the same records in the same order, whatever goroutine
// tells them.
func TestOverlap(t *testing.T) {
	for seed := range uint64(20) {
		for _, batch := range []int{1, 7, 512} {
			tell := func(over bool) (heard []Record, print uint64) {
				h := &hearing{}
				if over {
					h.r = rand.New(rand.NewPCG(seed, 2))
				}
				var f Fingerprint
				rec := NewRecorder(&f, h)
				rec.SetBatch(batch)
				if over {
					rec.Overlap()
				}
				r := rand.New(rand.NewPCG(seed, 1))
				end := des.Time(0)
				for range 2000 {
					end += des.Time(r.IntN(3))
					x := rec.Next(end, uint8(r.IntN(4)))
					x.Kind, x.Start, x.Count = KindLevel, end, r.Uint32()
				}
				if err := rec.Close(); err != nil {
					t.Fatal(err)
				}
				return h.heard, f.Sum()
			}
			want, wantPrint := tell(false)
			got, gotPrint := tell(true)
			if d := cmp.Diff(want, got); d != "" || wantPrint != gotPrint {
				t.Fatalf("seed %d, batches of %d: fingerprints %x and %x\n%s", seed, batch, wantPrint, gotPrint, d)
			}
		}
	}
}

// TestOverlapFails: a sink's error is told while the run goes on and at its end,
// and Stop leaves nobody at work.
func TestOverlapFails(t *testing.T) {
	full := errors.New("disk full")
	h := &hearing{fail: 100, err: full}
	rec := NewRecorder(h)
	rec.SetBatch(16)
	rec.Overlap()
	end := des.Time(0)
	for rec.Err() == nil {
		if end++; end > 1<<22 {
			t.Fatal("the error is not told")
		}
		rec.Next(end, 0).Kind = KindLevel
	}
	if err := rec.Err(); !errors.Is(err, full) {
		t.Fatal(err)
	}
	if err := rec.Close(); !errors.Is(err, full) {
		t.Fatal(err)
	}
	if len(h.heard) != int(end) {
		t.Errorf("%d records heard of %d", len(h.heard), end)
	}

	h = &hearing{}
	rec = NewRecorder(h)
	rec.SetBatch(16)
	rec.Overlap()
	for i := range des.Time(1000) {
		rec.Next(i, 0).Kind = KindLevel
	}
	rec.Stop()
	n := len(h.heard)
	if n < 900 || rec.Err() != nil {
		t.Errorf("%d records heard, %v", n, rec.Err())
	}
	rec.Stop()
	if err := rec.Close(); err != nil || len(h.heard) != 1000 {
		t.Errorf("%d records heard at last, %v", len(h.heard), err)
	}
	(*Recorder)(nil).Overlap()
	(*Recorder)(nil).Stop()
}
