package lanai_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"net/netip"
	"sync"
	"testing"

	"spinesim/sim/testenv"

	"github.com/google/go-cmp/cmp"

	"spinesim/lanai"
	"spinesim/lanai/isa"
	"spinesim/pci"
	"spinesim/router"
	"spinesim/router/lctrie"
	"spinesim/sim/des"
	"spinesim/spine/firmware"
	"spinesim/traces"
)

// Modes of a scene: the whole firmware; the same with its handlers watched; polls
// and handlers executed one by one; the polls in scans, compared with one by one.
const (
	whole = iota
	watched
	single
	scanned
	numScenes
)

// scene is a router of four cards with executed firmware, packets that come at
// random, and a host that reads and writes the cards' memories and registers at
// random. What happens is logged.
type scene struct {
	r      *rand.Rand
	e      *des.Engine
	bridge *pci.HostBridge
	cards  []*lanai.Card
	fws    []*firmware.Card
	log    []string
	links  []*link
	scans  []*scans
	sp     []uint32
	mode   int
}

func (s *scene) note(format string, args ...any) {
	s.log = append(s.log, fmt.Sprintf("%v ", s.e.Now())+fmt.Sprintf(format, args...))
}

// link is what a card is connected to.
type link struct {
	s      *scene
	card   *lanai.Card
	frames []*lanai.Frame
	next   uint64
	gap    int
}

func (l *link) Head() *lanai.Frame {
	if len(l.frames) == 0 {
		return nil
	}
	return l.frames[0]
}

func (l *link) Pop(des.Time) error {
	l.frames = l.frames[1:]
	return nil
}

func (l *link) Received(_ des.Time, f *lanai.Frame, addr uint32, n int, ev lanai.ReceiveEvent) error {
	b, err := l.card.SRAM.Slice(addr, n)
	if err != nil {
		return err
	}
	l.s.note("card %d received %d: %v of %d bytes, %08x", l.card.Index(), f.ID, ev, n, crc32.ChecksumIEEE(b))
	return nil
}

func (l *link) Sent(_ des.Time, f *lanai.Frame) error {
	l.s.note("card %d sent %d bytes, %08x", l.card.Index(), f.Bytes, crc32.ChecksumIEEE(f.Data))
	return nil
}

// Handle is a packet's arrival.
func (l *link) Handle(now des.Time, _ uint64) error {
	r := l.s.r
	dst := arrivals().routes[r.IntN(64)]
	h, err := router.Header{TotalLength: 20 + r.IntN(1480), TTL: uint8(r.IntN(6)), Src: netip.AddrFrom4([4]byte{198, 18, 0, 1}), Dst: dst.Prefix.Addr()}.Append(nil)
	if err != nil {
		return err
	}
	n := int(binary.BigEndian.Uint16(h[2:]))
	data := make([]byte, max(n, 46))
	copy(data, h)
	for i := 20; i < len(data); i++ {
		data[i] = byte(r.IntN(256))
	}
	if len(l.frames) < 16 {
		l.next++
		l.frames = append(l.frames, &lanai.Frame{ID: l.next, Bytes: len(data), Data: data})
		if len(l.frames) == 1 {
			if err := l.card.Rx.Wake(now); err != nil {
				return err
			}
		}
	}
	return l.s.e.After(des.Time(1+r.IntN(l.gap))*des.Nanosecond, lanai.PrioHardware, l, 0)
}

// Handle is something that the host does.
func (s *scene) Handle(now des.Time, _ uint64) error {
	r := s.r
	i := r.IntN(len(s.cards))
	c := s.cards[i]
	base, _ := c.Window()
	done := func(now des.Time, v uint32, st pci.Status) error {
		s.note("host: %#x, %v", v, st)
		return nil
	}
	var err error
	switch r.IntN(7) {
	case 0:
		err = s.bridge.Load(c.BusAddr(uint32(r.IntN(1<<18))*4), done)
	case 1: // the stack, which a poll changes all the time
		err = s.bridge.Load(c.BusAddr(s.sp[i]-uint32(r.IntN(16))*4), done)
	case 2:
		at := []uint32{lanai.RegISR, lanai.RegIT, lanai.RegRTC, lanai.RegRMP, lanai.RegDMASTS, lanai.RegCKS}[r.IntN(6)]
		err = s.bridge.Load(base+c.Spec().RegistersAt+at, done)
	case 3:
		at := []uint32{lanai.RegEIMR, lanai.RegIT, lanai.RegTIMEOUT, lanai.RegSA}[r.IntN(4)]
		err = s.bridge.Store(base+c.Spec().RegistersAt+at, uint32(r.IntN(100)), done)
	case 4:
		err = s.bridge.Store(base+c.Spec().ControlAt+lanai.CtlWake, 1, done)
	case 5: // where nobody is
		err = s.bridge.Store(c.BusAddr(c.SRAM.Bytes()-4*uint32(1+r.IntN(64))), r.Uint32(), done)
	default:
		t := &pci.Transfer{Cmd: pci.MemReadMultiple, Addr: c.BusAddr(uint32(r.IntN(1<<17)) * 4), Data: make([]byte, 4*(1+r.IntN(200)))}
		t.Bytes, t.Event, t.Peer = len(t.Data), traces.NoEvent, traces.NoCard
		err = s.bridge.Transfer(t, s)
	}
	if err != nil {
		return err
	}
	return s.e.After(des.Time(1+r.IntN(40_000))*des.Nanosecond, lanai.PrioHardware, s, 0)
}

// HostTransferDone implements pci.HostClient.
func (s *scene) HostTransferDone(_ des.Time, t *pci.Transfer) error {
	s.note("host: %d bytes from %#x: %v, %08x", t.Moved, t.Addr, t.Status, crc32.ChecksumIEEE(t.Data[:t.Moved]))
	return nil
}

// watcher logs handlers.
type watcher struct {
	s *scene
	i int
}

func (w *watcher) Enter(run traces.Event, arg uint32) error {
	w.s.note("card %d: %v %#x", w.i, run, arg)
	return nil
}

func (w *watcher) Exit() error {
	w.s.note("card %d: done", w.i)
	return nil
}

// scans polls a card's queues in a fixed order and runs what it finds.
type scans struct {
	s       *scene
	i       int
	q       uint8
	polling bool
	inScans bool
	polls   int64
	list    isa.Scan
}

func (p *scans) BoxEnd(des.Time) error {
	fw := p.s.fws[p.i]
	if p.polling {
		p.polls++
		if fw.Hit() {
			p.polling = false
			run, arg, err := fw.Found()
			if err != nil {
				return err
			}
			p.s.note("card %d: %v %#x after %d polls", p.i, run, arg, p.polls)
			p.polls = 0
			return fw.BeginFound()
		}
		p.q = (p.q + 1) % 7
	} else {
		p.q = 0
	}
	return p.begin()
}

func (p *scans) begin() error {
	fw := p.s.fws[p.i]
	p.polling = true
	if !p.inScans {
		return fw.BeginPoll(p.q)
	}
	if p.list.Entries == nil {
		at := fw.Polls()
		p.list.Entries = at[:]
	}
	return fw.BeginScan(&p.list)
}

func (p *scans) PollsEnd(now des.Time) error {
	n, _, _ := p.s.fws[p.i].CPU.Scanned()
	p.polls += n - 1
	return p.BoxEnd(now)
}

// all is how many polls have ended since the last handler.
func (p *scans) all() int64 {
	if !p.polling || !p.inScans {
		return p.polls
	}
	n, _, _ := p.s.fws[p.i].CPU.Scanned()
	return p.polls + n
}

type tables struct {
	in     firmware.Inputs
	routes []router.Route
	err    error
}

var arrivals = sync.OnceValue(func() (t tables) {
	routes, err := router.RIB2008()
	if err != nil {
		return tables{err: err}
	}
	tab, err := router.NewTable(routes, router.Assignment{Cards: []uint8{0, 1, 2, 3}}, lctrie.Options{})
	if err != nil {
		return tables{err: err}
	}
	t.routes = routes
	t.in = firmware.Inputs{Image: tab.AppendImage(nil), MTU: 1500}
	return t
})

func newScene(t testing.TB, seed uint64, mode int, careful bool) *scene {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 11))
	s := &scene{r: r, e: des.New(des.Options{}), mode: mode}
	spec := lanai.Lanai4()
	spec.Bus.LatencyTimer = []int{16, 32, 64, 255}[r.IntN(4)]
	spec.Bus.BurstBytes = []int{0, 0, 64, 256}[r.IntN(4)]
	spec.Target.WriteWait = r.IntN(3)
	if r.IntN(3) == 0 {
		spec.NoBuffer = lanai.Discard
	}
	bus, err := pci.New(spec.Bus, s.e, nil)
	if err != nil {
		t.Fatal(err)
	}
	tab := arrivals()
	if tab.err != nil {
		t.Fatal(tab.err)
	}
	in := tab.in
	in.OwnWire = r.IntN(2) == 0
	in.Buffers, in.Credits = 1+r.IntN(16), 1+r.IntN(4)
	for i := range 4 {
		c, err := lanai.New(spec, uint8(i), des.Time(r.IntN(30_000)), s.e, bus, nil)
		if err != nil {
			t.Fatal(err)
		}
		if careful {
			lanai.Careful(c)
		}
		var w firmware.Watcher
		if mode == watched {
			w = &watcher{s, i}
		}
		fw, err := firmware.NewWatched(c, in, w)
		if err != nil {
			t.Fatal(err)
		}
		l := &link{s: s, card: c, gap: 1 + r.IntN(400_000)}
		c.Rx.Bind(l, l)
		c.Tx.Bind(l)
		s.cards, s.fws, s.links = append(s.cards, c), append(s.fws, fw), append(s.links, l)
		fw.CPU.StepLoops = careful
		if r.IntN(4) == 0 {
			fw.CPU.Profile = isa.NewProfile(0, 1<<16)
		}
	}
	if s.bridge, err = pci.NewHostBridge(bus, 0, 1<<22); err != nil {
		t.Fatal(err)
	}
	if err := firmware.Connect(s.fws...); err != nil {
		t.Fatal(err)
	}
	for i, fw := range s.fws {
		if mode < single {
			err = fw.Start()
		} else {
			p := &scans{s: s, i: i, inScans: mode == scanned && !careful}
			s.scans = append(s.scans, p)
			s.cards[i].CPU.Bind(p)
			if err = fw.Arm(); err == nil {
				err = p.begin()
			}
		}
		s.sp = append(s.sp, fw.CPU.Reg(isa.SP))
		if err == nil {
			err = s.e.Schedule(des.Time(r.IntN(100_000))*des.Nanosecond, lanai.PrioHardware, s.links[i], 0)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := s.e.Schedule(des.Time(r.IntN(100_000))*des.Nanosecond, lanai.PrioHardware, s, 0); err != nil {
		t.Fatal(err)
	}
	return s
}

// stands is all that can be seen of the scene at the end of a run.
func (s *scene) stands() (all []string) {
	for i, c := range s.cards {
		cpu := s.fws[i].CPU
		n := cpu.Counters()
		n.Skipped = 0
		usage := c.CPU.Usage()
		if s.mode == scanned {
			usage = lanai.Usage{} // the present scan is not in it
		}
		all = append(all, fmt.Sprintf("card %d at %v: pc %#x, cycle %d, %+v, usage %+v, granted %v, memory %08x", i, s.e.Now(), cpu.PC(), cpu.Cycle(), n, usage, c.Mem.Granted(), crc32.ChecksumIEEE(c.SRAM.View(0, int(c.SRAM.Bytes())))))
		for r := range isa.NumRegs {
			all = append(all, fmt.Sprintf("r%d %#x", r, cpu.Reg(r)))
		}
		if s.scans != nil {
			all = append(all, fmt.Sprintf("%d polls", s.scans[i].all()))
		}
	}
	return all
}

// TestRunningAhead runs scenes with processors that run past each other, skip
// waiting loops and are taken back, and again with processors that stop for each
// other's every step and execute every round: everything that anybody sees
// happens at the same time, and what is left in the end is the same.
func TestRunningAhead(t *testing.T) {
	scenes := scenesOf(t)
	var skipped, received int64
	for seed := range scenes {
		mode := int(seed % numScenes)
		fast, slow := newScene(t, seed, mode, false), newScene(t, seed, mode, true)
		for range 3 {
			for _, s := range []*scene{fast, slow} {
				if err := s.e.RunUntil(context.Background(), s.e.Now()+des.Time(1+s.r.IntN(200_000))*des.Nanosecond); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				for _, fw := range s.fws {
					fw.CPU.Forget() // so that profiles are complete
				}
			}
			if d := cmp.Diff(slow.log, fast.log); d != "" {
				t.Fatalf("seed %d: what happened (-stepped +ahead):\n%s", seed, d)
			}
			if d := cmp.Diff(slow.stands(), fast.stands()); d != "" {
				t.Fatalf("seed %d: what is left (-stepped +ahead):\n%s", seed, d)
			}
		}
		for i, fw := range fast.fws {
			n := fw.CPU.Counters()
			skipped += n.Skipped
			received += int64(fast.links[i].next)
			p, q := fw.CPU.Profile, slow.fws[i].CPU.Profile
			for pc := uint32(0); p != nil && pc < 1<<16; pc += 4 {
				if p.At(pc) != q.At(pc) {
					t.Fatalf("seed %d: card %d: profile of %#x: %+v, stepped %+v", seed, i, pc, p.At(pc), q.At(pc))
				}
			}
		}
	}
	t.Logf("%d instructions skipped, %d packets", skipped, received)
	if skipped < 500*int64(scenes) || received < 2*int64(scenes) {
		t.Errorf("%d instructions skipped, %d packets: no test", skipped, received)
	}
}

func scenesOf(t *testing.T) uint64 {
	return uint64(testenv.Size(30, 150))
}
