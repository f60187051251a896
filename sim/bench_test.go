package sim

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"sync"
	"testing"
	"time"

	"spinesim/spine"
	"spinesim/traces"
)

// benchPackets is how many packets an ingress card is offered in one operation
// of a benchmark: enough that the wiring of a router, which is not timed, and
// the first packets, which find empty tables, do not show.
const benchPackets = 10000

// timed runs a scenario as often as b asks and reports its pace. sinks, when
// not nil, gives the sinks of each run.
func timed(b *testing.B, opt Options, sinks func(*Simulation) traces.Sink, name string, settings ...string) {
	sc := mustLoad(b, name, append([]string{fmt.Sprintf("traffic.packets=%d", benchPackets)}, settings...)...)
	b.ReportAllocs()
	var packets, boxes, polls uint64
	var forwarded uint64
	var instructions, skipped int64
	var simulated float64
	for b.Loop() {
		b.StopTimer()
		o, late := opt, &lateSink{}
		if sinks != nil {
			o.Sinks = []traces.Sink{late}
		}
		s, err := New(sc, o)
		if err != nil {
			b.Fatal(err)
		}
		if sinks != nil {
			late.Sink = sinks(s)
		}
		b.StartTimer()
		r, err := s.Run(context.Background())
		if err != nil {
			b.Fatal(err)
		}
		if c, ok := late.Sink.(io.Closer); ok {
			if err := c.Close(); err != nil {
				b.Fatal(err)
			}
		}
		packets += r.Offered
		forwarded += r.Forwarded
		simulated += r.SimulatedS
		for i := range s.router.Cards() {
			c := s.router.Card(i).Counts()
			boxes += c.Handlers
			polls += c.Polls
			if fw := s.router.Card(i).Firmware(); fw != nil {
				n := fw.CPU.Counters()
				instructions += n.Instructions
				skipped += n.Skipped
			}
		}
	}
	seconds := b.Elapsed().Seconds()
	b.ReportMetric(float64(packets)/seconds, "packets/s")
	b.ReportMetric(float64(boxes)/seconds, "boxes/s")
	b.ReportMetric(seconds*1e9/float64(boxes), "ns/box")
	b.ReportMetric(float64(boxes)/float64(packets), "boxes/packet")
	b.ReportMetric(float64(polls)/float64(packets), "polls/packet")
	b.ReportMetric(simulated/seconds, "simulated-s/s")
	if instructions > 0 {
		b.ReportMetric(float64(forwarded)/seconds, "forwarded/s")
		b.ReportMetric(float64(instructions-skipped)/seconds/1e6, "executed-M/s")
		b.ReportMetric(float64(instructions-skipped)/float64(forwarded), "executed/packet")
		b.ReportMetric(float64(skipped)/float64(forwarded), "skipped/packet")
	}
}

// lateSink passes records on to a sink that is made from the simulation's Meta.
type lateSink struct{ traces.Sink }

// BenchmarkScenario runs every preset with all its measures and the
// fingerprint, and without a record of it.
func BenchmarkScenario(b *testing.B) {
	for _, name := range PresetNames() {
		if name == "base" {
			continue // what the others have in common
		}
		b.Run(name, func(b *testing.B) { timed(b, Options{}, nil, name) })
	}
}

// BenchmarkRecording is the default experiment without measures, with a record
// of every event: kept in a ring, and written as Parquet.
func BenchmarkRecording(b *testing.B) {
	b.Run("unmeasured", func(b *testing.B) { timed(b, Options{Unmeasured: true}, nil, "fig6.4") })
	b.Run("ring", func(b *testing.B) {
		timed(b, Options{}, func(s *Simulation) traces.Sink { return traces.NewRing(s.Meta(), 1<<16) }, "fig6.4")
	})
	b.Run("parquet", func(b *testing.B) {
		timed(b, Options{}, func(s *Simulation) traces.Sink {
			w, err := traces.NewParquetWriter(io.Discard, s.Meta())
			if err != nil {
				b.Fatal(err)
			}
			return w
		}, "fig6.4")
	})
}

// BenchmarkStepping is the default experiment poll by poll, for comparison.
func BenchmarkStepping(b *testing.B) { timed(b, Options{Stepping: true}, nil, "fig6.4") }

// BenchmarkLimit computes the boxes and transfers of one packet of the default
// experiment in a bare loop, and reports how much longer the simulator takes
// for a packet with its queues, polls, policy, records and measures.
func BenchmarkLimit(b *testing.B) {
	chain := chainOf(b, "fig6.4")
	l := newLimit(chain)
	b.ReportAllocs()
	for b.Loop() {
		l.packet()
	}
	limit := float64(b.Elapsed().Nanoseconds()) / float64(b.N)
	b.StopTimer()
	full := perPacket(b)
	b.ReportMetric(limit/float64(chain.boxes()), "ns/box")
	b.ReportMetric(full, "simulator-ns/packet")
	b.ReportMetric(full/limit, "times-limit")
}

// perPacket is what the simulator takes for a packet of the default
// experiment, in ns: the best of three runs.
func perPacket(b *testing.B) float64 {
	best := time.Duration(1<<63 - 1)
	for range 3 {
		s, err := New(mustLoad(b, "fig6.4", fmt.Sprintf("traffic.packets=%d", benchPackets)), Options{})
		if err != nil {
			b.Fatal(err)
		}
		start := time.Now()
		if _, err := s.Run(context.Background()); err != nil {
			b.Fatal(err)
		}
		best = min(best, time.Since(start))
	}
	return float64(best.Nanoseconds()) / benchPackets
}

// BenchmarkParallel runs replications, which differ in their seed, on one
// processor and on two at a time; the speed-up is theirs.
func BenchmarkParallel(b *testing.B) {
	const replications = 4
	run := func(seed int) {
		sc := mustLoad(b, "fig6.4", fmt.Sprintf("traffic.packets=%d", benchPackets), fmt.Sprintf("seed=%d", seed))
		if _, err := Run(context.Background(), sc, Options{}); err != nil {
			b.Error(err)
		}
	}
	all := func(workers int) time.Duration {
		start := time.Now()
		var wg sync.WaitGroup
		for w := range workers {
			wg.Go(func() {
				for seed := w; seed < replications; seed += workers {
					run(1 + seed)
				}
			})
		}
		wg.Wait()
		return time.Since(start)
	}
	var one, two time.Duration
	for b.Loop() {
		one += all(1)
		two += all(2)
	}
	b.ReportMetric(float64(one)/float64(two), "speed-up")
	b.ReportMetric(float64(b.N*replications*benchPackets)/two.Seconds(), "packets/s")
	b.ReportMetric(float64(min(runtime.GOMAXPROCS(0), runtime.NumCPU())), "cores")
}

// BenchmarkExecuted runs the default experiment with executed firmware.
func BenchmarkExecuted(b *testing.B) {
	for _, how := range []spine.Execution{spine.ExecuteHandlers, spine.ExecuteFull} {
		b.Run(string(how), func(b *testing.B) { timed(b, Options{}, nil, "fig6.4", "firmware.execution="+string(how)) })
	}
}
