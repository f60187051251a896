package sim

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"spinesim/lanai"
	"spinesim/spine"
)

// sleeper is an extension that does not return from its n-th call before it is
// let go, and charges nothing.
type sleeper struct {
	calls, n int
	let      chan struct{}
	pause    time.Duration
}

func (*sleeper) Name() string { return "sleeper" }
func (x *sleeper) Handle(*spine.Context, *spine.Packet) spine.Verdict {
	time.Sleep(x.pause)
	if x.calls++; x.calls == x.n {
		<-x.let
	}
	return spine.Verdict{Action: spine.Next}
}

func (x *sleeper) on(card int, _ *lanai.SRAM) ([]spine.Extension, error) {
	if card != 0 {
		return nil, nil
	}
	return []spine.Extension{x}, nil
}

// TestHang: an extension that does not return ends the run with an error that
// names it; its goroutine ends when it returns after all.
func TestHang(t *testing.T) {
	x := &sleeper{n: 5, let: make(chan struct{})}
	before := runtime.NumGoroutine()
	begun := time.Now()
	_, err := Run(context.Background(), mustLoad(t, "fig6.4", "traffic.packets=100"), Options{Extensions: x.on, HangAfter: 200 * time.Millisecond})
	if !errors.Is(err, ErrHang) {
		t.Fatalf("%v, want ErrHang", err)
	}
	for _, want := range []string{"extension sleeper on card 0", "packet 5 at "} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q in it", err, want)
		}
	}
	if d := time.Since(begun); d < 200*time.Millisecond {
		t.Errorf("given up after %v", d)
	}
	close(x.let)
	for range 200 {
		if runtime.NumGoroutine() <= before {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("%d goroutines, %d before", runtime.NumGoroutine(), before)
}

// TestSlowIsNoHang: many calls that each take a while are no hang, and a run
// that is watched does the same as one that is not.
func TestSlowIsNoHang(t *testing.T) {
	sc := mustLoad(t, "fig6.4", "traffic.packets=60")
	run := func(after time.Duration) string {
		x := &sleeper{pause: 2 * time.Millisecond}
		return mustRun(t, sc, Options{Extensions: x.on, HangAfter: after}).Fingerprint
	}
	if a, b := run(50*time.Millisecond), run(-1); a != b {
		t.Errorf("watched %s, unwatched %s", a, b)
	}
}
