package lctrie

import (
	"bufio"
	"compress/gzip"
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// realRoutes are the routes that ship with package router.
func realRoutes(tb testing.TB) []Route {
	tb.Helper()
	f, err := os.Open("../routes/rib2008.tsv")
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	hops := map[string]uint32{}
	var routes []Route
	for sc := bufio.NewScanner(f); sc.Scan(); {
		if strings.HasPrefix(sc.Text(), "#") {
			continue
		}
		w := strings.Fields(sc.Text())
		if _, ok := hops[w[1]]; !ok {
			hops[w[1]] = uint32(len(hops))
		}
		routes = append(routes, Route{netip.MustParsePrefix(w[0]), hops[w[1]]})
	}
	if len(routes) != 1000 {
		tb.Fatalf("%d routes, want 1000", len(routes))
	}
	return routes
}

var fullOnce = sync.OnceValues(func() ([]Route, string) {
	if dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/gaissmai/bart").Output(); err == nil {
		name := filepath.Join(strings.TrimSpace(string(dir)), "internal", "tests", "testdata", "prefixes.txt.gz")
		if routes := readPrefixes(name); len(routes) > 0 {
			return routes, "the IPv4 prefixes of bart's test data"
		}
	}
	return syntheticTable(900_000), "a synthetic table, as bart's test data is not there"
})

// fullTable is a table of today's size. Its next hops are made up: 48 of them.
func fullTable(tb testing.TB) []Route {
	tb.Helper()
	routes, what := fullOnce()
	tb.Logf("%d routes: %s", len(routes), what)
	return slices.Clone(routes)
}

func readPrefixes(name string) []Route {
	f, err := os.Open(name)
	if err != nil {
		return nil
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil
	}
	var routes []Route
	for sc := bufio.NewScanner(z); sc.Scan(); {
		p, err := netip.ParsePrefix(strings.TrimSpace(sc.Text()))
		if err == nil && p.Addr().Is4() {
			routes = append(routes, Route{p.Masked(), uint32(len(routes)*7) % 48})
		}
	}
	return routes
}

// syntheticTable has the lengths of a full table: six in ten are /24, most of
// the others lie between /16 and /23, and many are nested.
func syntheticTable(n int) []Route {
	rng := rand.New(rand.NewPCG(1, 2))
	seen := make(map[netip.Prefix]bool, n)
	routes := make([]Route, 0, n)
	for len(routes) < n {
		length := 24
		switch x := rng.IntN(100); {
		case x < 38:
			length = 16 + rng.IntN(8)
		case x < 40:
			length = 8 + rng.IntN(8)
		}
		p := prefixOf(rng.Uint32N(224<<24), 32).Addr()
		q := netip.PrefixFrom(p, length).Masked()
		if !seen[q] {
			seen[q] = true
			routes = append(routes, Route{q, rng.Uint32N(48)})
		}
	}
	return routes
}

// edges are the addresses at which a lookup may go wrong: the first and last
// of each prefix, and those beside them.
func edges(routes []Route) []uint32 {
	as := make([]uint32, 0, 4*len(routes))
	for _, r := range routes {
		lo := addrOf(r.Prefix.Addr())
		hi := lo | uint32(uint64(1)<<(32-r.Prefix.Bits())-1)
		as = append(as, lo-1, lo, hi, hi+1)
	}
	return as
}

func addrOf(a netip.Addr) uint32 {
	b := a.As4()
	return binary.BigEndian.Uint32(b[:])
}
