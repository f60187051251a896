package traces

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestBuffer(t *testing.T) {
	for name, want := range map[string][]Record{"synthetic": sample(t, 7, 20000), "wild": wild(8, 5000)} {
		b := NewBuffer(synthMeta(7), 0)
		early := b.Reader()
		for i := range want {
			_ = b.Record(&want[i])
		}
		for range 2 { // any number of readers
			got, err := readAll(b.Reader())
			if err != nil {
				t.Fatal(err)
			}
			if d := firstDifference(got, want); d != "" {
				t.Errorf("%s: %s", name, d)
			}
		}
		got, err := readAll(early)
		if err != nil || firstDifference(got, want) != "" {
			t.Errorf("%s: a reader made early: %d records, %v", name, len(got), err)
		}
		if b.Len() != uint64(len(want)) || b.Lost() != 0 {
			t.Errorf("%s: %d records, %d lost", name, b.Len(), b.Lost())
		}
		if d := cmp.Diff(synthMeta(7), b.Reader().Meta()); d != "" {
			t.Error(d)
		}
		t.Logf("%s: %.1f bytes a record", name, float64(b.Bytes())/float64(len(want)))
	}
}

func TestBufferBounded(t *testing.T) {
	want := sample(t, 7, 30000)
	for _, limit := range []int{1, 64 << 10, 100 << 10} {
		b := NewBuffer(nil, limit)
		var slow Reader
		for i := range want {
			if i == 5000 {
				slow = b.Reader()
			}
			_ = b.Record(&want[i])
			if b.Bytes() > max(limit, 2*chunkBytes) {
				t.Fatalf("limit %d: %d bytes", limit, b.Bytes())
			}
		}
		got, err := readAll(b.Reader())
		if err != nil {
			t.Fatal(err)
		}
		if b.Len() != uint64(len(got)) || b.Len()+b.Lost() != uint64(len(want)) {
			t.Errorf("limit %d: %d held, %d read, %d lost of %d", limit, b.Len(), len(got), b.Lost(), len(want))
		}
		if d := firstDifference(got, want[b.Lost():]); d != "" {
			t.Errorf("limit %d: %s", limit, d)
		}
		if got, err := readAll(slow); err != nil || firstDifference(got, want[b.Lost():]) != "" {
			t.Errorf("limit %d: a slow reader: %d records, %v", limit, len(got), err)
		}
		i := 0
		if n := testing.AllocsPerRun(100, func() {
			for range 1000 {
				_ = b.Record(&want[i%len(want)])
				i++
			}
		}); n != 0 {
			t.Errorf("limit %d: %v allocations in 1000 records", limit, n)
		}
	}
}

func TestRing(t *testing.T) {
	want := sample(t, 7, 1000)
	for _, n := range []int{0, 1, 7, 999, len(want), len(want) + 5} {
		g := NewRing(synthMeta(1), n)
		for i := range want {
			_ = g.Record(&want[i])
		}
		held := min(max(n, 1), len(want))
		got, err := readAll(g.Reader())
		if err != nil || g.Len() != held {
			t.Fatalf("ring of %d holds %d: %v", n, g.Len(), err)
		}
		if d := firstDifference(got, want[len(want)-held:]); d != "" {
			t.Errorf("ring of %d: %s", n, d)
		}
		if n := testing.AllocsPerRun(10, func() { _ = g.Record(&want[0]) }); n != 0 {
			t.Errorf("%v allocations", n)
		}
		if g.Reset(); g.Len() != 0 {
			t.Error("reset leaves something")
		}
	}
}
