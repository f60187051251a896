package policy

import (
	"errors"
	"fmt"

	"spinesim/traces"
)

// Guard says how a step of a static cycle finds out whether its message is
// there.
type Guard uint8

// The guards.
const (
	// GuardKnown spends no poll: the message is one that the card's own
	// software makes, and its own variables tell whether it has.
	GuardKnown Guard = iota
	// GuardLook polls each queue that may hold the message once; if it is not
	// there the step is passed over.
	GuardLook
	// GuardWait polls until the message is there. With StaticStep.Polls it
	// gives up after so many. Without, it waits as long as the software's own
	// variables say that the message is to come, for 16,384 polls at most.
	GuardWait
	numGuards
)

var guardNames = [numGuards]string{"known", "look", "wait"}

// String is the guard's name in a schedule file.
func (g Guard) String() string {
	if g < numGuards {
		return guardNames[g]
	}
	return fmt.Sprintf("guard %d", uint8(g))
}

// StaticStep is one step of a static cycle: a handler with its guard, or a
// background slot.
type StaticStep struct {
	// Handler is what the step runs; traces.NoEvent makes it a background
	// slot.
	Handler traces.Event
	Guard   Guard
	// Polls bounds GuardWait, 0 for as long as the message is to come. Each
	// queue that may hold the message is polled at least once.
	Polls int
	// Order is the queues that a background slot scans, first first; after
	// every handler it starts again at the top.
	Order []uint8
	// Handlers is the most that the slot runs before the cycle goes on, at
	// least 1. It goes on earlier when every queue of Order has missed.
	Handlers int
}

// Background tells whether the step is a background slot.
func (s *StaticStep) Background() bool { return s.Handler == traces.NoEvent }

// StaticCycle is what a card's dispatcher does over and over in place of a
// scan. No step may hang: a step whose message is not there is passed over,
// and counted, when its guard says so or when the software knows that the
// message cannot come. Messages that no step takes are served as well, between
// passes: those that the card's own software makes at the end of a pass, those
// of others once in 256 passes.
type StaticCycle struct {
	Name  string
	Steps []StaticStep
	// Sources are the cards whose packets this card sends out: where
	// `Wire output start` looks for them, in turn. Empty: all other cards.
	Sources []uint8
}

// Validate tells which step the dispatcher could not run. Whether the cycle is
// any good is for package schedule to tell.
func (c *StaticCycle) Validate() error {
	if len(c.Steps) == 0 {
		return errors.New("a cycle without steps")
	}
	for i := range c.Steps {
		if err := c.Steps[i].validate(); err != nil {
			return fmt.Errorf("step %d: %w", i+1, err)
		}
	}
	return nil
}

func (s *StaticStep) validate() error {
	if s.Guard >= numGuards {
		return fmt.Errorf("unknown %v", s.Guard)
	}
	if s.Polls < 0 {
		return fmt.Errorf("waits for %d polls, want 0 or more", s.Polls)
	}
	if s.Background() {
		if len(s.Order) == 0 || s.Handlers < 1 {
			return fmt.Errorf("background slot over %d queues for %d handlers, want at least one of each", len(s.Order), s.Handlers)
		}
		var seen [NumQueues]bool
		for _, q := range s.Order {
			if q >= NumQueues || seen[q] {
				return fmt.Errorf("background slot over Q%d, want each of Q0 … Q%d at most once", q, NumQueues-1)
			}
			seen[q] = true
		}
		return nil
	}
	for _, h := range Handlers {
		if s.Handler == h {
			return nil
		}
	}
	return fmt.Errorf("%v is not a handler", s.Handler)
}

// StaticPolicy is a policy whose cycle the dispatcher runs instead of asking
// for plans.
type StaticPolicy interface {
	Policy
	Cycle() *StaticCycle
}

// StaticStepCounts tell what became of a step of a cycle.
type StaticStepCounts struct {
	Ran    uint64 // its handler ran; for a background slot, handlers run in it
	Absent uint64 // passed over without a poll: the message could not be there
	Missed uint64 // passed over after polling in vain; for a slot, scans that missed
	Polls  uint64 // polls spent
}

// StaticCounts tell how traffic deviated from a static cycle.
type StaticCounts struct {
	Steps  []StaticStepCounts
	Passes uint64 // times that the cycle began again
	// NoCredit, NoBuffer and EngineHeld are among the absent: a start whose
	// peer's ACKs are late, a packet that waits for a buffer, and a start or
	// ACK while the DMA engine is reserved for a chain.
	NoCredit, NoBuffer, EngineHeld uint64
	// ToHost is packets that no route covers, or that the extensions handed
	// up for another reason.
	ToHost uint64
	// IdlePolls were made because a whole pass had nothing to do and polled
	// nothing; they keep the processor from running in circles.
	IdlePolls uint64
	// Unforeseen is handlers of messages that no step or background slot
	// takes, run at the end of a pass, and UnforeseenPolls the polls made for
	// such messages. GaveUp is waits without bound that had gone on for so
	// long that cards must have been waiting for each other.
	Unforeseen, UnforeseenPolls, GaveUp uint64
}

// Deferred is a static policy by name only: its cycle is made for a scenario,
// or read from a file, before the router is wired. A router refuses it.
type Deferred struct {
	// Hybrid asks for a background slot.
	Hybrid bool
	// File holds the schedule; empty: it is synthesised.
	File string
}

// ErrDeferred reports a static policy whose cycle nobody has made.
var ErrDeferred = errors.New("the policy's schedule has not been made for this router")

// Name is the text by which NewPolicy makes the same policy again.
func (d *Deferred) Name() string {
	n := "static"
	if d.Hybrid {
		n = "hybrid"
	}
	return policyName(n, setting{"file", d.File, ""})
}

// Plan polls Q0 … Q6 in turn, like a dispatcher that knows no cycles.
func (d *Deferred) Plan(_ *View, p *Plan) {
	p.Seq = append(p.Seq[:0], DefaultOrder[:]...)
	p.Loop = 0
}

// Hit changes nothing.
func (d *Deferred) Hit(int64, uint8) {}

// noFile is the parameter file of a policy that is to be synthesised.
const noFile = "-"

var fileParam = Param{"file", noFile, "schedule file (YAML); - synthesises one for the scenario"}

var staticKind = PolicyKind{
	Name:    "static",
	Doc:     "a fixed cycle of handlers known a priori, polling only what it must",
	Params:  []Param{fileParam},
	Example: "static",
	New:     func(a Args) (Policy, error) { return newDeferred(a, false), nil },
}

var hybridKind = PolicyKind{
	Name:    "hybrid",
	Doc:     "a fixed cycle for the DMA chain, with background slots for what comes in any order",
	Params:  []Param{fileParam},
	Example: "hybrid",
	New:     func(a Args) (Policy, error) { return newDeferred(a, true), nil },
}

func newDeferred(a Args, hybrid bool) *Deferred {
	d := &Deferred{Hybrid: hybrid}
	if f := a.String("file"); f != noFile {
		d.File = f
	}
	return d
}
