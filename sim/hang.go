package sim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"spinesim/spine"
)

// ErrHang reports an extension that does not return. It takes no simulated time,
// for it charges none, so that the watchdog of the cards does not see it. Go
// cannot stop it either: its goroutine stays, and works on until the program
// ends, or the extension returns after all.
var ErrHang = errors.New("the extension does not return, and charges nothing")

// defaultHang is Options.HangAfter where none is given (chosen: a call takes
// microseconds).
const defaultHang = 10 * time.Second

// watches tells whether calls of extensions are watched.
func (o *Options) watches() bool { return o.Extensions != nil && o.HangAfter >= 0 }

// watched runs the simulation in a goroutine of its own, and watches the calls
// of extensions.
func (s *Simulation) watched(ctx context.Context) (*Result, error) {
	patience := s.opt.HangAfter
	if patience == 0 {
		patience = defaultHang
	}
	type ended struct {
		r   *Result
		err error
	}
	end := make(chan ended, 1)
	go func() {
		r, err := s.run(ctx)
		end <- ended{r, err}
	}()
	// A call is seen to begin up to a tick late, so that it has at least the
	// whole time.
	tick := time.NewTicker(max(patience/4, time.Millisecond))
	defer tick.Stop()
	var call spine.Call
	var since time.Time
	for {
		select {
		case e := <-end:
			return e.r, e.err
		case now := <-tick.C:
			c, ok := s.router.Calling()
			switch {
			case !ok || c != call:
				call, since = c, now
			case now.Sub(since) >= patience:
				s.router.Leave()
				return nil, fmt.Errorf("extension %s on card %d, given packet %d at %v, %v ago by the wall's clock: %w",
					c.Extension, c.Card, c.Packet, c.At, now.Sub(since).Round(time.Millisecond), ErrHang)
			}
		}
	}
}
