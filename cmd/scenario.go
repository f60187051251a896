package cmd

import (
	"fmt"
	"io"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"spinesim/sim"
)

// scenarioFlags are --scenario and --set, which every command that runs one
// has.
type scenarioFlags struct {
	name     string
	settings []string
}

func (f *scenarioFlags) add(c *cobra.Command, preset string) {
	c.Flags().StringVarP(&f.name, "scenario", "s", preset, "scenario: a preset's name or a file")
	f.addSet(c)
}

func (f *scenarioFlags) addSet(c *cobra.Command) {
	c.Flags().StringArrayVar(&f.settings, "set", nil, "override a value of the scenario, path=value; may be repeated")
}

func (f *scenarioFlags) load() (*sim.Scenario, error) { return sim.Load(f.name, f.settings...) }

func newScenario() *cobra.Command {
	c := &cobra.Command{
		Use:     "scenario",
		Short:   "List, show, start, check scenarios, or print their JSON Schema",
		Example: "  spinesim scenario list\n  spinesim scenario init mine.yaml --from four-way",
		Args:    wrapArgs(cobra.NoArgs),
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(scenarioList(), scenarioShow(), scenarioInit(), scenarioCheck(), scenarioSchema(), scenarioReference())
	return c
}

func scenarioList() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "list", Short: "List the embedded scenarios", Example: "  spinesim scenario list",
		Args: wrapArgs(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			type row struct {
				Name        string `json:"name"`
				Description string `json:"description"`
			}
			var rows []row
			for _, n := range sim.PresetNames() {
				s, err := sim.Load(n)
				if err != nil {
					return err
				}
				rows = append(rows, row{n, s.Description})
			}
			if asJSON {
				return writeJSON(c.OutOrStdout(), rows)
			}
			w := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 2, ' ', 0)
			for _, r := range rows {
				fmt.Fprintf(w, "%s\t%s\n", r.Name, r.Description)
			}
			return w.Flush()
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print a JSON array")
	return c
}

func scenarioShow() *cobra.Command {
	var f scenarioFlags
	var source, asJSON bool
	c := &cobra.Command{
		Use: "show NAME|FILE", Short: "Print a scenario with every value written out",
		Example: "  spinesim scenario show fig6.4\n  spinesim scenario show fig6.4 --set firmware.buffers=64",
		Args:    wrapArgs(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			if source {
				t, err := sim.PresetText(args[0])
				if err != nil {
					return err
				}
				_, err = io.WriteString(c.OutOrStdout(), t)
				return err
			}
			s, err := sim.Load(args[0], f.settings...)
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(c.OutOrStdout(), s)
			}
			t, err := s.YAML()
			if err != nil {
				return err
			}
			_, err = io.WriteString(c.OutOrStdout(), t)
			return err
		},
	}
	f.addSet(c)
	c.Flags().BoolVar(&source, "source", false, "print an embedded scenario as it is written, with its comments")
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return c
}

func scenarioInit() *cobra.Command {
	var from string
	var force bool
	c := &cobra.Command{
		Use: "init FILE", Short: "Start a scenario of your own",
		Example: "  spinesim scenario init mine.yaml --from fig6.4",
		Args:    wrapArgs(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			if _, err := sim.PresetText(from); err != nil {
				return err
			}
			if _, err := os.Stat(args[0]); err == nil && !force {
				return usagef("%s is there already; --force replaces it", args[0])
			}
			err := writeFile(args[0], func(w io.Writer) error {
				_, err := fmt.Fprintf(w, `# A scenario for spinesim. It holds what differs from the scenario it extends;
# "spinesim scenario show %s" prints every value with its unit, and
# "spinesim scenario schema" a schema for editors.
name: mine
description: What this scenario is to show.
extends: %s
seed: 1
policy: default          # or pci-first, round-robin, "Q6 Q3 Q4 Q5 Q0 Q1 Q2", ...
traffic:
  packets: 20000
  arrivals:
    process: poisson     # saturating, constant, jittered, poisson, bursts
    rate: 10000 packets/s
firmware:
  buffers: 16
`, from, from)
				return err
			})
			if err != nil {
				return usagef("%w", err)
			}
			fmt.Fprintf(c.OutOrStdout(), "wrote %s; run it with: spinesim run --scenario %s\n", args[0], args[0])
			return nil
		},
	}
	c.Flags().StringVar(&from, "from", "fig6.4", "preset that it extends")
	c.Flags().BoolVar(&force, "force", false, "replace a file that is there")
	return c
}

func scenarioCheck() *cobra.Command {
	var f scenarioFlags
	c := &cobra.Command{
		Use: "check FILE...", Short: "Check scenario files",
		Example: "  spinesim scenario check mine.yaml",
		Args:    wrapArgs(cobra.MinimumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			for _, a := range args {
				s, err := sim.Load(a, f.settings...)
				if err != nil {
					return err
				}
				h, err := s.Hash()
				if err != nil {
					return err
				}
				if _, err := fmt.Fprintf(c.OutOrStdout(), "%s: ok, hash %s\n", a, h); err != nil {
					return err
				}
			}
			return nil
		},
	}
	f.addSet(c)
	return c
}

func scenarioSchema() *cobra.Command {
	return &cobra.Command{
		Use: "schema", Short: "Print the JSON Schema of scenario files, for editors",
		Example: "  spinesim scenario schema > spinesim.schema.json",
		Args:    wrapArgs(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			return writeJSON(c.OutOrStdout(), sim.Schema())
		},
	}
}

func scenarioReference() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "reference", Short: "Print every key with its default and meaning",
		Example: "  spinesim scenario reference",
		Args:    wrapArgs(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			keys, err := sim.Reference()
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(c.OutOrStdout(), keys)
			}
			w := c.OutOrStdout()
			fmt.Fprintln(w, "| key | default | meaning |")
			fmt.Fprintln(w, "|---|---|---|")
			for _, k := range keys {
				d := k.Default
				if d != "" {
					d = "`" + d + "`"
				}
				if _, err := fmt.Fprintf(w, "| `%s` | %s | %s |\n", k.Path, d, k.Doc); err != nil {
					return err
				}
			}
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print a JSON array")
	return c
}
