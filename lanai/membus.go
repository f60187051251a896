package lanai

import (
	"math/big"

	"spinesim/pci"
	"spinesim/sim/des"
)

// streamOwner is told when the last word of its stream has been granted.
type streamOwner interface {
	streamDone(now des.Time) error
}

// transfer is what a receive or send stream has left to do.
type transfer struct {
	active bool
	ask    int64 // words its pace has not asked for yet
	left   int64 // words not granted yet
}

// hostSource is one of the two ways in which the E-bus gets busy.
type hostSource uint8

const (
	asInitiator hostSource = iota // the card's own host-DMA engine
	asTarget                      // another master, through the window
	numHostSources
)

// hostRates are the rates of both sources.
type hostRates struct{ num, den [numHostSources]int32 }

type hostPace struct {
	hostRates
	index uint8
}

// MemoryBus shares the card's memory between the engines and the processor;
// the package comment says how.
type MemoryBus struct {
	arb    arbiter
	clk    cardClock
	engine *des.Engine
	card   *Card
	timer  des.Timer
	owner  [numEngines]streamOwner

	// The segment: from cycle at on, the orbit tells everything up to offset
	// body; one more cycle, the tail, follows where a stream asks for its last
	// words. end is where the segment ends, as an offset.
	at    int64
	state uint64 // at cycle at, packed
	wire  [numEngines]transfer
	orb   *orbit
	body  int64
	end   int64
	tail  struct {
		known bool   // it is worked out when somebody looks
		state uint64 // after it, packed
		passed
	}

	tailFree  [1]uint8 // for Window
	tailWaits []uint8
	serial    uint64 // of the last orbit made

	late []change // of the E-bus's pace, that nobody has had to know of yet

	dirty bool // the segment has to be made anew
	batch int  // while positive, that waits for flush

	host      hostRates // words a bus clock; num 0: off
	hostPaces []hostPace
	busClocks *big.Rat // bus clocks per card cycle

	courses [numCourses]course
	orbits  map[uint64]*orbit
	spare   []*orbit            // forgotten ones
	recent  [recentOrbits]known // some of them, by a hash of the state
	quiet   *orbit              // of state 0, where no engine asks
	granted [numEngines]int64   // up to cycle at
}

// maxOrbits and maxCells bound the orbits kept, to some 4 MB a card where they
// are short and 30 MB at most; beyond them all are forgotten and made anew as
// needed, in the same memory. Round paces need some hundreds with a few dozen
// cells each.
const (
	maxOrbits = 1 << 11
	maxCells  = 1 << 18
)

// recentOrbits is how many places there are for orbits that were used lately: a
// few times as many as a steady load uses. Chosen; a power of two.
const recentOrbits = 1 << recentBits

const recentBits = 8

func (m *MemoryBus) init(s Spec, bus pci.Spec, clk cardClock, e *des.Engine, c *Card) {
	m.engine, m.card, m.clk = e, c, clk
	m.busClocks = s.busClocks(bus)
	m.arb.slots = int32(s.Slots)
	copy(m.arb.order[:], s.Order[:numEngines])
	for i := range m.arb.fifo {
		m.arb.fifo[i] = int32(s.FIFO[i])
	}
	wire := s.linkPace()
	m.arb.paces = []pace{{}, wire, wire}
	m.timer.Init(m, PrioHardware, 0)
	e.Adopt(&m.timer)
	m.orbits = make(map[uint64]*orbit)
	m.segment()
}

// course remembers how a box or polls go on from a standing at an offset of an
// orbit: up to another offset, or, with to -1, to the end of the box or poll in
// progress.
type course struct {
	orb          *orbit
	n, a         int32 // the work
	x, to        int32
	elapsed, got int32 // at x
	polls        int32 // ended on the way
	end          int32 // offset at which the last of them ended; -1: never within the orbit
	elapsed2     int32 // at to
	got2         int32
}

// numCourses is how many are remembered, each at its own place by a hash: some
// hundreds recur in a steady load. Chosen; a power of two.
const numCourses = 1 << courseBits

const courseBits = 10

// course finds the place of a course, and tells whether it holds it already.
func (m *MemoryBus) course(o *orbit, w work, x, to, elapsed, got int64) (*course, bool) {
	h := o.hash ^ uint64(w.n)<<48 ^ uint64(w.a)<<36 ^ uint64(x)<<24 ^ uint64(to)<<12 ^ uint64(elapsed)<<6 ^ uint64(got)
	c := &m.courses[h*0x9e3779b97f4a7c15>>(64-courseBits)]
	if c.orb == o && int64(c.n) == w.n && int64(c.a) == w.a && int64(c.x) == x && int64(c.to) == to && int64(c.elapsed) == elapsed && int64(c.got) == got {
		return c, true
	}
	*c = course{orb: o, n: int32(w.n), a: int32(w.a), x: int32(x), to: int32(to), elapsed: int32(elapsed), got: int32(got)}
	return c, false
}

// maxCourse bounds what is remembered: offsets and works below it fit.
const maxCourse = 1 << 24

// ending is the offset of an orbit at which a box or poll ends of which elapsed
// cycles and got accesses are behind it at offset x, or -1 when that is not
// known here.
func (m *MemoryBus) ending(o *orbit, w work, x, elapsed, got int64) int64 {
	if x > maxCourse || w.a > maxCourse || elapsed > maxCourse {
		return -1
	}
	c, known := m.course(o, w, x, -1, elapsed, got)
	if !known {
		end, _, _ := o.run(w, x, o.end(), elapsed, got)
		if end >= 1<<31 {
			end = -1
		}
		c.end = int32(end)
	}
	return int64(c.end)
}

// known is an orbit and its state, which tells it from others without a look at
// its table.
type known struct {
	state uint64
	orb   *orbit
}

// orbitOf finds or makes the orbit of a state.
func (m *MemoryBus) orbitOf(state uint64) *orbit {
	if state == 0 && m.quiet != nil {
		return m.quiet
	}
	slot := &m.recent[state*0x9e3779b97f4a7c15>>(64-recentBits)]
	if slot.orb != nil && slot.state == state {
		return slot.orb
	}
	o := m.orbits[state]
	if o == nil {
		if len(m.orbits) >= maxOrbits || m.arb.cells >= maxCells {
			m.forget()
		}
		if n := len(m.spare) - 1; n >= 0 {
			o = m.spare[n]
			m.spare = m.spare[:n]
		} else {
			o = &orbit{cells: make([]cell, 0, firstCells/2), frees: make([]int32, 0, firstCells/2)}
		}
		o.init(&m.arb, state)
		m.serial++
		o.serial = m.serial
		m.orbits[state] = o
	}
	if state == 0 {
		m.quiet = o
	}
	*slot = known{state, o}
	return o
}

// forget lets go of all orbits. The present segment keeps its own.
func (m *MemoryBus) forget() {
	kept := 0
	for _, o := range m.spare {
		kept += cap(o.cells)
	}
	for _, o := range m.orbits {
		if o != m.orb && o != m.quiet && kept+cap(o.cells) <= maxCells {
			kept += cap(o.cells)
			m.spare = append(m.spare, o)
		}
	}
	clear(m.orbits)
	clear(m.recent[:])
	clear(m.courses[:])
	m.arb.cells = 0
}

// segment works out the segment that begins with the present state.
func (m *MemoryBus) segment() {
	o := m.orbitOf(m.state)
	m.orb = o
	m.tail.known = false
	m.body = o.end()
	m.end = m.body
	if !m.wire[Receive].active && !m.wire[Send].active {
		return
	}
	tail := int64(0)
	for c := Receive; c < CPU; c++ {
		t := &m.wire[c]
		if !t.active {
			continue
		}
		if t.left == 0 {
			m.body, m.end = 0, 0
			return
		}
		if m.state&paceBits[c] != 0 {
			if k := o.firstAsked(c, t.ask) - 1; k < m.body {
				m.body, tail = k, 1
			}
		}
	}
	m.end = m.body + tail
	for c := Receive; c < CPU; c++ {
		if t := &m.wire[c]; t.active && m.state&paceBits[c] == 0 {
			if k := o.first(colGranted+column(c), t.left); k <= m.body {
				m.body, m.end = k, k
			}
		}
	}
}

// needTail works the tail out.
func (m *MemoryBus) needTail() {
	if m.tail.known {
		return
	}
	o := m.orb
	i, _ := o.place(m.body)
	s := unpack(o.cells[i].state)
	limit := [numEngines]int32{noLimit, noLimit, noLimit}
	for c := Receive; c < CPU; c++ {
		if t := &m.wire[c]; t.active {
			limit[c] = int32(min(t.ask-o.asked(c, m.body), int64(noLimit)))
		}
	}
	m.tail.passed = m.arb.cycle(&s, &limit)
	m.tail.state = s.pack()
	m.tail.known = true
}

// addGranted adds to sum what the engines are granted between the segment's
// start and offset d.
func (m *MemoryBus) addGranted(d int64, sum *[numEngines]int64) {
	o := m.orb
	if d <= 0 || o.idle {
		return
	}
	i, n := o.place(min(d, m.body))
	x := &o.cells[i].granted
	sum[EBus] += int64(x[EBus])
	sum[Receive] += int64(x[Receive])
	sum[Send] += int64(x[Send])
	if n != 0 {
		y, z := &o.cells[o.pre+o.period].granted, &o.cells[o.pre].granted
		sum[EBus] += n * int64(y[EBus]-z[EBus])
		sum[Receive] += n * int64(y[Receive]-z[Receive])
		sum[Send] += n * int64(y[Send]-z[Send])
	}
	if d > m.body {
		m.needTail()
		for e, g := range &m.tail.granted {
			sum[e] += int64(g)
		}
	}
}

// advance moves the segment's start to cycle c, which lies in it.
func (m *MemoryBus) advance(c int64) {
	d := c - m.at
	if d == 0 {
		return
	}
	m.card.CPU.advance(c)
	if !m.orb.idle {
		m.pass(d)
	}
	m.at = c
	m.dirty = true
}

// pass accounts for the segment's first d cycles and takes on the state behind
// them.
func (m *MemoryBus) pass(d int64) {
	o := m.orb
	k := min(d, m.body)
	i, n := o.place(k)
	x := &o.cells[i]
	state := x.state
	if d > k {
		m.needTail()
		state = m.tail.state
	}
	m.granted[EBus] += o.grantedIn(x, EBus, n)
	for c := Receive; c < CPU; c++ {
		granted := o.grantedIn(x, c, n)
		t := &m.wire[c]
		if t.active {
			asked := o.askedIn(x, c, n)
			if d > k {
				asked += int64(m.tail.asked[c])
				t.left -= int64(m.tail.granted[c])
			}
			t.left -= granted
			if t.ask -= asked; t.ask == 0 {
				state &^= paceBits[c] | phaseBits[c]
			}
		}
		m.granted[c] += granted
	}
	if d > k {
		for e, g := range &m.tail.granted {
			m.granted[e] += int64(g)
		}
	}
	m.state = state
}

// change is a pace of the E-bus from a cycle on.
type change struct {
	cycle int64
	pace  uint8
}

// maxLate is how many changes are put off at most (chosen: those of some packets).
const maxLate = 32

// putsOff tells whether a change of the E-bus's pace can wait until somebody looks
// at the bus: when it has nothing to time. The processor polls until it is told
// otherwise, which is how it spends most of the time in which other masters and
// the card's own DMA engine come and go, and no other engine is at work.
func (m *MemoryBus) putsOff() bool {
	p := m.card.CPU
	return p.mode == modePolls && p.limit == Unbounded && !m.wire[Receive].active && !m.wire[Send].active &&
		m.end == endless && !m.dirty && m.batch == 0 && len(m.late) < maxLate
}

// catchUp makes the changes that were put off.
func (m *MemoryBus) catchUp() {
	if len(m.late) == 0 {
		return
	}
	for i := range m.late {
		x := &m.late[i]
		if i > 0 {
			m.segment()
		}
		for x.cycle > m.at {
			d := min(x.cycle-m.at, m.end)
			m.card.CPU.advance(m.at + d)
			if !m.orb.idle {
				m.pass(d)
			}
			if m.at += d; m.at < x.cycle {
				m.segment()
			}
		}
		m.setPace(x.pace)
	}
	m.late = m.late[:0]
	m.dirty = true
	m.card.fail(m.flush())
}

// setPace makes the E-bus ask at a pace from the segment's start on.
func (m *MemoryBus) setPace(pace uint8) {
	m.state = m.state&^(paceBits[EBus]|phaseBits[EBus]) | uint64(pace)<<eBusPaceAt
}

// touch is called before a change at the present time, settle after it.
func (m *MemoryBus) touch(now des.Time) {
	m.catchUp()
	m.card.CPU.Settle()
	if c := m.clk.ceil(now); c > m.at {
		m.advance(c)
	}
	m.dirty = true
}

func (m *MemoryBus) settle() error {
	if m.batch > 0 {
		return nil
	}
	return m.flush()
}

// flush makes the segment anew if that is due, and what depends on it.
func (m *MemoryBus) flush() error {
	if !m.dirty {
		return nil
	}
	m.dirty = false
	m.segment()
	m.card.CPU.end = endStale
	if m.end == endless {
		m.engine.Cancel(&m.timer)
	} else if at := m.clk.edge(m.at + m.end); !m.timer.Armed() || m.timer.At() != at {
		if err := m.engine.Arm(&m.timer, at); err != nil {
			return err
		}
	}
	return m.card.CPU.rearm()
}

// Handle ends a segment. It is for the engine to call.
func (m *MemoryBus) Handle(now des.Time, _ uint64) error {
	m.card.CPU.Settle()
	m.advance(m.at + m.end)
	m.dirty = true
	m.batch++
	for c := Receive; c < CPU; c++ {
		if t := &m.wire[c]; t.active && t.left == 0 {
			t.active = false
			if err := m.owner[c].streamDone(now); err != nil {
				m.batch--
				return err
			}
		}
	}
	m.batch--
	return m.settle()
}

// start begins a receive or send stream of n ≥ 1 words now.
func (m *MemoryBus) start(now des.Time, c Client, n int64) error {
	m.touch(now)
	m.wire[c] = transfer{active: true, ask: n, left: n}
	m.state = m.state&^phaseBits[c] | paceBits[c]
	return m.settle()
}

// left is how many words of engine c's stream have not been granted by the end
// of the cycle in progress.
func (m *MemoryBus) left(now des.Time, c Client) int64 {
	m.catchUp()
	var granted [numEngines]int64
	m.addGranted(m.clk.ceil(now)-m.at, &granted)
	return m.wire[c].left - granted[c]
}

// setHost switches one source of E-bus accesses on or off.
func (m *MemoryBus) setHost(now des.Time, src hostSource, on bool, num, den int32) error {
	if !on {
		num, den = 0, 1
	}
	m.host.num[src], m.host.den[src] = num, den
	pace, known := m.hostPace()
	if known && m.putsOff() {
		m.late = append(m.late, change{m.clk.ceil(now), pace})
		return nil
	}
	m.touch(now)
	if !known {
		// Not before the bus is brought up to now by the paces that there are:
		// they may have to make room.
		pace = m.newHostPace()
	}
	m.setPace(pace)
	return m.settle()
}

// hostPace finds the index of the pace that the E-bus's sources add up to, if it
// has one.
func (m *MemoryBus) hostPace() (index uint8, known bool) {
	h := &m.host
	if h.num[asInitiator] <= 0 && h.num[asTarget] <= 0 {
		return 0, true
	}
	for i := range m.hostPaces {
		p := &m.hostPaces[i]
		if p.num[0] == h.num[0] && p.num[1] == h.num[1] && p.den[0] == h.den[0] && p.den[1] == h.den[1] {
			return p.index, true
		}
	}
	return 0, false
}

// newHostPace gives the pace that the E-bus's sources add up to an index.
func (m *MemoryBus) newHostPace() uint8 {
	h := &m.host
	sum := new(big.Rat)
	for i, num := range h.num {
		if num > 0 {
			sum.Add(sum, big.NewRat(int64(num), int64(h.den[i])))
		}
	}
	p := makePace(sum.Mul(sum, m.busClocks))
	index := -1
	for i := numEngines; i < len(m.arb.paces); i++ {
		if m.arb.paces[i] == p {
			index = i
		}
	}
	if index < 0 {
		if len(m.arb.paces) == 256 {
			// No index is left: forget the E-bus's paces, and the orbits,
			// which name them.
			m.arb.paces = m.arb.paces[:numEngines]
			m.hostPaces = m.hostPaces[:0]
			m.forget()
		}
		index = len(m.arb.paces)
		m.arb.paces = append(m.arb.paces, p)
	}
	m.hostPaces = append(m.hostPaces, hostPace{*h, uint8(index)})
	return uint8(index)
}

// Granted is how many accesses each engine (E-bus, receive, send) has been
// granted by the end of the cycle in progress.
func (m *MemoryBus) Granted() [3]int64 {
	m.catchUp()
	n := m.granted
	m.addGranted(m.clk.ceil(m.engine.Now())-m.at, &n)
	return n
}
