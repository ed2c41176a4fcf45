package etcd

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pilot-api/pilot-api/store"
)

// TestQuota: what does not fit is refused at once, unless history can give way
// or what was let in turns out to be counted twice.
func TestQuota(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inUse := int64(50)
		q := newQuota(100, func() int64 { return inUse })
		settle := func(history int64) {
			time.Sleep(keepInterval)
			q.settle(history, time.Now())
		}
		try := func(bytes int64) (time.Duration, error) {
			began := time.Now()
			err := q.admit(t.Context(), bytes)
			return time.Since(began), err
		}
		q.settle(0, time.Now())
		if _, err := try(30); err != nil {
			t.Errorf("what fits: %v", err)
		}
		if waited, err := try(60); !errors.Is(err, store.ErrFull) || waited > 0 {
			t.Errorf("much too much: %v after %s", err, waited)
		}
		inUse = 80 // The 30 are committed, and pending for two more steps.
		go func() {
			settle(0)
			settle(0)
		}()
		if waited, err := try(20); err != nil || waited == 0 {
			t.Errorf("what fits once the rest is settled: %v after %s", err, waited)
		}
		inUse = 100
		settle(0)
		settle(0)
		if waited, err := try(1); !errors.Is(err, store.ErrFull) || waited > 0 {
			t.Errorf("nothing left: %v after %s", err, waited)
		}
		settle(40)
		go func() {
			time.Sleep(time.Second)
			inUse = 60
			settle(0)
		}()
		if waited, err := try(30); err != nil || waited < time.Second {
			t.Errorf("what fits once history is gone: %v after %s", err, waited)
		}
		settle(90)
		if waited, err := try(20); !errors.Is(err, store.ErrFull) || waited != roomWait {
			t.Errorf("history that does not go: %v after %s", err, waited)
		}
	})
}
