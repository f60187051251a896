package sim

import (
	"fmt"
	"strings"

	"spinesim/sim/des"
	"spinesim/traces"
)

// StoppedCard tells why a card's processor stands still: a fault of the
// run-time's own code.
type StoppedCard struct {
	Card uint8    `json:"card"`
	At   des.Time `json:"at"`
	// Handler is what ran, "" between handlers, and Packet its packet.
	Handler string `json:"handler,omitempty"`
	Packet  uint64 `json:"packet,omitempty"`
	// PC is where, Symbol what encloses it, Word the instruction and Instruction
	// its text; "" where it could not be fetched. Text is the whole.
	PC          uint32 `json:"pc"`
	Symbol      string `json:"symbol"`
	Word        uint32 `json:"word"`
	Instruction string `json:"instruction"`
	Text        string `json:"text"`
	// Stranded is how many packets have stayed on this card. Others wait for it
	// elsewhere; Result.Stranded counts all.
	Stranded uint64 `json:"stranded"`

	err error
}

// During says in which handler, "" where none ran.
func (c *StoppedCard) During() string {
	if c.Handler == "" {
		return ""
	}
	return " in " + c.Handler
}

// StoppedError reports cards that have stopped. It wraps their faults: package
// isa's errors, or spine.ErrOutOfStep.
type StoppedError struct{ Cards []StoppedCard }

// Error names each card, when it stopped and why.
func (e *StoppedError) Error() string {
	var out []string
	for _, c := range e.Cards {
		out = append(out, fmt.Sprintf("card %d stopped at %v%s: %s", c.Card, c.At, c.During(), c.Text))
	}
	return strings.Join(out, "; ")
}

// Unwrap is the cards' faults.
func (e *StoppedError) Unwrap() (errs []error) {
	for _, c := range e.Cards {
		errs = append(errs, c.err)
	}
	return errs
}

// settling is how often a run in which a card has stopped is asked whether
// anything else goes on (chosen).
const settling = des.Millisecond

// isSettled tells that cards have stopped and nothing more can happen.
func (s *Simulation) isSettled() bool {
	if s.router.Stopped() == 0 {
		return false
	}
	for _, p := range s.ports {
		if !p.Quiet() {
			return false
		}
	}
	return s.router.Settled()
}

// strand accounts for all packets that are still inside or upstream of a settled
// router.
func (s *Simulation) strand() {
	s.stranded = s.router.Strand()
	for i, c := range s.sc.Traffic.Ingress {
		rt, card := s.router.Card(c), uint8(c)
		why := traces.ReasonNoBuffer
		if rt.Stopped() != nil {
			why = traces.ReasonStopped
		}
		for f := range s.ports[i].Waiting {
			if f == rt.Card().Rx.Receiving() {
				continue // it is inside already
			}
			s.rec.Add(&traces.Record{
				Kind: traces.KindLeave, Event: traces.NoEvent, Card: card, Peer: card, Queue: traces.NoQueue,
				Start: s.eng.Now(), End: s.eng.Now(), Ready: s.eng.Now(), Packet: f.ID, Bytes: uint32(f.Bytes),
				Verdict: traces.VerdictStranded, Reason: why, ID: s.rec.NextID(card), Cause: f.Cause,
			})
		}
	}
}

// stopped adds to a result the cards that have stopped.
func (s *Simulation) stopped(r *Result) {
	for i := range s.router.Cards() {
		x := s.router.Card(i).Stopped()
		if x == nil {
			continue
		}
		c := StoppedCard{
			Card: x.Card, At: x.At, Packet: x.Packet, PC: x.PC, Symbol: x.Symbol, Word: x.Word,
			Instruction: strings.ReplaceAll(x.Instruction, "\t", " "), Text: x.Err.Error(), err: x,
		}
		if x.Handler != traces.NoEvent {
			c.Handler = x.Handler.String()
		}
		if s.stranded != nil {
			c.Stranded = s.stranded[i]
		}
		r.Stopped = append(r.Stopped, c)
	}
}
