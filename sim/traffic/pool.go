package traffic

import (
	"fmt"

	"spinesim/lanai"
)

// FramePool hands out frames and takes them back, so that packets cost no
// allocation once enough frames exist. All ports of a router share one; it is
// not safe for concurrent use.
type FramePool struct {
	carry int
	free  []*lanai.Frame
	out   int
}

// poolGrowth is how many frames are made at a time.
const poolGrowth = 32

// NewFramePool makes a pool whose frames carry up to the given number of
// leading bytes, at least the 60 that an IPv4 header can have.
func NewFramePool(carry int) (*FramePool, error) {
	if carry < maxIPv4Header || carry > maxBytes {
		return nil, fmt.Errorf("frame pool: %d bytes carried, want %d to %d", carry, maxIPv4Header, maxBytes)
	}
	return &FramePool{carry: carry}, nil
}

// Carry is how many leading bytes a frame carries at most.
func (p *FramePool) Carry() int { return p.carry }

// Get gives a frame for a packet of bytes bytes, of which carried are known:
// zero but for Bytes, and with Data as long as can be carried of them, its
// contents undefined.
func (p *FramePool) Get(bytes, carried int) *lanai.Frame {
	if len(p.free) == 0 {
		frames := make([]lanai.Frame, poolGrowth)
		data := make([]byte, poolGrowth*p.carry)
		for i := range frames {
			frames[i].Data = data[i*p.carry : i*p.carry : (i+1)*p.carry]
			p.free = append(p.free, &frames[i])
		}
	}
	f := p.free[len(p.free)-1]
	p.free = p.free[:len(p.free)-1]
	p.out++
	f.Bytes = bytes
	f.Data = f.Data[:max(min(carried, bytes, p.carry), 0)]
	return f
}

// Put takes a frame back that came from Get; nobody may use it afterwards. A
// nil frame is ignored.
func (p *FramePool) Put(f *lanai.Frame) {
	if f == nil {
		return
	}
	data := f.Data[:0]
	if cap(data) < p.carry { // the owner cut bytes off the front
		data = make([]byte, 0, p.carry)
	}
	*f = lanai.Frame{Data: data}
	p.free = append(p.free, f)
	p.out--
}

// Out is how many frames are in use: 0 once the router has drained, else a
// frame was lost; below 0, one was put back twice.
func (p *FramePool) Out() int { return p.out }
