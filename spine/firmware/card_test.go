package firmware_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"testing"

	"spinesim/lanai"
	"spinesim/pci"
	"spinesim/router"
	"spinesim/router/lctrie"
	"spinesim/sim/des"
	"spinesim/spine/firmware"
)

// wire feeds a card with packets as fast as it takes them.
type wire struct {
	frames []*lanai.Frame
	popped int
}

func (w *wire) Head() *lanai.Frame {
	if len(w.frames) == 0 {
		return nil
	}
	return w.frames[0]
}

func (w *wire) Pop(des.Time) error {
	w.frames = w.frames[1:]
	w.popped++
	return nil
}

func (w *wire) Received(des.Time, *lanai.Frame, uint32, int, lanai.ReceiveEvent) error { return nil }

// sink takes what a card sends, as its memory has it when the engine is done.
type sink struct {
	card *lanai.Card
	sent []uint32 // start addresses
	data [][]byte
}

func (s *sink) Sent(_ des.Time, f *lanai.Frame) error {
	at := s.card.Regs.Read(lanai.RegSMP)
	b, err := s.card.SRAM.Slice(at, 64)
	if err != nil {
		return err
	}
	s.sent = append(s.sent, at)
	s.data = append(s.data, bytes.Clone(b))
	return nil
}

// fourCards is a router of four cards that run the whole firmware in C; n
// packets wait at card 0.
func fourCards(t testing.TB, n int) (*des.Engine, []*firmware.Card, *wire, []*sink, []*lanai.Frame) {
	t.Helper()
	e := des.New(des.Options{})
	spec := lanai.Lanai4()
	bus, err := pci.New(spec.Bus, e, nil)
	if err != nil {
		t.Fatal(err)
	}
	tab, routes := table(t, lctrie.Options{}, 1, 2, 3)
	in := inputs(tab, router.DefaultIPv4())
	var cards []*firmware.Card
	var sinks []*sink
	w := &wire{}
	for i := range uint8(4) {
		c, err := lanai.New(spec, i, des.Time(i)*7001, e, bus, nil)
		if err != nil {
			t.Fatal(err)
		}
		up := w
		if i > 0 {
			up = &wire{}
		}
		s := &sink{card: c}
		c.Rx.Bind(up, up)
		c.Tx.Bind(s)
		sinks = append(sinks, s)
		fc, err := firmware.NewCard(c, in)
		if err != nil {
			t.Fatal(err)
		}
		cards = append(cards, fc)
	}
	if _, err := pci.NewHostBridge(bus, 0, 1<<20); err != nil {
		t.Fatal(err)
	}
	ps := packets(t, routes)
	for i := range n {
		p := ps[i%len(ps)]
		data := make([]byte, p.Bytes)
		copy(data, p.Header)
		binary.BigEndian.PutUint32(data[24:], uint32(i)) // behind the header
		f := &lanai.Frame{ID: uint64(i + 1), Bytes: p.Bytes, Data: data}
		w.frames = append(w.frames, f)
	}
	all := w.frames
	if err := firmware.Connect(cards...); err != nil {
		t.Fatal(err)
	}
	for _, c := range cards {
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
	}
	return e, cards, w, sinks, all
}

// TestWholeFirmware routes packets through four cards on which nothing runs but
// the compiled dispatcher and handlers: every packet leaves once, by the right
// card, in order for each card, with TTL and checksum as the router has them.
func TestWholeFirmware(t *testing.T) {
	const n = 200
	e, cards, w, sinks, frames := fourCards(t, n)
	if err := e.RunUntil(context.Background(), 60*des.Millisecond); err != nil {
		t.Fatal(err)
	}
	if w.popped != n {
		t.Fatalf("%d of %d packets received", w.popped, n)
	}
	seen := make([]int, n)
	total := 0
	for i, s := range sinks {
		last := -1
		for _, d := range s.data {
			total++
			k := int(binary.BigEndian.Uint32(d[24:]))
			if k >= n || k <= last {
				t.Fatalf("card %d sends packet %d after %d", i, k, last)
			}
			last = k
			seen[k]++
			if d[8] != 63 || router.Checksum(d[:20]) != 0 {
				t.Errorf("packet %d: TTL %d, checksum %#x", k, d[8], router.Checksum(d[:20]))
			}
			if !bytes.Equal(d[12:20], frames[k].Data[12:20]) {
				t.Errorf("packet %d: addresses % x, want % x", k, d[12:20], frames[k].Data[12:20])
			}
		}
	}
	if total != n || len(sinks[0].data) != 0 {
		t.Errorf("%d of %d packets sent, %d by the card that received them", total, n, len(sinks[0].data))
	}
	for k, c := range seen {
		if c != 1 {
			t.Errorf("packet %d left %d times", k, c)
		}
	}
	for i, c := range cards {
		if x := c.CPU.Counters(); x.Instructions == 0 || x.Waits > x.Instructions {
			t.Errorf("card %d: %+v", i, x)
		}
	}
}

func BenchmarkWholeFirmware(b *testing.B) {
	e, cards, w, _, frames := fourCards(b, 1000)
	b.ResetTimer()
	start := w.popped
	at := e.Now()
	for range b.N {
		if len(w.frames) < 100 {
			w.frames = append(w.frames, frames...)
		}
		if err := e.RunUntil(context.Background(), e.Now()+des.Millisecond); err != nil {
			b.Fatal(err)
		}
	}
	var n, skipped int64
	for _, c := range cards {
		n += c.CPU.Counters().Instructions
		skipped += c.CPU.Counters().Skipped
	}
	b.ReportMetric(float64(w.popped-start)/b.Elapsed().Seconds(), "packets/s")
	b.ReportMetric(float64(n)/b.Elapsed().Seconds()/1e6, "Minstr/s")
	b.ReportMetric(float64(skipped)/float64(n), "skipped")
	b.ReportMetric(float64((e.Now()-at)/des.Nanosecond)/float64(w.popped-start)/1000, "µs/packet")
}
