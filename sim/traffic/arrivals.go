package traffic

import (
	"fmt"
	"math/bits"

	"spinesim/sim/des"
)

// ArrivalKind names an arrival process.
type ArrivalKind uint8

// The kinds.
const (
	// Saturating hands over everything at once: packets follow each other
	// without a gap. With PortSpec.Saturating nothing is lost.
	Saturating ArrivalKind = iota
	// Constant: equal gaps.
	Constant
	// Jittered: equal slots, in each of which the packet comes at a time that
	// is uniform over a share of the slot. Jitter does not add up.
	Jittered
	// Poisson: independent exponential gaps.
	Poisson
	// OnOff: bursts at a constant rate; bursts and pauses of exponential
	// length.
	OnOff
	NumArrivalKinds = int(iota)
)

var arrivalNames = [NumArrivalKinds]string{"saturating", "constant", "jittered", "poisson", "on-off"}

func (k ArrivalKind) String() string {
	if int(k) < NumArrivalKinds {
		return arrivalNames[k]
	}
	return "unknown arrivals"
}

// MarshalText is String.
func (k ArrivalKind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads a name that String prints.
func (k *ArrivalKind) UnmarshalText(b []byte) error {
	for i, n := range arrivalNames {
		if n == string(b) {
			*k = ArrivalKind(i)
			return nil
		}
	}
	return fmt.Errorf("arrivals %q: want one of %q", b, arrivalNames)
}

// maxSenders bounds the senders on one link (chosen).
const maxSenders = 1024

// ArrivalSpec describes the senders on one link.
type ArrivalSpec struct {
	Kind ArrivalKind
	// Rate of all senders together. More load: shorter gaps. Not used by
	// Saturating.
	Rate Rate
	// Senders, independent and unsynchronised, of equal rate; 0 counts as 1.
	// With several the start of each is drawn, and they meet on the wire.
	Senders int
	// Jitter is the share of a sender's slot over which its packet is spread,
	// 0 to 1 (Jittered).
	Jitter float64
	// On and Off are the mean lengths of bursts and of the pauses between
	// (OnOff). Within a burst a sender's rate is higher than its mean by
	// (On + Off)/On.
	On, Off des.Time
	// Start is the earliest time of a packet.
	Start des.Time
}

// Validate tells what is wrong with s.
func (s ArrivalSpec) Validate() error {
	fail := func(format string, a ...any) error {
		return fmt.Errorf("arrivals (%v): "+format, append([]any{s.Kind}, a...)...)
	}
	switch {
	case int(s.Kind) >= NumArrivalKinds:
		return fmt.Errorf("arrivals: kind %d is unknown", s.Kind)
	case s.Senders < 0 || s.Senders > maxSenders:
		return fail("%d senders, want 1 to %d", s.Senders, maxSenders)
	case s.Start < 0:
		return fail("start at %v, want 0 or later", s.Start)
	case s.Kind != Saturating && !s.Rate.Set():
		return fail("no rate")
	case s.Kind == Jittered && !(s.Jitter >= 0 && s.Jitter <= 1):
		return fail("jitter %g, want a share from 0 to 1", s.Jitter)
	case s.Kind == OnOff && (s.On <= 0 || s.Off < 0 || s.On > des.MaxTime/4 || s.Off > des.MaxTime/4):
		return fail("bursts of %v and pauses of %v, want positive ones and ones of at least 0", s.On, s.Off)
	}
	if s.Kind != Saturating {
		if _, err := s.Rate.clock(); err != nil {
			return fail("%w", err)
		}
		if s.Rate.gapTimes(max(s.Senders, 1)) == des.MaxTime {
			return fail("rate %v is too low", s.Rate)
		}
	}
	return nil
}

// Scale is the same traffic at f times the rate. Random streams are used as
// before, so that Poisson arrivals keep their pattern.
func (s ArrivalSpec) Scale(f float64) (ArrivalSpec, error) {
	if s.Kind == Saturating {
		return s, nil
	}
	r, err := s.Rate.Scale(f)
	s.Rate = r
	return s, err
}

// Process makes the process. The streams are called name/sender/0 and so on.
func (s ArrivalSpec) Process(seed uint64, name string) (Process, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	if s.Kind == Saturating {
		return backToBack{s.Start}, nil
	}
	clock, err := s.Rate.clock()
	if err != nil {
		return nil, err
	}
	n := max(s.Senders, 1)
	gap := s.Rate.gapTimes(n)
	ps := make([]Process, n)
	for i := range ps {
		r := des.NewStream(seed, fmt.Sprintf("%s/sender/%d", name, i))
		p := pace{clock: clock, step: int64(n), start: s.Start}
		if n > 1 && s.Kind != Poisson {
			if phase := r.Uniform(0, gap-1); phase <= des.MaxTime-p.start {
				p.start += phase
			}
		}
		switch s.Kind {
		case Constant:
			ps[i] = &p
		case Jittered:
			// The product is rounded once, by the conversion.
			ps[i] = &jittered{pace: p, r: r, spread: des.Time(s.Jitter * float64(gap))}
		case Poisson:
			ps[i] = &poisson{r: r, gap: gap, at: s.Start}
		case OnOff:
			ps[i] = newOnOff(p, s.On, s.Off, r)
		}
	}
	if n == 1 {
		return ps[0], nil
	}
	return newMerge(ps)
}

// backToBack is ready with a packet at any time.
type backToBack struct{ at des.Time }

func (b backToBack) Next() (des.Time, error) { return b.at, nil }

// pace is a constant rate: every step-th tick of a clock, exactly.
type pace struct {
	clock   des.Clock
	n, step int64
	start   des.Time
}

func (p *pace) Next() (des.Time, error) {
	t, err := p.tick()
	if err != nil || t > des.MaxTime-p.start {
		return 0, fmt.Errorf("packet %d of a sender: %w", p.n/p.step, ErrEndOfTime)
	}
	return p.start + t, nil
}

// tick is the next tick's time from the start on.
func (p *pace) tick() (des.Time, error) {
	if p.n > p.clock.LastEdge()-p.step {
		return 0, ErrEndOfTime
	}
	t := p.clock.Edge(p.n)
	p.n += p.step
	return t, nil
}

type jittered struct {
	pace
	r      *des.Stream
	spread des.Time
	last   des.Time
}

func (j *jittered) Next() (des.Time, error) {
	t, err := j.pace.Next()
	if err != nil {
		return 0, err
	}
	d := j.r.Uniform(0, j.spread)
	if t > des.MaxTime-d {
		return 0, fmt.Errorf("packet %d of a sender: %w", j.n/j.step, ErrEndOfTime)
	}
	// A spread of a whole slot may meet the next slot's start, to a picosecond.
	j.last = max(j.last, t+d)
	return j.last, nil
}

type poisson struct {
	r       *des.Stream
	gap, at des.Time
}

func (p *poisson) Next() (des.Time, error) {
	d := p.r.Exponential(p.gap)
	if d > des.MaxTime-p.at {
		return 0, fmt.Errorf("a gap after %v: %w", p.at, ErrEndOfTime)
	}
	p.at += d
	return p.at, nil
}

// onOff runs a constant rate against a clock that stands still during pauses;
// so the mean rate is exact, and a packet's place in its burst random.
type onOff struct {
	pace
	r       *des.Stream
	on, off des.Time
	end     des.Time // of the burst, by that clock
	paused  des.Time // so far
}

func newOnOff(p pace, on, off des.Time, r *des.Stream) *onOff {
	o := &onOff{pace: p, r: r, on: on, off: off}
	o.end = r.Exponential(on)
	// A stationary start: in a pause with the share of time that pauses have.
	if r.Bernoulli(uint64(off), uint64(on)+uint64(off)) {
		o.paused = r.Exponential(off)
	}
	return o
}

func (o *onOff) Next() (des.Time, error) {
	t, err := o.tick()
	if err != nil {
		return 0, fmt.Errorf("packet %d of a sender: %w", o.n/o.step, err)
	}
	hi, lo := bits.Mul64(uint64(t), uint64(o.on))
	q, _ := bits.Div64(hi, lo, uint64(o.on)+uint64(o.off)) // below t
	t = des.Time(q)
	for t >= o.end {
		d, b := o.r.Exponential(o.off), o.r.Exponential(o.on)
		if d > des.MaxTime-o.paused || b > des.MaxTime-o.end {
			return 0, fmt.Errorf("packet %d of a sender: %w", o.n/o.step, ErrEndOfTime)
		}
		o.paused += d
		o.end += b
	}
	if t > des.MaxTime-o.paused || t+o.paused > des.MaxTime-o.start {
		return 0, fmt.Errorf("packet %d of a sender: %w", o.n/o.step, ErrEndOfTime)
	}
	return o.start + t + o.paused, nil
}

// merge hands over the packets of several senders in order of time; of equal
// times the first sender's.
type merge struct {
	ps   []Process
	next []des.Time
}

func newMerge(ps []Process) (*merge, error) {
	m := &merge{ps: ps, next: make([]des.Time, len(ps))}
	for i, p := range ps {
		t, err := p.Next()
		if err != nil {
			return nil, fmt.Errorf("sender %d: %w", i, err)
		}
		m.next[i] = t
	}
	return m, nil
}

func (m *merge) Next() (des.Time, error) {
	first := 0
	for i, t := range m.next {
		if t < m.next[first] {
			first = i
		}
	}
	at := m.next[first]
	t, err := m.ps[first].Next()
	if err != nil {
		return 0, fmt.Errorf("sender %d: %w", first, err)
	}
	m.next[first] = t
	return at, nil
}
