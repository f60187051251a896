package schedule

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"spinesim/spine"
)

// ingress is a cycle that works, with a place for lines to be changed.
const ingress = `name: by hand
cards:
  - cards: [0]
    cycle:
      - {run: To host, guard: wait}
      - {run: Peer to peer start, guard: wait}
      - {run: DMA start handler, guard: known}
      - {run: DMA generic start, guard: known}
      - {run: DMA start body, guard: known}
      - {run: Rx check header, guard: look}
      - {run: Peer ACK, guard: look}
      - {run: Free buffer, guard: known}
      - {run: Rx check body, guard: wait}
      - {run: EnQ router in, guard: known}
      - {run: Router In handler, guard: known}
      - {run: EnQ IP output, guard: known}
      - {run: DMA start header, guard: wait}
  - cards: [1, 2, 3]
    sources: [0]
    cycle:
      - {run: Wire output start, guard: look}
      - {run: Wire output done, guard: wait}
      - {run: ACK send, guard: known}
`

// with replaces parts of the cycle, pair by pair.
func with(t *testing.T, changes ...string) string {
	t.Helper()
	out := ingress
	for i := 0; i < len(changes); i += 2 {
		if !strings.Contains(out, changes[i]) {
			t.Fatalf("nothing to replace: %q", changes[i])
		}
		out = strings.Replace(out, changes[i], changes[i+1], 1)
	}
	return out
}

// TestCheck: each way of being wrong is refused, with the place and the reason.
func TestCheck(t *testing.T) {
	const ack = "      - {run: Peer ACK, guard: look}\n"
	const header = "      - {run: DMA start header, guard: wait}\n"
	for _, c := range []struct {
		name   string
		text   string
		change func(*Machine)
		want   error // nil: it works
		says   []string
	}{
		{name: "as it is", text: ingress},
		{name: "no cycle", text: with(t, "[1, 2, 3]", "[1, 2]"), want: ErrUnserved, says: []string{"no cycle for card 3"}},
		{name: "no such card", text: ingress, change: func(m *Machine) { m.Cards = 3 }, want: ErrNoInput, says: []string{"card 3", "plan.yaml:18"}},
		{
			name: "no ACKs taken", text: with(t, ack, ""), want: ErrAckStarvation,
			says: []string{"plan.yaml:3", "card 0", "Peer ACK"},
		},
		{
			name: "no ACKs sent", text: with(t, "      - {run: ACK send, guard: known}\n", ""), want: ErrAckStarvation,
			says: []string{"card 1", "ACK send"},
		},
		{
			name: "wait for arrivals", text: with(t, "Rx check header, guard: look", "Rx check header, guard: wait"), want: ErrAckStarvation,
			says: []string{"plan.yaml:10", "Rx check header: wait", "without bound"},
		},
		{name: "wait for arrivals, but not for ever", text: with(t, "Rx check header, guard: look", "Rx check header, guard: wait 9 polls")},
		{
			name: "wait for packets to send", text: with(t, "Wire output start, guard: look", "Wire output start, guard: wait"), want: ErrAckStarvation,
			says: []string{"plan.yaml:21"},
		},
		{
			name: "wait for the ACK of a packet that has not left",
			text: with(t, ack, "      - {run: Peer ACK, guard: wait}\n"), want: ErrDeadlock,
			says: []string{"plan.yaml:11", "Peer ACK: wait", "later step"},
		},
		{
			name: "wait for the ACK once it has left",
			text: with(t, ack, "", header, header+"      - {run: Peer ACK, guard: wait}\n"),
		},
		{
			name:   "wait for ACKs on a card that the host waits for",
			text:   with(t, ack, "", header, header+"      - {run: Peer ACK, guard: wait}\n"),
			change: func(m *Machine) { m.Firmware.HostReturn = true }, want: ErrDeadlock, says: []string{"card 0", "wait for each other"},
		},
		{
			name: "more starts than ACKs",
			text: with(t, header, header+`      - repeat: 2
        cycle:
          - {run: Peer to peer start, guard: look}
          - {run: DMA start handler, guard: known}
`), want: ErrAckStarvation, says: []string{"3 times", "only 1"},
		},
		{
			name: "a guard that cannot know", text: with(t, "DMA start header, guard: wait", "DMA start header, guard: known"), want: ErrBlindGuard,
			says: []string{"plan.yaml:17", "DMA engine makes"},
		},
		{
			name: "peers' packets known", text: with(t, "Wire output start, guard: look", "Wire output start, guard: known"), want: ErrBlindGuard,
			says: []string{"plan.yaml:21"},
		},
		{
			name: "a step without input", text: with(t, ack, ack+"      - {run: Wire output start, guard: look}\n"), want: ErrNoInput,
			says: []string{"plan.yaml:12", "no flow leaves by this card"},
		},
		{
			name: "a receive where none is", text: with(t, "      - {run: Wire output done, guard: wait}\n", "      - {run: Wire output done, guard: wait}\n      - {run: Rx check body, guard: wait}\n"),
			want: ErrNoInput, says: []string{"plan.yaml:23", "no flow comes in"},
		},
		{
			name: "the host's packets, and it sends none", text: with(t, ack, ack+"      - {run: From host, guard: look}\n"), want: ErrNoInput,
			says: []string{"the host sends nothing back"},
		},
		{name: "nobody frees buffers", text: with(t, "      - {run: Free buffer, guard: known}\n", ""), want: ErrUnserved, says: []string{"Free buffer"}},
		{name: "no step for the host", text: with(t, "      - {run: To host, guard: wait}\n", ""), want: ErrUnserved, says: []string{"To host"}},
		{name: "the chain does not end", text: with(t, header, ""), want: ErrUnserved, says: []string{"DMA start header"}},
		{name: "sources that send nothing", text: with(t, "sources: [0]", "sources: [0, 2]"), want: ErrNoInput, says: []string{"card 2"}},
		{
			name: "a background slot serves the rest",
			text: with(t, ack, "", "      - {run: Free buffer, guard: known}\n", "      - {background: Q3 Q4 Q5 Q0, handlers: 3}\n"),
		},
		{
			name: "a background slot that misses a peer",
			text: with(t, ack, "      - {background: Q3 Q4 Q0, handlers: 3}\n"), want: ErrAckStarvation, says: []string{"Peer ACK"},
		},
		{
			name: "only background", text: "cards:\n  - cards: [0, 1, 2, 3]\n    cycle: [{background: 0 1 2 3 4 5 6, handlers: 1}]\n",
		},
		{
			name: "background without the wire", text: "cards:\n  - cards: [0, 1, 2, 3]\n    cycle: [{background: 0 2 3 4 5 6, handlers: 1}]\n",
			want: ErrUnserved, says: []string{"Rx check header"},
		},
		{
			name: "body by Q0, known", text: with(t, "Rx check body, guard: wait", "Rx check body, guard: known"),
			change: func(m *Machine) { m.Firmware.Receive = spine.ReceiveWhole },
		},
		{
			name: "body by the wire, known", text: with(t, "Rx check body, guard: wait", "Rx check body, guard: known"), want: ErrBlindGuard,
			says: []string{"receive engine"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := Parse([]byte(c.text), "plan.yaml")
			if err != nil {
				t.Fatal(err)
			}
			m := machine()
			if c.change != nil {
				c.change(m)
			}
			flows := spread(1500)
			if m.Cards == 3 {
				flows = flows[:2]
			}
			err = Check(p, m, flows)
			if !errors.Is(err, c.want) {
				t.Fatalf("%v, want %v", err, c.want)
			}
			for _, s := range c.says {
				if !strings.Contains(err.Error(), s) {
					t.Errorf("%q does not say %q", err, s)
				}
			}
		})
	}
}

// TestParseErrors: file, line and key of what cannot be read.
func TestParseErrors(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", "plan.yaml: empty"},
		{"[1]", "plan.yaml:1: want keys and values"},
		{"a: 1", `plan.yaml:1: "a" is not a key here, want name, description, cards`},
		{"name: x", "plan.yaml:1: cards is missing"},
		{"name: [x]\ncards: []", "plan.yaml:1: name: want a single value"},
		{"cards: 3", "plan.yaml:1: cards: want a list"},
		{"cards: []", "plan.yaml:1: cards: an empty list"},
		{"cards:\n  - cycle: []", "plan.yaml:2: cards[0]: want cards and cycle"},
		{"cards:\n  - cards: [0]\n    cycle:\n      - {}\n", "plan.yaml:4: cards[0].cycle[0]: want run, repeat or background"},
		{"cards:\n  - cards: [7]\n    cycle: [{run: Free buffer, guard: known}]", `plan.yaml:2: cards[0].cards: "7", want a whole number of 0 … 3`},
		{"cards:\n  - cards: [0, 0]\n    cycle: [{run: Free buffer, guard: known}]", "card 0 is there twice"},
		{"cards:\n  - {cards: [0], cycle: [{run: Free buffer, guard: known}]}\n  - {cards: [0], cycle: [{run: Free buffer, guard: known}]}", "plan.yaml:3: cards[1].cards: card 0 has a cycle already"},
		{"cards:\n  - cards: [0]\n    cycle:\n      - run: Free bufer\n        guard: known", `plan.yaml:4: cards[0].cycle[0].run: "Free bufer" is not a handler`},
		{"cards:\n  - cards: [0]\n    cycle:\n      - run: Poll Q0\n        guard: known", `"Poll Q0" is not a handler`},
		{"cards:\n  - cards: [0]\n    cycle:\n      - run: Free buffer", "plan.yaml:4: cards[0].cycle[0]: Free buffer has no guard"},
		{"cards:\n  - cards: [0]\n    cycle:\n      - {run: Free buffer, guard: sometimes}", `"sometimes", want known, look, wait, or wait N polls`},
		{"cards:\n  - cards: [0]\n    cycle:\n      - {run: Free buffer, guard: wait 0 polls}", `"wait 0 polls", want`},
		{"cards:\n  - cards: [0]\n    cycle:\n      - {run: Free buffer, guard: known, handlers: 2}", "handlers does not go with run"},
		{"cards:\n  - cards: [0]\n    cycle:\n      - {run: Free buffer, guard: known, run: Free buffer}", ""},
		{"cards:\n  - cards: [0]\n    cycle:\n      - {repeat: 0, cycle: [{run: Free buffer, guard: known}]}", `"0", want a whole number of 1 … 64`},
		{"cards:\n  - cards: [0]\n    cycle:\n      - {repeat: 2}", "repeat without cycle"},
		{"cards:\n  - cards: [0]\n    cycle:\n      - {background: Q7}", `"Q7": want each of Q0 … Q6 at most once`},
		{"cards:\n  - cards: [0]\n    cycle:\n      - {background: Q1 Q1}", "at most once"},
		{"cards:\n  - cards: [0]\n    cycle:\n      - {background: '', handlers: 1}", "no queues"},
		{"cards: &a\n  - cards: *a\n", ""},
		{"cards:\n  - cards: [0]\n    cycle: " + strings.Repeat("[{repeat: 64, cycle: ", 9) + "[{run: Free buffer, guard: known}]" + strings.Repeat("}]", 9), "more than 8 deep"},
		{"cards:\n  - cards: [0]\n    cycle: " + strings.Repeat("[{repeat: 64, cycle: ", 3) + "[{run: Free buffer, guard: known}]" + strings.Repeat("}]", 3), "more than 4096 steps"},
		{"\tx", "plan.yaml"},
	} {
		_, err := Parse([]byte(c.text), "plan.yaml")
		if err == nil {
			t.Errorf("accepted:\n%s", c.text)
			continue
		}
		if !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "plan.yaml") {
			t.Errorf("%v\nwant %s", err, c.want)
		}
	}
	if _, err := ReadFile("nowhere/plan.yaml"); err == nil {
		t.Error("a file that is not there is read")
	}
}

// TestRepeat: repeats are written out in order, inside out.
func TestRepeat(t *testing.T) {
	p, err := Parse([]byte(`cards:
  - cards: [0]
    cycle:
      - repeat: 2
        cycle:
          - {run: Free buffer, guard: known}
          - repeat: 3
            cycle: [{run: Peer ACK, guard: look}]
      - {background: Q6 Q0, handlers: 5}
`), "p")
	if err != nil {
		t.Fatal(err)
	}
	got := p.Cards[0].String()
	part := "Free buffer: known\n" + strings.Repeat("Peer ACK: look\n", 3)
	if want := part + part + "background Q6 Q0, at most 5 handlers\n"; got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	var b strings.Builder
	if err := p.WriteYAML(&b); err != nil {
		t.Fatal(err)
	}
	again, err := Parse([]byte(b.String()), "p")
	if err != nil || again.Cards[0].String() != got {
		t.Errorf("written and read again: %v\n%s", err, b.String())
	}
}

// FuzzParse: no text makes it panic, and what it accepts is written and read
// back as the same; its check ends as well.
func FuzzParse(f *testing.F) {
	f.Add([]byte(ingress))
	f.Add([]byte("cards:\n  - cards: [0]\n    cycle: [{background: 0 1, handlers: 3}, {repeat: 2, cycle: [{run: Peer ACK, guard: wait 3 polls}]}]\n"))
	f.Add([]byte("name: \"\\x00\"\ncards: [{cards: [3], sources: [1], cycle: [{run: To host, guard: wait}]}]"))
	m, flows := machine(), spread(64)
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := Parse(text, "f")
		if err != nil {
			return
		}
		var b strings.Builder
		if err := p.WriteYAML(&b); err != nil {
			t.Fatal(err)
		}
		again, err := Parse([]byte(b.String()), "f")
		if err != nil {
			t.Fatalf("%v in\n%s", err, b.String())
		}
		for i := range p.Cards {
			if p.Cards[i].String() != again.Cards[i].String() {
				t.Fatalf("card %d: %s\nthen %s", i, p.Cards[i].String(), again.Cards[i].String())
			}
		}
		_ = Check(p, m, flows)
	})
}

func ExampleCheck() {
	p, err := Parse([]byte(`
cards:
  - cards: [0, 1]
    cycle:
      - {run: Rx check header, guard: wait}
      - {background: Q0 Q1 Q2 Q3 Q6, handlers: 8}
`), "mine.yaml")
	if err != nil {
		fmt.Println(err)
		return
	}
	m := machine()
	m.Cards = 2
	err = Check(p, m, []Flow{{Ingress: 0, Egress: 1, Bytes: 1500, Weight: 1}})
	fmt.Println(errors.Is(err, ErrAckStarvation))
	fmt.Println(err)
	// Output:
	// true
	// mine.yaml:5: card 0, step 1 (Rx check header: wait): ACKs starve: it waits without bound for a packet from outside; while none comes, nothing else on the card runs, want look or wait N polls
}

func ExampleSynthesise() {
	// The router of the thesis, whose packets all go the same way.
	r, err := Synthesise(machine(), []Flow{{Ingress: 0, Egress: 1, Bytes: 1500, Weight: 1}}, Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("set by the", r.Binding)
	fmt.Println("proved optimal:", r.Optimal)
	fmt.Println("above the lower bound:", r.IntervalUS >= r.LowerUS)
	// Output:
	// set by the DMA engine of card 0
	// proved optimal: true
	// above the lower bound: true
}
