package traffic

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
)

// datagram is an IPv4 packet of the given length, with a valid header.
func datagram(length int) []byte {
	p := make([]byte, length)
	h := DefaultHeader()
	h.Write(p, length, uint16(length), 0xC6120001, 0x0A000001)
	for i := minBytes; i < length; i++ {
		p[i] = byte(i)
	}
	return p
}

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

func ether(kind uint16, rest ...[]byte) []byte {
	h := append(bytes.Repeat([]byte{0x02, 1}, 6), byte(kind>>8), byte(kind))
	return join(append([][]byte{h}, rest...)...)
}

func vlan(id, kind uint16) []byte {
	return []byte{byte(id >> 8), byte(id), byte(kind >> 8), byte(kind)}
}

func sll(kind uint16) []byte {
	return append([]byte{0, 0, 0, 1, 0, 6, 2, 1, 2, 1, 2, 1, 0, 0}, byte(kind>>8), byte(kind))
}

func sll2(kind uint16) []byte {
	return append([]byte{byte(kind >> 8), byte(kind)}, make([]byte, 18)...)
}

var ip6 = append([]byte{0x60}, make([]byte, 59)...)

func set(p []byte, at int, v ...byte) []byte {
	p = bytes.Clone(p)
	copy(p[at:], v)
	return p
}

// What each oddity of captures in the wild becomes.
func TestLinkLayers(t *testing.T) {
	d := datagram(100)
	noLength := set(datagram(100), 2, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0) // total length and checksum left to the card
	filled := set(noLength, 2, 0, 100)
	binary.BigEndian.PutUint16(filled[10:], rfc1071(filled[:20]))
	options := set(datagram(120), 0, 0x4F) // 60 bytes of header
	for _, c := range []struct {
		name string
		link layers.LinkType
		p    []byte
		wire int // 0: len(p)
		want []byte
		n    int // 0: len(want)
		skip string
	}{
		{"Ethernet", layers.LinkTypeEthernet, ether(etherIPv4, d), 0, d, 0, ""},
		{"Ethernet with padding", layers.LinkTypeEthernet, ether(etherIPv4, datagram(40), make([]byte, 6)), 0, datagram(40), 0, ""},
		{"Ethernet with check sequence", layers.LinkTypeEthernet, ether(etherIPv4, d, []byte{1, 2, 3, 4}), 0, d, 0, ""},
		{"one VLAN tag", layers.LinkTypeEthernet, ether(etherVLAN, vlan(7, etherIPv4), d), 0, d, 0, ""},
		{"stacked VLAN tags", layers.LinkTypeEthernet, ether(etherQinQ, vlan(7, etherVLAN), vlan(8, etherIPv4), d), 0, d, 0, ""},
		{"three tags", layers.LinkTypeEthernet, ether(etherQinQ91, vlan(7, etherQinQ), vlan(7, etherVLAN), vlan(8, etherIPv4), d), 0, d, 0, ""},
		{"a tag and IPv6", layers.LinkTypeEthernet, ether(etherVLAN, vlan(7, etherIPv6), ip6), 0, nil, 0, SkipIPv6},
		{"a tag cut off", layers.LinkTypeEthernet, ether(etherVLAN, []byte{0, 7}), 64, nil, 0, SkipTruncated},
		{"a tag and no more", layers.LinkTypeEthernet, ether(etherVLAN, []byte{0, 7}), 0, nil, 0, SkipRunt},
		{"ARP", layers.LinkTypeEthernet, ether(etherARP, make([]byte, 46)), 0, nil, 0, SkipARP},
		{"802.3 length", layers.LinkTypeEthernet, ether(46, make([]byte, 46)), 0, nil, 0, SkipNotIPv4},
		{"MPLS", layers.LinkTypeEthernet, ether(0x8847, make([]byte, 46)), 0, nil, 0, SkipNotIPv4},
		{"half an Ethernet header", layers.LinkTypeEthernet, ether(etherIPv4)[:9], 64, nil, 0, SkipTruncated},
		{"cooked", layers.LinkTypeLinuxSLL, join(sll(etherIPv4), d), 0, d, 0, ""},
		{"cooked with tag", layers.LinkTypeLinuxSLL, join(sll(etherVLAN), vlan(1, etherIPv4), d), 0, d, 0, ""},
		{"cooked IPv6", layers.LinkTypeLinuxSLL, join(sll(etherIPv6), ip6), 0, nil, 0, SkipIPv6},
		{"cooked v2", layers.LinkTypeLinuxSLL2, join(sll2(etherIPv4), d), 0, d, 0, ""},
		{"cooked v2 ARP", layers.LinkTypeLinuxSLL2, join(sll2(etherARP), d), 0, nil, 0, SkipARP},
		{"null, little end first", layers.LinkTypeNull, join([]byte{2, 0, 0, 0}, d), 0, d, 0, ""},
		{"null, big end first", layers.LinkTypeNull, join([]byte{0, 0, 0, 2}, d), 0, d, 0, ""},
		{"null IPv6", layers.LinkTypeNull, join([]byte{30, 0, 0, 0}, ip6), 0, nil, 0, SkipIPv6},
		{"null, something else", layers.LinkTypeNull, join([]byte{7, 0, 0, 0}, d), 0, nil, 0, SkipNotIPv4},
		{"loopback", layers.LinkTypeLoop, join([]byte{0, 0, 0, 2}, d), 0, d, 0, ""},
		{"raw", layers.LinkTypeRaw, d, 0, d, 0, ""},
		{"raw under BSD's number", linkRawBSD, d, 0, d, 0, ""},
		{"raw IPv6", layers.LinkTypeRaw, ip6, 0, nil, 0, SkipIPv6},
		{"raw rubbish", layers.LinkTypeRaw, set(d, 0, 0x15), 0, nil, 0, SkipNotIPv4},
		{"raw, empty", layers.LinkTypeRaw, nil, 0, nil, 0, SkipRunt},
		{"IPv4", layers.LinkTypeIPv4, d, 0, d, 0, ""},
		{"IPv6", layers.LinkTypeIPv6, ip6, 0, nil, 0, SkipIPv6},
		{"802.11", layers.LinkTypeIEEE802_11, d, 0, nil, 0, SkipForeignLink},

		{"cut by the snap length", layers.LinkTypeEthernet, ether(etherIPv4, datagram(1500)[:82]), 1514, datagram(1500)[:82], 1500, ""},
		{"just the header", layers.LinkTypeRaw, datagram(1500)[:20], 1500, datagram(1500)[:20], 1500, ""},
		{"a byte short of the header", layers.LinkTypeRaw, datagram(1500)[:19], 1500, nil, 0, SkipTruncated},
		{"options cut off", layers.LinkTypeRaw, options[:59], 120, nil, 0, SkipTruncated},
		{"options", layers.LinkTypeRaw, options[:60], 120, options[:60], 120, ""},
		{"fewer bytes than a header", layers.LinkTypeRaw, d[:12], 0, nil, 0, SkipRunt},
		{"a wire length below what was captured", layers.LinkTypeRaw, d, 5, d, 0, ""},

		{"giant", layers.LinkTypeEthernet, ether(etherIPv4, datagram(9000)[:82]), 9014, nil, 0, SkipGiant},
		{"giant without a length", layers.LinkTypeRaw, noLength, 60000, nil, 0, SkipGiant},
		{"no length, but short", layers.LinkTypeRaw, noLength, 0, filled, 0, ""},
		{"exactly the MTU", layers.LinkTypeRaw, datagram(1500), 0, datagram(1500), 0, ""},
		{"one above", layers.LinkTypeRaw, datagram(1501), 0, nil, 0, SkipGiant},

		// For the router to refuse by name.
		{"total length beyond the packet", layers.LinkTypeRaw, datagram(200)[:100], 0, datagram(200)[:100], 0, ""},
		{"total length below the header", layers.LinkTypeRaw, set(d, 2, 0, 10), 0, set(d, 2, 0, 10), 0, ""},
		{"header length of 4", layers.LinkTypeRaw, set(d, 0, 0x41), 0, set(d, 0, 0x41), 0, ""},
		{"version 5 in Ethernet", layers.LinkTypeEthernet, ether(etherIPv4, set(d, 0, 0x55)), 0, set(d, 0, 0x55), 0, ""},
	} {
		wire := c.wire
		if wire == 0 {
			wire = len(c.p)
		}
		p := bytes.Clone(c.p)
		ip, n, skip := ipv4Of(c.link, p, wire)
		if !bytes.Equal(p, c.p) {
			t.Errorf("%s: finding the header changed the packet", c.name)
		}
		if skip == "" {
			n, skip = trim(ip, n, 1500)
			ip = ip[:min(len(ip), n)]
		}
		if skip != "" {
			ip, n = nil, 0
		}
		if c.n == 0 {
			c.n = len(c.want)
		}
		if skip != c.skip || n != c.n || !bytes.Equal(ip, c.want) {
			t.Errorf("%s: %q, %d bytes %x; want %q, %d bytes %x", c.name, skip, n, ip, c.skip, c.n, c.want)
		}
	}
}

// gopacket's decoder is the oracle for what it can decode.
func FuzzLinkLayers(f *testing.F) {
	d := datagram(60)
	f.Add(uint16(1), ether(etherIPv4, d), 100)
	f.Add(uint16(1), ether(etherQinQ, vlan(7, etherVLAN), vlan(8, etherIPv4), d), 0)
	f.Add(uint16(113), join(sll(etherIPv4), d), 1<<20)
	f.Add(uint16(276), join(sll2(etherIPv4), d), -5)
	f.Add(uint16(0), join([]byte{2, 0, 0, 0}, d), 64)
	f.Add(uint16(101), d, 60)
	f.Fuzz(func(t *testing.T, link uint16, p []byte, wire int) {
		before := bytes.Clone(p)
		ip, n, skip := ipv4Of(layers.LinkType(link), p, wire)
		if d := cmp.Diff(before, p); d != "" {
			t.Fatal(d)
		}
		if skip != "" {
			return
		}
		if len(ip) < ipv4Header || len(ip) > n || len(ip) < headerLength(ip) {
			t.Fatalf("%d bytes of %d", len(ip), n)
		}
		if layers.LinkType(link) == layers.LinkTypeEthernet {
			q := gopacket.NewPacket(before, layers.LayerTypeEthernet, gopacket.DecodeOptions{Lazy: true, NoCopy: true})
			if l, ok := q.Layer(layers.LayerTypeIPv4).(*layers.IPv4); ok && q.ErrorLayer() == nil {
				if !bytes.HasPrefix(ip, l.Contents) {
					t.Fatalf("IPv4 header %x, gopacket found %x", ip, l.Contents)
				}
			}
		}
		m, skip := trim(ip, n, 1500)
		if skip == "" && (m > 1500 || m > n || m < 0) {
			t.Fatalf("%d bytes cut to %d", n, m)
		}
	})
}
