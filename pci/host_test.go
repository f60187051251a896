package pci

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"spinesim/sim/des"
	"spinesim/traces"

	"github.com/google/go-cmp/cmp"
)

// ram is a card's memory behind a window and a master that moves it.
type ram struct {
	base uint32
	b    []byte
	m    *Master
	log  []string
	err  error
}

func (r *ram) BusWrite(addr uint32, p []byte) {
	r.log = append(r.log, fmt.Sprintf("write %d", len(p)))
	copy(r.b[addr-r.base:], p)
}
func (r *ram) BusRead(addr uint32, p []byte) {
	r.log = append(r.log, fmt.Sprintf("read %d", len(p)))
	copy(p, r.b[addr-r.base:])
}
func (*ram) BusStream(des.Time, bool, int32, int32) {}
func (r *ram) TransferDone(_ des.Time, t *Transfer) error {
	r.log = append(r.log, fmt.Sprintf("%v %d of %d", t.Status, t.Moved, t.Bytes))
	return r.err
}

func newRAM(t testing.TB, b *Bus, card uint8, size uint32, spec TargetSpec) *ram {
	t.Helper()
	r := &ram{base: 0xE0000000 + uint32(card)<<21, b: make([]byte, size)}
	var err error
	if r.m, err = b.AttachMaster(fmt.Sprint("card ", card), card, r); err != nil {
		t.Fatal(err)
	}
	if err := b.AttachTarget(fmt.Sprint("card ", card), card, r.base, size, spec, r); err != nil {
		t.Fatal(err)
	}
	return r
}

func newHost(t testing.TB) (*des.Engine, *Bus, *HostBridge, *ram) {
	t.Helper()
	e, b := newBus(t, DefaultSpec())
	h, err := NewHostBridge(b, 0, 64<<20)
	if err != nil {
		t.Fatal(err)
	}
	return e, b, h, newRAM(t, b, 0, 1<<21, CardTarget())
}

func TestProgrammedIO(t *testing.T) {
	e, b, h, card := newHost(t)
	var got []string
	var load PIODone = func(now des.Time, v uint32, s Status) error {
		got = append(got, fmt.Sprintf("load %08x %v at clock %d", v, s, b.ClockAt(now)))
		return nil
	}
	store := func(now des.Time, v uint32, s Status) error {
		got = append(got, fmt.Sprintf("store %08x %v at clock %d", v, s, b.ClockAt(now)))
		if v == 0x01020304 {
			return h.Load(card.base+4, load) // behind what waits already
		}
		return nil
	}
	for _, err := range []error{
		h.Store(card.base+4, 0x01020304, store),
		h.Load(card.base+8, load),
		h.Load(0xD0000000, load),
		h.Store(card.base+8, 5, nil),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if h.Pending() != 4 {
		t.Errorf("%d pending", h.Pending())
	}
	run(t, e, des.Millisecond)
	// A write holds the bus 5 clocks, a read 14, an abort 7. The next REQ# is
	// seen in the idle clock and granted 2 clocks later.
	want := []string{
		"store 01020304 ok at clock 6",
		"load 00000000 ok at clock 21",
		"load 00000000 master abort at clock 29",
		"load 01020304 ok at clock 50",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if w := card.b[4:12]; !bytes.Equal(w, []byte{4, 3, 2, 1, 5, 0, 0, 0}) {
		t.Errorf("card holds % x", w)
	}
	if h.Load(2, nil) == nil || h.Store(3, 0, nil) == nil {
		t.Error("an unaligned programmed access was taken")
	}
}

func TestProgrammedIOAllocatesNothing(t *testing.T) {
	e, b := newBus(t, DefaultSpec())
	h, err := NewHostBridge(b, 0, 64<<20)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.AttachTarget("card", 0, 0xE0000000, 1<<21, CardTarget(), &mover{}); err != nil {
		t.Fatal(err)
	}
	n := 0
	var done PIODone
	done = func(_ des.Time, v uint32, s Status) error {
		n++
		if n%2 == 0 {
			return h.Load(0xE0000000, done)
		}
		return h.Store(0xE0000000, v+1, done)
	}
	for range 3 {
		if err := h.Load(0xE0000000, done); err != nil {
			t.Fatal(err)
		}
	}
	run(t, e, des.Millisecond)
	n = 0
	if a := testing.AllocsPerRun(20, func() { run(t, e, 100*des.Microsecond) }); a != 0 {
		t.Errorf("%v allocations", a)
	}
	if n < 1000 {
		t.Errorf("only %d accesses", n)
	}
}

type hostClient struct{ got []string }

func (c *hostClient) HostTransferDone(now des.Time, t *Transfer) error {
	c.got = append(c.got, fmt.Sprintf("%v %v %d of %d", t.Cmd, t.Status, t.Moved, t.Bytes))
	return nil
}

func TestHostTransfers(t *testing.T) {
	e, _, h, card := newHost(t)
	var c hostClient
	packet := make([]byte, 1500)
	for i := range packet {
		packet[i] = byte(i * 7)
	}
	back := make([]byte, 1500)
	trs := []*Transfer{
		{Cmd: MemWrite, Addr: card.base + 0x100003, Bytes: 1500, Data: packet, Event: traces.TransferFromHost},
		{Cmd: MemReadMultiple, Addr: card.base + 0x100003, Bytes: 1500, Data: back, Event: traces.TransferToHost},
		{Cmd: MemRead, Addr: 0xD0000000, Bytes: 4},
	}
	for range 20 { // more than the queue begins with
		trs = append(trs, &Transfer{Addr: card.base, Bytes: 4})
	}
	for _, tr := range trs {
		if err := h.Transfer(tr, &c); err != nil {
			t.Fatal(err)
		}
	}
	if err := h.Transfer(nil, &c); err == nil {
		t.Error("no transfer was taken")
	}
	if err := h.Transfer(&Transfer{}, &c); err == nil {
		t.Error("an empty transfer was queued")
	}
	run(t, e, des.Second)
	if h.Pending() != 0 {
		t.Errorf("%d pending", h.Pending())
	}
	want := []string{"memory write ok 1500 of 1500", "memory read multiple ok 1500 of 1500", "memory read master abort 0 of 4"}
	for range 20 {
		want = append(want, "memory write ok 4 of 4")
	}
	if d := cmp.Diff(want, c.got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if !bytes.Equal(packet, back) || !bytes.Equal(packet, card.b[0x100003:][:1500]) {
		t.Error("the packet did not come back as it went")
	}
}

func TestHostMemory(t *testing.T) {
	e, b := newBus(t, DefaultSpec())
	h, err := NewHostBridgeSpec(b, 0x1000, 4<<20, TargetSpec{Populated: 0x3000})
	if err != nil {
		t.Fatal(err)
	}
	m := h.Memory()
	if m.Base() != 0x1000 || m.Size() != 0x3000 || m.Resident() != 0 {
		t.Errorf("%#x bytes from %#x, %d resident", m.Size(), m.Base(), m.Resident())
	}
	p := []byte{1, 2, 3, 4}
	if err := m.Write(0x1FFE, p); err != nil {
		t.Fatal(err)
	}
	if m.Resident() != 2*pageBytes {
		t.Errorf("%d bytes resident", m.Resident())
	}
	q := []byte{9, 9, 9, 9, 9, 9}
	if err := m.Read(0x1FFD, q); err != nil || !bytes.Equal(q, []byte{0, 1, 2, 3, 4, 0}) {
		t.Errorf("% x, %v", q, err)
	}
	if err := m.Read(0x3000, q); err != nil || !bytes.Equal(q, make([]byte, 6)) {
		t.Errorf("an untouched page reads % x, %v", q, err)
	}
	for _, at := range []uint32{0, 0xFFF, 0x3FFD, 0x4000, 0xFFFFFFFF} {
		if err := m.Write(at, p); !errors.Is(err, ErrBounds) {
			t.Errorf("write at %#x: %v", at, err)
		}
		if err := m.Read(at, p); !errors.Is(err, ErrBounds) {
			t.Errorf("read at %#x: %v", at, err)
		}
	}

	// A card's DMA stops where there is no memory.
	card := newRAM(t, b, 0, 1<<21, CardTarget())
	tr := Transfer{Addr: 0x3FF0, Bytes: 32, Data: bytes.Repeat([]byte{0xAA}, 32)}
	if err := card.m.Start(&tr); err != nil {
		t.Fatal(err)
	}
	run(t, e, des.Millisecond)
	if d := cmp.Diff([]string{"target abort 16 of 32"}, card.log); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if err := m.Read(0x3FF0, q); err != nil || q[5] != 0xAA {
		t.Errorf("what moved before the abort is % x, %v", q, err)
	}
}

// TestDeviceErrorStopsTheRun follows an error of a device out of the engine.
func TestDeviceErrorStopsTheRun(t *testing.T) {
	e, b := newBus(t, DefaultSpec())
	card := newRAM(t, b, 0, 1<<21, CardTarget())
	card.err = errors.New("firmware is confused")
	if err := card.m.Start(&Transfer{Addr: card.base, Bytes: 4}); err != nil {
		t.Fatal(err)
	}
	err := e.Run(t.Context())
	if !errors.Is(err, card.err) {
		t.Errorf("got %v", err)
	}
}
