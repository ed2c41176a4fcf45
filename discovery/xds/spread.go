package xds

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// Processors is how many goroutines compute at a time. The program may have more of
// them run, so that requests do not wait for these.
func Processors() int { return min(runtime.GOMAXPROCS(0), runtime.NumCPU()) }

// spread does something for each of n, on all processors when there are many. A
// panic in one of them is one of the caller.
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
