package traces

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// readAll drains a reader.
func readAll(r Reader) ([]Record, error) {
	var out []Record
	var rec Record
	for {
		ok, err := r.Next(&rec)
		if err != nil || !ok {
			return out, err
		}
		out = append(out, rec)
	}
}

// encode writes records in a format, in memory.
func encode(tb testing.TB, f *Format, meta *Meta, recs []Record) []byte {
	tb.Helper()
	var b bytes.Buffer
	w, err := f.newWriter(&b, meta, &writeOptions{})
	if err != nil {
		tb.Fatal(err)
	}
	for i := range recs {
		if err := w.Record(&recs[i]); err != nil {
			tb.Fatalf("%s: %v", f.Name, err)
		}
	}
	if err := w.Close(); err != nil {
		tb.Fatalf("%s: %v", f.Name, err)
	}
	return b.Bytes()
}

// decode reads records of a format from memory.
func decode(f *Format, b []byte, o ReadOptions) (*Meta, []Record, fileFormatReader, error) {
	var r fileFormatReader
	var err error
	if f.Name == "Parquet" { // spares the temporary file
		pr, perr := NewParquetReader(bytes.NewReader(b), int64(len(b)), o)
		r, err = pr, perr
	} else {
		r, err = f.newReader(bytes.NewReader(b), o)
	}
	if err != nil {
		return nil, nil, nil, err
	}
	recs, err := readAll(r)
	return r.Meta(), recs, r, err
}

func readable(do func(f *Format)) {
	for i := range formats {
		if formats[i].Readable {
			do(&formats[i])
		}
	}
}

func firstDifference(got, want []Record) string {
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			return fmt.Sprintf("record %d: %s", i, cmp.Diff(want[i], got[i]))
		}
	}
	if len(got) != len(want) {
		return fmt.Sprintf("%d records instead of %d", len(got), len(want))
	}
	return ""
}

func TestRoundTrip(t *testing.T) {
	streams := map[string][]Record{
		"empty":     nil,
		"synthetic": sample(t, 7, 20000),
		"expanded":  sampleExpanded(t, 8, 5000),
		"wild":      wild(3, 5000),
	}
	meta := synthMeta(7)
	readable(func(f *Format) {
		for _, name := range []string{"empty", "synthetic", "expanded", "wild"} {
			t.Run(f.Name+"/"+name, func(t *testing.T) {
				want := streams[name]
				b := encode(t, f, meta, want)
				m, got, _, err := decode(f, b, ReadOptions{})
				if err != nil {
					t.Fatal(err)
				}
				if d := firstDifference(got, want); d != "" {
					t.Error(d)
				}
				if d := cmp.Diff(meta, m); d != "" {
					t.Errorf("metadata (-want +got)\n%s", d)
				}
				if again := encode(t, f, meta, want); !bytes.Equal(b, again) {
					t.Error("the same records give other bytes")
				}
				if len(want) > 0 {
					t.Logf("%.1f bytes a record", float64(len(b))/float64(len(want)))
				}
			})
		}
	})
}

// A text can hold any record, negative times and spans too; so can the packed
// form, of which Buffer is made.
func TestRoundTripNegative(t *testing.T) {
	recs := wild(9, 1000)
	for i := range recs {
		recs[i].Start -= 1 << 40
		recs[i].End -= 1 << 42
		recs[i].Ready = -recs[i].Ready
	}
	recs = append(recs, Record{Start: -1 << 63, End: 1<<63 - 1, Ready: -1 << 63, ID: 1<<64 - 1, Cause: 1<<64 - 1})
	for _, i := range []int{0, 1, 4} {
		f := &formats[i]
		_, got, _, err := decode(f, encode(t, f, nil, recs), ReadOptions{})
		if err != nil {
			t.Fatalf("%s: %v", f.Name, err)
		}
		if d := firstDifference(got, recs); d != "" {
			t.Errorf("%s: %s", f.Name, d)
		}
	}
}

func TestFiles(t *testing.T) {
	dir := t.TempDir()
	want := sample(t, 5, 3000)
	meta := synthMeta(5)
	for _, f := range Formats() {
		for _, ext := range f.Extensions {
			for _, comp := range []string{"", ".gz", ".zst"} {
				path := filepath.Join(dir, "run"+ext+comp)
				w, err := CreateWriter(path, meta)
				if err != nil {
					t.Fatal(err)
				}
				for i := range want {
					if err := w.Record(&want[i]); err != nil {
						t.Fatal(err)
					}
				}
				if _, err := os.Stat(path); err == nil {
					t.Fatalf("%s is there before it is complete", path)
				}
				if err := w.Close(); err != nil {
					t.Fatal(err)
				}
				w.Abort() // as a deferred call would
				r, err := OpenReader(path)
				if !f.Readable {
					if err == nil || !strings.Contains(err.Error(), "cannot be read back") {
						t.Errorf("%s: error %v", path, err)
					}
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				got, err := readAll(r)
				if err != nil {
					t.Fatal(err)
				}
				if d := firstDifference(got, want); d != "" {
					t.Errorf("%s: %s", path, d)
				}
				if d := cmp.Diff(meta, r.Meta()); d != "" {
					t.Errorf("%s: %s", path, d)
				}
				if err := r.Close(); err != nil {
					t.Error(err)
				}
			}
		}
	}
	left, _ := filepath.Glob(filepath.Join(dir, ".*"))
	if len(left) > 0 {
		t.Errorf("left over: %v", left)
	}
}

func TestFileWholeOrAbsent(t *testing.T) {
	dir := t.TempDir()
	recs := sample(t, 5, 1000)
	for _, f := range Formats() {
		path := filepath.Join(dir, "x"+f.Extensions[0])
		if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
			t.Fatal(err)
		}
		w, err := CreateWriter(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := range recs {
			if err := w.Record(&recs[i]); err != nil {
				t.Fatal(err)
			}
		}
		w.Abort()
		if err := w.Close(); err != nil {
			t.Errorf("%s: close after abort: %v", f.Name, err)
		}
		if b, _ := os.ReadFile(path); string(b) != "old" {
			t.Errorf("%s: abort has changed the file to %q", f.Name, b)
		}
	}
	// A record that the format cannot hold.
	path := filepath.Join(dir, "y.pftrace")
	w, err := CreateWriter(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = w.Record(&Record{Kind: KindBox, Start: -5, End: 3})
	if err == nil || !strings.Contains(err.Error(), "y.pftrace") {
		t.Errorf("error %v does not name the file", err)
	}
	if w.Record(&recs[0]) == nil || w.Close() == nil {
		t.Error("the file is lost, but writing goes on")
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the lost file is there: %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".*")); len(left) > 0 {
		t.Errorf("left over: %v", left)
	}
	for _, bad := range []string{"x", "x.foo", "x.gz", "x.csv.bz2"} {
		if _, err := CreateWriter(filepath.Join(dir, bad), nil); err == nil || !strings.Contains(err.Error(), ".parquet") {
			t.Errorf("%s: error %v does not tell the extensions", bad, err)
		}
	}
	if _, err := CreateWriter(filepath.Join(dir, "no", "x.csv"), nil); err == nil {
		t.Error("file in a directory that is not there")
	}
	if _, err := OpenReader(filepath.Join(dir, "no.csv")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("open of what is not there: %v", err)
	}
}

// failing is a writer that takes n bytes.
type failing struct{ n int }

var errFull = errors.New("disk is full")

func (f *failing) Write(b []byte) (int, error) {
	if len(b) > f.n {
		n := f.n
		f.n = 0
		return n, errFull
	}
	f.n -= len(b)
	return len(b), nil
}

func TestWriteErrors(t *testing.T) {
	recs := sample(t, 5, 3000)
	for i := range formats {
		f := &formats[i]
		size := len(encode(t, f, synthMeta(1), recs))
		for _, room := range []int{0, 10, size / 2, size - 1} {
			w, err := f.newWriter(&failing{room}, synthMeta(1), &writeOptions{})
			for i := 0; err == nil && i < len(recs); i++ {
				err = w.Record(&recs[i])
			}
			if err == nil {
				err = w.Close()
			}
			if !errors.Is(err, errFull) {
				t.Errorf("%s with room for %d bytes: error %v", f.Name, room, err)
			}
		}
	}
}

// Every cut of a file is noticed, and a partial reader gives a prefix.
func TestTruncated(t *testing.T) {
	want := sample(t, 11, 400)
	readable(func(f *Format) {
		b := encode(t, f, synthMeta(11), want)
		for n := 0; n < len(b); n += 1 + n/40 {
			_, _, _, err := decode(f, b[:n], ReadOptions{Path: "the/file"})
			var fe *FormatError
			if !errors.As(err, &fe) {
				t.Fatalf("%s cut to %d of %d bytes: error %v", f.Name, n, len(b), err)
			}
			if fe.Offset < 0 || fe.Offset > int64(n) || !strings.Contains(err.Error(), "the/file") {
				t.Errorf("%s cut to %d bytes: %v", f.Name, n, err)
			}
			if !errors.Is(err, ErrTruncated) && !errors.Is(err, ErrForeign) && !errors.Is(err, ErrCorrupt) {
				t.Errorf("%s cut to %d bytes: %v", f.Name, n, err)
			}
			_, got, r, err := decode(f, b[:n], ReadOptions{Partial: true})
			if r == nil {
				continue // not even the metadata
			}
			if err != nil {
				t.Fatalf("%s cut to %d bytes, partial: %v", f.Name, n, err)
			}
			if len(got) > len(want) || firstDifference(got, want[:len(got)]) != "" {
				t.Fatalf("%s cut to %d bytes: partial records are not a prefix", f.Name, n)
			}
			if r.Damage() == nil {
				t.Fatalf("%s cut to %d bytes: partial reader does not tell", f.Name, n)
			}
		}
	})
}

// A changed byte is noticed, or changes nothing.
func TestDamaged(t *testing.T) {
	want := sample(t, 12, 300)
	readable(func(f *Format) {
		b := encode(t, f, nil, want)
		for i := 0; i < len(b); i += 1 + len(b)/1500 {
			c := bytes.Clone(b)
			c[i] ^= 1 << (i % 8)
			_, got, _, err := decode(f, c, ReadOptions{})
			if err == nil && firstDifference(got, want) != "" && !preambleGone(f, c) {
				t.Errorf("%s: bit %d of byte %d changed, and nothing is said", f.Name, i%8, i)
			}
		}
	})
}

// preambleGone tells that the damage turned a framed text into one that has no
// preamble, which is read as such.
func preambleGone(f *Format, b []byte) bool {
	return (f.Name == "CSV" || f.Name == "listing") && !bytes.HasPrefix(b, []byte(linesBegin))
}

func TestForeign(t *testing.T) {
	inputs := map[string]string{
		"text":  "To be, or not to be\n",
		"zeros": strings.Repeat("\x00", 100),
		"html":  "<html><body>404</body></html>",
		"pcap":  "\xd4\xc3\xb2\xa1\x02\x00\x04\x00",
	}
	readable(func(f *Format) {
		for _, name := range []string{"text", "zeros", "html", "pcap"} {
			_, _, _, err := decode(f, []byte(inputs[name]), ReadOptions{Path: name})
			if !errors.Is(err, ErrForeign) {
				t.Errorf("%s read as %s: %v", name, f.Name, err)
			}
		}
	})
	// Compressed files that are none.
	dir := t.TempDir()
	for _, ext := range []string{".csv.gz", ".rec.zst", ".parquet.zst"} {
		path := filepath.Join(dir, "x"+ext)
		if err := os.WriteFile(path, []byte("not compressed at all"), 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := OpenReader(path)
		if err == nil {
			_, err = readAll(r)
		}
		if !errors.Is(err, ErrForeign) {
			t.Errorf("%s: %v", ext, err)
		}
	}
}

func TestTruncatedCompressed(t *testing.T) {
	dir := t.TempDir()
	want := sample(t, 11, 60000)
	for _, ext := range []string{".csv.gz", ".rec.zst", ".pftrace.zst", ".txt.gz"} {
		path := filepath.Join(dir, "x"+ext)
		w, err := CreateWriter(path, synthMeta(2))
		if err != nil {
			t.Fatal(err)
		}
		for i := range want {
			if err := w.Record(&want[i]); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		b, _ := os.ReadFile(path)
		if err := os.WriteFile(path, b[:len(b)/2], 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := OpenReader(path)
		if err == nil {
			_, err = readAll(r)
			r.Close()
		}
		if !errors.Is(err, ErrTruncated) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", ext, err)
		}
		r, err = OpenReader(path, Partial())
		if err != nil {
			t.Fatalf("%s, partial: %v", ext, err)
		}
		got, err := readAll(r)
		if err != nil || len(got) == 0 || firstDifference(got, want[:len(got)]) != "" || r.Damage() == nil {
			t.Errorf("%s, partial: %d records, error %v, damage %v", ext, len(got), err, r.Damage())
		}
		r.Close()
	}
}

func TestCSVOfOthers(t *testing.T) {
	in := "\r\n\r\nend_ps,card,kind,reason\r\n# a remark\r\n500,1,box,\r\n700,host,leave,\"no buffer, discarded\"\r\n"
	_, got, _, err := decode(&formats[1], []byte(in), ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := []Record{
		{Start: 500, End: 500, Kind: KindBox, Event: NoEvent, Card: 1, Peer: NoCard, Queue: NoQueue},
		{Start: 700, End: 700, Kind: KindLeave, Event: NoEvent, Card: HostCard, Peer: NoCard, Queue: NoQueue, Reason: ReasonNoBufferDiscard},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	for _, bad := range []string{
		"kind,card\n", "kind,card,end_ps,end_ps\n", "kind,card,end_ps,colour\n",
		"kind,card,end_ps\nbox,1\n", "kind,card,end_ps\nbox,1,2,3\n", "kind,card,end_ps\nbox,1,x\n",
		"kind,card,end_ps\nbox,300,1\n", "kind,card,end_ps\ncube,1,1\n", "kind,card,end_ps\n\"box,1,1\n",
		"kind,card,end_ps\nbox,1,9223372036854775808\n", "kind,card,end_ps\n\"box\"x,1,1\n",
	} {
		_, _, _, err := decode(&formats[1], []byte(bad), ReadOptions{Path: "f.csv"})
		var fe *FormatError
		if !errors.As(err, &fe) || fe.Line == 0 {
			t.Errorf("%q: error %v", bad, err)
		}
	}
}

func TestListingByHand(t *testing.T) {
	in := `
# two records, no preamble
  1.5      +0.25   0  box  Rx check header |  packet=7 queue=1 id=0#12 cause=3#9 ready=1.25 cycles=8 stall=1
  2        +0      host leave - | verdict="dropped" reason="TTL expired" peer=0
`
	_, got, _, err := decode(&formats[4], []byte(in), ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := []Record{
		{Start: 1500000, End: 1750000, Ready: 1250000, Kind: KindBox, Event: RxCheckHeader, Card: 0, Peer: NoCard, Queue: 1, Packet: 7, Cycles: 8, Stall: 1, ID: MakeID(0, 12), Cause: MakeID(3, 9)},
		{Start: 2000000, End: 2000000, Kind: KindLeave, Event: NoEvent, Card: HostCard, Peer: 0, Queue: NoQueue, Verdict: VerdictDropped, Reason: ReasonTTLExpired},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	line := string(AppendListing(nil, &want[0]))
	const wantLine = "    1.500000    +0.250000  0     box       Rx check header     | packet=7 queue=1 cycles=8 stall=1 ready=1.250000 id=0#12 cause=3#9"
	if line != wantLine {
		t.Errorf("listing\n%s\nwant\n%s", line, wantLine)
	}
	for _, bad := range []string{
		"1 +2 0 box x", "x +2 0 box - |", "1 2 0 box - |", "1 +2 999 box - |", "1 +2 0 cube - |", "1 +2 0 box No such handler |",
		"1 +2 0 box - | packet", "1 +2 0 box - | packet=", "1 +2 0 box - | packet= 7", "1 +2 0 box - | colour=1", "1 +2 0 box - | reason=\"no",
		"1.1234567 +2 0 box - |", "9999999999999999 +2 0 box - |", "1 +2 0 box - | id=7", "1 +2 0 box - | queue=256",
	} {
		var r Record
		if err := ParseListing(bad, &r); err == nil {
			t.Errorf("%q is read as %+v", bad, r)
		}
	}
}

func TestParseID(t *testing.T) {
	for _, id := range []ID{0, 1, MakeID(3, 9), MakeID(255, 1<<48-1), 1<<64 - 1} {
		got, err := ParseID(id.String())
		if err != nil || got != id {
			t.Errorf("%v: %v, %v", id, got, err)
		}
	}
	for _, bad := range []string{"", "3", "#", "3#", "#3", "65536#1", "1#281474976710656", "a#1"} {
		if id, err := ParseID(bad); err == nil {
			t.Errorf("%q is %v", bad, id)
		}
	}
}
