package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"spinesim/sim/study"
)

// studyFlags are what every command that makes many runs has.
type studyFlags struct {
	scenarioFlags
	asJSON  bool
	workers int
}

func (f *studyFlags) add(c *cobra.Command, preset string) {
	f.scenarioFlags.add(c, preset)
	f.addRuns(c)
}

// addRuns adds what commands have that take no scenario flags.
func (f *studyFlags) addRuns(c *cobra.Command) {
	c.Flags().BoolVar(&f.asJSON, "json", false, "print one JSON object")
	c.Flags().IntVarP(&f.workers, "workers", "j", 0, "runs at once; 0 for one a processor. Results do not depend on it")
}

// loadFlags say how much traffic a study's runs have, and how fast.
type loadFlags struct {
	packets   uint64
	rate      string
	saturated bool
}

func (f *loadFlags) add(c *cobra.Command, packets uint64, example string) {
	c.Flags().Uint64Var(&f.packets, "packets", packets, "packets a run offers to each ingress card; 0 for the scenario's")
	c.Flags().StringVar(&f.rate, "rate", "", "rate into each ingress card, such as "+example)
	c.Flags().BoolVar(&f.saturated, "saturated", false, "a source that is never empty")
}

// settings of the scenario that the flags stand for.
func (f *loadFlags) settings(c *cobra.Command) ([]string, error) {
	var out []string
	if f.packets > 0 {
		out = append(out, fmt.Sprintf("traffic.packets=%d", f.packets))
	}
	if f.rate != "" {
		out = append(out, "traffic.arrivals.rate="+quoted(f.rate))
	}
	if f.saturated {
		out = append(out, "traffic.arrivals.process=saturating")
	}
	return out, exclusive(c, "rate", "saturated")
}

// exclusive complains when more than one of some flags is given.
func exclusive(c *cobra.Command, flags ...string) error {
	given := ""
	for _, f := range flags {
		switch {
		case !c.Flags().Changed(f):
		case given != "":
			return usagef("--%s and --%s exclude each other", given, f)
		default:
			given = f
		}
	}
	return nil
}

// share reads "0.5%" or "0.005".
func share(flag, text string) (float64, error) {
	t, percent := strings.CutSuffix(strings.TrimSpace(text), "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(t), 64)
	if percent {
		v /= 100
	}
	if err != nil || !(v >= 0 && v <= 1) {
		return 0, usagef("%s %q, want a share such as 0.5%% or 0.005", flag, text)
	}
	return v, nil
}

// bar is a progress bar whose total may grow, on a terminal only.
type bar struct {
	p *progress
}

// newBar starts a bar and gives what feeds it.
func newBar(c *cobra.Command, what string) (*bar, study.Progress) {
	b := &bar{p: &progress{}}
	return b, func(done, total int64, _ string) {
		if b.p.bar == nil {
			b.p = newProgress(c, what, total)
		}
		if b.p.bar != nil {
			b.p.bar.SetTotal(total, false)
		}
		b.p.set(done)
	}
}

func (b *bar) end() { b.p.end() }

// cut tells whether a command was ended by the user, whose results so far are
// then printed.
func cut(ctx context.Context, err error) bool {
	return err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err())
}

// span prints an interval's ends.
func span(low, high float64, format string) string {
	if math.IsNaN(low) || math.IsNaN(high) {
		return "no interval"
	}
	return fmt.Sprintf("95 %%: "+format+" … "+format, low, high)
}

func printNotes(w io.Writer, notes []string) {
	for _, n := range notes {
		fmt.Fprintln(w, "note:", n)
	}
}
