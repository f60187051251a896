package isa

// waiting finds loops that only wait: a taken branch back at which everything
// is as it was at the same branch before. Registers, flags and the addresses
// in flight are compared; memory through a log of what was changed since.
type waiting struct {
	armed  bool // the state below is that of an earlier visit
	logged bool // changes to memory have been logged since
	misses int
	state  loopState
	cycle  int64
	count  Counters
	log    []change
	spoilt bool // more happened than the log can tell
}

type loopState struct {
	reg        [NumRegs]uint32
	p0, p1, p2 uint32
	nz, cf, vf uint32
	hz         uint64
}

type change struct{ addr, was uint32 } // a word and its value at the visit

const (
	maxChanges = 32 // words that a waiting loop may change and change back
	maxMisses  = 48 // branches back before another one is looked at
)

// note logs that the word around addr is about to change.
func (l *waiting) note(mem []byte, addr uint32) {
	addr &^= 3
	for i := range l.log {
		if l.log[i].addr == addr {
			return
		}
	}
	if len(l.log) == maxChanges {
		l.spoilt = true
		return
	}
	l.log = append(l.log, change{addr, loadWord(mem, addr)})
}

func (l *waiting) restored(mem []byte) bool {
	if l.spoilt {
		return false
	}
	for _, x := range l.log {
		if loadWord(mem, x.addr) != x.was {
			return false
		}
	}
	return true
}

// reset forgets what was seen.
func (l *waiting) reset() {
	l.armed, l.logged, l.spoilt = false, false, false
	l.misses = 0
	l.log = l.log[:0]
}

// look tells whether a branch back from pc is worth a visit.
func (l *waiting) look(pc uint32) bool {
	if l.armed && l.state.p0 != pc {
		if l.misses++; l.misses < maxMisses {
			return false
		}
		l.reset()
	}
	return true
}

// visit is called at a taken branch back that takes effect at the boundary
// cycle. It tells how many whole rounds, of which length, may be left out
// before the boundary to.
func (l *waiting) visit(s *loopState, mem []byte, cycle, to int64, n Counters) (rounds, length int64, each Counters) {
	if l.armed && l.state == *s {
		if l.logged && l.restored(mem) {
			length = cycle - l.cycle
			each = n.Sub(l.count)
			if length > 0 {
				rounds = (to - cycle) / length
			}
			l.reset()
			return rounds, length, each
		}
		l.logged, l.spoilt, l.log = true, false, l.log[:0]
		l.cycle, l.count, l.misses = cycle, n, 0
		return 0, 0, each
	}
	if l.armed {
		if l.misses++; l.misses < maxMisses {
			return 0, 0, each
		}
	}
	l.reset()
	l.armed = true
	l.state = *s
	return 0, 0, each
}
