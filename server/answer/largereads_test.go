package answer

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/pilot-api/pilot-api/server/admission"
)

// TestLargeReadsAreBounded checks with a hundred large answers whose clients do not
// read that no more are held than there is room for, that those which wait too long
// are refused, and that small ones are read meanwhile.
func TestLargeReadsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const together, size = 100, readWeight / 3
		l := NewLargeReads(admission.NewLongReads(2))
		var reading, mostReading, held, mostHeld atomic.Int64
		var refused, answered atomic.Int64
		raise := func(most *atomic.Int64, to int64) {
			for now := most.Load(); to > now && !most.CompareAndSwap(now, to); now = most.Load() {
			}
		}
		var all sync.WaitGroup
		for range together {
			all.Go(func() {
				done, err := l.Read(t.Context(), "large", func(context.Context) (int, error) {
					raise(&mostReading, reading.Add(1))
					time.Sleep(100 * time.Millisecond)
					reading.Add(-1)
					return size, nil
				})
				if err != nil {
					if !apierrors.IsTooManyRequests(err) {
						t.Errorf("one was answered %v", err)
					}
					refused.Add(1)
					return
				}
				raise(&mostHeld, held.Add(size))
				time.Sleep(time.Minute) // Its client does not read.
				held.Add(-size)
				done()
				answered.Add(1)
			})
		}
		time.Sleep(30 * time.Second)
		begin := time.Now()
		done, err := l.Read(t.Context(), "small", func(context.Context) (int, error) { return 1000, nil })
		if err != nil || time.Since(begin) > 0 {
			t.Errorf("a small one was answered %v after %v", err, time.Since(begin))
		} else {
			done()
		}
		all.Wait()
		if mostReading.Load() > 4 || mostHeld.Load() > 2*readWeight {
			t.Errorf("%d were read at a time, and %d bytes held", mostReading.Load(), mostHeld.Load())
		}
		if answered.Load() == 0 || answered.Load()+refused.Load() != together {
			t.Errorf("%d were answered, %d refused", answered.Load(), refused.Load())
		}
	})
}

// TestMeasuredAnswersWaitTheirTurn checks that while the share of large answers is
// spent, a large answer about proxies is refused, and a small one is sent at once.
func TestMeasuredAnswersWaitTheirTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		long := admission.NewLongReads(2)
		reads := NewLargeReads(long)
		leave, err := long.Enter(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer leave()
		ask := func(size int) error {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
			return reads.WriteJSON(httptest.NewRecorder(), r, "proxies", func() (any, error) { return strings.Repeat("x", size), nil })
		}
		if err := ask(1000); err != nil {
			t.Errorf("a small one: %v", err)
		}
		if err := ask(largeAnswer); !apierrors.IsTooManyRequests(err) {
			t.Errorf("a large one: %v", err)
		}
	})
}
