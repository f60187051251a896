package router_test

import (
	"fmt"
	"net/netip"
	"strings"

	"spinesim/lanai"
	"spinesim/router"
	"spinesim/router/lctrie"
	"spinesim/spine"
)

// Routes from a text file, their next hops on two cards, and a packet that the
// extension forwards.
func Example() {
	const text = `
10.0.0.0/8    192.0.2.1
10.128.0.0/9  192.0.2.2   # more specific
`
	err := func() error {
		file, err := router.Read(strings.NewReader(text), "routes.txt", router.ReadOptions{})
		if err != nil {
			return err
		}
		table, err := router.NewTable(file.Routes, router.Assignment{Cards: []uint8{1, 2}}, lctrie.DefaultOptions())
		if err != nil {
			return err
		}
		sram := lanai.NewSRAM(1 << 20)
		ext, err := router.NewIPv4(router.DefaultIPv4(), table, sram)
		if err != nil {
			return err
		}
		header, err := router.Header{
			TTL: 64, Protocol: 17, Src: netip.MustParseAddr("30.0.0.1"), Dst: netip.MustParseAddr("10.200.0.1"),
		}.Append(nil)
		if err != nil {
			return err
		}
		ctx := spine.NewContext(sram)
		v := ext.Handle(ctx, &spine.Packet{ID: 1, Bytes: len(header), Header: header})
		cycles, accesses := ctx.Charged()
		fmt.Println("forward:", v.Action == spine.Forward, "card:", v.Card, "TTL:", header[8], "checksum right:", router.Checksum(header) == 0)
		fmt.Println(cycles, "cycles,", accesses, "loads and stores")
		return nil
	}()
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// forward: true card: 2 TTL: 63 checksum right: true
	// 108 cycles, 11 loads and stores
}

func ExampleRIB2008() {
	routes, err := router.RIB2008()
	if err != nil {
		fmt.Println(err)
		return
	}
	table, err := router.NewTable(router.WithoutDefault(routes), router.Assignment{Cards: []uint8{1, 2, 3}}, lctrie.DefaultOptions())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(routes), "routes,", len(table.Hops()), "next hops,", table.Bytes(), "bytes without the default")
	for _, a := range []string{"4.23.113.7", "10.0.0.1"} {
		prefix, hop, ok := table.Match(netip.MustParseAddr(a))
		if !ok {
			fmt.Println(a, "has no route")
			continue
		}
		fmt.Println(a, "matches", prefix, "to", hop.Addr)
	}
	// Output:
	// 1000 routes, 19 next hops, 16428 bytes without the default
	// 4.23.113.7 matches 4.23.113.0/24 to 12.0.1.63
	// 10.0.0.1 has no route
}

// A mistake in a file names the line and what was expected there.
func ExampleRead_mistake() {
	_, err := router.Read(strings.NewReader("10.0.0.0/8 192.0.2.1\n10.1.0.0 192.0.2.1\n"), "routes.txt", router.ReadOptions{})
	fmt.Println(err)
	// Output:
	// routes.txt: line 2: not a route: prefix "10.1.0.0", expected one such as 10.1.0.0/16
}
