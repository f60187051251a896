package traces

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"

	"spinesim/sim/des"
)

// libraryRow is a row as the library takes and gives it, NULL a nil pointer. It
// says nothing of encodings that the library does not know for pointers.
type libraryRow struct {
	Kind     string  `parquet:"kind,dict"`
	Event    *string `parquet:"event,optional,dict"`
	Card     uint8   `parquet:"card,dict"`
	Peer     *uint8  `parquet:"peer,optional,dict"`
	Queue    *uint8  `parquet:"queue,optional,dict"`
	Packet   *uint64 `parquet:"packet,optional"`
	End      int64   `parquet:"end_ps,delta"`
	Duration int64   `parquet:"duration_ps,dict"`
	Waited   *int64  `parquet:"waited_ps,optional,dict"`
	ID       *uint64 `parquet:"id,optional"`
	Cause    *uint64 `parquet:"cause,optional"`
	Bytes    *uint32 `parquet:"bytes,optional,dict"`
	Count    uint32  `parquet:"count,dict"`
	Cycles   *uint64 `parquet:"cycles,optional,dict"`
	Stall    *uint32 `parquet:"stall_cycles,optional,dict"`
	Reason   *string `parquet:"reason,optional,dict"`
	Verdict  *string `parquet:"verdict,optional,dict"`
}

func unlessNull[T any](null bool, v T) *T {
	if null {
		return nil
	}
	return &v
}

func libraryRowOf(r *Record) libraryRow {
	name := func(n uint8, known int, s string) string {
		if int(n) >= known {
			return strconv.Itoa(int(n))
		}
		return s
	}
	return libraryRow{
		Kind:     name(uint8(r.Kind), NumKinds, r.Kind.String()),
		Event:    unlessNull(r.Event == NoEvent, name(uint8(r.Event), NumEvents, r.Event.String())),
		Card:     r.Card,
		Peer:     unlessNull(r.Peer == NoCard, r.Peer),
		Queue:    unlessNull(r.Queue == NoQueue, r.Queue),
		Packet:   unlessNull(r.Packet == 0, r.Packet),
		End:      int64(r.End),
		Duration: int64(r.End - r.Start),
		Waited:   unlessNull(r.Ready == 0, int64(r.Start-r.Ready)),
		ID:       unlessNull(r.ID == 0, uint64(r.ID)),
		Cause:    unlessNull(r.Cause == 0, uint64(r.Cause)),
		Bytes:    unlessNull(r.Bytes == 0, r.Bytes),
		Count:    r.Count,
		Cycles:   unlessNull(r.Cycles == 0, r.Cycles),
		Stall:    unlessNull(r.Stall == 0, r.Stall),
		Reason:   unlessNull(r.Reason == ReasonNone, name(uint8(r.Reason), NumReasons, r.Reason.String())),
		Verdict:  unlessNull(r.Verdict == VerdictNone, name(uint8(r.Verdict), NumVerdicts, r.Verdict.String())),
	}
}

// byCard sorts a row group's records as they stand in the file.
func byCard(recs []Record) []Record {
	recs = slices.Clone(recs)
	slices.SortStableFunc(recs, func(a, b Record) int { return int(a.Card) - int(b.Card) })
	return recs
}

// What the library reads in our files, knowing nothing of records, is what it
// would have been given to write.
func TestLibraryReadsOurs(t *testing.T) {
	for name, recs := range map[string][]Record{
		"none": nil, "one": sample(t, 61, 1), "synthetic": sampleExpanded(t, 62, 3000), "wild": wild(63, 3000),
		"block": sample(t, 64, parquetBlockRows), "blocks": sample(t, 65, 2*parquetBlockRows+1),
	} {
		file := encode(t, &formats[2], synthMeta(61), recs)
		got, err := parquet.Read[libraryRow](bytes.NewReader(file), int64(len(file)))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		want := make([]libraryRow, 0, len(recs))
		for _, r := range byCard(recs) {
			want = append(want, libraryRowOf(&r))
		}
		if diff := cmp.Diff(want, got); len(got)+len(want) > 0 && diff != "" {
			t.Errorf("%s: rows (-want +got):\n%s", name, diff)
		}
	}
}

// libraryFile is a file that the library writes, with pages of version 1 or 2.
func libraryFile(t testing.TB, version int, recs []Record) []byte {
	t.Helper()
	meta, err := synthMeta(66).encode()
	if err != nil {
		t.Fatal(err)
	}
	var total tally
	for i := range recs {
		total.count(&recs[i])
	}
	var file bytes.Buffer
	w := parquet.NewWriter(&file, parquetSchema,
		parquet.DataPageVersion(version), parquet.PageBufferSize(4096),
		parquet.Compression(&zstd.Codec{}),
		parquet.KeyValueMetadata(parquetMetaKey, string(meta)),
		parquet.KeyValueMetadata(parquetTallyKey, strings.TrimSpace(string(appendTrailer(nil, total)))))
	rows := parquet.SchemaOf(libraryRow{})
	for _, r := range byCard(recs) {
		if _, err := w.WriteRows([]parquet.Row{rows.Deconstruct(nil, libraryRowOf(&r))}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

// Files that the library writes, with pages of either version, are read as ours
// are.
func TestOursReadsLibrary(t *testing.T) {
	recs := wild(66, 3000)
	for version := 1; version <= 2; version++ {
		_, got, _, err := decode(&formats[2], libraryFile(t, version, recs), ReadOptions{})
		if err != nil {
			t.Fatalf("pages of version %d: %v", version, err)
		}
		if diff := cmp.Diff(recs, got); diff != "" {
			t.Errorf("pages of version %d: records (-want +got):\n%s", version, diff)
		}
	}
}

// A dictionary numbers values as a map does.
func TestParquetDictionary(t *testing.T) {
	var d parquetDictionary
	rng := rand.New(rand.NewPCG(1, 2))
	for _, different := range []int{1, 200, 511, 512, 513, 40_000} {
		d.reset()
		numbers := map[uint64]int32{}
		var values []uint64
		var want, got []int32
		for len(want) < 3*different {
			part := make([]uint64, rng.IntN(300))
			for i := range part {
				v := uint64(rng.IntN(different))
				switch rng.IntN(3) {
				case 0:
					v *= 30303
				case 1:
					v = -v
				}
				part[i] = v
				if _, known := numbers[v]; !known {
					numbers[v] = int32(len(values))
					values = append(values, v)
				}
				want = append(want, numbers[v])
			}
			got = d.append(got, part)
		}
		if !slices.Equal(got, want) || !slices.Equal(d.values, values) {
			t.Errorf("%d values: wrong numbers", different)
		}
	}
}

// Once there is room for a row group, only what the footer says of it is
// allocated.
func TestParquetAllocates(t *testing.T) {
	w, err := NewParquetWriter(io.Discard, nil)
	if err != nil {
		t.Fatal(err)
	}
	recs := sample(t, 67, 10_000)
	later := des.Time(0)
	at := 0
	group := func() {
		for range parquetGroupRows {
			r := recs[at]
			r.Start, r.End = r.Start+later, r.End+later
			if err := w.Record(&r); err != nil {
				t.Fatal(err)
			}
			if at++; at == len(recs) {
				at, later = 0, later+recs[len(recs)-1].End
			}
		}
	}
	group()
	group()
	if n := testing.AllocsPerRun(2, group); n > 200 {
		t.Errorf("%v allocations in a row group of %d records", n, parquetGroupRows)
	} else {
		t.Logf("%v allocations in a row group", n)
	}
}

// parquetGate is a file that takes what comes once it is opened, and then only
// so much.
type parquetGate struct {
	open chan struct{}
	failing
	written atomic.Int64
}

func (g *parquetGate) Write(b []byte) (int, error) {
	if g.written.Load() > 0 { // behind the magic
		<-g.open
	}
	n, err := g.failing.Write(b)
	g.written.Add(int64(n))
	return n, err
}

// A row group is written while the next one's records come in; an error there
// comes out before a third one, and from then on; and after an abort nothing is
// written any more.
func TestParquetOverlaps(t *testing.T) {
	recs := sample(t, 69, 1000)
	start := func(room int) (*parquetGate, *ParquetWriter, func(groups int) error) {
		gate := &parquetGate{open: make(chan struct{}), failing: failing{room}}
		w, err := NewParquetWriter(gate, nil)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		return gate, w, func(groups int) error {
			for range groups * parquetGroupRows {
				r := recs[n%len(recs)]
				later := des.Time(n/len(recs)) * recs[len(recs)-1].End
				r.Start, r.End = r.Start+later, r.End+later
				if err := w.Record(&r); err != nil {
					return err
				}
				n++
			}
			return nil
		}
	}

	gate, w, write := start(1 << 30)
	if err := write(1); err != nil {
		t.Fatal(err)
	}
	if err := w.Record(&Record{End: 1 << 60}); err != nil { // while the first cannot be written
		t.Fatal(err)
	}
	if n := gate.written.Load(); n != int64(len(parquetMagic)) {
		t.Errorf("%d bytes are written through a closed gate", n)
	}
	close(gate.open)
	w.abort()
	n := gate.written.Load()
	if n < 100_000 {
		t.Errorf("only %d bytes of a row group are written", n)
	}
	time.Sleep(10 * time.Millisecond)
	if more := gate.written.Load(); more != n {
		t.Errorf("%d bytes are written after an abort", more-n)
	}

	gate, w, write = start(10_000)
	close(gate.open)
	if err := write(1); err != nil {
		t.Errorf("first row group: %v before it is written", err)
	}
	if err := write(1); !errors.Is(err, errFull) {
		t.Errorf("second row group: error %v", err)
	}
	gate.n = 1 << 30 // room again, but the file has a hole
	if err := w.Close(); !errors.Is(err, errFull) {
		t.Errorf("close: error %v", err)
	}
}
