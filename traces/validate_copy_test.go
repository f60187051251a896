package traces

import (
	"errors"
	"strings"
	"testing"

	"spinesim/sim/des"
)

// TestCopies: a copy is inside from where it was made, past the router handler.
func TestCopies(t *testing.T) {
	at := func(us int64) des.Time { return des.Time(us) * des.Microsecond }
	box := func(id ID, e Event, q uint8, packet uint64, from, to int64, cause ID) Record {
		return Record{Kind: KindBox, Event: e, Queue: q, Peer: NoCard, Start: at(from), End: at(to), Ready: at(from), ID: id, Cause: cause, Packet: packet}
	}
	instant := func(k Kind, id ID, packet uint64, us int64, cause ID) Record {
		return Record{Kind: k, Event: NoEvent, Queue: NoQueue, Peer: NoCard, Start: at(us), End: at(us), Ready: at(us), ID: id, Cause: cause, Packet: packet}
	}
	left := func(id ID, packet uint64, us int64, cause ID) Record {
		r := instant(KindLeave, id, packet, us, cause)
		r.Verdict, r.Reason = VerdictDropped, ReasonExtension
		return r
	}
	flood := []Record{
		instant(KindEnter, 1, 1, 1, 0),
		box(2, RxCheckHeader, 1, 1, 2, 3, 1), box(3, RxCheckBody, 1, 1, 3, 4, 2), box(4, EnqRouterIn, 0, 1, 4, 5, 3),
		box(5, RouterIn, 0, 1, 5, 6, 4),
		instant(KindCopy, 6, 2, 6, 5),
		box(7, EnqIPOutput, 0, 1, 6, 7, 5), box(8, EnqIPOutput, 0, 2, 7, 8, 5),
		left(9, 1, 9, 7), left(10, 2, 9, 8),
	}
	for _, c := range []struct {
		name   string
		change func([]Record) []Record
		want   string
	}{
		{"as it is", func(r []Record) []Record { return r }, ""},
		{"a packet that is inside already", func(r []Record) []Record { r[5].Packet = 1; r[7].Packet = 1; return r }, "packet 1 has entered before"},
		{"a copy that never leaves", func(r []Record) []Record { return r[:9] }, "packet 2"},
		{"a copy that is routed again", func(r []Record) []Record { r[7].Event = RouterIn; return r }, "has run for packet 2 before"},
		{"a copy that was not made", func(r []Record) []Record { return append(r[:5:5], r[6:]...) }, "packet 2 has not entered"},
		{"a copy that takes time", func(r []Record) []Record { r[5].Start -= 1; r[5].Ready -= 1; return r }, "it takes time"},
		{"a copy of nothing", func(r []Record) []Record { r[5].Packet = 0; return r }, "it names no packet"},
	} {
		err := Validate(c.change(append([]Record(nil), flood...)), Limits{}, true)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.want != "" && (!errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	m, err := NewMeasures(MeasureSpec{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range flood {
		if err := m.Record(&flood[i]); err != nil {
			t.Fatal(err)
		}
	}
	r, err := m.Finish(at(20))
	if err != nil || r.Received != 1 || r.Copies != 1 || r.Dropped[ReasonExtension.String()] != 2 {
		t.Errorf("%d received, %d copies, dropped %v, %v", r.Received, r.Copies, r.Dropped, err)
	}
}
