package lanai

import (
	"encoding/binary"
	"fmt"

	"spinesim/pci"
	"spinesim/sim/des"
	"spinesim/traces"
)

// Outcomes of a host DMA that the card's own engine refuses, beside those of
// the bus.
const (
	DMAUnaligned pci.Status = 0x40 + iota // EAR or LAR is not a multiple of 4
	DMAOutside                            // LAR and count leave the SRAM, or the count is 0
	DMAWraps                              // EAR and count pass 4 GB
)

// StatusName names an outcome of a host DMA, the bus's and the engine's own.
func StatusName(st pci.Status) string {
	switch st {
	case DMAUnaligned:
		return "address not aligned to 4"
	case DMAOutside:
		return "outside the SRAM"
	case DMAWraps:
		return "beyond 4 GB"
	}
	return st.String()
}

// DMAOp describes a host DMA.
type DMAOp struct {
	ToCard bool   // direction: from the bus into SRAM, else from SRAM to the bus
	EAR    uint32 // bus address, a multiple of 4
	LAR    uint32 // SRAM address, a multiple of 4
	Bytes  int    // length, at least 1
	Carry  int    // leading bytes that really move; the rest is length only

	// For the transfer's record.
	Packet uint64
	Cause  traces.ID
	Event  traces.Event
	Peer   uint8
}

// DMAClient hears when the engine has finished. st is the bus's outcome or one
// of this package's, t the transfer (its results are not set when the engine
// itself refused). An error stops the simulation.
type DMAClient interface {
	DMADone(now des.Time, st pci.Status, t *pci.Transfer) error
}

// DMASource is implemented by a DMAClient that says what a DMA is for which
// the firmware started by the registers.
type DMASource interface {
	DMAFor(op *DMAOp)
}

// HostDMA is the card's only host-DMA engine. It moves one block at a time;
// there is no chaining.
type HostDMA struct {
	card   *Card
	master *pci.Master
	client DMAClient
	timer  des.Timer // end of a refused operation
	busy   bool
	status pci.Status
	op     DMAOp
	t      pci.Transfer
}

func (d *HostDMA) init(c *Card) {
	d.card = c
	d.timer.Init(d, PrioHardware, 0)
	c.engine.Adopt(&d.timer)
}

// Bind connects the client.
func (d *HostDMA) Bind(c DMAClient) { d.client = c }

// Busy tells whether the engine runs.
func (d *HostDMA) Busy() bool { return d.busy }

// Start writes EAR, LAR, DMA_DIR and DMA_CTR. Addresses that the engine cannot
// use are no error here: it stops in the next cycle and DMADone tells why. The
// error wraps ErrBusy while the engine runs, and names a Carry that is
// negative or beyond Bytes.
func (d *HostDMA) Start(op DMAOp) error {
	if d.busy {
		return fmt.Errorf("lanai: %s: host-DMA engine at %v: %w", d.card.name, d.card.engine.Now(), ErrBusy)
	}
	if op.Carry < 0 || op.Carry > max(op.Bytes, 0) {
		return fmt.Errorf("lanai: %s: host DMA at %v carries %d of %d bytes", d.card.name, d.card.engine.Now(), op.Carry, op.Bytes)
	}
	d.busy = true
	d.op = op
	r := d.card.Regs
	r.ear, r.lar, r.ctr, r.dir = op.EAR, op.LAR, uint32(max(op.Bytes, 0)), 0
	if op.ToCard {
		r.dir = 1
	}
	d.t = pci.Transfer{
		Cmd: pci.MemWrite, Addr: op.EAR, Bytes: op.Bytes,
		Packet: op.Packet, Cause: op.Cause, Event: op.Event, Peer: op.Peer,
	}
	if op.ToCard {
		d.t.Cmd = pci.MemReadMultiple
		if op.Bytes <= 32 {
			d.t.Cmd = pci.MemRead // chosen: no more than a cache line
		}
	}
	switch {
	case op.EAR%4 != 0 || op.LAR%4 != 0:
		d.status = DMAUnaligned
	case op.Bytes < 1 || !d.card.SRAM.Contains(op.LAR, op.Bytes):
		d.status = DMAOutside
	case uint64(op.EAR)+uint64(op.Bytes) > 1<<32:
		d.status = DMAWraps
	default:
		if op.Carry > 0 {
			d.t.Data = d.card.SRAM.View(op.LAR, op.Carry)
		}
		return d.master.Start(&d.t)
	}
	clk := &d.card.Mem.clk
	return d.card.engine.Arm(&d.timer, clk.edge(clk.ceil(d.card.engine.Now())+1))
}

// Handle ends an operation that the engine refused. It is for the event engine
// to call.
func (d *HostDMA) Handle(now des.Time, _ uint64) error {
	d.card.CPU.disturb()
	d.t.Status, d.t.End = d.status, now
	return d.done(now)
}

// TransferDone implements pci.Initiator.
func (d *HostDMA) TransferDone(now des.Time, t *pci.Transfer) error {
	d.card.CPU.disturb()
	d.status = t.Status
	r := d.card.Regs
	r.ctr = uint32(t.Bytes - t.Moved)
	if d.op.ToCard {
		r.cks = addChecksum(r.cks, t.Data[:min(len(t.Data), t.Moved)])
	}
	return d.done(now)
}

func (d *HostDMA) done(now des.Time) error {
	d.busy = false
	d.card.Regs.raise(IntDMA)
	if d.client == nil {
		return nil
	}
	return d.client.DMADone(now, d.status, &d.t)
}

// DataMoves implements pci.DataWatcher: they are bytes of the SRAM.
func (d *HostDMA) DataMoves(des.Time) {
	if d.op.ToCard {
		d.card.CPU.disturb()
		d.card.SRAM.wrote(d.op.LAR, d.op.Carry)
	} else {
		d.card.CPU.Settle()
	}
}

// BusStream implements pci.Initiator: the engine's own bursts go through the
// E-bus.
func (d *HostDMA) BusStream(now des.Time, on bool, num, den int32) {
	d.card.fail(d.card.Mem.setHost(now, asInitiator, on, num, den))
}

// addChecksum adds the big-endian half-words of p, the last one padded with a
// zero byte, to a 16-bit one's complement sum.
func addChecksum(sum uint32, p []byte) uint32 {
	s := uint64(sum)
	for ; len(p) >= 4; p = p[4:] {
		s += uint64(binary.BigEndian.Uint32(p))
	}
	var rest [4]byte
	copy(rest[:], p)
	s += uint64(binary.BigEndian.Uint32(rest[:]))
	for s > 0xFFFF {
		s = s>>16 + s&0xFFFF
	}
	return uint32(s)
}
