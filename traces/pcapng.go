package traces

import (
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
)

// Contents gives the bytes of the packet that a record is about, beginning with
// its IP header, as they are at that record (a forwarded packet's TTL is lower
// when it is sent than when it entered); nil where they are not known. It is
// asked for records of kind enter, send, transfer and leave, and the bytes are
// used during the call only.
type Contents func(r *Record) []byte

// linkUser0 is the link type for private use (LINKTYPE_USER0): what goes over
// the bus is not always a whole packet.
const linkUser0 = layers.LinkType(147)

// PcapngWriter writes a capture with nanosecond time stamps, as if a sniffer
// sat on every wire and on the bus. Its interfaces, described when they are
// first used:
//
//	CARD wire in       packets as they arrive upstream of the card
//	CARD wire out      packets as they leave on the wire, stamped when the last
//	                   bit is out
//	bus CARD to CARD   what the DMA engine moved, stamped at its end; a comment
//	                   says what it was
//	CARD dropped       dropped packets, with the reason as a comment
//
// Wires have raw IP packets. Where the bytes of a packet are not known the
// packet is there with its length, and no bytes captured. Each packet carries
// its number (epb_packetid).
type PcapngWriter struct {
	w        io.Writer
	meta     *Meta
	contents Contents
	ng       *pcapgo.NgWriter
	ifaces   map[pcapKey]int
	comment  [1]string
}

type pcapKey struct {
	what       pcapPort
	card, peer uint8
}

type pcapPort uint8

const (
	portIn pcapPort = iota
	portOut
	portBus
	portDropped
)

// NewPcapngWriter begins a capture on w. contents may be nil.
func NewPcapngWriter(w io.Writer, meta *Meta, contents Contents) (*PcapngWriter, error) {
	if _, err := meta.encode(); err != nil {
		return nil, err
	}
	return &PcapngWriter{w: w, meta: meta.clone(), contents: contents, ifaces: map[pcapKey]int{}}, nil
}

// maxOption bounds a text of the format, whose length has 16 bits.
const maxOption = 60000

func shorten(s string) string {
	if len(s) > maxOption {
		return s[:maxOption]
	}
	return s
}

// add describes an interface, the first one together with the section.
func (p *PcapngWriter) add(i pcapgo.NgInterface) (int, error) {
	i.TimestampResolution = 9
	i.Name = shorten(i.Name)
	if p.ng != nil {
		return p.ng.AddInterface(i)
	}
	ng, err := pcapgo.NewNgWriterInterface(p.w, i, pcapgo.NgWriterOptions{SectionInfo: pcapgo.NgSectionInfo{
		Application: shorten(p.meta.Program),
		Comment: shorten(fmt.Sprintf("scenario %s, hash %s, seed %d, run %s",
			p.meta.Scenario, p.meta.ScenarioHash, p.meta.Seed, p.meta.RunID)),
	}})
	p.ng = ng
	return 0, err
}

func (p *PcapngWriter) iface(k pcapKey) (int, error) {
	if n, ok := p.ifaces[k]; ok {
		return n, nil
	}
	card := p.meta.CardName(k.card)
	i := pcapgo.NgInterface{LinkType: layers.LinkTypeRaw}
	switch k.what {
	case portIn:
		i.Name, i.Description = card+" wire in", "packets arriving upstream of "+card
	case portOut:
		i.Name, i.Description = card+" wire out", "packets sent by "+card
	case portBus:
		peer := p.meta.CardName(k.peer)
		i.Name, i.Description, i.LinkType = "bus "+card+" to "+peer, "written over the bus by the DMA engine of "+card, linkUser0
	case portDropped:
		i.Name, i.Description = card+" dropped", "packets dropped at "+card
	}
	n, err := p.add(i)
	if err != nil {
		return 0, err
	}
	p.ifaces[k] = n
	return n, nil
}

// Record writes the packet that r is about, if it is one that a sniffer would
// have seen.
func (p *PcapngWriter) Record(r *Record) error {
	var k pcapKey
	var opts pcapgo.NgPacketOptions
	p.comment[0] = ""
	switch {
	case r.Kind == KindEnter:
		k = pcapKey{what: portIn, card: r.Card}
		opts.Flags = &pcapgo.NgEpbFlags{Direction: pcapgo.NgEpbFlagDirectionInbound}
	case r.Kind == KindSend:
		k = pcapKey{what: portOut, card: r.Card}
		opts.Flags = &pcapgo.NgEpbFlags{Direction: pcapgo.NgEpbFlagDirectionOutbound}
	case r.Kind == KindTransfer:
		k = pcapKey{what: portBus, card: r.Card, peer: r.Peer}
		p.comment[0] = r.Event.String() + " of packet " + strconv.FormatUint(r.Packet, 10)
	case r.Kind == KindLeave && r.Verdict == VerdictDropped:
		k = pcapKey{what: portDropped, card: r.Card}
		p.comment[0] = dropName(r.Reason)
	default:
		return nil
	}
	if r.End < 0 {
		return fmt.Errorf("record ends at %d ps: a capture has no times before 0", int64(r.End))
	}
	iface, err := p.iface(k)
	if err != nil {
		return err
	}
	if p.comment[0] != "" {
		opts.Comments = p.comment[:]
	}
	if r.Packet != 0 {
		opts.PacketID = &r.Packet
	}
	length, bytes := p.bytes(r)
	return p.ng.WritePacketWithOptions(gopacket.CaptureInfo{
		Timestamp:      time.Unix(0, nanos(r.End)),
		CaptureLength:  len(bytes),
		Length:         length,
		InterfaceIndex: iface,
	}, bytes, opts)
}

// headerBytes is what the receive engine takes for a header, and the DMA engine
// moves last (model: 32 bytes with the packet's valid flag).
const headerBytes = 32

// bytes gives the length on the wire or bus, and what is known of it.
func (p *PcapngWriter) bytes(r *Record) (length int, b []byte) {
	length = int(r.Bytes)
	if p.contents == nil || r.Packet == 0 || r.Event == TransferAck {
		return length, nil
	}
	b = p.contents(r)
	switch {
	case r.Kind != KindTransfer:
	case r.Event == TransferHeader:
		b = b[:min(len(b), headerBytes)]
	case r.Event == TransferBody:
		b = b[min(len(b), headerBytes):]
	}
	return length, b[:min(len(b), length)]
}

// Close writes what is buffered; it does not close w. A record without packets
// becomes a capture of one interface and no packets.
func (p *PcapngWriter) Close() error {
	if p.ng == nil {
		if _, err := p.add(pcapgo.NgInterface{Name: "no packets", LinkType: layers.LinkTypeRaw}); err != nil {
			return err
		}
	}
	return p.ng.Flush()
}
