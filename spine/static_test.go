package spine

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"spinesim/lanai"
	"spinesim/pci"
	"spinesim/sim/des"
	"spinesim/spine/policy"
	"spinesim/traces"
)

// TestStaticCycleErrors: steps that no dispatcher could run.
func TestStaticCycleErrors(t *testing.T) {
	step := func(h traces.Event) StaticStep { return StaticStep{Handler: h, Guard: GuardLook} }
	slot := StaticStep{Handler: traces.NoEvent, Order: []uint8{0, 6}, Handlers: 2}
	for _, c := range []struct {
		name  string
		steps []StaticStep
		want  string
	}{
		{"fine", []StaticStep{step(traces.PeerAck), slot}, ""},
		{"empty", nil, "without steps"},
		{"no handler", []StaticStep{step(traces.FreeBuffer), step(traces.TransferBody)}, "step 2: Body transfer is not a handler"},
		{"a poll", []StaticStep{step(traces.PollQ0)}, "not a handler"},
		{"guard", []StaticStep{{Handler: traces.PeerAck, Guard: 7}}, "unknown guard 7"},
		{"polls", []StaticStep{{Handler: traces.PeerAck, Guard: GuardWait, Polls: -1}}, "-1 polls"},
		{"no queues", []StaticStep{{Handler: traces.NoEvent, Handlers: 1}}, "over 0 queues"},
		{"no handlers", []StaticStep{{Handler: traces.NoEvent, Order: []uint8{1}}}, "for 0 handlers"},
		{"queue", []StaticStep{{Handler: traces.NoEvent, Order: []uint8{7}, Handlers: 1}}, "Q7"},
		{"queue twice", []StaticStep{{Handler: traces.NoEvent, Order: []uint8{1, 1}, Handlers: 1}}, "at most once"},
	} {
		cycle := StaticCycle{Name: c.name, Steps: c.steps}
		err := cycle.Validate()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

type fixedCycle struct {
	*Deferred
	cycle *StaticCycle
}

func (f fixedCycle) Cycle() *StaticCycle { return f.cycle }

// TestRouterRefusesCycles: a name without a cycle, and a cycle that is none.
func TestRouterRefusesCycles(t *testing.T) {
	good := []StaticStep{{Handler: traces.RxCheckHeader, Guard: GuardLook}}
	for _, c := range []struct {
		name   string
		policy Policy
		want   string // empty: accepted
	}{
		{"by name only", &Deferred{}, ErrDeferred.Error()},
		{"no cycle", fixedCycle{&Deferred{}, nil}, ErrDeferred.Error()},
		{"an empty cycle", fixedCycle{&Deferred{}, &StaticCycle{Name: "x"}}, `cycle "x": a cycle without steps`},
		{"a source that is not there", fixedCycle{&Deferred{}, &StaticCycle{Name: "x", Steps: good, Sources: []uint8{2}}}, "source card 2"},
		{"a cycle", fixedCycle{&Deferred{}, &StaticCycle{Name: "x", Steps: good, Sources: []uint8{1}}}, ""},
	} {
		card := CardConfig{Card: lanai.Lanai4(), Firmware: DefaultSpec(), Policy: c.policy}
		other := card
		other.Policy = policy.NewStrict("", DefaultOrder)
		_, err := New(des.New(des.Options{}), nil, &Config{Bus: pci.DefaultSpec(), Cards: []CardConfig{card, other}})
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
		if _, deferred := c.policy.(*Deferred); deferred && !errors.Is(err, ErrDeferred) {
			t.Errorf("%s: %v does not wrap ErrDeferred", c.name, err)
		}
	}
}

// TestRingRemove compares finding and removing in a ring with a slice.
func TestRingRemove(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	var g ring
	var want []message
	for i := range 20000 {
		h := traces.FreeBuffer + traces.Event(r.IntN(5))
		switch m := (message{handler: h, seq: uint64(i)}); {
		case len(want) < 3 || r.IntN(2) == 0 && len(want) < 40:
			if r.IntN(4) == 0 {
				g.pushFront(m)
				want = append([]message{m}, want...)
			} else {
				g.pushBack(m)
				want = append(want, m)
			}
		default:
			at := -1
			for j := range want {
				if want[j].handler == h {
					at = j
					break
				}
			}
			if got := g.find(h); got != at {
				t.Fatalf("%v found at %d, want %d of %d", h, got, at, len(want))
			}
			if at < 0 {
				continue
			}
			if got := g.remove(at); got != want[at] {
				t.Fatalf("removed %+v, want %+v", got, want[at])
			}
			want = append(want[:at:at], want[at+1:]...)
		}
		if g.n != len(want) {
			t.Fatalf("%d messages, want %d", g.n, len(want))
		}
	}
}
