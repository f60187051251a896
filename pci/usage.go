package pci

// Clocks counts bus clocks by what the bus did in them.
type Clocks struct {
	Data     int64 // data moved
	Overhead int64 // address, turnaround, stop and idle clocks of a transaction
	Wait     int64 // wait states: decode, first-data latency, each data phase's
}

// Held is the clocks in which somebody had the bus.
func (c Clocks) Held() int64 { return c.Data + c.Overhead + c.Wait }

func (c *Clocks) add(o Clocks) {
	c.Data += o.Data
	c.Overhead += o.Overhead
	c.Wait += o.Wait
}

func (c *Clocks) sub(o Clocks) {
	c.Data -= o.Data
	c.Overhead -= o.Overhead
	c.Wait -= o.Wait
}

// Owner is one master's view of the bus: what it did in every clock from 0 on.
type Owner struct {
	Name string
	Card uint8

	Clocks            // it had the bus
	Arbitration int64 // it wanted the bus, nobody had it
	BusBusy     int64 // it wanted the bus, another master had it
	Backoff     int64 // it waited after a retry before it asked again
	Idle        int64 // it had no transfer outstanding
}

// Usage says what every clock of the bus was used for.
type Usage struct {
	Elapsed int64   // whole clocks since clock 0
	Total   Clocks  // of all masters
	Idle    int64   // nobody had the bus; Total.Held() + Idle == Elapsed
	Owners  []Owner // by index; each one's counts add up to Elapsed
}

// clocksBefore counts the burst's clocks that lie before clock n.
func (c *burst) clocksBefore(n int64) (u Clocks) {
	if n <= c.addr {
		return u
	}
	n = min(n, c.idle+1)
	u.Overhead = 1
	at := c.addr + 1
	if c.turn && n > at {
		u.Overhead++
		at++
	}
	if n > at {
		u.Wait = min(n, c.on) - at
	}
	tail := c.last + 1
	switch {
	case c.phases > 0:
		if n > c.on {
			d := min(n, tail) - c.on
			u.Data = d / c.cost
			u.Wait += d - u.Data
		}
	case c.end == EndMasterAbort:
		if n > c.on {
			u.Wait += min(n, tail) - c.on
		}
	default:
		tail = c.on
	}
	if n > tail {
		u.Overhead += n - tail
	}
	return u
}

// waited splits m's present wait, as far as it lies before clock n, given how
// many of those clocks others had the bus.
func (m *Master) waited(n, blocked int64) (arbitration, busBusy, backoff int64) {
	if n <= m.req {
		return 0, 0, 0
	}
	backoff = max(0, min(n, m.ask)-m.req)
	return n - m.req - backoff - blocked, blocked, backoff
}

// endWait books m's wait that its address phase in clock n ended.
func (m *Master) endWait(n int64) {
	arbitration, busBusy, backoff := m.waited(n, m.blocked)
	m.use.Arbitration += arbitration
	m.use.BusBusy += busBusy
	m.use.Backoff += backoff
}

// Usage accounts for every clock that has passed whole at the engine's present
// time. It may be called at any time and disturbs nothing.
func (b *Bus) Usage() Usage {
	u := Usage{Owners: make([]Owner, len(b.masters))}
	b.ReadUsage(&u)
	return u
}

// ReadUsage is Usage into u, whose Owners it uses again when they are enough.
func (b *Bus) ReadUsage(u *Usage) {
	now := b.engine.Now()
	n := b.clk.EdgeAtOrAfter(now)
	if b.clk.Edge(n) > now {
		n--
	}
	u.Elapsed = n
	u.Total = b.total
	if cap(u.Owners) < len(b.masters) {
		u.Owners = make([]Owner, len(b.masters))
	}
	u.Owners = u.Owners[:len(b.masters)]

	// Clocks behind n that the last burst has been charged with already.
	ahead := Clocks{Overhead: max(0, b.free-n)}
	u.Total.sub(ahead)
	var cur Clocks
	running := b.cur.stage != stageNone
	if running {
		cur = b.cur.clocksBefore(n)
		u.Total.add(cur)
	}
	for i, m := range b.masters {
		o := &u.Owners[i]
		*o = m.use
		if i == b.last {
			o.sub(ahead)
		}
		if running && b.cur.m == m {
			o.add(cur)
		}
		if m.t != nil {
			blocked, until := m.blocked, n
			if i != b.last {
				blocked -= max(0, b.free-max(n, m.ask))
			}
			if running {
				if b.cur.m == m {
					until = min(n, b.cur.addr)
				} else {
					blocked += max(0, min(n, b.cur.idle+1)-max(b.cur.addr, m.ask))
				}
			}
			arbitration, busBusy, backoff := m.waited(until, blocked)
			o.Arbitration += arbitration
			o.BusBusy += busBusy
			o.Backoff += backoff
		}
		o.Idle = n - o.Held() - o.Arbitration - o.BusBusy - o.Backoff
	}
	u.Idle = n - u.Total.Held()
}
