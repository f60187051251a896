package router

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

var byValue = cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{})

// via makes a route to 10.k.0.0/16 for the k-th next hop.
func via(hops ...string) (rs []Route) {
	for i, h := range hops {
		rs = append(rs, Route{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i), 0, 0}), 16), netip.MustParseAddr(h)})
	}
	return rs
}

func TestAssign(t *testing.T) {
	routes := via("192.0.2.9", "192.0.2.1", "192.0.2.9", "192.0.2.5", "192.0.2.9", "192.0.2.1", "192.0.2.7")
	for _, c := range []struct {
		name string
		a    Assignment
		want []uint8 // for .1 (2 routes), .5 (1), .7 (1), .9 (3)
	}{
		{"in turn", Assignment{Cards: []uint8{1, 2, 3}}, []uint8{1, 2, 3, 1}},
		{"by name", Assignment{Rule: RoundRobin, Cards: []uint8{5}}, []uint8{5, 5, 5, 5}},
		{"balance", Assignment{Rule: Balance, Cards: []uint8{1, 2}}, []uint8{2, 2, 1, 1}},
		{"hash", Assignment{Rule: Hash, Cards: []uint8{1, 2, 3}}, []uint8{1, 1, 1, 1}},
		{"map", Assignment{Rule: ByMap, Map: map[netip.Addr]uint8{
			netip.MustParseAddr("192.0.2.1"): 3, netip.MustParseAddr("192.0.2.5"): 0,
			netip.MustParseAddr("192.0.2.7"): 3, netip.MustParseAddr("192.0.2.9"): 1, netip.MustParseAddr("8.8.8.8"): 9,
		}}, []uint8{3, 0, 3, 1}},
		{"map and others", Assignment{Rule: ByMap, Cards: []uint8{6, 7}, Map: map[netip.Addr]uint8{
			netip.MustParseAddr("192.0.2.5"): 0,
		}}, []uint8{6, 0, 7, 6}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for range 2 {
				got, of, err := c.a.Assign(routes)
				if err != nil {
					t.Fatal(err)
				}
				for i, r := range routes {
					if got[of[i]].Addr != r.NextHop {
						t.Errorf("%v: next hop %d, %v", r, of[i], got[of[i]])
					}
				}
				var want []NextHop
				for i, h := range []string{"192.0.2.1", "192.0.2.5", "192.0.2.7", "192.0.2.9"} {
					want = append(want, NextHop{netip.MustParseAddr(h), c.want[i]})
				}
				if diff := cmp.Diff(want, got, byValue); diff != "" {
					t.Error(diff)
				}
				slices.Reverse(routes) // the order must not matter
			}
		})
	}
}

func TestAssignErrors(t *testing.T) {
	for _, c := range []struct {
		name   string
		routes []Route
		a      Assignment
		text   string
	}{
		{"no cards", via("192.0.2.1"), Assignment{}, "no egress cards"},
		{"rule", via("192.0.2.1"), Assignment{Rule: "robin", Cards: []uint8{1}}, `"robin"`},
		{"not in the map", via("192.0.2.1", "192.0.2.2", "192.0.2.2"), Assignment{Rule: ByMap, Map: map[netip.Addr]uint8{netip.MustParseAddr("192.0.2.1"): 1}}, "192.0.2.2 (2 routes)"},
		{"IPv6", via("2001:db8::1"), Assignment{Cards: []uint8{1}}, "2001:db8::1 of 10.0.0.0/16"},
		{"none", []Route{{Prefix: netip.MustParsePrefix("10.0.0.0/8")}}, Assignment{Cards: []uint8{1}}, "10.0.0.0/8"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, _, err := c.a.Assign(c.routes); !errors.Is(err, ErrAssignment) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("got %v, want %v with %q", err, ErrAssignment, c.text)
			}
		})
	}
}

func TestPerRoute(t *testing.T) {
	routes := via("192.0.2.9", "192.0.2.1", "192.0.2.9", "192.0.2.9")
	routes = append(routes, routes[1]) // given twice
	hops, of, err := Assignment{Rule: PerRoute, Cards: []uint8{5, 4}}.Assign(routes)
	if err != nil {
		t.Fatal(err)
	}
	one, nine := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.9")
	if diff := cmp.Diff([]NextHop{{one, 4}, {nine, 4}, {nine, 5}}, hops, byValue); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]uint32{2, 0, 2, 1, 0}, of); diff != "" {
		t.Error(diff)
	}
}

// TestRealRoutesOnCards says how the rules spread the real routes. Seven in ten
// of them share a next hop, so no rule that keeps a next hop on one card can
// spread them evenly.
func TestRealRoutesOnCards(t *testing.T) {
	routes, err := RIB2008()
	if err != nil {
		t.Fatal(err)
	}
	for rule, want := range map[Rule][3]int{
		RoundRobin: {249, 721, 30},
		Balance:    {697, 172, 131},
		Hash:       {214, 754, 32},
		PerRoute:   {334, 333, 333},
	} {
		hops, of, err := Assignment{Rule: rule, Cards: []uint8{0, 1, 2}}.Assign(routes)
		if err != nil {
			t.Fatal(err)
		}
		var load [3]int
		for i := range routes {
			load[hops[of[i]].Card]++
		}
		t.Logf("%s: %d next hops, routes a card %v", rule, len(hops), load)
		if load != want {
			t.Errorf("%s: %v, want %v", rule, load, want)
		}
	}
}
