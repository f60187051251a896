package cmd

import (
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"

	"spinesim/sim"
)

// version is the program's version with the commit it was built from, where
// the build recorded it.
func version() string {
	v := sim.Version
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" && len(s.Value) >= 12 {
				v += " (" + s.Value[:12] + ")"
			}
		}
	}
	return v
}

func newVersion() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:     "version",
		Short:   "Print the program's version",
		Example: "  spinesim version --json",
		Args:    wrapArgs(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if asJSON {
				return writeJSON(c.OutOrStdout(), map[string]string{"version": version()})
			}
			_, err := fmt.Fprintln(c.OutOrStdout(), "spinesim", version())
			return err
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return c
}
