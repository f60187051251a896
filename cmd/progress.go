package cmd

import (
	"time"

	"github.com/spf13/cobra"
	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/term"
)

func isTerminal(fd int) bool { return term.IsTerminal(fd) }

// progress shows how far a long work is, on a terminal only.
type progress struct {
	p   *mpb.Progress
	bar *mpb.Bar
}

// newProgress starts a bar of total steps; nothing is shown when the error
// stream is not a terminal.
func newProgress(c *cobra.Command, what string, total int64) *progress {
	if !onTerminal(c) || total <= 0 {
		return &progress{}
	}
	p := mpb.New(mpb.WithOutput(c.ErrOrStderr()), mpb.WithWidth(40), mpb.WithRefreshRate(150*time.Millisecond))
	return &progress{p: p, bar: p.AddBar(total,
		mpb.PrependDecorators(decor.Name(what+" "), decor.CountersNoUnit("%d/%d")),
		mpb.AppendDecorators(decor.Percentage(), decor.Name("  ETA "), decor.AverageETA(decor.ET_STYLE_GO)),
		mpb.BarRemoveOnComplete())}
}

// set tells that done steps are done.
func (p *progress) set(done int64) {
	if p.bar != nil {
		p.bar.SetCurrent(done)
	}
}

// add tells that n more steps are done.
func (p *progress) add(n int64) {
	if p.bar != nil {
		p.bar.IncrInt64(n)
	}
}

// end removes the bar.
func (p *progress) end() {
	if p.bar != nil {
		p.bar.Abort(true)
		p.p.Wait()
	}
}
