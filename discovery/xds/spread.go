package xds

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// Processors returns the number of goroutines that compute at a time. It may be less than
// GOMAXPROCS, so that requests do not wait for them.
func Processors() int { return min(runtime.GOMAXPROCS(0), runtime.NumCPU()) }

// spread calls do for each number below n, on all processors if there are many. It passes
// on a panic of any call.
func spread(n int, do func(i int)) {
	const portion = 64
	workers := min(Processors(), n/portion)
	if workers < 2 {
		for i := range n {
			do(i)
		}
		return
	}
	var next atomic.Int64
	var panicked atomic.Pointer[any]
	work := func() {
		defer func() {
			if p := recover(); p != nil {
				panicked.Store(&p)
			}
		}()
		for {
			end := int(next.Add(portion))
			for i := end - portion; i < min(end, n); i++ {
				do(i)
			}
			if end >= n {
				return
			}
		}
	}
	var all sync.WaitGroup
	for range workers {
		all.Go(work)
	}
	all.Wait()
	if p := panicked.Load(); p != nil {
		panic(*p)
	}
}
