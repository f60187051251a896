package spine

import (
	"spinesim/lanai"
	"spinesim/sim/des"
	"spinesim/traces"
)

// Context is what an extension sees of the machine while it handles a packet.
// The work it does must be charged through it; the handler's run on the card's
// processor lasts as long as what was charged. It is valid during the call
// only.
type Context struct {
	// SRAM is the card's memory.
	SRAM *lanai.SRAM
	// Now is when the handler began.
	Now des.Time
	// Card is the card the extension runs on.
	Card uint8
	// Batch is how many packets are handled one right after the other, and
	// Place which of them this is, from 0 (Spec.Batch): what they have in
	// common needs to be charged for the first only.
	Batch, Place int

	cycles, accesses int
	limit            int
}

// Charge adds instruction cycles to the handler's run; a number below 0 adds
// none. It does not return once the watchdog's bound is passed: the extension
// is stopped there.
func (c *Context) Charge(cycles int) {
	c.cycles = min(c.cycles+min(max(cycles, 0), maxCharge), maxCharge)
	if c.limit > 0 && c.cycles > c.limit {
		panic(overrun{})
	}
}

// maxCharge is the longest run that a handler can have, in cycles (chosen; more
// than half a minute of a LANai 4).
const maxCharge = 1 << 30

// Access adds loads or stores, each part of an instruction that Charge counts;
// a number below 0 adds none.
func (c *Context) Access(n int) {
	c.accesses = min(c.accesses+min(max(n, 0), maxCharge), maxCharge)
}

// Load32 reads a word of SRAM and charges one access for it. An address that
// is unaligned or outside SRAM reads as 0, as an unclaimed address does.
func (c *Context) Load32(addr uint32) uint32 {
	c.accesses++
	v, err := c.SRAM.Word(addr)
	if err != nil {
		return 0
	}
	return v
}

// Charged tells the cycles and accesses charged so far.
func (c *Context) Charged() (cycles, accesses int) { return c.cycles, c.accesses }

// Overrun tells whether more has been charged than the watchdog allows.
func (c *Context) Overrun() bool { return c.limit > 0 && c.cycles > c.limit }

// NewContext returns a context outside a simulation, for tests of extensions.
func NewContext(sram *lanai.SRAM) *Context { return &Context{SRAM: sram, Batch: 1} }

// Packet is a packet as an extension sees it.
type Packet struct {
	// ID numbers the packets of a run from 1.
	ID uint64
	// Bytes is the length from the IP header on.
	Bytes int
	// Header holds the leading bytes that the simulation carries, at least
	// the IP header. It aliases the packet's buffer in SRAM: what is written
	// there leaves with the packet.
	Header []byte
	// Ingress is the card that received the packet.
	Ingress uint8
	// BadCRC tells that the link's check failed.
	BadCRC bool
}

// Action is what to do with a packet.
type Action uint8

// The actions.
const (
	// Next leaves the packet to the next extension; after the last one it
	// goes to the host.
	Next Action = iota
	// Forward sends it out on the wire of Verdict.Card.
	Forward
	// ToHost hands it to the host's network stack.
	ToHost
	// Drop discards it for Verdict.Reason.
	Drop
	// Flood sends it out on the wires of all other cards.
	Flood
)

// Verdict is an extension's decision about a packet.
type Verdict struct {
	Action  Action
	Card    uint8  // for Forward
	NextHop uint32 // for Forward: the next hop's IPv4 address, or 0
	Reason  traces.Reason
}

// Extension is code that users load onto a card: it looks at a packet, charges
// what its work costs and decides. Handle must not allocate and must not keep
// its arguments. The watchdog counts what is charged: an extension that loops
// and never charges takes no simulated time, and holds up the simulation; only
// who watches the wall's clock can tell (Router.Calling).
type Extension interface {
	Name() string
	Handle(ctx *Context, p *Packet) Verdict
}
