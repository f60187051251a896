package traces

import (
	"io"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"spinesim/sim/testenv"
)

// heapSink passes records on and watches the heap.
type heapSink struct {
	next Sink
	n    int
	base uint64
	peak uint64
}

func heapInUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse
}

func (h *heapSink) Record(r *Record) error {
	if h.n%150_000 == 0 {
		h.peak = max(h.peak, heapInUse())
	}
	h.n++
	return h.next.Record(r)
}

// memoryRecords is how long a stream these tests write, and memoryBound what
// the heap may grow by, which does not depend on it: ten million records in the
// same bound are far below 1 GB.
const (
	memoryRecords = 600_000
	memoryBound   = 120 << 20
)

func TestBoundedMemory(t *testing.T) {
	testenv.NeedLong(t)
	source := NewBuffer(synthMeta(1), 0)
	if err := generate(1, memoryRecords, source); err != nil {
		t.Fatal(err)
	}
	var want Fingerprint
	if _, err := Convert(source.Reader(), &want); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, f := range formats {
		path := filepath.Join(dir, "x"+f.Extensions[0])
		base := heapInUse()
		w, err := CreateWriter(path, synthMeta(1))
		if err != nil {
			t.Fatal(err)
		}
		h := &heapSink{next: w, base: base}
		n, err := Convert(source.Reader(), h)
		if err != nil {
			t.Fatal(err)
		}
		h.peak = max(h.peak, heapInUse())
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		st, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		perRecord := float64(st.Size()) / float64(n)
		t.Logf("%-13s %6.2f bytes a record, heap grew by %3d MB", f.Name, perRecord, int64(h.peak-base)>>20)
		if h.peak > base+memoryBound {
			t.Errorf("%s: the heap grew by %d MB while writing", f.Name, (h.peak-base)>>20)
		}
		if f.Name == "Parquet" && perRecord > 8 {
			t.Errorf("Parquet takes %.2f bytes a record", perRecord)
		}
		if f.Readable {
			base := heapInUse()
			r, err := OpenReader(path)
			if err != nil {
				t.Fatal(err)
			}
			var print Fingerprint
			h := &heapSink{next: &print}
			if _, err := Convert(r, h); err != nil {
				t.Fatal(err)
			}
			if err := r.Close(); err != nil {
				t.Error(err)
			}
			if h.peak > base+memoryBound {
				t.Errorf("%s: the heap grew by %d MB while reading", f.Name, (h.peak-base)>>20)
			}
			if print.String() != want.String() {
				t.Errorf("%s: fingerprint %s, want %s", f.Name, &print, &want)
			}
		}
		os.Remove(path)
	}
}

// Writers of lines and packed records allocate nothing in steady state.
func TestWritersAllocate(t *testing.T) {
	recs := sample(t, 2, 5000)
	for _, i := range []int{0, 1, 3, 4, 5, 6, 8} {
		f := &formats[i]
		w, err := f.newWriter(io.Discard, nil, &writeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var r, later Record // later moves the stream on: time does not run back
		write := func() {
			for i := range recs {
				r = recs[i]
				r.Start += later.End
				r.End += later.End
				if r.Ready != 0 {
					r.Ready += later.End
				}
				if r.Packet != 0 {
					r.Packet += later.Packet
				}
				if err := w.Record(&r); err != nil {
					t.Fatal(err)
				}
			}
			later.End += recs[len(recs)-1].End
			later.Packet += 1000
		}
		if f.Name == "VCD" {
			w.(*VCDWriter).spool.run = make([]vcdChange, 0, 100_000)
		}
		write()
		if n := testing.AllocsPerRun(2, write); n > 10 {
			t.Errorf("%s: %v allocations in %d records", f.Name, n, len(recs))
		}
	}
}

func BenchmarkFormats(b *testing.B) {
	recs := sample(b, 2, 100_000)
	for i := range formats {
		f := &formats[i]
		b.Run("write/"+f.Name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				w, err := f.newWriter(io.Discard, nil, &writeOptions{})
				if err != nil {
					b.Fatal(err)
				}
				for i := range recs {
					if err := w.Record(&recs[i]); err != nil {
						b.Fatal(err)
					}
				}
				if err := w.Close(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(len(recs)*b.N)/b.Elapsed().Seconds(), "records/s")
		})
		if !f.Readable {
			continue
		}
		file := encode(b, f, nil, recs)
		b.Run("read/"+f.Name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, got, _, err := decode(f, file, ReadOptions{}); err != nil || len(got) != len(recs) {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(len(recs)*b.N)/b.Elapsed().Seconds(), "records/s")
		})
	}
}
