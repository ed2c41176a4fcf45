package discovery_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// inTime fails when something never ends.
func inTime(t *testing.T, what string, do func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); do() }()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatalf("%s: waits for ever", what)
	}
}

// write is a write that is acknowledged and published.
func write(t *testing.T, s *discovery.Publisher, src *objects, all ...*schema.Object) {
	s.Acknowledged(src.revision + 1)
	src.set(all...)
	once(t, s)
}

// TestNobodyWaitsForAPoll: while one is being answered, a change is published to that
// proxy and others come.
func TestNobodyWaitsForAPoll(t *testing.T) {
	web := service(t, "web.example", "10.1.0.1")
	src := newObjects(web)
	s := discovery.New(discovery.Options{Source: src, Settings: settings()})
	once(t, s)
	everything(t, s, nodeA)
	s.DuringPoll(nodeA, func() {
		inTime(t, "a publication, and a newcomer", func() {
			write(t, s, src, web, timeout(t, "web.example", 7))
			everything(t, s, nodeB)
		})
	})
}

// TestPollsThatRefuse begin and cease to, while changes are published and others come
// and go.
func TestPollsThatRefuse(t *testing.T) {
	outside.Slow(t)
	web := service(t, "web.example", "10.1.0.1")
	src := newObjects(web)
	s := discovery.New(discovery.Options{Source: src, Settings: settings()})
	once(t, s)
	var all sync.WaitGroup
	stop := make(chan struct{})
	repeat := func(do func(i int)) {
		all.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
					do(i)
				}
			}
		})
	}
	for _, node := range []string{nodeA, nodeB} {
		has := ""
		repeat(func(i int) {
			a, err := s.V3(discovery.ClusterType, mesh.Node{ID: node}, has, nil)
			if err != nil {
				t.Error(err)
			}
			if has = a.Version; i/10%2 == 0 {
				has = "its own"
			}
		})
	}
	repeat(func(i int) {
		st, err := s.Connect(mesh.Node{ID: fmt.Sprintf("sidecar~10.8.0.%d~x.default~default.svc.cluster.local", i%200)}, discovery.Delta)
		if err != nil {
			t.Error(err)
			return
		}
		st.Close()
	})
	repeat(func(int) { s.Report(); s.Proxies() })
	inTime(t, "publications beside all that", func() {
		for i := range 100 {
			write(t, s, src, web, timeout(t, "web.example", i+1))
		}
	})
	close(stop)
	inTime(t, "the polls and streams", all.Wait)
}
