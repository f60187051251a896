package traces

// Event names a handler, transfer, engine run or level. The first nineteen are
// those of Figure 6.4 (thesis p.107), in the figure's order from the bottom.
type Event uint8

// The events.
const (
	PollQ0 Event = iota
	PollQ1
	PollQ2
	PollQ3
	PollQ4
	PollQ5
	PollQ6
	FreeBuffer
	PeerAck
	RxCheckHeader
	RxCheckBody
	EnqRouterIn
	RouterIn
	EnqIPOutput
	PeerToPeerStart
	DMAStartHandler
	DMAGenericStart
	DMAStartBody
	DMAStartHeader

	// Handlers that the figure does not show.
	WireOutputStart // egress card
	WireOutputDone  // egress card
	AckSend         // egress card
	ToHost          // hand a packet to the host over the bus
	FromHost        // a packet that the host sends to a card

	// Bus transfers.
	TransferBody
	TransferHeader
	TransferAck
	TransferToHost
	TransferFromHost

	// Wire engines.
	ReceiveHeader
	ReceiveBody
	SendPacket

	// Levels.
	LevelQueue0
	LevelQueue1
	LevelQueue2
	LevelQueue3
	LevelQueue4
	LevelQueue5
	LevelQueue6
	LevelBuffers // free packet buffers
	LevelCredits // credits left for Peer
	LevelFIFO    // packets waiting upstream
	LevelBacklog // packets routed and waiting for their DMA

	NoEvent
	NumEvents = int(NoEvent)
)

// NumFigureEvents is how many events Figure 6.4 shows.
const NumFigureEvents = 19

var eventNames = [NumEvents + 1]string{
	"Poll Q0", "Poll Q1", "Poll Q2", "Poll Q3", "Poll Q4", "Poll Q5", "Poll Q6",
	"Free buffer", "Peer ACK", "Rx check header", "Rx check body",
	"EnQ router in", "Router In handler", "EnQ IP output",
	"Peer to peer start", "DMA start handler", "DMA generic start",
	"DMA start body", "DMA start header",
	"Wire output start", "Wire output done", "ACK send", "To host", "From host",
	"Body transfer", "Header transfer", "ACK transfer", "To-host transfer", "From-host transfer",
	"Receive header", "Receive body", "Send packet",
	"Queue Q0", "Queue Q1", "Queue Q2", "Queue Q3", "Queue Q4", "Queue Q5", "Queue Q6",
	"Free buffers", "Credits", "Upstream FIFO", "DMA backlog",
	"none",
}

// String is the published name.
func (e Event) String() string {
	if int(e) < len(eventNames) {
		return eventNames[e]
	}
	return "unknown event"
}

// EventByName finds an event by its published name.
func EventByName(name string) (Event, bool) {
	for i, n := range eventNames {
		if n == name {
			return Event(i), true
		}
	}
	return NoEvent, false
}

// Reason says why a packet waited or was dropped.
type Reason uint8

// The reasons. Those from ReasonFIFOFull on are reasons for leaving the fast path.
const (
	ReasonNone Reason = iota
	ReasonNoBuffer
	ReasonNoCredit
	ReasonEngineBusy
	ReasonBusBusy
	ReasonLowerPriority
	ReasonWireBusy

	ReasonFIFOFull
	ReasonBadCRC
	ReasonBadVersion
	ReasonBadHeaderLength
	ReasonBadTotalLength
	ReasonBadChecksum
	ReasonTTLExpired
	ReasonMartian
	ReasonNoRoute
	ReasonNotIPv4
	ReasonTruncated
	ReasonNoBufferDiscard // receive and discard
	ReasonExtension       // an extension's own verdict
	ReasonWatchdog        // the extension was stopped
	ReasonTooLong
	ReasonHost    // the host dropped it
	ReasonOptions // IP options: for the host to deal with
	ReasonLocal   // addressed to the router itself
	ReasonOwnWire // the next hop lies where the packet came from

	// ReasonBatch is a wait again: for other packets to be handled with.
	ReasonBatch

	// ReasonStopped: the card's processor stands still after a fault of its own
	// firmware. It ends what ran, and keeps what is on the card there.
	ReasonStopped
	NumReasons = int(iota)
)

var reasonNames = [NumReasons]string{
	"none", "no buffer", "no credit", "engine busy", "bus busy", "lower priority", "wire busy",
	"FIFO full", "bad CRC", "bad version", "bad header length", "bad total length",
	"bad header checksum", "TTL expired", "martian address", "no route", "not IPv4", "truncated",
	"no buffer, discarded", "extension", "watchdog", "too long", "host",
	"IP options", "local delivery", "own wire", "batch not full", "card stopped",
}

func (r Reason) String() string {
	if int(r) < NumReasons {
		return reasonNames[r]
	}
	return "unknown reason"
}

// ReasonByName finds a reason by its name.
func ReasonByName(name string) (Reason, bool) {
	for i, n := range reasonNames {
		if n == name {
			return Reason(i), true
		}
	}
	return 0, false
}

// Verdict says how a packet left.
type Verdict uint8

// The verdicts.
const (
	VerdictNone Verdict = iota
	VerdictForwarded
	VerdictToHost
	VerdictDropped
	VerdictStranded // it has not left, and never will: a card has stopped
	NumVerdicts     = int(iota)
)

var verdictNames = [NumVerdicts]string{"none", "forwarded", "to host", "dropped", "stranded"}

func (v Verdict) String() string {
	if int(v) < NumVerdicts {
		return verdictNames[v]
	}
	return "unknown verdict"
}
