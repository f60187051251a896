package report

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"fmt"

	"spinesim/sim/des"
	"spinesim/traces"
)

// Events is a sink that keeps the records of an event graph. Those beyond its
// limit are counted and left out.
type Events struct {
	limit   int
	records []traces.Record
	lost    uint64
}

// MostEvents is the greatest limit (chosen: a browser holds about 60 bytes an
// event, the program 80 while it writes the page).
const MostEvents = 5_000_000

// NewEvents keeps at most limit records, at least 1 and at most MostEvents.
func NewEvents(limit int) *Events { return &Events{limit: min(max(limit, 1), MostEvents)} }

// Record implements traces.Sink; it never fails.
func (e *Events) Record(r *traces.Record) error {
	if len(e.records) == e.limit {
		e.lost++
		return nil
	}
	e.records = append(e.records, *r)
	return nil
}

// Len is how many records are kept.
func (e *Events) Len() int { return len(e.records) }

// Lost is how many were left out.
func (e *Events) Lost() uint64 { return e.lost }

// Span is the time from the first start to the last end.
func (e *Events) Span() (from, to des.Time) {
	if len(e.records) == 0 {
		return 0, 0
	}
	from, to = e.records[0].Start, e.records[0].End
	for i := range e.records {
		from, to = min(from, e.records[i].Start), max(to, e.records[i].End)
	}
	return from, to
}

// head describes the packed columns to the viewer.
type head struct {
	N       int      `json:"n"`
	Base    int64    `json:"base"` // ps: what times count from
	Columns []column `json:"columns"`
	Kinds   []string `json:"kinds"`
	Events  []string `json:"events"`
	Steps   []int    `json:"steps"` // of each event
	Reasons []string `json:"reasons"`
	Verdict []string `json:"verdicts"`
	Cards   []string `json:"cards"` // names, by number
	Figure  int      `json:"figure_events"`
	Host    int      `json:"host"`
	NoCard  int      `json:"no_card"`
	NoQueue int      `json:"no_queue"`
	NoEvent int      `json:"no_event"`
}

// column is one packed column. Of the kinds of packing, "u8" is a byte a
// record, "uint" a variable-length number (LEB128), "int" a signed one in
// zigzag form, and "delta" an int that is added to the one before.
type column struct {
	Name    string `json:"name"`
	Packing string `json:"packing"`
	Bytes   int    `json:"bytes"`
}

// exact is the greatest whole number that a viewer's numbers hold exactly.
const exact = 1 << 53

// pack writes the records as columns, one after another, deflated.
func (e *Events) pack(meta *traces.Meta) (*head, []byte, error) {
	from, to := e.Span()
	if to-from >= exact {
		return nil, nil, fmt.Errorf("events span %v, more than a page can show", to-from)
	}
	h := &head{
		N: len(e.records), Base: int64(from), Figure: traces.NumFigureEvents,
		Host: traces.HostCard, NoCard: traces.NoCard, NoQueue: traces.NoQueue, NoEvent: int(traces.NoEvent),
	}
	for k := range traces.NumKinds {
		h.Kinds = append(h.Kinds, traces.Kind(k).String())
	}
	for v := range traces.NumEvents {
		h.Events = append(h.Events, traces.Event(v).String())
		h.Steps = append(h.Steps, int(traces.Event(v).Step()))
	}
	for v := range traces.NumReasons {
		h.Reasons = append(h.Reasons, traces.Reason(v).String())
	}
	for v := range traces.NumVerdicts {
		h.Verdict = append(h.Verdict, traces.Verdict(v).String())
	}
	cards := 0
	for i := range e.records {
		for _, c := range []uint8{e.records[i].Card, e.records[i].Peer} {
			if c < traces.HostCard {
				cards = max(cards, int(c)+1)
			}
		}
	}
	for c := range cards {
		h.Cards = append(h.Cards, meta.CardName(uint8(c)))
	}
	cause, wait := e.links()

	var out bytes.Buffer
	z, err := flate.NewWriter(&out, flate.DefaultCompression)
	if err != nil {
		return nil, nil, err
	}
	var b []byte
	var last int64
	number := func(name, packing string, of func(i int, r *traces.Record) int64) error {
		b, last = b[:0], 0
		for i := range e.records {
			v := of(i, &e.records[i])
			switch packing {
			case "u8":
				b = append(b, byte(v))
			case "uint":
				b = binary.AppendUvarint(b, uint64(v))
			case "int":
				b = binary.AppendVarint(b, v)
			case "delta":
				b = binary.AppendVarint(b, v-last)
				last = v
			}
		}
		h.Columns = append(h.Columns, column{name, packing, len(b)})
		_, err := z.Write(b)
		return err
	}
	clip := func(v uint64) int64 { return int64(min(v, exact)) }
	for _, c := range []struct {
		name, packing string
		of            func(i int, r *traces.Record) int64
	}{
		{"kind", "u8", func(_ int, r *traces.Record) int64 { return int64(r.Kind) }},
		{"event", "u8", func(_ int, r *traces.Record) int64 { return int64(r.Event) }},
		{"card", "u8", func(_ int, r *traces.Record) int64 { return int64(r.Card) }},
		{"peer", "u8", func(_ int, r *traces.Record) int64 { return int64(r.Peer) }},
		{"queue", "u8", func(_ int, r *traces.Record) int64 { return int64(r.Queue) }},
		{"reason", "u8", func(_ int, r *traces.Record) int64 { return int64(r.Reason) }},
		{"verdict", "u8", func(_ int, r *traces.Record) int64 { return int64(r.Verdict) }},
		{"end", "delta", func(_ int, r *traces.Record) int64 { return int64(r.End - from) }},
		{"length", "uint", func(_ int, r *traces.Record) int64 { return int64(max(r.End-r.Start, 0)) }},
		{"ready", "uint", func(_ int, r *traces.Record) int64 { return min(int64(max(r.Start-r.Ready, 0)), exact) }},
		{"packet", "delta", func(_ int, r *traces.Record) int64 { return clip(r.Packet) }},
		{"number", "delta", func(_ int, r *traces.Record) int64 { return clip(r.ID.Number()) }},
		{"cause", "int", func(i int, _ *traces.Record) int64 { return int64(cause[i]) }},
		{"wait", "int", func(i int, _ *traces.Record) int64 { return int64(wait[i]) }},
		{"bytes", "uint", func(_ int, r *traces.Record) int64 { return int64(r.Bytes) }},
		{"count", "uint", func(_ int, r *traces.Record) int64 { return int64(r.Count) }},
		{"cycles", "uint", func(_ int, r *traces.Record) int64 { return clip(r.Cycles) }},
		{"stall", "uint", func(_ int, r *traces.Record) int64 { return int64(r.Stall) }},
	} {
		if err := number(c.name, c.packing, c.of); err != nil {
			return nil, nil, err
		}
	}
	if err := z.Close(); err != nil {
		return nil, nil, err
	}
	return h, out.Bytes(), nil
}

// links finds for each record how many records before it (negative: after it)
// its cause stands, and the wait that came before it; 0 is none that is kept.
func (e *Events) links() (cause, wait []int32) {
	at := make(map[traces.ID]int32, len(e.records))
	for i := range e.records {
		if id := e.records[i].ID; id != 0 {
			at[id] = int32(i)
		}
	}
	type waiter struct {
		packet uint64
		card   uint8
		event  traces.Event
	}
	waits := map[waiter]int32{}
	cause, wait = make([]int32, len(e.records)), make([]int32, len(e.records))
	for i := range e.records {
		r := &e.records[i]
		if j, ok := at[r.Cause]; ok && r.Cause != 0 && j != int32(i) {
			cause[i] = int32(i) - j
		}
		if r.Packet == 0 {
			continue
		}
		k := waiter{r.Packet, r.Card, r.Event}
		switch r.Kind {
		case traces.KindWait:
			waits[k] = int32(i)
		case traces.KindBox, traces.KindTransfer, traces.KindReceive, traces.KindSend:
			if j, ok := waits[k]; ok {
				if e.records[j].End == r.Start {
					wait[i] = int32(i) - j
				}
				delete(waits, k)
			}
		}
	}
	return cause, wait
}

// All gives the records that are kept; they must not be changed.
func (e *Events) All() []traces.Record { return e.records }
