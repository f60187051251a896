package des_test

import (
	"context"
	"fmt"

	"spinesim/sim/des"
)

// poller polls every 12 cycles until a packet arrives.
type poller struct {
	engine *des.Engine
	clock  des.Clock
	edge   int64
	timer  des.Timer
	polls  int
}

func (p *poller) Handle(now des.Time, _ uint64) error {
	// The next poll runs inline as long as nobody else's event is due.
	for {
		p.polls++
		p.edge += 12
		if !p.engine.Advance(p.clock.Edge(p.edge), 1) {
			return p.engine.Arm(&p.timer, p.clock.Edge(p.edge))
		}
	}
}

// arrival is the event that ends the polling.
type arrival struct {
	engine *des.Engine
	p      *poller
}

func (a arrival) Handle(now des.Time, packet uint64) error {
	fmt.Printf("packet %d at %v after %d polls\n", packet, now, a.p.polls)
	a.engine.Cancel(&a.p.timer)
	return nil
}

func Example() {
	frequency, err := des.ParseFrequency("33 1/3 MHz")
	if err != nil {
		fmt.Println(err)
		return
	}
	clock, err := des.NewClock(frequency, 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	engine := des.New(des.Options{})
	p := &poller{engine: engine, clock: clock}
	p.timer.Init(p, 1, 0)
	if err := engine.Arm(&p.timer, 0); err != nil {
		fmt.Println(err)
		return
	}
	if err := engine.After(55*des.Microsecond, 0, arrival{engine, p}, 7); err != nil {
		fmt.Println(err)
		return
	}
	if err := engine.Run(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output: packet 7 at 55 µs after 153 polls
}

func ExampleClock() {
	frequency, _ := des.ParseFrequency("33 MHz")
	clock, _ := des.NewClock(frequency, 0)
	fmt.Println(clock.Edge(1), clock.Edge(2), clock.Edge(33_000_000))
	fmt.Println(clock.EdgeAtOrAfter(1*des.Microsecond), clock.Duration(132))
	// Output:
	// 30.303 ns 60.606 ns 1 s
	// 33 4 µs
}

func ExampleEngine_Schedule() {
	engine := des.New(des.Options{})
	err := engine.Schedule(des.Microsecond, 0, arrival{}, 0)
	fmt.Println(err, engine.RunUntil(context.Background(), 0))
	engine.Advance(500*des.Nanosecond, 0)
	fmt.Println(engine.Schedule(30*des.Nanosecond, 0, arrival{}, 0))
	// Output:
	// <nil> <nil>
	// schedule an event at 30 ns while the time is 500 ns: event lies in the past
}

func ExampleParseTime() {
	t, err := des.ParseTime("33.333 us")
	fmt.Println(t, err)
	_, err = des.ParseTime("55")
	fmt.Println(err)
	// Output:
	// 33.333 µs <nil>
	// time "55": no unit, want s, ms, µs, μs, us, ns or ps: wrong unit
}

func ExampleNewStream() {
	sizes, err := des.NewEmpirical([]int64{64, 576, 1500}, []uint64{7, 4, 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	s := des.NewStream(1, "traffic/0/sizes")
	for range 4 {
		fmt.Print(s.Empirical(sizes), " ")
	}
	fmt.Println("of mean", sizes.Mean())
	// Output: 64 576 576 576 of mean 354.3333333333333
}
