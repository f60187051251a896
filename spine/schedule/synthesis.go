package schedule

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"spinesim/pci"
	"spinesim/sim/des"
	"spinesim/spine"
	"spinesim/traces"
)

// Options of a synthesis. The zero value takes the defaults.
type Options struct {
	// Packets of each ingress card in a cycle [1]. With one, it has the flows'
	// mean length; more follow the flows' weights, at most MaxPackets.
	Packets int
	// Hybrid keeps only the DMA chain in the cycle and leaves the rest to
	// background slots.
	Hybrid bool
	// Nodes bounds the search, as in SolveOptions.
	Nodes int64
}

// Bar is an op of the repeating cycle, for a Gantt picture.
type Bar struct {
	// Lane is the resource, Name the handler or transfer.
	Lane string `json:"lane"`
	Name string `json:"name"`
	// Packet of the cycle, from 0; Stage is how many cycles after the packet's
	// first op this one runs.
	Packet int `json:"packet"`
	Stage  int `json:"stage"`
	// StartUS is within the cycle; the bar may reach beyond its end, that is,
	// into the next one's beginning.
	StartUS  float64 `json:"start_us"`
	LengthUS float64 `json:"length_us"`
}

// Need is what a cycle holds at once at most, in packets.
type Need struct {
	Card    int `json:"card"`
	Buffers int `json:"buffers"`
	Credits int `json:"credits"` // for any one peer
}

// Result is a synthesised schedule with what is known of it. Times are in
// microseconds.
type Result struct {
	Bound
	// Packets of each ingress card in a cycle; the interval and the bounds are
	// per packet, the cycle takes so many of them.
	Packets    int     `json:"packets"`
	Ingress    int     `json:"ingress_cards"`
	IntervalUS float64 `json:"initiation_interval_us"`
	CycleUS    float64 `json:"cycle_us"`
	// ProvedUS is the greatest bound that the search has proved, with polls;
	// Optimal that the interval meets it; Distance what is left, as a share.
	ProvedUS float64 `json:"proved_bound_us"`
	Optimal  bool    `json:"proved_optimal"`
	Distance float64 `json:"distance"`
	Nodes    int64   `json:"search_nodes"`
	// LatencyUS is from the start of `Rx check header` to departure.
	LatencyUS      float64 `json:"latency_us"`
	LatencyOptimal bool    `json:"latency_proved_optimal"`
	Needs          []Need  `json:"needs"`
	// MemoryUS is what the interval grows by because engines take the
	// processors' memory accesses, BusUS because ACKs of other cards cut into
	// transfers; PredictedUS is the gap with both. They are computed from the
	// cycle, not simulated.
	MemoryUS    float64 `json:"memory_contention_us"`
	BusUS       float64 `json:"bus_contention_us"`
	PredictedUS float64 `json:"predicted_gap_us"`
	Gantt       []Bar   `json:"gantt"`

	// Plan is the cycle as steps. Where several cards receive, it is each
	// card's best order with the bus to itself: their cycles are not in step,
	// as those of the Gantt picture are.
	Plan     *Plan     `json:"-"`
	Schedule *Schedule `json:"-"`
	Problem  *Problem  `json:"-"`
}

// Synthesise finds a cycle for the machine and the flows, and says how good it
// is.
func Synthesise(m *Machine, flows []Flow, opt Options) (*Result, error) {
	k := max(opt.Packets, 1)
	bound, err := LowerBound(m, flows)
	if err != nil {
		return nil, err
	}
	p, err := Build(m, flows, k, true)
	if err != nil {
		return nil, err
	}
	search := SolveOptions{Nodes: opt.Nodes}
	if k > 1 {
		if search.Seed, search.SeedAt, err = inARow(m, flows, k, opt.Nodes); err != nil {
			return nil, err
		}
	}
	// Of the cycle with the shortest latency and the first one found, that which
	// contention slows down less.
	s, err := Solve(p, search)
	if err != nil {
		return nil, err
	}
	withMemory, withBoth, err := s.contention(m)
	if err != nil {
		return nil, err
	}
	if f := s.first; f != nil {
		a, b, err := f.contention(m)
		if err != nil {
			return nil, err
		}
		if b < withBoth-withBoth/200 {
			f.Nodes = s.Nodes
			s, withMemory, withBoth = f, a, b
		}
	}
	each := func(t des.Time) float64 { return t.Microseconds() / float64(k) }
	r := &Result{
		Bound: *bound, Packets: k, Ingress: len(ingressCards(flows)),
		IntervalUS: each(s.Interval), CycleUS: s.Interval.Microseconds(),
		ProvedUS: each(s.Lower), Optimal: s.Proved, Distance: s.Distance(), Nodes: s.Nodes,
		LatencyUS: s.Latency.Microseconds(), LatencyOptimal: s.LatencyProved,
		Gantt: s.gantt(), Plan: s.plan(m, flows, opt.Hybrid), Schedule: s, Problem: p,
	}
	r.Needs = s.needs(m)
	if r.Ingress > 1 {
		if r.Plan, err = planAlone(m, flows, k, opt); err != nil {
			return nil, err
		}
	}
	r.MemoryUS = each(withMemory - s.Interval)
	r.BusUS = each(withBoth - withMemory)
	r.PredictedUS = each(withBoth)
	if err := Check(r.Plan, m, flows); err != nil {
		return nil, fmt.Errorf("the synthesised cycle does not pass its own check: %w", err)
	}
	return r, nil
}

// planAlone makes the cards' steps where several receive. They contend for the
// bus, but nothing keeps their cycles in step, so that a place in the order that
// relies on another card's turn is worth nothing. Each card's order is the one
// that is best with the bus to itself.
func planAlone(m *Machine, flows []Flow, k int, opt Options) (*Plan, error) {
	p, err := build(m, flows, k, true, true)
	if err != nil {
		return nil, err
	}
	s, err := Solve(p, SolveOptions{Nodes: opt.Nodes})
	if err != nil {
		return nil, err
	}
	return s.plan(m, flows, opt.Hybrid), nil
}

// inARow is the cycle of one packet, k times, as a seed for one of k packets.
func inARow(m *Machine, flows []Flow, k int, nodes int64) ([]des.Time, des.Time, error) {
	p, err := Build(m, flows, 1, true)
	if err != nil {
		return nil, 0, err
	}
	s, err := Solve(p, SolveOptions{Nodes: nodes, KeepLatency: true})
	if err != nil {
		return nil, 0, err
	}
	var out []des.Time
	for n := range k {
		for _, t := range s.Start {
			out = append(out, t+des.Time(n)*s.Interval)
		}
	}
	return out, des.Time(k) * s.Interval, nil
}

// gantt lays the ops out within the cycle, by lane, then start.
func (s *Schedule) gantt() []Bar {
	var out []Bar
	for i, o := range s.p.Ops {
		lane := "none"
		if o.Resource >= 0 {
			lane = s.p.Resources[o.Resource]
		}
		at := s.Start[i]
		out = append(out, Bar{
			Lane: lane, Name: o.Name, Packet: o.Packet, Stage: int(floorDiv(int64(at), int64(s.Interval))),
			StartUS: mod(at, s.Interval).Microseconds(), LengthUS: o.Time.Microseconds(),
		})
	}
	slices.SortStableFunc(out, func(a, b Bar) int {
		return cmp.Or(cmp.Compare(a.Lane, b.Lane), cmp.Compare(a.StartUS, b.StartUS))
	})
	return out
}

// find is the op of a handler for a packet that a card receives, or -1.
func (s *Schedule) find(first int, h traces.Event) int {
	for i := first; i < len(s.p.Ops); i++ {
		if i > first && s.p.Ops[i].Handler == traces.RxCheckHeader {
			break
		}
		if s.p.Ops[i].Handler == h {
			return i
		}
	}
	return -1
}

// needs counts the packets between taking a buffer and freeing it, and between
// taking a credit and its return.
func (s *Schedule) needs(m *Machine) []Need {
	type way struct{ from, to des.Time }
	var buffers [spine.MaxCards][]way
	var credits [spine.MaxCards][spine.MaxCards][]way
	used := [spine.MaxCards]bool{}
	end := func(i int) des.Time { return s.Start[i] + s.p.Ops[i].Time }
	for i, o := range s.p.Ops {
		if o.Handler != traces.RxCheckHeader {
			continue
		}
		used[o.Card] = true
		take := end(i)
		if i+1 < len(s.p.Ops) && s.p.Ops[i+1].Handler == traces.NoEvent {
			take = s.Start[i+1] // the body comes in once there is a buffer
		}
		if m.Firmware.Receive != spine.ReceiveSplit {
			// Armed since the packet before: its own time on the wire, at least.
			take = s.Start[i] - m.wire(m.Firmware.MaxPacket)
		}
		if f := s.find(i, traces.FreeBuffer); f >= 0 {
			buffers[o.Card] = append(buffers[o.Card], way{take, end(f)})
		}
		a, b, w := s.find(i, traces.PeerToPeerStart), s.find(i, traces.PeerAck), s.find(i, traces.WireOutputStart)
		if a >= 0 && b >= 0 && w >= 0 {
			out := s.p.Ops[w].Card
			credits[o.Card][out] = append(credits[o.Card][out], way{s.Start[a], end(b)})
		}
	}
	most := func(ways []way) int {
		top := 0
		for _, at := range ways {
			n := 0
			for _, w := range ways {
				// Cycles c with from + c·λ ≤ at < to + c·λ.
				hi := floorDiv(int64(at.from-w.from), int64(s.Interval))
				lo := floorDiv(int64(at.from-w.to), int64(s.Interval)) + 1
				n += int(max(0, hi-lo+1))
			}
			top = max(top, n)
		}
		return top
	}
	var out []Need
	for c := range m.Cards {
		if !used[c] {
			continue
		}
		n := Need{Card: c, Buffers: most(buffers[c])}
		for d := range m.Cards {
			n.Credits = max(n.Credits, most(credits[c][d]))
		}
		out = append(out, n)
	}
	return out
}

// stream is a stretch of the cycle in which an engine takes a card's memory
// accesses.
type stream struct {
	card     uint8
	from, to des.Time
	rate     float64 // words a cycle of the card
}

// contention is the interval when streams slow the processors down, and when
// ACKs cut into transfers as well. Where a stream lies is taken from the
// schedule.
func (s *Schedule) contention(m *Machine) (withMemory, withBoth des.Time, err error) {
	times := s.p.times()
	streams := s.streams(m)
	for i, o := range s.p.Ops {
		if o.Handler != traces.NoEvent {
			times[i] = s.stretched(m, i, streams)
		}
	}
	if withMemory, err = s.Slowed(times); err != nil {
		return 0, 0, err
	}
	if err := s.interrupted(m, times); err != nil {
		return 0, 0, err
	}
	withBoth, err = s.Slowed(times)
	return max(withMemory, s.Interval), max(withBoth, withMemory, s.Interval), err
}

func (s *Schedule) streams(m *Machine) []stream {
	wire := float64(m.Card.Link.Num) / float64(m.Card.Link.Den) / 4 / m.Card.Clock.Hz()
	bus := m.Bus.Clock.Hz() * float64(m.Bus.Width/32) / float64(1+m.Card.Target.DataWait) / m.Card.Clock.Hz()
	var out []stream
	for i, o := range s.p.Ops {
		from, to := s.Start[i]+o.Lead, s.Start[i]+o.Time
		switch {
		case o.Handler != traces.NoEvent || to <= from:
		case o.Resource >= 0 && strings.HasPrefix(s.p.Resources[o.Resource], "bus"):
			out = append(out, stream{o.Card, from, to, bus})
			if peer, ok := s.target(i); ok {
				out = append(out, stream{peer, from, to, bus})
			}
		default:
			out = append(out, stream{o.Card, from, to, wire})
		}
	}
	return out
}

// target is the card that a transfer goes to: that of the handler it leads to.
func (s *Schedule) target(i int) (uint8, bool) {
	for k := 0; k < len(s.p.Ops); k++ {
		for _, e := range s.p.Edges {
			if e.From == i && e.Height == 0 && e.To == k {
				if o := s.p.Ops[k]; o.Card != s.p.Ops[i].Card {
					return o.Card, true
				}
				// The body goes where its header goes.
				for _, f := range s.p.Edges {
					if f.From == k && f.Height == 0 && s.p.Ops[f.To].Handler == traces.NoEvent {
						return s.target(f.To)
					}
				}
			}
		}
	}
	return 0, false
}

// stretched is how long a handler takes where the schedule puts it, given the
// streams of its card. Accesses flow evenly, as the memory bus grants them.
func (s *Schedule) stretched(m *Machine, i int, streams []stream) des.Time {
	o := s.p.Ops[i]
	cost := m.Firmware.Costs.Handler[o.Handler]
	cycles, accesses := float64(cost.Cycles), float64(cost.Accesses)
	if o.Handler == traces.RouterIn {
		cycles, accesses = cycles+float64(m.Router.Cycles), accesses+float64(m.Router.Accesses)
	}
	want := 1 + accesses/max(cycles, 1)
	speed := func(at des.Time) (float64, des.Time) {
		free := float64(m.Card.Slots)
		next := s.Interval
		for _, st := range streams {
			if st.card != o.Card {
				continue
			}
			into := mod(at-st.from, s.Interval)
			if into < st.to-st.from {
				free -= st.rate
				next = min(next, st.to-st.from-into)
			} else {
				next = min(next, s.Interval-into)
			}
		}
		return min(1, max(min(free, 2)/want, 0.02)), max(next, 1)
	}
	at, left := s.Start[i], float64(o.Time)
	for left > 0 {
		v, next := speed(at)
		if done := v * float64(next); done < left {
			left -= done
			at += next
			continue
		}
		at += des.Time(left/v + 0.5)
		break
	}
	return at - s.Start[i]
}

// interrupted lengthens the bodies' transfers that an ACK of another card cuts
// into: where a processor alone would send it, not where the schedule, in
// which transfers are whole, has room for it.
func (s *Schedule) interrupted(m *Machine, times []des.Time) error {
	lambda := s.Interval
	for i, o := range s.p.Ops {
		if o.Handler != traces.NoEvent || !strings.HasPrefix(o.Name, traces.TransferBody.String()) {
			continue
		}
		from, to := mod(s.Start[i], lambda), mod(s.Start[i], lambda)+o.Time
		longer, once := des.Time(0), des.Time(-1)
		for j, a := range s.p.Ops {
			if !strings.HasPrefix(a.Name, traces.TransferAck.String()) || a.Card == o.Card {
				continue
			}
			at := s.natural(j)
			for _, t := range []des.Time{mod(at, lambda), mod(at, lambda) + lambda} {
				if t+a.Time <= from || t >= to {
					continue
				}
				if once < 0 {
					var err error
					if once, err = m.cut(o.Time); err != nil {
						return err
					}
				}
				longer += once
			}
		}
		times[i] += longer
	}
	return nil
}

// natural is when an op begins if what leads to it within its packet runs as
// soon as it can after the header's transfer.
func (s *Schedule) natural(i int) des.Time {
	for _, e := range s.p.Edges {
		if e.To != i || e.Height != 0 {
			continue
		}
		from := s.p.Ops[e.From]
		if strings.HasPrefix(from.Name, traces.TransferHeader.String()) {
			return s.Start[e.From] + from.Time + e.After
		}
		return s.natural(e.From) + from.Time + e.After
	}
	return s.Start[i]
}

// cut is how much longer a transfer takes that lasts so long on an idle bus
// when another card writes an ACK in its middle.
func (m *Machine) cut(took des.Time) (des.Time, error) {
	e := des.New(des.Options{})
	bus, err := pci.New(m.Bus, e, nil)
	if err != nil {
		return 0, err
	}
	long, short := &probe{}, &probe{}
	a, err := bus.AttachMaster("long", 0, long)
	if err != nil {
		return 0, err
	}
	b, err := bus.AttachMaster("short", 1, short)
	if err != nil {
		return 0, err
	}
	if err := bus.AttachTarget("window", 1, m.Card.WindowBase, m.Card.WindowBytes, m.Card.Target, long); err != nil {
		return 0, err
	}
	// As many bytes as took so long.
	clocks := int(took.Seconds() * m.Bus.Clock.Hz())
	bytes := max(4, clocks/(1+m.Card.Target.DataWait)*m.Bus.Width/8)
	bytes = min(bytes, int(m.Card.SRAMBytes)/2)
	base := m.Card.WindowBase + m.Card.SRAMAt
	alone, err := m.transfer(bytes)
	if err != nil {
		return 0, err
	}
	ctx := context.Background()
	t := &pci.Transfer{Cmd: pci.MemWrite, Addr: base, Bytes: bytes}
	if err := a.Start(t); err != nil {
		return 0, err
	}
	if err := e.RunUntil(ctx, took/2); err != nil {
		return 0, err
	}
	if err := b.Start(&pci.Transfer{Cmd: pci.MemWrite, Addr: base, Bytes: m.Firmware.AckBytes}); err != nil {
		return 0, err
	}
	if err := e.RunUntil(ctx, 10*des.Second); err != nil {
		return 0, err
	}
	idle, err := m.transfer(bytes)
	if err != nil {
		return 0, err
	}
	_ = alone
	clock := float64(des.Second) / m.Bus.Clock.Hz()
	half := des.Time(clock/2) + m.cycles(0.5)
	return max(0, t.End-t.Requested-(idle.took-half)), nil
}

// WriteText prints the result for people: the bounds, the cycle, its steps.
func (r *Result) WriteText(w io.Writer) error {
	if err := r.Bound.WriteText(w); err != nil {
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(name, format string, args ...any) { fmt.Fprintf(t, "%s\t%s\n", name, fmt.Sprintf(format, args...)) }
	fmt.Fprintln(t)
	row("lower bound", "%.2f µs a packet, set by the %s; with a static cycle's polls %.2f µs", r.LowerUS, r.Binding, r.PolledUS)
	row("cycle", "%.2f µs for %d packets of each ingress card", r.CycleUS, r.Packets)
	proof := "proved optimal"
	if !r.Optimal {
		proof = fmt.Sprintf("proved to be within %.2f %% of the best", 100*r.Distance)
	}
	row("initiation interval", "%.2f µs a packet, %s (%d nodes)", r.IntervalUS, proof, r.Nodes)
	row("latency", "%.2f µs from Rx check header to departure%s", r.LatencyUS, map[bool]string{true: ", the least at this interval"}[r.LatencyOptimal])
	for _, n := range r.Needs {
		row(fmt.Sprintf("card %d needs", n.Card), "%d buffers, %d credits for a peer", n.Buffers, n.Credits)
	}
	row("contention", "memory %+.2f µs, bus %+.2f µs: predicted gap %.2f µs", r.MemoryUS, r.BusUS, r.PredictedUS)
	if r.Ingress > 1 {
		row("", "%d cards contend for the bus and chop each other's transfers, which is not counted;", r.Ingress)
		row("", "the steps are each card's best order with the bus to itself, for their cycles are not in step")
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, c := range r.Plan.Cards {
		fmt.Fprintf(w, "\ncards %s\n", cardText(c.Cards))
		steps, _ := flat(c.Steps)
		for i := range steps {
			fmt.Fprintf(w, "  %2d  %s\n", i+1, stepText(&steps[i]))
		}
	}
	return nil
}
