package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"spinesim/sim/testenv"

	"spinesim/lanai"
	"spinesim/lanai/isa"
	"spinesim/sim/des"
	"spinesim/spine"
	"spinesim/traces"
)

// Offsets in the firmware's struct spine, for putting it into disorder.
const (
	atPeer0    = 588
	atSlots    = atPeer0 + 4
	atInbox    = atPeer0 + 20
	atAcksSeen = atPeer0 + 32
)

// harm is something that gets into the memory of a card from outside, at a time.
type harm struct {
	card uint8
	at   des.Time
	do   func(t *testing.T, rt *spine.Runtime)
	when func(rt *spine.Runtime) bool // it waits for that; nil does not
}

// harming carries a harm out.
type harming struct {
	t     *testing.T
	h     harm
	rt    *spine.Runtime
	e     *des.Engine
	timer des.Timer
}

func (x *harming) Handle(now des.Time, _ uint64) error {
	x.rt.Card().CPU.Settle()
	if x.h.when != nil && !x.h.when(x.rt) {
		return x.e.Arm(&x.timer, now+50*des.Nanosecond)
	}
	x.h.do(x.t, x.rt)
	x.rt.Firmware().CPU.Forget()
	return nil
}

// runHarmed runs a scenario in which harm is done.
func runHarmed(t *testing.T, sc *Scenario, opt Options, harms ...harm) (*Result, error) {
	t.Helper()
	s, err := New(sc, opt)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range harms {
		x := &harming{t: t, h: h, rt: s.router.Card(int(h.card)), e: s.eng}
		x.timer.Init(x, 0, 0)
		s.eng.Adopt(&x.timer)
		if err := s.eng.Arm(&x.timer, h.at); err != nil {
			t.Fatal(err)
		}
	}
	return s.Run(context.Background())
}

// code overwrites an instruction of a function.
func code(symbol string, n uint32, word uint32) func(*testing.T, *spine.Runtime) {
	return func(t *testing.T, rt *spine.Runtime) {
		fw := rt.Firmware()
		at, err := fw.Image.Symbol(symbol)
		if err == nil {
			err = fw.SRAM.SetWord(at+4*n, word)
		}
		if err != nil {
			t.Error(err)
		}
	}
}

// field changes a word of the run-time's own data.
func field(offset uint32, change func(rt *spine.Runtime, v uint32) uint32) func(*testing.T, *spine.Runtime) {
	return func(t *testing.T, rt *spine.Runtime) {
		fw := rt.Firmware()
		at, err := fw.Image.Symbol("spine")
		if err != nil {
			t.Error(err)
			return
		}
		v, err := fw.SRAM.Word(at + offset)
		if err == nil {
			err = fw.SRAM.SetWord(at+offset, change(rt, v))
		}
		if err != nil {
			t.Error(err)
		}
	}
}

func is(v uint32) func(*spine.Runtime, uint32) uint32 {
	return func(*spine.Runtime, uint32) uint32 { return v }
}

const undefinedWord = 0xD0000007 // an opcode that there is not

// left counts what left each card after a time.
type left struct {
	after des.Time
	n     [4]int
}

func (l *left) Record(r *traces.Record) error {
	if r.Kind == traces.KindLeave && r.Verdict == traces.VerdictForwarded && r.End > l.after {
		l.n[r.Card]++
	}
	return nil
}

func sum(m map[string]uint64) (n uint64) {
	for _, v := range m {
		n += v
	}
	return n
}

// allAccounted checks that each packet that arrived is in one place in the result.
func allAccounted(t *testing.T, name string, r *Result) {
	t.Helper()
	if got := r.Forwarded + r.ToHost + sum(r.Dropped) + sum(r.Stranded); got != r.Received || r.Received != r.Offered {
		t.Errorf("%s: %d offered, %d received, and %d accounted for: %d forwarded, %d to the host, dropped %v, stranded %v",
			name, r.Offered, r.Received, got, r.Forwarded, r.ToHost, r.Dropped, r.Stranded)
	}
	for _, v := range r.Violations {
		t.Errorf("%s: %s", name, v)
	}
}

// TestCardStops: a fault of a card's own run-time stops that card only. It is
// named, the others go on as far as flow control lets them, the run ends, every
// packet is accounted for, and the same happens on every run.
func TestCardStops(t *testing.T) {
	const at = 10 * des.Millisecond
	// Somebody else has given the receive engine room, just before the firmware.
	taken := func(t *testing.T, rt *spine.Runtime) {
		if err := rt.Card().Rx.Arm(0x80000, 1500); err != nil {
			t.Error(err)
		}
	}
	headerIn := func(rt *spine.Runtime) bool { return rt.Card().Rx.Receiving() != nil && !rt.Card().Rx.Armed() }
	for _, c := range []struct {
		name        string
		card        uint8
		do          func(*testing.T, *spine.Runtime)
		when        func(*spine.Runtime) bool
		kind        error
		symbol      string // "" is one of a poll's
		instruction string // how it begins
		handler     string
		nowhere     bool // the pc is
		settings    []string
	}{
		{name: "undefined opcode, egress", card: 1, do: code("spine_wire_output_start", 0, undefinedWord),
			kind: isa.ErrUndefined, symbol: "spine_wire_output_start", instruction: "<unknown>", handler: "Wire output start"},
		{name: "undefined opcode, ingress", card: 0, do: code("spine_router_in", 2, undefinedWord),
			kind: isa.ErrUndefined, symbol: "spine_router_in+0x8", instruction: "<unknown>", handler: "Router In handler"},
		{name: "stack overflow, egress", card: 2, do: code("spine_wire_output_done", 0, 0x2210fff0),
			kind: isa.ErrStack, symbol: "spine_wire_output_done", instruction: "sub %sp, 0xfff0, %sp", handler: "Wire output done"},
		{name: "misaligned, egress", card: 3, do: field(atInbox, func(_ *spine.Runtime, v uint32) uint32 { return v + 1 }),
			kind: isa.ErrMisaligned, instruction: "ld"},
		{name: "outside, egress", card: 1, do: field(atInbox, is(0x00F00000)), kind: isa.ErrOutside, instruction: "ld"},
		{name: "jump into the blue, ingress", card: 0, do: code("spine_enq_ip_output", 0, 0xe0000000|0x80000),
			kind: isa.ErrProtected, handler: "EnQ IP output", nowhere: true},
		{name: "device busy, ingress", card: 0, do: taken, when: headerIn, settings: []string{"card.wire=40 MB/s"},
			kind: lanai.ErrBusy, symbol: "spine_rx_check_header", instruction: "st", handler: "Rx check header"},
		{name: "out of step, ingress", card: 0, do: field(atAcksSeen, func(_ *spine.Runtime, v uint32) uint32 { return v ^ 0x100 }),
			kind: spine.ErrOutOfStep, symbol: "spine_peer_ack", instruction: ""},
		{name: "transfer to nowhere, ingress", card: 0, do: field(atSlots, is(0xC0000000)), kind: spine.ErrOutOfStep, instruction: ""},
	} {
		for _, how := range executions[1:] {
			t.Run(c.name+", "+string(how), func(t *testing.T) {
				t.Parallel()
				sc := withExecution(t, how, "fig6.4", append([]string{"traffic.packets=400", "traffic.arrivals.rate=150 µs"}, c.settings...)...)
				h := harm{c.card, at, c.do, c.when}
				var rs keep
				r, err := runHarmed(t, sc, Options{Check: true, Sinks: []traces.Sink{&rs}}, h)
				var stop *StoppedError
				if r == nil || !errors.As(err, &stop) || len(r.Stopped) != 1 {
					t.Fatalf("%v, want one card that stopped", err)
				}
				x := r.Stopped[0]
				if !errors.Is(err, c.kind) {
					t.Errorf("%v, want %v", err, c.kind)
				}
				if x.Card != c.card || x.At < at || x.At > at+10*des.Millisecond || x.PC == 0 || (x.Symbol == "") != c.nowhere || (x.Instruction == "") != c.nowhere || x.Handler != c.handler ||
					!strings.HasPrefix(x.Symbol, c.symbol) || !strings.HasPrefix(x.Instruction, c.instruction) ||
					!strings.Contains(x.Text, x.Symbol) || !strings.Contains(x.Text, fmt.Sprintf("pc %#x", x.PC)) || (x.Handler == "") != (x.Packet == 0) {
					t.Errorf("%+v", x)
				}
				want := fmt.Sprintf("card %d stopped at %v", c.card, x.At)
				if c.handler != "" {
					want += " in " + c.handler
				}
				if want += ": "; !strings.HasPrefix(err.Error(), want) {
					t.Errorf("%q, want %q and the fault", err, want)
				}
				allAccounted(t, c.name, r)
				if r.Drained || r.SimulatedS > 0.2 || len(r.Notes) > 0 || x.Stranded == 0 || sum(r.Stranded) == 0 {
					t.Errorf("drained %t, %v s, notes %v, %d stranded on the card, %v in all", r.Drained, r.SimulatedS, r.Notes, x.Stranded, r.Stranded)
				}
				after := left{after: x.At}
				var ran, stops int
				for i := range rs {
					_ = after.Record(&rs[i])
					switch k := rs[i].Kind; {
					case k == traces.KindStop:
						stops++
					case (k == traces.KindBox || k == traces.KindPolls) && rs[i].Card != c.card && rs[i].End > x.At:
						ran++
					}
				}
				if after.n[c.card] > 1 || stops != 1 || ran < 3 {
					t.Errorf("%v packets left after the stop; %d stops, %d boxes and polls of others", after.n, stops, ran)
				}
				if others := after.n[0] + after.n[1] + after.n[2] + after.n[3] - after.n[c.card]; c.card != 0 && others < 8 {
					t.Errorf("%v packets left after the stop", after.n)
				}
				if r.Dropped[traces.ReasonFIFOFull.String()] == 0 {
					t.Errorf("nothing found the FIFO full: %v", r.Dropped)
				}
				for i, opt := range []Options{{Stepping: true}, {Unmeasured: true, Expand: []Span{{9 * des.Millisecond, 30 * des.Millisecond}}, Check: true}} {
					again, err := runHarmed(t, sc, opt, h)
					if again == nil || err == nil || again.Fingerprint != r.Fingerprint || len(again.Violations) > 0 {
						t.Errorf("run %d: %v, fingerprint %v, want %s", i, err, again, r.Fingerprint)
					}
				}
				if _, err := json.Marshal(r); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// TestCardStopsAmongMany: where all cards receive, what does not have to do with
// the one that stopped is forwarded to the last packet.
func TestCardStopsAmongMany(t *testing.T) {
	for _, how := range executions[1:] {
		settings := []string{"routes.cards=[2, 3]", "traffic.ingress=[0, 1]", "traffic.packets=300", "traffic.arrivals.rate=400 µs"}
		sc := withExecution(t, how, "fig6.4", settings...)
		l := left{after: 20 * des.Millisecond}
		r, err := runHarmed(t, sc, Options{Check: true, Sinks: []traces.Sink{&l}},
			harm{card: 0, at: 20 * des.Millisecond, do: code("spine_rx_check_body", 0, undefinedWord)})
		if !errors.Is(err, isa.ErrUndefined) {
			t.Fatalf("%s: %v", how, err)
		}
		allAccounted(t, string(how), r)
		if c := r.Cards[1]; c.Forwarded != 300 || c.Received != 300 {
			t.Errorf("%s: card 1 forwarded %d of %d", how, c.Forwarded, c.Received)
		}
		// The card's FIFO holds sixteen, of one of them the header is in.
		if c := r.Cards[0]; c.Stranded < 16 || c.Stranded > 17 || c.Dropped["FIFO full"] < 200 || c.Received != 300 {
			t.Errorf("%s: card 0: %d stranded, dropped %v, %d received", how, c.Stranded, c.Dropped, c.Received)
		}
	}
}

// TestCardsStop: two cards may stop, and all of them.
func TestCardsStop(t *testing.T) {
	for _, how := range executions[1:] {
		for _, n := range []int{2, 4} {
			sc := withExecution(t, how, "four-way", "traffic.packets=100", "traffic.arrivals.rate=500 µs")
			var harms []harm
			for i := range n {
				harms = append(harms, harm{card: uint8(i), at: des.Time(10+i) * des.Millisecond, do: code("spine_rx_check_header", 0, undefinedWord)})
			}
			r, err := runHarmed(t, sc, Options{Check: true}, harms...)
			var stop *StoppedError
			if !errors.As(err, &stop) || len(stop.Cards) != n || strings.Count(err.Error(), "stopped at") != n {
				t.Fatalf("%s, %d: %v", how, n, err)
			}
			allAccounted(t, string(how), r)
		}
	}
}

// TestCardStopsUntil: a run that is ended before, or is left with a card that
// loops, ends too, and its packets are inside.
func TestCardStopsUntil(t *testing.T) {
	for _, how := range executions[1:] {
		sc := withExecution(t, how, "fig6.4", "traffic.packets=200", "measure.drain=40 ms")
		bad := harm{card: 1, at: 5 * des.Millisecond, do: code("spine_wire_output_start", 0, undefinedWord)}
		r, err := runHarmed(t, sc, Options{Check: true, Until: 8 * des.Millisecond}, bad)
		if r == nil || !errors.Is(err, isa.ErrUndefined) || len(r.Violations) > 0 || len(r.Stranded) > 0 || r.SimulatedS != 0.008 {
			t.Errorf("%s: %v, %+v", how, err, r)
		}
		// bt to itself: 0xe0000000 | its own address.
		loop := harm{card: 2, at: 5 * des.Millisecond, do: func(t *testing.T, rt *spine.Runtime) {
			a, err := rt.Firmware().Image.Symbol("spine_wire_output_start")
			if err != nil {
				t.Error(err)
			}
			code("spine_wire_output_start", 0, 0xe0000000|a)(t, rt)
		}}
		r, err = runHarmed(t, sc, Options{Check: true}, bad, loop)
		if r == nil || !errors.Is(err, isa.ErrUndefined) || len(r.Stopped) != 1 || len(r.Violations) > 0 || len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "still inside") {
			t.Errorf("%s: %v, %v", how, err, r)
		}
	}
}

// TestDisorder: whatever gets into the memory of the run-time, at whatever time,
// the simulation neither fails nor breaks an invariant: cards stop, or they do
// something else than they should.
func TestDisorder(t *testing.T) {
	n := testenv.Size(30, 120)
	stops, kinds := 0, map[string]int{}
	var seeds []uint64
	for i := range uint64(n) {
		seeds = append(seeds, i)
	}
	// In these a fault falls on the very boundary at which a run ahead had ended.
	for _, seed := range append(seeds, 124, 827, 1043) {
		rnd := rand.New(rand.NewPCG(seed, 9))
		how := executions[1+seed%2]
		settings := []string{"traffic.packets=40", "traffic.arrivals.rate=300 µs", "measure.drain=5 ms", fmt.Sprintf("seed=%d", seed+1)}
		if seed%3 == 0 || seed >= uint64(n) {
			settings = append(settings, "firmware.extension=[testdata/extensions/misdeeds.o]")
		}
		sc := withExecution(t, how, "four-way", settings...)
		var harms []harm
		for range 1 + rnd.IntN(3) {
			harms = append(harms, harm{
				card: uint8(rnd.IntN(4)), at: des.Time(rnd.Int64N(int64(12 * des.Millisecond))),
				do: func(t *testing.T, rt *spine.Runtime) { disorder(t, rnd, rt) },
			})
		}
		r, err := runHarmed(t, sc, Options{Check: true}, harms...)
		var stop *StoppedError
		if err != nil && !errors.As(err, &stop) {
			t.Errorf("seed %d, %s: %v", seed, how, err)
			continue
		}
		if len(r.Violations) > 0 {
			t.Errorf("seed %d, %s: %v: %s", seed, how, err, r.Violations[0])
		}
		if stop != nil {
			stops++
			for _, k := range []error{isa.ErrUndefined, isa.ErrMisaligned, isa.ErrOutside, isa.ErrProtected, isa.ErrStack, spine.ErrOutOfStep} {
				if errors.Is(err, k) {
					kinds[k.Error()]++
				}
			}
		}
	}
	if stops < n/5 || len(kinds) < 4 {
		t.Errorf("%d of %d runs had a card that stopped: %v", stops, n, kinds)
	}
}

// disorder changes a word, or a bit of one, of the firmware's code or data.
func disorder(t *testing.T, rnd *rand.Rand, rt *spine.Runtime) {
	fw := rt.Firmware()
	var places []int
	for i, s := range fw.Image.Sections {
		if s.Bytes >= 4 {
			places = append(places, i)
		}
	}
	s := fw.Image.Sections[places[rnd.IntN(len(places))]]
	at := s.Addr + 4*rnd.Uint32N(s.Bytes/4)
	if rnd.IntN(2) == 0 { // where most of what changes lies
		a, err := fw.Image.Symbol("spine")
		if err != nil {
			t.Fatal(err)
		}
		at = a + 4*rnd.Uint32N(190)
	}
	v, err := fw.SRAM.Word(at)
	if err != nil {
		t.Fatal(err)
	}
	switch rnd.IntN(3) {
	case 0:
		v = rnd.Uint32()
	case 1:
		v ^= 1 << rnd.IntN(32)
	default:
		v = rnd.Uint32N(fw.SRAM.Bytes())
	}
	if err := fw.SRAM.SetWord(at, v); err != nil {
		t.Fatal(err)
	}
}
