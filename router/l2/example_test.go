package l2_test

import (
	"fmt"

	"spinesim/lanai"
	"spinesim/router/l2"
	"spinesim/sim/des"
	"spinesim/spine"
)

// A bridge of two cards: a station's first packet is flooded, the answer is not.
func ExampleBridge() {
	spec := l2.DefaultSpec()
	spec.Addressing = l2.Ethernet
	bridge, err := l2.NewBridge(spec, 2)
	if err != nil {
		fmt.Println(err)
		return
	}
	var cards []*l2.Forwarding
	for c := range uint8(2) {
		f, err := bridge.On(c, lanai.NewSRAM(1<<20))
		if err != nil {
			fmt.Println(err)
			return
		}
		cards = append(cards, f)
	}
	send := func(at des.Time, card uint8, dst, src byte) spine.Verdict {
		frame := []byte{2, 0, 0, 0, 0, dst, 2, 0, 0, 0, 0, src, 8, 0}
		ctx := spine.NewContext(nil)
		ctx.Now = at
		return cards[card].Handle(ctx, &spine.Packet{Bytes: 60, Header: frame, Ingress: card})
	}
	fmt.Println(send(0, 0, 9, 1).Action == spine.Flood)
	v := send(des.Millisecond, 1, 1, 9)
	fmt.Println(v.Action == spine.Forward, "to card", v.Card)
	// Output:
	// true
	// true to card 0
}
