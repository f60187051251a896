package router

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
)

// Rule says how next hops are put on egress cards.
type Rule string

// The rules. Each gives the same cards for the same set of routes, whatever
// their order.
const (
	// RoundRobin takes the next hops by address and deals them out to the
	// cards in turn.
	RoundRobin Rule = "round-robin"
	// Balance deals out the next hops with the most routes first, each to the
	// card that has the fewest routes so far, so that destinations drawn from
	// the table load the cards about alike.
	Balance Rule = "balance"
	// Hash chooses by a hash of the next hop's address alone, so that it
	// stays where it is when other routes come and go.
	Hash Rule = "hash"
	// PerRoute deals out the routes instead, by prefix, as if every next hop
	// could be reached over every card; a next hop then appears once for each
	// card. Destinations drawn from the table load the cards alike even where
	// most routes share a next hop, as in a real table.
	PerRoute Rule = "per-route"
	// ByMap takes the card from Assignment.Map.
	ByMap Rule = "map"
)

// Rules are the rules, in the order of their explanation.
func Rules() []Rule { return []Rule{RoundRobin, Balance, Hash, PerRoute, ByMap} }

// ErrAssignment reports an assignment that cannot be carried out.
var ErrAssignment = errors.New("next hops cannot be assigned to cards")

// Assignment puts next hops on egress cards.
type Assignment struct {
	Rule Rule // empty: RoundRobin
	// Cards are the egress cards to choose from, at least one. ByMap takes
	// them for next hops that are not in Map, in turn; without cards such a
	// next hop is an error.
	Cards []uint8
	// Map names the card of a next hop, for ByMap.
	Map map[netip.Addr]uint8
}

// NextHop is where a packet is sent: the address, and the card whose wire leads
// there.
type NextHop struct {
	Addr netip.Addr
	Card uint8
}

// Assign gives the next hops of the routes, each once, by address and then by
// card, and for each route the number of its next hop among them. Errors wrap
// ErrAssignment.
func (a Assignment) Assign(routes []Route) (hops []NextHop, of []uint32, err error) {
	counts := map[netip.Addr]int{} // routes
	for _, r := range routes {
		if !r.NextHop.Is4() {
			return nil, nil, fmt.Errorf("%w: next hop %v of %v is no IPv4 address", ErrAssignment, r.NextHop, r.Prefix)
		}
		if counts[r.NextHop]++; counts[r.NextHop] == 1 {
			hops = append(hops, NextHop{Addr: r.NextHop})
		}
	}
	slices.SortFunc(hops, compareHops)
	if len(a.Cards) == 0 && a.Rule != ByMap {
		return nil, nil, fmt.Errorf("%w: no egress cards given", ErrAssignment)
	}
	switch a.Rule {
	case RoundRobin, "":
		for i := range hops {
			hops[i].Card = a.Cards[i%len(a.Cards)]
		}
	case Balance:
		a.balance(hops, counts)
	case Hash:
		for i := range hops {
			hops[i].Card = a.Cards[hash(hops[i].Addr)%uint32(len(a.Cards))]
		}
	case PerRoute:
		hops, of = a.perRoute(routes)
		return hops, of, nil
	case ByMap:
		if err := a.byMap(hops, counts); err != nil {
			return nil, nil, err
		}
	default:
		return nil, nil, fmt.Errorf("%w: unknown rule %q, want one of %q", ErrAssignment, a.Rule, Rules())
	}
	index := make(map[netip.Addr]uint32, len(hops))
	for i, h := range hops {
		index[h.Addr] = uint32(i)
	}
	of = make([]uint32, len(routes))
	for i, r := range routes {
		of[i] = index[r.NextHop]
	}
	return hops, of, nil
}

func compareHops(x, y NextHop) int {
	return cmp.Or(x.Addr.Compare(y.Addr), cmp.Compare(x.Card, y.Card))
}

func (a Assignment) byMap(hops []NextHop, counts map[netip.Addr]int) error {
	others := 0
	for i := range hops {
		card, ok := a.Map[hops[i].Addr]
		if !ok {
			if len(a.Cards) == 0 {
				return fmt.Errorf("%w: next hop %v (%d routes) is not in the map, and there are no cards for others", ErrAssignment, hops[i].Addr, counts[hops[i].Addr])
			}
			card = a.Cards[others%len(a.Cards)]
			others++
		}
		hops[i].Card = card
	}
	return nil
}

func (a Assignment) perRoute(routes []Route) (hops []NextHop, of []uint32) {
	order := make([]int, len(routes))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(x, y int) int {
		return cmp.Or(routes[x].Prefix.Compare(routes[y].Prefix), x-y)
	})
	each := make([]NextHop, len(routes))
	turn := -1
	for n, i := range order {
		// A route given twice must not get two cards.
		if n == 0 || routes[order[n-1]].Prefix != routes[i].Prefix {
			turn++
		}
		each[i] = NextHop{routes[i].NextHop, a.Cards[turn%len(a.Cards)]}
	}
	hops = slices.Clone(each)
	slices.SortFunc(hops, compareHops)
	hops = slices.Compact(hops)
	of = make([]uint32, len(routes))
	for i, h := range each {
		at, _ := slices.BinarySearchFunc(hops, h, compareHops)
		of[i] = uint32(at)
	}
	return hops, of
}

func (a Assignment) balance(hops []NextHop, counts map[netip.Addr]int) {
	order := make([]int, len(hops))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(x, y int) int { return counts[hops[y].Addr] - counts[hops[x].Addr] })
	load := make([]int, len(a.Cards))
	for _, i := range order {
		least := 0
		for c := range load {
			if load[c] < load[least] {
				least = c
			}
		}
		hops[i].Card = a.Cards[least]
		load[least] += counts[hops[i].Addr]
	}
}

// hash is 32-bit FNV-1a of the address, with its upper half folded in: the low
// bits of FNV alone depend on few of the input's.
func hash(a netip.Addr) uint32 {
	h := uint32(2166136261)
	for _, b := range a.As4() {
		h = (h ^ uint32(b)) * 16777619
	}
	return h ^ h>>16
}
