package traces

import (
	"fmt"
	"io"

	"google.golang.org/protobuf/encoding/protowire"
)

// Field numbers of Perfetto's public protocol (trace_packet.proto and the
// files it imports).
const (
	pfTracePacket = 1 // Trace.packet

	pfTimestamp       = 8 // TracePacket
	pfSequenceID      = 10
	pfTrackEvent      = 11
	pfInternedData    = 12
	pfSequenceFlags   = 13
	pfTrackDescriptor = 60

	pfUUID             = 1 // TrackDescriptor
	pfTrackName        = 2
	pfProcess          = 3
	pfParentUUID       = 5
	pfCounter          = 8
	pfChildOrdering    = 11
	pfSiblingOrderRank = 12

	pfPid         = 1 // ProcessDescriptor
	pfProcessName = 6

	pfCounterUnitName = 6 // CounterDescriptor

	pfCategoryIIDs  = 3 // TrackEvent
	pfAnnotations   = 4
	pfType          = 9
	pfNameIID       = 10
	pfTrackUUID     = 11
	pfCounterValue  = 30
	pfFlowIDs       = 47
	pfTerminatingID = 48

	pfInternedCategories  = 1 // InternedData
	pfInternedNames       = 2
	pfInternedAnnotations = 3
	pfInternedStrings     = 29

	pfIID     = 1 // EventCategory, EventName, DebugAnnotationName, InternedString
	pfIIDName = 2

	pfAnnotationNameIID   = 1 // DebugAnnotation
	pfAnnotationUint      = 3
	pfAnnotationInt       = 4
	pfAnnotationString    = 6
	pfAnnotationStringIID = 17

	pfSliceBegin = 1 // TrackEvent.Type
	pfSliceEnd   = 2
	pfInstant    = 3
	pfCounterTyp = 4

	pfOrderExplicit = 3 // TrackDescriptor.ChildTracksOrdering

	pfStateCleared = 1 // sequence_flags
	pfNeedsState   = 2

	// pfSequence numbers the one packet sequence of a file (chosen).
	pfSequence = 1
)

// annotation is a record's field as a debug annotation; its number is the
// interned name's. The order is that of annotationNames.
type annotation uint8

const (
	annKind annotation = 1 + iota
	annEvent
	annCard
	annPeer
	annQueue
	annPacket
	annStart
	annEnd
	annReady
	annID
	annCause
	annBytes
	annCount
	annCycles
	annStall
	annReason
	annVerdict
	annMeta
	annRecords
	annCheckSum
	numAnnotations = int(iota) + 1
)

var annotationNames = [numAnnotations]string{
	"", "kind", "event", "card", "peer", "queue", "packet", "start_ps", "end_ps", "ready_ps", "id", "cause",
	"bytes", "count", "cycles", "stall_cycles", "reason", "verdict",
	"spinesim_meta", "spinesim_records", "spinesim_check_sum",
}

// categories of slices, numbered from 1. Records stand in their kind's; the
// others are drawn again from a record that stands elsewhere.
const (
	categoryEngine = uint64(NumKinds) + 1 // a transfer, as the engine's time
	categoryFile   = uint64(NumKinds) + 2 // begin and end of the file
)

// PerfettoWriter writes a trace for Perfetto's viewer and trace processor: a
// process a card, with a track for each type of handler in the published
// figure's order, its engines, its waits by reason (spans that overlap are put
// side by side) and its levels as counters; a process for the bus. Arrows join
// the steps of each packet. Begin and end are rounded to nanoseconds once, and
// stand exactly, like all else of a record, in the debug annotations, from
// which PerfettoReader restores it.
//
// Records are written as they come, which is by their end; the viewer sorts
// them by time. Times before 0 cannot be represented and are refused.
type PerfettoWriter struct {
	w      io.Writer
	meta   *Meta
	b      []byte // what is to be written
	msg    []byte // the packet's contents
	event  []byte
	note   []byte
	tracks map[trackKey]*perfettoTrack
	cards  map[uint64]bool // groups described, by UUID
	names  map[string]uint64
	head   []byte // metadata, until it is written
	last   int64  // latest end, in ns
	tally
}

type perfettoTrack struct {
	uuid   uint64
	name   string
	parent uint64
	strips strips
	uuids  []uint64 // of strips
}

// NewPerfettoWriter begins a Perfetto trace on w.
func NewPerfettoWriter(w io.Writer, meta *Meta) (*PerfettoWriter, error) {
	m, err := meta.encode()
	if err != nil {
		return nil, err
	}
	p := &PerfettoWriter{
		w: w, meta: meta.clone(), b: make([]byte, 0, lineBuffer+4096),
		tracks: map[trackKey]*perfettoTrack{}, cards: map[uint64]bool{}, names: map[string]uint64{},
	}
	p.head = m
	return p, nil
}

// begin writes what comes before the records, at the time of the first, so
// that a window of a long run does not look as if it began at 0.
func (p *PerfettoWriter) begin(ts int64) {
	p.intern()
	p.descriptor(pfFileTrack, 0, "spinesim record", 0, nil)
	p.beginEvent(ts, pfInstant, pfFileTrack, categoryFile)
	p.eventName("record begins")
	p.annotateString(annMeta, string(p.head))
	p.endEvent()
	p.head = nil
}

// UUIDs: the file's track, a process for each card (its number above), the bus,
// and within a process groups of tracks.
const (
	pfFileTrack  = 1
	pfBusProcess = 2
	pfCardBase   = 0x100
	pfTrackBase  = 0x10000
)

func appendTag(b []byte, n protowire.Number, t protowire.Type) []byte {
	return protowire.AppendTag(b, n, t)
}

func appendVarintField(b []byte, n protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(appendTag(b, n, protowire.VarintType), v)
}

func appendBytesField(b []byte, n protowire.Number, v []byte) []byte {
	return protowire.AppendBytes(appendTag(b, n, protowire.BytesType), v)
}

func appendStringField(b []byte, n protowire.Number, v string) []byte {
	return protowire.AppendString(appendTag(b, n, protowire.BytesType), v)
}

// intern writes all names once: categories, annotation names, and the values
// of enumerations. Names of events follow when they are first used.
func (p *PerfettoWriter) intern() {
	var data []byte
	entry := func(field protowire.Number, iid uint64, name string) {
		e := appendVarintField(nil, pfIID, iid)
		data = appendBytesField(data, field, appendStringField(e, pfIIDName, name))
	}
	for k := range NumKinds {
		entry(pfInternedCategories, uint64(k)+1, Kind(k).String())
	}
	entry(pfInternedCategories, categoryEngine, "engine")
	entry(pfInternedCategories, categoryFile, "file")
	for i := 1; i < numAnnotations; i++ {
		entry(pfInternedAnnotations, uint64(i), annotationNames[i])
	}
	for k := range NumKinds {
		entry(pfInternedStrings, stringIID(annKind, uint8(k)), Kind(k).String())
	}
	for e := range NumEvents {
		entry(pfInternedStrings, stringIID(annEvent, uint8(e)), Event(e).String())
	}
	for r := range NumReasons {
		entry(pfInternedStrings, stringIID(annReason, uint8(r)), Reason(r).String())
	}
	for v := range NumVerdicts {
		entry(pfInternedStrings, stringIID(annVerdict, uint8(v)), Verdict(v).String())
	}
	p.msg = appendVarintField(p.msg[:0], pfSequenceID, pfSequence)
	p.msg = appendVarintField(p.msg, pfSequenceFlags, pfStateCleared)
	p.msg = appendBytesField(p.msg, pfInternedData, data)
	p.packet()
}

// stringIID numbers the interned value of an enumeration.
func stringIID(a annotation, v uint8) uint64 { return uint64(a)<<8 | uint64(v) }

// packet writes p.msg as one packet of the trace.
func (p *PerfettoWriter) packet() { p.b = appendBytesField(p.b, pfTracePacket, p.msg) }

// descriptor describes a track. more adds fields of its own.
func (p *PerfettoWriter) descriptor(uuid, parent uint64, name string, rank int32, more func([]byte) []byte) {
	d := appendVarintField(nil, pfUUID, uuid)
	if parent != 0 {
		d = appendVarintField(d, pfParentUUID, parent)
	}
	d = appendStringField(d, pfTrackName, name)
	d = appendVarintField(d, pfSiblingOrderRank, uint64(rank))
	if more != nil {
		d = more(d)
	}
	p.msg = appendVarintField(p.msg[:0], pfSequenceID, pfSequence)
	p.msg = appendBytesField(p.msg, pfTrackDescriptor, d)
	p.packet()
}

func explicitOrder(b []byte) []byte {
	return appendVarintField(b, pfChildOrdering, pfOrderExplicit)
}

func (p *PerfettoWriter) process(uuid uint64, name string, pid uint64) uint64 {
	if p.cards[uuid] {
		return uuid
	}
	p.cards[uuid] = true
	p.descriptor(uuid, 0, name, int32(pid), func(b []byte) []byte {
		pd := appendVarintField(nil, pfPid, pid)
		pd = appendStringField(pd, pfProcessName, name)
		return explicitOrder(appendBytesField(b, pfProcess, pd))
	})
	return uuid
}

// The groups of a card's tracks, by which the viewer folds them.
var perfettoGroups = [numTrackClass]struct {
	name string
	rank int32
}{
	trackHandler: {"Processor", 10}, trackPolls: {"Processor", 10},
	trackWait: {"Waits", 20}, trackLevel: {"Levels", 30},
}

func (p *PerfettoWriter) parent(k trackKey) uint64 {
	if k.class == trackBus {
		return p.process(pfBusProcess, "PCI bus", 1)
	}
	card := p.process(pfCardBase+uint64(k.card), p.meta.CardName(k.card), 10+uint64(k.card))
	g := perfettoGroups[k.class]
	if g.name == "" {
		return card
	}
	uuid := card | uint64(g.rank)<<32
	if !p.cards[uuid] {
		p.cards[uuid] = true
		p.descriptor(uuid, card, g.name, g.rank, explicitOrder)
	}
	return uuid
}

// track finds or describes the track and, for a span, its strip.
func (p *PerfettoWriter) track(k trackKey) *perfettoTrack {
	t := p.tracks[k]
	if t == nil {
		t = &perfettoTrack{
			uuid: pfTrackBase | uint64(k.class)<<40 | uint64(k.card)<<32 | uint64(k.sub)<<24 | uint64(k.peer)<<48 | 1<<60,
			name: k.name(p.meta), parent: p.parent(k),
		}
		p.tracks[k] = t
		var more func([]byte) []byte
		if k.class == trackLevel {
			more = func(b []byte) []byte {
				return appendBytesField(b, pfCounter, appendStringField(nil, pfCounterUnitName, "count"))
			}
		}
		if k.class != trackLevel && k.class != trackPackets && k.class != trackOther {
			return t // described with its strips
		}
		p.descriptor(t.uuid, t.parent, t.name, k.rank(), more)
	}
	return t
}

func (p *PerfettoWriter) strip(k trackKey, begin, end int64) uint64 {
	t := p.track(k)
	i, isNew := t.strips.place(begin, end)
	if isNew {
		uuid, name := t.uuid|uint64(i)<<1&0xffff, t.name
		if i > 0x7fff {
			uuid = t.uuid | 1<<61 | uint64(i)<<1 // beyond any real stream
		}
		if i > 0 {
			name = fmt.Sprintf("%s (%d)", t.name, i+1)
		}
		t.uuids = append(t.uuids, uuid)
		p.descriptor(uuid, t.parent, name, k.rank(), nil)
	}
	return t.uuids[i]
}

// beginEvent starts a packet with a track event in p.event.
func (p *PerfettoWriter) beginEvent(ts int64, typ, track, category uint64) {
	p.msg = appendVarintField(p.msg[:0], pfTimestamp, uint64(ts))
	p.msg = appendVarintField(p.msg, pfSequenceID, pfSequence)
	p.msg = appendVarintField(p.msg, pfSequenceFlags, pfNeedsState)
	p.event = appendVarintField(p.event[:0], pfType, typ)
	p.event = appendVarintField(p.event, pfTrackUUID, track)
	if category != 0 {
		p.event = appendVarintField(p.event, pfCategoryIIDs, category)
	}
}

// eventName gives the event a name; one that is new is interned with it.
func (p *PerfettoWriter) eventName(name string) {
	iid, ok := p.names[name]
	if !ok {
		iid = uint64(len(p.names)) + 1
		p.names[name] = iid
		e := appendStringField(appendVarintField(nil, pfIID, iid), pfIIDName, name)
		p.msg = appendBytesField(p.msg, pfInternedData, appendBytesField(nil, pfInternedNames, e))
	}
	p.event = appendVarintField(p.event, pfNameIID, iid)
}

func (p *PerfettoWriter) endEvent() {
	p.msg = appendBytesField(p.msg, pfTrackEvent, p.event)
	p.packet()
}

func (p *PerfettoWriter) annotate(a annotation, field protowire.Number, v uint64) {
	p.note = appendVarintField(p.note[:0], pfAnnotationNameIID, uint64(a))
	p.note = appendVarintField(p.note, field, v)
	p.event = appendBytesField(p.event, pfAnnotations, p.note)
}

func (p *PerfettoWriter) annotateString(a annotation, s string) {
	p.note = appendVarintField(p.note[:0], pfAnnotationNameIID, uint64(a))
	p.note = appendStringField(p.note, pfAnnotationString, s)
	p.event = appendBytesField(p.event, pfAnnotations, p.note)
}

func (p *PerfettoWriter) annotateName(a annotation, v uint8, known bool) {
	if known {
		p.annotate(a, pfAnnotationStringIID, stringIID(a, v))
	} else {
		p.annotate(a, pfAnnotationUint, uint64(v))
	}
}

// annotateRecord writes every field that is not what it would be otherwise.
func (p *PerfettoWriter) annotateRecord(r *Record) {
	number := func(a annotation, v uint64) {
		if v != 0 {
			p.annotate(a, pfAnnotationUint, v)
		}
	}
	p.annotateName(annKind, uint8(r.Kind), int(r.Kind) < NumKinds)
	if r.Event != NoEvent {
		p.annotateName(annEvent, uint8(r.Event), r.Event < NoEvent)
	}
	p.annotate(annCard, pfAnnotationUint, uint64(r.Card))
	if r.Peer != NoCard {
		p.annotate(annPeer, pfAnnotationUint, uint64(r.Peer))
	}
	if r.Queue != NoQueue {
		p.annotate(annQueue, pfAnnotationUint, uint64(r.Queue))
	}
	number(annPacket, r.Packet)
	if r.Reason != ReasonNone {
		p.annotateName(annReason, uint8(r.Reason), int(r.Reason) < NumReasons)
	}
	if r.Verdict != VerdictNone {
		p.annotateName(annVerdict, uint8(r.Verdict), int(r.Verdict) < NumVerdicts)
	}
	number(annBytes, uint64(r.Bytes))
	number(annCount, uint64(r.Count))
	number(annCycles, r.Cycles)
	number(annStall, uint64(r.Stall))
	p.annotate(annStart, pfAnnotationInt, uint64(r.Start))
	p.annotate(annEnd, pfAnnotationInt, uint64(r.End))
	if r.Ready != 0 {
		p.annotate(annReady, pfAnnotationInt, uint64(r.Ready))
	}
	number(annID, uint64(r.ID))
	number(annCause, uint64(r.Cause))
}

func (p *PerfettoWriter) flow(r *Record) {
	on, ends := onFlow(r)
	if !on {
		return
	}
	field := protowire.Number(pfFlowIDs)
	if ends {
		field = pfTerminatingID
	}
	p.event = protowire.AppendFixed64(appendTag(p.event, field, protowire.Fixed64Type), r.Packet)
}

// Record writes r.
func (p *PerfettoWriter) Record(r *Record) error {
	if r.Start < 0 || r.End < r.Start {
		return fmt.Errorf("record from %d to %d ps: Perfetto has neither times before 0 nor negative spans", int64(r.Start), int64(r.End))
	}
	p.count(r)
	k := trackOf(r)
	category := uint64(r.Kind) + 1
	if int(r.Kind) >= NumKinds {
		category = 0
	}
	begin, end := nanos(r.Start), nanos(r.End)
	if p.head != nil {
		p.begin(begin)
	}
	p.last = max(p.last, end)
	switch {
	case r.Kind == KindLevel:
		p.beginEvent(end, pfCounterTyp, p.track(k).uuid, category)
		p.event = appendVarintField(p.event, pfCounterValue, uint64(r.Count))
		p.annotateRecord(r)
		p.endEvent()
	case !isSlice(r):
		p.beginEvent(end, pfInstant, p.track(k).uuid, category)
		p.eventName(sliceName(r))
		p.flow(r)
		p.annotateRecord(r)
		p.endEvent()
	default:
		track := p.strip(k, begin, end)
		p.beginEvent(begin, pfSliceBegin, track, category)
		p.eventName(sliceName(r))
		p.flow(r)
		p.annotateRecord(r)
		p.endEvent()
		p.beginEvent(end, pfSliceEnd, track, 0)
		p.endEvent()
		if r.Kind == KindTransfer {
			p.engine(r)
		}
	}
	if len(p.b) < lineBuffer {
		return nil
	}
	return p.flush()
}

// engine draws a transfer once more, as the time it took of its card's engine:
// from asking for the bus to the end.
func (p *PerfettoWriter) engine(r *Record) {
	from := r.Start
	if r.Ready > 0 && r.Ready < from {
		from = r.Ready
	}
	begin, end := nanos(from), nanos(r.End)
	track := p.strip(trackKey{class: trackDMA, card: r.Card}, begin, end)
	p.beginEvent(begin, pfSliceBegin, track, categoryEngine)
	p.eventName(sliceName(r))
	if r.Packet != 0 {
		p.annotate(annPacket, pfAnnotationUint, r.Packet)
	}
	p.endEvent()
	p.beginEvent(end, pfSliceEnd, track, 0)
	p.endEvent()
}

func (p *PerfettoWriter) flush() error {
	_, err := p.w.Write(p.b)
	p.b = p.b[:0]
	return err
}

// Close writes the number of records and their check sum; it does not close w.
func (p *PerfettoWriter) Close() error {
	if p.head != nil {
		p.begin(0)
	}
	p.beginEvent(p.last, pfInstant, pfFileTrack, categoryFile)
	p.eventName("record ends")
	p.annotate(annRecords, pfAnnotationUint, p.n)
	p.annotate(annCheckSum, pfAnnotationUint, p.h)
	p.endEvent()
	return p.flush()
}
