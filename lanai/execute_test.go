package lanai_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"spinesim/sim/testenv"

	"github.com/google/go-cmp/cmp"

	"spinesim/lanai"
	"spinesim/lanai/isa"
	"spinesim/lanai/loader"
	"spinesim/pci"
	"spinesim/sim/des"
	"spinesim/spine/firmware"
	"spinesim/traces"
)

// traffic starts a card's engines at times of its own, whatever the processor
// does.
type traffic struct {
	card *lanai.Card
	in   lanai.Frame
	out  lanai.Frame
	r    *rand.Rand
	e    *des.Engine
	buf  uint32
}

func (l *traffic) Head() *lanai.Frame { return &l.in }
func (l *traffic) Pop(des.Time) error { return nil }
func (l *traffic) Received(des.Time, *lanai.Frame, uint32, int, lanai.ReceiveEvent) error {
	return nil
}
func (l *traffic) Sent(des.Time, *lanai.Frame) error { return nil }

func (l *traffic) Handle(now des.Time, _ uint64) error {
	c := l.card
	var err error
	switch l.r.IntN(3) {
	case 0:
		if !c.Rx.Armed() {
			err = c.Rx.Arm(l.buf, 4*(1+l.r.IntN(200)))
		}
	case 1:
		if !c.Tx.Busy() {
			err = c.Tx.Send(&l.out, l.buf+0x1000, 4*(1+l.r.IntN(200)))
		}
	default:
		if !c.DMA.Busy() {
			n := 4 * (1 + l.r.IntN(200))
			err = c.DMA.Start(lanai.DMAOp{EAR: 0x1000, LAR: l.buf + 0x2000, Bytes: n, Event: traces.TransferBody, Peer: traces.HostCard})
		}
	}
	if err != nil {
		return err
	}
	return l.e.After(des.Time(1+l.r.IntN(6000))*des.Nanosecond, lanai.PrioHardware, l, 0)
}

// calls are functions of the library, one after the other, a box each.
type calls struct {
	card *lanai.Card
	core *isa.CPU
	sp   uint32
	list []func() (entry uint32, args []uint32)
	ends []int64
	err  error
}

func (c *calls) BoxEnd(now des.Time) error {
	c.ends = append(c.ends, c.card.CycleAt(now))
	return c.next()
}

func (c *calls) PollsEnd(des.Time) error { return nil }

func (c *calls) next() error {
	if len(c.list) == 0 {
		return nil
	}
	entry, args := c.list[0]()
	c.list = c.list[1:]
	if err := c.core.Call(c.card.CPU.Begin(), entry, c.sp, args...); err != nil {
		return err
	}
	return c.card.CPU.Execute(c.core)
}

type rig struct {
	e     *des.Engine
	card  *lanai.Card
	image *loader.Image
	calls *calls
	work  uint32
}

const runFor = 3 * des.Millisecond

// noTraffic is a seed without.
const noTraffic = 1 << 40

// newRig is a card with random traffic and a list of calls, both by seed.
func newRig(t testing.TB, seed uint64) *rig {
	t.Helper()
	e := des.New(des.Options{})
	spec := lanai.Lanai4()
	bus, err := pci.New(spec.Bus, e, nil)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(seed, 3))
	card, err := lanai.New(spec, 0, des.Time(r.IntN(30_000)), e, bus, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pci.NewHostBridge(bus, 0, 1<<20); err != nil {
		t.Fatal(err)
	}
	g := &rig{e: e, card: card}
	alloc := func(n uint32) uint32 {
		a, err := card.SRAM.Alloc("test", n, 16)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	alloc(16)
	lib, err := firmware.Library()
	if err != nil {
		t.Fatal(err)
	}
	if g.image, err = loader.Load(card.SRAM, "firmware", lib...); err != nil {
		t.Fatal(err)
	}
	stack := alloc(1024)
	g.work = alloc(4096)
	l := &traffic{card: card, r: r, e: e, buf: alloc(0x3000)}
	l.in = lanai.Frame{ID: 1, Bytes: 1500, Data: make([]byte, 64)}
	l.out = lanai.Frame{ID: 2, Bytes: 1500}
	card.Rx.Bind(l, l)
	card.Tx.Bind(l)
	core, err := isa.New(card.SRAM.View(0, int(card.SRAM.Bytes())))
	if err != nil {
		t.Fatal(err)
	}
	core.Devices, core.Slots, core.SymbolAt = card, card.Mem, g.image.At
	g.calls = &calls{card: card, core: core, sp: stack + 1024}
	for i := range 60 {
		g.calls.list = append(g.calls.list, func() (uint32, []uint32) {
			name := []string{"memcpy", "memset", "memmove", "__udivsi3", "__mulsi3"}[i%5]
			a, err := g.image.Symbol(name)
			if err != nil {
				t.Fatal(err)
			}
			if name[0] == '_' {
				return a, []uint32{r2(seed, i) | 1, r2(seed, i+99) | 1}
			}
			return a, []uint32{g.work + r2(seed, i)%1500, g.work + 2000 + r2(seed, i+7)%1000, r2(seed, i+3) % 400}
		})
	}
	card.CPU.Bind(g.calls)
	if seed == noTraffic {
		return g
	}
	if err := e.Schedule(0, lanai.PrioHardware, l, 0); err != nil {
		t.Fatal(err)
	}
	return g
}

func r2(seed uint64, i int) uint32 {
	x := (seed*1_000_003 + uint64(i)) * 0x9E3779B97F4A7C15
	return uint32(x >> 32)
}

// watch samples in the middle of each cycle what the engines have been granted.
type watch struct {
	g    *rig
	last int64
	free []uint8
}

func (w *watch) Handle(now des.Time, _ uint64) error {
	var n int64
	for _, x := range w.g.card.Mem.Granted() {
		n += x
	}
	w.free = append(w.free, uint8(2-(n-w.last)))
	w.last = n
	c := w.g.card
	return w.g.e.Schedule(c.TimeOf(int64(len(w.free)))+1, lanai.PrioHardware+1, w, 0)
}

// sampled is a memory bus that was watched.
type sampled []uint8

func (s sampled) Window(cycle int64) isa.Window {
	return isa.Window{Free: s[cycle:], Waits: isa.AppendWaits(nil, s[cycle:], len(s[cycle:]))}
}

// TestExecutionMeetsTheBus executes calls on a card whose engines are started at
// random, and again on a bare processor with what was seen to be free in each
// cycle: every call ends in the same cycle, with the same memory.
func TestExecutionMeetsTheBus(t *testing.T) {
	seeds := uint64(testenv.Size(3, 12))
	var waits int64
	for seed := range seeds {
		g := newRig(t, seed)
		if err := g.calls.next(); err != nil {
			t.Fatal(err)
		}
		if err := g.e.RunUntil(context.Background(), runFor); err != nil {
			t.Fatal(err)
		}
		if len(g.calls.list) > 0 {
			t.Fatalf("seed %d: %d calls left", seed, len(g.calls.list))
		}
		counters := g.calls.core.Counters()
		usage := g.card.CPU.Usage()
		if usage.Boxes != 60 || usage.BoxStall != counters.Waits || usage.BoxCycles != counters.Instructions+counters.Interlocks {
			t.Errorf("seed %d: usage %+v, counters %+v", seed, usage, counters)
		}
		waits += counters.Waits

		quiet := newRig(t, seed)
		w := &watch{g: quiet}
		if err := quiet.e.Schedule(quiet.card.TimeOf(0)+1, lanai.PrioHardware+1, w, 0); err != nil {
			t.Fatal(err)
		}
		if err := quiet.e.RunUntil(context.Background(), runFor); err != nil {
			t.Fatal(err)
		}
		core := quiet.calls.core
		core.Slots = sampled(w.free)
		var ends []int64
		at := int64(0)
		for _, c := range quiet.calls.list {
			entry, args := c()
			if err := core.Call(at, entry, quiet.calls.sp, args...); err != nil {
				t.Fatal(err)
			}
			if stop, err := core.Run(at, int64(len(w.free))); stop != isa.Returned {
				t.Fatal(stop, err)
			}
			at = core.Cycle()
			ends = append(ends, at)
		}
		if d := cmp.Diff(ends, g.calls.ends); d != "" {
			t.Fatalf("seed %d: ends of calls (-sampled +executed):\n%s", seed, d)
		}
		if d := cmp.Diff(quiet.card.SRAM.View(quiet.work, 4096), g.card.SRAM.View(g.work, 4096)); d != "" {
			t.Errorf("seed %d: memory:\n%s", seed, d)
		}
		if core.Counters() != counters {
			t.Errorf("seed %d: counters %+v, want %+v", seed, counters, core.Counters())
		}
	}
	if waits < 1000 {
		t.Errorf("only %d cycles waited: the engines are no match", waits)
	}
}

// program puts words at an address and calls them.
func (g *rig) program(t *testing.T, words ...uint32) {
	t.Helper()
	for i, w := range words {
		if err := g.card.SRAM.SetWord(g.work+uint32(4*i), w); err != nil {
			t.Fatal(err)
		}
	}
	g.calls.list = []func() (uint32, []uint32){func() (uint32, []uint32) { return g.work, nil }}
	if err := g.calls.next(); err != nil {
		t.Fatal(err)
	}
}

// TestDevicesInTime starts a device from executed code, waits for its interrupt
// and reads the clock before and after.
func TestDevicesInTime(t *testing.T) {
	for _, c := range []struct {
		name      string
		start     uint32 // the store that starts it
		value     uint32
		bit       uint32 // of ISR
		low, high uint32 // ticks of 500 ns
		skips     bool
	}{
		// 800 bytes take 6 µs at PCI's peak, and some overhead. Its stream is
		// on the memory bus meanwhile, so that every round is executed.
		{"host DMA", 0x9182FF44, 800, 4, 12, 24, true},
		{"interval timer", 0x9182FF30, 40, 5, 39, 41, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			run := func(step bool) (took uint32, n isa.Counters) {
				g := newRig(t, noTraffic)
				g.calls.core.StepLoops = step
				buf := g.work + 2048
				back := g.work + 4*7
				g.program(t,
					0xF1820000|buf>>16<<18|buf&0xFFFF, // mov buf, %r3
					0x9182FF40,                        // st %r3, LAR
					0xF1821000,                        // mov 0x1000, %r3
					0x9182FF3C,                        // st %r3, EAR
					0xF1820000|c.value,                // mov value, %r3
					0x8302FF34,                        // ld RTC, %r6
					c.start,                           // st %r3, device
					0x8382FF28,                        // back: ld ISR, %r7
					0x701E0000|(31-c.bit),             // sh.f %r7, …, %r0: the bit becomes the sign
					0xEA000000|back,                   // bpl back
					0x00000001,
					0x8382FF34, // ld RTC, %r7
					0xC41C3200, // sub %r7, %r6, %rv
					0x81120000, // ld 0[%sp], %pc
					0x00000001,
					0x00000001,
				)
				if err := g.e.RunUntil(context.Background(), des.Millisecond); err != nil {
					t.Fatal(err)
				}
				if len(g.calls.ends) != 1 {
					t.Fatal("the program has not ended")
				}
				return g.calls.core.Reg(isa.RV), g.calls.core.Counters()
			}
			took, n := run(false)
			stepped, m := run(true)
			if took < c.low || took > c.high || took != stepped {
				t.Errorf("%d ticks, stepped %d, want %d to %d", took, stepped, c.low, c.high)
			}
			if (n.Skipped != 0) != c.skips || m.Skipped != 0 {
				t.Errorf("skipped %d, stepped %d", n.Skipped, m.Skipped)
			}
			if n.Skipped = 0; n != m {
				t.Errorf("%+v, stepped %+v", n, m)
			}
		})
	}
}

// TestFaultStopsTheRun names card, time, pc and symbol.
func TestFaultStopsTheRun(t *testing.T) {
	g := newRig(t, 2)
	g.program(t, 0x00000001, 0xD0000007)
	err := g.e.RunUntil(context.Background(), des.Millisecond)
	if !errors.Is(err, isa.ErrUndefined) || !strings.Contains(err.Error(), "card 0") {
		t.Errorf("%v", err)
	}
	if !g.card.CPU.Idle() {
		t.Error("the processor is not idle")
	}
}

// survivor goes on after a fault.
type survivor struct {
	calls
	faults []string
}

func (s *survivor) Fault(now des.Time, fault error) error {
	s.faults = append(s.faults, fault.Error())
	return s.next()
}

// TestFaultStopsOneCard has a program that starts something else after a wild
// store, which its protection caught.
func TestFaultStopsOneCard(t *testing.T) {
	g := newRig(t, noTraffic)
	s := &survivor{calls: *g.calls}
	g.card.CPU.Bind(s)
	wild, good := g.work, g.work+64
	for at, w := range map[uint32]uint32{
		wild: 0x91820000, wild + 4: 1, // st %r3, 0[%r0]
		good: 0x81120000, good + 4: 1, good + 8: 1, // ld 0[%sp], %pc
	} {
		if err := g.card.SRAM.SetWord(at, w); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.core.Protect(0, 16, 0); err != nil {
		t.Fatal(err)
	}
	s.list = nil
	for _, at := range []uint32{wild, good} {
		s.list = append(s.list, func() (uint32, []uint32) { return at, nil })
	}
	if err := s.next(); err != nil {
		t.Fatal(err)
	}
	if err := g.e.RunUntil(context.Background(), des.Millisecond); err != nil {
		t.Fatal(err)
	}
	if len(s.faults) != 1 || !strings.Contains(s.faults[0], "st %r3, 0[%r0]") || len(s.ends) != 1 {
		t.Errorf("faults %q, ends %v", s.faults, s.ends)
	}
}

// TestExecutionAllocatesNothing looks at a card that executes while its receive
// engine runs. (What engines do at random makes tables of new patterns.)
func TestExecutionAllocatesNothing(t *testing.T) {
	g := newRig(t, noTraffic)
	// Arguments are slices, so that only what runs is counted: one long call.
	memset, err := g.image.Symbol("memset")
	if err != nil {
		t.Fatal(err)
	}
	g.calls.list = []func() (uint32, []uint32){func() (uint32, []uint32) {
		return memset, []uint32{g.work, 0, 1 << 18}
	}}
	if err := g.calls.next(); err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	step := func() {
		if !g.card.Rx.Armed() {
			if err := g.card.Rx.Arm(g.work+1<<17, 1600); err != nil {
				t.Fatal(err)
			}
		}
		if err := g.e.RunUntil(ctx, g.e.Now()+30*des.Microsecond); err != nil {
			t.Fatal(err)
		}
	}
	for range 40 {
		step()
	}
	before := g.calls.core.Counters().Instructions
	if n := testing.AllocsPerRun(20, step); n > 0 {
		t.Errorf("%v allocations in 30 µs", n)
	}
	if n := g.calls.core.Counters().Instructions - before; n < 10_000 {
		t.Errorf("only %d instructions executed", n)
	}
}
