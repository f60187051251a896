package pci

import (
	"spinesim/sim/des"
)

// The machine below steps the bus clock by clock. It shares no arithmetic with
// the package: signals are looked at in every clock, and everything that takes
// time is counted down.

// job is what a simulated device asks for: after the end of the one before
// (from time 0 for the first), after a delay.
type job struct {
	Delay des.Time
	Cmd   Command
	Addr  uint32
	Bytes int
}

// outcome is how a job went.
type outcome struct {
	Requested, Granted, End     des.Time
	Held, Lost, Bursts, Retries uint32
	Status                      Status
	Moved                       int
}

type oracleTarget struct {
	base, end, populated int64
	spec                 TargetSpec
}

type phase int

const (
	phIdle phase = iota
	phAddress
	phTurn
	phWait     // before the first data phase
	phDataWait // a wait state of a data phase
	phData
	phDecode // before a stop without data
	phStop   // stop without data
	phAbort  // nobody answers
	phTail   // the disconnect is taken
	phRelease
)

type oracleMaster struct {
	jobs []job
	next int
	when des.Time // of the next request

	active  bool
	asked   bool  // REQ# asserted
	quiet   int   // clocks until REQ# is asserted again
	age     int   // clocks REQ# has been asserted
	hasReq  bool  // the first address phase has been
	granted int64 // its clock
	waited  int64 // clocks since it last had the bus or asked for it

	pos, end  int64
	preparing bool
	readyIn   int // clocks to the first data of the prepared access
	tries     int

	out  outcome
	outs []outcome
	own  Owner
}

type oracle struct {
	spec    Spec
	clk     des.Clock
	targets []oracleTarget
	ms      []*oracleMaster

	n     int64 // present clock
	state phase
	owner int
	last  int

	tgt      *oracleTarget
	since    int // clocks since the address phase
	left     int // clocks left of the present phase
	waits    int // wait states left of this data phase
	moved    int64
	cut      bool
	reason   BurstEnd
	retrying bool
	refusing bool
	ended    bool // the transfer ended with this burst
	b        Burst
	bursts   []Burst

	total Clocks
	idle  int64
}

func newOracle(spec Spec, targets []oracleTarget, jobs [][]job) *oracle {
	clk, err := des.NewClock(spec.Clock, 0)
	if err != nil {
		panic(err)
	}
	o := &oracle{spec: spec, clk: clk, targets: targets, last: -1}
	for _, js := range jobs {
		m := &oracleMaster{jobs: js}
		if len(js) > 0 {
			m.when = js[0].Delay
		}
		o.ms = append(o.ms, m)
	}
	return o
}

func (o *oracle) find(addr int64) *oracleTarget {
	for i := range o.targets {
		if t := &o.targets[i]; addr >= t.base && addr < t.end {
			return t
		}
	}
	return nil
}

func (o *oracle) done() bool {
	for _, m := range o.ms {
		if m.active || m.next < len(m.jobs) {
			return false
		}
	}
	return o.state == phIdle
}

// known tells whether the arbiter has seen m's REQ# long enough to act on it.
func (o *oracle) known(m int) bool {
	return o.ms[m].asked && o.ms[m].age > o.spec.GrantLatency
}

// grantee is whose GNT# is asserted.
func (o *oracle) grantee() int {
	for i := 1; i <= len(o.ms); i++ {
		if k := (o.last + i) % len(o.ms); o.known(k) {
			return k
		}
	}
	switch o.spec.Park {
	case ParkLast:
		return o.last
	case ParkMaster:
		if o.spec.ParkAt < len(o.ms) {
			return o.spec.ParkAt
		}
	}
	return -1
}

// step runs clock n.
func (o *oracle) step() {
	for _, m := range o.ms {
		if !m.active && m.next < len(m.jobs) && m.when <= o.clk.Edge(o.n) {
			j := m.jobs[m.next]
			m.next++
			m.active, m.asked, m.quiet, m.age, m.hasReq = true, true, 0, 0, false
			m.preparing, m.tries = false, 0
			m.pos, m.end = int64(j.Addr), int64(j.Addr)+int64(j.Bytes)
			m.out = outcome{Requested: m.when}
		}
		if m.active && !m.asked {
			if m.quiet == 0 {
				m.asked, m.age = true, 0
			} else {
				m.quiet--
			}
		}
		if m.asked {
			m.age++
		}
		if m.preparing {
			m.readyIn--
		}
	}
	if o.state == phIdle {
		if g := o.grantee(); g >= 0 && o.ms[g].asked {
			o.begin(g)
		}
	}
	o.account()
	o.advance()
	o.n++
}

// begin puts the address phase of master g into this clock.
func (o *oracle) begin(g int) {
	m := o.ms[g]
	o.owner, o.state, o.since, o.moved, o.cut, o.ended = g, phAddress, 0, 0, false, false
	o.tgt = o.find(m.pos)
	if !m.hasReq {
		m.hasReq, m.granted = true, o.n
		m.out.Granted = o.clk.Edge(o.n)
	}
	o.b = Burst{Master: g, Cmd: m.jobs[m.next-1].Cmd, Addr: uint32(m.pos), Wanted: o.n - m.waited, Address: o.n}
	m.waited = 0
}

// account books the present clock.
func (o *oracle) account() {
	for i, m := range o.ms {
		switch {
		case o.state != phIdle && o.owner == i:
			continue
		case !m.active:
			m.own.Idle++
			continue
		case !m.asked:
			m.own.Backoff++
		case o.state == phIdle:
			m.own.Arbitration++
		default:
			m.own.BusBusy++
		}
		m.waited++
	}
	if o.state == phIdle {
		o.idle++
		return
	}
	m := o.ms[o.owner]
	if !(o.ended && o.state == phRelease) {
		m.out.Held++ // finish has counted the idle clock of a last burst
	}
	switch o.state {
	case phData:
		m.own.Data++
		o.total.Data++
	case phWait, phDataWait, phDecode, phAbort:
		m.own.Wait++
		o.total.Wait++
	default:
		m.own.Overhead++
		o.total.Overhead++
	}
}

// advance does what happens at the end of the present clock.
func (o *oracle) advance() {
	if o.state == phIdle {
		return
	}
	m := o.ms[o.owner]
	read := o.b.Cmd != MemWrite

	// The master looks at its timer and GNT# in every clock.
	if o.since >= o.spec.LatencyTimer {
		for i := range o.ms {
			if i != o.owner && o.known(i) {
				o.cut = true
			}
		}
	}
	o.since++

	switch o.state {
	case phAddress:
		if o.tgt == nil {
			o.state, o.left = phAbort, o.spec.AbortClocks
			o.b.Data = o.n + 1
			return
		}
		s := &o.tgt.spec
		// How many clocks from the address clock to the first data clock?
		turn := 0
		natural := s.WriteWait
		if read {
			turn, natural = 1, s.ReadLatency
		}
		natural += turn + s.DataWait + 1
		first := natural
		if m.preparing {
			first = max(m.readyIn, 1+turn+max(s.Devsel, s.DataWait))
		}
		o.refusing = m.pos >= o.tgt.populated
		o.retrying = !o.refusing && first > MaxFirstData
		if o.refusing || o.retrying {
			if o.retrying && !m.preparing {
				m.preparing, m.readyIn = true, natural
			}
			o.left = s.Devsel
			o.b.Data = o.n + 1 + int64(s.Devsel)
			if o.state = phDecode; o.left == 0 {
				o.state = phStop
			}
			return
		}
		o.b.Data = o.n + int64(first-s.DataWait)
		o.left = first - 1 - turn - s.DataWait
		if read {
			o.state = phTurn
			return
		}
		o.towardsData()
	case phTurn:
		o.towardsData()
	case phWait:
		o.left--
		o.towardsData()
	case phDataWait:
		if o.waits--; o.waits == 0 {
			o.state = phData
		}
	case phData:
		o.dataEnds(m)
	case phDecode:
		if o.left--; o.left == 0 {
			o.state = phStop
		}
	case phStop:
		o.state = phRelease
		if o.refusing {
			o.close(EndTargetAbort)
			o.finish(m, TargetAbort)
			return
		}
		o.close(EndRetry)
		m.out.Retries++
		m.tries++
		if o.spec.RetryLimit > 0 && m.tries >= o.spec.RetryLimit {
			o.finish(m, RetriesExceeded)
			return
		}
		wait := o.spec.RetryBackoff
		for i := 1; i < m.tries; i++ {
			wait = min(2*wait, o.spec.RetryBackoffMax)
		}
		m.asked, m.quiet = false, wait // the idle clock is the first quiet one
	case phAbort:
		if o.left--; o.left == 0 {
			o.state = phRelease
			o.close(EndMasterAbort)
			o.finish(m, MasterAbort)
		}
	case phTail:
		o.state = phRelease
	case phRelease:
		o.state = phIdle
		o.last = o.owner
	}
}

// towardsData enters the next clock before or of the first data phase.
func (o *oracle) towardsData() {
	if o.left > 0 {
		o.state = phWait
		return
	}
	o.startPhase()
}

func (o *oracle) startPhase() {
	o.waits = o.tgt.spec.DataWait
	if o.state = phData; o.waits > 0 {
		o.state = phDataWait
	}
}

// dataEnds handles the end of a clock in which data moved.
func (o *oracle) dataEnds(m *oracleMaster) {
	s := &o.tgt.spec
	w := int64(o.spec.Width / 8)
	m.pos = m.pos/w*w + w
	o.moved++
	o.b.Phases++
	m.preparing, m.tries = false, 0

	boundary := s.Boundary > 0 && m.pos%int64(s.Boundary) == 0
	line := s.ReadLine > 0 && o.b.Cmd == MemRead && m.pos%int64(s.ReadLine) == 0
	slow := s.DataWait+1 > MaxNextData
	switch {
	case m.pos >= m.end:
		m.pos = m.end
		m.out.Bursts++
		o.close(EndDone)
		o.state = phRelease
		o.finish(m, StatusOK)
	case o.spec.BurstBytes > 0 && o.moved*w >= int64(o.spec.BurstBytes):
		m.out.Bursts++
		o.close(EndBurstLength)
		o.state = phRelease
	case o.cut:
		m.out.Bursts++
		o.close(EndTimer)
		o.state = phRelease
	case boundary || line || slow || m.pos >= o.tgt.populated || m.pos >= o.tgt.end:
		m.out.Bursts++
		o.close(EndDisconnect)
		o.state = phTail
		m.asked, m.quiet = false, 2 // the stop clock and the idle clock
	default:
		o.startPhase()
	}
}

func (o *oracle) close(end BurstEnd) {
	o.b.End, o.b.Last, o.b.Idle = end, o.n, o.n+1
	if end == EndDisconnect {
		o.b.Idle++
	}
	o.bursts = append(o.bursts, o.b)
}

func (o *oracle) finish(m *oracleMaster, s Status) {
	o.ended = true
	m.active, m.asked, m.age, m.preparing = false, false, 0, false
	m.out.Status = s
	m.out.End = o.clk.Edge(o.n + 1)
	m.out.Held++ // the idle clock that follows
	m.out.Lost = uint32(o.n + 1 - m.granted - int64(m.out.Held-1))
	m.out.Moved = int(m.pos - int64(m.jobs[m.next-1].Addr))
	m.outs = append(m.outs, m.out)
	if m.next < len(m.jobs) {
		m.when = m.out.End + m.jobs[m.next].Delay
	}
}

// usage is the account of the clocks stepped so far.
func (o *oracle) usage() Usage {
	u := Usage{Elapsed: o.n, Total: o.total, Idle: o.idle}
	for _, m := range o.ms {
		u.Owners = append(u.Owners, m.own)
	}
	return u
}
