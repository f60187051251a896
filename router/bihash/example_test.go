package bihash_test

import (
	"fmt"

	"spinesim/lanai"
	"spinesim/router/bihash"
)

// A table in a card's memory, and what a look-up reads there.
func ExampleNewIn() {
	sram := lanai.NewSRAM(1 << 20)
	t, err := bihash.NewIn(bihash.Spec{KeyBytes: 8, Buckets: 1024, Bytes: 64 << 10, Hash: bihash.CRC32C}, sram, "stations")
	if err != nil {
		fmt.Println(err)
		return
	}
	station := []byte{2, 0, 0, 0, 10, 1, 0, 0} // address and bridge domain
	if err := t.Add(station, 3); err != nil {
		fmt.Println(err)
		return
	}
	card, reads, ok := t.Find(station)
	fmt.Println(card, ok, reads.Words, "words read in", reads.Pages, "page")
	// Output: 3 true 6 words read in 1 page
}

// What prefetching saves on a processor, with one flow and with ten thousand.
func ExampleCompare() {
	for _, flows := range []int{1, 10000} {
		c, err := bihash.Compare(bihash.DefaultNode(), bihash.Haswell(), bihash.DefaultSpec(), flows, bihash.RoundRobin, bihash.PrefetchBucket)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%d flows: saves %.0f %%\n", flows, 100*c.Saving)
	}
	// Output:
	// 1 flows: saves -12 %
	// 10000 flows: saves 20 %
}
