package sim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"time"

	"spinesim/lanai"
	"spinesim/router"
	"spinesim/router/l2"
	"spinesim/router/lctrie"
	"spinesim/sim/des"
	"spinesim/sim/traffic"
	"spinesim/spine"
	"spinesim/spine/firmware"
	"spinesim/spine/schedule"
	"spinesim/traces"
)

// Options of a run. The zero value runs and measures; nothing in it changes
// what happens in the simulation, except Arrivals, Extensions and Policy.
type Options struct {
	// Sinks take the record as it is made.
	Sinks []traces.Sink
	// Check validates every record as it is made.
	Check bool
	// Overlap lets measures, validator and Sinks work in a goroutine of their own,
	// a little behind the simulation: sooner done where a processor is free for
	// it, with the same results. It is not done where Extensions are watched (see
	// HangAfter).
	Overlap bool
	// Unmeasured leaves out the measures, for runs that only make a record.
	Unmeasured bool
	// Expand lists spans of time in which every poll is recorded on its own,
	// in order and without overlap.
	Expand []Span
	// Until ends the run at this time, 0 when the router has drained.
	Until des.Time
	// Wires takes the packets that leave, as pcapng.
	Wires io.Writer
	// Progress is told, now and then, how many packets have been offered and
	// how many there will be (0: unknown).
	Progress func(done, total uint64)
	// Stepping polls one queue at a time: slower, same results.
	Stepping bool
	// Extensions makes the extensions of a card, which run before the
	// scenario's.
	Extensions func(card int, sram *lanai.SRAM) ([]spine.Extension, error)
	// Arrivals gives what arrives at a card, with the link's headers, in place
	// of the scenario's traffic. Whoever makes the sources closes them.
	Arrivals func(card int) (traffic.Source, error)
	// HangAfter is how long, by the wall's clock, a call of one of Extensions may
	// take before the run is given up with ErrHang; 0 is 10 s, less than 0 no
	// bound.
	HangAfter time.Duration
	// Policy makes the dispatcher's policy of a card, each its own; nil takes
	// the scenario's.
	Policy func(card int) (spine.Policy, error)
}

// Span is a span of simulated time.
type Span struct{ From, To des.Time }

// Result is what a run gives.
type Result struct {
	traces.Result

	RouteTableBytes int               `json:"route_table_bytes"`
	Routes          int               `json:"routes"`
	Offered         uint64            `json:"offered"`
	Skipped         map[string]uint64 `json:"skipped,omitempty"`
	Saturating      bool              `json:"saturating"`
	Policy          string            `json:"policy"`
	Scenario        string            `json:"scenario"`
	ScenarioHash    string            `json:"scenario_hash"`
	Seed            uint64            `json:"seed"`
	Version         string            `json:"version"`
	Fingerprint     string            `json:"fingerprint"`
	Records         uint64            `json:"records"`
	SimulatedS      float64           `json:"simulated_s"`
	WallS           float64           `json:"wall_s"`
	Drained         bool              `json:"drained"`
	Interrupted     bool              `json:"interrupted,omitempty"`
	Unloaded        []string          `json:"unloaded,omitempty"`
	// Execution is what the processors executed; "" is nothing.
	Execution string `json:"execution,omitempty"`
	// Marks counts log_0 to log_4; nil when the firmware passed none.
	Marks []uint64 `json:"marks,omitempty"`
	// Faults are what extensions in C were stopped for. Their packets were
	// dropped.
	Faults []Fault `json:"faults,omitempty"`
	// Stopped are the cards that a fault of the run-time's own code has stopped.
	// Run's error is a *StoppedError then.
	Stopped []StoppedCard `json:"stopped,omitempty"`

	Notes      []string `json:"notes,omitempty"`
	Checked    bool     `json:"checked,omitempty"`
	Violations []string `json:"violations,omitempty"`
	// Windows is what a replay found worth drawing.
	Windows *FoundWindows `json:"windows,omitempty"`
}

// Fault is what an extension in C was stopped for at one place.
type Fault struct {
	Card   uint8    `json:"card"`
	Count  uint64   `json:"count"`
	First  des.Time `json:"first_ps"`
	PC     uint32   `json:"pc"`
	Symbol string   `json:"symbol"`
	Text   string   `json:"text"`
}

// FoundWindows are the fastest one-for-one stretch of four receives and the
// longest receive run among the packets that a replay looks at. Times are in µs.
type FoundWindows struct {
	BestPeriod  traces.Real `json:"best_period_us"`  // mean of three periods
	BestLatency traces.Real `json:"best_latency_us"` // of the packet that the arrows follow
	LongestRun  int         `json:"longest_run"`
}

// Simulation is a scenario, wired and ready to run once.
type Simulation struct {
	sc      *Scenario
	opt     Options
	eng     *des.Engine
	rec     *traces.Recorder
	router  *spine.Router
	ports   []*traffic.Port
	rx      []*lanai.Receiver
	pool    *traffic.FramePool
	ids     traffic.PacketIDs
	routes  []router.Route
	table   *router.Table
	bridge  *l2.Bridge
	meas    *traces.Measures
	check   *traces.Validator
	print   *traces.Fingerprint
	wires   *traffic.PcapSink
	played  []*traffic.Capture
	notes   []string
	hash    string
	drained bool
	span    int // index of the next span to expand, doubled, plus one inside it
	timer   des.Timer
	plans   map[spine.Deferred]*schedule.Plan // of static policies

	saturating bool     // a source never pauses
	released   uint64   // packets that the router is done with
	settled    bool     // cards have stopped, and nothing else can go on
	stranded   []uint64 // packets on each card then
	stuck      des.Time // how long nothing had moved when the run was given up
}

// New wires a scenario. A mistake in it, or in a file that it names, is an
// *InputError.
func New(sc *Scenario, opt Options) (*Simulation, error) {
	if err := sc.Validate(); err != nil {
		return nil, err
	}
	if opt.watches() {
		// Such a run may be given up while it stands in an extension. Nobody
		// else must be at work on its sinks then.
		opt.Overlap = false
	}
	s := &Simulation{sc: sc, opt: opt}
	var err error
	if s.hash, err = sc.Hash(); err != nil {
		return nil, err
	}
	if err := s.buildTable(); err != nil {
		return nil, err
	}
	s.eng = des.New(des.Options{RandomTies: sc.RandomTies, Seed: sc.Seed})
	if err := s.buildRecorder(); err != nil {
		return nil, err
	}
	if s.pool, err = traffic.NewFramePool(int(sc.Traffic.Carry)); err != nil {
		return nil, &InputError{err}
	}
	if err := s.buildPorts(); err != nil {
		return nil, err
	}
	if err := s.buildRouter(); err != nil {
		return nil, err
	}
	s.timer.Init(s, lanai.PrioHardware, 0)
	s.eng.Adopt(&s.timer)
	return s, nil
}

// readRoutes reads the route table's routes.
func (s *Simulation) readRoutes() ([]router.Route, error) {
	var routes []router.Route
	if s.sc.Routes.File != "" {
		f, err := router.ReadFile(s.sc.Routes.File, router.ReadOptions{Partial: true})
		if err != nil {
			return nil, &InputError{err}
		}
		if f.Problem != nil && !errors.Is(f.Problem, router.ErrTruncated) {
			return nil, &InputError{f.Problem}
		}
		s.notes = append(s.notes, f.Notes...)
		routes = f.Routes
	} else {
		var err error
		if routes, err = router.RIB2008(); err != nil {
			return nil, err
		}
	}
	if !s.sc.Routes.DefaultRoute {
		routes = router.WithoutDefault(routes)
	}
	if n := s.sc.Routes.Limit; n > 0 && n < len(routes) {
		routes = routes[:n]
	}
	if len(routes) == 0 {
		return nil, inputErrorf("routes: the table is empty, want at least one route")
	}
	return routes, nil
}

func (s *Simulation) buildTable() error {
	var err error
	if s.routes, err = s.readRoutes(); err != nil {
		return err
	}
	a := router.Assignment{Rule: router.Rule(s.sc.Routes.Assign)}
	for _, c := range s.egressCards() {
		a.Cards = append(a.Cards, uint8(c))
	}
	opt := lctrie.DefaultOptions()
	opt.FillFactor, opt.RootBranch = s.sc.Routes.Fill, s.sc.Routes.RootBranch
	if s.table, err = router.NewTable(s.routes, a, opt); err != nil {
		return &InputError{err}
	}
	return nil
}

// egressCards are the cards that next hops are assigned to.
func (s *Simulation) egressCards() []int {
	if len(s.sc.Routes.Cards) > 0 {
		return s.sc.Routes.Cards
	}
	var out []int
	for c := range s.sc.Cards {
		if len(s.sc.Traffic.Ingress) == 1 && s.sc.Cards > 1 && c == s.sc.Traffic.Ingress[0] {
			continue
		}
		out = append(out, c)
	}
	return out
}

// prefixes are the destinations that traffic is drawn from: all routes but the
// default.
func (s *Simulation) prefixes() []netip.Prefix {
	var out []netip.Prefix
	for _, r := range router.WithoutDefault(s.routes) {
		out = append(out, r.Prefix)
	}
	return out
}

func (s *Simulation) buildRecorder() error {
	s.print = &traces.Fingerprint{}
	sinks := []traces.Sink{s.print}
	fw, err := s.sc.firmware()
	if err != nil {
		return &InputError{err}
	}
	card, err := s.sc.cardSpec(0)
	if err != nil {
		return &InputError{err}
	}
	chain, err := s.sc.chainTime(&fw, card.Clock)
	if err != nil {
		return err
	}
	if !s.opt.Unmeasured {
		s.meas, err = traces.NewMeasures(traces.MeasureSpec{
			ChainHandlers: chain,
			BusPeriod:     busPeriod(s.sc),
		})
		if err != nil {
			return err
		}
		sinks = append(sinks, s.meas)
	}
	if s.opt.Check {
		s.check = traces.NewValidator(s.limits())
		sinks = append(sinks, s.check)
	}
	sinks = append(sinks, s.opt.Sinks...)
	s.rec = traces.NewRecorder(sinks...)
	s.rec.SetBatch(recordBatch)
	if s.opt.Overlap {
		s.rec.SetBatch(overlapBatch)
	}
	return nil
}

// recordBatch is how many records are passed on together: those of one or two
// packets, few enough to stay in a processor's nearest cache. Chosen.
const recordBatch = 64

// overlapBatch is the same where it is another processor's cache that they go to:
// enough that handing them over does not show. Chosen.
const overlapBatch = 2048

// busPeriod is one bus clock.
func busPeriod(sc *Scenario) des.Time { return des.Time(float64(des.Second)/sc.Bus.Clock.Hz() + 0.5) }

func (s *Simulation) limits() traces.Limits {
	l := traces.Limits{
		Buffers: uint32(s.sc.Firmware.Buffers), Credits: uint32(s.sc.Firmware.Credits), FIFO: uint32(s.sc.Traffic.FIFO),
		BusPeriod: busPeriod(s.sc),
	}
	if s.sc.Firmware.Receive != "split" {
		l.Posted = 1
	}
	if c, err := s.sc.cardSpec(0); err == nil {
		l.CardPeriod = des.Time(float64(des.Second)/c.Clock.Hz() + 0.5)
		l.MemoryAccesses = uint32(c.Slots)
	}
	return l
}

func (s *Simulation) buildPorts() error {
	t := &s.sc.Traffic
	for _, c := range t.Ingress {
		spec := traffic.PortSpec{Card: uint8(c), Capacity: t.FIFO}
		var src traffic.Source
		var err error
		if s.opt.Arrivals != nil {
			src, err = s.opt.Arrivals(c)
		} else if src, spec.Saturating, err = s.source(c); err == nil {
			spec.Limit = t.Packets
			if c, ok := src.(*traffic.Capture); ok {
				s.played = append(s.played, c)
			}
			if src, err = s.framed(src); err != nil {
				err = &InputError{err}
			}
		}
		if err != nil {
			return err
		}
		s.saturating = s.saturating || spec.Saturating
		p, err := traffic.NewPort(spec, src, s.eng, s.rec, s.pool, &s.ids)
		if err != nil {
			return &InputError{err}
		}
		s.ports = append(s.ports, p)
	}
	return nil
}

// source makes what arrives at a card, and tells whether it never pauses.
func (s *Simulation) source(c int) (src traffic.Source, saturating bool, err error) {
	t := &s.sc.Traffic
	card, err := s.sc.cardSpec(0)
	if err != nil {
		return nil, false, &InputError{err}
	}
	wire := traffic.Wire{Rate: card.Link, Overhead: s.sc.linkOverhead()}
	name := fmt.Sprintf("traffic/%d", c)
	arrivals, err := s.arrivals()
	if err != nil {
		return nil, false, &InputError{err}
	}
	saturating = t.Arrivals.Process == "saturating"
	if t.Capture != nil {
		spec := traffic.DefaultCaptureSpec(t.Capture.File)
		spec.Wire, spec.MTU = wire, int(s.sc.Firmware.MaxPacket)-s.sc.linkOverhead()
		spec.Repeat, spec.Readable = max(1, t.Capture.Repeat), t.Capture.Partial
		if t.Capture.MaxJump > 0 {
			spec.MaxGap = t.Capture.MaxJump
		}
		saturating = false
		switch t.Capture.Pace {
		case "rate":
			spec.Timing, spec.Arrivals = traffic.Paced, arrivals
		case "link":
			spec.Timing, saturating = traffic.LinkRate, true
		}
		src, err = traffic.NewCapture(spec, s.sc.Seed, name)
	} else {
		src, err = s.synthetic(c, arrivals, wire, name)
	}
	if err != nil {
		return nil, false, &InputError{err}
	}
	return src, saturating, nil
}

func (s *Simulation) arrivals() (traffic.ArrivalSpec, error) {
	a := &s.sc.Traffic.Arrivals
	spec := traffic.ArrivalSpec{Rate: a.Rate, Senders: a.Senders, Jitter: a.Jitter, On: a.On, Off: a.Off}
	switch a.Process {
	case "saturating":
		spec.Kind = traffic.Saturating
	case "constant":
		spec.Kind = traffic.Constant
	case "jittered":
		spec.Kind = traffic.Jittered
	case "poisson":
		spec.Kind = traffic.Poisson
	case "bursts":
		spec.Kind = traffic.OnOff
	default:
		return spec, fmt.Errorf("arrival process %q is unknown", a.Process)
	}
	return spec, spec.Validate()
}

// burstFirst is an arrival process with a burst before it; the wire spaces the
// burst's packets.
type burstFirst struct {
	left int
	then traffic.Process
}

// Next implements traffic.Process.
func (b *burstFirst) Next() (des.Time, error) {
	if b.left > 0 {
		b.left--
		return 0, nil
	}
	return b.then.Next()
}

func (s *Simulation) synthetic(card int, arrivals traffic.ArrivalSpec, wire traffic.Wire, name string) (traffic.Source, error) {
	t := &s.sc.Traffic
	var sizes traffic.Sizes
	var err error
	switch t.Sizes.Kind {
	case "fixed":
		sizes, err = traffic.Fixed(int(t.Sizes.Bytes))
	case "imix":
		sizes = traffic.IMIX()
	case "rfc2544":
		sizes = traffic.RFC2544()
	case "empirical":
		var lengths []int
		for _, l := range t.Sizes.Lengths {
			lengths = append(lengths, int(l))
		}
		sizes, err = traffic.Empirical(lengths, t.Sizes.Weights)
	}
	if err != nil {
		return nil, err
	}
	if n := sizes.Largest() + s.sc.linkOverhead(); n > int(s.sc.Firmware.MaxPacket) {
		return nil, fmt.Errorf("packets of %d bytes, but firmware.max_packet is %v", n, s.sc.Firmware.MaxPacket)
	}
	header := traffic.DefaultHeader()
	header.TTL = uint8(t.TTL)
	dest := traffic.DestinationSpec{
		Prefixes: s.prefixes(), Unroutable: t.Destinations.Unroutable,
		Covered: func(a netip.Addr) bool { _, ok := s.table.Lookup(a); return ok },
	}
	if t.Destinations.Unroutable > 0 && t.Stations == 0 && slices.ContainsFunc(s.routes, func(r router.Route) bool { return r.Prefix.Bits() == 0 }) {
		return nil, fmt.Errorf("traffic.destinations.unroutable: %g, but a default route covers every address; want routes.default_route: false", t.Destinations.Unroutable)
	}
	if t.Stations > 0 {
		s.stationTraffic(card, &header, &dest)
	}
	if t.Destinations.Kind == "zipf" {
		dest.Zipf = t.Destinations.Exponent
	}
	var process traffic.Process
	if n := t.Arrivals.First; n > 0 && arrivals.Kind != traffic.Saturating {
		then, err := arrivals.Process(s.sc.Seed, name)
		if err != nil {
			return nil, err
		}
		process = &burstFirst{left: n, then: then}
	}
	return traffic.NewSynthetic(traffic.SyntheticSpec{
		Process:  process,
		Arrivals: arrivals, Wire: wire, Sizes: sizes, Destinations: dest, Header: header, Carry: int(t.Carry),
	}, s.sc.Seed, name)
}

func (s *Simulation) buildRouter() error {
	cfg := spine.Config{Bus: s.sc.busSpec(), Release: s.release, Copy: s.copyFrame}
	if s.opt.Wires != nil {
		var names []string
		for i := range s.sc.Cards {
			names = append(names, fmt.Sprintf("card%d", i))
		}
		sink := traffic.NewPcapSink
		if s.sc.Traffic.Link == "ethernet" {
			sink = traffic.NewEthernetSink
		}
		w, err := sink(s.opt.Wires, names, time.Unix(0, 0).UTC())
		if err != nil {
			return err
		}
		s.wires, cfg.Sink = w, wireSink{w}
	}
	var err error
	if cfg.Host, cfg.HostQueue, err = s.hostPath(); err != nil {
		return &InputError{err}
	}
	if s.sc.Host.Return == "card" {
		to := uint8(s.sc.Host.Card)
		cfg.Route = func(*spine.Packet) (uint8, bool) { return to, true }
	}
	var code firmware.Inputs
	if s.sc.executes() {
		if s.opt.Extensions != nil {
			return inputErrorf("firmware.execution: %s: the router handler is compiled from C, so extensions in Go cannot run", s.sc.Firmware.Execution)
		}
		if code, err = s.code(); err != nil {
			return err
		}
	}
	for i := range s.sc.Cards {
		fw, err := s.sc.firmware()
		if err != nil {
			return &InputError{err}
		}
		card, err := s.sc.cardSpec(i)
		if err != nil {
			return &InputError{err}
		}
		policy, err := s.policy(i)
		if err != nil {
			return &InputError{err}
		}
		cc := spine.CardConfig{Card: card, Firmware: fw, Policy: policy, Phase: s.sc.phase(i, card.Clock), Stepping: s.opt.Stepping}
		cc.Execution, cc.Code = spine.Execution(s.sc.Firmware.Execution), code
		for j, c := range s.sc.Traffic.Ingress {
			if c == i {
				cc.Upstream = s.ports[j]
			}
		}
		cfg.Cards = append(cfg.Cards, cc)
	}
	if s.router, err = spine.New(s.eng, s.rec, &cfg); err != nil {
		return &InputError{err}
	}
	if s.sc.executes() {
		return nil
	}
	for i := range s.sc.Cards {
		rt := s.router.Card(i)
		var exts []spine.Extension
		if s.opt.Extensions != nil {
			if exts, err = s.opt.Extensions(i, rt.Card().SRAM); err != nil {
				return err
			}
		}
		own, err := s.extensionsOf(i, rt.Card().SRAM)
		if err != nil {
			return &InputError{fmt.Errorf("card %d: %w", i, err)}
		}
		rt.Load(append(exts, own...)...)
	}
	return nil
}

func (s *Simulation) policy(card int) (spine.Policy, error) {
	var p spine.Policy
	var err error
	if s.opt.Policy != nil {
		p, err = s.opt.Policy(card)
	} else {
		p, err = spine.NewPolicy(s.sc.Policy, s.sc.Seed, uint8(card))
	}
	if err != nil {
		return nil, err
	}
	return s.resolve(p, card)
}

// wireSink writes leaving packets to a capture.
type wireSink struct{ w *traffic.PcapSink }

func (s wireSink) Deliver(now des.Time, card uint8, f *lanai.Frame) error {
	return s.w.Write(now, card, f.Data, f.Bytes)
}

// release takes a frame back; the last one of a drained router ends the run.
func (s *Simulation) release(f *lanai.Frame) {
	s.released++
	s.pool.Put(f)
	s.stopIfDrained()
}

func (s *Simulation) stopIfDrained() {
	if s.router.Inside() != 0 {
		return
	}
	for _, p := range s.ports {
		if !p.Drained() {
			return
		}
	}
	s.drained = true
	s.eng.Stop()
}

// Handle begins and ends the spans in which polls are expanded.
func (s *Simulation) Handle(des.Time, uint64) error {
	on := s.span%2 == 0
	s.span++
	if err := s.router.Expand(on); err != nil {
		return err
	}
	return s.armSpan()
}

func (s *Simulation) armSpan() error {
	i := s.span / 2
	if i >= len(s.opt.Expand) {
		return nil
	}
	at := s.opt.Expand[i].From
	if s.span%2 == 1 {
		at = s.opt.Expand[i].To
	}
	return s.eng.Arm(&s.timer, max(at, s.eng.Now()))
}

// Meta describes the run for files of records.
func (s *Simulation) Meta() *traces.Meta {
	text, _ := s.sc.YAML()
	m := &traces.Meta{
		Program: "spinesim " + Version, Scenario: s.sc.Name, ScenarioHash: s.hash, ScenarioYAML: text,
		Seed: s.sc.Seed, RunID: fmt.Sprintf("%s-%d", s.hash, s.sc.Seed), RouteTableBytes: uint64(s.table.Bytes()),
	}
	for i := range s.router.Cards() {
		rt := s.router.Card(i)
		c := traces.CardMeta{Name: fmt.Sprintf("card %d", i)}
		if spec, err := s.sc.cardSpec(i); err == nil {
			c.ClockNum, c.ClockDen = spec.Clock.Num, spec.Clock.Den
			c.Phase = s.sc.phase(i, spec.Clock)
		}
		if p, ok := rt.Policy().(*spine.Strict); ok {
			o := p.Order()
			c.QueueOrder = o[:]
		}
		m.Cards = append(m.Cards, c)
	}
	m.Labels = append(m.Labels, traces.Label{Key: "policy", Value: s.router.Card(0).Policy().Name()})
	if s.sc.executes() {
		m.Labels = append(m.Labels, traces.Label{Key: "execution", Value: s.sc.Firmware.Execution})
	}
	return m
}

// Router is the router of the simulation.
func (s *Simulation) Router() *spine.Router { return s.router }

// Table is the route table.
func (s *Simulation) Table() *router.Table { return s.table }

// slice is how much simulated time passes between two looks at progress.
const slice = 20 * des.Millisecond

// Run runs the simulation to its end. A cancelled context ends it early: the
// result so far is returned with Interrupted set, beside the context's error. A
// run in which cards have stopped goes on to its end without them: its result is
// whole, and returned beside a *StoppedError.
func (s *Simulation) Run(ctx context.Context) (*Result, error) {
	if s.opt.watches() {
		return s.watched(ctx)
	}
	return s.run(ctx)
}

func (s *Simulation) run(ctx context.Context) (*Result, error) {
	begun := time.Now()
	if s.opt.Overlap {
		s.rec.Overlap()
		defer s.rec.Stop()
	}
	if err := s.armSpan(); err != nil {
		return nil, err
	}
	if err := s.router.Start(); err != nil {
		return nil, err
	}
	for i, c := range s.sc.Traffic.Ingress {
		if err := s.ports[i].Start(s.router.Card(c).Card().Rx); err != nil {
			return nil, inputOr(err)
		}
	}
	err := s.loop(ctx)
	interrupted := err != nil && ctx.Err() != nil
	if err != nil && !interrupted {
		return nil, inputOr(err)
	}
	s.router.Finish()
	if s.settled {
		s.strand()
	}
	if rerr := s.rec.Close(); rerr != nil {
		return nil, rerr
	}
	if s.wires != nil {
		if werr := s.wires.Close(); werr != nil {
			return nil, werr
		}
	}
	r, ferr := s.result()
	if ferr != nil {
		return nil, ferr
	}
	r.Interrupted = interrupted
	r.WallS = time.Since(begun).Seconds()
	if !interrupted {
		err = nil
		if len(r.Stopped) > 0 {
			err = &StoppedError{r.Stopped}
		}
	}
	return r, err
}

// inputOr tells a broken capture, or destinations that do not exist, found
// while the run goes on, from a fault of the run.
func inputOr(err error) error {
	if errors.Is(err, traffic.ErrCapture) || errors.Is(err, traffic.ErrNoAddress) {
		return &InputError{err}
	}
	return err
}

func (s *Simulation) loop(ctx context.Context) error {
	var total uint64
	if s.sc.Traffic.Packets > 0 {
		total = s.sc.Traffic.Packets * uint64(len(s.ports))
	}
	ended := des.Time(-1)
	var moved uint64
	var since des.Time
	patience := s.patience()
	for !s.drained {
		next := s.eng.Now() + slice
		if s.router.Stopped() > 0 {
			next = s.eng.Now() + settling
		}
		if s.opt.Until > 0 {
			next = min(next, s.opt.Until)
		}
		if err := s.eng.RunUntil(ctx, next); err != nil {
			return err
		}
		if err := s.rec.Err(); err != nil {
			return err
		}
		if s.opt.Progress != nil {
			var done uint64
			for _, p := range s.ports {
				done += p.Counts().Offered
			}
			s.opt.Progress(done, total)
		}
		if s.drained {
			return nil
		}
		if s.opt.Until > 0 && s.eng.Now() >= s.opt.Until {
			return nil
		}
		if s.settled = s.isSettled(); s.settled {
			return nil
		}
		if m, idle := s.progress(); idle || m != moved {
			moved, since = m, s.eng.Now()
		} else if still := s.eng.Now() - since; still >= patience {
			s.stuck = still
			return nil
		}
		all := true
		for _, p := range s.ports {
			all = all && p.Ended()
		}
		switch {
		case !all:
			ended = -1
		case ended < 0:
			ended = s.eng.Now()
			s.stopIfDrained()
		case s.eng.Now() >= ended+s.sc.Measure.Drain:
			return nil
		}
	}
	return nil
}

// progress counts packets taken in and packets done with, and tells whether
// there is none to work on.
func (s *Simulation) progress() (moved uint64, idle bool) {
	moved, idle = s.released, s.router.Inside() == 0
	for _, p := range s.ports {
		c := p.Counts()
		moved += c.Delivered
		if s.router.Stopped() > 0 {
			moved += c.Lost // nobody takes them any more; the source goes on
		}
		idle = idle && c.Waiting == 0
	}
	return moved, idle
}

// patience is how long a router with packets in it may stand still until the
// run is given up, where policies that leave out a queue would go on for ever:
// the time allowed for draining, and at least a million card cycles (chosen).
func (s *Simulation) patience() des.Time {
	cycles := s.router.Card(0).Card().TimeOf(1_000_000) - s.router.Card(0).Card().TimeOf(0)
	return max(s.sc.Measure.Drain, cycles)
}

func (s *Simulation) result() (*Result, error) {
	r := &Result{
		RouteTableBytes: s.table.Bytes(), Routes: s.table.Stats().Routes,
		Policy: s.router.Card(0).Policy().Name(), Scenario: s.sc.Name, ScenarioHash: s.hash,
		Seed: s.sc.Seed, Version: Version, Fingerprint: s.print.String(), Records: s.print.Records(),
		SimulatedS: s.eng.Now().Seconds(), Drained: s.drained, Notes: s.notes,
		Saturating: s.saturating,
	}
	if s.meas != nil {
		m, err := s.meas.Finish(s.eng.Now())
		if err != nil {
			return nil, err
		}
		r.Result = *m
	}
	for _, p := range s.ports {
		c := p.Counts()
		r.Offered += c.Offered
		for _, k := range c.Skipped {
			if r.Skipped == nil {
				r.Skipped = map[string]uint64{}
			}
			r.Skipped[k.Reason] += k.Count
		}
	}
	for i := range s.router.Cards() {
		for _, u := range s.router.Card(i).Unloaded() {
			r.Unloaded = append(r.Unloaded, fmt.Sprintf("extension %s on card %d at %v: %s", u.Extension, u.Card, u.At, u.Reason))
		}
	}
	s.executed(r)
	if !s.drained && !s.settled && s.opt.Until == 0 {
		note := fmt.Sprintf("%d packets were still inside when the run ended", s.router.Inside())
		if s.stuck > 0 {
			note += fmt.Sprintf("; nothing had moved for %v", s.stuck)
		}
		r.Notes = append(r.Notes, note)
	}
	r.Notes = append(r.Notes, s.captureNotes()...)
	if s.check != nil {
		r.Checked = true
		_ = s.check.Finish(s.drained || s.settled) // its error is the first of the violations
		for _, v := range s.check.Violations() {
			r.Violations = append(r.Violations, v.Error())
		}
	}
	return r, nil
}

// captureNotes tells what was made of the captures that were played, where that
// is not all of them as they stand, and closes them.
func (s *Simulation) captureNotes() []string {
	var notes []string
	add := func(format string, args ...any) {
		// Every ingress card plays the same file.
		if n := fmt.Sprintf(format, args...); !slices.Contains(notes, n) {
			notes = append(notes, n)
		}
	}
	for _, c := range s.played {
		x := c.Report()
		if x.Damage != nil {
			add("of the capture only the readable part was played, %d packets a pass: %v", x.Packets/uint64(max(x.Passes, 1)), x.Damage)
		}
		if x.GapsCut > 0 {
			add("%d gaps in the capture were longer than traffic.capture.max_jump, and were cut to it", x.GapsCut)
		}
		if x.StepsBack > 0 {
			add("%d time stamps in the capture lie before the one before them, and were taken as equal to it", x.StepsBack)
		}
		_ = c.Close() // nothing more is read
	}
	return notes
}

// Run wires and runs a scenario: the library's one call.
func Run(ctx context.Context, sc *Scenario, opt Options) (*Result, error) {
	s, err := New(sc, opt)
	if err != nil {
		return nil, err
	}
	return s.Run(ctx)
}
