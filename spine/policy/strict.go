package policy

var (
	defaultKind = PolicyKind{
		Name: "default", Doc: "strict priority Q0 … Q6, the bus last",
		WorkConserving: true, Example: "default", New: strictNamed("default", DefaultOrder),
	}
	pciFirstKind = PolicyKind{
		Name: "pci-first", Doc: "strict priority Q6 Q3 Q4 Q5 Q0 Q1 Q2, the bus first",
		WorkConserving: true, Example: "pci-first", New: strictNamed("pci-first", PCIFirstOrder),
	}
	strictKind = PolicyKind{
		Name: "strict", Doc: "strict priority in any order; the order alone names it too",
		Params:         []Param{{"order", "default", "all seven queues, highest first"}},
		WorkConserving: true, Example: "strict:order=6013452", New: newStrict,
	}
)

func strictNamed(name string, o [NumQueues]uint8) func(Args) (Policy, error) {
	return func(Args) (Policy, error) { return NewStrict(name, o), nil }
}

func newStrict(a Args) (Policy, error) {
	o, err := a.Order("order")
	if err != nil {
		return nil, err
	}
	return NewStrict("", o), nil
}

// Strict is strict priority: after every handler the scan restarts at the top
// of a fixed order.
//
// Purpose: SPINE's own dispatcher, and every permutation of it.
// Parameters: the order of the seven queues.
// Needs from hardware: nothing.
// Example: "default" (Q0 … Q6), "pci-first", or "Q6 Q3 Q4 Q5 Q0 Q1 Q2".
//
// It is work-conserving. It is not free of starvation: a queue that is always
// ready keeps every later one waiting.
type Strict struct {
	name  string
	order [NumQueues]uint8
}

// NewStrict returns strict priority in the given order.
func NewStrict(name string, order [NumQueues]uint8) *Strict {
	if name == "" {
		name = FormatOrder(order)
	}
	return &Strict{name: name, order: order}
}

// Name is the preset's name or the order.
func (s *Strict) Name() string { return s.name }

// Order is the order of the queues.
func (s *Strict) Order() [NumQueues]uint8 { return s.order }

// Plan polls the order over and over.
func (s *Strict) Plan(_ *View, p *Plan) {
	p.Seq = append(p.Seq[:0], s.order[:]...)
	p.Loop, p.Fixed = 0, true
}

// Hit changes nothing.
func (s *Strict) Hit(int64, uint8) {}
