package answer

import (
	"bufio"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/pilot-api/pilot-api/server/admission"
	"github.com/pilot-api/pilot-api/server/wire"
)

// idle is a client that takes a minute to read each piece of an answer.
type idle struct{ *httptest.ResponseRecorder }

func (u idle) Write(p []byte) (int, error) {
	time.Sleep(time.Minute)
	return len(p), nil
}

// TestEncodingLeavesAProcessor checks with two processors that one of many large
// answers is encoded at a time, that clients which do not read delay nobody, and
// that too many answers are refused.
func TestEncodingLeavesAProcessor(t *testing.T) {
	for _, accept := range []string{"", "gzip"} {
		synctest.Test(t, func(t *testing.T) {
			pacer := NewPacer(admission.NewLongReads(2))
			var encoding, most, refused atomic.Int64
			piece := make([]byte, 100<<10)
			answer := pacer.Compressed(func(w http.ResponseWriter, _ *http.Request) error {
				return Stream(w, http.StatusOK, wire.YAML, largeAnswer, func(out *bufio.Writer) error {
					for range 5 {
						now := encoding.Add(1)
						for was := most.Load(); now > was && !most.CompareAndSwap(was, now); was = most.Load() {
						}
						time.Sleep(time.Millisecond)
						encoding.Add(-1)
						_, _ = out.Write(piece)
					}
					return nil
				})
			})
			ask := func(w http.ResponseWriter) {
				r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
				r.Header.Set("Accept-Encoding", accept)
				if err := answer(w, r); apierrors.IsTooManyRequests(err) {
					refused.Add(1)
				} else if err != nil {
					t.Error(err)
				}
			}
			var all sync.WaitGroup
			for range mostEncoded - 2 {
				all.Go(func() { ask(idle{httptest.NewRecorder()}) })
			}
			time.Sleep(10 * time.Second)
			begin := time.Now()
			quick := httptest.NewRecorder()
			if ask(quick); quick.Code != http.StatusOK || time.Since(begin) > time.Second {
				t.Errorf("beside clients that do not read it was answered %d after %v", quick.Code, time.Since(begin))
			}
			for range 10 {
				all.Go(func() { ask(idle{httptest.NewRecorder()}) })
			}
			all.Wait()
			if most.Load() != 1 || refused.Load() == 0 {
				t.Errorf("%d were encoded at a time, %d refused", most.Load(), refused.Load())
			}
		})
	}
}
