package host_test

import (
	"fmt"

	"spinesim/pci/host"
)

func ExamplePath() {
	spec := host.DefaultPath()
	spec.Notify = host.NotifyCoalesced
	p, err := host.NewPath(spec)
	if err != nil {
		fmt.Println(err)
		return
	}
	first := p.Service(1500, 0)
	second := p.Service(1500, first) // it has waited in the driver queue
	fmt.Println(first, second)
	// Output:
	// 45.945 µs 38.945 µs
}

func ExampleProcessor_SmallCopy() {
	p := host.PSeries650()
	for _, source := range []int{0, 1} {
		c, err := p.SmallCopy(0, source, 64)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("source at %d: %d loads, %d shifts, %d ors, %d stores\n", source, c.Loads, c.Shifts, c.Ors, c.Stores)
	}
	// Output:
	// source at 0: 8 loads, 0 shifts, 0 ors, 8 stores
	// source at 1: 9 loads, 16 shifts, 8 ors, 8 stores
}
