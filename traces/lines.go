package traces

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"spinesim/sim/des"
)

// Formats made of lines begin with a line that names them, a line of metadata,
// and end with a line that counts the records; all three are comments, so that
// other programs pass over them and a person may leave them out:
//
//	# spinesim csv 1
//	# meta {"record_version":1,…}
//	…
//	# end 1234 records, check sum 0123456789abcdef
const (
	linesBegin = "# spinesim "
	linesMeta  = "# meta "
	linesEnd   = "# end "
)

// maxLine bounds a line (chosen; a line of records is below 300 bytes).
const maxLine = 64 << 10

func appendPreamble(b []byte, name string, meta *Meta) ([]byte, error) {
	m, err := meta.encode()
	if err != nil {
		return nil, err
	}
	b = append(b, linesBegin...)
	b = append(b, name...)
	b = append(b, " 1\n"...)
	b = append(b, linesMeta...)
	b = append(b, m...)
	return append(b, '\n'), nil
}

func appendTrailer(b []byte, t tally) []byte {
	return fmt.Appendf(b, "%s%d records, check sum %016x\n", linesEnd, t.n, t.h)
}

func parseTrailer(line string) (n, h uint64, err error) {
	rest := line[len(linesEnd):]
	count, rest, ok := strings.Cut(rest, " records, check sum ")
	if !ok {
		return 0, 0, fmt.Errorf("%w: trailer is not of the form \"# end N records, check sum H\"", ErrCorrupt)
	}
	if n, err = strconv.ParseUint(count, 10, 64); err == nil {
		h, err = strconv.ParseUint(rest, 16, 64)
	}
	if err != nil {
		return 0, 0, fmt.Errorf("%w: trailer: %w", ErrCorrupt, err)
	}
	return n, h, nil
}

// lines reads lines, and handles the comments above for its user.
type lines struct {
	input
	r       *bufio.Reader
	off     int64 // where the next line begins
	start   int64 // where the present one began
	no      int   // its number
	framed  bool  // began with the preamble, so a trailer must follow
	pending string
	buf     []byte
}

// open reads the preamble if there is one. A file without must be one that its
// user recognises by its first line, which is then left for next.
func (l *lines) open(in io.Reader, o ReadOptions, format, name string) error {
	l.input = input{opt: o, format: format, meta: (*Meta)(nil).clone()}
	l.r = bufio.NewReaderSize(in, 64<<10)
	line, err := l.read(maxLine)
	if err != nil {
		return l.here(err)
	}
	rest, ok := strings.CutPrefix(line, linesBegin)
	if !ok {
		if l.off == l.start+int64(len(line)) && strings.HasPrefix(linesBegin, line) {
			return l.here(ErrTruncated) // within the preamble's first words
		}
		l.pending = line
		return nil
	}
	if rest != name+" 1" {
		return l.here(fmt.Errorf("%w: it says it is %q", ErrForeign, rest))
	}
	l.framed = true
	if line, err = l.read(maxMetaBytes); err != nil {
		return l.here(err)
	}
	rest, ok = strings.CutPrefix(line, linesMeta)
	if !ok {
		return l.here(fmt.Errorf("%w: line of metadata expected", ErrCorrupt))
	}
	if l.meta, err = decodeMeta([]byte(rest)); err != nil {
		return l.here(err)
	}
	return nil
}

// here puts the place of the present line to an error.
func (l *lines) here(err error) error { return l.errorAt(l.start, l.no, err) }

func (l *lines) stop(err error) (bool, error) { return l.fail(l.start, l.no, err) }

// read gives the next line without its end; io.EOF mapped to ErrTruncated.
func (l *lines) read(most int) (string, error) {
	b, err := l.readBytes(most)
	return string(b), err
}

func (l *lines) readBytes(most int) ([]byte, error) {
	l.start = l.off
	l.no++
	l.buf = l.buf[:0]
	for {
		part, err := l.r.ReadSlice('\n')
		l.off += int64(len(part))
		if len(l.buf)+len(part) > most {
			return nil, fmt.Errorf("%w: line is longer than %d bytes", ErrForeign, most)
		}
		if err == nil && len(l.buf) == 0 {
			return trimEOL(part), nil
		}
		l.buf = append(l.buf, part...)
		switch {
		case err == nil:
			return trimEOL(l.buf), nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF):
			if len(l.buf) == 0 || l.framed {
				return nil, ErrTruncated
			}
			return trimEOL(l.buf), nil
		default:
			return nil, shortRead(err)
		}
	}
}

func trimEOL(b []byte) []byte {
	if n := len(b); n > 0 && b[n-1] == '\n' {
		b = b[:n-1]
	}
	if n := len(b); n > 0 && b[n-1] == '\r' {
		b = b[:n-1]
	}
	return b
}

// next gives the next line that is neither empty nor a comment, until the end
// of the stream. The line is valid until the next call.
func (l *lines) next() (line []byte, more bool, err error) {
	if l.done {
		return nil, false, l.err
	}
	if l.pending != "" {
		line, l.pending = []byte(l.pending), ""
		if line[0] != '#' {
			return line, true, nil
		}
	}
	for {
		if line, err = l.readBytes(maxLine); err != nil {
			if err == ErrTruncated && !l.framed && l.off == l.start {
				l.done = true
				return nil, false, nil
			}
			more, err = l.stop(err)
			return nil, more, err
		}
		if len(line) == 0 {
			continue
		}
		if line[0] != '#' {
			return line, true, nil
		}
		if l.framed && strings.HasPrefix(string(line), linesEnd) {
			more, err = l.trailer(string(line))
			return nil, more, err
		}
	}
}

func (l *lines) trailer(line string) (bool, error) {
	n, h, err := parseTrailer(line)
	if err != nil {
		return l.stop(err)
	}
	at, no := l.start, l.no
	l.framed = false // so that the end of the file is no surprise now
	for {
		more, err := l.readBytes(maxLine)
		if err == ErrTruncated && l.off == l.start {
			return l.finish(at, no, n, h)
		}
		if err != nil {
			return l.stop(err)
		}
		if len(more) > 0 {
			return l.stop(fmt.Errorf("%w: %.40q follows the trailer", ErrCorrupt, more))
		}
	}
}

// The names in lines. A value beyond the known ones is written as its number.

func appendName(b []byte, known bool, name string, v uint8) []byte {
	if known {
		return append(b, name...)
	}
	return strconv.AppendUint(b, uint64(v), 10)
}

func appendKind(b []byte, k Kind) []byte {
	return appendName(b, int(k) < NumKinds, k.String(), uint8(k))
}

func appendEvent(b []byte, e Event) []byte {
	return appendName(b, e <= NoEvent, e.String(), uint8(e))
}

func appendReason(b []byte, r Reason) []byte {
	return appendName(b, int(r) < NumReasons, r.String(), uint8(r))
}

func appendVerdict(b []byte, v Verdict) []byte {
	return appendName(b, int(v) < NumVerdicts, v.String(), uint8(v))
}

// appendCard writes a card's number, "host", or nothing for none.
func appendCard(b []byte, card uint8, none string) []byte {
	switch card {
	case NoCard:
		return append(b, none...)
	case HostCard:
		return append(b, "host"...)
	}
	return strconv.AppendUint(b, uint64(card), 10)
}

// names finds enumeration values by name without allocating.
type names struct {
	kinds    map[string]Kind
	events   map[string]Event
	reasons  map[string]Reason
	verdicts map[string]Verdict
}

func newNames() *names {
	n := &names{map[string]Kind{}, map[string]Event{}, map[string]Reason{}, map[string]Verdict{}}
	for i, s := range kindNames {
		n.kinds[s] = Kind(i)
	}
	for i, s := range eventNames {
		n.events[s] = Event(i)
	}
	for i, s := range reasonNames {
		n.reasons[s] = Reason(i)
	}
	for i, s := range verdictNames {
		n.verdicts[s] = Verdict(i)
	}
	return n
}

func valueNamed[T ~uint8](m map[string]T, what string, s []byte) (T, error) {
	if v, ok := m[string(s)]; ok {
		return v, nil
	}
	n, err := parseUint(s, 8)
	if err != nil {
		return 0, fmt.Errorf("%w: %s %q is not known", ErrCorrupt, what, s)
	}
	return T(n), nil
}

func parseCard(s []byte, none string) (uint8, error) {
	switch string(s) {
	case none:
		return NoCard, nil
	case "host":
		return HostCard, nil
	}
	n, err := parseUint(s, 8)
	return uint8(n), err
}

// parseUint reads a decimal number of at most the given bits, without the
// allocation that a conversion to a string would cost.
func parseUint(s []byte, bits uint) (uint64, error) {
	if len(s) == 0 {
		return 0, fmt.Errorf("%w: number is missing", ErrCorrupt)
	}
	v := uint64(0)
	for _, c := range s {
		if c < '0' || c > '9' {
			return 0, fmt.Errorf("%w: %q is no number", ErrCorrupt, s)
		}
		d := uint64(c - '0')
		if v > (1<<64-1-d)/10 {
			return 0, fmt.Errorf("%w: %q is over 64 bits", ErrCorrupt, s)
		}
		v = v*10 + d
	}
	if bits < 64 && v>>bits != 0 {
		return 0, fmt.Errorf("%w: %q is over %d bits", ErrCorrupt, s, bits)
	}
	return v, nil
}

func parseInt(s []byte) (int64, error) {
	neg := len(s) > 0 && s[0] == '-'
	if neg {
		s = s[1:]
	}
	v, err := parseUint(s, 64)
	if err != nil {
		return 0, err
	}
	if neg {
		if v > 1<<63 {
			return 0, fmt.Errorf("%w: -%d is below 64 bits", ErrCorrupt, v)
		}
		return -int64(v), nil
	}
	if v > 1<<63-1 {
		return 0, fmt.Errorf("%w: %d is above 63 bits", ErrCorrupt, v)
	}
	return int64(v), nil
}

// appendMicros writes a time in µs with all six decimals, exactly.
func appendMicros(b []byte, t des.Time) []byte {
	u := uint64(t)
	if t < 0 {
		b = append(b, '-')
		u = -u
	}
	b = strconv.AppendUint(b, u/1e6, 10)
	frac := u % 1e6
	b = append(b, '.')
	for d := uint64(100000); d > 0; d /= 10 {
		b = append(b, byte('0'+frac/d%10))
	}
	return b
}

// parseMicros reads what appendMicros writes, or fewer decimals.
func parseMicros(s []byte) (des.Time, error) {
	num := s
	neg := len(num) > 0 && num[0] == '-'
	if neg {
		num = num[1:]
	}
	whole, frac := num, []byte(nil)
	for i, c := range num {
		if c == '.' {
			whole, frac = num[:i], num[i+1:]
			break
		}
	}
	v, err := parseUint(whole, 64)
	if err != nil {
		return 0, err
	}
	if len(frac) > 6 {
		return 0, fmt.Errorf("%w: time %q has more than six decimals of a µs", ErrCorrupt, s)
	}
	f := uint64(0)
	if len(frac) > 0 {
		if f, err = parseUint(frac, 64); err != nil {
			return 0, err
		}
	}
	for i := len(frac); i < 6; i++ {
		f *= 10
	}
	const limit = 1 << 63
	if v > (limit-f)/1e6 {
		return 0, fmt.Errorf("%w: time %q is over 63 bits of ps", ErrCorrupt, s)
	}
	v = v*1e6 + f
	if neg {
		return des.Time(-int64(v)), nil
	}
	if v == limit {
		return 0, fmt.Errorf("%w: time %q is over 63 bits of ps", ErrCorrupt, s)
	}
	return des.Time(v), nil
}

// set sets what every format of lines writes in the same way and under the same
// name. known is false for anything else.
func (n *names) set(r *Record, name string, value []byte) (known bool, err error) {
	var u uint64
	switch name {
	case "packet":
		r.Packet, err = parseUint(value, 64)
	case "queue":
		u, err = parseUint(value, 8)
		r.Queue = uint8(u)
	case "verdict":
		r.Verdict, err = valueNamed(n.verdicts, "verdict", value)
	case "reason":
		r.Reason, err = valueNamed(n.reasons, "reason", value)
	case "bytes":
		r.Bytes, err = parseUint32(value)
	case "count":
		r.Count, err = parseUint32(value)
	case "cycles":
		r.Cycles, err = parseUint(value, 64)
	default:
		return false, nil
	}
	return true, err
}

func parseUint32(b []byte) (uint32, error) {
	u, err := parseUint(b, 32)
	return uint32(u), err
}
