package traffic

import (
	"bufio"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
)

// ErrCapture reports a file that is no capture, or is damaged.
var ErrCapture = errors.New("not a readable capture")

// ErrForeignLink reports a capture from a kind of link that carries no IPv4
// packets that this package could find.
var ErrForeignLink = errors.New("foreign link type")

// CaptureFile opens a file anew for every pass over it, for CaptureSpec.Open.
func CaptureFile(path string) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) { return os.Open(path) }
}

// counting knows how many bytes were read through it.
type counting struct {
	r io.Reader
	n int64
}

func (c *counting) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// captured is one packet of a capture, as it stands in the file.
type captured struct {
	data  []byte // valid until the next one is read
	wire  int
	link  layers.LinkType
	stamp time.Time // zero: the file gives none
}

// captureReader reads pcap and pcapng, plain or compressed by gzip, and knows
// where it stands.
type captureReader struct {
	name    string
	file    io.Closer
	through *counting
	buf     *bufio.Reader // the one that pcapgo reads from
	unzips  bool

	classic *pcapgo.Reader
	ng      *pcapgo.NgReader
	packets uint64 // read so far
}

const (
	magicPcapNG = 0x0A0D0D0A
	magicGzip   = 0x1F8B
	// readAhead is larger than pcapgo's own buffer, so that pcapgo uses ours
	// and the place in the file stays known.
	readAhead = 1 << 16
)

func openCapture(name string, open func() (io.ReadCloser, error)) (*captureReader, error) {
	f, err := open()
	if err != nil {
		return nil, fmt.Errorf("capture %s: %w", name, err)
	}
	c := &captureReader{name: name, file: f}
	if err := c.begin(f); err != nil {
		return nil, errors.Join(fmt.Errorf("capture %s: %w", name, err), f.Close())
	}
	return c, nil
}

// begin finds out what the file is and reads its header.
func (c *captureReader) begin(f io.Reader) error {
	c.through = &counting{r: f}
	c.buf = bufio.NewReaderSize(c.through, readAhead)
	magic, err := c.buf.Peek(4)
	if err == nil && binary.BigEndian.Uint16(magic) == magicGzip {
		z, zerr := gzip.NewReader(c.buf)
		if zerr != nil {
			return fmt.Errorf("%w: at byte %d: %w", ErrCapture, c.offset(), zerr)
		}
		c.unzips = true
		c.through = &counting{r: z}
		c.buf = bufio.NewReaderSize(c.through, readAhead)
		magic, err = c.buf.Peek(4)
	}
	switch {
	case errors.Is(err, io.EOF):
		return fmt.Errorf("%w: %d bytes, too short for any", ErrCapture, len(magic))
	case err != nil:
		return fmt.Errorf("%w: at byte 0: %w", ErrCapture, err)
	case binary.BigEndian.Uint16(magic) == magicGzip:
		return fmt.Errorf("%w: compressed twice", ErrCapture)
	}
	if binary.BigEndian.Uint32(magic) == magicPcapNG {
		c.ng, err = pcapgo.NewNgReader(c.buf, pcapgo.NgReaderOptions{WantMixedLinkType: true, SkipUnknownVersion: true})
	} else {
		c.classic, err = pcapgo.NewReader(c.buf)
	}
	if err != nil {
		return fmt.Errorf("%w: in the header, up to %s: %w", ErrCapture, c.place(c.offset()), truncated(err))
	}
	return nil
}

// offset is where the next byte stands, in the uncompressed stream.
func (c *captureReader) offset() int64 { return c.through.n - int64(c.buf.Buffered()) }

func (c *captureReader) place(offset int64) string {
	if c.unzips {
		return fmt.Sprintf("byte %d of the uncompressed stream", offset)
	}
	return fmt.Sprintf("byte %d", offset)
}

// damaged names the packet that was to be read, the n-th from 1, and where it
// begins.
func (c *captureReader) damaged(n uint64, from int64, err error) error {
	return fmt.Errorf("capture %s: packet %d, at %s: %w: %w", c.name, n, c.place(from), ErrCapture, err)
}

// truncated turns the end of a file in the wrong place into words.
func truncated(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("the file ends too early: %w", io.ErrUnexpectedEOF)
	}
	return err
}

// next reads a packet. It reports false at the orderly end of the file. Errors
// are ErrCapture, with the file's name, the packet's number and place.
func (c *captureReader) next(p *captured) (bool, error) {
	from := c.offset()
	var ci gopacket.CaptureInfo
	var err error
	if c.ng != nil {
		p.data, ci, err = c.ng.ZeroCopyReadPacketData()
	} else {
		p.data, ci, err = c.classic.ZeroCopyReadPacketData()
	}
	switch {
	case err == io.EOF && (c.ng != nil || c.offset() == from):
		return false, nil
	case err != nil:
		return false, c.damaged(c.packets+1, from, truncated(err))
	}
	c.packets++
	p.wire, p.stamp = max(ci.Length, len(p.data)), ci.Timestamp
	if c.ng == nil {
		p.link = c.classic.LinkType()
		return true, nil
	}
	i, err := c.ng.Interface(ci.InterfaceIndex)
	if err != nil {
		return false, c.damaged(c.packets, from, err)
	}
	p.link = i.LinkType
	return true, nil
}

func (c *captureReader) close() error {
	if err := c.file.Close(); err != nil {
		return fmt.Errorf("capture %s: %w", c.name, err)
	}
	return nil
}
