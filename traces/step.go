package traces

// Step is the part of a packet's way that a handler, transfer or engine run
// belongs to: the thesis's three steps receive, route and DMA (p.107), and
// what its figure groups as flow control or leaves out.
type Step uint8

// The steps.
const (
	StepNone    Step = iota
	StepPoll         // looking into queues
	StepReceive      // from the wire into a buffer
	StepRoute        // the router extension and its way to the DMA
	StepDMA          // over the bus to the egress card
	StepFlow         // credits and buffers coming back
	StepOutput       // egress card, onto the wire
	StepHost         // to and from the host
	NumSteps    = int(iota)
)

var stepNames = [NumSteps]string{"none", "poll", "receive", "route", "dma", "flow control", "output", "host"}

func (s Step) String() string {
	if int(s) < NumSteps {
		return stepNames[s]
	}
	return "unknown step"
}

var eventSteps = [NumEvents + 1]Step{
	PollQ0: StepPoll, PollQ1: StepPoll, PollQ2: StepPoll, PollQ3: StepPoll,
	PollQ4: StepPoll, PollQ5: StepPoll, PollQ6: StepPoll,
	FreeBuffer: StepFlow, PeerAck: StepFlow, AckSend: StepFlow, TransferAck: StepFlow,
	RxCheckHeader: StepReceive, RxCheckBody: StepReceive, EnqRouterIn: StepReceive,
	ReceiveHeader: StepReceive, ReceiveBody: StepReceive,
	RouterIn: StepRoute, EnqIPOutput: StepRoute,
	PeerToPeerStart: StepDMA, DMAStartHandler: StepDMA, DMAGenericStart: StepDMA,
	DMAStartBody: StepDMA, DMAStartHeader: StepDMA, TransferBody: StepDMA, TransferHeader: StepDMA,
	WireOutputStart: StepOutput, WireOutputDone: StepOutput, SendPacket: StepOutput,
	ToHost: StepHost, FromHost: StepHost, TransferToHost: StepHost, TransferFromHost: StepHost,
}

// Step is the step an event belongs to; StepNone for levels and foreign values.
func (e Event) Step() Step {
	if int(e) < len(eventSteps) {
		return eventSteps[e]
	}
	return StepNone
}
