package server

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/pilot-api/pilot-api/server/admission"
)

// oneSeat returns limits with a class that has one seat.
func oneSeat() (*overload, class) {
	o := newOverload(Options{Registry: prometheus.NewRegistry(), MaxConnections: 100})
	of := o.classes[classPeople]
	of.Class = admission.NewClass(admission.ClassOptions{Seats: 1, PerSender: 1, Queue: 10, Waiting: 10, Patience: time.Minute})
	return o, of
}

// TestSlowClientsKeepNoSeat checks that a request has a seat only while the server works: not
// while its body arrives, not while its answer is read, and not while it watches.
func TestSlowClientsKeepNoSeat(t *testing.T) {
	for name, c := range map[string]struct {
		body    func(end chan struct{}) io.Reader
		handler func(w http.ResponseWriter, r *http.Request, end chan struct{})
	}{
		"body": {
			func(end chan struct{}) io.Reader { return until{end} },
			func(_ http.ResponseWriter, r *http.Request, _ chan struct{}) { _, _ = io.ReadAll(r.Body) },
		},
		"answer": {nil, func(w http.ResponseWriter, _ *http.Request, end chan struct{}) {
			_, _ = io.WriteString(w, "begins")
			<-end
		}},
		"watch": {nil, func(w http.ResponseWriter, r *http.Request, end chan struct{}) {
			_ = seatless(func(http.ResponseWriter, *http.Request) error { <-end; return nil })(w, r)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o, of := oneSeat()
				end := make(chan struct{})
				slow := httptest.NewRequest(http.MethodPost, "/", nil)
				if c.body != nil {
					slow = httptest.NewRequest(http.MethodPost, "/", c.body(end))
				}
				go func() {
					_ = o.seated(httptest.NewRecorder(), slow, of, "a", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { c.handler(w, r, end) }))
				}()
				synctest.Wait()
				if seated, waiting := of.Load(); seated+waiting != 0 {
					t.Errorf("%d have a seat and %d wait beside a slow client", seated, waiting)
				}
				close(end)
				synctest.Wait()
				if seated, waiting := of.Load(); seated+waiting != 0 {
					t.Errorf("%d have a seat and %d wait at the end", seated, waiting)
				}
			})
		})
	}
}

// until is a body whose end arrives when a channel is closed.
type until struct{ end chan struct{} }

func (u until) Read([]byte) (int, error) {
	<-u.end
	return 0, io.EOF
}

// TestARequestHasItsSeatWhileTheServerWorks checks the other side: a request whose body has
// arrived waits for the seat of one that is worked on, and is refused after a while.
func TestARequestHasItsSeatWhileTheServerWorks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, of := oneSeat()
		end := make(chan struct{})
		go func() {
			_ = o.seated(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil), of, "a", http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-end }))
		}()
		synctest.Wait()
		never := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it is worked on without a seat") })
		if err := o.seated(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil), of, "b", never); !apierrors.IsTooManyRequests(err) {
			t.Errorf("without a body: %v", err)
		}
		reads := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if _, err := io.ReadAll(r.Body); !apierrors.IsTooManyRequests(err) {
				t.Errorf("the body ends with %v", err)
			}
		})
		if err := o.seated(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/", strings.NewReader("text")), of, "b", reads); err != nil {
			t.Error(err)
		}
		close(end)
	})
}
