package embedded

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pilot-api/pilot-api/store"
)

// TestQuota checks that a write that does not fit is refused immediately, unless
// history can be dropped or admitted writes turn out to be counted twice.
func TestQuota(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var inUse atomic.Int64
		inUse.Store(50)
		q := newQuota(100, inUse.Load)
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
		inUse.Store(80) // The 30 are committed, but stay pending for two more steps.
		go func() {
			settle(0)
			settle(0)
		}()
		if waited, err := try(20); err != nil || waited == 0 {
			t.Errorf("what fits once the rest is settled: %v after %s", err, waited)
		}
		inUse.Store(100)
		settle(0)
		settle(0)
		if waited, err := try(1); !errors.Is(err, store.ErrFull) || waited > 0 {
			t.Errorf("nothing left: %v after %s", err, waited)
		}
		settle(40)
		go func() {
			time.Sleep(time.Second)
			inUse.Store(60)
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

// TestAdmitNow checks that AdmitNow does not wait for room that history may free, and
// that Admit does.
func TestAdmitNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQuota(100, func() int64 { return 100 })
		q.settle(90, time.Now())
		for name, c := range map[string]struct {
			admit func(bytes int64) error
			want  time.Duration
		}{
			"now":  {KV{nil, q}.AdmitNow, 0},
			"wait": {func(bytes int64) error { return KV{nil, q}.Admit(t.Context(), bytes) }, roomWait},
		} {
			began := time.Now()
			if err := c.admit(80); !errors.Is(err, store.ErrFull) || time.Since(began) != c.want {
				t.Errorf("%s: %v after %s, want %s", name, err, time.Since(began), c.want)
			}
		}
	})
}
