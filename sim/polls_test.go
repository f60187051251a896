package sim

import (
	"slices"
	"testing"

	"spinesim/traces"
)

// TestPollsHit holds the dispatcher to what its own record says: a poll that
// ends while the message which its queue hands out next can run is a hit, an
// arrival at the very end of the poll excluded. Messages' times come from the
// handlers' records, polls' outcomes from the dispatcher.
func TestPollsHit(t *testing.T) {
	more := []struct {
		name     string
		preset   string
		settings []string
	}{
		{"to host, pci-first", "fig6.4", []string{"policy=pci-first", "traffic.destinations.unroutable=1", "routes.default_route=false", "traffic.arrivals.rate=14000 packets/s"}},
		{"host returns, pci-first", "fig6.4", []string{"policy=pci-first", "traffic.destinations.unroutable=0.5", "routes.default_route=false", "host.return=card", "host.return_card=0", "traffic.arrivals.rate=9000 packets/s"}},
		{"host returns, round-robin", "four-way", []string{"policy=round-robin", "traffic.destinations.unroutable=0.5", "routes.default_route=false", "host.return=card", "host.return_card=1"}},
		{"one of each", "four-way", []string{"firmware.buffers=1", "firmware.credits=1", "policy=pci-first"}},
		{"batches", "fig6.4", []string{"firmware.batch=4", "policy=pci-first"}},
		{"flooding", "l2", []string{"policy=pci-first"}},
	}
	for _, v := range append(slices.Clone(variants), more...) {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			sc := mustLoad(t, v.preset, append([]string{"traffic.packets=150"}, v.settings...)...)
			var polls []traces.Record
			wrong := 0
			end := sc.Measure.Drain * 10
			mustRun(t, sc, Options{
				Check: true, Expand: []Span{{0, end}},
				Sinks: []traces.Sink{sinkFunc(func(r *traces.Record) {
					switch {
					case r.Kind == traces.KindPoll && r.Count == 0:
						polls = append(polls, *r)
					case r.Kind == traces.KindBox && r.Queue != traces.NoQueue:
						for i := len(polls) - 1; i >= 0 && polls[i].End > r.Ready; i-- {
							if p := &polls[i]; p.Card == r.Card && p.Queue == r.Queue && p.End <= r.Start {
								if wrong++; wrong < 4 {
									t.Errorf("card %d polled Q%d to %v and missed %v, which could run from %v on", r.Card, r.Queue, p.End, r.Event, r.Ready)
								}
							}
						}
					}
				})},
			})
			if len(polls) == 0 {
				t.Error("no poll missed: nothing was looked at")
			}
			if wrong > 0 {
				t.Errorf("%d polls missed what was ready", wrong)
			}
		})
	}
}
