package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"spinesim/sim"
)

// usageError is wrong usage of the command line.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// Execute runs one command line, without the program's name, and returns its
// exit status: 0 when all went well, 1 when a run failed, 2 for wrong usage or
// bad input. A nil stdin is the process's own. Once ctx is done a command ends
// early, keeps what is finished, and says so.
func Execute(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	var prof profiling
	root := newRoot(&prof)
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if perr := prof.finish(); err == nil {
		err = perr
	}
	if err == nil {
		return 0
	}
	fmt.Fprintln(stderr, "spinesim:", err)
	return status(err)
}

// stopped says so where a command was interrupted that keeps nothing.
func stopped(err error) error {
	if errors.Is(err, context.Canceled) {
		return fmt.Errorf("interrupted, nothing was kept: %w", err)
	}
	return err
}

func status(err error) int {
	var usage usageError
	var input *sim.InputError
	if errors.As(err, &usage) || errors.As(err, &input) {
		return 2
	}
	return 1
}

func newRoot(prof *profiling) *cobra.Command {
	root := &cobra.Command{
		Use:   "spinesim",
		Short: "Simulate LANai network cards running the SPINE dispatcher",
		Long: `spinesim simulates, cycle by cycle, an IP router built from LANai network cards
on a PCI bus that run the SPINE active-message dispatcher.

Replay the SPINE event graph, try other dispatcher priorities, and compare
static with dynamic schedules.`,
		Example:       "  spinesim replay\n  spinesim run --scenario four-way --json",
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       version(),
		Args:          wrapArgs(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			return c.Help()
		},
	}
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		// A word before the flag that names no command is what is wrong: its
		// flags are not known because it is not.
		if args := c.Flags().Args(); c.HasSubCommands() && len(args) > 0 {
			return wrapArgs(cobra.NoArgs)(c, args)
		}
		return usagef("%w (see %s --help)", err, c.CommandPath())
	})
	root.SetVersionTemplate("spinesim {{.Version}}\n")
	prof.add(root)
	root.AddCommand(newVersion(), newScenario(), newRun(), newReplay(), newCalibrate(), newPredict(), newMaxRate(), newCompare(), newFirmware(), newSchedule(), newTune(), newSweep(), newPolicies(), newCost(),
		newTrace(), newPlot(), newReport())
	return root
}

// wrapArgs turns a complaint about arguments into wrong usage.
func wrapArgs(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if err := check(c, args); err != nil {
			return usagef("%w (see %s --help)", err, c.CommandPath())
		}
		return nil
	}
}
