package firmware

import (
	"fmt"

	"spinesim/lanai"
	"spinesim/lanai/isa"
	"spinesim/sim/des"
)

// Card runs the whole firmware on a simulated card: nothing but hardware is
// around it. It implements lanai.Program.
type Card struct {
	Bench
	card  *lanai.Card
	guard *guard
	known uint8 // cards that are connected, a bit each
}

// NewCard loads the firmware into a card's memory. The card's processor must
// not run anything yet, and its SRAM's address 0 must be free.
func NewCard(card *lanai.Card, in Inputs) (*Card, error) { return NewWatched(card, in, nil) }

// NewWatched is NewCard with a watcher of its handlers, nil for none.
func NewWatched(card *lanai.Card, in Inputs, w Watcher) (*Card, error) {
	c := &Card{card: card}
	if err := c.load(card.SRAM, devices{c}, uint32(card.Index()), in); err != nil {
		return nil, fmt.Errorf("%s: %w", card.Name(), err)
	}
	if err := newGuard(c, &in, w); err != nil {
		return nil, fmt.Errorf("%s: %w", card.Name(), err)
	}
	return c, nil
}

// Connect makes cards know each other: each writes packets into its slots in
// the others, and ACKs into its words. At most four cards, of numbers 0 to 3.
func Connect(cards ...*Card) error {
	// A card numbers the others without itself.
	place := func(of, at uint8) uint32 {
		if of > at {
			of--
		}
		return uint32(of)
	}
	for _, c := range cards {
		for _, o := range cards {
			if o == c {
				continue
			}
			me, it := c.card.Index(), o.card.Index()
			if me > peers || it > peers {
				return fmt.Errorf("firmware: card %d: a card knows %d others", max(me, it), peers)
			}
			c.known |= 1 << it
			here := place(me, it)
			if err := c.connect(place(it, me), o.card.BusAddr(o.inbox[here]), o.card.BusAddr(o.acks+4*here)); err != nil {
				return fmt.Errorf("%s: %w", c.card.Name(), err)
			}
		}
	}
	return nil
}

// Start arms the receive engine and lets the dispatcher run, for ever.
func (c *Card) Start() error {
	c.card.CPU.Bind(c)
	if err := c.Arm(); err != nil {
		return err
	}
	return c.Dispatch()
}

// Arm arms the receive engine and the guard. It is called once, after Connect and
// before anything is executed in time.
func (c *Card) Arm() error {
	if _, err := c.Call("spine_start"); err != nil {
		return fmt.Errorf("%s: %w", c.card.Name(), err)
	}
	c.CPU.SetWatchdog(isa.NoWatchdog)
	c.CPU.Slots = c.card.Mem
	if c.guard != nil {
		return c.guard.install()
	}
	return nil
}

// Dispatch begins the dispatcher, which runs for ever. The card's processor must
// be bound to a program.
func (c *Card) Dispatch() error {
	entry, err := c.Image.Symbol("spine_dispatch")
	if err != nil {
		return err
	}
	return c.begin(entry)
}

// begin begins a function on the card's processor; its program hears of the end.
func (c *Card) begin(entry uint32, args ...uint32) error {
	if err := c.CPU.Call(c.card.CPU.Begin(), entry, c.sp, args...); err != nil {
		return err
	}
	return c.card.CPU.Execute(c.CPU)
}

// BeginPoll begins a poll of queue q; when it ends, Hit and Found tell what it
// found.
func (c *Card) BeginPoll(q uint8) error { return c.begin(c.word(c.polls + 4*uint32(q))) }

// BeginScan begins a scan of polls (see Polls); when it ends, Hit and Found tell
// what the last one found.
func (c *Card) BeginScan(s *isa.Scan) error {
	if err := c.CPU.CallScan(c.card.CPU.Begin(), s, c.sp); err != nil {
		return err
	}
	return c.card.CPU.ExecuteScan(c.CPU)
}

// Hit tells whether the poll that has ended found a message.
func (c *Card) Hit() bool { return c.CPU.Reg(isa.RV) != 0 }

// BeginFound begins the handler that the last poll found.
func (c *Card) BeginFound() error { return c.begin(c.word(c.found), c.word(c.found+4)) }

// BoxEnd implements lanai.Program: a dispatcher that returns is an error.
func (c *Card) BoxEnd(now des.Time) error {
	return fmt.Errorf("firmware: %s at %v: the dispatcher has returned", c.card.Name(), now)
}

// PollsEnd implements lanai.Program.
func (c *Card) PollsEnd(des.Time) error { return nil }
