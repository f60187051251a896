package des

// ties puts events of equal time and priority into a shuffled order. A timer's
// place hangs on the seed, the time and the timer's identity alone: what was
// scheduled before, and how often, does not come into it.
type ties struct {
	key      uint64
	identity map[*Timer]uint64
}

func newTies(o Options) ties {
	if !o.RandomTies {
		return ties{}
	}
	return ties{scramble(o.Seed), map[*Timer]uint64{}}
}

// Adopt gives the timer an identity, the number of timers adopted before, for
// the shuffle of ties (Options.RandomTies); without it, Adopt does nothing. A
// timer that has not been adopted by the time that it is armed is adopted then.
func (e *Engine) Adopt(t *Timer) {
	if e.shuffle {
		e.ties.of(t)
	}
}

// of is the timer's identity.
func (s *ties) of(t *Timer) uint64 {
	id, ok := s.identity[t]
	if !ok {
		id = uint64(len(s.identity))
		s.identity[t] = id
	}
	return id
}

// oneShot sets events of Schedule apart from timers: they have no identity, and
// are told apart by their sequence number.
const oneShot = 1 << 63

// order is the place of t among its equals at the given time. At one time it is
// a bijection of the identity, which keeps the order total.
func (s *ties) order(t *Timer, at Time, seq uint64) uint64 {
	id := seq | oneShot
	if !t.once {
		id = s.of(t)
	}
	return scramble(id ^ scramble(s.key^uint64(at)))
}

// scramble is a bijection of 64-bit words without visible order, the finisher
// of SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number
// generators", 2014).
func scramble(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
