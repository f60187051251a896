package traffic

import (
	"encoding/binary"

	"github.com/gopacket/gopacket/layers"
)

// Reasons for skipping a packet of a capture.
const (
	SkipIPv6        = "IPv6"
	SkipARP         = "ARP"
	SkipNotIPv4     = "not IPv4"
	SkipRunt        = "shorter than an IPv4 header"
	SkipTruncated   = "header cut off by the capture"
	SkipGiant       = "longer than the MTU (segmentation offload)"
	SkipForeignLink = "foreign link type"
)

const (
	etherIPv4   = 0x0800
	etherARP    = 0x0806
	etherIPv6   = 0x86DD
	etherVLAN   = 0x8100 // 802.1Q
	etherQinQ   = 0x88A8 // 802.1ad
	etherQinQ91 = 0x9100 // the older outer tag

	familyInet = 2 // AF_INET, everywhere

	// Raw IP under its numbers on other systems (BSD's DLT_RAW).
	linkRawBSD     = layers.LinkType(12)
	linkRawOpenBSD = layers.LinkType(14)
)

// ipv4Of finds the IPv4 packet in what was captured of one: p are the leading
// bytes of wire bytes. It returns what is left of both from the IPv4 header
// on, or why there is none. It changes nothing.
func ipv4Of(link layers.LinkType, p []byte, wire int) (ip []byte, bytes int, skip string) {
	wire = max(wire, len(p))
	header, kind := 0, 0 // length of the link's header, where its protocol stands
	switch link {
	case layers.LinkTypeEthernet:
		header, kind = 14, 12
	case layers.LinkTypeLinuxSLL:
		header, kind = 16, 14
	case layers.LinkTypeLinuxSLL2:
		header, kind = 20, 0
	case layers.LinkTypeNull, layers.LinkTypeLoop:
		header = 4
	case layers.LinkTypeRaw, layers.LinkTypeIPv4, layers.LinkTypeIPv6, linkRawBSD, linkRawOpenBSD:
	default:
		return nil, 0, SkipForeignLink
	}
	if len(p) < header {
		return nil, 0, short(wire, header)
	}
	raw := false
	switch {
	case header == 0:
		raw = true
	case header == 4:
		// The capturing host's byte order, which need not be the file's.
		family := binary.LittleEndian.Uint32(p)
		if family != familyInet && family != familyInet<<24 {
			if len(p) > 4 && p[4]>>4 == 6 {
				return nil, 0, SkipIPv6
			}
			return nil, 0, SkipNotIPv4
		}
	default:
		proto := binary.BigEndian.Uint16(p[kind:])
		for proto == etherVLAN || proto == etherQinQ || proto == etherQinQ91 {
			if len(p) < header+4 {
				return nil, 0, short(wire, header+4)
			}
			proto = binary.BigEndian.Uint16(p[header+2:])
			header += 4
		}
		switch proto {
		case etherIPv4:
		case etherIPv6:
			return nil, 0, SkipIPv6
		case etherARP:
			return nil, 0, SkipARP
		default:
			return nil, 0, SkipNotIPv4
		}
	}
	ip, bytes = p[header:], wire-header
	if raw && len(ip) > 0 && ip[0]>>4 != 4 {
		if ip[0]>>4 == 6 {
			return nil, 0, SkipIPv6
		}
		return nil, 0, SkipNotIPv4
	}
	if len(ip) < ipv4Header {
		return nil, 0, short(bytes, ipv4Header)
	}
	// A header length that is too small is for the router to refuse.
	if ihl := headerLength(ip); len(ip) < ihl {
		return nil, 0, short(bytes, ihl)
	}
	return ip, bytes, ""
}

func headerLength(ip []byte) int { return int(ip[0]&0x0F) * 4 }

// short says why fewer bytes than needed are there: the packet never had more,
// or the capture kept no more.
func short(wire, need int) string {
	if wire < need {
		return SkipRunt
	}
	return SkipTruncated
}

// trim settles the packet's length: bytes is what the link carried from the
// IPv4 header on, perhaps with padding behind. A total length of zero, left by
// segmentation offload, is filled in where the packet fits the MTU, and the
// header's checksum with it. Lengths that contradict the link's are kept for
// the router to refuse.
func trim(ip []byte, bytes, mtu int) (int, string) {
	ihl, total := headerLength(ip), int(binary.BigEndian.Uint16(ip[2:]))
	whole := ip[0]>>4 == 4 && ihl >= ipv4Header
	if whole && total >= ihl && total <= bytes {
		bytes = total
	}
	if bytes > mtu {
		return 0, SkipGiant
	}
	if whole && total == 0 {
		binary.BigEndian.PutUint16(ip[2:], uint16(bytes))
		ip[10], ip[11] = 0, 0
		binary.BigEndian.PutUint16(ip[10:], ^fold(sum16(ip[:ihl])))
	}
	return bytes, ""
}
