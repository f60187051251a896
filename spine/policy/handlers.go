package policy

import "spinesim/traces"

// Handlers lists the events that are handlers, in the figure's order, then
// those that the figure does not show.
var Handlers = [...]traces.Event{
	traces.FreeBuffer, traces.PeerAck, traces.RxCheckHeader, traces.RxCheckBody,
	traces.EnqRouterIn, traces.RouterIn, traces.EnqIPOutput, traces.PeerToPeerStart,
	traces.DMAStartHandler, traces.DMAGenericStart, traces.DMAStartBody, traces.DMAStartHeader,
	traces.WireOutputStart, traces.WireOutputDone, traces.AckSend, traces.ToHost, traces.FromHost,
}
