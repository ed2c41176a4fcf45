package discovery_test

import (
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
		during := &faults{}
		s := followWith(t, src, discovery.Options{ProxyIdle: time.Minute}, during)
		routes := func() string {
			a, err := s.V1Routes(nodeWeb, "80")
			if err != nil {
				t.Fatal(err)
			}
			return string(a.Body)
		}
		before, returned := routes(), false
		during.release = func(string) {
			during.release, returned = nil, true
			routes()
		}
		for range 100 {
			if !returned {
				time.Sleep(2 * time.Second)
			}
		}
		if !returned {
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
