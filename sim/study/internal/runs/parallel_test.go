package runs

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
)

func TestEach(t *testing.T) {
	for _, atOnce := range []int{0, 1, 3, 100} {
		got := make([]int, 50)
		var now, most atomic.Int32
		err := Each(t.Context(), atOnce, len(got), func(_ context.Context, i int) error {
			most.Store(max(most.Load(), now.Add(1)))
			got[i] += i + 1
			now.Add(-1)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range got {
			if v != i+1 {
				t.Fatalf("%d at once: work %d was done %d times", atOnce, i, v/(i+1))
			}
		}
		if atOnce > 0 && int(most.Load()) > atOnce {
			t.Errorf("%d ran at once, want at most %d", most.Load(), atOnce)
		}
	}
	if err := Each(t.Context(), 2, 0, nil); err != nil {
		t.Errorf("no work: %v", err)
	}
}

func TestEachFails(t *testing.T) {
	boom := errors.New("boom")
	var after atomic.Int32
	err := Each(t.Context(), 2, 1000, func(ctx context.Context, i int) error {
		switch {
		case i == 7:
			return fmt.Errorf("work %d: %w", i, boom)
		case i > 7:
			after.Add(1)
			<-ctx.Done() // a run that is cut short
			return ctx.Err()
		}
		return nil
	})
	if !errors.Is(err, boom) || after.Load() > 2 {
		t.Errorf("got %v after %d more, want boom at once", err, after.Load())
	}
	ctx, cancel := context.WithCancel(t.Context())
	err = Each(ctx, 2, 1000, func(_ context.Context, i int) error {
		if i == 3 {
			cancel()
		}
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want canceled", err)
	}
}
