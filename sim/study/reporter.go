package study

import (
	"sync"
	"sync/atomic"
)

// reporter passes progress on, one call at a time.
type reporter struct {
	mu    sync.Mutex
	tell  Progress
	total int64
	done  *atomic.Int64
}

func newReporter(tell Progress, total int64, done *atomic.Int64) *reporter {
	return &reporter{tell: tell, total: total, done: done}
}

// add tells that n more is done.
func (r *reporter) add(n int64, what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	done := r.done.Add(n)
	if r.tell != nil {
		r.tell(done, max(r.total, done), what)
	}
}
