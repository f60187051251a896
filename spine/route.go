package spine

import (
	"fmt"
	"math"

	"spinesim/lanai"
	"spinesim/sim/des"
	"spinesim/traces"
)

// overrun is what Charge raises when the watchdog's bound is passed; it never
// leaves this package.
type overrun struct{}

// runExtensions lets the extensions look at the packet and returns what the
// router handler's run demands.
func (r *Runtime) runExtensions(now des.Time, p *packet, base lanai.Demand) lanai.Demand {
	c := &r.ctx
	c.Now, c.cycles, c.accesses, c.limit = now, int(base.Cycles), int(base.Accesses), r.watchdog(base)
	carried := min(len(p.frame.Data), p.bytes, r.spec.MaxPacket)
	head := r.card.SRAM.View(r.bufAddr[p.buf], carried)
	c.Batch, c.Place = int(p.batch), int(p.place)
	r.extPkt = Packet{ID: p.id, Bytes: p.bytes, Header: head, Ingress: r.index, BadCRC: p.frame.BadCRC}
	r.verdict = Verdict{Action: ToHost}
	over := false
	for i := 0; i < len(r.exts); i++ {
		x := &r.exts[i]
		r.router.calling.begin(now, r.index, x.name, p.id)
		v, fault := r.handle(x.Extension)
		r.router.calling.end()
		if fault != "" {
			r.unloaded = append(r.unloaded, Unloaded{Extension: r.exts[i].Name(), Card: r.index, At: now, Reason: fault})
			r.exts = append(r.exts[:i:i], r.exts[i+1:]...)
			over = true
			r.verdict = Verdict{Action: ToHost, Reason: traces.ReasonWatchdog}
			break
		}
		if v.Action != Next {
			r.verdict = v
			break
		}
	}
	if len(r.exts) == 0 && r.verdict.Reason == traces.ReasonNone {
		r.verdict.Reason = traces.ReasonExtension
	}
	// Never in place: an extension charges in its own cycles.
	cycles := min(int(base.Cycles)+r.spec.Costs.Charge(c.cycles-int(base.Cycles)), maxCharge)
	accesses := min(int(base.Accesses)+r.spec.Costs.Charge(c.accesses-int(base.Accesses)), maxCharge)
	if over {
		cycles = min(cycles, r.spec.Watchdog)
	}
	cycles = max(cycles, 1)
	return lanai.Demand{Cycles: int32(cycles), Accesses: int32(min(max(accesses, 0), cycles))}
}

// watchdog is the watchdog's bound in the cycles that extensions charge: base is
// the table's part of the run.
func (r *Runtime) watchdog(base lanai.Demand) int {
	f := r.spec.Costs.Charged
	if f == 1 || r.spec.Watchdog == 0 {
		return r.spec.Watchdog
	}
	return max(1, int(base.Cycles)+int(math.Floor(float64(r.spec.Watchdog-int(base.Cycles))/f)))
}

// handle runs one extension. An extension that passes the watchdog's bound is
// stopped where it charged, one that faults where it faulted.
func (r *Runtime) handle(x Extension) (v Verdict, fault string) {
	defer func() {
		switch e := recover().(type) {
		case nil:
			if r.ctx.Overrun() {
				fault = fmt.Sprintf("ran longer than the watchdog's %d cycles", r.spec.Watchdog)
			}
		case overrun:
			fault = fmt.Sprintf("ran longer than the watchdog's %d cycles", r.spec.Watchdog)
		default:
			fault = fmt.Sprintf("fault: %v", e)
		}
	}()
	v = x.Handle(&r.ctx, &r.extPkt)
	return v, ""
}

// routed is the end of `Router In handler`.
func (r *Runtime) routed(now des.Time, p *packet) error {
	v := r.verdict
	switch v.Action {
	case Forward:
		if int(v.Card) < len(r.router.cards) {
			p.egress, p.nextHop = v.Card, v.NextHop
			return r.sendSelf(now, traces.EnqIPOutput, p, r.curID)
		}
		p.reason = traces.ReasonExtension
	case Flood:
		return r.flood(now, p)
	case Drop:
		why := v.Reason
		if why == traces.ReasonNone {
			why = traces.ReasonExtension
		}
		return r.drop(now, p, why)
	default:
		p.reason = v.Reason
	}
	p.pushed = now
	r.starts[len(r.starts)-1].pushBack(r.message(now, traces.ToHost, p, r.curID, traces.HostCard))
	r.levelQueue(now, QDMA)
	return r.refresh(QDMA)
}

// output is the end of `EnQ IP output`: the packet waits for its DMA.
func (r *Runtime) output(now des.Time, p *packet) error {
	p.pushed = now
	if p.egress == r.index {
		// Out on the wire it came from: no bus, no flow control.
		return r.send(&r.wireOut, QWire, now, traces.WireOutputStart, p, r.curID, r.index)
	}
	r.view.Backlog++
	r.level(now, traces.LevelBacklog, r.view.Backlog, traces.NoQueue, traces.NoCard)
	r.starts[p.egress].pushBack(r.message(now, traces.PeerToPeerStart, p, r.curID, p.egress))
	r.levelQueue(now, QDMA)
	return r.refresh(QDMA)
}
