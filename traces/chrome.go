package traces

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"

	"spinesim/sim/des"
)

// ChromeWriter writes the JSON array format of Chrome's trace viewer, which
// Perfetto and speedscope open too: tracks as in PerfettoWriter (a process a
// card, one for the bus), with arrows along each packet's way. Times are in µs
// with six decimals, so exact to the picosecond. It is a view: it cannot be
// read back.
type ChromeWriter struct {
	w      io.Writer
	meta   *Meta
	b      []byte
	tracks map[trackKey]*chromeTrack
	cards  map[uint64]bool
	tids   map[uint64]uint64 // last thread number of each process
	flows  map[uint64]bool   // packets whose arrow has begun
	first  bool
}

type chromeTrack struct {
	name   string
	strips strips
	tids   []uint64
}

const (
	chromeBusPid  = 1
	chromeCardPid = 10 // card 0
)

// NewChromeWriter begins a trace on w.
func NewChromeWriter(w io.Writer, meta *Meta) (*ChromeWriter, error) {
	m, err := meta.encode()
	if err != nil {
		return nil, err
	}
	c := &ChromeWriter{
		w: w, meta: meta.clone(), b: make([]byte, 0, lineBuffer+4096), first: true,
		tracks: map[trackKey]*chromeTrack{}, cards: map[uint64]bool{}, tids: map[uint64]uint64{}, flows: map[uint64]bool{},
	}
	c.b = append(c.b, `{"displayTimeUnit":"ns","otherData":`...)
	c.b = append(c.b, m...)
	c.b = append(c.b, ",\n\"traceEvents\":[\n"...)
	return c, nil
}

func appendJSONString(b []byte, s string) []byte {
	simple := true
	for i := range len(s) {
		c := s[i]
		simple = simple && c >= ' ' && c < 0x7f && c != '"' && c != '\\'
	}
	if simple {
		return append(append(append(b, '"'), s...), '"')
	}
	q, _ := json.Marshal(s) // strings always can be
	return append(b, q...)
}

// open begins an event and writes what all have.
func (c *ChromeWriter) open(phase string, pid, tid uint64, name string) {
	if !c.first {
		c.b = append(c.b, ",\n"...)
	}
	c.first = false
	c.b = append(append(c.b, `{"ph":"`...), phase...)
	c.b = strconv.AppendUint(append(c.b, `","pid":`...), pid, 10)
	c.b = strconv.AppendUint(append(c.b, `,"tid":`...), tid, 10)
	c.b = appendJSONString(append(c.b, `,"name":`...), name)
}

func (c *ChromeWriter) time(name string, t des.Time) {
	c.b = append(append(append(c.b, ',', '"'), name...), '"', ':')
	c.b = appendMicros(c.b, t)
}

// describe writes a metadata event.
func (c *ChromeWriter) describe(what string, pid, tid uint64, arg, value string) {
	c.open("M", pid, tid, what)
	c.b = append(append(append(c.b, `,"args":{"`...), arg...), `":`...)
	c.b = append(append(c.b, value...), "}}"...)
}

func (c *ChromeWriter) process(k trackKey) uint64 {
	pid := chromeCardPid + uint64(k.card)
	if k.class == trackBus {
		pid = chromeBusPid
	}
	if !c.cards[pid] {
		c.cards[pid] = true
		name := "PCI bus"
		if k.class != trackBus {
			name = c.meta.CardName(k.card)
		}
		c.describe("process_name", pid, 0, "name", string(appendJSONString(nil, name)))
		c.describe("process_sort_index", pid, 0, "sort_index", strconv.FormatUint(pid, 10))
	}
	return pid
}

func (c *ChromeWriter) track(k trackKey) *chromeTrack {
	t := c.tracks[k]
	if t == nil {
		t = &chromeTrack{name: k.name(c.meta)}
		c.tracks[k] = t
	}
	return t
}

// thread finds or describes the thread of a track, for a span from begin to
// end that of a free strip.
func (c *ChromeWriter) thread(k trackKey, begin, end des.Time) (pid, tid uint64) {
	pid = c.process(k)
	t := c.track(k)
	i, isNew := t.strips.place(int64(begin), int64(end))
	if isNew {
		c.tids[pid]++
		t.tids = append(t.tids, c.tids[pid])
		name := t.name
		if i > 0 {
			name = fmt.Sprintf("%s (%d)", name, i+1)
		}
		c.describe("thread_name", pid, t.tids[i], "name", string(appendJSONString(nil, name)))
		c.describe("thread_sort_index", pid, t.tids[i], "sort_index", strconv.Itoa(int(k.rank())))
	}
	return pid, t.tids[i]
}

// Record writes r.
func (c *ChromeWriter) Record(r *Record) error {
	if r.End < r.Start {
		return fmt.Errorf("record from %d to %d ps: a span cannot be negative", int64(r.Start), int64(r.End))
	}
	k := trackOf(r)
	switch {
	case r.Kind == KindLevel:
		pid := c.process(k)
		c.open("C", pid, 0, c.track(k).name)
		c.time("ts", r.End)
		c.b = strconv.AppendUint(append(c.b, `,"args":{"count":`...), uint64(r.Count), 10)
		c.b = append(c.b, "}}"...)
	case !isSlice(r):
		pid, tid := c.thread(k, r.End, r.End)
		c.open("i", pid, tid, sliceName(r))
		c.time("ts", r.End)
		c.b = append(c.b, `,"s":"t"`...)
		c.args(r)
		c.flow(r, pid, tid, r.End)
	default:
		pid, tid := c.thread(k, r.Start, r.End)
		c.open("X", pid, tid, sliceName(r))
		c.time("ts", r.Start)
		c.time("dur", r.End-r.Start)
		c.args(r)
		c.flow(r, pid, tid, r.Start)
		if r.Kind == KindTransfer {
			c.engine(r)
		}
	}
	if len(c.b) < lineBuffer {
		return nil
	}
	return c.flush()
}

// engine draws a transfer once more, as the time it took of its card's engine.
func (c *ChromeWriter) engine(r *Record) {
	from := r.Start
	if r.Ready > 0 && r.Ready < from {
		from = r.Ready
	}
	pid, tid := c.thread(trackKey{class: trackDMA, card: r.Card}, from, r.End)
	c.open("X", pid, tid, sliceName(r))
	c.time("ts", from)
	c.time("dur", r.End-from)
	c.b = append(c.b, `,"cat":"engine"}`...)
}

// key begins an argument.
func (c *ChromeWriter) key(name string) []byte {
	if c.b[len(c.b)-1] != '{' {
		c.b = append(c.b, ',')
	}
	return append(append(append(c.b, '"'), name...), '"', ':')
}

func (c *ChromeWriter) number(name string, v uint64) {
	if v != 0 {
		c.b = strconv.AppendUint(c.key(name), v, 10)
	}
}

// args writes the category and what else there is of a record.
func (c *ChromeWriter) args(r *Record) {
	c.b = append(append(append(c.b, `,"cat":"`...), r.Kind.String()...), `","args":{`...)
	c.number("packet", r.Packet)
	if r.Queue != NoQueue {
		c.b = strconv.AppendUint(c.key("queue"), uint64(r.Queue), 10)
	}
	if r.Peer != NoCard {
		c.b = strconv.AppendUint(c.key("peer"), uint64(r.Peer), 10)
	}
	if r.Reason != ReasonNone {
		c.b = appendJSONString(c.key("reason"), r.Reason.String())
	}
	c.number("bytes", uint64(r.Bytes))
	c.number("count", uint64(r.Count))
	c.number("cycles", r.Cycles)
	c.number("stall", uint64(r.Stall))
	if r.ID != 0 {
		c.b = append(appendID(append(c.key("id"), '"'), r.ID), '"')
	}
	if r.Cause != 0 {
		c.b = append(appendID(append(c.key("cause"), '"'), r.Cause), '"')
	}
	c.b = append(c.b, "}}"...)
}

// flow writes the arrow's step: its start at the packet's first record, its
// end at the last, a step in between.
func (c *ChromeWriter) flow(r *Record, pid, tid uint64, at des.Time) {
	on, ends := onFlow(r)
	if !on {
		return
	}
	phase := "t"
	switch {
	case !c.flows[r.Packet] && ends:
		return
	case !c.flows[r.Packet]:
		phase = "s"
		c.flows[r.Packet] = true
		c.forgetFlows(r.Packet)
	case ends:
		phase = "f"
		delete(c.flows, r.Packet)
	}
	c.open(phase, pid, tid, "packet")
	c.b = append(c.b, `,"cat":"packet","bp":"e"`...)
	c.b = strconv.AppendUint(append(c.b, `,"id":`...), r.Packet, 10)
	c.time("ts", at)
	c.b = append(c.b, '}')
}

// maxFlows bounds the packets remembered: those inside a router at a time are
// a few dozen, but in a cut record the ends of their ways may be missing.
const maxFlows = 1 << 16

func (c *ChromeWriter) forgetFlows(newest uint64) {
	if len(c.flows) < maxFlows {
		return
	}
	for packet := range c.flows {
		if packet+maxFlows/2 < newest {
			delete(c.flows, packet)
		}
	}
	if len(c.flows) >= maxFlows {
		clear(c.flows) // numbers without order
	}
}

func (c *ChromeWriter) flush() error {
	_, err := c.w.Write(c.b)
	c.b = c.b[:0]
	return err
}

// Close ends the JSON text; it does not close w.
func (c *ChromeWriter) Close() error {
	c.b = append(c.b, "\n]}\n"...)
	return c.flush()
}
