package traces_test

import (
	"fmt"
	"os"

	"spinesim/sim/des"
	"spinesim/traces"
)

// Three packets depart from card 0; the second has to wait for the processor.
func ExampleMeasures() {
	m, err := traces.NewMeasures(traces.MeasureSpec{})
	if err != nil {
		fmt.Println(err)
		return
	}
	depart := func(packet uint64, at des.Time) error {
		return m.Record(&traces.Record{Kind: traces.KindDepart, Event: traces.NoEvent, Card: 0, Peer: 1, Packet: packet, Start: at, End: at})
	}
	for i, at := range []des.Time{100, 195, 250} {
		if err := depart(uint64(i+1), at*des.Microsecond); err != nil {
			fmt.Println(err)
			return
		}
	}
	r, err := m.Finish(0)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("mean gap %v µs, longest %v µs, interval: %q\n", r.Gap.Mean, r.Gap.Max, r.Gap.Short)
	// Output: mean gap 75 µs, longest 95 µs, interval: "too few observations"
}

func ExampleCriticalPath() {
	c, err := traces.NewCriticalPath(traces.PathSpec{Worst: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	us := des.Microsecond
	for _, r := range []traces.Record{
		{Kind: traces.KindEnter, Packet: 2, Start: 10 * us, End: 10 * us},
		{Kind: traces.KindDepart, Packet: 1, Start: 20 * us, End: 20 * us, Peer: 1},
		{Kind: traces.KindBox, Event: traces.RxCheckHeader, Packet: 3, Start: 15 * us, End: 30 * us},
		{Kind: traces.KindBox, Event: traces.DMAStartHeader, Packet: 2, Start: 30 * us, End: 32 * us},
		{Kind: traces.KindTransfer, Event: traces.TransferHeader, Packet: 2, Ready: 32 * us, Start: 33 * us, End: 35 * us},
		{Kind: traces.KindDepart, Packet: 2, Start: 35 * us, End: 35 * us, Peer: 1},
	} {
		if err := c.Record(&r); err != nil {
			fmt.Println(err)
			return
		}
	}
	if err := c.Result().WriteText(os.Stdout); err != nil {
		fmt.Println(err)
	}
	// Output:
	//                 µs of a gap    all   fast  slow
	//                        gaps      1      1     0
	//                        mean  15.00  15.00     –
	//                   DMA chain   2.00   2.00     –
	//                    transfer   2.00   2.00     –
	//                    bus wait   1.00   1.00     –
	//   others' receive and route  10.00  10.00     –
	// worst: 15.00 µs from 20.000 µs on card 0, packet 1 to 2: DMA chain 2.00, transfer 2.00, bus wait 1.00, others' receive and route 10.00
}
