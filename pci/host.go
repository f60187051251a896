package pci

import (
	"encoding/binary"
	"errors"
	"fmt"

	"spinesim/sim/des"
	"spinesim/traces"
)

// ErrBounds reports an access outside the host's memory.
var ErrBounds = errors.New("outside the host's memory")

const (
	pageBytes  = 4096
	chunkBytes = 1024 * pageBytes
)

// HostMemory is the memory of the host. Pages take space once they are
// written; what was never written reads as zero. The host's own processor
// reaches it without the bus.
type HostMemory struct {
	base     uint32
	size     uint32
	resident int64
	chunks   [1024]*[1024]*[pageBytes]byte // nil until written
}

func newHostMemory(base, size uint32) *HostMemory { return &HostMemory{base: base, size: size} }

// page finds the page that holds offset off, nil when it was never written.
func (h *HostMemory) page(off uint32) *[pageBytes]byte {
	if c := h.chunks[off/chunkBytes]; c != nil {
		return c[off%chunkBytes/pageBytes]
	}
	return nil
}

// touch is page, but brings the page into being.
func (h *HostMemory) touch(off uint32) *[pageBytes]byte {
	c := &h.chunks[off/chunkBytes]
	if *c == nil {
		*c = new([1024]*[pageBytes]byte)
	}
	p := &(*c)[off%chunkBytes/pageBytes]
	if *p == nil {
		*p = new([pageBytes]byte)
		h.resident += pageBytes
	}
	return *p
}

// Base is the first bus address; Size the number of bytes.
func (h *HostMemory) Base() uint32 { return h.base }

// Size is the number of bytes.
func (h *HostMemory) Size() uint32 { return h.size }

// Resident is the bytes of the pages that have been written.
func (h *HostMemory) Resident() int64 { return h.resident }

func (h *HostMemory) check(what string, addr uint32, n int) error {
	if addr < h.base || uint64(addr-h.base)+uint64(n) > uint64(h.size) {
		return fmt.Errorf("pci: %s of %d bytes at %#x: %w (%#x bytes from %#x)", what, n, addr, ErrBounds, h.size, h.base)
	}
	return nil
}

// Write stores p from bus address addr on. An access that passes the bounds is
// refused whole with an error that wraps ErrBounds.
func (h *HostMemory) Write(addr uint32, p []byte) error {
	if err := h.check("write", addr, len(p)); err != nil {
		return err
	}
	for off := addr - h.base; len(p) > 0; {
		n := copy(h.touch(off)[off%pageBytes:], p)
		p = p[n:]
		off += uint32(n)
	}
	return nil
}

// Read fills p from bus address addr on, with the errors of Write.
func (h *HostMemory) Read(addr uint32, p []byte) error {
	if err := h.check("read", addr, len(p)); err != nil {
		return err
	}
	for off := addr - h.base; len(p) > 0; {
		n := min(len(p), int(pageBytes-off%pageBytes))
		if page := h.page(off); page != nil {
			copy(p[:n], page[off%pageBytes:])
		} else {
			clear(p[:n])
		}
		p = p[n:]
		off += uint32(n)
	}
	return nil
}

// HostClient is told of the end of what it asked the HostBridge to do.
type HostClient interface {
	// HostTransferDone reports the end of t; now is t.End. t may be given to
	// Transfer again at once. An error stops the simulation.
	HostTransferDone(now des.Time, t *Transfer) error
}

// PIODone is told of the end of a programmed access. v is the word read (of a
// read) or written; it means nothing unless s is StatusOK. An error stops the
// simulation.
type PIODone func(now des.Time, v uint32, s Status) error

// HostBridge puts the host on the bus: its memory as a target, and a master
// for programmed I/O and for transfers to the cards. What the host asks for
// is done one at a time, in order: a bridge has one outgoing queue.
type HostBridge struct {
	mem *HostMemory
	m   *Master

	queue []hostOp // ring
	head  int
	count int

	pio  Transfer // the running programmed access
	word [4]byte
}

type hostOp struct {
	t      *Transfer // nil for programmed I/O
	client HostClient

	write bool
	addr  uint32
	value uint32
	done  PIODone
}

// NewHostBridge attaches a host bridge with size bytes of memory from bus
// address base on, as fast as HostMemoryTarget says. Errors are those of
// AttachMaster and AttachTarget.
func NewHostBridge(b *Bus, base, size uint32) (*HostBridge, error) {
	return NewHostBridgeSpec(b, base, size, HostMemoryTarget())
}

// NewHostBridgeSpec is NewHostBridge with another target.
func NewHostBridgeSpec(b *Bus, base, size uint32, spec TargetSpec) (*HostBridge, error) {
	h := &HostBridge{queue: make([]hostOp, 16)}
	if len(b.masters) == MaxMasters {
		return nil, fmt.Errorf("pci: master %q: %w (%d)", "host", ErrNoMaster, MaxMasters)
	}
	if err := b.AttachTarget("host memory", traces.HostCard, base, size, spec, (*hostTarget)(h)); err != nil {
		return nil, err
	}
	m, err := b.AttachMaster("host", traces.HostCard, (*hostInitiator)(h))
	if err != nil {
		return nil, err
	}
	if spec.Populated != 0 {
		size = spec.Populated
	}
	h.m, h.mem = m, newHostMemory(base, size)
	return h, nil
}

// Memory is the host's memory.
func (h *HostBridge) Memory() *HostMemory { return h.mem }

// Master is the bridge's place at the arbiter. Transfers must not be started
// on it directly.
func (h *HostBridge) Master() *Master { return h.m }

// Pending is the number of transfers and programmed accesses that have not
// ended.
func (h *HostBridge) Pending() int { return h.count }

// Transfer queues t, usually a write of host data into a card's window, and
// tells c of its end (c may be nil). t.Requested is when its turn came. Errors
// are those of Master.Start, ErrBusy apart. t must not be queued twice.
func (h *HostBridge) Transfer(t *Transfer, c HostClient) error {
	if err := h.m.check(t); err != nil {
		return err
	}
	return h.post(hostOp{t: t, client: c})
}

// Load reads the word at addr, a multiple of 4, by programmed I/O: the host's
// processor is held until the answer comes. v is in the bus's byte order,
// little-endian. done may be nil.
func (h *HostBridge) Load(addr uint32, done PIODone) error {
	if addr%4 != 0 {
		return fmt.Errorf("pci: host: programmed read at %#x is not of a whole word", addr)
	}
	return h.post(hostOp{addr: addr, done: done})
}

// Store writes v to addr, a multiple of 4, by programmed I/O, little-endian.
// done, which may be nil, is told when the word has reached its target.
func (h *HostBridge) Store(addr, v uint32, done PIODone) error {
	if addr%4 != 0 {
		return fmt.Errorf("pci: host: programmed write at %#x is not of a whole word", addr)
	}
	return h.post(hostOp{write: true, addr: addr, value: v, done: done})
}

func (h *HostBridge) post(op hostOp) error {
	if h.count == len(h.queue) {
		q := make([]hostOp, 2*len(h.queue))
		n := copy(q, h.queue[h.head:])
		copy(q[n:], h.queue[:h.head])
		h.queue, h.head = q, 0
	}
	h.queue[(h.head+h.count)%len(h.queue)] = op
	h.count++
	if h.count > 1 || h.m.Busy() {
		return nil
	}
	if err := h.start(); err != nil {
		h.pop()
		return err
	}
	return nil
}

func (h *HostBridge) pop() hostOp {
	op := h.queue[h.head]
	h.queue[h.head] = hostOp{}
	h.head = (h.head + 1) % len(h.queue)
	h.count--
	return op
}

// start begins the operation at the head of the queue.
func (h *HostBridge) start() error {
	op := &h.queue[h.head]
	if op.t != nil {
		return h.m.Start(op.t)
	}
	h.pio = Transfer{Cmd: MemRead, Addr: op.addr, Bytes: 4, Data: h.word[:], Event: traces.NoEvent, Peer: traces.NoCard}
	if op.write {
		h.pio.Cmd = MemWrite
		binary.LittleEndian.PutUint32(h.word[:], op.value)
	}
	return h.m.Start(&h.pio)
}

// hostInitiator is the bridge as a master.
type hostInitiator HostBridge

func (i *hostInitiator) TransferDone(now des.Time, t *Transfer) error {
	h := (*HostBridge)(i)
	op := h.pop()
	v, s := binary.LittleEndian.Uint32(h.word[:]), t.Status
	// The next one asks for the bus at once; what the client posts in answer
	// to this one comes behind it.
	if h.count > 0 {
		if err := h.start(); err != nil {
			return err
		}
	}
	switch {
	case op.t != nil && op.client != nil:
		return op.client.HostTransferDone(now, op.t)
	case op.t == nil && op.done != nil:
		return op.done(now, v, s)
	}
	return nil
}

// The host's memory has bandwidth to spare: what the bus takes slows nothing
// that is modelled.
func (*hostInitiator) BusStream(des.Time, bool, int32, int32) {}

// hostTarget is the bridge as a target.
type hostTarget HostBridge

// The bus hands over only what lies in the populated window, so Write and
// Read cannot fail.
func (t *hostTarget) BusWrite(addr uint32, p []byte)       { _ = t.mem.Write(addr, p) }
func (t *hostTarget) BusRead(addr uint32, p []byte)        { _ = t.mem.Read(addr, p) }
func (*hostTarget) BusStream(des.Time, bool, int32, int32) {}
