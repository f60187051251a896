package pci_test

import (
	"context"
	"fmt"

	"spinesim/pci"
	"spinesim/sim/des"
	"spinesim/traces"
)

// card is a device with memory: a window for others and a DMA engine.
type card struct {
	base uint32
	sram [4096]byte
}

func (c *card) BusWrite(addr uint32, p []byte) { copy(c.sram[addr-c.base:], p) }
func (c *card) BusRead(addr uint32, p []byte)  { copy(p, c.sram[addr-c.base:]) }

func (c *card) BusStream(des.Time, bool, int32, int32) {}

func (c *card) TransferDone(now des.Time, t *pci.Transfer) error {
	fmt.Printf("done at %v: %v, %d bytes, %d clocks held\n", now, t.Status, t.Moved, t.Held)
	return nil
}

// steps prints the clocks of each transaction.
type steps struct{}

func (steps) Burst(b *pci.Burst) {
	fmt.Printf("clock %3d: arbitration %d, address 1, wait %d, %d data phases in %d, idle 1 (%v)\n",
		b.Wanted, b.Address-b.Wanted, b.Data-b.Address-1, b.Phases, b.Last-b.Data+1, b.End)
}

// A packet moves from one card's memory into another's, in bursts of 64 bytes.
func Example() {
	spec := pci.DefaultSpec()
	spec.BurstBytes = 64
	engine := des.New(des.Options{})
	bus, err := pci.New(spec, engine, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	bus.Watch(steps{})

	from, to := &card{base: 0xE0000000}, &card{base: 0xE0200000}
	dma, err := bus.AttachMaster("card 0", 0, from)
	if err != nil {
		fmt.Println(err)
		return
	}
	for i, c := range []*card{from, to} {
		if err := bus.AttachTarget(fmt.Sprint("card ", i), uint8(i), c.base, 4096, pci.CardTarget(), c); err != nil {
			fmt.Println(err)
			return
		}
	}

	copy(from.sram[:], "a packet")
	t := pci.Transfer{Cmd: pci.MemWrite, Addr: to.base + 0x100, Bytes: 150, Data: from.sram[:150], Event: traces.TransferBody, Peer: 1}
	if err := dma.Start(&t); err != nil {
		fmt.Println(err)
		return
	}
	if err := engine.Run(context.Background()); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("the other card holds %q\n", to.sram[0x100:0x108])
	u := bus.Usage()
	fmt.Printf("of %d clocks: %d data, %d wait, %d overhead, %d idle\n", u.Elapsed, u.Total.Data, u.Total.Wait, u.Total.Overhead, u.Idle)

	// Output:
	// clock   0: arbitration 2, address 1, wait 0, 16 data phases in 48, idle 1 (burst length)
	// clock  52: arbitration 0, address 1, wait 0, 16 data phases in 48, idle 1 (burst length)
	// clock 102: arbitration 0, address 1, wait 0, 6 data phases in 18, idle 1 (done)
	// done at 3.63 µs: ok, 150 bytes, 120 clocks held
	// the other card holds "a packet"
	// of 121 clocks: 38 data, 76 wait, 5 overhead, 2 idle
}

// A bus that contradicts itself is refused with the field and the reason.
func ExampleSpec_Validate() {
	spec := pci.DefaultSpec()
	spec.LatencyTimer = 4
	fmt.Println(spec.Validate())

	// Output:
	// pci: LatencyTimer: 4 clocks; a 32-byte burst takes 9, and at most 1048576 are allowed
}

// The host reads a card's memory word by word.
func ExampleHostBridge_Load() {
	engine := des.New(des.Options{})
	bus, err := pci.New(pci.DefaultSpec(), engine, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	host, err := pci.NewHostBridge(bus, 0, 64<<20)
	if err != nil {
		fmt.Println(err)
		return
	}
	c := &card{base: 0xE0000000}
	if err := bus.AttachTarget("card 0", 0, c.base, 4096, pci.CardTarget(), c); err != nil {
		fmt.Println(err)
		return
	}
	c.sram[0x10] = 42
	err = host.Load(c.base+0x10, func(now des.Time, v uint32, s pci.Status) error {
		fmt.Printf("%v: %d at %v\n", s, v, now)
		return nil
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := engine.Run(context.Background()); err != nil {
		fmt.Println(err)
	}

	// Output:
	// ok: 42 at 450 ns
}
