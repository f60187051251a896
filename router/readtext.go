package router

import (
	"bufio"
	"compress/flate"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strconv"
	"strings"
)

func isFlate(err error) bool {
	_, corrupt := errors.AsType[flate.CorruptInputError](err)
	return corrupt
}

// A line may be so long, in bytes; the rest of one is of no use to us, but a
// file with longer ones is no file of routes.
const maxLine = 1 << 16

// readText reads one route a line.
func (f *File) readText(in *input) error {
	lines := map[uint64]int{} // where each prefix was given
	hops := map[uint64]netip.Addr{}
	v6, asNumbers := 0, 0
	for n := 1; ; n++ {
		line, err := in.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) || len(line) > maxLine {
			return fmt.Errorf("line %d: %w: longer than %d bytes", n, ErrSyntax, maxLine)
		}
		if err != nil && err != io.EOF {
			return in.broken(err) // the part of a line before it may be a wrong route
		}
		in.off += int64(len(line))
		text := string(line)
		if n == 1 {
			text = strings.TrimPrefix(text, "\uFEFF")
		}
		if r, what, lineErr := parseLine(text); lineErr != nil {
			return fmt.Errorf("line %d: %w: %w", n, ErrSyntax, lineErr)
		} else if what == lineIPv6 {
			v6++
		} else if what != lineEmpty {
			k := key(r.Prefix)
			if before, ok := lines[k]; ok && hops[k] != r.NextHop {
				return fmt.Errorf("line %d: %w: %v goes to %v here and to %v in line %d, expected one next hop a prefix",
					n, ErrSyntax, r.Prefix, r.NextHop, hops[k], before)
			} else if !ok {
				lines[k], hops[k] = n, r.NextHop
				f.Routes = append(f.Routes, r)
				if what == lineAS {
					asNumbers++
				}
			}
		}
		if err == io.EOF {
			break
		}
	}
	f.note(v6, "IPv6 routes skipped")
	f.note(asNumbers, "routes have an AS number for a next hop; it is shown as an address of the same 32 bits")
	return nil
}

// lineKind says what a line holds.
type lineKind uint8

const (
	lineEmpty lineKind = iota
	lineRoute
	lineAS   // a route whose next hop is an AS number
	lineIPv6 // a route of the other family
)

func parseLine(line string) (Route, lineKind, error) {
	line, _, _ = strings.Cut(line, "#")
	prefix, rest := field(line)
	if prefix == "" {
		return Route{}, lineEmpty, nil
	}
	hop, _ := field(rest)
	if hop == "" {
		return Route{}, 0, fmt.Errorf("%s alone, expected a prefix and a next hop", quote(prefix))
	}
	if prefix == "default" {
		prefix = "0.0.0.0/0"
	}
	p, err := netip.ParsePrefix(prefix)
	if err != nil {
		return Route{}, 0, fmt.Errorf("prefix %s, expected one such as 10.1.0.0/16", quote(prefix))
	}
	if !p.Addr().Is4() {
		return Route{}, lineIPv6, nil
	}
	if p != p.Masked() {
		return Route{}, 0, fmt.Errorf("prefix %v has bits beyond its length, expected %v", p, p.Masked())
	}
	if a, err := netip.ParseAddr(hop); err == nil && a.Is4() {
		return Route{p, a}, lineRoute, nil
	}
	as, err := strconv.ParseUint(strings.TrimPrefix(hop, "AS"), 10, 32)
	if err != nil {
		return Route{}, 0, fmt.Errorf("next hop %s of %v, expected an IPv4 address or an AS number", quote(hop), p)
	}
	return Route{p, address(uint32(as))}, lineAS, nil
}

// field cuts off the first word.
func field(s string) (word, rest string) {
	s = strings.TrimLeft(s, " \t\r\n\v\f")
	if i := strings.IndexAny(s, " \t\r\n\v\f"); i >= 0 {
		return s[:i], s[i:]
	}
	return s, ""
}

// quote shows a piece of the user's file, which may be anything.
func quote(s string) string {
	const most = 40
	if len(s) > most {
		return strconv.Quote(s[:most]) + "…"
	}
	return strconv.Quote(s)
}
