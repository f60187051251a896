package des

import (
	"context"
	"testing"
)

type horizonProbe struct {
	e    *Engine
	seen []Time
}

func (h *horizonProbe) Handle(Time, uint64) error {
	h.seen = append(h.seen, h.e.Horizon())
	return nil
}

func TestHorizon(t *testing.T) {
	e := New(Options{})
	h := &horizonProbe{e: e}
	for _, at := range []Time{10, 10, 35, 2000} {
		if err := e.Schedule(at, 0, h, 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.RunUntil(context.Background(), 500); err != nil {
		t.Fatal(err)
	}
	want := []Time{10, 35, 500}
	if len(h.seen) != 3 || h.seen[0] != want[0] || h.seen[1] != want[1] || h.seen[2] != want[2] {
		t.Errorf("horizons %v, want %v", h.seen, want)
	}
}
