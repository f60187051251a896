package cmd

import (
	"fmt"

	"github.com/spf13/cobra"

	"spinesim/sim"
	"spinesim/traces"
)

// recordWindow limits what a run records.
type recordWindow struct {
	from, to, margin       string
	after                  uint64
	beforeDrop, gap, drops int
	polls                  bool
}

func (w *recordWindow) add(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&w.from, "record-from", "", "record from this time of the run on, such as 12.5 ms")
	f.StringVar(&w.to, "record-to", "", "record up to this time")
	f.Uint64Var(&w.after, "record-after", 0, "record what follows so many departures")
	f.IntVar(&w.gap, "record-around-gap", 0, "record what lies around the K-th longest gap between departures; 1 is the longest")
	f.StringVar(&w.margin, "record-margin", "100 µs", "with --record-around-gap: time before and after the gap")
	f.IntVar(&w.beforeDrop, "record-before-drop", 0, "record the last N records before each drop, the drop included")
	f.BoolVar(&w.polls, "record-polls", false, "record every single poll, between --record-from and --record-to if given")
}

// maxAroundGap bounds the records kept round each of the longest gaps.
const maxAroundGap = 100_000

// before puts the window before a sink. The function it returns passes on what
// is still held back, at the end of the run.
func (w *recordWindow) before(next traces.Sink, opt *sim.Options) (traces.Sink, func() error, error) {
	done := func() error { return nil }
	from, err := timeFlag("--record-from", w.from)
	if err != nil {
		return nil, done, err
	}
	to, err := timeFlag("--record-to", w.to)
	if err != nil {
		return nil, done, err
	}
	margin, err := timeFlag("--record-margin", w.margin)
	if err != nil {
		return nil, done, err
	}
	filter := traces.Filter{From: from, To: to}
	if err := filter.Check(); err != nil {
		return nil, done, usagef("--record-from, --record-to: %w", err)
	}
	if w.gap < 0 || w.beforeDrop < 0 || w.gap > 0 && w.beforeDrop > 0 {
		return nil, done, usagef("--record-around-gap and --record-before-drop exclude each other, and want numbers of at least 0")
	}
	if w.beforeDrop > maxRing || w.gap > maxGaps {
		return nil, done, usagef("--record-before-drop wants at most %d, --record-around-gap at most %d", maxRing, maxGaps)
	}
	if w.gap > 0 {
		g := traces.NewAroundGap(w.gap, margin, maxAroundGap, next)
		next = g
		done = func() error {
			if err := g.Close(); err != nil {
				return fmt.Errorf("--record-around-gap: %w", err)
			}
			return nil
		}
	}
	if w.beforeDrop > 0 {
		next = traces.NewBeforeDrop(w.beforeDrop, traces.ReasonNone, 0, next)
	}
	if w.after > 0 {
		next = traces.NewAfterPackets(w.after, next)
	}
	if from > 0 || to > 0 {
		next = traces.NewWindow(filter, next)
	}
	if w.polls {
		span := sim.Span{From: from, To: to}
		if to == 0 {
			span.To = 1 << 62
		}
		opt.Expand = []sim.Span{span}
	}
	return next, done, nil
}
