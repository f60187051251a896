package firmware

import (
	"fmt"

	"spinesim/lanai/loader"
	"spinesim/traces"
)

// Offsets in struct spine and struct peer of spine.h; a test compares them with
// what the firmware writes there.
const (
	spineSelf      = 4
	spineReceiving = 556
	spinePeers     = 588

	queueTail = 4
	queueRing = 8
	ringSlots = 32

	peerInbox = 20
	peerBytes = 56
)

// Polls are the addresses of the queues' polls.
func (b *Bench) Polls() (at [traces.PollQ6 + 1]uint32) {
	for q := range at {
		at[q] = b.word(b.polls + 4*uint32(q))
	}
	return at
}

// Receiving is the packet structure whose body is being, or was last, received.
func (b *Bench) Receiving() uint32 { return b.word(b.spine + spineReceiving) }

// Newest is the message that the run-time sent to itself last.
func (b *Bench) Newest() (run traces.Event, arg uint32) {
	q := b.spine + spineSelf
	at := q + queueRing + 8*((b.word(q+queueTail)-1)&(ringSlots-1))
	run, ok := b.byAddr[b.word(at)]
	if !ok {
		run = traces.NoEvent
	}
	return run, b.word(at + 4)
}

// Found is the message that the last poll found which hit. The error names an
// address that is no handler's.
func (b *Bench) Found() (run traces.Event, arg uint32, err error) {
	at := b.word(b.found)
	run, ok := b.byAddr[at]
	if !ok {
		return traces.NoEvent, 0, fmt.Errorf("firmware: a message for %#x (%s), which is no handler", at, b.Image.At(at))
	}
	return run, b.word(b.found + 4), nil
}

// Fate is what the firmware has written into a packet's structure.
type Fate struct {
	Card   uint8 // to leave by
	Hop    uint32
	Reason traces.Reason
}

// Fate reads a packet's structure.
func (b *Bench) Fate(packet uint32) Fate {
	f := Fate{Card: uint8(b.word(packet + packetPeer)), Hop: b.word(packet + packetHop)}
	if why := b.word(packet + packetWhy); int(why) < len(Reasons) {
		f.Reason = Reasons[why]
	}
	return f
}

// PeerOf is the card that a peer's structure stands for on the card of the given
// number, and whether the address is one's.
func (b *Bench) PeerOf(addr uint32, card uint8) (peer uint8, ok bool) {
	at := addr - b.spine - spinePeers
	if at >= peers*peerBytes || at%peerBytes != 0 {
		return traces.NoCard, false
	}
	if peer = uint8(at / peerBytes); peer >= card {
		peer++
	}
	return peer, true
}

// extensionOf tells which of an image's sections are the extension's, the first
// objects loaded.
func extensionOf(s loader.Placed, in *Inputs) bool { return s.Order < len(in.Extension) }
