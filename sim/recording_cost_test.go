//go:build linux

package sim

import (
	"context"
	"runtime"
	"syscall"
	"testing"
	"time"

	"spinesim/sim/testenv"

	"spinesim/traces"
)

// threadTime is the processor's time that the calling thread has had.
func threadTime(t *testing.T) time.Duration {
	t.Helper()
	const thread = 1 // RUSAGE_THREAD
	var u syscall.Rusage
	if err := syscall.Getrusage(thread, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// TestRecordingCost: keeping every event in a ring makes a run at most 40 %
// slower. What is compared is the time on the processor, not on the wall, and
// of several runs in turn the least: other load on the machine can only add.
func TestRecordingCost(t *testing.T) {
	testenv.NeedLong(t)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const packets, rounds, most = "traffic.packets=8000", 9, 1.4
	sc := mustLoad(t, "fig6.4", packets)
	once := func(record bool) time.Duration {
		late := &lateSink{}
		var o Options
		if record {
			o.Sinks = []traces.Sink{late}
		}
		s, err := New(sc, o)
		if err != nil {
			t.Fatal(err)
		}
		late.Sink = traces.NewRing(s.Meta(), 1<<16)
		runtime.GC()
		from := threadTime(t)
		if _, err := s.Run(context.Background()); err != nil {
			t.Fatal(err)
		}
		return threadTime(t) - from
	}
	plain, ring := time.Hour, time.Hour
	for range rounds {
		plain, ring = min(plain, once(false)), min(ring, once(true))
	}
	ratio := float64(ring) / float64(plain)
	t.Logf("%v without, %v with a ring: %+.1f %%", plain, ring, 100*(ratio-1))
	if ratio > most {
		t.Errorf("recording makes a run %.1f %% slower, want at most 40 %%", 100*(ratio-1))
	}
}
