package traces

import "spinesim/sim/des"

// What a DMA step's time goes to.
const (
	stepHandlers      = iota // the chain's own handlers for this packet
	stepPolls                // the chain could go on, and the processor polls its way to it
	stepInterruptions        // likewise, and the processor runs handlers of something else
	stepTransfer             // body and header on the bus
	stepBusWait              // asked for the bus, not granted yet
	stepOther                // nothing was recorded
	numStepParts
)

// dmaStep takes apart the time from a packet's Peer to peer start to its
// departure. A card has one DMA engine and so one step at a time.
type dmaStep struct {
	packet uint64 // 0: no step is going on
	now    [numStepParts]des.Time

	sum [numStepParts]des.Time
	n   uint64
}

func (d *dmaStep) begin(packet uint64) {
	d.packet = packet
	d.now = [numStepParts]des.Time{}
}

func (d *dmaStep) piece(dt des.Time, p *procSpan, engine int, moved uint64) {
	if d.packet == 0 {
		return
	}
	part := stepOther
	switch {
	case p.class == classChain && p.packet == d.packet:
		part = stepHandlers
	case engine == engineMoves && moved == d.packet:
		part = stepTransfer
	case engine == engineWaits && moved == d.packet:
		part = stepBusWait
	case p.class == classPolls:
		part = stepPolls
	case p.class != classNone:
		part = stepInterruptions
	}
	d.now[part] += dt
}

func (d *dmaStep) depart(packet uint64) {
	if d.packet == 0 || packet != d.packet {
		return
	}
	for i, x := range d.now {
		d.sum[i] += x
	}
	d.n++
	d.packet = 0
}
