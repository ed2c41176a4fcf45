package yardstick

import (
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// Step is one operation of a client. It returns io.EOF when the client has nothing more
// to do.
type Step func() error

// Load runs the steps of a number of clients for a duration d, each client's one after
// the other, and returns the steps per second. The first error ends it.
func Load(clients int, d time.Duration, newClient func(i int) (Step, error)) (float64, error) {
	steps := make([]Step, clients)
	for i := range steps {
		var err error
		if steps[i], err = newClient(i); err != nil {
			return 0, err
		}
	}
	var (
		all    sync.WaitGroup
		count  atomic.Int64
		over   atomic.Bool
		failed atomic.Pointer[error]
	)
	begin := time.Now()
	timer := time.AfterFunc(d, func() { over.Store(true) })
	defer timer.Stop()
	for _, step := range steps {
		all.Go(func() {
			done := int64(0)
			for ; !over.Load(); done++ {
				err := step()
				if err == io.EOF {
					break
				}
				if err != nil {
					failed.Store(&err)
					over.Store(true)
					break
				}
			}
			count.Add(done)
		})
	}
	all.Wait()
	if err := failed.Load(); err != nil {
		return 0, *err
	}
	return float64(count.Load()) / time.Since(begin).Seconds(), nil
}
