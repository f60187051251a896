// Package spine models the SPINE run-time on a LANai card: seven input queues
// of active messages, the dispatcher that polls them under a policy, the I/O
// run-time that receives, routes and moves packets to a peer card over the
// bus, and the flow control between cards.
//
// Source: the event types, their grouping and a packet's way through the
// router are those of Martin's thesis (pp. 107–109, Figures 6.3 and 6.4).
// Which queue is which, the cost of each handler, buffers and credits are not
// published; they are fields of Spec and of the cost table, with the origin of
// each default beside it.
//
// What polls and handlers cost is data (CostTable), or they are executed: with
// ExecuteHandlers each of them, compiled from C (package spine/firmware), under
// a dispatcher and policies in Go; with ExecuteFull the whole firmware. What the
// compiled code does in the card's memory is then what happens, and the queues
// here follow it message by message, so that both make the same kind of record.
// A fault of that code stops its card for good and nothing else (Stop); one of an
// extension costs the extension its packet.
//
// What it leaves out: the SPINE loader and its safe language (an extension is
// Go code that charges for its work, or C that is watched), interrupts (the firmware polls), and
// more than four cards in one router.
package spine
