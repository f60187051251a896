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

type hostPace struct {
	num, den [numHostSources]int32
	index    uint8
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
	state busState // at cycle at
	wire  [numEngines]transfer
	orb   *orbit
	body  int64
	end   int64
	tail  struct {
		state busState
		passed
	}

	dirty bool // the segment has to be made anew
	batch int  // while positive, that waits for flush

	host      [numHostSources][2]int32 // words a bus clock, num and den; num 0: off
	hostPaces []hostPace
	busClocks *big.Rat // bus clocks per card cycle

	orbits  map[uint64]*orbit
	quiet   *orbit            // of state 0, where no engine asks
	granted [numEngines]int64 // up to cycle at
}

// maxOrbits and maxCells bound the orbits kept; beyond them all are forgotten
// and made anew as needed. Round paces need some hundreds with a few dozen
// cells each.
const (
	maxOrbits = 1 << 13
	maxCells  = 1 << 20
)

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
	m.orbits = make(map[uint64]*orbit)
	m.segment()
}

// segment works out the segment that begins with the present state.
func (m *MemoryBus) segment() {
	key := m.state.pack()
	o := m.quiet
	if key != 0 {
		o = m.orbits[key]
	}
	if o == nil {
		if len(m.orbits) >= maxOrbits || m.arb.cells >= maxCells {
			clear(m.orbits)
			m.arb.cells = 0
		}
		o = newOrbit(&m.arb, key)
		m.orbits[key] = o
		if key == 0 {
			m.quiet = o
		}
	}
	m.orb = o
	m.body = endless
	tail := int64(0)
	for c := Receive; c < CPU; c++ {
		if t := &m.wire[c]; t.active && t.left == 0 {
			m.body, m.end = 0, 0
			return
		} else if t.active && m.state.pace[c] != 0 {
			if k := o.firstAsked(c, t.ask) - 1; k < m.body {
				m.body, tail = k, 1
			}
		}
	}
	if end := o.end(); m.body > end {
		m.body, tail = end, 0
	}
	m.end = m.body + tail
	for c := Receive; c < CPU; c++ {
		if t := &m.wire[c]; t.active && m.state.pace[c] == 0 {
			if k := o.first(colGranted+column(c), t.left); k <= m.body {
				m.body, m.end, tail = k, k, 0
			}
		}
	}
	if tail == 0 {
		return
	}
	i, _ := o.place(m.body)
	m.tail.state = unpack(o.cells[i].state)
	asked, _ := o.sums(m.body)
	limit := [numEngines]int32{noLimit, noLimit, noLimit}
	for c := Receive; c < CPU; c++ {
		if t := &m.wire[c]; t.active {
			limit[c] = int32(min(t.ask-asked[c], int64(noLimit)))
		}
	}
	m.tail.passed = m.arb.cycle(&m.tail.state, &limit)
}

// sums is what the engines ask for and get from the segment's start to offset
// d.
func (m *MemoryBus) sums(d int64) (asked, granted [numEngines]int64) {
	asked, granted = m.orb.sums(min(d, m.body))
	if d > m.body {
		for c := range asked {
			asked[c] += int64(m.tail.asked[c])
			granted[c] += int64(m.tail.granted[c])
		}
	}
	return asked, granted
}

// grantedBy is what the engines have been granted before cycle c, which lies
// in the segment.
func (m *MemoryBus) grantedBy(c int64) [numEngines]int64 {
	n := m.granted
	if d := c - m.at; d > 0 && !m.orb.idle {
		_, more := m.sums(d)
		for e := range n {
			n[e] += more[e]
		}
	}
	return n
}

// advance moves the segment's start to cycle c, which lies in it.
func (m *MemoryBus) advance(c int64) {
	d := c - m.at
	if d == 0 {
		return
	}
	m.card.CPU.advance(c)
	if !m.orb.idle {
		asked, granted := m.sums(d)
		for e := range m.wire {
			m.granted[e] += granted[e]
			if t := &m.wire[e]; t.active {
				t.ask -= asked[e]
				t.left -= granted[e]
			}
		}
		if d <= m.body {
			i, _ := m.orb.place(d)
			m.state = unpack(m.orb.cells[i].state)
		} else {
			m.state = m.tail.state
		}
		for e := Receive; e < CPU; e++ {
			if t := &m.wire[e]; t.active && t.ask == 0 {
				m.state.pace[e], m.state.phase[e] = 0, 0
			}
		}
	}
	m.at = c
	m.dirty = true
}

// touch is called before a change at the present time, settle after it.
func (m *MemoryBus) touch(now des.Time) {
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
	m.state.pace[c], m.state.phase[c] = uint8(c), 0
	return m.settle()
}

// left is how many words of engine c's stream have not been granted by the end
// of the cycle in progress.
func (m *MemoryBus) left(now des.Time, c Client) int64 {
	n := m.wire[c].left
	if d := m.clk.ceil(now) - m.at; d > 0 {
		_, granted := m.sums(d)
		n -= granted[c]
	}
	return n
}

// setHost switches one source of E-bus accesses on or off.
func (m *MemoryBus) setHost(now des.Time, src hostSource, on bool, num, den int32) error {
	m.touch(now)
	if !on {
		num, den = 0, 1
	}
	m.host[src] = [2]int32{num, den}
	m.state.pace[EBus], m.state.phase[EBus] = m.hostPace(), 0
	return m.settle()
}

// hostPace finds the index of the pace that the E-bus's sources add up to.
func (m *MemoryBus) hostPace() uint8 {
	key := hostPace{}
	busy := false
	for i, h := range m.host {
		key.num[i], key.den[i] = h[0], h[1]
		busy = busy || h[0] > 0
	}
	if !busy {
		return 0
	}
	for i := range m.hostPaces {
		if h := &m.hostPaces[i]; h.num == key.num && h.den == key.den {
			return h.index
		}
	}
	sum := new(big.Rat)
	for _, h := range m.host {
		if h[0] > 0 {
			sum.Add(sum, big.NewRat(int64(h[0]), int64(h[1])))
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
			m.orbits = make(map[uint64]*orbit)
		}
		index = len(m.arb.paces)
		m.arb.paces = append(m.arb.paces, p)
	}
	key.index = uint8(index)
	m.hostPaces = append(m.hostPaces, key)
	return key.index
}

// Granted is how many accesses each engine (E-bus, receive, send) has been
// granted by the end of the cycle in progress.
func (m *MemoryBus) Granted() [3]int64 {
	return m.grantedBy(m.clk.ceil(m.engine.Now()))
}
