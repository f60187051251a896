package lanai

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"spinesim/pci"
	"spinesim/sim/des"
	"spinesim/traces"
)

// rig is a card with its host, and a log of what its engines told.
type rig struct {
	t    *testing.T
	e    *des.Engine
	bus  *pci.Bus
	host *pci.HostBridge
	card *Card
	rec  *traces.Recorder

	fifo    []*Frame
	log     []string
	records []traces.Record

	// Called after the log line, when set.
	received func(f *Frame, ev ReceiveEvent) error
	sent     func(f *Frame) error
	done     func() error
	boxEnd   func() error
	pollsEnd func() error
}

func newRig(t *testing.T, spec Spec) *rig {
	t.Helper()
	r := &rig{t: t, e: des.New(des.Options{})}
	r.rec = traces.NewRecorder(r)
	var err error
	if r.bus, err = pci.New(spec.Bus, r.e, r.rec); err != nil {
		t.Fatal(err)
	}
	if r.card, err = New(spec, 0, 0, r.e, r.bus, r.rec); err != nil {
		t.Fatal(err)
	}
	if r.host, err = pci.NewHostBridge(r.bus, 0x1000, 1<<20); err != nil {
		t.Fatal(err)
	}
	r.card.Rx.Bind(r, r)
	r.card.Tx.Bind(r)
	r.card.DMA.Bind(r)
	r.card.CPU.Bind(r)
	return r
}

func (r *rig) Record(rec *traces.Record) error {
	r.records = append(r.records, *rec)
	return nil
}

func (r *rig) say(format string, a ...any) {
	r.log = append(r.log, fmt.Sprintf("%d: ", r.card.CycleAt(r.e.Now()))+fmt.Sprintf(format, a...))
}

func (r *rig) Head() *Frame {
	if len(r.fifo) == 0 {
		return nil
	}
	return r.fifo[0]
}

func (r *rig) Pop(des.Time) error {
	r.fifo = r.fifo[1:]
	return nil
}

// put brings frames to the FIFO.
func (r *rig) put(f ...*Frame) {
	r.t.Helper()
	empty := len(r.fifo) == 0
	r.fifo = append(r.fifo, f...)
	if empty {
		if err := r.card.Rx.Wake(r.e.Now()); err != nil {
			r.t.Fatal(err)
		}
	}
}

func (r *rig) Received(_ des.Time, f *Frame, addr uint32, n int, ev ReceiveEvent) error {
	crc := ""
	if f.BadCRC {
		crc = ", bad CRC"
	}
	r.say("received %d bytes of %d at %#x, %v%s", n, f.ID, addr, ev, crc)
	if r.received != nil {
		return r.received(f, ev)
	}
	return nil
}

func (r *rig) Discarded(_ des.Time, f *Frame) error {
	r.say("discarded %d", f.ID)
	return nil
}

func (r *rig) Sent(_ des.Time, f *Frame) error {
	r.say("sent %d of %d bytes", f.ID, f.Bytes)
	if r.sent != nil {
		return r.sent(f)
	}
	return nil
}

func (r *rig) DMADone(_ des.Time, st pci.Status, _ *pci.Transfer) error {
	r.say("DMA %s", StatusName(st))
	if r.done != nil {
		return r.done()
	}
	return nil
}

func (r *rig) BoxEnd(des.Time) error {
	r.say("box ended")
	if r.boxEnd != nil {
		return r.boxEnd()
	}
	return nil
}

func (r *rig) PollsEnd(des.Time) error {
	r.say("%d polls ended", r.card.CPU.PollsEnded())
	if r.pollsEnd != nil {
		return r.pollsEnd()
	}
	return nil
}

// run runs up to the start of a cycle.
func (r *rig) run(cycle int64) {
	r.t.Helper()
	if err := r.e.RunUntil(context.Background(), r.card.TimeOf(cycle)); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) ok(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) wantLog(want ...string) {
	r.t.Helper()
	if diff := cmp.Diff(want, r.log); diff != "" {
		r.t.Errorf("log (-want +got):\n%s", diff)
	}
	r.log = nil
}

func pattern(n int, seed byte) []byte {
	p := make([]byte, n)
	for i := range p {
		p[i] = seed + byte(i*7)
	}
	return p
}

func TestReceiveSplit(t *testing.T) {
	r := newRig(t, Lanai4())
	f := &Frame{ID: 7, Bytes: 1500, Data: pattern(100, 3), Arrived: 5, Cause: 99}
	r.received = func(_ *Frame, ev ReceiveEvent) error {
		if ev == LimitReached {
			return r.card.Rx.Arm(0x2020, 2048)
		}
		return nil
	}
	r.ok(r.card.Rx.Arm(0x2000, 32))
	r.run(10)
	r.put(f)
	r.run(1000)
	// 8 words at 6/5 a cycle take 6 cycles, 367 take 306.
	r.wantLog("16: received 32 bytes of 7 at 0x2000, limit reached", "322: received 1468 bytes of 7 at 0x2020, packet end")
	if len(r.fifo) != 0 || r.card.Rx.Armed() || r.card.Rx.Receiving() != nil {
		t.Error("the frame has not left")
	}
	if !bytes.Equal(r.card.SRAM.View(0x2000, 100), f.Data) {
		t.Error("the bytes are not in SRAM")
	}
	if got := r.card.Regs.Read(RegISR); got != IntReceive|IntBuffer|IntTail|IntSendReady {
		t.Errorf("ISR %#x", got)
	}
	r.ok(r.rec.Close())
	want := []traces.Record{
		{Kind: traces.KindReceive, Event: traces.ReceiveHeader, ID: 1, Cause: 99, Packet: 7, Bytes: 32, Ready: 5, Start: 300_000, End: 480_000, Cycles: 6, Peer: traces.NoCard, Queue: traces.NoQueue},
		{Kind: traces.KindReceive, Event: traces.ReceiveBody, ID: 2, Cause: 1, Packet: 7, Bytes: 1468, Ready: 5, Start: 480_000, End: 9_660_000, Cycles: 306, Peer: traces.NoCard, Queue: traces.NoQueue},
	}
	if diff := cmp.Diff(want, r.records); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
	if f.Cause != 2 {
		t.Errorf("the frame's cause is %d", f.Cause)
	}
}

func TestReceiveEnds(t *testing.T) {
	for _, tt := range []struct {
		bytes, room int
		want        []string
	}{
		{32, 32, []string{"6: received 32 bytes of 1 at 0x100, packet end"}},
		{33, 32, []string{"6: received 32 bytes of 1 at 0x100, limit reached"}},
		{31, 32, []string{"6: received 31 bytes of 1 at 0x100, packet end"}},
		{1, 32, []string{"1: received 1 bytes of 1 at 0x100, packet end"}},
		{33, 29, []string{"6: received 32 bytes of 1 at 0x100, limit reached"}}, // the limit names a word
	} {
		r := newRig(t, Lanai4())
		r.put(&Frame{ID: 1, Bytes: tt.bytes})
		r.ok(r.card.Rx.Arm(0x100, tt.room))
		r.run(100)
		r.wantLog(tt.want...)
	}
}

func TestReceiveBackPressure(t *testing.T) {
	r := newRig(t, Lanai4())
	r.put(&Frame{ID: 1, Bytes: 64}, &Frame{ID: 2, Bytes: 64, BadCRC: true})
	r.run(500)
	r.wantLog() // nothing is posted, nothing is lost
	r.ok(r.card.Rx.Arm(0x100, 32))
	r.run(1000)
	r.ok(r.card.Rx.Arm(0x120, 64)) // half a frame has waited on the link
	r.run(1100)
	r.ok(r.card.Rx.Arm(0x100, 64))
	r.run(1200)
	r.wantLog("506: received 32 bytes of 1 at 0x100, limit reached",
		"1006: received 32 bytes of 1 at 0x120, packet end",
		"1113: received 64 bytes of 2 at 0x100, packet end, bad CRC")
}

func TestReceiveAndDiscard(t *testing.T) {
	spec := Lanai4()
	spec.NoBuffer = Discard
	r := newRig(t, spec)
	r.put(&Frame{ID: 1, Bytes: 600}, &Frame{ID: 2, Bytes: 600}, &Frame{ID: 3, Bytes: 600}, &Frame{ID: 4, Bytes: 40})
	r.run(130)
	r.ok(r.card.Rx.Arm(0x100, 32)) // too late for 2, in time for 3
	r.run(1000)
	// The rest of 3 waits: only whole frames are discarded. 600 bytes take 125
	// cycles.
	r.wantLog("125: discarded 1", "250: discarded 2", "256: received 32 bytes of 3 at 0x100, limit reached")
	r.received = func(f *Frame, _ ReceiveEvent) error {
		if f.ID == 3 {
			return r.card.Rx.Arm(0x100, 64)
		}
		return nil
	}
	r.ok(r.card.Rx.Arm(0x120, 600))
	r.run(2000)
	r.put(&Frame{ID: 5, Bytes: 40})
	r.run(3000)
	r.wantLog("1118: received 568 bytes of 3 at 0x120, packet end", "1126: received 40 bytes of 4 at 0x100, packet end", "2008: discarded 5")
	if r.card.Mem.Granted()[Receive] != 8+142+10 {
		t.Errorf("%d accesses for what was stored", r.card.Mem.Granted()[Receive])
	}
}

func TestReceivePointerIsLive(t *testing.T) {
	r := newRig(t, Lanai4())
	f := &Frame{ID: 1, Bytes: 101, Data: pattern(101, 9)}
	r.put(f)
	r.ok(r.card.Rx.Arm(0x400, 1000))
	for cycle := range int64(22) {
		r.run(cycle)
		n := min(26, ceilDiv(cycle*6, 5))
		if got := r.card.Regs.Read(RegRMP); got != 0x400+uint32(n)*4 {
			t.Fatalf("cycle %d: RMP %#x", cycle, got)
		}
		if k := min(int(n)*4, 101); !bytes.Equal(r.card.SRAM.View(0x400, k), f.Data[:k]) {
			t.Fatalf("cycle %d: bytes below RMP are not there", cycle)
		}
	}
	r.run(100)
	if got := r.card.Rx.Pointer(); got != 0x400+104 {
		t.Errorf("RMP stands at %#x", got)
	}
	// Between two edges it is where the cycle in progress takes it, whatever
	// else starts in that cycle.
	r.put(&Frame{ID: 2, Bytes: 100})
	r.ok(r.card.Rx.Arm(0x400, 1000))
	r.ok(r.e.RunUntil(context.Background(), r.card.TimeOf(110)-1))
	before := r.card.Rx.Pointer()
	r.ok(r.card.Tx.Send(&Frame{}, 0, 100))
	if got := r.card.Rx.Pointer(); got != before || before != 0x400+12*4 {
		t.Errorf("RMP %#x, and %#x after a stream began", before, got)
	}
}

func TestReceiveRefuses(t *testing.T) {
	r := newRig(t, Lanai4())
	for _, tt := range []struct {
		addr uint32
		n    int
		want error
	}{{2, 32, ErrUnaligned}, {0, 0, ErrOutside}, {0, -4, ErrOutside}, {1<<20 - 4, 8, ErrOutside}, {0, 32, nil}, {0, 32, ErrBusy}} {
		if err := r.card.Rx.Arm(tt.addr, tt.n); !errors.Is(err, tt.want) {
			t.Errorf("%#x, %d: %v", tt.addr, tt.n, err)
		}
	}
	r.fifo = []*Frame{{ID: 3}}
	if err := r.card.Rx.Wake(0); err == nil {
		t.Error("a frame of no bytes was taken")
	}
}

func TestSend(t *testing.T) {
	r := newRig(t, Lanai4())
	want := pattern(60, 1)
	copy(r.card.SRAM.View(0x300, 1500), want)
	f := &Frame{ID: 4, Data: make([]byte, 60), Cause: 5}
	r.ok(r.card.Tx.Send(f, 0x300, 1500))
	if !r.card.Tx.Busy() || r.card.Regs.Status()&IntSendReady != 0 {
		t.Error("not busy")
	}
	if err := r.card.Tx.Send(f, 0x300, 1500); !errors.Is(err, ErrBusy) {
		t.Errorf("second send: %v", err)
	}
	r.run(1000)
	r.wantLog("312: sent 4 of 1500 bytes")
	if !bytes.Equal(f.Data, want) || f.Bytes != 1500 {
		t.Errorf("frame %+v", f)
	}
	for _, tt := range []struct {
		addr uint32
		n    int
	}{{0, 0}, {1<<20 - 1, 2}, {0xFFFFFFFF, 1}} {
		if err := r.card.Tx.Send(&Frame{}, tt.addr, tt.n); !errors.Is(err, ErrOutside) {
			t.Errorf("%+v: %v", tt, err)
		}
	}
	if err := r.card.Tx.Send(f, 0, 59); err == nil {
		t.Error("sent a frame shorter than its bytes")
	}
	r.ok(r.rec.Close())
	rec := traces.Record{Kind: traces.KindSend, Event: traces.SendPacket, ID: 1, Cause: 5, Packet: 4, Bytes: 1500, End: 9_360_000, Cycles: 312, Peer: traces.NoCard, Queue: traces.NoQueue}
	if diff := cmp.Diff([]traces.Record{rec}, r.records); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
}

func TestSendByRegisters(t *testing.T) {
	r := newRig(t, Lanai4())
	copy(r.card.SRAM.View(0, 0x1000), pattern(0x1000, 2))
	w := func(reg, v uint32) { r.t.Helper(); r.ok(r.card.Store(RegisterBase+reg, v)) }
	var got []byte
	r.sent = func(f *Frame) error { got = bytes.Clone(f.Data); return nil }
	w(RegSMP, 0x100)
	w(RegSML, 0x10C) // 16 bytes, no tail
	r.run(50)
	r.wantLog()
	if r.card.Regs.Read(RegISR)&IntSend == 0 {
		t.Error("SEND_INT is not set after the first piece")
	}
	w(RegISR, IntSend)
	w(RegSMP, 0x202)
	w(RegSMLT, 0x204) // 6 bytes
	r.run(100)
	r.wantLog("51: sent 0 of 22 bytes")
	want := append(bytes.Clone(r.card.SRAM.View(0x100, 16)), r.card.SRAM.View(0x202, 6)...)
	if !bytes.Equal(got, want) {
		t.Errorf("sent % x, want % x", got, want)
	}
	if err := r.card.Store(RegisterBase+RegSMLT, 0x1F0); !errors.Is(err, ErrOutside) {
		t.Errorf("limit below start: %v", err)
	}
}

func TestReceiveByRegisters(t *testing.T) {
	r := newRig(t, Lanai4())
	r.put(&Frame{ID: 1, Bytes: 20})
	if r.card.Regs.Read(RegISR) != IntSendReady|IntByteReady {
		t.Errorf("ISR %#x", r.card.Regs.Read(RegISR))
	}
	r.ok(r.card.Store(RegisterBase+RegRMP, 0x80))
	r.ok(r.card.Store(RegisterBase+RegRML, 0x9C))
	r.run(100)
	r.wantLog("4: received 20 bytes of 1 at 0x80, packet end")
	if got := r.card.Regs.Read(RegRML); got != 0x9C {
		t.Errorf("RML %#x", got)
	}
}

func TestHostDMA(t *testing.T) {
	r := newRig(t, Lanai4())
	in := pattern(200, 5)
	r.ok(r.host.Memory().Write(0x3000, in))
	r.ok(r.card.DMA.Start(DMAOp{ToCard: true, EAR: 0x3000, LAR: 0x800, Bytes: 200, Carry: 200, Peer: traces.HostCard, Event: traces.TransferFromHost}))
	if err := r.card.DMA.Start(DMAOp{EAR: 0x3000, LAR: 0x800, Bytes: 4}); !errors.Is(err, ErrBusy) {
		t.Errorf("second DMA: %v", err)
	}
	if r.card.Regs.Read(RegDMASTS) != DMARunning || r.card.Regs.Read(RegDMACTR) != 200 {
		t.Error("the registers do not show a running DMA")
	}
	r.done = func() error {
		r.done = nil
		r.card.SRAM.View(0x800, 1)[0] = 0xEE
		return r.card.DMA.Start(DMAOp{EAR: 0x5000, LAR: 0x800, Bytes: 200, Carry: 32})
	}
	r.run(1000)
	if len(r.log) != 2 {
		t.Fatalf("log %q", r.log)
	}
	if !bytes.Equal(r.card.SRAM.View(0x801, 199), in[1:]) {
		t.Error("not in SRAM")
	}
	out := make([]byte, 200)
	r.ok(r.host.Memory().Read(0x5000, out))
	want := make([]byte, 200)
	copy(want, in[:32])
	want[0] = 0xEE
	if !bytes.Equal(out, want) {
		t.Errorf("host memory holds % x", out)
	}
	regs := r.card.Regs
	if regs.Read(RegISR)&IntDMA == 0 || regs.Read(RegDMACTR) != 0 || regs.Read(RegDMASTS) != 0 || regs.Read(RegDMADIR) != 0 || regs.Read(RegEAR) != 0x5000 || regs.Read(RegLAR) != 0x800 {
		t.Error("the registers do not show a finished DMA")
	}
	// 50 words each way went through the E-bus, one a clock (the counts of a
	// burst are rounded up).
	if n := r.card.Mem.Granted()[EBus]; n < 100 || n > 110 {
		t.Errorf("%d E-bus accesses", n)
	}
}

func TestHostDMAOutcomes(t *testing.T) {
	for _, tt := range []struct {
		what string
		op   DMAOp
		want string
		sts  uint32
	}{
		{"unaligned EAR", DMAOp{EAR: 0x2002, LAR: 0, Bytes: 4}, "2: DMA address not aligned to 4", DMAErrAddress},
		{"unaligned LAR", DMAOp{EAR: 0x2000, LAR: 3, Bytes: 4}, "2: DMA address not aligned to 4", DMAErrAddress},
		{"outside SRAM", DMAOp{EAR: 0x2000, LAR: 1<<20 - 4, Bytes: 8, Carry: 8}, "2: DMA outside the SRAM", DMAErrAddress},
		{"no bytes", DMAOp{EAR: 0x2000, LAR: 0}, "2: DMA outside the SRAM", DMAErrAddress},
		{"beyond 4 GB", DMAOp{EAR: 0xFFFFFFFC, LAR: 0, Bytes: 8}, "2: DMA beyond 4 GB", DMAErrAddress},
		{"nobody there", DMAOp{EAR: 0x9000_0000, LAR: 0, Bytes: 8}, "DMA master abort", DMAErrMaster},
	} {
		t.Run(tt.what, func(t *testing.T) {
			r := newRig(t, Lanai4())
			r.run(1)
			r.ok(r.card.DMA.Start(tt.op))
			if !r.card.DMA.Busy() {
				t.Error("not busy")
			}
			r.run(1000)
			if len(r.log) != 1 || !bytes.HasSuffix([]byte(r.log[0]), []byte(tt.want)) {
				t.Errorf("log %q, want %q", r.log, tt.want)
			}
			if got := r.card.Regs.Read(RegDMASTS); got != tt.sts {
				t.Errorf("DMA_STS %#x, want %#x", got, tt.sts)
			}
			if r.card.DMA.Busy() || r.card.Regs.Read(RegISR)&IntDMA == 0 {
				t.Error("the firmware does not see the end")
			}
		})
	}
	r := newRig(t, Lanai4())
	if err := r.card.DMA.Start(DMAOp{EAR: 0x2000, Bytes: 4, Carry: 5}); err == nil {
		t.Error("carried more than the length")
	}
}

// checksum is the Internet checksum's sum, the obvious way.
func checksum(sum uint32, p []byte) uint32 {
	for i, b := range p {
		if i%2 == 0 {
			sum += uint32(b) << 8
		} else {
			sum += uint32(b)
		}
		if sum > 0xFFFF {
			sum -= 0xFFFF
		}
	}
	return sum
}

func TestChecksum(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 2000 {
		p := make([]byte, r.IntN(100))
		for i := range p {
			p[i] = byte(r.Uint32()) | byte(r.IntN(2)*255)
		}
		from := r.Uint32N(0x10000)
		got, want := addChecksum(from, p), checksum(from, p)
		if got != want && !(got%0xFFFF == 0 && want%0xFFFF == 0) {
			t.Fatalf("%#x + % x: %#x, want %#x", from, p, got, want)
		}
	}
}

func TestChecksumRegister(t *testing.T) {
	g := newRig(t, Lanai4())
	header := []byte{0x45, 0, 0, 0x73, 0, 0, 0x40, 0, 0x40, 0x11, 0xb8, 0x61, 0xc0, 0xa8, 0, 1, 0xc0, 0xa8, 0, 0xc7}
	g.ok(g.host.Memory().Write(0x2000, header))
	w := func(reg, v uint32) { t.Helper(); g.ok(g.card.Store(RegisterBase+reg, v)) }
	w(RegCKS, 0)
	w(RegEAR, 0x2000)
	w(RegLAR, 0x40)
	w(RegDMADIR, 1)
	w(RegDMACTR, 12)
	g.run(100)
	w(RegEAR, 0x200C)
	w(RegLAR, 0x4C)
	w(RegDMACTR, 8)
	g.run(200)
	if v, err := g.card.Load(RegisterBase + RegCKS); err != nil || v != 0xFFFF {
		t.Errorf("CKS %#x, %v; a right header sums to 0xffff", v, err)
	}
	w(RegDMADIR, 0) // card to bus leaves it alone
	w(RegDMACTR, 8)
	g.run(300)
	if v := g.card.Regs.Read(RegCKS); v != 0xFFFF {
		t.Errorf("CKS %#x after a DMA to the bus", v)
	}
	if len(g.log) != 3 {
		t.Errorf("log %q", g.log)
	}
}

func TestTimers(t *testing.T) {
	r := newRig(t, Lanai4())
	regs := r.card.Regs
	tick := func(n int64) { t.Helper(); r.ok(r.e.RunUntil(context.Background(), des.Time(n)*500*des.Nanosecond+7)) }
	tick(3)
	if regs.Read(RegRTC) != 3 {
		t.Errorf("RTC %d after 3 ticks", regs.Read(RegRTC))
	}
	r.ok(regs.Write(RegRTC, 1000))
	r.ok(regs.Write(RegIT, 5))
	r.ok(regs.Write(RegTIMEOUT, 4))
	tick(6)
	if regs.Read(RegRTC) != 1003 || regs.Read(RegIT) != 2 || regs.Read(RegISR)&(IntTime|IntWatchdog) != 0 {
		t.Errorf("RTC %d IT %d ISR %#x", regs.Read(RegRTC), regs.Read(RegIT), regs.Read(RegISR))
	}
	r.ok(regs.Write(RegTIMEOUT, 4)) // the dog is fed
	tick(7)
	if regs.Read(RegISR)&(IntTime|IntWatchdog) != 0 {
		t.Errorf("ISR %#x", regs.Read(RegISR))
	}
	tick(8)
	if regs.Read(RegIT) != 0 || regs.Read(RegISR)&(IntTime|IntWatchdog) != IntTime {
		t.Errorf("IT %d ISR %#x", regs.Read(RegIT), regs.Read(RegISR))
	}
	tick(10)
	if int32(regs.Read(RegIT)) != -2 || regs.Read(RegISR)&(IntTime|IntWatchdog) != IntTime|IntWatchdog {
		t.Errorf("IT %d ISR %#x", int32(regs.Read(RegIT)), regs.Read(RegISR))
	}
	r.ok(regs.Write(RegISR, IntTime)) // write 1 to clear
	if regs.Read(RegISR)&(IntTime|IntWatchdog) != IntWatchdog {
		t.Errorf("ISR %#x", regs.Read(RegISR))
	}
	r.ok(regs.Write(RegISR, IntWatchdog))
	r.ok(regs.Write(RegTIMEOUT, 2))
	r.ok(regs.Write(RegIT, 2))
	r.ok(regs.Write(RegTIMEOUT, 0))
	r.ok(regs.Write(RegIT, 0))
	tick(20)
	if regs.Read(RegISR)&(IntTime|IntWatchdog) != 0 {
		t.Errorf("stopped timers ran out: ISR %#x", regs.Read(RegISR))
	}
}

func TestRegistersStore(t *testing.T) {
	r := newRig(t, Lanai4())
	for _, reg := range []uint32{RegEIMR, RegEAR, RegLAR, RegRMP, RegSMP, RegSA} {
		r.ok(r.card.Store(RegisterBase+reg, 0x1234_5678+reg))
		if v, err := r.card.Load(RegisterBase + reg); err != nil || v != 0x1234_5678+reg {
			t.Errorf("register %#x: %#x, %v", reg, v, err)
		}
	}
	r.ok(r.card.Store(RegisterBase+0xF0, 1)) // no such register
	if v, err := r.card.Load(RegisterBase + 0xF0); err != nil || v != 0 {
		t.Errorf("no register: %#x, %v", v, err)
	}
	for _, a := range []uint32{RegisterBase + 0x29, 1 << 20, 6} {
		if _, err := r.card.Load(a); err == nil {
			t.Errorf("loaded from %#x", a)
		}
		if err := r.card.Store(a, 1); err == nil {
			t.Errorf("stored to %#x", a)
		}
	}
	r.ok(r.card.Store(0x20, 0xABCD))
	if v, err := r.card.Load(0x20); err != nil || v != 0xABCD {
		t.Errorf("SRAM: %#x, %v", v, err)
	}
}

// Any bus master sees SRAM, registers and control words in the card's window.
func TestWindow(t *testing.T) {
	r := newRig(t, Lanai4())
	base, _ := r.card.Window()
	var got []uint32
	load := func(at uint32) {
		t.Helper()
		r.ok(r.host.Load(base+at, func(_ des.Time, v uint32, s pci.Status) error {
			got = append(got, bits.ReverseBytes32(v)) // the bus is little-endian, the card is not
			if s != pci.StatusOK {
				t.Errorf("read of %#x: %v", at, s)
			}
			return nil
		}))
	}
	store := func(at, v uint32) { t.Helper(); r.ok(r.host.Store(base+at, bits.ReverseBytes32(v), nil)) }
	r.ok(r.card.SRAM.SetWord(0x40, 0x11223344))
	load(0x10_0040)
	store(0x10_0044, 0xCAFEF00D)
	load(0x0C_0000 + RegISR)
	store(0x0C_0000+RegEIMR, IntWake)
	store(0x0E_0000+CtlWake, 1)
	load(0x0C_0000 + RegISR)
	load(0x0E_0000 + CtlWake)
	store(0x0C_0000+RegISR, IntWake)
	load(0x0E_0000 + CtlWake)
	load(0x0E_0000 + CtlCard)
	load(0x0E_0000 + CtlSRAMBytes)
	load(0x0E_0000 + CtlHz)
	load(0)
	store(0, 1)
	r.run(2000)
	want := []uint32{0x11223344, IntSendReady, IntSendReady | IntWake, IntWake, 0, 0, 1 << 20, 33_333_333, 0}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("reads (-want +got):\n%s", diff)
	}
	if v, err := r.card.SRAM.Word(0x44); err != nil || v != 0xCAFEF00D {
		t.Errorf("SRAM holds %#x, %v", v, err)
	}
}

// A block that crosses the window's parts, against single words.
func TestWindowBlocks(t *testing.T) {
	r := newRig(t, Lanai4())
	base, _ := r.card.Window()
	c := r.card
	block := make([]byte, 0x200)
	binary.BigEndian.PutUint32(block[0x80+RegSA:], 77)
	binary.BigEndian.PutUint32(block[0x80+RegEAR:], 78)
	c.BusWrite(base+0x0C_0000-0x80, block) // before, all registers, behind
	if c.Regs.Read(RegSA) != 77 || c.Regs.Read(RegEAR) != 78 {
		t.Error("registers were not written")
	}
	c.BusWrite(base+0x0C_0000+RegSA+1, []byte{1, 2, 3, 0, 0}) // no whole word
	if c.Regs.Read(RegSA) != 77 {
		t.Error("a part of a register was written")
	}
	back := pattern(0x200, 1)
	c.BusRead(base+0x0C_0000-0x80, back)
	want := make([]byte, 0x200)
	for reg := uint32(0); reg < registerBytes; reg += 4 {
		binary.BigEndian.PutUint32(want[0x80+reg:], c.Regs.Read(reg))
	}
	if !bytes.Equal(back, want) {
		t.Error("block read differs from the registers")
	}
	copy(c.SRAM.View(0, 8), pattern(8, 40))
	back = pattern(16, 1)
	c.BusRead(base+0x10_0000-8, back)
	if !bytes.Equal(back, append(make([]byte, 8), pattern(8, 40)...)) {
		t.Errorf("read across the start of SRAM: % x", back)
	}
}

type watchLog struct {
	t     *testing.T
	lines []string
	err   error
}

func (w *watchLog) Written(now des.Time, addr uint32, n int) error {
	w.lines = append(w.lines, fmt.Sprintf("%#x+%d", addr, n))
	return w.err
}

func TestWatch(t *testing.T) {
	r := newRig(t, Lanai4())
	w, all := &watchLog{t: t}, &watchLog{t: t}
	r.ok(r.card.Watch(0x100, 32, w))
	r.ok(r.card.Watch(0, 0x1000, all))
	base := r.card.BusAddr(0)
	for _, a := range []struct {
		at uint32
		n  int
	}{{0xFC, 4}, {0xFC, 5}, {0x11F, 1}, {0x120, 4}, {0x80, 0x100}, {0x1000, 4}} {
		r.card.BusWrite(base+a.at, make([]byte, a.n))
	}
	if diff := cmp.Diff([]string{"0xfc+5", "0x11f+1", "0x80+256"}, w.lines); diff != "" {
		t.Error(diff)
	}
	if len(all.lines) != 5 {
		t.Errorf("the wide watch heard %q", all.lines)
	}
	if err := r.card.Watch(1<<20-4, 8, w); !errors.Is(err, ErrOutside) {
		t.Errorf("watch outside: %v", err)
	}
	// An error in there stops the run.
	w.err = errors.New("enough")
	r.ok(r.host.Store(base+0x100, 1, nil))
	if err := r.e.Run(context.Background()); !errors.Is(err, w.err) {
		t.Errorf("run ended with %v", err)
	}
}

// What the host does wrong with a card's registers stops the run with an error.
func TestWindowMisuse(t *testing.T) {
	r := newRig(t, Lanai4())
	base, _ := r.card.Window()
	r.ok(r.host.Store(base+0x0C_0000+RegRMP, bits.ReverseBytes32(2), nil))
	r.ok(r.host.Store(base+0x0C_0000+RegRML, bits.ReverseBytes32(0x100), nil))
	if err := r.e.Run(context.Background()); !errors.Is(err, ErrUnaligned) {
		t.Errorf("run ended with %v", err)
	}
}

// A card whose engine writes into its own window loads the E-bus twice.
func TestDMAIntoOwnWindow(t *testing.T) {
	r := newRig(t, Lanai4())
	copy(r.card.SRAM.View(0x100, 64), pattern(64, 8))
	r.ok(r.card.DMA.Start(DMAOp{EAR: r.card.BusAddr(0x200), LAR: 0x100, Bytes: 64, Carry: 64}))
	r.run(1000)
	if !bytes.Equal(r.card.SRAM.View(0x200, 64), pattern(64, 8)) {
		t.Error("not copied")
	}
	if n := r.card.Mem.Granted()[EBus]; n < 32 || n > 36 {
		t.Errorf("%d accesses for 16 words read and 16 written", n)
	}
}
