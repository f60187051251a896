package cmd

import (
	"github.com/spf13/cobra"

	"spinesim/pci/host"
)

func newCostHost() *cobra.Command {
	var asJSON bool
	var processor, notify, interval, flush string
	copies := host.DefaultPath().Copies
	c := &cobra.Command{
		Use:   "host",
		Short: "The host's kernel path: copies, cache flushes, a packet's way, published ratios",
		Long: `What copies, page copies and cache flushes cost by the models of several hosts, the
parts of a packet's way through the kernel, and the published before/after ratios
that the models can speak to; what they cannot is said to be so.`,
		Example: "  spinesim cost host\n  spinesim cost host --processor powerbook-g3 --flush lazy --json",
		Args:    wrapArgs(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			spec := host.DefaultPath()
			var err error
			if processor != "" {
				if spec.Processor, err = host.ProcessorByName(processor); err != nil {
					return usagef("--processor: %w", err)
				}
			}
			if notify != "" {
				if spec.Notify, err = host.NotifyByName(notify); err != nil {
					return usagef("--notify: %w", err)
				}
			}
			if interval != "" {
				if err := spec.PollInterval.UnmarshalText([]byte(interval)); err != nil {
					return usagef("--poll-interval: %w", err)
				}
			}
			if flush != "" {
				if spec.Flush, err = flushPolicy(flush); err != nil {
					return err
				}
				spec.MappedEvery = 1
			}
			spec.Copies = copies
			if err := spec.Validate(); err != nil {
				return usagef("%w", err)
			}
			r, err := host.NewReport(spec)
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(c.OutOrStdout(), r)
			}
			return r.WriteText(c.OutOrStdout())
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	c.Flags().StringVar(&processor, "processor", "", "the path's processor: pentium-pro-200, powerbook-g3, walnut-405 or pseries-650")
	c.Flags().StringVar(&notify, "notify", "", "how the kernel learns of packets: interrupt, coalesced or poll")
	c.Flags().StringVar(&interval, "poll-interval", "", `for --notify poll, such as "50 µs"`)
	c.Flags().StringVar(&flush, "flush", "", "when pages that are mapped are made coherent: never, eager, lazy or \"at execute\"")
	c.Flags().IntVar(&copies, "copies", copies, "how often a packet is copied")
	return c
}

func flushPolicy(name string) (host.FlushPolicy, error) {
	for f := range host.FlushPolicy(host.NumFlushPolicies) {
		if f.String() == name {
			return f, nil
		}
	}
	return 0, usagef("--flush %q, want never, eager, lazy or \"at execute\"", name)
}
