package bihash

import (
	"runtime"
	"sync"
)

// each calls work(0) … work(n-1) on all processors and returns the error of the
// lowest number. Work puts what it makes into a place of its own.
func each(n int, work func(i int) error) error {
	errs := make([]error, n)
	next := make(chan int)
	var wg sync.WaitGroup
	for range min(n, runtime.GOMAXPROCS(0)) {
		wg.Go(func() {
			for i := range next {
				errs[i] = work(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
