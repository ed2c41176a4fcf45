package discovery_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pilot-api/pilot-api/discovery"
)

// TestWhoComesBackIsKept: a proxy that returns while its view is let go of hears of
// changes and is told what is wrong, as any other.
func TestWhoComesBackIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := service(t, "web.example", "10.1.0.1")
		src := newObjects(web)
		var armed, returned atomic.Bool
		var routes func() string
		s := followWith(t, src, discovery.Options{ProxyIdle: time.Minute}, &faults{release: func(string) {
			if armed.CompareAndSwap(true, false) {
				returned.Store(true)
				routes()
			}
		}})
		routes = func() string {
			a, err := s.V1Routes(nodeWeb, "80")
			if err != nil {
				t.Fatal(err)
			}
			return string(a.Body)
		}
		before := routes()
		armed.Store(true)
		for range 100 {
			if !returned.Load() {
				time.Sleep(2 * time.Second)
			}
		}
		if !returned.Load() {
			t.Fatal("the view was not let go of")
		}
		routes()
		src.set(web, timeout(t, "web.example", 7))
		time.Sleep(time.Second)
		if routes() == before {
			t.Error("the proxy is not told of a rule that was published")
		}
	})
}
