package loader_test

import "runtime"

// memory is all that was ever allocated.
func memory() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}
