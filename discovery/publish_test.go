package discovery_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// Proxies ask without pause while one generation replaces the other.
func TestPollsWhilePublishing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := service(t, "web.example", "10.1.0.1")
		src := newObjects(web)
		s := follow(t, src, discovery.Options{})
		stop := make(chan struct{})
		var proxies sync.WaitGroup
		for _, node := range []string{nodeA, nodeB, nodeWeb} {
			proxies.Go(func() {
				for running := true; running; {
					everything(t, s, node)
					select {
					case <-stop:
						running = false
					case <-time.After(time.Millisecond):
					}
				}
			})
		}
		for i := range 20 {
			src.set(web, timeout(t, "web.example", i+1))
			time.Sleep(pause)
		}
		close(stop)
		proxies.Wait()
		if s.Revision() != 21 {
			t.Errorf("revision %d, want 21", s.Revision())
		}
	})
}

// publishCase is a mesh of so many services; the returned function changes one
// rule and publishes it to a proxy that asked before.
func publishCase(t testing.TB, services int) (publish func(seconds int)) {
	all := make([]*schema.Object, services, services+1)
	for i := range all {
		all[i] = service(t, fmt.Sprintf("service-%d.example", i), fmt.Sprintf("10.1.%d.%d", i/250, i%250+1))
	}
	src := newObjects(all...)
	s := discovery.New(discovery.Options{Source: src, Settings: settings()})
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	run := func() {
		if err := s.Run(ended); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
	run()
	if _, err := s.V3(discovery.ClusterType, mesh.Node{ID: nodeA}, "", nil); err != nil {
		t.Fatal(err)
	}
	return func(seconds int) {
		src.set(append(all, timeout(t, "service-0.example", seconds))...)
		run()
		if _, err := s.V3(discovery.RouteType, mesh.Node{ID: nodeA}, "", []string{"80"}); err != nil || s.Revision() != src.revision {
			t.Fatalf("published %d (%v), want %d", s.Revision(), err, src.revision)
		}
	}
}

func TestPublish(t *testing.T) { publishCase(t, 3)(1) }

func BenchmarkPublish(b *testing.B) {
	for _, services := range []int{10, 100, 1000} {
		b.Run(fmt.Sprintf("services=%d", services), func(b *testing.B) {
			publish := publishCase(b, services)
			for i := 0; b.Loop(); i++ {
				publish(i%60 + 1)
			}
		})
	}
}
