package spine

import (
	"context"
	"fmt"

	"spinesim/lanai"
	"spinesim/pci"
	"spinesim/sim/des"
	"spinesim/spine/firmware"
	"spinesim/traces"
)

// CardConfig is one card of a router.
type CardConfig struct {
	Card       lanai.Spec
	Firmware   Spec
	Policy     Policy
	Extensions []Extension
	// Phase is the card clock's offset from time 0.
	Phase des.Time
	// Upstream is what feeds the card's wire; nil leaves it silent.
	Upstream lanai.Upstream
	// Stepping polls one queue at a time instead of in whole scans.
	Stepping bool
	// Execution is what the processor executes; "" is ExecuteTable. It is the
	// same for all cards of a router.
	Execution Execution
	// Code is what executed firmware routes by, and its extension in C. Lengths,
	// numbers and order of what is in Firmware and Policy are taken from there.
	Code firmware.Inputs
}

// Config is a whole router: cards on one bus, and the host.
type Config struct {
	Bus   pci.Spec
	Cards []CardConfig
	Host  HostPath  // nil: Firmware.HostService of card 0
	Route HostRoute // where the host sends packets; nil: nowhere
	Sink  Sink      // who takes the packets that leave; nil: nobody
	// Release is told when the router has no more use for a frame.
	Release func(*lanai.Frame)
	// Copy makes a frame of the same length and contents under a number of its
	// own, from the same sequence as other packets', for extensions that flood;
	// nil is a router whose extensions do not.
	Copy func(*lanai.Frame) *lanai.Frame
	// HostQueue is how many packets wait in the host's memory for its
	// processor; one that finds no room is dropped. 0 is without bound.
	HostQueue int
}

// Sink takes packets as they leave a card's wire. The frame is valid during
// the call only.
type Sink interface {
	Deliver(now des.Time, card uint8, f *lanai.Frame) error
}

// MaxCards is the number of cards that seven queues can serve: three peers and
// the card itself.
const MaxCards = QDMA - QPeer + 1

// Router is cards, bus and host, wired.
type Router struct {
	eng     *des.Engine
	rec     *traces.Recorder
	bus     *pci.Bus
	cards   []*Runtime
	host    *host
	sink    Sink
	rel     func(*lanai.Frame)
	copy    func(*lanai.Frame) *lanai.Frame
	pool    []*packet
	made    []*packet // all, in use or not
	live    int
	stopped int // cards

	calling calling
}

// New wires a router on an engine. rec may be nil.
func New(e *des.Engine, rec *traces.Recorder, cfg *Config) (*Router, error) {
	n := len(cfg.Cards)
	if n < 1 || n > MaxCards {
		return nil, fmt.Errorf("router of %d cards: want 1 … %d", n, MaxCards)
	}
	bus, err := pci.New(cfg.Bus, e, rec)
	if err != nil {
		return nil, err
	}
	r := &Router{eng: e, rec: rec, bus: bus, sink: cfg.Sink, rel: cfg.Release, copy: cfg.Copy}
	for i := range cfg.Cards {
		c := &cfg.Cards[i]
		if c.Policy == nil {
			return nil, fmt.Errorf("card %d: no policy", i)
		}
		if err := c.Firmware.Validate(); err != nil {
			return nil, fmt.Errorf("card %d: %w", i, err)
		}
		card, err := lanai.New(c.Card, uint8(i), c.Phase, e, bus, rec)
		if err != nil {
			return nil, fmt.Errorf("card %d: %w", i, err)
		}
		rt := &Runtime{
			router: r, spec: &c.Firmware, eng: e, rec: rec, card: card, index: uint8(i),
			policy: c.Policy, stepping: c.Stepping,
			pollDemand: c.Firmware.Costs.Poll.demand(),
		}
		if v, ok := c.Policy.(VectorPolicy); ok {
			rt.vector = v
			rt.pollDemand = c.Firmware.Costs.Vector.demand()
		}
		switch p := c.Policy.(type) {
		case *Deferred:
			return nil, fmt.Errorf("card %d: policy %s: %w", i, p.Name(), ErrDeferred)
		case StaticPolicy:
			if rt.static, err = newStatic(rt, p.Cycle(), n); err != nil {
				return nil, fmt.Errorf("card %d: policy %s: %w", i, p.Name(), err)
			}
		}
		rt.Load(c.Extensions...)
		rt.batch.init(rt)
		if c.Execution != cfg.Cards[0].Execution {
			return nil, fmt.Errorf("card %d: execution %q, and %q on card 0: want the same on all", i, c.Execution, cfg.Cards[0].Execution)
		}
		if c.Execution != "" && c.Execution != ExecuteTable {
			if rt.exec, err = newExecuted(rt, c.Execution, c.Code, n); err != nil {
				return nil, fmt.Errorf("card %d: %w", i, err)
			}
			card.CPU.Bind(rt.exec)
			card.Rx.Bind(c.Upstream, rt.exec)
			card.Tx.Bind(rt.exec)
			card.DMA.Bind(rt.exec)
			r.cards = append(r.cards, rt)
			continue
		}
		if err := rt.layout(n); err != nil {
			return nil, fmt.Errorf("card %d: %w", i, err)
		}
		rt.ctx.SRAM, rt.ctx.Card = card.SRAM, uint8(i)
		card.CPU.Bind(rt)
		card.Rx.Bind(c.Upstream, rt)
		card.Tx.Bind(rt)
		card.DMA.Bind(rt)
		r.cards = append(r.cards, rt)
	}
	if err := r.connect(); err != nil {
		return nil, err
	}
	if err := r.attachHost(cfg); err != nil {
		return nil, err
	}
	return r, nil
}

// connect makes executed firmware know its peers.
func (r *Router) connect() error {
	var list []*firmware.Card
	for _, c := range r.cards {
		if c.exec != nil {
			list = append(list, c.exec.fw)
		}
	}
	return firmware.Connect(list...)
}

func (r *Router) attachHost(cfg *Config) error {
	bridge, err := pci.NewHostBridge(r.bus, 0, hostMemory)
	if err != nil {
		return err
	}
	h := &host{router: r, bridge: bridge, path: cfg.Host, route: cfg.Route, limit: cfg.HostQueue}
	if h.path == nil {
		h.path = fixedService(cfg.Cards[0].Firmware.HostService)
	}
	if h.master, err = r.bus.AttachMaster("host", traces.HostCard, h); err != nil {
		return err
	}
	for _, c := range r.cards {
		h.credits = append(h.credits, c.spec.HostCredits)
		h.slot = append(h.slot, 0)
	}
	h.timer.Init(h, lanai.PrioHardware, 0)
	r.eng.Adopt(&h.timer)
	r.host = h
	return nil
}

// layout places the firmware's buffers in the card's memory.
func (r *Runtime) layout(cards int) error {
	alloc := func(owner string, n int) (uint32, error) { return r.card.SRAM.Alloc(owner, uint32(n), 4) }
	var err error
	if r.staging, err = alloc("receive header", r.spec.HeaderBytes); err != nil {
		return err
	}
	base, err := alloc("packet buffers", r.spec.Buffers*r.slotBytes())
	if err != nil {
		return err
	}
	for i := range r.spec.Buffers {
		r.bufAddr = append(r.bufAddr, base+uint32(i*r.slotBytes()))
		r.freeBufs = append(r.freeBufs, int32(r.spec.Buffers-1-i))
	}
	r.view.Buffers = r.spec.Buffers
	r.sharers = make([]int32, r.spec.Buffers)
	r.peerSlots = make([]uint32, cards+1)
	r.ackBox = make([]uint32, cards)
	for p := range cards {
		if r.ackBox[p], err = alloc(fmt.Sprintf("ACK box of card %d", p), r.spec.AckBytes); err != nil {
			return err
		}
		if p == int(r.index) {
			continue
		}
		if r.peerSlots[p], err = alloc(fmt.Sprintf("slots for card %d", p), r.spec.Credits*r.slotBytes()); err != nil {
			return err
		}
	}
	if r.spec.HostReturn {
		if r.peerSlots[cards], err = alloc("slots for the host", r.spec.HostCredits*r.slotBytes()); err != nil {
			return err
		}
	}
	r.account(cards)
	return nil
}

// account sets up what the run-time counts.
func (r *Runtime) account(cards int) {
	r.starts = make([]ring, cards+1)
	r.credits = make([]int, cards+1)
	r.creditAt = make([]des.Time, cards+1)
	r.nextSlot = make([]int32, cards+1)
	for p := range cards {
		r.credits[p] = r.spec.Credits
	}
	r.view.AllCredits = (cards - 1) * r.spec.Credits
	r.view.Credits = r.view.AllCredits
	r.view.ChainQueue, r.view.LastQueue = QDMA, traces.NoQueue
	if r.spec.Chain == ChainSelf {
		r.view.ChainQueue = QSelf
	}
	r.credits[cards] = 1 // one slot of host memory a card
}

// Bus is the router's bus.
func (r *Router) Bus() *pci.Bus { return r.bus }

// Cards is the number of cards.
func (r *Router) Cards() int { return len(r.cards) }

// Card is the run-time of card i.
func (r *Router) Card(i int) *Runtime { return r.cards[i] }

// Inside is the number of packets that the router holds, from the first
// header received to the last buffer freed.
func (r *Router) Inside() int { return r.live }

// Start lets every card begin to poll. It is called once, before the engine
// runs.
func (r *Router) Start() error {
	for _, c := range r.cards {
		if err := c.start(); err != nil {
			return fmt.Errorf("card %d: %w", c.index, err)
		}
	}
	return nil
}

// Finish closes what is still open in the record (runs of polls) at the end of
// a simulation.
func (r *Router) Finish() {
	for _, c := range r.cards {
		c.finish(r.eng.Now())
	}
}

// Expand asks for every single poll in the record from now on, or no longer.
// Results do not depend on it.
func (r *Router) Expand(on bool) error {
	if r.rec == nil {
		return nil
	}
	r.rec.SetExpanding(on)
	for _, c := range r.cards {
		if c.exec != nil {
			c.exec.expand(on)
		}
	}
	if !on {
		return nil
	}
	for _, c := range r.cards {
		if err := c.restep(); err != nil {
			return err
		}
	}
	return nil
}

// Run runs the router until the engine has nothing more to do, stop says so,
// or the context ends.
func (r *Router) Run(ctx context.Context, until des.Time) error { return r.eng.RunUntil(ctx, until) }

func (r *Router) packet() *packet {
	r.live++
	if n := len(r.pool); n > 0 {
		p := r.pool[n-1]
		r.pool = r.pool[:n-1]
		*p = packet{buf: -1}
		return p
	}
	p := &packet{buf: -1}
	r.made = append(r.made, p)
	return p
}

func (r *Router) release(p *packet) {
	r.live--
	f := p.frame
	p.frame = nil
	r.pool = append(r.pool, p)
	if r.rel != nil && f != nil {
		r.rel(f)
	}
}
