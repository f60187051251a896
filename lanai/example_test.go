package lanai_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"spinesim/lanai"
	"spinesim/pci"
	"spinesim/sim/des"
	"spinesim/traces"
)

// Firmware for the example: card 0 takes a packet from the wire, header first,
// and moves it over the bus into card 1's SRAM, the header last; card 1 sends
// it. What would be the run-time's handlers are boxes of fixed demand here.
type forwarding struct {
	in, out *lanai.Card
	fifo    []*lanai.Frame
	then    func() error // when the present box has ended
	began   int64
	step    string
}

func (f *forwarding) box(step string, d lanai.Demand, then func() error) error {
	f.step, f.then = step, then
	return f.in.CPU.Run(d)
}

func (f *forwarding) report(what string, now des.Time) {
	c := f.in.CycleAt(now)
	fmt.Printf("%-24s %4d clocks, to clock %4d\n", what, c-f.began, c)
	f.began = c
}

func (f *forwarding) BoxEnd(now des.Time) error {
	f.report(f.step, now)
	return f.then()
}

func (f *forwarding) PollsEnd(des.Time) error { return nil }

func (f *forwarding) Head() *lanai.Frame {
	if len(f.fifo) == 0 {
		return nil
	}
	return f.fifo[0]
}

func (f *forwarding) Pop(des.Time) error {
	f.fifo = f.fifo[1:]
	return nil
}

func (f *forwarding) Received(now des.Time, _ *lanai.Frame, _ uint32, n int, ev lanai.ReceiveEvent) error {
	f.report(fmt.Sprintf("receive %d bytes", n), now)
	if ev == lanai.LimitReached {
		return f.box("check header", lanai.Demand{Cycles: 90, Accesses: 20}, func() error {
			return f.in.Rx.Arm(0x1020, 1536)
		})
	}
	return f.box("look up and start DMA", lanai.Demand{Cycles: 232, Accesses: 50}, func() error {
		return f.in.DMA.Start(lanai.DMAOp{
			EAR: f.out.BusAddr(0x8020), LAR: 0x1020, Bytes: 1468, Carry: 8, Event: traces.TransferBody, Peer: 1,
		})
	})
}

func (f *forwarding) DMADone(now des.Time, st pci.Status, t *pci.Transfer) error {
	f.report(fmt.Sprintf("transfer %d bytes, %v", t.Bytes, st), now)
	if t.Bytes == 32 {
		return nil
	}
	return f.in.DMA.Start(lanai.DMAOp{
		EAR: f.out.BusAddr(0x8000), LAR: 0x1000, Bytes: 32, Carry: 32, Event: traces.TransferHeader, Peer: 1,
	})
}

// Written is told by card 1's window that the header has come.
func (f *forwarding) Written(des.Time, uint32, int) error {
	return f.out.Tx.Send(&lanai.Frame{ID: 1, Data: make([]byte, 40)}, 0x8000, 1500)
}

func (f *forwarding) Sent(now des.Time, p *lanai.Frame) error {
	f.report(fmt.Sprintf("send %d bytes", p.Bytes), now)
	fmt.Printf("on the wire: %s\n", p.Data)
	return nil
}

// A packet moves from the wire through one card's SRAM, over the bus into
// another's, and out again.
func Example() {
	engine := des.New(des.Options{})
	bus, err := pci.New(pci.DefaultSpec(), engine, nil)
	if err != nil {
		log.Fatal(err)
	}
	f := &forwarding{}
	for i, c := range []**lanai.Card{&f.in, &f.out} {
		if *c, err = lanai.New(lanai.Lanai4(), uint8(i), 0, engine, bus, nil); err != nil {
			log.Fatal(err)
		}
	}
	f.in.CPU.Bind(f)
	f.in.Rx.Bind(f, f)
	f.in.DMA.Bind(f)
	f.out.Tx.Bind(f)
	if err := f.out.Watch(0x8000, 32, f); err != nil {
		log.Fatal(err)
	}

	f.fifo = append(f.fifo, &lanai.Frame{ID: 1, Bytes: 1500, Data: []byte("these forty bytes went through two cards")})
	if err := f.in.Rx.Arm(0x1000, 32); err != nil {
		log.Fatal(err)
	}
	if err := engine.Run(context.Background()); err != nil {
		log.Fatal(err)
	}
	// Output:
	// receive 32 bytes            6 clocks, to clock    6
	// check header               90 clocks, to clock   96
	// receive 1468 bytes        306 clocks, to clock  402
	// look up and start DMA     232 clocks, to clock  634
	// transfer 1468 bytes, ok  1104 clocks, to clock 1738
	// transfer 32 bytes, ok      27 clocks, to clock 1765
	// send 1500 bytes           312 clocks, to clock 2077
	// on the wire: these forty bytes went through two cards
}

// The map of a card's memory.
func ExampleSRAM_WriteMap() {
	s := lanai.NewSRAM(64 << 10)
	for _, b := range []struct {
		owner    string
		n, align uint32
	}{{"route table", 15_700, 4}, {"packet buffers", 16 * 2048, 2048}, {"queues", 1024, 32}} {
		if _, err := s.Alloc(b.owner, b.n, b.align); err != nil {
			log.Fatal(err)
		}
	}
	if err := s.WriteMap(os.Stdout); err != nil {
		log.Fatal(err)
	}
	_, err := s.Alloc("second table", 15_700, 4)
	fmt.Println(err)
	// Output:
	//       from         to      bytes  holder
	// 0x00000000 0x00003d53      15700  route table
	// 0x00003d54 0x00003fff        684  (free)
	// 0x00004000 0x0000bfff      32768  packet buffers
	// 0x0000c000 0x0000c3ff       1024  queues
	// 0x0000c400 0x0000ffff      15360  (free)
	// 16044 of 65536 bytes left
	// lanai: 15700 bytes for "second table" (aligned to 4): does not fit in the SRAM: 16044 of 65536 bytes are free, the largest piece has 15360
}

// Two handlers and the polls between, with the send engine at work.
func ExampleProcessor() {
	engine := des.New(des.Options{})
	bus, err := pci.New(pci.DefaultSpec(), engine, nil)
	if err != nil {
		log.Fatal(err)
	}
	card, err := lanai.New(lanai.Lanai4(), 0, 0, engine, bus, nil)
	if err != nil {
		log.Fatal(err)
	}
	card.CPU.Bind(&twoHandlers{card: card})
	if err := card.Tx.Send(&lanai.Frame{ID: 1}, 0, 600); err != nil {
		log.Fatal(err)
	}
	if err := card.CPU.Run(lanai.Demand{Cycles: 90, Accesses: 30}); err != nil {
		log.Fatal(err)
	}
	if err := engine.Run(context.Background()); err != nil {
		log.Fatal(err)
	}
	// Output:
	// handler 1 ended at clock 135, 45 lost to the send engine
	// 7 polls ended at clock 219, 0 lost
	// handler 2 ended at clock 285, 0 lost to the send engine
}

type twoHandlers struct {
	card *lanai.Card
	n    int
}

func (h *twoHandlers) BoxEnd(now des.Time) error {
	h.n++
	fmt.Printf("handler %d ended at clock %d, %d lost to the send engine\n", h.n, h.card.CycleAt(now), h.card.CPU.Stall())
	if h.n == 2 {
		return nil
	}
	return h.card.CPU.Poll(lanai.Demand{Cycles: 12, Accesses: 2}, 7)
}

func (h *twoHandlers) PollsEnd(now des.Time) error {
	fmt.Printf("%d polls ended at clock %d, %d lost\n", h.card.CPU.PollsEnded(), h.card.CycleAt(now), h.card.CPU.Stall())
	return h.card.CPU.Run(lanai.Demand{Cycles: 66, Accesses: 20})
}
