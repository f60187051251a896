package traces

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"google.golang.org/protobuf/encoding/protowire"

	"spinesim/sim/des"
)

// maxPerfettoPacket bounds a packet (chosen: metadata, and room).
const maxPerfettoPacket = maxMetaBytes + 1<<16

// PerfettoReader restores the records from a trace of PerfettoWriter.
type PerfettoReader struct {
	input
	r       offsetReader
	names   *names
	buf     []byte
	at      int64 // offset of the packet
	fields  map[uint64]annotation
	strings map[uint64]string
	ended   bool
	n2, h2  uint64 // the file's own count and check sum
}

// NewPerfettoReader reads a trace from its start.
func NewPerfettoReader(in io.Reader, o ReadOptions) (*PerfettoReader, error) {
	r := &PerfettoReader{
		input: input{opt: o, format: "Perfetto"}, r: offsetReader{r: bufio.NewReaderSize(in, 64<<10)},
		names: newNames(), fields: map[uint64]annotation{}, strings: map[uint64]string{},
	}
	for r.meta == nil {
		packet, err := r.packet()
		if err == nil && packet == nil {
			err = fmt.Errorf("%w: no metadata of this program's", ErrForeign)
			if r.r.off == 0 {
				err = ErrTruncated
			}
		}
		if err == nil {
			var found bool
			var rec Record
			if found, err = r.parse(packet, &rec); found {
				err = fmt.Errorf("%w: a record before the metadata", ErrForeign)
			}
		}
		if err != nil {
			return nil, r.errorAt(r.at, 0, err)
		}
	}
	return r, nil
}

// packet gives the next packet's contents, nil at the end of the file.
func (r *PerfettoReader) packet() ([]byte, error) {
	r.at = r.r.off
	if _, err := r.r.r.Peek(1); errors.Is(err, io.EOF) {
		return nil, nil
	} else if err != nil {
		return nil, shortRead(err)
	}
	tag, err := r.r.uvarint()
	if err != nil {
		return nil, err
	}
	if tag != pfTracePacket<<3|uint64(protowire.BytesType) {
		return nil, fmt.Errorf("%w: tag %d where a trace packet is expected", ErrForeign, tag)
	}
	n, err := r.r.uvarint()
	if err != nil {
		return nil, err
	}
	if n > maxPerfettoPacket {
		return nil, fmt.Errorf("%w: packet of %d bytes", ErrCorrupt, n)
	}
	if r.buf, err = r.r.bytes(r.buf, int(n)); err != nil {
		return nil, err
	}
	if r.buf == nil {
		r.buf = []byte{}
	}
	return r.buf, nil
}

var errProto = fmt.Errorf("%w: packet is malformed", ErrCorrupt)

// eachField calls do for every field of a message. Varints and fixed numbers
// come as v, the rest as b.
func eachField(msg []byte, do func(n protowire.Number, v uint64, b []byte) error) error {
	for len(msg) > 0 {
		n, typ, used := protowire.ConsumeTag(msg)
		if used < 0 {
			return errProto
		}
		msg = msg[used:]
		var v uint64
		var b []byte
		switch typ {
		case protowire.VarintType:
			v, used = protowire.ConsumeVarint(msg)
		case protowire.Fixed64Type:
			v, used = protowire.ConsumeFixed64(msg)
		case protowire.Fixed32Type:
			var w uint32
			w, used = protowire.ConsumeFixed32(msg)
			v = uint64(w)
		case protowire.BytesType:
			b, used = protowire.ConsumeBytes(msg)
			if used >= 0 && b == nil {
				b = []byte{}
			}
		default:
			return errProto
		}
		if used < 0 {
			return errProto
		}
		msg = msg[used:]
		if err := do(n, v, b); err != nil {
			return err
		}
	}
	return nil
}

// Next gives the next record.
func (r *PerfettoReader) Next(rec *Record) (bool, error) {
	if r.done {
		return false, r.err
	}
	for {
		packet, err := r.packet()
		if err != nil {
			return r.fail(r.at, 0, err)
		}
		if packet == nil {
			if !r.ended {
				return r.fail(r.at, 0, ErrTruncated)
			}
			return r.finish(r.at, 0, r.n2, r.h2)
		}
		found, err := r.parse(packet, rec)
		if err == nil && found && r.ended {
			err = fmt.Errorf("%w: a record behind the end", ErrCorrupt)
		}
		if err != nil {
			return r.fail(r.at, 0, err)
		}
		if found {
			r.count(rec)
			return true, nil
		}
	}
}

// parse takes in a packet and tells whether it holds a record.
func (r *PerfettoReader) parse(packet []byte, rec *Record) (found bool, err error) {
	var event []byte
	err = eachField(packet, func(n protowire.Number, _ uint64, b []byte) error {
		switch n {
		case pfInternedData:
			return r.intern(b)
		case pfTrackEvent:
			event = b
		}
		return nil
	})
	if err != nil || event == nil {
		return false, err
	}
	*rec = Record{Event: NoEvent, Peer: NoCard, Queue: NoQueue}
	err = eachField(event, func(n protowire.Number, _ uint64, b []byte) error {
		if n != pfAnnotations {
			return nil
		}
		a, v, s, err := r.annotation(b)
		if err != nil {
			return err
		}
		if a == annKind {
			found = true
		}
		return r.set(rec, a, v, s)
	})
	return found && err == nil, err
}

func (r *PerfettoReader) intern(data []byte) error {
	return eachField(data, func(n protowire.Number, _ uint64, entry []byte) error {
		if n != pfInternedAnnotations && n != pfInternedStrings {
			return nil
		}
		iid, name := uint64(0), ""
		if err := eachField(entry, func(n protowire.Number, v uint64, b []byte) error {
			switch n {
			case pfIID:
				iid = v
			case pfIIDName:
				name = string(b)
			}
			return nil
		}); err != nil {
			return err
		}
		if n == pfInternedStrings {
			r.strings[iid] = name
			return nil
		}
		for i := 1; i < numAnnotations; i++ {
			if annotationNames[i] == name {
				r.fields[iid] = annotation(i)
			}
		}
		return nil
	})
}

// annotation reads a debug annotation: its name, and a number or a text.
func (r *PerfettoReader) annotation(b []byte) (a annotation, v uint64, s []byte, err error) {
	err = eachField(b, func(n protowire.Number, number uint64, bytes []byte) error {
		switch n {
		case pfAnnotationNameIID:
			a = r.fields[number]
		case pfAnnotationUint, pfAnnotationInt:
			v = number
		case pfAnnotationString:
			s = bytes
		case pfAnnotationStringIID:
			name, ok := r.strings[number]
			if !ok {
				return fmt.Errorf("%w: interned text %d is missing", ErrCorrupt, number)
			}
			s = []byte(name)
		}
		return nil
	})
	return a, v, s, err
}

// set puts an annotation's value into the record.
func (r *PerfettoReader) set(rec *Record, a annotation, v uint64, s []byte) (err error) {
	switch a {
	case annKind:
		rec.Kind, err = enum(r.names.kinds, "kind", v, s)
	case annEvent:
		rec.Event, err = enum(r.names.events, "event", v, s)
	case annReason:
		rec.Reason, err = enum(r.names.reasons, "reason", v, s)
	case annVerdict:
		rec.Verdict, err = enum(r.names.verdicts, "verdict", v, s)
	case annCard:
		rec.Card = uint8(v)
	case annPeer:
		rec.Peer = uint8(v)
	case annQueue:
		rec.Queue = uint8(v)
	case annPacket:
		rec.Packet = v
	case annStart:
		rec.Start = des.Time(v)
	case annEnd:
		rec.End = des.Time(v)
	case annReady:
		rec.Ready = des.Time(v)
	case annID:
		rec.ID = ID(v)
	case annCause:
		rec.Cause = ID(v)
	case annBytes:
		rec.Bytes = uint32(v)
	case annCount:
		rec.Count = uint32(v)
	case annCycles:
		rec.Cycles = v
	case annStall:
		rec.Stall = uint32(v)
	case annMeta:
		r.meta, err = decodeMeta(s)
	case annRecords:
		r.n2, r.ended = v, true
	case annCheckSum:
		r.h2 = v
	}
	return err
}

func enum[T ~uint8](m map[string]T, what string, v uint64, s []byte) (T, error) {
	if s != nil {
		return valueNamed(m, what, s)
	}
	if v > 255 {
		return 0, fmt.Errorf("%w: %s %d is over 8 bits", ErrCorrupt, what, v)
	}
	return T(v), nil
}

// Close ends reading; it does not close what is read from.
func (r *PerfettoReader) Close() error { r.done = true; return nil }
