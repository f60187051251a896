package router

import (
	"spinesim/lanai/ilp"
	"spinesim/spine"
)

// Manipulation is an extension that works on a packet's data, layer by layer or
// integrated (package ilp), and leaves the packet to the next extension. It
// works on what is behind the IPv4 header, so that the packet can still be
// routed; of a packet whose first bytes alone are simulated, it changes those,
// and costs what the whole packet costs. A packet that is not IPv4, or too
// short, is left alone.
//
// The transport's checksum is that of the data as it was, as behind a layer that
// encrypts.
type Manipulation struct {
	stage  *ilp.Stage
	offset int
	counts Manipulated
}

var _ spine.Extension = (*Manipulation)(nil)

// Manipulated is what a Manipulation has done so far.
type Manipulated struct {
	Packets, Bytes   uint64
	Cycles, Accesses uint64
}

// NewManipulation makes the extension of one card. offset is the length of a
// link header before the IPv4 header. Errors are those of ilp.NewStage.
func NewManipulation(spec ilp.StageSpec, offset int) (*Manipulation, error) {
	stage, err := ilp.NewStage(spec)
	if err != nil {
		return nil, err
	}
	return &Manipulation{stage: stage, offset: offset}, nil
}

// Name is "ilp" and the mode.
func (x *Manipulation) Name() string { return "ilp " + x.stage.Spec().Mode.String() }

// Handle charges the work and does it. It does not allocate.
func (x *Manipulation) Handle(ctx *spine.Context, p *spine.Packet) spine.Verdict {
	if p.BadCRC || len(p.Header) < x.offset+minHeader {
		return spine.Verdict{}
	}
	h := p.Header[x.offset:]
	size := int(h[versionIHL]&0xF) * 4
	if h[versionIHL]>>4 != 4 || size < minHeader || size > len(h) {
		return spine.Verdict{}
	}
	n := p.Bytes - x.offset - size
	cycles, accesses := x.stage.Cost(n)
	// Charged first: an extension that the watchdog stops has not changed half
	// a packet.
	ctx.Charge(cycles)
	ctx.Access(accesses)
	x.stage.Apply(h[size:])
	x.counts.Packets++
	x.counts.Bytes += uint64(max(n, 0))
	x.counts.Cycles += uint64(cycles)
	x.counts.Accesses += uint64(accesses)
	return spine.Verdict{}
}

// Stage is the chain of functions.
func (x *Manipulation) Stage() *ilp.Stage { return x.stage }

// Counts tells what has been done so far.
func (x *Manipulation) Counts() Manipulated { return x.counts }
