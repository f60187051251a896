package cmd

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"spinesim/sim"
	"spinesim/traces"
)

// TestStoppedCard: a run in which a card has stopped is a failed run, of which
// everything is told; its record is one like others.
func TestStoppedCard(t *testing.T) {
	t.Chdir(t.TempDir())
	sc, err := sim.Load("fig6.4", "traffic.packets=200", "firmware.execution=handlers")
	if err != nil {
		t.Fatal(err)
	}
	late := &lateSinks{}
	s, err := sim.New(sc, sim.Options{Check: true, Sinks: []traces.Sink{late}})
	if err != nil {
		t.Fatal(err)
	}
	w, err := traces.CreateWriter("x.rec", s.Meta())
	if err != nil {
		t.Fatal(err)
	}
	late.writers = []traces.Writer{w}
	fw := s.Router().Card(3).Firmware()
	at, err := fw.Image.Symbol("spine_wire_output_start")
	if err != nil {
		t.Fatal(err)
	}
	if err := fw.SRAM.SetWord(at, 0xD0000007); err != nil {
		t.Fatal(err)
	}
	r, err := s.Run(t.Context())
	var cards *sim.StoppedError
	if r == nil || !errors.As(err, &cards) || status(err) != 1 || strings.Contains(err.Error(), "\n") {
		t.Fatalf("%v, status %d", err, status(err))
	}
	if err := late.close(); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := summarise(&out, r); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		", stranded: card stopped ", ", no buffer 16, no credit ",
		"\nstopped: card 3 at ", " in Wire output start, 4 packets stay on it: undefined opcode at pc 0x", ` (spine_wire_output_start) in "<unknown>" 0xd0000007`,
		"\ncheck: every invariant held\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"trace", "check", "x.rec"}, "every invariant held in"},
		{[]string{"trace", "stats", "x.rec"}, "  stranded             "},
		{[]string{"trace", "dump", "x.rec", "--kind", "stop"}, `stop      Wire output start   | `},
		{[]string{"trace", "convert", "x.rec", "x.perfetto-trace"}, "x.perfetto-trace: "},
		{[]string{"trace", "check", "x.perfetto-trace"}, "every invariant held in"},
		{[]string{"report", "x.rec", "-o", "x.html"}, "wrote x.html"},
	} {
		if code, out, stderr := spinesim(c.args...); code != 0 || !strings.Contains(out, c.want) {
			t.Errorf("%v: %d %s%s", c.args, code, stderr, out)
		}
	}
}
