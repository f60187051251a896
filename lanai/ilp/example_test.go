package ilp_test

import (
	"fmt"
	"os"

	"spinesim/lanai/ilp"
)

func ExampleModel_Cost() {
	m := ilp.Model{Machine: ilp.HP735(), Functions: []ilp.Function{ilp.BSWAP(), ilp.PES(), ilp.CKSUM()}}
	fmt.Printf("sequential %.1f ns/byte\n", m.Cost(ilp.Sequential, ilp.InMemory()).NanosecondPerByte)
	fmt.Printf("integrated %.1f ns/byte\n", m.Cost(ilp.Integrated, ilp.InMemory()).NanosecondPerByte)
	// Output:
	// sequential 87.1 ns/byte
	// integrated 51.8 ns/byte
}

func ExampleStage() {
	packet := []byte("a packet that is swapped, scrambled and summed")
	for _, mode := range []ilp.Mode{ilp.Sequential, ilp.Integrated} {
		s, err := ilp.NewStage(ilp.StageSpec{
			Functions: []string{"bswap", "pes", "cksum"}, Mode: mode, Machine: ilp.Lanai4(),
		})
		if err != nil {
			fmt.Println(err)
			return
		}
		p := append([]byte(nil), packet...)
		s.Apply(p)
		sum, _ := s.Result(2)
		cycles, accesses := s.Cost(1500)
		fmt.Printf("%s: checksum %#04x; 1,500 bytes take %d cycles, %d loads and stores\n", mode, sum, cycles, accesses)
	}
	// Output:
	// sequential: checksum 0xd998; 1,500 bytes take 9239 cycles, 1887 loads and stores
	// integrated: checksum 0xd998; 1,500 bytes take 5830 cycles, 754 loads and stores
}

func ExampleCompare() {
	known := ilp.DefaultCatalogue()
	m, err := known.Model("lanai4", "bswap", "cksum")
	if err != nil {
		fmt.Println(err)
		return
	}
	c, err := ilp.Compare(m, ilp.InMemory(), ilp.InMemory())
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := c.WriteText(os.Stdout); err != nil {
		fmt.Println(err)
	}
	// Output:
	// bswap → cksum on lanai4, integrated block 4 bytes
	//                                instructions  loop   data acc.  state acc.  clocks/B  ns/B   MB/s
	// sequential, hit rate 0         2.250         1.500  0.750      0.000       4.500     135.0  7.4
	// integrated, hit rate 0         2.250         0.750  0.500      0.000       3.500     105.0  9.5
	// sequential, Abbott & Peterson  2.250         1.500  0.750      0.000       4.500     135.0  7.4
	// integrated, Abbott & Peterson  2.250         0.750  0.500      0.000       3.500     105.0  9.5
	// integration is 1.29 times faster; by Abbott and Peterson 1.29 times faster
}
