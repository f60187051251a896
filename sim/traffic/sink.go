package traffic

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"spinesim/sim/des"
)

// ErrSinkCard reports a packet of a card that the sink has no interface for.
var ErrSinkCard = errors.New("card without an interface")

// PcapSink writes what leaves on the egress wires as pcapng: one interface a
// card, link type raw IP (101), stamps in nanoseconds of simulated time (cut
// off, not rounded). Where only the leading bytes of a packet are carried, the
// file says how long it was.
//
// The interface of a card that sends nothing is there all the same, so that
// interface n is always the n-th card.
type PcapSink struct {
	w     *pcapgo.NgWriter
	epoch time.Time
	cards int
	n     uint64
}

// NewPcapSink begins a file with an interface for each name; the n-th is that
// of card n. Time 0 of the simulation is written as epoch; the zero Time is
// 1970, which shows simulated times as they are. At least one name is needed.
func NewPcapSink(w io.Writer, names []string, epoch time.Time) (*PcapSink, error) {
	return newPcapSink(w, names, epoch, layers.LinkTypeRaw)
}

// NewEthernetSink is NewPcapSink for packets that begin with an Ethernet header:
// link type Ethernet (1).
func NewEthernetSink(w io.Writer, names []string, epoch time.Time) (*PcapSink, error) {
	return newPcapSink(w, names, epoch, layers.LinkTypeEthernet)
}

func newPcapSink(w io.Writer, names []string, epoch time.Time, link layers.LinkType) (*PcapSink, error) {
	if len(names) == 0 || len(names) > 255 {
		return nil, fmt.Errorf("pcapng sink: %d cards, want 1 to 255", len(names))
	}
	if epoch.IsZero() {
		epoch = time.Unix(0, 0)
	}
	s := &PcapSink{epoch: epoch, cards: len(names)}
	for i, name := range names {
		intf := pcapgo.NgInterface{Name: name, LinkType: link, TimestampResolution: 9}
		var err error
		if i == 0 {
			s.w, err = pcapgo.NewNgWriterInterface(w, intf, pcapgo.NgWriterOptions{SectionInfo: pcapgo.NgSectionInfo{Application: "spinesim"}})
		} else {
			_, err = s.w.AddInterface(intf)
		}
		if err != nil {
			return nil, fmt.Errorf("pcapng sink: interface %s: %w", name, err)
		}
	}
	return s, nil
}

// Write adds a packet that left by card at now: bytes long, of which data are
// the leading ones. It does not keep data, and does not allocate.
func (s *PcapSink) Write(now des.Time, card uint8, data []byte, bytes int) error {
	if int(card) >= s.cards {
		return fmt.Errorf("pcapng sink: packet at %v from card %d of %d: %w", now, card, s.cards, ErrSinkCard)
	}
	if len(data) > bytes {
		data = data[:max(bytes, 0)]
	}
	err := s.w.WritePacket(gopacket.CaptureInfo{
		Timestamp:      s.epoch.Add(time.Duration(now / des.Nanosecond)),
		CaptureLength:  len(data),
		Length:         max(bytes, 0),
		InterfaceIndex: int(card),
	}, data)
	if err != nil {
		return fmt.Errorf("pcapng sink: packet at %v from card %d: %w", now, card, err)
	}
	s.n++
	return nil
}

// Packets is how many were written.
func (s *PcapSink) Packets() uint64 { return s.n }

// Close writes out what is still buffered. The file itself is the caller's.
func (s *PcapSink) Close() error {
	if err := s.w.Flush(); err != nil {
		return fmt.Errorf("pcapng sink: %w", err)
	}
	return nil
}
