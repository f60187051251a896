package traces

import "testing"

// Every event of the figure, and of the ways around it, belongs to the step
// that the thesis puts it in (p.107).
func TestSteps(t *testing.T) {
	want := map[Step][]Event{
		StepPoll:    {PollQ0, PollQ6},
		StepFlow:    {FreeBuffer, PeerAck, AckSend, TransferAck},
		StepReceive: {RxCheckHeader, RxCheckBody, EnqRouterIn, ReceiveHeader, ReceiveBody},
		StepRoute:   {RouterIn, EnqIPOutput},
		StepDMA:     {PeerToPeerStart, DMAStartHandler, DMAGenericStart, DMAStartBody, DMAStartHeader, TransferBody, TransferHeader},
		StepOutput:  {WireOutputStart, WireOutputDone, SendPacket},
		StepHost:    {ToHost, FromHost, TransferToHost, TransferFromHost},
		StepNone:    {LevelQueue0, LevelBacklog, NoEvent, NoEvent + 1, 255},
	}
	for step, events := range want {
		for _, e := range events {
			if e.Step() != step {
				t.Errorf("%v is of step %q, want %q", e, e.Step(), step)
			}
		}
	}
	if StepFlow.String() != "flow control" || Step(99).String() != "unknown step" || PathKind(99).String() != "unknown kind" {
		t.Error("names")
	}
}
