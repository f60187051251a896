package traffic

import (
	"encoding/binary"
	"fmt"
)

// EthernetHeader is what an Ethernet link puts before a packet: destination,
// source, type. Preamble, check and gap are the wire's (Wire.Overhead).
const EthernetHeader = 14

// Ethernet is a Source that puts an Ethernet header before the IPv4 packets of
// another one. Next does not allocate.
type Ethernet struct {
	src     Source
	station func(ipv4 uint32) [6]byte
	buf     []byte
}

// NewEthernet wraps a source. station gives the address of the station with an
// IPv4 address; packets to IPv4 groups go to the group address of RFC 1112,
// broadcasts to all. carry is how many leading bytes of a frame are made, at
// least 60.
func NewEthernet(src Source, station func(ipv4 uint32) [6]byte, carry int) (*Ethernet, error) {
	if carry < maxIPv4Header || carry > maxBytes {
		return nil, fmt.Errorf("ethernet: %d bytes carried, want %d to %d", carry, maxIPv4Header, maxBytes)
	}
	return &Ethernet{src: src, station: station, buf: make([]byte, carry)}, nil
}

// Next makes the next frame. A packet that is too long for a frame to be counted
// is an error of the source's.
func (e *Ethernet) Next(a *Arrival) (bool, error) {
	ok, err := e.src.Next(a)
	if !ok || err != nil || a.Skip != "" {
		return ok, err
	}
	n := copy(e.buf[EthernetHeader:], a.Data)
	dst := binary.BigEndian.Uint32(a.Data[16:])
	d, s := e.station(dst), e.station(binary.BigEndian.Uint32(a.Data[12:]))
	switch {
	case dst == ^uint32(0):
		d = [6]byte{0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF}
	case dst>>28 == 0xE:
		d = [6]byte{0x01, 0x00, 0x5E, byte(dst>>16) & 0x7F, byte(dst >> 8), byte(dst)}
	}
	copy(e.buf, d[:])
	copy(e.buf[6:], s[:])
	e.buf[12], e.buf[13] = 0x08, 0x00
	a.Bytes += EthernetHeader
	a.Data = e.buf[:EthernetHeader+n]
	return true, nil
}
