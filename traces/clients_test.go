package traces

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"spinesim/sim/testenv"

	"github.com/google/pprof/profile"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/google/go-cmp/cmp"

	"spinesim/sim/des"
)

func runClient(t *testing.T, stdin []byte, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Stdin = bytes.NewReader(stdin)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, errs.String())
	}
	return out.String()
}

func countRecords(recs []Record, is func(r *Record) bool) (n int) {
	for i := range recs {
		if is(&recs[i]) {
			n++
		}
	}
	return n
}

func ofKind(k Kind) func(*Record) bool { return func(r *Record) bool { return r.Kind == k } }

// ipPacket makes an IPv4 packet of the record's length with a right header
// check sum.
func ipPacket(r *Record) []byte {
	n := max(int(r.Bytes), 20)
	if r.Kind == KindTransfer {
		n = 1500
	}
	b := make([]byte, n)
	b[0], b[8], b[9] = 0x45, 64, 17
	if r.Kind == KindSend {
		b[8]--
	}
	binary.BigEndian.PutUint16(b[2:], uint16(n))
	binary.BigEndian.PutUint16(b[4:], uint16(r.Packet))
	copy(b[12:], []byte{10, 0, 0, 1, 10, 0, 0, 2})
	sum := uint32(0)
	for i := 0; i < 20; i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	for sum>>16 != 0 {
		sum = sum&0xffff + sum>>16
	}
	binary.BigEndian.PutUint16(b[10:], ^uint16(sum))
	if n >= 28 {
		binary.BigEndian.PutUint16(b[24:], uint16(n-20)) // UDP length, no check sum
	}
	return b
}

func TestTshark(t *testing.T) {
	tshark := testenv.Client(t, "tshark")
	recs := sample(t, 31, 20000)
	meta := synthMeta(31)
	for _, known := range []bool{false, true} {
		var contents Contents
		if known {
			contents = ipPacket
		}
		path := filepath.Join(t.TempDir(), "x.pcapng")
		w, err := CreateWriter(path, meta, WithContents(contents))
		if err != nil {
			t.Fatal(err)
		}
		type line struct {
			iface, time, comment string
			length, captured     int
		}
		var want []line
		for i := range recs {
			r := &recs[i]
			if err := w.Record(r); err != nil {
				t.Fatal(err)
			}
			l := line{length: int(r.Bytes), captured: 0, time: fmt.Sprintf("%d.%09d", nanos(r.End)/1e9, nanos(r.End)%1e9)}
			card := meta.CardName(r.Card)
			switch {
			case r.Kind == KindEnter:
				l.iface = card + " wire in"
			case r.Kind == KindSend:
				l.iface = card + " wire out"
			case r.Kind == KindTransfer:
				l.iface, l.comment = "bus "+card+" to "+meta.CardName(r.Peer), r.Event.String()+" of packet "+strconv.FormatUint(r.Packet, 10)
			case r.Kind == KindLeave && r.Verdict == VerdictDropped:
				l.iface, l.comment = card+" dropped", "dropped: "+r.Reason.String()
			default:
				continue
			}
			if known && r.Event != TransferAck {
				l.captured = l.length
			}
			want = append(want, l)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		out := runClient(t, nil, tshark, "-n", "-r", path, "-T", "fields", "-E", "separator=|", "-o", "ip.check_checksum:TRUE",
			"-e", "frame.interface_name", "-e", "frame.time_epoch", "-e", "frame.comment", "-e", "frame.len", "-e", "frame.cap_len",
			"-e", "ip.checksum.status", "-e", "ip.ttl", "-e", "_ws.malformed")
		lines := strings.Split(strings.TrimSpace(out), "\n")
		if len(lines) != len(want) {
			t.Fatalf("tshark sees %d packets, the record has %d", len(lines), len(want))
		}
		for i, s := range lines {
			f := strings.Split(s, "|")
			l := want[i]
			got := []string{f[0], f[1], f[2], f[3], f[4]}
			exp := []string{l.iface, l.time, l.comment, strconv.Itoa(l.length), strconv.Itoa(l.captured)}
			if !slices.Equal(got, exp) {
				t.Fatalf("packet %d: tshark sees %q, want %q", i, got, exp)
			}
			wire := strings.Contains(l.iface, "wire") || strings.Contains(l.iface, "dropped")
			ttl := map[bool]string{true: "63", false: "64"}[strings.Contains(l.iface, "out") && wire]
			if known && wire && (f[5] != "1" || f[6] != ttl) {
				t.Fatalf("packet %d on %s: check sum status %s, TTL %s", i, l.iface, f[5], f[6])
			}
			if f[7] != "" {
				t.Errorf("packet %d on %s: tshark calls it malformed", i, l.iface)
			}
		}
	}
}

func TestPcapngEmpty(t *testing.T) {
	tshark := testenv.Client(t, "tshark")
	path := filepath.Join(t.TempDir(), "x.pcapng")
	w, err := CreateWriter(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if out := runClient(t, nil, tshark, "-n", "-r", path); out != "" {
		t.Errorf("tshark sees %q", out)
	}
}

func TestVcd2fst(t *testing.T) {
	vcd2fst := testenv.Client(t, "vcd2fst")
	fst2vcd := testenv.Client(t, "fst2vcd")
	dir := t.TempDir()
	recs := sample(t, 32, 5000)
	vcd, fst := filepath.Join(dir, "x.vcd"), filepath.Join(dir, "x.fst")
	w, err := CreateWriter(vcd, synthMeta(32))
	if err != nil {
		t.Fatal(err)
	}
	for i := range recs {
		if err := w.Record(&recs[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	runClient(t, nil, vcd2fst, vcd, fst)
	back := runClient(t, nil, fst2vcd, fst)
	text, err := os.ReadFile(vcd)
	if err != nil {
		t.Fatal(err)
	}
	// What comes back through GTKWave's own format is the same waves.
	ours, theirs := readVCD(t, string(text)), readVCD(t, back)
	if len(ours.names) < 15 || !slices.Equal(ours.names, theirs.names) {
		t.Fatalf("signals %q, back %q", ours.names, theirs.names)
	}
	for _, name := range ours.names {
		if !slices.Equal(ours.changes[name], theirs.changes[name]) {
			t.Errorf("%s: %d changes, back %d; %.200q … %.200q", name, len(ours.changes[name]), len(theirs.changes[name]), ours.changes[name], theirs.changes[name])
		}
	}
}

type vcdText struct {
	names   []string
	changes map[string][]string // "time value"
}

// readVCD reads the signals' changes, leaving out repeated values.
func readVCD(t *testing.T, text string) vcdText {
	t.Helper()
	v := vcdText{changes: map[string][]string{}}
	ids := map[string]string{}
	last := map[string]string{}
	var scope []string
	now, defs := "0", true
	varLine := regexp.MustCompile(`^\$var (\w+) (\d+) (\S+) (\S+)( \[.*\])? \$end$`)
	for _, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		f := strings.Fields(line)
		switch {
		case len(f) == 0:
		case defs && f[0] == "$scope":
			scope = append(scope, f[2])
		case defs && f[0] == "$upscope":
			scope = scope[:len(scope)-1]
		case defs && f[0] == "$var":
			m := varLine.FindStringSubmatch(line)
			if m == nil {
				t.Fatalf("line %q", line)
			}
			name := strings.Join(scope, ".") + "." + m[4]
			ids[m[3]] = name
			v.names = append(v.names, name)
		case f[0] == "$enddefinitions":
			defs = false
		case defs || f[0][0] == '$':
		case f[0][0] == '#':
			now = f[0][1:]
		default:
			value, id := f[0], ""
			if len(f) == 2 {
				id = f[1]
			} else {
				value, id = f[0][:1], f[0][1:]
			}
			if value[0] == 'b' {
				if value = "b" + strings.TrimLeft(value[1:], "0"); value == "b" {
					value = "b0"
				}
				if strings.Trim(value[1:], "x") == "" {
					value = "bx"
				}
			}
			name, ok := ids[id]
			if !ok {
				t.Fatalf("signal %q is not declared", id)
			}
			if last[name] != value {
				last[name] = value
				v.changes[name] = append(v.changes[name], now+" "+value)
			}
		}
	}
	return v
}

// The waves are those of the record, by the slow way: at the middle of each
// span its signal has its value.
func TestVCDWaves(t *testing.T) {
	recs := sample(t, 33, 2000)
	v := readVCD(t, string(encode(t, &formats[6], synthMeta(33), recs)))
	at := func(name string, time int64) string {
		value := "(none)"
		for _, c := range v.changes[name] {
			when, is, _ := strings.Cut(c, " ")
			if n, _ := strconv.ParseInt(when, 10, 64); n > time {
				break
			}
			value = is
		}
		return value
	}
	check := func(i int, name string, time int64, want string) {
		if got := at(name, time); got != want {
			t.Fatalf("record %d (%s): %s is %s, want %s", i, AppendListing(nil, &recs[i]), name, got, want)
		}
	}
	cards := []string{"in", "out_a", "out_b", "out_c"}
	for i, r := range recs {
		mid := int64(r.Start+r.End) / 2
		switch r.Kind {
		case KindBox:
			check(i, cards[r.Card]+".processor", mid, "s"+vcdName(r.Event.String()))
			check(i, cards[r.Card]+".processor", int64(r.Start), "s"+vcdName(r.Event.String()))
		case KindPolls:
			check(i, cards[r.Card]+".processor", mid, "spolls")
		case KindTransfer:
			check(i, "bus.owner", mid, "s"+cards[r.Card])
			check(i, cards[r.Card]+".dma_busy", mid, "1")
			check(i, cards[r.Card]+".dma_busy", int64(r.Ready), "1")
		case KindLevel:
			last := r.Count // of several at one time, the last counts
			for _, o := range recs[i:] {
				if o.End != r.End {
					break
				}
				if o.Kind == KindLevel && o.Card == r.Card && o.Event == r.Event && o.Peer == r.Peer {
					last = o.Count
				}
			}
			check(i, cards[r.Card]+"."+vcdName(trackOf(&r).name(synthMeta(33))), int64(r.End), "b"+strconv.FormatUint(uint64(last), 2))
		}
	}
}

// Marks are counted, each by itself, on each card.
func TestVCDMarks(t *testing.T) {
	mark := func(card uint8, at des.Time, n uint32) Record {
		return Record{Kind: KindMark, Card: card, Start: at, End: at, Ready: at, Count: n, Event: NoEvent, Peer: NoCard, Queue: NoQueue}
	}
	recs := []Record{mark(0, 5, 0), mark(1, 7, 0), mark(0, 9, 3), mark(0, 9, 0), mark(0, 9, 0), mark(0, 12, 0)}
	v := readVCD(t, string(encode(t, &formats[6], synthMeta(1), recs)))
	want := map[string][]string{
		"in.log_0":    {"5 b0", "5 b1", "9 b11", "12 b100"},
		"in.log_3":    {"5 b0", "9 b1"},
		"out_a.log_0": {"5 b0", "7 b1"},
	}
	if d := cmp.Diff(want, v.changes); d != "" {
		t.Error(d)
	}
}

// Sorting through the temporary file gives the same bytes.
func TestVCDSpool(t *testing.T) {
	recs := sample(t, 33, 20000)
	want := encode(t, &formats[6], nil, recs)
	for _, limit := range []int{100, 1023} {
		var b bytes.Buffer
		w, err := NewVCDWriter(&b, nil)
		if err != nil {
			t.Fatal(err)
		}
		w.spool.limit = limit
		for i := range recs {
			if err := w.Record(&recs[i]); err != nil {
				t.Fatal(err)
			}
		}
		name := w.spool.temp.Name()
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(b.Bytes(), want) {
			t.Errorf("runs of %d: other bytes", limit)
		}
		if _, err := os.Stat(name); !os.IsNotExist(err) {
			t.Errorf("the temporary file is left: %v", err)
		}
	}
}

func TestGoToolPprof(t *testing.T) {
	goTool := testenv.Client(t, "go")
	recs := sample(t, 34, 20000)
	meta := synthMeta(34)
	path := filepath.Join(t.TempDir(), "x.pprof")
	if err := os.WriteFile(path, encode(t, &formats[8], meta, recs), 0o600); err != nil {
		t.Fatal(err)
	}
	cycles, stall, count := map[string]uint64{}, uint64(0), map[string]uint64{}
	total := uint64(0)
	for _, r := range recs {
		name, n := r.Event.String(), uint64(1)
		switch r.Kind {
		case KindPolls:
			name, n = "polls", uint64(r.Count)
		case KindBox:
		default:
			continue
		}
		cycles[name] += r.Cycles + uint64(r.Stall)
		total += r.Cycles + uint64(r.Stall)
		count[name] += n
		stall += uint64(r.Stall)
	}
	env := []string{"-nodecount=1000", "-nodefraction=0", "-edgefraction=0", "-unit=cycles"}
	cumulated := func(sampleIndex string) map[string]string {
		out := runClient(t, nil, goTool, append([]string{"tool", "pprof", "-top", "-sample_index=" + sampleIndex}, append(env, path)...)...)
		cum := map[string]string{}
		row := regexp.MustCompile(`^\s*\S+\s+\S+%\s+\S+%\s+(\S+)\s+\S+%\s+(.*?)\s*$|^\s*0\s+0%\s+\S+%\s+(\S+)\s+\S+%\s+(.*?)\s*$`)
		for _, l := range strings.Split(out, "\n") {
			if m := row.FindStringSubmatch(l); m != nil {
				cum[m[2]+m[4]] = m[1] + m[3]
			}
		}
		return cum
	}
	top := cumulated("cycles")
	for name, want := range cycles {
		if got := strings.TrimSuffix(top[name], "cycles"); got != strconv.FormatUint(want, 10) {
			t.Errorf("%s: go tool pprof says %q cycles, the record %d", name, top[name], want)
		}
	}
	if got := strings.TrimSuffix(top["stall"], "cycles"); got != strconv.FormatUint(stall, 10) {
		t.Errorf("stall: go tool pprof says %q, the record %d", top["stall"], stall)
	}
	runs := cumulated("count")
	for name, want := range count {
		if got := strings.TrimSuffix(runs[name], "cycles"); got != strconv.FormatUint(want, 10) {
			t.Errorf("%s: go tool pprof says %q runs, the record %d", name, got, want)
		}
	}
	raw := runClient(t, nil, goTool, "tool", "pprof", "-raw", path)
	for _, want := range []string{"cycles/cycles[dflt] count/count", "scenario hash: 00c0ffee"} {
		if !strings.Contains(raw, want) {
			t.Errorf("-raw lacks %q:\n%.500s", want, raw)
		}
	}
	p, err := profile.Parse(bytes.NewReader(encode(t, &formats[8], meta, recs)))
	if err != nil {
		t.Fatal(err)
	}
	sum := int64(0)
	stacks := map[string]bool{}
	for _, s := range p.Sample {
		sum += s.Value[0]
		var names []string
		for _, l := range slices.Backward(s.Location) {
			names = append(names, l.Line[0].Function.Name)
		}
		stacks[strings.Join(names, "/")] = true
	}
	if sum != int64(total) {
		t.Errorf("%d cycles in all, want %d", sum, total)
	}
	for _, want := range []string{"in/Q1 wire/Rx check header/receive", "in/Q6 dma/DMA start body/dma/stall", "out a/polls/hit Q6 dma"} {
		if !stacks[want] {
			t.Errorf("stack %q is missing", want)
		}
	}
}

// perfettoProto is the part of Perfetto's public protocol that is written,
// from its documentation.
const perfettoProto = `syntax = "proto2";
message Trace { repeated TracePacket packet = 1; }
message TracePacket {
  optional uint64 timestamp = 8;
  optional uint32 trusted_packet_sequence_id = 10;
  optional TrackEvent track_event = 11;
  optional InternedData interned_data = 12;
  optional uint32 sequence_flags = 13;
  optional TrackDescriptor track_descriptor = 60;
}
message TrackDescriptor {
  optional uint64 uuid = 1; optional string name = 2; optional ProcessDescriptor process = 3;
  optional uint64 parent_uuid = 5; optional CounterDescriptor counter = 8;
  enum ChildTracksOrdering { UNKNOWN = 0; LEXICOGRAPHIC = 1; CHRONOLOGICAL = 2; EXPLICIT = 3; }
  optional ChildTracksOrdering child_ordering = 11; optional int32 sibling_order_rank = 12;
}
message ProcessDescriptor { optional int32 pid = 1; optional string process_name = 6; }
message CounterDescriptor { optional string unit_name = 6; }
message TrackEvent {
  repeated uint64 category_iids = 3; repeated DebugAnnotation debug_annotations = 4;
  enum Type { UNSPECIFIED = 0; TYPE_SLICE_BEGIN = 1; TYPE_SLICE_END = 2; TYPE_INSTANT = 3; TYPE_COUNTER = 4; }
  optional Type type = 9; optional uint64 name_iid = 10; optional uint64 track_uuid = 11;
  optional int64 counter_value = 30; repeated fixed64 flow_ids = 47; repeated fixed64 terminating_flow_ids = 48;
}
message DebugAnnotation {
  optional uint64 name_iid = 1; optional uint64 uint_value = 3; optional int64 int_value = 4;
  optional string string_value = 6; optional uint64 string_value_iid = 17;
}
message Named { optional uint64 iid = 1; optional string name = 2; }
message Interned { optional uint64 iid = 1; optional bytes str = 2; }
message InternedData {
  repeated Named event_categories = 1; repeated Named event_names = 2;
  repeated Named debug_annotation_names = 3; repeated Interned debug_annotation_string_values = 29;
}
`

func TestProtocPerfetto(t *testing.T) {
	protoc := testenv.Client(t, "protoc")
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "p.proto"), []byte(perfettoProto), 0o600); err != nil {
		t.Fatal(err)
	}
	recs := sampleExpanded(t, 35, 4000)
	out := runClient(t, encode(t, &formats[3], synthMeta(35), recs), protoc, "--decode=Trace", "-I", dir, "p.proto")
	if unknown := regexp.MustCompile(`(?m)^\s*\d+:.*$|^\s*\d+ \{.*$`).FindString(out); unknown != "" {
		t.Errorf("protoc sees an unknown field: %s", unknown)
	}
	slices_ := countRecords(recs, isSlice)
	transfers := countRecords(recs, ofKind(KindTransfer))
	levels := countRecords(recs, ofKind(KindLevel))
	instants := len(recs) - slices_ - levels
	flows := countRecords(recs, func(r *Record) bool { on, ends := onFlow(r); return on && !ends })
	ending := countRecords(recs, func(r *Record) bool { on, ends := onFlow(r); return on && ends })
	if flows == 0 || ending == 0 {
		t.Fatal("no flows to look at")
	}
	for what, want := range map[string]int{
		"type: TYPE_SLICE_BEGIN": slices_ + transfers, // the engines show transfers too
		"type: TYPE_SLICE_END":   slices_ + transfers,
		"type: TYPE_COUNTER":     levels,
		"type: TYPE_INSTANT":     instants + 2, // begin and end of the file
		" flow_ids:":             flows,
		"terminating_flow_ids:":  ending,
		"counter {":              countTracks(recs, true),
		"process {":              synthCards + 1,
	} {
		if got := strings.Count(out, what); got != want {
			t.Errorf("%q is there %d times, want %d", what, got, want)
		}
	}
	// One track a handler type, in the figure's order from top to bottom.
	type track struct {
		name string
		rank int
	}
	handlers := map[string][]track{} // by parent
	desc := regexp.MustCompile(`(?s)track_descriptor \{\s+uuid: (\d+)\s+name: "([^"]*)"\s+parent_uuid: (\d+)\s+sibling_order_rank: (\d+)`)
	for _, m := range desc.FindAllStringSubmatch(out, -1) {
		if e, ok := EventByName(m[2]); ok && int(e) < NumFigureEvents {
			rank, _ := strconv.Atoi(m[4])
			handlers[m[3]] = append(handlers[m[3]], track{m[2], rank})
		}
	}
	if len(handlers) != synthCards {
		t.Fatalf("handlers of %d cards", len(handlers))
	}
	most := 0
	for _, tracks := range handlers {
		slices.SortFunc(tracks, func(a, b track) int { return a.rank - b.rank })
		last := NumFigureEvents
		for _, tr := range tracks {
			e, _ := EventByName(tr.name)
			if int(e) >= last {
				t.Errorf("%s stands below %s", tr.name, Event(last))
			}
			last = int(e)
		}
		most = max(most, len(tracks))
	}
	if want := countTracks(recs, false); most != want {
		t.Errorf("the busiest card has %d handler tracks, want %d", most, want)
	}
}

// countTracks counts the counter tracks, or the tracks of handlers that the
// figure shows of card 0.
func countTracks(recs []Record, counters bool) int {
	seen := map[trackKey]bool{}
	for i := range recs {
		k := trackOf(&recs[i])
		if counters && k.class == trackLevel || !counters && k.class == trackHandler && k.card == 0 && int(k.sub) < NumFigureEvents {
			seen[k] = true
		}
	}
	return len(seen)
}

// Slices on one Perfetto track never overlap, whatever overlaps in the record.
func TestPerfettoStrips(t *testing.T) {
	recs := sample(t, 36, 20000)
	r, err := NewPerfettoReader(bytes.NewReader(encode(t, &formats[3], nil, recs)), ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	type state struct{ begin, end uint64 }
	tracks := map[uint64]*state{}
	spans := 0
	for {
		packet, err := r.packet()
		if err != nil {
			t.Fatal(err)
		}
		if packet == nil {
			break
		}
		var ts, typ, uuid uint64
		must := func(err error) {
			if err != nil {
				t.Fatal(err)
			}
		}
		must(eachField(packet, func(n protowire.Number, v uint64, b []byte) error {
			switch n {
			case pfTimestamp:
				ts = v
			case pfTrackEvent:
				return eachField(b, func(n protowire.Number, v uint64, _ []byte) error {
					switch n {
					case pfType:
						typ = v
					case pfTrackUUID:
						uuid = v
					}
					return nil
				})
			}
			return nil
		}))
		s := tracks[uuid]
		if s == nil {
			s = new(state)
			tracks[uuid] = s
		}
		switch typ {
		case pfSliceBegin:
			if ts < s.end {
				t.Fatalf("a slice begins at %d ns before the last on its track ends at %d", ts, s.end)
			}
			s.begin = ts
		case pfSliceEnd:
			if ts < s.begin {
				t.Fatalf("a slice ends at %d ns before it begins at %d", ts, s.begin)
			}
			s.end = ts
			spans++
		}
	}
	if want := countRecords(recs, isSlice) + countRecords(recs, ofKind(KindTransfer)); spans != want {
		t.Errorf("%d slices, want %d", spans, want)
	}
}

func TestChrome(t *testing.T) {
	recs := sampleExpanded(t, 37, 5000)
	meta := synthMeta(37)
	var trace struct {
		OtherData   Meta
		TraceEvents []struct {
			Ph, Name, Cat string
			Pid, Tid      int
			ID            uint64
			Ts, Dur       json.Number
			Args          map[string]any
		}
	}
	d := json.NewDecoder(bytes.NewReader(encode(t, &formats[5], meta, recs)))
	d.UseNumber()
	if err := d.Decode(&trace); err != nil {
		t.Fatal(err)
	}
	if trace.OtherData.RunID != meta.RunID {
		t.Errorf("metadata %+v", trace.OtherData)
	}
	counts := map[string]int{}
	var spans []string
	open := map[uint64]bool{}
	type thread struct{ pid, tid int }
	ends := map[thread]int64{}
	ps := func(n json.Number) int64 {
		v, err := parseMicros([]byte(n))
		if err != nil {
			t.Fatal(err)
		}
		return int64(v)
	}
	for _, e := range trace.TraceEvents {
		counts[e.Ph]++
		switch e.Ph {
		case "X":
			th := thread{e.Pid, e.Tid}
			begin := ps(e.Ts)
			if begin < ends[th] {
				t.Fatalf("%s on thread %v begins at %d ps, before the last ends at %d", e.Name, th, begin, ends[th])
			}
			ends[th] = begin + ps(e.Dur)
			if e.Cat != "engine" {
				spans = append(spans, string(e.Ts)+"+"+string(e.Dur))
			}
		case "s":
			if open[e.ID] {
				t.Errorf("the arrow of packet %d starts twice", e.ID)
			}
			open[e.ID] = true
		case "t", "f":
			if !open[e.ID] {
				t.Errorf("the arrow of packet %d goes on without a start", e.ID)
			}
			open[e.ID] = e.Ph == "t"
		}
	}
	var want []string
	for i := range recs {
		if r := &recs[i]; isSlice(r) {
			want = append(want, string(appendMicros(nil, r.Start))+"+"+string(appendMicros(nil, r.End-r.Start)))
		}
	}
	if !slices.Equal(spans, want) {
		t.Errorf("%d spans, want %d, or other times", len(spans), len(want))
	}
	levels := countRecords(recs, ofKind(KindLevel))
	if counts["C"] != levels || counts["i"] != len(recs)-levels-len(want) {
		t.Errorf("counts %v", counts)
	}
	on := countRecords(recs, func(r *Record) bool { on, _ := onFlow(r); return on })
	if got := counts["s"] + counts["t"] + counts["f"]; got != on || counts["f"] == 0 {
		t.Errorf("%d steps of arrows, want %d; %v", got, on, counts)
	}
}
