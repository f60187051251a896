package traffic_test

import (
	"context"
	"fmt"
	"net/netip"

	"spinesim/sim/des"
	"spinesim/sim/traffic"
)

// Three unsynchronised Poisson senders share a link of 160 MB/s.
func ExampleNewSynthetic() {
	rate, _ := traffic.ParseRate("80 µs")
	link, _ := des.ParseRate("160 MB/s")
	size, _ := traffic.Fixed(1500)
	src, err := traffic.NewSynthetic(traffic.SyntheticSpec{
		Arrivals:     traffic.ArrivalSpec{Kind: traffic.Poisson, Rate: rate, Senders: 3},
		Wire:         traffic.Wire{Rate: link},
		Sizes:        size,
		Destinations: traffic.DestinationSpec{Prefixes: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}},
		Header:       traffic.DefaultHeader(),
	}, 1, "traffic/0")
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 3 {
		var a traffic.Arrival
		if _, err := src.Next(&a); err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(a.Bytes, "bytes, version and header length", a.Data[0], "TTL", a.Data[8])
	}
	// Output:
	// 1500 bytes, version and header length 69 TTL 64
	// 1500 bytes, version and header length 69 TTL 64
	// 1500 bytes, version and header length 69 TTL 64
}

// dock takes every frame at once.
type dock struct {
	port *traffic.Port
	pool *traffic.FramePool
}

func (d *dock) Wake(now des.Time) error {
	f := d.port.Head()
	fmt.Println("packet", f.ID, "at", now)
	if err := d.port.Pop(now); err != nil {
		return err
	}
	d.pool.Put(f)
	return nil
}

// A port offers a card a packet every 100 µs.
func ExamplePort() {
	rate, _ := traffic.ParseRate("10 kpackets/s")
	src, err := traffic.NewSynthetic(traffic.SyntheticSpec{
		Arrivals:     traffic.ArrivalSpec{Kind: traffic.Constant, Rate: rate},
		Sizes:        traffic.IMIX(),
		Destinations: traffic.DestinationSpec{Prefixes: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}},
		Header:       traffic.DefaultHeader(),
	}, 1, "traffic/0")
	if err != nil {
		fmt.Println(err)
		return
	}
	e := des.New(des.Options{})
	pool, _ := traffic.NewFramePool(64)
	port, err := traffic.NewPort(traffic.PortSpec{Capacity: 16, Limit: 3}, src, e, nil, pool, new(traffic.PacketIDs))
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := port.Start(&dock{port, pool}); err != nil {
		fmt.Println(err)
		return
	}
	if err := e.Run(context.Background()); err != nil {
		fmt.Println(err)
		return
	}
	c := port.Counts()
	fmt.Println(c.Offered, "offered,", c.Lost, "lost, drained:", port.Drained())
	// Output:
	// packet 1 at 0 ps
	// packet 2 at 100 µs
	// packet 3 at 200 µs
	// 3 offered, 0 lost, drained: true
}
