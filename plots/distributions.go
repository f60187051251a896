package plots

import (
	"spinesim/sim/des"
	"spinesim/sim/stats"
	"spinesim/traces"
)

// Distributions is a sink that gathers what the distributions of a run are
// drawn from, in memory that does not grow with the run. Its quantiles are off
// by at most 0.1 %.
type Distributions struct {
	// Gap is between successive departures of the same card.
	Gap *stats.Histogram
	// Ingress is from the start of Rx check header to the departure, Upstream
	// from the arrival to that start, Total from the arrival to the end of the
	// send, of packets that were forwarded.
	Ingress, Upstream, Total *stats.Histogram

	last     [256]des.Time
	departed [256]bool
	inside   []insidePacket // by packet number
}

type insidePacket struct {
	packet      uint64
	enter       des.Time
	receive     des.Time
	entered, in bool
}

// insideSlots is how many packets are followed at once; a machine holds a few
// hundred.
const insideSlots = 1 << 13

// NewDistributions returns an empty sink.
func NewDistributions() *Distributions {
	d := &Distributions{inside: make([]insidePacket, insideSlots)}
	for _, h := range []**stats.Histogram{&d.Gap, &d.Ingress, &d.Upstream, &d.Total} {
		*h, _ = stats.NewHistogram(1.0 / 1024) // a precision that it has
	}
	return d
}

// Record implements traces.Sink; it never fails.
func (d *Distributions) Record(r *traces.Record) error {
	switch r.Kind {
	case traces.KindEnter:
		p := &d.inside[r.Packet%insideSlots]
		*p = insidePacket{packet: r.Packet, enter: r.End, entered: true}
	case traces.KindBox:
		if r.Event != traces.RxCheckHeader {
			break
		}
		p := &d.inside[r.Packet%insideSlots]
		if p.packet != r.Packet {
			*p = insidePacket{packet: r.Packet}
		}
		p.receive, p.in = r.Start, true
		if p.entered {
			d.Upstream.Add(int64(r.Start - p.enter))
		}
	case traces.KindDepart:
		if d.departed[r.Card] {
			d.Gap.Add(int64(r.End - d.last[r.Card]))
		}
		d.departed[r.Card], d.last[r.Card] = true, r.End
		if p := &d.inside[r.Packet%insideSlots]; p.packet == r.Packet && p.in {
			d.Ingress.Add(int64(r.End - p.receive))
		}
	case traces.KindLeave:
		if p := &d.inside[r.Packet%insideSlots]; p.packet == r.Packet && p.entered && r.Verdict == traces.VerdictForwarded {
			d.Total.Add(int64(r.End - p.enter))
		}
	}
	return nil
}
