package cmd

import "github.com/spf13/cobra"

func newCost() *cobra.Command {
	c := &cobra.Command{
		Use:   "cost",
		Short: "Where cycles go: data manipulation, exact match with prefetch, the host's kernel path",
		Long: `Cost models that reproduce published figures on their own and feed the simulator:
integrated layer processing (ilp), exact-match look-ups with and without prefetch
(bihash), and the kernel's path of a packet that a card hands up (host).`,
		Example: "  spinesim cost ilp --json\n  spinesim cost bihash --plot crossover.svg\n  spinesim cost host",
		Args:    wrapArgs(cobra.NoArgs),
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newCostILP(), newCostBihash(), newCostHost())
	return c
}

// simulateFlags are what a cost command has that can also run the simulator.
type simulateFlags struct {
	scenarioFlags
	on      bool
	workers int
}

func (f *simulateFlags) add(c *cobra.Command, preset, what string) {
	c.Flags().BoolVar(&f.on, "simulate", false, what)
	c.Flags().IntVarP(&f.workers, "workers", "j", 0, "with --simulate: runs at once; 0 for one a processor. Results do not depend on it")
	f.scenarioFlags.add(c, preset)
}

// check refuses flags of the simulation without it.
func (f *simulateFlags) check(c *cobra.Command) error {
	for _, n := range []string{"scenario", "set", "workers"} {
		if !f.on && c.Flags().Changed(n) {
			return usagef("--%s belongs to --simulate", n)
		}
	}
	return nil
}
