package lanai

import (
	"fmt"
	"math/big"
	"math/bits"

	"spinesim/pci"
	"spinesim/sim/des"
)

// Client is one of those that share the memory bus.
type Client uint8

// The clients. The first three are the engines.
const (
	EBus    Client = iota // host DMA and other masters' accesses through the window
	Receive               // the receive engine
	Send                  // the send engine
	CPU                   // the processor
	NumClients

	numEngines = int(CPU)
)

var clientNames = [NumClients]string{"E-bus", "receive", "send", "processor"}

func (c Client) String() string {
	if c < NumClients {
		return clientNames[c]
	}
	return "unknown client"
}

// NoBuffer says what becomes of a frame that arrives while no buffer is posted.
type NoBuffer uint8

// The choices.
const (
	HoldLink NoBuffer = iota // the link is held back; the frame waits upstream
	Discard                  // the frame is taken in at the wire rate and thrown away
	numNoBuffer
)

// Spec describes a card. It does not change once the card is made. Start from
// Lanai4 or Lanai9 and change what differs.
type Spec struct {
	Name string // for messages

	// Clock is the processor's and memory bus's, 1 kHz to 10 GHz. Its ratio's
	// terms must stay below 2^40.
	Clock des.Frequency

	// SRAMBytes is the size of the memory: a multiple of 4, 4 KB to 1 GB.
	SRAMBytes uint32

	// Slots is the memory accesses that a cycle has room for, 1 to 8. The
	// processor uses at most two of them.
	Slots int

	// Order is who is granted first. The processor must be last.
	Order [NumClients]Client

	// FIFO is the words that each engine's FIFO holds, indexed by Client (the
	// processor's is not used), at most 63 and no fewer than the engine may
	// ask for in one cycle. Less makes an engine lose its pace sooner when it
	// is starved; more lets it catch up after longer starvation.
	FIFO [NumClients]int

	// Link is the rate of each direction of the link, 1 kB/s to 1 TB/s. Its
	// ratio's terms must stay below 2^40.
	Link des.Rate

	// NoBuffer is what happens to frames while no buffer is posted.
	NoBuffer NoBuffer

	// Tick is the unit of RTC, IT and TIMEOUT.
	Tick des.Time

	// The card's window on the bus: card k's lies at WindowBase +
	// k·WindowBytes and holds the special registers, the control words and
	// the SRAM at these offsets.
	WindowBase, WindowBytes        uint32
	RegistersAt, ControlAt, SRAMAt uint32

	// Target is how the window answers.
	Target pci.TargetSpec

	// Bus is the bus the card is built for; a card refuses a wider or faster
	// one.
	Bus pci.Spec
}

// Lanai4 is the card of the SPINE router: LANai 4 at 33⅓ MHz, 1 MB of SRAM,
// on a 32-bit 33 MHz PCI bus.
func Lanai4() Spec {
	return Spec{
		Name:        "lanai4",
		Clock:       des.Frequency{Num: 100_000_000, Den: 3},          // thesis p.107 says 33 MHz; hardware: one cycle is 30 ns
		SRAMBytes:   1 << 20,                                          // thesis p.107
		Slots:       2,                                                // hardware: two L-bus accesses a CPU cycle
		Order:       [NumClients]Client{EBus, Receive, Send, CPU},     // hardware, as practitioners recall it
		FIFO:        [NumClients]int{EBus: 16, Receive: 16, Send: 16}, // chosen: 64 bytes each
		Link:        des.Rate{Num: 160_000_000, Den: 1},               // thesis p.107: 160 MB/s
		NoBuffer:    HoldLink,                                         // hardware: the link has back-pressure
		Tick:        500 * des.Nanosecond,                             // hardware: RTC and IT
		WindowBase:  0xE000_0000,                                      // chosen
		WindowBytes: 2 << 20,                                          // hardware: the board's BAR
		RegistersAt: 0x0C_0000,                                        // hardware
		ControlAt:   0x0E_0000,                                        // hardware
		SRAMAt:      0x10_0000,                                        // hardware
		Target:      pci.CardTarget(),
		Bus:         pci.DefaultSpec(),
	}
}

// Lanai9 is a later card for what-if studies: LANai 9 at 132 MHz, 2 MB of
// SRAM, on a 64-bit 66 MHz PCI bus, with a link of 250 MB/s each way.
func Lanai9() Spec {
	s := Lanai4()
	s.Name = "lanai9"
	s.Clock = des.Hertz(132_000_000)            // hardware: the 132 MHz speed grade
	s.SRAMBytes = 2 << 20                       // hardware: 2 MB boards
	s.Link = des.Rate{Num: 250_000_000, Den: 1} // hardware: Myrinet 2000, 2 Gb/s each way
	s.WindowBytes = 4 << 20                     // chosen: room for 2 MB of SRAM behind the registers
	s.SRAMAt = 2 << 20                          // chosen
	s.Bus.Width = 64                            // hardware: 64-bit PCI
	s.Bus.Clock = des.Hertz(66_000_000)         // hardware: 66 MHz PCI, half the processor's clock
	s.Target.WriteWait = 2                      // chosen: the waits that no data phase has any more cover the decode
	s.Target.DataWait = 0                       // chosen: the bridge of the later boards streams
	return s
}

// SpecError tells which field of a Spec contradicts what.
type SpecError struct {
	Field  string // as in the Go type
	Reason string
}

func (e *SpecError) Error() string { return fmt.Sprintf("lanai: %s: %s", e.Field, e.Reason) }

func bad(field, format string, a ...any) error {
	return &SpecError{Field: field, Reason: fmt.Sprintf(format, a...)}
}

// Window returns where card index's window lies.
func (s Spec) Window(index uint8) (base, size uint32) {
	return s.WindowBase + uint32(index)*s.WindowBytes, s.WindowBytes
}

// linkPace is the wire's rate in words a card cycle.
func (s Spec) linkPace() pace {
	r := ratio(s.Link.Num, s.Link.Den)
	r.Quo(r, ratio(s.Clock.Num, s.Clock.Den))
	return makePace(r.Quo(r, big.NewRat(4, 1)))
}

// busClocks is bus clocks per card cycle.
func (s Spec) busClocks(bus pci.Spec) *big.Rat {
	r := ratio(bus.Clock.Num, bus.Clock.Den)
	return r.Quo(r, ratio(s.Clock.Num, s.Clock.Den))
}

// busPace is the most that a bus brings, in words a card cycle.
func (s Spec) busPace(bus pci.Spec) pace {
	r := s.busClocks(bus)
	return makePace(r.Mul(r, big.NewRat(int64(bus.Width/32), 1)))
}

// inRange tells whether num/den lies from least to most and both are below
// 2^40, which leaves room to work with them in 64 bits.
func inRange(num, den, least, most uint64) bool {
	if num == 0 || den == 0 || num >= 1<<40 || den >= 1<<40 {
		return false
	}
	lh, ll := bits.Mul64(den, least)
	hh, hl := bits.Mul64(den, most)
	return (lh == 0 && ll <= num) && (hh != 0 || num <= hl)
}

// Validate returns a *SpecError (of this package, or of pci for Target and
// Bus) for the first field that is out of range or contradicts another.
func (s Spec) Validate() error {
	if !inRange(s.Clock.Num, s.Clock.Den, 1000, 10_000_000_000) {
		return bad("Clock", "%d/%d Hz; must be 1 kHz to 10 GHz, in terms below 2^40", s.Clock.Num, s.Clock.Den)
	}
	if s.SRAMBytes < 4096 || s.SRAMBytes > 1<<30 || s.SRAMBytes%4 != 0 {
		return bad("SRAMBytes", "%d bytes; must be a multiple of a 4-byte word from 4,096 to 2^30", s.SRAMBytes)
	}
	if s.Slots < 1 || s.Slots > 8 {
		return bad("Slots", "%d accesses a cycle; must be 1 to 8", s.Slots)
	}
	var seen [NumClients]bool
	for i, c := range s.Order {
		if c >= NumClients || seen[c] {
			return bad("Order", "place %d holds %v; each client must stand there once", i, c)
		}
		seen[c] = true
	}
	if s.Order[NumClients-1] != CPU {
		return bad("Order", "the %v stands last; it must be the processor", s.Order[NumClients-1])
	}
	if !inRange(s.Link.Num, s.Link.Den, 1000, 1_000_000_000_000) {
		return bad("Link", "%d/%d bytes a second; must be 1 kB/s to 1 TB/s, in terms below 2^40", s.Link.Num, s.Link.Den)
	}
	if err := s.Bus.Validate(); err != nil {
		return fmt.Errorf("lanai: Bus: %w", err)
	}
	if err := s.Target.Validate(); err != nil {
		return fmt.Errorf("lanai: Target: %w", err)
	}
	wire := s.linkPace()
	host := s.busPace(s.Bus)
	for c, p := range [numEngines]pace{EBus: host, Receive: wire, Send: wire} {
		if n := s.FIFO[c]; n < int(p.most) || n > maxFIFO {
			return bad("FIFO", "%d words for %v, which asks for up to %d in one cycle; must be that to %d", n, Client(c), p.most, maxFIFO)
		}
	}
	if s.NoBuffer >= numNoBuffer {
		return bad("NoBuffer", "unknown choice %d", s.NoBuffer)
	}
	if s.Tick <= 0 || s.Tick > des.Second {
		return bad("Tick", "%v; must be more than 0 and at most a second", s.Tick)
	}
	return s.validateWindow()
}

func (s Spec) validateWindow() error {
	if s.WindowBytes == 0 || s.WindowBytes%16 != 0 || s.WindowBase%16 != 0 {
		return bad("WindowBase, WindowBytes", "%#x bytes from %#x; both must be multiples of 16 and there must be some", s.WindowBytes, s.WindowBase)
	}
	type part struct {
		field string
		at, n uint64
	}
	parts := [...]part{
		{"RegistersAt", uint64(s.RegistersAt), registerBytes},
		{"ControlAt", uint64(s.ControlAt), controlBytes},
		{"SRAMAt", uint64(s.SRAMAt), uint64(s.SRAMBytes)},
	}
	for i, a := range parts {
		if a.at%16 != 0 {
			return bad(a.field, "%#x; must be a multiple of 16", a.at)
		}
		if a.at+a.n > uint64(s.WindowBytes) {
			return bad(a.field, "%#x bytes from %#x do not fit in a window of %#x", a.n, a.at, s.WindowBytes)
		}
		for _, b := range parts[:i] {
			if a.at < b.at+b.n && b.at < a.at+a.n {
				return bad(a.field, "%#x bytes from %#x overlap those of %s, %#x from %#x", a.n, a.at, b.field, b.n, b.at)
			}
		}
	}
	return nil
}
