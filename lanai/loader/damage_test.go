package loader_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"spinesim/lanai"
	"spinesim/lanai/loader"
)

// TestDamagedObjects changes a few bytes of good objects: what Parse lets
// through, Load places or refuses, and nothing panics.
func TestDamagedObjects(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 8))
	var seeds [][]byte
	for _, n := range []string{"lib/shift.o", "spine/extension.o", "spine/queue.o", "spine/dispatch.o"} {
		seeds = append(seeds, read(t, n))
	}
	parsed, loaded := 0, 0
	for range 20_000 {
		b := bytes.Clone(seeds[r.IntN(len(seeds))])
		for range 1 + r.IntN(3) {
			b[r.IntN(len(b))] = []byte{0, 1, 0x7F, 0xFF, byte(r.Uint32())}[r.IntN(5)]
		}
		o, err := loader.Parse("damaged.o", b)
		if err != nil {
			continue
		}
		parsed++
		if _, err := loader.Load(lanai.NewSRAM(1<<14), "damaged", o); err == nil {
			loaded++
		}
	}
	if parsed < 1000 || loaded < 100 || loaded == parsed {
		t.Errorf("%d parsed, %d loaded", parsed, loaded)
	}
}
