package spine

import (
	"runtime"
	"sync/atomic"

	"spinesim/sim/des"
)

// Call is a call of an extension.
type Call struct {
	Card      uint8
	Packet    uint64
	Extension string
	At        des.Time // when the handler began
}

// calling tells other goroutines which extension has a packet just now. An
// extension that loops without charging takes no simulated time, so that only
// the wall's clock can tell; whoever watches that asks here.
type calling struct {
	// packet is 0 outside any call. Of the others, what belongs to it is read
	// between two looks at it that are the same.
	packet, at atomic.Uint64
	which      atomic.Uint64 // card and extension
	names      []string      // of all extensions ever loaded
	left       atomic.Bool
}

// Calling is the call of an extension in progress, ok false when there is none.
// Any goroutine may ask while the router runs.
func (r *Router) Calling() (c Call, ok bool) {
	k := &r.calling
	p := k.packet.Load()
	at, which := k.at.Load(), k.which.Load()
	if p == 0 || k.packet.Load() != p {
		return Call{}, false
	}
	return Call{Card: uint8(which), Packet: p, Extension: k.names[which>>8], At: des.Time(at)}, true
}

// Leave gives the router up while it runs in another goroutine, held up by an
// extension: should that ever return, the goroutine ends there.
func (r *Router) Leave() { r.calling.left.Store(true) }

// name is the number of an extension for Call. Extensions are loaded before the
// router starts.
func (k *calling) name(x Extension) uint64 {
	k.names = append(k.names, x.Name())
	return uint64(len(k.names) - 1)
}

func (k *calling) begin(now des.Time, card uint8, name, packet uint64) {
	k.at.Store(uint64(now))
	k.which.Store(name<<8 | uint64(card))
	k.packet.Store(packet)
}

func (k *calling) end() {
	k.packet.Store(0)
	if k.left.Load() {
		runtime.Goexit()
	}
}
