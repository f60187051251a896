package traces

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"spinesim/sim/des"
)

// TestMarks: a mark is an instant within a handler, or between two, of one of
// five numbers, and a listing keeps it.
func TestMarks(t *testing.T) {
	mark := Record{
		Kind: KindMark, Event: RouterIn, Card: 1, Peer: NoCard, Queue: NoQueue, Packet: 7, Count: 0,
		Start: 5 * des.Microsecond, End: 5 * des.Microsecond, Ready: 5 * des.Microsecond,
	}
	for _, c := range []struct {
		name   string
		change func(*Record)
		want   string
	}{
		{"as it is", func(*Record) {}, ""},
		{"between handlers", func(r *Record) { r.Event, r.Packet = NoEvent, 0 }, ""},
		{"the last", func(r *Record) { r.Count = 4 }, ""},
		{"a number that is none", func(r *Record) { r.Count = 5 }, "mark 5 does not exist"},
		{"in a transfer", func(r *Record) { r.Event = TransferBody }, "is not a handler"},
		{"that takes time", func(r *Record) { r.Start-- }, "it takes time"},
	} {
		r := mark
		c.change(&r)
		v := NewValidator(Limits{Window: true})
		_ = v.Record(&r) // tells with FailFast only
		err := v.Finish(false)
		if c.want == "" && err != nil || c.want != "" && (!errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
		var back Record
		line := AppendListing(nil, &r)
		if err := ParseListing(string(line), &back); err != nil || back != r {
			t.Errorf("%s: %v; read back %+v", line, err, back)
		}
		if !bytes.Contains(line, []byte("count=")) {
			t.Errorf("%s does not say which mark", line)
		}
	}
	if k, ok := KindByName("mark"); !ok || k != KindMark {
		t.Errorf("the kind named mark is %v, %t", k, ok)
	}
}
