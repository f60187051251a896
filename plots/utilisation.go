package plots

import (
	"fmt"

	"gonum.org/v1/plot"

	"spinesim/traces"
)

// Names of what a unit does, as the bars call it.
const (
	doPolls     = "polls that found a message"
	doIdle      = "idle: polls that found none"
	doReceive   = "receive"
	doRoute     = "route"
	doChain     = "DMA chain"
	doFlow      = "flow control"
	doOutput    = "wire output"
	doHost      = "host"
	doBody      = "body transfer"
	doHeader    = "header transfer"
	doAck       = "ACK transfer"
	doHostMove  = "host transfer"
	doBusWait   = "waits for the bus"
	doEngine    = "packet in or out"
	doFree      = "idle"
	doOtherHand = "other handlers"
)

var useLooks = map[string]look{
	holder(0): {blue, falling}, holder(1): {vermilion, falling}, holder(2): {green, falling}, holder(3): {orange, falling},
	holder(4): {purple, falling}, holder(5): {yellow, falling}, holder(traces.HostCard): {skyBlue, falling},
	doPolls: {grey, plain}, doIdle: {lightGrey, plain}, doFree: {lightGrey, plain},
	doReceive: {blue, plain}, doRoute: {green, plain}, doChain: {vermilion, plain},
	doFlow: {purple, plain}, doOutput: {orange, plain}, doHost: {skyBlue, plain}, doOtherHand: {grey, rising},
	doBody: {vermilion, rising}, doHeader: {orange, rising}, doAck: {purple, rising}, doHostMove: {skyBlue, rising},
	doBusWait: {yellow, plain}, doEngine: {blue, rising},
}

// Utilisation draws for each card how its processor, its DMA engine and its
// wire engines spend the observed time, and for the bus who holds it.
func Utilisation(title string, u *traces.Utilisation) (*plot.Plot, error) {
	return UtilisationBars(title, u).Plot()
}

// UtilisationBars are the bars that Utilisation draws. Wire engines that did
// nothing are left out.
func UtilisationBars(title string, u *traces.Utilisation) *StackedBars {
	s := &StackedBars{Title: title, XLabel: "share of the time (%)", Most: 1.12, Percent: true, looks: useLooks}
	for i := range u.Cards {
		c := &u.Cards[i]
		name := fmt.Sprintf("card %d ", c.Card)
		s.Bars = append(s.Bars, StackedBar{Name: name + "processor", Parts: processorParts(c), Note: busy(1 - c.Idle), Apart: i > 0})
		s.Bars = append(s.Bars, StackedBar{Name: name + "DMA engine", Parts: engineParts(c), Note: busy(c.DMA + c.DMAWait)})
		if c.Receive > 0 {
			s.Bars = append(s.Bars, StackedBar{Name: name + "receive", Parts: oneUse(doEngine, c.Receive), Note: busy(c.Receive)})
		}
		if c.Send > 0 {
			s.Bars = append(s.Bars, StackedBar{Name: name + "send", Parts: oneUse(doEngine, c.Send), Note: busy(c.Send)})
		}
	}
	bus := StackedBar{Name: "bus", Note: busy(u.Bus.Busy), Apart: len(s.Bars) > 0}
	for _, h := range u.Bus.By {
		bus.Parts = append(bus.Parts, Part{holder(h.Card), float64(h.Busy)})
	}
	bus.Parts = append(bus.Parts, Part{doFree, max(0, 1-float64(u.Bus.Busy))})
	s.Bars = append(s.Bars, bus)
	return s
}

// holder names who holds the bus.
func holder(card uint8) string {
	if card == traces.HostCard {
		return "host bridge has the bus"
	}
	return fmt.Sprintf("card %d has the bus", card)
}

func busy(share traces.Real) string {
	if !share.OK() {
		return "–"
	}
	return percentText(float64(share)) + " busy"
}

func oneUse(name string, share traces.Real) []Part {
	if !share.OK() {
		return nil
	}
	return []Part{{name, float64(share)}, {doFree, max(0, 1-float64(share))}}
}

// processorParts splits the handlers' time by the step they belong to.
func processorParts(c *traces.CardUse) []Part {
	var by [traces.NumSteps]float64
	for _, e := range c.Events {
		ev, ok := traces.EventByName(e.Event)
		if !ok || !e.Share.OK() {
			continue
		}
		by[ev.Step()] += float64(e.Share)
	}
	return []Part{
		{doReceive, by[traces.StepReceive]}, {doRoute, by[traces.StepRoute]}, {doChain, by[traces.StepDMA]},
		{doFlow, by[traces.StepFlow]}, {doOutput, by[traces.StepOutput]}, {doHost, by[traces.StepHost]},
		{doOtherHand, by[traces.StepNone]}, {doPolls, float64(c.Polls)}, {doIdle, float64(c.Idle)},
	}
}

// engineParts splits the engine's time by what it moves. A transfer's time is
// from the grant to its end.
func engineParts(c *traces.CardUse) []Part {
	byName := map[traces.Event]string{
		traces.TransferBody: doBody, traces.TransferHeader: doHeader, traces.TransferAck: doAck,
		traces.TransferToHost: doHostMove, traces.TransferFromHost: doHostMove,
	}
	parts := []Part{{doBody, 0}, {doHeader, 0}, {doAck, 0}, {doHostMove, 0}}
	sum := 0.0
	for _, e := range c.Transfer {
		ev, ok := traces.EventByName(e.Event)
		if !ok || !e.Share.OK() {
			continue
		}
		for i := range parts {
			if parts[i].Name == byName[ev] {
				parts[i].Value += float64(e.Share)
				sum += float64(e.Share)
			}
		}
	}
	wait := 0.0
	if c.DMAWait.OK() {
		wait = float64(c.DMAWait)
	}
	return append(parts, Part{doBusWait, wait}, Part{doFree, max(0, 1-sum-wait)})
}
