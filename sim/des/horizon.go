package des

// Horizon is the time before which nothing else acts: that of the next event,
// or the end of a RunUntil where that is earlier, or MaxTime. A component whose
// own event is running may work ahead up to there as long as it arms no timer.
func (e *Engine) Horizon() Time {
	if at, _, ok := e.Peek(); ok {
		return min(at, e.limit)
	}
	return e.limit
}

// Limit is the end of the present RunUntil, or MaxTime.
func (e *Engine) Limit() Time { return e.limit }
