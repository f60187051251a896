package router

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/osrg/gobgp/v4/pkg/packet/bgp"
	"github.com/osrg/gobgp/v4/pkg/packet/mrt"
)

func route(prefix, hop string) Route {
	return Route{netip.MustParsePrefix(prefix), netip.MustParseAddr(hop)}
}

func zip(tb testing.TB, b []byte) []byte {
	tb.Helper()
	var buf bytes.Buffer
	z := gzip.NewWriter(&buf)
	if _, err := z.Write(b); err != nil {
		tb.Fatal(err)
	}
	if err := z.Close(); err != nil {
		tb.Fatal(err)
	}
	return buf.Bytes()
}

func TestReadText(t *testing.T) {
	const text = "\uFEFF# routes\r\n" +
		"10.0.0.0/8\t192.0.2.1\tAS64500\r\n" +
		"\n" +
		"   default 192.0.2.2   # the rest\n" +
		"2001:db8::/32 2001:db8::1\n" +
		"10.1.2.3/32 192.0.2.1 and much more\n" +
		"10.0.0.0/8 192.0.2.1 again\n" +
		"20.0.0.0/8 AS64500\n" +
		"21.0.0.0/8 701"
	want := []Route{
		route("10.0.0.0/8", "192.0.2.1"), route("0.0.0.0/0", "192.0.2.2"), route("10.1.2.3/32", "192.0.2.1"),
		route("20.0.0.0/8", "0.0.251.244"), route("21.0.0.0/8", "0.0.2.189"),
	}
	notes := []string{
		"r: 1 IPv6 routes skipped",
		"r: 2 routes have an AS number for a next hop; it is shown as an address of the same 32 bits",
	}
	for name, b := range map[string][]byte{"plain": []byte(text), "gzip": zip(t, []byte(text))} {
		f, err := Read(iotest.OneByteReader(bytes.NewReader(b)), "r", ReadOptions{})
		if err != nil {
			t.Fatal(name, err)
		}
		if diff := cmp.Diff(&File{Name: "r", Routes: want, Notes: notes}, f, byValue); diff != "" {
			t.Error(name, diff)
		}
	}
}

func TestReadTextErrors(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"prefix", "10.0.0.0/8 192.0.2.1\n10.0.0.0/33 192.0.2.1\n", `r: line 2: not a route: prefix "10.0.0.0/33", expected one such as 10.1.0.0/16`},
		{"no length", "\n10.0.0.1 192.0.2.1\n", `r: line 2: not a route: prefix "10.0.0.1", expected one such as 10.1.0.0/16`},
		{"host bits", "10.1.0.0/8 192.0.2.1\n", `r: line 1: not a route: prefix 10.1.0.0/8 has bits beyond its length, expected 10.0.0.0/8`},
		{"no next hop", "10.0.0.0/8 # 192.0.2.1\n", `r: line 1: not a route: "10.0.0.0/8" alone, expected a prefix and a next hop`},
		{"next hop", "10.0.0.0/8 eth0\n", `r: line 1: not a route: next hop "eth0" of 10.0.0.0/8, expected an IPv4 address or an AS number`},
		{"IPv6 next hop", "10.0.0.0/8 ::1\n", `r: line 1: not a route: next hop "::1" of 10.0.0.0/8, expected an IPv4 address or an AS number`},
		{"two next hops", "10.0.0.0/8 192.0.2.1\n\n10.0.0.0/8 192.0.2.2\n", `r: line 3: not a route: 10.0.0.0/8 goes to 192.0.2.2 here and to 192.0.2.1 in line 1, expected one next hop a prefix`},
		{"something else", "\x7fELF\x02\x01\x01\x03\x04 hi", `r: line 1: not a route: prefix "\x7fELF\x02\x01\x01\x03\x04", expected one such as 10.1.0.0/16`},
		{"long word", strings.Repeat("x", 100) + " y", `r: line 1: not a route: prefix "` + strings.Repeat("x", 40) + `"…, expected one such as 10.1.0.0/16`},
		{"long line", "10.0.0.0/8 192.0.2.1\n" + strings.Repeat("x", maxLine+1), `r: line 2: not a route: longer than 65536 bytes`},
		{"empty", "", `r: no IPv4 route in the file (read as text): not a route`},
		{"comments", "# nothing\n", `r: no IPv4 route in the file (read as text): not a route`},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, partial := range []bool{false, true} { // a mistake is a mistake
				_, err := Read(strings.NewReader(c.text), "r", ReadOptions{Partial: partial})
				if !errors.Is(err, ErrSyntax) || err.Error() != c.want {
					t.Errorf("got  %v\nwant %s", err, c.want)
				}
			}
		})
	}
}

func TestReadFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "routes.txt")
	if _, err := ReadFile(name, ReadOptions{}); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), name) {
		t.Error(err)
	}
	if err := os.WriteFile(name, []byte("10.0.0.0/8 192.0.2.1\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	f, err := ReadFile(name, ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Route{route("10.0.0.0/8", "192.0.2.1")}, f.Routes, byValue); diff != "" {
		t.Error(diff)
	}
}

func TestReadErrorOfTheSystem(t *testing.T) {
	broken := errors.New("disk on fire")
	for _, head := range []string{"", "10.0.0.0/8 192.0.2.1\n"} {
		r := io.MultiReader(strings.NewReader(head), iotest.ErrReader(broken))
		if _, err := Read(r, "r", ReadOptions{Partial: true}); !errors.Is(err, broken) {
			t.Errorf("after %q: %v", head, err)
		}
	}
}

func TestRIB2008(t *testing.T) {
	routes, err := RIB2008()
	if err != nil {
		t.Fatal(err)
	}
	if len(routes) != 1000 || routes[0] != route("0.0.0.0/0", "213.140.32.148") || routes[1] != route("3.0.0.0/8", "62.72.136.2") {
		t.Errorf("%d routes, %v …", len(routes), routes[:2])
	}
	if rest := WithoutDefault(routes); len(rest) != 999 || rest[0] != routes[1] || len(routes) != 1000 {
		t.Errorf("%d without the default, %v …", len(rest), rest[0])
	}
}

// path is a path to be written into a dump.
type path struct {
	hop  string // "": none
	asns []bgp.AsPathParamInterface
}

func seq(as ...uint32) bgp.AsPathParamInterface {
	return bgp.NewAs4PathParam(bgp.BGP_ASPATH_ATTR_TYPE_SEQ, as)
}

func (p path) attributes(tb testing.TB) []bgp.PathAttributeInterface {
	tb.Helper()
	as := []bgp.PathAttributeInterface{
		bgp.NewPathAttributeOrigin(0),
		bgp.NewPathAttributeAsPath(p.asns),
		bgp.NewPathAttributeMultiExitDisc(5),
		bgp.NewPathAttributeCommunities([]uint32{1, 2, 3}),
	}
	if p.hop != "" {
		hop, err := bgp.NewPathAttributeNextHop(netip.MustParseAddr(p.hop))
		if err != nil {
			tb.Fatal(err)
		}
		as = append(as, hop)
	}
	return as
}

// dumpV2 makes records of the second version with another program's writer.
type dumpV2 struct {
	bytes.Buffer
	addPath bool
}

func (d *dumpV2) record(tb testing.TB, sub mrt.MRTSubTyper, body mrt.Body) {
	tb.Helper()
	m, err := mrt.NewMRTMessage(time.Unix(1209542400, 0), mrt.TABLE_DUMPv2, sub, body)
	if err != nil {
		tb.Fatal(err)
	}
	b, err := m.Serialize()
	if err != nil {
		tb.Fatal(err)
	}
	d.Write(b)
}

func (d *dumpV2) peers(tb testing.TB) {
	id := netip.MustParseAddr("192.0.2.254")
	d.record(tb, mrt.PEER_INDEX_TABLE, mrt.NewPeerIndexTable(id, "view", []*mrt.Peer{mrt.NewPeer(id, id, 64500, true)}))
}

func (d *dumpV2) rib(tb testing.TB, prefix string, ps ...path) {
	tb.Helper()
	nlri, err := bgp.NewIPAddrPrefix(netip.MustParsePrefix(prefix))
	if err != nil {
		tb.Fatal(err)
	}
	var es []*mrt.RibEntry
	for i, p := range ps {
		es = append(es, mrt.NewRibEntry(uint16(i), 0, uint32(i), p.attributes(tb), d.addPath))
	}
	family, sub := bgp.RF_IPv4_UC, mrt.RIB_IPV4_UNICAST
	if d.addPath {
		sub = mrt.RIB_IPV4_UNICAST_ADDPATH
	}
	if nlri.Prefix.Addr().Is6() {
		family, sub = bgp.RF_IPv6_UC, mrt.RIB_IPV6_UNICAST
	}
	d.record(tb, sub, mrt.NewRib(1, family, nlri, es))
}

var (
	set    = bgp.NewAs4PathParam(bgp.BGP_ASPATH_ATTR_TYPE_SET, []uint32{7, 8, 9})
	confed = bgp.NewAs4PathParam(bgp.BGP_ASPATH_ATTR_TYPE_CONFED_SEQ, []uint32{64600, 64601, 64602})
)

func sampleV2(tb testing.TB, addPath bool) []byte {
	d := dumpV2{addPath: addPath}
	d.peers(tb)
	d.rib(tb, "0.0.0.0/0", path{"192.0.2.9", nil})
	d.rib(tb, "3.0.0.0/8", path{"192.0.2.1", []bgp.AsPathParamInterface{seq(1, 2, 3)}}, path{"192.0.2.2", []bgp.AsPathParamInterface{seq(70000, 2)}})
	d.rib(tb, "4.0.0.0/9", path{"192.0.2.7", []bgp.AsPathParamInterface{seq(1, 2)}}, path{"192.0.2.3", []bgp.AsPathParamInterface{seq(3, 4)}}) // lowest of equals
	d.rib(tb, "5.1.0.0/16",                                                                                                                    // 1 + 1 for the set, against 3, against 0 + 1 for the confederation
		path{"192.0.2.4", []bgp.AsPathParamInterface{seq(1), set}},
		path{"192.0.2.5", []bgp.AsPathParamInterface{seq(1, 2, 3)}},
		path{"192.0.2.6", []bgp.AsPathParamInterface{confed, seq(2)}})
	if !addPath {
		d.rib(tb, "2001:db8::/32", path{"192.0.2.1", nil})
	}
	d.rib(tb, "6.0.0.0/8", path{"", nil}) // no next hop
	d.rib(tb, "7.1.2.3/32", path{"", nil}, path{"192.0.2.8", []bgp.AsPathParamInterface{seq(1, 2, 3, 4)}})
	return d.Bytes()
}

var sampleRoutes = []Route{
	route("0.0.0.0/0", "192.0.2.9"), route("3.0.0.0/8", "192.0.2.2"), route("4.0.0.0/9", "192.0.2.3"),
	route("5.1.0.0/16", "192.0.2.6"), route("7.1.2.3/32", "192.0.2.8"),
}

func TestReadMRT(t *testing.T) {
	for _, addPath := range []bool{false, true} {
		b := sampleV2(t, addPath)
		want := &File{Name: "rib", Format: MRT, Routes: sampleRoutes, Notes: []string{"rib: 2 paths skipped that have no IPv4 next hop"}}
		if !addPath {
			want.Notes = append([]string{"rib: 1 records skipped that hold no IPv4 unicast route"}, want.Notes...)
		}
		for _, b := range [][]byte{b, zip(t, b)} {
			f, err := Read(bytes.NewReader(b), "rib", ReadOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, f, byValue); diff != "" {
				t.Error(diff)
			}
		}
	}
}

// TestReadMRTAgainstGobgp compares with a reader that decodes everything.
func TestReadMRTAgainstGobgp(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 5))
	var d dumpV2
	d.peers(t)
	for i := range 300 {
		var ps []path
		for range 1 + rng.IntN(20) {
			as := make([]uint32, 1+rng.IntN(6))
			for i := range as {
				as[i] = rng.Uint32()
			}
			p := path{hop: address(3<<28 | rng.Uint32N(50)).String(), asns: []bgp.AsPathParamInterface{seq(as...)}}
			if rng.IntN(4) == 0 {
				p.asns = append(p.asns, set)
			}
			if rng.IntN(10) == 0 {
				p.hop = ""
			}
			ps = append(ps, p)
		}
		d.rib(t, netip.PrefixFrom(address(uint32(i)<<20), 12+rng.IntN(21)).Masked().String(), ps...)
	}
	var want []Route
	for b := d.Bytes(); len(b) > 0; {
		h, err := mrt.ParseHeader(b)
		if err != nil {
			t.Fatal(err)
		}
		m, err := mrt.ParseBody(b[mrt.MRT_COMMON_HEADER_LEN:][:h.Len], h)
		if err != nil {
			t.Fatal(err)
		}
		b = b[mrt.MRT_COMMON_HEADER_LEN+h.Len:]
		rib, ok := m.Body.(*mrt.Rib)
		if !ok {
			continue
		}
		var best Route
		shortest := 1 << 30
		for _, e := range rib.Entries {
			var hop netip.Addr
			length := 0
			for _, a := range e.PathAttributes {
				switch a := a.(type) {
				case *bgp.PathAttributeNextHop:
					hop = a.Value
				case *bgp.PathAttributeAsPath:
					for _, p := range a.Value {
						length += p.ASLen()
					}
				}
			}
			if hop.IsValid() && (length < shortest || length == shortest && hop.Less(best.NextHop)) {
				best, shortest = Route{netip.MustParsePrefix(rib.Prefix.String()), hop}, length
			}
		}
		if best.NextHop.IsValid() {
			want = append(want, best)
		}
	}
	f, err := Read(&d.Buffer, "rib", ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, f.Routes, byValue); diff != "" {
		t.Error(diff)
	}
}

// recordV1 is a record of the first version, byte by byte as RFC 6396 (4.2)
// draws it.
func recordV1(sub uint16, prefix string, attrs []byte) []byte {
	p := netip.MustParsePrefix(prefix)
	body := []byte{0, 0, 0, 1}
	body = append(body, p.Addr().AsSlice()...)
	body = append(body, byte(p.Bits()), 1)
	body = append(body, 0x48, 0x18, 0x6E, 0x40) // time
	body = append(body, 192, 0, 2, 254)         // peer
	if sub == mrtIPv4LongAS {
		body = append(body, 0, 0)
	}
	body = append(body, 0xFB, 0xF4) // its AS
	body = binary.BigEndian.AppendUint16(body, uint16(len(attrs)))
	body = append(body, attrs...)
	b := []byte{0x48, 0x18, 0x6E, 0x40, 0, mrtTableDump}
	b = binary.BigEndian.AppendUint16(b, sub)
	b = binary.BigEndian.AppendUint32(b, uint32(len(body)))
	return append(b, body...)
}

func attrsV1(hop byte, path ...byte) []byte {
	b := []byte{0x40, 1, 1, 0} // origin
	b = append(b, 0x50, attrASPath, 0, byte(len(path)))
	b = append(b, path...)
	return append(b, 0x40, attrNextHop, 4, 192, 0, 2, hop)
}

func sampleV1() []byte {
	var b []byte
	b = append(b, recordV1(mrtIPv4, "3.0.0.0/8", attrsV1(1, 2, 2, 0, 1, 0, 2))...)
	b = append(b, recordV1(mrtIPv4, "3.0.0.0/8", attrsV1(9, 2, 1, 0, 1))...)
	b = append(b, recordV1(mrtIPv4, "3.0.0.0/8", attrsV1(8, 2, 1, 0, 2))...)
	b = append(b, recordV1(mrtIPv4, "3.0.0.0/8", attrsV1(7, 2, 2, 0, 1, 0, 2))...)
	b = append(b, recordV1(mrtIPv4LongAS, "4.0.0.0/9", attrsV1(5, 2, 1, 0, 1, 0, 2))...)
	b = append(b, recordV1(mrtIPv4, "5.0.0.0/8", []byte{0x40, 1, 1, 0})...)
	return b
}

func TestReadMRTVersion1(t *testing.T) {
	f, err := Read(bytes.NewReader(sampleV1()), "rib", ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := &File{
		Name: "rib", Format: MRT, Routes: []Route{route("3.0.0.0/8", "192.0.2.8"), route("4.0.0.0/9", "192.0.2.5")},
		Notes: []string{"rib: 1 paths skipped that have no IPv4 next hop"},
	}
	if diff := cmp.Diff(want, f, byValue); diff != "" {
		t.Error(diff)
	}
}

// TestTruncatedMRT cuts dumps at every byte: the error tells where the record
// begins that is not whole, and the routes before it can be had.
func TestTruncatedMRT(t *testing.T) {
	for _, b := range [][]byte{sampleV1(), sampleV2(t, false)} {
		starts := map[int]bool{}
		for at := 0; at < len(b); at += mrtHeader + int(binary.BigEndian.Uint32(b[at+8:])) {
			starts[at] = true
		}
		last := 0
		for n := mrtHeader; n < len(b); n++ {
			if starts[n] {
				last = n
			}
			_, err := Read(bytes.NewReader(b[:n]), "rib", ReadOptions{})
			f, partialErr := Read(bytes.NewReader(b[:n]), "rib", ReadOptions{Partial: true})
			if starts[n] {
				if errors.Is(err, ErrTruncated) {
					t.Errorf("%d bytes, all whole: %v", n, err)
				}
				continue
			}
			if !errors.Is(err, ErrTruncated) || !strings.HasPrefix(err.Error(), "rib: at byte ") {
				t.Fatalf("%d bytes: %v", n, err)
			}
			whole, wholeErr := Read(bytes.NewReader(b[:last]), "rib", ReadOptions{})
			if wholeErr != nil { // none before
				if partialErr == nil {
					t.Errorf("%d bytes: %v", n, f.Routes)
				}
				continue
			}
			if partialErr != nil {
				t.Fatalf("%d bytes: %v", n, partialErr)
			}
			if diff := cmp.Diff(whole.Routes, f.Routes, byValue); diff != "" {
				t.Errorf("%d bytes: %s", n, diff)
			}
			if f.Problem == nil || f.Problem.Error() != err.Error() || !strings.Contains(f.Notes[len(f.Notes)-1], "are used") {
				t.Errorf("%d bytes: problem %v, notes %q; want %v", n, f.Problem, f.Notes, err)
			}
		}
	}
}

func TestTruncatedGzip(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 7))
	var text bytes.Buffer
	for i := range 5000 {
		text.WriteString(netip.PrefixFrom(address(uint32(i)<<12), 20).String() + " " + address(rng.Uint32()).String() + "\n")
	}
	full, err := Read(bytes.NewReader(text.Bytes()), "r", ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	b := zip(t, text.Bytes())
	for _, n := range []int{len(b) / 2, len(b) - 1, len(b) - 5} {
		if _, err := Read(bytes.NewReader(b[:n]), "r", ReadOptions{}); !errors.Is(err, ErrTruncated) {
			t.Errorf("%d of %d bytes: %v", n, len(b), err)
		}
		f, err := Read(bytes.NewReader(b[:n]), "r", ReadOptions{Partial: true})
		if err != nil {
			t.Fatal(err)
		}
		got := len(f.Routes)
		if diff := cmp.Diff(full.Routes[:got], f.Routes, byValue); diff != "" || got < 2000 {
			t.Errorf("%d of %d bytes: %d routes %s", n, len(b), got, diff)
		}
	}
	for _, n := range []int{2, 5, 9} { // within gzip's own header
		if _, err := Read(bytes.NewReader(b[:n]), "r", ReadOptions{Partial: true}); !errors.Is(err, ErrTruncated) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	b[len(b)-5] ^= 1 // the check sum
	if _, err := Read(bytes.NewReader(b), "r", ReadOptions{}); !errors.Is(err, ErrCorrupt) {
		t.Error(err)
	}
	if f, err := Read(bytes.NewReader(b), "r", ReadOptions{Partial: true}); err != nil || !errors.Is(f.Problem, ErrCorrupt) {
		t.Error(err)
	}
}

// bzip2Routes is "10.0.0.0/8 192.0.2.1\n" and "11.0.0.0/8 192.0.2.2\n" as the
// bzip2 program packs them.
const bzip2Routes = "QlpoOTFBWSZTWYMpRiMAAA7YAAAQQAHwYCAAMQZMQFVPRGhmddqLREKzROMX5HnHxdyRThQkIMpRiMA="

func TestBzip2(t *testing.T) {
	b, err := base64.StdEncoding.DecodeString(bzip2Routes)
	if err != nil {
		t.Fatal(err)
	}
	f, err := Read(bytes.NewReader(b), "r", ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Route{route("10.0.0.0/8", "192.0.2.1"), route("11.0.0.0/8", "192.0.2.2")}, f.Routes, byValue); diff != "" {
		t.Error(diff)
	}
	for n := 4; n < len(b); n++ {
		if _, err := Read(bytes.NewReader(b[:n]), "r", ReadOptions{}); !errors.Is(err, ErrTruncated) {
			t.Errorf("%d of %d bytes: %v", n, len(b), err)
		}
	}
	b[len(b)/2] ^= 0x55
	if _, err := Read(bytes.NewReader(b), "r", ReadOptions{}); !errors.Is(err, ErrCorrupt) {
		t.Error(err)
	}
}

func TestCorruptMRT(t *testing.T) {
	good := recordV1(mrtIPv4, "3.0.0.0/8", attrsV1(1, 2, 1, 0, 1))
	v2 := func(body ...byte) []byte {
		b := append([]byte{0, 0, 0, 0, 0, mrtTableDumpV2, 0, mrtRIBIPv4}, binary.BigEndian.AppendUint32(nil, uint32(len(body)))...)
		return append(b, body...)
	}
	for _, c := range []struct {
		name string
		b    []byte
		text string
	}{
		{"type", []byte{0, 0, 0, 0, 0, 99, 0, 1, 0, 0, 0, 0}, "unknown type 99"},
		{"length", []byte{0, 0, 0, 0, 0, 13, 0, 2, 0xFF, 0xFF, 0xFF, 0xFF}, "of 4294967295 bytes"},
		{"empty record", v2(), "beyond the end"},
		{"prefix length", v2(0, 0, 0, 0, 33), "prefix length 33"},
		{"prefix", v2(0, 0, 0, 0, 32, 1, 2), "prefix: a field"},
		{"no count", v2(0, 0, 0, 0, 8, 3, 0), "3.0.0.0/8: number of entries"},
		{"many entries", v2(0, 0, 0, 0, 8, 3, 0xFF, 0xFF), "3.0.0.0/8: entry 0"},
		{"attributes", v2(0, 0, 0, 0, 8, 3, 0, 1, 0, 0, 0, 0, 0, 0, 0, 9, 1), "attributes of 9 bytes"},
		{"more than said", v2(0, 0, 0, 0, 8, 3, 0, 0, 1), "1 bytes after the last entry"},
		{"next hop", v2(0, 0, 0, 0, 8, 3, 0, 1, 0, 0, 0, 0, 0, 0, 0, 4, 0x40, 3, 1, 9), "next hop of 1 bytes"},
		{"attribute header", v2(0, 0, 0, 0, 8, 3, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0x40), "attribute: a field"},
		{"attribute length", v2(0, 0, 0, 0, 8, 3, 0, 1, 0, 0, 0, 0, 0, 0, 0, 3, 0x50, 9, 1), "attribute 9: length"},
		{"attribute", v2(0, 0, 0, 0, 8, 3, 0, 1, 0, 0, 0, 0, 0, 0, 0, 3, 0x40, 9, 1), "attribute 9 of 1 bytes"},
		{"AS path", v2(0, 0, 0, 0, 8, 3, 0, 1, 0, 0, 0, 0, 0, 0, 0, 5, 0x40, 2, 2, 2, 1), "AS path: a field"},
		{"AS path segment", v2(0, 0, 0, 0, 8, 3, 0, 1, 0, 0, 0, 0, 0, 0, 0, 5, 0x40, 2, 2, 5, 0), "segment of unknown type 5"},
		{"version 1, prefix length", func() []byte {
			b := recordV1(mrtIPv4, "3.0.0.0/8", nil)
			b[mrtHeader+8] = 33
			return b
		}(), "prefix length 33"},
		{"version 1, attributes", func() []byte {
			b := recordV1(mrtIPv4, "3.0.0.0/8", nil)
			b[len(b)-1] = 3
			return b
		}(), "3.0.0.0/8: attributes of 3 bytes"},
		{"version 1, more than said", func() []byte {
			b := recordV1(mrtIPv4, "3.0.0.0/8", []byte{0x40, 1, 1, 0})
			b[len(b)-5] = 0
			return b
		}(), "4 bytes after the attributes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := append(append(bytes.Clone(good), c.b...), good...)
			_, err := Read(bytes.NewReader(b), "rib", ReadOptions{})
			if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), c.text) || !strings.HasPrefix(err.Error(), fmt.Sprintf("rib: at byte %d: ", len(good))) {
				t.Errorf("got %v, want %v at byte %d with %q", err, ErrCorrupt, len(good), c.text)
			}
			f, err := Read(bytes.NewReader(b), "rib", ReadOptions{Partial: true})
			if err != nil || len(f.Routes) != 1 || !errors.Is(f.Problem, ErrCorrupt) || errors.Is(f.Problem, ErrTruncated) {
				t.Errorf("partial: %v", err)
			}
		})
	}
}

// FuzzRead: no input panics or yields a route that is none.
func FuzzRead(f *testing.F) {
	f.Add([]byte("10.0.0.0/8 192.0.2.1\n# \ndefault AS5"))
	f.Add(sampleV1())
	f.Add(sampleV2(f, false))
	f.Add(sampleV2(f, true))
	f.Add(zip(f, sampleV1()))
	if b, err := base64.StdEncoding.DecodeString(bzip2Routes); err == nil {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		_, strict := Read(bytes.NewReader(b), "f", ReadOptions{})
		file, err := Read(bytes.NewReader(b), "f", ReadOptions{Partial: true})
		if err != nil {
			if strict == nil {
				t.Errorf("partial reading fails: %v", err)
			}
			return
		}
		if (strict == nil) != (file.Problem == nil) {
			t.Errorf("problem %v, but %v", file.Problem, strict)
		}
		seen := map[netip.Prefix]bool{}
		for _, r := range file.Routes {
			if !r.Prefix.Addr().Is4() || r.Prefix != r.Prefix.Masked() || !r.NextHop.Is4() || seen[r.Prefix] {
				t.Fatalf("%v", r)
			}
			seen[r.Prefix] = true
		}
	})
}
