package traces

import (
	"encoding/binary"
	"errors"

	"spinesim/sim/des"
)

// The packed form of a record, about 20 bytes:
//
//	mask    2 bytes, little-endian, see below
//	kind, event, card
//	End     less the End before
//	then, each only where the mask says so: End-Start, Start-Ready, ID,
//	Cause, Packet, Bytes, Count, Cycles, Stall, Peer, Queue, Reason, Verdict
//
// Differences are zigzag varints of 64-bit wrapping subtractions, so that any
// record survives, whatever its fields hold. An ID is compared with the one
// that would follow the card's last, a packet with the last packet.
const (
	hasSpan     = 1 << 0
	hasReady    = 1 << 1
	idNext      = 1 << 2 // the card's last ID + 1
	idOther     = 1 << 3 // written out; neither: 0
	hasCause    = 1 << 4
	packetSame  = 1 << 5
	packetOther = 1 << 6 // written out; neither: 0
	hasBytes    = 1 << 7
	hasCount    = 1 << 8
	hasCycles   = 1 << 9
	hasStall    = 1 << 10
	hasPeer     = 1 << 11
	hasQueue    = 1 << 12
	hasReason   = 1 << 13
	hasVerdict  = 1 << 14
	// causeElsewhere: the cause is of another card, whose number comes first.
	causeElsewhere = 1 << 15

	// maxPacked is the most that one record takes.
	maxPacked = 2 + 3 + 7*binary.MaxVarintLen64 + 2 + 3*binary.MaxVarintLen32 + 4
)

// codec is the state that differences refer to. Its zero value starts a chunk.
type codec struct {
	end    des.Time
	packet uint64
	id     [256]ID
}

func zigzag(v int64) uint64   { return uint64(v)<<1 ^ uint64(v>>63) }
func unzigzag(u uint64) int64 { return int64(u>>1) ^ -int64(u&1) }

// append packs r behind b, which must have room for maxPacked more bytes.
func (c *codec) append(b []byte, r *Record) []byte {
	at := len(b)
	b = append(b, 0, 0, byte(r.Kind), byte(r.Event), r.Card)
	mask := 0
	b = binary.AppendUvarint(b, zigzag(int64(r.End-c.end)))
	c.end = r.End
	if r.Start != r.End {
		mask |= hasSpan
		b = binary.AppendUvarint(b, zigzag(int64(r.End-r.Start)))
	}
	if r.Ready != 0 {
		mask |= hasReady
		b = binary.AppendUvarint(b, zigzag(int64(r.Start-r.Ready)))
	}
	last := c.id[r.Card]
	switch {
	case r.ID == 0:
	case r.ID == last+1:
		mask |= idNext
		c.id[r.Card] = r.ID
	default:
		mask |= idOther
		b = binary.AppendUvarint(b, zigzag(int64(r.ID-last)))
		c.id[r.Card] = r.ID
	}
	if r.Cause != 0 {
		mask |= hasCause
		if card := uint8(r.Cause >> idBits); card != r.Card {
			mask |= causeElsewhere
			b = binary.AppendUvarint(b, uint64(card))
			last = c.id[card]
		}
		b = binary.AppendUvarint(b, zigzag(int64(r.Cause-last)))
	}
	switch {
	case r.Packet == 0:
	case r.Packet == c.packet:
		mask |= packetSame
	default:
		mask |= packetOther
		b = binary.AppendUvarint(b, zigzag(int64(r.Packet-c.packet)))
		c.packet = r.Packet
	}
	if r.Bytes != 0 {
		mask |= hasBytes
		b = binary.AppendUvarint(b, uint64(r.Bytes))
	}
	if r.Count != 0 {
		mask |= hasCount
		b = binary.AppendUvarint(b, uint64(r.Count))
	}
	if r.Cycles != 0 {
		mask |= hasCycles
		b = binary.AppendUvarint(b, r.Cycles)
	}
	if r.Stall != 0 {
		mask |= hasStall
		b = binary.AppendUvarint(b, uint64(r.Stall))
	}
	if r.Peer != NoCard {
		mask |= hasPeer
		b = append(b, r.Peer)
	}
	if r.Queue != NoQueue {
		mask |= hasQueue
		b = append(b, r.Queue)
	}
	if r.Reason != 0 {
		mask |= hasReason
		b = append(b, byte(r.Reason))
	}
	if r.Verdict != 0 {
		mask |= hasVerdict
		b = append(b, byte(r.Verdict))
	}
	b[at], b[at+1] = byte(mask), byte(mask>>8)
	return b
}

var errPacked = errors.New("packed record is malformed")

// unpacker reads numbers off a chunk and remembers the first failure.
type unpacker struct {
	b   []byte
	bad bool
}

func (u *unpacker) byte() byte {
	if len(u.b) == 0 {
		u.bad = true
		return 0
	}
	v := u.b[0]
	u.b = u.b[1:]
	return v
}

func (u *unpacker) uvarint() uint64 {
	v, n := binary.Uvarint(u.b)
	if n <= 0 {
		u.bad = true
		return 0
	}
	u.b = u.b[n:]
	return v
}

func (u *unpacker) uint32() uint32 {
	v := u.uvarint()
	if v > 1<<32-1 {
		u.bad = true
	}
	return uint32(v)
}

// next unpacks one record and returns what follows it.
func (c *codec) next(b []byte, r *Record) ([]byte, error) {
	if len(b) < 6 {
		return nil, errPacked
	}
	mask := int(b[0]) | int(b[1])<<8
	*r = Record{Kind: Kind(b[2]), Event: Event(b[3]), Card: b[4], Peer: NoCard, Queue: NoQueue}
	u := unpacker{b: b[5:]}
	c.end += des.Time(unzigzag(u.uvarint()))
	r.End, r.Start = c.end, c.end
	if mask&hasSpan != 0 {
		r.Start = r.End - des.Time(unzigzag(u.uvarint()))
	}
	if mask&hasReady != 0 {
		r.Ready = r.Start - des.Time(unzigzag(u.uvarint()))
	}
	last := c.id[r.Card]
	switch mask & (idNext | idOther) {
	case 0:
	case idNext:
		r.ID = last + 1
		c.id[r.Card] = r.ID
	case idOther:
		r.ID = last + ID(unzigzag(u.uvarint()))
		c.id[r.Card] = r.ID
	default:
		u.bad = true
	}
	if mask&hasCause != 0 {
		if mask&causeElsewhere != 0 {
			last = c.id[uint8(u.uvarint())]
		}
		r.Cause = last + ID(unzigzag(u.uvarint()))
	}
	switch mask & (packetSame | packetOther) {
	case 0:
	case packetSame:
		r.Packet = c.packet
	case packetOther:
		r.Packet = c.packet + uint64(unzigzag(u.uvarint()))
		c.packet = r.Packet
	default:
		u.bad = true
	}
	if mask&hasBytes != 0 {
		r.Bytes = u.uint32()
	}
	if mask&hasCount != 0 {
		r.Count = u.uint32()
	}
	if mask&hasCycles != 0 {
		r.Cycles = u.uvarint()
	}
	if mask&hasStall != 0 {
		r.Stall = u.uint32()
	}
	if mask&hasPeer != 0 {
		r.Peer = u.byte()
	}
	if mask&hasQueue != 0 {
		r.Queue = u.byte()
	}
	if mask&hasReason != 0 {
		r.Reason = Reason(u.byte())
	}
	if mask&hasVerdict != 0 {
		r.Verdict = Verdict(u.byte())
	}
	if u.bad {
		return nil, errPacked
	}
	return u.b, nil
}
