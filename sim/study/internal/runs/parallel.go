package runs

import (
	"context"
	"errors"
	"runtime"
	"sync"
)

// Progress is told how much of a long work is done, out of a total that may
// grow while the work goes on, and what is being done. Calls do not overlap.
type Progress func(done, total int64, what string)

// Workers is how many runs go on at once: n, or GOMAXPROCS for n < 1.
func Workers(n int) int {
	if n < 1 {
		return runtime.GOMAXPROCS(0)
	}
	return n
}

// Each calls work(0) … work(n-1), at most so many at once, and returns the
// error of the lowest index. A failure, or the context's end, keeps further
// calls from starting; those under way are waited for. Work must put what it
// makes into a place of its own, so that nothing depends on the schedule.
func Each(ctx context.Context, atOnce, n int, work func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var (
		mu     sync.Mutex
		next   int
		failed = n
		first  error
		wg     sync.WaitGroup
	)
	for range min(Workers(atOnce), n) {
		wg.Go(func() {
			for {
				mu.Lock()
				i := next
				if i >= n || ctx.Err() != nil {
					mu.Unlock()
					return
				}
				next++
				mu.Unlock()
				if err := work(ctx, i); err != nil {
					mu.Lock()
					// A run that was only cut short by another's failure is
					// not the reason.
					cut := errors.Is(err, context.Canceled) && first != nil
					if !cut && (i < failed || errors.Is(first, context.Canceled)) {
						failed, first = i, err
					}
					mu.Unlock()
					cancel()
				}
			}
		})
	}
	wg.Wait()
	if first == nil && next < n {
		return ctx.Err()
	}
	return first
}
