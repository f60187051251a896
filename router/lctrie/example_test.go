package lctrie_test

import (
	"fmt"
	"net/netip"

	"spinesim/router/lctrie"
)

func ExampleBuild() {
	hops := []string{"upstream", "left", "right"}
	t, err := lctrie.Build([]lctrie.Route{
		{Prefix: netip.MustParsePrefix("0.0.0.0/0"), NextHop: 0},
		{Prefix: netip.MustParsePrefix("10.0.0.0/8"), NextHop: 1},
		{Prefix: netip.MustParsePrefix("10.128.0.0/9"), NextHop: 2},
	}, lctrie.DefaultOptions())
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, a := range []string{"10.1.2.3", "10.200.0.1", "192.0.2.1"} {
		hop, ok := t.LookupAddr(netip.MustParseAddr(a))
		fmt.Println(a, hops[hop], ok)
	}
	fmt.Println(t.Bytes(), "bytes")
	// Output:
	// 10.1.2.3 left true
	// 10.200.0.1 right true
	// 192.0.2.1 upstream true
	// 44 bytes
}

// memory is a card's memory: big-endian bytes.
type memory []byte

func (m memory) Load32(a uint32) uint32 {
	return uint32(m[a])<<24 | uint32(m[a+1])<<16 | uint32(m[a+2])<<8 | uint32(m[a+3])
}

// The table's image lies at address 16 of some memory, and a lookup there says
// how many words it read.
func ExampleImage_Lookup() {
	t, err := lctrie.Build([]lctrie.Route{
		{Prefix: netip.MustParsePrefix("10.0.0.0/8"), NextHop: 7},
		{Prefix: netip.MustParsePrefix("11.0.0.0/8"), NextHop: 8},
	}, lctrie.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	m := memory(t.AppendImage(make([]byte, 16)))
	hop, reads, ok := t.At(16).Lookup(m, 11<<24|5)
	fmt.Println(hop, ok)
	fmt.Println(reads.Nodes, "nodes,", reads.Words, "words")
	// Output:
	// 8 true
	// 2 nodes, 4 words
}
