package policy

import "fmt"

var adaptiveKind = PolicyKind{
	Name: "adaptive", Doc: "one order while buffers are plenty, another while they are scarce, with hysteresis",
	Params: []Param{
		{"order", "default", "order while buffers are plenty"},
		{"scarce", "pci-first", "order while they are scarce"},
		{"low", "25%", "free buffers at which they are scarce: a number or a share of all"},
		{"high", "50%", "free buffers at which they are plenty again"},
	},
	WorkConserving: true, Example: "adaptive:low=4,high=8", New: newAdaptive,
}

// AdaptiveSpec is what an adaptive policy switches between, and when.
type AdaptiveSpec struct {
	Plenty [NumQueues]uint8 // order while buffers are plenty
	Scarce [NumQueues]uint8 // order while they are scarce
	// Low is the number (or share) of free buffers at or below which they are
	// scarce. More of it switches earlier.
	Low Level
	// High is the number at or above which they are plenty again; more than
	// Low, and both numbers or both shares. The wider the two are apart, the
	// rarer the order changes.
	High Level
}

// DefaultAdaptive switches from the default order to pci-first at a quarter of
// the buffers free and back at a half (chosen).
func DefaultAdaptive() AdaptiveSpec {
	return AdaptiveSpec{
		Plenty: DefaultOrder, Scarce: PCIFirstOrder,
		Low: Level{N: 25, Percent: true}, High: Level{N: 50, Percent: true},
	}
}

// Adaptive is strict priority in one of two orders, chosen by how many packet
// buffers are free.
//
// Purpose: receive first while there is room, drain first when there is none.
// Parameters: the two orders, and the levels of free buffers between which the
// choice stays as it was (hysteresis).
// Needs from hardware: nothing; the run-time counts its free list.
// Example: "adaptive:order=default,scarce=pci-first,low=4,high=8".
//
// It is work-conserving. It is not free of starvation: either order is strict.
// The order is chosen after each handler and holds until the next.
type Adaptive struct {
	spec   AdaptiveSpec
	scarce bool
}

// NewAdaptive returns an adaptive policy; levels that contradict each other are
// an error. A High above the number of buffers counts as all of them.
func NewAdaptive(s AdaptiveSpec) (*Adaptive, error) {
	if s.Low.Percent != s.High.Percent {
		return nil, fmt.Errorf("low %v and high %v: want both as numbers or both as shares", s.Low, s.High)
	}
	if s.Low.N < 0 || s.High.N <= s.Low.N {
		return nil, fmt.Errorf("low %v and high %v: want 0 ≤ low < high", s.Low, s.High)
	}
	return &Adaptive{spec: s}, nil
}

func newAdaptive(a Args) (Policy, error) {
	var s AdaptiveSpec
	var err error
	if s.Plenty, err = a.Order("order"); err != nil {
		return nil, err
	}
	if s.Scarce, err = a.Order("scarce"); err != nil {
		return nil, err
	}
	if s.Low, err = a.Level("low"); err != nil {
		return nil, err
	}
	if s.High, err = a.Level("high"); err != nil {
		return nil, err
	}
	return NewAdaptive(s)
}

// Name is "adaptive" with its orders and levels.
func (a *Adaptive) Name() string {
	d := DefaultAdaptive()
	return policyName("adaptive",
		orderSetting("order", a.spec.Plenty, d.Plenty), orderSetting("scarce", a.spec.Scarce, d.Scarce),
		setting{"low", a.spec.Low.String(), d.Low.String()}, setting{"high", a.spec.High.String(), d.High.String()})
}

// Plan polls in the order that the free buffers call for.
func (a *Adaptive) Plan(v *View, p *Plan) {
	switch {
	case v.FreeBuffers >= v.Buffers || a.spec.High.compare(v.FreeBuffers, v.Buffers) >= 0:
		a.scarce = false
	case a.spec.Low.compare(v.FreeBuffers, v.Buffers) <= 0:
		a.scarce = true
	}
	o := &a.spec.Plenty
	if a.scarce {
		o = &a.spec.Scarce
	}
	p.Seq = append(p.Seq[:0], o[:]...)
	p.Loop = 0
}

// Hit changes nothing.
func (a *Adaptive) Hit(int64, uint8) {}
