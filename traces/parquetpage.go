package traces

import (
	"bytes"
	"hash/crc32"
	"io"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// parquetPages writes a file's pages one behind the other, in room that it
// keeps.
type parquetPages struct {
	w      io.Writer
	offset int64  // in the file, of what comes next
	plain  []byte // contents of the page that comes next
	coded  []byte // a part of it
	zipped []byte
	head   bytes.Buffer
	header *thrift.Encoder
	zip    *zstd.Encoder
}

// begin begins a file.
func (p *parquetPages) begin(w io.Writer) (err error) {
	p.w = w
	p.header = thrift.NewEncoder(new(thrift.CompactProtocol).NewWriter(&p.head))
	// One goroutine: the same bytes whatever the machine. Pages have check sums
	// of their own. Some readers want a frame also where nothing is in it.
	p.zip, err = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
		zstd.WithEncoderCRC(false), zstd.WithZeroFrames(true))
	if err != nil {
		return err
	}
	return p.put([]byte(parquetMagic))
}

func (p *parquetPages) put(b []byte) error {
	n, err := p.w.Write(b)
	p.offset += int64(n)
	return err
}

// page writes the page that stands in plain, and tells how long it is with its
// header, without compression.
func (p *parquetPages) page(h format.PageHeader) (int64, error) {
	p.zipped = p.zip.EncodeAll(p.plain, p.zipped[:0])
	h.UncompressedPageSize = int32(len(p.plain))
	h.CompressedPageSize = int32(len(p.zipped))
	h.CRC = int32(crc32.ChecksumIEEE(p.zipped))
	p.head.Reset()
	if err := p.header.Encode(&h); err != nil {
		return 0, err
	}
	size := int64(p.head.Len() + len(p.plain))
	if err := p.put(p.head.Bytes()); err != nil {
		return 0, err
	}
	return size, p.put(p.zipped)
}
