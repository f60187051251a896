package spine

import (
	"spinesim/lanai"
	"spinesim/sim/des"
	"spinesim/traces"
)

// batch collects packets for the router extension, so that it handles them one
// right after the other. It hands them over when there are Spec.Batch, when no
// buffer is left for another one to come, or when the first has waited for
// Spec.BatchWait. The run-time sends itself a message for each packet all the
// same; what an extension saves by knowing the packet's place in the batch is
// its own matter (Context.Place).
type batch struct {
	rt      *Runtime
	waiting []batched
	timer   des.Timer
}

type batched struct {
	p     *packet
	cause traces.ID
}

func (b *batch) init(r *Runtime) {
	b.rt = r
	b.waiting = make([]batched, 0, r.spec.Batch)
	b.timer.Init(b, lanai.PrioHardware, 0)
	r.eng.Adopt(&b.timer)
}

// add takes a packet that is ready for the router extension.
func (b *batch) add(now des.Time, p *packet, cause traces.ID) error {
	r := b.rt
	if r.spec.Batch <= 1 {
		p.place, p.batch = 0, 1
		return r.sendSelf(now, traces.RouterIn, p, cause)
	}
	p.pushed = now
	b.waiting = append(b.waiting, batched{p, cause})
	if len(b.waiting) >= r.spec.Batch || len(r.freeBufs) == 0 {
		r.eng.Cancel(&b.timer)
		return b.handOver(now)
	}
	if len(b.waiting) == 1 {
		return r.eng.Arm(&b.timer, now+r.spec.BatchWait)
	}
	return nil
}

// Handle ends the first packet's wait.
func (b *batch) Handle(now des.Time, _ uint64) error { return b.handOver(now) }

func (b *batch) handOver(now des.Time) error {
	r := b.rt
	n := len(b.waiting)
	for i, w := range b.waiting {
		p := w.p
		p.place, p.batch = int32(i), int32(n)
		if r.rec != nil && p.pushed < now {
			r.rec.Add(&traces.Record{
				Kind: traces.KindWait, Event: traces.RouterIn, Card: r.index, Peer: traces.NoCard, Queue: traces.NoQueue,
				Start: p.pushed, End: now, Ready: p.pushed, Packet: p.id, Reason: traces.ReasonBatch,
				ID: r.rec.NextID(r.index), Cause: w.cause,
			})
		}
		if err := r.sendSelf(now, traces.RouterIn, p, w.cause); err != nil {
			return err
		}
		b.waiting[i].p = nil
	}
	b.waiting = b.waiting[:0]
	return nil
}
