package runs

import (
	"sync"
	"sync/atomic"
)

// Reporter passes progress on, one call at a time.
type Reporter struct {
	mu    sync.Mutex
	tell  Progress
	total int64
	done  *atomic.Int64
}

// NewReporter passes the progress of so much work on to tell, which may be nil;
// done counts what several reporters of one study have done together.
func NewReporter(tell Progress, total int64, done *atomic.Int64) *Reporter {
	return &Reporter{tell: tell, total: total, done: done}
}

// Add tells that n more is done.
func (r *Reporter) Add(n int64, what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	done := r.done.Add(n)
	if r.tell != nil {
		r.tell(done, max(r.total, done), what)
	}
}
