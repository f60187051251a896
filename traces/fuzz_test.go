package traces

import (
	"bytes"
	"errors"
	"runtime"
	"testing"
)

// fuzzReader feeds a reader anything. It must not panic, hang or take memory
// out of proportion, its errors must tell a place, and what it accepts must
// survive being written and read again.
func fuzzReader(f *testing.F, format *Format) {
	recs := sampleExpanded(f, 41, 60)
	full := encode(f, format, synthMeta(41), recs)
	f.Add(full)
	f.Add(full[:len(full)/2])
	f.Add(encode(f, format, nil, nil))
	f.Add(encode(f, format, nil, wild(5, 20)))
	f.Add([]byte("kind,card,end_ps\nbox,1,2\n"))
	f.Add([]byte("1.5 +0.25 0 box Rx check header | packet=7 queue=1 id=0#12 reason=\"no route\"\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, got, r, err := decode(format, b, ReadOptions{})
		runtime.ReadMemStats(&after)
		if grown := after.TotalAlloc - before.TotalAlloc; grown > 64<<20+uint64(len(b))*2000 {
			t.Fatalf("%d bytes of input take %d bytes of memory", len(b), grown)
		}
		if err != nil {
			var fe *FormatError
			if !errors.As(err, &fe) || fe.Offset < 0 || fe.Offset > int64(len(b)) {
				t.Fatalf("error %v of %d bytes", err, len(b))
			}
		}
		if err == nil && r.Damage() != nil {
			t.Fatal("damage without an error")
		}
		_, part, pr, perr := decode(format, b, ReadOptions{Partial: true})
		if pr != nil && (perr != nil || firstDifference(part, got) != "" || (err != nil) != (pr.Damage() != nil)) {
			t.Fatalf("partial: %d records, %v, damage %v; otherwise %d records, %v", len(part), perr, pr.Damage(), len(got), err)
		}
		if err != nil {
			return
		}
		_, again, _, err := decode(&formats[0], encode(t, &formats[0], r.Meta(), got), ReadOptions{})
		if err != nil || firstDifference(again, got) != "" {
			t.Fatalf("read, written and read again: %v, %s", err, firstDifference(again, got))
		}
		if format.Name == "Parquet" || format.Name == "Perfetto" {
			return // which refuse streams that cannot be drawn or are out of order
		}
		_, again, _, err = decode(format, encode(t, format, r.Meta(), got), ReadOptions{})
		if err != nil || firstDifference(again, got) != "" {
			t.Fatalf("read, written and read again: %v, %s", err, firstDifference(again, got))
		}
	})
}

func FuzzRecReader(f *testing.F) { fuzzReader(f, &formats[0]) }
func FuzzCSVReader(f *testing.F) { fuzzReader(f, &formats[1]) }
func FuzzParquetReader(f *testing.F) {
	f.Add(libraryFile(f, 2, sampleExpanded(f, 42, 60)))
	fuzzReader(f, &formats[2])
}
func FuzzPerfettoReader(f *testing.F) { fuzzReader(f, &formats[3]) }
func FuzzListingReader(f *testing.F)  { fuzzReader(f, &formats[4]) }

// FuzzCodec packs any record and gets it back.
func FuzzCodec(f *testing.F) {
	f.Add([]byte{1, 2, 3})
	f.Fuzz(func(t *testing.T, b []byte) {
		var in, out codec
		var rec Record
		rest, err := in.next(b, &rec)
		if err != nil {
			return
		}
		packed := out.append(make([]byte, 0, maxPacked), &rec)
		if len(packed) > maxPacked {
			t.Fatalf("a record takes %d bytes, more than %d", len(packed), maxPacked)
		}
		var back Record
		in = codec{}
		left, err := in.next(bytes.Clone(packed), &back)
		if err != nil || len(left) != 0 || back != rec {
			t.Fatalf("%+v became %+v, %v, from %d bytes", rec, back, err, len(b)-len(rest))
		}
	})
}
