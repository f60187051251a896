package sim

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"net/netip"

	"spinesim/lanai"
	"spinesim/lanai/ilp"
	"spinesim/pci/host"
	"spinesim/router"
	"spinesim/router/l2"
	"spinesim/sim/traffic"
	"spinesim/spine"
)

// extensionsOf makes the extensions of a card in the scenario's order: IPv4
// alone where it says nothing.
func (s *Simulation) extensionsOf(card int, sram *lanai.SRAM) ([]spine.Extension, error) {
	list := s.sc.Extensions
	if list == nil {
		list = []ExtensionSpec{{Kind: "ipv4"}}
	}
	ethernet := s.sc.Traffic.Link == "ethernet"
	offset := 0
	if ethernet {
		offset = l2.HeaderBytes
	}
	var out []spine.Extension
	for i := range list {
		switch x := &list[i]; x.Kind {
		case "ipv4":
			e, err := router.NewIPv4(s.sc.ipv4(), s.table, sram)
			if err != nil {
				return nil, err
			}
			out = append(out, e)
		case "l2":
			if s.bridge == nil {
				b, err := l2.NewBridge(x.l2(ethernet), s.sc.Cards)
				if err != nil {
					return nil, err
				}
				s.bridge = b
			}
			e, err := s.bridge.On(uint8(card), sram)
			if err != nil {
				return nil, err
			}
			out = append(out, e)
			offset = 0 // what it passes on has no link header
		case "ilp":
			spec, err := s.sc.cardSpec(card)
			if err != nil {
				return nil, err
			}
			e, err := router.NewManipulation(x.ILP.stage(cardMachine(spec)), offset)
			if err != nil {
				return nil, err
			}
			out = append(out, e)
		}
	}
	return out, nil
}

// cardMachine is a card's processor as the model of data manipulation knows it.
// A load or store takes the cycle of its instruction: what the memory bus adds
// when others use it, the card adds itself.
func cardMachine(c lanai.Spec) ilp.Machine {
	m := ilp.Lanai4()
	m.Name = c.Name
	m.ClockMHz = c.Clock.Hz() / 1e6
	return m
}

// hostPath is the host's model; nil is the firmware's fixed time.
func (s *Simulation) hostPath() (path spine.HostPath, queue int, err error) {
	if s.sc.Host.Model != "kernel" {
		return nil, 0, nil
	}
	spec, err := s.sc.Host.kernel()
	if err != nil {
		return nil, 0, err
	}
	p, err := host.NewPath(spec)
	return p, spec.QueuePackets, err
}

// copyFrame makes a frame for a copy of a packet.
func (s *Simulation) copyFrame(f *lanai.Frame) *lanai.Frame {
	g := s.pool.Get(f.Bytes, len(f.Data))
	copy(g.Data, f.Data)
	g.ID = s.ids.Next()
	g.BadCRC, g.Arrived, g.Ingress, g.Egress, g.Cause = f.BadCRC, f.Arrived, f.Ingress, f.Egress, f.Cause
	return g
}

// stationPrefix holds the stations behind a card: 10.card.0.0, or the numbers
// from there on.
func stationPrefix(card, stations int) netip.Prefix {
	var a [4]byte
	binary.BigEndian.PutUint32(a[:], 10<<24|uint32(card)<<16)
	return netip.PrefixFrom(netip.AddrFrom4(a), 32-bits.TrailingZeros(uint(stations)))
}

// stationTraffic turns a source's addresses into those of stations behind the
// cards.
func (s *Simulation) stationTraffic(card int, header *traffic.Header, dest *traffic.DestinationSpec) {
	n := s.sc.Traffic.Stations
	header.Source = stationPrefix(card, n)
	dest.Prefixes = nil
	for c := range s.sc.Cards {
		if c != card {
			dest.Prefixes = append(dest.Prefixes, stationPrefix(c, n))
		}
	}
	prefixes := dest.Prefixes
	dest.Covered = func(a netip.Addr) bool {
		for _, p := range prefixes {
			if p.Contains(a) {
				return true
			}
		}
		return header.Source.Contains(a)
	}
}

// linkOverhead is what the link's header adds to a packet.
func (s *Scenario) linkOverhead() int {
	if s.Traffic.Link == "ethernet" {
		return l2.HeaderBytes
	}
	return 0
}

// framed puts the link's header on a source's packets.
func (s *Simulation) framed(src traffic.Source) (traffic.Source, error) {
	if s.sc.Traffic.Link != "ethernet" {
		return src, nil
	}
	station := func(ipv4 uint32) [6]byte { return l2.StationOf(ipv4) }
	e, err := traffic.NewEthernet(src, station, int(s.sc.Traffic.Carry))
	if err != nil {
		return nil, fmt.Errorf("traffic.link: %w", err)
	}
	return e, nil
}
