package router

import "encoding/binary"

// Checksum is the Internet checksum (RFC 1071) of some bytes. Over a header
// whose checksum field is right it is 0.
func Checksum(b []byte) uint16 {
	sum := uint64(0)
	for ; len(b) >= 4; b = b[4:] {
		sum += uint64(binary.BigEndian.Uint32(b))
	}
	if len(b) >= 2 {
		sum += uint64(binary.BigEndian.Uint16(b))
		b = b[2:]
	}
	if len(b) == 1 {
		sum += uint64(b[0]) << 8
	}
	for sum>>16 != 0 {
		sum = sum&0xFFFF + sum>>16
	}
	return ^uint16(sum)
}

// UpdateChecksum is a header's checksum after one of its 16-bit words changed
// from one value to another (RFC 1624, eq. 3). Of the two forms of zero it
// gives the one that computing the checksum anew would give; the older formula
// of RFC 1141 does not.
func UpdateChecksum(sum, from, to uint16) uint16 {
	n := uint32(^sum) + uint32(^from) + uint32(to)
	n = n&0xFFFF + n>>16
	n = n&0xFFFF + n>>16
	return ^uint16(n)
}
