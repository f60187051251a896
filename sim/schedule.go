package sim

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"spinesim/lanai"
	"spinesim/sim/des"
	"spinesim/sim/traffic"
	"spinesim/spine"
	"spinesim/spine/schedule"
)

// scheduleSample is how many packets of each ingress card tell the flows that a
// schedule is made for (chosen: shares within a per cent or so).
const scheduleSample = 2048

// scheduleSizes is how many lengths a flow is split by; more become their mean.
const scheduleSizes = 12

// policyNodes bounds the search that a run begins with (chosen: some ten
// milliseconds). `spinesim schedule` searches longer.
const policyNodes = 1000

// ScheduleModel is what static schedules of a scenario are made for: its
// machine, and its flows as its own traffic and route table have them.
func ScheduleModel(sc *Scenario) (*schedule.Machine, []schedule.Flow, error) {
	if err := sc.Validate(); err != nil {
		return nil, nil, err
	}
	if sc.executes() {
		return nil, nil, inputErrorf("firmware.execution: %s: schedules and bounds are worked out from a cost table; want table (scenario executed has the costs of the firmware in C)", sc.Firmware.Execution)
	}
	s := &Simulation{sc: sc}
	if err := s.buildTable(); err != nil {
		return nil, nil, err
	}
	return s.scheduleModel()
}

// LowerBound is the least gap between the packets of an ingress card that any
// dispatcher could reach, and the resource that sets it.
func LowerBound(sc *Scenario) (des.Time, string, error) {
	m, flows, err := ScheduleModel(sc)
	if err != nil {
		return 0, "", err
	}
	b, err := schedule.LowerBound(m, flows)
	if err != nil {
		return 0, "", &InputError{err}
	}
	return des.Time(b.LowerUS * float64(des.Microsecond)), b.Binding, nil
}

func (s *Simulation) scheduleModel() (*schedule.Machine, []schedule.Flow, error) {
	fw, err := s.sc.firmware()
	if err != nil {
		return nil, nil, &InputError{err}
	}
	card, err := s.sc.cardSpec(0)
	if err != nil {
		return nil, nil, &InputError{err}
	}
	m := &schedule.Machine{Cards: s.sc.Cards, Card: card, Bus: s.sc.busSpec(), Firmware: fw}
	sample, err := s.flowSample(card)
	if err != nil {
		return nil, nil, err
	}
	more := true
	for n := 0; n < scheduleSample && more && err == nil; n++ {
		more, err = sample.round()
	}
	if err = errors.Join(err, sample.close()); err != nil {
		return nil, nil, err
	}
	var flows []schedule.Flow
	var cycles, accesses, forwarded int
	for i := range sample.cards {
		c := &sample.cards[i]
		flows = append(flows, flowsOf(c.card, s.sc.Cards, c.seen)...)
		cycles, accesses, forwarded = cycles+c.cycles, accesses+c.accesses, forwarded+c.forwarded
	}
	if forwarded == 0 {
		return nil, nil, inputErrorf("policy: no packet of the first %d is forwarded, so there is nothing to make a schedule for", scheduleSample)
	}
	m.Router = spine.Cost{
		Cycles: int32(fw.Costs.Charge(cycles+forwarded/2) / forwarded), Accesses: int32(fw.Costs.Charge(accesses+forwarded/2) / forwarded),
		Source: fmt.Sprintf("mean over %d packets", forwarded),
	}
	return m, flows, nil
}

// flowsOf turns counts into flows, in order of egress card and length.
func flowsOf(ingress uint8, cards int, seen map[[2]int]int) []schedule.Flow {
	var out []schedule.Flow
	for egress := range cards {
		var lengths []int
		bytes, packets := 0, 0
		for k, n := range seen {
			if k[0] == egress {
				lengths = append(lengths, k[1])
				bytes += k[1] * n
				packets += n
			}
		}
		if packets == 0 {
			continue
		}
		if len(lengths) > scheduleSizes {
			out = append(out, schedule.Flow{Ingress: ingress, Egress: uint8(egress), Bytes: bytes / packets, Weight: float64(packets)})
			continue
		}
		slices.Sort(lengths)
		for _, l := range lengths {
			out = append(out, schedule.Flow{Ingress: ingress, Egress: uint8(egress), Bytes: l, Weight: float64(seen[[2]int{egress, l}])})
		}
	}
	return out
}

// sampleStep is the time between the packets that a card's extensions are shown
// for a sample: enough for what one card has learned to reach the others
// (chosen).
const sampleStep = des.Millisecond

// flowSample shows packets to the scenario's extensions outside any simulation,
// to see where they go.
type flowSample struct {
	cards  []sampledCard
	egress int // cards of the router
	header []byte
	now    des.Time
}

type sampledCard struct {
	card       uint8
	src        traffic.Source
	frames     traffic.Source // src with the link's headers
	sram       *lanai.SRAM
	extensions []spine.Extension
	ended      bool

	seen                        map[[2]int]int // packets by egress card and length
	cycles, accesses, forwarded int
}

// flowSample wires the extensions of all cards that receive. Those that the
// caller of a run has loaded beside the scenario's are not among them.
func (s *Simulation) flowSample(spec lanai.Spec) (*flowSample, error) {
	// What extensions learn from the sample is none of the run's.
	apart := Simulation{sc: s.sc, routes: s.routes, table: s.table}
	f := &flowSample{egress: s.sc.Cards, header: make([]byte, 0, s.sc.Traffic.Carry)}
	for _, c := range s.sc.Traffic.Ingress {
		k := sampledCard{card: uint8(c), sram: lanai.NewSRAM(spec.SRAMBytes), seen: map[[2]int]int{}}
		var err error
		if k.extensions, err = apart.extensionsOf(c, k.sram); err != nil {
			return nil, errors.Join(&InputError{err}, f.close())
		}
		if k.src, _, err = apart.source(c); err != nil {
			return nil, errors.Join(err, f.close())
		}
		k.frames, err = apart.framed(k.src)
		f.cards = append(f.cards, k)
		if err != nil {
			return nil, errors.Join(&InputError{err}, f.close())
		}
	}
	return f, nil
}

// round shows a packet to each card in turn; more is false when all have ended.
func (f *flowSample) round() (more bool, err error) {
	f.now += sampleStep
	for i := range f.cards {
		c := &f.cards[i]
		if c.ended {
			continue
		}
		var a traffic.Arrival
		ok, err := c.frames.Next(&a)
		if err != nil {
			return false, inputOr(err)
		}
		if c.ended = !ok; c.ended {
			continue
		}
		more = true
		if a.Skip == "" {
			f.show(c, &a)
		}
	}
	return more, nil
}

func (f *flowSample) show(c *sampledCard, a *traffic.Arrival) {
	f.header = append(f.header[:0], a.Data...)
	ctx := spine.NewContext(c.sram)
	ctx.Card, ctx.Now = c.card, f.now
	p := &spine.Packet{Bytes: a.Bytes, Header: f.header, Ingress: c.card}
	for _, x := range c.extensions {
		v := x.Handle(ctx, p)
		switch v.Action {
		case spine.Next:
			continue
		case spine.Forward:
			c.seen[[2]int{int(v.Card), a.Bytes}]++
		case spine.Flood:
			for out := range f.egress {
				if out != int(c.card) {
					c.seen[[2]int{out, a.Bytes}]++
				}
			}
		default:
			return
		}
		n, k := ctx.Charged()
		c.cycles, c.accesses, c.forwarded = c.cycles+n, c.accesses+k, c.forwarded+1
		return
	}
}

func (f *flowSample) close() error {
	var err error
	for i := range f.cards {
		err = errors.Join(err, closeSource(f.cards[i].src))
	}
	return err
}

// closeSource closes a source that holds a file.
func closeSource(src traffic.Source) error {
	if c, ok := src.(interface{ Close() error }); ok {
		if err := c.Close(); err != nil && !errors.Is(err, fs.ErrClosed) {
			return err
		}
	}
	return nil
}

// resolve makes the cycle of a static policy that is only named.
func (s *Simulation) resolve(p spine.Policy, card int) (spine.Policy, error) {
	d, ok := p.(*spine.Deferred)
	if !ok {
		return p, nil
	}
	if s.plans == nil {
		s.plans = map[spine.Deferred]*schedule.Plan{}
	}
	plan := s.plans[*d]
	if plan == nil {
		m, flows, err := s.scheduleModel()
		if err != nil {
			return nil, err
		}
		if d.File != "" {
			if plan, err = schedule.ReadFile(d.File); err == nil {
				err = schedule.Check(plan, m, flows)
			}
		} else {
			var r *schedule.Result
			if r, err = schedule.Synthesise(m, flows, schedule.Options{Hybrid: d.Hybrid, Nodes: policyNodes}); err == nil {
				plan = r.Plan
			}
		}
		if err != nil {
			return nil, &InputError{fmt.Errorf("policy %s: %w", d.Name(), err)}
		}
		s.plans[*d] = plan
	}
	return plan.Policy(d.Name(), uint8(card))
}

// withScheduleFile changes the file that a static policy is read from, if the
// policy is one.
func withScheduleFile(policy string, change func(file string) (string, error)) string {
	p, err := spine.NewPolicy(policy, 0, 0)
	if err != nil {
		return policy
	}
	d, ok := p.(*spine.Deferred)
	if !ok || d.File == "" {
		return policy
	}
	file, err := change(d.File)
	if err != nil {
		return policy
	}
	return (&spine.Deferred{Hybrid: d.Hybrid, File: file}).Name()
}
