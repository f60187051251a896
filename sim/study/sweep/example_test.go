package sweep_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"spinesim/sim/study/sweep"
)

// A designed experiment into a database, and what the database says.
func ExampleRun() {
	dir, err := os.MkdirTemp("", "sweep")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	d, err := sweep.ParseDesign([]byte(`
scenario: fig6.4
settings:
  traffic.packets: 100
replications: 2
factors:
  policy: [default, pci-first]
  firmware.buffers: [4, 16]
`), "buffers.yaml")
	if err != nil {
		fmt.Println(err)
		return
	}
	db, err := sweep.OpenStore(filepath.Join(dir, "buffers.db"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer db.Close()
	for _, replications := range []int{0, 3} { // the design's, and one more later
		r, err := sweep.Run(context.Background(), d, db, sweep.Options{Replications: replications})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%d runs: %d found, %d made\n", r.Planned, r.Found, r.Made)
	}
	s, err := db.Summary([]string{"gap_us", "loss"})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, p := range s.Points {
		fmt.Println(p.Values, p.Replications)
	}
	// Output:
	// 8 runs: 0 found, 8 made
	// 12 runs: 8 found, 4 made
	// [default 4] 3
	// [default 16] 3
	// [pci-first 4] 3
	// [pci-first 16] 3
}
